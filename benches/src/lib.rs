//! What the benches share: keys, quotas, the engine as a contender, and the floor under it.

mod floor;
mod others;
mod table;

use std::time::Duration;

pub use floor::{BatchFloor, DenyFloor, Exact, Floor, Reads, Tick};
pub use others::{Governor, LeakyBucket, MutexMap, Ratelimit, Throttlecrab, governor_with};
pub use table::{Row, Work, measure, print};
use tidegate_core::{Clock, Engine, Limit, Limits, Options};

/// The middle of some times.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The shortest of some times.
pub fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Some times as a table shows them: their median, with the minimum in brackets.
pub fn cell(times: &[f64]) -> String {
    format!("{:.1} ({:.1})", median(times.to_vec()), least(times))
}

/// The least room that a table is given: what the engine has by default.
pub const CAPACITY: usize = 65_536;

/// How many keys go into one call of a batch.
pub const BATCH: usize = 32;

/// Something that says yes or no to a key.
pub trait Limiter: Sync {
    /// Yes or no.
    #[expect(clippy::ptr_arg, reason = "governor looks up by its own type of key")]
    fn allow(&self, key: &String) -> bool;

    /// How many of the calls were allowed. Compiled for each contender, so that what is timed has
    /// no indirect call in it.
    fn run(&self, keys: &[String]) -> usize {
        keys.iter().filter(|key| self.allow(key)).count()
    }
}

/// What every contender is set up to allow each key.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Tokens for each `per`.
    pub max: u32,
    /// The period.
    pub per: Duration,
    /// The most that can be saved up.
    pub burst: u32,
    /// Whether half of the burst is spent before the clock starts.
    pub half_spent: bool,
}

impl Quota {
    /// Deep and half spent: each hit reads the line of its bucket and lowers it, as most hits do,
    /// and none is denied however hot the key.
    pub const USUAL: Quota = Quota {
        max: 1_000_000_000,
        per: Duration::from_secs(60),
        burst: 1_000_000_000,
        half_spent: true,
    };
    /// So wide that each hit finds the bucket full again and starts a new line.
    pub const WIDE: Quota = Quota {
        max: 1_000_000_000,
        per: Duration::from_secs(1),
        burst: 1_000_000_000,
        half_spent: false,
    };
    /// All but the first hit are denied.
    pub const SPENT: Quota =
        Quota { max: 1, per: Duration::from_secs(3600), burst: 1, half_spent: false };

    /// The same for the engine.
    pub fn limits(&self) -> Limits {
        let limit = Limit::bucket(self.max.into(), self.per).burst(self.burst.into());
        Limits::new(&[limit]).expect("the quotas above fit a word")
    }
}

/// An engine with room for `capacity` keys.
pub fn engine(limits: Limits, capacity: usize, clock: Clock) -> Engine {
    let options = Options { capacity, clock, ..Options::default() };
    Engine::new(limits, options).expect("memory for a bench")
}

/// The engine, asked one key at a time.
pub struct Tidegate(pub Engine);

impl Tidegate {
    /// Over a bucket, with room for `capacity` keys.
    pub fn new(quota: Quota, capacity: usize) -> Tidegate {
        Tidegate(engine(quota.limits(), capacity, Clock::System))
    }

    /// Spends half of the burst of each key, where the quota says so, and waits for the next tick:
    /// a second for quotas that are as wide as these.
    pub fn prepare(&self, quota: Quota, keys: &[String]) {
        if !quota.half_spent {
            return;
        }
        for key in keys {
            self.0.record(key.as_bytes(), u64::from(quota.burst) / 2);
        }
        std::thread::sleep(Duration::from_millis(1_100));
    }
}

impl Limiter for Tidegate {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        self.0.allow(key.as_bytes())
    }
}

/// The engine, asked [`BATCH`] keys at a time.
pub struct BatchTidegate(pub Tidegate);

impl Limiter for BatchTidegate {
    fn allow(&self, key: &String) -> bool {
        self.0.allow(key)
    }

    fn run(&self, keys: &[String]) -> usize {
        let mut out = [0; BATCH];
        let mut allowed = 0;
        for batch in keys.chunks(BATCH) {
            self.0.0.allow_many(batch, &mut out);
            allowed += out[..batch.len()].iter().map(|&yes| usize::from(yes)).sum::<usize>();
        }
        allowed
    }
}

/// Key number `id`: 24 bytes.
pub fn key(id: usize) -> String {
    format!("user:{id:019}")
}

/// Each of `count` keys once.
pub fn distinct(count: usize) -> Vec<String> {
    (0..count).map(key).collect()
}

/// `calls` keys in the order of asking, each with bytes of its own, so that the keys stream through
/// the cache and what misses is the limiter's memory.
pub fn uniform(count: usize, calls: usize) -> Vec<String> {
    let mut random = Random(1);
    (0..calls).map(|_| key((random.unit() * count as f64) as usize)).collect()
}

/// As [`uniform`], key i being asked for in proportion to 1 / (i + 1)^0.99.
pub fn zipf(count: usize, calls: usize) -> Vec<String> {
    let mut sum = 0.0;
    let weight = |i: usize| {
        sum += 1.0 / (i as f64 + 1.0).powf(0.99);
        sum
    };
    let below: Vec<f64> = (0..count).map(weight).collect();
    let mut random = Random(2);
    let mut draw = || random.unit() * sum;
    (0..calls).map(|_| draw()).map(|at| key(below.partition_point(|&b| b < at))).collect()
}

/// SplitMix64: the same keys in every run.
struct Random(u64);

impl Random {
    /// In 0..1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
