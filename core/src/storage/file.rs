//! Tables in a file that all processes of a host map.
//!
//! ```text
//! byte     0  magic "TIDEGATE" │ format │ byte order │ header bytes │ file bytes │ seed │ probe
//!         56  clock kind │ time namespace │ made at │ shape bytes │ checksum of all that, and of the shape
//!        512  clock: offset (ms) 40 │ boot 16 │ check 8            moved on once after each boot, by swap
//!        520  seen: 2^30 ns 34 │ check 30                          the latest time, about once a second
//!        528  boot id, 128 bits                                    the boot for which the clock word holds
//!        576  generation                                           counts changes that all must look at
//!        584  keep                                                 how long notes on denials may matter, in ns
//!        592  retired                                              1 once another table took its place
//!        640  eviction: 8 words for each of 4 tables               see `eviction`
//!       1024  shape: text that says what the tables are
//!  header      tables, from a page on
//! ```
//!
//! A file is **published whole**: built without a name, filled, synced to the disk, and only then linked
//! to its name, which fails if another process was quicker (see `directory`). So nobody ever maps a
//! half-made one, a process that is killed while it makes one leaves nothing, and a loss of power leaves
//! no named file without its header. Before a file is mapped all of it is checked: kind, owner, mode,
//! length, header. What does not fit is refused, never made anew. The file's blocks are allocated before
//! it is mapped, so that a full disk is an error then and not a signal later.
//!
//! **Time** is the host's time since boot plus the offset, so that all processes agree and it goes on
//! after a restart. After a reboot the first to open moves the offset on: to where the wall clock says,
//! but never back behind what was seen last. A wall clock by which more than ten years have passed since
//! then is not believed (the file was made while it said 1970, say): time goes on from what was seen
//! last. The wall clock is not believed at later boots either, so time stands still while such a host is off.
//!
//! The clock word is swapped first and the boot id written after it. Whoever finds an id that is not this
//! boot's moves the clock on again: another process may be between the two steps, or may have died
//! there. To move it on twice never brings time back, and adds a second at most. A process that can't
//! read the boot id (without /proc) moves the clock on only if time would be behind what was seen.
//!
//! **Retired.** A process that puts another table in this one's place sets the word of the old one, after it
//! has lost its name. Users of the old table learn it from the word, or from the lost name: see `retired`.
//!
//! **Users.** Each user holds a shared `flock` on the file for as long as it has it mapped; the kernel
//! drops it with the process. A user that gets an exclusive one while it opens the file is alone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation};

use crate::clock::{Clock, host_lead, kernel_now, system_now};
use crate::engine::{Engine, Options, OutOfMemory};
use crate::eviction::{self, Eviction};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::memory::{MappedWord, Mapping, Region, Space};
use crate::storage::directory::{Directory, Entry};
use crate::storage::retired;
use crate::sync::Ordering;
use crate::table::Table;
use crate::table::hash::{Hasher, random_seed};

const MAGIC: u64 = u64::from_le_bytes(*b"TIDEGATE");
/// The version of the layout above, and of every word in the tables.
pub const FILE_FORMAT: u64 = 2;
const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
const PAGE: usize = 4096;
const SHAPE_AT: usize = 1024;
/// Bytes of the longest shape: what is read of a file before its header is checked.
const MOST_SHAPE: u64 = 1 << 20;
/// By how much the wall clock may move a file's time on at a boot, in nanoseconds: ten years.
const MOST_MOVED: u64 = 3_653 * 86_400 * 1_000_000_000;
/// Engines that a file has room for; ledgers don't count.
const MOST_ENGINES: usize = 4;
const EVICTION_END: usize = at::EVICTION + MOST_ENGINES * eviction::WORDS;
const _: () = assert!(EVICTION_END <= SHAPE_AT / 8);
/// How often a user asks for its shared lock, a millisecond apart, while another has the file alone: that one
/// may move all its rows and sync the new file meanwhile.
const PATIENCE: usize = 30_000;
/// What the probe hash is of: it proves that two builds hash alike, and find keys by the same bits of it.
const PROBE: &[u8] = b"tidegate probe, home by fingerprint";

/// Words of the header, by number.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORMAT: usize = 1;
    pub(super) const BYTE_ORDER: usize = 2;
    pub(super) const HEADER: usize = 3;
    pub(super) const FILE: usize = 4;
    pub(super) const SEED: usize = 5;
    pub(super) const PROBE: usize = 6;
    pub(super) const CLOCK_KIND: usize = 7;
    pub(super) const NAMESPACE: usize = 8;
    pub(super) const MADE_AT: usize = 9;
    pub(super) const SHAPE: usize = 10;
    pub(super) const CHECKSUM: usize = 11;
    pub(super) const CLOCK: usize = 64;
    pub(super) const SEEN: usize = 65;
    /// Two words, the lower half first.
    pub(super) const BOOT: usize = 66;
    pub(super) const GENERATION: usize = 72;
    pub(super) const KEEP: usize = 73;
    pub(super) const RETIRED: usize = 74;
    pub(super) const EVICTION: usize = 80;
}

/// Why a file can't be had.
#[derive(Debug)]
pub enum FileError {
    /// The system said no.
    Io(io::Error),
    /// It is not what it should be: what was found, and what to do.
    Refused(String),
    /// It is a table that this build can't read: damaged, cut short, or of another format.
    Unreadable(String),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::Io(error) => write!(f, "{error}"),
            FileError::Refused(reason) | FileError::Unreadable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}

impl From<rustix::io::Errno> for FileError {
    fn from(error: rustix::io::Errno) -> FileError {
        FileError::Io(error.into())
    }
}

pub(crate) fn refused<T>(reason: impl Into<String>) -> Result<T, FileError> {
    Err(FileError::Refused(reason.into()))
}

fn unreadable<T>(reason: impl std::fmt::Display) -> Result<T, FileError> {
    let remedy = "open with `recreate`, or remove it, to start afresh";
    Err(FileError::Unreadable(format!("{reason}; {remedy}")))
}

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
        // ORDERING: Release: who sees the new value sees what was done before.
        self.0.fetch_add(1, Ordering::Release);
    }
    /// Makes it at least `to`, for good.
    pub fn raise(&self, to: u64) {
        // ORDERING: Release, as in `add`.
        self.0.fetch_max(to, Ordering::Release);
    }
}

/// Time that all processes of a host agree on: see the module.
#[derive(Clone, Debug)]
pub struct SharedClock {
    offset: MappedWord,
    seen: MappedWord,
    /// What the host's time is ahead of this process's.
    lead: u64,
}

impl SharedClock {
    /// What it is ahead of this process's own time.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        // ORDERING: Relaxed; the word stands for itself.
        self.lead + ClockWord(self.offset.load(Ordering::Relaxed)).offset_nanos()
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let now = system_now() + self.ahead();
        if !self.has_noted(now) {
            self.note(now);
        }
        now
    }

    /// A moment of this process's own time that has passed, as this clock has it; none if the time is
    /// to be read, since it is to be noted again.
    #[inline]
    pub(crate) fn glance(&self, passed: u64) -> Option<u64> {
        let passed = passed + self.ahead();
        self.has_noted(passed).then_some(passed)
    }

    #[inline]
    fn has_noted(&self, now: u64) -> bool {
        // ORDERING: Relaxed; the word stands for itself.
        self.seen.load(Ordering::Relaxed) >> Seen::CHECK_BITS >= now >> Seen::SHIFT
    }

    #[cold]
    pub(crate) fn now_after_all(&self) -> u64 {
        kernel_now().max(system_now()) + self.ahead()
    }

    #[cold]
    fn note(&self, now: u64) {
        // ORDERING: Relaxed; the word stands for itself. The time is in its high bits, so that who comes
        // late does not bring it back.
        self.seen.fetch_max(Seen::of(now).0, Ordering::Relaxed);
    }
}

fn check_of(value: u64, bits: u32) -> u64 {
    let hash = rapidhash::v3::rapidhash_v3(&value.to_le_bytes());
    hash & ((1 << bits) - 1)
}

/// How far this host's clock is behind the file's, and for which boot that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockWord(u64);

impl ClockWord {
    const MILLI: u64 = 1_000_000;

    fn new(offset_nanos: u64, boot: u128) -> ClockWord {
        // A wall clock that is off by more than that many years must not bring time back.
        let offset = offset_nanos.div_ceil(ClockWord::MILLI).min((1 << 40) - 1);
        let value = offset << 16 | (boot & 0xffff) as u64;
        ClockWord(value << 8 | check_of(value, 8))
    }
    fn is_sound(self) -> bool {
        self.0 & 0xff == check_of(self.0 >> 8, 8)
    }
    /// Whether it may have been stored in this boot.
    fn may_be_of(self, boot: u128) -> bool {
        u128::from(self.0 >> 8 & 0xffff) == boot & 0xffff
    }
    #[inline]
    fn offset_nanos(self) -> u64 {
        (self.0 >> 24) * ClockWord::MILLI
    }
}

/// The latest time that was seen, in units of 2^30 ns.
struct Seen(u64);

impl Seen {
    const SHIFT: u32 = 30;
    const CHECK_BITS: u32 = 30;

    fn of(now: u64) -> Seen {
        let value = now >> Seen::SHIFT;
        Seen(value << Seen::CHECK_BITS | check_of(value, Seen::CHECK_BITS))
    }
    /// A moment that no reading was after, in nanoseconds; 0 if the word is damaged.
    fn latest(&self) -> u64 {
        if self.is_sound() { self.earliest() | ((1 << Seen::SHIFT) - 1) } else { 0 }
    }
    /// A moment that some reading was after, in nanoseconds; 0 if the word is damaged.
    fn earliest(&self) -> u64 {
        if self.is_sound() { self.0 >> Seen::CHECK_BITS << Seen::SHIFT } else { 0 }
    }
    fn is_sound(&self) -> bool {
        let check = check_of(self.0 >> Seen::CHECK_BITS, Seen::CHECK_BITS);
        self.0 & ((1 << Seen::CHECK_BITS) - 1) == check
    }
}

/// What the host says about time and files: injected by tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The kernel's id of this boot; 0 if it can't be read.
    pub boot: u128,
    /// The time namespace, whose clocks may have offsets of their own.
    pub namespace: u64,
    /// The wall clock, in nanoseconds since 1970.
    pub wall: u64,
    /// Time since boot, in nanoseconds.
    pub now: u64,
    /// What filesystem files are on, by the kernel's number; none to ask the kernel.
    pub filesystem: Option<u64>,
}

impl Host {
    /// As it is.
    pub fn here() -> Host {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap_or(0);
        let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |meta| meta.ino());
        let wall = Clock::System.wall().as_nanos() as u64;
        Host { boot, namespace, wall, now: system_now() + host_lead(), filesystem: None }
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

    /// Opens a file to be looked at: nothing of it is changed, and this process is no user of it. `None`
    /// if there is none.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn look_in(
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
        let mapping = Arc::new(Mapping::new(file, header.words[at::FILE] as usize)?);
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
        let mapping = Arc::new(Mapping::new(made.file.try_clone()?, bytes as usize)?);
        let entry = directory.entry(name, &made.file)?;
        let table = TableFile { mapping, entry, shape: shape.to_string(), manual };
        if !made.publish(name)? {
            return Ok(None);
        }
        // In place of a maker's lock, as other users have it.
        share(table.mapping.file())?;
        Ok(Some(table))
    }

    /// Tells all users of this file that another has its place. Call it when this one has lost its name.
    pub fn retire(&self) {
        let words = self.mapping.words();
        retired::retire(&words[at::RETIRED], &words[at::GENERATION]);
    }

    /// Whether another file has its place, or it was removed or moved away: what is counted here, others
    /// don't see.
    pub fn is_retired(&self) -> bool {
        self.was_retired() || self.has_lost_its_name()
    }

    /// Whether somebody has [retired](TableFile::retire) it, without a look at its name.
    pub fn was_retired(&self) -> bool {
        retired::is_told(&self.mapping.words()[at::RETIRED])
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

    /// Time as all users of the file have it. (A file made under a manual clock has none of its own.)
    pub fn clock(&self) -> Clock {
        let word = |at: usize| MappedWord::new(&self.mapping, at);
        let (offset, seen) = (word(at::CLOCK), word(at::SEEN));
        Clock::Shared(SharedClock { offset, seen, lead: host_lead() })
    }

    /// Counts changes at run time, for all users of the file.
    pub fn generation(&self) -> SharedWord {
        SharedWord(MappedWord::new(&self.mapping, at::GENERATION))
    }

    /// How long notes on denials may matter to any user, in nanoseconds.
    pub fn keep(&self) -> SharedWord {
        SharedWord(MappedWord::new(&self.mapping, at::KEEP))
    }

    /// Lets idle rows go as soon as the numbers allow by which rows are judged from now on, if nobody
    /// else has the file. Call it before the first table is asked for; `now` is the tables' time.
    ///
    /// # Errors
    /// If another user has the file to itself for longer than that takes.
    pub fn begin_era_if_alone(&self, now: u64) -> Result<bool, FileError> {
        // What is refused here may have cost the shared lock. Nobody relies on it yet.
        let alone = try_lock(self.mapping.file(), FlockOperation::NonBlockingLockExclusive);
        if alone == Lock::Granted {
            let lines = &self.mapping.words()[at::EVICTION..EVICTION_END];
            lines.chunks(eviction::WORDS).for_each(|words| Eviction::begin_era(words, now));
        }
        share(self.mapping.file())?;
        Ok(alone == Lock::Granted)
    }

    /// The same, for as long as this user has the file: others can't open it meanwhile. False, and nothing
    /// is changed, if another has it.
    ///
    /// # Errors
    /// As [`TableFile::begin_era_if_alone`].
    pub fn stay_alone(&self) -> Result<bool, FileError> {
        match try_lock(self.mapping.file(), FlockOperation::NonBlockingLockExclusive) {
            Lock::Granted => Ok(true),
            Lock::Taken | Lock::Unknown => self.share().map(|()| false),
        }
    }

    /// Gives the lock of a user up, if no other has the file: then the next to open it is alone. False, and
    /// nothing is changed, if another has it. [`TableFile::share`] takes the lock again.
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

    /// Makes a file of a new one without a name that is to take this one's place: with this one's seed and
    /// clock, and other tables.
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
        let mapping = Arc::new(Mapping::new(made.try_clone()?, bytes as usize)?);
        Ok(TableFile { mapping, entry, shape: header.shape, manual })
    }

    /// Takes over the clock, the number of changes and how long notes are kept. Nobody else has this file.
    pub(crate) fn go_on_from(&self, old: &TableFile) {
        let (old, new) = (old.mapping.words(), self.mapping.words());
        for at in [at::CLOCK, at::BOOT, at::BOOT + 1, at::SEEN, at::GENERATION, at::KEEP] {
            // ORDERING: Relaxed; each word stands for itself.
            new[at].store(old[at].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The tables of the file, to be asked for in the order in which they were laid out.
    pub fn tables(&self) -> Tables {
        // ORDERING: Relaxed; the header does not change.
        let word = |at: usize| self.mapping.words()[at].load(Ordering::Relaxed);
        let start = word(at::HEADER) as usize / 8;
        let tables = Region::new(self.mapping.clone(), start, word(at::FILE) as usize / 8);
        let shared = Region::new(self.mapping.clone(), at::EVICTION, EVICTION_END);
        let space = Space::Mapped { tables, shared };
        Tables { space, hasher: Hasher::portable(word(at::SEED)) }
    }

    /// Writes the counts to the disk, and waits for it. Without it they are in the page cache, which
    /// outlives processes but not a loss of power.
    ///
    /// # Errors
    /// If the disk says no.
    pub fn sync(&self) -> io::Result<()> {
        self.mapping.sync()
    }

    /// After a reboot: moves the clock on to where the wall clock says, never back behind what was seen,
    /// nor on by more than [`MOST_MOVED`].
    fn move_clock_on(&self, host: &Host) -> Result<(), FileError> {
        let words = self.mapping.words();
        loop {
            // ORDERING: Acquire and AcqRel below: of several openers one moves it, the others see that.
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
                    // ORDERING: Release, with the Acquire in `is_of_boot`: who reads this boot's id
                    // goes by a clock that was moved on.
                    word.store(half, Ordering::Release);
                }
                return Ok(());
            }
        }
    }

    /// Whether the clock word was stored in this boot.
    fn is_of_boot(&self, word: ClockWord, seen: &Seen, host: &Host) -> bool {
        if host.boot == 0 {
            // Then time alone can tell: it starts anew with each boot. Others may have noted a moment
            // that is a little after `host.now`.
            return host.now + word.offset_nanos() + (2 << Seen::SHIFT) >= seen.earliest();
        }
        // ORDERING: Acquire, with the Release in `move_clock_on`.
        let half = |at: usize| u128::from(self.mapping.words()[at].load(Ordering::Acquire));
        word.may_be_of(host.boot) && half(at::BOOT) | half(at::BOOT + 1) << 64 == host.boot
    }
}

/// Hands out the tables of a file.
#[derive(Debug)]
pub struct Tables {
    pub(crate) space: Space,
    hasher: Hasher,
}

impl Tables {
    /// The next table, as an engine.
    ///
    /// # Errors
    /// If the file has no room for it.
    pub fn engine(&self, limits: Limits, options: Options) -> Result<Engine, OutOfMemory> {
        Engine::new_in(limits, options, self.hasher.clone(), &self.space)
    }

    /// How many rows of the next table, an engine's, are in use; for a look from outside, which
    /// judges no row. `None` if the file has no room for it.
    pub fn used_rows(&self, limits: &Limits, capacity: usize) -> Option<usize> {
        Some(Table::new(capacity, limits, &self.space)?.len())
    }

    /// The next table, as a ledger.
    ///
    /// # Errors
    /// If the file has no room for it.
    pub fn ledger<const W: usize>(&self, capacity: usize) -> Result<Ledger<W>, OutOfMemory> {
        Ledger::new_in(capacity, self.hasher.clone(), &self.space)
    }
}

impl Tables {
    /// Words that a board takes.
    pub const BOARD_WORDS: usize = crate::storage::offenders::WORDS;

    /// The board of names, which comes last. `None` if the file has no room for it.
    pub fn board(&self) -> Option<crate::storage::offenders::Board> {
        Some(crate::storage::offenders::Board::new(self.space.words(Tables::BOARD_WORDS, false)?))
    }
}

/// Whether a file with this description could be opened.
fn check_shape(shape: &str) -> Result<(), FileError> {
    match shape.len() {
        0..=TableFile::MOST_SHAPE => Ok(()),
        bytes => refused(format!(
            "its description has {bytes} bytes, and may have {MOST_SHAPE}; use fewer limits, or shorter names"
        )),
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
        // Where room can't be taken beforehand, zeros can't be written either: others may be counting.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(rustix::io::Errno::NOSPC) => refused(format!(
            "No space left on its disk for the {bytes} bytes that it needs; make room there"
        )),
        Err(error) => Err(error.into()),
    }
}

/// The part of a file before its tables.
#[derive(Debug)]
struct Header {
    words: [u64; SHAPE_AT / 8],
    shape: String,
}

impl Header {
    fn new(shape: &str, tables: usize, manual: bool, host: &Host) -> Header {
        let seed = random_seed();
        let header = (SHAPE_AT + shape.len()).next_multiple_of(PAGE);
        let file = (header + tables * 8).next_multiple_of(PAGE);
        let mut words = [0; SHAPE_AT / 8];
        words[at::MAGIC] = MAGIC;
        words[at::FORMAT] = FILE_FORMAT;
        words[at::BYTE_ORDER] = BYTE_ORDER;
        words[at::HEADER] = header as u64;
        words[at::FILE] = file as u64;
        words[at::SEED] = seed;
        words[at::PROBE] = Hasher::portable(seed).one(PROBE).0;
        words[at::CLOCK_KIND] = u64::from(manual);
        words[at::NAMESPACE] = host.namespace;
        words[at::MADE_AT] = host.wall.saturating_sub(host.now);
        words[at::SHAPE] = shape.len() as u64;
        words[at::CLOCK] = ClockWord::new(0, host.boot).0;
        words[at::SEEN] = Seen::of(host.now).0;
        words[at::BOOT] = host.boot as u64;
        words[at::BOOT + 1] = (host.boot >> 64) as u64;
        let mut header = Header { words, shape: shape.to_string() };
        header.words[at::CHECKSUM] = header.checksum();
        header
    }

    /// The same, of a file that takes the place of one with these words.
    fn after(mut self, word: impl Fn(usize) -> u64) -> Header {
        for at in [at::SEED, at::NAMESPACE, at::MADE_AT] {
            self.words[at] = word(at);
        }
        self.words[at::PROBE] = Hasher::portable(word(at::SEED)).one(PROBE).0;
        self.words[at::CHECKSUM] = self.checksum();
        self
    }

    fn is_manual(&self) -> bool {
        self.words[at::CLOCK_KIND] == 1
    }

    fn checksum(&self) -> u64 {
        let mut bytes: Vec<u8> = Vec::new();
        self.words[..at::CHECKSUM].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(self.shape.as_bytes());
        rapidhash::v3::rapidhash_v3(&bytes)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.shape.as_bytes());
        bytes
    }

    /// Reads the header of a file by its descriptor: nothing is mapped before it is checked.
    fn read(file: &File) -> Result<Header, FileError> {
        Header::read_as(file, FILE_FORMAT)
    }

    fn read_as(file: &File, format: u64) -> Result<Header, FileError> {
        let length = file.metadata()?.len();
        let mut bytes = [0; SHAPE_AT];
        if length == 0 {
            return unreadable("it holds no table: it is empty, as a loss of power may leave it");
        }
        if length < SHAPE_AT as u64 {
            let found = format!("it has {length} bytes, which is no table of Tidegate's");
            return refused(format!("{found}; remove it, or name another place"));
        }
        file.read_exact_at(&mut bytes, 0)?;
        if bytes == [0; SHAPE_AT] {
            return unreadable("it holds no table: all zeros, as a loss of power may leave it");
        }
        let mut words = [0; SHAPE_AT / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        let shape_bytes = words[at::SHAPE];
        if words[at::MAGIC] != MAGIC {
            return refused("it is no table of Tidegate's; remove it, or name another place");
        }
        if words[at::FORMAT] != format || words[at::BYTE_ORDER] != BYTE_ORDER {
            return unreadable(format!(
                "it is of format {} (this build reads {FILE_FORMAT}), or of a machine with another byte order",
                words[at::FORMAT]
            ));
        }
        if words[at::FILE] != length || shape_bytes > length - SHAPE_AT as u64 {
            return unreadable(format!(
                "it has {length} bytes, and should have {}: truncated or damaged",
                words[at::FILE]
            ));
        }
        if shape_bytes > MOST_SHAPE {
            return unreadable(format!(
                "its description has {shape_bytes} bytes, and may have {MOST_SHAPE}: damaged"
            ));
        }
        let mut shape = vec![0; shape_bytes as usize];
        file.read_exact_at(&mut shape, SHAPE_AT as u64)?;
        let shape = String::from_utf8_lossy(&shape).into_owned();
        Ok(Header { words, shape })
    }

    fn check(&self, host: &Host) -> Result<(), FileError> {
        self.check_by(PROBE, host)
    }

    fn check_by(&self, probe: &[u8], host: &Host) -> Result<(), FileError> {
        let words = &self.words;
        if words[at::CHECKSUM] != self.checksum() {
            return unreadable("its header is damaged");
        }
        if Hasher::portable(words[at::SEED]).one(probe).0 != words[at::PROBE] {
            return refused("this build hashes keys differently; use builds of one version");
        }
        if !self.is_manual() && words[at::NAMESPACE] != host.namespace {
            let message =
                "it was made in another time namespace (another container?), whose clocks differ";
            return refused(format!("{message}; share the namespace, or use a file for each"));
        }
        Ok(())
    }
}

/// The header of a file of format 1, which has no words for the boot id, for eviction and for its users.
#[derive(Debug)]
pub(crate) struct Format1Header(Header);

impl Format1Header {
    const FORMAT: u64 = 1;

    /// `None` if the file is not of format 1.
    pub(crate) fn read(file: &File, host: &Host) -> Result<Option<Format1Header>, FileError> {
        let mut format = [0; 16];
        if file.metadata()?.len() < SHAPE_AT as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut format, 0)?;
        let [magic, format] = [&format[..8], &format[8..]]
            .map(|bytes| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0));
        if (magic, format) != (MAGIC, Format1Header::FORMAT) {
            return Ok(None);
        }
        let header = Header::read_as(file, Format1Header::FORMAT)?;
        header.check_by(b"tidegate probe", host)?;
        if !ClockWord(header.words[at::CLOCK]).is_sound() {
            return unreadable("its clock is damaged");
        }
        Ok(Some(Format1Header(header)))
    }

    pub(crate) fn shape(&self) -> &str {
        &self.0.shape
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.0.is_manual()
    }

    /// The word of the file with which its tables begin.
    pub(crate) fn tables_at(&self) -> usize {
        self.0.words[at::HEADER] as usize / 8
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

/// Filesystems of other hosts, by the kernel's numbers: what is mapped there is not shared, or not
/// at once. FUSE is among them, since the kernel does not say what is behind it.
const REMOTE: [(u64, &str); 24] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE (sshfs, gluster, virtiofs or the like)"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
    (0x7c7c_6673, "prl_fs"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0xaad7_aaea, "PanFS"),
    (0x6163_6673, "ACFS"),
    (0x0131_11a8, "IBRIX"),
    (0xbeef_dead, "SNFS"),
    (0x564c, "NCP"),
];

fn check_filesystem(file: impl AsFd, host: &Host) -> Result<(), FileError> {
    let kind = match host.filesystem {
        Some(kind) => kind,
        None => rustix::fs::fstatfs(file)?.f_type as u64 & 0xffff_ffff,
    };
    match REMOTE.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => refused(format!(
            "it is on {name}, a network filesystem; processes on one host need a local disk"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_last_is_never_before_a_reading() {
        for now in [0, 1, (1 << 30) - 1, 1 << 30, 123_456_789_012_345, u64::MAX] {
            assert!(Seen::of(now).latest() >= now);
            assert!(Seen::of(now).latest() - now < 1 << Seen::SHIFT);
        }
        assert_eq!(Seen(Seen::of(5 << 30).0 ^ 1).latest(), 0, "damaged");
        assert!(Seen::of(2 << 30).0 > Seen::of((2 << 30) - 1).0, "later moments are larger words");
    }

    /// Else a busy rule that is always answered at a glance would not have noted how late it is.
    #[test]
    fn a_glance_is_not_enough_when_the_time_is_to_be_noted() {
        let path = std::env::temp_dir().join(format!("tidegate-noted-{}", std::process::id()));
        let file = TableFile::create(&path, "", 64, false).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let Clock::Shared(clock) = file.clock() else { panic!("a file has a clock of its own") };
        let own = clock.now() - clock.ahead();
        assert_eq!(clock.glance(own), Some(own + clock.ahead()));
        assert_eq!(clock.glance(own + (2 << Seen::SHIFT)), None);
    }

    use crate::storage::directory::steps::{self, Step};

    fn temporary_place(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()))
    }

    /// A loss of power keeps what was synced, and the name if the folder was.
    #[test]
    fn a_table_is_whole_on_the_disk_before_it_has_its_name() {
        let path = temporary_place("synced");
        let (made, steps) = steps::of(|| TableFile::create(&path, "shape", 64, false).unwrap());
        assert!(made.is_some());
        drop(made);
        let Step::Synced(synced) = &steps[0] else { panic!("{:?}", steps[0]) };
        let Step::Named(named) = &steps[1] else { panic!("{:?}", steps[1]) };
        assert!(synced == named, "nothing is written between the sync and the name");
        assert_eq!(steps[2..], [Step::FolderSynced]);
        // The file is cut back to what was synced.
        std::fs::write(&path, synced).unwrap();
        let file = TableFile::open(&path).unwrap().unwrap();
        assert_eq!(file.shape(), "shape");
        std::fs::remove_file(&path).unwrap();
        assert!(file.is_retired(), "it has no name any more");
    }

    /// It still has a name then, but not the one by which others open it.
    #[test]
    fn a_table_that_was_moved_away_or_has_a_second_name_is_retired() {
        let path = temporary_place("moved");
        let (second, away) = (path.with_extension("second"), path.with_extension("away"));
        let create = || TableFile::create(&path, "", 64, false).unwrap().unwrap();
        let file = create();
        std::fs::hard_link(&path, &second).unwrap();
        assert!(!file.is_retired(), "a second name does no harm");
        std::fs::remove_file(&path).unwrap();
        assert!(file.is_retired(), "the second name is not the one that others open");
        let file = create();
        assert!(!file.is_retired());
        std::fs::rename(&path, &away).unwrap();
        assert!(file.is_retired(), "moved away");
        let next = create();
        assert!(file.is_retired() && !next.is_retired(), "its name is another's");
        std::fs::rename(&away, &path).unwrap();
        assert!(!file.is_retired() && next.is_retired(), "and back");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&second).unwrap();
    }

    #[test]
    fn a_file_without_a_header_says_so_and_is_not_taken_for_anothers() {
        let path = temporary_place("zeroed");
        for bytes in [0, SHAPE_AT, 3 * PAGE] {
            let _ = std::fs::remove_file(&path);
            let file = crate::storage::directory::tests::private_file(&path);
            file.set_len(bytes as u64).unwrap();
            let error = TableFile::open(&path).unwrap_err();
            assert!(matches!(error, FileError::Unreadable(_)), "{error}");
            assert!(error.to_string().contains("recreate"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    /// A file of this process's own user may say anything.
    #[test]
    fn a_description_that_is_too_long_is_neither_written_nor_read() {
        let path = temporary_place("long-shape");
        let shape = |bytes: u64| "x".repeat(bytes as usize);
        let error = TableFile::create(&path, &shape(MOST_SHAPE + 1), 64, false).unwrap_err();
        assert!(error.to_string().contains("shorter names"), "{error}");
        assert!(!path.exists());
        let file = TableFile::create(&path, &shape(MOST_SHAPE), 64, false).unwrap().unwrap();
        let (directory, name) = place_of(&path).unwrap();
        let error = file.begin_move(&directory, name, &shape(MOST_SHAPE + 1), 64).unwrap_err();
        assert!(error.to_string().contains("shorter names"), "{error}");
        drop(file);
        assert_eq!(TableFile::open(&path).unwrap().unwrap().shape().len() as u64, MOST_SHAPE);
        let mut header = Header::new("", 1 << 20, false, &Host::here());
        (header.words[at::SHAPE], header.shape) = (MOST_SHAPE + 1, shape(MOST_SHAPE + 1));
        header.words[at::CHECKSUM] = header.checksum();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(header.words[at::FILE]).unwrap();
        file.write_all_at(&header.bytes(), 0).unwrap();
        let error = TableFile::open(&path).unwrap_err();
        assert!(matches!(error, FileError::Unreadable(_)), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_look_at_a_table_changes_nothing() {
        let path = temporary_place("looked-at");
        let here = Host::here();
        drop(TableFile::create_on(&path, "", 1 << 16, false, &here).unwrap());
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        // A copy with holes, which is looked at after a reboot while one process has it alone.
        file.set_len(2 * PAGE as u64).and_then(|()| file.set_len(length)).unwrap();
        assert_eq!(try_lock(&file, FlockOperation::NonBlockingLockExclusive), Lock::Granted);
        let state = || (std::fs::read(&path).unwrap(), file.metadata().unwrap().blocks());
        let before = state();
        let next = Host { boot: here.boot ^ 1, wall: here.wall + (1 << 42), ..here };
        let (directory, name) = place_of(&path).unwrap();
        let table = TableFile::look_in(&directory, name, &next).unwrap().unwrap();
        assert_eq!(table.shape(), "");
        assert!(before == state());
        assert!(before.1 * 512 < length, "there are holes");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_retired_table_tells_all_its_users() {
        let path = temporary_place("retired");
        let one = TableFile::create(&path, "", 64, false).unwrap().unwrap();
        let other = TableFile::open(&path).unwrap().unwrap();
        let before = other.generation().get();
        assert!(!one.is_retired() && !other.is_retired());
        one.retire();
        assert!(other.is_retired());
        assert!(other.generation().get() > before, "a hit compares it");
        std::fs::remove_file(&path).unwrap();
    }

    /// Two boots whose ids are alike in the bits that the clock word has.
    #[test]
    fn boots_are_told_apart_by_the_whole_id() {
        let path = temporary_place("boots");
        let here = Host::here();
        drop(TableFile::create_on(&path, "", 64, false, &here).unwrap());
        let hour = 3_600_000_000_000;
        for (bit, since) in [(16, 1), (63, 2), (64, 3), (127, 4)] {
            let boot = here.boot ^ 1 << bit;
            let host = Host { boot, wall: here.wall + since * hour, ..here };
            let file = TableFile::open_on(&path, &host).unwrap().unwrap();
            let now = file.clock().now();
            assert!(now >= here.now + since * hour, "bit {bit}: the clock moved on");
            drop(TableFile::open_on(&path, &Host { wall: host.wall + hour, ..host }).unwrap());
            assert!(file.clock().now() < now + hour, "bit {bit}: once for each boot");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_clock_of_a_file_of_format_1_goes_on() {
        let path = temporary_place("format-1");
        std::fs::create_dir_all(&path).unwrap();
        let (directory, here) = (Directory::unchecked(&path).unwrap(), Host::here());
        let hour = 3_600_000_000_000;
        let mut header = Header::new("old", 64, false, &here);
        header.words[at::FORMAT] = Format1Header::FORMAT;
        header.words[at::PROBE] = Hasher::portable(header.words[at::SEED]).one(b"tidegate probe").0;
        header.words[at::CLOCK] = ClockWord::new(5 * hour, here.boot).0;
        header.words[at::GENERATION] = 7;
        header.words[at::CHECKSUM] = header.checksum();
        let file = crate::storage::directory::tests::private_file(&path.join("a.table"));
        file.set_len(header.words[at::FILE]).unwrap();
        file.write_all_at(&header.bytes(), 0).unwrap();
        assert!(TableFile::open_in(&directory, "a.table", &here).is_err(), "not as it is");
        for (boot, passed) in [(here.boot, 0), (here.boot ^ 1, 9)] {
            let host = Host { boot, wall: here.wall + passed * hour, ..here };
            let old = crate::Format1::open_in(&directory, "a.table", &host).unwrap().unwrap();
            let new = old.begin_move(&directory, "a.table", "new", 64, &host).unwrap();
            let now = new.file().clock().now();
            let due = here.now + hour * passed.max(5);
            assert!((due..due + hour / 10).contains(&now), "{passed} hours: {now}, not {due}");
            assert_eq!(new.file().generation().get(), 7);
        }
        let other = Host { namespace: here.namespace ^ 1, ..here };
        assert!(crate::Format1::open_in(&directory, "a.table", &other).is_err());
        assert!(crate::Format1::open_in(&directory, "b.table", &here).unwrap().is_none());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn without_a_boot_id_time_goes_on_all_the_same() {
        let path = temporary_place("no-boot-id");
        let here = Host::here();
        let late = Host { boot: 0, now: here.now + 3_600_000_000_000, ..here };
        drop(TableFile::create_on(&path, "", 64, false, &late).unwrap());
        let offset = || {
            let file = TableFile::open_on(&path, &Host { boot: 0, ..here }).unwrap().unwrap();
            let Clock::Shared(clock) = file.clock() else {
                panic!("a file has a clock of its own")
            };
            clock.ahead() - host_lead()
        };
        let first = offset();
        assert!(here.now + first >= late.now, "after a reboot it is not behind what was seen");
        assert_eq!(offset(), first, "and it moves on once");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn filesystems_of_other_hosts_are_known_by_their_numbers() {
        for kind in [0x6969, 0x6573_5546, 0x0bd0_0bd0, 0x4750_4653, 0x786f_4256, 0x0102_1997] {
            let host = Host { filesystem: Some(kind), ..Host::here() };
            let error = TableFile::create_on(&temporary_place("remote"), "", 64, false, &host);
            let message = error.unwrap_err().to_string();
            assert!(message.contains("local disk"), "{kind:x}: {message}");
        }
        // ext4, xfs, btrfs, tmpfs, overlayfs, zfs
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
            assert!(REMOTE.iter().all(|(number, _)| *number != kind), "{kind:x}");
        }
    }

    #[test]
    fn an_offset_that_is_too_long_is_the_longest() {
        let longest = ClockWord::new(u64::MAX, 7).offset_nanos();
        let years = |nanos: u64| nanos / (365 * 86_400 * 1_000_000_000);
        assert_eq!(years(longest), 34);
        assert!(ClockWord::new(longest + 1, 7).offset_nanos() == longest, "it does not wrap");
        assert_eq!(ClockWord::new(5_000_001, 7).offset_nanos(), 6_000_000, "rounded up");
    }
}
