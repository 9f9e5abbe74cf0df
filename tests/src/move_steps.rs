//! A process killed at every instruction of a move of a table to a new shape, while two
//! others charge the old one.
//!
//! A killed process leaves its files and nothing else. So the first round steps one mover
//! through its whole move. After every instruction it compares every byte of every file of the
//! folder, temporary ones included, with what was there before. Each state that differs is kept.
//! Two children charge the old table meanwhile, one hit every [`BETWEEN`] instructions, in
//! turns, while the mover stands still. Afterwards every state is laid out in a folder of its
//! own and opened by the new shape, and by the old one. That is what a kill after each of those
//! instructions would leave.
//!
//! Real kills follow, at the instructions that other processes can see and at some between. Each
//! such round forks two children that charge without end, and a mover. The mover runs until it asks
//! for the rule's lock (or, to save steps, until it is about to rename). Then it is stepped so many
//! instructions, and killed. Then this process opens the new shape.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Error, LimitPatch, Limiter, ManualClock, Target};

use crate::place::{names, open_with};
use crate::shared_words::SharedWords;
use crate::system::{
    Ended, Pid, fork, kill, run_to_call, step, stop_here, trace_me, wait, watchdog,
};

/// What every key may spend.
const LIMIT: usize = 5;
/// What the known key has spent before.
const SPENT: usize = 2;
/// What the key may spend that others charge meanwhile.
const PLENTY: u64 = 100_000_000;
/// Seconds after which a survivor hangs.
const PATIENCE: u32 = 30;
/// Instructions after the last of the move that are part of it.
const BEYOND: u64 = 40;

/// Instructions of the mover between two hits of others in the first round.
const BETWEEN: u64 = 500;

/// The shared words: whether to stop, what was granted, how many hits the first round asked for,
/// and how many of them were answered.
const STOP: usize = 0;
const GRANTED: usize = 1;
const ASKED: usize = 2;
const ANSWERED: usize = 3;

/// What a store's folder holds once it has been opened and no process works in it.
const FILES: [&str; 5] =
    ["changes.log", "changes.log.lock", "default.changes", "default.lock", "default.table"];

fn old_shape() -> Value {
    json!({ "default": { "limits": { "a": "5/min" }, "capacity": 4 } })
}

fn new_shape() -> Value {
    let limits = json!({ "b": { "max": 7, "per": "1h", "algorithm": "window" }, "a": "5/min" });
    json!({ "default": { "limits": limits, "capacity": 6 } })
}

/// A folder with a table of the old shape.
struct Scene {
    folder: PathBuf,
    clock: ManualClock,
    old: Limiter,
    shared: SharedWords,
}

impl Scene {
    fn new(place: &Path) -> Scene {
        let folder = place.join("limits");
        let _ = std::fs::remove_dir_all(&folder);
        let clock = ManualClock::new(Duration::from_secs(86_400 * 45), Duration::from_secs(1));
        let shared = SharedWords::create(&place.join("words"), 4);
        let old = open_in(&folder, &clock, old_shape()).expect("a table of the old shape");
        assert!((0..SPENT).all(|_| old.allow("known").unwrap()));
        old.set_override(Target::key("busy"), vec![("a".into(), LimitPatch::max(PLENTY))]).unwrap();
        assert!(old.allow("busy").unwrap());
        shared.set(GRANTED, 1);
        Scene { folder, clock, old, shared }
    }

    fn open(&self, shape: Value) -> Result<Limiter, Error> {
        open_in(&self.folder, &self.clock, shape)
    }

    fn table(&self) -> PathBuf {
        self.folder.join("default.table")
    }

    fn inode(&self) -> u64 {
        std::fs::metadata(self.table()).expect("a table").ino()
    }

    /// A child that charges the old table without end.
    fn charger(&self) -> Pid {
        fork(|| {
            while self.shared.get(STOP) == 0 {
                if self.old.allow("busy").unwrap() {
                    self.shared.add(GRANTED, 1);
                }
                std::thread::sleep(Duration::from_micros(100));
            }
            0
        })
    }

    /// A child that is about to ask for the lock under which it will move the table.
    fn mover(&self) -> Pid {
        let child = fork(|| {
            trace_me();
            stop_here();
            let moved = self.open(new_shape());
            stop_here();
            i32::from(moved.is_err())
        });
        assert_eq!(wait(child), Ended::Stopped(libc::SIGSTOP));
        let is_lock = |call: i64, arguments: &[u64]| {
            call == libc::SYS_flock && arguments[1] & libc::LOCK_EX as u64 != 0
        };
        assert!(run_to_call(child, is_lock), "the move is done under the rule's lock");
        child
    }

    /// A child that charges the old table once for every second request, of those whose number is
    /// `turn` modulo 2.
    fn charger_in_turn(&self, turn: u64) -> Pid {
        fork(|| {
            while self.shared.get(STOP) == 0 {
                let asked = self.shared.get(ASKED);
                if asked == self.shared.get(ANSWERED) || asked % 2 != turn {
                    std::thread::yield_now();
                    continue;
                }
                assert!(self.old.allow("busy").unwrap());
                self.shared.add(GRANTED, 1);
                self.shared.set(ANSWERED, asked);
            }
            0
        })
    }

    /// Lets the next of the two children charge once.
    fn charge(&self) {
        self.shared.add(ASKED, 1);
        let asked = self.shared.get(ASKED);
        while self.shared.get(ANSWERED) != asked {
            std::thread::yield_now();
        }
    }

    /// Steps a mover through the whole move, and keeps every state that it passes through.
    fn survey(&self) -> Survey {
        let kept = self.folder.with_extension("kept");
        let _ = std::fs::remove_file(&kept);
        std::fs::hard_link(self.table(), &kept).expect("a second name");
        let chargers = [self.charger_in_turn(0), self.charger_in_turn(1)];
        let child = self.mover();
        let mut reader = Reader::new(&self.folder, &kept);
        let state = |reader: &mut Reader, instruction| State {
            instruction,
            files: reader.contents(),
            inode: self.inode(),
            granted: self.shared.get(GRANTED),
        };
        let (mut states, mut seen, mut rename) = (vec![state(&mut reader, 0)], Vec::new(), 0);
        for instruction in 1.. {
            if is_over(child) {
                break;
            }
            let last = states.last().expect("a first one");
            if !reader.finds(&last.files) {
                let now = state(&mut reader, instruction);
                if now.is_seen_in_place_of(last) {
                    seen.push(instruction);
                }
                if now.inode != last.inode {
                    rename = instruction;
                }
                states.push(now);
            }
            if instruction % BETWEEN == 0 {
                self.charge();
                states.push(state(&mut reader, instruction));
            }
        }
        end(child);
        self.shared.set(STOP, 1);
        for charger in chargers {
            assert_eq!(wait(charger), Ended::Left(0));
        }
        std::fs::remove_file(kept).unwrap();
        Survey { seen, rename, states }
    }

    /// Opens what a kill would have left, and checks what each shape finds there.
    fn recover(&self, state: &State, first: &State) {
        let at = format!("left after {} instructions", state.instruction);
        let carried = if state.inode == first.inode {
            state.granted..=state.granted
        } else {
            first.granted..=state.granted
        };
        for shape in [new_shape(), old_shape()] {
            watchdog(PATIENCE);
            let folder = self.folder.with_extension("left");
            state.lay_out(&folder);
            let limiter = open_in(&folder, &self.clock, shape).expect(&at);
            assert_eq!(names(&folder), FILES, "{at}: nothing is left behind");
            let busy = used(&limiter, "busy");
            assert!(carried.contains(&busy), "{at}: {busy} carried, {carried:?} charged");
            assert_eq!(granted(&limiter, "known"), LIMIT - SPENT, "{at}: I1, I2");
            assert_eq!(granted(&limiter, "other"), LIMIT, "{at}: I2, another key");
        }
        watchdog(0);
    }
}

/// The names and bytes of files.
type Files = Vec<(String, Vec<u8>)>;

/// What stands for a name where the old table is meant, whatever name it has.
const OLD: &str = "the old table";

/// Reads a folder again and again, and opens its files only when there are others.
struct Reader<'f> {
    folder: &'f Path,
    old: File,
    open: Vec<(String, File)>,
    buffer: Vec<u8>,
}

impl<'f> Reader<'f> {
    fn new(folder: &'f Path, old: &Path) -> Reader<'f> {
        let old = File::open(old).expect("the old table");
        Reader { folder, old, open: Vec::new(), buffer: Vec::new() }
    }

    /// Every file of the folder, and the old table, which may have no name there.
    fn contents(&mut self) -> Files {
        let open = |name: String| {
            let file = File::open(self.folder.join(&name)).expect("a file of the folder");
            (name, file)
        };
        self.open = names(self.folder).into_iter().map(open).collect();
        self.open.push((OLD.into(), self.old.try_clone().expect("a descriptor")));
        let read = |(name, file): &(String, File)| {
            let mut bytes = vec![0; file.metadata().expect("its length").len() as usize];
            file.read_exact_at(&mut bytes, 0).expect("its bytes");
            (name.clone(), bytes)
        };
        self.open.iter().map(read).collect()
    }

    /// Whether all is as it was when these were the contents. A rename takes a name away, so the
    /// same names are the same files.
    fn finds(&mut self, last: &Files) -> bool {
        let names = names(self.folder);
        let old = &self.open[..self.open.len() - 1];
        if !names.iter().eq(old.iter().map(|(name, _)| name)) {
            return false;
        }
        self.open.iter().zip(last).all(|((_, file), (_, bytes))| {
            self.buffer.resize(bytes.len() + 1, 0);
            let read = file.read_at(&mut self.buffer, 0).expect("its bytes");
            self.buffer[..read] == bytes[..]
        })
    }
}

/// What a kill after an instruction of the mover leaves.
struct State {
    instruction: u64,
    files: Files,
    /// The one that has the table's name.
    inode: u64,
    /// Hits that the others were granted so far.
    granted: u64,
}

impl State {
    /// Whether processes that have the store open can tell this state from `last`. They read no
    /// file with a temporary name, but they may see the name.
    fn is_seen_in_place_of(&self, last: &State) -> bool {
        let names = |state: &State| -> Vec<String> {
            state.files.iter().map(|(name, _)| name.clone()).collect()
        };
        self.inode != last.inode
            || self.files.last() != last.files.last()
            || names(self) != names(last)
    }

    /// Makes a folder with these files.
    fn lay_out(&self, folder: &Path) {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::DirBuilder::new().mode(0o700).create(folder).expect("a folder");
        for (name, bytes) in self.files.iter().filter(|(name, _)| name != OLD) {
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o600);
            let mut file = options.open(folder.join(name)).expect("a file");
            file.write_all(bytes).expect("its bytes");
        }
    }
}

/// Lets a mover run until it is about to rename.
fn run_to_rename(mover: Pid) {
    let is_rename =
        |call: i64, _: &[u64]| [libc::SYS_renameat, libc::SYS_renameat2].contains(&call);
    assert!(run_to_call(mover, is_rename), "the new table gets its name by a rename");
}

/// A move, instruction by instruction.
struct Survey {
    /// The instructions after which other processes see a difference.
    seen: Vec<u64>,
    /// The one that renames.
    rename: u64,
    /// All that the folder went through, in order.
    states: Vec<State>,
}

fn open_in(folder: &Path, clock: &ManualClock, shape: Value) -> Result<Limiter, Error> {
    open_with(folder, shape, Limiter::builder().clock(clock.clock()))
}

/// One instruction. Whether the limiter is there.
fn is_over(child: Pid) -> bool {
    match step(child) {
        Ended::Stopped(libc::SIGTRAP) => false,
        Ended::Stopped(libc::SIGSTOP) => true,
        other => panic!("the mover was {other:?}"),
    }
}

fn end(child: Pid) {
    kill(child);
    assert_eq!(wait(child), Ended::Killed(libc::SIGKILL));
}

fn granted(limiter: &Limiter, key: &str) -> usize {
    (0..4 * LIMIT).filter(|_| limiter.allow(key).unwrap()).count()
}

/// What is used of limit `a`.
fn used(limiter: &Limiter, key: &str) -> u64 {
    let stats = limiter.stats(key).unwrap().expect("a key that is known");
    stats.limits.iter().find(|limit| limit.name == "a").expect("limit a").used
}

/// One round; true if the new table was in place when the mover was killed.
fn kill_after(place: &Path, instructions: u64, rename: u64) -> bool {
    let scene = Scene::new(place);
    let at = format!("killed after {instructions} instructions");
    let before = scene.inode();
    let chargers = [scene.charger(), scene.charger()];
    let mover = scene.mover();
    let charged_before = scene.shared.get(GRANTED);
    let rest = match instructions.checked_sub(rename) {
        Some(after) => {
            run_to_rename(mover);
            after + 1
        }
        None => instructions,
    };
    (0..rest).for_each(|_| assert!(!is_over(mover), "{at}: it was over before"));
    end(mover);
    watchdog(PATIENCE);
    let is_new = scene.inode() != before;
    assert!(scene.old.allow("busy").unwrap(), "{at}: users of the old table go on");
    scene.shared.add(GRANTED, 1);
    let new = scene.open(new_shape()).expect("the folder opens again");
    scene.shared.set(STOP, 1);
    for charger in chargers {
        assert_eq!(wait(charger), Ended::Left(0), "{at}");
    }
    assert_eq!(names(&scene.folder), FILES, "{at}: nothing is left behind");
    let charged = charged_before..=scene.shared.get(GRANTED);
    let carried = used(&new, "busy");
    assert!(charged.contains(&carried), "{at}: {carried} carried, {charged:?} charged");
    // One quota for each version: what was spent before is spent in both.
    assert_eq!(granted(&new, "known"), LIMIT - SPENT, "{at}: I1, I2 in the new table");
    assert_eq!(granted(&scene.old, "known"), LIMIT - SPENT, "{at}: I1, I2 in the old table");
    assert_eq!(granted(&new, "other"), LIMIT, "{at}: I2, another key");
    assert!(scene.old.metrics().unwrap()[0].retired, "{at}: users of the old table learn of it");
    assert!(!new.metrics().unwrap()[0].retired, "{at}");
    let refused = scene.open(old_shape()).expect_err("the new table is in use").to_string();
    assert!(refused.contains("to move it back"), "{at}: {refused}");
    drop(new);
    let back = scene.open(old_shape()).expect("nobody else has it");
    assert_eq!(granted(&back, "known"), 0, "{at}: I1 in the table that was moved back");
    watchdog(0);
    is_new
}

/// Checks what a kill after every single instruction of a move would leave. Then kills movers just
/// before and just after every instruction that changes what others see, and at `most` others all
/// over the move (0: at all of them).
///
/// # Panics
/// If a law is broken.
pub fn run(place: &Path, most: u64) {
    let scene = Scene::new(place);
    let Survey { seen, rename, states } = scene.survey();
    assert!(seen.len() >= 3 && rename > 0, "a temporary name, a rename, a word: {seen:?}");
    states.iter().for_each(|state| scene.recover(state, &states[0]));
    let charged = states[states.len() - 1].granted - states[0].granted;
    let last = seen[seen.len() - 1] + BEYOND;
    let every = if most == 0 { 1 } else { last.div_ceil(most) };
    let all_over = (0..=last).step_by(every as usize);
    let near = seen.iter().flat_map(|&at| [at - 1, at, at + 1]);
    let kills: BTreeSet<u64> = all_over.chain(near).collect();
    let new = kills.iter().filter(|&&after| kill_after(place, after, rename)).count();
    assert!(new > 0 && new < kills.len(), "some before the rename, and some after it");
    println!(
        "move: {last} instructions, which leave {} states, {charged} hits of others among them, \
         all recovered; {} seen by others; {} kills, {new} after the rename",
        states.len(),
        seen.len(),
        kills.len()
    );
}
