//! Permits of a `concurrent` limit: slots with an expiry, so that a dead holder's comes back.
//!
//! A slot is one word, expiry 48 | nonce 16; an expiry of 0 is a free slot. Whoever holds a permit
//! knows its exact word, so a release or renewal that comes after the lease ran out, when the slot
//! may be somebody else's, simply finds another word and does nothing.

use crate::clock::Time;
use crate::row::{Moved, Row};
use crate::stamp;

/// How often a full set of slots is looked at that keeps changing.
const PASSES: usize = 4;

/// The numbers of a concurrent limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permits {
    pub(crate) max: u64,
    pub(crate) lease_us: u64,
    /// Slots of the row; at least `max`.
    pub(crate) slots: usize,
}

/// A slot that is held: what its holder shows to give it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    slot: usize,
    word: u64,
    /// Held in a row that keys share because the table is full.
    pub(crate) shared: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    const NONCE_BITS: u32 = 64 - stamp::BITS;

    fn expiry(self) -> u64 {
        self.0 >> Slot::NONCE_BITS
    }
    fn is_held(self, now: u64) -> bool {
        self.expiry() != 0 && stamp::age(self.expiry(), now) < 0
    }
    fn next(self, expiry: u64) -> Slot {
        let nonce = self.0.wrapping_add(1) & ((1 << Slot::NONCE_BITS) - 1);
        Slot(expiry << Slot::NONCE_BITS | nonce)
    }
}

impl Permits {
    fn expiry(&self, now: u64) -> u64 {
        ((stamp::of(now) + self.lease_us) & stamp::MASK).max(1)
    }

    /// Permits that are out.
    pub(crate) fn held(&self, row: &Row<'_>, at: usize, now: u64) -> u64 {
        (at..at + self.slots).filter(|&i| Slot(row.load(i)).is_held(now)).count() as u64
    }

    /// Takes a slot if fewer than `max` are out.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<Option<Permit>, Moved> {
        self.mend(row, at, time)?;
        for _ in 0..PASSES {
            let before = self.fold(row, at);
            let permit = self.take_first(row, at, time.now())?;
            // A slot that was passed over may have come free since: only an unchanged set is full.
            if permit.is_some() || self.fold(row, at) == before {
                return Ok(permit);
            }
        }
        Ok(None)
    }

    /// All slots in one number, for telling whether any has changed.
    fn fold(&self, row: &Row<'_>, at: usize) -> u64 {
        (at..at + self.slots).fold(0, |sum: u64, i| sum.rotate_left(5).wrapping_add(row.load(i)))
    }

    fn take_first(&self, row: &Row<'_>, at: usize, now: u64) -> Result<Option<Permit>, Moved> {
        let beyond = (at + self.max as usize..at + self.slots)
            .filter(|&i| Slot(row.load(i)).is_held(now))
            .count() as u64;
        let most = self.max.saturating_sub(beyond) as usize;
        // Every slot that is passed over is held, so the slot's number is how many are out below it.
        for slot in 0..most {
            let mut seen = Slot(row.load(at + slot));
            row.check()?;
            while !seen.is_held(now) {
                let next = seen.next(self.expiry(now));
                match row.replace(at + slot, seen.0, next.0) {
                    Ok(()) => {
                        return Ok(Some(Permit { slot, word: next.0, shared: row.is_shared() }));
                    }
                    Err(newer) => seen = Slot(newer),
                }
                row.check()?;
            }
        }
        Ok(None)
    }

    /// A lease that ends later than a new one would was granted by a clock that went back since.
    /// True if there was one.
    pub(crate) fn mend(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let mut any = false;
        for i in at..at + self.slots {
            let seen = Slot(row.load(i));
            let most = self.lease_us as i64 + 1;
            let late = |now| seen.is_held(now) && -stamp::age(seen.expiry(), now) > most;
            if !late(time.now()) {
                continue;
            }
            time.doubt();
            if late(time.now()) {
                row.check()?;
                let _ = row.replace(i, seen.0, seen.next(self.expiry(time.now())).0);
                any = true;
            }
        }
        Ok(any)
    }

    /// Gives a slot back. False if the lease had run out and the slot was taken by another.
    pub(crate) fn release(&self, row: &Row<'_>, at: usize, permit: Permit) -> bool {
        self.replace(row, at, permit, 0).is_some()
    }

    /// Swaps the word of a permit, if it is one of this limit's and still held.
    fn replace(&self, row: &Row<'_>, at: usize, permit: Permit, expiry: u64) -> Option<Permit> {
        let next = Slot(permit.word).next(expiry).0;
        if permit.slot >= self.slots || row.replace(at + permit.slot, permit.word, next).is_err() {
            return None;
        }
        Some(Permit { word: next, ..permit })
    }

    /// Starts the lease anew. `None` if it has run out: others may count on the slot.
    pub(crate) fn renew(
        &self,
        row: &Row<'_>,
        at: usize,
        permit: Permit,
        now: u64,
    ) -> Option<Permit> {
        let held = Slot(permit.word).is_held(now);
        held.then(|| self.replace(row, at, permit, self.expiry(now)))?
    }

    /// Nanoseconds until at most `goal` permits are out, if nobody releases or takes one.
    pub(crate) fn until_held(&self, row: &Row<'_>, at: usize, goal: u64, now: u64) -> u64 {
        let out_in = |micros: u64| {
            let later = |i: &usize| {
                let slot = Slot(row.load(*i));
                slot.is_held(now) && -stamp::age(slot.expiry(), now) > micros as i64
            };
            (at..at + self.slots).filter(later).count() as u64
        };
        if out_in(0) <= goal {
            return 0;
        }
        let micros = stamp::first_time(self.lease_us + 1, |t| out_in(t) <= goal);
        // 0 if others released between the two looks.
        (micros * stamp::MICRO).saturating_sub(now % stamp::MICRO)
    }

    /// Frees every slot: of an idle key, or (`None`) of any. (What is held does not depend on the
    /// numbers, so each slot can be judged alone.)
    pub(crate) fn freshen(&self, row: &Row<'_>, at: usize, idle_at: Option<u64>) -> bool {
        (at..at + self.slots).all(|i| {
            loop {
                let seen = Slot(row.load(i));
                if idle_at.is_some_and(|now| seen.is_held(now)) || row.check().is_err() {
                    return false;
                }
                if row.replace(i, seen.0, seen.next(0).0).is_ok() {
                    return true;
                }
            }
        })
    }
}
