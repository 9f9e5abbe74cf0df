//! Several limits at once, permits, and what resets do to them.

use std::time::Duration;

use super::setting::{SECOND, at_once, both, bucket, engine, key, limits, model, table, window};
use crate::algorithm::Taken;
use crate::clock::{Clock, Time};
use crate::limits::Limits;
use crate::table::row::Moved;
use crate::table::{Hash, Table};
use crate::{Answer, Engine, Limit, LimitStatuses, RowRef};

#[test]
fn a_hit_whose_second_limit_refuses_against_a_hit() {
    model(|| {
        // Two in the bucket, one in the window: of two hits one passes, and the other gives back
        // what it took from the bucket.
        let (engine, _) = engine(&[bucket(2), window(1, 1)]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I1, I2");
        let statuses = engine.peek(b"k", 0).statuses;
        assert_eq!((statuses[0].remaining, statuses[1].remaining), (1, 0), "I7");
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
        let statuses = engine.peek(b"k", 0).statuses;
        assert_eq!((statuses[0].remaining, statuses[1].remaining), (1, 0), "I7");
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

/// The engine's slots are three, and those who take have a max of one.
#[test]
fn two_takers_one_permit_of_a_larger_ceiling() {
    model(|| {
        let (engine, _) = engine(&[Limit::concurrent(1, Duration::from_secs(1)).ceiling(3)]);
        let (a, b) =
            at_once(&engine, move |e| e.hit(b"k", 1).permit, move |e| e.hit(b"k", 1).permit);
        assert!(a.is_some() ^ b.is_some(), "I1, I2: one permit is out");
    });
}

#[test]
fn a_release_of_before_a_reset_against_a_taker() {
    model(|| {
        // All in one microsecond: a word that came again would be another holder's.
        let (engine, _) = engine(&[Limit::concurrent(1, Duration::from_secs(1))]);
        let permit = engine.hit(b"k", 1).permit.expect("the first");
        engine.reset(b"k");
        let (late, second) =
            at_once(&engine, move |e| e.release(b"k", permit), move |e| e.hit(b"k", 1).permit);
        assert!(!late, "I13: nothing after a reset");
        let second = second.expect("the key is as new");
        assert!(engine.hit(b"k", 1).permit.is_none(), "a late release frees nobody else's permit");
        assert!(engine.release(b"k", second));
    });
}

/// A permit of a key's row, as the engine takes it; given back at once if that is wanted.
fn take_permit(shared: &(Table, Limits), hash: Hash, now: u64, give_back: bool) -> bool {
    let (clock, _) = Clock::manual(now);
    let time = &mut Time::read(&clock);
    loop {
        let Ok((row, _)) = shared.0.find_or_insert(hash, &shared.1, now) else { return false };
        let mut taken = Taken::default();
        match shared.1.take(&row, 1, 0, time, &mut taken) {
            Err(Moved) => continue,
            Ok(false) => return false,
            Ok(true) => {
                if give_back {
                    shared.1.give_back(&row, &taken, 1, time);
                }
                return true;
            }
        }
    }
}

#[test]
fn a_taker_of_a_permit_against_eviction() {
    for give_back in [false, true] {
        model(move || {
            // Two rows, whose keys gave their permits back: key 1 comes again while key 3 wants a
            // row, in the same microsecond, and may have given back too before key 1 goes on.
            let shared = table(&[Limit::concurrent(1, Duration::from_secs(1)).ceiling(3)]);
            assert!([1, 2].iter().all(|k| take_permit(&shared, key(*k), 10 * SECOND, true)));
            let (for_new, for_old) = (shared.clone(), shared.clone());
            let (new, old) = both(
                move || take_permit(&for_new, key(3), 10 * SECOND, give_back),
                move || take_permit(&for_old, key(1), 10 * SECOND, false),
            );
            assert!(new && old, "I10: there is a row for both, and a permit in each");
            assert!(!take_permit(&shared, key(1), 10 * SECOND, true), "I1: it is out");
            let third = take_permit(&shared, key(3), 10 * SECOND, true);
            assert_eq!(third, give_back, "I1: so is the other, unless it was given back");
        });
    }
}

#[test]
fn a_taker_against_a_lease_that_ends_and_a_late_renewal() {
    model(|| {
        // Two slots, one of which has just run out; its holder renews while another takes.
        let (engine, hand) = engine(&[Limit::concurrent(2, Duration::from_secs(1))]);
        let first = engine.hit(b"k", 1).permit.expect("the first");
        hand.set(10 * SECOND + SECOND / 2);
        let second = engine.hit(b"k", 1).permit.expect("the second");
        hand.set(11 * SECOND);
        let (renewed, third) =
            at_once(&engine, move |e| e.renew(b"k", first), move |e| e.hit(b"k", 1).permit);
        assert!(renewed.is_none(), "its lease was over");
        let third = third.expect("a slot was free");
        assert_eq!(engine.peek(b"k", 0).statuses[0].used, 2, "I1");
        assert!(engine.release(b"k", second) && engine.release(b"k", third), "both are held");
    });
}

#[test]
fn a_renewal_against_a_taker_with_a_shorter_lease() {
    model(|| {
        let (engine, hand) = engine(&[Limit::concurrent(1, Duration::from_secs(60))]);
        let short = limits(&[Limit::concurrent(1, Duration::from_secs(1))]);
        assert!(engine.introduce_limits(&short));
        let permit = engine.hit(b"k", 1).permit.expect("the first");
        hand.set(12 * SECOND);
        let by_short = move |e: &Engine| {
            let part = RowRef { limits: &short, ..e.part(e.hash(b"k")) };
            part.hit(1, &mut Time::read(e.clock()), &mut LimitStatuses::default())
                .answer
                .is_allowed()
        };
        let (renewed, taken) = at_once(&engine, move |e| e.renew(b"k", permit), by_short);
        assert!(!taken, "I13: a permit that is out keeps its own lease");
        assert!(engine.release(b"k", renewed.expect("its lease is not over")));
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
        let statuses = engine.peek(b"k", 0).statuses;
        assert_eq!(statuses[0].remaining, statuses[1].remaining, "I7: both limits tell one story");
        assert!(statuses[0].remaining >= 1);
    });
}

#[test]
fn a_record_of_two_limits_against_prune() {
    model(|| {
        let (engine, hand) = engine(&[bucket(2), bucket(2)]);
        assert!(engine.allow(b"k"));
        hand.set(20 * SECOND);
        at_once(&engine, move |e| e.prune(), move |e| _ = e.record(b"k", 1));
        let statuses = engine.peek(b"k", 0).statuses;
        let left = (statuses[0].remaining, statuses[1].remaining);
        assert_eq!(left, (1, 1), "I7, I10: recorded once, whoever sealed the row meanwhile");
    });
}

/// What two hits at once are told is left, each counting itself and nobody after it.
fn told_to_two(stated: Limit) -> [u64; 2] {
    let (engine, _) = engine(&[stated]);
    let left = |e: &crate::Engine| e.hit(b"k", 1).statuses[0].remaining;
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
            let statuses = e.hit(b"k", 1).statuses;
            [statuses[0].remaining, statuses[1].remaining]
        };
        let (a, b) = at_once(&engine, left, left);
        for limit in 0..2 {
            assert_ne!(a[limit], b[limit]);
        }
    });
}
