//! What denials lead to where several things come together.

use std::time::Duration;

use tidegate::{
    Backoff, BudgetConfig, Call, Decision, Limit, Limiter, ManualClock, Match, Notify, OnFull,
    RuleConfig, When,
};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(rule: RuleConfig) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock());
    (options.rule(rule).build().unwrap(), clock)
}

fn hit(limiter: &Limiter) -> Decision {
    limiter.hit("alice", 1).unwrap()
}

fn told(limiter: &Limiter) -> (Option<String>, bool) {
    let decision = hit(limiter);
    (decision.reason().map(str::to_string), decision.notify)
}

#[test]
fn an_over_budget_sender_is_told_once_after_a_cooldown_too() {
    let mut rule = RuleConfig::new("1/s").unwrap();
    (rule.cooldown, rule.notify) = (Some(2 * SECOND), Notify::Once);
    rule.budget = Some(BudgetConfig::new(5));
    let (limiter, clock) = limiter(rule);
    assert!(hit(&limiter).allowed);
    assert_eq!(told(&limiter), (Some("1/s".into()), true));
    assert_eq!(told(&limiter), (Some("cooldown".into()), false));
    clock.advance(3 * SECOND);
    limiter.spend("alice", 5).unwrap();
    assert_eq!(
        told(&limiter),
        (Some("budget".into()), true),
        "the cooldown's end ends the episode"
    );
    assert_eq!(told(&limiter), (Some("budget".into()), false), "once");
    clock.advance(SECOND);
    assert_eq!(told(&limiter), (Some("budget".into()), false), "and once only");
}

#[test]
fn whoever_lets_a_key_pass_ends_its_episode() {
    let mut rule = RuleConfig::new("1/s").unwrap();
    rule.notify = Notify::Once;
    let mut when = When::new(Match::new([("role", "staff")]));
    when.notify = Some(Notify::Always);
    rule.when = vec![when];
    let (limiter, clock) = limiter(rule);
    let staff = || limiter.hit(Call::of("alice").with(&[("role", "staff")]), 1).unwrap();
    assert!(hit(&limiter).allowed);
    assert!(hit(&limiter).notify && !hit(&limiter).notify);
    assert!(staff().notify && !hit(&limiter).notify, "a denial ends nothing");
    clock.advance(SECOND);
    assert!(staff().allowed, "by an entry of `when` that has nothing to remember");
    assert!(hit(&limiter).notify && !hit(&limiter).notify);
}

#[test]
fn an_enforced_wait_goes_on_unchanged_after_a_shorter_cooldown() {
    let mut rule = RuleConfig::new("1/s").unwrap();
    (rule.cooldown, rule.notify) = (Some(SECOND), Notify::Once);
    rule.backoff = Some(Backoff::new([5 * SECOND], 60 * SECOND).round(4 * SECOND).enforced());
    let (limiter, clock) = limiter(rule);
    assert!(hit(&limiter).allowed);
    assert_eq!(told(&limiter), (Some("1/s".into()), true));
    clock.advance(2 * SECOND);
    assert_eq!(told(&limiter), (Some("backoff".into()), true));
    assert_eq!(told(&limiter), (Some("backoff".into()), false));
    assert_eq!(hit(&limiter).retry_after, Some(6 * SECOND), "what was announced, rounded, is kept");
}

#[test]
fn nothing_is_enforced_where_waiting_never_helps() {
    let mut rule = RuleConfig::new("0/s").unwrap();
    let backoff = Backoff::new([5 * SECOND], 60 * SECOND);
    rule.backoff = Some(backoff.enforced());
    let (limiter, _) = limiter(rule);
    for _ in 0..3 {
        let denied = hit(&limiter);
        assert_eq!((denied.reason(), denied.retry_after), (Some("0/s"), None));
    }
    assert_eq!(limiter.stats("alice").unwrap().unwrap().violations, 3);
}

#[test]
fn who_waits_waits_for_the_limits_alone() {
    let mut rule = RuleConfig::new("1/s").unwrap();
    rule.cooldown = Some(60 * SECOND);
    let (limiter, clock) = limiter(rule);
    assert!(hit(&limiter).allowed);
    let soon = limiter.wait("alice", 1, Some(SECOND / 2)).unwrap();
    assert_eq!((soon.allowed, soon.retry_after), (false, Some(SECOND)), "no cooldown was started");
    clock.advance(SECOND);
    assert!(limiter.wait("alice", 1, Some(Duration::ZERO)).unwrap().allowed);
}

#[test]
fn a_look_reports_what_has_begun_and_nothing_that_a_denial_would_start() {
    let mut rule = RuleConfig::new("1/s").unwrap();
    rule.cooldown = Some(60 * SECOND);
    let backoff = Backoff::new([90 * SECOND], 600 * SECOND);
    rule.backoff = Some(backoff.round(7 * SECOND).enforced());
    let (limiter, clock) = limiter(rule);
    assert!(hit(&limiter).allowed);
    clock.advance(SECOND / 4);
    let peek = || {
        let decision = limiter.peek("alice", 1).unwrap();
        (decision.reason().map(str::to_string), decision.retry_after)
    };
    assert_eq!(peek(), (Some("1/s".into()), Some(SECOND * 3 / 4)), "the limit's own wait");
    let denied = hit(&limiter);
    assert_eq!((denied.reason(), denied.retry_after), (Some("1/s"), Some(91 * SECOND)));
    clock.advance(SECOND);
    assert_eq!(peek(), (Some("cooldown".into()), Some(90 * SECOND)), "what runs already");
    clock.advance(60 * SECOND);
    assert_eq!(peek(), (Some("backoff".into()), Some(30 * SECOND)));
    clock.advance(30 * SECOND);
    assert_eq!(peek(), (None, Some(Duration::ZERO)));
}

#[test]
fn senders_without_a_place_for_notes_are_told_all_the_same() {
    let everybody = Limit::bucket(1, 3600 * SECOND).named("all").scope::<&str>([]);
    let mut rule = RuleConfig::new("1/s").unwrap();
    (rule.limits, rule.capacity, rule.cooldown) = (vec![everybody], Some(1), Some(7200 * SECOND));
    let (limiter, _) = limiter(rule);
    assert!(hit(&limiter).allowed);
    let denied = (0..40).map(|i| limiter.hit(i, 1).unwrap()).collect::<Vec<_>>();
    assert!(denied.iter().all(|decision| !decision.allowed && decision.notify));
    let without = denied.last().unwrap();
    assert_eq!(without.retry_after, Some(3600 * SECOND), "no cooldown could be started");
}

#[test]
fn a_batch_counts_its_denials_by_limit() {
    let limiter = Limiter::new("2/h window, 3/h").unwrap();
    assert_eq!(limiter.allow_many(&["alice"; 5]).unwrap(), [1, 1, 0, 0, 0]);
    let metrics = limiter.metrics().unwrap().remove(0);
    assert_eq!((metrics.allowed, metrics.denied), (2, vec![("2/h".to_string(), 3)]));
}

#[test]
fn what_is_spent_counts_when_no_place_is_left_too() {
    let spend = |on_full: OnFull| {
        let mut rule = RuleConfig::new("100/min").unwrap();
        rule.budget = Some(BudgetConfig::new(5));
        (rule.capacity, rule.on_full) = (Some(2), Some(on_full));
        let (limiter, clock) = limiter(rule);
        let names: Vec<String> = (0..40).map(|i| format!("sender {i}")).collect();
        let told: Vec<_> = names.iter().map(|name| limiter.spend(name, 5).unwrap().spent).collect();
        let spent = |name: &String| limiter.budget(name).unwrap().spent;
        let now: Vec<_> = names.iter().map(spent).collect();
        clock.advance(Duration::from_secs(86_400));
        assert!(names.iter().all(|name| spent(name) == 0), "the next day");
        assert_eq!(limiter.spend("sender 39", 1).unwrap().spent, 1);
        (told, now)
    };
    for on_full in [OnFull::Overflow, OnFull::Deny] {
        let (told, now) = spend(on_full);
        assert!(told.iter().chain(&now).all(|spent| *spent >= 5), "{told:?} {now:?}");
        assert!(
            now.iter().filter(|spent| **spent == 5).count() >= 2,
            "those with a place: {now:?}"
        );
    }
    let (told, now) = spend(OnFull::Allow);
    let kept = |of: &Vec<u64>| of.iter().filter(|spent| **spent > 0).count();
    assert!(kept(&now) < 40 && kept(&told) == kept(&now), "{told:?} {now:?}");
}
