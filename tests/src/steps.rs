//! A process killed at every instruction of an operation, and what it leaves to the others.
//!
//! A first round finds the instructions that change the file. Between two of them it makes no
//! difference where the process dies. Each further round puts the file back as it was and forks a
//! child that stops just before the operation. It steps the child so many instructions and kills
//! it. Then this process, which has the same file mapped, does every operation. The clock is moved
//! by hand, so that all rounds see the same time.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate::{Limiter, ManualClock, Rule};

use crate::place::open_with;
use crate::system::{Ended, Pid, fork, kill, step, stop_here, trace_me, wait, watchdog};

/// What every key may spend.
const LIMIT: usize = 5;
/// What the known key has spent before.
const SPENT: usize = 2;
/// Seconds after which a survivor hangs.
const PATIENCE: u32 = 20;

/// An operation that is stepped through.
struct Operation {
    name: &'static str,
    limits: &'static str,
    /// The table is full of idle keys.
    is_full: bool,
    /// How many units it spends if it is done; below 0, gives back.
    spends: isize,
    act: fn(&Rule),
}

const OPERATIONS: [Operation; 9] = [
    Operation { name: "bucket-hit", limits: "5/min", is_full: false, spends: 1, act: hit_known },
    Operation { name: "bucket-insert", limits: "5/min", is_full: false, spends: 1, act: hit_new },
    Operation { name: "bucket-give-way", limits: "5/min", is_full: true, spends: 1, act: hit_new },
    Operation {
        name: "window-hit",
        limits: "5/min window",
        is_full: false,
        spends: 1,
        act: hit_known,
    },
    Operation {
        name: "window-give-way",
        limits: "5/min window",
        is_full: true,
        spends: 1,
        act: hit_new,
    },
    Operation {
        name: "window-refund",
        limits: "5/min window",
        is_full: false,
        spends: -1,
        act: refund_known,
    },
    Operation {
        name: "several-hit",
        limits: "5/min, 5/h window, 5/d fixed, 5/40d counter",
        is_full: false,
        spends: 2,
        act: hit_twice_known,
    },
    Operation {
        name: "fixed-give-way",
        limits: "5/min fixed",
        is_full: true,
        spends: 1,
        act: hit_new,
    },
    Operation {
        name: "counter-hit",
        limits: "5/min counter",
        is_full: false,
        spends: 1,
        act: hit_known,
    },
];

/// The names of all operations.
pub fn names() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().map(|operation| operation.name)
}

fn hit_known(rule: &Rule) {
    let _ = rule.allow("known");
}

fn hit_twice_known(rule: &Rule) {
    let _ = rule.hit("known", 2);
}

fn hit_new(rule: &Rule) {
    let _ = rule.allow("new");
}

fn refund_known(rule: &Rule) {
    let _ = rule.refund("known", 1);
}

/// A table, and how it was before the operation.
struct Scene {
    operation: &'static Operation,
    limiter: Limiter,
    rule: Rule,
    file: File,
    image: Vec<u8>,
    /// Keys that have a row in a full table.
    idle: Vec<String>,
}

impl Scene {
    fn new(folder: &Path, operation: &'static Operation) -> Scene {
        let clock = ManualClock::new(Duration::from_secs(86_400 * 45), Duration::from_secs(1));
        let options = Limiter::builder().clock(clock.clock());
        let rule =
            json!({ "limits": operation.limits, "capacity": 4, "on_full": "deny", "key": "k" });
        let limiter = open_with(folder, json!({ "default": rule }), options).expect("a limiter");
        let rule = limiter.rule("default").unwrap();
        let mut idle = Vec::new();
        if operation.is_full {
            let keys = (0..64).map(|key| format!("idle-{key}"));
            idle.extend(keys.filter(|key| rule.allow(key.as_str()).unwrap()));
            assert!(idle.len() >= 4 && idle.len() < 64);
            clock.advance(Duration::from_secs(120));
        } else {
            assert!((0..SPENT).all(|_| rule.allow("known").unwrap()));
        }
        let path = folder.join("default.table");
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let image = std::fs::read(&path).unwrap();
        Scene { operation, limiter, rule, file, image, idle }
    }

    /// A child that stands before the operation, on a file as it was.
    fn start(&self) -> Pid {
        self.file.write_all_at(&self.image, 0).expect("the image");
        let child = fork(|| {
            trace_me();
            stop_here();
            (self.operation.act)(&self.rule);
            stop_here();
            0
        });
        assert_eq!(wait(child), Ended::Stopped(libc::SIGSTOP));
        child
    }

    /// One instruction of the operation. True if it is over.
    fn step(&self, child: Pid) -> bool {
        match step(child) {
            Ended::Stopped(libc::SIGTRAP) => false,
            Ended::Stopped(libc::SIGSTOP) => true,
            other => panic!("{}: the child was {other:?}", self.operation.name),
        }
    }

    fn end(&self, child: Pid) {
        kill(child);
        assert_eq!(wait(child), Ended::Killed(libc::SIGKILL));
    }

    /// How many instructions the operation has, and after which of them the file is another.
    fn survey(&self) -> (u64, Vec<u64>) {
        let (child, mut last) = (self.start(), self.image.clone());
        let (mut instructions, mut changes) = (0, Vec::new());
        let mut now = last.clone();
        while !self.step(child) {
            instructions += 1;
            self.file.read_exact_at(&mut now, 0).expect("the file");
            if now != last {
                changes.push(instructions);
                last.copy_from_slice(&now);
            }
        }
        self.end(child);
        (instructions, changes)
    }

    /// Kills a child after so many instructions of the operation. True if it was over by then.
    fn kill_after(&self, instructions: u64) -> bool {
        let child = self.start();
        let over = (0..instructions).any(|_| self.step(child));
        self.end(child);
        over
    }

    fn granted(&self, key: &str) -> usize {
        (0..4 * LIMIT).filter(|_| self.rule.allow(key).unwrap()).count()
    }

    /// Everything that survivors may want. I8: it comes to an end.
    fn survive(&self, instructions: u64, over: bool) {
        watchdog(PATIENCE);
        let at = format!("{} killed after {instructions} instructions", self.operation.name);
        for key in ["known", "new", "other"] {
            let _ = self.rule.peek(key, 1).unwrap();
            self.rule.stats(key).unwrap();
            self.rule.is_limited(key).unwrap();
        }
        if self.operation.is_full {
            self.check_full(&at, over)
        } else {
            self.check(&at, over)
        }
        self.rule.refund("known", 1).unwrap();
        self.rule.record("known", 1).unwrap();
        self.rule.prune().unwrap();
        self.rule.reset_all().unwrap();
        assert_eq!(self.rule.len().unwrap(), 0, "{at}: reset_all empties the table");
        for key in ["known", "new"] {
            assert_eq!(self.granted(key), LIMIT, "{at}: I2, {key} after a reset of all");
        }
        self.rule.reset("known").unwrap();
        assert_eq!(self.granted("known"), LIMIT, "{at}: I2 after a reset");
        self.limiter.metrics().unwrap();
        watchdog(0);
    }

    /// I1 and I2: the killed hit may be spent or not; nothing else is lost or won.
    fn check(&self, at: &str, over: bool) {
        let spends = self.operation.spends;
        let (spent, left) = match self.operation.name.ends_with("insert") {
            true => (self.granted("new") as isize, LIMIT as isize),
            false => (self.granted("known") as isize, (LIMIT - SPENT) as isize),
        };
        let after = left - spends;
        let range = if over { after..=after } else { left.min(after)..=left.max(after) };
        assert!(range.contains(&spent), "{at}: I1, I2: {spent} granted, {range:?} due");
        assert_eq!(self.granted("other"), LIMIT, "{at}: I2, another key");
    }

    /// The same for a table whose rows were all idle: each row serves one key, and serves it whole.
    fn check_full(&self, at: &str, over: bool) {
        let new = self.granted("new");
        let least = LIMIT - 1;
        assert!((least..=LIMIT).contains(&new), "{at}: I1, I2: {new} granted");
        assert!(!over || new == least, "{at}: I1: the hit was granted, and {new} more");
        let old: Vec<usize> = self.idle.iter().map(|key| self.granted(key)).collect();
        assert!(old.iter().all(|&n| n == 0 || n == LIMIT), "{at}: I10: {old:?}");
        let served = old.iter().filter(|&&granted| granted > 0).count();
        assert_eq!(served + 1, self.idle.len(), "{at}: no row is lost, and none serves two keys");
    }
}

/// Kills children at every instruction that changes the file, just before it and just after it, and
/// at `most` others all over the operation (0: at all of them).
///
/// # Panics
/// If a law is broken.
pub fn run(folder: &Path, operation: &str, most: u64) {
    let operation = OPERATIONS.iter().find(|known| known.name == operation);
    let scene = Scene::new(folder, operation.expect("an operation"));
    let (instructions, changes) = scene.survey();
    let every = if most == 0 { 1 } else { instructions.div_ceil(most) };
    let all_over = (0..=instructions + 1).step_by(every as usize);
    let near = changes.iter().flat_map(|&at| [at - 1, at, at + 1]);
    let kills: BTreeSet<u64> = all_over.chain(near).chain([instructions + 1]).collect();
    for &after in &kills {
        let over = scene.kill_after(after);
        scene.survive(after, over);
    }
    let (name, kills, changes) = (scene.operation.name, kills.len(), changes.len());
    println!("{name}: {instructions} instructions, {changes} changes of the file, {kills} kills");
}
