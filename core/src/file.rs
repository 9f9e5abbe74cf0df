//! Tables in a file that all processes of a host map.
//!
//! ```text
//! byte     0  magic "TIDEGATE" │ format │ byte order │ header bytes │ file bytes │ seed │ probe
//!         56  clock kind │ time namespace │ made at │ shape bytes │ checksum of all that, and of the shape
//!        512  clock: offset (ms) 40 │ boot 16 │ check 8            moved on once after each boot, by swap
//!        520  seen: 2^30 ns 34 │ check 30                          the latest time, about once a second
//!        576  generation                                           counts changes that all must look at
//!        584  keep                                                 how long notes on denials may matter, in ns
//!        640  eviction: 8 words for each of 4 tables               see `eviction`
//!       1024  shape: text that says what the tables are
//!  header      tables, from a page on
//! ```
//!
//! A file is **published whole**: built without a name, filled and checked, and only then linked to its
//! name, which fails if somebody else was quicker. So nobody ever maps a half-made one, and a process
//! that is killed while it makes one leaves nothing. Nothing in it is trusted before it is mapped:
//! kind, owner, mode, length, header. What does not fit is refused, never made anew.
//!
//! **Time** is the host's time since boot plus the offset, so that all processes agree and it goes on
//! after a restart. After a reboot the first to open moves the offset on: to where the wall clock says,
//! but never back behind what was seen last. A wall clock by which more than ten years have passed since
//! then is not believed (the file was made while it said 1970, say): time goes on from what was seen
//! last. The wall clock is not believed at later boots either, so time stands still while such a host is off.
//!
//! **Users.** Each user holds a shared `flock` on the file for as long as it has it mapped; the kernel
//! drops it with the process. A user that gets an exclusive one while it opens the file is alone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags};

use crate::clock::{Clock, host_lead, kernel_now, system_now};
use crate::engine::{Engine, Options, OutOfMemory};
use crate::eviction::{self, Eviction};
use crate::hash::{Hasher, random_seed};
use crate::ledger::Ledger;
use crate::limit::Limits;
use crate::memory::{MappedWord, Mapping, Region, Space};
use crate::sync::Ordering;
use crate::table::Table;

const MAGIC: u64 = u64::from_le_bytes(*b"TIDEGATE");
/// The version of the layout above, and of every word in the tables.
pub const FILE_FORMAT: u64 = 2;
const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
const PAGE: usize = 4096;
const SHAPE_AT: usize = 1024;
/// By how much the wall clock may move a file's time on at a boot, in nanoseconds: ten years.
const MOST_MOVED: u64 = 3_653 * 86_400 * 1_000_000_000;
/// Engines that a file has room for; ledgers don't count.
const MOST_ENGINES: usize = 4;
const EVICTION_END: usize = at::EVICTION + MOST_ENGINES * eviction::WORDS;
const _: () = assert!(EVICTION_END <= SHAPE_AT / 8);
/// How often a user asks for its shared lock, a millisecond apart, while another has the file alone.
const PATIENCE: usize = 2_000;
/// What the probe hash is of: it proves that two builds hash alike.
const PROBE: &[u8] = b"tidegate probe";

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
    pub(super) const GENERATION: usize = 72;
    pub(super) const KEEP: usize = 73;
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

fn refused<T>(reason: impl Into<String>) -> Result<T, FileError> {
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

    fn new(offset_nanos: u64, boot: u64) -> ClockWord {
        // A wall clock that is off by more than that many years must not bring time back.
        let offset = offset_nanos.div_ceil(ClockWord::MILLI).min((1 << 40) - 1);
        let value = offset << 16 | boot & 0xffff;
        ClockWord(value << 8 | check_of(value, 8))
    }
    fn is_sound(self) -> bool {
        self.0 & 0xff == check_of(self.0 >> 8, 8)
    }
    fn boot(self) -> u64 {
        self.0 >> 8 & 0xffff
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
    fn latest(self) -> u64 {
        let value = self.0 >> Seen::CHECK_BITS;
        let sound = self.0 & ((1 << Seen::CHECK_BITS) - 1) == check_of(value, Seen::CHECK_BITS);
        if sound { value << Seen::SHIFT | ((1 << Seen::SHIFT) - 1) } else { 0 }
    }
}

/// What the host says about time and files: injected by tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Tells boots apart.
    pub boot: u64,
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
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |meta| meta.ino());
        let wall = Clock::System.wall().as_nanos() as u64;
        let boot = rapidhash::v3::rapidhash_v3(&boot);
        Host { boot, namespace, wall, now: system_now() + host_lead(), filesystem: None }
    }
}

impl TableFile {
    /// Opens a file that is there; `None` if there is none.
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
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => {
                return refused("it is a symbolic link; name the file itself");
            }
            Err(error) => return Err(error.into()),
        };
        check_kind(&file)?;
        check_filesystem(&file, host)?;
        let header = Header::read(&file)?;
        header.check(host)?;
        share(&file)?;
        let mapping = Arc::new(Mapping::new(file, header.words[at::FILE] as usize)?);
        let manual = header.is_manual();
        let table = TableFile { mapping, shape: header.shape, manual };
        if !manual {
            table.move_clock_on(host)?;
        }
        Ok(Some(table))
    }

    /// Makes a file for tables of `words` words, described by `shape`, and publishes it; `None` if
    /// somebody else was quicker.
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
        let unnamed = Unnamed::new(path)?;
        check_filesystem(&unnamed.file, host)?;
        let header = Header::new(shape, words, manual, host);
        let bytes = header.words[at::FILE];
        // Room is taken now: a full disk must not end a hit by a signal later.
        rustix::fs::fallocate(&unnamed.file, FallocateFlags::empty(), 0, bytes)?;
        unnamed.file.write_all_at(&header.bytes(), 0)?;
        share(&unnamed.file)?;
        let mapping = Arc::new(Mapping::new(unnamed.file.try_clone()?, bytes as usize)?);
        let table = TableFile { mapping, shape: shape.to_string(), manual };
        Ok(unnamed.publish(path)?.then_some(table))
    }

    /// What the tables are, as their maker described them.
    pub fn shape(&self) -> &str {
        &self.shape
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
            if word.boot() == host.boot & 0xffff {
                return Ok(());
            }
            // ORDERING: Relaxed; the header does not change, and `seen` stands for itself.
            let made_at = words[at::MADE_AT].load(Ordering::Relaxed);
            let seen = Seen(words[at::SEEN].load(Ordering::Relaxed)).latest();
            // Of a damaged note of what was seen, the last boot's offset is what is sure.
            let floor = seen.max(word.offset_nanos());
            let due = host.wall.saturating_sub(made_at).max(floor);
            let due = if due - floor > MOST_MOVED { floor } else { due };
            let next = ClockWord::new(due.saturating_sub(host.now), host.boot);
            let swap = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = words[at::CLOCK].compare_exchange(word.0, next.0, swap.0, swap.1);
        }
    }
}

/// Hands out the tables of a file.
#[derive(Debug)]
pub struct Tables {
    space: Space,
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
    pub const BOARD_WORDS: usize = crate::board::WORDS;

    /// The board of names, which comes last. `None` if the file has no room for it.
    pub fn board(&self) -> Option<crate::board::Board> {
        Some(crate::board::Board::new(self.space.words(Tables::BOARD_WORDS, false)?))
    }
}

/// A file that has no name yet; gone if it never gets one.
struct Unnamed {
    file: File,
    /// Where the filesystem can't do without a name.
    name: Option<PathBuf>,
}

impl Unnamed {
    fn new(path: &Path) -> Result<Unnamed, FileError> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, mode) {
            Ok(file) => return Ok(Unnamed { file: file.into(), name: None }),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {}
            Err(error) => return Err(error.into()),
        }
        Unnamed::named(path, mode)
    }

    /// Under a name that nobody else has. (A process's number would not do: in containers many have
    /// the same, and one that was killed may have left its file.)
    fn named(path: &Path, mode: Mode) -> Result<Unnamed, FileError> {
        let name = path.with_extension(format!("{:016x}.tmp", random_seed()));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(&name, flags, mode)?.into();
        Ok(Unnamed { file, name: Some(name) })
    }

    /// Gives the file its name. False if another has it.
    fn publish(&self, path: &Path) -> Result<bool, FileError> {
        let linked = match &self.name {
            Some(name) => rustix::fs::linkat(CWD, name, CWD, path, AtFlags::empty()),
            None => {
                use std::os::fd::AsRawFd;
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)
            }
        };
        match linked {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = std::fs::remove_file(name);
        }
    }
}

/// The part of a file before its tables.
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
        let mut header = Header { words, shape: shape.to_string() };
        header.words[at::CHECKSUM] = header.checksum();
        header
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
        let length = file.metadata()?.len();
        let mut bytes = [0; SHAPE_AT];
        if length < SHAPE_AT as u64 {
            let found = format!("it has {length} bytes, which is no table of Tidegate's");
            return refused(format!("{found}; remove it, or name another place"));
        }
        file.read_exact_at(&mut bytes, 0)?;
        let mut words = [0; SHAPE_AT / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        let shape_bytes = words[at::SHAPE];
        if words[at::MAGIC] != MAGIC {
            return refused("it is no table of Tidegate's; remove it, or name another place");
        }
        if words[at::FORMAT] != FILE_FORMAT || words[at::BYTE_ORDER] != BYTE_ORDER {
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
        let mut shape = vec![0; shape_bytes as usize];
        file.read_exact_at(&mut shape, SHAPE_AT as u64)?;
        let shape = String::from_utf8_lossy(&shape).into_owned();
        Ok(Header { words, shape })
    }

    fn check(&self, host: &Host) -> Result<(), FileError> {
        let words = &self.words;
        if words[at::CHECKSUM] != self.checksum() {
            return unreadable("its header is damaged");
        }
        if Hasher::portable(words[at::SEED]).one(PROBE).0 != words[at::PROBE] {
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

/// A regular file that nobody else may write.
fn check_kind(file: &File) -> Result<(), FileError> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return refused("it is not a regular file; name another place");
    }
    if meta.mode() & 0o022 != 0 {
        return refused(format!(
            "others may write it (mode {:o}); make it 600, or remove it if you don't trust it",
            meta.mode() & 0o777
        ));
    }
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me && me != 0 {
        return refused(format!("it belongs to user {}, not to {me}", meta.uid()));
    }
    Ok(())
}

/// Filesystems of other hosts, by the kernel's numbers: what is mapped there is not shared.
const REMOTE: [(u64, &str); 8] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x7461_636f, "OCFS2"),
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

    #[test]
    fn where_files_need_a_name_they_have_one_each_and_it_goes() {
        let name = format!("tidegate-named-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (path, mode) = (folder.join("a.table"), Mode::RUSR | Mode::WUSR);
        let names = || std::fs::read_dir(&folder).unwrap().count();
        let (a, b) = (Unnamed::named(&path, mode).unwrap(), Unnamed::named(&path, mode).unwrap());
        assert_eq!(names(), 2);
        assert!(a.publish(&path).unwrap() && !b.publish(&path).unwrap(), "the first has the name");
        drop((a, b));
        assert_eq!(names(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
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
