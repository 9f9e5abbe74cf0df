//! Many processes on one hot key and on many keys, with limits that give nothing back meanwhile.

use std::path::Path;

use serde_json::{Value, json};

use crate::place::open;
use crate::random::Random;
use crate::shared_words::SharedWords;

/// Processes at once.
pub const WORKERS: usize = 8;
/// Keys of the second rule.
pub const KEYS: usize = 10_000;
/// What the hot key may spend in a year.
pub const HOT: u64 = 1_000;
/// What each of the many keys may spend in a year.
pub const EACH: u64 = 20;
/// Hits of each worker on the hot key.
pub const HOT_HITS: usize = 25_000;
/// Hits of each worker on each of the many keys.
pub const ROUNDS: usize = 4;

/// The shared words.
pub mod at {
    /// Set to 1 for all to start at once.
    pub const GO: usize = 0;
    /// Grants to the hot key.
    pub const HOT: usize = 1;
    /// Grants to each of the many keys.
    pub const KEYS: usize = 2;
}

/// The two rules of an algorithm. A year refills the hot key by one token in nine hours.
pub fn rules(algorithm: &str) -> Value {
    json!({
        "hot": { "limits": format!("{HOT}/365d {algorithm}"), "capacity": 16 },
        "many": { "limits": format!("{EACH}/365d {algorithm}"), "capacity": KEYS },
    })
}

/// Hits, and notes what was granted.
///
/// # Panics
/// If a hit is no decision.
pub fn work(folder: &Path, shared: &Path, worker: usize, algorithm: &str) {
    let shared = SharedWords::open(shared);
    shared.await_start(at::GO);
    let limiter = open(folder, rules(algorithm));
    let (hot, many) = (limiter.rule("hot").unwrap(), limiter.rule("many").unwrap());
    let granted = (0..HOT_HITS).filter(|_| hot.allow("hot").unwrap()).count();
    shared.add(at::HOT, granted as u64);
    let mut random = Random::new(worker as u64);
    let mut keys: Vec<_> = (0..KEYS).map(|key| (key, format!("key-{key}"))).collect();
    for _ in 0..ROUNDS {
        random.shuffle(&mut keys);
        for (key, name) in &keys {
            shared.add(at::KEYS + key, u64::from(many.allow(name.as_str()).unwrap()));
        }
    }
}
