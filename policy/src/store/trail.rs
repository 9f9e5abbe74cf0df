//! The trail of run-time changes: who changed what, when, until when, and why.
//!
//! In memory it is a ring. In a folder it is a file of one JSON line for each change,
//! `changes.log`:
//!
//! ```text
//!   lock changes.log.lock ─▶ append the line ─▶ replace RULE.changes ─▶ unlock
//! ```
//!
//! A line is written before the change is made, and `RULE.changes` holds the number of its last
//! change. So a process that is killed in between leaves a last line whose number its rule does not
//! have: readers leave it out, and the next writer cuts it off. A file that has grown to 1 MB is
//! turned over, and four old ones are kept.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::ForkLock;

use crate::error::Error;
use crate::store::runtime::Target;
use crate::time::ms;

/// A run-time change as it was made.
///
/// ```
/// use tidegate::{ChangeOptions, Target};
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let options = ChangeOptions::default().by("ops");
/// let number = limiter.block("mallory", &options).unwrap();
/// let change = limiter.changes(0).unwrap().changes.remove(0);
/// assert_eq!((change.number, change.op.as_str()), (number, "block"));
/// assert_eq!(change.by.as_deref(), Some("ops"));
/// assert_eq!(change.target, Some(Target::key("mallory")));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    /// What stood before, as JSON: limits, a list of exemptions, a mode; of one exemption and of a
    /// block whether it stood. Where that has more than 32 KB, only how many bytes it has.
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

    pub(crate) fn from_value(value: &Value) -> Option<Change> {
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
#[non_exhaustive]
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
        let first = changes.first().map_or(last.saturating_add(1), |first| first.number);
        let missed = first.saturating_sub(since.saturating_add(1));
        // A number that the store has not come to may be another store's.
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
pub(crate) struct TrailRing {
    kept: ForkLock<(u64, VecDeque<Change>)>,
}

impl TrailRing {
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
pub(crate) use self::log::TrailLog;

#[cfg(target_os = "linux")]
mod log {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::{Change, Changes, Error, KEPT};
    use crate::store::file_store::{Alone, Folder};

    const NAME: &str = "changes.log";
    const LOCK: &str = "changes.log.lock";
    /// How large the file may grow before it is turned over.
    const LARGE: u64 = 1 << 20;
    /// How much of its end is read for the last lines.
    const TAIL: u64 = 16 << 10;
    /// How many old files are kept.
    const OLD: usize = 4;
    /// More than this is not read of a file.
    const MOST: u64 = 64 << 20;

    /// The trail of a folder, while nobody else writes to it.
    pub(crate) struct TrailLog<'f> {
        folder: &'f Folder,
        file: File,
        /// The number of the last change in it; 0 if there is none.
        last: u64,
        length: u64,
        _alone: Alone,
    }

    fn old_name(number: usize) -> String {
        format!("{NAME}.{number}")
    }

    /// The changes of a file from a place on, each with the place where its line begins.
    fn read(file: &mut File, from: u64) -> std::io::Result<Vec<(u64, Change)>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(MOST).read_to_end(&mut bytes)?;
        let (mut changes, mut start) = (Vec::new(), from);
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            // A writer that was killed may have left half a line, and no end of it.
            let value = line.ends_with(b"\n").then(|| serde_json::from_slice(line).ok());
            let change = value.flatten().as_ref().and_then(Change::from_value);
            changes.extend(change.map(|change| (start, change)));
            start += line.len() as u64;
        }
        Ok(changes)
    }

    fn read_all(file: &mut File) -> std::io::Result<Vec<Change>> {
        Ok(read(file, 0)?.into_iter().map(|(_, change)| change).collect())
    }

    /// Whether a line tells of a change that was not made: its writer was killed.
    fn is_void(folder: &Folder, line: &Change) -> bool {
        // A text that was removed by hand says nothing.
        folder.has_changes(&line.rule)
            && folder.read_changes(&line.rule).is_ok_and(|runtime| runtime.last < line.number)
    }

    impl TrailLog<'_> {
        /// Waits until nobody else writes.
        pub(crate) fn open(folder: &Folder) -> Result<TrailLog<'_>, Error> {
            let error = |error: std::io::Error| folder.error(NAME, error);
            let alone = folder.lock_by(LOCK)?;
            let mut file = folder.open_or_make(NAME)?;
            let length = file.metadata().map_err(error)?.len();
            // The last two lines are enough, and most are short.
            let mut lines = read(&mut file, length.saturating_sub(TAIL)).map_err(error)?;
            if lines.len() < 2 && length > TAIL {
                lines = read(&mut file, 0).map_err(error)?;
            }
            let void = lines.pop_if(|(_, last)| is_void(folder, last));
            let last = lines.last().map_or(0, |(_, last)| last.number);
            let mut log = TrailLog { folder, file, last, length, _alone: alone };
            if let Some((start, _)) = void {
                log.length = start;
            }
            Ok(log)
        }

        /// The number of the last change in it; 0 if there is none.
        pub(crate) fn last(&self) -> u64 {
            self.last
        }

        /// Writes a change down that is about to be made, with the number after all others. `last`
        /// is what the rule knows.
        pub(crate) fn append(&mut self, change: Change, last: u64) -> Result<u64, Error> {
            let of_log = match self.last {
                0 => old(self.folder, 1).last().map_or(0, |last| last.number),
                last => last,
            };
            let change = Change { number: of_log.max(last).saturating_add(1), ..change };
            if self.length >= LARGE {
                self.turn_over()?;
            }
            let mut line = line(&change);
            if self.length > 0 && !self.ends_a_line() {
                // What a writer left that was killed is no part of this line.
                line.insert(0, b'\n');
            }
            let written = self
                .file
                .set_len(self.length)
                .and_then(|()| self.file.seek(SeekFrom::Start(self.length)))
                .and_then(|_| self.file.write_all(&line))
                .and_then(|()| self.file.sync_data());
            match written {
                Ok(()) => Ok(change.number),
                Err(reason) => {
                    // A disk that is full: what was written of it is no line.
                    let _ = self.file.set_len(self.length);
                    Err(self.folder.error(NAME, reason))
                }
            }
        }

        fn ends_a_line(&self) -> bool {
            use std::os::unix::fs::FileExt;
            let mut end = [0];
            let read = self.file.read_exact_at(&mut end, self.length - 1);
            read.is_ok() && end == *b"\n"
        }

        /// Begins a new file, if this one holds enough. A process that is killed meanwhile leaves
        /// lines in two files, which readers take for one.
        fn turn_over(&mut self) -> Result<(), Error> {
            let error = |error: std::io::Error| self.folder.error(NAME, error);
            let mut changes = read_all(&mut self.file).map_err(error)?;
            changes.retain(|change| change.number <= self.last);
            if changes.len() < KEPT {
                return Ok(());
            }
            for number in (1..OLD).rev() {
                let old = old(self.folder, number);
                if !old.is_empty() {
                    self.folder.replace(&old_name(number + 1), &text(&old))?;
                }
            }
            self.folder.replace(&old_name(1), &text(&changes))?;
            self.length = 0;
            Ok(())
        }

        /// The changes after a number.
        pub(crate) fn after(folder: &Folder, since: u64) -> Result<Changes, Error> {
            // The newest first: what is turned over meanwhile is found in the older file, read
            // later.
            let mut all = BTreeMap::new();
            if let Some(mut file) = folder.open_file(NAME)? {
                let mut lines = read_all(&mut file).map_err(|e| folder.error(NAME, e))?;
                lines.pop_if(|last| is_void(folder, last));
                all.extend(lines.into_iter().map(|one| (one.number, one)));
            }
            let known = |all: &BTreeMap<u64, Change>| {
                all.keys().next().is_some_and(|first| *first <= since.saturating_add(1))
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
        file.and_then(|mut file| read_all(&mut file).ok()).unwrap_or_default()
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
