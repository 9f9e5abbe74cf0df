//! Several limits in one row: looked at together, taken all or nothing.
//!
//! First all limits are looked at, so that a denial writes nothing. Then they are taken one by one
//! in the order of [`Limits`]; if a later one refuses after all, because another thread was
//! quicker, what was taken is given back. Between the two a concurrent hit may be refused that
//! would have passed, but none is let through that should not. A process that dies in between has
//! spent what it took.

use super::Limits;
use crate::algorithm::limit::Limit;
use crate::algorithm::window::{self, Window, WindowLog};
use crate::algorithm::{Cell, Placed, Taken, Written};
use crate::clock::Time;
use crate::status::{LimitStatus, LimitStatuses, NEVER};
use crate::table::row::{Moved, Row};

/// What a lone log did with a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoneRing {
    /// Its statuses are what it said.
    Refused,
    /// What it wrote: the place of an entry.
    Admitted(u64),
    /// Its statuses are those after the hit.
    AdmittedAndTold,
}

impl Limits {
    /// What a key that was never seen would be told.
    pub(crate) fn statuses_of_new(&self, cost: u64) -> LimitStatuses {
        let new = |stated: &Limit| {
            let limit = stated.size();
            let fits = stated.max > 0 && (cost <= limit || stated.algorithm.has_lease());
            let wait = if fits { 0 } else { NEVER };
            let more = if stated.max > 0 { 0 } else { NEVER };
            LimitStatus { limit, used: 0, remaining: limit, wait, more, reset: 0 }
        };
        self.stated.iter().map(new).collect()
    }

    /// What each limit would say to `cost` now, writing nothing. The statuses are large, so they
    /// are written in place.
    pub(crate) fn inspect(
        &self,
        row: &Row<'_>,
        cost: u64,
        now: u64,
        statuses: &mut LimitStatuses,
    ) -> Result<(), Moved> {
        self.inspect_by(row, &Written::default(), cost, now, statuses)
    }

    /// The same as of the charge that wrote this.
    pub(crate) fn inspect_by(
        &self,
        row: &Row<'_>,
        written: &Written,
        cost: u64,
        now: u64,
        statuses: &mut LimitStatuses,
    ) -> Result<(), Moved> {
        statuses.len = self.len() as u8;
        row.steadily(|row| {
            for (placed, written) in self.placed.iter().zip(written) {
                placed.inspect(row, *written, cost, now, &mut statuses.each);
            }
            for (status, stated) in statuses.each.iter_mut().zip(&self.stated) {
                if stated.max == 0 {
                    *status = LimitStatus {
                        wait: NEVER,
                        more: NEVER,
                        reset: status.reset,
                        ..LimitStatus::default()
                    };
                }
            }
            row.check()
        })
    }

    /// Whether every limit would allow `cost` now; as [`Limits::inspect`], with less to tell. For a
    /// cost that each of them could hold.
    pub(crate) fn fits(&self, row: &Row<'_>, cost: u64, now: u64) -> Result<bool, Moved> {
        row.steadily(|row| {
            let fits = self.placed.iter().all(|placed| placed.fits(row, cost, now));
            row.check().map(|()| fits)
        })
    }

    /// As `take`. True if `statuses` has what the limits say after it: a lone log tells that as it
    /// takes.
    pub(crate) fn take_and_tell(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        statuses: &mut LimitStatuses,
        taken: &mut Taken,
    ) -> Result<Option<bool>, Moved> {
        let Some((at, log)) = self.lone_log() else {
            return Ok(self.take(row, cost, keep_us, time, taken)?.then_some(false));
        };
        statuses.len = self.len() as u8;
        let report = |w: &Window, status| statuses.each[w.index] = window::status(w, status);
        let admitted = log.ring(row, at).hit(&log.windows, cost, keep_us, time, report)?;
        Ok(admitted.map(|(entry, is_told)| {
            taken.cells = 1;
            taken.entry = Some(entry);
            taken.written[0] = Some(entry.position);
            is_told
        }))
    }

    /// Takes `cost` from every limit or from none: false if one refuses. Callers have looked first.
    /// A log's entries that are younger than `keep_us` are kept, for other numbers too. `taken` is
    /// an out-parameter, as it is large: to return it cost a third of a hit on a fixed count.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        *taken = Taken::default();
        for placed in &self.placed {
            match placed.take_from(row, cost, keep_us, time, taken) {
                Ok(true) => taken.cells += 1,
                // A row that was sealed may have been reset: start over from what it is now.
                refused => {
                    self.give_back(row, taken, cost, time);
                    return refused;
                }
            }
        }
        Ok(true)
    }

    /// The windows of a row that has nothing else, and where their log begins.
    fn lone_log(&self) -> Option<(usize, &WindowLog)> {
        match &*self.placed {
            [Placed { at, cell: Cell::Windows(log), .. }] => Some((*at, log)),
            _ => None,
        }
    }

    /// As `take` for limits in one cell, of which nothing will be given back.
    pub(crate) fn take_lone(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        match self.lone_log() {
            Some((at, log)) => {
                let entry = log.ring(row, at).take(&log.windows, cost, keep_us, time)?;
                Ok(entry.is_some())
            }
            None => self.take(row, cost, keep_us, time, &mut Taken::default()),
        }
    }

    /// As `take` for limits that are one log of windows, else `None`. A log that refuses is looked
    /// at once: `statuses` has what its windows said. So it mostly has after an admission, which
    /// [`LoneRing`] says.
    pub(crate) fn hit_lone_ring(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        statuses: &mut LimitStatuses,
    ) -> Option<Result<LoneRing, Moved>> {
        let (at, log) = self.lone_log()?;
        statuses.len = self.len() as u8;
        let report = |w: &Window, status| statuses.each[w.index] = window::status(w, status);
        let entry = log.ring(row, at).hit(&log.windows, cost, keep_us, time, report);
        Some(entry.map(|admitted| {
            let Some((entry, is_told)) = admitted else { return LoneRing::Refused };
            if is_told { LoneRing::AdmittedAndTold } else { LoneRing::Admitted(entry.position) }
        }))
    }

    /// Undoes a `take`. A row that was cleared since, or is another's, gets nothing, so that no
    /// unit of a later hit is given back. One that was sealed by an evictor that found it in use is
    /// reopened.
    pub(crate) fn give_back(&self, row: &Row<'_>, taken: &Taken, cost: u64, time: &mut Time<'_>) {
        for (placed, written) in self.placed[..taken.cells].iter().zip(&taken.written) {
            let mut undo = |row: &Row<'_>| placed.undo(row, taken, *written, cost, time);
            if row.unless_cleared(&mut undo).is_err() {
                return;
            }
        }
    }

    /// Repairs what a clock fault left in the future, so that a refusal's wait is right. True if
    /// that changed anything, or the clock turned out to be later than it was read.
    pub(crate) fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let before = time.now();
        let mut any = false;
        for placed in &self.placed {
            any |= placed.repair_clock_skew(row, time)?;
        }
        Ok(any || time.now() != before)
    }

    /// Spends without asking. Permits are not spent but held, so they are left alone.
    pub(crate) fn record(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Written, Moved> {
        let mut written = Written::default();
        for (placed, written) in self.placed.iter().zip(&mut written) {
            *written = row.steadily(|row| placed.record_in(row, cost, keep_us, time))?;
        }
        Ok(written)
    }

    /// Gives `cost` back to every limit. A row that is another's by now was idle: nothing is owed.
    pub(crate) fn refund(&self, row: &Row<'_>, cost: u64, time: &mut Time<'_>) {
        for placed in &self.placed {
            if placed.refund_to(row, cost, time).is_err() {
                return;
            }
        }
    }
}
