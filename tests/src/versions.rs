//! One of several processes that judge the keys of one folder by different versions of a policy.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate::{Limiter, ManualClock};

use crate::place::open_with;

/// A limiter of one version, at a moment of a clock that is moved by hand.
///
/// # Panics
/// If it can't be had.
pub fn at(folder: &Path, limits: &str, seconds: u64) -> Limiter {
    let clock = ManualClock::new(Duration::from_secs(seconds), Duration::ZERO).clock();
    let rules = json!({ "default": { "limits": { "l": limits }, "capacity": 16 } });
    open_with(folder, rules, Limiter::builder().clock(clock)).expect("a limiter")
}

/// What a key still gets.
///
/// # Panics
/// If the limiter fails.
pub fn granted(limiter: &Limiter, key: &str) -> usize {
    (0..20).filter(|_| limiter.allow(key).unwrap()).count()
}

/// Evicts what it may, by a prune and then by more new keys than there is room for. Says how many
/// rows the prune freed: a key that lost its own row shares one with the flood, and is denied too.
///
/// # Panics
/// If the limiter fails.
pub fn flood(folder: &Path, limits: &str, seconds: u64) {
    let limiter = at(folder, limits, seconds);
    println!("{}", limiter.prune().unwrap());
    for number in 0..500 {
        let _ = limiter.allow(format!("flood-{number}").as_str()).unwrap();
    }
}
