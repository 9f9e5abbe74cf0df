//! The trail of run-time changes: who changed what, when, until when, and why.
//!
//! In memory it is a ring. In a folder it is a file of one JSON line for each change, `changes.log`:
//!
//! ```text
//!   lock changes.log.lock ─▶ append the line ─▶ replace RULE.changes ─▶ unlock
//! ```
//!
//! A line is written before the change is made, and `RULE.changes` holds the number of its last change. So
//! a process that is killed in between leaves a last line whose number its rule does not have: readers
//! leave it out, and the next writer cuts it off. A file that has grown to 1 MB is turned over, and four old ones
//! are kept.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::ForkLock;

use crate::error::Error;
use crate::runtime::Target;

/// A run-time change as it was made.
///
/// ```
/// use tidegate::{ChangeOptions, Target};
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let options = ChangeOptions { by: Some("ops".into()), ..ChangeOptions::default() };
/// let number = limiter.block("mallory", &options).unwrap();
/// let change = limiter.changes(0).unwrap().changes.remove(0);
/// assert_eq!((change.number, change.op.as_str(), change.by.as_deref()), (number, "block", Some("ops")));
/// assert_eq!(change.target, Some(Target::key("mallory")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Counts the changes of a store, from 1 on.
    pub number: u64,
    /// When, since the start of 1970.
    pub at: Duration,
    /// The rule that was changed.
    pub rule: String,
    /// The operation: `set_override`, `block` and so on.
    pub op: String,
    /// Whom it is about; none where it is about all.
    pub target: Option<Target>,
    /// What stood before, as JSON: limits, a list of exemptions, a mode; of one exemption and of a block
    /// whether it stood.
    pub before: Value,
    /// What stands since.
    pub after: Value,
    /// When it ends by itself, since the start of 1970.
    pub until: Option<Duration>,
    /// Who made it.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// A time as surfaces that speak JSON have it.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Change {
    /// As a map, for surfaces that speak JSON; times in milliseconds.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.set_mode(tidegate::Mode::Shadow).unwrap();
    /// let change = limiter.changes(0).unwrap().changes[0].to_value();
    /// assert_eq!((&change["op"], &change["after"]), (&"set_mode".into(), &"shadow".into()));
    /// ```
    pub fn to_value(&self) -> Value {
        json!({
            "number": self.number,
            "at_ms": ms(self.at),
            "rule": self.rule,
            "op": self.op,
            "target": self.target.as_ref().map(Target::to_value),
            "before": self.before,
            "after": self.after,
            "until_ms": self.until.map(ms),
            "by": self.by,
            "reason": self.reason,
        })
    }

    fn from_value(value: &Value) -> Option<Change> {
        let text = |name: &str| value[name].as_str().map(str::to_string);
        let target = Some(&value["target"]).filter(|target| !target.is_null());
        Some(Change {
            number: value["number"].as_u64()?,
            at: Duration::from_millis(value["at_ms"].as_u64()?),
            rule: text("rule")?,
            op: text("op")?,
            target: target.and_then(Target::from_value),
            before: value["before"].clone(),
            after: value["after"].clone(),
            until: value["until_ms"].as_u64().map(Duration::from_millis),
            by: text("by"),
            reason: text("reason"),
        })
    }
}

/// Run-time changes, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Those after the number asked for, as far as they are kept: the last 256 at least.
    pub changes: Vec<Change>,
    /// What to ask with next.
    pub next: u64,
    /// How many changes of the store after the number asked for are kept no more.
    pub missed: u64,
}

impl Changes {
    /// Those after `since` of all that are kept, of which the last made has the number `last`.
    fn after(since: u64, last: u64, kept: impl IntoIterator<Item = Change>) -> Changes {
        let changes: Vec<Change> = kept.into_iter().filter(|one| one.number > since).collect();
        let first = changes.first().map_or(last + 1, |first| first.number);
        // A number that the store has not come to may be another store's.
        let missed = first.saturating_sub(since).saturating_sub(1);
        Changes { missed, next: last.max(since), changes }
    }

    /// As a map, for surfaces that speak JSON; times in milliseconds.
    pub fn to_value(&self) -> Value {
        json!({
            "changes": self.changes.iter().map(Change::to_value).collect::<Vec<_>>(),
            "next": self.next,
            "missed": self.missed,
        })
    }
}

/// How many changes are kept at least.
const KEPT: usize = 256;

/// The trail of tables in memory.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    kept: ForkLock<(u64, VecDeque<Change>)>,
}

impl Ring {
    /// Keeps a change, and gives it its number.
    pub(crate) fn add(&self, change: Change) -> u64 {
        let mut kept = self.kept.lock();
        let (last, changes) = &mut *kept;
        *last += 1;
        if changes.len() == KEPT {
            changes.pop_front();
        }
        changes.push_back(Change { number: *last, ..change });
        *last
    }

    pub(crate) fn after(&self, since: u64) -> Changes {
        let kept = self.kept.lock();
        Changes::after(since, kept.0, kept.1.iter().cloned())
    }
}

#[cfg(target_os = "linux")]
pub(crate) use self::log::Log;

#[cfg(target_os = "linux")]
mod log {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::{Change, Changes, Error, KEPT};
    use crate::folder::{Alone, Folder};

    const NAME: &str = "changes.log";
    const LOCK: &str = "changes.log.lock";
    /// How large the file may grow before it is turned over.
    const LARGE: u64 = 1 << 20;
    /// How many old files are kept.
    const OLD: usize = 4;
    /// More than this is not read of a file.
    const MOST: u64 = 64 << 20;

    /// The trail of a folder, while nobody else writes to it.
    pub(crate) struct Log<'f> {
        folder: &'f Folder,
        file: File,
        /// The whole lines of the file.
        lines: Vec<Change>,
        _alone: Alone,
    }

    fn old_name(number: usize) -> String {
        format!("{NAME}.{number}")
    }

    /// What a file holds.
    #[derive(Default)]
    struct Lines {
        changes: Vec<Change>,
        /// The bytes of the file up to the last change, and with it.
        before_last: u64,
        length: u64,
    }

    fn read(file: &mut File) -> std::io::Result<Lines> {
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        let mut lines = Lines::default();
        let mut start = 0;
        // A writer that was killed may have left half a line, and no end of it.
        for line in
            bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
        {
            let value = serde_json::from_slice(line).ok();
            if let Some(change) = value.as_ref().and_then(Change::from_value) {
                lines.changes.push(change);
                lines.before_last = start;
                lines.length = start + line.len() as u64;
            }
            start += line.len() as u64;
        }
        Ok(lines)
    }

    /// Whether a line tells of a change that was not made: its writer was killed.
    fn is_void(folder: &Folder, line: &Change) -> bool {
        folder.read_changes(&line.rule).is_ok_and(|runtime| runtime.last < line.number)
    }

    impl Log<'_> {
        /// Waits until nobody else writes.
        pub(crate) fn open(folder: &Folder) -> Result<Log<'_>, Error> {
            let error = |error: std::io::Error| folder.error(NAME, error);
            let alone = folder.lock_by(LOCK)?;
            let mut file = folder.open_or_make(NAME)?;
            let Lines { mut changes, before_last, length } = read(&mut file).map_err(error)?;
            let void = changes.pop_if(|last| is_void(folder, last)).is_some();
            let length = if void { before_last } else { length };
            file.set_len(length).map_err(error)?;
            file.seek(SeekFrom::Start(length)).map_err(error)?;
            Ok(Log { folder, file, lines: changes, _alone: alone })
        }

        /// Writes a change down that is about to be made, with the number after all others. `last` is what
        /// the rule knows.
        pub(crate) fn append(&mut self, change: Change, last: u64) -> Result<u64, Error> {
            let error = |error: std::io::Error| self.folder.error(NAME, error);
            let length = self.file.stream_position().map_err(error)?;
            let of_log = match self.lines.last() {
                Some(last) => last.number,
                None => old(self.folder, 1).last().map_or(0, |last| last.number),
            };
            let number = of_log.max(last) + 1;
            if length >= LARGE && self.lines.len() >= KEPT {
                self.turn_over()?;
            }
            let change = Change { number, ..change };
            let written = self.file.write_all(&line(&change)).and_then(|()| self.file.sync_data());
            if let Err(reason) = written {
                // A disk that is full: what was written of it is no line.
                let _ = self.file.set_len(length);
                return Err(self.folder.error(NAME, reason));
            }
            Ok(number)
        }

        /// Begins a new file. A process that is killed meanwhile leaves lines in two files, which readers
        /// take for one.
        fn turn_over(&mut self) -> Result<(), Error> {
            for number in (1..OLD).rev() {
                if let Some(mut file) = self.folder.open_file(&old_name(number))? {
                    let lines = read(&mut file).map_err(|error| self.folder.error(NAME, error))?;
                    self.folder.replace(&old_name(number + 1), &text(&lines.changes))?;
                }
            }
            self.folder.replace(&old_name(1), &text(&self.lines))?;
            self.lines.clear();
            self.file.set_len(0).map_err(|error| self.folder.error(NAME, error))?;
            self.file.rewind().map_err(|error| self.folder.error(NAME, error))
        }

        /// The changes after a number.
        pub(crate) fn after(folder: &Folder, since: u64) -> Result<Changes, Error> {
            // The newest first: what is turned over meanwhile is found in the older file, read later.
            let mut all = BTreeMap::new();
            if let Some(mut file) = folder.open_file(NAME)? {
                let mut lines = read(&mut file).map_err(|e| folder.error(NAME, e))?.changes;
                lines.pop_if(|last| is_void(folder, last));
                all.extend(lines.into_iter().map(|one| (one.number, one)));
            }
            let known = |all: &BTreeMap<u64, Change>| {
                all.keys().next().is_some_and(|first| first.saturating_sub(1) <= since)
            };
            for number in 1..=OLD {
                if !known(&all) {
                    all.extend(old(folder, number).into_iter().map(|one| (one.number, one)));
                }
            }
            let last = all.keys().next_back().copied().unwrap_or(0);
            Ok(Changes::after(since, last, all.into_values()))
        }
    }

    fn old(folder: &Folder, number: usize) -> Vec<Change> {
        let file = folder.open_file(&old_name(number)).ok().flatten();
        file.and_then(|mut file| read(&mut file).ok()).map_or(Vec::new(), |lines| lines.changes)
    }

    fn line(change: &Change) -> Vec<u8> {
        let mut line = change.to_value().to_string().into_bytes();
        line.push(b'\n');
        line
    }

    fn text(lines: &[Change]) -> Vec<u8> {
        lines.iter().flat_map(line).collect()
    }
}
