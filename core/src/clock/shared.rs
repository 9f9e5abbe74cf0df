//! The clock of a file: time that all processes of a host agree on, after a restart too.
//!
//! Two words of the file's header hold it, [`ClockWord`] and [`Seen`]. The module
//! `storage::table_file` says how they are moved on after a boot.

use super::{host_lead, kernel_now, system_now};
use crate::memory::MappedWord;
use crate::sync::Ordering;

/// Time that all processes of a host agree on.
#[derive(Clone, Debug)]
pub struct SharedClock {
    offset: MappedWord,
    seen: MappedWord,
    /// What the host's time is ahead of this process's.
    lead: u64,
}

impl SharedClock {
    pub(crate) fn new(offset: MappedWord, seen: MappedWord) -> SharedClock {
        SharedClock { offset, seen, lead: host_lead() }
    }

    /// What it is ahead of this process's own time.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        // ORDERING: Relaxed; the word stands for itself.
        self.lead + ClockWord(self.offset.load(Ordering::Relaxed)).offset_nanos()
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let now = system_now() + self.ahead();
        if !self.has_noted(now) {
            self.note(now);
        }
        now
    }

    /// A moment of this process's own time that has passed, as this clock has it; none if the time
    /// is to be read, since it is to be noted again.
    #[inline]
    pub(crate) fn coarse_now(&self, passed: u64) -> Option<u64> {
        let passed = passed + self.ahead();
        self.has_noted(passed).then_some(passed)
    }

    #[inline]
    fn has_noted(&self, now: u64) -> bool {
        // ORDERING: Relaxed; the word stands for itself.
        self.seen.load(Ordering::Relaxed) >> Seen::CHECK_BITS >= now >> Seen::SHIFT
    }

    #[cold]
    pub(crate) fn now_after_all(&self) -> u64 {
        kernel_now().max(system_now()) + self.ahead()
    }

    #[cold]
    fn note(&self, now: u64) {
        // ORDERING: Relaxed; the word stands for itself. The time is in its high bits, so that a
        // thread that comes late does not bring it back.
        self.seen.fetch_max(Seen::of(now).0, Ordering::Relaxed);
    }
}

fn check_of(value: u64, bits: u32) -> u64 {
    let hash = rapidhash::v3::rapidhash_v3(&value.to_le_bytes());
    hash & ((1 << bits) - 1)
}

/// How far this host's clock is behind the file's, and for which boot that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockWord(pub(crate) u64);

impl ClockWord {
    const MILLI: u64 = 1_000_000;

    pub(crate) fn new(offset_nanos: u64, boot: u128) -> ClockWord {
        // A wall clock that is off by more than that many years must not bring time back.
        let offset = offset_nanos.div_ceil(ClockWord::MILLI).min((1 << 40) - 1);
        let value = offset << 16 | (boot & 0xffff) as u64;
        ClockWord(value << 8 | check_of(value, 8))
    }
    pub(crate) fn is_sound(self) -> bool {
        self.0 & 0xff == check_of(self.0 >> 8, 8)
    }
    /// Whether it may have been stored in this boot.
    pub(crate) fn may_be_of(self, boot: u128) -> bool {
        u128::from(self.0 >> 8 & 0xffff) == boot & 0xffff
    }
    #[inline]
    pub(crate) fn offset_nanos(self) -> u64 {
        (self.0 >> 24) * ClockWord::MILLI
    }
}

/// The latest time that was seen, in units of 2^30 ns.
pub(crate) struct Seen(pub(crate) u64);

impl Seen {
    pub(crate) const SHIFT: u32 = 30;
    const CHECK_BITS: u32 = 30;

    pub(crate) fn of(now: u64) -> Seen {
        let value = now >> Seen::SHIFT;
        Seen(value << Seen::CHECK_BITS | check_of(value, Seen::CHECK_BITS))
    }
    /// A moment that no reading was after, in nanoseconds; 0 if the word is damaged.
    pub(crate) fn latest(&self) -> u64 {
        if self.is_sound() { self.earliest() | ((1 << Seen::SHIFT) - 1) } else { 0 }
    }
    /// A moment that some reading was after, in nanoseconds; 0 if the word is damaged.
    pub(crate) fn earliest(&self) -> u64 {
        if self.is_sound() { self.0 >> Seen::CHECK_BITS << Seen::SHIFT } else { 0 }
    }
    pub(crate) fn is_sound(&self) -> bool {
        let check = check_of(self.0 >> Seen::CHECK_BITS, Seen::CHECK_BITS);
        self.0 & ((1 << Seen::CHECK_BITS) - 1) == check
    }
}
