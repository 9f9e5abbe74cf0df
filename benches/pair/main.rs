//! Is this version slower than that one? See `pair.sh`.
//!
//! Both versions are linked into this program. For each row both are set up, then take turns
//! in short rounds. That is repeated with new tables, in the other order. The ratio is the
//! median over all rounds.

use std::hint::black_box;
use std::time::Instant;

type Run<'k> = Box<dyn FnMut(usize) -> u64 + 'k>;

/// One row.
struct Setting {
    kind: &'static str,
    keys: usize,
    calls: usize,
}

mod old {
    use old_core as core;
    use old_policy as policy;
    include!("rows.rs");
}
mod new {
    use new_core as core;
    use new_policy as policy;
    include!("rows.rs");
}

const HOT: &[&str] = &[
    "usual",
    "common",
    "full",
    "deny",
    "deep",
    "deep deny",
    "hit",
    "windows",
    "windows deny",
    "weighted windows deny",
    "three windows deny",
    "counter",
    "fixed",
    "rule allow",
    "rule hit",
    "rule with a cooldown, deny",
    "rule with when and exempt",
];
const LOGS: &[&str] = &[
    "plain log deny",
    "weighted log deny",
    "carried log deny",
    "carried log deny 9",
    "permits deny",
];
const MANY: &[&str] =
    &["usual", "common", "full", "deny", "deep", "batch", "windows deny", "rule allow", "rule hit"];
const MILLION: &[&str] = &["usual", "full", "deny", "batch"];

fn key(id: usize) -> String {
    format!("user:{id:019}")
}

fn each(count: usize, mut with: impl FnMut(&String)) {
    (0..count).for_each(|id| with(&key(id)));
}

/// Keys in the order of asking, each with bytes of its own.
fn uniform(count: usize, calls: usize) -> Vec<String> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % count
    };
    (0..calls).map(|_| key(draw())).collect()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn timed(run: &mut Run<'_>, calls: usize) -> f64 {
    let start = Instant::now();
    black_box(run(calls));
    start.elapsed().as_nanos() as f64 / calls as f64
}

fn row(setting: &Setting, trials: usize, rounds: usize) {
    let keys = match setting.keys {
        1 => vec![key(0)],
        count => uniform(count, 1 << 20),
    };
    let (mut before, mut after, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for trial in 0..trials {
        let (mut old, mut new);
        if trial % 2 == 0 {
            (old, new) = (old::run(setting, &keys), None);
            new.get_or_insert_with(|| new::run(setting, &keys));
        } else {
            new = Some(new::run(setting, &keys));
            old = old::run(setting, &keys);
        }
        let new = new.as_mut().expect("set above");
        std::thread::sleep(std::time::Duration::from_millis(300));
        (timed(&mut old, setting.calls), timed(new, setting.calls));
        for _ in 0..rounds {
            let first = timed(&mut old, setting.calls);
            let second = timed(new, setting.calls);
            before.push(first);
            after.push(second);
            ratios.push(second / first);
        }
    }
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "| {}, {} | {:.1} ({:.1}) | {:.1} ({:.1}) | {:.2} |",
        setting.kind,
        match setting.keys {
            1 => "one key".into(),
            count => format!("{count} keys"),
        },
        median(before.clone()),
        least(&before),
        median(after.clone()),
        least(&after),
        median(ratios),
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |kind: &str| wanted.is_empty() || wanted.iter().any(|want| want == kind);
    println!("| | before, ns (least) | now, ns (least) | now / before |\n|---|--:|--:|--:|");
    let rows = [
        (HOT, 1, 1 << 15),
        (LOGS, 1, 1 << 9),
        (MANY, 10_000, 1 << 15),
        (MILLION, 1_000_000, 1 << 17),
    ];
    for (kinds, keys, calls) in rows {
        for &kind in kinds.iter().filter(|kind| is_wanted(kind)) {
            let (trials, rounds) = if keys > 100_000 { (6, 15) } else { (8, 25) };
            row(&Setting { kind, keys, calls }, trials, rounds);
        }
    }
}
