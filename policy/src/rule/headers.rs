//! Header fields of decisions that a surface kept in a form of its own.

use std::sync::Arc;
use std::time::Duration;

use crate::compiled::labels::RuleLabels;
use crate::decision::headers::{Facts, Style, seconds_up};
use crate::rule::Rule;

impl Facts<'_> {
    /// As [`Decision::headers`](crate::Decision::headers), of a decision of this rule.
    pub fn headers(&self, rule: &Rule, style: Style) -> Vec<(String, String)> {
        self.fields(&rule.state.last().labels, style)
    }
}

/// What the header fields of a rule's decisions have in common, for a surface that writes the
/// fields itself.
///
/// ```
/// use std::time::Duration;
/// use tidegate::bindings::HeaderTexts;
/// use tidegate::{Limiter, Style};
///
/// let limiter = Limiter::new("20/min").unwrap();
/// let decision = limiter.hit("alice", 1).unwrap();
/// let texts = HeaderTexts::of(&limiter.rule("default").unwrap());
/// assert_eq!(texts.names(), ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]);
/// let reset = texts.reset_at(decision.at(), decision.reset_after);
/// assert_eq!(decision.headers(Style::Legacy)[2].1, reset.to_string());
/// ```
#[derive(Clone, Debug)]
pub struct HeaderTexts(Arc<RuleLabels>);

impl HeaderTexts {
    /// Those of this rule.
    pub fn of(rule: &Rule) -> HeaderTexts {
        HeaderTexts(rule.state.last().labels.clone())
    }

    /// Whether they still are those of this rule. A new policy may have others.
    pub fn are_of(&self, rule: &Rule) -> bool {
        Arc::ptr_eq(&self.0, &rule.state.last().labels)
    }

    /// The names of the legacy fields for the limit, what remains of it, and its reset.
    pub fn names(&self) -> [&str; 3] {
        let names = &self.0.headers;
        [&names.limit, &names.remaining, &names.reset]
    }

    /// The second, rounded up, that ends so long after a decision was made. `at` is as
    /// [`Decision::at`](crate::Decision::at) has it.
    pub fn reset_at(&self, at: u64, after: Duration) -> u64 {
        seconds_up(self.0.dates.wall(at).saturating_add(after))
    }
}
