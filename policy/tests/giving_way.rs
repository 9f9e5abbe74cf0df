//! When keys are forgotten, while some are judged by other numbers than the policy's.

use std::time::Duration;

use tidegate::{Call, LimitPatch, Limiter, ManualClock, Options, Target};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(limits: &str) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(1_000 * SECOND, Duration::ZERO);
    let options = Options { clock: clock.clock(), ..Options::default() };
    (Limiter::with(limits, options).unwrap(), clock)
}

/// How many seconds after one hit a key is forgotten.
fn forgotten_after(limiter: &Limiter, clock: &ManualClock) -> usize {
    limiter.prune().unwrap();
    assert!(limiter.allow("somebody").unwrap());
    let gone = (0..100_000).find(|_| {
        clock.advance(SECOND);
        limiter.prune().unwrap() > 0
    });
    gone.expect("it is forgotten some day")
}

#[test]
fn a_change_for_one_key_does_not_keep_all_others() {
    // A token each 3.6 seconds.
    let patch = |max, burst| LimitPatch { max, burst, ..LimitPatch::default() };
    let cooldown = LimitPatch { cooldown: Some(60 * SECOND), ..LimitPatch::default() };
    for (patch, at_most) in [
        (cooldown, 4),
        (patch(Some(1_000), None), 4),
        (patch(Some(900), None), 8),
        (patch(Some(0), None), 4),
        // It lacks ten more then, and as many as there are between 1,110 and 2,048.
        (patch(None, Some(1_110)), 3_420),
    ] {
        let (limiter, clock) = limiter("1000/h burst 1100");
        assert_eq!(forgotten_after(&limiter, &clock), 3);
        let patches = vec![("1000/h".to_string(), patch.clone())];
        limiter.set_override(Target::key("vip"), patches).unwrap();
        let after = forgotten_after(&limiter, &clock);
        assert!((3..at_most).contains(&after), "{patch:?}: {after}");
    }
}

#[test]
fn what_is_refused_keeps_nobody() {
    let (limiter, clock) = limiter("10/min, 5/10s window");
    let slow = LimitPatch { per: Some(86_400 * SECOND), ..LimitPatch::default() };
    // There is no room for so many in the window's log.
    let patches = vec![("10/min".into(), slow), ("5/10s".into(), LimitPatch::max(50))];
    assert!(limiter.set_override(Target::key("vip"), patches).is_err());
    assert_eq!(forgotten_after(&limiter, &clock), 9);
}

#[test]
fn a_call_with_a_max_keeps_its_own_key_for_as_long_as_it_counts() {
    let (limiter, clock) = limiter("10/min");
    for max in [0, 1, 7, 10, 100, 1_000_000_000] {
        let call = || Call::of("vip").max(max);
        let half = max.min(1_000) as usize / 2;
        assert_eq!((0..half).filter(|_| limiter.allow(call()).unwrap()).count(), half, "{max}");
        clock.advance(Duration::from_nanos(50));
        limiter.prune().unwrap();
        let left = limiter.peek(call(), 0).unwrap().remaining.unwrap();
        assert!(left <= max - half as u64 + max / 1_000_000_000 * 1_000, "{max}: {left}");
        limiter.reset("vip").unwrap();
    }
}

#[test]
fn however_many_overrides_there_are_keys_are_forgotten_in_time() {
    let (limiter, clock) = limiter("10/min");
    for max in 1..500 {
        let patches = vec![("10/min".to_string(), LimitPatch::max(max * 7))];
        limiter.set_override(Target::key(&format!("vip-{max}")), patches).unwrap();
        assert!(limiter.allow(format!("vip-{max}").as_str()).unwrap());
    }
    // Under the largest of them a minute passes until it is full.
    assert!((5..60).contains(&forgotten_after(&limiter, &clock)));
}
