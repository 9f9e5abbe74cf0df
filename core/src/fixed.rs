//! A count that starts at a key's first hit and is forgotten `per` later.
//!
//! Two words: the *span* (epoch 16 | start 48) and the *count* (epoch 16 | units 48). A count belongs
//! to the span of its own epoch and is nothing in any other, so a new span is opened by one swap of
//! the first word and counted in by one of the second; who dies between them has spent nothing.
//! The count is loaded before the span: an epoch that a count names was opened before.

use crate::clock::Time;
use crate::row::{Idle, Moved, Row, is_busy};
use crate::stamp;

pub(crate) const WORDS: usize = 2;
const UNITS: u64 = stamp::MASK;

/// The numbers of a fixed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) max: u64,
    pub(crate) per_us: u64,
}

/// An epoch and a payload: the start of a span, or its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tagged(u64);

impl Tagged {
    fn new(epoch: u64, payload: u64) -> Tagged {
        Tagged((epoch << stamp::BITS) | (payload & stamp::MASK))
    }
    fn epoch(self) -> u64 {
        self.0 >> stamp::BITS
    }
    fn payload(self) -> u64 {
        self.0 & stamp::MASK
    }

    /// A span that starts now. One more than the stamp is kept, so that 0 says that there is none.
    fn opened(epoch: u64, now: u64) -> Tagged {
        Tagged::new(epoch, ((stamp::of(now) + 1) & stamp::MASK).max(1))
    }
    fn start(self) -> Option<u64> {
        self.payload().checked_sub(1)
    }
}

/// What a key has spent, and in which span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    span: Tagged,
    count: Tagged,
    /// Units in the span; 0 if none is open.
    pub(crate) used: u64,
    open: bool,
}

impl Fixed {
    /// The state at `now`.
    pub(crate) fn read(&self, row: &Row<'_>, at: usize, now: u64) -> Spent {
        self.read_after(row, at, None, now)
    }

    /// The same as of the charge that left this count.
    pub(crate) fn read_after(
        &self,
        row: &Row<'_>,
        at: usize,
        left: Option<u64>,
        now: u64,
    ) -> Spent {
        let count = Tagged(left.unwrap_or_else(|| row.load(at + 1)));
        let span = Tagged(row.load(at));
        let running = span.start().is_some_and(|s| stamp::age(s, now) < self.per_us as i64);
        let counted = span.epoch() == count.epoch();
        // A span whose units were all given back is over: the key is as new.
        let open = running && !(counted && count.payload() == 0);
        let used = if open && counted { count.payload() } else { 0 };
        Spent { span, count, used, open }
    }

    /// Takes `cost` if it fits, or, if `always`, in any case. The count that it left; none if it did not
    /// fit.
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
            if spent.open && self.mend(row, at, spent.span, time) {
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
            let units = spent.used.saturating_add(cost).min(UNITS);
            let counted = Tagged::new(spent.span.epoch(), units);
            if row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(Some(counted.0));
            }
        }
    }

    /// As in `take`, for a key that is not charged.
    pub(crate) fn mend_open(&self, row: &Row<'_>, at: usize, time: &mut Time<'_>) -> bool {
        let spent = self.read(row, at, time.now());
        spent.open && self.mend(row, at, spent.span, time)
    }

    /// Brings a start that was just loaded and lies in the future back to now, if the clock really
    /// went back. True if there is a newer word, or a newer reading of the clock, to go by.
    fn mend(&self, row: &Row<'_>, at: usize, span: Tagged, time: &mut Time<'_>) -> bool {
        let is_ahead = |now| span.start().is_some_and(|start| stamp::is_ahead(start, now));
        if !is_ahead(time.now()) {
            return false;
        }
        time.doubt();
        if is_ahead(time.now()) {
            let mended = Tagged::opened(span.epoch(), time.now());
            let _ = row.replace(at, span.0, mended.0);
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
            let counted = Tagged::new(spent.span.epoch(), spent.used.saturating_sub(cost));
            if spent.used == 0 || row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(());
            }
        }
    }

    /// Nanoseconds until the span is over: 0 if none is open.
    pub(crate) fn until_over(&self, spent: &Spent, now: u64) -> u64 {
        let start = spent.span.start().filter(|_| spent.open);
        start.map_or(0, |start| stamp::until_age(start, self.per_us, now))
    }

    pub(crate) fn is_idle(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        !self.read(row, at, now).open
    }

    /// Nanoseconds since the span began; 0 if it begins ahead, the most there is if there is none.
    pub(crate) fn age(row: &Row<'_>, at: usize, now: u64) -> u64 {
        let start = Tagged(row.load(at)).start();
        start.map_or(u64::MAX, |start| stamp::age(start, now).max(0) as u64 * stamp::MICRO)
    }

    /// Closes the span for good.
    pub(crate) fn freshen(row: &Row<'_>, at: usize, idle: Idle<'_>) -> bool {
        loop {
            let span = Tagged(row.load(at));
            if is_busy(idle) {
                return false;
            }
            let (count, closed) = (row.load(at + 1), Tagged::new(span.epoch() + 1, 0));
            if row.check().is_err() {
                return false;
            }
            if row.replace(at, span.0, closed.0).is_ok() {
                // So that no later span of that epoch finds an old count.
                let _ = row.replace(at + 1, count, closed.0);
                return true;
            }
        }
    }
}

impl Fixed {
    /// Gives units back that a charge took which left this count, while its span is open.
    pub(crate) fn give_back(
        &self,
        row: &Row<'_>,
        at: usize,
        left: u64,
        amount: u64,
        now: u64,
    ) -> Result<(), Moved> {
        loop {
            let spent = self.read(row, at, now);
            row.check()?;
            let epoch = spent.span.epoch();
            let counted = Tagged::new(epoch, spent.used.saturating_sub(amount));
            // Units are used only in a span that is open and that the count is of.
            let is_mine = spent.used > 0 && Tagged(left).epoch() == epoch;
            if !is_mine || row.replace(at + 1, spent.count.0, counted.0).is_ok() {
                return Ok(());
            }
        }
    }
}
