//! The words of a table: zeroed, aligned to cache lines, never moved.
//!
//! All `unsafe` for raw memory is below this module. Tables see a slice of atomics and nothing
//! else, so rows may as well lie in bytes that other processes map.

#[cfg(not(all(test, loom)))]
mod heap;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod mapped;

#[cfg(all(test, loom))]
use crate::sync::AtomicU64;

/// Bytes of a cache line on the processors we know; two lines are fetched together on some, which
/// costs a table nothing.
pub(crate) const LINE_BYTES: usize = 64;
/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / 8;

#[cfg(not(all(test, loom)))]
pub(crate) use heap::Words;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) use mapped::{MappedTable, MappedWord, Mapping};

/// Where a table's words come from.
#[derive(Debug)]
pub(crate) enum Backing {
    /// This process alone.
    Heap,
    /// The table's sections of a mapped file.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    Mapped(MappedTable),
}

impl Backing {
    /// `len` words for rows: zeroed, or in a file those that are there. `dense` ones are all
    /// touched sooner or later. `None` if there is no memory for them, or the file's section has
    /// another size.
    pub(crate) fn rows(&self, len: usize, dense: bool) -> Option<Words> {
        match self {
            Backing::Heap => Words::zeroed(len, dense),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Backing::Mapped(table) => table.words(&table.rows, len),
        }
    }

    /// As [`Backing::rows`], for the rows that keys share when the table is full.
    pub(crate) fn overflow(&self, len: usize) -> Option<Words> {
        match self {
            Backing::Heap => Words::zeroed(len, true),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Backing::Mapped(table) => table.words(&table.overflow, len),
        }
    }

    /// As [`Backing::rows`], for what the users of an engine's table share about eviction.
    pub(crate) fn eviction(&self, len: usize) -> Option<Words> {
        match self {
            Backing::Heap => Words::zeroed(len, false),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Backing::Mapped(table) => table.words(&table.eviction, len),
        }
    }
}

/// A modelled atomic is a ticket and not the value, so models run on a boxed slice.
#[cfg(all(test, loom))]
#[derive(Debug)]
pub(crate) struct Words(Box<[AtomicU64]>);

#[cfg(all(test, loom))]
impl Words {
    pub(crate) fn zeroed(len: usize, _dense: bool) -> Option<Words> {
        Some(Words((0..len).map(|_| AtomicU64::new(0)).collect()))
    }
    pub(crate) fn prefetch(&self, _index: usize) {}
}

#[cfg(all(test, loom))]
impl std::ops::Deref for Words {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}
