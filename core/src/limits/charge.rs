//! Several limits in one row: looked at together, taken all or nothing.
//!
//! First all limits are looked at, so that a denial writes nothing. Then they are taken one by one
//! in the order of [`Limits`]; if a later one refuses after all, because somebody else was quicker,
//! what was taken is given back. Between the two a concurrent hit may be refused that would have
//! passed, but none is let through that should not. A process that dies in between has spent
//! what it took.

use super::{Limit, Limits};
use crate::algorithm::counter::Counter;
use crate::algorithm::window::{Ring, Window};
use crate::algorithm::{Algorithm, Cell, Left, Placed, Taken, stamp, window_status};
use crate::clock::Time;
use crate::status::{LimitStatus, LimitStatuses, NEVER};
use crate::table::row::{Moved, Row};

impl Limits {
    /// What a key that was never seen would be told.
    pub(crate) fn statuses_of_new(&self, cost: u64) -> LimitStatuses {
        let new = |stated: &Limit| {
            let limit = stated.size();
            let fits = match stated.algorithm {
                Algorithm::Concurrent => stated.max > 0,
                _ => cost <= limit && stated.max > 0,
            };
            let wait = if fits { 0 } else { NEVER };
            let more = if stated.max > 0 { 0 } else { NEVER };
            LimitStatus { limit, used: 0, remaining: limit, wait, more, reset: 0 }
        };
        self.stated.iter().map(new).collect()
    }

    /// What each limit would say to `cost` now, writing nothing. The statuses are large, so they are written in place.
    pub(crate) fn inspect(
        &self,
        row: &Row<'_>,
        cost: u64,
        now: u64,
        views: &mut LimitStatuses,
    ) -> Result<(), Moved> {
        self.inspect_by(row, &Left::default(), cost, now, views)
    }

    /// The same as of the charge that left this.
    pub(crate) fn inspect_by(
        &self,
        row: &Row<'_>,
        left: &Left,
        cost: u64,
        now: u64,
        views: &mut LimitStatuses,
    ) -> Result<(), Moved> {
        views.len = self.len() as u8;
        row.steadily(|row| {
            for (placed, left) in self.placed.iter().zip(left) {
                placed.inspect(row, *left, cost, now, &mut views.views);
            }
            for (view, stated) in views.views.iter_mut().zip(&self.stated) {
                if stated.max == 0 {
                    *view = LimitStatus {
                        wait: NEVER,
                        more: NEVER,
                        reset: view.reset,
                        ..LimitStatus::default()
                    };
                }
            }
            row.check()
        })
    }

    /// Takes `cost` from every limit or from none: false if one refuses. Callers have looked first. A log's
    /// entries that are younger than `keep_us` are kept, for other numbers too. `taken` is an out-parameter,
    /// as it is large: to return it cost a third of a hit on a fixed count.
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

    /// As `take` for limits that are one log of windows, else `None`. A log that refuses is looked at
    /// once: `views` has what its windows said.
    pub(crate) fn hit_lone_ring(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        views: &mut LimitStatuses,
        taken: &mut Taken,
    ) -> Option<Result<bool, Moved>> {
        let [Placed { at, cell: Cell::Ring { slots, windows }, .. }] = &*self.placed else {
            return None;
        };
        views.len = self.len() as u8;
        let tell = |w: &Window, status| views.views[w.index] = window_status(w, status);
        let ring = Ring::new(row, *at, *slots);
        let entry = ring.hit(windows, cost, keep_us, time, tell);
        Some(entry.map(|entry| {
            taken.cells = 1;
            taken.entry = entry;
            taken.left[0] = entry.map(|entry| entry.position);
            entry.is_some()
        }))
    }

    /// Undoes a `take`. A row that was cleared since, or is another's, gets nothing, so that no unit of a later hit
    /// is given back. One that was sealed by an evictor that found it in use is reopened.
    pub(crate) fn give_back(&self, row: &Row<'_>, taken: &Taken, cost: u64, time: &mut Time<'_>) {
        for (placed, left) in self.placed[..taken.cells].iter().zip(&taken.left) {
            let mut undo = |row: &Row<'_>| placed.undo(row, taken, *left, cost, time);
            if row.unless_cleared(&mut undo).is_err() {
                return;
            }
        }
    }

    /// Repairs what a clock fault left in the future, so that a refusal's wait is right. True if that
    /// changed anything, or the clock turned out to be later than it was read.
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
    ) -> Result<Left, Moved> {
        let mut left = Left::default();
        for (placed, left) in self.placed.iter().zip(&mut left) {
            *left = row.steadily(|row| placed.record_in(row, cost, keep_us, time))?;
        }
        Ok(left)
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

impl LimitStatus {
    /// What a limit would say after a hit of `cost` that it allows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::{Clock, Engine, Limit, Limits, Options};
    ///
    /// let limit = Limit::bucket(20, Duration::from_secs(60));
    /// let (clock, _) = Clock::manual(0);
    /// let options = Options { clock, ..Options::default() };
    /// let engine = Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap();
    /// let foreseen = engine.peek(b"alice", 2).views[0].after(&limit, 2, 0);
    /// assert_eq!(foreseen, engine.hit(b"alice", 2).views[0]);
    /// ```
    #[must_use]
    pub fn after(self, limit: &Limit, cost: u64, now: u64) -> LimitStatus {
        if cost == 0 || limit.max == 0 {
            return self;
        }
        let per = limit.per.as_nanos() as u64;
        let held = if limit.algorithm == Algorithm::Concurrent { 1 } else { cost };
        let used = self.used.saturating_add(held);
        let refill = |tokens: u64| {
            let product = u128::from(tokens) * u128::from(per);
            product.div_ceil(u128::from(limit.max)) as u64
        };
        // A lease starts at a whole microsecond, rounded down.
        let leased = per - now % stamp::MICRO;
        let or = |first: u64| if self.used == 0 { first } else { self.more };
        let (more, reset) = match limit.algorithm {
            Algorithm::Bucket => (or(refill(1)), self.reset.saturating_add(refill(cost))),
            Algorithm::Counter => Counter { max: limit.max, per }.foreseen(self.more, used, now),
            Algorithm::Fixed if self.reset > 0 => (or(self.reset), self.reset),
            Algorithm::Fixed | Algorithm::Window => (or(per), per),
            Algorithm::Concurrent => (or(leased).min(leased), leased),
        };
        let remaining = self.remaining.saturating_sub(held);
        LimitStatus { used, remaining, wait: 0, more, reset: self.reset.max(reset), ..self }
    }
}
