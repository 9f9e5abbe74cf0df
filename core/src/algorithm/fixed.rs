//! A count that starts at a key's first hit and is forgotten `per` later.
//!
//! Two words: the *span* (epoch 6 | start 58) and the *count* (epoch 6 | life 10 | units 48). A
//! count belongs to the span of its own epoch and is nothing in any other. So a new span is opened
//! by one swap of the first word, and counted in by one of the second. A process that dies between
//! the two has spent nothing. The count is loaded before the span: an epoch that a count names was
//! opened before.
//!
//! Epochs repeat after 64 spans. The last span that was counted in has left its epoch in the count,
//! so an old count comes back only if 64 spans are opened and nothing is counted in any. The *life*
//! is of the row's key word: a thread that slept until another key has the row finds no count that
//! it knows.
//!
//! The start is an exact stamp, so a span ends `per` after the hit that opened it, to the
//! nanosecond. A limit with another `per` finds the span open for that `per`.

use crate::algorithm::limit::Limit;
use crate::algorithm::{
    AlgorithmCell, AlgorithmFacts, Cell, MakeCell, ReservedCharge, Taken, stamp,
};
use crate::clock::Time;
use crate::status::{LimitStatus, NEVER};
use crate::table::row::{Idle, Moved, Row, is_busy};

pub(crate) const WORDS: usize = 2;
const PAYLOAD: u64 = (1 << stamp::EXACT_BITS) - 1;
const UNIT_BITS: u32 = 48;
const UNITS: u64 = (1 << UNIT_BITS) - 1;

/// The numbers of a fixed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) max: u64,
    pub(crate) per_us: u64,
}

pub(crate) const FACTS: AlgorithmFacts = AlgorithmFacts {
    code: 4,
    has_burst: false,
    has_lease: false,
    is_log: false,
    instead_of_words: None,
    order: 0,
    // A limit of 0 is judged before any word is read; its cell only holds the place.
    cell: MakeCell::Own(|limit| {
        Ok(Cell::Fixed(Fixed { max: limit.max.max(1), per_us: limit.per_micros() }))
    }),
    horizon: Limit::per_nanos,
    most_within: Limit::most_in_periods,
    foreseen: |limit, hit| {
        let is_open = hit.before.reset > 0;
        let reset = if is_open { hit.before.reset } else { limit.per_nanos() };
        (hit.more_or(reset), reset)
    },
};

impl AlgorithmCell for Fixed {
    fn words(&self) -> usize {
        WORDS
    }

    fn inspect_in(
        &self,
        row: &Row<'_>,
        at: usize,
        written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    ) {
        let spent = self.read_after(row, at, written, now);
        let (limit, used, reset) = (self.max, spent.used, self.until_over(&spent, now));
        let wait = match used.saturating_add(cost) {
            _ if cost > limit => NEVER,
            total if total > limit => reset,
            _ => 0,
        };
        let remaining = limit.saturating_sub(used);
        statuses[0] = LimitStatus { limit, used, remaining, wait, more: reset, reset };
    }

    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        Ok(taken.note(self.take(row, at, cost, false, time)?))
    }

    /// Gives `amount` back to the span of the charge that left this count, if that is still
    /// running.
    fn give_back(
        &self,
        row: &Row<'_>,
        at: usize,
        left: u64,
        amount: u64,
        now: u64,
    ) -> Result<(), Moved> {
        let epoch = Tagged(left).epoch();
        loop {
            let spent = self.read(row, at, now);
            row.check()?;
            let back = if spent.span.epoch() == epoch { amount.min(spent.used) } else { 0 };
            let counted = Tagged::counted(row, epoch, spent.used - back);
            if back == 0 || row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(());
            }
        }
    }

    fn give_back_own(
        &self,
        row: &Row<'_>,
        at: usize,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let now = time.now();
        if !charge.is_within(self.per_us * stamp::MICRO, now) {
            return Ok(());
        }
        self.give_back(row, at, charge.written, amount, now)
    }

    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let spent = self.read(row, at, time.now());
        Ok(spent.open && self.repair_span(row, at, spent.span, time))
    }

    fn record_in(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        self.take(row, at, cost, true, time)
    }

    fn refund_to(
        &self,
        row: &Row<'_>,
        at: usize,
        rest: &mut u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        self.refund(row, at, *rest, time.now())
    }

    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        !self.read(row, at, now).open
    }

    fn is_untouched_in(&self, horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        Fixed::untouched_for(row, at, now) >= horizon
    }

    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        _incarnation: u64,
        idle: Idle<'_>,
        _keep_us: u64,
        _now: u64,
    ) -> bool {
        Fixed::reset_words(row, at, idle)
    }
}

/// An epoch and a payload: the start of a span, or its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tagged(u64);

impl Tagged {
    fn new(epoch: u64, payload: u64) -> Tagged {
        Tagged((epoch << stamp::EXACT_BITS) | (payload & PAYLOAD))
    }
    fn epoch(self) -> u64 {
        self.0 >> stamp::EXACT_BITS
    }
    fn payload(self) -> u64 {
        self.0 & PAYLOAD
    }

    /// A span that starts now. One more than the stamp is kept, so that 0 says that there is none.
    /// (The last of all microseconds has no such number, and is taken for the one before.)
    fn opened(epoch: u64, now: u64) -> Tagged {
        let stamp = stamp::exact(now);
        let last = stamp & stamp::MASK == stamp::MASK;
        Tagged::new(epoch, stamp + u64::from(!last))
    }
    fn start(self) -> Option<u64> {
        self.payload().checked_sub(1)
    }

    /// A count in the span of that epoch.
    fn counted(row: &Row<'_>, epoch: u64, units: u64) -> Tagged {
        Tagged::new(epoch, row.seen().sequence() << UNIT_BITS | units.min(UNITS))
    }
    fn units(self) -> u64 {
        self.0 & UNITS
    }
}

/// What a key has spent, and in which span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedReading {
    span: Tagged,
    count: Tagged,
    /// Units in the span; 0 if none is open.
    pub(crate) used: u64,
    open: bool,
}

impl Fixed {
    /// The state at `now`.
    pub(crate) fn read(&self, row: &Row<'_>, at: usize, now: u64) -> FixedReading {
        self.read_after(row, at, None, now)
    }

    /// The same as of the charge that left this count.
    pub(crate) fn read_after(
        &self,
        row: &Row<'_>,
        at: usize,
        left: Option<u64>,
        now: u64,
    ) -> FixedReading {
        let count = Tagged(left.unwrap_or_else(|| row.load(at + 1)));
        let span = Tagged(row.load(at));
        let running = span.start().is_some_and(|s| stamp::age(s, now) < self.per_us as i64);
        let counted = span.epoch() == count.epoch();
        // A span whose units were all given back is over: the key is as new.
        let closing = count.epoch() == Tagged::new(span.epoch() + 1, 0).epoch();
        let open = running && !closing && !(counted && count.units() == 0);
        let used = if open && counted { count.units() } else { 0 };
        FixedReading { span, count, used, open }
    }

    /// Takes `cost` if it fits, or, if `always`, in any case. The count that it left; none if it
    /// did not fit.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        always: bool,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        loop {
            let spent = self.read(row, at, time.now());
            row.check()?;
            if spent.open && self.repair_span(row, at, spent.span, time) {
                continue;
            }
            if !always && spent.used.saturating_add(cost) > self.max {
                return Ok(None);
            }
            if !spent.open {
                let opened = Tagged::opened(spent.span.epoch() + 1, time.now());
                let _ = row.replace(at, spent.span.0, opened.0);
                continue;
            }
            let units = spent.used.saturating_add(cost);
            let counted = Tagged::counted(row, spent.span.epoch(), units);
            if row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(Some(counted.0));
            }
        }
    }

    /// Brings a start that was just loaded and lies in the future back to now, if the clock really
    /// went back. True if there is a newer word, or a newer reading of the clock, to go by.
    fn repair_span(&self, row: &Row<'_>, at: usize, span: Tagged, time: &mut Time<'_>) -> bool {
        let is_ahead = |now| span.start().is_some_and(|start| stamp::is_ahead(start, now));
        if !is_ahead(time.now()) {
            return false;
        }
        time.recheck_clock();
        if is_ahead(time.now()) {
            let repaired = Tagged::opened(span.epoch(), time.now());
            let _ = row.replace(at, span.0, repaired.0);
        }
        true
    }

    /// Gives `cost` back to the span that is open.
    pub(crate) fn refund(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        now: u64,
    ) -> Result<(), Moved> {
        loop {
            let spent = self.read(row, at, now);
            row.check()?;
            let units = spent.used.saturating_sub(cost);
            let counted = Tagged::counted(row, spent.span.epoch(), units);
            if spent.used == 0 || row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(());
            }
        }
    }

    /// Nanoseconds until the span is over: 0 if none is open.
    pub(crate) fn until_over(&self, spent: &FixedReading, now: u64) -> u64 {
        let start = spent.span.start().filter(|_| spent.open);
        start.map_or(0, |start| stamp::until_age(start, self.per_us, now))
    }

    /// Nanoseconds since a span was opened, whatever the numbers: `u64::MAX` if there is none.
    pub(crate) fn untouched_for(row: &Row<'_>, at: usize, now: u64) -> u64 {
        Tagged(row.load(at)).start().map_or(u64::MAX, |start| stamp::nanos_since(start, now))
    }

    /// Closes the span for good.
    pub(crate) fn reset_words(row: &Row<'_>, at: usize, idle: Idle<'_>) -> bool {
        loop {
            let (span, count) = (Tagged(row.load(at)), row.load(at + 1));
            if is_busy(idle) || row.check().is_err() {
                return false;
            }
            // The count first: a charge meanwhile, by a limit that has the span open, is
            // noticed; and no hit charges a count that is ahead of its span.
            let closed = Tagged::new(span.epoch() + 1, 0);
            if row.replace(at + 1, count, closed.0).is_ok()
                && row.replace(at, span.0, closed.0).is_ok()
            {
                return true;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::sync::AtomicU64;
    use crate::table::row::{KeyWord, State};

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 100 * SECOND + 1;

    #[test]
    fn a_charge_gives_back_in_its_own_span_only() {
        let live = KeyWord::new(State::Live, 1, 7);
        let (key, words) = (AtomicU64::new(live.0), [0u64; WORDS].map(AtomicU64::new));
        let row = &Row::new(&key, live, &words);
        let fixed = Fixed { max: 10, per_us: 10_000_000 };
        let take = |cost, now| {
            let (clock, _) = Clock::manual(now);
            fixed.take(row, 0, cost, false, &mut Time::read(&clock)).unwrap().unwrap()
        };
        let used = |now| fixed.read(row, 0, now).used;
        assert_eq!(Fixed::untouched_for(row, 0, START), u64::MAX);
        let left = take(4, START);
        assert_eq!(Fixed::untouched_for(row, 0, START + SECOND), SECOND);
        assert_eq!(Fixed::untouched_for(row, 0, START - SECOND), 0);
        take(3, START + SECOND);
        fixed.give_back(row, 0, left, 3, START + SECOND).unwrap();
        assert_eq!(used(START + SECOND), 4);
        fixed.give_back(row, 0, left, 3, START + 10 * SECOND).unwrap();
        assert_eq!(used(START + 9 * SECOND), 4, "its span is over");
        take(5, START + 10 * SECOND);
        fixed.give_back(row, 0, left, 3, START + 10 * SECOND).unwrap();
        assert_eq!(used(START + 10 * SECOND), 5, "what is there is another's");
        assert!(Fixed::reset_words(row, 0, None));
        assert_eq!(Fixed::untouched_for(row, 0, START), u64::MAX);
    }
}
