//! What keys spend in a day.

use std::time::Duration;

use tidegate_core::Clock;

const DAY: u64 = 86_400;

/// A day that begins at some hour, UTC.
pub(crate) struct Day {
    pub(crate) number: u64,
    left: Duration,
}

impl Day {
    pub(crate) fn today(clock: &Clock, reset_hour_utc: u8) -> Day {
        Day::at(clock.wall(), reset_hour_utc)
    }

    /// Today, for one who has found a note of a later day: the day may have begun just now.
    #[cold]
    pub(crate) fn today_again(clock: &Clock, reset_hour_utc: u8) -> Day {
        Day::at(clock.wall_after_all(), reset_hour_utc)
    }

    fn at(wall: Duration, reset_hour_utc: u8) -> Day {
        let shift = DAY - u64::from(reset_hour_utc) * 3600;
        let since = wall.saturating_add(Duration::from_secs(shift));
        let into = Duration::new(since.as_secs() % DAY, since.subsec_nanos());
        Day { number: since.as_secs() / DAY, left: Duration::from_secs(DAY) - into }
    }

    pub(crate) fn left_nanos(&self) -> u64 {
        self.left.as_nanos() as u64
    }
}

/// How a key stands with its budget.
///
/// ```
/// use tidegate::{BudgetConfig, Limiter, Policy, RuleConfig};
///
/// let mut rule = RuleConfig::new("100/min").unwrap();
/// rule.budget = Some(BudgetConfig { daily: 500, per_hit: Some(100), reset_hour_utc: 0, unit: None });
/// let limiter = Limiter::from_config(Policy::new([("default", rule)])).unwrap();
/// let spent = limiter.spend("alice", 499).unwrap();
/// assert_eq!((spent.remaining, spent.over, spent.over_per_hit), (1, false, true));
/// assert!(limiter.spend("alice", 1).unwrap().over);
/// assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("budget"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            reset_after: crate::decision::whole_millis(day.left_nanos()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_its_hour() {
        let (clock, hand) = Clock::manual(0);
        let at = |wall: u64| {
            hand.set_wall(Duration::from_secs(wall));
            (Day::today(&clock, 6).number, Day::today(&clock, 6).left_nanos() / 1_000_000_000)
        };
        assert_eq!(at(0), (0, 6 * 3600));
        assert_eq!(at(6 * 3600 - 1), (0, 1));
        assert_eq!(at(6 * 3600), (1, DAY));
        assert_eq!(Day::today(&clock, 0).number, 1);
    }
}
