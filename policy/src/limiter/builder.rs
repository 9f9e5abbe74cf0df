//! How a limiter is made: what it limits by, and what wins over that.

use std::path::PathBuf;

use serde_core::Serialize;
use serde_json::Value;
use tidegate_core::{Clock, OnFull};

use crate::config::limit::{IntoLimits, Limit};
use crate::config::options::Options;
use crate::config::policy::{Policy, RuleConfig};
use crate::config::value::plain_value;
use crate::error::{Code, Error};
use crate::limiter::Limiter;

/// What a limiter limits by.
#[derive(Clone, Debug)]
enum Source {
    Limits(Result<Vec<Limit>, Error>),
    Rule(Box<RuleConfig>),
    Policy(Box<Policy>),
    Value(Result<Value, Error>),
    Text(String),
    File(PathBuf),
}

/// Makes a [`Limiter`]: from one source, and with options that win over the policy.
///
/// | source | what it is |
/// |---|---|
/// | [`limits`](LimiterBuilder::limits) | limits of one rule, `default` |
/// | [`rule`](LimiterBuilder::rule) | one rule, `default` |
/// | [`policy`](LimiterBuilder::policy) | a policy that code has built |
/// | [`value`](LimiterBuilder::value) | a policy as a map |
/// | [`text`](LimiterBuilder::text) | the text of a policy file |
/// | [`file`](LimiterBuilder::file) | a policy file |
///
/// The last source that is named counts. Everything else is optional.
///
/// ```
/// use tidegate::Limiter;
///
/// let shared = Limiter::builder().store("memory:shared").capacity(100).limits("1/h");
/// let (a, b) = (shared.clone().build()?, shared.build()?);
/// assert!(a.allow("alice")? && !b.allow("alice")?);
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct LimiterBuilder {
    source: Option<Source>,
    options: Options,
}

impl LimiterBuilder {
    fn from(self, source: Source) -> LimiterBuilder {
        LimiterBuilder { source: Some(source), ..self }
    }

    fn with(mut self, set: impl FnOnce(&mut Options)) -> LimiterBuilder {
        set(&mut self.options);
        self
    }

    /// Limits by one rule, `default`, of these limits. [`build`](LimiterBuilder::build) reports a
    /// limit that can't be read.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::builder().limits(["5/10s window", "20/min"]).build()?;
    /// assert_eq!(limiter.rules(), ["default"]);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn limits(self, limits: impl IntoLimits) -> LimiterBuilder {
        self.from(Source::Limits(limits.into_limits()))
    }

    /// Limits by one rule, `default`. Problems are named by their path within the rule.
    ///
    /// ```
    /// use tidegate::{Limiter, Notify, RuleConfig};
    /// let mut rule = RuleConfig::new("1/h")?;
    /// rule.notify = Notify::Once;
    /// assert!(Limiter::builder().rule(rule).build()?.allow("alice")?);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn rule(self, rule: RuleConfig) -> LimiterBuilder {
        self.from(Source::Rule(Box::new(rule)))
    }

    /// Limits by a policy that code has built.
    ///
    /// ```
    /// use tidegate::{Limiter, Policy, RuleConfig};
    /// let policy = Policy::new([("messages", RuleConfig::new("1/h")?)]);
    /// let limiter = Limiter::builder().policy(policy).capacity(9).build()?;
    /// assert_eq!(limiter.metrics()?[0].capacity, 9);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn policy(self, policy: Policy) -> LimiterBuilder {
        self.from(Source::Policy(Box::new(policy)))
    }

    /// Limits by a policy as a map, with the fields of a policy file: a `serde_json::Value`, or any
    /// type that serializes to such a map.
    ///
    /// ```
    /// let map = serde_json::json!({"version": 1, "rules": {"messages": {"limits": "20/min"}}});
    /// let limiter = tidegate::Limiter::builder().value(&map).build()?;
    /// assert_eq!(limiter.rules(), ["messages"]);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn value(self, policy: &impl Serialize) -> LimiterBuilder {
        self.from(Source::Value(plain_value(policy)))
    }

    /// Limits by the text of a policy file: JSON, or YAML with the feature `yaml`.
    ///
    /// ```
    /// let text = r#"{"version": 1, "rules": {"messages": {"limits": "20/min"}}}"#;
    /// let limiter = tidegate::Limiter::builder().text(text).build()?;
    /// assert_eq!(limiter.rules(), ["messages"]);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn text(self, policy: impl Into<String>) -> LimiterBuilder {
        self.from(Source::Text(policy.into()))
    }

    /// Limits by a policy file, which [`Limiter::reload`] reads again: JSON, or YAML with the
    /// feature `yaml`.
    ///
    /// ```
    /// let missing = tidegate::Limiter::builder().file("no/such/policy.yaml").build();
    /// assert_eq!(missing.unwrap_err().code(), tidegate::Code::File);
    /// ```
    pub fn file(self, path: impl Into<PathBuf>) -> LimiterBuilder {
        self.from(Source::File(path.into()))
    }

    /// Where state lives: `memory`, `memory:NAME` or `file:PATH`. A relative path starts at the
    /// working directory.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::builder().limits("1/h").store("memory:bot").build()?;
    /// assert_eq!(limiter.policy().store, "memory:bot");
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn store(self, store: impl Into<String>) -> LimiterBuilder {
        self.with(|options| options.store = Some(store.into()))
    }

    /// Keys that a rule may hold live. Where neither this nor the policy states it, each rule takes
    /// what fits into its share of `memory`.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::builder().limits("1/h").capacity(9).build()?;
    /// assert_eq!(limiter.metrics()?[0].capacity, 9);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn capacity(self, keys: impl Into<Option<usize>>) -> LimiterBuilder {
        self.with(|options| options.capacity = keys.into())
    }

    /// What becomes of a new key that finds the table full.
    ///
    /// ```
    /// use tidegate::{Limiter, OnFull};
    /// let full = Limiter::builder().limits("5/h").capacity(1).on_full(OnFull::Deny).build()?;
    /// let mut decisions = (0..10_000_u64).map(|user| full.hit(user, 1).unwrap());
    /// assert!(decisions.any(|decision| decision.reason() == Some("full")));
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn on_full(self, on_full: impl Into<Option<OnFull>>) -> LimiterBuilder {
        self.with(|options| options.on_full = on_full.into())
    }

    /// Where time comes from. A file store has a clock of its own, unless this is a manual one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limiter, ManualClock};
    /// let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
    /// let limiter = Limiter::builder().limits("1/min").clock(&clock).build()?;
    /// assert!(limiter.allow("alice")? && !limiter.allow("alice")?);
    /// clock.advance(Duration::from_secs(60));
    /// assert!(limiter.allow("alice")?);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn clock(self, clock: impl Into<Clock>) -> LimiterBuilder {
        self.with(|options| options.clock = clock.into())
    }

    /// Bytes that all tables together may take.
    ///
    /// ```
    /// let small = tidegate::Limiter::builder().limits("1/h").memory(1_000).build();
    /// assert_eq!(small.unwrap_err().code(), tidegate::Code::Memory);
    /// ```
    pub fn memory(self, bytes: impl Into<Option<u64>>) -> LimiterBuilder {
        self.with(|options| options.memory = bytes.into())
    }

    /// Whether the folder of a file store is shared with its group: the folder is made with mode
    /// 0770, files with 0660.
    ///
    /// ```
    /// let shared = tidegate::Limiter::builder().limits("1/h").group(false).build()?;
    /// assert!(!shared.policy().group);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn group(self, group: impl Into<Option<bool>>) -> LimiterBuilder {
        self.with(|options| options.group = group.into())
    }

    /// Whether tables of a file store that don't fit the policy, or can't be read, are made anew.
    /// Their counts are lost then.
    ///
    /// ```
    /// let in_memory = tidegate::Limiter::builder().limits("1/h").recreate(true).build();
    /// assert_eq!(in_memory.unwrap_err().code(), tidegate::Code::Policy);
    /// ```
    pub fn recreate(self, recreate: bool) -> LimiterBuilder {
        self.with(|options| options.recreate = recreate)
    }

    /// Whether root may open a file store of another user. Then no link is followed, and every file
    /// stays that user's. For other users it means nothing.
    ///
    /// ```
    /// assert!(tidegate::Limiter::builder().limits("1/h").as_owner(true).build().is_ok());
    /// ```
    pub fn as_owner(self, as_owner: bool) -> LimiterBuilder {
        self.with(|options| options.as_owner = as_owner)
    }

    /// The limiter.
    ///
    /// ```
    /// let nothing = tidegate::Limiter::builder().build().unwrap_err();
    /// assert_eq!(nothing.code(), tidegate::Code::Policy);
    /// ```
    ///
    /// # Errors
    /// - No source was named.
    /// - The policy has problems. The error lists all of them.
    /// - The file can't be read, or the store can't be opened.
    pub fn build(self) -> Result<Limiter, Error> {
        let LimiterBuilder { source, options } = self;
        let missing = || {
            let sources = "limits, rule, policy, value, text or file";
            Error::new(Code::Policy, format!("a limiter needs a policy: call one of {sources}"))
        };
        match source.ok_or_else(missing)? {
            Source::Limits(limits) => Limiter::of_rule(RuleConfig::new(limits?)?, options),
            Source::Rule(rule) => Limiter::of_rule(*rule, options),
            Source::Policy(policy) => Limiter::make(*policy, options, None),
            Source::Value(value) => Limiter::make(Policy::from_value(&value?)?, options, None),
            Source::Text(text) => Limiter::make(Policy::from_text(&text)?, options, None),
            Source::File(path) => Limiter::of_file(path, options),
        }
    }
}
