//! Limits, costs and clocks at the ends of their ranges: refused when built, with the field and the
//! reason named, or answered exactly as `reference` does; never a panic, an overflow or a hang.

mod reference;

use std::panic::catch_unwind;
use std::sync::mpsc;
use std::time::Duration;

use reference::{Reference, Verdict};
use tidegate_core::{
    Algorithm, Answer, Clock, Engine, Error, Limit, Limits, MOST_EXACT, NEVER, Options,
};

const KEY: &[u8] = b"somebody";
const DAY: Duration = Duration::from_secs(86_400);
const MAXES: [u64; 8] = [0, 1, 2, 3, 7, 1_000, 1_000_000, 1_000_000_000];
const BEYOND: u64 = u64::MAX;

fn pers() -> [Duration; 7] {
    let (ms, s) = (Duration::from_millis(1), Duration::from_secs(1));
    [ms, 7 * ms, s, 60 * s, 3_600 * s, DAY, 366 * DAY]
}

/// Before, at and after the places where a number of bits ends.
fn clocks() -> impl Iterator<Item = u64> {
    let ends = [0u64, 1 << 32, 1 << 44, 1 << 53, 1 << 63];
    let around =
        |end: u64| [-1_000_001i64, -1, 0, 1, 999, 1_000_000].map(|by| end.checked_add_signed(by));
    ends.into_iter().flat_map(around).flatten()
}

fn bursts(max: u64) -> Vec<Option<u64>> {
    let mut sizes = vec![None, Some(1), Some(max / 2), Some(2 * max), Some(1_000_000_000)];
    sizes.dedup();
    sizes
}

fn each_of(algorithm: Algorithm) -> Vec<Limit> {
    let sizes = |max| if algorithm == Algorithm::Bucket { bursts(max) } else { vec![None] };
    let limit = |max, per, burst| Limit { algorithm, max, per, burst, ceiling: None };
    let of_per = |per| {
        let of_max = move |max| sizes(max).into_iter().map(move |burst| limit(max, per, burst));
        MAXES.into_iter().flat_map(of_max).collect::<Vec<_>>()
    };
    pers().into_iter().flat_map(of_per).collect()
}

fn engine_at(limits: &Limits, now: u64) -> Engine {
    let (clock, _) = Clock::manual(now);
    let options = Options { capacity: 2, seed: Some(7), clock, ..Options::default() };
    Engine::new(limits.clone(), options).unwrap()
}

fn hand_of(engine: &Engine) -> &tidegate_core::ManualClock {
    match engine.clock() {
        Clock::Manual(hand) => hand,
        _ => unreachable!("made by hand"),
    }
}

fn size(limit: &Limit) -> u64 {
    match limit.algorithm {
        Algorithm::Bucket => limit.burst.unwrap_or(limit.max),
        _ => limit.max,
    }
}

/// A refusal must be one of those that the contract knows.
fn assert_named(limit: &Limit, error: &Error) {
    let known = match (limit.algorithm, error.field) {
        (Algorithm::Window, "max") => limit.max > MOST_EXACT && error.reason.contains("counter"),
        (Algorithm::Bucket, "burst") => {
            let burst = limit.burst.unwrap_or(limit.max);
            let centuries = u128::from(burst) * limit.per.as_nanos()
                > 30 * 366 * DAY.as_nanos() * u128::from(limit.max);
            // More than a twentieth of the bucket in a nanosecond.
            let at_once = 20 * u128::from(limit.max) > limit.per.as_nanos() * u128::from(burst);
            burst == 0 || burst > 1_000_000_000 || centuries || at_once
        }
        _ => false,
    };
    assert!(known && !error.reason.is_empty(), "{limit:?} refused: {error}");
}

fn costs(limit: &Limit) -> [u64; 5] {
    [0, 1, limit.max, limit.max + 1, BEYOND]
}

fn compare(engine: &Engine, reference: &Reference, cost: u64) {
    let now = engine.clock().now();
    let status = engine.peek(KEY, cost).statuses[0];
    let expected = &reference.statuses(cost, now)[0];
    assert!(expected.admits(&status), "cost {cost} at {now}:\n{status:?} is not\n{expected:?}");
}

fn hit(engine: &Engine, reference: &mut Reference, cost: u64, most: u64) {
    let now = engine.clock().now();
    let verdict = reference.verdict(cost, now);
    let answer = engine.hit(KEY, cost).answer;
    match answer {
        Answer::Cost => assert!(cost > most, "{cost} of {most}"),
        Answer::Allowed => assert_ne!(verdict, Verdict::Refuses, "{cost} at {now}"),
        _ => assert_ne!(verdict, Verdict::Grants, "{cost} at {now}"),
    }
    if answer == Answer::Allowed && cost > 0 {
        reference.charge(cost, now);
    }
}

/// Every cost on a fresh key, then again later, on the same.
fn plays_by_the_rules(limit: &Limit, limits: &Limits, start: u64) {
    let engine = engine_at(limits, start);
    let mut reference = Reference::new(limits);
    let per = limit.per.as_nanos() as u64;
    for step in [0, 1, per / 3, per / 2 + 1, per] {
        hand_of(&engine).set(start + step);
        for cost in costs(limit) {
            compare(&engine, &reference, cost);
            hit(&engine, &mut reference, cost, size(limit));
            compare(&engine, &reference, cost);
        }
    }
}

/// `record` and `refund` of any amount, on a key that has spent already.
fn takes_any_amount(limit: &Limit, limits: &Limits, start: u64) {
    let engine = engine_at(limits, start);
    let mut reference = Reference::new(limits);
    hit(&engine, &mut reference, 1, size(limit));
    for cost in [1, limit.max + 1, BEYOND] {
        // A log has one slot for each unit of `max`.
        if !reference.log_may_be_full(start) {
            engine.record(KEY, cost);
            reference.record(cost, start);
            compare(&engine, &reference, 1);
        }
    }
    engine.refund(KEY, 1);
    reference.refund(1, start);
    compare(&engine, &reference, 1);
    engine.refund(KEY, BEYOND);
    reference.refund(BEYOND, start);
    compare(&engine, &reference, limit.max);
}

fn denies_for_ever(limits: &Limits, start: u64) {
    let engine = engine_at(limits, start);
    for cost in [0, 1, 2, BEYOND] {
        let outcome = engine.hit(KEY, cost);
        let status = outcome.statuses[0];
        assert_eq!(outcome.answer, Answer::Denied);
        assert_eq!((status.limit, status.used, status.remaining, status.wait), (0, 0, 0, NEVER));
        assert_eq!(engine.peek(KEY, cost), outcome);
    }
    assert!(engine.is_empty(), "a suspended key has no row");
}

fn holds_at_every_boundary(algorithm: Algorithm) {
    let mut built = 0;
    for limit in each_of(algorithm) {
        let limits = match Limits::new(&[limit]) {
            Ok(limits) => limits,
            Err(error) => {
                assert_named(&limit, &error);
                continue;
            }
        };
        built += 1;
        for start in clocks() {
            // A fixed span that starts at 0 has tests of its own: a hang says little.
            if limit.max == 0 {
                denies_for_ever(&limits, start);
            } else if algorithm != Algorithm::Fixed || start > 0 {
                let told = format!("{limit:?} from {start}");
                catch_unwind(|| plays_by_the_rules(&limit, &limits, start)).expect(&told);
                catch_unwind(|| takes_any_amount(&limit, &limits, start)).expect(&told);
            }
        }
    }
    assert!(built >= 42, "only {built} {algorithm:?} limits could be had");
}

#[test]
fn buckets_hold_at_every_boundary() {
    holds_at_every_boundary(Algorithm::Bucket);
}

#[test]
fn windows_hold_at_every_boundary() {
    holds_at_every_boundary(Algorithm::Window);
}

#[test]
fn counters_hold_at_every_boundary() {
    holds_at_every_boundary(Algorithm::Counter);
}

#[test]
fn fixed_spans_hold_at_every_boundary() {
    holds_at_every_boundary(Algorithm::Fixed);
}

fn refused(limit: Limit) -> (&'static str, String) {
    let error = Limits::new(&[limit]).unwrap_err();
    assert_eq!(error.limit, 0);
    (error.field, error.reason)
}

#[test]
fn what_is_out_of_range_is_refused_by_field_and_reason() {
    let second = Duration::from_secs(1);
    assert_eq!(refused(Limit::bucket(1_000_000_001, second)).0, "max");
    assert_eq!(refused(Limit::counter(u64::MAX, second)).0, "max");
    assert_eq!(refused(Limit::bucket(1, Duration::from_micros(999))).0, "per");
    assert_eq!(refused(Limit::bucket(1, 366 * DAY + Duration::from_micros(1))).0, "per");
    assert_eq!(refused(Limit::fixed(1, Duration::MAX)).0, "per");
    assert_eq!(refused(Limit::bucket(1, second).burst(0)).0, "burst");
    assert_eq!(refused(Limit::bucket(1, second).burst(u64::MAX)).0, "burst");
    assert_eq!(refused(Limit::window(1, second).burst(2)).0, "burst");
    assert_eq!(refused(Limit::bucket(1, 366 * DAY).burst(1_000_000_000)).0, "burst");
    let (field, reason) = refused(Limit::window(4_097, second));
    assert!(field == "max" && reason.contains("counter") && reason.contains("bucket"), "{reason}");
    assert_eq!(refused(Limit::window(1, second).ceiling(4_097)).0, "ceiling");
}

/// What `act` answers, unless it takes longer than anything here may.
fn in_time<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    let (answer, heard) = mpsc::channel();
    std::thread::spawn(move || answer.send(act()));
    heard.recv_timeout(Duration::from_secs(10)).expect("no answer in ten seconds")
}

#[test]
fn a_fixed_span_may_start_with_the_clock() {
    let limits = Limits::new(&[Limit::fixed(2, Duration::from_secs(1))]).unwrap();
    // At 0, and where stamps of 48 bits begin again.
    for start in [0, 1_000 << 48] {
        let engine = engine_at(&limits, start);
        let outcome = in_time(move || engine.hit(KEY, 1));
        assert_eq!(outcome.answer, Answer::Allowed);
        let (used, reset) = (outcome.statuses[0].used, outcome.statuses[0].reset);
        assert!(used == 1 && (1_000_000_000..=1_000_001_000).contains(&reset), "{outcome:?}");
    }
}

#[test]
fn more_than_can_be_counted_may_be_recorded() {
    let second = Duration::from_secs(1);
    let limits = [
        Limit::bucket(3, second),
        Limit::window(3, second),
        Limit::counter(3, second),
        Limit::fixed(3, second),
    ];
    for limit in limits {
        let engine = engine_at(&Limits::new(&[limit]).unwrap(), 5_000_000_000);
        assert!(engine.allow(KEY));
        for _ in 0..2 {
            let statuses = engine.record(KEY, BEYOND);
            assert!(statuses[0].used >= 3 && statuses[0].remaining == 0, "{statuses:?}");
        }
        assert_eq!(engine.hit(KEY, 1).answer, Answer::Denied);
        hand_of(&engine).advance(2 * second + Duration::from_micros(1));
        assert_eq!(engine.hit(KEY, 1).answer, Answer::Allowed, "{limit:?} after two periods");
    }
}
