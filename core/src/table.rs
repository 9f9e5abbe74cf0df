//! The table: a fixed number of rows, found by hash, never moved, never locked.
//!
//! **Place.** A key's hash names a fingerprint, and the fingerprint names a home row. So rows can
//! be moved to a table of another size without the key (see `moving`). A key's row is one of
//! [`SPAN`] rows. First come those of the home row's cache line, from the home row on and round the
//! line's end. The next lines follow in the same turn, round the table's end too. A look-up stops
//! early only at a row that was never used. No row becomes never-used again, so no key lies behind
//! one.
//!
//! **One row for each key.** Two threads that insert one new key must not end up with two rows
//! (after Purcell and Harris, "Non-blocking hashtables with open addressing"). A free row is
//! claimed as *pending*; then, behind a SeqCst fence, the claimant looks through the span again.
//! A live row of the same key wins, and of two pending ones the earlier in the span; the loser is
//! withdrawn. Suppose rows a < b of one key both went live. The thread that settled b did not see a
//! claimed, so a was claimed after that look. The thread that settled a came later still and saw b
//! claimed or live. It would have withdrawn one of them: a contradiction.
//!
//! **Eviction.** When no row of the span is free, an idle one is taken over. It is sealed and made
//! fresh word by word, each word only if it is still idle. Then it is handed to the new key as
//! *pending* and settled like any claim. A live key's row is never taken.

pub(crate) mod hash;
mod layout;
pub(crate) mod row;

pub(crate) use layout::bytes_for;
use layout::{Layout, OVERFLOW_ROWS, rows_for};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) use layout::{TableWords, words_for};

use crate::memory::{Backing, LINE_WORDS, Words};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::table::row::{KeyWord, Row, Shape, State, step};

/// How many rows a key may lie in. At two thirds full the longest way seen in 50 tables of a
/// million keys was 128 rows; two keys in three are at home, nine in ten in the home row's line.
pub(crate) const SPAN: usize = 256;
/// Lost races after which a new key is answered as if the table were full.
const ROUNDS: usize = 64;

/// A key's hash: its home and its fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub(crate) u64);

impl Hash {
    /// As a number, for maps of one's own.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    #[inline]
    fn print(self) -> u64 {
        KeyWord::print_of(self.0)
    }
}

/// A key's hash and its home row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) hash: Hash,
    home: usize,
}

/// Memory for the table could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Keys that were asked for.
    pub capacity: usize,
    /// Words of each row.
    pub row_words: usize,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.capacity as u128 * self.row_words as u128 * 12;
        let OutOfMemory { capacity, .. } = self;
        write!(f, "no memory for {capacity} keys ({bytes} bytes): state a smaller capacity")
    }
}

impl std::error::Error for OutOfMemory {}

/// What a look through a span found.
enum Lookup {
    Live(usize, KeyWord),
    Sealed(usize, KeyWord),
    Pending(usize, KeyWord),
    /// Not there; the first row that could be claimed as it is.
    Missing(Option<(usize, KeyWord)>),
}

/// Every place that the key may take holds a live key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// How a key came by its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Known,
    New,
    /// By taking over an idle key's.
    TakenOver,
}

/// Rows of one shape.
#[derive(Debug)]
pub(crate) struct Table {
    words: Words,
    layout: Layout,
    span: usize,
    overflow: Words,
    overflow_width: usize,
}

impl Table {
    /// A table with room for `capacity` live keys, or `None` without memory.
    pub(crate) fn new(capacity: usize, limits: &impl Shape, backing: &Backing) -> Option<Table> {
        let rows = rows_for(capacity)?;
        // Beyond any address backing: so that sizes can be multiplied below.
        rows.checked_mul(16 * limits.row_words()).filter(|&bytes| (bytes as u64) < 1 << 47)?;
        Table::with_rows(rows, limits, backing)
    }

    pub(crate) fn with_rows(rows: usize, limits: &impl Shape, backing: &Backing) -> Option<Table> {
        let layout = Layout::new(rows, limits.row_words());
        let words = backing.rows(layout.words(), limits.row_words() <= LINE_WORDS)?;
        let overflow = backing.overflow(OVERFLOW_ROWS * limits.row_words())?;
        let table = Table {
            words,
            layout,
            span: SPAN.min(layout.rows),
            overflow,
            overflow_width: limits.row_words(),
        };
        for row in 0..OVERFLOW_ROWS {
            // ORDERING: Relaxed; no other thread has the table yet, or it is there already.
            let key = &table.overflow[row * table.overflow_width];
            if !KeyWord(key.load(Ordering::Relaxed)).is_shared() {
                key.store(KeyWord::SHARED.0, Ordering::Relaxed);
            }
        }
        Some(table)
    }

    /// Bytes for rows; the few that are shared when it is full come on top.
    pub(crate) fn row_bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub(crate) fn bytes(&self) -> usize {
        self.row_bytes() + self.overflow.len() * 8
    }

    pub(crate) fn rows(&self) -> usize {
        self.layout.rows
    }

    /// From the bits that a row stores of the hash, and no others.
    #[inline(always)]
    fn home(&self, hash: Hash) -> usize {
        ((u128::from(KeyWord::aligned(hash.0)) * self.layout.rows as u128) >> 64) as usize
    }

    /// The row that comes `distance` after the home, in the order of looking.
    #[inline]
    fn place(&self, home: usize, distance: usize) -> usize {
        let in_line = self.layout.in_line;
        let place =
            (home & !in_line) + (distance & !in_line) + (home.wrapping_add(distance) & in_line);
        if place < self.layout.rows { place } else { place - self.layout.rows }
    }

    #[inline]
    fn key(&self, place: usize) -> &AtomicU64 {
        &self.words[place * self.layout.keys]
    }

    #[inline]
    fn load_key(&self, place: usize) -> KeyWord {
        // ORDERING: Acquire, with the Release in `step`: a thread that sees a row live sees its
        // fresh words.
        KeyWord(self.key(place).load(Ordering::Acquire))
    }

    #[inline]
    fn row(&self, place: usize, seen: KeyWord) -> Row<'_> {
        let start = self.layout.states.0 + place * self.layout.states.1;
        let words = &self.words[start..start + self.layout.width];
        Row::new(self.key(place), seen, words)
    }

    /// Where the key is looked for first; its row is on the way from memory, so that the clock can
    /// be read meanwhile.
    #[inline(always)]
    pub(crate) fn spot(&self, hash: Hash) -> Spot {
        let home = self.home(hash);
        self.words.prefetch(home * self.layout.keys);
        Spot { hash, home }
    }

    /// The word of a key that is at home, where rows are of two words, and what it was before the
    /// key was seen live: as [`Row::load`] and then [`Row::check`].
    #[inline(always)]
    pub(crate) fn at_home(&self, spot: Spot) -> Option<(&AtomicU64, u64)> {
        self.two_words(spot.home, spot.hash)
    }

    /// The same in the home row's line or the next one, where nearly all others are.
    #[inline(always)]
    pub(crate) fn near_home(&self, spot: Spot) -> Option<(&AtomicU64, u64)> {
        self.in_line(spot, 0).or_else(|| self.in_line(spot, 1))
    }

    /// The same anywhere in a line of rows: the home row's, or the one that comes `lines` after it.
    /// The processor can't foresee which of its rows is the key's, so it is not made to guess: all
    /// are compared.
    #[inline(always)]
    pub(crate) fn in_line(&self, spot: Spot, lines: usize) -> Option<(&AtomicU64, u64)> {
        const ROWS: usize = LINE_WORDS / 2;
        let line = self.words.as_chunks::<LINE_WORDS>().0.get(spot.home / ROWS + lines)?;
        // ORDERING: Relaxed; the row that this points to is looked at again.
        let mine = |row: usize| KeyWord(line[2 * row].load(Ordering::Relaxed)).is_of(spot.hash.0);
        let row = (1..ROWS).fold(0, |at, row| at | (row * usize::from(mine(row)))) % ROWS;
        seen_live(&line.as_chunks::<2>().0[row], spot.hash)
    }

    #[inline(always)]
    fn two_words(&self, place: usize, hash: Hash) -> Option<(&AtomicU64, u64)> {
        seen_live(self.words.as_chunks::<2>().0.get(place)?, hash)
    }

    /// Brings the key's home row near, so that the clock can be read meanwhile.
    #[inline]
    pub(crate) fn prefetch(&self, hash: Hash) {
        self.words.prefetch(self.home(hash) * self.layout.keys);
    }

    /// Brings the line after the home row's near, for a key that is not in the first.
    #[inline]
    pub(crate) fn prefetch_next(&self, spot: Spot) {
        let next = self.place(spot.home, (self.layout.in_line + 1).min(self.span - 1));
        self.words.prefetch(next * self.layout.keys);
    }

    /// The row that `hash` shares with others when the table is full.
    pub(crate) fn overflow(&self, hash: Hash) -> Row<'_> {
        let start = (hash.0 >> 32) as usize % OVERFLOW_ROWS * self.overflow_width;
        let key = &self.overflow[start];
        // ORDERING: Acquire, as for every key word that is about to be acted upon.
        let seen = KeyWord(key.load(Ordering::Acquire));
        Row::new(key, seen, &self.overflow[start + 1..start + self.overflow_width])
    }

    /// The key's row, if it has one.
    #[inline]
    pub(crate) fn find(&self, hash: Hash) -> Option<Row<'_>> {
        loop {
            match self.look_up(hash) {
                Lookup::Live(place, seen) => return Some(self.row(place, seen)),
                Lookup::Sealed(place, seen) => self.reopen(place, seen),
                Lookup::Pending(..) | Lookup::Missing(_) => return None,
            }
        }
    }

    /// The key's row, or the one that it shares with others because every place is taken.
    pub(crate) fn find_or_shared(
        &self,
        hash: Hash,
        limits: &impl Shape,
        now: u64,
    ) -> Option<Row<'_>> {
        loop {
            match self.look_up(hash) {
                Lookup::Live(place, seen) => return Some(self.row(place, seen)),
                Lookup::Sealed(place, seen) => self.reopen(place, seen),
                // There is a place that is not taken.
                Lookup::Pending(..) | Lookup::Missing(Some(_)) => return None,
                Lookup::Missing(None) => break,
            }
        }
        (!self.has_room(hash, limits, now)).then(|| self.overflow(hash))
    }

    /// The key's row, or a new one.
    #[inline]
    pub(crate) fn find_or_insert(
        &self,
        hash: Hash,
        limits: &impl Shape,
        now: u64,
    ) -> Result<(Row<'_>, Found), Full> {
        match self.look_up(hash) {
            Lookup::Live(place, seen) => Ok((self.row(place, seen), Found::Known)),
            lookup => self.insert(hash, lookup, limits, now),
        }
    }

    #[inline]
    fn look_up(&self, hash: Hash) -> Lookup {
        let (home, print) = (self.home(hash), hash.print());
        let first = self.load_key(home);
        if first.is_live(print) {
            return Lookup::Live(home, first);
        }
        if first == KeyWord::NEVER_USED {
            return Lookup::Missing(Some((home, first)));
        }
        self.probe_span(home, print)
    }

    fn probe_span(&self, home: usize, print: u64) -> Lookup {
        let (mut pending, mut free) = (None, None);
        for distance in 0..self.span {
            let place = self.place(home, distance);
            let word = self.load_key(place);
            if word.is_live(print) {
                return Lookup::Live(place, word);
            }
            if word == KeyWord::NEVER_USED {
                free = free.or(Some((place, word)));
                break;
            }
            match word.state() {
                State::Sealed if word.print() == print => return Lookup::Sealed(place, word),
                State::Pending if word.print() == print => {
                    pending = pending.or(Some((place, word)))
                }
                State::Free => free = free.or(Some((place, word))),
                _ => {}
            }
        }
        match pending {
            Some((place, word)) => Lookup::Pending(place, word),
            None => Lookup::Missing(free),
        }
    }

    /// Whether a new key would find a place.
    #[cold]
    pub(crate) fn has_room(&self, hash: Hash, limits: &impl Shape, now: u64) -> bool {
        let home = self.home(hash);
        (0..self.span).any(|distance| {
            let place = self.place(home, distance);
            let word = self.load_key(place);
            word.state() != State::Live || limits.is_idle(&self.row(place, word), now)
        })
    }

    /// Undoes a seal. The thread that had sealed the row finds its last step failing.
    #[cold]
    fn reopen(&self, place: usize, sealed: KeyWord) {
        let _ = step(self.key(place), sealed, sealed.then(State::Live));
    }

    #[cold]
    fn insert(
        &self,
        hash: Hash,
        mut lookup: Lookup,
        limits: &impl Shape,
        now: u64,
    ) -> Result<(Row<'_>, Found), Full> {
        for _ in 0..ROUNDS {
            let mut found = Found::New;
            let claimed = match lookup {
                Lookup::Live(place, seen) => return Ok((self.row(place, seen), Found::Known)),
                Lookup::Sealed(place, seen) => {
                    self.reopen(place, seen);
                    None
                }
                Lookup::Pending(place, seen) => Some((place, seen)),
                Lookup::Missing(Some((place, seen))) => self.claim(place, seen, hash),
                Lookup::Missing(None) => {
                    found = Found::TakenOver;
                    self.take_over(hash, limits, now)?
                }
            };
            if let Some((place, pending)) = claimed
                && let Some(live) = self.settle(hash, place, pending)
            {
                return Ok((self.row(place, live), found));
            }
            lookup = self.look_up(hash);
        }
        Err(Full)
    }

    /// Claims a row that is free.
    fn claim(&self, place: usize, seen: KeyWord, hash: Hash) -> Option<(usize, KeyWord)> {
        let pending = seen.then_for(State::Pending, hash.print());
        Some((place, step(self.key(place), seen, pending).ok()?))
    }

    /// Makes a pending row live if it is the key's only one. `None`: look again.
    ///
    /// Any thread may do this for any claim.
    fn settle(&self, hash: Hash, place: usize, pending: KeyWord) -> Option<KeyWord> {
        let home = self.home(hash);
        let mut distance = 0;
        // ORDERING: SeqCst. Of two claimants of one key, whose claims lie in different rows, at
        // least one sees the other's: both claim, then fence, then look.
        fence(Ordering::SeqCst);
        while distance < self.span {
            let other = self.place(home, distance);
            distance += 1;
            let word = self.load_key(other);
            if word == KeyWord::NEVER_USED {
                break;
            }
            if other == place || word.print() != hash.print() {
                continue;
            }
            let before = self.distance(home, other) < self.distance(home, place);
            match word.state() {
                State::Free => {}
                State::Pending if !before => {
                    if step(self.key(other), word, word.then(State::Free)).is_err() {
                        // It went live, or away: look at this row again.
                        distance -= 1;
                    }
                }
                State::Pending | State::Live | State::Sealed => {
                    let _ = step(self.key(place), pending, pending.then(State::Free));
                    return None;
                }
            }
        }
        step(self.key(place), pending, pending.then(State::Live)).ok()
    }

    /// How far after the home a row comes: `place` inverted.
    fn distance(&self, home: usize, place: usize) -> usize {
        let in_line = self.layout.in_line;
        let (from, to) = (home & !in_line, place & !in_line);
        let lines = if to >= from { to - from } else { to + self.layout.rows - from };
        lines + (place.wrapping_sub(home) & in_line)
    }

    /// Takes an idle row of the span for `hash`, pending. `None`: others were at it; look again.
    fn take_over(
        &self,
        hash: Hash,
        limits: &impl Shape,
        now: u64,
    ) -> Result<Option<(usize, KeyWord)>, Full> {
        let home = self.home(hash);
        let mut unsettled = None;
        for distance in 0..self.span {
            let place = self.place(home, distance);
            let word = self.load_key(place);
            if word.state() != State::Live {
                unsettled = unsettled.or(Some((place, word)));
            } else if let Some(sealed) = self.seal_idle(place, word, limits, now) {
                let pending = sealed.then_for(State::Pending, hash.print());
                return Ok(step(self.key(place), sealed, pending).ok().map(|p| (place, p)));
            }
        }
        // Every row is live and in use, or a process is at work on it, which may be dead: undo
        // that.
        let (place, word) = unsettled.ok_or(Full)?;
        match word.state() {
            State::Sealed => self.reopen(place, word),
            State::Pending => drop(step(self.key(place), word, word.then(State::Free))),
            State::Free | State::Live => {}
        }
        Ok(None)
    }

    /// Seals a live row and makes it fresh, if it is idle and stays so. The row is judged twice:
    /// what makes it idle may have changed before the seal.
    fn seal_idle(
        &self,
        place: usize,
        live: KeyWord,
        limits: &impl Shape,
        now: u64,
    ) -> Option<KeyWord> {
        if !limits.is_idle(&self.row(place, live), now) {
            return None;
        }
        let sealed = step(self.key(place), live, live.then(State::Sealed)).ok()?;
        // ORDERING: SeqCst, with the fence in `Eviction::introduce`: numbers that were introduced
        // before this are seen by the judgement that follows, and a user that introduces others
        // later finds the row sealed. Checked by `numbers_introduced_against_eviction`.
        fence(Ordering::SeqCst);
        if !limits.reset_words(&self.row(place, sealed), sealed.sequence(), true, now) {
            self.reopen(place, sealed);
            return None;
        }
        Some(sealed)
    }

    /// Frees every idle row, and says how many.
    pub(crate) fn prune(&self, limits: &impl Shape, now: u64) -> usize {
        let free = |place: &usize| {
            let word = self.load_key(*place);
            if word.state() != State::Live {
                return false;
            }
            let sealed = self.seal_idle(*place, word, limits, now);
            sealed.is_some_and(|s| step(self.key(*place), s, s.then(State::Free)).is_ok())
        };
        (0..self.layout.rows).filter(free).count()
    }

    /// Forgets a key. A hit that comes in between makes it start over, a bounded number of times.
    pub(crate) fn reset(&self, hash: Hash, limits: &impl Shape, now: u64) {
        for _ in 0..ROUNDS {
            let Some(row) = self.find(hash) else { return };
            if self.clear(&row, State::Live, limits, now) {
                return;
            }
        }
    }

    /// Forgets all keys.
    pub(crate) fn reset_all(&self, limits: &impl Shape, now: u64) {
        for place in 0..self.layout.rows {
            for _ in 0..ROUNDS {
                let word = self.load_key(place);
                let row = self.row(place, word);
                if word.state() != State::Live || self.clear(&row, State::Free, limits, now) {
                    break;
                }
            }
        }
        for shared in 0..OVERFLOW_ROWS {
            for _ in 0..ROUNDS {
                let row = self.overflow(Hash((shared as u64) << 32));
                // The step is for reservations: those made before it give nothing back.
                if limits.reset_words(&row, now, false, now)
                    && step(row.key, row.seen(), row.seen().shared_again()).is_ok()
                {
                    break;
                }
            }
        }
    }

    /// Seals the row, makes it fresh and moves it on. False if another thread came in between.
    fn clear(&self, row: &Row<'_>, then: State, limits: &impl Shape, now: u64) -> bool {
        let Ok(sealed) = step(row.key, row.seen(), row.seen().to_clear()) else {
            return false;
        };
        let row = Row::new(row.key, sealed, row.words);
        limits.reset_words(&row, sealed.sequence(), false, now)
            && step(row.key, sealed, sealed.then(then)).is_ok()
    }

    /// The row at a place, whatever its state.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn at(&self, place: usize) -> Row<'_> {
        self.row(place, self.load_key(place))
    }

    /// The rows that keys share when the table is full.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn shared_rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..OVERFLOW_ROWS).map(|shared| self.overflow(Hash((shared as u64) << 32)))
    }

    /// A place for each of these fingerprints in a table of which no row was ever used: first for
    /// those that `must` have one, then for as many others as fit. `None` if one that must have a
    /// place finds none.
    ///
    /// Keys are placed in the order of their home lines, from a line on to which none comes over
    /// from the line before. So no key is further from its home than in any other arrangement that
    /// fills lines.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn arrange(&self, must: &[u64], others: &[u64]) -> Option<Vec<Option<usize>>> {
        let mut used = vec![false; self.layout.rows];
        let mut places = vec![None; must.len() + others.len()];
        let mut put = |print: u64| {
            let home = self.home(Hash(print));
            let mut span = (0..self.span).map(|distance| self.place(home, distance));
            let place = span.find(|&place| !used[place])?;
            used[place] = true;
            Some(place)
        };
        for index in self.by_home(must) {
            places[index] = Some(put(must[index])?);
        }
        for (index, &print) in others.iter().enumerate() {
            places[must.len() + index] = put(print);
        }
        Some(places)
    }

    /// The order in which `arrange` places these.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    fn by_home(&self, prints: &[u64]) -> Vec<usize> {
        let rows = self.layout.in_line as i64 + 1;
        let line = |index: usize| self.home(Hash(prints[index])) / rows as usize;
        let mut order: Vec<usize> = (0..prints.len()).collect();
        order.sort_by_key(|&index| line(index));
        let mut counts = vec![0i64; self.layout.rows / rows as usize];
        order.iter().for_each(|&index| counts[line(index)] += 1);
        // Where the sum of what lines have too much is lowest, nothing goes on to the next line.
        let (mut sum, mut lowest, mut first) = (0, 0, 0);
        for (line, count) in counts.iter().enumerate() {
            sum += count - rows;
            if sum < lowest {
                (lowest, first) = (sum, line + 1);
            }
        }
        let start = order.partition_point(|&index| line(index) < first);
        order.rotate_left(start);
        order
    }

    /// Rows in use.
    pub(crate) fn len(&self) -> usize {
        let used =
            |place: &usize| matches!(self.load_key(*place).state(), State::Live | State::Sealed);
        (0..self.layout.rows).filter(used).count()
    }

    /// A claim that no process goes on with, as a process that is killed leaves it.
    #[cfg(all(test, loom))]
    pub(crate) fn claim_first_free(&self, hash: Hash) {
        if let Lookup::Missing(Some((place, seen))) = self.look_up(hash) {
            self.claim(place, seen, hash);
        }
    }

    /// Forgets a key and frees its row.
    #[cfg(all(test, loom))]
    pub(crate) fn free(&self, hash: Hash, limits: &impl Shape, now: u64) {
        if let Some(row) = self.find(hash) {
            self.clear(&row, State::Free, limits, now);
        }
    }

    /// Whether the key has a row that is not sealed.
    #[cfg(all(test, loom))]
    pub(crate) fn is_unsealed(&self, hash: Hash) -> bool {
        matches!(self.look_up(hash), Lookup::Live(..))
    }

    #[cfg(all(test, loom))]
    pub(crate) fn holds(&self, hash: Hash) -> bool {
        self.find(hash).is_some()
    }
}

/// The state word of a row of two words, and what it was before the key was seen live.
#[inline(always)]
fn seen_live([key, word]: &[AtomicU64; 2], hash: Hash) -> Option<(&AtomicU64, u64)> {
    // ORDERING: Acquire and Relaxed, as in `Row`.
    let seen = word.load(Ordering::Acquire);
    let mine = KeyWord(key.load(Ordering::Relaxed)).is_live_of(hash.0);
    mine.then_some((word, seen))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::algorithm::Taken;
    use crate::algorithm::limit::Limit;
    use crate::clock::{Clock, Time};
    use crate::limits::Limits;

    #[test]
    fn every_row_of_a_span_comes_once_and_the_homes_line_first() {
        let limits = [
            Limits::new(&[Limit::bucket(5, Duration::from_secs(1))]).unwrap(),
            Limits::new(&[Limit::window(3, Duration::from_secs(1))]).unwrap(),
            Limits::new(&[Limit::window(30, Duration::from_secs(1))]).unwrap(),
        ];
        for limits in &limits {
            for rows in [1, 12, 256, 1000] {
                let table = Table::with_rows(rows, limits, &Backing::Heap).unwrap();
                let line = table.layout.in_line + 1;
                for home in 0..table.rows() {
                    let places: Vec<_> = (0..table.span).map(|d| table.place(home, d)).collect();
                    assert_eq!(places[0], home);
                    assert!(places[..line].iter().all(|p| p / line == home / line));
                    assert!((0..table.span).all(|d| table.distance(home, places[d]) == d));
                    let seen: std::collections::HashSet<_> = places.iter().collect();
                    assert!(seen.len() == table.span && places.iter().all(|&p| p < table.rows()));
                }
            }
        }
    }

    #[test]
    fn a_reset_that_slept_leaves_the_rows_new_owner_alone() {
        let limits = Limits::new(&[Limit::bucket(5, Duration::from_secs(1))]).unwrap();
        let table = Table::with_rows(4, &limits, &Backing::Heap).unwrap();
        let now = 10_000_000_000;
        let (clock, _) = Clock::manual(now);
        let (first, second) = (Hash(77), Hash(78));
        let (row, _) = table.find_or_insert(first, &limits, now).unwrap();
        // A reset of the first key has sealed its row, and sleeps.
        let sealed = step(row.key, row.seen(), row.seen().then(State::Sealed)).unwrap();
        assert!(table.find(first).is_some(), "its owner reopens the row");
        assert_eq!(table.prune(&limits, now), 1);
        let (theirs, _) = table.find_or_insert(second, &limits, now).unwrap();
        assert!(std::ptr::eq(theirs.key, row.key), "the second key has the row now");
        let take =
            || limits.take(&theirs, 1, 0, &mut Time::read(&clock), &mut Taken::default()).unwrap();
        assert!((0..5).all(|_| take()) && !take());
        let sleeper = Row::new(row.key, sealed, row.words);
        assert!(!limits.reset_words(&sleeper, sealed.sequence(), false, now), "it wakes in vain");
        assert!(!take(), "I1: what was spent stays spent");
    }
}
