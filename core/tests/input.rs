//! Bad and odd input: refused with field and reason, or defined and right.
//!
//! * **I1** bound, **I9** time: no clock behaviour grants more, none denies longer than one refill
//! * **I4** a denial, and a hit that costs nothing, changes nothing

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Answer, Clock, Count, Engine, LONGEST, Limit, Limits, MOST, ManualClock, NEVER, OnFull,
    Options, OutOfMemory,
};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;

fn engine(limits: &[Limit]) -> Engine {
    at(limits, 3 * YEAR).0
}

fn at(limits: &[Limit], nanos: u64) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(nanos);
    let options = Options { capacity: 100, clock, ..Options::default() };
    (Engine::new(Limits::new(limits).unwrap(), options).unwrap(), hand)
}

fn grants(engine: &Engine, hits: usize) -> usize {
    (0..hits).filter(|_| engine.allow(b"it")).count()
}

/// Five in ten seconds, by every algorithm.
fn all_kinds() -> [Limit; 5] {
    let per = Duration::from_secs(10);
    [
        Limit::bucket(5, per),
        Limit::window(5, per),
        Limit::counter(5, per),
        Limit::fixed(5, per),
        Limit::concurrent(5, per),
    ]
}

#[track_caller]
fn refused(limits: &[Limit], message: &str) {
    let error = Limits::new(limits).expect_err("should be refused");
    assert_eq!(error.to_string(), message);
    let path = format!("limits[{}].{}: {}", error.limit, error.field, error.reason);
    assert_eq!(path, message, "field and reason are there for programs too");
}

#[test]
fn a_max_that_is_too_large_is_refused() {
    let most = "limits[0].max: 1000000001 is above 1000000000, the largest max";
    refused(&[Limit::bucket(MOST + 1, MINUTE)], most);
    refused(&[Limit::counter(MOST + 1, MINUTE)], most);
    refused(&[Limit::fixed(MOST + 1, MINUTE)], most);
    refused(
        &[Limit::bucket(u64::MAX, MINUTE)],
        "limits[0].max: 18446744073709551615 is above 1000000000, the largest max",
    );
    refused(
        &[Limit::window(4_097, MINUTE)],
        "limits[0].max: an exact log keeps at most 4096; \
         use algorithm counter or bucket for more",
    );
    refused(
        &[Limit::window(5, MINUTE).ceiling(4_097)],
        "limits[0].ceiling: an exact log keeps at most 4096; \
         use algorithm counter or bucket for more",
    );
    refused(
        &[Limit::concurrent(4_097, MINUTE)],
        "limits[0].max: an exact log keeps at most 4096; \
         spread the permits over several keys for more",
    );
}

#[test]
fn a_period_out_of_range_is_refused() {
    refused(
        &[Limit::bucket(5, Duration::ZERO)],
        "limits[0].per: 0ns is not within 1 ms and 366 days",
    );
    refused(
        &[Limit::window(5, Duration::from_micros(999))],
        "limits[0].per: 999µs is not within 1 ms and 366 days",
    );
    refused(
        &[Limit::fixed(5, LONGEST + Duration::from_secs(1))],
        "limits[0].per: 31622401s is not within 1 ms and 366 days",
    );
    refused(
        &[Limit::counter(5, Duration::MAX)],
        "limits[0].per: 18446744073709551615.999999999s is not within 1 ms and 366 days",
    );
    refused(
        &[Limit::concurrent(5, Duration::ZERO)],
        "limits[0].lease: 0ns is not within 1 ms and 366 days",
    );
    refused(
        &[Limit::bucket(5, Duration::from_nanos(1_000_001))],
        "limits[0].per: 1.000001ms is not a whole number of microseconds",
    );
}

#[test]
fn a_burst_that_cannot_be_is_refused() {
    refused(
        &[Limit::bucket(5, MINUTE).burst(0)],
        "limits[0].burst: 0 is not within 1 and 1000000000",
    );
    refused(
        &[Limit::bucket(5, MINUTE).burst(MOST + 1)],
        "limits[0].burst: 1000000001 is not within 1 and 1000000000",
    );
    refused(&[Limit::window(5, MINUTE).burst(9)], "limits[0].burst: only a bucket has a burst");
    refused(
        &[Limit::bucket(1, LONGEST).burst(MOST)],
        "limits[0].burst: 1000000000 tokens at 1 in 31622400s take too long to fill; \
         make the burst smaller",
    );
}

#[test]
fn the_limit_at_fault_is_named_by_its_place() {
    let good = Limit::bucket(5, MINUTE);
    refused(
        &[good, good, Limit::window(5, Duration::ZERO)],
        "limits[2].per: 0ns is not within 1 ms and 366 days",
    );
    refused(&[], "limits[0].limits: a row has 1 to 8 limits, not 0");
    refused(&[good; 9], "limits[0].limits: a row has 1 to 8 limits, not 9");
    assert_eq!(Limits::new(&[good; 8]).unwrap().len(), 8);
}

#[test]
fn a_cost_of_0_spends_nothing_and_makes_no_row() {
    for limit in all_kinds() {
        let engine = engine(&[limit]);
        for _ in 0..10 {
            let outcome = engine.hit(b"it", 0);
            assert_eq!((outcome.answer, outcome.permit), (Answer::Allowed, None), "{limit:?}");
            assert_eq!(engine.peek(b"it", 0).statuses[0].remaining, 5, "{limit:?}");
            assert_eq!(engine.record(b"it", 0)[0].used, 0);
            engine.refund(b"it", 0);
        }
        assert_eq!(engine.len(), 0, "{limit:?}: makes no row");
        assert_eq!(grants(&engine, 9), 5, "{limit:?}");
        let spent = engine.peek(b"it", 1);
        assert_eq!(engine.hit(b"it", 0).answer, Answer::Allowed, "{limit:?}: nothing to refuse");
        assert_eq!(engine.peek(b"it", 1), spent, "I4: {limit:?}");
    }
}

#[test]
fn a_cost_above_the_limit_is_told_apart_and_starts_nothing() {
    for limit in &all_kinds()[..4] {
        let engine = engine(&[*limit]);
        for cost in [6, 4_097, 1 << 20, MOST + 1, u64::MAX / 1_000 + 2, u64::MAX] {
            assert_eq!(engine.peek(b"it", cost).answer, Answer::Cost, "{limit:?}: {cost}");
            let outcome = engine.hit(b"it", cost);
            assert_eq!(
                (outcome.answer, outcome.statuses[0].wait),
                (Answer::Cost, NEVER),
                "{limit:?}"
            );
        }
        assert_eq!((engine.len(), engine.total(Count::Cost)), (0, 6), "{limit:?}: starts nothing");
        assert_eq!(engine.hit(b"it", 5).answer, Answer::Allowed, "{limit:?}: all at once fits");
    }
}

#[test]
fn a_cost_above_the_limit_is_no_different_on_a_key_in_use() {
    for limit in &all_kinds()[..4] {
        let engine = engine(&[*limit]);
        assert!(engine.allow(b"it"));
        let before = engine.peek(b"it", 1);
        for cost in [6, MOST + 1, u64::MAX - 1, u64::MAX] {
            let outcome = engine.hit(b"it", cost);
            assert_eq!(
                (outcome.answer, outcome.statuses[0].wait),
                (Answer::Cost, NEVER),
                "{limit:?}"
            );
            assert_eq!(engine.peek(b"it", cost).statuses[0].wait, NEVER, "{limit:?}");
        }
        assert_eq!(engine.peek(b"it", 1), before, "I4: {limit:?}");
    }
}

#[test]
fn the_smallest_limit_of_a_rule_decides_what_can_ever_pass() {
    let engine = engine(&[Limit::bucket(100, MINUTE), Limit::window(10, MINUTE)]);
    let outcome = engine.hit(b"it", 11);
    let waits = [outcome.statuses[0].wait, outcome.statuses[1].wait];
    assert_eq!((outcome.answer, waits), (Answer::Cost, [0, NEVER]));
    assert_eq!(engine.hit(b"it", 10).answer, Answer::Allowed);
}

#[test]
fn recording_and_refunding_absurd_amounts_saturates() {
    for limit in all_kinds() {
        let (engine, hand) = at(&[limit], YEAR);
        for _ in 0..3 {
            let _ = engine.record(b"it", 1);
            let _ = engine.record(b"it", u64::MAX);
        }
        let held = limit.algorithm == tidegate_core::Algorithm::Concurrent;
        assert_eq!(grants(&engine, 9) > 0, held, "{limit:?}: all is spent (permits are only held)");
        hand.advance(Duration::from_secs(20));
        assert_eq!(grants(&engine, 9), 5, "I9: {limit:?}: and all comes back in time");
        if !held {
            engine.refund(b"it", u64::MAX);
            assert_eq!(grants(&engine, 9), 5, "I6: {limit:?}: never above full");
        }
    }
}

#[test]
fn a_max_of_0_means_never() {
    for limit in all_kinds() {
        let engine = engine(&[Limit { max: 0, ..limit }]);
        assert!(!engine.allow(b"it"), "{limit:?}");
        for cost in [1, 2, u64::MAX] {
            let outcome = engine.hit(b"it", cost);
            assert_eq!(
                (outcome.answer, outcome.statuses.wait()),
                (Answer::Denied, NEVER),
                "{limit:?}"
            );
        }
        let peek = engine.peek(b"it", 1);
        assert_eq!((peek.answer, peek.statuses[0].wait), (Answer::Denied, NEVER), "{limit:?}");
        assert_eq!(engine.len(), 0, "{limit:?}: a suspended key needs no row");
        let beside = [Limit::bucket(5, MINUTE), Limit { max: 0, ..limit }];
        let engine = self::engine(&beside);
        let outcome = engine.hit(b"it", 1);
        assert_eq!(
            (outcome.answer, outcome.statuses[1].wait),
            (Answer::Denied, NEVER),
            "{limit:?}"
        );
        assert_eq!(outcome.statuses[0].wait, 0, "it is the limit of 0 that denies");
    }
}

#[test]
fn an_empty_key_and_a_huge_one_are_keys_like_any_other() {
    let engine = engine(&[Limit::bucket(2, MINUTE)]);
    let mut huge = vec![b'x'; 1 << 20];
    let mut names: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0], huge.clone()];
    huge[1 << 19] = b'y';
    names.push(huge.clone());
    huge.pop();
    names.push(huge);
    for name in &names {
        let granted = (0..5).filter(|_| engine.allow(name)).count();
        assert_eq!(granted, 2, "a key of {} bytes", name.len());
    }
    assert_eq!(engine.len(), names.len());
}

#[test]
fn parts_of_a_key_never_run_into_each_other() {
    let engine = engine(&[Limit::bucket(1, MINUTE)]);
    let hash = |parts: &[&[u8]]| engine.hash_parts(parts);
    assert_eq!(hash(&[b"x"]), engine.hash(b"x"), "a key of one part is the plain key");
    assert_eq!(hash(&[b""]), engine.hash(b""));
    let all: [&[&[u8]]; 11] = [
        &[b"a:b", b"c"],
        &[b"a", b"b:c"],
        &[b"a", b"b", b"c"],
        &[b"a:b:c"],
        &[b"ab", b"c"],
        &[b"a", b"bc"],
        &[b"abc", b""],
        &[b"", b"abc"],
        &[b"abc"],
        &[b"", b"", b"abc"],
        &[],
    ];
    for (i, parts) in all.iter().enumerate() {
        let same: Vec<usize> = (0..all.len()).filter(|&j| hash(all[j]) == hash(parts)).collect();
        assert_eq!(same, [i], "{parts:?}");
        assert!(engine.allow_hashed(hash(parts)), "{parts:?} has a row of its own");
    }
}

/// Every clock fault worth a name, in nanoseconds.
const STEPS: [u64; 9] = [
    1,
    999,
    1_000,
    1_000_001,
    SECOND,
    9 * SECOND,
    3_600 * SECOND,
    86_400 * SECOND,
    30 * 86_400 * SECOND,
];

/// The two ways to hit, which take different paths through the engine.
const WAYS: [fn(&Engine) -> bool; 2] =
    [|engine| engine.allow(b"it"), |engine| engine.hit(b"it", 1).answer.is_allowed()];

/// A rule of the limit alone and one with another beside it that never denies, and both ways to
/// hit.
fn each_way(limit: Limit, check: impl Fn(&[Limit], fn(&Engine) -> bool)) {
    let beside = Limit::bucket(1_000_000, limit.per);
    for rule in [&[limit][..], &[limit, beside]] {
        WAYS.iter().for_each(|way| check(rule, *way));
    }
}

/// The longest that a full refill takes; a counter's cells are forgotten after two.
fn refill(limit: &Limit) -> Duration {
    match limit.algorithm {
        tidegate_core::Algorithm::Counter => 2 * limit.per,
        _ => limit.per,
    }
}

/// What keeps exact count; a counter's estimate depends on where in a cell the clock stands.
fn exact_kinds() -> impl Iterator<Item = Limit> {
    all_kinds().into_iter().filter(|l| l.algorithm != tidegate_core::Algorithm::Counter)
}

#[test]
fn a_clock_that_goes_back_keeps_a_counter_within_its_error() {
    let limit = Limit::counter(5, Duration::from_secs(10));
    // A quarter of the 100,000 periods that it tells apart.
    let told = 25_000 * 10 * SECOND;
    for back in STEPS.map(|back| back.min(told)) {
        let start = YEAR + 123_456_789;
        let (engine, hand) = at(&[limit], start);
        let first = grants(&engine, 9);
        hand.set(start - back);
        let granted = first + grants(&engine, 9);
        assert!(granted < 2 * 5, "I9: {granted} granted, {back} ns back");
        hand.advance(2 * limit.per);
        assert_eq!(grants(&engine, 9), 5, "I9: {back} ns back, and all is well");
    }
}

/// Five are spent, the clock goes back: nothing more, and everything again after one refill.
fn check_step_back(rule: &[Limit], way: fn(&Engine) -> bool, back: u64) {
    let start = YEAR + 123_456_789;
    let (engine, hand) = at(rule, start);
    let granted = |hits| (0..hits).filter(|_| way(&engine)).count();
    assert_eq!(granted(9), 5);
    hand.set(start - back);
    assert_eq!(granted(9), 0, "I9: {rule:?}: {back} ns back");
    let wait = engine.hit(b"it", 1).statuses.wait();
    // A stamp is kept rounded up to its tick, so a step back of less is not told apart.
    let most = refill(&rule[0]).as_nanos() as u64 + 1_000 + back.min(1_000_000);
    assert!(wait <= most, "I9: {rule:?}: {back} ns back, wait {wait}");
    hand.advance(Duration::from_nanos(wait));
    assert!(way(&engine), "I5, I9: {rule:?}: {back} ns back, after its wait of {wait}");
    hand.advance(2 * refill(&rule[0]));
    assert_eq!(granted(9), 5, "I9: {rule:?}: {back} ns back, and all is well");
}

#[test]
fn a_clock_that_goes_back_grants_nothing_and_denies_no_longer_than_one_refill() {
    for limit in exact_kinds() {
        each_way(limit, |rule, way| STEPS.iter().for_each(|&b| check_step_back(rule, way, b)));
    }
}

#[test]
fn a_clock_that_goes_back_with_units_left_grants_those_and_no_more() {
    for limit in exact_kinds() {
        each_way(limit, |rule, way| {
            for back in STEPS {
                let start = YEAR + 123_456_789;
                let (engine, hand) = at(rule, start);
                assert!(way(&engine) && way(&engine));
                hand.set(start - back);
                let granted = (0..9).filter(|_| way(&engine)).count();
                assert_eq!(granted, 3, "I9: {rule:?}: {back} ns back");
            }
        });
    }
}

#[test]
fn a_denial_passes_after_its_wait_and_not_a_millisecond_earlier() {
    for limit in exact_kinds() {
        each_way(limit, |rule, way| {
            for start in [YEAR, YEAR + 1, YEAR + 999, YEAR + 123_456_789] {
                let (engine, hand) = at(rule, start);
                while way(&engine) {}
                let wait = engine.hit(b"it", 1).statuses.wait();
                hand.set(start + wait - 1_000_000);
                assert!(!way(&engine), "I5: {rule:?} at {start}: before its wait of {wait}");
                hand.set(start + wait);
                assert!(way(&engine), "I5: {rule:?} at {start}: after its wait of {wait}");
            }
        });
    }
}

/// What `act` makes; `None` if it has not ended after a time that only a hang takes.
fn in_time<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(act()));
    receive.recv_timeout(Duration::from_secs(10)).ok()
}

#[test]
fn a_clock_that_stands_still_grants_the_limit_once() {
    for limit in all_kinds() {
        // At 0 a stamp of 0 must not be taken for none, at the other end none may overflow.
        for now in [0, 1, 999, 1 << 32, 1 << 44, 1 << 53, 1 << 63, u64::MAX - 1, u64::MAX] {
            let granted = in_time(move || grants(&at(&[limit], now).0, 1_000));
            assert_eq!(granted, Some(5), "I8, I9: {limit:?} at {now}");
        }
    }
}

/// Five are spent, years pass: five more at most, and five again after one refill.
fn check_jump(rule: &[Limit], way: fn(&Engine) -> bool, jump: u64) {
    let (engine, hand) = at(rule, YEAR);
    let granted = || (0..9).filter(|_| way(&engine)).count();
    assert_eq!(granted(), 5);
    hand.set(YEAR + jump);
    let now = granted();
    assert!(now <= 5, "I1: {rule:?}: {now} after {jump} ns");
    hand.advance(refill(&rule[0]) + Duration::from_millis(1));
    assert_eq!(granted(), 5, "I9: {rule:?}: a refill after a jump of {jump} ns");
}

#[test]
fn a_clock_that_jumps_years_ahead_grants_no_more_than_one_full_limit() {
    for limit in all_kinds() {
        each_way(limit, |rule, way| {
            for years in [1, 2, 4, 5, 8, 9, 10, 17, 18, 30, 100, 290] {
                for more in [0, 1, SECOND, 7 * 86_400 * SECOND] {
                    check_jump(rule, way, years * YEAR + more);
                }
            }
        });
    }
}

#[test]
fn a_clock_that_wanders_grants_no_more_than_its_way_forward_allows() {
    let per = Duration::from_secs(10);
    for limit in [Limit::bucket(5, per), Limit::window(5, per)] {
        let (engine, hand) = at(&[limit], YEAR);
        let (mut forward, mut granted, mut dice) = (0, 0, 12_345u64);
        for _ in 0..20_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let step = (dice >> 40) * 100 % (3 * SECOND);
            match dice >> 38 & 3 {
                0 => hand.set(hand.now() - step),
                1 => {}
                _ => {
                    hand.advance(Duration::from_nanos(step));
                    forward += step;
                }
            }
            granted += grants(&engine, 2) as u64;
            // A window's log never grants faster than a bucket of twice the size.
            let size = if limit == Limit::bucket(5, per) { 5 } else { 10 };
            let most = size + 5 * forward / (10 * SECOND);
            assert!(granted <= most, "I9: {limit:?}: {granted} in {forward} ns forward");
        }
        assert!(granted > 1_000);
    }
}

#[test]
fn a_capacity_of_0_or_1_has_room_for_a_key() {
    for capacity in [0, 1] {
        for limit in all_kinds() {
            let options = Options { capacity, on_full: OnFull::Deny, ..Options::default() };
            let engine = Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap();
            assert_eq!(grants(&engine, 9), 5, "{limit:?} with a capacity of {capacity}");
            assert_eq!((engine.capacity(), engine.len()), (capacity, 1));
        }
    }
}

#[test]
fn a_capacity_that_no_memory_could_hold_is_an_error() {
    let wide = Limit::window(4_096, MINUTE);
    for limits in [&[Limit::bucket(5, MINUTE)][..], &[wide], &[Limit::bucket(5, MINUTE), wide]] {
        let limits = Limits::new(limits).unwrap();
        let row_words = limits.row_words();
        // From more than an address space holds, past every power of two that arithmetic could trip
        // over, to the largest number there is.
        let powers = (44..64).flat_map(|bits| [1usize << bits, (1 << bits) / 3 * 2 - 1]);
        for capacity in powers.chain([usize::MAX / 3, usize::MAX / 3 * 2, usize::MAX]) {
            let options = Options { capacity, ..Options::default() };
            let error = Engine::new(limits.clone(), options).expect_err("no memory");
            assert_eq!(error, OutOfMemory { capacity, row_words });
        }
    }
    let limits = Limits::new(&[Limit::bucket(5, MINUTE)]).unwrap();
    let options = Options { capacity: 1 << 50, ..Options::default() };
    assert_eq!(
        Engine::new(limits, options).unwrap_err().to_string(),
        "no memory for 1125899906842624 keys (27021597764222976 bytes): state a smaller capacity"
    );
}

#[test]
fn a_permit_that_was_given_back_or_ran_out_is_worth_nothing() {
    let (engine, hand) = at(&[Limit::concurrent(1, Duration::from_secs(10))], YEAR);
    let first = engine.hit(b"it", 1).permit.unwrap();
    assert!(engine.release(b"it", first) && !engine.release(b"it", first), "once");
    assert!(!engine.release(b"unknown", first) && engine.renew(b"unknown", first).is_none());
    let late = engine.hit(b"it", 1).permit.unwrap();
    assert!(engine.hit(b"it", 1).permit.is_none());
    hand.advance(Duration::from_secs(11));
    let next = engine.hit(b"it", 1).permit.expect("the lease has run out");
    assert!(!engine.release(b"it", late) && engine.renew(b"it", late).is_none());
    assert!(engine.hit(b"it", 1).permit.is_none(), "I1: the late ones freed nothing");
    assert!(engine.release(b"it", next));
}

#[test]
fn a_batch_of_nothing_is_fine_and_longer_answers_are_left_alone() {
    let engine = engine(&[Limit::bucket(2, MINUTE)]);
    engine.allow_many::<&[u8]>(&[], &mut []);
    let mut out = [7; 5];
    engine.allow_many(&[b"a", b"a", b"a"], &mut out);
    assert_eq!(out, [1, 1, 0, 7, 7]);
}

/// One key after another, and in batches, with the same seed: rows away from home, a table beyond
/// its capacity, keys that come twice in a batch, and limits other than a bucket.
#[test]
fn a_batch_answers_as_its_keys_would_one_by_one() {
    for limit in [Limit::bucket(3, MINUTE), Limit::bucket(1_000, MINUTE), Limit::window(3, MINUTE)]
    {
        let (clock, hand) = Clock::manual(3 * YEAR);
        let one = |seed| {
            let (on_full, clock) = (OnFull::Overflow, clock.clone());
            let options = Options { capacity: 1_000, on_full, clock, seed: Some(seed) };
            Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap()
        };
        for (seed, keys) in [(1, 300), (2, 1_000), (3, 1_450)] {
            let (batched, single) = (one(seed), one(seed));
            let mut at = seed;
            for round in 0..400 {
                let mut pick = || {
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (at >> 33) % keys
                };
                let asked: Vec<_> = (0..round % 70).map(|_| pick().to_le_bytes()).collect();
                let mut out = vec![7; asked.len()];
                batched.allow_many(&asked, &mut out);
                let wanted: Vec<_> = asked.iter().map(|key| u8::from(single.allow(key))).collect();
                assert_eq!(out, wanted, "{limit:?}, {keys} keys, round {round}");
                hand.advance(Duration::from_millis(77));
            }
            for count in [Count::Allowed, Count::Denied] {
                assert_eq!(batched.total(count), single.total(count));
            }
        }
    }
}
