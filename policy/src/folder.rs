//! The file store: a folder with a table file for each rule, which all processes of a host share.
//!
//! ```text
//! limits/                 mode 0700
//!   messages.table        what keys have spent (see `tidegate-core`, file.rs); mode 0600
//!   messages.changes      overrides, exemptions, the run-time default: JSON, replaced whole
//!   messages.lock         held by flock while somebody replaces it; the kernel drops it with the process
//! ```
//!
//! A table's *shape* (the names, algorithms, scopes and `counts` of its limits, the room of its windows, its
//! capacity) is written into its header. A policy whose numbers differ is adopted; one whose shape differs
//! is refused, with the rule and the remedy.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use serde_json::{Value, json};
use tidegate_core::{FILE_HASH, FileError, TableFile};

use crate::error::{Code, Error};
use crate::limit::{Counts, algorithm_name, parse_algorithm};
use crate::plan::Plan;
use crate::runtime::Runtime;

/// A folder of tables.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether tables that don't fit are made anew.
    recreate: bool,
}

/// What tells one table from another that holds other things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) plan: Plan,
    pub(crate) capacity: usize,
}

fn store_error(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::new(Code::Store, format!("{}: {reason}", path.display()))
}

impl Folder {
    /// Opens the folder, and makes it if it is not there.
    pub(crate) fn open(path: &Path, recreate: bool) -> Result<Folder, Error> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(store_error(path, io::Error::from(error))),
        }
        let meta = std::fs::symlink_metadata(path).map_err(|error| store_error(path, error))?;
        if !meta.is_dir() {
            return Err(store_error(path, "this is not a folder; name another place"));
        }
        use std::os::unix::fs::MetadataExt;
        if meta.mode() & 0o022 != 0 {
            let reason = format!(
                "others may write this folder (mode {:o}); make it 700",
                meta.mode() & 0o777
            );
            return Err(store_error(path, reason));
        }
        Ok(Folder { path: path.to_path_buf(), recreate })
    }

    /// A folder that is only looked at.
    pub(crate) fn open_known(path: &Path) -> Result<Folder, Error> {
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Ok(Folder { path: path.to_path_buf(), recreate: false }),
            Ok(_) => Err(store_error(path, "this is not a folder")),
            Err(error) => Err(store_error(path, error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether others may read what is in it.
    pub(crate) fn is_exposed(path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let open = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| meta.mode() & 0o044 != 0);
        let inside = || {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|file| open(&file))
        };
        open(path) && inside()
    }

    fn file(&self, rule: &str, ending: &str) -> PathBuf {
        self.path.join(format!("{}.{ending}", encoded(rule)))
    }

    /// The table file of a rule, which is made if it is not there, and its shape.
    pub(crate) fn table(
        &self,
        rule: &str,
        wanted: &Shape,
        capacity_stated: bool,
        manual: bool,
        words: impl Fn(&Shape) -> Option<usize>,
    ) -> Result<(TableFile, Shape), Error> {
        let path = self.file(rule, "table");
        let error = |error: FileError| store_error(&path, error);
        // Held while a table is made anew: another who does must not take away the new one.
        let mut alone = None;
        loop {
            let fit = match TableFile::open(&path) {
                Ok(Some(file)) => fits(rule, &file, wanted, capacity_stated, manual)
                    .map(|shape| Some((file, shape))),
                Ok(None) => Ok(None),
                Err(FileError::Unreadable(reason)) => Err(reason),
                Err(refused) => return Err(error(refused)),
            };
            match fit {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(_) if self.recreate && alone.is_none() => {
                    alone = Some(self.lock(rule).map_err(|e| store_error(&path, e))?);
                    continue;
                }
                Err(_) if self.recreate => {
                    std::fs::remove_file(&path).map_err(|e| store_error(&path, e))?;
                }
                Err(reason) => return Err(store_error(&path, reason)),
            }
            let words =
                words(wanted).ok_or_else(|| store_error(&path, "the table is too large"))?;
            let text = wanted.to_value(rule).to_string();
            if let Some(file) = TableFile::create(&path, &text, words, manual).map_err(error)? {
                return Ok((file, wanted.clone()));
            }
        }
    }

    /// What was changed at run time, as it stands on the disk.
    pub(crate) fn read_changes(&self, rule: &str) -> Result<Runtime, Error> {
        let path = self.file(rule, "changes");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Runtime::default()),
            Err(error) => return Err(store_error(&path, error)),
        };
        let value: Value = serde_json::from_str(&text).map_err(|error| {
            store_error(&path, format!("{error}; mend the file, or remove it to have no changes"))
        })?;
        Runtime::from_value(&value).map_err(|error| store_error(&path, error))
    }

    /// Waits until no other process changes what is known of a rule. Dropped, or with the process, it is over.
    fn lock(&self, rule: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(self.file(rule, "lock"), flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    /// Replaces what was changed at run time, while nobody else does.
    pub(crate) fn change<R>(
        &self,
        rule: &str,
        change: impl FnOnce(&mut Runtime) -> Result<R, Error>,
    ) -> Result<(Runtime, R), Error> {
        let path = self.file(rule, "changes");
        let failed = |error: io::Error| store_error(&path, error);
        let _alone = self.lock(rule).map_err(failed)?;
        let mut runtime = self.read_changes(rule)?;
        let result = change(&mut runtime)?;
        replace(&path, runtime.to_value().to_string().as_bytes()).map_err(failed)?;
        Ok((runtime, result))
    }
}

/// Puts a new file in place of the old one, so that readers see one or the other.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    // Under the lock nobody else writes it; what a killed process left is overwritten.
    let temporary = path.with_extension("changes.tmp");
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
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

impl Shape {
    /// As it was described, if that is sound.
    pub(crate) fn from_value(value: &Value) -> Option<Shape> {
        let places = |value: &Value| -> Option<Vec<usize>> {
            value.as_array()?.iter().map(|v| Some(v.as_u64()? as usize)).collect()
        };
        let limits = value["limits"].as_array()?;
        let text = |limit: &Value, field: &str| limit[field].as_str().map(str::to_string);
        let algorithm = |limit: &Value| parse_algorithm(limit["algorithm"].as_str()?);
        let counts = |limit: &Value| match limit["counts"].as_str() {
            None => Some(Counts::Cost),
            Some("hits") => Some(Counts::Hits),
            Some(_) => None,
        };
        let scope = |limit: &Value| Some((places(&limit["scope"])?, counts(limit)?));
        let plan = Plan::described(
            value["parts"].as_u64()? as usize,
            limits.iter().map(|limit| text(limit, "name")).collect::<Option<_>>()?,
            limits.iter().map(algorithm).collect::<Option<_>>()?,
            limits.iter().map(scope).collect::<Option<Vec<_>>>()?,
            limits.iter().map(|limit| limit["room"].as_u64().unwrap_or(0)).collect(),
            places(&value["penalty_scope"])?,
        );
        Some(Shape { plan, capacity: value["capacity"].as_u64()? as usize })
    }

    fn to_value(&self, rule: &str) -> Value {
        let plan = &self.plan;
        let limit = |index: usize| {
            let mut limit = json!({
                "name": plan.names[index],
                "algorithm": algorithm_name(plan.algorithms[index]),
                "scope": plan.groups[plan.places[index].0].scope,
                "room": plan.room(index),
            });
            // Left out where costs are counted, as in tables of versions that knew nothing else.
            if plan.counts(index) == Counts::Hits {
                limit["counts"] = json!("hits");
            }
            limit
        };
        json!({
            "rule": rule,
            "hash": FILE_HASH,
            "parts": plan.parts,
            "capacity": self.capacity,
            "penalty_scope": plan.penalty_scope,
            "limits": (0..plan.names.len()).map(limit).collect::<Vec<_>>(),
        })
    }
}

/// The shape of a file that these wants can use, or why they can't.
fn fits(
    rule: &str,
    file: &TableFile,
    wanted: &Shape,
    capacity_stated: bool,
    manual: bool,
) -> Result<Shape, String> {
    if file.is_manual() != manual {
        let (its, ours) =
            if manual { ("the host's", "a manual") } else { ("a manual", "the host's") };
        return Err(format!("it was made under {its} clock, and this limiter has {ours} one"));
    }
    let found: Value = serde_json::from_str(file.shape())
        .map_err(|_| "its description is damaged; remove it to start afresh".to_string())?;
    let mut expected = wanted.to_value(rule);
    let mut shape = wanted.clone();
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
    match first_difference("", &expected, &found) {
        None => Ok(shape),
        Some((path, mine, theirs)) => Err(format!(
            "rule {rule:?} has another shape: {path} is {theirs} in the file and {mine} in the policy; \
             go back to that, remove the file, or open with `recreate`"
        )),
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
