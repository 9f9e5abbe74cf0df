//! Logs of exact windows: what a denial costs, other numbers, wild clocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::{Answer, Clock, Engine, Limit, Limits, ManualClock, Options};

const HOUR: Duration = Duration::from_secs(3600);
const START: u64 = 1_000_000_000_000;

fn engine(stated: &[Limit]) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(START);
    let options = Options { capacity: 4, clock, ..Options::default() };
    (Engine::new(Limits::new(stated).unwrap(), options).unwrap(), hand)
}

/// Hits every millisecond until one is denied.
fn fill(engine: &Engine, hand: &ManualClock, most: u64) {
    for _ in 0..most {
        hand.advance(Duration::from_millis(1));
        if !engine.allow(b"k") {
            return;
        }
    }
}

/// A full log with an entry of weight 2.
fn fill_mixed(engine: &Engine, hand: &ManualClock) {
    assert_eq!(engine.hit(b"k", 2).answer, Answer::Allowed);
    fill(engine, hand, u64::MAX);
}

/// A full log whose older half was moved behind its newer half.
fn fill_disordered(engine: &Engine, hand: &ManualClock, max: u64) {
    fill(engine, hand, max / 2);
    engine.refund(b"k", 1);
    fill(engine, hand, u64::MAX);
}

#[test]
#[ignore = "measures; run it in a release build"]
fn what_a_denied_hit_costs() {
    for max in [200, 4096] {
        let one = vec![Limit::window(max, HOUR)];
        let three = vec![
            Limit::window(max, Duration::from_millis(max * 2)),
            Limit::window(max, Duration::from_secs(60)),
            Limit::window(max, HOUR),
        ];
        for (stated, cost) in [(&one, 1), (&one, max), (&three, 1)] {
            for log in ["plain", "mixed", "disordered"] {
                let (engine, hand) = engine(stated);
                match log {
                    "plain" => fill(&engine, &hand, u64::MAX),
                    "mixed" => fill_mixed(&engine, &hand),
                    _ => fill_disordered(&engine, &hand, max),
                }
                let time = |operation: &dyn Fn()| {
                    let mut best = Duration::MAX;
                    for _ in 0..20 {
                        let start = Instant::now();
                        (0..20).for_each(|_| operation());
                        best = best.min(start.elapsed() / 20);
                    }
                    best
                };
                let hit = time(&|| assert_eq!(engine.hit(b"k", cost).answer, Answer::Denied));
                let allow = time(&|| assert!(!engine.allow(b"k")));
                let windows = stated.len();
                println!(
                    "{max} slots, {windows} windows, cost {cost}, {log}: hit {hit:?}, allow {allow:?}"
                );
            }
        }
    }
}
