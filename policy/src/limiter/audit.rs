//! Findings on a policy: what is allowed, but may not be meant.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::OnFull;

use crate::compiled::matching::Matcher;
use crate::config::limit::Limit;
use crate::config::policy::{DEFAULT_CAPACITY, Mode, Policy, RuleConfig};
use crate::{Error, Limiter};

/// How much a finding matters.
///
/// ```
/// assert_eq!(tidegate::Severity::Warn.as_str(), "warn");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Probably not meant.
    Warn,
}

impl Severity {
    /// `info` or `warn`.
    ///
    /// ```
    /// assert_eq!(tidegate::Severity::Info.as_str(), "info");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warn => "warn",
        }
    }
}

/// Something about a policy that may not be meant.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let finding = &limiter.audit().unwrap()[0];
/// assert_eq!((finding.id, finding.path.as_str()), ("no_budget", "rules.default.budget"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// `rule_disabled`, `high_burst`, `exempt_all`, `no_budget`, `large_window`, `full_allows`,
    /// `store_exposed`, `shadow`, `slow_eviction`, `capacity_adapted`, `change_ignored` or
    /// `retired`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Where in the policy.
    pub path: String,
    /// What it means.
    pub message: String,
}

impl Finding {
    /// As a map, for surfaces that speak JSON.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.audit().unwrap()[0].to_value()["id"], "no_budget");
    /// ```
    pub fn to_value(&self) -> Value {
        json!({
            "id": self.id,
            "severity": self.severity.as_str(),
            "path": self.path,
            "message": self.message,
        })
    }
}

/// More than this in [`BURST_SPAN`] is a high burst.
const HIGH_BURST: u64 = 10;
const BURST_SPAN: Duration = Duration::from_secs(10);
/// More bytes than this for a key is a large window.
const LARGE_ROW: u64 = 4096;
/// Idle keys that are kept for more than this many times what the rule's own limits ask for.
const SLOW: u64 = 10;

/// The most that a limit grants in the span of a burst.
fn most_in_span(limit: &Limit) -> u64 {
    let most = limit.to_core(limit.max).most_within(BURST_SPAN);
    most.and_then(|most| u64::try_from(most).ok()).unwrap_or(u64::MAX)
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, id: &'static str, severity: Severity, path: String, message: String) {
        self.0.push(Finding { id, severity, path, message });
    }

    /// A capacity that nobody stated.
    fn of_capacity(&mut self, name: &str, capacity: usize) {
        if capacity >= DEFAULT_CAPACITY {
            return;
        }
        let message = format!(
            "no `capacity` is stated, so this rule holds {capacity} keys and not \
            {DEFAULT_CAPACITY}: its share of \
             `memory`, or what its table was made for; state a `capacity`, or a larger `memory`"
        );
        self.add("capacity_adapted", Severity::Info, format!("rules.{name}.capacity"), message);
    }

    /// Idle keys that are kept for the sake of limits that only some calls are judged by.
    fn of_eviction(&mut self, name: &str, (horizon, own): (u64, u64)) {
        if own == 0 || horizon <= own.saturating_mul(SLOW) {
            return;
        }
        let seconds = |nanos: u64| nanos.div_ceil(1_000_000_000);
        let message = format!(
            "an override, an entry of `when` or a call's `max` is so slow that idle keys are \
            kept for {} s; \
             the rule's own limits need {} s",
            seconds(horizon),
            seconds(own),
        );
        self.add("slow_eviction", Severity::Info, format!("rules.{name}.limits"), message);
    }

    fn of_rule(&mut self, policy: &Policy, name: &str, rule: &RuleConfig) {
        let path = |field: &str| format!("rules.{name}.{field}");
        let mut modes = vec![(rule.mode, path("mode"))];
        for (index, when) in rule.when.iter().enumerate() {
            modes.extend(when.mode.map(|mode| (mode, path(&format!("when[{index}].mode")))));
        }
        for (mode, path) in modes {
            match mode {
                Mode::Off => self.add(
                    "rule_disabled",
                    Severity::Warn,
                    path,
                    "nothing is limited while the mode is off".into(),
                ),
                Mode::Shadow => self.add(
                    "shadow",
                    Severity::Info,
                    path,
                    "denials are only told of, not enforced".into(),
                ),
                Mode::Enforce => {}
            }
        }
        let burst = rule.limits.iter().map(most_in_span).min().unwrap_or(u64::MAX);
        if (HIGH_BURST + 1..u64::MAX).contains(&burst) {
            let message =
                format!("a key may get {burst} in 10 s; a window such as 5/10s would bound that");
            self.add("high_burst", Severity::Info, path("limits"), message);
        }
        for (index, exempt) in rule.exempt.iter().enumerate() {
            if Matcher::new(exempt, &rule.key).is_ok_and(|matcher| matcher.is_all()) {
                let message = "this matches every call, so that nothing is limited".to_string();
                self.add("exempt_all", Severity::Warn, path(&format!("exempt[{index}]")), message);
            }
        }
        if rule.budget.is_none() {
            let message =
                "there is no daily budget; costs are bounded by the rate alone".to_string();
            self.add("no_budget", Severity::Info, path("budget"), message);
        }
        if rule.on_full.unwrap_or(policy.on_full) == OnFull::Allow {
            let message = "when its table is full, new keys are not limited".to_string();
            self.add("full_allows", Severity::Warn, path("on_full"), message);
        }
    }
}

impl Limiter {
    /// What is allowed in this policy, but may not be meant.
    ///
    /// ```
    /// let findings = tidegate::Limiter::new("20/min").unwrap().audit().unwrap();
    /// let ids: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
    /// assert_eq!(ids, ["high_burst", "no_budget"]);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn audit(&self) -> Result<Vec<Finding>, Error> {
        let policy = self.policy();
        let mut findings = Findings(Vec::new());
        #[cfg(target_os = "linux")]
        if let Some(folder) = self.folder().filter(|folder| folder.is_exposed()) {
            let mode = if policy.group { 770 } else { 700 };
            let message = format!("others may read {}; make it {mode}", folder.path().display());
            findings.add("store_exposed", Severity::Warn, "store".to_string(), message);
        }
        for (name, rule) in &policy.rules {
            findings.of_rule(&policy, name, rule);
            if rule.capacity.or(policy.capacity).is_none() {
                findings.of_capacity(name, self.rule(name)?.capacity()?);
            }
            findings.of_eviction(name, self.rule(name)?.horizons()?);
            for ignored in self.rule(name)?.ignored_changes()? {
                let message = format!("a stored change is not applied: {}", ignored.message);
                let path = format!("rules.{name}.{}", ignored.path);
                findings.add("change_ignored", Severity::Warn, path, message);
            }
            if self.rule(name)?.is_retired()? {
                let message = "another table took the place of this rule's, or it was removed: \
                what is counted \
                     here, others don't see; make the limiter anew";
                let path = format!("rules.{name}");
                findings.add("retired", Severity::Warn, path, message.to_string());
            }
            let bytes = self.rule(name)?.bytes_per_key()?;
            if bytes > LARGE_ROW {
                let message =
                    format!("a key takes {bytes} bytes; `counter` or `bucket` take a few");
                findings.add(
                    "large_window",
                    Severity::Warn,
                    format!("rules.{name}.limits"),
                    message,
                );
            }
        }
        Ok(findings.0)
    }
}
