//! Rows that are judged by other numbers than the table's own.

use std::time::Duration;

use tidegate_core::{
    Algorithm, Answer, Clock, Engine, Limit, LimitStatuses, Limits, ManualClock, Options, RowRef,
    Time,
};

const MINUTE: Duration = Duration::from_secs(60);

fn limits(stated: &[Limit]) -> Limits {
    Limits::new(stated).unwrap()
}

fn engine(stated: &[Limit]) -> (Engine, std::sync::Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(1_000_000_000);
    let options = Options { capacity: 10, clock, ..Options::default() };
    (Engine::new(limits(stated), options).unwrap(), hand)
}

fn hits(engine: &Engine, limits: &Limits, key: &[u8], count: usize) -> usize {
    let part = RowRef { engine, hash: engine.hash(key), limits };
    let hit = || {
        let mut time = Time::read(engine.clock());
        part.hit(1, &mut time, &mut LimitStatuses::default()).answer == Answer::Allowed
    };
    (0..count).filter(|_| hit()).count()
}

#[test]
fn a_state_stays_while_the_numbers_change() {
    for algorithm in [Limit::bucket, Limit::window, Limit::fixed, Limit::counter] {
        let own = algorithm(10, MINUTE);
        let own = if own == Limit::window(10, MINUTE) { own.ceiling(20) } else { own };
        let (engine, _) = engine(&[own]);
        let wide = limits(&[Limit { max: 20, ..own }]);
        assert!(engine.introduce_limits(&wide));
        assert_eq!(hits(&engine, engine.limits(), b"k", 4), 4);
        let left = if own.algorithm == Algorithm::Bucket { 6 } else { 16 };
        assert_eq!(hits(&engine, &wide, b"k", 50), left, "{own:?}");
        assert_eq!(hits(&engine, engine.limits(), b"k", 5), 0);
    }
}

#[test]
fn a_row_that_still_counts_by_other_numbers_is_not_evicted() {
    // By its own numbers a key is as new after a minute, by the others after an hour.
    let slow = |limit: Limit| Limit { per: 60 * MINUTE, ..limit };
    let algorithms = [Limit::bucket, Limit::window, Limit::fixed, Limit::counter];
    for own in algorithms.map(|limit| limit(10, MINUTE)) {
        let (engine, hand) = engine(&[own]);
        let others = limits(&[slow(own)]);
        assert!(engine.introduce_limits(&others));
        assert_eq!(hits(&engine, &others, b"k", 20), 10);
        hand.advance(MINUTE * 2);
        assert_eq!(engine.prune(), 0, "{own:?}");
        assert!(hits(&engine, &others, b"k", 20) <= 1, "{own:?}: it was not forgotten");
        hand.advance(MINUTE * 120);
        assert_eq!(engine.prune(), 1, "{own:?}");
        assert_eq!(hits(&engine, engine.limits(), b"k", 20), 10, "{own:?}");
        // A counter's word knows its last charge to a tick.
        hand.advance(MINUTE * 121);
        assert_eq!(engine.prune(), 1, "{own:?}: nor for longer than by the others");
    }
}

#[test]
fn a_row_is_kept_for_the_slowest_of_several_numbers_whoever_touched_it() {
    for algorithm in [Limit::bucket, Limit::window, Limit::fixed, Limit::counter] {
        let sets = [1, 10, 60].map(|minutes| limits(&[algorithm(10, minutes * MINUTE)]));
        for by in &sets {
            let (engine, hand) = engine(&[algorithm(10, MINUTE)]);
            hand.set((100 * 60 * MINUTE).as_nanos() as u64);
            sets.iter().for_each(|other| assert!(engine.introduce_limits(other)));
            assert_eq!(hits(&engine, by, b"k", 20), 10);
            hand.advance(MINUTE * 59);
            assert_eq!(engine.prune(), 0, "I10: {by:?}");
            hand.advance(MINUTE * 62);
            assert_eq!(engine.prune(), 1, "{by:?}");
        }
    }
}

#[test]
fn numbers_that_are_the_same_or_0_change_nothing_about_who_is_idle() {
    let own = [Limit::bucket(10, MINUTE), Limit::window(5, MINUTE)];
    let (engine, hand) = engine(&own);
    let horizon = engine.horizon();
    assert!(horizon >= 60_000_000_000, "it takes a minute");
    let [bucket, window] = own;
    for same in [
        [bucket.burst(10), window],
        [Limit { max: 0, ..bucket }, window],
        [bucket, Limit { max: 0, ..window }.ceiling(5)],
        [Limit { max: 0, per: 60 * MINUTE, ..bucket }, window],
    ] {
        assert!(engine.introduce_limits(&limits(&same)), "{same:?}");
    }
    assert_eq!(engine.horizon(), horizon);
    assert_eq!(hits(&engine, engine.limits(), b"k", 1), 1);
    hand.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(engine.prune(), 0);
    hand.advance(Duration::from_millis(1));
    assert_eq!(engine.prune(), 1, "as soon as its own numbers allow");
    assert!(engine.introduce_limits(&limits(&[bucket.burst(100), window])));
    assert!(engine.horizon() >= 10 * 60_000_000_000, "a bucket of a hundred fills in ten minutes");
}

#[test]
fn a_clock_that_goes_back_takes_no_row_from_a_key_by_other_numbers() {
    for back in [Duration::from_millis(2), MINUTE * 120] {
        for algorithm in [Limit::bucket, Limit::window, Limit::fixed, Limit::counter] {
            let (own, slow) = (algorithm(10, MINUTE), algorithm(10, 60 * MINUTE));
            let (engine, hand) = engine(&[own]);
            let others = limits(&[slow]);
            assert!(engine.introduce_limits(&others));
            hand.set((600 * MINUTE + Duration::from_millis(1)).as_nanos() as u64);
            assert_eq!(hits(&engine, &others, b"k", 20), 10);
            hand.set((600 * MINUTE + Duration::from_millis(1) - back).as_nanos() as u64);
            assert_eq!(engine.prune(), 0, "{own:?} {back:?}");
            // A counter's window may see up to 2·max − 1.
            let most = if own == Limit::counter(10, MINUTE) { 9 } else { 0 };
            assert!(hits(&engine, &others, b"k", 20) <= most, "{own:?} {back:?}");
        }
    }
}

#[test]
fn numbers_of_another_shape_are_refused() {
    let (engine, _) = engine(&[Limit::window(10, MINUTE)]);
    assert!(engine.introduce_limits(&limits(&[Limit::window(5, MINUTE).ceiling(10)])));
    assert!(!engine.introduce_limits(&limits(&[Limit::window(20, MINUTE)])));
    assert!(!engine.introduce_limits(&limits(&[Limit::bucket(10, MINUTE)])));
    assert!(
        !engine.introduce_limits(&limits(&[Limit::window(10, MINUTE), Limit::bucket(1, MINUTE)]))
    );
}
