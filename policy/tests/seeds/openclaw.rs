//! OpenClaw: `examples/policies/openclaw.yaml` against its author's own words.

use super::*;

const ALICE: [&str; 3] = ["whatsapp", "default", "+1234567890"];
const BOB: [&str; 3] = ["whatsapp", "default", "+1987654321"];

#[test]
fn point_01_five_messages_in_a_minute_all_pass() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..5 {
        assert_allowed(&hit(&messages, ALICE));
        clock.advance(12 * SECOND);
    }
}

#[test]
fn point_02_the_sixth_message_in_two_seconds_is_a_burst() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..5 {
        assert_allowed(&hit(&messages, ALICE));
        clock.advance(400 * MILLI);
    }
    let sixth = hit(&messages, ALICE);
    assert_denied(&sixth, "burst", MINUTE);
    assert_eq!((sixth.limit, sixth.remaining), (Some(5), Some(0)));
}

#[test]
fn point_03_the_twenty_first_message_of_a_minute_waits() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..20 {
        assert_allowed(&hit(&messages, ALICE));
        clock.advance(2500 * MILLI);
    }
    let one_more = hit(&messages, ALICE);
    assert_denied(&one_more, "per-minute", 10 * SECOND);
    assert_eq!((one_more.limit, one_more.remaining), (Some(20), Some(0)));
    clock.advance(10 * SECOND - MILLI);
    assert_denied(&hit(&messages, ALICE), "per-minute", MILLI);
    clock.advance(MILLI);
    assert_allowed(&hit(&messages, ALICE));
}

#[test]
fn point_04_the_two_hundred_and_first_message_of_an_hour_waits() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..200 {
        assert_allowed(&hit(&messages, ALICE));
        clock.advance(17_700 * MILLI);
    }
    // 59 minutes after the first.
    assert_denied(&hit(&messages, ALICE), "per-hour", MINUTE);
    clock.advance(MINUTE);
    assert_allowed(&hit(&messages, ALICE));
}

#[test]
fn point_05_a_burst_is_followed_by_a_cooldown_that_refusals_do_not_extend() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, ALICE, 5), 5);
    assert_denied(&hit(&messages, ALICE), "burst", MINUTE);
    for passed in 1..60 {
        clock.advance(SECOND);
        assert_denied(&hit(&messages, ALICE), "cooldown", MINUTE - passed * SECOND);
    }
    clock.advance(SECOND - MILLI);
    assert_denied(&hit(&messages, ALICE), "cooldown", MILLI);
}

#[test]
fn point_06_messages_pass_again_when_the_cooldown_is_over() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, ALICE, 6), 5);
    clock.advance(MINUTE);
    assert_allowed(&hit(&messages, ALICE));
    assert_eq!(grants(&messages, ALICE, 5), 4);
}

#[test]
fn point_07_discord_has_limits_of_its_own_and_whatsapp_the_default() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let carol = ["discord", "main", "user123"];
    assert_eq!(grants(&messages, carol, 11), 10);
    assert_eq!(grants(&messages, ALICE, 6), 5);

    let (dave, erin) = (["discord", "main", "user124"], ["whatsapp", "default", "+15550100"]);
    for _ in 0..20 {
        assert_allowed(&hit(&messages, dave));
        assert_allowed(&hit(&messages, erin));
        clock.advance(2500 * MILLI);
    }
    assert_allowed(&hit(&messages, dave));
    assert_denied(&hit(&messages, erin), "per-minute", 10 * SECOND);
}

#[test]
fn point_08_an_exempt_sender_has_no_limits() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..300 {
        assert_exempt(&hit(&messages, ["telegram", "default", "openclaw:operator"]));
    }
    exempt(&messages, &[("sender", "+1234567890")]);
    for _ in 0..300 {
        assert_exempt(&hit(&messages, ALICE));
    }
    assert_eq!(messages.len().unwrap(), 0, "an exempt sender has no row");
    assert_eq!(grants(&messages, BOB, 6), 5);
}

#[test]
fn point_09_an_exempt_channel_has_no_limits() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let local = ["webchat", "default", "me"];
    assert_exempt(&hit(&messages, ["openclaw:local", "default", "me"]));
    assert_eq!(grants(&messages, local, 6), 5);
    exempt(&messages, &[("channel", "webchat")]);
    for _ in 0..300 {
        assert_exempt(&hit(&messages, local));
    }
    end_exempt(&messages, &[("channel", "webchat")]);
    assert!(!hit(&messages, local).allowed, "nothing was forgotten meanwhile");
}

#[test]
fn point_10_prune_drops_senders_that_were_idle_for_an_hour() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for sender in ["a", "b", "c"] {
        assert_allowed(&hit(&messages, ["signal", "default", sender]));
    }
    clock.advance(30 * MINUTE);
    assert_allowed(&hit(&messages, ["signal", "default", "c"]));
    assert_eq!(messages.prune().unwrap(), 0);
    assert_eq!(messages.len().unwrap(), 3);
    clock.advance(30 * MINUTE);
    assert_eq!(messages.prune().unwrap(), 2);
    assert_eq!(messages.len().unwrap(), 1);
}

#[test]
fn point_11_stats_count_what_each_window_holds() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert!(messages.stats(ALICE).unwrap().is_none());
    assert_eq!(grants(&messages, ALICE, 3), 3);
    clock.advance(15 * SECOND);
    assert_eq!(grants(&messages, ALICE, 2), 2);
    let counts = || ["burst", "per-minute", "per-hour"].map(|limit| used(&messages, ALICE, limit));
    assert_eq!(counts(), [2, 5, 5]);
    clock.advance(55 * SECOND);
    assert_eq!(counts(), [0, 2, 5]);
    let stats = messages.stats(ALICE).unwrap().unwrap();
    assert_eq!(stats.last_allowed, Some(55 * SECOND));
    assert_eq!(stats.cooldown_left, Duration::ZERO);

    assert_eq!(grants(&messages, ALICE, 6), 5);
    clock.advance(10 * SECOND);
    assert_eq!(messages.stats(ALICE).unwrap().unwrap().cooldown_left, 50 * SECOND);
}

#[test]
fn point_12_reset_clears_one_sender_and_reset_all_everybody() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert_eq!((grants(&messages, ALICE, 6), grants(&messages, BOB, 6)), (5, 5));
    messages.reset(ALICE).unwrap();
    assert!(messages.stats(ALICE).unwrap().is_none());
    assert_eq!((grants(&messages, ALICE, 6), grants(&messages, BOB, 6)), (5, 0));
    messages.reset_all().unwrap();
    assert_eq!((grants(&messages, ALICE, 6), grants(&messages, BOB, 6)), (5, 5));
}

#[test]
fn point_13_a_sender_under_budget_is_not_over_it() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let budget = messages.spend(ALICE, 100).unwrap();
    assert!(!budget.over && !budget.over_per_hit);
    let budget = messages.spend(ALICE, 101).unwrap();
    assert!(!budget.over && budget.over_per_hit, "a message above 100 cents is told apart");
    assert_eq!((budget.spent, budget.remaining), (201, 299));
    assert_allowed(&hit(&messages, ALICE));
}

#[test]
fn point_14_a_sender_over_budget_is_refused() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..6 {
        messages.spend(ALICE, 90).unwrap();
    }
    let budget = messages.budget(ALICE).unwrap();
    assert!(budget.over);
    assert_eq!((budget.spent, budget.remaining), (540, 0));
    assert_denied(&hit(&messages, ALICE), "budget", 14 * HOUR);
    assert!(!messages.budget(BOB).unwrap().over);
    assert_allowed(&hit(&messages, BOB));
}

#[test]
fn point_15_the_budget_is_fresh_after_the_reset_hour() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert!(messages.spend(ALICE, 500).unwrap().over);
    assert_eq!(messages.budget(ALICE).unwrap().reset_after, 14 * HOUR);
    clock.advance(14 * HOUR - MILLI);
    assert_denied(&hit(&messages, ALICE), "budget", MILLI);
    clock.advance(MILLI);
    assert_eq!(messages.budget(ALICE).unwrap().spent, 0);
    assert_allowed(&hit(&messages, ALICE));
}

#[test]
fn point_15_the_reset_hour_can_be_moved() {
    let changes = [("${OPENCLAW_RESET_HOUR_UTC:-0}", "11")];
    let limiter = changed("openclaw", &changes).unwrap();
    let messages = rule(&limiter, "messages");
    assert_eq!(messages.spend(ALICE, 1).unwrap().reset_after, HOUR);
}

#[test]
fn point_16_of_25_messages_at_once_20_are_dispatched() {
    let (limiter, _clock) = open("openclaw");
    let dispatch = rule(&limiter, "dispatch");
    for _ in 0..20 {
        assert_allowed(&hit(&dispatch, ALICE));
    }
    for _ in 0..5 {
        assert_denied(&hit(&dispatch, ALICE), "per-minute", MINUTE);
    }
}

#[test]
fn point_16_a_message_is_recorded_only_after_its_dispatch() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..5 {
        assert_allowed(&messages.check(ALICE, 1).unwrap());
        assert_allowed(&messages.check(ALICE, 1).unwrap()); // its dispatch failed
        messages.record(ALICE, 1).unwrap();
    }
    assert_denied(&messages.check(ALICE, 1).unwrap(), "burst", MINUTE);
    assert_denied(&messages.check(ALICE, 1).unwrap(), "cooldown", MINUTE);
}

#[test]
fn point_17_rapid_websocket_messages_get_a_rate_limit_response() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let client = ["webchat", "default", "session-1"];
    assert_eq!(grants(&messages, client, 5), 5);
    for reason in ["burst", "cooldown", "cooldown"] {
        let denied = hit(&messages, client);
        assert_denied(&denied, reason, MINUTE);
        assert!(denied.notify, "the client is told each time");
    }
}

#[test]
fn point_18_channels_are_isolated() {
    let (limiter, _clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let (whatsapp, telegram) = (["whatsapp", "default", "sam"], ["telegram", "default", "sam"]);
    assert_eq!(grants(&messages, whatsapp, 20), 5);
    assert_eq!(grants(&messages, telegram, 20), 5);
    assert_eq!(grants(&messages, ["telegram", "second", "sam"], 20), 5);
    // One key if its parts were joined by colons.
    assert_eq!(grants(&messages, ["slack:a", "b", "c"], 20), 5);
    assert_eq!(grants(&messages, ["slack", "a:b", "c"], 20), 5);
}

#[test]
fn tells_senders_never_once_or_always_by_channel() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    let told = |channel| -> Vec<bool> {
        let denied = (0..20).map(|_| hit(&messages, [channel, "default", "sam"]));
        denied.filter(|d| !d.allowed).map(|d| d.notify).collect()
    };
    let once = [&[true][..], &[false; 14]].concat();
    for _ in 0..2 {
        for channel in ["whatsapp", "signal", "imessage"] {
            assert_eq!(told(channel), [false; 15], "{channel}");
        }
        assert_eq!(told("telegram"), once);
        assert_eq!(told("discord"), [true; 10]);
        assert_eq!(told("slack"), [true; 15]);
        assert_eq!(told("webchat"), [true; 15]);
        clock.advance(MINUTE);
    }
}

#[test]
fn audit_findings_map_to_its_own_ids() {
    let (limiter, _clock) = open("openclaw");
    assert_eq!(findings(&limiter, "messages"), [""; 0]);
    assert_eq!(findings(&limiter, "dispatch"), ["high_burst", "no_budget"]);

    let off = [("${OPENCLAW_RATE_LIMIT_MODE:-enforce}", "off")];
    let limiter = changed("openclaw", &off).unwrap();
    assert!(findings(&limiter, "messages").contains(&"rule_disabled".to_string()));
    assert_eq!(hit(&rule(&limiter, "messages"), ALICE).reason(), Some("off"));

    let burst = [("${OPENCLAW_BURST_LIMIT:-5}", "11")];
    let limiter = changed("openclaw", &burst).unwrap();
    assert!(findings(&limiter, "messages").contains(&"high_burst".to_string()));

    let everybody = [("- channel: ${OPENCLAW_EXEMPT_CHANNEL:-openclaw:local}", "- {}")];
    let limiter = changed("openclaw", &everybody).unwrap();
    assert!(findings(&limiter, "messages").contains(&"exempt_all".to_string()));
}
