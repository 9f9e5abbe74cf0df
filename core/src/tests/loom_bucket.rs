//! One word: takers, refill, refunds, resets.

use std::sync::Arc;
use std::time::Duration;

use super::setting::{SECOND, at_once, both, bucket, engine, limits, model};
use crate::clock::Time;
use crate::{Engine, Limit, LimitStatuses, RowRef};

#[test]
fn two_takers_one_token() {
    model(|| {
        let (engine, _) = engine(&[bucket(1)]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I2: one token, granted {}", u8::from(a) + u8::from(b));
    });
}

#[test]
fn two_takers_two_tokens_of_three() {
    model(|| {
        let (engine, _) = engine(&[bucket(3)]);
        assert!(engine.allow(b"k"));
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a && b, "I2: nobody is refused while tokens are there");
        assert!(!engine.allow(b"k"), "I1");
    });
}

/// As [`engine`], with a limit of `max` in a minute, and a clock that has a coarse time.
fn slow_engine(max: u64) -> Arc<Engine> {
    let (engine, hand) = engine(&[Limit::bucket(max, Duration::from_secs(60))]);
    hand.set_lag(Duration::ZERO);
    engine
}

#[test]
fn two_takers_by_the_coarse_clock() {
    model(|| {
        let engine = slow_engine(3);
        assert!(engine.allow(b"k"));
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a && b, "I2: nobody is refused while tokens are there");
        assert!(!engine.allow(b"k"), "I1");
    });
}

#[test]
fn reset_against_hit_by_the_coarse_clock() {
    model(|| {
        let engine = slow_engine(3);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        let (_, taken) = at_once(&engine, move |e| e.reset(b"k"), move |e| e.allow(b"k"));
        assert!(taken, "I2");
        // The hit came before the reset and was wiped, or after it and is spent.
        let left = engine.peek(b"k", 0).statuses[0].remaining;
        assert!(left == 3 || left == 2, "left {left}");
    });
}

#[test]
fn take_against_refill() {
    model(|| {
        // Two tokens a second, both spent. Half a second later, by one taker's clock, one is back.
        let (engine, hand) = engine(&[bucket(2)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        let other = engine.clone();
        let (a, b) = both(
            move || {
                hand.set(10 * SECOND + SECOND / 2);
                other.allow(b"k")
            },
            {
                let engine = engine.clone();
                move || engine.allow(b"k")
            },
        );
        assert!(a || b, "I3: the token that came back can be had");
        assert!(!(a && b), "I1: it can be had once");
        assert!(!engine.allow(b"k"), "I1: and stays spent");
    });
}

/// Both move the stamp: one by the fast path, the other, of cost 2, by the general.
#[test]
fn two_takers_after_a_refill() {
    model(|| {
        let (engine, hand) = engine(&[bucket(4)]);
        assert!((0..4).all(|_| engine.allow(b"k")));
        hand.set(10 * SECOND + SECOND * 3 / 4);
        let (one, two) =
            at_once(&engine, move |e| e.allow(b"k"), move |e| e.hit(b"k", 2).answer.is_allowed());
        assert!(one && two, "I2, I3: three have come back");
        assert!(!engine.allow(b"k"), "I1: what was refilled counts once");
        hand.set(11 * SECOND - 1);
        assert_eq!(engine.peek(b"k", 0).statuses[0].remaining, 0, "I1");
        hand.set(11 * SECOND);
        assert_eq!(engine.peek(b"k", 0).statuses[0].remaining, 1, "I3: the fourth");
    });
}

/// One reads the clock, and another's charge of a full bucket is later than that reading.
#[test]
fn an_old_reading_against_a_hit_from_full() {
    for cost in [1, 2] {
        model(move || {
            let (engine, hand) = engine(&[bucket(4)]);
            assert!(engine.allow(b"k"));
            hand.set(20 * SECOND);
            let later = move |e: &Engine| {
                hand.set(20 * SECOND + SECOND / 8);
                e.hit(b"k", 2).answer.is_allowed()
            };
            let (a, b) = at_once(&engine, later, move |e| e.hit(b"k", cost).answer.is_allowed());
            assert!(a && b, "I2: nobody is refused while tokens are there");
            let left = engine.peek(b"k", 0).statuses[0].remaining;
            assert_eq!(left, 2 - cost, "I1, I3");
        });
    }
}

/// One of two is judged by numbers whose words have fewer bits for the tokens.
#[test]
fn two_takers_by_different_numbers() {
    model(|| {
        let (engine, _) = engine(&[bucket(2)]);
        let small = limits(&[bucket(1)]);
        assert!(engine.introduce_limits(&small) && engine.allow(b"k"));
        let by_small = move |e: &Engine| {
            let part = RowRef { limits: &small, ..e.part(e.hash(b"k")) };
            let time = &mut Time::read(e.clock());
            part.hit(1, time, &mut LimitStatuses::default()).answer.is_allowed()
        };
        let (a, b) = at_once(&engine, by_small, move |e| e.allow(b"k"));
        assert!(a ^ b, "I1, I2: one token is left, whoever asks");
        assert!(!engine.allow(b"k"), "I13");
    });
}

#[test]
fn take_against_refund() {
    model(|| {
        let (engine, _) = engine(&[bucket(2)]);
        assert!(engine.allow(b"k"));
        let (_, taken) = at_once(&engine, move |e| e.refund(b"k", 1), move |e| e.allow(b"k"));
        assert!(taken, "I2");
        let left = engine.peek(b"k", 0).statuses[0].remaining;
        assert_eq!(left, 1, "I6: two taken, one given back, of two");
    });
}

#[test]
fn refund_never_passes_full() {
    model(|| {
        let (engine, _) = engine(&[bucket(2)]);
        assert!(engine.allow(b"k"));
        at_once(&engine, move |e| e.refund(b"k", 1), move |e| e.refund(b"k", 1));
        assert_eq!(engine.peek(b"k", 0).statuses[0].remaining, 2, "I6");
    });
}

#[test]
fn reset_against_hit() {
    model(|| {
        let (engine, _) = engine(&[bucket(2)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        let (_, taken) = at_once(&engine, move |e| e.reset(b"k"), move |e| e.allow(b"k"));
        // The hit came before the reset (refused, or wiped) or after it (and one is spent).
        let left = engine.peek(b"k", 0).statuses[0].remaining;
        assert!(left == 2 || (taken && left == 1), "left {left}, taken {taken}");
    });
}
