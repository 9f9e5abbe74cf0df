//! I3 and promise 2: a key polled at any rate, allowed or denied, gets its rate in the long run,
//! and no more (I1). Time is a hand that the tests move, so a week takes a second.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Answer, Clock, Engine, Limit, Limits, ManualClock, Options};

const MICRO: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

/// A start that is a whole number of microseconds, and of nothing longer.
const START: u64 = 1_234_567 * MICRO;
/// And one of nothing at all. Between ticks a bucket that starts from full loses part of 1/1000
/// token, so a poll that comes at the very nanosecond of the next token comes too early.
const UNEVEN: u64 = 1_234_567_891;

fn polled(limit: Limit, start: u64) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(start);
    let limits = Limits::new(&[limit]).unwrap();
    let options = Options { capacity: 8, seed: Some(7), clock, ..Options::default() };
    (Engine::new(limits, options).unwrap(), hand)
}

/// How often a key is allowed that is polled every `step` nanoseconds for `span`.
fn granted(limit: Limit, step: u64, span: u64) -> u64 {
    granted_from(START, limit, step, span)
}

fn granted_from(start: u64, limit: Limit, step: u64, span: u64) -> u64 {
    let (engine, hand) = polled(limit, start);
    let key = engine.hash(b"poller");
    let poll = |after: &u64| {
        hand.set(start + after);
        engine.allow_hashed(key)
    };
    (0..=span).step_by(step as usize).filter(poll).count() as u64
}

/// All that is due, at most 1 in 1000 less.
#[track_caller]
fn assert_rate(granted: u64, due: u64) {
    assert!(granted <= due, "{granted} of {due}: too many");
    assert!(granted * 1000 >= due * 999, "{granted} of {due}: too few");
}

#[test]
fn ten_a_minute_polled_each_millisecond_for_a_week_get_their_rate() {
    let week = 7 * 86_400 * SECOND;
    let granted = granted(Limit::bucket(10, Duration::from_secs(60)), 1_000 * MICRO, week);
    // Ten at once, and ten in each of 10,080 minutes.
    assert_rate(granted, 100_810);
}

#[test]
fn five_thousand_a_second_without_burst_get_five_thousand() {
    let limit = Limit::bucket(5_000, Duration::from_secs(1)).burst(1);
    assert_rate(granted(limit, 10 * MICRO, 60 * SECOND), 1 + 60 * 5_000);
    // In a tight loop, from whenever it starts.
    assert_rate(granted_from(UNEVEN, limit, 41, 2 * SECOND), 1 + 2 * 5_000);
}

#[test]
fn a_rate_that_divides_no_tick_does_not_drift() {
    // 100,010.001… ns a token: polled often enough that waiting for the next poll costs little.
    let limit = Limit::bucket(9_999, Duration::from_secs(1)).burst(1);
    assert_rate(granted_from(UNEVEN, limit, 41, SECOND), 1 + 9_999);
    // Each token waits for a poll, up to 10 µs, and a bucket of one forgets that time. So polls
    // every 10 µs can have 9,090 a second, and they get all of them.
    assert_rate(granted(limit, 10 * MICRO, 60 * SECOND), 1 + 60 * SECOND / (110 * MICRO));
    // Room for a second token keeps it.
    let roomy = Limit::bucket(9_999, Duration::from_secs(1)).burst(2);
    assert_rate(granted(roomy, 10 * MICRO, 60 * SECOND), 2 + 60 * 9_999);
}

#[test]
fn a_flood_of_denied_hits_starves_nobody() {
    // A thousand polls for each token, and every one between two ticks.
    let limit = Limit::bucket(7, Duration::from_secs(1)).burst(2);
    assert_rate(granted_from(UNEVEN, limit, 142_857, 600 * SECOND), 2 + 600 * 7);
}

/// Costs of 1 to 5,000 in an order without a pattern (a multiplicative generator modulo a prime).
fn costs() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(48_271u64), |seed| Some(seed * 48_271 % 2_147_483_647))
        .map(|seed| 1 + seed % 5_000)
}

#[test]
fn two_million_model_tokens_a_minute_keep_their_rate_at_any_cost() {
    let (engine, hand) = polled(Limit::bucket(2_000_000, Duration::from_secs(60)), UNEVEN);
    let (mut spent, hours) = (0, 3);
    let mut costs = costs();
    let mut cost = costs.next().unwrap();
    // 2,500 units on average take 75 ms: every cost is asked for some eight times.
    for after in (0..=hours * 3_600 * SECOND).step_by(9_999_991) {
        hand.set(UNEVEN + after);
        while engine.hit(b"poller", cost).answer == Answer::Allowed {
            spent += cost;
            cost = costs.next().unwrap();
        }
    }
    assert_rate(spent, 2_000_000 + hours * 60 * 2_000_000);
}

#[test]
fn a_key_just_under_its_rate_is_never_denied() {
    let second = Duration::from_secs(1);
    let limits = [
        Limit::bucket(10, 60 * second),
        Limit::bucket(7, second).burst(1),
        Limit::bucket(9_999, second).burst(1),
        Limit::bucket(3, 7 * second).burst(2),
        Limit::bucket(1_000_000, second).burst(1_000),
        Limit::bucket(999_999_937, 3_600 * second).burst(5),
    ];
    for limit in limits {
        // The time that a token takes and 1/1000 of it, which promise 6 may have it wait.
        let step = (limit.per.as_nanos() as u64 * 1001).div_ceil(limit.max * 1000);
        let granted = granted_from(UNEVEN, limit, step, step * 50_000);
        assert_eq!(granted, 50_001, "{limit:?}");
    }
}
