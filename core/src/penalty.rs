//! What a key's denials and spending lead to, as notes of 60 bits (see [`Ledger`](crate::Ledger)).
//!
//! Plain data and arithmetic: which denials count, and what durations mean, is the caller's business.
//!
//! ```text
//! Penalty:  last counted denial 48 (us) | limit 4 | count 7 | told 1
//! Until:    end of the wait      48 (us) | tie 12
//! Alert:    start of the span    48 (us) | count 12
//! Spent:    day 16 | units 44
//! ```
//!
//! The end of a cooldown is not stored: it is the last counted denial plus the cooldown of the limit
//! that gave it, which is exact because refusals during a cooldown don't count. The end of an
//! enforced wait is a note of its own, tied to the penalty that it belongs to: who reads one without
//! the other knows it, and falls back on what the penalty alone says.

use crate::stamp;

const REST_BITS: u32 = 60 - stamp::BITS;
const REST: u64 = (1 << REST_BITS) - 1;

/// Microseconds from `from` to `now`, modulo 2^48; what lies in the future, left by a clock that went
/// back, counts as now.
fn age_us(from: u64, now: u64) -> u64 {
    u64::try_from(stamp::age(from, now)).unwrap_or(0)
}

/// The moment of a note: rounded down, so that durations come out whole.
fn moment(now: u64) -> u64 {
    (now / stamp::MICRO) & stamp::MASK
}

/// Cooldown, backoff and notices of one key. 0: no denial so far.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Penalty(u64);

impl Penalty {
    const LIMIT: (u32, u64) = (8, 0xf);
    const COUNT: (u32, u64) = (1, 0x7f);
    const TOLD: (u32, u64) = (0, 1);
    /// No limit's cooldown runs.
    const NO_LIMIT: u64 = 0xf;

    /// From a note.
    pub fn from_note(note: u64) -> Penalty {
        Penalty(note)
    }
    /// As a note.
    pub fn note(self) -> u64 {
        self.0
    }

    fn get(self, (shift, mask): (u32, u64)) -> u64 {
        (self.0 >> shift) & mask
    }
    fn with(self, (shift, mask): (u32, u64), value: u64) -> Penalty {
        Penalty(self.0 & !(mask << shift) | (value.min(mask) << shift))
    }

    /// Denials in a row; stays at 127.
    pub fn count(self) -> u64 {
        self.get(Penalty::COUNT)
    }
    /// The limit whose cooldown the last counted denial started.
    pub fn limit(self) -> Option<usize> {
        let limit = self.get(Penalty::LIMIT);
        (self.count() > 0 && limit != Penalty::NO_LIMIT).then_some(limit as usize)
    }
    /// Whether the sender was told.
    pub fn is_told(self) -> bool {
        self.get(Penalty::TOLD) == 1
    }

    /// Nanoseconds since the last denial; `None` if there was none.
    pub fn since_last(self, now: u64) -> Option<u64> {
        (self.0 != 0).then(|| age_us(self.0 >> REST_BITS, now) * stamp::MICRO + now % stamp::MICRO)
    }

    /// One more denial that counts, as number `count`, by a limit that starts a cooldown if any.
    #[must_use]
    pub fn denied(self, now: u64, count: u64, limit: Option<usize>) -> Penalty {
        let limit = limit.map_or(Penalty::NO_LIMIT, |l| (l as u64).min(Penalty::NO_LIMIT - 1));
        self.dated(now).with(Penalty::COUNT, count).with(Penalty::LIMIT, limit)
    }

    /// A denial that does not count, of a sender who has no counted one.
    #[must_use]
    pub fn dated(self, now: u64) -> Penalty {
        Penalty(moment(now) << REST_BITS | self.0 & REST)
    }

    /// The same, with the sender told or not.
    #[must_use]
    pub fn told(self, told: bool) -> Penalty {
        self.with(Penalty::TOLD, u64::from(told))
    }

    /// The same, with the cooldown that it started over and done with.
    #[must_use]
    pub fn cooled(self) -> Penalty {
        self.with(Penalty::LIMIT, Penalty::NO_LIMIT)
    }

    /// Ties another note to this penalty: whether the sender was told, and whether its cooldown is
    /// over, makes no difference.
    fn tie(self) -> u64 {
        let all = self.told(false).cooled().0;
        (all ^ all >> 12 ^ all >> 24 ^ all >> 36 ^ all >> 48) & REST
    }
}

impl std::fmt::Debug for Penalty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Penalty")
            .field("last_us", &(self.0 >> REST_BITS))
            .field("limit", &self.limit())
            .field("count", &self.count())
            .field("told", &self.is_told())
            .finish()
    }
}

/// Until when the wait that a penalty announced is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until(u64);

impl Until {
    /// `wait` nanoseconds after the penalty's denial at `now`; rounded up.
    pub fn new(penalty: Penalty, now: u64, wait: u64) -> Until {
        let end = moment(now).wrapping_add(wait.div_ceil(stamp::MICRO)) & stamp::MASK;
        Until(end << REST_BITS | penalty.tie())
    }
    /// From a note, if it belongs to this penalty.
    pub fn from_note(note: u64, penalty: Penalty) -> Option<Until> {
        (note & REST == penalty.tie()).then_some(Until(note))
    }
    /// As a note.
    pub fn note(self) -> u64 {
        self.0
    }
    /// Nanoseconds until the end; 0 after it.
    pub fn left(self, now: u64) -> u64 {
        let left = -stamp::age(self.0 >> REST_BITS, now);
        u64::try_from(left).map_or(0, |us| (us * stamp::MICRO).saturating_sub(now % stamp::MICRO))
    }
}

/// How many denials a key had in the span that is open. 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Alert(u64);

impl Alert {
    /// The most that a span counts.
    pub const MOST: u64 = REST;

    /// From a note.
    pub fn from_note(note: u64) -> Alert {
        Alert(note)
    }
    /// As a note.
    pub fn note(self) -> u64 {
        self.0
    }

    /// Denials in the span of `within` nanoseconds, if it is open.
    pub fn count(self, now: u64, within: u64) -> u64 {
        let open = age_us(self.0 >> REST_BITS, now) < within / stamp::MICRO;
        if open { self.0 & REST } else { 0 }
    }

    /// One more denial, in the open span or as the first of a new one. True when it is the one that
    /// reaches `violations`.
    #[must_use]
    pub fn denied(self, now: u64, within: u64, violations: u64) -> (Alert, bool) {
        let before = self.count(now, within);
        let start = if before > 0 { self.0 >> REST_BITS } else { moment(now) };
        let count = (before + 1).min(REST);
        (Alert(start << REST_BITS | count), before < violations && count >= violations)
    }
}

/// What a key has spent in a day. 0: nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Spent(u64);

impl Spent {
    const UNIT_BITS: u32 = 44;
    /// The most units that a day counts.
    pub const MOST: u64 = (1 << Spent::UNIT_BITS) - 1;

    /// From a note.
    pub fn from_note(note: u64) -> Spent {
        Spent(note)
    }
    /// As a note.
    pub fn note(self) -> u64 {
        self.0
    }

    /// Units spent on `day`. What is noted for a later day, because the wall clock went back, counts
    /// too: a fault of the clock gives nothing away.
    pub fn on(self, day: u64) -> u64 {
        let ahead = (self.0 >> Spent::UNIT_BITS).wrapping_sub(day) & 0xffff;
        if ahead < 0x8000 { self.0 & Spent::MOST } else { 0 }
    }

    /// With `amount` more on `day`. A later day is brought back to this one, so that a fault of the
    /// clock is over with the day.
    #[must_use]
    pub fn plus(self, amount: u64, day: u64) -> Spent {
        let units = self.on(day).saturating_add(amount).min(Spent::MOST);
        Spent((day & 0xffff) << Spent::UNIT_BITS | units)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn fields_neither_overlap_nor_leave_gaps() {
        let fields = [Penalty::LIMIT, Penalty::COUNT, Penalty::TOLD];
        let masks: Vec<u64> = fields.iter().map(|(shift, mask)| mask << shift).collect();
        assert_eq!(masks.iter().fold(0, |a, b| a | b), REST);
        assert_eq!(masks.iter().map(|m| m.count_ones()).sum::<u32>(), REST_BITS);
    }

    #[test]
    fn a_denial_is_counted_and_dated() {
        let now = 7 * SECOND + 123;
        let fresh = Penalty::default();
        assert_eq!((fresh.since_last(now), fresh.limit()), (None, None));
        let once = fresh.denied(now, 1, Some(2)).told(true);
        assert_eq!(once.since_last(now + SECOND), Some(SECOND + 123), "dated to the microsecond");
        assert_eq!(once.since_last(SECOND), Some(0), "a clock that went back");
        assert_eq!((once.limit(), once.count(), once.is_told()), (Some(2), 1, true));
        let many = once.denied(now, 300, None);
        assert_eq!((many.count(), many.limit()), (127, None));
        assert_eq!(Penalty::from_note(many.note()), many);
    }

    #[test]
    fn the_end_of_a_wait_belongs_to_one_penalty() {
        let now = 5 * SECOND;
        let penalty = Penalty::default().denied(now, 3, None);
        let until = Until::new(penalty, now, 5 * SECOND);
        let read = |penalty| Until::from_note(until.note(), penalty).map(|u| u.left(now + SECOND));
        assert_eq!(read(penalty), Some(4 * SECOND));
        assert_eq!(read(penalty.told(true)), Some(4 * SECOND));
        let cooling = penalty.denied(now, 3, Some(1));
        assert_eq!((read(cooling), read(cooling.cooled())), (Some(4 * SECOND), Some(4 * SECOND)));
        assert_eq!((cooling.limit(), cooling.cooled().limit()), (Some(1), None));
        assert_eq!(read(penalty.denied(now + 1000, 4, None)), None);
        assert_eq!(until.left(now + 5 * SECOND), 0);
        assert_eq!(until.left(now + 5 * SECOND - 1), 1);
    }

    #[test]
    fn an_alert_is_raised_once_in_a_span() {
        let within = 300 * SECOND;
        let mut alert = Alert::default();
        let raised: Vec<bool> = (0..25)
            .map(|i| {
                let (next, raised) = alert.denied(SECOND + i * SECOND / 10, within, 10);
                alert = next;
                raised
            })
            .collect();
        assert_eq!(raised.iter().position(|&r| r), Some(9));
        assert_eq!(raised.iter().filter(|&&r| r).count(), 1);
        let end = SECOND + within;
        assert_eq!((alert.count(end - 1000, within), alert.count(end, within)), (25, 0));
        assert_eq!(alert.denied(end, within, 10).0.count(end, within), 1);
    }

    #[test]
    fn a_day_forgets_the_last_one_and_a_clock_fault_forgets_nothing() {
        let monday = Spent::default().plus(70, 19_000).plus(20, 19_000);
        assert_eq!((monday.on(19_000), monday.on(19_001)), (90, 0));
        assert_eq!(monday.on(18_990), 90, "the wall clock went back");
        assert_eq!(monday.plus(1, 18_990).on(18_991), 0, "for a day at most");
        assert_eq!(monday.plus(u64::MAX, 19_000).on(19_000), Spent::MOST);
        assert_eq!(Spent::from_note(monday.note()), monday);
    }
}
