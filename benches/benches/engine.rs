//! Has a function of the engine become slower?
//!
//! For regressions, against this crate's own past: `cargo bench -p tidegate-benches`. The
//! comparison with the floor and with others is `--bin peers`.
//!
//! * **Threads**: one.
//! * **Keys**: 24-byte strings; `hot` is one key, `10k` and `1M` are drawn evenly and known
//!   beforehand, `insert` is a new key at each call.
//! * **Unit**: time for one call, for `allow_many` one batch of 32 keys; on the system clock.
//! * **What distorts it**: Criterion calls in a tight loop, so calls overlap and the branch
//!   predictor knows the way. `insert` includes making the key's string, and sometimes touches new
//!   pages. `windows` are denied but for the first hits, since hardly any time passes.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tidegate_benches::{BATCH, Quota, Tidegate, distinct, engine, key, uniform};
use tidegate_core::{Clock, Engine, Limit, Limits};

const MILLION: usize = 1_000_000;

/// An engine whose keys have half of their burst left.
fn half_spent(keys: usize) -> Engine {
    let tidegate = Tidegate::new(Quota::USUAL, keys);
    tidegate.prepare(Quota::USUAL, &distinct(keys));
    std::thread::sleep(Duration::from_millis(1_100));
    tidegate.0
}

fn hot(c: &mut Criterion) {
    let key = key(7);
    let key = key.as_bytes();
    let spent = Tidegate::new(Quota::SPENT, 1).0;
    let wide = Tidegate::new(Quota::WIDE, 1).0;
    let windows = [(5, 10), (20, 60), (200, 3600)];
    let windows = windows.map(|(max, secs)| Limit::window(max, Duration::from_secs(secs)));
    let windows = engine(Limits::new(&windows).expect("they fit"), 1, Clock::System);
    c.bench_function("clock", |b| b.iter(|| Clock::System.now()));
    c.bench_function("allow/hot", |b| b.iter(|| wide.allow(black_box(key))));
    c.bench_function("allow/deny", |b| b.iter(|| spent.allow(black_box(key))));
    c.bench_function("hit/bucket", |b| b.iter(|| wide.hit(black_box(key), 1)));
    c.bench_function("hit/three windows", |b| b.iter(|| windows.hit(black_box(key), 1)));
}

fn many(c: &mut Criterion) {
    for (name, count) in [("10k", 10_000), ("1M", MILLION)] {
        let engine = half_spent(count);
        let keys = uniform(count, count);
        let mut next = keys.iter().cycle();
        c.bench_function(&format!("allow/{name}"), |b| {
            b.iter(|| next.next().map(|key| engine.allow(key.as_bytes())))
        });
        let mut next = keys.chunks_exact(BATCH).cycle();
        let mut out = [0; BATCH];
        c.bench_function(&format!("allow_many/{name}"), |b| {
            b.iter(|| next.next().map(|batch| engine.allow_many(batch, &mut out)))
        });
    }
}

fn insert(c: &mut Criterion) {
    let engine = Tidegate::new(Quota::USUAL, MILLION).0;
    let mut id = 0;
    c.bench_function("insert", |b| {
        b.iter_batched(
            || {
                id += 1;
                // Begin again before the table is full: what is measured is a free place.
                if id % MILLION == 0 {
                    engine.reset_all();
                }
                key(id)
            },
            |key| engine.allow(key.as_bytes()),
            BatchSize::SmallInput,
        )
    });
}

criterion_group!(benches, hot, many, insert);
criterion_main!(benches);
