//! I13: a state that is read under other numbers, another clock or later than it was written grants
//! nothing, and denies no longer than its own time. Each case was once seen to fail.
//!
//! Notes on keys (cooldowns, budgets) have `stored_times.rs`, reservations `reservations.rs`.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::bindings::limit_patches;
use tidegate::{Call, Decision, Limiter, ManualClock, Permit, Rule, Style, Target};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const START: Duration = Duration::from_secs(1_000_000);
/// The attribute that an entry of `when` asks for.
const MATCHED: &[(&str, &str)] = &[("t", "x")];

/// A limiter with one limit, `l`, and other numbers for calls that `when` matches.
fn limiter(limit: &str, matched: Value) -> (Limiter, ManualClock) {
    let entry = json!({"match": {"t": "x"}, "limits": {"l": matched}});
    let rule = json!({"limits": {"l": limit}, "when": [entry]});
    let policy = json!({"version": 1, "rules": {"default": rule}});
    let clock = ManualClock::new(START, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    (options.value(&policy).build().unwrap(), clock)
}

fn plain(limit: &str) -> (Limiter, ManualClock) {
    limiter(limit, json!({}))
}

fn rule(limiter: &Limiter) -> Rule {
    limiter.rule("default").unwrap()
}

fn set_override(limiter: &Limiter, fields: &Value) {
    let patches = limit_patches(&json!({"l": fields}), &["l".to_string()]).unwrap();
    limiter.set_override(Target::key("a"), patches).unwrap();
}

fn drain(limiter: &Limiter, size: u64) {
    let decision = limiter.hit("a", size).unwrap();
    assert!(decision.allowed && decision.remaining == Some(0));
}

fn left(limiter: &Limiter) -> u64 {
    limiter.peek("a", 0).unwrap().remaining.unwrap()
}

fn matched_left(limiter: &Limiter) -> u64 {
    rule(limiter).peek(Call::of("a").with(MATCHED), 0).unwrap().remaining.unwrap()
}

fn passes(limiter: &Limiter, cost: u64) -> bool {
    limiter.hit("a", cost).unwrap().allowed
}

/// Limits, their size, slower or smaller numbers, and the size by these.
fn lowered() -> [(&'static str, u64, Value, u64); 5] {
    [
        ("100000/min", 100_000, json!({"max": 1000}), 1000),
        ("10000/min", 10_000, json!({"max": 1000}), 1000),
        ("2000000/min", 2_000_000, json!({"max": 200_000}), 200_000),
        ("1000000/3s burst 4000000", 4_000_000, json!({"per": "8h"}), 4_000_000),
        ("1000000000/s", 1_000_000_000, json!({"max": 7}), 7),
    ]
}

#[test]
fn i13_a_drained_bucket_has_nothing_by_lower_numbers() {
    for (limit, size, fields, smaller) in lowered() {
        let (limiter, _clock) = plain(limit);
        drain(&limiter, size);
        set_override(&limiter, &fields);
        assert_eq!(left(&limiter), 0, "{limit} by {fields}");
        assert!(!passes(&limiter, smaller) && !passes(&limiter, 1), "{limit} by {fields}");
    }
}

#[test]
fn i13_a_drained_bucket_has_nothing_by_lower_numbers_of_when() {
    for (limit, size, fields, smaller) in lowered() {
        let (limiter, _clock) = self::limiter(limit, fields);
        drain(&limiter, size);
        assert_eq!(matched_left(&limiter), 0, "{limit}");
        let by_them = rule(&limiter).hit(Call::of("a").with(MATCHED), smaller).unwrap();
        assert!(!by_them.allowed && !passes(&limiter, 1), "{limit}");
    }
}

#[test]
fn i13_a_drained_bucket_has_nothing_by_a_smaller_max_of_the_call() {
    let (limiter, _clock) = plain("10000/min");
    drain(&limiter, 10_000);
    let call = Call::of("a").max(1000);
    assert_eq!(rule(&limiter).peek(call, 0).unwrap().remaining, Some(0));
    assert!(!rule(&limiter).hit(Call::of("a").max(1000), 1).unwrap().allowed);
}

#[test]
fn i13_a_fast_rate_keeps_what_a_hit_by_a_slow_one_left() {
    let (limiter, _clock) = self::limiter("5000/s", json!({"per": "1d"}));
    assert!(rule(&limiter).hit(Call::of("a").with(MATCHED), 1).unwrap().allowed);
    assert_eq!(left(&limiter), 4999);
    assert!(passes(&limiter, 1));
    assert_eq!((left(&limiter), matched_left(&limiter)), (4998, 4998));
}

#[test]
fn i13_a_slow_rate_denies_no_longer_than_its_own_fill_time() {
    let (limiter, clock) = self::limiter("5000/s", json!({"per": "1h"}));
    drain(&limiter, 5000);
    // One token takes 720 ms by these numbers; a debt of the fast rate would take hours.
    clock.advance(Duration::from_millis(721));
    assert!(rule(&limiter).hit(Call::of("a").with(MATCHED), 1).unwrap().allowed);
    clock.advance(HOUR);
    assert_eq!(matched_left(&limiter), 5000);
}

/// A year, or 100,000 times the fill time where that is less.
#[test]
fn i9_a_deep_bucket_is_full_after_any_silence_that_it_tells_apart() {
    let year = 366 * 24 * HOUR;
    for (limit, size, longest) in [
        ("100000000/min", 100_000_000, 100_000 * MINUTE),
        ("1000000000/min", 1_000_000_000, 100_000 * MINUTE),
        ("1000000000/s", 1_000_000_000, 100_000 * SECOND),
        ("2000000/h", 2_000_000, year),
    ] {
        for idle in [HOUR, 5 * HOUR, 11 * HOUR, 15 * HOUR, 18 * HOUR, 30 * 24 * HOUR, longest] {
            let (limiter, clock) = plain(limit);
            drain(&limiter, size);
            clock.advance(idle.min(longest));
            assert_eq!(left(&limiter), size, "{limit}, idle for {idle:?}");
            drain(&limiter, size);
        }
    }
}

#[test]
fn i9_a_clock_that_goes_back_grants_a_deep_bucket_nothing() {
    for limit in ["100000000/min", "1000000000/s"] {
        for back in [SECOND, 11 * MINUTE, 5 * HOUR, 13 * HOUR, 24 * HOUR] {
            let size: u64 = limit.split('/').next().unwrap().parse().unwrap();
            let (limiter, clock) = plain(limit);
            drain(&limiter, size);
            clock.set(START - back);
            assert!(!passes(&limiter, 1) && left(&limiter) == 0, "{limit}, {back:?} back");
            clock.advance(MINUTE + SECOND);
            assert_eq!(left(&limiter), size, "{limit}: one fill after the fault");
        }
    }
}

fn matched_permit(limiter: &Limiter) -> Permit {
    rule(limiter).permit(Call::of("a").with(MATCHED)).unwrap()
}

#[test]
fn i13_a_permit_that_is_out_keeps_its_lease_whoever_asks_by_a_shorter_one() {
    let (limiter, clock) = self::limiter("1 concurrent lease 60s", json!({"lease": "1s"}));
    let held = limiter.permit("a").unwrap();
    assert!(held.is_held() && !matched_permit(&limiter).is_held());
    clock.advance(2 * SECOND);
    assert!(!matched_permit(&limiter).is_held() && !limiter.permit("a").unwrap().is_held());
    assert!(held.renew() && held.release(), "it is still the holder's");
    assert!(matched_permit(&limiter).is_held());
}

#[test]
fn i13_a_permit_is_released_after_its_lease_changed_by_default() {
    let (limiter, _clock) = plain("1 concurrent lease 60s");
    let held = limiter.permit("a").unwrap();
    let patches = limit_patches(&json!({"l": {"lease": "30s"}}), &["l".to_string()]).unwrap();
    limiter.set_default(patches).unwrap();
    assert!(!limiter.permit("a").unwrap().is_held());
    assert!(held.release() && limiter.permit("a").unwrap().is_held());
}

#[test]
fn a_permit_whose_lease_ran_out_is_not_released() {
    let (limiter, clock) = plain("1 concurrent lease 10s");
    let held = limiter.permit("a").unwrap();
    clock.advance(10 * SECOND);
    assert!(!held.release());
}

#[test]
fn i13_a_window_keeps_its_units_though_others_judge_by_a_shorter_period() {
    let (limiter, clock) = self::limiter("5/h window", json!({"per": "1s"}));
    assert!(passes(&limiter, 4));
    clock.advance(59 * MINUTE);
    for _ in 0..12 {
        assert!(rule(&limiter).hit(Call::of("a").with(MATCHED), 1).unwrap().allowed);
        rule(&limiter).refund(Call::of("a").with(MATCHED), 1).unwrap();
    }
    assert!(passes(&limiter, 1) && !passes(&limiter, 1), "four units and one");
}

#[test]
fn i9_a_counters_clock_that_goes_back_into_its_first_cell_forgets_none() {
    let clock = ManualClock::new(8 * SECOND, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    let limiter = options.limits("5/10s counter").build().unwrap();
    assert!(passes(&limiter, 3));
    clock.set(12 * SECOND);
    assert!(passes(&limiter, 2));
    for back in [3 * SECOND, SECOND, Duration::ZERO] {
        clock.set(back);
        assert!(!passes(&limiter, 1), "back at {back:?}");
    }
}

fn ietf(decision: &Decision) -> String {
    let headers = decision.headers(Style::Ietf);
    headers.into_iter().find(|(name, _)| name == "RateLimit").unwrap().1
}

#[test]
fn a_fresh_hit_is_told_its_own_period_once_rounded_by_the_systems_clock() {
    for limit in ["1/min", "1/min window", "1/min fixed"] {
        let limiter = Limiter::new(limit).unwrap();
        for key in 0..1000 {
            let decision = limiter.hit(format!("key-{key}").as_str(), 1).unwrap();
            assert_eq!((decision.allowed, decision.reset_after), (true, MINUTE), "{limit}");
            assert_eq!(ietf(&decision), "\"1/min\";r=0;t=60", "{limit}");
        }
    }
}

#[test]
fn a_look_says_what_a_hit_at_the_same_moment_says() {
    for limit in ["5/10s", "5/10s window", "5/10s fixed", "5/10s counter"] {
        let (limiter, clock) = plain(limit);
        for millis in [3, 1, 2_500, 4_000, 3_499, 1, 9_999] {
            clock.advance(Duration::from_millis(millis));
            loop {
                let look = limiter.peek("a", 1).unwrap();
                let hit = limiter.hit("a", 1).unwrap();
                assert_eq!((look.allowed, look.retry_after), (hit.allowed, hit.retry_after));
                let after = limiter.peek("a", 0).unwrap();
                assert_eq!(ietf(&after), ietf(&hit), "{limit}");
                assert_eq!(after.reset_after, hit.reset_after, "{limit}");
                if !hit.allowed {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_look_reports_no_cooldown_that_has_not_begun() {
    let limit = json!({"max": 1, "per": "1s", "cooldown": "60s"});
    let policy = json!({"version": 1, "rules": {"default": {"limits": {"l": limit}}}});
    let clock = ManualClock::new(START, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    let limiter = options.value(&policy).build().unwrap();
    assert!(passes(&limiter, 1));
    let look = limiter.peek("a", 1).unwrap();
    assert_eq!((look.reason(), look.retry_after), (Some("l"), Some(SECOND)));
    assert_eq!(limiter.hit("a", 1).unwrap().retry_after, Some(MINUTE), "now it begins");
    let look = limiter.peek("a", 1).unwrap();
    assert_eq!((look.reason(), look.retry_after), (Some("cooldown"), Some(MINUTE)));
}
