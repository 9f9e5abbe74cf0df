//! Conversions between units of time, and days that begin at some hour.

use std::time::Duration;

use tidegate_core::{Clock, NEVER};

/// Nanoseconds, at most what fits.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A time as surfaces that speak JSON have it.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whole milliseconds, rounded up; none for a time that never ends.
#[inline]
pub(crate) fn millis(nanos: u64) -> Option<u64> {
    (nanos != NEVER).then(|| nanos.div_ceil(1_000_000))
}

/// As [`millis`], as a duration.
#[inline]
pub(crate) fn whole_millis(nanos: u64) -> Option<Duration> {
    millis(nanos).map(Duration::from_millis)
}

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
