//! The file store: a folder with a table file for each rule, which all processes of a host share.
//!
//! ```text
//! limits/                 mode 0700; with `group: true` 0770
//!   messages.table        what keys have spent (see `tidegate-core`, file.rs); mode 0600, or 0660
//!   messages.changes      run-time changes and blocks, as JSON; replaced whole
//!   changes.log           the trail of all changes (see trail.rs)
//!   messages.lock         held by flock while a process replaces it, and freed at its end
//!   messages.….tmp        what a process builds; removed by the next one if it was killed
//! ```
//!
//! The folder is opened once and checked, and its files are opened from that descriptor. Each of
//! them is checked in the same way: a regular file, not a link, of the right owner, that nobody
//! else may write (see `tidegate-core`, directory.rs).
//!
//! A table's *shape* (the names, algorithms, scopes and `counts` of its limits, the room of its
//! windows, its capacity) is written into its header. A policy whose limits differ in size is
//! adopted. If its shape differs, or the file is of format 1, the counts are moved to a new table,
//! under the rule's lock (see `moving`). The name of a limit that is named by its text is a label:
//! it is written down, and another label in its place is the same limit.
//!
//! A table says which shapes its rule has *left*, the newest last. So a process of an earlier
//! release, which starts again beside a newer one, is known by its shape. It moves the table back
//! only if no other process has it open. The table then forgets the shapes from that one on: those
//! after it are newer again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde_json::{Value, json};
use tidegate_core::{
    Access, Clock, Directory, FILE_HASH, FileError, Format1, Host, Limits, TableFile,
};

use crate::compiled::plan::Plan;
use crate::compiled::wanted::ExistingTables;
use crate::config::limit::{Counts, is_label, parse_algorithm};
use crate::error::{Code, Error};
use crate::store::described::InspectedLimit;
use crate::store::moving::{check_rows, move_rows, move_rows_of_format1};
use crate::store::runtime::Runtime;
use crate::store::trail::{Change, TrailLog};

/// How many shapes that a rule has left are kept.
const MOST_LEFT: usize = 16;

/// How often a table is opened again that is retired.
const RETRIES: usize = 8;

/// A folder of tables.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// Where it was found, for messages.
    path: PathBuf,
    directory: Arc<Directory>,
    /// Whether tables that don't fit are made anew.
    recreate: bool,
}

/// What tells one table from another that holds other things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleShape {
    pub(crate) plan: Plan,
    pub(crate) capacity: usize,
}

/// Bytes of the longest text of changes. Tests have a shorter one.
const MOST_CHANGES: u64 = if cfg!(test) { 1 << 10 } else { 64 << 20 };
/// For how long a change waits for the process that changes the same rule. That one may be stopped,
/// or only read the lock's file and keep it locked.
const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(30) };
const HELD: &str = "another process has had it locked for long, and nothing can be changed \
    meanwhile; \
     end that process (`fuser` on this file names it), or let it go on if it is stopped";

/// Held while a rule's files are replaced.
#[derive(Debug)]
pub(crate) struct Alone(File);

impl Drop for Alone {
    fn drop(&mut self) {
        // By name, not by closing: a child that was forked meanwhile has the file open too.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Why a file can't be used.
pub(crate) trait Reason: std::fmt::Display {
    fn code(&self) -> Code {
        Code::Store
    }
}

impl Reason for &str {}
impl Reason for String {}

impl Reason for std::io::Error {
    /// A file that finds no room in the process's memory may be in order.
    fn code(&self) -> Code {
        match self.kind() {
            std::io::ErrorKind::OutOfMemory => Code::Memory,
            _ => Code::Store,
        }
    }
}

impl Reason for Errno {
    fn code(&self) -> Code {
        std::io::Error::from(*self).code()
    }
}

impl Reason for FileError {
    fn code(&self) -> Code {
        match self {
            FileError::Io(error) => error.code(),
            _ => Code::Store,
        }
    }
}

fn store_error(path: &Path, reason: impl Reason) -> Error {
    Error::new(reason.code(), format!("{}: {reason}", path.display()))
}

impl Folder {
    /// Opens the folder, and makes it if it is not there.
    pub(crate) fn open(path: &Path, access: Access, recreate: bool) -> Result<Folder, Error> {
        let directory = Directory::make(path, access).map_err(|error| store_error(path, error))?;
        directory.sweep();
        Ok(Folder { path: path.to_path_buf(), directory: Arc::new(directory), recreate })
    }

    /// A folder that is only looked at, by its owner, its group or root.
    pub(crate) fn open_known(path: &Path) -> Result<Folder, Error> {
        let open = |group: bool| Directory::open(path, Access { group, as_owner: true });
        let directory = open(false).or_else(|_| open(true));
        let directory = directory.map_err(|error| store_error(path, error))?;
        Ok(Folder { path: path.to_path_buf(), directory: Arc::new(directory), recreate: false })
    }

    /// Removes it if it was made when it was opened and nothing is in it.
    pub(crate) fn abandon(&self) {
        self.directory.abandon();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether others may read what is in it.
    pub(crate) fn is_exposed(&self) -> bool {
        self.directory.is_exposed()
    }

    /// The names of its tables' files.
    pub(crate) fn table_names(&self) -> Result<Vec<String>, Error> {
        let names = self.directory.names().map_err(|error| store_error(&self.path, error))?;
        Ok(names.into_iter().filter(|name| name.ends_with(".table")).collect())
    }

    /// A table by the name of its file, to be looked at; `None` if it is gone.
    pub(crate) fn known_table(&self, name: &str) -> Result<Option<TableFile>, Error> {
        let found = TableFile::inspect_in(&self.directory, name, &Host::here());
        found.map_err(|error| store_error(&self.path.join(name), error))
    }

    /// The capacity of a rule's table, if there is one whose counts a rule of this plan can go on
    /// with.
    pub(crate) fn capacity(&self, rule: &str, plan: &Plan) -> Option<ExistingTables> {
        let (name, host) = (file_name(rule, "table"), Host::here());
        let (described, readable) = match TableFile::inspect_in(&self.directory, &name, &host) {
            Ok(file) => (file?.shape().to_string(), true),
            Err(_) => {
                let old = Format1::open_in(&self.directory, &name, &host).ok()??;
                (old.shape().to_string(), false)
            }
        };
        let found: Value = serde_json::from_str(&described).ok()?;
        let shape = RuleShape::from_value(&found)?;
        let moved = !readable || !plan.keeps_state_of(&shape.plan);
        let goes_on = found["rule"] == rule && plan.parts == shape.plan.parts;
        (goes_on && !(moved && self.recreate))
            .then_some(ExistingTables { capacity: shape.capacity, moved })
    }

    /// Whether [`Folder::table`] would refuse a rule. For policies of several rules: none is to be
    /// moved if another can't be. It does not tell of a full disk, nor of too few places for the
    /// rows of format 1.
    pub(crate) fn check(
        &self,
        rule: &str,
        wanted: &RuleShape,
        capacity_stated: bool,
        clock: &Clock,
    ) -> Result<(), Error> {
        let (name, host) = (file_name(rule, "table"), Host::here());
        let manual = matches!(clock, Clock::Manual(_));
        let path = self.path.join(&name);
        let error = |error: FileError| store_error(&path, error);
        match TableFile::open_in(&self.directory, &name, &host) {
            Ok(_) | Err(FileError::Unreadable(_)) if self.recreate => Ok(()),
            Ok(None) => Ok(()),
            Ok(Some(file)) => match fits(rule, &file, wanted, capacity_stated, manual) {
                Fit::None | Fit::Same(_) => Ok(()),
                Fit::Refused(reason) => Err(store_error(&path, reason)),
                Fit::Other(other) => other.check(&file, clock).map_err(error),
            },
            Err(FileError::Unreadable(reason)) => {
                let old = Format1::open_in(&self.directory, &name, &host).map_err(error)?;
                let old = old.ok_or_else(|| store_error(&path, reason))?;
                let clocks = (old.is_manual(), manual);
                match fit(rule, (old.shape(), clocks), wanted, capacity_stated) {
                    Fit::Refused(reason) => Err(store_error(&path, reason)),
                    _ => Ok(()),
                }
            }
            Err(refused) => Err(error(refused)),
        }
    }

    /// The table file of a rule, which is made if it is not there, and its shape. One of another
    /// shape, or of an older format, is moved to this one. `limits` are those that keys are judged
    /// by, group by group.
    pub(crate) fn table(
        &self,
        rule: &str,
        (wanted, capacity_stated, limits): (&RuleShape, bool, &[Limits]),
        clock: &Clock,
        words: impl Fn(&RuleShape) -> Option<usize>,
    ) -> Result<(TableFile, RuleShape), Error> {
        let (name, host) = (file_name(rule, "table"), Host::here());
        let manual = matches!(clock, Clock::Manual(_));
        let path = self.path.join(&name);
        let error = |error: FileError| store_error(&path, error);
        let words = |shape: &RuleShape| {
            words(shape).ok_or_else(|| store_error(&path, "the table is too large"))
        };
        // Held while a table is made anew or moved: another who does must not take away the new
        // one.
        let (mut alone, mut tries) = (None, 0);
        loop {
            let mut old = None;
            let fit = match TableFile::open_in(&self.directory, &name, &host) {
                // Another took its place while it was opened. (One that says so again and again was
                // put back by hand.)
                Ok(Some(file)) if file.is_retired() && tries < RETRIES => {
                    tries += 1;
                    continue;
                }
                Ok(Some(file)) => match fits(rule, &file, wanted, capacity_stated, manual) {
                    Fit::Same(shape) => return Ok((file, shape)),
                    other => {
                        old = Some(file);
                        other
                    }
                },
                Ok(None) => Fit::None,
                Err(FileError::Unreadable(_)) if !self.recreate && alone.is_none() => {
                    // It may be of an older format, which is moved.
                    alone = Some(self.lock(rule)?);
                    continue;
                }
                Err(FileError::Unreadable(reason)) if !self.recreate => {
                    let wants = (wanted, capacity_stated, limits);
                    let moved = self.moved_from_format1(rule, wants, clock, &words)?;
                    return moved.ok_or_else(|| store_error(&path, reason));
                }
                Err(FileError::Unreadable(reason)) => Fit::Refused(reason),
                Err(refused) => return Err(error(refused)),
            };
            match fit {
                Fit::None => {}
                Fit::Refused(reason) if !self.recreate => return Err(store_error(&path, reason)),
                _ if alone.is_none() => {
                    alone = Some(self.lock(rule)?);
                    continue;
                }
                _ if self.recreate => {
                    self.directory.remove(&name).map_err(error)?;
                    // Its users must not go on as if others saw what they count. (Those of a table
                    // that this build can't read learn it from the lost name.)
                    if let Some(old) = old {
                        old.retire();
                    }
                }
                Fit::Other(other) => {
                    let Some(old) = old else { continue };
                    let words = words(&other.to)?;
                    let file = self.moved(rule, &old, &other, words, clock);
                    return Ok((file.map_err(error)?, other.to));
                }
                Fit::Same(_) | Fit::Refused(_) => continue,
            }
            let text = wanted.to_value(rule).to_string();
            let words = words(wanted)?;
            let made = TableFile::create_in(&self.directory, &name, &text, words, manual, &host);
            if let Some(file) = made.map_err(error)? {
                return Ok((file, wanted.clone()));
            }
        }
    }

    /// Puts a table in the place of one of format 1, with its counts; `None` if it is not of format
    /// 1.
    fn moved_from_format1(
        &self,
        rule: &str,
        (wanted, capacity_stated, limits): (&RuleShape, bool, &[Limits]),
        clock: &Clock,
        words: &impl Fn(&RuleShape) -> Result<usize, Error>,
    ) -> Result<Option<(TableFile, RuleShape)>, Error> {
        let (name, host) = (file_name(rule, "table"), Host::here());
        let path = self.path.join(&name);
        let error = |error: FileError| store_error(&path, error);
        let old = Format1::open_in(&self.directory, &name, &host).map_err(error)?;
        let Some(old) = old else { return Ok(None) };
        let manual = matches!(clock, Clock::Manual(_));
        let clocks = (old.is_manual(), manual);
        let (from, to) = match fit(rule, (old.shape(), clocks), wanted, capacity_stated) {
            Fit::Refused(reason) => return Err(store_error(&path, reason)),
            Fit::Other(other) => (other.from, other.to),
            Fit::Same(shape) => {
                let to = RuleShape { capacity: shape.capacity, plan: wanted.plan.clone() };
                // Its own room is of no matter: what it holds is charged again.
                let described = serde_json::from_str(old.shape()).ok();
                let from = described.and_then(|found| RuleShape::from_value(&found));
                (from.unwrap_or(shape), to)
            }
            Fit::None => return Ok(None),
        };
        let (text, words) = (to.to_value(rule).to_string(), words(&to)?);
        let moving = old.begin_move(&self.directory, &name, &text, words, &host).map_err(error)?;
        let own = if manual { clock.clone() } else { moving.file().clock() };
        let moved = move_rows_of_format1((&from, &old), (&to, moving.file()), limits, &own);
        moved.map_err(|reason| store_error(&path, reason))?;
        Ok(Some((moving.publish().map_err(error)?, to)))
    }

    /// Puts a table of another shape, with the counts of the old one, in the old one's place.
    fn moved(
        &self,
        rule: &str,
        old: &TableFile,
        other: &Other,
        words: usize,
        clock: &Clock,
    ) -> Result<TableFile, FileError> {
        other.check_alone(old)?;
        let moved = self.moved_alone(rule, old, other, words, clock);
        // By name, not by closing: a child that was forked meanwhile has the file open too.
        let _ = old.share();
        moved
    }

    /// The same, once that is known to be allowed.
    fn moved_alone(
        &self,
        rule: &str,
        old: &TableFile,
        other: &Other,
        words: usize,
        clock: &Clock,
    ) -> Result<TableFile, FileError> {
        let Other { from, to, .. } = other;
        let (name, text) = (file_name(rule, "table"), other.description(rule));
        // Lists of all rows, beside the two tables.
        let lists = old.bytes().saturating_add(words as u64 * 8).saturating_mul(2);
        if !usize::try_from(lists).is_ok_and(crate::room::is_there) {
            return Err(FileError::Io(std::io::ErrorKind::OutOfMemory.into()));
        }
        let moving = old.begin_move(&self.directory, &name, &text, words)?;
        let moved = move_rows((from, old), (to, moving.file()), &clock_of(old, clock));
        moved.map_err(|reason| other.refusal(&reason))?;
        moving.finish(old)
    }

    /// What was changed at run time, as it stands on the disk.
    pub(crate) fn read_changes(&self, rule: &str) -> Result<Runtime, Error> {
        let name = file_name(rule, "changes");
        let path = self.path.join(&name);
        let file = self.directory.open_file(&name).map_err(|error| store_error(&path, error))?;
        let Some(file) = file else { return Ok(Runtime::default()) };
        let mut text = String::new();
        let read = file.take(MOST_CHANGES + 1).read_to_string(&mut text);
        read.map_err(|error| store_error(&path, error))?;
        check_length(&path, &text)?;
        let value: Value = serde_json::from_str(&text).map_err(|error| {
            store_error(&path, format!("{error}; repair the file, or remove it to have no changes"))
        })?;
        Ok(Runtime::from_value(&value))
    }

    /// Waits until no other process changes what is known of a rule, for a while. Dropped, or with
    /// the process, it is over.
    fn lock(&self, rule: &str) -> Result<Alone, Error> {
        self.lock_by(&file_name(rule, "lock"))
    }

    /// Waits until no other process holds a file, for a while.
    pub(crate) fn lock_by(&self, name: &str) -> Result<Alone, Error> {
        let error = |error: FileError| store_error(&self.path.join(name), error);
        let lock = self.directory.open_or_make(name).map_err(error)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Alone(lock)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(store_error(&self.path.join(name), HELD));
                }
                Err(refused) => return Err(error(refused.into())),
            }
        }
    }

    /// Replaces what was changed at run time, while nobody else does: until the last of what it
    /// gives is dropped. Nothing is written, and nothing given, if nothing is changed.
    pub(crate) fn change(
        &self,
        rule: &str,
        change: impl FnOnce(&mut Runtime) -> Result<Option<Change>, Error>,
    ) -> Result<Option<(Runtime, Alone)>, Error> {
        let alone = self.lock(rule)?;
        let mut runtime = self.read_changes(rule)?;
        let Some(change) = change(&mut runtime)? else { return Ok(None) };
        let name = file_name(rule, "changes");
        let mut log = TrailLog::open(self)?;
        if self.open_file(&name)?.is_none() {
            // First: a last line without a text beside it is taken for a change that was made.
            let none = Runtime { last: log.last(), ..Runtime::default() };
            self.replace(&name, none.to_value().to_string().as_bytes())?;
        }
        // Before the trail: it must tell of nothing that can't be stored.
        check_length(&self.path.join(&name), &runtime.to_value().to_string())?;
        runtime.last = log.append(change, runtime.last)?;
        self.replace(&name, runtime.to_value().to_string().as_bytes())?;
        Ok(Some((runtime, alone)))
    }

    /// Tells the users of the table that has a rule's name now to read its changes again.
    pub(crate) fn tell(&self, rule: &str) {
        let name = file_name(rule, "table");
        if let Ok(Some(file)) = TableFile::open_in(&self.directory, &name, &Host::here()) {
            file.generation().add();
        }
    }

    /// Whether there is a text of changes.
    pub(crate) fn has_changes(&self, rule: &str) -> bool {
        self.open_file(&file_name(rule, "changes")).is_ok_and(|file| file.is_some())
    }

    /// What went wrong with a file.
    pub(crate) fn error(&self, name: &str, reason: impl Reason) -> Error {
        store_error(&self.path.join(name), reason)
    }

    pub(crate) fn open_file(&self, name: &str) -> Result<Option<File>, Error> {
        self.directory.open_file(name).map_err(|error| self.error(name, error))
    }

    pub(crate) fn open_or_make(&self, name: &str) -> Result<File, Error> {
        self.directory.open_or_make(name).map_err(|error| self.error(name, error))
    }

    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.directory.replace(name, bytes).map_err(|error| self.error(name, error))
    }
}

fn check_length(path: &Path, text: &str) -> Result<(), Error> {
    let remedy = "clear overrides and exemptions, or remove the file to have no changes";
    match text.len() as u64 {
        0..=MOST_CHANGES => Ok(()),
        _ => Err(store_error(path, format!("it has more than {MOST_CHANGES} bytes; {remedy}"))),
    }
}

fn file_name(rule: &str, ending: &str) -> String {
    format!("{}.{ending}", encoded(rule))
}

/// A rule's name as a file's: what is not plain is written as `%` and two digits.
fn encoded(rule: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let each = rule.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    each.collect()
}

impl RuleShape {
    /// As it was described, if that is sound.
    pub(crate) fn from_value(value: &Value) -> Option<RuleShape> {
        let places = |value: &Value| -> Option<Vec<usize>> {
            value.as_array()?.iter().map(|v| Some(v.as_u64()? as usize)).collect()
        };
        let limits = value["limits"].as_array()?;
        let text = |limit: &Value, field: &str| limit[field].as_str().map(str::to_string);
        let algorithm = |limit: &Value| parse_algorithm(limit["algorithm"].as_str()?);
        let names: Vec<String> =
            limits.iter().map(|limit| text(limit, "name")).collect::<Option<_>>()?;
        // Tables of earlier builds don't say: a name that is read as a limit is a label there.
        let label = |(limit, name): (&Value, &String)| limit["label"] == true || is_label(name);
        let labelled = limits.iter().zip(&names).map(label).collect();
        let counts = |limit: &Value| match limit["counts"].as_str() {
            None => Some(Counts::Cost),
            Some("hits") => Some(Counts::Hits),
            Some(_) => None,
        };
        let scope = |limit: &Value| Some((places(&limit["scope"])?, counts(limit)?));
        let plan = Plan::described(
            value["parts"].as_u64()? as usize,
            (names, labelled),
            limits.iter().map(algorithm).collect::<Option<_>>()?,
            limits.iter().map(scope).collect::<Option<Vec<_>>>()?,
            limits.iter().map(|limit| limit["room"].as_u64().unwrap_or(0)).collect(),
            places(&value["penalty_scope"])?,
        );
        Some(RuleShape { plan, capacity: value["capacity"].as_u64()? as usize })
    }

    fn to_value(&self, rule: &str) -> Value {
        let plan = &self.plan;
        json!({
            "rule": rule,
            "hash": FILE_HASH,
            "parts": plan.parts,
            "capacity": self.capacity,
            "penalty_scope": plan.penalty_scope,
            "limits": self.limits().iter().map(InspectedLimit::to_value).collect::<Vec<_>>(),
        })
    }

    /// Its limits, in their order.
    pub(crate) fn limits(&self) -> Vec<InspectedLimit> {
        let plan = &self.plan;
        let limit = |index: usize| InspectedLimit {
            name: plan.names[index].clone(),
            is_label: plan.labelled[index],
            algorithm: plan.algorithms[index],
            scope: plan.groups[plan.places[index].0].scope.clone(),
            counts: plan.counts(index),
            room: plan.room(index),
        };
        (0..plan.names.len()).map(limit).collect()
    }
}

/// Whether a rule can use a table.
enum Fit {
    /// There is none.
    None,
    /// Yes, by this shape.
    Same(RuleShape),
    /// Once it is moved.
    Other(Box<Other>),
    /// No, and why.
    Refused(String),
}

/// A table of another shape.
struct Other {
    from: RuleShape,
    to: RuleShape,
    /// What the table is to say of the shapes that its rule has left.
    left: Vec<Value>,
    /// Whether the shape wanted is one of them.
    older: bool,
    /// Where the shapes differ first.
    difference: String,
}

impl Other {
    /// What the new table says of itself, and of as many shapes that were left as a header holds.
    fn description(&self, rule: &str) -> String {
        let mut text = self.to.to_value(rule);
        for oldest in 0..self.left.len() {
            text["left"] = Value::Array(self.left[oldest..].to_vec());
            let described = text.to_string();
            if described.len() <= TableFile::MOST_SHAPE {
                return described;
            }
        }
        self.to.to_value(rule).to_string()
    }

    /// Has the table alone from now on, where that is needed to move it back.
    fn check_alone(&self, old: &TableFile) -> Result<(), FileError> {
        if !self.older || old.stay_alone()? {
            return Ok(());
        }
        Err(self.refusal(
            "a newer policy has moved it to that shape, and another process, or another limiter \
            of this \
             process, has it open: end those that use it to move it back, or use their policy",
        ))
    }

    /// Whether a table can be moved.
    fn check(&self, old: &TableFile, clock: &Clock) -> Result<(), FileError> {
        self.check_alone(old)?;
        old.share()?;
        let checked = check_rows((&self.from, old), &self.to, &clock_of(old, clock));
        checked.map_err(|reason| self.refusal(&reason))
    }

    fn refusal(&self, reason: &str) -> FileError {
        FileError::Refused(format!("{}; {reason}", self.difference))
    }
}

/// The clock that a table's rows are judged by: this limiter's if that is a manual one, else its
/// own.
fn clock_of(file: &TableFile, clock: &Clock) -> Clock {
    match clock {
        Clock::Manual(_) => clock.clone(),
        _ => file.clock(),
    }
}

/// Whether a file is what these wants can use.
fn fits(
    rule: &str,
    file: &TableFile,
    wanted: &RuleShape,
    capacity_stated: bool,
    manual: bool,
) -> Fit {
    fit(rule, (file.shape(), (file.is_manual(), manual)), wanted, capacity_stated)
}

/// The same of a file that is described so; and whether its clock, and this limiter's, is a manual
/// one.
fn fit(
    rule: &str,
    (described, (its, manual)): (&str, (bool, bool)),
    wanted: &RuleShape,
    capacity_stated: bool,
) -> Fit {
    const REMEDY: &str = "go back to that, remove the file, or open with `recreate`";
    if its != manual {
        let (its, ours) =
            if manual { ("the host's", "a manual") } else { ("a manual", "the host's") };
        let found = format!("it was made under {its} clock, and this limiter has {ours} one");
        return Fit::Refused(found);
    }
    let described = serde_json::from_str(described).ok();
    let parsed = described.and_then(|found: Value| Some((RuleShape::from_value(&found)?, found)));
    let Some((from, mut found)) = parsed else {
        return Fit::Refused("its description is damaged; remove it to start afresh".to_string());
    };
    let mut left: Vec<Value> = match found.as_object_mut().and_then(|found| found.remove("left")) {
        Some(Value::Array(left)) => left,
        _ => Vec::new(),
    };
    let difference = match agree(rule, wanted, capacity_stated, &found) {
        Ok(shape) => return Fit::Same(shape),
        Err(difference) => difference,
    };
    let mine = wanted.to_value(rule);
    for fixed in ["rule", "hash", "parts"] {
        if mine[fixed] != found[fixed] {
            let difference = differs(rule, fixed, &mine[fixed], &found[fixed]);
            let why = "counts of other keys can't be moved";
            return Fit::Refused(format!("{difference}; {why}: {REMEDY}"));
        }
    }
    let known = left.iter().position(|left| agree(rule, wanted, capacity_stated, left).is_ok());
    match known {
        Some(known) => left.truncate(known),
        None => left.push(found),
    }
    left.drain(..left.len().saturating_sub(MOST_LEFT));
    // What nobody stated is what was there, as far as this policy's `memory` has room for it.
    let unstated = wanted.capacity.min(from.capacity);
    let capacity = if capacity_stated { wanted.capacity } else { unstated };
    Fit::Other(Box::new(Other {
        from,
        to: RuleShape { capacity, plan: wanted.plan.clone() },
        left,
        older: known.is_some(),
        difference,
    }))
}

fn differs(rule: &str, path: &str, mine: &Value, theirs: &Value) -> String {
    format!(
        "rule {rule:?} has another shape: {path} is {theirs} in the file and {mine} in the policy"
    )
}

/// The shape of a table that is described so, if these wants can use it; else where they differ
/// first.
fn agree(
    rule: &str,
    wanted: &RuleShape,
    capacity_stated: bool,
    found: &Value,
) -> Result<RuleShape, String> {
    let mut expected = wanted.to_value(rule);
    let mut shape = wanted.clone();
    let known = RuleShape::from_value(found).map(|shape| shape.plan);
    let known = known.filter(|plan| plan.names.len() == wanted.plan.names.len());
    for (index, limit) in expected["limits"].as_array_mut().into_iter().flatten().enumerate() {
        if known.as_ref().is_some_and(|known| wanted.plan.is_same_limit(index, known)) {
            let theirs = &found["limits"][index];
            limit["name"] = theirs["name"].clone();
            match theirs.get("label") {
                Some(label) => limit["label"] = label.clone(),
                None => drop(limit.as_object_mut().map(|limit| limit.remove("label"))),
            }
        }
    }
    // Room and capacity may be the file's: more room than is wanted does no harm.
    for index in 0..shape.plan.names.len() {
        let room = found["limits"][index]["room"].as_u64();
        if let (Some(room), Some(mine)) = (room, shape.plan.room(index))
            && room >= mine
        {
            shape.plan.ceilings[index] = room;
            expected["limits"][index]["room"] = json!(room);
        }
    }
    if let Some(capacity) = found["capacity"].as_u64().filter(|_| !capacity_stated) {
        shape.capacity = capacity as usize;
        expected["capacity"] = json!(capacity);
    }
    match first_difference("", &expected, found) {
        None => Ok(shape),
        Some((path, mine, theirs)) => Err(differs(rule, &path, &mine, &theirs)),
    }
}

/// Where two descriptions differ first.
fn first_difference(path: &str, mine: &Value, theirs: &Value) -> Option<(String, Value, Value)> {
    let under = |field: &str| match path.is_empty() {
        true => field.to_string(),
        false => format!("{path}.{field}"),
    };
    match (mine, theirs) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().find_map(|(field, value)| {
                first_difference(&under(field), value, b.get(field).unwrap_or(&Value::Null))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let each = a.iter().zip(b).enumerate();
            let mut found = each.map(|(i, (a, b))| first_difference(&format!("{path}[{i}]"), a, b));
            found.find_map(|difference| difference)
        }
        _ if mine == theirs => None,
        _ => Some((path.to_string(), mine.clone(), theirs.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::runtime::Note;

    fn new_folder(name: &str) -> Folder {
        let name = format!("tidegate-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Folder::open(&path, Access::default(), false).unwrap()
    }

    /// A change to be told of.
    fn told() -> Change {
        let value =
            serde_json::json!({"number": 0, "at_ms": 0, "rule": "default", "op": "set_exempts"});
        Change::from_value(&value).unwrap()
    }

    fn change(folder: &Folder) -> Result<(), Error> {
        folder.change("default", |_| Ok(Some(told()))).map(drop)
    }

    /// By a process that was stopped, or by one that may only read it.
    #[test]
    fn a_lock_that_is_held_for_long_is_an_error_that_says_what_to_do() {
        let folder = new_folder("held-lock");
        change(&folder).unwrap();
        let reader = File::open(folder.path().join("default.lock")).unwrap();
        for operation in [FlockOperation::LockShared, FlockOperation::LockExclusive] {
            rustix::fs::flock(&reader, operation).unwrap();
            let error = change(&folder).unwrap_err();
            assert_eq!(error.code(), Code::Store);
            let told = error.to_string();
            assert!(told.contains("default.lock") && told.contains("end that process"), "{told}");
        }
        drop(reader);
        change(&folder).unwrap();
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
    #[test]
    fn changes_that_are_too_long_are_neither_written_nor_read() {
        let folder = new_folder("long-changes");
        let one = || crate::Match::new([("role", "x".repeat(300))]);
        let exempt = |many: usize| {
            let exempts = |runtime: &mut Runtime| {
                runtime.set_exempts((0..many).map(|_| one()).collect(), Note::default());
                Ok(Some(told()))
            };
            folder.change("default", exempts).map(drop)
        };
        exempt(1).unwrap();
        let error = exempt(9).unwrap_err().to_string();
        assert!(error.contains("default.changes: it has more than 1024 bytes; clear"), "{error}");
        let kept = folder.read_changes("default").unwrap().exempts;
        assert_eq!(kept.map(|exempts| exempts.what.len()), Some(1), "nothing was changed");
        let long = format!("{{\"exempts\": []{}}}", " ".repeat(MOST_CHANGES as usize));
        folder.directory.replace("default.changes", long.as_bytes()).unwrap();
        let error = folder.read_changes("default").unwrap_err().to_string();
        assert!(error.contains("or remove the file"), "{error}");
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
}
