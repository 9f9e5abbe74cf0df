//! One limit as users state it, and what follows from its numbers.

use std::time::Duration;

use super::{Algorithm, Foreseen, MOST};
use crate::status::LimitStatus;

/// The largest `max` of an exact window and of a concurrent limit.
pub const MOST_EXACT: u64 = 4_096;
/// The shortest `per`.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// The longest `per`.
pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// The field that can't be had, and why.
pub(crate) type Invalid = (&'static str, String);

/// How much one key may spend over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How it counts.
    pub algorithm: Algorithm,
    /// How much in each `per`; 0 means never.
    pub max: u64,
    /// The period, or a concurrent limit's lease.
    pub per: Duration,
    /// A bucket's size, if it is not `max`.
    pub burst: Option<u64>,
    /// The largest `max` that a window's log must have room for, if it is more than `max`.
    pub ceiling: Option<u64>,
}

impl Limit {
    fn new(algorithm: Algorithm, max: u64, per: Duration) -> Limit {
        Limit { algorithm, max, per, burst: None, ceiling: None }
    }

    /// A token bucket that refills `max` tokens each `per` and holds as many.
    pub fn bucket(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Bucket, max, per)
    }
    /// An exact sliding window.
    pub fn window(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Window, max, per)
    }
    /// A two-cell sliding counter.
    pub fn counter(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Counter, max, per)
    }
    /// A count that is forgotten `per` after its first hit.
    pub fn fixed(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Fixed, max, per)
    }
    /// At most `max` permits at once, each for `lease` unless renewed.
    pub fn concurrent(max: u64, lease: Duration) -> Limit {
        Limit::new(Algorithm::Concurrent, max, lease)
    }
    /// The same limit with a bucket of this size.
    pub fn burst(self, burst: u64) -> Limit {
        Limit { burst: Some(burst), ..self }
    }
    /// The same limit with room for a `max` of up to `ceiling`.
    pub fn ceiling(self, ceiling: u64) -> Limit {
        Limit { ceiling: Some(ceiling), ..self }
    }

    /// A bucket's size, else `max`; 0 for a limit that never allows.
    pub fn size(&self) -> u64 {
        match self.burst {
            Some(burst) if self.algorithm.facts().has_burst && self.max > 0 => burst,
            _ => self.max,
        }
    }

    /// The most that one hit could ever take. A permit holds one slot whatever the cost.
    pub(crate) fn most_cost(&self) -> u64 {
        if self.algorithm.has_lease() && self.max > 0 { MOST } else { self.size() }
    }

    /// Nanoseconds after which the limit has forgotten a charge.
    pub fn horizon(&self) -> u64 {
        (self.algorithm.facts().horizon)(self)
    }

    /// The most that it grants within a span of that length; `None` if it bounds no rate.
    pub fn most_within(&self, span: Duration) -> Option<u128> {
        (self.algorithm.facts().most_within)(self, span.as_nanos())
    }

    /// As `most_within`, for algorithms that grant `max` anew in each period at most.
    pub(crate) fn most_in_periods(&self, span: u128) -> Option<u128> {
        Some(u128::from(self.max) * span.div_ceil(self.per.as_nanos().max(1)))
    }

    /// Words that the units of `max` take in a row, for algorithms that have a ceiling.
    pub(crate) fn slots(&self) -> usize {
        self.max.max(self.ceiling.unwrap_or(0)).max(1) as usize
    }

    pub(crate) fn per_nanos(&self) -> u64 {
        self.per.as_nanos() as u64
    }

    pub(crate) fn per_micros(&self) -> u64 {
        self.per.as_micros() as u64
    }

    /// Whether the limit can be had.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let facts = self.algorithm.facts();
        let field = self.algorithm.period_field();
        if self.max > MOST {
            return Err(("max", format!("{} is above {MOST}, the largest max", self.max)));
        }
        if let Some(instead) = facts.instead_of_words
            && self.max.max(self.ceiling.unwrap_or(0)) > MOST_EXACT
        {
            let field = if self.max > MOST_EXACT { "max" } else { "ceiling" };
            return Err((field, format!("an exact log keeps at most {MOST_EXACT}; {instead}")));
        }
        if self.per < SHORTEST || self.per > LONGEST {
            return Err((field, format!("{:?} is not within 1 ms and 366 days", self.per)));
        }
        if !self.per.subsec_nanos().is_multiple_of(1000) {
            return Err((field, format!("{:?} is not a whole number of microseconds", self.per)));
        }
        let has_ceiling = self.algorithm.has_ceiling();
        if self.ceiling.is_some_and(|ceiling| !has_ceiling || ceiling < self.max) {
            let reason = "only a window or a concurrent limit has one, and not below its max";
            return Err(("ceiling", reason.to_string()));
        }
        match self.burst {
            Some(_) if !facts.has_burst => Err(("burst", "only a bucket has a burst".to_string())),
            Some(burst) if burst > MOST || (burst == 0 && self.max > 0) => {
                Err(("burst", format!("{burst} is not within 1 and {MOST}")))
            }
            _ => Ok(()),
        }
    }
}

impl LimitStatus {
    /// What a limit would say after a hit of `cost` that it allows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::{Clock, Engine, Limit, Limits, Options};
    ///
    /// let limit = Limit::bucket(20, Duration::from_secs(60));
    /// let (clock, _) = Clock::manual(0);
    /// let options = Options { clock, ..Options::default() };
    /// let engine = Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap();
    /// let foreseen = engine.peek(b"alice", 2).statuses[0].after(&limit, 2, 0);
    /// assert_eq!(foreseen, engine.hit(b"alice", 2).statuses[0]);
    /// ```
    #[must_use]
    pub fn after(self, limit: &Limit, cost: u64, now: u64) -> LimitStatus {
        if cost == 0 || limit.max == 0 {
            return self;
        }
        let taken = if limit.algorithm.has_lease() { 1 } else { cost };
        let used = self.used.saturating_add(taken);
        let hit = Foreseen { before: self, cost, used, now };
        let (more, reset) = (limit.algorithm.facts().foreseen)(limit, &hit);
        let remaining = self.remaining.saturating_sub(taken);
        LimitStatus { used, remaining, wait: 0, more, reset: self.reset.max(reset), ..self }
    }
}
