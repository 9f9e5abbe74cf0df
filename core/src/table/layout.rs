//! How many rows a table has, and where their words lie.

use crate::memory::LINE_WORDS;

/// Rows that keys share when the table is full.
pub(super) const OVERFLOW_ROWS: usize = 8;

/// Where words of row i are: the key's at `keys.0 + i·keys.1`, the state's at `states.0 +
/// i·states.1`.
///
/// Rows of up to eight words lie whole in a cache line. Wider ones keep their key words apart,
/// eight to a line, so that probing does not touch a line for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: usize,
    pub(super) keys: usize,
    pub(super) states: (usize, usize),
    pub(super) width: usize,
    /// The bits of a row's number that tell the rows apart whose key words share a cache line.
    pub(super) in_line: usize,
}

impl Layout {
    pub(super) fn new(rows: usize, row_words: usize) -> Layout {
        let width = row_words - 1;
        if row_words <= LINE_WORDS {
            let keys = row_words.next_power_of_two();
            let line = LINE_WORDS / keys;
            let rows = rows.next_multiple_of(line);
            return Layout { rows, keys, states: (1, keys), width, in_line: line - 1 };
        }
        let rows = rows.next_multiple_of(LINE_WORDS);
        Layout { rows, keys: 1, states: (rows, width), width, in_line: LINE_WORDS - 1 }
    }

    pub(super) fn words(&self) -> usize {
        match self.keys {
            1 => self.rows * (1 + self.width),
            keys => self.rows * keys,
        }
    }
}

/// Half as many again as keys, so that probing stays short. It is a multiple of any number of rows
/// in a line, so that a full table can be moved to one of another width. Models have as few rows as
/// there can be.
pub(super) fn rows_for(capacity: usize) -> Option<usize> {
    let rows = capacity.max(1).checked_mul(3)?.div_ceil(2);
    if cfg!(all(test, loom)) { Some(rows) } else { rows.checked_next_multiple_of(LINE_WORDS) }
}

/// Words of a table: its rows, and those that keys share when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableWords {
    pub(crate) rows: usize,
    pub(crate) overflow: usize,
}

/// Words of a table for `capacity` keys. `None` if they are beyond counting.
pub(crate) fn words_for(capacity: usize, row_words: usize) -> Option<TableWords> {
    let rows = rows_for(capacity)?;
    let padded = row_words.checked_next_power_of_two()?;
    rows.checked_mul(16 * padded)?;
    let rows = Layout::new(rows, row_words).words();
    Some(TableWords { rows, overflow: OVERFLOW_ROWS * row_words })
}

/// Bytes of a table for `capacity` keys, in whole cache lines. `None` if they are beyond counting.
pub(crate) fn bytes_for(capacity: usize, row_words: usize) -> Option<u64> {
    let TableWords { rows, overflow } = words_for(capacity, row_words)?;
    let words = rows.next_multiple_of(LINE_WORDS) + overflow.next_multiple_of(LINE_WORDS);
    Some(words as u64 * 8)
}
