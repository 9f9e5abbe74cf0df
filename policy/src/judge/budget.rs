//! What keys spend in a day.

use std::time::Duration;

use crate::time::{Day, whole_millis};

/// How a key stands with its budget.
///
/// ```
/// use tidegate::{BudgetConfig, Limiter, Policy, RuleConfig};
///
/// let mut rule = RuleConfig::new("100/min").unwrap();
/// rule.budget = Some(BudgetConfig::new(500).per_hit(100));
/// let limiter = Limiter::from_policy(Policy::new([("default", rule)])).unwrap();
/// let spent = limiter.spend("alice", 499).unwrap();
/// assert_eq!((spent.remaining, spent.over, spent.over_per_hit), (1, false, true));
/// assert!(limiter.spend("alice", 1).unwrap().over);
/// assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("budget"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Units spent today.
    pub spent: u64,
    /// Units left today.
    pub remaining: u64,
    /// Whether nothing is left.
    pub over: bool,
    /// Whether this amount was more than one hit should cost.
    pub over_per_hit: bool,
    /// Until the day is over.
    pub reset_after: Duration,
}

impl Budget {
    pub(crate) fn new(daily: u64, spent: u64, over_per_hit: bool, day: &Day) -> Budget {
        Budget {
            spent,
            remaining: daily.saturating_sub(spent),
            over: spent >= daily,
            over_per_hit,
            reset_after: whole_millis(day.left_nanos()).unwrap_or_default(),
        }
    }
}
