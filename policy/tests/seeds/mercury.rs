//! Mercury: `examples/policies/mercury.yaml` against its author's own words.

use super::*;

const GROUP: &str = "slack:C123";
const USER: &str = "slack:U456";

#[test]
fn example_run() {
    let (limiter, clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    for sent in 1..=10 {
        let allowed = hit(&messages, [GROUP, USER]);
        assert_allowed(&allowed);
        assert_eq!((allowed.limit, allowed.remaining), (Some(10), Some(10 - sent)));
    }
    for _ in 11..=12 {
        assert_denied(&hit(&messages, [GROUP, USER]), "per-user", MINUTE);
    }
    clock.advance(MINUTE);
    assert_eq!(hit(&messages, [GROUP, USER]).remaining, Some(9));
}

#[test]
fn window_slides_message_by_message() {
    let (limiter, clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    for _ in 0..10 {
        assert_allowed(&hit(&messages, [GROUP, USER]));
        clock.advance(3 * SECOND);
    }
    assert_denied(&hit(&messages, [GROUP, USER]), "per-user", 30 * SECOND);
    clock.advance(30 * SECOND);
    assert_eq!(grants(&messages, [GROUP, USER], 5), 1);
    clock.advance(3 * SECOND);
    assert_eq!(grants(&messages, [GROUP, USER], 5), 1);
}

#[test]
fn says_what_to_tell_a_user_over_the_limit() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, [GROUP, USER], 10), 10);
    let denied = hit(&messages, [GROUP, USER]);
    let told = json!({"type": "denied", "reason": "Rate limit exceeded. Try again shortly."});
    assert_eq!(denied.attach(), Some(&told));
}

#[test]
fn commands_always_pass_and_ignored_messages_do_not_count() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    for kind in ["command", "ignore"] {
        assert_exempt(&hit_with(&messages, [GROUP, USER], ("type", kind)));
    }
    assert_eq!(left(&messages, [GROUP, USER]), 10);
    assert_eq!(grants_with(&messages, [GROUP, USER], ("type", "assistant"), 11), 10);
    assert_exempt(&hit_with(&messages, [GROUP, USER], ("type", "command")));
}

#[test]
fn users_and_groups_have_limits_of_their_own() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, [GROUP, USER], 11), 10);
    assert_eq!(grants(&messages, [GROUP, "slack:U789"], 11), 10);
    assert_eq!(grants(&messages, ["slack:C124", USER], 11), 10);
    // One key if its parts were joined by a colon.
    assert_eq!(grants(&messages, ["a", "b:c"], 11), 10);
    assert_eq!(grants(&messages, ["a:b", "c"], 11), 10);
}

#[test]
fn a_group_can_set_its_own_limit() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    set_max(&messages, &[("group", GROUP)], "per-user", 5).unwrap();
    assert_eq!(grants(&messages, [GROUP, USER], 11), 5);
    assert_eq!(grants(&messages, [GROUP, "slack:U789"], 11), 5);
    assert_eq!(grants(&messages, ["slack:C124", USER], 11), 10);
    clear_max(&messages, &[("group", GROUP)]);
    assert_eq!(grants(&messages, [GROUP, USER], 11), 5);
}

#[test]
fn a_call_can_bring_its_own_limit() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    for _ in 0..3 {
        assert_allowed(&hit_max(&messages, [GROUP, USER], 3).unwrap());
    }
    assert_denied(&hit_max(&messages, [GROUP, USER], 3).unwrap(), "per-user", MINUTE);
    assert_eq!(left(&messages, [GROUP, USER]), 7);
    assert_eq!(hit_max(&messages, [GROUP, USER], 1000).unwrap().remaining, Some(996));
    // A call's own limit goes before the group's.
    set_max(&messages, &[("group", GROUP)], "per-user", 2).unwrap();
    assert!(!hit(&messages, [GROUP, USER]).allowed);
    assert_allowed(&hit_max(&messages, [GROUP, USER], 20).unwrap());
}

#[test]
fn no_limit_is_above_a_thousand() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    assert!(hit_max(&messages, [GROUP, USER], 1001).is_err());
    assert!(set_max(&messages, &[("group", GROUP)], "per-user", 1001).is_err());
    set_max(&messages, &[("group", GROUP)], "per-user", 1000).unwrap();
    assert_eq!(grants(&messages, [GROUP, USER], 1001), 1000);

    let max = "${MERCURY_RATE_LIMIT_PER_USER:-10}";
    assert!(changed("mercury", &[(max, "1001")]).is_err());
    assert!(changed("mercury", &[(max, "1000")]).is_ok());
}

#[test]
fn environment_sets_the_limit_and_the_window() {
    let five_in_two_seconds = [
        ("${MERCURY_RATE_LIMIT_PER_USER:-10}", "5"),
        ("${MERCURY_RATE_LIMIT_WINDOW_MS:-60000}", "2000"),
    ];
    let limiter = changed("mercury", &five_in_two_seconds).unwrap();
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, [GROUP, USER], 5), 5);
    assert_denied(&hit(&messages, [GROUP, USER]), "per-user", 2 * SECOND);
}

#[test]
fn cleanup_clear_and_count() {
    let (limiter, clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    for user in ["a", "b", "c"] {
        assert!(messages.allow([GROUP, user]).unwrap());
    }
    assert_eq!((messages.len().unwrap(), messages.prune().unwrap()), (3, 0));
    clock.advance(30 * SECOND);
    assert!(messages.allow([GROUP, "c"]).unwrap());
    clock.advance(30 * SECOND);
    assert_eq!((messages.prune().unwrap(), messages.len().unwrap()), (2, 1));
    assert_eq!(left(&messages, [GROUP, "c"]), 9);
    messages.reset_all().unwrap();
    assert_eq!(left(&messages, [GROUP, "c"]), 10);
}

#[test]
fn audit_tells_what_its_ceiling_costs() {
    let (limiter, _clock) = open("mercury");
    assert!(findings(&limiter, "messages").contains(&"large_window".to_string()));
}
