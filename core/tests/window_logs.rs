//! Logs of exact windows: what a denial costs, other numbers, wild clocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::{
    Answer, Clock, Engine, Limit, LimitStatuses, Limits, ManualClock, Options, RowRef, Time,
};

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

/// The least that an operation takes.
fn time(operation: &dyn Fn()) -> Duration {
    let once = || {
        let start = Instant::now();
        (0..20).for_each(|_| operation());
        start.elapsed() / 20
    };
    (0..20).map(|_| once()).min().unwrap()
}

const LOGS: [&str; 3] = ["plain", "mixed", "disordered"];

/// An engine whose key has a full log of this kind.
fn full(stated: &[Limit], max: u64, log: &str) -> (Engine, Arc<ManualClock>) {
    let (engine, hand) = engine(stated);
    match log {
        "plain" => fill(&engine, &hand, u64::MAX),
        "mixed" => fill_mixed(&engine, &hand),
        _ => fill_disordered(&engine, &hand, max),
    }
    (engine, hand)
}

/// A denied `allow` counts the log once. What a denied `hit` is told comes from the same count.
#[test]
fn a_denied_hit_looks_at_its_log_no_more_often_than_a_denied_allow() {
    for log in ["mixed", "disordered"] {
        let (engine, _) = full(&[Limit::window(4096, HOUR)], 4096, log);
        let hit = time(&|| assert_eq!(engine.hit(b"k", 1).answer, Answer::Denied));
        let allow = time(&|| assert!(!engine.allow(b"k")));
        assert!(hit < 8 * allow, "{log}: {hit:?} against {allow:?}");
    }
}

#[test]
fn i4_a_denied_hit_says_what_a_look_does_whatever_the_order_of_its_log() {
    let stated = [
        Limit::window(64, Duration::from_millis(90)),
        Limit::window(40, Duration::from_millis(50)).ceiling(64),
        Limit::window(64, HOUR),
    ];
    for log in LOGS {
        let (engine, hand) = full(&stated, 64, log);
        for _ in 0..200 {
            hand.advance(Duration::from_micros(700));
            let (seen, outcome) = (engine.peek(b"k", 1), engine.hit(b"k", 1));
            if outcome.answer == Answer::Denied {
                assert_eq!(outcome.statuses, seen.statuses, "{log}");
                assert_eq!(engine.peek(b"k", 1).statuses, seen.statuses, "I4: {log}");
                hand.advance(Duration::from_nanos(outcome.statuses.wait() - 1));
                assert_eq!(engine.hit(b"k", 1).answer, Answer::Denied, "I5: {log}");
                hand.advance(Duration::from_nanos(1));
                assert_eq!(engine.hit(b"k", 1).answer, Answer::Allowed, "I5: {log}");
            }
        }
    }
}

#[test]
fn i9_a_clock_that_went_back_denies_for_one_per_at_most_whatever_the_order_of_the_log() {
    for log in LOGS {
        for back in [Duration::from_millis(1), 2 * HOUR, 24 * 365 * HOUR] {
            let (engine, hand) = engine(&[Limit::window(64, HOUR)]);
            hand.set(100_000 * HOUR.as_nanos() as u64);
            match log {
                "plain" => fill(&engine, &hand, u64::MAX),
                "mixed" => fill_mixed(&engine, &hand),
                _ => fill_disordered(&engine, &hand, 64),
            }
            hand.set(hand.now() - back.as_nanos() as u64);
            let peeked = engine.peek(b"k", 1).statuses[0];
            assert!(peeked.wait <= HOUR.as_nanos() as u64, "I9: {log}, {back:?}: {peeked:?}");
            let denied = engine.hit(b"k", 1);
            assert_eq!(denied.answer, Answer::Denied, "I9: {log}, {back:?}");
            assert!(denied.statuses.wait() <= HOUR.as_nanos() as u64, "I9: {log}, {back:?}");
            hand.advance(Duration::from_nanos(denied.statuses.wait()));
            assert_eq!(engine.hit(b"k", 1).answer, Answer::Allowed, "I9: {log}, {back:?}");
        }
    }
}

/// A hit on a full ring by a shorter `per` overwrites an entry that a longer one counts.
#[test]
fn i13_a_call_by_a_shorter_per_grants_nothing_by_the_longer_one() {
    let (engine, hand) = engine(&[Limit::window(5, HOUR)]);
    let fast = Limits::new(&[Limit::window(5, Duration::from_secs(1))]).unwrap();
    assert!(engine.introduce_limits(&fast));
    let hit = |limits: &Limits| {
        let part = RowRef { engine: &engine, hash: engine.hash(b"k"), limits };
        part.hit(1, &mut Time::read(engine.clock()), &mut LimitStatuses::default()).answer
    };
    for voids in [1, 0] {
        engine.reset(b"k");
        (0..5).for_each(|_| assert_eq!(hit(engine.limits()), Answer::Allowed));
        engine.refund(b"k", voids);
        hand.advance(Duration::from_secs(2));
        assert_eq!(hit(&fast), Answer::Allowed);
        engine.refund(b"k", 1 - voids);
        assert_eq!(hit(engine.limits()), Answer::Denied, "I13: a sixth unit, net");
    }
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
            for log in LOGS {
                let (engine, _hand) = full(stated, max, log);
                let hit = time(&|| assert_eq!(engine.hit(b"k", cost).answer, Answer::Denied));
                let allow = time(&|| assert!(!engine.allow(b"k")));
                let windows = stated.len();
                println!(
                    "{max} slots, {windows} windows, cost {cost}, {log}: \
                     hit {hit:?}, allow {allow:?}"
                );
            }
        }
    }
}

/// The windows of a row are kept with the shortest first; what is told keeps the stated order.
#[test]
fn a_hit_tells_windows_in_the_order_they_were_stated() {
    let window = |max, seconds| Limit::window(max, Duration::from_secs(seconds));
    let (engine, hand) = engine(&[window(20, 60), window(5, 10)]);
    for used in 1..=5 {
        let hit = engine.hit(b"k", 1);
        assert_eq!([0, 1].map(|i| hit.statuses[i].used), [used; 2]);
        assert_eq!(hit.statuses[0].reset, 60_000_000_000);
        assert_eq!(hit.statuses[1].reset, 10_000_000_000);
    }
    let refused = engine.hit(b"k", 1);
    assert_eq!([0, 1].map(|i| refused.statuses[i].wait), [0, 10_000_000_000]);
    hand.advance(Duration::from_secs(10));
    let hit = engine.hit(b"k", 1);
    assert_eq!([0, 1].map(|i| hit.statuses[i].used), [6, 1]);
}

/// Stamps repeat after 8.9 years, so an entry of four years ago looks ahead of the clock.
#[test]
fn i9_an_entry_that_looks_ahead_does_not_deny_for_ever_beside_another_limit() {
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    let minute = Duration::from_secs(60);
    for stated in [
        vec![Limit::window(2, minute)],
        vec![Limit::fixed(1000, minute), Limit::window(2, minute)],
        vec![Limit::window(2, minute), Limit::fixed(1000, minute)],
    ] {
        let (engine, hand) = engine(&stated);
        assert_eq!(engine.hit(b"k", 1).answer, Answer::Allowed);
        hand.set(START + YEAR);
        assert_eq!(engine.hit(b"k", 1).answer, Answer::Allowed);
        hand.set(START + 5 * YEAR);
        let _ = engine.hit(b"k", 1);
        hand.advance(minute);
        assert_eq!(engine.hit(b"k", 1).answer, Answer::Allowed, "{stated:?}");
    }
}
