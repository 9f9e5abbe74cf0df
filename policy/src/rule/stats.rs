//! What is known of a key: its limits, its penalties, its budget.

use std::time::Duration;

use tidegate_core::LimitStatus;

use crate::compiled::variant::Variant;
use crate::config::policy::BudgetConfig;
use crate::error::{Code, Error};
use crate::judge::Op;
use crate::judge::budget::Budget;
use crate::judge::penalty::Record;
use crate::key::{Call, Parts};
use crate::rule::changes::BlockedKey;
use crate::rule::{Rule, each_status};
use crate::snapshot::{Resolved, Snapshot};
use crate::time::{Day, whole_millis};

/// What one limit holds of a key.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// let used = limiter.stats("alice").unwrap().unwrap().limits.remove(0);
/// assert_eq!((used.name.as_str(), used.used, used.remaining), ("3/min", 1, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUse {
    /// The limit's name.
    pub name: String,
    /// Whole units that are gone.
    pub used: u64,
    /// A bucket's size, else `max`.
    pub max: u64,
    /// Whole units that are left.
    pub remaining: u64,
    /// Until the whole quota is there again.
    pub reset_after: Duration,
}

/// What is known of a key.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert_eq!(limiter.stats("alice").unwrap(), None);
/// assert!(limiter.allow("alice").unwrap());
/// let stats = limiter.stats("alice").unwrap().unwrap();
/// assert_eq!((stats.limits[0].used, stats.violations), (1, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Each limit, in declared order.
    pub limits: Vec<LimitUse>,
    /// What its cooldown has to run.
    pub cooldown_left: Duration,
    /// Denials in the span of the rule's alert, or in the run of its backoff.
    pub violations: u64,
    /// Since its last allowed hit, where the rule keeps that: one with a window does.
    pub last_allowed: Option<Duration>,
    /// Its budget, if the rule has one.
    pub budget: Option<Budget>,
    /// What is known of its block, if it is blocked.
    pub blocked: Option<BlockedKey>,
}

impl Rule {
    fn budget_config<'s>(&self, snapshot: &'s Snapshot) -> Result<&'s BudgetConfig, Error> {
        snapshot.config.budget.as_ref().ok_or_else(|| {
            let message =
                format!("rule {:?} has no budget; state one in its policy", snapshot.labels.rule);
            Error::new(Code::Operation, message)
        })
    }

    /// Records what was spent of the day's budget, always.
    ///
    /// ```
    /// let budget = tidegate::BudgetConfig::new(5);
    /// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
    /// rule.budget = Some(budget);
    /// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
    /// assert!(limiter.spend("alice", 6).unwrap().over);
    /// ```
    ///
    /// # Errors
    /// If the rule has no budget; and as [`Rule::allow`].
    pub fn spend<'a>(&self, call: impl Into<Call<'a>>, amount: u64) -> Result<Budget, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let budget = self.budget_config(&snapshot)?;
        let mut room = Parts::default();
        let (resolved, hashes) = self.counted(&snapshot, &call, &mut room)?;
        let (clock, hour) = (snapshot.tables.clock(), budget.reset_hour_utc);
        let day = Day::today(clock, hour);
        let over_per_hit = budget.per_hit.is_some_and(|most| amount > most);
        let again = || Day::today_again(clock, hour).number;
        let spend = |_| {
            let hash = snapshot.whole_hash(&resolved.subject);
            snapshot.spend(hash, amount, day.number, again)
        };
        let spent = hashes.and_then(spend);
        Ok(Budget::new(budget.daily, spent.unwrap_or(0), over_per_hit, &day))
    }

    /// How the key stands with its budget.
    ///
    /// ```
    /// let budget = tidegate::BudgetConfig::new(5);
    /// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
    /// rule.budget = Some(budget);
    /// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
    /// assert_eq!(limiter.budget("alice").unwrap().remaining, 5);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::spend`].
    pub fn budget<'a>(&self, call: impl Into<Call<'a>>) -> Result<Budget, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let budget = self.budget_config(&snapshot)?;
        let mut room = Parts::default();
        let resolved = snapshot.resolve(&call, &mut room)?;
        Ok(budget_of(&snapshot, &resolved, budget))
    }

    /// Whether the key should be left alone: if it is blocked; with backoff, if it was denied less
    /// than `quiet` ago; without, if a hit of 1 would be denied now.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert!(!limiter.is_limited("alice").unwrap());
    /// assert!(limiter.allow("alice").unwrap());
    /// assert!(limiter.is_limited("alice").unwrap());
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`].
    pub fn is_limited<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let mut room = Parts::default();
        let resolved = snapshot.resolve(&call, &mut room)?;
        let counted = snapshot.uncounted(&resolved).is_none();
        let now = snapshot.tables.clock().now();
        if counted && snapshot.block_of(&resolved.subject, now).is_some() {
            return Ok(true);
        }
        if resolved.variant.backoff.is_none() {
            return Ok(!self.decided(&snapshot, &call, 1, Op::Peek)?.allowed);
        }
        Ok(counted && record_of(&snapshot, &resolved).is_some_and(|r| r.is_recent))
    }

    /// What is known of a key; `None` exactly when its state is that of a new one.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.hit("alice", 2).unwrap().allowed.then_some(()).unwrap();
    /// assert_eq!(limiter.stats("alice").unwrap().unwrap().limits[0].used, 2);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`].
    pub fn stats<'a>(&self, call: impl Into<Call<'a>>) -> Result<Option<Stats>, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let mut room = Parts::default();
        let resolved = snapshot.resolve(&call, &mut room)?;
        let variant = &resolved.variant;
        let hashes = snapshot.hashes(&resolved.subject);
        let now = snapshot.tables.clock().now();
        let statuses =
            each_status(&snapshot, variant, Some(&hashes), |part, _| part.inspect(0, now));
        let statuses = &statuses[..variant.params.len()];
        let record = record_of(&snapshot, &resolved);
        let budget = snapshot.config.budget.as_ref().map(|b| budget_of(&snapshot, &resolved, b));
        let is_new = statuses.iter().all(|status| status.used == 0 && status.reset == 0)
            && record.as_ref().is_none_or(|record| record.is_new)
            && budget.is_none_or(|budget| budget.spent == 0)
            && snapshot.block_of(&resolved.subject, now).is_none();
        if is_new {
            return Ok(None);
        }
        let limit = |(index, status): (usize, &LimitStatus)| LimitUse {
            name: snapshot.labels.limits[index].clone(),
            used: status.used,
            max: variant.params[index].size,
            remaining: status.remaining,
            reset_after: whole_millis(status.reset).unwrap_or_default(),
        };
        let left = record.as_ref().map_or(0, |record| record.cooldown_left);
        Ok(Some(Stats {
            limits: statuses.iter().enumerate().map(limit).collect(),
            cooldown_left: whole_millis(left).unwrap_or_default(),
            violations: record.map_or(0, |record| record.violations),
            last_allowed: last_allowed(&snapshot, variant, statuses),
            budget,
            blocked: snapshot.block_of(&resolved.subject, now).map(|note| {
                let key = resolved.subject.parts().iter().map(|part| part.to_vec()).collect();
                BlockedKey::new(key, note, &snapshot, now)
            }),
        }))
    }
}

fn budget_of(snapshot: &Snapshot, resolved: &Resolved<'_>, budget: &BudgetConfig) -> Budget {
    let day = Day::today(snapshot.tables.clock(), budget.reset_hour_utc);
    let spent = snapshot.spent(snapshot.whole_hash(&resolved.subject));
    Budget::new(budget.daily, spent.on(day.number), false, &day)
}

fn record_of(snapshot: &Snapshot, resolved: &Resolved<'_>) -> Option<Record> {
    let (ledger, subject) = (snapshot.tables.penalties()?, &resolved.subject);
    let notes = ledger.read(snapshot.penalty_hash(snapshot.whole_hash(subject), subject))?;
    Some(Record::read(notes, &resolved.variant, snapshot.tables.clock().now()))
}

/// Since the newest entry of a window: what is left until it is empty tells.
fn last_allowed(
    snapshot: &Snapshot,
    variant: &Variant,
    statuses: &[LimitStatus],
) -> Option<Duration> {
    let windows = snapshot.plan().algorithms.iter().zip(&variant.effective.limits).zip(statuses);
    let ages = windows
        .filter(|((algorithm, _), status)| algorithm.is_log() && status.reset > 0)
        .map(|((_, limit), status)| limit.per.saturating_sub(Duration::from_nanos(status.reset)));
    ages.min()
}
