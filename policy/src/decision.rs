//! The answer to a hit.

pub(crate) mod headers;
pub(crate) mod view;

use std::fmt;
use std::time::Duration;

use serde_core::Deserialize;
use serde_json::Value;
use tidegate_core::{LimitStatus, NEVER};

use crate::compiled::interned::Interned;
use crate::compiled::labels::RuleLabels;
use crate::compiled::plan::MOST_LIMITS;
use crate::config::limit::one;
use crate::error::Error;

/// Why a hit was denied, or not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The limit at this place in the rule.
    Limit(u8),
    Blocked,
    Cooldown,
    Backoff,
    Budget,
    Cost,
    Full,
    Exempt,
    Off,
}

impl Reason {
    pub(crate) fn limit(index: usize) -> Reason {
        Reason::Limit(index as u8)
    }

    pub(crate) fn name(self, labels: &RuleLabels) -> &str {
        match self {
            Reason::Limit(index) => {
                labels.limits.get(usize::from(index)).map_or("", String::as_str)
            }
            Reason::Blocked => "blocked",
            Reason::Cooldown => "cooldown",
            Reason::Backoff => "backoff",
            Reason::Budget => "budget",
            Reason::Cost => "cost",
            Reason::Full => "full",
            Reason::Exempt => "exempt",
            Reason::Off => "off",
        }
    }
}

/// How a decision left one limit, in two words: every decision holds one for each limit that a rule
/// may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderStatus {
    /// Milliseconds until there is more 48, upper half of what remains 16.
    more: u64,
    /// Milliseconds until all of it is there again 48, lower half of what remains 16.
    reset: u64,
}

/// 48 bits of milliseconds, rounded up.
#[inline(always)]
fn packed(nanos: u64) -> u64 {
    if nanos == NEVER { HeaderStatus::NEVER } else { nanos.saturating_add(999_999) / 1_000_000 }
}

impl HeaderStatus {
    /// Ends in 8,900 years.
    const NEVER: u64 = (1 << 48) - 1;

    #[inline]
    pub(crate) fn new(status: &LimitStatus) -> HeaderStatus {
        // Never more than 10^9.
        let remaining = status.remaining & 0xffff_ffff;
        HeaderStatus {
            more: packed(status.more) << 16 | remaining >> 16,
            reset: packed(status.reset) << 16 | remaining & 0xffff,
        }
    }
    pub(crate) fn remaining(self) -> u64 {
        (self.more & 0xffff) << 16 | self.reset & 0xffff
    }
    /// Until there is more; none if that is never.
    #[inline]
    pub(crate) fn more_after(self) -> Option<Duration> {
        let more = self.more >> 16;
        (more != HeaderStatus::NEVER).then(|| Duration::from_millis(more))
    }
    /// Until all of it is there again; nothing if that is never.
    #[inline]
    pub(crate) fn reset_after(self) -> Duration {
        let reset = self.reset >> 16;
        Duration::from_millis(if reset == HeaderStatus::NEVER { 0 } else { reset })
    }
}

/// The answer to a hit.
///
/// ```
/// let limiter = tidegate::Limiter::new("1/min").unwrap();
/// assert!(limiter.hit("alice", 1).unwrap().allowed);
/// let denied = limiter.hit("alice", 1).unwrap();
/// assert_eq!(denied.reason(), Some("1/min"));
/// assert!(denied.retry_after.unwrap().as_secs() <= 60);
/// ```
#[derive(Clone)]
#[must_use]
#[repr(C)]
#[non_exhaustive]
pub struct Decision {
    pub(crate) variant: Interned,
    /// Yes or no.
    pub allowed: bool,
    /// The size of the limit with the least left, or of the one that denies; none for exempt and
    /// off.
    pub limit: Option<u64>,
    /// What is left of it, rounded down.
    pub remaining: Option<u64>,
    /// Until the same hit would pass: zero when allowed, none where waiting never helps.
    pub retry_after: Option<Duration>,
    /// Until the key has its full quota again, the longest over its limits.
    pub reset_after: Duration,
    /// An allowed hit left little.
    pub warning: bool,
    /// A denial was the one that reached the rule's alert.
    pub alert: bool,
    /// The sender should be told of this denial.
    pub notify: bool,
    pub(crate) reason: Option<Reason>,
    pub(crate) would: Option<Reason>,
    pub(crate) statuses: [HeaderStatus; MOST_LIMITS],
    /// When it was made, by the limiter's clock.
    pub(crate) at: u64,
}

impl Decision {
    #[inline]
    pub(crate) fn labels(&self) -> &RuleLabels {
        &self.variant.labels
    }

    /// The rule that was hit.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().rule(), "default");
    /// ```
    pub fn rule(&self) -> &str {
        &self.labels().rule
    }

    /// Why it was denied: the denying limit's name, `cooldown`, `backoff`, `budget`, `cost` or
    /// `full`; or why it was not counted: `exempt` or `off`.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().reason(), None);
    /// assert_eq!(limiter.hit("alice", 9).unwrap().reason(), Some("cost"));
    /// ```
    #[inline]
    pub fn reason(&self) -> Option<&str> {
        self.reason.map(|reason| reason.name(self.labels()))
    }

    /// In shadow mode, why it would have been denied.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().would_deny(), None);
    /// ```
    #[inline]
    pub fn would_deny(&self) -> Option<&str> {
        self.would.map(|reason| reason.name(self.labels()))
    }

    /// What the rule hands back with a denial.
    ///
    /// ```
    /// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
    /// rule.attach = Some("upgrade".into());
    /// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
    /// assert_eq!(limiter.hit("alice", 9).unwrap().attach().unwrap(), "upgrade");
    /// ```
    #[inline]
    pub fn attach(&self) -> Option<&Value> {
        if self.allowed { None } else { self.variant.attach.as_deref() }
    }

    /// [`Decision::attach`] as a type of your own.
    ///
    /// ```
    /// let mut rule = tidegate::RuleConfig::new("3/min")?;
    /// rule.attach = Some(serde_json::json!(["/plans", "/prices"]));
    /// let limiter = tidegate::Limiter::builder().rule(rule).build()?;
    /// let denied = limiter.hit("alice", 9)?;
    /// assert_eq!(denied.attach_as::<Vec<&str>>()?.unwrap(), ["/plans", "/prices"]);
    /// assert!(denied.attach_as::<u64>().is_err());
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If what the rule attaches is not of that type.
    pub fn attach_as<'a, T: Deserialize<'a>>(&'a self) -> Result<Option<T>, Error> {
        let attached = self.attach().map(T::deserialize).transpose();
        attached.map_err(|error| one("attach", error.to_string()))
    }
}

impl Decision {
    /// A look at what is left as a no, for one who may not take it: others were first.
    pub(crate) fn out_of_turn(mut self) -> Decision {
        if self.allowed {
            let least = self.variant.least(|index| self.statuses[index].remaining());
            self.allowed = false;
            self.reason = Some(Reason::limit(least));
            self.retry_after = Some(Duration::from_millis(1));
        }
        self
    }
}

impl PartialEq for Decision {
    fn eq(&self, other: &Decision) -> bool {
        let plain = |d: &Decision| {
            (
                d.allowed,
                d.limit,
                d.remaining,
                d.retry_after,
                d.reset_after,
                d.warning,
                d.alert,
                d.notify,
            )
        };
        plain(self) == plain(other)
            && self.rule() == other.rule()
            && self.reason() == other.reason()
            && self.would_deny() == other.would_deny()
            && self.attach() == other.attach()
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("allowed", &self.allowed)
            .field("rule", &self.rule())
            .field("reason", &self.reason())
            .field("limit", &self.limit)
            .field("remaining", &self.remaining)
            .field("retry_after", &self.retry_after)
            .field("reset_after", &self.reset_after)
            .field("warning", &self.warning)
            .field("alert", &self.alert)
            .field("notify", &self.notify)
            .field("would_deny", &self.would_deny())
            .field("attach", &self.attach())
            .finish()
    }
}
