//! What a reservation gives back: only its own, and only while it counts (promise 9, laws I1, I9,
//! I13).

use std::time::Duration;

use tidegate::{LimitPatch, Limiter, LimiterBuilder, ManualClock, OnFull, Reservation, Target};

const SECOND: Duration = Duration::from_secs(1);
const START: Duration = Duration::from_secs(1_000);
/// Five in ten seconds, by each algorithm that counts units.
const EACH: [&str; 4] = ["5/10s", "5/10s window", "5/10s fixed", "5/10s counter"];

fn limiter_with(limits: &str, options: LimiterBuilder) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(START, Duration::ZERO);
    let options = options.clock(clock.clock());
    (options.limits(limits).build().unwrap(), clock)
}

fn limiter(limits: &str) -> (Limiter, ManualClock) {
    limiter_with(limits, Limiter::builder())
}

fn reserved(limiter: &Limiter, key: &str, estimate: u64) -> Reservation {
    let reservation = limiter.reserve(key, estimate).unwrap();
    assert!(reservation.decision().allowed);
    reservation
}

/// How many of many hits pass at this moment.
fn passes(limiter: &Limiter, key: &str) -> usize {
    (0..50).filter(|_| limiter.allow(key).unwrap()).count()
}

fn left(limiter: &Limiter, key: &str) -> Option<u64> {
    limiter.peek(key, 0).unwrap().remaining
}

#[test]
fn i1_what_aged_out_is_not_given_back_again() {
    for limits in EACH {
        // Two cells of a counter are 20 s.
        let aged = if limits.ends_with("counter") { 20 } else { 10 };
        for actual in [0, 1, 4] {
            let (limiter, clock) = limiter(limits);
            let reservation = reserved(&limiter, "a", 5);
            clock.advance(aged * SECOND);
            assert_eq!(passes(&limiter, "a"), 5, "{limits}");
            reservation.settle(actual);
            assert_eq!(passes(&limiter, "a"), 0, "I1: {limits}, settled with {actual}");
        }
    }
}

#[test]
fn at_the_same_moment_all_is_given_back() {
    for limits in EACH {
        for (actual, after) in [(0, 5), (1, 4), (4, 1), (5, 0), (9, 0)] {
            let (limiter, _clock) = limiter(limits);
            reserved(&limiter, "a", 5).settle(actual);
            assert_eq!(passes(&limiter, "a"), after, "{limits}, settled with {actual}");
        }
    }
}

#[test]
fn a_bucket_gets_the_estimate_less_what_was_refilled_since() {
    // A token each two seconds.
    for (estimate, seconds, actual, after) in [
        (5, 4, 0, 3), // 2 were refilled and taken: 5 - 2 are left to give
        (5, 4, 2, 3), // 3 are not needed, and 3 may be given back
        (5, 4, 3, 2), // 2 are not needed
        (5, 9, 0, 1), // half a token of the 4.5 is left: with the 0.5 given back, one
        (3, 6, 0, 0), // all three were refilled
        (3, 7, 0, 0),
    ] {
        let (limiter, clock) = limiter("5/10s");
        let reservation = reserved(&limiter, "a", estimate);
        clock.advance(seconds * SECOND);
        let _ = passes(&limiter, "a");
        reservation.settle(actual);
        assert_eq!(passes(&limiter, "a"), after, "{estimate} for {seconds} s, in truth {actual}");
    }
}

/// A window forgets a reservation as a whole, a fixed span with its first hit.
#[test]
fn a_log_and_a_span_get_all_back_until_the_last_nanosecond() {
    for limits in ["5/10s window", "5/10s fixed"] {
        for (nanos, after) in [(1, 5), (10_000_000_000 - 1, 5), (10_000_000_000, 0)] {
            let (limiter, clock) = limiter(limits);
            let reservation = reserved(&limiter, "a", 5);
            clock.advance(Duration::from_nanos(nanos));
            let before = passes(&limiter, "a");
            reservation.cancel();
            assert_eq!(passes(&limiter, "a"), after, "{limits} after {nanos} ns, {before} before");
        }
    }
}

#[test]
fn a_counter_gets_back_only_in_the_cell_of_the_charge() {
    for (seconds, used) in [(9, 0), (10, 5)] {
        let (limiter, clock) = limiter("5/10s counter");
        let reservation = reserved(&limiter, "a", 5);
        clock.advance(seconds * SECOND);
        reservation.cancel();
        assert_eq!(left(&limiter, "a"), Some(5 - used), "after {seconds} s");
    }
}

/// The span of the reservation is over; the one that is open has nothing of it.
#[test]
fn i1_a_later_span_pays_nothing_back_for_an_earlier_one() {
    let (limiter, clock) = limiter("5/10s fixed");
    let reservation = reserved(&limiter, "a", 2);
    clock.advance(10 * SECOND);
    assert!(limiter.hit("a", 5).unwrap().allowed);
    clock.advance(9 * SECOND);
    reservation.cancel();
    assert_eq!(passes(&limiter, "a"), 0);
}

#[test]
fn a_window_gives_back_the_reservations_own_entry_and_no_newer_one() {
    let (limiter, clock) = limiter("5/10s window");
    let reservation = reserved(&limiter, "a", 3);
    clock.advance(5 * SECOND);
    assert!(limiter.hit("a", 2).unwrap().allowed);
    clock.advance(SECOND);
    reservation.cancel();
    assert_eq!(passes(&limiter, "a"), 3);
    // The two of 5 s are out of the window at 15 s; had they been given back, nothing would come
    // free.
    clock.advance(9 * SECOND);
    assert_eq!(passes(&limiter, "a"), 2);
}

#[test]
fn several_limits_each_get_back_what_is_still_theirs() {
    let (limiter, clock) = limiter("5/10s window, 50/min fixed, 50/h");
    let reservation = reserved(&limiter, "a", 5);
    clock.advance(36 * SECOND);
    assert!(limiter.hit("a", 5).unwrap().allowed);
    reservation.cancel();
    let limits = limiter.stats("a").unwrap().expect("the key is known").limits;
    let used: Vec<u64> = limits.iter().map(|limit| limit.used).collect();
    assert_eq!(used, [5, 5, 5], "what was hit, and nothing of the reservation");
    assert_eq!(passes(&limiter, "a"), 0, "I1: the window");
}

#[test]
fn i13_after_a_reset_nothing_is_given_back() {
    for limits in EACH {
        for all in [false, true] {
            let (limiter, _clock) = limiter(limits);
            let reservation = reserved(&limiter, "a", 5);
            if all {
                limiter.reset_all().unwrap()
            } else {
                limiter.reset("a").unwrap()
            }
            assert_eq!(passes(&limiter, "a"), 5, "{limits}");
            reservation.cancel();
            assert_eq!(passes(&limiter, "a"), 0, "I13: {limits}, all: {all}");
        }
    }
}

/// The key's row goes to others and the key comes back, in the same row or in another.
#[test]
fn i13_after_an_eviction_nothing_is_given_back() {
    for limits in EACH {
        let (limiter, clock) = limiter_with(limits, Limiter::builder().capacity(4));
        let reservation = reserved(&limiter, "a", 1);
        let aged = if limits.ends_with("counter") { 30 } else { 10 };
        clock.advance(aged * SECOND);
        for round in 0..40 {
            for number in 0..8 {
                let _ = limiter.allow(format!("{round}-{number}").as_str()).unwrap();
            }
            clock.advance(aged * SECOND);
        }
        assert_eq!(passes(&limiter, "a"), 5, "{limits}");
        reservation.cancel();
        assert_eq!(passes(&limiter, "a"), 0, "I13: {limits}");
    }
}

#[test]
fn i13_after_a_prune_nothing_is_given_back() {
    for limits in EACH {
        let (limiter, clock) = limiter(limits);
        let reservation = reserved(&limiter, "a", 5);
        clock.advance(30 * SECOND);
        assert_eq!(limiter.prune().unwrap(), 1, "{limits}");
        assert_eq!(passes(&limiter, "a"), 5, "{limits}");
        reservation.cancel();
        assert_eq!(passes(&limiter, "a"), 0, "I13: {limits}");
    }
}

/// Keys that find no place share a row: what they give back goes there, and only while it counts.
#[test]
fn i1_a_shared_row_gets_back_by_the_same_rules() {
    for limits in EACH {
        for reset in [false, true] {
            let full = Limiter::builder().capacity(1).on_full(OnFull::Overflow);
            let (limiter, clock) = limiter_with(limits, full);
            for number in 0..40 {
                let _ = limiter.allow(format!("live-{number}").as_str()).unwrap();
            }
            limiter.refund("late", 5).unwrap();
            let free = left(&limiter, "late").unwrap();
            let reservation = reserved(&limiter, "late", free.max(1));
            assert_eq!(left(&limiter, "late"), Some(0), "{limits}");
            if reset {
                limiter.reset_all().unwrap();
                for number in 0..40 {
                    let _ = limiter.allow(format!("live-{number}").as_str()).unwrap();
                }
                let _ = passes(&limiter, "late");
            } else {
                clock.advance(30 * SECOND);
                for number in 0..40 {
                    let _ = passes(&limiter, &format!("live-{number}"));
                }
                let _ = passes(&limiter, "late");
            }
            reservation.cancel();
            assert_eq!(passes(&limiter, "late"), 0, "I1: {limits}, reset: {reset}");
        }
    }
}

/// What was not counted has nothing to give back, though the key may be counted by now.
#[test]
fn i1_a_reservation_that_was_not_counted_gives_nothing_back() {
    let full = Limiter::builder().capacity(1).on_full(OnFull::Allow);
    let (limiter, _clock) = limiter_with("5/10s", full);
    for number in 0..40 {
        assert!(limiter.allow(format!("live-{number}").as_str()).unwrap());
    }
    let reservation = reserved(&limiter, "late", 5);
    limiter.reset_all().unwrap();
    assert_eq!(passes(&limiter, "late"), 5);
    reservation.cancel();
    assert_eq!(passes(&limiter, "late"), 0);
}

/// A clock behind the charge says nothing of what was refilled since.
#[test]
fn i9_a_clock_that_goes_back_gives_nothing_twice() {
    for limits in EACH {
        for back in [100, 500] {
            let (limiter, clock) = limiter(limits);
            let reservation = reserved(&limiter, "a", 5);
            clock.set(START - back * SECOND);
            assert_eq!(passes(&limiter, "a"), 0, "{limits}");
            // By the clock that went back, all of it has come back again.
            let aged = if limits.ends_with("counter") { 20 } else { 10 };
            clock.advance(aged * SECOND);
            assert_eq!(passes(&limiter, "a"), 5, "{limits}, {back} s back");
            reservation.cancel();
            assert_eq!(passes(&limiter, "a"), 0, "I9: {limits}, {back} s back");
        }
    }
}

#[test]
fn i9_a_clock_that_went_back_never_fills_above_full() {
    for limits in EACH {
        let (limiter, clock) = limiter(limits);
        let reservation = reserved(&limiter, "a", 5);
        clock.set(START - 500 * SECOND);
        reservation.cancel();
        assert!(passes(&limiter, "a") <= 5, "{limits}");
        assert_eq!(passes(&limiter, "a"), 0, "{limits}");
    }
}

#[test]
fn two_reservations_give_back_each_its_own() {
    for limits in EACH {
        let (limiter, _clock) = limiter(limits);
        let (first, second) = (reserved(&limiter, "a", 2), reserved(&limiter, "a", 3));
        first.cancel();
        assert_eq!(left(&limiter, "a"), Some(2), "{limits}");
        second.settle(2);
        assert_eq!(left(&limiter, "a"), Some(3), "{limits}");
    }
    let (limiter, clock) = limiter("5/10s window");
    let first = reserved(&limiter, "a", 2);
    clock.advance(6 * SECOND);
    let second = reserved(&limiter, "a", 3);
    clock.advance(4 * SECOND);
    assert_eq!(passes(&limiter, "a"), 2);
    first.cancel();
    assert_eq!(passes(&limiter, "a"), 0, "the first has left the window");
    second.cancel();
    assert_eq!(passes(&limiter, "a"), 3);
}

#[test]
fn right_after_a_hit_a_cancelled_reservation_leaves_no_trace() {
    // By the host's clock: microseconds pass, in which less than a thousandth is refilled.
    for limits in ["5/h", "5/h window", "5/h fixed"] {
        let limiter = Limiter::new(limits).unwrap();
        assert!(limiter.allow("a").unwrap());
        reserved(&limiter, "a", 2).cancel();
        assert_eq!(left(&limiter, "a"), Some(4), "{limits}");
        reserved(&limiter, "b", 5).cancel();
        assert_eq!(left(&limiter, "b"), Some(5), "{limits}");
    }
}

/// It is settled by the numbers that it was made under, in the row that it was made in.
#[test]
fn i13_numbers_that_change_meanwhile_make_no_reservation_give_back_more() {
    for limits in EACH {
        for max in [1, 3, 5] {
            let (limiter, _clock) = limiter(limits);
            let reservation = reserved(&limiter, "a", 4);
            limiter
                .set_override(Target::key("a"), vec![("5/10s".into(), LimitPatch::max(max))])
                .unwrap();
            reservation.cancel();
            assert!(passes(&limiter, "a") <= max as usize, "{limits}, max {max}");
        }
    }
}

#[test]
fn a_denied_reservation_gives_nothing_back() {
    let limits = "5/10s";
    let (limiter, _clock) = limiter(limits);
    assert_eq!(passes(&limiter, "a"), 5);
    let denied = limiter.reserve("a", 3).unwrap();
    assert!(!denied.decision().allowed);
    denied.cancel();
    assert_eq!(passes(&limiter, "a"), 0);
}

#[test]
fn a_refund_gives_back_no_more_than_is_missing() {
    for limits in EACH {
        let (limiter, clock) = limiter(limits);
        assert_eq!(passes(&limiter, "a"), 5, "{limits}");
        let aged = if limits.ends_with("counter") { 20 } else { 10 };
        clock.advance(aged * SECOND);
        limiter.refund("a", 5).unwrap();
        assert!(limiter.hit("a", 2).unwrap().allowed);
        limiter.refund("a", 50).unwrap();
        assert_eq!(passes(&limiter, "a"), 5, "{limits}");
    }
}
