//! What a key's denials lead to, in one word for cooldown, backoff and notices and one for alerts.
//!
//! Plain data and arithmetic: which denials count, and what durations mean, is the caller's business.
//!
//! ```text
//! Penalty:  last counted denial 40 (ms) | limit 4 | count 8 | notified 1 | enforced 1 | incarnation 10
//! Alert:    start of the span    40 (ms) | count 16 | incarnation 8
//! ```
//!
//! The end of a cooldown is not stored: it is the last counted denial plus the cooldown of the limit
//! that gave it, which is exact because refusals during a cooldown don't count.

const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// Cooldown, backoff and notices of one key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Penalty(u64);

impl Penalty {
    const LIMIT: (u32, u64) = (20, 0xf);
    const COUNT: (u32, u64) = (12, 0xff);
    const NOTIFIED: (u32, u64) = (11, 1);
    const ENFORCED: (u32, u64) = (10, 1);
    const INCARNATION: (u32, u64) = (0, 0x3ff);

    /// No denial so far.
    pub fn fresh(incarnation: u64) -> Penalty {
        Penalty(0).with(Penalty::INCARNATION, incarnation)
    }
    /// From a state word.
    pub fn from_word(word: u64) -> Penalty {
        Penalty(word)
    }
    /// As a state word.
    pub fn word(self) -> u64 {
        self.0
    }

    fn get(self, (shift, mask): (u32, u64)) -> u64 {
        (self.0 >> shift) & mask
    }
    fn with(self, (shift, mask): (u32, u64), value: u64) -> Penalty {
        Penalty(self.0 & !(mask << shift) | (value.min(mask) << shift))
    }

    /// Denials counted since it was last quiet; stays at 255.
    pub fn count(self) -> u64 {
        self.get(Penalty::COUNT)
    }
    /// The limit whose cooldown runs; 15 for none.
    pub fn limit(self) -> Option<usize> {
        let limit = self.get(Penalty::LIMIT) as usize;
        (self.count() > 0 && limit != 15).then_some(limit)
    }
    /// Whether the sender was told.
    pub fn is_notified(self) -> bool {
        self.get(Penalty::NOTIFIED) == 1
    }
    /// Whether the wait that was last announced is enforced.
    pub fn is_enforced(self) -> bool {
        self.get(Penalty::ENFORCED) == 1
    }
    /// Which life of the row this belongs to.
    pub fn incarnation(self) -> u64 {
        self.get(Penalty::INCARNATION)
    }

    /// Milliseconds since the last counted denial; `None` if there was none. A time in the future,
    /// left by a clock that went back, counts as now.
    pub fn since_last(self, now_ms: u64) -> Option<u64> {
        let age = now_ms.wrapping_sub(self.0 >> (64 - TIME_BITS)) & TIME_MASK;
        let age = if age > TIME_MASK / 4 * 3 { 0 } else { age };
        (self.count() > 0).then_some(age)
    }

    /// One more denial at `now_ms`, by the limit that starts a cooldown if any.
    pub fn denied(self, now_ms: u64, limit: Option<usize>, enforced: bool) -> Penalty {
        let limit = limit.map_or(15, |l| l.min(14) as u64);
        let counted = self
            .with(Penalty::COUNT, self.count() + 1)
            .with(Penalty::LIMIT, limit)
            .with(Penalty::ENFORCED, u64::from(enforced));
        Penalty(
            (now_ms & TIME_MASK) << (64 - TIME_BITS) | counted.0 & ((1 << (64 - TIME_BITS)) - 1),
        )
    }

    /// The same, with the sender told or not.
    pub fn notified(self, told: bool) -> Penalty {
        self.with(Penalty::NOTIFIED, u64::from(told))
    }
}

impl std::fmt::Debug for Penalty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Penalty")
            .field("last_ms", &(self.0 >> (64 - TIME_BITS)))
            .field("limit", &self.limit())
            .field("count", &self.count())
            .field("notified", &self.is_notified())
            .field("enforced", &self.is_enforced())
            .field("incarnation", &self.incarnation())
            .finish()
    }
}

/// How many denials a key had in the span that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert(u64);

impl Alert {
    /// No span is open.
    pub fn fresh(incarnation: u64) -> Alert {
        Alert(incarnation & 0xff)
    }
    /// From a state word.
    pub fn from_word(word: u64) -> Alert {
        Alert(word)
    }
    /// As a state word.
    pub fn word(self) -> u64 {
        self.0
    }
    /// Denials in the span that was last open.
    pub fn count(self) -> u64 {
        (self.0 >> 8) & 0xffff
    }

    /// Whether a span of `within_ms` is open.
    pub fn is_open(self, now_ms: u64, within_ms: u64) -> bool {
        let age = now_ms.wrapping_sub(self.0 >> (64 - TIME_BITS)) & TIME_MASK;
        self.count() > 0 && (age < within_ms || age > TIME_MASK / 4 * 3)
    }

    /// One more denial, in the open span or as the first of a new one. True when it is the one that
    /// reaches `violations`.
    pub fn denied(self, now_ms: u64, within_ms: u64, violations: u64) -> (Alert, bool) {
        let open = self.is_open(now_ms, within_ms);
        let start = if open { self.0 >> (64 - TIME_BITS) } else { now_ms & TIME_MASK };
        let before = if open { self.count() } else { 0 };
        let count = (before + 1).min(0xffff);
        let word = start << (64 - TIME_BITS) | count << 8 | self.0 & 0xff;
        (Alert(word), before < violations && count >= violations)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_neither_overlap_nor_leave_gaps() {
        let fields = [
            Penalty::LIMIT,
            Penalty::COUNT,
            Penalty::NOTIFIED,
            Penalty::ENFORCED,
            Penalty::INCARNATION,
        ];
        let masks: Vec<u64> = fields.iter().map(|(shift, mask)| mask << shift).collect();
        let time = TIME_MASK << (64 - TIME_BITS);
        assert_eq!(masks.iter().fold(time, |a, b| a | b), u64::MAX);
        assert_eq!(masks.iter().map(|m| m.count_ones()).sum::<u32>() + TIME_BITS, 64);
    }

    #[test]
    fn a_denial_is_counted_and_dated() {
        let fresh = Penalty::fresh(77);
        assert_eq!((fresh.since_last(5), fresh.limit()), (None, None));
        let once = fresh.denied(1_000, Some(2), true).notified(true);
        assert_eq!(once.since_last(1_500), Some(500));
        assert_eq!(once.since_last(900), Some(0), "a clock that went back");
        assert_eq!((once.limit(), once.count(), once.incarnation()), (Some(2), 1, 77));
        assert!(once.is_notified() && once.is_enforced());
        let many = (0..300).fold(once, |p, i| p.denied(2_000 + i, None, false));
        assert_eq!((many.count(), many.limit()), (255, None));
        assert!(many.is_notified() && !many.is_enforced());
        assert_eq!(Penalty::from_word(many.word()), many);
    }

    #[test]
    fn an_alert_is_raised_once_in_a_span() {
        let mut alert = Alert::fresh(3);
        let mut raised = vec![];
        for i in 0..25 {
            let (next, now) = alert.denied(1_000 + i * 100, 300_000, 10);
            alert = next;
            raised.push(now);
        }
        assert_eq!(raised.iter().position(|&r| r), Some(9));
        assert_eq!(raised.iter().filter(|&&r| r).count(), 1);
        assert!(alert.is_open(300_999, 300_000) && !alert.is_open(301_000, 300_000));
        let (later, _) = alert.denied(301_000, 300_000, 10);
        assert_eq!(later.count(), 1);
        assert_eq!(Alert::from_word(later.word()), later);
    }
}
