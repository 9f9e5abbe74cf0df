//! The texts that all decisions of a rule share, and how they are dated.

use std::time::Duration;

use tidegate_core::Clock;

use crate::config::policy::HeaderNames;

/// What decisions of a rule have in common.
#[derive(Debug, PartialEq)]
pub(crate) struct RuleLabels {
    pub(crate) rule: String,
    /// Names of the limits.
    pub(crate) limits: Vec<String>,
    pub(crate) headers: HeaderNames,
    pub(crate) dates: Dates,
}

/// How a decision is dated: it knows when it was made by the clock of its rule's tables.
#[derive(Debug)]
pub(crate) enum Dates {
    /// That clock is the host's, or ahead of it by so many nanoseconds.
    Host { ahead: u64 },
    /// It is moved by hand.
    Manual(Clock),
}

impl Dates {
    pub(crate) fn new(clock: &Clock) -> Dates {
        match clock.ahead() {
            Some(ahead) => Dates::Host { ahead },
            None => Dates::Manual(clock.clone()),
        }
    }

    /// The wall time at a moment of that clock, not long ago.
    pub(crate) fn wall(&self, at: u64) -> Duration {
        let (clock, ahead) = match self {
            Dates::Host { ahead } => (&Clock::System, *ahead),
            Dates::Manual(clock) => (clock, 0),
        };
        let age = clock.now().wrapping_add(ahead).saturating_sub(at);
        clock.wall().saturating_sub(Duration::from_nanos(age))
    }
}

/// Clocks that are moved by hand are each their own.
impl PartialEq for Dates {
    fn eq(&self, other: &Dates) -> bool {
        match (self, other) {
            (Dates::Host { ahead: a }, Dates::Host { ahead: b }) => a == b,
            _ => false,
        }
    }
}

impl RuleLabels {
    /// Whether it says the same, by whatever clock.
    pub(crate) fn is_like(&self, other: &RuleLabels) -> bool {
        let RuleLabels { rule, limits, headers, dates: _ } = self;
        (rule, limits, headers) == (&other.rule, &other.limits, &other.headers)
    }

    /// Whether it holds on to nothing that its owner may want to be rid of.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.dates, Dates::Host { .. })
    }

    /// The same, by the clock of the rule's tables.
    pub(crate) fn with_clock(&self, clock: &Clock) -> RuleLabels {
        RuleLabels {
            rule: self.rule.clone(),
            limits: self.limits.clone(),
            headers: self.headers.clone(),
            dates: Dates::new(clock),
        }
    }
}
