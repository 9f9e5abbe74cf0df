//! One of two processes, each from a language of its own, that share a folder of tables.
//!
//! `ffi-c/tests/c/share.c` is the same in C, line by line. Each waits for the other at a count of
//! the rule `meet`, so the tables are the only connection between them.

use std::path::Path;
use std::time::{Duration, Instant};

use tidegate::{Limiter, Match, Rule};

/// Hits of each process on the hot key of each rule: more than half of what the rules allow.
const HITS: usize = 60_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until so many have come to a meeting.
fn await_others(meet: &Rule, at: &str, count: u64) {
    let started = Instant::now();
    while meet.peek(at, 0).unwrap().remaining != Some(2 - count) {
        assert!(started.elapsed() < PATIENCE, "I8: nobody comes to {at:?}");
        std::thread::yield_now();
    }
}

/// Hammers the rules of a policy file, says what was granted, and sees what the other changes.
///
/// # Panics
/// If the two don't agree.
pub fn run(policy: &Path) {
    let limiter = Limiter::from_file(policy).expect("a limiter");
    let meet = limiter.rule("meet").unwrap();
    assert!(meet.allow("start").unwrap());
    await_others(&meet, "start", 2);
    for name in ["bucket", "window", "counter", "fixed", "several"] {
        let rule = limiter.rule(name).unwrap();
        let granted = (0..HITS).filter(|_| rule.allow("hot").unwrap()).count();
        println!("{name} {granted}");
    }
    // The other lowers a limit, and this process sees it at once; then the other way round.
    let rule = limiter.rule("bucket").unwrap();
    assert_eq!(rule.peek("vip", 0).unwrap().limit, Some(50_000));
    assert!(meet.allow("looked").unwrap());
    await_others(&meet, "lowered", 1);
    assert_eq!(rule.hit("vip", 1).unwrap().limit, Some(7));
    rule.add_exempt(Match::new([("key", "guest")])).unwrap();
    assert!(meet.allow("exempted").unwrap());
}
