//! Processes that are killed at any moment, and what the others must still get.
//!
//! A worker notes in the shared words what it is about to do, does it, notes the outcome, and
//! clears the first note. A worker that is killed in between may have spent. The test allows for
//! that, and counts everything else exactly.

use std::path::Path;

use serde_json::{Value, json};
use tidegate::{Limiter, Rule};

use crate::place::open;
use crate::random::Random;
use crate::shared_words::SharedWords;

/// Processes at once.
pub const WORKERS: usize = 8;
/// Keys that are hit in one era.
pub const ERA: usize = 32;
/// What each key may spend in a year.
pub const LIMIT: u64 = 40;
/// What a key of the rule `given` may spend.
pub const GIVEN: usize = 5;
/// The rules whose keys are counted.
pub const COUNTED: [&str; 5] = ["bucket", "window", "counter", "fixed", "several"];

/// The shared words.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Eras.
    pub eras: usize,
}

impl Layout {
    /// Set to 1 to end all workers.
    pub const STOP: usize = 0;
    /// The era.
    pub const NOW: usize = 1;
    /// How many eras there are.
    pub const ERAS: usize = 2;
    const WORKERS: usize = 8;
    const GRANTS: usize = Layout::WORKERS + 4 * WORKERS;

    /// What a worker is about to hit: 0, or one more than the number of a grant's word.
    pub fn intent(worker: usize) -> usize {
        Layout::WORKERS + 4 * worker
    }
    /// The number of the worker's own key in `given`.
    pub fn serial(worker: usize) -> usize {
        Layout::intent(worker) + 1
    }
    /// Operations that a worker has finished.
    pub fn done(worker: usize) -> usize {
        Layout::intent(worker) + 2
    }
    /// Keys of a rule.
    pub fn keys(self) -> usize {
        self.eras * ERA
    }
    /// Grants to a key of a rule.
    pub fn grants(self, rule: usize, key: usize) -> usize {
        Layout::GRANTS + rule * self.keys() + key
    }
    /// All words.
    pub fn words(self) -> usize {
        self.grants(COUNTED.len(), 0)
    }
}

/// The rules: five that give nothing back, one whose rows are reset and given to other keys all the
/// time, one whose rows are idle again after some milliseconds.
pub fn rules(eras: usize) -> Value {
    let capacity = eras * ERA;
    let counted = |limits: String| json!({ "limits": limits, "capacity": capacity });
    json!({
        "bucket": counted(format!("{LIMIT}/365d")),
        "window": counted(format!("{LIMIT}/365d window")),
        "counter": counted(format!("{LIMIT}/365d counter")),
        "fixed": counted(format!("{LIMIT}/365d fixed")),
        "several": counted(format!(
            "{LIMIT}/365d, {}/364d window, {}/363d fixed",
            LIMIT + 3,
            LIMIT + 5
        )),
        "given": { "limits": "5/365d, 9/364d window", "capacity": 6, "on_full": "deny" },
        "churn": { "limits": "3/5ms, 3/6ms window", "capacity": 6, "cooldown": "5ms" },
    })
}

/// A worker's own key.
pub fn own_key(worker: usize, serial: u64) -> String {
    format!("own-{worker}-{serial}")
}

struct Worker {
    number: usize,
    layout: Layout,
    shared: SharedWords,
    random: Random,
    counted: Vec<Rule>,
    given: Rule,
    churn: Rule,
}

impl Worker {
    fn new(limiter: &Limiter, shared: SharedWords, number: usize) -> Worker {
        let layout = Layout { eras: shared.get(Layout::ERAS) as usize };
        let rule = |name: &str| limiter.rule(name).unwrap();
        let counted = COUNTED.iter().map(|name| rule(name)).collect();
        let random = Random::new(number as u64 ^ u64::from(std::process::id()) << 32);
        Worker {
            number,
            layout,
            shared,
            random,
            counted,
            given: rule("given"),
            churn: rule("churn"),
        }
    }

    /// A hit that is counted, whatever becomes of this process.
    fn hit(&mut self) {
        let rule = self.random.below(COUNTED.len() as u64) as usize;
        let era = self.shared.get(Layout::NOW) as usize;
        let key = era * ERA + self.random.below(ERA as u64) as usize;
        let grants = self.layout.grants(rule, key);
        self.shared.set(Layout::intent(self.number), grants as u64 + 1);
        if self.counted[rule].allow(format!("key-{key}").as_str()).unwrap() {
            self.shared.add(grants, 1);
        }
        self.shared.set(Layout::intent(self.number), 0);
    }

    /// A key of one's own gets a row, all of its limit in it, and gives the row back.
    fn own(&mut self) {
        let serial = self.shared.add(Layout::serial(self.number), 1) + 1;
        let key = own_key(self.number, serial);
        let granted = (0..GIVEN + 2).filter(|_| self.given.allow(key.as_str()).unwrap()).count();
        // Lost races may make a table look full, but a key with a row keeps it.
        let first = |n: usize| n == GIVEN || n < GIVEN && n > 0;
        assert!(granted == 0 || first(granted), "I1, I10: {granted} granted to {key}");
        self.given.reset(key.as_str()).unwrap();
        assert!(!self.given.is_limited(key.as_str()).unwrap(), "{key} after a reset");
    }

    /// Rows that come and go by time, and all that may be done to them.
    fn churn(&mut self) {
        let key = format!("churn-{}", self.random.below(40));
        let (rule, key) = (&self.churn, key.as_str());
        match self.random.below(8) {
            0 => rule.refund(key, 1).unwrap(),
            1 => drop(rule.record(key, 1).unwrap()),
            2 => rule.reset(key).unwrap(),
            3 => drop(rule.peek(key, 1).unwrap()),
            4 => drop(rule.prune().unwrap()),
            _ => drop(rule.hit(key, 1).unwrap()),
        }
    }
}

/// Works until it is asked to stop, or killed.
///
/// # Panics
/// If a law is broken.
pub fn work(folder: &Path, shared: &Path, number: usize) {
    let shared = SharedWords::open(shared);
    let limiter = open(folder, rules(shared.get(Layout::ERAS) as usize));
    let mut worker = Worker::new(&limiter, shared, number);
    while worker.shared.get(Layout::STOP) == 0 {
        match worker.random.below(8) {
            0 => worker.own(),
            1 => worker.churn(),
            _ => worker.hit(),
        }
        worker.shared.add(Layout::done(number), 1);
    }
}
