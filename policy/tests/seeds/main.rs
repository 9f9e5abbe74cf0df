//! The five systems of `examples/policies/`, held to their own test plans, examples and tables.
//!
//! * OpenClaw: the 18 points of its plan, what each channel is told, its audit ids.
//! * Mercury: its example run, its table of behaviour, its API.
//! * AgentCom: tiers, warning, backoff curve, alert, exclusion from scheduling, overrides,
//!   whitelist.
//! * ClawStack: the matrix of tiers, headers, the body of a 429.
//! * Jack: endpoints, roles, webhook sources, headers, WhatsApp, Twilio.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{
    Call, Decision, LimitPatch, LimitPatches, Limiter, LimiterBuilder, ManualClock, Match, Rule,
    Style,
};

mod agentcom;
mod clawstack;
mod jack;
mod mercury;
mod openclaw;

// All that knows how the crate is called is here.

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

fn options(clock: &ManualClock) -> LimiterBuilder {
    Limiter::builder().clock(clock)
}

fn manual() -> ManualClock {
    ManualClock::new(Duration::ZERO, Duration::from_secs(WALL))
}

/// A policy as it stands, on a clock that begins at [`WALL`].
fn open(name: &str) -> (Limiter, ManualClock) {
    let clock = manual();
    let limiter = options(&clock).file(path(name)).build().unwrap();
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
    let limiter = options(&manual()).file(&path).build();
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
fn set_max(rule: &Rule, fields: Fields, limit: &str, max: u64) -> Result<u64, tidegate::Error> {
    rule.set_override(matching(fields), patch(limit, max))
}

fn clear_max(rule: &Rule, fields: Fields) {
    assert!(rule.clear_override(matching(fields)).unwrap() > 0);
}

fn patch(limit: &str, max: u64) -> LimitPatches {
    vec![(limit.to_string(), LimitPatch::max(max))]
}

fn exempt(rule: &Rule, fields: Fields) {
    rule.add_exempt(matching(fields)).unwrap();
}

fn end_exempt(rule: &Rule, fields: Fields) {
    assert!(rule.remove_exempt(&matching(fields)).unwrap() > 0);
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
