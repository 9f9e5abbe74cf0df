//! The five systems of `examples/policies/`, held to their own test plans, examples and tables.
//!
//! * OpenClaw: the 18 points of its plan, what each channel is told, its audit ids.
//! * Mercury: its example run, its table of behaviour, its API.
//! * AgentCom: tiers, warning, backoff curve, alert, exclusion from scheduling, overrides, whitelist.
//! * ClawStack: the matrix of tiers, headers, the body of a 429.
//! * Jack: endpoints, roles, webhook sources, headers, WhatsApp, Twilio.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{
    Call, Decision, LimitPatch, LimitPatches, Limiter, ManualClock, Match, Options, Rule, Style,
};

// What follows down to the first system is all that knows how the crate is called.

/// 2024-01-15 10:00:00 UTC.
const WALL: u64 = 1_705_312_800;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const MILLI: Duration = Duration::from_millis(1);

fn path(name: &str) -> String {
    format!("{}/../examples/policies/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn options(clock: &ManualClock) -> Options {
    Options { clock: clock.clock(), ..Options::default() }
}

fn manual() -> ManualClock {
    ManualClock::new(Duration::ZERO, Duration::from_secs(WALL))
}

/// A policy as it stands, on a clock that begins at [`WALL`].
fn open(name: &str) -> (Limiter, ManualClock) {
    let clock = manual();
    let limiter = Limiter::from_file_with(path(name), options(&clock)).unwrap();
    (limiter, clock)
}

/// Tells the files of this process apart.
static NEXT_FILE: AtomicUsize = AtomicUsize::new(0);

/// A policy in which some text, such as a variable, is replaced by other text.
fn changed(name: &str, changes: &[(&str, &str)]) -> Result<Limiter, tidegate::Error> {
    let mut text = std::fs::read_to_string(path(name)).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{name} has no {old}");
        text = text.replace(old, new);
    }
    let file = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
    let path = format!("{}/seeds-{}-{file}.yaml", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::write(&path, text).unwrap();
    let limiter = Limiter::from_file_with(&path, options(&manual()));
    std::fs::remove_file(&path).unwrap();
    limiter
}

fn rule(limiter: &Limiter, name: &str) -> Rule {
    limiter.rule(name).unwrap()
}

/// A hit of 1.
fn hit<const N: usize>(rule: &Rule, key: [&str; N]) -> Decision {
    rule.hit(key, 1).unwrap()
}

/// A hit of 1 with an attribute.
fn hit_with<const N: usize>(rule: &Rule, key: [&str; N], attribute: (&str, &str)) -> Decision {
    rule.hit(Call::of(key).with(&[attribute]), 1).unwrap()
}

/// A hit of 1 under another `max`.
fn hit_max<const N: usize>(
    rule: &Rule,
    key: [&str; N],
    max: u64,
) -> Result<Decision, tidegate::Error> {
    rule.hit(Call::of(key).max(max), 1)
}

/// How many of `n` hits at once are allowed.
fn grants<const N: usize>(rule: &Rule, key: [&str; N], n: usize) -> usize {
    (0..n).filter(|_| hit(rule, key).allowed).count()
}

fn grants_with<const N: usize>(
    rule: &Rule,
    key: [&str; N],
    attribute: (&str, &str),
    n: usize,
) -> usize {
    (0..n).filter(|_| hit_with(rule, key, attribute).allowed).count()
}

/// What is left now.
fn left<const N: usize>(rule: &Rule, key: [&str; N]) -> u64 {
    rule.peek(key, 0).unwrap().remaining.unwrap()
}

/// Fields and their values.
type Fields<'a> = &'a [(&'a str, &'a str)];

fn matching(fields: Fields) -> Match {
    Match::new(fields.iter().copied())
}

/// Another `max` of a limit, for the calls that match.
fn set_max(rule: &Rule, fields: Fields, limit: &str, max: u64) -> Result<(), tidegate::Error> {
    rule.set_override(matching(fields), patch(limit, max))
}

fn clear_max(rule: &Rule, fields: Fields) {
    assert!(rule.clear_override(matching(fields)).unwrap());
}

fn patch(limit: &str, max: u64) -> LimitPatches {
    vec![(limit.to_string(), LimitPatch::max(max))]
}

fn exempt(rule: &Rule, fields: Fields) {
    rule.add_exempt(matching(fields)).unwrap();
}

fn end_exempt(rule: &Rule, fields: Fields) {
    assert!(rule.remove_exempt(&matching(fields)).unwrap());
}

/// `used` of a limit, from a key's stats.
fn used<const N: usize>(rule: &Rule, key: [&str; N], limit: &str) -> u64 {
    let stats = rule.stats(key).unwrap().expect("the key has a state");
    stats.limits.iter().find(|l| l.name == limit).unwrap().used
}

/// The ids of the audit's findings for a rule, sorted.
fn findings(limiter: &Limiter, rule: &str) -> Vec<String> {
    let path = format!("rules.{rule}");
    let found = limiter.audit().unwrap().into_iter().filter(|f| f.path.starts_with(&path));
    let mut ids: Vec<_> = found.map(|f| f.id.to_string()).collect();
    ids.sort();
    ids
}

/// A header's value.
fn header(decision: &Decision, name: &str) -> Option<String> {
    let headers = decision.headers(Style::Legacy);
    headers.into_iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

#[track_caller]
fn assert_denied(decision: &Decision, reason: &str, retry_after: Duration) {
    assert!(!decision.allowed, "allowed");
    assert_eq!(decision.reason(), Some(reason));
    assert_eq!(decision.retry_after, Some(retry_after));
}

#[track_caller]
fn assert_never(decision: &Decision, reason: &str) {
    assert!(!decision.allowed, "allowed");
    assert_eq!(decision.reason(), Some(reason));
    assert_eq!(decision.retry_after, None);
}

#[track_caller]
fn assert_exempt(decision: &Decision) {
    assert!(decision.allowed, "denied: {:?}", decision.reason());
    assert_eq!(decision.reason(), Some("exempt"));
}

#[track_caller]
fn assert_allowed(decision: &Decision) {
    assert!(decision.allowed, "denied: {:?}", decision.reason());
    assert_eq!(decision.reason(), None);
}

// ---------------------------------------------------------------------------------- OpenClaw

const ALICE: [&str; 3] = ["whatsapp", "default", "+1234567890"];
const BOB: [&str; 3] = ["whatsapp", "default", "+1987654321"];

#[test]
fn openclaw_01_five_messages_in_a_minute_all_pass() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    for _ in 0..5 {
        assert_allowed(&hit(&messages, ALICE));
        clock.advance(12 * SECOND);
    }
}

#[test]
fn openclaw_02_the_sixth_message_in_two_seconds_is_a_burst() {
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
fn openclaw_03_the_twenty_first_message_of_a_minute_waits() {
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
fn openclaw_04_the_two_hundred_and_first_message_of_an_hour_waits() {
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
fn openclaw_05_a_burst_is_followed_by_a_cooldown_that_refusals_do_not_extend() {
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
fn openclaw_06_messages_pass_again_when_the_cooldown_is_over() {
    let (limiter, clock) = open("openclaw");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, ALICE, 6), 5);
    clock.advance(MINUTE);
    assert_allowed(&hit(&messages, ALICE));
    assert_eq!(grants(&messages, ALICE, 5), 4);
}

#[test]
fn openclaw_07_discord_has_limits_of_its_own_and_whatsapp_the_default() {
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
fn openclaw_08_an_exempt_sender_has_no_limits() {
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
fn openclaw_09_an_exempt_channel_has_no_limits() {
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
fn openclaw_10_prune_drops_senders_that_were_idle_for_an_hour() {
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
fn openclaw_11_stats_count_what_each_window_holds() {
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
fn openclaw_12_reset_clears_one_sender_and_reset_all_everybody() {
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
fn openclaw_13_a_sender_under_budget_is_not_over_it() {
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
fn openclaw_14_a_sender_over_budget_is_refused() {
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
fn openclaw_15_the_budget_is_fresh_after_the_reset_hour() {
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
fn openclaw_15_the_reset_hour_can_be_moved() {
    let changes = [("${OPENCLAW_RESET_HOUR_UTC:-0}", "11")];
    let limiter = changed("openclaw", &changes).unwrap();
    let messages = rule(&limiter, "messages");
    assert_eq!(messages.spend(ALICE, 1).unwrap().reset_after, HOUR);
}

#[test]
fn openclaw_16_of_25_messages_at_once_20_are_dispatched() {
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
fn openclaw_16_a_message_is_recorded_only_after_its_dispatch() {
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
fn openclaw_17_rapid_websocket_messages_get_a_rate_limit_response() {
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
fn openclaw_18_channels_are_isolated() {
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
fn openclaw_tells_senders_never_once_or_always_by_channel() {
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
fn openclaw_audit_findings_map_to_its_own_ids() {
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

// ----------------------------------------------------------------------------------- Mercury

const GROUP: &str = "slack:C123";
const USER: &str = "slack:U456";

#[test]
fn mercury_example_run() {
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
fn mercury_window_slides_message_by_message() {
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
fn mercury_says_what_to_tell_a_user_over_the_limit() {
    let (limiter, _clock) = open("mercury");
    let messages = rule(&limiter, "messages");
    assert_eq!(grants(&messages, [GROUP, USER], 10), 10);
    let denied = hit(&messages, [GROUP, USER]);
    let told = json!({"type": "denied", "reason": "Rate limit exceeded. Try again shortly."});
    assert_eq!(denied.attach(), Some(&told));
}

#[test]
fn mercury_commands_always_pass_and_ignored_messages_do_not_count() {
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
fn mercury_users_and_groups_have_limits_of_their_own() {
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
fn mercury_a_group_can_set_its_own_limit() {
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
fn mercury_a_call_can_bring_its_own_limit() {
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
fn mercury_no_limit_is_above_a_thousand() {
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
fn mercury_environment_sets_the_limit_and_the_window() {
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
fn mercury_cleanup_clear_and_count() {
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
fn mercury_audit_tells_what_its_ceiling_costs() {
    let (limiter, _clock) = open("mercury");
    assert!(findings(&limiter, "messages").contains(&"large_window".to_string()));
}

// ---------------------------------------------------------------------------------- AgentCom

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
fn agentcom_every_action_has_the_capacity_of_its_tier() {
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
fn agentcom_actions_of_a_tier_share_its_bucket_and_tiers_do_not() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 70), 70);
    assert_eq!(grants_with(&actions, AGENT, ("action", "status"), 70), 50);
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 70), 60);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 70), 10);
}

#[test]
fn agentcom_an_agent_at_its_websocket_limit_can_still_call_http() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 61), 60);
    assert_eq!(grants_with(&actions, ["my-agent", "http"], ("action", "post_message"), 61), 60);
    assert_eq!(grants_with(&actions, ["other-agent", "ws"], MESSAGE, 61), 60);
}

#[test]
fn agentcom_a_minute_refills_a_bucket() {
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
fn agentcom_polling_an_empty_bucket_does_not_starve_it() {
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
fn agentcom_warns_when_less_than_a_fifth_is_left() {
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
fn agentcom_backoff_follows_its_curve() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 120), 120);
    let told: Vec<_> = (0..7).map(|_| told_to_wait(&hit_with(&actions, AGENT, PING))).collect();
    assert_eq!(told, [1, 2, 5, 10, 30, 30, 30]);
}

#[test]
fn agentcom_backoff_is_advice() {
    let (limiter, clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    assert_eq!(grants_with(&actions, AGENT, PING, 120 + 5), 120);
    clock.advance(500 * MILLI);
    assert_allowed(&hit_with(&actions, AGENT, PING));
}

#[test]
fn agentcom_backoff_starts_over_after_a_minute_without_a_denial() {
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
fn agentcom_backoff_is_never_shorter_than_the_wait_and_in_whole_seconds() {
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
fn agentcom_violations_add_up_over_tiers_and_channels_but_not_over_agents() {
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
fn agentcom_alerts_once_at_the_tenth_violation_in_five_minutes() {
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
fn agentcom_a_rate_limited_agent_gets_no_work_until_it_was_quiet() {
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
fn agentcom_an_admin_can_give_an_agent_limits_of_its_own() {
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
fn agentcom_an_admin_can_change_the_defaults() {
    let (limiter, _clock) = open("agentcom");
    let actions = rule(&limiter, "actions");
    actions.set_default(patch("per-minute", 30)).unwrap();
    set_max(&actions, &[("tier", "heavy")], "per-minute", 5).unwrap();
    assert_eq!(grants_with(&actions, AGENT, MESSAGE, 100), 30);
    assert_eq!(grants_with(&actions, AGENT, IDENTIFY, 100), 5);
    assert_eq!(grants_with(&actions, AGENT, PING, 200), 120);
}

#[test]
fn agentcom_the_whitelist_is_exempt_and_can_be_changed() {
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
fn agentcom_endpoints_without_authentication_are_limited_by_address() {
    let (limiter, clock) = open("agentcom");
    let (open, register) = (rule(&limiter, "open"), rule(&limiter, "register"));
    assert_eq!(grants(&open, ["203.0.113.9"], 100), 60);
    assert_eq!(grants(&register, ["203.0.113.9"], 100), 5);
    assert_eq!(grants(&register, ["203.0.113.10"], 100), 5);
    clock.advance(12 * SECOND);
    assert_eq!(grants(&register, ["203.0.113.9"], 100), 1);
}

// --------------------------------------------------------------------------------- ClawStack

const PUBLISHER: [&str; 1] = ["agent-abc12345-6789-0123-4567-890abcdef123"];

#[test]
fn clawstack_tier_matrix() {
    let matrix = [("new", 1, 2 * HOUR), ("established", 1, HOUR), ("verified", 4, HOUR)];
    for (tier, max, window) in matrix {
        let (limiter, clock) = open("clawstack");
        let publish = rule(&limiter, "publish");
        assert_eq!(grants_with(&publish, PUBLISHER, ("tier", tier), 10), max, "{tier}");
        let denied = hit_with(&publish, PUBLISHER, ("tier", tier));
        assert_denied(&denied, "publish", window);
        clock.advance(window - MILLI);
        assert!(!hit_with(&publish, PUBLISHER, ("tier", tier)).allowed, "{tier}");
        clock.advance(MILLI);
        assert_eq!(grants_with(&publish, PUBLISHER, ("tier", tier), 10), max, "{tier}");
    }
}

#[test]
fn clawstack_a_suspended_agent_never_publishes() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    for _ in 0..3 {
        let denied = hit_with(&publish, PUBLISHER, ("tier", "suspended"));
        assert_never(&denied, "publish");
        assert_eq!((denied.limit, denied.remaining), (Some(0), Some(0)));
        assert_eq!(header(&denied, "Retry-After"), None);
        assert_eq!(denied.attach().unwrap().get("spam_fee_option"), None);
        clock.advance(365 * DAY);
    }
}

#[test]
fn clawstack_an_unknown_tier_is_new() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_allowed(&hit(&publish, PUBLISHER));
    assert_denied(&hit(&publish, PUBLISHER), "publish", 2 * HOUR);
    assert_denied(&hit_with(&publish, PUBLISHER, ("tier", "legendary")), "publish", 2 * HOUR);
}

#[test]
fn clawstack_the_window_slides() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    let verified = ("tier", "verified");
    for _ in 0..4 {
        assert_allowed(&hit_with(&publish, PUBLISHER, verified));
        clock.advance(10 * MINUTE);
    }
    assert_denied(&hit_with(&publish, PUBLISHER, verified), "publish", 20 * MINUTE);
    clock.advance(20 * MINUTE);
    assert_allowed(&hit_with(&publish, PUBLISHER, verified));
    assert_denied(&hit_with(&publish, PUBLISHER, verified), "publish", 10 * MINUTE);
}

#[test]
fn clawstack_a_promotion_counts_from_the_next_request() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "new"), 3), 1);
    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "verified"), 10), 3);
    assert_never(&hit_with(&publish, PUBLISHER, ("tier", "suspended")), "publish");
}

#[test]
fn clawstack_every_response_has_its_headers() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    let shown = |decision: &Decision| {
        ["Limit", "Remaining", "Reset"]
            .map(|n| header(decision, &format!("X-RateLimit-{n}")).unwrap())
    };
    let reset = (WALL + 3600).to_string();
    let first = hit_with(&publish, PUBLISHER, ("tier", "verified"));
    assert_eq!(shown(&first), ["4", "3", &reset]);
    assert_eq!(header(&first, "Retry-After"), None);

    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "verified"), 3), 3);
    clock.advance(600 * SECOND);
    let denied = hit_with(&publish, PUBLISHER, ("tier", "verified"));
    assert_eq!(shown(&denied), ["4", "0", &reset]);
    assert_eq!(header(&denied, "Retry-After").as_deref(), Some("3000"));
}

/// What the publish handler sends with a 429.
fn body(denied: &Decision) -> Value {
    let mut body = denied.attach().unwrap().clone();
    body["retry_after"] = json!(denied.retry_after.unwrap().as_secs());
    body
}

#[test]
fn clawstack_a_429_offers_the_fee_of_the_tier() {
    for (tier, fee) in [("established", "0.10"), ("verified", "0.25")] {
        let (limiter, _clock) = open("clawstack");
        let publish = rule(&limiter, "publish");
        while hit_with(&publish, PUBLISHER, ("tier", tier)).allowed {}
        let denied = hit_with(&publish, PUBLISHER, ("tier", tier));
        let expected = json!({
            "error": "rate_limit_exceeded",
            "message": "Publishing limit reached. Pay anti-spam fee or wait.",
            "retry_after": 3600,
            "spam_fee_option": { "fee_usdc": fee, "payment_options": [] }
        });
        assert_eq!(body(&denied), expected);
        assert_eq!(header(&denied, "Retry-After").as_deref(), Some("3600"));
    }
}

#[test]
fn clawstack_a_new_agent_is_offered_no_fee() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_allowed(&hit_with(&publish, PUBLISHER, ("tier", "new")));
    let denied = hit_with(&publish, PUBLISHER, ("tier", "new"));
    assert_eq!(body(&denied)["error"], "rate_limit_exceeded");
    assert_eq!(body(&denied)["retry_after"], 7200);
    assert_eq!(body(&denied).get("spam_fee_option"), None);
}

#[test]
fn clawstack_lets_requests_through_when_its_store_is_away() {
    let (limiter, _clock) = open("clawstack");
    let ids: Vec<_> = limiter.audit().unwrap().into_iter().map(|f| f.id.to_string()).collect();
    assert!(ids.contains(&"outage_allows".to_string()), "{ids:?}");
}

// -------------------------------------------------------------------------------------- Jack

const STAFF: [&str; 1] = ["staff_123"];
const ADDRESS: [&str; 1] = ["203.0.113.9"];

#[test]
fn jack_endpoint_table() {
    let table = [
        ("auth-login", ADDRESS, 5, 15 * MINUTE),
        ("auth-refresh", ADDRESS, 10, 5 * MINUTE),
        ("api-default", STAFF, 100, MINUTE),
        ("api-messages", STAFF, 60, MINUTE),
        ("api-search", STAFF, 30, MINUTE),
        ("api-bulk", STAFF, 10, HOUR),
    ];
    for (category, key, max, window) in table {
        let (limiter, clock) = open("jack");
        let endpoint = rule(&limiter, category);
        assert_eq!(grants(&endpoint, key, 200), max, "{category}");
        assert_eq!(hit(&endpoint, key).retry_after, Some(window), "{category}");
        clock.advance(window - MILLI);
        assert_eq!(grants(&endpoint, key, 200), 0, "{category}");
        clock.advance(MILLI);
        assert_eq!(grants(&endpoint, key, 200), max, "{category}");
    }
}

#[test]
fn jack_hits_within_one_second_all_count() {
    let (limiter, clock) = open("jack");
    let login = rule(&limiter, "auth-login");
    for _ in 0..5 {
        assert_allowed(&hit(&login, ADDRESS));
        clock.advance(MILLI);
    }
    assert_denied(&hit(&login, ADDRESS), "logins", 15 * MINUTE - 5 * MILLI);
}

#[test]
fn jack_categories_and_keys_are_apart() {
    let (limiter, _clock) = open("jack");
    let (messages, search) = (rule(&limiter, "api-messages"), rule(&limiter, "api-search"));
    assert_eq!(grants(&messages, STAFF, 200), 60);
    assert_eq!(grants(&search, STAFF, 200), 30);
    assert_eq!(grants(&messages, ["staff_124"], 200), 60);
    assert_eq!(grants(&messages, ADDRESS, 200), 60, "nobody logged in: the address");
}

#[test]
fn jack_an_unknown_category_is_api_default() {
    let (limiter, _clock) = open("jack");
    assert_eq!(grants(&rule(&limiter, "api-export"), STAFF, 200), 100);
    assert_eq!(grants(&rule(&limiter, "api-default"), STAFF, 200), 0, "they share it");
}

#[test]
fn jack_response_headers_are_those_of_its_examples() {
    let (limiter, clock) = open("jack");
    let api = rule(&limiter, "api-default");
    assert_eq!(grants(&api, STAFF, 4), 4);
    let ok = hit(&api, STAFF);
    assert_eq!(header(&ok, "X-RateLimit-Limit").as_deref(), Some("100"));
    assert_eq!(header(&ok, "X-RateLimit-Remaining").as_deref(), Some("95"));
    assert_eq!(header(&ok, "X-RateLimit-Reset").as_deref(), Some("1705312860"));
    assert_eq!(header(&ok, "Retry-After"), None);

    assert_eq!(grants(&api, STAFF, 95), 95);
    clock.advance(15 * SECOND);
    let too_many = hit(&api, STAFF);
    assert_eq!(header(&too_many, "X-RateLimit-Limit").as_deref(), Some("100"));
    assert_eq!(header(&too_many, "X-RateLimit-Remaining").as_deref(), Some("0"));
    assert_eq!(header(&too_many, "X-RateLimit-Reset").as_deref(), Some("1705312860"));
    assert_eq!(header(&too_many, "Retry-After").as_deref(), Some("45"));
}

#[test]
fn jack_header_names_can_be_changed() {
    let limiter = changed("jack", &[("limit: X-RateLimit-Limit", "limit: X-Jack-Limit")]).unwrap();
    let ok = hit(&rule(&limiter, "api-default"), STAFF);
    assert_eq!(header(&ok, "X-Jack-Limit").as_deref(), Some("100"));
    assert_eq!(header(&ok, "X-RateLimit-Limit"), None);
    assert_eq!(header(&ok, "X-RateLimit-Remaining").as_deref(), Some("99"));
}

#[test]
fn jack_admin_and_system_bypass_every_endpoint() {
    let (limiter, _clock) = open("jack");
    let staff = ["api-default", "api-messages", "api-search", "api-bulk"].map(|name| (name, STAFF));
    let auth = ["auth-login", "auth-refresh", "webhook-inbound"].map(|name| (name, ADDRESS));
    for (category, key) in staff.into_iter().chain(auth) {
        let endpoint = rule(&limiter, category);
        for role in ["admin", "system"] {
            for _ in 0..150 {
                assert_exempt(&hit_with(&endpoint, key, ("role", role)));
            }
        }
        assert_allowed(&hit_with(&endpoint, key, ("role", "staff")));
    }
    assert_eq!(grants_with(&rule(&limiter, "api-bulk"), ["x"], ("role", "manager"), 50), 10);
}

#[test]
fn jack_webhooks_of_known_sources_get_ten_times_as_much() {
    let sources = [
        ("203.0.113.9", 1_000),
        ("157.239.255.255", 1_000),
        ("157.241.0.0", 1_000),
        ("157.240.0.0", 10_000),
        ("157.240.255.255", 10_000),
        ("54.1.2.3", 10_000),
        ("55.0.0.0", 1_000),
        ("::ffff:157.240.1.2", 10_000),
        ("2001:db8::1", 1_000),
    ];
    let (limiter, _clock) = open("jack");
    let webhooks = rule(&limiter, "webhook-inbound");
    for (address, max) in sources {
        assert_eq!(grants(&webhooks, [address], 12_000), max, "{address}");
    }
}

#[test]
fn jack_webhooks_go_on_after_a_minute() {
    let (limiter, clock) = open("jack");
    let webhooks = rule(&limiter, "webhook-inbound");
    assert_eq!(grants(&webhooks, ADDRESS, 2_000), 1_000);
    clock.advance(2 * MINUTE);
    assert_eq!(grants(&webhooks, ADDRESS, 2_000), 1_000);
}

#[test]
fn jack_a_phone_gets_250_templates_a_day() {
    let (limiter, clock) = open("jack");
    let templates = rule(&limiter, "whatsapp-templates");
    let phone = ["+15550100"];
    for _ in 0..250 {
        assert_allowed(&hit(&templates, phone));
        clock.advance(20 * SECOND);
    }
    // What is older than an hour still counts.
    templates.prune().unwrap();
    assert_denied(&hit(&templates, phone), "per-phone", DAY - 5000 * SECOND);
    assert_allowed(&hit(&templates, ["+15550101"]));
    clock.advance(DAY - 5000 * SECOND);
    assert_eq!(grants(&templates, phone, 5), 1);
}

#[test]
fn jack_all_phones_together_get_80_messages_a_second() {
    let (limiter, clock) = open("jack");
    let templates = rule(&limiter, "whatsapp-templates");
    let phones: Vec<_> = (0..81).map(|n| format!("+1555{n:04}")).collect();
    for phone in &phones[..80] {
        assert_allowed(&hit(&templates, [phone]));
    }
    let denied = hit(&templates, [&phones[80]]);
    assert_denied(&denied, "per-second", SECOND);
    assert_eq!((denied.limit, denied.remaining), (Some(80), Some(0)));
    clock.advance(SECOND);
    assert_eq!(grants(&templates, [&phones[80]], 100), 80);
    assert_eq!(used(&templates, [&phones[80]], "per-phone"), 80, "a denial took nothing");
}

#[test]
fn jack_business_tiers_of_whatsapp() {
    let (limiter, _clock) = open("jack");
    let business = rule(&limiter, "whatsapp-business");
    for (tier, max) in [("tier1", 1_000), ("tier2", 10_000), ("tier3", 100_000)] {
        let allowed = grants_with(&business, [tier], ("tier", tier), max + 100);
        assert_eq!(allowed, max, "{tier}");
    }
    assert_eq!(grants(&business, ["of no tier"], 2_000), 1_000);
}

#[test]
fn jack_a_twilio_number_sends_one_message_a_second() {
    let (limiter, clock) = open("jack");
    let twilio = rule(&limiter, "twilio");
    let first = twilio.permit(["+15550100"]).unwrap();
    assert!(first.is_held());
    let second = twilio.permit(["+15550100"]).unwrap();
    assert_denied(second.decision(), "per-number", SECOND);
    assert!(twilio.permit(["+15550101"]).unwrap().is_held());
    assert!(first.release());
    assert!(!twilio.permit(["+15550100"]).unwrap().is_held(), "its second isn't over");
    clock.advance(SECOND);
    assert!(twilio.permit(["+15550100"]).unwrap().is_held());
}

#[test]
fn jack_twilio_has_a_hundred_calls_at_once() {
    let (limiter, clock) = open("jack");
    let twilio = rule(&limiter, "twilio");
    let numbers: Vec<_> = (0..102).map(|n| format!("+1555{n:04}")).collect();
    let mut calls: Vec<_> = Vec::new();
    for number in &numbers[..100] {
        calls.push(twilio.permit([number.as_str()]).unwrap());
    }
    assert!(calls.iter().all(|call| call.is_held()));
    let one_more = || twilio.permit([numbers[100].as_str()]).unwrap();
    assert_denied(one_more().decision(), "calls", 30 * SECOND);
    assert!(calls.pop().unwrap().release());
    let held = one_more();
    assert!(held.is_held());

    // Calls that never end are free again after their lease.
    clock.advance(30 * SECOND);
    assert!(twilio.permit([numbers[101].as_str()]).unwrap().is_held());
}

#[test]
fn jack_hits_on_a_rule_with_permits_are_errors_that_name_permit() {
    let (limiter, _clock) = open("jack");
    let error = rule(&limiter, "twilio").hit(["+15550100"], 1).unwrap_err();
    assert!(error.to_string().contains("permit"), "{error}");
}
