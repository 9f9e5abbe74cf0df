//! A decision as HTTP header fields.

use std::time::Duration;

use serde_json::{Value, json};

use crate::compiled::labels::RuleLabels;
use crate::compiled::variant::Variant;
use crate::decision::{Decision, HeaderStatus, Reason};
use crate::time::ms;

/// The draft that the `ietf` fields follow; it still moves.
///
/// ```
/// assert!(tidegate::IETF_DRAFT.starts_with("draft-ietf-httpapi-ratelimit-headers"));
/// ```
pub const IETF_DRAFT: &str = "draft-ietf-httpapi-ratelimit-headers-10";

/// Which header fields.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let headers = limiter.hit("alice", 1).unwrap().headers(tidegate::Style::Legacy);
/// assert_eq!(headers[0], ("X-RateLimit-Limit".to_string(), "3".to_string()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, under the names that the policy gives them.
    Legacy,
    /// `RateLimit-Policy` and `RateLimit`, as structured fields of [`IETF_DRAFT`].
    Ietf,
    /// All of them.
    #[default]
    Both,
}

pub(crate) fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// A string of a structured field. Names are printable ASCII, checked when the rule is made.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// How a decision left one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitLeft<'a> {
    /// The limit's name.
    pub name: &'a str,
    /// A bucket's size, else its `max`.
    pub max: u64,
    /// Its period in whole seconds, rounded up; 0 for a concurrent limit.
    pub window_seconds: u64,
    /// What is left of it.
    pub remaining: u64,
    /// Until all of it is there again.
    pub reset_after: Duration,
    /// Until there is more; none if there never is.
    pub more_after: Option<Duration>,
}

impl<'a> LimitLeft<'a> {
    /// Of a limit that holds nothing, for surfaces that fill in the rest.
    #[doc(hidden)]
    pub fn named(name: &'a str) -> LimitLeft<'a> {
        LimitLeft { name, ..LimitLeft::default() }
    }

    /// As a map, for surfaces that speak JSON; times in milliseconds.
    pub(crate) fn to_value(self) -> Value {
        json!({
            "name": self.name,
            "max": self.max,
            "remaining": self.remaining,
            "reset_after_ms": ms(self.reset_after),
            "more_after_ms": self.more_after.map(ms),
        })
    }
}

/// What header fields are made of: a decision as a surface keeps it that can't hold on to a
/// [`Decision`].
///
/// ```
/// use tidegate::{Limiter, Style};
/// use tidegate::bindings::Facts;
///
/// let limiter = Limiter::new("20/min").unwrap();
/// let decision = limiter.hit("alice", 1).unwrap();
/// let limits: Vec<_> = decision.limits().collect();
/// let facts = Facts::new(&decision, &limits);
/// let rule = limiter.rule("default").unwrap();
/// assert_eq!(facts.headers(&rule, Style::Ietf), decision.headers(Style::Ietf));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Yes or no.
    pub allowed: bool,
    /// As [`Decision::reason`].
    pub reason: Option<&'a str>,
    /// As [`Decision::limit`].
    pub limit: Option<u64>,
    /// As [`Decision::remaining`].
    pub remaining: Option<u64>,
    /// As [`Decision::retry_after`].
    pub retry_after: Option<Duration>,
    /// As [`Decision::reset_after`].
    pub reset_after: Duration,
    /// As [`Decision::at`].
    pub at: u64,
    /// As [`Decision::limits`].
    pub limits: &'a [LimitLeft<'a>],
}

impl Decision {
    /// When it was made: nanoseconds of the limiter's clock.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let (first, second) = (limiter.hit("a", 1).unwrap(), limiter.hit("a", 1).unwrap());
    /// assert!(first.at() <= second.at());
    /// ```
    pub fn at(&self) -> u64 {
        self.at
    }

    /// How it left each limit, in declared order; none for exempt and off. Times are whole
    /// milliseconds, each rounded up once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limiter, ManualClock};
    /// let clock = ManualClock::new(Duration::ZERO, Duration::ZERO).clock();
    /// let limiter = Limiter::builder().clock(clock).limits("4/min").build().unwrap();
    /// let decision = limiter.hit("alice", 2).unwrap();
    /// let left = decision.limits().next().unwrap();
    /// assert_eq!((left.name, left.max, left.remaining), ("4/min", 4, 2));
    /// assert_eq!((left.reset_after.as_secs(), left.more_after.unwrap().as_secs()), (30, 15));
    /// ```
    #[inline]
    pub fn limits(&self) -> impl Iterator<Item = LimitLeft<'_>> {
        self.variant.limits(reported(self.reason, &self.statuses))
    }

    /// The decision as header fields, names and values, in the order in which they are best sent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limiter, ManualClock, Style};
    ///
    /// let clock = ManualClock::new(Duration::ZERO, Duration::ZERO).clock();
    /// let limiter = Limiter::builder().clock(clock).limits("20/min").build().unwrap();
    /// let headers = limiter.hit("alice", 1).unwrap().headers(Style::Ietf);
    /// let policy = r#""20/min";q=20;w=60"#;
    /// assert_eq!(headers[0], ("RateLimit-Policy".to_string(), policy.to_string()));
    /// assert_eq!(headers[1], ("RateLimit".to_string(), r#""20/min";r=19;t=3"#.to_string()));
    /// ```
    pub fn headers(&self, style: Style) -> Vec<(String, String)> {
        let limits: Vec<LimitLeft<'_>> = self.limits().collect();
        Facts::new(self, &limits).fields(self.labels(), style)
    }
}

/// What is reported of the limits: nothing where none was asked.
#[inline]
pub(crate) fn reported(reason: Option<Reason>, statuses: &[HeaderStatus]) -> &[HeaderStatus] {
    match reason {
        Some(Reason::Exempt | Reason::Off) => &[],
        _ => statuses,
    }
}

impl Variant {
    /// How each limit was left.
    #[inline]
    pub(crate) fn limits<'a>(
        &'a self,
        statuses: &'a [HeaderStatus],
    ) -> impl Iterator<Item = LimitLeft<'a>> + use<'a> {
        let limits = self.labels.limits.iter().zip(&self.params).zip(statuses);
        limits.map(|((name, params), status)| LimitLeft {
            name,
            max: params.size,
            window_seconds: params.window_seconds,
            remaining: status.remaining(),
            reset_after: status.reset_after(),
            more_after: status.more_after(),
        })
    }
}

impl<'a> Facts<'a> {
    /// Of a decision, and its [limits](Decision::limits).
    pub fn new(decision: &'a Decision, limits: &'a [LimitLeft<'a>]) -> Facts<'a> {
        Facts {
            allowed: decision.allowed,
            reason: decision.reason(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after: decision.retry_after,
            reset_after: decision.reset_after,
            at: decision.at,
            limits,
        }
    }

    pub(crate) fn fields(&self, labels: &RuleLabels, style: Style) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        // No limit has such a name: they are refused when a rule is made.
        if matches!(self.reason, Some("exempt" | "off")) {
            return headers;
        }
        if style != Style::Ietf {
            self.legacy(labels, &mut headers);
        }
        if style != Style::Legacy {
            headers.push(("RateLimit-Policy".to_string(), self.policy_items()));
            headers.push(("RateLimit".to_string(), self.limit_items()));
        }
        if let Some(wait) = self.retry_after.filter(|_| !self.allowed) {
            headers.push(("Retry-After".to_string(), seconds_up(wait).max(1).to_string()));
        }
        headers
    }

    fn legacy(&self, labels: &RuleLabels, headers: &mut Vec<(String, String)>) {
        let names = &labels.headers;
        if let Some(limit) = self.limit {
            headers.push((names.limit.clone(), limit.to_string()));
        }
        if let Some(remaining) = self.remaining {
            headers.push((names.remaining.clone(), remaining.to_string()));
        }
        let after = if self.allowed { Some(self.reset_after) } else { self.retry_after };
        if let Some(after) = after {
            let at = self.wall(labels).saturating_add(after);
            headers.push((names.reset.clone(), seconds_up(at).to_string()));
        }
    }

    /// The wall time at which the decision was made.
    fn wall(&self, labels: &RuleLabels) -> Duration {
        labels.dates.wall(self.at)
    }

    fn policy_items(&self) -> String {
        let item = |limit: &LimitLeft<'_>| match limit.window_seconds {
            0 => format!("{};q={};qu=\"concurrent-requests\"", quoted(limit.name), limit.max),
            window => format!("{};q={};w={window}", quoted(limit.name), limit.max),
        };
        self.limits.iter().map(item).collect::<Vec<_>>().join(", ")
    }

    fn limit_items(&self) -> String {
        // A key that must wait for something else has nothing, whatever its limits say.
        let waits = matches!(self.reason, Some("blocked" | "cooldown" | "backoff" | "budget"));
        let item = |limit: &LimitLeft<'_>| {
            let (remaining, after) = match waits {
                true => (0, self.retry_after),
                false => (limit.remaining, limit.more_after),
            };
            match after {
                Some(after) => {
                    format!("{};r={remaining};t={}", quoted(limit.name), seconds_up(after))
                }
                None => format!("{};r={remaining}", quoted(limit.name)),
            }
        };
        self.limits.iter().map(item).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_that_need_it_are_escaped() {
        assert_eq!(super::quoted(r#"a "b" \c"#), r#""a \"b\" \\c""#);
    }
}
