//! A reading of the clock may be older than the word it is held against: the thread was slow.
//!
//! A batch reads the clock, then the bytes of its keys, and judges them after that. A key whose
//! bytes are read can act in between. That is another thread running at that very moment, without a
//! race. Each test was a bug once.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::{
    Answer, Clock, Engine, Limit, LimitStatus, LimitStatuses, Limits, ManualClock, OnFull, Options,
    Time, hit_together,
};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
const START: u64 = 100 * SECOND;

fn engine(limit: Limit, nanos: u64) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(nanos);
    let options = Options { capacity: 64, on_full: OnFull::Deny, clock, seed: Some(1) };
    (Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap(), hand)
}

/// A key that does something when it is asked for its bytes.
struct Acting<'a>(&'a [u8], usize, &'a dyn Fn(usize));

impl AsRef<[u8]> for Acting<'_> {
    fn as_ref(&self) -> &[u8] {
        (self.2)(self.1);
        self.0
    }
}

/// A batch that hits `x` `hits` times by one reading of the clock, and other keys after that. `act`
/// is called with each key's number between that reading and the first hit.
fn batch(engine: &Engine, hits: usize, act: &dyn Fn(usize)) -> Vec<u8> {
    let name = |i: usize| if i < hits { b"x" } else { b"y" };
    let keys: Vec<_> = (0..16 + hits).map(|i| Acting(name(i), i, act)).collect();
    let mut out = vec![0; keys.len()];
    engine.allow_many(&keys, &mut out);
    out
}

/// Others spend `max` at 102 s and `max` at 104 s while a thread holds a reading of 100 s.
fn spent_meanwhile(limit: Limit) -> (Engine, Arc<ManualClock>) {
    let (engine, hand) = engine(limit, START);
    let granted = Cell::new(0);
    let act = |i: usize| {
        if let 16 | 17 = i {
            hand.set(START + (i as u64 - 15) * 2 * SECOND);
            granted.set((0..limit.max).filter(|_| engine.allow(b"x")).count() as u64);
        }
    };
    batch(&engine, 2, &act);
    assert!(granted.get() >= limit.max - 1, "the second span's worth was there: {limit:?}");
    (engine, hand)
}

#[test]
fn a_stale_reading_mends_nothing_that_is_merely_newer() {
    let second = Duration::from_secs(1);
    for limit in [
        Limit::bucket(100, second),
        Limit::window(5, second),
        Limit::fixed(5, second),
        Limit::counter(5, second),
    ] {
        let (engine, _) = spent_meanwhile(limit);
        let more = (0..200).filter(|_| engine.allow(b"x")).count();
        assert!(more <= 1, "I1: {more} more at the same moment of {limit:?}");
    }
}

#[test]
fn a_window_entry_is_not_dated_back_by_a_stale_reading() {
    let (engine, hand) = spent_meanwhile(Limit::window(5, Duration::from_secs(1)));
    while engine.allow(b"x") {}
    hand.set(START + 4 * SECOND + 1000);
    assert!(!engine.allow(b"x"), "I1: a sixth within a second");
}

#[test]
fn a_permit_that_is_newer_than_a_reading_can_be_released() {
    let (engine, hand) = engine(Limit::concurrent(2, Duration::from_secs(1)), START);
    let permit = RefCell::new(None);
    let act = |i: usize| {
        if let 16 | 17 = i {
            hand.set(START + (i as u64 - 15) * 2 * SECOND);
            *permit.borrow_mut() = engine.hit(b"x", 1).permit;
        }
    };
    batch(&engine, 2, &act);
    assert!(engine.release(b"x", permit.borrow().expect("it was granted")));
}

#[test]
fn a_stale_reading_finds_what_was_refilled_since() {
    // Ticks of a second: the line that starts at 100.1 s has its stamp at 101 s, and is lowered to
    // nothing there.
    let limit = Limit::bucket(2_000_000, Duration::from_secs(60));
    let (engine, hand) = engine(limit, START + 50 * MILLISECOND);
    let act = |i: usize| {
        if i == 16 {
            hand.set(START + 100 * MILLISECOND);
            assert_eq!(engine.hit(b"x", 100_000).answer, Answer::Allowed);
            hand.set(START + 2 * SECOND);
            assert_eq!(engine.hit(b"x", 1_930_000).answer, Answer::Allowed);
        }
    };
    assert_eq!(batch(&engine, 1, &act)[0], 1, "I2: thirty thousand are left");
}

#[test]
fn a_reading_that_is_a_little_stale_finds_the_last_token() {
    let (engine, hand) = engine(Limit::bucket(20, Duration::from_secs(60)), START);
    let act = |i: usize| {
        if i == 16 {
            hand.set(START + 3 * MILLISECOND - 1);
            assert!((0..19).all(|_| engine.allow(b"x")));
        }
    };
    assert_eq!(batch(&engine, 1, &act)[0], 1, "I2: twenty hits on a fresh key");
}

#[test]
fn a_clock_that_keeps_going_back_grants_nothing() {
    let (engine, hand) = engine(Limit::bucket(5_000, Duration::from_secs(1)), START);
    assert!(engine.hit(b"x", 5_000).answer.is_allowed());
    let mut now = START + 777_777_777;
    hand.set(now);
    while engine.allow(b"x") {}
    engine.refund(b"x", 100);
    let before = engine.peek(b"x", 0).statuses[0].remaining;
    for _ in 0..40 {
        now = (now - 39 * MILLISECOND) / (10 * MILLISECOND) * (10 * MILLISECOND) + 1;
        hand.set(now);
        assert_eq!(engine.hit(b"x", 5_000).answer, Answer::Denied);
    }
    let after = engine.peek(b"x", 0).statuses[0].remaining;
    assert!(after <= before, "I9: {before} tokens became {after}");
}

#[test]
fn what_was_recorded_beyond_any_measure_is_given_back_as_recorded() {
    let second = Duration::from_secs(1);
    for limit in [Limit::window(5, second), Limit::counter(5, second), Limit::fixed(5, second)] {
        for much in [10_000, 2_000_000_000, u64::MAX] {
            let (engine, _) = engine(limit, START);
            assert!((0..4).all(|_| engine.allow(b"x")));
            engine.record(b"x", much);
            assert!(!engine.allow(b"x"));
            engine.refund(b"x", much);
            let more = (0..9).filter(|_| engine.allow(b"x")).count();
            assert_eq!(
                more, 1,
                "I6: four of five were spent before {much} came and went: {limit:?}"
            );
        }
    }
}

#[test]
fn every_clock_reading_is_served() {
    let second = Duration::from_secs(1);
    for limit in [
        Limit::bucket(5, second),
        Limit::window(5, second),
        Limit::counter(5, second),
        Limit::fixed(5, second),
        Limit::concurrent(5, second),
    ] {
        for now in [0, 1, 999, 1 << 32, 1 << 62, u64::MAX - 999, u64::MAX] {
            let (engine, hand) = engine(limit, now);
            assert!(engine.allow(b"x"), "{limit:?} at {now}");
            let _ = engine.hit(b"x", u64::MAX);
            let _ = engine.peek(b"x", u64::MAX);
            engine.record(b"x", u64::MAX);
            engine.refund(b"x", u64::MAX);
            for other in [!now, 0, now] {
                hand.set(other);
                let _ = (engine.hit(b"x", 2), engine.hit(b"x", 5), engine.peek(b"x", 1));
            }
            engine.reset(b"x");
            assert!(engine.allow(b"x"), "after a reset: {limit:?} at {now}");
        }
    }
}

#[test]
fn concurrent_hits_fill_a_window_that_has_wrapped() {
    // Two threads, four places, a ring that is overwritten in every round: nobody is refused.
    const ROUNDS: usize = 30_000;
    let (engine, hand) = engine(Limit::window(4, Duration::from_millis(1)), START);
    let (gate, granted) = (std::sync::Barrier::new(2), AtomicU64::new(0));
    let round = || {
        gate.wait();
        let mine = (0..2).filter(|_| engine.allow(b"x")).count() as u64;
        granted.fetch_add(mine, Ordering::SeqCst);
        gate.wait();
    };
    std::thread::scope(|s| {
        s.spawn(|| (0..ROUNDS).for_each(|_| round()));
        for i in 1..=ROUNDS as u64 {
            hand.set(START + i * 2 * MILLISECOND);
            round();
            assert_eq!(granted.load(Ordering::SeqCst), 4 * i, "I2");
        }
    });
}

#[test]
fn resets_and_hits_of_a_window_race_without_harm() {
    let (engine, hand) = engine(Limit::window(4, Duration::from_millis(1)), START);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                engine.reset(b"x");
                hand.advance(Duration::from_micros(300));
            }
        });
        let granted = (0..500_000).filter(|_| engine.allow(b"x")).count();
        done.store(true, Ordering::SeqCst);
        assert!(granted > 0);
    });
}

#[test]
fn a_permit_of_another_engine_is_not_ours_to_release() {
    let (many, _) = engine(Limit::concurrent(50, Duration::from_secs(1)), START);
    let (one, _) = engine(Limit::concurrent(1, Duration::from_secs(1)), START);
    let mut foreign = None;
    for _ in 0..50 {
        foreign = many.hit(b"x", 1).permit;
    }
    let foreign = foreign.expect("fifty are out");
    assert!(one.hit(b"x", 1).permit.is_some());
    assert!(!one.release(b"x", foreign));
    assert!(one.renew(b"x", foreign).is_none());
    assert!(one.hit(b"x", 1).permit.is_none(), "the slot is still held");
}

/// A hit on all and on a new key, for which the clock is read anew: told of the limit on all, and
/// what that is then. The clock moves on from one time to the other while the hit is under way.
fn told_and_true(stated: Limit, from: u64, to: u64) -> (LimitStatus, LimitStatus) {
    let (clock, hand) = Clock::manual(100 * SECOND);
    let engine = |limit: Limit| {
        let options = Options { clock: clock.clone(), ..Options::default() };
        Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap()
    };
    let (all, each) = (engine(stated), engine(Limit::bucket(5, Duration::from_secs(1))));
    assert!(all.hit(b"", 59).answer.is_allowed());
    hand.set(from);
    let (mut time, mut statuses) = (Time::read(&clock), [LimitStatuses::default(); 2]);
    hand.set(to);
    let parts = [all.part(all.hash(b"")), each.part(each.hash(b"new"))];
    assert!(hit_together(&parts, &[1; 2], &mut time, &mut statuses).answer.is_allowed());
    (statuses[0][0], all.peek(b"", 0).statuses[0])
}

#[test]
fn a_cell_that_ends_under_a_hit_is_told_once() {
    let counter = Limit::counter(100, Duration::from_secs(1));
    let (told, is) = told_and_true(counter, 100 * SECOND + 900_000_000, 101 * SECOND);
    assert_eq!(told, is);
    assert_eq!(told.used, 60);
}

#[test]
fn a_span_that_ends_under_a_hit_is_over() {
    let fixed = Limit::fixed(100, Duration::from_secs(1));
    let (told, is) = told_and_true(fixed, 101 * SECOND - 1, 101 * SECOND + 5_000);
    assert_eq!(told, is);
    assert_eq!(told.used, 0);
}
