//! What a key's denials and spending lead to, as notes of 60 bits (see
//! [`Ledger`](tidegate_core::Ledger)).
//!
//! Plain data and arithmetic: which denials count, and what durations mean, is the caller's
//! business.
//!
//! ```text
//! Penalty:  last counted denial 48 (us) | limit 4 | count 7 | told 1
//! Until:    length of the wait   48 (us) | tie 12
//! Alert:    start of the span    48 (us) | count 12
//! Spent:    day 16 | units 44
//! ```
//!
//! Every end is a start and a length. A cooldown starts with the last counted denial and is as long
//! as the limit that gave it says, which is exact because refusals during a cooldown don't count.
//! An enforced wait starts with that denial too; its length is a note of its own, tied to the
//! penalty that it belongs to. A reader who finds one without the other falls back on what the
//! penalty alone says.
//!
//! **A start that is ahead of the clock counts as now** (a clock went back, or a stamp wrapped). It
//! would do so again at each reading, so the caller reads the clock again and, if the start is
//! ahead still, stores the note as [`repaired`](Penalty::repaired). Then the note lasts its own
//! length from there.

/// Bits of a stored time: microseconds modulo 2^48, as in the engine's own words.
const STAMP_BITS: u32 = 48;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
/// Nanoseconds in a microsecond.
const MICRO: u64 = 1000;
const REST_BITS: u32 = 60 - STAMP_BITS;
const REST: u64 = (1 << REST_BITS) - 1;

/// Microseconds since `stamp`, or none where it is ahead of the clock. The last quarter of the
/// range counts as ahead, so that silences of up to 6.7 years are told apart.
fn since(stamp: u64, now: u64) -> Option<u64> {
    let distance = (now / MICRO).wrapping_sub(stamp) & STAMP_MASK;
    (distance < 3 << (STAMP_BITS - 2)).then_some(distance)
}

/// Nanoseconds since a start; one that is ahead of the clock counts as now.
fn age(start: u64, now: u64) -> u64 {
    since(start, now).map_or(0, |micros| micros * MICRO + now % MICRO)
}

/// The moment of a note: rounded down, so that durations come out whole.
fn moment(now: u64) -> u64 {
    (now / MICRO) & STAMP_MASK
}

/// Cooldown, backoff and notices of one key. 0: no denial so far.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Penalty(u64);

impl Penalty {
    const LIMIT: (u32, u64) = (8, 0xf);
    const COUNT: (u32, u64) = (1, 0x7f);
    const TOLD: (u32, u64) = (0, 1);
    /// No limit's cooldown runs.
    const NO_LIMIT: u64 = 0xf;

    /// From a note.
    pub(crate) fn from_note(note: u64) -> Penalty {
        Penalty(note)
    }
    /// As a note.
    pub(crate) fn note(self) -> u64 {
        self.0
    }

    fn get(self, (shift, mask): (u32, u64)) -> u64 {
        (self.0 >> shift) & mask
    }
    fn with(self, (shift, mask): (u32, u64), value: u64) -> Penalty {
        Penalty(self.0 & !(mask << shift) | (value.min(mask) << shift))
    }

    /// Denials in a row; stays at 127.
    pub(crate) fn count(self) -> u64 {
        self.get(Penalty::COUNT)
    }
    /// The limit whose cooldown the last counted denial started.
    pub(crate) fn limit(self) -> Option<usize> {
        let limit = self.get(Penalty::LIMIT);
        (self.count() > 0 && limit != Penalty::NO_LIMIT).then_some(limit as usize)
    }
    /// Whether the sender was told.
    pub(crate) fn is_told(self) -> bool {
        self.get(Penalty::TOLD) == 1
    }

    fn last(self) -> u64 {
        self.0 >> REST_BITS
    }

    /// Nanoseconds since the last denial; `None` if there was none.
    pub(crate) fn since_last(self, now: u64) -> Option<u64> {
        (self.0 != 0).then(|| age(self.last(), now))
    }

    /// Whether the last denial lies ahead of the clock.
    #[inline]
    pub(crate) fn is_ahead(self, now: u64) -> bool {
        self.0 != 0 && since(self.last(), now).is_none()
    }

    /// The same, with a denial that lies ahead of the clock dated as of now.
    #[must_use]
    pub(crate) fn repaired(self, now: u64) -> Penalty {
        if self.is_ahead(now) { self.dated(now) } else { self }
    }

    /// One more denial that counts, as number `count`, by a limit that starts a cooldown if any.
    #[must_use]
    pub(crate) fn denied(self, now: u64, count: u64, limit: Option<usize>) -> Penalty {
        let limit = limit.map_or(Penalty::NO_LIMIT, |l| (l as u64).min(Penalty::NO_LIMIT - 1));
        self.dated(now).with(Penalty::COUNT, count).with(Penalty::LIMIT, limit)
    }

    /// A denial that does not count, of a sender who has no counted one.
    #[must_use]
    pub(crate) fn dated(self, now: u64) -> Penalty {
        Penalty(moment(now) << REST_BITS | self.0 & REST)
    }

    /// The same, with the sender told or not.
    #[must_use]
    pub(crate) fn told(self, told: bool) -> Penalty {
        self.with(Penalty::TOLD, u64::from(told))
    }

    /// The same, with the cooldown that it started over and done with.
    #[must_use]
    pub(crate) fn cooled(self) -> Penalty {
        self.with(Penalty::LIMIT, Penalty::NO_LIMIT)
    }

    /// The same, where the limit whose cooldown runs has another number; `None` if it is there no
    /// more.
    #[must_use]
    pub(crate) fn renumbered(self, number: impl Fn(usize) -> Option<usize>) -> Penalty {
        match self.limit().map(number) {
            None => self,
            Some(None) => self.cooled(),
            Some(Some(limit)) => self.with(Penalty::LIMIT, limit as u64),
        }
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

/// For how long after its last denial the wait that a penalty announced is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    length_us: u64,
    penalty: Penalty,
}

impl Until {
    /// `wait` nanoseconds from the penalty's last denial on; rounded up.
    pub(crate) fn new(penalty: Penalty, wait: u64) -> Until {
        Until { length_us: wait.div_ceil(MICRO).min(STAMP_MASK), penalty }
    }
    /// From a note, if it belongs to this penalty.
    pub(crate) fn from_note(note: u64, penalty: Penalty) -> Option<Until> {
        let length_us = note >> REST_BITS;
        (note & REST == penalty.tie()).then_some(Until { length_us, penalty })
    }
    /// As a note.
    pub(crate) fn note(self) -> u64 {
        self.length_us << REST_BITS | self.penalty.tie()
    }
    /// The note of a table of format 1, which has the end of the wait, as one of this format.
    pub(crate) fn note_of_format1(note: u64, penalty: Penalty) -> u64 {
        let length_us = (note >> REST_BITS).wrapping_sub(penalty.last()) & STAMP_MASK;
        match note & REST == penalty.tie() && length_us < STAMP_MASK / 2 {
            true => Until { length_us, penalty }.note(),
            false => 0,
        }
    }
    /// The same wait, of this penalty.
    #[must_use]
    pub(crate) fn moved_to(self, penalty: Penalty) -> Until {
        Until { penalty, ..self }
    }
    /// Nanoseconds until the end; 0 after it.
    pub(crate) fn left(self, now: u64) -> u64 {
        let age = self.penalty.since_last(now).unwrap_or(0);
        (self.length_us * MICRO).saturating_sub(age)
    }
}

/// How many denials a key had in the span that is open. 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Alert(u64);

impl Alert {
    /// The most that a span counts.
    pub(crate) const MOST: u64 = REST;

    /// From a note.
    pub(crate) fn from_note(note: u64) -> Alert {
        Alert(note)
    }
    /// As a note.
    pub(crate) fn note(self) -> u64 {
        self.0
    }

    fn start(self) -> u64 {
        self.0 >> REST_BITS
    }

    /// Denials in the span of `within` nanoseconds, if it is open.
    pub(crate) fn count(self, now: u64, within: u64) -> u64 {
        let open = age(self.start(), now) < within;
        if open { self.0 & REST } else { 0 }
    }

    /// The same, with a span that starts ahead of the clock begun now.
    #[must_use]
    pub(crate) fn repaired(self, now: u64) -> Alert {
        match since(self.start(), now) {
            None if self.0 != 0 => Alert(moment(now) << REST_BITS | self.0 & REST),
            _ => self,
        }
    }

    /// One more denial, in the open span or as the first of a new one. True when it is the one that
    /// reaches `violations`.
    #[must_use]
    pub(crate) fn denied(self, now: u64, within: u64, violations: u64) -> (Alert, bool) {
        let before = self.count(now, within);
        let start = if before > 0 { self.repaired(now).start() } else { moment(now) };
        let count = (before + 1).min(REST);
        (Alert(start << REST_BITS | count), before < violations && count >= violations)
    }
}

/// What a key has spent in a day. 0: nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Spent(u64);

impl Spent {
    const UNIT_BITS: u32 = 44;
    /// The most units that a day counts.
    pub(crate) const MOST: u64 = (1 << Spent::UNIT_BITS) - 1;

    /// From a note.
    pub(crate) fn from_note(note: u64) -> Spent {
        Spent(note)
    }
    /// As a note.
    pub(crate) fn note(self) -> u64 {
        self.0
    }

    /// How many days after `day` the note is dated, modulo 2^16: the first half of the range is
    /// ahead.
    fn days_after(self, day: u64) -> u64 {
        (self.0 >> Spent::UNIT_BITS).wrapping_sub(day) & 0xffff
    }

    /// Whether it was spent on a later day, as a wall clock had it that went back since. Any day of
    /// the next 89 years is later. Every other one is over, since a wall clock that jumped ahead
    /// can't be told from time that has passed.
    #[inline]
    pub(crate) fn is_ahead(self, day: u64) -> bool {
        self.0 != 0 && (1..0x8000).contains(&self.days_after(day))
    }

    /// Units spent on `day`. Those of a later day count too: a fault of the clock gives nothing
    /// away.
    pub(crate) fn on(self, day: u64) -> u64 {
        if self.days_after(day) < 0x8000 { self.0 & Spent::MOST } else { 0 }
    }

    /// The same, with units of a later day spent on this one, so that a fault of the clock is over
    /// with the day.
    #[must_use]
    pub(crate) fn repaired(self, day: u64) -> Spent {
        if self.is_ahead(day) { self.plus(0, day) } else { self }
    }

    /// With `amount` more on `day`. A later day is brought back to this one.
    #[must_use]
    pub(crate) fn plus(self, amount: u64, day: u64) -> Spent {
        let units = self.on(day).saturating_add(amount).min(Spent::MOST);
        Spent((day & 0xffff) << Spent::UNIT_BITS | units)
    }
}

#[cfg(test)]
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
        let until = Until::new(penalty, 5 * SECOND);
        let read = |penalty| Until::from_note(until.note(), penalty).map(|u| u.left(now + SECOND));
        assert_eq!(read(penalty), Some(4 * SECOND));
        assert_eq!(read(penalty.told(true)), Some(4 * SECOND));
        let cooling = penalty.denied(now, 3, Some(1));
        assert_eq!((read(cooling), read(cooling.cooled())), (Some(4 * SECOND), Some(4 * SECOND)));
        assert_eq!((cooling.limit(), cooling.cooled().limit()), (Some(1), None));
        assert_eq!(read(penalty.denied(now + 1000, 4, None)), None);
        assert_eq!(until.left(now + 5 * SECOND), 0);
        assert_eq!(until.left(now + 5 * SECOND - 1), 1);
        assert_eq!(until.left(now - 4 * SECOND), 5 * SECOND, "a clock that went back");
        assert_eq!(Until::new(penalty, u64::MAX).left(now), STAMP_MASK * MICRO);
    }

    #[test]
    fn the_end_of_a_wait_of_format_1_becomes_a_length() {
        let now = 5 * SECOND;
        let penalty = Penalty::default().denied(now, 3, Some(1));
        let old = |end: u64, tie: u64| (end / MICRO) << REST_BITS | tie;
        let read = |note| Until::from_note(Until::note_of_format1(note, penalty), penalty);
        let until = read(old(now + 7 * SECOND, penalty.tie()));
        assert_eq!(until.map(|until| until.left(now + SECOND)), Some(6 * SECOND));
        assert_eq!(read(old(now + SECOND, penalty.tie() ^ 1)), None, "another penalty's");
        assert_eq!(read(old(now - SECOND, penalty.tie())), None, "before it began");
    }

    #[test]
    fn i9_what_is_ahead_of_the_clock_is_now_and_lasts_its_own_time_once_repaired() {
        let (then, now) = (100_000 * SECOND, 10_000 * SECOND + 7);
        let penalty = Penalty::default().denied(then, 3, Some(2)).told(true);
        let until = Until::new(penalty, 5 * SECOND);
        assert!(
            penalty.is_ahead(now) && !penalty.is_ahead(then) && !Penalty::default().is_ahead(0)
        );
        assert_eq!((penalty.since_last(now), until.left(now)), (Some(0), 5 * SECOND));
        let repaired = penalty.repaired(now);
        assert_eq!(repaired.since_last(now + SECOND), Some(SECOND + 7));
        assert_eq!((repaired.count(), repaired.limit(), repaired.is_told()), (3, Some(2), true));
        assert_eq!(penalty.repaired(then), penalty, "what is not ahead stays");
        let moved = until.moved_to(repaired);
        assert_eq!(Until::from_note(moved.note(), repaired), Some(moved));
        assert_eq!(moved.left(now + SECOND), 4 * SECOND - 7);
        let (alert, _) = Alert::default().denied(then, SECOND, 9);
        assert_eq!((alert.count(now, SECOND), alert.count(now + 9 * SECOND, SECOND)), (1, 1));
        assert_eq!(alert.repaired(now).count(now + SECOND, SECOND), 0);
        assert_eq!(alert.denied(now, SECOND, 2).0.count(now + SECOND, SECOND), 0);
    }

    #[test]
    fn i9_a_silence_of_six_years_is_told_from_a_start_ahead() {
        let year = 365 * 86_400 * SECOND;
        let penalty = Penalty::default().denied(year, 1, None);
        assert_eq!(penalty.since_last(year + 66 * (year / 10)), Some(66 * (year / 10)));
        assert!(penalty.is_ahead(year + 68 * (year / 10)), "and what looks ahead is repaired");
    }

    #[test]
    fn i9_notes_can_be_made_and_read_at_every_moment() {
        let ends = [0, 1, 999, 1000, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for (then, now) in ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b))) {
            for wait in ends {
                let penalty = Penalty::default().denied(then, wait, Some(1));
                let until = Until::new(penalty, wait);
                assert!(until.left(now) <= wait.saturating_add(999));
                assert!(
                    until.moved_to(penalty.repaired(now)).left(now) <= wait.saturating_add(999)
                );
                let (alert, _) = Alert::default().denied(then, wait, 2);
                assert_eq!(alert.denied(now, wait, 2).0.repaired(then).count(then, 0), 0);
                let spent = Spent::default().plus(wait, then);
                assert!(spent.plus(wait, now).on(now) <= Spent::MOST && spent.on(then) <= wait);
                assert!(!spent.repaired(now).is_ahead(now));
            }
        }
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
        assert_eq!(
            (monday.is_ahead(18_999), monday.is_ahead(19_000), monday.is_ahead(19_001)),
            (true, false, false)
        );
        assert_eq!(monday.repaired(18_990), Spent::default().plus(90, 18_990));
        assert_eq!((monday.repaired(19_000), monday.repaired(19_001)), (monday, monday));
        assert_eq!(Spent::default().repaired(40_000), Spent::default());
        assert_eq!(monday.plus(u64::MAX, 19_000).on(19_000), Spent::MOST);
        assert_eq!(Spent::from_note(monday.note()), monday);
    }

    #[test]
    fn a_stamp_is_ahead_in_the_last_quarter_of_the_range() {
        let range = 1 << STAMP_BITS;
        for start in [0, 1, 77, STAMP_MASK] {
            let at = |micros: u64| since(start, start.wrapping_add(micros).wrapping_mul(MICRO));
            assert_eq!(
                (at(0), at(5), at(range / 4 * 3 - 1)),
                (Some(0), Some(5), Some(range / 4 * 3 - 1))
            );
            assert_eq!((at(range / 4 * 3), at(range - 1), at(range)), (None, None, Some(0)));
        }
    }

    #[test]
    fn a_denial_ahead_of_the_clock_is_dated_as_of_now() {
        let ahead = Penalty::default().denied(100 * SECOND, 1, None);
        let repaired = ahead.repaired(5 * SECOND);
        assert!(ahead.is_ahead(5 * SECOND) && !repaired.is_ahead(5 * SECOND));
        assert_eq!(repaired.since_last(6 * SECOND), Some(SECOND));
    }
}
