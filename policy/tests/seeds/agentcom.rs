//! AgentCom: `examples/policies/agentcom.yaml` against its author's own words.

use super::*;

const WS: [(&str, u64, &[&str]); 3] = [
    ("light", 120, &["ping", "list_agents", "list_channels", "status", "channel_history"]),
    (
        "normal",
        60,
        &[
            "message",
            "channel_publish",
            "channel_subscribe",
            "channel_unsubscribe",
            "task_accepted",
            "task_progress",
            "task_complete",
            "task_failed",
            "task_recovering",
            "an_action_of_the_future",
        ],
    ),
    ("heavy", 10, &["identify"]),
];

const HTTP: [(&str, u64, &[&str]); 3] = [
    (
        "light",
        120,
        &[
            "get_agents",
            "get_channels",
            "get_tasks",
            "get_metrics",
            "get_health",
            "get_mailbox",
            "get_schemas",
            "get_dashboard_state",
        ],
    ),
    (
        "normal",
        60,
        &[
            "post_message",
            "post_channel_publish",
            "post_mailbox_ack",
            "get_messages",
            "get_task_detail",
            "get_channel_info",
            "an_endpoint_of_the_future",
        ],
    ),
    ("heavy", 10, &["post_task", "post_channel", "post_admin_push_task", "post_onboard_register"]),
];

const PING: (&str, &str) = ("action", "ping");
const MESSAGE: (&str, &str) = ("action", "message");
const IDENTIFY: (&str, &str) = ("action", "identify");
const AGENT: [&str; 2] = ["my-agent", "ws"];

/// `retry_after` of a denied hit, in seconds.
#[track_caller]
fn told_to_wait(decision: &Decision) -> u64 {
    assert!(!decision.allowed, "allowed");
    let wait = decision.retry_after.unwrap();
    assert_eq!(wait.subsec_nanos(), 0, "whole seconds");
    wait.as_secs()
}

#[test]
fn every_action_has_the_capacity_of_its_tier() {
    let (limiter, _clock) = open("agentcom");
    for (channel, tiers) in [("ws", WS), ("http", HTTP)] {
        let actions = rule(&limiter, "actions");
        for (tier, capacity, names) in tiers {
            for name in names {
                let allowed = grants_with(&actions, [name, channel], ("action", name), 200);
                assert_eq!(allowed as u64, capacity, "{channel} {name} is {tier}");
            }
        }
    }
}

#[test]
fn actions_of_a_tier_share_its_bucket_and_tiers_do_not() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 70), 70);
    assert_eq!(grants_with(&actions, AGENT, ("action", "status"), 70), 50);
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 70), 60);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 70), 10);
}

#[test]
fn an_agent_at_its_websocket_limit_can_still_call_http() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 61), 60);
    assert_eq!(grants_with(&actions, ["my-agent", "http"], ("action", "post_message"), 61), 60);
    assert_eq!(grants_with(&actions, ["other-agent", "ws"], MESSAGE, 61), 60);
}

#[test]
fn a_minute_refills_a_bucket() {
    for (action, capacity) in [(PING, 120), (MESSAGE, 60), (IDENTIFY, 10)] {
        let (limiter, clock) = open("agentcom");
        let actions = rule(&limiter, "actions");
        assert_eq!(grants_with(&actions, AGENT, action, 200), capacity);
        clock.advance(MINUTE / 2);
        assert_eq!(grants_with(&actions, AGENT, action, 200), capacity / 2);
        clock.advance(MINUTE);
        assert_eq!(grants_with(&actions, AGENT, action, 200), capacity);
    }
}

#[test]
fn polling_an_empty_bucket_does_not_starve_it() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 61), 60);
    let mut granted = 0;
    for _ in 0..600_000 / 5 {
        clock.advance(5 * MILLI);
        granted += usize::from(hit_with(&actions, AGENT, MESSAGE).allowed);
    }
    assert!((599..=600).contains(&granted), "{granted} in ten minutes");
}

#[test]
fn warns_when_less_than_a_fifth_is_left() {
    for (action, capacity, first_warned) in [(PING, 120, 97), (MESSAGE, 60, 49), (IDENTIFY, 10, 9)]
    {
        let (limiter, _clock) = open("agentcom");
        let actions = rule(&limiter, "actions");
        for n in 1..=capacity {
            let decision = hit_with(&actions, AGENT, action);
            assert_allowed(&decision);
            assert_eq!(decision.warning, n >= first_warned, "{action:?}, hit {n}");
            assert_eq!((decision.limit, decision.remaining), (Some(capacity), Some(capacity - n)));
        }
        assert!(!hit_with(&actions, AGENT, action).warning, "a denial is no warning");
    }
}

#[test]
fn backoff_follows_its_curve() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 120), 120);
    let told: Vec<_> = (0..7).map(|_| told_to_wait(&hit_with(&actions, AGENT, PING))).collect();
    assert_eq!(told, [1, 2, 5, 10, 30, 30, 30]);
}

#[test]
fn backoff_is_advice() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 120 + 5), 120);
    clock.advance(500 * MILLI);
    assert_allowed(&hit_with(&actions, AGENT, PING));
}

#[test]
fn backoff_starts_over_after_a_minute_without_a_denial() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    let deny = || {
        while hit_with(&actions, AGENT, PING).allowed {}
        told_to_wait(&hit_with(&actions, AGENT, PING))
    };
    assert_eq!(deny(), 2);
    clock.advance(MINUTE - MILLI);
    assert_eq!(deny(), 10, "allowed hits don't start it over");
    clock.advance(MINUTE);
    assert_eq!(deny(), 2);
}

#[test]
fn backoff_is_never_shorter_than_the_wait_and_in_whole_seconds() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 10), 10);
    // A heavy token takes 6 s.
    let told: Vec<_> = (0..5).map(|_| told_to_wait(&hit_with(&actions, AGENT, IDENTIFY))).collect();
    assert_eq!(told, [6, 6, 6, 10, 30]);

    clock.advance(MINUTE);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 10), 10);
    clock.advance(3500 * MILLI);
    assert_eq!(told_to_wait(&hit_with(&actions, AGENT, IDENTIFY)), 3);
}

#[test]
fn violations_add_up_over_tiers_and_channels_but_not_over_agents() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 120), 120);
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 60), 60);
    assert_eq!(told_to_wait(&hit_with(&actions, AGENT, PING)), 1);
    assert_eq!(told_to_wait(&hit_with(&actions, AGENT, MESSAGE)), 2);
    assert_eq!(told_to_wait(&hit_with(&actions, AGENT, PING)), 5);
    let http = ["my-agent", "http"];
    assert_eq!(grants_with(&actions, http, ("action", "get_agents"), 120), 120);
    assert_eq!(told_to_wait(&hit_with(&actions, http, ("action", "get_agents"))), 10);

    let other = ["other-agent", "ws"];
    assert_eq!(grants_with(&actions, other, PING, 120), 120);
    assert_eq!(told_to_wait(&hit_with(&actions, other, PING)), 1);
}

#[test]
fn alerts_once_at_the_tenth_violation_in_five_minutes() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    let alerts = |n| -> Vec<usize> {
        while hit_with(&actions, AGENT, IDENTIFY).allowed {}
        let denied = (2..=n).map(|i| (i, hit_with(&actions, AGENT, IDENTIFY)));
        denied.filter(|(_, d)| d.alert).map(|(i, _)| i).collect()
    };
    assert_eq!(alerts(25), [10]);
    clock.advance(5 * MINUTE);
    assert_eq!(alerts(9), [0; 0]);
    clock.advance(5 * MINUTE);
    assert_eq!(alerts(10), [10], "nine of the span before don't count");
}

#[test]
fn a_rate_limited_agent_gets_no_work_until_it_was_quiet() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert!(!actions.is_limited(AGENT).unwrap());
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 10), 10);
    assert!(!actions.is_limited(AGENT).unwrap(), "nothing was denied yet");
    assert!(!hit_with(&actions, AGENT, IDENTIFY).allowed);
    assert!(actions.is_limited(AGENT).unwrap());
    assert!(!actions.is_limited(["other-agent", "ws"]).unwrap());
    clock.advance(MINUTE - MILLI);
    assert_allowed(&hit_with(&actions, AGENT, IDENTIFY));
    assert!(actions.is_limited(AGENT).unwrap());
    clock.advance(MILLI);
    assert!(!actions.is_limited(AGENT).unwrap());
}

#[test]
fn an_admin_can_give_an_agent_limits_of_its_own() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    let heavy = [("agent", "my-agent"), ("tier", "heavy")];
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 50), 10);
    set_max(&actions, &heavy, "per-minute", 25).unwrap();
    actions.reset(Call::of(AGENT).with(&[IDENTIFY])).unwrap();
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 50), 25);
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 100), 60, "the other tiers stay");
    assert_eq!(grants_with(&actions, ["other-agent", "ws"], IDENTIFY, 50), 10);

    clear_max(&actions, &heavy);
    actions.reset(Call::of(AGENT).with(&[IDENTIFY])).unwrap();
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 50), 10);
}

#[test]
fn an_admin_can_change_the_defaults() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    actions.set_default(patch("per-minute", 30)).unwrap();
    set_max(&actions, &[("tier", "heavy")], "per-minute", 5).unwrap();
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 100), 30);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 100), 5);
    assert_eq!(grants_with(&actions, AGENT, PING, 200), 120);
}

#[test]
fn the_whitelist_is_exempt_and_can_be_changed() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, ["dashboard", "ws"], IDENTIFY, 100), 100);
    assert_exempt(&hit_with(&actions, ["dashboard", "ws"], IDENTIFY));

    exempt(&actions, &[("agent", "my-agent")]);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 100), 100);
    end_exempt(&actions, &[("agent", "my-agent")]);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 100), 10);
    assert_exempt(&hit_with(&actions, ["dashboard", "ws"], IDENTIFY));
}

#[test]
fn endpoints_without_authentication_are_limited_by_address() {
    let (limiter, clock) = open("agentcom");
    let (open, register) = (rule(&limiter, "open"), rule(&limiter, "register"));
    assert_eq!(grants(&open, ["203.0.113.9"], 100), 60);
    assert_eq!(grants(&register, ["203.0.113.9"], 100), 5);
    assert_eq!(grants(&register, ["203.0.113.10"], 100), 5);
    clock.advance(12 * SECOND);
    assert_eq!(grants(&register, ["203.0.113.9"], 100), 1);
}
