//! Where everything lies in a table file. No other module states an offset or an order.
//!
//! ```text
//! byte     0  magic "TIDEGATE" │ format │ byte order │ header bytes │ file bytes │ seed │ probe
//!         56  clock kind │ time namespace │ made at │ shape bytes │ checksum
//!        512  clock: offset (ms) 40 │ boot 16 │ check 8     swapped once after each boot
//!        520  seen: 2^30 ns 34 │ check 30                   the latest time, about once a second
//!        528  boot id, 128 bits                             the boot that the clock is of
//!        576  generation                                    counts changes that all must look at
//!        584  keep                                          how long notes matter, in ns
//!        592  retired                                       1 once another table took its place
//!        640  eviction: 8 words for each of 4 engines       see `eviction`
//!       1024  shape: text that says what the tables are
//!  header     for each engine, then for each ledger:        from a page on
//!               its rows, then the rows that keys share     each from a cache line on
//!             top offenders                                 see `offenders`
//! ```
//!
//! The checksum covers the words before it and the shape. [`at`] names the header's words. A
//! [`FileLayout`] says which tables a file has, and [`Sections`] where they lie. Format 1 has the
//! same sections, but other sizes of rows and no eviction words.

use std::ops::Range;

use super::offenders;
use crate::eviction;
use crate::limits::Limits;
use crate::memory::LINE_WORDS;
use crate::table::{TableWords, words_for};

/// Tables begin at a page, and a file ends at one.
pub(super) const PAGE: usize = 4096;
/// The byte at which the shape begins.
pub(super) const SHAPE_AT: usize = 1024;
/// Bytes of the longest shape: what is read of a file before its header is checked.
pub(super) const MOST_SHAPE: u64 = 1 << 20;
/// Engines that a file has room for; ledgers don't count.
const MOST_ENGINES: usize = 4;
/// The eviction words of all engines.
pub(super) const EVICTION: Range<usize> =
    at::EVICTION..at::EVICTION + MOST_ENGINES * eviction::WORDS;
const _: () = assert!(EVICTION.end <= SHAPE_AT / 8);

/// Words of the header, by number.
pub(super) mod at {
    pub(in crate::storage) const MAGIC: usize = 0;
    pub(in crate::storage) const FORMAT: usize = 1;
    pub(in crate::storage) const BYTE_ORDER: usize = 2;
    pub(in crate::storage) const HEADER: usize = 3;
    pub(in crate::storage) const FILE: usize = 4;
    pub(in crate::storage) const SEED: usize = 5;
    pub(in crate::storage) const PROBE: usize = 6;
    pub(in crate::storage) const CLOCK_KIND: usize = 7;
    pub(in crate::storage) const NAMESPACE: usize = 8;
    pub(in crate::storage) const MADE_AT: usize = 9;
    pub(in crate::storage) const SHAPE: usize = 10;
    pub(in crate::storage) const CHECKSUM: usize = 11;
    pub(in crate::storage) const CLOCK: usize = 64;
    pub(in crate::storage) const SEEN: usize = 65;
    /// Two words, the lower half first.
    pub(in crate::storage) const BOOT: usize = 66;
    pub(in crate::storage) const GENERATION: usize = 72;
    pub(in crate::storage) const KEEP: usize = 73;
    pub(in crate::storage) const RETIRED: usize = 74;
    pub(in crate::storage) const EVICTION: usize = 80;
}

/// Bytes of a header with a shape of so many bytes.
pub(super) fn header_bytes(shape: usize) -> usize {
    (SHAPE_AT + shape).next_multiple_of(PAGE)
}

/// Bytes of a file with such a header, and so many words after it.
pub(super) fn file_bytes(header: usize, words: usize) -> usize {
    (header + words * 8).next_multiple_of(PAGE)
}

/// Which tables a file has.
#[derive(Clone, Debug)]
pub struct FileLayout {
    /// The limits of each engine, of which only the shape matters, and its capacity.
    pub engines: Vec<(Limits, usize)>,
    /// The notes of each ledger, and its capacity.
    pub ledgers: Vec<(usize, usize)>,
}

/// Where one table lies, by numbers of words in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableSection {
    pub(crate) rows: Range<usize>,
    /// Rows that keys share when the table is full.
    pub(crate) overflow: Range<usize>,
    /// Words of the header that the users of an engine share; none of a ledger.
    pub(crate) eviction: Range<usize>,
}

/// Where the tables of a file lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    pub(crate) engines: Vec<TableSection>,
    pub(crate) ledgers: Vec<TableSection>,
    pub(crate) offenders: Range<usize>,
}

impl FileLayout {
    /// Where these tables lie from word `start` on; `None` if that is beyond counting, or if a file
    /// has no room for so many engines.
    pub(crate) fn sections(&self, start: usize) -> Option<Sections> {
        let engine =
            |(limits, capacity): &(Limits, usize)| words_for(*capacity, limits.row_words());
        let ledger = |&(notes, capacity): &(usize, usize)| words_for(capacity, 1 + notes);
        let engines: Option<Vec<TableWords>> = self.engines.iter().map(engine).collect();
        let ledgers: Option<Vec<TableWords>> = self.ledgers.iter().map(ledger).collect();
        Sections::new(start, &engines?, &ledgers?)
    }
}

impl Sections {
    /// Sections for tables of these sizes, from word `start` on.
    pub(crate) fn new(
        start: usize,
        engines: &[TableWords],
        ledgers: &[TableWords],
    ) -> Option<Sections> {
        let mut next = start;
        let mut section = |words: usize| {
            let all = next..next.checked_add(words)?;
            next = all.end.checked_next_multiple_of(LINE_WORDS)?;
            Some(all)
        };
        let mut table = |words: &TableWords, eviction: Range<usize>| {
            let rows = section(words.rows)?;
            Some(TableSection { rows, overflow: section(words.overflow)?, eviction })
        };
        let numbered = engines.iter().enumerate();
        let engines = numbered.map(|(index, words)| table(words, eviction_of(index)?)).collect();
        let ledgers = ledgers.iter().map(|words| table(words, 0..0)).collect();
        let (engines, ledgers): (Option<_>, Option<_>) = (engines, ledgers);
        Some(Sections {
            engines: engines?,
            ledgers: ledgers?,
            offenders: section(offenders::WORDS)?,
        })
    }
}

/// The eviction words of one engine.
fn eviction_of(engine: usize) -> Option<Range<usize>> {
    let start = EVICTION.start + engine * eviction::WORDS;
    (engine < MOST_ENGINES).then_some(start..start + eviction::WORDS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::algorithm::limit::Limit;

    /// Files of this format exist: a number that changes here needs a new format.
    #[test]
    fn sections_lie_where_files_of_format_2_have_them() {
        let minute = Duration::from_secs(60);
        let limits = |limit: Limit| Limits::new(&[limit]).unwrap();
        let engines = vec![
            (limits(Limit::bucket(5, minute)), 10),
            (limits(Limit::concurrent(9, minute)), 10),
        ];
        let layout = FileLayout { engines, ledgers: vec![(3, 10), (1, 1)] };
        let section = |rows, overflow, eviction| TableSection { rows, overflow, eviction };
        let expected = Sections {
            // 16 rows of 2 words, then 16 key words and 16 times 9 slots.
            engines: vec![section(512..544, 544..560, 80..88), section(560..720, 720..800, 88..96)],
            ledgers: vec![section(800..864, 864..896, 0..0), section(896..912, 912..928, 0..0)],
            offenders: 928..1600,
        };
        assert_eq!(layout.sections(header_bytes(7) / 8), Some(expected));
        assert_eq!(file_bytes(header_bytes(7), 1600 - 512), 4 * PAGE);
    }

    #[test]
    fn a_file_has_room_for_four_engines() {
        let limits = Limits::new(&[Limit::bucket(5, Duration::from_secs(60))]).unwrap();
        let of =
            |engines| FileLayout { engines: vec![(limits.clone(), 1); engines], ledgers: vec![] };
        assert!(of(MOST_ENGINES).sections(512).is_some());
        assert!(of(MOST_ENGINES + 1).sections(512).is_none());
        assert!(of(1).sections(usize::MAX - 8).is_none(), "beyond counting");
    }
}
