//! What a caller holds on to after a hit: reservations and permits.

use std::sync::Arc;

use tidegate_core::{ForkLock, Time};

use crate::compiled::interned::Interned;
use crate::compiled::plan::MOST_GROUPS;
use crate::config::limit::Counts;
use crate::decision::Decision;
use crate::judge::{Receipts, part_of};
use crate::rule::state::RuleState;
use crate::rule::waiters::{LineKey, WHOLE_KEY};
use crate::snapshot::{Hashes, Snapshot};

/// Where something was charged, and by which limits.
#[derive(Clone, Debug)]
pub(crate) struct Charged {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) variant: Interned,
    pub(crate) hashes: Hashes,
}

impl Charged {
    /// What the limits of a group count.
    fn counts(&self, group: usize) -> Counts {
        self.snapshot.plan().groups[group].counts
    }

    /// The groups whose limits count costs: only a cancellation gives back what was counted as a
    /// hit.
    fn parts_by_cost(&self) -> impl Iterator<Item = (usize, tidegate_core::RowRef<'_>)> {
        self.parts().filter(|&(group, _)| self.counts(group) == Counts::Cost)
    }

    fn parts(&self) -> impl Iterator<Item = (usize, tidegate_core::RowRef<'_>)> {
        (0..self.snapshot.tables.engines.len()).filter_map(|group| {
            Some((group, part_of(&self.snapshot, &self.variant, &self.hashes, group)?))
        })
    }

    /// The lines of those who may wait for what is given back.
    fn lines(&self) -> impl Iterator<Item = LineKey> {
        let plan = self.snapshot.plan();
        plan.groups.iter().zip(&self.hashes).enumerate().filter_map(|(index, (group, hash))| {
            let line = if plan.is_whole(&group.scope) { WHOLE_KEY } else { index };
            hash.map(|hash| (line, hash.as_u64()))
        })
    }

    pub(crate) fn refund(&self, cost: u64) {
        let mut time = Time::read(self.snapshot.tables.clock());
        self.parts_by_cost().for_each(|(_, part)| part.refund(cost, &mut time));
    }

    /// Gives back of what was reserved, as far as it still counts.
    fn give_back(&self, receipts: &Receipts, cost: u64) {
        let mut time = Time::read(self.snapshot.tables.clock());
        for (group, part) in self.parts_by_cost() {
            if let Some(receipt) = &receipts[group] {
                part.give_back(receipt, cost, &mut time);
            }
        }
    }

    /// Gives back all that was reserved, as far as it still counts.
    fn cancel(&self, receipts: &Receipts, estimate: u64) {
        let mut time = Time::read(self.snapshot.tables.clock());
        for (group, part) in self.parts() {
            let cost = self.counts(group).of(estimate);
            if let Some(receipt) = &receipts[group] {
                part.give_back(receipt, cost, &mut time);
            }
        }
    }

    fn record(&self, cost: u64) {
        let mut time = Time::read(self.snapshot.tables.clock());
        for (_, part) in self.parts_by_cost() {
            let _ = part.record(cost, &mut time);
        }
    }
}

/// An estimate that was spent, to be settled with the true cost. Dropped, the estimate stays spent.
///
/// It gives back only its own, and only while that counts:
///
/// - of a bucket at most the estimate, less what was refilled since;
/// - of a window its own entry, while that is inside;
/// - of a fixed count or a counter, only in the same period or cell.
///
/// After a reset or an eviction of the key it gives back nothing.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let reserved = limiter.reserve("alice", 2).unwrap();
/// reserved.cancel();
/// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(3));
/// ```
#[derive(Debug)]
pub struct Reservation {
    decision: Decision,
    held: Option<Charged>,
    estimate: u64,
    receipts: Receipts,
}

impl Reservation {
    pub(crate) fn new(
        decision: Decision,
        held: Option<Charged>,
        estimate: u64,
        receipts: Receipts,
    ) -> Reservation {
        Reservation { decision, held, estimate, receipts }
    }

    /// How the hit went. If it was denied nothing is reserved, and there is nothing to settle.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Gives back the difference to the true cost, as far as it still counts, or records it. Limits
    /// that count hits keep theirs.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.reserve("alice", 3).unwrap().settle(1);
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(2));
    /// ```
    pub fn settle(self, actual: u64) {
        let Some(held) = &self.held else { return };
        match actual.checked_sub(self.estimate) {
            Some(0) => {}
            Some(more) => held.record(more),
            None => held.give_back(&self.receipts, self.estimate - actual),
        }
    }

    /// Gives the estimate back, as far as it still counts, and the hit to limits that count hits.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.reserve("alice", 3).unwrap().cancel();
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(3));
    /// ```
    pub fn cancel(self) {
        if let Some(held) = &self.held {
            held.cancel(&self.receipts, self.estimate);
        }
    }
}

/// A slot of a concurrent limit, given back when dropped.
///
/// ```
/// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
/// let permit = limiter.permit("job").unwrap();
/// assert!(permit.is_held() && permit.renew());
/// assert!(permit.release() && !permit.release());
/// ```
#[derive(Debug)]
pub struct Permit {
    decision: Decision,
    /// Where, and whom to tell when it is free again.
    held: Option<(Charged, Arc<RuleState>)>,
    /// None in a forked child whose parent was just giving them back.
    slots: ForkLock<[Option<tidegate_core::Permit>; MOST_GROUPS]>,
}

impl Permit {
    pub(crate) fn new(
        decision: Decision,
        held: Option<(Charged, Arc<RuleState>)>,
        slots: [Option<tidegate_core::Permit>; MOST_GROUPS],
    ) -> Permit {
        Permit { decision, held, slots: ForkLock::new(slots) }
    }

    /// How it went. If it was denied, no slot is held.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Whether a slot was given and is not released. (Its lease may have run out.)
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// let (first, second) = (limiter.permit("a").unwrap(), limiter.permit("a").unwrap());
    /// assert!(first.is_held() && !second.is_held());
    /// ```
    pub fn is_held(&self) -> bool {
        self.slots.lock().iter().any(Option::is_some)
    }

    /// Gives the slot back. False if it was no longer held: released before, or its lease ran out.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// assert!(limiter.permit("a").unwrap().release());
    /// ```
    pub fn release(&self) -> bool {
        let Some((held, rule)) = &self.held else { return false };
        let released = self.release_slots(held);
        if !released.is_empty() {
            rule.waiters.nudge(held.lines());
        }
        !released.is_empty() && released.iter().all(|held| *held)
    }

    fn release_slots(&self, held: &Charged) -> Vec<bool> {
        let mut slots = self.slots.lock();
        let now = held.snapshot.tables.clock().now();
        let release = |(group, part): (usize, tidegate_core::RowRef<'_>)| {
            slots[group].take().map(|slot| part.release(slot, now))
        };
        held.parts().filter_map(release).collect()
    }

    /// Starts the lease anew. False if the slot is lost.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// assert!(limiter.permit("a").unwrap().renew());
    /// ```
    pub fn renew(&self) -> bool {
        let mut slots = self.slots.lock();
        let Some((held, _)) = &self.held else { return false };
        let now = held.snapshot.tables.clock().now();
        let renew = |(group, part): (usize, tidegate_core::RowRef<'_>)| {
            let slot = slots[group]?;
            slots[group] = part.renew(slot, now);
            Some(slots[group].is_some())
        };
        let renewed: Vec<bool> = held.parts().filter_map(renew).collect();
        !renewed.is_empty() && renewed.iter().all(|held| *held)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.release();
    }
}
