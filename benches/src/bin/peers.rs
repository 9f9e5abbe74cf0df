//! What does one call cost: against the floor under it, and against other crates?
//!
//! Prints the tables of BENCHMARKS.md, in nanoseconds a call: `cargo run --release -p
//! tidegate-benches --bin peers` (a few minutes; `-- --quick` for a smoke run, whose
//! figures mean nothing).
//!
//! * **Threads**: one, but where the row says two; then the time is that of each thread's call.
//! * **Keys**: 24-byte strings in the order of asking. One hot key (room for 65,536), 10,000 and
//!   1,000,000 keys drawn evenly, or by Zipf's law with exponent 0.99. All are known to all
//!   contenders before the clock starts.
//! * **Quotas**: see [`Quota`]. *usual* reads and lowers a half spent bucket, *from full* starts a
//!   new line at each hit, *deny* finds nothing left.
//! * **Floors**: hash, clock, load and swap, see `floor.rs`. One floor reads the exact clock. The
//!   other reads the kernel's tick, which is all that the engine reads where that is enough.
//! * **Unit**: the median of all rounds, and the minimum in brackets. Contenders take turns in
//!   short rounds in one process, and a ratio is the median of the rounds' ratios, so a slow
//!   spell hits all alike.
//! * **What distorts it**: calls are made in a tight loop, so the processor overlaps one with the
//!   next, more than a server's would. Each contender's turn begins with a cache that the others
//!   have filled. Peers read their own clocks: governor the TSC, the others the kernel's.
//!   leaky-bucket reads none while it has tokens. On a shared machine believe ratios and minima.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use ahash::RandomState;
use tidegate_benches::*;
use tidegate_core::{Clock, Engine, Limit, Limits, ManualClock};

/// Times of a contender: nanoseconds a call, by round.
type Times = Vec<f64>;
type Contender = Box<dyn Limiter>;

/// How much is measured.
struct Plan {
    rounds: usize,
    calls: usize,
    many: usize,
    fills: usize,
}

/// Keys in the order of asking, and each of them once.
struct Keys {
    name: &'static str,
    capacity: usize,
    asked: Vec<String>,
    distinct: Vec<String>,
}

impl Keys {
    fn hot() -> Keys {
        let (asked, distinct) = (vec![key(7); 256], vec![key(7)]);
        Keys { name: "one hot key", capacity: CAPACITY, asked, distinct }
    }

    fn even(name: &'static str, count: usize, calls: usize) -> Keys {
        let capacity = count.max(CAPACITY);
        Keys { name, capacity, asked: uniform(count, calls), distinct: distinct(count) }
    }

    fn zipf(count: usize, calls: usize) -> Keys {
        let name = "1,000,000 keys, zipf 0.99";
        Keys {
            name,
            capacity: count.max(CAPACITY),
            asked: zipf(count, calls),
            distinct: distinct(count),
        }
    }
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let plan = match quick {
        true => Plan { rounds: 3, calls: 1 << 13, many: 20_000, fills: 1 },
        false => Plan { rounds: 63, calls: 1 << 16, many: 1_000_000, fills: 5 },
    };
    let hot = Keys::hot();
    let some = Keys::even("10,000 keys", 10_000, 1 << 17);
    let many = Keys::even("1,000,000 keys", plan.many, plan.many);
    let skewed = Keys::zipf(plan.many, plan.many);
    clocks();
    println!("One thread\n\n{HEAD}");
    for (keys, quota, quota_name) in [
        (&hot, Quota::USUAL, "usual"),
        (&hot, Quota::WIDE, "from full"),
        (&hot, Quota::SPENT, "deny"),
        (&some, Quota::USUAL, "usual"),
        (&some, Quota::WIDE, "from full"),
        (&many, Quota::USUAL, "usual"),
        (&many, Quota::WIDE, "from full"),
        (&many, Quota::SPENT, "deny"),
        (&skewed, Quota::USUAL, "usual"),
    ] {
        compare(&plan, keys, quota, &format!("{}, {quota_name}", keys.name), false);
    }
    compare(&plan, &many, Quota::USUAL, "batches of 32, 1,000,000 keys, usual", true);
    two_threads(&plan, &hot, &many);
    windows(&plan, &hot, &some);
    tail(&plan, &many);
    filling(&plan);
    println!();
    clocks();
}

/// What reading the time costs. The floor reads the engine's clock, so a slow one flatters
/// every ratio to the floor. If the engine's is no cheaper than `Instant`, it has fallen
/// back to the kernel's.
fn clocks() {
    Clock::System.now();
    std::thread::sleep(Duration::from_millis(100));
    let of = |read: &dyn Fn()| {
        let round = |_| {
            let start = Instant::now();
            (0..5_000).for_each(|_| read());
            start.elapsed().as_nanos() as f64 / 5_000.0
        };
        least(&(0..50).map(round).collect::<Times>())
    };
    let ours = of(&|| {
        black_box(Clock::System.now());
    });
    let std = of(&|| {
        black_box(Instant::now());
    });
    let what = if ours < std { "counter" } else { "FELL BACK to the kernel's" };
    println!("Clock: engine's {ours:.1} ns ({what}), `Instant` {std:.1} ns (minima)\n");
}

const HEAD: &str = "\
| | floor | by the tick | tidegate | ÷ floor | ÷ by the tick | governor + ahash | × faster \
| governor | leaky-bucket | ratelimit | throttlecrab | `Mutex<HashMap>` |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// One row: the floors, the engine, and the peers.
fn compare(plan: &Plan, keys: &Keys, quota: Quota, name: &str, batch: bool) {
    let mut contenders = floors_and_engine(keys, quota, batch);
    contenders.extend(others(quota, keys.capacity));
    meet(&contenders, keys, quota);
    let (times, denied) = measure(plan, &contenders, keys, 1);
    println!("| {name}{} {}", note(denied, quota), cells(&times));
}

/// The floor, the same by the kernel's tick, and the engine.
fn floors_and_engine(keys: &Keys, quota: Quota, batch: bool) -> Vec<Contender> {
    let engine = Tidegate::new(quota, keys.capacity);
    let bytes = engine.0.row_bytes();
    engine.prepare(quota, &keys.distinct);
    let engine: Contender = if batch { Box::new(BatchTidegate(engine)) } else { Box::new(engine) };
    vec![floor::<Exact>(bytes, quota, batch), floor::<Tick>(bytes, quota, batch), engine]
}

fn floor<C: Reads + 'static>(bytes: usize, quota: Quota, batch: bool) -> Contender {
    let floor = Floor::<C>::new(bytes);
    match (batch, quota.burst) {
        (true, _) => Box::new(BatchFloor(floor)),
        (_, 1) => Box::new(DenyFloor(floor)),
        _ => Box::new(floor),
    }
}

fn others(quota: Quota, capacity: usize) -> Vec<Contender> {
    vec![
        Box::new(governor_with(quota, RandomState::new())),
        Box::new(governor_with(quota, std::hash::RandomState::new())),
        Box::new(LeakyBucket::new(quota)),
        Box::new(Ratelimit::new(quota)),
        Box::new(Throttlecrab::new(quota, capacity)),
        Box::new(MutexMap::new(quota)),
    ]
}

/// Shows every key to each contender, and waits for the tick after half of each bucket was spent.
fn meet(contenders: &[Contender], keys: &Keys, quota: Quota) {
    for one in contenders {
        black_box(one.run(&keys.distinct));
    }
    if quota.half_spent {
        std::thread::sleep(Duration::from_millis(1_100));
    }
}

/// All rounds, in turns. Also the largest share of calls that the engine or a peer denied, if there
/// are floors among them: those come first.
fn measure(plan: &Plan, all: &[Contender], keys: &Keys, threads: usize) -> (Vec<Times>, f64) {
    let mut times = vec![Times::new(); all.len()];
    let mut denied = 0.0f64;
    for round in 0..plan.rounds {
        // Who begins changes, so that the scheduler can't fall into step with one contender.
        for turn in 0..all.len() {
            let i = (round + turn) % all.len();
            let (nanos, allowed) = time(&*all[i], &keys.asked, plan.calls, round, threads);
            times[i].push(nanos / plan.calls as f64);
            if i > 1 {
                denied = denied.max(1.0 - allowed as f64 / (plan.calls * threads) as f64);
            }
        }
    }
    (times, denied)
}

/// Wall time of `calls` calls on each thread at once, and how many were allowed.
fn time(
    one: &dyn Limiter,
    keys: &[String],
    calls: usize,
    round: usize,
    threads: usize,
) -> (f64, usize) {
    let barrier = Barrier::new(threads);
    let work = |thread: usize| {
        let from = (round * calls + thread * keys.len() / threads) % keys.len();
        barrier.wait();
        let start = Instant::now();
        let allowed = calls_from(one, keys, from, calls);
        (start, Instant::now(), allowed)
    };
    let done: Vec<_> = match threads {
        1 => vec![work(0)],
        _ => std::thread::scope(|s| {
            let handles: Vec<_> = (0..threads).map(|t| s.spawn(move || work(t))).collect();
            handles.into_iter().map(|h| h.join().expect("no bench panics")).collect()
        }),
    };
    let start = done.iter().map(|d| d.0).min().expect("at least one thread");
    let end = done.iter().map(|d| d.1).max().expect("at least one thread");
    ((end - start).as_nanos() as f64, done.iter().map(|d| d.2).sum())
}

/// `calls` calls round the ring of keys.
fn calls_from(one: &dyn Limiter, keys: &[String], mut from: usize, calls: usize) -> usize {
    let (mut left, mut allowed) = (calls, 0);
    while left > 0 {
        let here = left.min(keys.len() - from);
        allowed += one.run(&keys[from..from + here]);
        (left, from) = (left - here, 0);
    }
    allowed
}

fn note(denied: f64, quota: Quota) -> String {
    match denied > 0.0 && quota.burst > 1 {
        true => format!(" (up to {:.1} % denied)", denied * 100.0),
        false => String::new(),
    }
}

/// The cells of a row whose first contenders are the two floors, the engine and governor.
fn cells(times: &[Times]) -> String {
    let ratio =
        |a: usize, b: usize| median(times[a].iter().zip(&times[b]).map(|(a, b)| a / b).collect());
    let mut cells = format!(
        "| {} | {} | **{}** | {:.2} | {:.2} | {} | {:.1} |",
        cell(&times[0]),
        cell(&times[1]),
        cell(&times[2]),
        ratio(2, 0),
        ratio(2, 1),
        cell(&times[3]),
        ratio(3, 2)
    );
    times[4..].iter().for_each(|t| cells += &format!(" {} |", cell(t)));
    cells
}

/// Two threads at once, on one key and on many.
fn two_threads(plan: &Plan, hot: &Keys, many: &Keys) {
    println!(
        "\nTwo threads\n\n| | floor | by the tick | tidegate | ÷ floor | ÷ by the tick \
         | governor + ahash | × faster |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let quota = Quota::USUAL;
    for keys in [hot, many] {
        let mut all = floors_and_engine(keys, quota, false);
        all.push(Box::new(governor_with(quota, RandomState::new())));
        meet(&all, keys, quota);
        let (alone, _) = measure(plan, &all, keys, 1);
        let (both, denied) = measure(plan, &all, keys, 2);
        println!("| {}, usual{} {}", keys.name, note(denied, quota), cells(&both));
        let gain = |i: usize| 2.0 * median(alone[i].clone()) / median(both[i].clone());
        let [floor, tick, ours, governor] = [gain(0), gain(1), gain(2), gain(3)];
        let name = "… throughput, times one thread's";
        println!("| {name} | {floor:.2} | {tick:.2} | **{ours:.2}** | | | {governor:.2} | |");
    }
}

/// The engine over exact windows. To be allowed again and again, keys must see time go by: a clock
/// moved by hand at each call, and the system's read besides, to pay for it.
struct Windows {
    engine: Engine,
    hand: Option<(Arc<ManualClock>, Duration)>,
}

impl Windows {
    fn new(limits: &[Limit], capacity: usize, step: Option<Duration>) -> Windows {
        let limits = Limits::new(limits).expect("limits that fit");
        let Some(step) = step else {
            return Windows { engine: engine(limits, capacity, Clock::System), hand: None };
        };
        let (clock, hand) = Clock::manual(1 << 40);
        Windows { engine: engine(limits, capacity, clock), hand: Some((hand, step)) }
    }
}

impl Limiter for Windows {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        if let Some((hand, step)) = &self.hand {
            hand.advance(*step);
            black_box(Clock::System.now());
        }
        self.engine.allow(key.as_bytes())
    }
}

/// Exact windows in one row, against the same floor (in as many bytes).
fn windows(plan: &Plan, hot: &Keys, some: &Keys) {
    println!(
        "\nExact windows\n\n| | floor | tidegate | ÷ floor | granted |\n|---|--:|--:|--:|--:|"
    );
    let of = |max, secs| Limit::window(max, Duration::from_secs(secs));
    let three = [of(5, 10), of(20, 60), of(200, 3600)];
    for (name, limits) in [("20/min", &three[1..2]), ("5/10s + 20/min + 200/h", &three[..])] {
        for (keys, capacity, gap) in [(hot, 1_000, 18), (some, 10_000, 54)] {
            let step = Duration::from_secs(gap) / keys.distinct.len() as u32;
            for (what, step) in [("allow", Some(step)), ("deny", None)] {
                let ours = Windows::new(limits, capacity, step);
                let quota = if step.is_some() { Quota::USUAL } else { Quota::SPENT };
                let floor = floor::<Exact>(ours.engine.row_bytes(), quota, false);
                let all = [floor, Box::new(ours) as Contender];
                (0..20).for_each(|_| meet(&all, keys, Quota::SPENT));
                let (times, _) = measure(plan, &all, keys, 1);
                let granted = calls_from(&*all[1], &keys.asked, 0, plan.calls);
                let granted = 100.0 * granted as f64 / plan.calls as f64;
                let ratio = median(times[1].iter().zip(&times[0]).map(|(a, b)| a / b).collect());
                let (floor, ours) = (cell(&times[0]), cell(&times[1]));
                let name = format!("{name}, {}, {what}", keys.name);
                println!("| {name} | {floor} | **{ours}** | {ratio:.2} | {granted:.0} % |");
            }
        }
    }
}

/// Each call timed by itself (`Instant` on both sides, which all pay): nanoseconds, sorted.
fn timed_calls(one: &dyn Limiter, keys: &[String]) -> Vec<u64> {
    let each = |key: &String| {
        let start = Instant::now();
        black_box(one.allow(key));
        start.elapsed().as_nanos() as u64
    };
    keys.iter().map(each).collect()
}

/// The slow end of single calls at many known keys.
fn tail(plan: &Plan, keys: &Keys) {
    println!("\nSingle calls, 1,000,000 keys, usual (each timed by two clock readings)\n");
    println!("| | p50 | p99 | p99.9 | p99.9 ÷ floor's | longest |\n|---|--:|--:|--:|--:|--:|");
    let mut all = floors_and_engine(keys, Quota::USUAL, false);
    all.extend(others(Quota::USUAL, keys.capacity));
    meet(&all, keys, Quota::USUAL);
    let mut samples = vec![Vec::new(); all.len()];
    for keys in keys.asked.chunks(1 << 15).cycle().take(plan.rounds * 2) {
        for (one, samples) in all.iter().zip(&mut samples) {
            samples.extend(timed_calls(&**one, keys));
        }
    }
    samples.iter_mut().for_each(|s| s.sort_unstable());
    let at = |s: &[u64], share: f64| s[(s.len() as f64 * share) as usize];
    let floor = at(&samples[0], 0.999) as f64;
    for (name, s) in NAMES.iter().zip(&samples) {
        let (p50, p99, p999) = (at(s, 0.5), at(s, 0.99), at(s, 0.999));
        let (ratio, longest) = (p999 as f64 / floor, s[s.len() - 1]);
        println!("| {name} | {p50} | {p99} | {p999} | {ratio:.2} | {longest} |");
    }
}

const NAMES: [&str; 9] = [
    "floor",
    "floor by the tick",
    "tidegate",
    "governor + ahash",
    "governor",
    "leaky-bucket",
    "ratelimit",
    "throttlecrab",
    "`Mutex<HashMap>`",
];

/// The longest single call while keys come in for the first time. A stall of the contender
/// comes back each time, a stall of the machine does not. So the least of several fillings
/// counts.
fn filling(plan: &Plan) {
    println!("\nFilling with {} new keys, {} times\n", plan.many, plan.fills);
    println!("| | ns a call | longest call, µs: least of the fillings | most |\n|---|--:|--:|--:|");
    let keys = distinct(plan.many);
    for (i, name) in NAMES.iter().enumerate() {
        let mut longest = Times::new();
        let mut mean = Times::new();
        for _ in 0..plan.fills {
            let one = newcomer(i, plan.many);
            let times = timed_calls(&*one, &keys);
            mean.push(times.iter().sum::<u64>() as f64 / times.len() as f64);
            longest.push(*times.iter().max().expect("there are keys") as f64 / 1e3);
        }
        let most = longest.iter().copied().fold(0.0, f64::max);
        println!("| {name} | {:.0} | {:.0} | {most:.0} |", median(mean), least(&longest));
    }
}

/// Contender `i` of [`NAMES`], with no key yet.
fn newcomer(i: usize, capacity: usize) -> Contender {
    let engine = || Tidegate::new(Quota::USUAL, capacity);
    match i {
        0 => floor::<Exact>(engine().0.row_bytes(), Quota::USUAL, false),
        1 => floor::<Tick>(engine().0.row_bytes(), Quota::USUAL, false),
        2 => Box::new(engine()),
        _ => others(Quota::USUAL, capacity).swap_remove(i - 3),
    }
}
