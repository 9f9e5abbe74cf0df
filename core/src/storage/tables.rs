//! The tables of a file, handed out in the order in which they lie there.

use super::offenders::{self, TopOffenders};
use crate::engine::{Engine, Options};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::memory::Backing;
use crate::table::hash::Hasher;
use crate::table::{OutOfMemory, Table};

/// Hands out the tables of a file.
#[derive(Debug)]
pub struct Tables {
    pub(crate) backing: Backing,
    hasher: Hasher,
}

impl Tables {
    pub(super) fn new(backing: Backing, hasher: Hasher) -> Tables {
        Tables { backing, hasher }
    }

    /// The next table, as an engine.
    ///
    /// # Errors
    /// If the file has no room for it.
    pub fn engine(&self, limits: Limits, options: Options) -> Result<Engine, OutOfMemory> {
        Engine::new_in(limits, options, self.hasher.clone(), &self.backing)
    }

    /// How many rows of the next table, an engine's, are in use; for a look from outside, which
    /// judges no row. `None` if the file has no room for it.
    pub fn used_rows(&self, limits: &Limits, capacity: usize) -> Option<usize> {
        Some(Table::new(capacity, limits, &self.backing)?.len())
    }

    /// The next table, as a ledger.
    ///
    /// # Errors
    /// If the file has no room for it.
    pub fn ledger<const W: usize>(&self, capacity: usize) -> Result<Ledger<W>, OutOfMemory> {
        Ledger::new_in(capacity, self.hasher.clone(), &self.backing)
    }

    /// Words that the top offenders take.
    pub const OFFENDER_WORDS: usize = offenders::WORDS;

    /// The top offenders, which come last. `None` if the file has no room for it.
    pub fn top_offenders(&self) -> Option<TopOffenders> {
        Some(TopOffenders::new(self.backing.words(Tables::OFFENDER_WORDS, false)?))
    }
}
