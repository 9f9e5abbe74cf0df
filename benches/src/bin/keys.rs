//! What do many keys, deep buckets and full buckets cost, and what does one call by itself?
//!
//! Prints two tables of BENCHMARKS.md: `cargo run --release -p tidegate-benches --bin keys` (about
//! three minutes; `-- --quick` for a smoke run, whose numbers mean nothing).
//!
//! * **Threads**: one.
//! * **Keys**: arrays of 24 bytes. *In order*: each call has a copy of its own, and the copies lie
//!   in the order of the calls, so no call waits for its key. *At random*: each call points to the
//!   one copy of its key, so most calls on many keys also fetch the key from memory.
//! * **Buckets**: *usual* has 100,000 tokens, half of them spent. *Deep* buckets are larger. *Full*
//!   buckets are full again at each hit.
//! * **Contenders**: the floor of `floor.rs`, the engine, governor keyed by the same arrays in a
//!   DashMap with ahash. All know all keys before the clock starts.
//! * **Unit**: nanoseconds a call, the median of all rounds, the minimum in brackets. Contenders
//!   take turns. A ratio is the median of the rounds' ratios.
//! * **Single calls** are timed one by one by two clock readings, which are part of every figure.
//! * **What distorts it**: a tight loop overlaps one call with the next. A server's calls are
//!   closer to single ones.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use ahash::RandomState;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use tidegate_benches::{BATCH, CAPACITY, Exact, Floor, Quota, Tidegate, cell, median, uniform};

type Key = [u8; 24];
type Keyed = governor::RateLimiter<Key, DashMapStateStore<Key, RandomState>, DefaultClock>;

/// A bucket of this size, refilled so slowly that it stays as full as it is.
const fn deep(burst: u32, max: u32) -> Quota {
    Quota { max, per: Duration::from_secs(60), burst, half_spent: true }
}

const USUAL: Quota = deep(100_000, 60_000);
const QUOTAS: [(&str, Quota); 5] = [
    ("usual", USUAL),
    ("burst 1,000,000", deep(1_000_000, 60_000)),
    ("burst 4,000,000", deep(4_000_000, 60_000)),
    ("burst 100,000,000", deep(100_000_000, 60_000)),
    (
        "full",
        Quota { max: 1_000_000, per: Duration::from_secs(1), burst: 100_000, half_spent: false },
    ),
];

/// The keys of all calls, in the order of the calls.
struct Asked<'k> {
    layout: &'static str,
    keys: Vec<&'k Key>,
}

/// Something that answers a slice of keys; how many it allowed.
trait Contender {
    fn run(&self, keys: &[&Key]) -> usize;
}

struct OneByOne<T>(T);

impl Contender for OneByOne<Floor<Exact>> {
    fn run(&self, keys: &[&Key]) -> usize {
        keys.iter().filter(|key| self.0.swap(&key[..])).count()
    }
}

impl Contender for OneByOne<Tidegate> {
    fn run(&self, keys: &[&Key]) -> usize {
        keys.iter().filter(|key| self.0.0.allow(&key[..])).count()
    }
}

impl Contender for OneByOne<Keyed> {
    fn run(&self, keys: &[&Key]) -> usize {
        keys.iter().filter(|key| self.0.check_key(key).is_ok()).count()
    }
}

struct Batches<T>(T);

impl Contender for Batches<Floor<Exact>> {
    fn run(&self, keys: &[&Key]) -> usize {
        keys.chunks(BATCH).map(|batch| self.0.swap_batch(batch)).sum()
    }
}

impl Contender for Batches<Tidegate> {
    fn run(&self, keys: &[&Key]) -> usize {
        let mut out = [0; BATCH];
        let each = |batch: &[&Key]| {
            self.0.0.allow_many(batch, &mut out);
            out[..batch.len()].iter().map(|&yes| usize::from(yes)).sum::<usize>()
        };
        keys.chunks(BATCH).map(each).sum()
    }
}

fn governor(quota: Quota) -> Keyed {
    let whole = |n| NonZeroU32::new(n).expect("no quota is 0");
    let allowed = governor::Quota::with_period(quota.per / quota.max)
        .expect("no quota is faster than a nanosecond")
        .allow_burst(whole(quota.burst));
    let store = DashMapStateStore::<Key, RandomState>::with_hasher(RandomState::new());
    Keyed::new(allowed, store, DefaultClock::default())
}

/// The floor, the engine and governor, each of which knows every key.
fn contenders(quota: Quota, distinct: &[Key], batch: bool) -> [Box<dyn Contender>; 3] {
    let engine = Tidegate::new(quota, distinct.len().max(CAPACITY));
    let floor = Floor::<Exact>::new(engine.0.row_bytes());
    let governor = governor(quota);
    for key in distinct {
        engine.0.allow(key);
        black_box(floor.swap(key));
        let _ = governor.check_key(key);
        if quota.half_spent {
            let half = quota.burst / 2;
            engine.0.record(key, u64::from(half));
            let _ = governor.check_key_n(key, NonZeroU32::new(half).expect("half of much"));
        }
    }
    match batch {
        true => [Box::new(Batches(floor)), Box::new(Batches(engine)), Box::new(OneByOne(governor))],
        false => {
            [Box::new(OneByOne(floor)), Box::new(OneByOne(engine)), Box::new(OneByOne(governor))]
        }
    }
}

struct Plan {
    rounds: usize,
    calls: usize,
    many: usize,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let plan = match quick {
        true => Plan { rounds: 3, calls: 1 << 12, many: 20_000 },
        false => Plan { rounds: 41, calls: 1 << 16, many: 1_000_000 },
    };
    println!(
        "| | floor | tidegate | ÷ floor | ÷ usual | governor + ahash | × faster |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    );
    for (name, count) in [("10,000 keys", 10_000), ("1,000,000 keys", plan.many)] {
        with_keys(count, |distinct, layouts| {
            for asked in layouts {
                rows(&plan, name, distinct, asked);
            }
        });
    }
    println!("\nSingle calls, 1,000,000 keys, usual\n");
    println!(
        "| | p50 | p99 | p50 ÷ floor | p99 ÷ floor | p50, times ours |\n|---|--:|--:|--:|--:|--:|"
    );
    with_keys(plan.many, |distinct, layouts| {
        layouts.iter().for_each(|asked| single_calls(&plan, distinct, asked));
    });
}

/// The keys, and both layouts of one sequence of calls.
fn with_keys(count: usize, measure: impl Fn(&[Key], &[Asked<'_>])) {
    let key = |text: &String| Key::try_from(text.as_bytes()).expect("24 bytes");
    let number = |key: &Key| {
        let digits = std::str::from_utf8(&key[5..]).expect("digits");
        digits.parse::<usize>().expect("a number")
    };
    let own: Vec<Key> = uniform(count, 1 << 18).iter().map(key).collect();
    let distinct: Vec<Key> = tidegate_benches::distinct(count).iter().map(key).collect();
    let shared = own.iter().map(|key| &distinct[number(key)]).collect();
    let layouts = [
        Asked { layout: "in order", keys: own.iter().collect() },
        Asked { layout: "at random", keys: shared },
    ];
    measure(&distinct, &layouts);
}

fn rows(plan: &Plan, name: &str, distinct: &[Key], asked: &Asked<'_>) {
    let usual = contenders(USUAL, distinct, false);
    for (quota_name, quota) in QUOTAS {
        let all = contenders(quota, distinct, false);
        // The usual bucket takes part in each row, so that a ratio to it is of one run.
        let [floor, ours, governor] = &all;
        let turns = [&**floor, &**ours, &**governor, &*usual[1]];
        print(&format!("{name}, {}, {quota_name}", asked.layout), &measure(plan, &turns, asked));
    }
    let all = contenders(USUAL, distinct, true);
    let [floor, ours, governor] = &all;
    let turns = [&**floor, &**ours, &**governor, &*usual[1]];
    print(&format!("{name}, {}, batches of {BATCH}", asked.layout), &measure(plan, &turns, asked));
}

/// Nanoseconds a call of each contender, by round.
fn measure(plan: &Plan, all: &[&dyn Contender], asked: &Asked<'_>) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); all.len()];
    for round in 0..plan.rounds {
        let from = round * plan.calls % asked.keys.len();
        let keys = &asked.keys[from..from + plan.calls];
        for turn in 0..all.len() {
            let i = (round + turn) % all.len();
            let start = Instant::now();
            black_box(all[i].run(keys));
            times[i].push(start.elapsed().as_nanos() as f64 / plan.calls as f64);
        }
    }
    times
}

fn print(name: &str, times: &[Vec<f64>]) {
    let ratio =
        |a: usize, b: usize| median(times[a].iter().zip(&times[b]).map(|(a, b)| a / b).collect());
    println!(
        "| {name} | {} | **{}** | {:.2} | {:.2} | {} | {:.1} |",
        cell(&times[0]),
        cell(&times[1]),
        ratio(1, 0),
        ratio(1, 3),
        cell(&times[2]),
        ratio(2, 1),
    );
}

fn single_calls(plan: &Plan, distinct: &[Key], asked: &Asked<'_>) {
    let all = contenders(USUAL, distinct, false);
    let mut samples = vec![Vec::new(); all.len()];
    for round in 0..plan.rounds {
        let from = round * plan.calls % asked.keys.len();
        for turn in 0..all.len() {
            let i = (round + turn) % all.len();
            let each = |key: &&Key| {
                let start = Instant::now();
                black_box(all[i].run(std::slice::from_ref(key)));
                start.elapsed().as_nanos() as u64
            };
            samples[i].extend(asked.keys[from..from + plan.calls].iter().map(each));
        }
    }
    samples.iter_mut().for_each(|s| s.sort_unstable());
    let at = |i: usize, share: f64| samples[i][(samples[i].len() as f64 * share) as usize];
    for (i, name) in ["floor", "tidegate", "governor + ahash"].iter().enumerate() {
        let (p50, p99) = (at(i, 0.5), at(i, 0.99));
        let times = |to: usize, share: f64| at(i, share) as f64 / at(to, share) as f64;
        println!(
            "| {}, {name} | {p50} | {p99} | {:.2} | {:.2} | {:.2} |",
            asked.layout,
            times(0, 0.5),
            times(0, 0.99),
            times(1, 0.5),
        );
    }
}
