//! A loss of power at every call of the kernel, and what it leaves on the disk.
//!
//! A child does the operation and is stopped after each of its calls. This process keeps a second
//! disk, by the weakest promise that a filesystem makes:
//!
//! | what | survives |
//! |---|---|
//! | bytes of a file | as they were at its last sync; later ones perhaps, page by page |
//! | a file that was never synced | empty, with zeros, or whole |
//! | names in a folder | as they were at the folder's last sync; each later change perhaps |
//!
//! After each call the folder is rebuilt in every way that this allows, and opened. It must open,
//! with the state from before or after the operation. Once the operation has returned, it must be
//! the state from after it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate::{Limiter, Match};

use crate::place::open_with;
use crate::system::{Call, Ended, Pid, fork, kill, next_call, stop_here, trace_me, wait};

const PAGE: usize = 4096;
const LIMIT: usize = 5;

/// An operation that the power fails in.
struct Case {
    name: &'static str,
    /// What is there before, all of it on the disk.
    prepare: fn(&Path),
    act: fn(&Path),
    /// What must hold of the folder that is left. True: the operation had returned.
    check: fn(&Path, bool),
}

const CASES: [Case; 6] = [
    Case { name: "first-start", prepare: nothing, act: start, check: is_empty_or_whole },
    Case { name: "start-again", prepare: start, act: start, check: is_empty_or_whole },
    Case { name: "first-change", prepare: start, act: exempt_many, check: has_none_or_many },
    Case { name: "next-change", prepare: exempt_one, act: exempt_many, check: has_one_or_many },
    Case { name: "recreate", prepare: start, act: recreate, check: is_old_or_new },
    Case { name: "sync", prepare: start, act: spend_and_sync, check: has_spent },
];

/// The names of all cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

fn rules(limits: &str) -> Value {
    json!({ "default": { "limits": limits, "capacity": 10 } })
}

fn open(folder: &Path) -> Limiter {
    open_with(folder, rules("5/365d window"), Limiter::builder()).expect("it opens")
}

fn other_rules() -> Value {
    rules("7/365d fixed")
}

fn exempts(many: usize) -> Vec<Match> {
    (0..many).map(|user| Match::new([("user", user.to_string())])).collect()
}

fn nothing(_: &Path) {}

fn start(folder: &Path) {
    drop(open(folder));
}

fn exempt_one(folder: &Path) {
    open(folder).set_exempts(exempts(1)).unwrap();
}

fn exempt_many(folder: &Path) {
    open(folder).set_exempts(exempts(20)).unwrap();
}

fn recreate(folder: &Path) {
    let options = Limiter::builder().recreate(true);
    drop(open_with(folder, other_rules(), options).unwrap());
}

fn spend_and_sync(folder: &Path) {
    let limiter = open(folder);
    assert!((0..3).all(|_| limiter.allow("alice").unwrap()));
    limiter.sync().unwrap();
}

fn granted(limiter: &Limiter) -> usize {
    (0..4 * LIMIT).filter(|_| limiter.allow("alice").unwrap()).count()
}

fn is_empty_or_whole(folder: &Path, over: bool) {
    assert!(!over || folder.join("default.table").exists(), "what was made is kept");
    assert_eq!(granted(&open(folder)), LIMIT);
}

fn has_none_or_many(folder: &Path, over: bool) {
    let found = open(folder).exempts().unwrap().len();
    assert!(found == 20 || (found == 0 && !over), "{found} exemptions");
}

fn has_one_or_many(folder: &Path, over: bool) {
    let found = open(folder).exempts().unwrap().len();
    assert!(found == 20 || (found == 1 && !over), "{found} exemptions");
}

fn is_old_or_new(folder: &Path, over: bool) {
    let new = open_with(folder, other_rules(), Limiter::builder());
    assert!(new.is_ok() || !over, "what was made is kept: {new:?}");
    drop(new.unwrap_or_else(|_| open(folder)));
}

fn has_spent(folder: &Path, over: bool) {
    let left = granted(&open(folder));
    assert!(left == LIMIT - 3 || (!over && left <= LIMIT), "{left} granted");
}

/// Device and number of a file.
type Number = (u64, u64);

fn number_of(file: &File) -> Number {
    let meta = file.metadata().unwrap();
    (meta.dev(), meta.ino())
}

fn bytes_of(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("its bytes");
    bytes
}

/// How much of what was not synced is left.
#[derive(Clone, Copy, Debug)]
enum Luck {
    /// Nothing, not the length of a new file either.
    None,
    /// The length of a new file, and none of its bytes.
    Length,
    /// Every other page.
    Half,
    All,
}

/// A file, open so that its number stays its own.
struct Known {
    file: File,
    synced: Option<Vec<u8>>,
}

impl Known {
    /// What a loss of power may leave.
    fn left(&self, luck: Luck) -> Vec<u8> {
        let mut now = bytes_of(&self.file);
        match (&self.synced, luck) {
            (_, Luck::All) => now,
            (None, Luck::None) => Vec::new(),
            (None, Luck::Length) => vec![0; now.len()],
            (None, Luck::Half) => {
                now.chunks_mut(PAGE).step_by(2).for_each(|page| page.fill(0));
                now
            }
            (Some(synced), Luck::None | Luck::Length) => synced.clone(),
            (Some(synced), Luck::Half) => {
                let mut mixed = synced.clone();
                for (page, now) in mixed.chunks_mut(PAGE).zip(now.chunks(PAGE)).step_by(2) {
                    let shared = page.len().min(now.len());
                    page[..shared].copy_from_slice(&now[..shared]);
                }
                mixed
            }
        }
    }
}

type Names = BTreeMap<String, Number>;

/// What is left of a folder: names, and the bytes of their files. `None`: there is no folder.
type Left = Option<BTreeMap<String, Vec<u8>>>;

/// What is surely on the disk, and what may be.
struct Disk {
    child: Pid,
    store: PathBuf,
    /// Whether the folder has its own name for good.
    has_folder: bool,
    files: BTreeMap<Number, Known>,
    durable: Names,
    /// What each name was since the folder was synced.
    recent: BTreeMap<String, BTreeSet<Option<Number>>>,
}

impl Disk {
    /// All that is there is on the disk.
    fn new(child: Pid, store: &Path) -> Disk {
        let mut disk = Disk {
            child,
            store: store.to_path_buf(),
            has_folder: store.exists(),
            files: BTreeMap::new(),
            durable: Names::new(),
            recent: BTreeMap::new(),
        };
        disk.durable = disk.names();
        disk.files.values_mut().for_each(|known| known.synced = Some(bytes_of(&known.file)));
        disk
    }

    /// The names in the folder as they are now, and their files.
    fn names(&mut self) -> Names {
        let mut names = Names::new();
        for name in crate::place::names(&self.store) {
            let file = File::open(self.store.join(&name)).unwrap();
            let number = number_of(&file);
            self.files.entry(number).or_insert(Known { file, synced: None });
            names.insert(name, number);
        }
        names
    }

    /// Notes what a call did.
    fn note(&mut self, call: &Call) {
        let names = self.names();
        let known: BTreeSet<&String> =
            names.keys().chain(self.durable.keys()).chain(self.recent.keys()).collect();
        let now: Vec<_> =
            known.into_iter().map(|name| (name.clone(), names.get(name).copied())).collect();
        for (name, number) in now {
            self.recent.entry(name).or_default().insert(number);
        }
        match call.number {
            _ if call.result < 0 => {}
            libc::SYS_fsync | libc::SYS_fdatasync => self.note_sync(call.arguments[0], names),
            libc::SYS_msync => self.note_mapped_sync(call.arguments[0]),
            _ => {}
        }
    }

    fn note_sync(&mut self, descriptor: u64, names: Names) {
        let file = File::open(format!("/proc/{}/fd/{descriptor}", self.child)).unwrap();
        let number = number_of(&file);
        if !file.metadata().unwrap().is_dir() {
            let known = self.files.entry(number).or_insert(Known { file, synced: None });
            known.synced = Some(bytes_of(&known.file));
        } else if File::open(&self.store).is_ok_and(|store| number_of(&store) == number) {
            (self.durable, self.recent) = (names, BTreeMap::new());
        } else if self
            .store
            .parent()
            .is_some_and(|base| File::open(base).is_ok_and(|base| number_of(&base) == number))
        {
            self.has_folder = self.store.exists();
        }
    }

    fn note_mapped_sync(&mut self, address: u64) {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child)).unwrap();
        let at = |text: &str| u64::from_str_radix(text, 16).unwrap();
        for line in maps.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = fields[0].split_once('-').unwrap();
            if (at(start)..at(end)).contains(&address) {
                let mapped: u64 = fields[4].parse().unwrap();
                for (_, known) in self.files.iter_mut().filter(|((_, ino), _)| *ino == mapped) {
                    known.synced = Some(bytes_of(&known.file));
                }
            }
        }
    }

    /// Every folder that a loss of power may leave now.
    fn left(&self) -> Vec<Left> {
        let mut choices: Vec<Names> = vec![Names::new()];
        let all: BTreeSet<&String> = self.durable.keys().chain(self.recent.keys()).collect();
        for name in all {
            let recent = self.recent.get(name).into_iter().flatten().copied();
            let each: BTreeSet<Option<Number>> =
                recent.chain([self.durable.get(name).copied()]).collect();
            let with = |number: &Option<Number>, names: &Names| {
                let mut names = names.clone();
                names.extend(number.map(|number| (name.clone(), number)));
                names
            };
            choices = each
                .iter()
                .flat_map(|number| choices.iter().map(move |names| with(number, names)))
                .collect();
        }
        let mut left = Vec::new();
        for luck in [Luck::None, Luck::Length, Luck::Half, Luck::All] {
            let bytes: BTreeMap<Number, Vec<u8>> =
                self.files.iter().map(|(number, known)| (*number, known.left(luck))).collect();
            let filled = |(name, number): (&String, &Number)| (name.clone(), bytes[number].clone());
            left.extend(choices.iter().map(|names| Some(names.iter().map(filled).collect())));
        }
        if !self.has_folder {
            left.push(None);
        }
        left
    }
}

/// Makes a folder as it was left.
fn rebuild(folder: &Path, left: &Left) {
    let _ = std::fs::remove_dir_all(folder);
    let Some(files) = left else { return };
    std::fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
    for (name, bytes) in files {
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(folder.join(name));
        file.unwrap().write_all_at(bytes, 0).unwrap();
    }
}

/// Lets the power fail after every call of an operation.
///
/// # Panics
/// If a folder that is left does not open, or has lost what it must have.
pub fn run(base: &Path, case: &str) {
    let case = CASES.iter().find(|known| known.name == case).expect("a case");
    let (store, after) = (base.join("limits"), base.join("after"));
    std::fs::create_dir_all(base).unwrap();
    (case.prepare)(&store);
    let child = fork(|| {
        trace_me();
        stop_here();
        (case.act)(&store);
        stop_here();
        0
    });
    assert_eq!(wait(child), Ended::Stopped(libc::SIGSTOP));
    let (mut disk, mut seen) = (Disk::new(child, &store), HashSet::new());
    let (mut calls, mut over) = (0, false);
    while !over {
        match next_call(child) {
            Some(call) => {
                disk.note(&call);
                calls += 1;
            }
            None => over = true,
        }
        for left in disk.left() {
            let mut hasher = DefaultHasher::new();
            (&left, over).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                rebuild(&after, &left);
                (case.check)(&after, over);
            }
        }
    }
    kill(child);
    assert_eq!(wait(child), Ended::Killed(libc::SIGKILL));
    println!(
        "{}: {calls} calls of the kernel, {} folders left by a loss of power",
        case.name,
        seen.len()
    );
}
