//! A decision for who writes it down in a form of their own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::compiled::interned::Interned;
use crate::compiled::labels::RuleLabels;
use crate::compiled::plan::MOST_LIMITS;
use crate::decision::headers::{LimitLeft, reported};
use crate::decision::{Decision, HeaderStatus, Reason};

/// The names of a rule's limits, which stay the same until the policy is reloaded.
///
/// ```
/// let decision = tidegate::Limiter::new("3/min").unwrap().hit("alice", 1).unwrap();
/// let view = decision.view();
/// let names = view.names();
/// assert!(view.is_named_by(&names) && names.iter().eq(["3/min"]));
/// ```
#[derive(Clone, Debug)]
pub struct Names(Arc<RuleLabels>);

impl Names {
    /// In declared order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.limits.iter().map(String::as_str)
    }
}

/// A decision that owns nothing, with times in whole milliseconds: what C and JavaScript are told
/// from, without a [`Decision`] in between.
///
/// ```
/// use tidegate::{Call, Limiter};
/// use tidegate::bindings::{DecisionSink, DecisionView};
///
/// struct Remaining;
/// impl DecisionSink for Remaining {
///     type Output = Option<u64>;
///     fn accept(self, view: &DecisionView<'_>) -> Option<u64> {
///         view.remaining
///     }
/// }
/// let rule = Limiter::new("3/min").unwrap().rule("default").unwrap();
/// assert_eq!(rule.hit_into(&Call::of("alice"), 1, Remaining).unwrap(), Some(2));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct DecisionView<'a> {
    /// As [`Decision::allowed`].
    pub allowed: bool,
    /// As [`Decision::warning`].
    pub warning: bool,
    /// As [`Decision::alert`].
    pub alert: bool,
    /// As [`Decision::notify`].
    pub notify: bool,
    /// As [`Decision::limit`].
    pub limit: Option<u64>,
    /// As [`Decision::remaining`].
    pub remaining: Option<u64>,
    /// As [`Decision::retry_after`].
    pub retry_after_ms: Option<u64>,
    /// As [`Decision::reset_after`].
    pub reset_after_ms: u64,
    /// As [`Decision::at`].
    pub at: u64,
    pub(crate) reason: Option<Reason>,
    pub(crate) would: Option<Reason>,
    pub(crate) statuses: &'a [HeaderStatus],
    pub(crate) variant: &'a Interned,
}

impl<'a> DecisionView<'a> {
    /// An allowed decision of which nothing else is known.
    #[inline(always)]
    pub(crate) fn allowed(variant: &'a Interned, at: u64) -> DecisionView<'a> {
        DecisionView {
            allowed: true,
            warning: false,
            alert: false,
            notify: false,
            limit: None,
            remaining: None,
            retry_after_ms: Some(0),
            reset_after_ms: 0,
            at,
            reason: None,
            would: None,
            statuses: &[],
            variant,
        }
    }

    /// The same as a decision that owns what it says. Inlined, so that each field is written once,
    /// where the caller wants the decision.
    #[inline(always)]
    pub(crate) fn to_decision(&self) -> Decision {
        let mut statuses = [HeaderStatus::default(); MOST_LIMITS];
        statuses.iter_mut().zip(self.statuses).for_each(|(slot, status)| *slot = *status);
        Decision {
            variant: self.variant.clone(),
            allowed: self.allowed,
            limit: self.limit,
            remaining: self.remaining,
            retry_after: self.retry_after_ms.map(Duration::from_millis),
            reset_after: Duration::from_millis(self.reset_after_ms),
            warning: self.warning,
            alert: self.alert,
            notify: self.notify,
            reason: self.reason,
            would: self.would,
            statuses,
            at: self.at,
        }
    }

    /// As [`Decision::reason`].
    #[inline]
    pub fn reason(&self) -> Option<&'a str> {
        self.reason.map(|reason| reason.name(&self.variant.labels))
    }

    /// As [`Decision::would_deny`].
    #[inline]
    pub fn would_deny(&self) -> Option<&'a str> {
        self.would.map(|reason| reason.name(&self.variant.labels))
    }

    /// As [`Decision::attach`].
    #[inline]
    pub fn attach(&self) -> Option<&'a Value> {
        if self.allowed { None } else { self.variant.attach.as_deref() }
    }

    /// To know again whether decisions have the same names, without comparing texts.
    #[inline]
    pub fn names(&self) -> Names {
        Names(self.variant.labels.clone())
    }

    /// Whether these are the names of its limits. Others may be of the same texts.
    #[inline]
    pub fn is_named_by(&self, names: &Names) -> bool {
        Arc::ptr_eq(&self.variant.labels, &names.0)
    }

    /// As [`Decision::limits`].
    #[inline]
    pub fn limits(&self) -> impl Iterator<Item = LimitLeft<'a>> + use<'a> {
        self.variant.limits(reported(self.reason, self.statuses))
    }
}

impl Decision {
    /// The same, for who writes it down in a form of their own.
    ///
    /// ```
    /// let decision = tidegate::Limiter::new("3/min").unwrap().hit("alice", 1).unwrap();
    /// assert_eq!(decision.view().remaining, Some(2));
    /// ```
    #[inline]
    pub fn view(&self) -> DecisionView<'_> {
        let millis = |duration: Duration| {
            let whole = duration.as_secs().saturating_mul(1_000);
            whole.saturating_add(u64::from(duration.subsec_millis()))
        };
        DecisionView {
            allowed: self.allowed,
            warning: self.warning,
            alert: self.alert,
            notify: self.notify,
            limit: self.limit,
            remaining: self.remaining,
            retry_after_ms: self.retry_after.map(millis),
            reset_after_ms: millis(self.reset_after),
            at: self.at,
            reason: self.reason,
            would: self.would,
            statuses: &self.statuses,
            variant: &self.variant,
        }
    }
}

/// What is done with a decision that owns nothing; see [`DecisionView`].
pub trait DecisionSink {
    /// What comes of it.
    type Output;
    /// Does it.
    fn accept(self, view: &DecisionView<'_>) -> Self::Output;
}

/// Makes a [`Decision`] of a view.
pub(crate) struct ToDecision;

impl DecisionSink for ToDecision {
    type Output = Decision;
    #[inline(always)]
    fn accept(self, view: &DecisionView<'_>) -> Decision {
        view.to_decision()
    }
}
