//! The rows of a file, moved to a file of another shape.
//!
//! ```text
//!   NAME            the old file, in use      ─────────────┬──────▶ no name, retired; its users go on in it
//!   NAME.….tmp      made, filled, synced      ── rename ───┘
//! ```
//!
//! The new file is built under a temporary name, row by row, and gets its name by one rename. A process
//! that is killed on the way leaves the old file as it was, and a temporary one that the next to open
//! the folder removes. What users of the old file charge meanwhile is in the new one or not, as it comes.
//!
//! **Rows** are found in the new file by the same hash: the seed is carried, and a key's home is a function
//! of the fingerprint that its row stores. A row that may still count for somebody must have a place, else
//! nothing is moved. Idle rows are moved if there is room. The few rows that keys share when a table is
//! full are moved too, as they are: to begin them afresh would give keys without a row more.
//!
//! **Cells.** Words of buckets, counters and fixed counts are readable under any numbers, so they are copied.
//! The entries of a log are laid out anew (see `window::moving`). Permits keep their slots.
//!
//! **Time** goes on: the words of the clock are copied last. The new tables begin an era of eviction, in
//! which rows are kept for as long as anybody's numbers asked before the move.

use crate::directory::{Directory, Temporary};
use crate::eviction::Eviction;
use crate::file::{FileError, TableFile, Tables};
use crate::limit::{Cell, Limits, Placed};
use crate::memory::Words;
use crate::row::{KeyWord, Row, Shape, State};
use crate::sync::Ordering;
use crate::table::Table;
use crate::window::Ring;

/// How often a row is read that changes hands all the while.
const LOOKS: usize = 64;

/// How the tables of a file lie.
#[derive(Clone, Debug)]
pub struct FileLayout {
    /// The limits of each engine, of which only the shape matters, and its capacity.
    pub engines: Vec<(Limits, usize)>,
    /// The notes of each ledger, and its capacity.
    pub ledgers: Vec<(usize, usize)>,
}

/// The tables of a file, for one who moves their rows.
#[derive(Debug)]
pub struct FileTables {
    engines: Vec<(Limits, Table, Words)>,
    ledgers: Vec<Table>,
    board: Words,
}

/// Rows that count for somebody have no place in a table that is to take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// How many rows must have one.
    pub rows: usize,
}

/// Rows of so many words, which nobody judges.
struct Blank(usize);

impl Shape for Blank {
    fn row_words(&self) -> usize {
        self.0
    }
    fn is_idle(&self, _row: &Row<'_>, _now: u64) -> bool {
        false
    }
    fn freshen(&self, _row: &Row<'_>, _incarnation: u64, _idle: bool, _now: u64) -> bool {
        false
    }
}

impl TableFile {
    /// The tables of the file, as they lie; `None` if it has no room for them.
    pub fn laid_out(&self, layout: &FileLayout) -> Option<FileTables> {
        let Tables { space, .. } = &self.tables();
        let mut engines = Vec::new();
        for (limits, capacity) in &layout.engines {
            let table = Table::new(*capacity, limits, space)?;
            engines.push((limits.clone(), table, space.shared()?));
        }
        let ledger =
            |&(notes, capacity): &(usize, usize)| Table::new(capacity, &Blank(1 + notes), space);
        let ledgers = layout.ledgers.iter().map(ledger).collect::<Option<_>>()?;
        let board = space.words(Tables::BOARD_WORDS, false)?;
        Some(FileTables { engines, ledgers, board })
    }

    /// Begins a file that will take the place of this one, which is called `name`: of the same seed and
    /// clock, with tables of `words` words that are described by `shape`.
    ///
    /// # Errors
    /// If there is no room, or no right to make it. Then nothing is left behind.
    pub fn begin_move<'d>(
        &self,
        directory: &'d Directory,
        name: &str,
        shape: &str,
        words: usize,
    ) -> Result<Moving<'d>, FileError> {
        let made = Temporary::named(directory, name)?;
        let entry = directory.entry(name, &made.file)?;
        let file = self.successor(entry, &made.file, shape, words)?;
        Ok(Moving { made, file, name: name.to_string() })
    }
}

/// A file that is to take another's place. Dropped, it is gone.
pub struct Moving<'d> {
    made: Temporary<'d>,
    file: TableFile,
    name: String,
}

impl std::fmt::Debug for Moving<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moving").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Moving<'_> {
    /// The file that is being filled.
    pub fn file(&self) -> &TableFile {
        &self.file
    }

    /// Puts the file in the place of `old`, for good, and tells the users of that one.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn finish(self, old: &TableFile) -> Result<TableFile, FileError> {
        self.file.go_on_from(old);
        self.made.replace(&self.name)?;
        self.file.share()?;
        old.retire();
        Ok(self.file)
    }
}

impl FileTables {
    /// Moves the rows of engine `from` of another file to engine `to` of this one, which is new. Limit i
    /// of this engine goes on from limit `limits[i]` of the other, or starts fresh.
    ///
    /// All windows of an engine share a log. It goes on if one of them does, for all of them.
    ///
    /// # Errors
    /// If a row that counts for somebody has no place.
    pub fn move_engine(
        &self,
        to: usize,
        old: &FileTables,
        from: usize,
        limits: &[Option<usize>],
        now: u64,
    ) -> Result<(), NoPlace> {
        let (new_limits, new_table, new_words) = &self.engines[to];
        let (old_limits, old_table, old_words) = &old.engines[from];
        let cells = pairs(new_limits, old_limits, limits);
        let horizon = Eviction::horizon_of(old_words, now);
        let keep_us = Eviction::window_of(old_words);
        let is_live =
            |row: &Row<'_>| cells.iter().any(|(_, old)| !old.is_untouched_for(horizon, row, now));
        let copy = |old_row: &Row<'_>, new_row: &Row<'_>| {
            let moved = |(new, old): &(&Placed, &Placed)| {
                move_cell(old, old_row, new, new_row, (keep_us, now));
            };
            cells.iter().for_each(moved);
        };
        if !cells.is_empty() {
            move_rows(old_table, new_table, is_live, copy)?;
        }
        Eviction::begin_after(old_words, new_words, now);
        Ok(())
    }

    /// Moves the rows of ledger `from` of another file to ledger `to` of this one. `is_idle` judges the
    /// notes of a row, and `change` says what they become.
    ///
    /// # Errors
    /// If a row that is not idle has no place.
    pub fn move_ledger<const W: usize>(
        &self,
        to: usize,
        old: &FileTables,
        from: usize,
        is_idle: impl Fn(&[u64; W]) -> bool,
        change: impl Fn(&mut [u64; W]),
    ) -> Result<(), NoPlace> {
        let is_live = |row: &Row<'_>| !is_idle(&crate::ledger::notes(row));
        let copy = |old_row: &Row<'_>, new_row: &Row<'_>| {
            let mut notes = crate::ledger::notes::<W>(old_row);
            change(&mut notes);
            crate::ledger::store_notes(new_row, &notes);
        };
        move_rows(&old.ledgers[from], &self.ledgers[to], is_live, copy)
    }

    /// Copies the names of another file's board.
    pub fn move_board(&self, old: &FileTables) {
        for (new, old) in self.board.iter().zip(&*old.board) {
            // ORDERING: Relaxed; a slot that is torn is told by its check.
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The cells that go on, each with the one that it goes on from.
fn pairs<'a>(
    new: &'a Limits,
    old: &'a Limits,
    limits: &[Option<usize>],
) -> Vec<(&'a Placed, &'a Placed)> {
    let of_limit = |placed: &Placed, limit: usize| match &placed.cell {
        Cell::Ring { windows, .. } => windows.iter().any(|window| window.index == limit),
        _ => placed.index == limit,
    };
    let origin = |new: &'a Placed| {
        let is_from = |placed: &&Placed| {
            let mut each = limits.iter().enumerate();
            each.any(|(limit, from)| {
                of_limit(new, limit) && from.is_some_and(|from| of_limit(placed, from))
            })
        };
        let like =
            |old: &&Placed| std::mem::discriminant(&old.cell) == std::mem::discriminant(&new.cell);
        Some((new, old.placed.iter().find(|old| like(old) && is_from(old))?))
    };
    new.placed.iter().filter_map(origin).collect()
}

fn move_cell(
    old: &Placed,
    old_row: &Row<'_>,
    new: &Placed,
    new_row: &Row<'_>,
    (keep_us, now): (u64, u64),
) {
    match (&old.cell, &new.cell) {
        (Cell::Ring { slots: from, .. }, Cell::Ring { slots: to, .. }) => {
            let entries = Ring::new(old_row, old.at, *from).read_out(now);
            Ring::new(new_row, new.at, *to).fill(entries, keep_us, now);
        }
        (Cell::Permits(from), Cell::Permits(to)) => {
            let words = from.moved(old_row, old.at, to.slots, now);
            words.iter().enumerate().for_each(|(at, word)| store(new_row, new.at + at, *word));
        }
        // The last word first: the count of a fixed limit is read before its span.
        _ => (0..new.cell.words()).rev().for_each(|at| {
            store(new_row, new.at + at, old_row.load(old.at + at));
        }),
    }
}

/// Writes a word of a row that nobody else has.
pub(crate) fn store(row: &Row<'_>, at: usize, word: u64) {
    // ORDERING: Relaxed; the file is published by a rename, after a sync.
    row.words[at].store(word, Ordering::Relaxed);
}

/// Moves all rows of a table that are in use to another, which is new.
fn move_rows(
    old: &Table,
    new: &Table,
    is_live: impl Fn(&Row<'_>) -> bool,
    copy: impl Fn(&Row<'_>, &Row<'_>),
) -> Result<(), NoPlace> {
    let used = |place: &usize| is_used(&old.at(*place));
    let (live, idle): (Vec<usize>, Vec<usize>) =
        (0..old.rows()).filter(used).partition(|&place| is_live(&old.at(place)));
    let prints = |places: &[usize]| -> Vec<u64> {
        places.iter().map(|&place| old.at(place).seen().print().max(1)).collect()
    };
    let (must, others) = (prints(&live), prints(&idle));
    let places = new.arrange(&must, &others).ok_or(NoPlace { rows: live.len() })?;
    let sources = live.iter().chain(&idle).zip(must.iter().chain(&others));
    for ((&from, &print), to) in sources.zip(places) {
        if let Some(to) = to {
            move_row(old, from, &new.at(to), print, &copy);
        }
    }
    for (from, to) in old.shared_rows().zip(new.shared_rows()) {
        copy(&from, &to);
    }
    Ok(())
}

/// Whether a key has the row. A sealed one is its key's until it is handed over.
fn is_used(row: &Row<'_>) -> bool {
    matches!(row.seen().state(), State::Live | State::Sealed)
}

/// Moves a row, unless it went to another key meanwhile: then all that its own had spent was back.
fn move_row(
    old: &Table,
    from: usize,
    to: &Row<'_>,
    print: u64,
    copy: &impl Fn(&Row<'_>, &Row<'_>),
) {
    let is_its = |row: &Row<'_>| is_used(row) && row.seen().print().max(1) == print;
    let mut state = State::Live;
    for _ in 0..LOOKS {
        let row = old.at(from);
        clear(to);
        if !is_its(&row) {
            // Free, not never used: rows of other keys may lie behind it.
            state = State::Free;
            break;
        }
        copy(&row, to);
        if old.at(from).seen() == row.seen() {
            break;
        }
    }
    // ORDERING: Relaxed, as in `store`.
    to.key.store(KeyWord::new(state, 1, print).0, Ordering::Relaxed);
}

fn clear(row: &Row<'_>) {
    (0..row.words.len()).for_each(|at| store(row, at, 0));
}
