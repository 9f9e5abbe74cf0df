//! Several limits at once, permits, and what resets do to them.

use std::time::Duration;

use super::setting::{SECOND, at_once, bucket, engine, model, window};
use crate::{Answer, Limit};

#[test]
fn a_hit_whose_second_limit_refuses_against_a_hit() {
    model(|| {
        // Two in the bucket, one in the window: of two hits one passes, and the other gives back
        // what it took from the bucket.
        let (engine, _) = engine(&[bucket(2), window(1, 1)]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I1, I2");
        let views = engine.peek(b"k", 0).views;
        assert_eq!((views[0].remaining, views[1].remaining), (1, 0), "I7");
    });
}

#[test]
fn two_buckets_two_hits() {
    model(|| {
        let (engine, _) = engine(&[bucket(2), bucket(1)]);
        let (a, b) =
            at_once(&engine, move |e| e.hit(b"k", 1).answer, move |e| e.hit(b"k", 1).answer);
        assert_ne!(a, b, "I1, I2: one of each");
        assert!([a, b].contains(&Answer::Allowed) && [a, b].contains(&Answer::Denied));
        let views = engine.peek(b"k", 0).views;
        assert_eq!((views[0].remaining, views[1].remaining), (1, 0), "I7");
    });
}

#[test]
fn two_takers_one_permit() {
    model(|| {
        let (engine, _) = engine(&[Limit::concurrent(1, Duration::from_secs(1))]);
        let (a, b) =
            at_once(&engine, move |e| e.hit(b"k", 1).permit, move |e| e.hit(b"k", 1).permit);
        assert!(a.is_some() ^ b.is_some(), "one permit is out");
    });
}

#[test]
fn release_against_lease_expiry() {
    model(|| {
        // The lease is over when another takes the slot; the first holder's release comes late.
        let (engine, hand) = engine(&[Limit::concurrent(1, Duration::from_secs(1))]);
        let permit = engine.hit(b"k", 1).permit.expect("the first");
        hand.set(20 * SECOND);
        let (_, second) =
            at_once(&engine, move |e| e.release(b"k", permit), move |e| e.hit(b"k", 1).permit);
        let second = second.expect("the slot was free, by release or by expiry");
        assert!(engine.hit(b"k", 1).permit.is_none(), "a late release frees nobody else's permit");
        assert!(engine.release(b"k", second));
    });
}

#[test]
fn renewal_against_lease_expiry() {
    model(|| {
        let (engine, hand) = engine(&[Limit::concurrent(1, Duration::from_secs(1))]);
        let permit = engine.hit(b"k", 1).permit.expect("the first");
        hand.set(20 * SECOND);
        let (renewed, second) =
            at_once(&engine, move |e| e.renew(b"k", permit), move |e| e.hit(b"k", 1).permit);
        assert!(renewed.is_some() ^ second.is_some(), "one holder");
    });
}

#[test]
fn two_takers_one_fixed_place() {
    model(|| {
        let (engine, hand) = engine(&[Limit::fixed(1, Duration::from_secs(1))]);
        assert!(engine.allow(b"k"));
        hand.set(20 * SECOND);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "one place in the new span");
    });
}

#[test]
fn two_takers_one_counter_place() {
    model(|| {
        let (engine, _) = engine(&[Limit::counter(1, Duration::from_secs(1))]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "one place");
    });
}

#[test]
fn reset_against_a_hit_of_two_limits() {
    model(|| {
        let (engine, _) = engine(&[bucket(2), bucket(2)]);
        assert!(engine.allow(b"k"));
        at_once(&engine, move |e| e.reset(b"k"), move |e| e.allow(b"k"));
        let views = engine.peek(b"k", 0).views;
        assert_eq!(views[0].remaining, views[1].remaining, "I7: both limits tell one story");
        assert!(views[0].remaining >= 1);
    });
}

/// What two hits at once are told is left, each counting itself and nobody after it.
fn told_to_two(stated: Limit) -> [u64; 2] {
    let (engine, _) = engine(&[stated]);
    let left = |e: &crate::Engine| e.hit(b"k", 1).views[0].remaining;
    let (a, b) = at_once(&engine, left, left);
    [a.max(b), a.min(b)]
}

#[test]
fn two_hits_are_told_of_different_units() {
    model(|| assert_eq!(told_to_two(window(3, 1)), [2, 1]));
    model(|| assert_eq!(told_to_two(Limit::fixed(3, Duration::from_secs(1))), [2, 1]));
    model(|| assert_eq!(told_to_two(Limit::counter(3, Duration::from_secs(1))), [2, 1]));
}

#[test]
fn two_records_are_told_of_different_units() {
    model(|| {
        let (engine, _) = engine(&[window(3, 1)]);
        let left = |e: &crate::Engine| e.record(b"k", 1)[0].remaining;
        let (a, b) = at_once(&engine, left, left);
        assert_eq!([a.max(b), a.min(b)], [2, 1]);
    });
}

#[test]
fn two_hits_on_two_buckets_are_told_of_different_units() {
    model(|| {
        let (engine, _) = engine(&[bucket(3), bucket(4)]);
        let left = |e: &crate::Engine| {
            let views = e.hit(b"k", 1).views;
            [views[0].remaining, views[1].remaining]
        };
        let (a, b) = at_once(&engine, left, left);
        for limit in 0..2 {
            assert_ne!(a[limit], b[limit]);
        }
    });
}
