//! Rules and policies as users state them, before they are at work.

use std::time::Duration;

use serde_json::Value;
use tidegate_core::OnFull;

use crate::config::limit::{Limit, LimitPatch, LimitPatches};

/// Keys that a rule may hold live where no capacity is stated and its share of `memory` has room.
///
/// ```
/// let limiter = tidegate::Limiter::new("20/min").unwrap();
/// assert_eq!(limiter.metrics().unwrap()[0].capacity, tidegate::DEFAULT_CAPACITY);
/// ```
pub const DEFAULT_CAPACITY: usize = 65_536;
/// Fewer keys than this are held only where that is stated.
///
/// ```
/// let options = tidegate::Limiter::builder().memory(20 << 10);
/// assert_eq!(options.limits("20/min").build().unwrap_err().code(), tidegate::Code::Memory);
/// # assert_eq!(tidegate::LEAST_CAPACITY, 1_024);
/// ```
pub const LEAST_CAPACITY: usize = 1_024;
/// Bytes that the tables of a policy may take unless stated.
///
/// ```
/// assert_eq!(tidegate::Policy::default().memory, tidegate::DEFAULT_MEMORY);
/// ```
pub const DEFAULT_MEMORY: u64 = 256 << 20;

/// Whether the caller should tell the sender of a denial.
///
/// ```
/// let mut rule = tidegate::RuleConfig::new("1/h").unwrap();
/// rule.notify = tidegate::Notify::Once;
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// assert!(limiter.hit("alice", 1).unwrap().notify);
/// assert!(!limiter.hit("alice", 1).unwrap().notify);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notify {
    /// Never.
    Silent,
    /// On the first denial of an episode: until the key is next allowed, or its cooldown ends.
    Once,
    /// On every denial.
    #[default]
    Always,
}

/// What becomes of denials.
///
/// ```
/// let mut rule = tidegate::RuleConfig::new("1/h").unwrap();
/// rule.mode = tidegate::Mode::Shadow;
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// let decision = limiter.hit("alice", 1).unwrap();
/// assert!(decision.allowed);
/// assert_eq!(decision.would_deny(), Some("1/h"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// They are denials.
    #[default]
    Enforce,
    /// Every hit is allowed; `would_deny` says what would have been. State changes all the same.
    Shadow,
    /// Every hit is allowed, and nothing is counted.
    Off,
}

/// What repeated denials lead to.
///
/// ```
/// use std::time::Duration;
/// let seconds = Duration::from_secs;
/// let backoff = tidegate::Backoff::new([1, 2, 5, 10, 30].map(seconds), seconds(60));
/// assert!(!backoff.enforce);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Backoff {
    /// At least this is reported as `retry_after`: by the first denial the first, and so on; the
    /// last repeats.
    pub steps: Vec<Duration>,
    /// So long without a denial starts over.
    pub quiet: Duration,
    /// `retry_after` is rounded up to a multiple of this.
    pub round: Option<Duration>,
    /// Whether hits are refused until then, or it is advice.
    pub enforce: bool,
}

impl Backoff {
    /// Advice, not rounded.
    pub fn new(steps: impl IntoIterator<Item = Duration>, quiet: Duration) -> Backoff {
        Backoff { steps: steps.into_iter().collect(), quiet, round: None, enforce: false }
    }
    /// Rounded up to a multiple of this.
    #[must_use]
    pub fn round(self, round: Duration) -> Backoff {
        Backoff { round: Some(round), ..self }
    }
    /// Refusing hits until then.
    #[must_use]
    pub fn enforced(self) -> Backoff {
        Backoff { enforce: true, ..self }
    }
}

/// When denials are worth an alert.
///
/// ```
/// use std::time::Duration;
/// let mut rule = tidegate::RuleConfig::new("1/h").unwrap();
/// rule.alert = Some(tidegate::AlertAt::new(2, Duration::from_secs(300)));
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// assert!(!limiter.hit("alice", 1).unwrap().alert);
/// assert!(limiter.hit("alice", 1).unwrap().alert);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AlertAt {
    /// So many denials,
    pub violations: u64,
    /// in a span of this length from the first one.
    pub within: Duration,
}

impl AlertAt {
    /// So many denials within a span.
    pub fn new(violations: u64, within: Duration) -> AlertAt {
        AlertAt { violations, within }
    }
}

/// What a key may spend in a day.
///
/// ```
/// let budget = tidegate::BudgetConfig::new(500).reset_hour_utc(6).unit("cents");
/// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
/// rule.budget = Some(budget);
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// assert_eq!(limiter.spend("alice", 120).unwrap().remaining, 380);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BudgetConfig {
    /// Whole units in a UTC day; hits are denied when they are spent.
    pub daily: u64,
    /// What one hit should cost at most; more is reported as `over_per_hit`.
    pub per_hit: Option<u64>,
    /// When the day begins.
    pub reset_hour_utc: u8,
    /// What is counted: cents, model tokens.
    pub unit: Option<String>,
}

impl BudgetConfig {
    /// So many units in a UTC day that begins at midnight.
    pub fn new(daily: u64) -> BudgetConfig {
        BudgetConfig { daily, per_hit: None, reset_hour_utc: 0, unit: None }
    }
    /// With what one hit should cost at most.
    #[must_use]
    pub fn per_hit(self, most: u64) -> BudgetConfig {
        BudgetConfig { per_hit: Some(most), ..self }
    }
    /// With a day that begins at another hour.
    #[must_use]
    pub fn reset_hour_utc(self, hour: u8) -> BudgetConfig {
        BudgetConfig { reset_hour_utc: hour, ..self }
    }
    /// With a word for what is counted.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> BudgetConfig {
        BudgetConfig { unit: Some(unit.into()), ..self }
    }
}

/// Turns an attribute of a call into another one, or into the last part of its key.
///
/// ```
/// use tidegate::{Call, Classify, Match, When, LimitPatch};
/// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
/// rule.classify = Some(Classify::new("action", "tier", "light").map("push", "heavy"));
/// rule.when = vec![When::new(Match::new([("tier", "heavy")])).limit("3/min", LimitPatch::max(1))];
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// let push = Call::of("alice").with(&[("action", "push")]);
/// assert_eq!(limiter.hit(push, 1).unwrap().limit, Some(1));
/// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Classify {
    /// The attribute that calls bring.
    pub from: String,
    /// The attribute or the last key part that is made of it.
    pub to: String,
    /// What is made of what.
    pub map: Vec<(String, String)>,
    /// What is made of anything else.
    pub default: String,
}

impl Classify {
    /// Makes `default` of every value of `from`, until [`map`](Classify::map) says more.
    pub fn new(
        from: impl Into<String>,
        to: impl Into<String>,
        default: impl Into<String>,
    ) -> Classify {
        Classify { from: from.into(), to: to.into(), map: Vec::new(), default: default.into() }
    }
    /// With another result for one value.
    #[must_use]
    pub fn map(mut self, value: impl Into<String>, result: impl Into<String>) -> Classify {
        self.map.push((value.into(), result.into()));
        self
    }
}

/// Which calls something applies to: each field names a key part or an attribute, and must have one
/// of the values. Values of `ip` may be ranges such as `10.0.0.0/8`.
///
/// ```
/// let admins = tidegate::Match::new([("role", "admin"), ("role", "system")]);
/// let roles = vec!["admin".to_string(), "system".to_string()];
/// assert_eq!(admins.fields, [("role".to_string(), roles)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Match {
    /// Fields and the values that they may have.
    pub fields: Vec<(String, Vec<String>)>,
}

impl Match {
    /// Of fields and values; a field that is given twice may have either value.
    pub fn new<F: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (F, V)>) -> Match {
        let mut fields: Vec<(String, Vec<String>)> = Vec::new();
        for (field, value) in pairs {
            let (field, value) = (field.into(), value.into());
            match fields.iter_mut().find(|(name, _)| *name == field) {
                Some((_, values)) => values.push(value),
                None => fields.push((field, vec![value])),
            }
        }
        Match { fields }
    }
}

/// What is different for calls that match. Everything unset stays as the rule has it.
///
/// ```
/// use tidegate::{Call, LimitPatch, Match, When};
/// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
/// let private = When::new(Match::new([("ip", "10.0.0.0/8")]));
/// rule.when.push(private.limit("3/min", LimitPatch::max(100)));
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// let inside = Call::of("alice").with(&[("ip", "10.1.2.3")]);
/// assert_eq!(limiter.hit(inside, 1).unwrap().limit, Some(100));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct When {
    /// Which calls.
    pub matches: Match,
    /// What changes of which limits.
    pub limits: LimitPatches,
    /// Another `warn_at`.
    pub warn_at: Option<f64>,
    /// Another default cooldown for limits that have none of their own.
    pub cooldown: Option<Duration>,
    /// Another backoff.
    pub backoff: Option<Backoff>,
    /// Another alert.
    pub alert: Option<AlertAt>,
    /// Another `notify`.
    pub notify: Option<Notify>,
    /// Another mode.
    pub mode: Option<Mode>,
    /// Other data for denials.
    pub attach: Option<Value>,
}

impl When {
    /// For these calls, nothing different yet.
    pub fn new(matches: Match) -> When {
        When { matches, ..When::default() }
    }
    /// With changes of the limit of that name.
    #[must_use]
    pub fn limit(mut self, name: impl Into<String>, patch: LimitPatch) -> When {
        self.limits.push((name.into(), patch));
        self
    }
}

/// A rule as stated: its limits, and what happens around them. Everything is off unless set.
///
/// ```
/// use tidegate::{Limiter, Notify, Policy, RuleConfig};
///
/// let mut messages = RuleConfig::new(["5/10s window", "20/min window"]).unwrap();
/// messages.key = vec!["channel".into(), "sender".into()];
/// messages.notify = Notify::Once;
/// let limiter = Limiter::from_policy(Policy::new([("messages", messages)])).unwrap();
/// assert!(limiter.rule("messages").unwrap().allow(["telegram", "alice"]).unwrap());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RuleConfig {
    /// Names of the key's parts, in order.
    pub key: Vec<String>,
    /// Taken together, all or nothing.
    pub limits: Vec<Limit>,
    /// An allowed hit that leaves less than `1 - warn_at` of a limit sets `warning`.
    pub warn_at: Option<f64>,
    /// The cooldown of limits that have none of their own.
    pub cooldown: Option<Duration>,
    /// What repeated denials lead to.
    pub backoff: Option<Backoff>,
    /// When denials are worth an alert.
    pub alert: Option<AlertAt>,
    /// Whether the sender should be told.
    pub notify: Notify,
    /// The parts that cooldown, backoff, alert and notices are kept for; all unless set.
    pub penalty_scope: Option<Vec<String>>,
    /// What a key may spend in a day.
    pub budget: Option<BudgetConfig>,
    /// Turns an attribute into another or into the last key part.
    pub classify: Option<Classify>,
    /// Other values for some calls.
    pub when: Vec<When>,
    /// Calls that are always allowed.
    pub exempt: Vec<Match>,
    /// What becomes of denials.
    pub mode: Mode,
    /// Free data handed back with a denial.
    pub attach: Option<Value>,
    /// The largest `max` that run-time changes may ask of a window.
    pub ceiling: Option<u64>,
    /// Keys that it may hold live; the policy's unless set.
    pub capacity: Option<usize>,
    /// What happens beyond that; the policy's unless set.
    pub on_full: Option<OnFull>,
}

impl RuleConfig {
    /// A rule of these limits, with one key part called `key`.
    ///
    /// # Errors
    /// If a limit's text can't be read.
    pub fn new(limits: impl crate::IntoLimits) -> Result<RuleConfig, crate::Error> {
        let limits = limits.into_limits()?;
        Ok(RuleConfig { key: vec!["key".to_string()], limits, ..RuleConfig::default() })
    }
}

/// Names of the legacy headers.
///
/// ```
/// let names = tidegate::HeaderNames::default();
/// assert_eq!(names.limit, "X-RateLimit-Limit");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderNames {
    /// The limit's size.
    pub limit: String,
    /// What is left.
    pub remaining: String,
    /// When to come again, or when all is back.
    pub reset: String,
}

impl Default for HeaderNames {
    fn default() -> HeaderNames {
        let name = |last: &str| format!("X-RateLimit-{last}");
        HeaderNames { limit: name("Limit"), remaining: name("Remaining"), reset: name("Reset") }
    }
}

/// A set of rules, where their state lives, and how many keys it may hold.
///
/// ```
/// use tidegate::{Limiter, Policy, RuleConfig};
/// let mut policy = Policy::new([("messages", RuleConfig::new("20/min").unwrap())]);
/// policy.capacity = Some(1_000);
/// assert_eq!(Limiter::from_policy(policy).unwrap().rules(), ["messages"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Where state lives: `memory`; `memory:NAME`, which all limiters of the process share; or
    /// `file:PATH`, which all processes of the host share.
    pub store: String,
    /// Keys that a rule may hold live, unless it says otherwise. Without it each rule takes what
    /// fits into its share of `memory`, at most [`DEFAULT_CAPACITY`].
    pub capacity: Option<usize>,
    /// What happens beyond that.
    pub on_full: OnFull,
    /// Bytes that all tables together may take.
    pub memory: u64,
    /// Whether the folder of a file store is shared with its group.
    pub group: bool,
    /// The rule for unknown rule names.
    pub fallback: Option<String>,
    /// Names of the legacy headers.
    pub headers: HeaderNames,
    /// By name, in the order stated.
    pub rules: Vec<(String, RuleConfig)>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            store: "memory".to_string(),
            capacity: None,
            on_full: OnFull::default(),
            memory: DEFAULT_MEMORY,
            group: false,
            fallback: None,
            headers: HeaderNames::default(),
            rules: Vec::new(),
        }
    }
}

impl Policy {
    /// These rules, in memory.
    pub fn new<N: Into<String>>(rules: impl IntoIterator<Item = (N, RuleConfig)>) -> Policy {
        let rules = rules.into_iter().map(|(name, rule)| (name.into(), rule)).collect();
        Policy { rules, ..Policy::default() }
    }
}
