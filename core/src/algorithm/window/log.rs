//! The cell of all windows of a row: one log.

use super::{Entry, HEADER_WORDS, MOST_WEIGHT, Ring, Status, Window, longest};
use crate::algorithm::limit::Limit;
use crate::algorithm::{
    AlgorithmCell, AlgorithmFacts, Cell, MakeCell, ReservedCharge, Taken, stamp,
};
use crate::clock::Time;
use crate::status::LimitStatus;
use crate::table::row::{Idle, Moved, Row};

pub(crate) const FACTS: AlgorithmFacts = AlgorithmFacts {
    code: 2,
    has_burst: false,
    has_lease: false,
    is_log: true,
    instead_of_words: Some("use algorithm counter or bucket for more"),
    order: 2,
    cell: MakeCell::Shared(|limits| Cell::Windows(WindowLog::of(limits))),
    horizon: Limit::per_nanos,
    most_within: Limit::most_in_periods,
    foreseen: |limit, hit| (hit.more_or(limit.per_nanos()), limit.per_nanos()),
};

/// The windows of a row, the shortest first, and the slots of their log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowLog {
    pub(crate) slots: usize,
    pub(crate) windows: Box<[Window]>,
}

/// What a window says. An entry's stamp is rounded up to the microsecond. Only the wait of a
/// refusal has to count with that: a fresh hit of `1/min` says 60 s.
pub(crate) fn status(window: &Window, status: Status) -> LimitStatus {
    let Status { used, wait, more, reset } = status;
    let per = window.per_us * stamp::MICRO;
    let (more, reset) = (more.min(per), reset.min(per));
    let remaining = window.max.saturating_sub(used);
    LimitStatus { limit: window.max, used, remaining, wait, more, reset }
}

impl WindowLog {
    /// The log of those of the limits that are windows.
    fn of(limits: &[Limit]) -> WindowLog {
        let windows = || limits.iter().enumerate().filter(|(_, limit)| limit.algorithm.is_log());
        let slots = windows().map(|(_, limit)| limit.slots()).max().unwrap_or(1);
        let window = |(index, limit): (usize, &Limit)| Window {
            max: limit.max,
            per_us: limit.per_micros(),
            index,
        };
        let mut windows: Box<[Window]> = windows().map(window).collect();
        windows.sort_by_key(|window| window.per_us);
        WindowLog { slots, windows }
    }

    pub(crate) fn ring<'r>(&self, row: &'r Row<'r>, at: usize) -> Ring<'r> {
        Ring::new(row, at, self.slots)
    }

    /// Whether limit `index` is one of the windows.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.windows.iter().any(|window| window.index == index)
    }
}

impl AlgorithmCell for WindowLog {
    fn words(&self) -> usize {
        HEADER_WORDS + self.slots
    }

    fn most_recorded(&self) -> u64 {
        MOST_WEIGHT
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
        let ring = self.ring(row, at);
        let report = |window: &Window, said| statuses[window.index] = status(window, said);
        match written {
            Some(entry) => ring.inspect_by(entry, &self.windows, cost, now, report),
            None => ring.inspect(&self.windows, cost, now, report),
        }
    }

    fn fits_in(&self, row: &Row<'_>, at: usize, cost: u64, now: u64) -> bool {
        self.ring(row, at).fits(&self.windows, cost, now)
    }

    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        taken.entry = self.ring(row, at).take(&self.windows, cost, keep_us, time)?;
        Ok(taken.note(taken.entry.map(|entry| entry.position)))
    }

    fn undo(
        &self,
        row: &Row<'_>,
        at: usize,
        taken: &Taken,
        _written: Option<u64>,
        _cost: u64,
        _time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        taken.entry.into_iter().for_each(|entry| self.ring(row, at).undo(entry));
        Ok(())
    }

    fn give_back_own(
        &self,
        row: &Row<'_>,
        at: usize,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let Some(entry) = charge.entry else { return Ok(()) };
        let keep_us = longest(&self.windows);
        self.ring(row, at).give_back(entry, amount, keep_us, time.now()).map(drop)
    }

    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        self.ring(row, at).repair_clock_skew(time)
    }

    fn record_in(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        let entry: Option<Entry> = self.ring(row, at).record(cost, keep_us, time)?;
        Ok(entry.map(|entry| entry.position))
    }

    fn refund_to(
        &self,
        row: &Row<'_>,
        at: usize,
        rest: &mut u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        // By the caller's own windows: older units are not missing in them.
        self.ring(row, at).refund(longest(&self.windows), rest, time.now())
    }

    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        self.ring(row, at).is_idle(longest(&self.windows), now)
    }

    fn is_untouched_in(&self, horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        self.ring(row, at).untouched_for(now) >= horizon
    }

    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        _incarnation: u64,
        idle: Idle<'_>,
        keep_us: u64,
        now: u64,
    ) -> bool {
        self.ring(row, at).reset_words(keep_us, now, idle)
    }
}
