//! I9 and I13 for what is noted on keys: cooldowns, backoff, alerts, budgets (promise 8 of the
//! contract).
//!
//! Whatever the clock does, a note denies a key for no longer than its own cooldown, step or day,
//! and a fault of the clock forgets nothing.

use std::time::Duration;

use tidegate::{
    AlertAt, Backoff, BudgetConfig, Decision, Limit, Limiter, ManualClock, Notify, RuleConfig,
    Style,
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn limiter(rule: RuleConfig, start: Duration) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(start, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    (options.rule(rule).build().unwrap(), clock)
}

fn rule(limits: &str) -> RuleConfig {
    RuleConfig::new(limits).unwrap()
}

fn hit(limiter: &Limiter) -> Decision {
    limiter.hit("alice", 1).unwrap()
}

fn says(decision: &Decision) -> (Option<&str>, Option<Duration>) {
    (decision.reason(), decision.retry_after)
}

/// A key whose cooldown of a minute began at 100,000 s, under a clock that has gone back by 90,000
/// s.
fn cooling_ahead(limits: &str) -> (Limiter, ManualClock) {
    let mut rule = rule(limits);
    rule.cooldown = Some(MINUTE);
    let (limiter, clock) = limiter(rule, 100_000 * SECOND);
    assert!(hit(&limiter).allowed && !hit(&limiter).allowed);
    clock.set(10_000 * SECOND);
    (limiter, clock)
}

#[test]
fn i9_a_clock_that_goes_back_leaves_a_cooldown_as_long_as_it_is() {
    for limits in ["1/s", "1/s window", "1/s fixed", "1/min", "1/min window"] {
        let (limiter, clock) = cooling_ahead(limits);
        assert_eq!(says(&hit(&limiter)), (Some("cooldown"), Some(MINUTE)), "it begins anew");
        clock.advance(59 * SECOND);
        assert_eq!(says(&hit(&limiter)), (Some("cooldown"), Some(SECOND)), "once");
        clock.advance(SECOND);
        assert!(hit(&limiter).allowed, "{limits}");
    }
}

#[test]
fn i9_whoever_waits_repairs_a_cooldown_too() {
    let (limiter, clock) = cooling_ahead("1/s");
    let at_once = || limiter.wait("alice", 1, Some(Duration::ZERO)).unwrap();
    assert_eq!(at_once().retry_after, Some(MINUTE));
    clock.advance(MINUTE);
    assert!(at_once().allowed);
}

#[test]
fn i13_a_look_at_a_cooldown_ahead_reports_no_more_than_it_and_writes_nothing() {
    let (limiter, clock) = cooling_ahead("1/s");
    let peek = || limiter.peek("alice", 1).unwrap();
    assert_eq!(says(&peek()), (Some("cooldown"), Some(MINUTE)));
    assert_eq!(limiter.stats("alice").unwrap().unwrap().cooldown_left, MINUTE);
    assert!(limiter.is_limited("alice").unwrap());
    clock.set(100_030 * SECOND);
    assert_eq!(says(&peek()), (Some("cooldown"), Some(30 * SECOND)), "as it was");
}

#[test]
fn i9_years_of_silence_end_every_penalty() {
    for tenths in [10, 44, 45, 50, 60, 66] {
        let mut rule = rule("1/s");
        (rule.cooldown, rule.notify) = (Some(MINUTE), Notify::Once);
        rule.alert = Some(AlertAt::new(3, MINUTE));
        let backoff = Backoff::new([MINUTE], MINUTE);
        rule.backoff = Some(backoff.enforced());
        let (limiter, clock) = limiter(rule, SECOND);
        assert!(hit(&limiter).allowed && !hit(&limiter).allowed);
        clock.advance(YEAR / 10 * tenths);
        assert!(!limiter.is_limited("alice").unwrap(), "{tenths} / 10 years");
        assert!(hit(&limiter).allowed, "{tenths} / 10 years");
    }
}

#[test]
fn i9_no_silence_is_long_enough_to_lengthen_a_cooldown() {
    for tenths in 67..300 {
        let mut rule = rule("0/s");
        rule.cooldown = Some(MINUTE);
        let (limiter, clock) = limiter(rule, SECOND);
        assert_eq!(hit(&limiter).reason(), Some("0/s"));
        clock.advance(YEAR / 10 * tenths);
        let first = hit(&limiter);
        clock.advance(MINUTE);
        assert_eq!(hit(&limiter).reason(), Some("0/s"), "{tenths} / 10 years: {first:?}");
    }
}

#[test]
fn i9_an_enforced_wait_that_is_ahead_lasts_its_own_time() {
    let mut rule = rule("1/s");
    let backoff = Backoff::new([5 * SECOND, 20 * SECOND], MINUTE);
    rule.backoff = Some(backoff.round(7 * SECOND).enforced());
    let (limiter, clock) = limiter(rule, 100_000 * SECOND);
    assert!(hit(&limiter).allowed);
    assert_eq!(says(&hit(&limiter)), (Some("1/s"), Some(7 * SECOND)));
    clock.set(10_000 * SECOND);
    assert_eq!(says(&hit(&limiter)), (Some("backoff"), Some(7 * SECOND)));
    clock.advance(6 * SECOND);
    assert_eq!(says(&hit(&limiter)), (Some("backoff"), Some(SECOND)));
    clock.advance(SECOND);
    assert!(hit(&limiter).allowed);
    assert_eq!(says(&hit(&limiter)), (Some("1/s"), Some(21 * SECOND)), "the run goes on");
}

#[test]
fn i9_quiet_ends_a_run_that_is_ahead() {
    let mut rule = rule("1/s");
    rule.backoff = Some(Backoff::new([5 * SECOND, 20 * SECOND], MINUTE));
    let (limiter, clock) = limiter(rule, 100_000 * SECOND);
    assert!(hit(&limiter).allowed && !hit(&limiter).allowed);
    clock.set(10_000 * SECOND);
    assert_eq!(hit(&limiter).retry_after, Some(20 * SECOND), "it is as if it were now");
    clock.advance(59 * SECOND);
    assert!(limiter.is_limited("alice").unwrap() && hit(&limiter).allowed);
    clock.advance(SECOND);
    assert!(!limiter.is_limited("alice").unwrap());
}

#[test]
fn i9_a_hit_that_is_allowed_repairs_a_run_that_is_ahead() {
    let mut rule = rule("1/s");
    rule.backoff = Some(Backoff::new([SECOND], MINUTE));
    let (limiter, clock) = limiter(rule, 100_000 * SECOND);
    assert!(hit(&limiter).allowed && !hit(&limiter).allowed);
    clock.set(99_000 * SECOND);
    assert!(limiter.hit("alice", 0).unwrap().allowed && limiter.is_limited("alice").unwrap());
    clock.advance(MINUTE);
    assert!(!limiter.is_limited("alice").unwrap());
}

#[test]
fn i9_a_span_that_is_ahead_is_as_long_as_any() {
    let mut rule = rule("1/h");
    rule.alert = Some(AlertAt::new(4, MINUTE));
    let (limiter, clock) = limiter(rule, 100_000 * SECOND);
    assert!(hit(&limiter).allowed && !hit(&limiter).alert && !hit(&limiter).alert);
    let violations = || limiter.stats("alice").unwrap().unwrap().violations;
    clock.set(10_000 * SECOND);
    assert!(!hit(&limiter).alert);
    assert_eq!(violations(), 3, "nothing is forgotten");
    clock.advance(59 * SECOND);
    assert_eq!(violations(), 3);
    clock.advance(SECOND);
    assert_eq!(violations(), 0, "and nothing is kept for longer than its span");
}

fn with_budget(daily: u64) -> RuleConfig {
    let budget = BudgetConfig::new(daily);
    let mut rule = rule("1000/s");
    rule.budget = Some(budget);
    rule
}

#[test]
fn i9_money_spent_under_a_wall_clock_ahead_is_spent_today_and_no_longer() {
    for years in [1, 4, 11, 50, 80] {
        let (limiter, clock) = limiter(with_budget(5), SECOND);
        let today = 56 * YEAR;
        clock.set_wall(today + years * YEAR);
        limiter.spend("alice", 5).unwrap();
        clock.set_wall(today);
        assert_eq!(limiter.budget("alice").unwrap().spent, 5, "a look counts it too");
        let denied = hit(&limiter);
        assert_eq!(says(&denied), (Some("budget"), Some(DAY)), "{years} years");
        clock.advance(DAY - SECOND);
        assert_eq!(says(&hit(&limiter)), (Some("budget"), Some(SECOND)), "{years} years");
        clock.advance(SECOND);
        assert!(hit(&limiter).allowed, "{years} years");
        assert_eq!(limiter.budget("alice").unwrap().spent, 0);
    }
}

#[test]
fn i13_a_wall_clock_that_says_1970_gives_no_budget_away() {
    let (limiter, clock) = limiter(with_budget(5), SECOND);
    clock.set_wall(56 * YEAR);
    limiter.spend("alice", 3).unwrap();
    clock.set_wall(Duration::ZERO);
    assert!(hit(&limiter).allowed);
    assert_eq!(limiter.spend("alice", 2).unwrap().spent, 5);
    assert_eq!(says(&hit(&limiter)), (Some("budget"), Some(DAY)));
    clock.advance(DAY);
    assert!(hit(&limiter).allowed);
}

/// Every operation of a rule, with every option on.
fn use_all(limiter: &Limiter) {
    let decision = hit(limiter);
    for style in [Style::Legacy, Style::Ietf, Style::Both] {
        let _ = decision.headers(style);
    }
    let _ = limiter.check("alice", 1).unwrap().headers(Style::Both);
    let _ = limiter.peek("alice", 1).unwrap().headers(Style::Both);
    limiter.spend("alice", 3).unwrap();
    limiter.budget("alice").unwrap();
    limiter.is_limited("alice").unwrap();
    limiter.stats("alice").unwrap();
    let _ = limiter.wait("alice", 1, Some(Duration::ZERO)).unwrap();
    limiter.prune().unwrap();
}

#[test]
fn i9_every_moment_of_a_clock_can_be_used() {
    let ends = [0, 1, 999, 1000, u64::MAX / 2, u64::MAX - 5, u64::MAX - 1, u64::MAX];
    for limit in [Limit::bucket(0, SECOND), Limit::bucket(2, SECOND)] {
        for (first, second) in ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b))) {
            let mut rule = rule("1/s");
            (rule.limits, rule.notify) = (vec![limit.clone()], Notify::Once);
            rule.cooldown = Some(366 * DAY);
            let backoff = Backoff::new([SECOND, 366 * DAY], 366 * DAY);
            rule.backoff = Some(backoff.round(366 * DAY).enforced());
            rule.alert = Some(AlertAt::new(2, 366 * DAY));
            rule.budget = Some(BudgetConfig::new(8).per_hit(1).reset_hour_utc(23));
            let (limiter, clock) = limiter(rule, Duration::from_nanos(first));
            for wall in [Duration::ZERO, Duration::from_nanos(second), Duration::MAX] {
                clock.set_wall(wall);
                use_all(&limiter);
                clock.set(Duration::from_nanos(second));
                use_all(&limiter);
                clock.advance(Duration::MAX);
                use_all(&limiter);
                clock.set(Duration::from_nanos(first));
            }
        }
    }
}
