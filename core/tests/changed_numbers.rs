//! I13: a change of numbers or of the clock grants nothing, and denies for no longer than the
//! limit's own time. Here: permits, counters and fixed counts. Each of these was a fault once.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Answer, Clock, Engine, HitOutcome, Limit, LimitStatus, LimitStatuses, Limits, ManualClock,
    Options, Permit, RowRef, Time,
};

const KEY: &[u8] = b"it";
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// Between two microseconds, so that everything that rounds does so.
const START: u64 = 1_000_000_001_234_567;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn engine_at(limit: Limit, now: u64) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(now);
    let options = Options { capacity: 16, clock, seed: Some(3), ..Options::default() };
    (Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap(), hand)
}

/// Numbers that the table's keys may be judged by.
fn numbers(engine: &Engine, limit: Limit) -> Limits {
    let limits = Limits::new(&[limit]).unwrap();
    assert!(engine.introduce_limits(&limits), "{limit:?} is of another shape");
    limits
}

fn part<'a>(engine: &'a Engine, limits: &'a Limits) -> RowRef<'a> {
    RowRef { engine, hash: engine.hash(KEY), limits }
}

/// A hit by these numbers: whether it passes, its permit, and what the limit says.
fn hit_by(engine: &Engine, limits: &Limits, cost: u64) -> (bool, Option<Permit>, LimitStatus) {
    let (mut time, mut statuses) = (Time::read(engine.clock()), LimitStatuses::default());
    let together = part(engine, limits).hit(cost, &mut time, &mut statuses);
    (together.answer == Answer::Allowed, together.permits[0], statuses[0])
}

fn left_by(engine: &Engine, limits: &Limits) -> u64 {
    part(engine, limits).inspect(0, engine.clock().now())[0].remaining
}

fn grants_by(engine: &Engine, limits: &Limits, hits: usize) -> u64 {
    (0..hits).filter(|_| hit_by(engine, limits, 1).0).count() as u64
}

fn release_by(engine: &Engine, limits: &Limits, permit: Permit) -> bool {
    part(engine, limits).release(permit, engine.clock().now())
}

fn permits(max: u64, lease: Duration) -> Limit {
    Limit::concurrent(max, lease).ceiling(max.max(8))
}

// ---- Permits ----

#[test]
fn a_call_by_a_shorter_lease_leaves_a_permit_alone_that_is_out() {
    let (engine, hand) = engine_at(permits(1, seconds(60)), START);
    let short = numbers(&engine, permits(1, seconds(1)));
    let permit = engine.hit(KEY, 1).permit.expect("the first");
    let (allowed, _, status) = hit_by(&engine, &short, 1);
    assert!(!allowed && status.wait <= MINUTE && status.wait > MINUTE - 1_000, "{status:?}");
    hand.advance(seconds(2));
    assert!(!hit_by(&engine, &short, 1).0, "I13: it keeps the lease that it was given");
    let permit = engine.renew(KEY, permit).expect("it is out");
    hand.advance(seconds(59));
    assert!(!hit_by(&engine, &short, 1).0, "I13: so does a renewed one");
    assert!(engine.release(KEY, permit), "and its holder can give it back");
    assert!(hit_by(&engine, &short, 1).0);
}

#[test]
fn a_permit_can_be_released_and_renewed_by_other_numbers() {
    for lease in [1, 30, 60, 90, 12_345, 86_400 * 366] {
        let (engine, hand) = engine_at(permits(1, seconds(60)), START);
        let other = numbers(&engine, permits(1, seconds(lease)));
        let permit = engine.hit(KEY, 1).permit.expect("the first");
        hand.advance(seconds(50));
        let now = engine.clock().now();
        let renewed = part(&engine, &other).renew(permit, now).expect("it is out");
        assert!(!engine.release(KEY, permit), "its word is another by now");
        assert!(release_by(&engine, &other, renewed), "lease {lease}");
        assert_eq!(engine.peek(KEY, 0).statuses[0].used, 0);
        let permit = engine.hit(KEY, 1).permit.expect("it is free again");
        assert!(release_by(&engine, &other, permit), "lease {lease}");
    }
}

/// Up to three digits are told exactly; what has more is told as a little longer, never as shorter.
#[test]
fn a_lease_is_known_to_those_who_have_another() {
    for micros in
        [1_000, 1_001, 1_230_000, 60_000_000, 12_345_678, 3_600_000_000, 31_622_400_000_000]
    {
        let lease = Duration::from_micros(micros);
        let (engine, hand) = engine_at(permits(1, lease), 5 * START);
        let other = numbers(&engine, permits(1, seconds(77)));
        assert!(engine.allow(KEY));
        let told = |limits: &Limits| part(&engine, limits).inspect(1, engine.clock().now())[0].wait;
        let (own, theirs) = (told(engine.limits()), told(&other));
        assert!(own <= micros * 1_000 && own + 1_000 > micros * 1_000, "I5: {own} of {lease:?}");
        assert!(theirs >= own && theirs - own <= own / 100, "I13: {theirs} for {lease:?}");
        hand.advance(Duration::from_nanos(own - 1));
        assert!(!engine.allow(KEY) && !hit_by(&engine, &other, 1).0, "I1");
        hand.advance(Duration::from_nanos(theirs - own + 1));
        assert!(hit_by(&engine, &other, 1).0, "I5: after its wait");
    }
}

#[test]
fn a_permit_of_a_short_lease_is_free_after_it_by_longer_ones_too() {
    let (engine, hand) = engine_at(permits(1, seconds(60)), START);
    let short = numbers(&engine, permits(1, seconds(1)));
    let permit = hit_by(&engine, &short, 1).1.expect("the first");
    hand.advance(seconds(1));
    assert!(engine.renew(KEY, permit).is_none() && !engine.release(KEY, permit));
    assert!(engine.allow(KEY), "I13: nothing is denied for longer than the lease that was given");
}

#[test]
fn a_permit_whose_lease_ran_out_is_not_released() {
    let (engine, hand) = engine_at(permits(2, seconds(10)), START);
    let permit = engine.hit(KEY, 1).permit.expect("the first");
    hand.advance(seconds(10));
    assert!(!engine.release(KEY, permit) && engine.renew(KEY, permit).is_none());
    hand.set(START + 9 * SECOND);
    assert!(engine.release(KEY, permit), "nobody took it, so by that clock it is still out");
}

#[test]
fn permits_beyond_ones_own_max_count() {
    let (engine, _) = engine_at(permits(8, seconds(60)), START);
    let four = numbers(&engine, permits(4, seconds(60)));
    let out: Vec<Permit> = (0..6).map(|_| engine.hit(KEY, 1).permit.unwrap()).collect();
    assert!(engine.release(KEY, out[0]) && engine.release(KEY, out[1]));
    let (allowed, _, status) = hit_by(&engine, &four, 1);
    assert!(!allowed, "I1: four are out");
    assert_eq!((status.used, status.remaining), (4, 0));
    assert!(engine.release(KEY, out[5]));
    assert!(hit_by(&engine, &four, 1).0 && !hit_by(&engine, &four, 1).0);
}

/// Of six that are out, a max of two waits for the fifth that ends, and more is there with that.
#[test]
fn a_smaller_max_waits_for_all_that_are_too_many() {
    let (engine, hand) = engine_at(permits(8, seconds(60)), START / 1_000 * 1_000);
    let two = numbers(&engine, permits(2, seconds(60)));
    let leases = [9, 50, 20, 40, 10, 30].map(|lease| numbers(&engine, permits(8, seconds(lease))));
    for limits in &leases {
        assert!(hit_by(&engine, limits, 1).0);
    }
    let look = |limits: &Limits| part(&engine, limits).inspect(1, engine.clock().now())[0];
    let status = look(&two);
    assert_eq!((status.used, status.remaining), (6, 0));
    assert_eq!([status.wait, status.more, status.reset].map(|ns| ns / SECOND), [40, 40, 50]);
    let status = look(engine.limits());
    assert_eq!([status.wait, status.more, status.reset].map(|ns| ns / SECOND), [0, 9, 50]);
    hand.advance(Duration::from_nanos(40 * SECOND - 1));
    assert!(!hit_by(&engine, &two, 1).0, "I5");
    hand.advance(Duration::from_nanos(1));
    assert!(hit_by(&engine, &two, 1).0, "I5");
}

#[test]
fn a_clock_that_goes_back_keeps_a_permit_no_longer_than_its_lease() {
    for back in [1, 999, SECOND, HOUR, 366 * 24 * HOUR] {
        let start = 40_000_000 * SECOND + 1_234_567;
        let (engine, hand) = engine_at(permits(1, seconds(60)), start);
        let short = numbers(&engine, permits(1, seconds(1)));
        let permit = engine.hit(KEY, 1).permit.expect("the first");
        hand.set(start - back);
        let (allowed, _, status) = hit_by(&engine, &short, 1);
        assert!(!allowed && status.wait <= MINUTE, "I9: {back} ns back: {status:?}");
        hand.advance(seconds(2));
        assert!(!hit_by(&engine, &short, 1).0, "I13: {back} ns back, by a lease of a second");
        hand.advance(Duration::from_nanos(status.wait - 2 * SECOND));
        assert!(hit_by(&engine, &short, 1).0, "I9: {back} ns back, after {} ns", status.wait);
        assert!(!engine.release(KEY, permit), "it is another's");
    }
}

#[test]
fn a_permit_of_before_a_reset_frees_nobody_elses() {
    let (engine, _) = engine_at(permits(1, seconds(60)), START);
    let mut old = vec![engine.hit(KEY, 1).permit.expect("the first")];
    for _ in 0..3 {
        engine.reset(KEY);
        let next = engine.hit(KEY, 1).permit.expect("the key is as new");
        assert!(old.iter().all(|old| !engine.release(KEY, *old)), "I13: at the same instant");
        assert!(old.iter().all(|old| engine.renew(KEY, *old).is_none()));
        assert!(engine.hit(KEY, 1).permit.is_none(), "it is still out");
        old.push(next);
    }
}

// ---- Counters ----

#[test]
fn a_counter_that_is_spent_stays_spent_by_other_numbers() {
    let start = 24_000 * HOUR + 30 * SECOND;
    for (max, per) in [(10, 60), (10, 61), (7, 60), (10, 3_600), (2, 86_400), (10, 30 * 86_400)] {
        let (engine, hand) = engine_at(Limit::counter(10, seconds(60)), start);
        let other = numbers(&engine, Limit::counter(max, seconds(per)));
        assert_eq!(grants_by(&engine, engine.limits(), 20), 10);
        assert_eq!(left_by(&engine, &other), 0, "I13: {max} in {per} s");
        assert_eq!(grants_by(&engine, &other, 20), 0, "I13: {max} in {per} s");
        hand.advance(2 * seconds(per));
        assert_eq!(grants_by(&engine, &other, 20), max, "I13: and no longer than by their own");
    }
}

#[test]
fn a_counter_knows_slower_numbers_too() {
    let start = 24_000 * HOUR + 30 * SECOND + 1_234_567;
    for per in [Duration::from_millis(1), seconds(1), seconds(59)] {
        let (engine, hand) = engine_at(Limit::counter(10, seconds(3_600)), start);
        let fast = numbers(&engine, Limit::counter(10, per));
        assert_eq!(grants_by(&engine, engine.limits(), 20), 10);
        assert!(grants_by(&engine, &fast, 20) == 0, "I13: at the same instant, per {per:?}");
        // Within a tick of the word that has the count: about a hundredth of an hour.
        hand.advance(2 * per + seconds(33));
        assert_eq!(grants_by(&engine, &fast, 20), 10, "I13: {per:?} refill within two");
        assert_eq!(left_by(&engine, engine.limits()), 0, "I13: what they spent counts by both");
    }
}

/// Whatever cells of theirs lie between, slower numbers find no more than the writer's, and all
/// agree on when it is over.
#[test]
fn a_counter_is_never_fuller_by_slower_numbers() {
    for phase in 0..12u64 {
        let start = 24_000 * HOUR + phase * 5 * SECOND + 1_234_567;
        for per in [68, 90, 120, 600, 3_600] {
            let (engine, hand) = engine_at(Limit::counter(10, seconds(60)), start);
            let slow = numbers(&engine, Limit::counter(10, seconds(per)));
            assert_eq!(grants_by(&engine, engine.limits(), 20), 10);
            let (_, _, denied) = hit_by(&engine, &slow, 1);
            for _ in 0..60 {
                hand.advance(seconds(2));
                let (found, before) = (left_by(&engine, &slow), left_by(&engine, engine.limits()));
                assert!(found <= before, "I13: {found} in {per} s, {before} an instant before");
            }
            let fits = |now: u64| part(&engine, &slow).inspect(1, now).fits();
            assert!(fits(start + denied.wait) && !fits(start + denied.wait - 1), "I5: {denied:?}");
        }
    }
}

/// The same charge is read by both: whoever asks next finds what the other left.
#[test]
fn a_counter_is_not_emptied_by_taking_turns() {
    let (engine, hand) = engine_at(Limit::counter(100, seconds(60)), 24_000 * HOUR + 1);
    let other = numbers(&engine, Limit::counter(100, seconds(61)));
    let mut granted = 0;
    for turn in 0..240u64 {
        let limits = if turn % 2 == 0 { engine.limits() } else { &other };
        granted += grants_by(&engine, limits, 100);
        hand.advance(Duration::from_millis(250));
    }
    assert!(granted < 200, "I13: {granted} in a minute of 100");
}

#[test]
fn a_counter_whose_clock_goes_back_loses_nothing() {
    // Back into the very first cell, by a cell or two, and by many.
    let per = 10 * SECOND;
    for (from, to) in
        [(per + 1, 1), (per + 1, 0), (15, 3), (7 * per, 6 * per), (HOUR, 5), (HOUR, per)]
    {
        let (engine, hand) = engine_at(Limit::counter(5, seconds(10)), from);
        assert_eq!(grants_by(&engine, engine.limits(), 9), 5);
        hand.set(to);
        assert_eq!(engine.peek(KEY, 1).statuses[0].remaining, 0, "I9: from {from} to {to}");
        assert_eq!(grants_by(&engine, engine.limits(), 9), 0, "I9: from {from} to {to}");
        let wait = engine.hit(KEY, 1).statuses[0].wait;
        assert!(wait <= 2 * per, "I9: {wait} from {from} to {to}");
        hand.advance(Duration::from_nanos(wait));
        assert!(engine.allow(KEY), "I5: after {wait} from {from} to {to}");
    }
}

/// Two cells' worth in two cells, then back by one: both were spent.
#[test]
fn a_clock_that_goes_back_by_a_cell_finds_both_cells_spent() {
    let per = 10 * SECOND;
    let (engine, hand) = engine_at(Limit::counter(1_000, seconds(10)), 8 * per);
    assert_eq!(grants_by(&engine, engine.limits(), 600), 600);
    hand.set(9 * per + 1);
    assert_eq!(grants_by(&engine, engine.limits(), 300), 300);
    hand.set(8 * per + 1);
    assert_eq!(engine.hit(KEY, 1_000).statuses[0].used, 900, "I9");
}

#[test]
fn what_is_foreseen_of_a_counter_is_what_the_hit_reports() {
    let minute = Limit::counter(100, seconds(60));
    for first in [0, 1, 7] {
        for (gap, cost) in [(0, 1), (0, 2), (20, 1), (20, 9), (61, 1), (61, 9), (100, 3), (119, 50)]
        {
            let (engine, hand) = engine_at(minute, START);
            if first > 0 {
                assert!(engine.hit(KEY, first).answer.is_allowed());
            }
            hand.advance(seconds(gap));
            let foreseen = engine.peek(KEY, cost).statuses[0].after(&minute, cost, hand.now());
            let reported = engine.hit(KEY, cost).statuses[0];
            assert_eq!(foreseen, reported, "{first}, then {cost} after {gap} s");
        }
    }
}

// ---- All of them ----

fn all_kinds(max: u64, per: Duration) -> [Limit; 5] {
    [Limit::bucket, Limit::window, Limit::counter, Limit::fixed, Limit::concurrent]
        .map(|kind| kind(max, per))
}

/// No more than the limit's own time, though the clock stands between two microseconds.
#[test]
fn a_first_hit_is_told_its_own_period_and_not_a_nanosecond_more() {
    for limit in [Limit::fixed(1, seconds(60)), Limit::concurrent(1, seconds(60))] {
        for start in [START, 999, 1, 0, 1_234_567, 7_000] {
            let (engine, hand) = engine_at(limit, start);
            let foreseen = engine.peek(KEY, 1).statuses[0].after(&limit, 1, start);
            let HitOutcome { statuses, .. } = engine.hit(KEY, 1);
            let status = statuses[0];
            assert_eq!(foreseen, status, "{limit:?} at {start}");
            for told in [status.more, status.reset, engine.hit(KEY, 1).statuses[0].wait] {
                assert_eq!(told.div_ceil(1_000_000), 60_000, "{limit:?} at {start}: {status:?}");
            }
            hand.advance(Duration::from_nanos(status.reset) - Duration::from_millis(1));
            assert!(!engine.allow(KEY), "I5: {limit:?} at {start}");
            hand.advance(Duration::from_millis(1));
            assert!(engine.allow(KEY), "I5: {limit:?} at {start}");
        }
    }
}

#[test]
fn a_clock_at_the_end_of_all_time_overflows_nothing() {
    let year = seconds(366 * 86_400);
    for per in [Duration::from_millis(1), seconds(1), seconds(86_400), year] {
        for limit in &all_kinds(5, per)[1..] {
            for start in [u64::MAX, u64::MAX - 1, u64::MAX - 999, u64::MAX - SECOND] {
                let (engine, hand) = engine_at(*limit, start);
                for now in [start, u64::MAX, 0, 5, u64::MAX / 2, u64::MAX] {
                    hand.set(now);
                    let status = engine.peek(KEY, 2).statuses[0];
                    let _ = status.after(limit, 2, now);
                    let permit = engine.hit(KEY, 2).permit;
                    engine.record(KEY, 3);
                    let _ = engine.hit(KEY, 5);
                    engine.refund(KEY, 4);
                    let _ = permit.and_then(|permit| engine.renew(KEY, permit));
                    let _ = permit.map(|permit| engine.release(KEY, permit));
                    engine.prune();
                }
            }
        }
    }
}

/// Where stamps of 48 bits end and begin again.
#[test]
fn a_fixed_span_may_start_with_the_last_stamp() {
    for (from, off) in [(1u64 << 48, 1), (1 << 48, 0), (1 << 48, 2), (2 << 48, 1)] {
        let start = (from - off) * 1_000;
        let (engine, hand) = engine_at(Limit::fixed(2, seconds(1)), start);
        assert_eq!(grants_by(&engine, engine.limits(), 5), 2);
        hand.advance(Duration::from_millis(999));
        assert!(!engine.allow(KEY));
        hand.advance(Duration::from_millis(1));
        assert!(engine.allow(KEY));
    }
}

#[test]
fn a_fixed_count_goes_on_by_other_numbers() {
    let (engine, hand) = engine_at(Limit::fixed(10, seconds(60)), START);
    let hour = numbers(&engine, Limit::fixed(10, seconds(3_600)));
    assert_eq!(grants_by(&engine, engine.limits(), 20), 10);
    hand.advance(seconds(30));
    assert_eq!(grants_by(&engine, &hour, 20), 0, "I13");
    hand.set(START - SECOND);
    assert_eq!(grants_by(&engine, &hour, 20), 0, "I9");
    assert!(hit_by(&engine, &hour, 1).2.wait <= HOUR, "I9: a start ahead of the clock is now");
    hand.advance(seconds(3_600));
    assert_eq!(grants_by(&engine, &hour, 20), 10, "I9");
}
