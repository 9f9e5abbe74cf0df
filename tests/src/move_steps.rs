//! A process killed at every instruction of a move of a table to a new shape, while two others charge the
//! old one.
//!
//! A first round, without the others, finds the instructions of the move after which the folder, or the
//! old table, is another. Between two of them it makes no difference where the process dies, since nobody
//! reads what has a temporary name. Each further round makes a table of the old shape, forks two children that
//! charge it without end, and one that opens it by the new shape. That one is let run until it asks for the
//! rule's lock (or, to save steps, until it is about to rename), stepped so many instructions, and killed.
//! Then this process opens the new shape.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Error, LimitPatch, Limiter, ManualClock, Options, Target};

use crate::board::Board;
use crate::place::{names, open_with};
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

/// Words of the board: whether to stop, and what was granted.
const STOP: usize = 0;
const GRANTED: usize = 1;

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
    board: Board,
}

impl Scene {
    fn new(place: &Path) -> Scene {
        let folder = place.join("limits");
        let _ = std::fs::remove_dir_all(&folder);
        let clock = ManualClock::new(Duration::from_secs(86_400 * 45), Duration::from_secs(1));
        let board = Board::create(&place.join("board"), 2);
        let old = open_in(&folder, &clock, old_shape()).expect("a table of the old shape");
        assert!((0..SPENT).all(|_| old.allow("known").unwrap()));
        old.set_override(Target::key("busy"), vec![("a".into(), LimitPatch::max(PLENTY))]).unwrap();
        assert!(old.allow("busy").unwrap());
        board.set(GRANTED, 1);
        Scene { folder, clock, old, board }
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
            while self.board.get(STOP) == 0 {
                if self.old.allow("busy").unwrap() {
                    self.board.add(GRANTED, 1);
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

    /// What others may see of the move.
    fn seen(&self, old: &Path) -> (Vec<String>, u64, Vec<u8>) {
        (names(&self.folder), self.inode(), std::fs::read(old).expect("the old table"))
    }

    /// After which instructions something is another for others.
    fn survey(&self) -> Survey {
        let kept = self.folder.with_extension("kept");
        let _ = std::fs::remove_file(&kept);
        std::fs::hard_link(self.table(), &kept).expect("a second name");
        let (child, mut changes, mut last) = (self.mover(), Vec::new(), self.seen(&kept));
        let mut rename = 0;
        for instruction in 1.. {
            if is_over(child) {
                break;
            }
            let now = self.seen(&kept);
            if now != last {
                rename = if now.1 == last.1 { rename } else { instruction };
                changes.push(instruction);
                last = now;
            }
        }
        end(child);
        std::fs::remove_file(kept).unwrap();
        Survey { changes, rename }
    }
}

/// Lets a mover run until it is about to rename.
fn run_to_rename(mover: Pid) {
    let is_rename =
        |call: i64, _: &[u64]| [libc::SYS_renameat, libc::SYS_renameat2].contains(&call);
    assert!(run_to_call(mover, is_rename), "the new table gets its name by a rename");
}

/// The instructions of a move after which something is another for others.
struct Survey {
    changes: Vec<u64>,
    /// The one that renames.
    rename: u64,
}

fn open_in(folder: &Path, clock: &ManualClock, shape: Value) -> Result<Limiter, Error> {
    open_with(folder, shape, Options { clock: clock.clock(), ..Options::default() })
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
    let charged_before = scene.board.get(GRANTED);
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
    scene.board.add(GRANTED, 1);
    let new = scene.open(new_shape()).expect("the folder opens again");
    scene.board.set(STOP, 1);
    for charger in chargers {
        assert_eq!(wait(charger), Ended::Left(0), "{at}");
    }
    let files =
        ["changes.log", "changes.log.lock", "default.changes", "default.lock", "default.table"];
    assert_eq!(names(&scene.folder), files, "{at}: nothing is left behind");
    let charged = charged_before..=scene.board.get(GRANTED);
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

/// Kills movers just before and just after every instruction that changes what others see, and at `most`
/// others all over the move (0: at all of them).
///
/// # Panics
/// If a law is broken.
pub fn run(place: &Path, most: u64) {
    let Survey { changes, rename } = Scene::new(place).survey();
    assert!(changes.len() >= 3 && rename > 0, "a temporary name, a rename, a word: {changes:?}");
    let last = changes[changes.len() - 1] + BEYOND;
    let every = if most == 0 { 1 } else { last.div_ceil(most) };
    let all_over = (0..=last).step_by(every as usize);
    let near = changes.iter().flat_map(|&at| [at - 1, at, at + 1]);
    let kills: BTreeSet<u64> = all_over.chain(near).collect();
    let new = kills.iter().filter(|&&after| kill_after(place, after, rename)).count();
    assert!(new > 0 && new < kills.len(), "some before the rename, and some after it");
    println!(
        "move: {last} instructions, {} of them seen by others, {} kills, {new} after the rename",
        changes.len(),
        kills.len()
    );
}
