//! The tables of a file, by their number in its layout.

use std::sync::Arc;

use super::layout::{FileLayout, Sections, TableSection};
use super::offenders::{self, TopOffenders};
use crate::engine::{Engine, Options};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::memory::{Backing, MappedTable, Mapping, Words};
use crate::table::hash::Hasher;
use crate::table::{OutOfMemory, Table};

/// The tables of a file.
#[derive(Debug)]
pub struct TableSections {
    mapping: Arc<Mapping>,
    layout: FileLayout,
    sections: Sections,
    hasher: Hasher,
}

impl TableSections {
    pub(super) fn new(
        mapping: Arc<Mapping>,
        layout: FileLayout,
        sections: Sections,
        hasher: Hasher,
    ) -> TableSections {
        TableSections { mapping, layout, sections, hasher }
    }

    /// An engine on table `index` of the layout's engines, whose shape and capacity must be these.
    ///
    /// # Errors
    /// If the file has no such table.
    pub fn engine(
        &self,
        index: usize,
        limits: Limits,
        options: Options,
    ) -> Result<Engine, OutOfMemory> {
        let error = OutOfMemory { capacity: options.capacity, row_words: limits.row_words() };
        let backing = self.engine_backing(index).ok_or(error)?;
        Engine::new_in(limits, options, self.hasher.clone(), &backing)
    }

    /// How many rows of the layout's engine `index` are in use; for a look from outside, which
    /// judges no row. `None` if the file has no such table.
    pub fn used_rows(&self, index: usize) -> Option<usize> {
        let (limits, capacity) = self.layout.engines.get(index)?;
        Some(Table::new(*capacity, limits, &self.engine_backing(index)?)?.len())
    }

    /// A ledger on table `index` of the layout's ledgers, which must have `W` notes.
    ///
    /// # Errors
    /// If the file has no such table.
    pub fn ledger<const W: usize>(&self, index: usize) -> Result<Ledger<W>, OutOfMemory> {
        let capacity = self.layout.ledgers.get(index).map_or(0, |(_, capacity)| *capacity);
        let error = OutOfMemory { capacity, row_words: 1 + W };
        let backing = self.ledger_backing(index).ok_or(error)?;
        Ledger::new_in(capacity, self.hasher.clone(), &backing)
    }

    /// Words that the top offenders take.
    pub const OFFENDER_WORDS: usize = offenders::WORDS;

    /// The top offenders. `None` if the file ends before them.
    pub fn top_offenders(&self) -> Option<TopOffenders> {
        Some(TopOffenders::new(self.offender_words()?))
    }

    pub(super) fn offender_words(&self) -> Option<Words> {
        self.mapping.section(&self.sections.offenders)
    }

    pub(super) fn engine_backing(&self, index: usize) -> Option<Backing> {
        Some(self.backing(self.sections.engines.get(index)?))
    }

    pub(super) fn ledger_backing(&self, index: usize) -> Option<Backing> {
        Some(self.backing(self.sections.ledgers.get(index)?))
    }

    fn backing(&self, section: &TableSection) -> Backing {
        let TableSection { rows, overflow, eviction } = section.clone();
        Backing::Mapped(MappedTable { mapping: self.mapping.clone(), rows, overflow, eviction })
    }
}
