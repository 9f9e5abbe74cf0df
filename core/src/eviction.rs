//! When a row may be evicted.
//!
//! A row may go to another key, or be freed, if it gives its own key no more and no less than a new
//! row would. Its key may be judged by several sets of numbers: overrides, `when`, a call's `max`,
//! and the policies of other processes. There is no list of them. Three words, which all users
//! of the table share, say what the evictor must know; they only grow.
//!
//! | word | meaning |
//! |---|---|
//! | `DIGEST` | digest of the only set of numbers; 0: none yet; [`SEVERAL`]: more, for good |
//! | `LONGEST` | nanoseconds in which the slowest of all sets forgets a charge |
//! | `WINDOW` | microseconds of the longest window of all sets |
//!
//! * **One set of numbers**, and it is the evictor's own: a row may be evicted when its state is
//!   that of a new key by these numbers.
//! * **Any other table**: when the row has been untouched for `LONGEST`, the *horizon*. No set of
//!   numbers remembers a charge for longer, so the row is as new under every one. A stamp that may
//!   be some ticks before its charge counts as that much younger.
//!
//! **Introducing numbers.** A user raises these words before it judges the first row by new
//! numbers. An evictor seals the row first and then reads the words. Both have a SeqCst fence
//! between the two steps. So the evictor sees the raised words and leaves the row, or the user's
//! look-up comes after the seal. In the second case the eviction counts as earlier than the new
//! numbers.
//!
//! **Eras.** The words would keep the slowest numbers for the life of a file. So a user that has
//! the file to itself begins a new era: the words start anew. `BEFORE` keeps the old horizon until
//! `BEFORE_UNTIL`, when every row of the old era has been touched since or is as new.

use crate::algorithm::Placed;
use crate::algorithm::limit::Limit;
use crate::limits::Limits;
use crate::memory::Words;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::table::row::{Row, Shape};

/// Words that the users of a table share.
pub(crate) const WORDS: usize = 8;
const DIGEST: usize = 0;
const LONGEST: usize = 1;
const WINDOW: usize = 2;
const BEFORE: usize = 3;
const BEFORE_UNTIL: usize = 4;

/// Rows were judged by more than one set of numbers.
const SEVERAL: u64 = u64::MAX;

impl Limit {
    /// What decides whether a row is idle under this limit. The same in every build.
    fn parts(&self) -> [u64; 4] {
        [self.algorithm.code(), self.max, self.per_nanos(), self.size()]
    }
}

impl Limits {
    /// A number for this set of numbers, which no other set is likely to have.
    fn digest(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |state: u64, part: u64| {
            let product = u128::from(state ^ part) * u128::from(ODD);
            (product ^ product >> 64) as u64 ^ ODD.rotate_left(17)
        };
        let digest = self.stated.iter().flat_map(Limit::parts).fold(ODD, mix);
        digest.clamp(1, SEVERAL - 1)
    }

    /// Microseconds of the longest window: no younger entry of a log may be overwritten.
    fn longest_window_us(&self) -> u64 {
        let windows = self.stated.iter().filter(|l| l.algorithm.is_log() && l.max > 0);
        windows.map(|limit| limit.per_micros()).max().unwrap_or(0)
    }

    /// Nanoseconds after which a key's last charge counts no more. A limit of 0 reads no row.
    pub fn horizon(&self) -> u64 {
        let charged = self.stated.iter().filter(|limit| limit.max > 0);
        charged.map(Limit::horizon).max().unwrap_or(0)
    }

    /// As [`Shape::reset_words`]; `idle` judges one cell, unless all are cleared in any case.
    fn reset_cells(
        &self,
        row: &Row<'_>,
        incarnation: u64,
        idle: Option<&dyn Fn(&Placed) -> bool>,
        keep_us: u64,
        now: u64,
    ) -> bool {
        self.placed.iter().all(|placed| match idle {
            Some(idle) => {
                placed.reset_words(row, incarnation, Some(&|| idle(placed)), keep_us, now)
            }
            None => placed.reset_words(row, incarnation, None, keep_us, now),
        })
    }
}

/// By one set of numbers, which no other thread changes.
impl Shape for Limits {
    fn row_words(&self) -> usize {
        Limits::row_words(self)
    }
    fn is_idle(&self, row: &Row<'_>, now: u64) -> bool {
        self.placed.iter().all(|placed| placed.is_idle(row, now))
    }
    fn reset_words(&self, row: &Row<'_>, incarnation: u64, idle: bool, now: u64) -> bool {
        let judge = |placed: &Placed| placed.is_idle(row, now);
        let judge: Option<&dyn Fn(&Placed) -> bool> = if idle { Some(&judge) } else { None };
        self.reset_cells(row, incarnation, judge, self.longest_window_us(), now)
    }
}

/// What a row must be to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// As a new key's by the evictor's own numbers.
    Idle,
    /// Untouched for so many nanoseconds.
    Untouched(u64),
}

/// An engine's own limits, and what all users of its table share about eviction.
#[derive(Debug)]
pub(crate) struct Eviction {
    limits: Limits,
    digest: u64,
    words: Words,
}

impl Eviction {
    /// Takes part in these words, and introduces one's own limits.
    pub(crate) fn new(limits: Limits, words: Words) -> Eviction {
        let eviction = Eviction { digest: limits.digest(), limits, words };
        eviction.introduce(&eviction.limits);
        eviction
    }

    /// The engine's own limits.
    #[inline]
    pub(crate) fn own(&self) -> &Limits {
        &self.limits
    }

    /// Introduces other numbers. False if their shape is another.
    pub(crate) fn introduce_limits(&self, limits: &Limits) -> bool {
        if !self.limits.same_shape(limits) {
            return false;
        }
        // A limit of 0 reads no row: beside the engine's own numbers it adds nothing.
        let adds = |(limit, own): (&Limit, &Limit)| limit.max > 0 && limit.parts() != own.parts();
        if limits.stated.iter().zip(&self.limits.stated).any(adds) {
            self.introduce(limits);
        }
        true
    }

    /// Raises the words. The caller may judge rows by these numbers afterwards.
    fn introduce(&self, limits: &Limits) {
        self.raise(LONGEST, limits.horizon());
        self.raise(WINDOW, limits.longest_window_us());
        self.add_digest(limits.digest());
        // ORDERING: SeqCst, with the fence in `Table::seal_idle`. This thread raised the words, or
        // has seen them raised, and looks its key up later. The evictor seals and then reads the
        // words. If the evictor misses the raise, its fence is the earlier one, and the look-up
        // sees the seal. Threads that are handed these numbers come after this fence.
        fence(Ordering::SeqCst);
    }

    fn raise(&self, which: usize, to: u64) {
        let word = &self.words[which];
        // ORDERING: Relaxed load, since the fence in `introduce` orders what was seen as well as
        // what was written. Release: an evictor that sees a later digest sees this too.
        if word.load(Ordering::Relaxed) < to {
            word.fetch_max(to, Ordering::Release);
        }
    }

    fn add_digest(&self, digest: u64) {
        let word = &self.words[DIGEST];
        // ORDERING: AcqRel, so that an evictor that sees this digest sees the words raised before.
        // Acquire on failure would add nothing: the other digest is only compared.
        let first = word.compare_exchange(0, digest, Ordering::AcqRel, Ordering::Relaxed);
        if first.is_err_and(|other| other != digest && other != SEVERAL) {
            // ORDERING: Release, as above.
            word.fetch_max(SEVERAL, Ordering::Release);
        }
    }

    fn load(&self, which: usize) -> u64 {
        // ORDERING: Acquire, with the Release in `raise` and `add_digest`.
        self.words[which].load(Ordering::Acquire)
    }

    /// Nanoseconds after which no set of numbers remembers a charge.
    pub(crate) fn horizon(&self) -> u64 {
        self.load(LONGEST)
    }

    /// Microseconds of the longest window that any user of the table judges by.
    pub(crate) fn longest_window_us(&self) -> u64 {
        self.load(WINDOW)
    }

    /// Begins a new era, for a user that has the table to itself: no other process reads these
    /// words now.
    pub(crate) fn begin_era(words: &[AtomicU64], now: u64) {
        // ORDERING: Relaxed; other users come after this one has let them, by a lock of the
        // kernel's.
        let load = |which: usize| words[which].load(Ordering::Relaxed);
        let store = |which: usize, value| words[which].store(value, Ordering::Relaxed);
        let mut before = load(LONGEST);
        if now < load(BEFORE_UNTIL) {
            before = before.max(load(BEFORE));
        }
        // In this order: a process that is killed on the way has forgotten nothing.
        store(BEFORE, before);
        store(BEFORE_UNTIL, now.saturating_add(before));
        // The longest window stays: entries that it keeps cost little, and may be asked for again.
        [DIGEST, LONGEST].into_iter().for_each(|which| store(which, 0));
    }

    /// Nanoseconds after which no set of numbers remembers a charge, the era before included.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn horizon_of(words: &[AtomicU64], now: u64) -> u64 {
        // ORDERING: Acquire, with the Release in `raise`.
        let load = |which: usize| words[which].load(Ordering::Acquire);
        let before = if now < load(BEFORE_UNTIL) { load(BEFORE) } else { 0 };
        load(LONGEST).max(before)
    }

    /// Microseconds of the longest window that any user of the table has judged by.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn window_of(words: &[AtomicU64]) -> u64 {
        // ORDERING: Acquire, with the Release in `raise`.
        words[WINDOW].load(Ordering::Acquire)
    }

    /// Begins an era in a new table to which rows of another were moved.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn begin_after(from: &[AtomicU64], to: &[AtomicU64], now: u64) {
        let before = Eviction::horizon_of(from, now);
        // ORDERING: Relaxed; no other process has the new table yet.
        let store = |which: usize, value| to[which].store(value, Ordering::Relaxed);
        store(WINDOW, Eviction::window_of(from));
        store(BEFORE, before);
        store(BEFORE_UNTIL, now.saturating_add(before));
    }

    /// What the table's rows must be at `now`.
    fn demand(&self, now: u64) -> Demand {
        // The digest comes first: an evictor that sees several sees their horizon.
        let only_mine = self.load(DIGEST) == self.digest;
        match now < self.load(BEFORE_UNTIL) {
            true => Demand::Untouched(self.horizon().max(self.load(BEFORE))),
            false if only_mine => Demand::Idle,
            false => Demand::Untouched(self.horizon()),
        }
    }
}

impl Demand {
    fn is_met_by(self, placed: &Placed, row: &Row<'_>, now: u64) -> bool {
        match self {
            Demand::Idle => placed.is_idle(row, now),
            Demand::Untouched(horizon) => placed.is_untouched_for(horizon, row, now),
        }
    }
}

impl Shape for Eviction {
    fn row_words(&self) -> usize {
        self.limits.row_words()
    }
    fn is_idle(&self, row: &Row<'_>, now: u64) -> bool {
        let demand = self.demand(now);
        self.limits.placed.iter().all(|placed| demand.is_met_by(placed, row, now))
    }
    fn reset_words(&self, row: &Row<'_>, incarnation: u64, idle: bool, now: u64) -> bool {
        // Read again for each cell: the later, the fewer numbers are missed.
        let judge = |placed: &Placed| self.demand(now).is_met_by(placed, row, now);
        let judge: Option<&dyn Fn(&Placed) -> bool> = if idle { Some(&judge) } else { None };
        let keep_us = self.longest_window_us().max(self.limits.longest_window_us());
        self.limits.reset_cells(row, incarnation, judge, keep_us, now)
    }
}
