//! Two threads flood five senders through three windows, and a chart shows that the bound holds.
//!
//! `cargo run --release --example flood`, or `make demo`. Takes eight and a half seconds. The
//! limits are those of a chat gateway with the minute cut down to five seconds, so that one can
//! watch it refill. What is granted is checked twice against arithmetic that knows nothing of the
//! engine: each sender's sum against the bound of the run's real length, and every span of its
//! history. The exit code is 1 if a single hit was over.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tidegate_core::{Engine, Limit, Limits, Options};

const SENDERS: [&str; 5] = ["alice", "bob", "carol", "dave", "mallory"];
/// The limit's name, its `max` and its `per` in seconds.
const WINDOWS: [(&str, u64, u64); 3] = [("burst", 5, 1), ("minute", 20, 5), ("hour", 200, 3_600)];
const LENGTH: Duration = Duration::from_millis(8_500);
const THREADS: usize = 2;
/// The engine's clock follows the kernel's, by which the history is kept, within two microseconds.
const CLOCK_SLACK: Duration = Duration::from_micros(4);
/// Grants that one character of the chart stands for.
const SCALE: u64 = 5;

/// A grant: whose, and between which two moments.
struct Grant {
    sender: usize,
    before: Duration,
    after: Duration,
}

/// What the threads tell the chart.
#[derive(Default)]
struct Progress {
    granted: AtomicU64,
    denied: AtomicU64,
    over: AtomicBool,
}

fn main() -> ExitCode {
    let engine = engine();
    let progress = Progress::default();
    let start = Instant::now();
    print_head();
    let (history, hits) = std::thread::scope(|scope| {
        let flood = || flood(&engine, start, &progress);
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(flood)).collect();
        chart(start, &progress);
        progress.over.store(true, Relaxed);
        let done: Vec<_> =
            threads.into_iter().map(|t| t.join().expect("a thread failed")).collect();
        let hits = done.iter().map(|(_, hits)| hits).sum::<u64>();
        (done.into_iter().flat_map(|(grants, _)| grants).collect::<Vec<Grant>>(), hits)
    });
    report(&history, hits, start.elapsed())
}

fn engine() -> Engine {
    let limits = WINDOWS.map(|(_, max, per)| Limit::window(max, Duration::from_secs(per)));
    let limits = Limits::new(&limits).expect("limits in range");
    Engine::new(limits, Options { capacity: 1_000, ..Options::default() }).expect("some memory")
}

/// Hits all senders in turn, as fast as it goes, until `progress` says that it is over.
fn flood(engine: &Engine, start: Instant, progress: &Progress) -> (Vec<Grant>, u64) {
    let (mut grants, mut hits, mut denied) = (Vec::with_capacity(4_096), 0, 0);
    while !progress.over.load(Relaxed) {
        // Looking at the watch once for a round of hits keeps the flood one.
        let before = start.elapsed();
        for (sender, name) in SENDERS.iter().enumerate() {
            hits += 1;
            if engine.allow(name.as_bytes()) {
                grants.push(Grant { sender, before, after: start.elapsed() });
                progress.granted.fetch_add(1, Relaxed);
            } else {
                denied += 1;
            }
        }
        if denied > 10_000 {
            progress.denied.fetch_add(std::mem::take(&mut denied), Relaxed);
        }
    }
    progress.denied.fetch_add(denied, Relaxed);
    (grants, hits)
}

/// The most that one sender may have been granted in a run of this length: a window of `per` fits
/// ⌊length / per⌋ + 1 times, and the tightest limit decides.
fn bound(length: Duration) -> u64 {
    let of = |(_, max, per): (&str, u64, u64)| max * (length.as_secs() / per + 1);
    WINDOWS.map(of).into_iter().min().unwrap_or(0)
}

fn print_head() {
    let limits = WINDOWS.map(|(name, max, per)| format!("{name} {max}/{per}s"));
    println!("{THREADS} threads, {} senders, windows: {}", SENDERS.len(), limits.join(", "));
    println!();
    println!(
        "  t   granted  so far  bound        denied   each # or . is {SCALE}: granted of bound"
    );
}

/// One line each second, until the run is over.
fn chart(start: Instant, progress: &Progress) {
    let (mut granted, mut denied) = (0, 0);
    for second in 0..=LENGTH.as_secs() {
        // At the half second: on the full one the senders have just got more, or are about to.
        let until = Duration::from_secs(second) + Duration::from_millis(500);
        std::thread::sleep(until.saturating_sub(start.elapsed()));
        let all = SENDERS.len() as u64 * bound(start.elapsed());
        let now = (progress.granted.load(Relaxed), progress.denied.load(Relaxed));
        println!(
            "{:>4.1}s {:>7} {:>7} {:>6} {:>13}   {}",
            until.as_secs_f64(),
            now.0 - granted,
            now.0,
            all,
            commas(now.1 - denied),
            bar(now.0, all),
        );
        (granted, denied) = now;
    }
}

/// `######....`: what was granted, of the bound; `!` for what is above it.
fn bar(granted: u64, bound: u64) -> String {
    let marks = |count: u64| count.div_ceil(SCALE) as usize;
    let (full, all) = (marks(granted.min(bound)), marks(bound));
    let above = marks(granted.saturating_sub(bound));
    format!("{}{}{}", "#".repeat(full), ".".repeat(all - full), "!".repeat(above))
}

fn report(history: &[Grant], hits: u64, length: Duration) -> ExitCode {
    let over: u64 = (0..SENDERS.len()).map(|sender| over(history, sender, length)).sum();
    let bound = SENDERS.len() as u64 * bound(length);
    println!();
    println!(
        "flood: {} hits, {} granted, bound {}, {} over",
        commas(hits),
        commas(history.len() as u64),
        commas(bound),
        commas(over)
    );
    if over > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// How many grants of a sender were too many, over the whole run or in any span of its history.
fn over(history: &[Grant], sender: usize, length: Duration) -> u64 {
    let mut mine: Vec<&Grant> = history.iter().filter(|grant| grant.sender == sender).collect();
    mine.sort_by_key(|grant| grant.after);
    let in_all = (mine.len() as u64).saturating_sub(bound(length));
    in_all.max(WINDOWS.map(|(_, max, per)| over_in(&mine, max as usize, per)).into_iter().sum())
}

/// Any max + 1 grants must span at least `per`; each is charged only with the time that it surely
/// fell in.
fn over_in(mine: &[&Grant], max: usize, per: u64) -> u64 {
    let least = Duration::from_secs(per) - CLOCK_SLACK;
    let spans = mine.windows(max + 1).map(|some| {
        let first = some.iter().map(|grant| grant.before).min().unwrap_or_default();
        some[max].after - first
    });
    spans.filter(|&span| span < least).count() as u64
}

/// 4812339 as `4,812,339`.
fn commas(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}
