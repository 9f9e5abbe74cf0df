//! The rows of a file, moved to a file of another shape.
//!
//! ```text
//!   NAME            the old file, in use      ─────────────┬──────▶ no name, retired, still in use
//!   NAME.….tmp      made, filled, synced      ── rename ───┘
//! ```
//!
//! The new file is built under a temporary name, row by row, and gets its name by one rename. A
//! process that is killed on the way leaves the old file as it was, and a temporary one that the
//! next to open the folder removes. What users of the old file charge meanwhile is in the new one
//! or not, as it comes.
//!
//! **Rows** are found in the new file by the same hash: the seed is carried, and a key's home is a
//! function of the fingerprint that its row stores. A row that may still count for its key must
//! have a place, else nothing is moved. Idle rows are moved if there is room. The few rows that
//! keys share when a table is full are moved too, as they are: to begin them afresh would give keys
//! without a row more.
//!
//! **Cells.** Words of buckets, counters and fixed counts are readable under any numbers, so they
//! are copied. The entries of a log are laid out anew (see `window::moving`). Permits keep their
//! slots.
//!
//! **Time** goes on: the words of the clock are copied last. The new tables begin an era of
//! eviction, in which rows are kept for as long as any limits asked before the move.

use crate::algorithm::{Cell, Placed};
use crate::eviction::{self, Eviction};
use crate::limits::Limits;
use crate::memory::{Backing, Words};
use crate::storage::directory::{Directory, Temporary};
use crate::storage::error::FileError;
use crate::storage::layout::FileLayout;
use crate::storage::table_file::TableFile;
use crate::storage::tables::TableSections;
use crate::sync::Ordering;
use crate::table::Table;
use crate::table::row::{KeyWord, Row, Shape, State};

/// How often a row is read that changes hands all the while.
const MOST_READS: usize = 64;

/// The tables of a file, for moving their rows.
#[derive(Debug)]
pub struct FileTables {
    engines: Vec<(Limits, Table, Words)>,
    ledgers: Vec<Table>,
    offenders: Words,
    /// Whether rows are only given places, and not written.
    planned: bool,
}

/// Rows that count for their keys have no place in a table that is to take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// How many rows must have one.
    pub rows: usize,
}

/// Rows of so many words, which no limit judges.
struct Blank(usize);

impl Shape for Blank {
    fn row_words(&self) -> usize {
        self.0
    }
    fn is_idle(&self, _row: &Row<'_>, _now: u64) -> bool {
        false
    }
    fn reset_words(&self, _row: &Row<'_>, _incarnation: u64, _idle: bool, _now: u64) -> bool {
        false
    }
}

impl TableFile {
    /// The tables of the file, as they lie; `None` if it has no room for them.
    pub fn laid_out(&self, layout: &FileLayout) -> Option<FileTables> {
        FileTables::new(layout, Some(&self.tables(layout)?))
    }

    /// Begins a file that will take the place of this one, which is called `name`: of the same seed
    /// and clock, with tables of `words` words that are described by `shape`.
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
        Ok(Moving::new(made, file, name))
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

impl<'d> Moving<'d> {
    pub(crate) fn new(made: Temporary<'d>, file: TableFile, name: &str) -> Moving<'d> {
        Moving { made, file, name: name.to_string() }
    }

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
        self.publish_and(|| old.retire())
    }

    /// Puts the file in the place of one that has no words for a clock or for its users: of format
    /// 1.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn publish(self) -> Result<TableFile, FileError> {
        self.publish_and(|| ())
    }

    /// `then` is called once the file has the name, also if what is left to do fails.
    fn publish_and(self, then: impl FnOnce()) -> Result<TableFile, FileError> {
        self.made.replace_and(&self.name, then)?;
        self.file.share()?;
        Ok(self.file)
    }
}

impl FileTables {
    /// The tables of a file, or on the heap to plan a move.
    fn new(layout: &FileLayout, file: Option<&TableSections>) -> Option<FileTables> {
        let heap = || Some(Backing::Heap);
        let mut engines = Vec::new();
        for (index, (limits, capacity)) in layout.engines.iter().enumerate() {
            let backing = file.map_or_else(heap, |file| file.engine_backing(index))?;
            let table = Table::new(*capacity, limits, &backing)?;
            engines.push((limits.clone(), table, backing.eviction(eviction::WORDS)?));
        }
        let mut ledgers = Vec::new();
        for (index, &(notes, capacity)) in layout.ledgers.iter().enumerate() {
            let backing = file.map_or_else(heap, |file| file.ledger_backing(index))?;
            ledgers.push(Table::new(capacity, &Blank(1 + notes), &backing)?);
        }
        let offenders = match file {
            Some(file) => file.offender_words()?,
            None => Words::zeroed(TableSections::OFFENDER_WORDS, false)?,
        };
        Some(FileTables { engines, ledgers, offenders, planned: file.is_none() })
    }

    /// Tables that are in no file. What is moved to them is written nowhere, so that a move can be
    /// tried: whether each row that counts for its key has a place. `None` if there is no memory.
    pub fn planned(layout: &FileLayout) -> Option<FileTables> {
        FileTables::new(layout, None)
    }

    /// Moves the rows of engine `from` of another file to engine `to` of this one, which is new.
    /// Limit i of this engine goes on from limit `limits[i]` of the other, or starts fresh.
    ///
    /// All windows of an engine share a log. It goes on if one of them does, for all of them.
    ///
    /// # Errors
    /// If a row that counts for its key has no place.
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
            self.move_rows(old_table, new_table, is_live, copy)?;
        }
        Eviction::begin_after(old_words, new_words, now);
        Ok(())
    }

    /// Moves the rows of ledger `from` of another file to ledger `to` of this one. `is_idle` judges
    /// the notes of a row, and `change` says what they become.
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
        self.move_rows(&old.ledgers[from], &self.ledgers[to], is_live, copy)
    }

    /// Moves all rows of a table that are in use to another, which is new.
    fn move_rows(
        &self,
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
        if self.planned {
            return Ok(());
        }
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

    /// Copies the names of another file's top offenders.
    pub fn move_offenders(&self, old: &FileTables) {
        // ORDERING: Relaxed; a slot that is torn is told by its check.
        self.put_offenders(old.offenders.iter().map(|word| word.load(Ordering::Relaxed)));
    }

    pub(crate) fn put_offenders(&self, words: impl Iterator<Item = u64>) {
        for (new, word) in self.offenders.iter().zip(words) {
            // ORDERING: Relaxed, as above.
            new.store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn engine(&self, index: usize) -> &(Limits, Table, Words) {
        &self.engines[index]
    }

    pub(crate) fn ledger(&self, index: usize) -> &Table {
        &self.ledgers[index]
    }
}

/// The cells that go on, each with the one that it goes on from.
pub(crate) fn pairs<'a>(
    new: &'a Limits,
    old: &'a Limits,
    limits: &[Option<usize>],
) -> Vec<(&'a Placed, &'a Placed)> {
    let of_limit = |placed: &Placed, limit: usize| match &placed.cell {
        Cell::Windows(log) => log.has(limit),
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
        (Cell::Windows(from), Cell::Windows(to)) => {
            let entries = from.ring(old_row, old.at).read_out(now);
            to.ring(new_row, new.at).fill(entries, keep_us, now);
        }
        (Cell::Permits(from), Cell::Permits(to)) => {
            let words = from.moved(old_row, old.at, to.slots, now);
            words
                .iter()
                .enumerate()
                .for_each(|(at, word)| new_row.store_unshared(new.at + at, *word));
        }
        // The last word first: the count of a fixed limit is read before its span.
        _ => (0..new.cell.words()).rev().for_each(|at| {
            new_row.store_unshared(new.at + at, old_row.load(old.at + at));
        }),
    }
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
    let (mut state, mut sequence) = (State::Live, 1);
    for _ in 0..MOST_READS {
        let row = old.at(from);
        sequence = row.seen().sequence();
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
    // The sequence goes on: fresh words have tags made of it, and none may be written twice.
    // ORDERING: Relaxed, as in `store`.
    to.key.store(KeyWord::new(state, sequence, print).0, Ordering::Relaxed);
}

fn clear(row: &Row<'_>) {
    (0..row.words.len()).for_each(|at| row.store_unshared(at, 0));
}

#[cfg(all(test, not(tidegate_portable_atomic)))]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::algorithm::limit::Limit;
    use crate::engine::{Engine, Options};
    use crate::storage::directory::Access;
    use crate::storage::directory::steps::{self, SyncStep};
    use crate::storage::host::Host;
    use crate::table::Hash;
    use crate::table::row::step;

    const HOUR: Duration = Duration::from_secs(3_600);
    const NAME: &str = "a.table";
    const WORDS: usize = 20_000;

    fn folder(name: &str) -> (PathBuf, Directory) {
        let name = format!("tidegate-move-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        let directory = Directory::make(&path, Access::default()).unwrap();
        (path, directory)
    }

    fn made(directory: &Directory, host: &Host) -> TableFile {
        TableFile::create_in(directory, NAME, "old", WORDS, false, host).unwrap().unwrap()
    }

    fn layout(limits: &[Limit], capacity: usize) -> FileLayout {
        FileLayout { engines: vec![(Limits::new(limits).unwrap(), capacity)], ledgers: Vec::new() }
    }

    fn engine(file: &TableFile, limits: &[Limit], capacity: usize) -> Engine {
        let options = Options { capacity, clock: file.clock(), ..Options::default() };
        file.tables(&layout(limits, capacity))
            .unwrap()
            .engine(0, Limits::new(limits).unwrap(), options)
            .unwrap()
    }

    #[test]
    fn a_moved_file_is_whole_on_the_disk_before_it_takes_the_place() {
        let (path, directory) = folder("synced");
        let old = made(&directory, &Host::here());
        assert!(engine(&old, &[Limit::bucket(5, HOUR)], 10).allow(b"alice"));
        let (new, steps) = steps::of(|| {
            let moving = old.begin_move(&directory, NAME, "new", WORDS).unwrap();
            let tables = [&old, moving.file()]
                .map(|file| file.laid_out(&layout(&[Limit::bucket(1, HOUR)], 10)).unwrap());
            tables[1].move_engine(0, &tables[0], 0, &[Some(0)], old.clock().now()).unwrap();
            assert!(!old.is_retired());
            moving.finish(&old).unwrap()
        });
        let [SyncStep::Synced(synced), SyncStep::Named(named), SyncStep::FolderSynced] = &steps[..]
        else {
            panic!("{} steps", steps.len())
        };
        assert!(synced == named, "nothing is written between the sync and the name");
        assert_eq!((old.is_retired(), new.is_retired(), new.shape()), (true, false, "new"));
        assert_eq!(directory.names().unwrap(), [NAME]);
        drop((old, new));
        let again = TableFile::open_in(&directory, NAME, &Host::here()).unwrap().unwrap();
        let left = engine(&again, &[Limit::bucket(5, HOUR)], 10).peek(b"alice", 0).statuses[0];
        assert_eq!(left.remaining, 4);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn time_and_the_number_of_changes_go_on() {
        let (path, directory) = folder("time");
        let here = Host::here();
        drop(made(&directory, &here));
        // After a reboot the clock is ahead of the time since boot.
        let year = 365 * 86_400 * 1_000_000_000;
        let host = Host { boot: here.boot ^ 1, wall: here.wall + year, ..here };
        let old = TableFile::open_in(&directory, NAME, &host).unwrap().unwrap();
        old.keep().raise(77);
        (0..5).for_each(|_| old.generation().add());
        let before = old.clock().now();
        let new = old.begin_move(&directory, NAME, "new", 64).unwrap().finish(&old).unwrap();
        assert!(before > year && new.clock().now() >= before);
        assert!(new.clock().now() < before + year / 365);
        assert_eq!((new.keep().get(), new.generation().get()), (77, 5));
        drop(new);
        // And the wall clock is still the one that the file was made by.
        let host = Host { boot: here.boot ^ 2, wall: here.wall + 2 * year, ..here };
        let again = TableFile::open_in(&directory, NAME, &host).unwrap().unwrap();
        assert!(again.clock().now() > before + year - year / 365);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_of_a_row_is_its_keys_until_it_is_anothers() {
        let (path, directory) = folder("states");
        let old = made(&directory, &Host::here());
        let limits = [Limit::window(5, HOUR)];
        let hits = engine(&old, &limits, 10);
        (0..3).for_each(|_| assert!(hits.allow(b"sealed") && hits.allow(b"live")));
        let [tables, new] = [(); 2].map(|()| old.laid_out(&layout(&limits, 10)).unwrap());
        let table = &tables.engines[0].1;
        let hash = |key: &[u8]| hits.hash(key);
        let row = table.find(hash(b"sealed")).unwrap();
        step(row.key, row.seen(), row.seen().then(State::Sealed)).unwrap();
        let free =
            (0..table.rows()).find(|&at| table.at(at).seen() == KeyWord::NEVER_USED).unwrap();
        let pending = KeyWord::new(State::Pending, 1, KeyWord::print_of(hash(b"pending").0));
        step(table.at(free).key, KeyWord::NEVER_USED, pending).unwrap();
        drop(new);
        let moving = old.begin_move(&directory, NAME, "new", WORDS).unwrap();
        let new = moving.file().laid_out(&layout(&limits, 100)).unwrap();
        new.move_engine(0, &tables, 0, &[Some(0)], old.clock().now()).unwrap();
        let used = |key: &[u8]| engine(moving.file(), &limits, 100).peek(key, 0).statuses[0].used;
        assert_eq!([used(b"sealed"), used(b"live"), used(b"pending")], [3, 3, 0]);
        assert_eq!(new.engines[0].1.len(), 2);
        let sequence = |tables: &FileTables, key: &[u8]| {
            tables.engines[0].1.find(hash(key)).unwrap().seen().sequence()
        };
        assert!(sequence(&tables, b"live") > 1);
        assert_eq!(sequence(&new, b"live"), sequence(&tables, b"live"), "tags are not used again");
        std::fs::remove_dir_all(path).unwrap();
    }

    /// Whatever is charged before a move is in it, and nothing that never was.
    #[test]
    fn a_log_that_is_moved_while_others_write_has_all_that_was_before() {
        let (path, directory) = folder("busy");
        let limits = [Limit::window(300, HOUR)];
        for round in 0..30 {
            let _ = directory.remove(NAME);
            let old = made(&directory, &Host::here());
            let hits = engine(&old, &limits, 4);
            let charged = std::sync::atomic::AtomicU64::new(0);
            let get = || charged.load(std::sync::atomic::Ordering::SeqCst);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..280 {
                        assert!(hits.allow(b"busy"));
                        charged.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
                while get() < 280 {
                    let moving = old.begin_move(&directory, NAME, "new", WORDS).unwrap();
                    let [from, to] = [&old, moving.file()]
                        .map(|file| file.laid_out(&layout(&limits, 4)).unwrap());
                    let before = get();
                    to.move_engine(0, &from, 0, &[Some(0)], old.clock().now()).unwrap();
                    let after = get() + 1;
                    let found = engine(moving.file(), &limits, 4).peek(b"busy", 0).statuses[0].used;
                    assert!((before..=after).contains(&found), "{round}: {before} {found} {after}");
                }
            });
        }
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_full_table_has_a_place_for_each_in_any_other_of_as_many_rows() {
        let widths = [
            vec![Limit::bucket(5, HOUR)],
            vec![Limit::counter(5, HOUR)],
            vec![Limit::window(30, HOUR)],
        ];
        let backing = crate::memory::Backing::Heap;
        let tables = widths
            .map(|limits| Table::new(1_000, &Limits::new(&limits).unwrap(), &backing).unwrap());
        let rows = tables[0].rows();
        for (seed, table) in (0..20).flat_map(|seed| tables.iter().map(move |table| (seed, table)))
        {
            assert_eq!(table.rows(), rows);
            // As many as there are rows, as even as hashes are.
            let hasher = crate::table::hash::Hasher::portable(seed);
            let prints: Vec<u64> = (0..rows as u64)
                .map(|key| KeyWord::print_of(hasher.one(&key.to_le_bytes()).0))
                .collect();
            let places = table.arrange(&prints, &[]).expect("a place for each");
            let mut all: Vec<usize> = places.into_iter().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>(), "each place once");
        }
        let beyond = vec![Hash(7).as_u64(); 257];
        assert!(tables[0].arrange(&beyond[..256], &[]).is_some());
        assert!(tables[0].arrange(&beyond, &[]).is_none(), "a span has 256 rows");
        let others = tables[0].arrange(&beyond[..200], &beyond[..100]).unwrap();
        assert_eq!(others.iter().flatten().count(), 256, "the others as far as there is room");
    }
}
