//! A row: a key word and the state words of its limits.
//!
//! ```text
//!  63..62   61 … 48      47 … 0
//! ┌───────┬──────────┬─────────────┐
//! │ state │ sequence │ fingerprint │      0: never used
//! └───────┴──────────┴─────────────┘
//!
//!            claim                 settle
//!   free ───────────────▶ pending ────────▶ live ◀─┐
//!     ▲                    │    ▲            │     │ reopen
//!     │      withdraw      │    │ hand over  │seal │
//!     ├────────────────────┘    └────────── sealed ┘
//!     └──────────────────────────────────────┘ free (prune)
//! ```
//!
//! Every step adds one to the sequence, so a thread that slept through a row's other life can't
//! finish what it had begun: its compare-and-swap names a sequence that is gone.
//!
//! * **pending** — a thread wants the row for this key. No key is charged in it. Any thread may
//!   settle it (make it live, if the key has no other row) or withdraw it, so a dead claimant
//!   blocks nobody.
//! * **live** — the key's row. State words are changed by compare-and-swap from a value that was
//!   loaded *before* the key word was seen live and unchanged: [`Row::update`].
//! * **sealed** — a thread wants to give the idle row to another key, or to clear it. State words
//!   turn fresh one by one, each only if it is still idle. A hit with the row's own key reopens
//!   it first, which makes the taker's last step fail.

use std::cell::Cell;

use crate::sync::{AtomicU64, Ordering};

const PRINT_BITS: u32 = 48;
const SEQUENCE_BITS: u32 = 14;
const PRINT_MASK: u64 = (1 << PRINT_BITS) - 1;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// What may be done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Free = 0,
    Pending = 1,
    Live = 2,
    Sealed = 3,
}

/// Whose a row is, and in what state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyWord(pub(crate) u64);

impl KeyWord {
    pub(crate) const NEVER_USED: KeyWord = KeyWord(0);
    /// The first word of rows that keys share when the table is full: live, and never claimed. Its
    /// fingerprint is no key's.
    pub(crate) const SHARED: KeyWord = KeyWord((State::Live as u64) << 62);

    pub(crate) fn new(state: State, sequence: u64, print: u64) -> KeyWord {
        debug_assert!(print != 0 && print <= PRINT_MASK);
        let sequence = (sequence & SEQUENCE_MASK) << PRINT_BITS;
        KeyWord((state as u64) << 62 | sequence | print)
    }

    /// A fingerprint is never 0, so that no used row looks never used.
    #[inline]
    pub(crate) fn print_of(hash: u64) -> u64 {
        (hash & PRINT_MASK).max(1)
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match self.0 >> 62 {
            0 => State::Free,
            1 => State::Pending,
            2 => State::Live,
            _ => State::Sealed,
        }
    }

    #[inline]
    pub(crate) fn print(self) -> u64 {
        self.0 & PRINT_MASK
    }

    pub(crate) fn sequence(self) -> u64 {
        (self.0 >> PRINT_BITS) & SEQUENCE_MASK
    }

    /// Whether keys share the row because the table is full.
    #[inline]
    pub(crate) fn is_shared(self) -> bool {
        self.is_live(KeyWord::SHARED.print())
    }

    /// The next word of a shared row, after it was cleared.
    pub(crate) fn shared_again(self) -> KeyWord {
        let sequence = (self.sequence() + 1) & SEQUENCE_MASK;
        KeyWord(KeyWord::SHARED.0 | sequence << PRINT_BITS)
    }

    /// Live, and this fingerprint's.
    #[inline]
    pub(crate) fn is_live(self, print: u64) -> bool {
        const LIVE: u64 = (State::Live as u64) << 62;
        self.0 & !(SEQUENCE_MASK << PRINT_BITS) == LIVE | print
    }

    /// In whatever state, this hash's. (One whose fingerprint would be 0 has none here, see
    /// [`KeyWord::print_of`]: it is found the general way.)
    #[inline(always)]
    pub(crate) fn is_of(self, hash: u64) -> bool {
        KeyWord::aligned(self.0 ^ hash) == 0
    }

    /// The bits of a fingerprint, of a hash or of a key word, as the highest of a word.
    #[inline(always)]
    pub(crate) fn aligned(bits: u64) -> u64 {
        bits << (64 - PRINT_BITS)
    }

    /// Live, and this hash's.
    #[inline(always)]
    pub(crate) fn is_live_of(self, hash: u64) -> bool {
        self.is_of(hash) & (self.0 >> 62 == State::Live as u64)
    }

    /// The next word, for the same key.
    pub(crate) fn then(self, state: State) -> KeyWord {
        // No key has a fingerprint of 0, but a damaged file may.
        self.then_for(state, self.print().max(1))
    }

    /// The word of a row that is sealed in order to be cleared: two steps on, so that a thread that
    /// charged it before can tell that from an eviction, which may be undone.
    pub(crate) fn to_clear(self) -> KeyWord {
        KeyWord::new(State::Sealed, self.sequence() + 2, self.print().max(1))
    }

    /// The next word, for another key.
    pub(crate) fn then_for(self, state: State, print: u64) -> KeyWord {
        KeyWord::new(state, self.sequence() + 1, print)
    }
}

impl std::fmt::Debug for KeyWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == KeyWord::NEVER_USED {
            return f.write_str("NeverUsed");
        }
        write!(f, "{:?}#{}({:012x})", self.state(), self.sequence(), self.print())
    }
}

/// Makes one step of the key word. `Err` is what stood there instead.
pub(crate) fn step(cell: &AtomicU64, from: KeyWord, to: KeyWord) -> Result<KeyWord, KeyWord> {
    // ORDERING: Release, so that a thread that sees the step sees the state words written before it
    // (fresh ones, for a claim); Acquire, so that what follows a seal is not done before it.
    match cell.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(to),
        Err(other) => Err(KeyWord(other)),
    }
}

/// The row is no longer the key's, or was sealed: look the key up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved;

/// Whether the words about to be made fresh are idle; `None` where they are cleared in any case.
///
/// Asked after the word was loaded that is then swapped, so the answer is about that word: had it
/// changed in between, the swap fails.
pub(crate) type Idle<'a> = Option<&'a dyn Fn() -> bool>;

pub(crate) fn is_busy(idle: Idle<'_>) -> bool {
    idle.is_some_and(|idle| !idle())
}

/// What the rows of a table hold: how wide they are, and when they may go to another key.
pub(crate) trait Shape {
    /// Words of a row: the key's and the state's.
    fn row_words(&self) -> usize;
    /// Whether the row gives its key the same rights as a new one.
    fn is_idle(&self, row: &Row<'_>, now: u64) -> bool;
    /// Makes every state word fresh, in a way that fails any hit that is under way. With `idle`
    /// only what is idle, and false as soon as something is not.
    fn reset_words(&self, row: &Row<'_>, incarnation: u64, idle: bool, now: u64) -> bool;
}

/// What [`Row::update`] does with a word that it was shown.
pub(crate) enum WordStep<R> {
    Write(u64, R),
    Keep(R),
}

/// A live row as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Row<'t> {
    pub(crate) key: &'t AtomicU64,
    /// The key word at that time, or as it was last [renewed](Row::steadily).
    seen: Cell<KeyWord>,
    pub(crate) words: &'t [AtomicU64],
}

impl<'t> Row<'t> {
    #[inline]
    pub(crate) fn new(key: &'t AtomicU64, seen: KeyWord, words: &'t [AtomicU64]) -> Row<'t> {
        Row { key, seen: Cell::new(seen), words }
    }

    #[inline]
    pub(crate) fn seen(&self) -> KeyWord {
        self.seen.get()
    }

    /// Whether keys share the row because the table is full.
    pub(crate) fn is_shared(&self) -> bool {
        self.seen().is_shared()
    }

    /// Which row it is: no other of this process is there.
    pub(crate) fn place(&self) -> usize {
        std::ptr::from_ref(self.key) as usize
    }

    /// Does `op`, again if the row was sealed meanwhile but is still the key's. What `op` has done
    /// to one state word must be all or nothing when it says [`Moved`].
    #[inline]
    pub(crate) fn steadily<R>(
        &self,
        mut op: impl FnMut(&Self) -> Result<R, Moved>,
    ) -> Result<R, Moved> {
        loop {
            match op(self) {
                Err(Moved) if self.renew() => continue,
                result => return result,
            }
        }
    }

    /// As [`Row::steadily`], but only if what the row held is still there: not if it was cleared
    /// meanwhile.
    pub(crate) fn unless_cleared(
        &self,
        mut op: impl FnMut(&Self) -> Result<(), Moved>,
    ) -> Result<(), Moved> {
        loop {
            match op(self) {
                Err(Moved) if self.undo_eviction() => continue,
                result => return result,
            }
        }
    }

    /// Takes note of a seal or two that were undone, undoing the last first if need be. False if
    /// anything else became of the row: a clearing leads back to live in three steps, two clearings
    /// in six.
    #[cold]
    fn undo_eviction(&self) -> bool {
        let mut live = self.seen();
        (0..2).any(|_| {
            let sealed = live.then(State::Sealed);
            live = sealed.then(State::Live);
            let _ = step(self.key, sealed, live);
            // ORDERING: Acquire, as for every key word that is about to be acted upon.
            let is_live = self.key.load(Ordering::Acquire) == live.0;
            if is_live {
                self.seen.set(live);
            }
            is_live
        })
    }

    /// Takes note of the row's newer key word, reopening it first if it is sealed. False if it is
    /// another's now: it was idle then, so whatever the key had spent in it was back.
    #[cold]
    fn renew(&self) -> bool {
        loop {
            // ORDERING: Acquire, as for every key word that is about to be acted upon.
            let word = KeyWord(self.key.load(Ordering::Acquire));
            if word.print() != self.seen().print() {
                return false;
            }
            match word.state() {
                State::Free | State::Pending => return false,
                State::Live => {
                    self.seen.set(word);
                    return true;
                }
                State::Sealed => {
                    let _ = step(self.key, word, word.then(State::Live));
                }
            }
        }
    }

    /// Whether the row is still as it was found. Ask after loading a state word, before acting on
    /// it.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Moved> {
        // ORDERING: Acquire is not needed for this load itself; it must come after the load of the
        // state word, which is an Acquire. The thread that put a fresh word there had sealed the
        // row before (Release), so a thread that sees the word sees the seal.
        match self.key.load(Ordering::Relaxed) == self.seen().0 {
            true => Ok(()),
            false => Err(Moved),
        }
    }

    #[inline]
    pub(crate) fn load(&self, at: usize) -> u64 {
        // ORDERING: Acquire, with the Release in `replace`; see `check`.
        self.words[at].load(Ordering::Acquire)
    }

    /// Writes a word of a row that no other thread has: in a file that has no name yet.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn store_unshared(&self, at: usize, word: u64) {
        // ORDERING: Relaxed; the file is published by a rename, after a sync.
        self.words[at].store(word, Ordering::Relaxed);
    }

    /// Changes a word if it still is what was seen.
    #[inline]
    pub(crate) fn replace(&self, at: usize, seen: u64, next: u64) -> Result<(), u64> {
        // ORDERING: Release, for the takeover: the key word was sealed before. A charge needs no
        // order, but on the machines we know the swap costs the same. Acquire on failure, since the
        // newer word is acted upon next.
        self.words[at].compare_exchange(seen, next, Ordering::Release, Ordering::Acquire).map(drop)
    }

    /// The one loop that changes a single state word. `step` may run again, so it must be pure but
    /// for reading the clock.
    #[inline]
    pub(crate) fn update<R>(
        &self,
        at: usize,
        mut step: impl FnMut(u64) -> WordStep<R>,
    ) -> Result<R, Moved> {
        let mut seen = self.load(at);
        loop {
            self.check()?;
            match step(seen) {
                WordStep::Keep(result) => return Ok(result),
                WordStep::Write(next, result) => match self.replace(at, seen, next) {
                    Ok(()) => return Ok(result),
                    Err(newer) => seen = newer,
                },
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_key_word_keeps_its_fields_apart() {
        let word = KeyWord::new(State::Sealed, SEQUENCE_MASK, PRINT_MASK);
        assert_eq!(word.0, u64::MAX);
        let next = word.then_for(State::Pending, 7);
        assert_eq!((next.state(), next.sequence(), next.print()), (State::Pending, 0, 7));
        assert!(!next.is_live(7) && next.then(State::Live).is_live(7));
        assert_eq!(KeyWord::print_of(0xabcd << 48), 1);
        assert_eq!(KeyWord(3 << 62).then(State::Free), KeyWord::new(State::Free, 1, 1), "damaged");
        assert_eq!(format!("{word:?}"), "Sealed#16383(ffffffffffff)");
    }
}
