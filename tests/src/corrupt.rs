//! Tables with damaged words: whatever they say, nothing crashes, hangs, or is made anew, and no
//! key gets more than its limit from then on (I1).

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::{Limiter, Rule};

use crate::place::open_with;
use crate::random::Random;
use crate::system::{Ended, fork, wait_within, watchdog};

/// Seconds after which a case hangs.
const PATIENCE: u32 = 10;
/// Where tables begin: after the header and the text of the shape.
const BODY: u64 = 4096;

/// Every kind of state.
const LIMITS: [&str; 9] = [
    "5/min",
    "2000000/min",
    "5/ms",
    "5/min window",
    "5/min window, 7/h window",
    "5/min counter",
    "5/min fixed",
    "3 concurrent lease 1min",
    "5/min, 6/h window, 9/h fixed, 9/d counter",
];

fn rule(limits: &str, on_full: &str) -> Value {
    json!({
        "default": {
            "limits": limits, "capacity": 12, "on_full": on_full, "cooldown": "1ms",
            "backoff": { "steps": ["1ms", "2ms"], "quiet": "1min", "enforce": true },
            "alert": { "violations": 3, "within": "1min" }, "budget": { "daily": 1000 },
        }
    })
}

/// All that may be done, on keys that are there and keys that are not.
fn use_all(limiter: &Limiter, random: &mut Random) {
    let rule = limiter.rule("default").unwrap();
    for _ in 0..200 {
        let key = format!("key-{}", random.below(30));
        use_one(&rule, &key, random.below(15), 1 + random.below(3));
    }
    limiter.metrics().unwrap();
    rule.prune().unwrap();
    rule.reset_all().unwrap();
    rule.len().unwrap();
    for key in 0..30 {
        use_one(&rule, &format!("key-{key}"), 0, 1);
    }
}

/// I1: no key gets more at once than its limit and what flows in meanwhile.
fn check_bound(rule: &Rule, limits: &str) {
    for key in 0..30 {
        let (key, started) = (format!("key-{key}"), Instant::now());
        if limits.contains("concurrent") {
            let permits: Vec<_> = (0..12).map(|_| rule.permit(key.as_str()).unwrap()).collect();
            let held = permits.iter().filter(|permit| permit.is_held()).count();
            assert!(held <= 3, "I1: {held} permits of {limits}");
        } else if limits.starts_with("5/min") {
            let granted = (0..20).filter(|_| rule.allow(key.as_str()).unwrap()).count();
            let due = 5 + started.elapsed().as_secs() / 12;
            assert!(granted as u64 <= due, "I1: {granted} of {limits}, {due} due");
        }
    }
}

/// One operation. Errors are answers too: costs that never fit, keys that hold no permit.
fn use_one(rule: &Rule, key: &str, which: u64, cost: u64) {
    match which {
        0 | 1 => drop(rule.allow(key)),
        2 | 3 => drop(rule.hit(key, cost)),
        4 => drop(rule.peek(key, cost)),
        5 => drop(rule.record(key, cost)),
        6 => drop(rule.refund(key, cost)),
        7 => drop(rule.stats(key)),
        8 => drop(rule.is_limited(key)),
        9 => drop(rule.spend(key, cost)),
        10 => drop(rule.reset(key)),
        11 => drop(rule.reserve(key, cost).map(drop)),
        12 => drop(rule.permit(key).map(drop)),
        13 => drop(rule.allow_many(&[key, "key-1", "key-2"])),
        _ => drop(rule.prune()),
    }
}

/// A word that no program wrote: edges, noise, or one that was right but for some bits.
fn damage(word: u64, random: &mut Random) -> u64 {
    match random.below(8) {
        0 => u64::MAX,
        1 => 0,
        2 => u64::MAX << random.below(64),
        3 => u64::MAX >> random.below(64),
        4 => word ^ 1 << random.below(64),
        5 => word.wrapping_add(random.below(5)).wrapping_sub(2),
        6 => u64::MAX - random.below(20),
        _ => random.any(),
    }
}

/// Damages so many tables, by a seed, and uses each.
///
/// # Panics
/// If one crashes, hangs, grants too much or is made anew.
pub fn run(base: &Path, cases: u64, seed: u64) {
    let mut failures = Vec::new();
    for case in 0..cases {
        let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let limits = LIMITS[case as usize % LIMITS.len()];
        let on_full = ["overflow", "deny", "allow"][random.below(3) as usize];
        let folder = base.join(format!("case-{case}"));
        let open = || open_with(&folder, rule(limits, on_full), Limiter::builder());
        let limiter = open().expect("a limiter");
        for key in 0..random.below(20) {
            (0..3).for_each(|_| {
                use_one(&limiter.rule("default").unwrap(), &format!("key-{key}"), 3, 1)
            });
        }
        let path = folder.join("default.table");
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let before = file.metadata().unwrap();
        let words = (before.len() - BODY) / 8;
        // Some while the table is open, some before it is.
        let opened = (random.below(2) == 0).then_some(limiter);
        for _ in 0..1 + random.below(words) {
            let at = BODY + 8 * random.below(words);
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).unwrap();
            let damaged = damage(u64::from_ne_bytes(bytes), &mut random);
            file.write_all_at(&damaged.to_ne_bytes(), at).unwrap();
        }
        let child = fork(|| {
            watchdog(PATIENCE);
            let limiter = opened.map_or_else(open, Ok).expect("a damaged body opens");
            // Keys that share a row, or need none, are outside of I1.
            if on_full == "deny" {
                check_bound(&limiter.rule("default").unwrap(), limits);
            }
            use_all(&limiter, &mut random);
            0
        });
        let patience = Duration::from_secs(2 * u64::from(PATIENCE));
        let ended = wait_within(child, patience);
        if ended != Some(Ended::Left(0)) {
            failures.push(format!("seed {seed}, case {case} ({limits}): {ended:?}"));
        }
        let after = std::fs::metadata(&path).expect("the table is still there");
        assert_eq!((after.ino(), after.len()), (before.ino(), before.len()), "not made anew");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    assert!(failures.is_empty(), "{} of {cases}: {failures:#?}", failures.len());
    println!(
        "seed {seed}: {cases} damaged tables, none crashed, hung, granted too much or was made anew"
    );
}
