//! When keys are forgotten, while some are judged by other numbers than the policy's.

use std::time::Duration;

use tidegate::{Call, LimitPatch, Limiter, ManualClock, Match, Target};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(limits: &str) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(1_000 * SECOND, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    (options.limits(limits).build().unwrap(), clock)
}

/// How many whole seconds a key is kept after one hit.
fn forgotten_after(limiter: &Limiter, clock: &ManualClock) -> usize {
    limiter.prune().unwrap();
    assert!(limiter.allow("somebody").unwrap());
    let gone = (0..100_000).find(|_| {
        clock.advance(SECOND);
        limiter.prune().unwrap() > 0
    });
    gone.expect("it is forgotten some day")
}

/// Overrides for many keys, each of which is hit.
fn change_many(limiter: &Limiter, limit: &str, max: u64) {
    for number in 0..100 {
        let (key, patch) = (format!("vip-{number}"), LimitPatch::max(max + number));
        limiter.set_override(Target::key(&key), vec![(limit.to_string(), patch)]).unwrap();
        assert!(limiter.allow(key.as_str()).unwrap());
        limiter.reset(key.as_str()).unwrap();
    }
}

/// Rows are judged by the rule's numbers, until some key is judged by others; then all rows are
/// kept for as long as the slowest of all numbers needs.
#[test]
fn only_other_numbers_that_a_key_is_judged_by_keep_all_others() {
    // A token each 3.6 seconds, and 3,960 seconds for a whole bucket.
    let patch = |max: Option<u64>, burst: Option<u64>| {
        max.map_or_else(LimitPatch::default, LimitPatch::max).burst(burst)
    };
    let cooldown = LimitPatch::default().cooldown(60 * SECOND);
    for (patch, kept) in [
        (cooldown, 3),
        (patch(Some(1_000), None), 3),
        (patch(None, Some(1_100)), 3),
        (patch(Some(0), None), 3),
        (patch(Some(900), None), 4_400),
        (patch(None, Some(1_110)), 3_996),
    ] {
        let (limiter, clock) = limiter("1000/h burst 1100");
        assert_eq!(forgotten_after(&limiter, &clock), 3);
        let patches = vec![("1000/h".to_string(), patch.clone())];
        limiter.set_override(Target::key("vip"), patches).unwrap();
        assert_eq!(forgotten_after(&limiter, &clock), 3, "nobody is judged by it yet: {patch:?}");
        let _ = limiter.allow("vip").unwrap();
        limiter.reset("vip").unwrap();
        let after = forgotten_after(&limiter, &clock);
        assert!((kept..kept + kept / 100 + 1).contains(&after), "{patch:?}: {after}");
    }
}

#[test]
fn what_is_refused_keeps_nobody() {
    let (limiter, clock) = limiter("10/min, 5/10s window");
    let slow = LimitPatch::default().per(86_400 * SECOND);
    // There is no room for so many in the window's log.
    let patches = vec![("10/min".into(), slow), ("5/10s".into(), LimitPatch::max(50))];
    assert!(limiter.set_override(Target::key("vip"), patches).is_err());
    assert_eq!(forgotten_after(&limiter, &clock), 9);
}

#[test]
fn a_call_with_a_max_keeps_its_own_key_for_as_long_as_it_counts() {
    for limits in ["10/min", "10/min burst 20"] {
        for max in [100, 129, 1_000, 1_000_000_000] {
            let (limiter, clock) = limiter(limits);
            let call = || Call::of("vip").max(max);
            let size = limiter.peek(call(), 0).unwrap().remaining.unwrap();
            let half = size.min(1_000) / 2;
            let passed = (0..half).filter(|_| limiter.allow(call()).unwrap()).count();
            assert_eq!(passed as u64, half, "{max}");
            // A billionth of a minute is one token at the most.
            clock.advance(Duration::from_nanos(60));
            limiter.prune().unwrap();
            let left = limiter.peek(call(), 0).unwrap().remaining.unwrap();
            assert!(left <= size - half + 1, "{limits}, {max}: {left}");
        }
    }
}

#[test]
fn changes_that_meet_in_one_key_keep_it_for_as_long_as_both_make_it_count() {
    let deep = LimitPatch::default().burst(1_000);
    let staff = || Call::of("vip").with(&[("role", "staff")]);
    for slow_by_call in [false, true] {
        let (limiter, clock) = limiter("10/min");
        let slow = |call: Call<'static>| if slow_by_call { call.max(1) } else { call };
        let is_staff = Target::from(Match::new([("role", "staff")]));
        limiter.set_override(is_staff, vec![("10/min".into(), deep.clone())]).unwrap();
        if !slow_by_call {
            let patches = vec![("10/min".into(), LimitPatch::max(1))];
            limiter.set_override(Target::key("vip"), patches).unwrap();
        }
        let passed = (0..500).filter(|_| limiter.allow(slow(staff())).unwrap()).count();
        assert_eq!(passed, 500);
        // At ten a minute, or in a bucket of ten, all would be back.
        clock.advance(60 * 60 * SECOND);
        assert_eq!(limiter.prune().unwrap(), 0, "{slow_by_call}");
        assert_eq!(limiter.peek(slow(staff()), 0).unwrap().remaining, Some(560));
    }
}

#[test]
fn long_periods_that_go_by_the_same_number_are_both_kept() {
    let day = 86_400 * SECOND;
    for limits in ["10/min", "10/min window", "10/min fixed", "10/min counter"] {
        let (limiter, clock) = limiter(limits);
        for (key, days) in [("a", 300), ("b", 360)] {
            let patch = LimitPatch::default().per(days * day);
            limiter.set_override(Target::key(key), vec![("10/min".into(), patch)]).unwrap();
        }
        assert_eq!((0..20).filter(|_| limiter.allow("b").unwrap()).count(), 10);
        clock.advance(305 * day);
        assert_eq!(limiter.prune().unwrap(), 0, "{limits}");
    }
}

#[test]
fn however_many_overrides_there_are_keys_are_forgotten_in_time() {
    let (limiter, clock) = limiter("10/min");
    change_many(&limiter, "10/min", 1_000);
    // Under each of them a minute passes until it is full.
    assert!((59..65).contains(&forgotten_after(&limiter, &clock)));
}

#[test]
fn a_cooldown_that_comes_with_a_limit_of_0_is_kept_to_its_end() {
    let (limiter, clock) = limiter("10/min");
    let cooldown = Some(3_600 * SECOND);
    let patch = LimitPatch::max(0).cooldown(cooldown);
    limiter.set_override(Target::key("vip"), vec![("10/min".into(), patch)]).unwrap();
    let reason = || limiter.hit("vip", 1).unwrap().reason().map(str::to_string);
    assert_eq!(reason().as_deref(), Some("10/min"));
    clock.advance(3_599 * SECOND);
    limiter.prune().unwrap();
    assert_eq!(reason().as_deref(), Some("cooldown"));
    clock.advance(SECOND);
    assert_eq!(reason().as_deref(), Some("10/min"));
}
