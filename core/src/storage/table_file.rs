//! Tables in a file that all processes of a host map. The file's layout is in `layout`.
//!
//! A file is **published whole**: built without a name, filled, synced to the disk, and only then
//! linked to its name, which fails if another process was quicker (see `directory`). So no process
//! ever maps a half-made one, a process that is killed while it makes one leaves nothing, and a
//! loss of power leaves no named file without its header. Before a file is mapped all of it is
//! checked: kind, owner, mode, length, header. What does not fit is refused, never made anew. The
//! file's blocks are allocated before it is mapped, so that a full disk is an error then and not a
//! signal later.
//!
//! **Time** is the host's time since boot plus the offset, so that all processes agree and it goes
//! on after a restart. After a reboot the first to open moves the offset on: to where the wall
//! clock says, but never back behind what was seen last. A wall clock by which more than ten years
//! have passed since then is not believed (the file was made while it said 1970, say): time goes on
//! from what was seen last. The wall clock is not believed at later boots either, so time stands
//! still while such a host is off.
//!
//! The clock word is swapped first and the boot id written after it. A process that finds an id
//! that is not this boot's moves the clock on again: another process may be between the two steps,
//! or may have died there. To move it on twice never brings time back, and adds a second at most. A
//! process that can't read the boot id (without /proc) moves the clock on only if time would be
//! behind what was seen.
//!
//! **Retired.** A process that puts another table in this one's place sets the word of the old one,
//! after it has lost its name. Users of the old table learn it from the word, or from the lost
//! name: see `retired`.
//!
//! **Users.** Each user holds a shared `flock` on the file for as long as it has it mapped; the
//! kernel drops it with the process. A user that gets an exclusive one while it opens the file is
//! alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation};

use super::directory::{Directory, Entry};
use super::error::{FileError, refused};
use super::header::{Format1Header, Header, check_shape};
use super::host::{Host, check_filesystem};
use super::layout::{EVICTION, FileLayout, MOST_SHAPE, PAGE, at};
use super::retired;
use super::tables::TableSections;
use crate::clock::Clock;
use crate::clock::shared::{ClockWord, Seen, SharedClock};
use crate::eviction::{self, Eviction};
use crate::memory::{MappedWord, Mapping};
use crate::sync::Ordering;
use crate::table::hash::Hasher;

/// By how much the wall clock may move a file's time on at a boot, in nanoseconds: ten years.
const MOST_MOVED: u64 = 3_653 * 86_400 * 1_000_000_000;
/// How often a user asks for its shared lock, a millisecond apart, while another has the file
/// alone: that one may move all its rows and sync the new file meanwhile.
const PATIENCE: usize = 30_000;

/// A mapped file of tables.
#[derive(Debug)]
pub struct TableFile {
    mapping: Arc<Mapping>,
    entry: Entry,
    shape: String,
    manual: bool,
}

/// A word of the header that processes share.
#[derive(Clone, Debug)]
pub struct SharedWord(MappedWord);

impl SharedWord {
    /// Its value.
    #[inline]
    pub fn get(&self) -> u64 {
        // ORDERING: Acquire, with the Release in `add` and `raise`.
        self.0.load(Ordering::Acquire)
    }
    /// Adds one.
    pub fn add(&self) {
        // ORDERING: Release: a thread that sees the new value sees what was done before.
        self.0.fetch_add(1, Ordering::Release);
    }
    /// Makes it at least `to`, for good.
    pub fn raise(&self, to: u64) {
        // ORDERING: Release, as in `add`.
        self.0.fetch_max(to, Ordering::Release);
    }
}

impl TableFile {
    /// Bytes of the longest description.
    pub const MOST_SHAPE: usize = MOST_SHAPE as usize;

    /// Opens a file that is there; `None` if there is none. Its folder is not checked: see
    /// [`TableFile::open_in`].
    ///
    /// # Errors
    /// If it is not a sound table file that this process alone (and its like) may write.
    pub fn open(path: &Path) -> Result<Option<TableFile>, FileError> {
        TableFile::open_on(path, &Host::here())
    }

    /// As [`TableFile::open`], by what a test says of the host.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn open_on(path: &Path, host: &Host) -> Result<Option<TableFile>, FileError> {
        let (directory, name) = place_of(path)?;
        TableFile::open_in(&directory, name, host)
    }

    /// Opens a file that is there, in a folder that was checked; `None` if there is none.
    ///
    /// # Errors
    /// As [`TableFile::open`]; and if the disk has no room for it.
    pub fn open_in(
        directory: &Directory,
        name: &str,
        host: &Host,
    ) -> Result<Option<TableFile>, FileError> {
        let Some((file, header)) = checked(directory, name, host)? else { return Ok(None) };
        fill(&file, header.words[at::FILE])?;
        share(&file)?;
        let table = TableFile::mapped(directory, name, file, header)?;
        if !table.manual {
            table.move_clock_on(host)?;
        }
        Ok(Some(table))
    }

    /// Opens a file to be looked at: nothing of it is changed, and this process is no user of it.
    /// `None` if there is none.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn inspect_in(
        directory: &Directory,
        name: &str,
        host: &Host,
    ) -> Result<Option<TableFile>, FileError> {
        let Some((file, header)) = checked(directory, name, host)? else { return Ok(None) };
        TableFile::mapped(directory, name, file, header).map(Some)
    }

    fn mapped(
        directory: &Directory,
        name: &str,
        file: File,
        header: Header,
    ) -> Result<TableFile, FileError> {
        let entry = directory.entry(name, &file)?;
        let mapping = Arc::new(Mapping::new(file, header.words[at::FILE])?);
        let manual = header.is_manual();
        Ok(TableFile { mapping, entry, shape: header.shape, manual })
    }

    /// Makes a file for tables of `words` words, described by `shape`, and publishes it; `None` if
    /// another process was quicker. Its folder is not checked: see [`TableFile::create_in`].
    ///
    /// # Errors
    /// If there is no room, or no right to make it. Then nothing is left behind.
    pub fn create(
        path: &Path,
        shape: &str,
        words: usize,
        manual: bool,
    ) -> Result<Option<TableFile>, FileError> {
        TableFile::create_on(path, shape, words, manual, &Host::here())
    }

    /// As [`TableFile::create`], by what a test says of the host.
    ///
    /// # Errors
    /// As [`TableFile::create`].
    pub fn create_on(
        path: &Path,
        shape: &str,
        words: usize,
        manual: bool,
        host: &Host,
    ) -> Result<Option<TableFile>, FileError> {
        let (directory, name) = place_of(path)?;
        TableFile::create_in(&directory, name, shape, words, manual, host)
    }

    /// As [`TableFile::create`], in a folder that was checked.
    ///
    /// # Errors
    /// As [`TableFile::create`].
    pub fn create_in(
        directory: &Directory,
        name: &str,
        shape: &str,
        words: usize,
        manual: bool,
        host: &Host,
    ) -> Result<Option<TableFile>, FileError> {
        check_filesystem(directory.as_fd(), host)?;
        check_shape(shape)?;
        let made = directory.temporary(name)?;
        let header = Header::new(shape, words, manual, host);
        let bytes = header.words[at::FILE];
        // Room is taken now: a full disk must not end a hit by a signal later.
        allocate(&made.file, bytes)?;
        made.file.write_all_at(&header.bytes(), 0)?;
        let mapping = Arc::new(Mapping::new(made.file.try_clone()?, bytes)?);
        let entry = directory.entry(name, &made.file)?;
        let table = TableFile { mapping, entry, shape: shape.to_string(), manual };
        if !made.publish(name)? {
            return Ok(None);
        }
        // In place of a maker's lock, as other users have it.
        share(table.mapping.file())?;
        Ok(Some(table))
    }

    /// Tells all users of this file that another has its place. Call it when this one has lost its
    /// name.
    pub fn retire(&self) {
        let words = self.mapping.words();
        retired::retire(&words[at::RETIRED], &words[at::GENERATION]);
    }

    /// Whether another file has its place, or it was removed or moved away: what is counted here,
    /// others don't see.
    pub fn is_retired(&self) -> bool {
        self.was_retired() || self.has_lost_its_name()
    }

    /// Whether it was [retired](TableFile::retire), without asking for its name.
    pub fn was_retired(&self) -> bool {
        retired::is_retired(&self.mapping.words()[at::RETIRED])
    }

    /// Whether the name by which it was opened is gone, or another file's.
    pub fn has_lost_its_name(&self) -> bool {
        self.entry.is_lost()
    }

    /// What the tables are, as their maker described them.
    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.mapping.words().len() as u64 * 8
    }

    /// Whether it was made under a clock that is moved by hand.
    pub fn is_manual(&self) -> bool {
        self.manual
    }

    /// Time as all users of the file have it. (A file made under a manual clock has none of its
    /// own.)
    pub fn clock(&self) -> Clock {
        let word = |at: usize| MappedWord::new(&self.mapping, at);
        let (offset, seen) = (word(at::CLOCK), word(at::SEEN));
        Clock::Shared(SharedClock::new(offset, seen))
    }

    /// Counts changes at run time, for all users of the file.
    pub fn generation(&self) -> SharedWord {
        SharedWord(MappedWord::new(&self.mapping, at::GENERATION))
    }

    /// How long notes on denials may matter to any user, in nanoseconds.
    pub fn keep(&self) -> SharedWord {
        SharedWord(MappedWord::new(&self.mapping, at::KEEP))
    }

    /// Lets idle rows go as soon as the numbers allow by which rows are judged from now on, if
    /// nobody else has the file. Call it before the first table is asked for; `now` is the tables'
    /// time.
    ///
    /// # Errors
    /// If another user has the file to itself for longer than that takes.
    pub fn begin_era_if_alone(&self, now: u64) -> Result<bool, FileError> {
        // What is refused here may have cost the shared lock. No process relies on it yet.
        let alone = try_lock(self.mapping.file(), FlockOperation::NonBlockingLockExclusive);
        if alone == Lock::Granted {
            let lines = &self.mapping.words()[EVICTION];
            lines.chunks(eviction::WORDS).for_each(|words| Eviction::begin_era(words, now));
        }
        share(self.mapping.file())?;
        Ok(alone == Lock::Granted)
    }

    /// The same, for as long as this user has the file: others can't open it meanwhile. False, and
    /// nothing is changed, if another has it.
    ///
    /// # Errors
    /// As [`TableFile::begin_era_if_alone`].
    pub fn stay_alone(&self) -> Result<bool, FileError> {
        match try_lock(self.mapping.file(), FlockOperation::NonBlockingLockExclusive) {
            Lock::Granted => Ok(true),
            Lock::Taken | Lock::Unknown => self.share().map(|()| false),
        }
    }

    /// Gives the lock of a user up, if no other has the file: then the next to open it is alone.
    /// False, and nothing is changed, if another has it. [`TableFile::share`] takes the lock again.
    ///
    /// # Errors
    /// As [`TableFile::begin_era_if_alone`].
    pub fn leave_if_alone(&self) -> Result<bool, FileError> {
        let alone = self.stay_alone()?;
        if alone {
            rustix::fs::flock(self.mapping.file(), FlockOperation::Unlock)?;
        }
        Ok(alone)
    }

    /// Takes the lock of a user, in place of any other.
    ///
    /// # Errors
    /// As [`TableFile::begin_era_if_alone`].
    pub fn share(&self) -> Result<(), FileError> {
        share(self.mapping.file())
    }

    /// Makes a file of a new one without a name that is to take this one's place: with this one's
    /// seed and clock, and other tables.
    pub(crate) fn successor(
        &self,
        entry: Entry,
        made: &File,
        shape: &str,
        words: usize,
    ) -> Result<TableFile, FileError> {
        // ORDERING: Relaxed; this part of the header does not change.
        let word = |at: usize| self.mapping.words()[at].load(Ordering::Relaxed);
        let header = Header::new(shape, words, self.manual, &Host::here());
        TableFile::build(entry, made, header.after(word))
    }

    /// As [`TableFile::successor`], of a file of format 1, whose clock goes on here.
    pub(crate) fn successor_of(
        old: &Format1Header,
        (entry, made): (Entry, &File),
        shape: &str,
        words: usize,
        host: &Host,
    ) -> Result<TableFile, FileError> {
        let word = |at: usize| old.0.words[at];
        let mut header = Header::new(shape, words, old.is_manual(), host).after(word);
        for at in [at::CLOCK, at::SEEN, at::GENERATION] {
            header.words[at] = word(at);
        }
        // Which boot the clock is of is not known: it is moved on as after a reboot.
        header.words[at::BOOT..at::BOOT + 2].fill(0);
        let file = TableFile::build(entry, made, header)?;
        if !file.manual {
            file.move_clock_on(host)?;
        }
        Ok(file)
    }

    fn build(entry: Entry, made: &File, header: Header) -> Result<TableFile, FileError> {
        check_shape(&header.shape)?;
        let (bytes, manual) = (header.words[at::FILE], header.is_manual());
        allocate(made, bytes)?;
        made.write_all_at(&header.bytes(), 0)?;
        let mapping = Arc::new(Mapping::new(made.try_clone()?, bytes)?);
        Ok(TableFile { mapping, entry, shape: header.shape, manual })
    }

    /// Takes over the clock, the number of changes and how long notes are kept. Nobody else has
    /// this file.
    pub(crate) fn go_on_from(&self, old: &TableFile) {
        let (old, new) = (old.mapping.words(), self.mapping.words());
        for at in [at::CLOCK, at::BOOT, at::BOOT + 1, at::SEEN, at::GENERATION, at::KEEP] {
            // ORDERING: Relaxed; each word stands for itself.
            new[at].store(old[at].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The tables of the file, which are those of `layout`; `None` if no file has such tables. One
    /// that lies beyond the end of this file is refused when it is asked for.
    pub fn tables(&self, layout: &FileLayout) -> Option<TableSections> {
        // ORDERING: Relaxed; the header does not change.
        let word = |at: usize| self.mapping.words()[at].load(Ordering::Relaxed);
        let sections = layout.sections(word(at::HEADER) as usize / 8)?;
        let hasher = Hasher::portable(word(at::SEED));
        Some(TableSections::new(self.mapping.clone(), layout.clone(), sections, hasher))
    }

    /// Writes the counts to the disk, and waits for it. Without it they are in the page cache,
    /// which outlives processes but not a loss of power.
    ///
    /// # Errors
    /// If the disk says no.
    pub fn sync(&self) -> io::Result<()> {
        self.mapping.sync()
    }

    /// After a reboot: moves the clock on to where the wall clock says, never back behind what was
    /// seen, nor on by more than [`MOST_MOVED`].
    fn move_clock_on(&self, host: &Host) -> Result<(), FileError> {
        let words = self.mapping.words();
        loop {
            // ORDERING: Acquire and AcqRel below: of several openers one moves it, the others see
            // that.
            let word = ClockWord(words[at::CLOCK].load(Ordering::Acquire));
            if !word.is_sound() {
                return refused("its clock is damaged; remove the file to start afresh");
            }
            // ORDERING: Relaxed; the header does not change, and `seen` stands for itself.
            let made_at = words[at::MADE_AT].load(Ordering::Relaxed);
            let seen = Seen(words[at::SEEN].load(Ordering::Relaxed));
            if self.is_of_boot(word, &seen, host) {
                return Ok(());
            }
            // Of a damaged note of what was seen, the last boot's offset is what is sure.
            let floor = seen.latest().max(word.offset_nanos());
            let due = host.wall.saturating_sub(made_at).max(floor);
            let due = if due - floor > MOST_MOVED { floor } else { due };
            let offset = due.saturating_sub(host.now);
            // Others may already count by an offset of this boot, and their time must not go back.
            let least = if word.may_be_of(host.boot) { word.offset_nanos() } else { 0 };
            let next = ClockWord::new(offset.max(least), host.boot);
            let swap = (Ordering::AcqRel, Ordering::Relaxed);
            if words[at::CLOCK].compare_exchange(word.0, next.0, swap.0, swap.1).is_ok() {
                let halves = [host.boot as u64, (host.boot >> 64) as u64];
                for (word, half) in words[at::BOOT..].iter().zip(halves) {
                    // ORDERING: Release, with the Acquire in `is_of_boot`: a process that reads
                    // this boot's id goes by a clock that was moved on.
                    word.store(half, Ordering::Release);
                }
                return Ok(());
            }
        }
    }

    /// Whether the clock word was stored in this boot.
    fn is_of_boot(&self, word: ClockWord, seen: &Seen, host: &Host) -> bool {
        if host.boot == 0 {
            // Then time alone can tell: it starts anew with each boot. Others may have noted a
            // moment that is a little after `host.now`.
            return host.now + word.offset_nanos() + (2 << Seen::SHIFT) >= seen.earliest();
        }
        // ORDERING: Acquire, with the Release in `move_clock_on`.
        let half = |at: usize| u128::from(self.mapping.words()[at].load(Ordering::Acquire));
        word.may_be_of(host.boot) && half(at::BOOT) | half(at::BOOT + 1) << 64 == host.boot
    }
}

/// The folder and the name of a file.
fn place_of(path: &Path) -> Result<(Directory, &str), FileError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or(FileError::Refused("its name is no text; name another".to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((Directory::unchecked(folder)?, name))
}

/// A file whose kind, owner, mode, length and header are sound.
fn checked(
    directory: &Directory,
    name: &str,
    host: &Host,
) -> Result<Option<(File, Header)>, FileError> {
    let Some(file) = directory.open_file(name)? else { return Ok(None) };
    check_filesystem(&file, host)?;
    let header = Header::read(&file)?;
    header.check(host)?;
    Ok(Some((file, header)))
}

/// Takes room on the disk for all of a new file.
fn allocate(file: &File, bytes: u64) -> Result<(), FileError> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let page = [0; PAGE];
            let mut pages = (0..bytes).step_by(PAGE);
            Ok(pages.try_for_each(|at| file.write_all_at(&page, at))?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes room on the disk for what a file lacks: a copy of a table may have holes.
fn fill(file: &File, bytes: u64) -> Result<(), FileError> {
    if file.metadata()?.blocks() * 512 >= bytes {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Where room can't be taken beforehand, zeros can't be written either: others may be
        // counting.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(rustix::io::Errno::NOSPC) => refused(format!(
            "No space left on its disk for the {bytes} bytes that it needs; make room there"
        )),
        Err(error) => Err(error.into()),
    }
}

/// What became of an attempt at a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Granted,
    /// Another user has one that it conflicts with.
    Taken,
    /// This filesystem has none: then no user is ever alone.
    Unknown,
}

fn try_lock(file: &File, operation: FlockOperation) -> Lock {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Lock::Granted,
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Lock::Taken,
        Err(_) => Lock::Unknown,
    }
}

/// Takes the lock of a user. Only a user that is alone stands in its way, for a few microseconds.
fn share(file: &File) -> Result<(), FileError> {
    for _ in 0..PATIENCE {
        if try_lock(file, FlockOperation::NonBlockingLockShared) != Lock::Taken {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    refused("another process has been opening it for long, and has it alone; end that process")
}

#[cfg(all(test, not(tidegate_portable_atomic)))]
mod tests;

#[cfg(all(test, tidegate_portable_atomic))]
mod tests {
    use super::*;

    /// Another process would not see the lock that such a word takes.
    #[test]
    fn no_file_is_made_where_processes_share_no_atomics() {
        let name = format!("tidegate-no-atomics-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let error = TableFile::create(&path, "", 64, false).unwrap_err();
        assert!(error.to_string().contains("64-bit atomics"), "{error}");
        assert!(!path.exists());
    }
}
