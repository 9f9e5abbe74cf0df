//! Notes on keys: a few words each, whose meaning is the caller's.
//!
//! A table like the engine's, by the same row protocol, for what a key's denials and spending lead
//! to. Keys without notes have no row, so the table stays small and near. The caller says with each
//! call when notes are *idle*, that is worth as much as none: such a row may go to another key.
//!
//! A note has 60 bits. The lowest four bits of its word are the row's incarnation. So a thread that
//! slept since a row's earlier life can't take a note for the one that it saw then.

use crate::memory::Backing;
use crate::table::hash::Hasher;
use crate::table::row::{Row, Shape, WordStep, is_busy};
use crate::table::{Hash, OutOfMemory, Table, bytes_for};

const INCARNATION_BITS: u32 = 4;
const INCARNATION: u64 = (1 << INCARNATION_BITS) - 1;

/// When the notes of a key are worth as much as none.
pub type IdleNotes<'a, const W: usize> = &'a dyn Fn(&[u64; W]) -> bool;

/// `W` notes of 60 bits for each key that has any.
///
/// ```
/// use tidegate_core::Ledger;
///
/// let ledger: Ledger<1> = Ledger::new(100, 7).unwrap();
/// let alice = ledger.hash_parts(&[b"alice"]);
/// let idle = |notes: &[u64; 1]| notes[0] == 0;
/// assert_eq!(ledger.read(alice), None);
/// assert_eq!(ledger.update(alice, 0, &idle, |note| (note + 5, note)), Some(0));
/// assert_eq!(ledger.read(alice), Some([5]));
/// ledger.reset(alice);
/// assert_eq!(ledger.prune(&idle), 1);
/// ```
#[derive(Debug)]
pub struct Ledger<const W: usize> {
    table: Table,
    hasher: Hasher,
}

/// What the table has to know about rows of notes.
struct Notes<'a, const W: usize>(IdleNotes<'a, W>);

/// The notes of a row.
pub(crate) fn notes<const W: usize>(row: &Row<'_>) -> [u64; W] {
    std::array::from_fn(|at| row.load(at) >> INCARNATION_BITS)
}

/// Writes the notes of a row that no other thread has.
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) fn store_notes<const W: usize>(row: &Row<'_>, notes: &[u64; W]) {
    let words = notes.iter().map(|note| note << INCARNATION_BITS);
    words.enumerate().for_each(|(at, word)| row.store_unshared(at, word));
}

impl<const W: usize> Shape for Notes<'_, W> {
    fn row_words(&self) -> usize {
        1 + W
    }
    fn is_idle(&self, row: &Row<'_>, _now: u64) -> bool {
        (self.0)(&notes(row))
    }
    fn reset_words(&self, row: &Row<'_>, incarnation: u64, idle: bool, now: u64) -> bool {
        let judge = || self.is_idle(row, now);
        (0..W).all(|at| {
            loop {
                let seen = row.load(at);
                if is_busy(idle.then_some(&judge)) || row.check().is_err() {
                    return false;
                }
                if row.replace(at, seen, incarnation & INCARNATION).is_ok() {
                    return true;
                }
            }
        })
    }
}

/// For rows that are cleared whatever they hold.
fn never<const W: usize>(_: &[u64; W]) -> bool {
    false
}

impl<const W: usize> Ledger<W> {
    /// A ledger with room for `capacity` keys, which hashes as an engine of this seed does.
    ///
    /// # Errors
    /// If memory for the table can't be had.
    pub fn new(capacity: usize, seed: u64) -> Result<Ledger<W>, OutOfMemory> {
        Ledger::new_in(capacity, Hasher::local(Some(seed)), &Backing::Heap)
    }

    pub(crate) fn new_in(
        capacity: usize,
        hasher: Hasher,
        backing: &Backing,
    ) -> Result<Ledger<W>, OutOfMemory> {
        let error = OutOfMemory { capacity, row_words: 1 + W };
        let table = Table::new(capacity, &Notes(&never::<W>), backing).ok_or(error)?;
        Ok(Ledger { table, hasher })
    }

    /// What [`Ledger::bytes`] of such a ledger will be; `None` if that is beyond counting.
    pub fn bytes_for(capacity: usize) -> Option<u64> {
        bytes_for(capacity, 1 + W)
    }

    /// The hash of a key, as [`Engine::hash_parts`](crate::Engine::hash_parts).
    pub fn hash_parts(&self, parts: &[&[u8]]) -> Hash {
        self.hasher.parts(parts)
    }

    /// The notes on a key, if there are any.
    pub fn read(&self, hash: Hash) -> Option<[u64; W]> {
        steadily(|| self.table.find(hash), read_in)
    }

    /// As [`Ledger::read`], or the notes that a key shares because every place is taken.
    pub fn read_or_shared(&self, hash: Hash, idle: IdleNotes<'_, W>) -> Option<[u64; W]> {
        steadily(|| self.table.find_or_shared(hash, &Notes(idle), 0), read_in)
    }

    /// Changes a note by `change`, which says what it becomes and what to return; it may be asked
    /// again if others are at it. Makes a row if need be; `None` if every place is taken.
    pub fn update<R>(
        &self,
        hash: Hash,
        at: usize,
        idle: IdleNotes<'_, W>,
        mut change: impl FnMut(u64) -> (u64, R),
    ) -> Option<R> {
        steadily(|| self.own(hash, idle), |row| change_in(row, at, &mut change))
    }

    /// As [`Ledger::update`], but a key that finds every place taken shares notes with others:
    /// never `None`.
    pub fn update_or_share<R>(
        &self,
        hash: Hash,
        at: usize,
        idle: IdleNotes<'_, W>,
        mut change: impl FnMut(u64) -> (u64, R),
    ) -> Option<R> {
        let row = || self.own(hash, idle).or_else(|| Some(self.table.overflow(hash)));
        steadily(row, |row| change_in(row, at, &mut change))
    }

    /// As [`Ledger::update`], for a key that has notes; `None` if it has none.
    pub fn update_known<R>(
        &self,
        hash: Hash,
        at: usize,
        mut change: impl FnMut(u64) -> (u64, R),
    ) -> Option<R> {
        steadily(|| self.table.find(hash), |row| change_in(row, at, &mut change))
    }

    /// The key's row, made if need be.
    fn own(&self, hash: Hash, idle: IdleNotes<'_, W>) -> Option<Row<'_>> {
        self.table.find_or_insert(hash, &Notes(idle), 0).ok().map(|(row, _)| row)
    }

    /// Forgets a key's notes.
    pub fn reset(&self, hash: Hash) {
        self.table.reset(hash, &Notes(&never::<W>), 0);
    }

    /// Forgets all notes.
    pub fn reset_all(&self) {
        self.table.reset_all(&Notes(&never::<W>), 0);
    }

    /// Drops idle rows, and says how many.
    pub fn prune(&self, idle: IdleNotes<'_, W>) -> usize {
        self.table.prune(&Notes(idle), 0)
    }

    /// Rows in use.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no key has notes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all rows, fixed from the start.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

/// Acts on a row that `find` finds, again if it was another's by then.
fn steadily<'t, R>(
    find: impl Fn() -> Option<Row<'t>>,
    mut act: impl FnMut(&Row<'t>) -> Option<R>,
) -> Option<R> {
    loop {
        if let Some(result) = act(&find()?) {
            return Some(result);
        }
    }
}

/// All notes; `None` if the row is another's by now.
fn read_in<const W: usize>(row: &Row<'_>) -> Option<[u64; W]> {
    let seen = notes(row);
    row.check().is_ok().then_some(seen)
}

/// One change of one note; `None` if the row is another's by now.
fn change_in<R>(row: &Row<'_>, at: usize, change: &mut impl FnMut(u64) -> (u64, R)) -> Option<R> {
    let mut step = |seen: u64| {
        let (note, result) = change(seen >> INCARNATION_BITS);
        match note << INCARNATION_BITS | seen & INCARNATION {
            same if same == seen => WordStep::Keep(result),
            next => WordStep::Write(next, result),
        }
    };
    row.steadily(|row| row.update(at, &mut step)).ok()
}
