//! What keys have spent of their budgets.

use std::cell::LazyCell;

use tidegate_core::{Hash, OnFull};

use crate::notes::Spent;
use crate::snapshot::Snapshot;
use crate::store::tables::is_unspent;
use crate::time::Day;

impl Snapshot {
    /// What the key with this hash has spent of its budget. Keys that found no place for it share
    /// one, and have spent what they spent together.
    pub(crate) fn spent(&self, hash: Hash) -> Spent {
        let Some((ledger, budget)) = self.tables.budgets().zip(self.config.budget.as_ref()) else {
            return Spent::default();
        };
        // The wall clock is read only where others have spent something in this key's place.
        let today = LazyCell::new(|| Day::today(self.tables.clock(), budget.reset_hour_utc).number);
        let notes = match self.tables.on_full {
            OnFull::Allow => ledger.read(hash),
            _ => ledger.read_or_shared(hash, &|notes| is_unspent(notes, *today)),
        };
        notes.map_or(Spent::default(), |notes| Spent::from_note(notes[0]))
    }

    /// Adds to what a key has spent of its budget on `day`, and says what that has come to. Where
    /// no place is left it shares one, unless keys for which there is none are to be allowed
    /// without counting. `today_again` is asked where something was spent on a later day.
    pub(crate) fn spend(
        &self,
        hash: Hash,
        amount: u64,
        day: u64,
        today_again: impl Fn() -> u64,
    ) -> Option<u64> {
        let ledger = self.tables.budgets()?;
        let idle = |notes: &[u64; 1]| is_unspent(notes, day);
        let add = |note: u64| {
            let spent = Spent::from_note(note);
            let day = if spent.is_ahead(day) { today_again() } else { day };
            let spent = spent.plus(amount, day);
            (spent.note(), spent.on(day))
        };
        match self.tables.on_full {
            OnFull::Allow => ledger.update(hash, 0, &idle, add),
            _ => ledger.update_or_share(hash, 0, &idle, add),
        }
    }

    /// Stores what was spent on a day that is ahead of the clock as spent on `day`, so that it is
    /// forgotten with it. A note that was changed meanwhile is left alone.
    #[cold]
    pub(crate) fn repair_spent(&self, hash: Hash, ahead: Spent, day: u64) {
        let Some(ledger) = self.tables.budgets() else { return };
        let repair = |note: u64| match note == ahead.note() {
            true => (ahead.repaired(day).note(), ()),
            false => (note, ()),
        };
        let own = ledger.update_known(hash, 0, repair);
        if own.is_none() && self.tables.on_full != OnFull::Allow {
            ledger.update_or_share(hash, 0, &|notes| is_unspent(notes, day), repair);
        }
    }
}
