//! One key's row in an engine, and what can be done to it.

use super::Engine;
use super::multi::{MultiOutcome, hit_together};
use crate::algorithm::permit::{Permit, Permits};
use crate::algorithm::{Cell, Written};
use crate::clock::Time;
use crate::limits::Limits;
use crate::limits::receipt::Receipt;
use crate::status::LimitStatuses;
use crate::table::Hash;
use crate::table::row::Row;

/// A key's row in one of several engines, whose limits are taken together.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Where the row is.
    pub engine: &'a Engine,
    /// Whose it is, by that engine's hash.
    pub hash: Hash,
    /// What it is judged by: the engine's own limits, or others for which the engine was
    /// [introduced](Engine::introduce_limits).
    pub limits: &'a Limits,
}

/// None of these counts for [`Engine::total`]: that is for whole hits, which may have several
/// parts.
impl RowRef<'_> {
    /// Brings the row near, so that the clock can be read meanwhile.
    #[inline]
    pub fn prefetch(&self) {
        self.engine.table.prefetch(self.hash);
    }

    /// Spends `cost` if every limit allows it, and puts into `statuses` what each of them has left.
    pub fn hit(
        &self,
        cost: u64,
        time: &mut Time<'_>,
        statuses: &mut LimitStatuses,
    ) -> MultiOutcome<1> {
        if let Some((answer, status, shared)) = self.hit_lone(cost, time) {
            statuses.set_one(status);
            return MultiOutcome { answer, permits: [None], shared };
        }
        self.hit_several(cost, time, statuses)
    }

    pub(super) fn hit_several(
        &self,
        cost: u64,
        time: &mut Time<'_>,
        statuses: &mut LimitStatuses,
    ) -> MultiOutcome<1> {
        match self.hit_cell(cost, time, statuses) {
            Some(together) => together,
            // What is refused is looked at with more care.
            None => hit_together(&[*self], &[cost], time, std::array::from_mut(statuses)),
        }
    }

    /// What each limit would say to `cost`.
    pub fn inspect(&self, cost: u64, now: u64) -> LimitStatuses {
        let mut statuses = LimitStatuses::default();
        self.inspect_into(cost, now, &mut statuses);
        statuses
    }

    pub(super) fn inspect_into(&self, cost: u64, now: u64, statuses: &mut LimitStatuses) {
        loop {
            let Some(row) = self.engine.known_row(self.hash, now) else {
                *statuses = self.limits.statuses_of_new(cost);
                return;
            };
            if self.limits.inspect(&row, cost, now, statuses).is_ok() {
                return;
            }
        }
    }

    /// What a charge left in a row. One that moved on since is idle again.
    pub(super) fn inspect_after(
        &self,
        row: &Row<'_>,
        written: &Written,
        now: u64,
        statuses: &mut LimitStatuses,
    ) {
        if self.limits.inspect_by(row, written, 0, now, statuses).is_err() {
            *statuses = self.limits.statuses_of_new(0);
        }
    }

    /// Spends without asking; see [`Engine::record`].
    pub fn record(&self, cost: u64, time: &mut Time<'_>) -> LimitStatuses {
        if cost == 0 {
            return self.inspect(0, time.now());
        }
        while let Ok(row) = self.engine.row(self.hash, time.now()) {
            if let Ok(written) = self.limits.record(&row, cost, self.engine.keep_us(), time) {
                let mut statuses = LimitStatuses::default();
                self.inspect_after(&row, &written, time.now(), &mut statuses);
                return statuses;
            }
        }
        self.inspect(0, time.now())
    }

    /// Gives `cost` back, never above full.
    pub fn refund(&self, cost: u64, time: &mut Time<'_>) {
        if let Some(row) = self.engine.known_row(self.hash, time.now()) {
            self.limits.refund(&row, cost, time);
        }
    }

    /// Repairs what a clock fault left ahead of the clock, as a denial by the limits does. False if
    /// there is nothing to repair.
    pub fn repair_clock_skew(&self, time: &mut Time<'_>) -> bool {
        let row = self.engine.known_row(self.hash, time.now());
        row.is_some_and(|row| self.limits.repair_clock_skew(&row, time).unwrap_or(true))
    }

    /// Gives back what a [reservation](crate::reserve_together) took here, up to `amount` and only
    /// what still counts. A bucket gets the cost less what was refilled since. A window gets the
    /// charge's own entry, while that is inside. A fixed count or a counter gets its units in the
    /// same span or cell only. After a reset or an eviction nothing is owed. A receipt is good for
    /// once.
    pub fn give_back(&self, receipt: &Receipt, amount: u64, time: &mut Time<'_>) {
        let row = match receipt.is_shared() {
            true => Some(self.engine.table.overflow(self.hash)),
            false => self.engine.table.find(self.hash),
        };
        if let Some(row) = row.filter(|row| receipt.is_of(row)) {
            self.limits.give_back_own(&row, receipt, amount, time);
        }
    }

    /// Gives a slot back; see [`Engine::release`].
    pub fn release(&self, permit: Permit, now: u64) -> bool {
        self.with_permit(permit, |row, at, permits| permits.release(row, at, permit, now))
            .unwrap_or(false)
    }

    /// Starts a lease anew; see [`Engine::renew`].
    pub fn renew(&self, permit: Permit, now: u64) -> Option<Permit> {
        self.with_permit(permit, |row, at, permits| permits.renew(row, at, permit, now))?
    }

    fn with_permit<R>(
        &self,
        permit: Permit,
        act: impl FnOnce(&Row<'_>, usize, &Permits) -> R,
    ) -> Option<R> {
        let row = match permit.shared {
            true => self.engine.table.overflow(self.hash),
            false => self.engine.table.find(self.hash)?,
        };
        let (at, permits) = self.limits.placed.iter().find_map(|placed| match &placed.cell {
            Cell::Permits(permits) => Some((placed.at, permits)),
            _ => None,
        })?;
        Some(act(&row, at, permits))
    }
}
