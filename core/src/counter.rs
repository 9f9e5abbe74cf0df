//! The two-cell sliding counter, for windows too large to log exactly.
//!
//! Time is cut into cells of `per`, from the clock's 0 on. What was spent in the window is estimated as the
//! current cell's units plus the previous cell's, weighted by how much of that cell the window still
//! covers, rounded up. The estimate takes the previous cell's hits as evenly spread, so a window may
//! see up to 2·max − 1.
//!
//! ```text
//!  63..60   59    58 … 30      29 … 0
//! ┌───────┬─────┬────────────┬─────────┐
//! │ scale │ odd │ last spent │  units  │      units all ones: fresh (the rest is an incarnation number)
//! └───────┴─────┴────────────┴─────────┘      0: never used
//! ```
//!
//! * Two words, for even cells and for odd ones. A word does not name its cell, which only those with the same `per`
//!   could read, but *when the last of its units was spent*, in ticks of 10^scale µs modulo 2^29. All of its
//!   units are taken as spent then: in the cell that this moment lies in, by whatever `per` asks.
//! * A tick is between `per`/1000 and `per`/100 of who wrote the word. Where a tick lies in two cells of who
//!   has such ticks too, the word's own cell is the one that is even or odd as the word is: so the writer's
//!   own numbers find exactly the cells that it counted in. By others' ticks it is the later cell.
//! * A charge goes into the current cell's word. It keeps what that word has of the previous cell, which only
//!   other numbers can have put there, and counts it as spent now.
//! * The last quarter of the range, and what would be before the clock's 0, is ahead of the clock and counts as
//!   now; once the clock was read again the stamp is mended, and the units stay.

use crate::clock::Time;
use crate::row::{Idle, Moved, Row, Step, is_busy};
use crate::stamp;

pub(crate) const WORDS: usize = 2;
const UNIT_BITS: u32 = 30;
const TICK_BITS: u32 = 29;
const TICKS: u64 = (1 << TICK_BITS) - 1;
const ODD_SHIFT: u32 = UNIT_BITS + TICK_BITS;
const SCALE_SHIFT: u32 = ODD_SHIFT + 1;
/// The largest scale that a `per` of 366 days has. More is damage.
const MOST_SCALE: u32 = 11;
/// This count marks a word that no hit has touched; the other bits are its incarnation.
const FRESH: u64 = (1 << UNIT_BITS) - 1;
/// The most that a cell counts; more is forgotten.
const MOST: u64 = FRESH - 1;

/// The numbers of a counter limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) max: u64,
    pub(crate) per: u64,
}

/// Units, and when the last of them was spent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tally(u64);

impl Tally {
    /// Units of which the last is spent now.
    fn new(scale: u32, odd: u64, units: u64, now: u64) -> Tally {
        let last = (now / tick_nanos(scale)) & TICKS;
        let time = u64::from(scale) << SCALE_SHIFT | odd << ODD_SHIFT | last << UNIT_BITS;
        Tally(time | units.min(MOST))
    }
    /// Whether anything was ever spent here.
    fn is_used(self) -> bool {
        self.0 != 0 && self.0 & FRESH != FRESH
    }
    fn units(self) -> u64 {
        if self.is_used() { self.0 & FRESH } else { 0 }
    }
    fn with_units(self, units: u64) -> Tally {
        Tally(self.0 & !FRESH | units.min(MOST))
    }
    fn scale(self) -> u32 {
        ((self.0 >> SCALE_SHIFT) as u32).min(MOST_SCALE)
    }
    fn odd(self) -> u64 {
        (self.0 >> ODD_SHIFT) & 1
    }

    /// The least and the most nanoseconds since the last unit was spent; `None` if that is ahead.
    fn ages(self, now: u64) -> Option<(u64, u64)> {
        let tick = tick_nanos(self.scale());
        let (ticks, into) = (now / tick, now % tick);
        let lag = ticks.wrapping_sub(self.0 >> UNIT_BITS) & TICKS;
        if lag > TICKS / 4 * 3 || lag > ticks {
            return None;
        }
        let most = lag * tick + into;
        Some((most.saturating_sub(tick - 1), most))
    }
    fn is_ahead(self, now: u64) -> bool {
        self.is_used() && self.ages(now).is_none()
    }
    /// What is ahead of the clock, as of now.
    fn mended(self, now: u64) -> Tally {
        Tally::new(self.scale(), self.odd(), self.units(), now)
    }
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = (self.0 >> UNIT_BITS) & TICKS;
        write!(f, "Tally({} at {last} of 10^{} µs)", self.units(), self.scale())
    }
}

fn tick_nanos(scale: u32) -> u64 {
    stamp::MICRO * 10u64.pow(scale)
}

/// The current cell by some `per`, and how much of it has passed.
#[derive(Clone, Copy, Debug)]
struct Place {
    cell: u64,
    into: u64,
}

/// The units of the current and the previous cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    current: u64,
    previous: u64,
    /// Nanoseconds of the current cell that have passed.
    into: u64,
}

impl Cells {
    fn add(&mut self, units: u64, cells_ago: u64) {
        match cells_ago {
            0 => self.current += units,
            1 => self.previous += units,
            _ => {}
        }
    }
}

impl Counter {
    fn place(&self, now: u64) -> Place {
        Place { cell: now / self.per, into: now % self.per }
    }

    fn word_at(cell: u64) -> usize {
        (cell & 1) as usize
    }

    /// The largest that is no more than a hundredth of `per`.
    fn scale(&self) -> u32 {
        (self.per / (100 * stamp::MICRO)).max(1).ilog10()
    }

    /// How many cells ago the units of a word count; 2 if that is more. `None` if it has none.
    fn cells_ago(&self, tally: Tally, place: Place, now: u64) -> Option<u64> {
        if !tally.is_used() {
            return None;
        }
        let Some((least, most)) = tally.ages(now) else {
            return Some(0);
        };
        let ago = |age: u64| match age.checked_sub(place.into) {
            None | Some(0) => 0,
            Some(before) => {
                if before <= self.per {
                    1
                } else {
                    2
                }
            }
        };
        let (late, early) = (ago(least), ago(most));
        // A tick in two cells.
        let is_early = early != late
            && tally.scale() == self.scale()
            && place.cell.wrapping_sub(early) & 1 == tally.odd();
        Some(if is_early { early } else { late })
    }

    /// What counts now; with `left`, as of the charge that left this word. (Its cell may be over by now.)
    pub(crate) fn read_after(
        &self,
        row: &Row<'_>,
        at: usize,
        left: Option<u64>,
        now: u64,
    ) -> Cells {
        let place = self.place(now);
        let mut cells = Cells { current: 0, previous: 0, into: place.into };
        for odd in 0..WORDS {
            let mine = left.map(Tally).filter(|tally| tally.odd() == odd as u64);
            let tally = mine.unwrap_or_else(|| Tally(row.load(at + odd)));
            if let Some(ago) = self.cells_ago(tally, place, now) {
                cells.add(tally.units(), ago);
            }
        }
        cells
    }

    /// The estimate of what was spent in the window that ends now.
    pub(crate) fn used(&self, cells: &Cells) -> u64 {
        cells.current + self.weighted(cells.previous, cells.into)
    }

    fn weighted(&self, units: u64, into: u64) -> u64 {
        let product = u128::from(units) * u128::from(self.per - into);
        product.div_ceil(u128::from(self.per)) as u64
    }

    /// Takes `cost` if it fits, or, if `always`, in any case. The word that it left; none if it
    /// did not fit.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        always: bool,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        loop {
            self.mend(row, at, time)?;
            let (now, place) = (time.now(), self.place(time.now()));
            let odd = Self::word_at(place.cell);
            let taken = row.update(at + odd, |seen| {
                let seen = Tally(seen);
                if seen.is_ahead(now) {
                    return Step::Keep(None);
                }
                let other = Tally(row.load(at + 1 - odd));
                let mut cells = Cells { current: 0, previous: 0, into: place.into };
                let mut kept = 0;
                if let Some(ago) = self.cells_ago(other, place, now) {
                    cells.add(other.units(), ago);
                }
                if let Some(ago) = self.cells_ago(seen, place, now) {
                    cells.add(seen.units(), ago);
                    kept = if ago <= 1 { seen.units() } else { 0 };
                }
                if !always && self.used(&cells).saturating_add(cost) > self.max {
                    return Step::Keep(Some(None));
                }
                let units = kept.saturating_add(cost);
                let tally = Tally::new(self.scale(), odd as u64, units, now);
                Step::Write(tally.0, Some(Some(tally.0)))
            })?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// A stamp ahead of the clock: read it again; if it went back, bring the word with it.
    /// True if there was one.
    pub(crate) fn mend(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let mut any = false;
        for word in at..at + WORDS {
            any |= row.update(word, |seen| {
                if !Tally(seen).is_ahead(time.now()) {
                    return Step::Keep(false);
                }
                time.doubt();
                match Tally(seen).is_ahead(time.now()) {
                    false => Step::Keep(false),
                    true => Step::Write(Tally(seen).mended(time.now()).0, true),
                }
            })?;
        }
        Ok(any)
    }

    /// Gives back, the current cell's units first.
    /// What is left to give is kept in `left`, for going on where it was interrupted.
    pub(crate) fn refund(
        &self,
        row: &Row<'_>,
        at: usize,
        left: &mut u64,
        now: u64,
    ) -> Result<(), Moved> {
        for ago in 0..=1 {
            for word in at..at + WORDS {
                *left -= self.lower(row, word, ago, *left, now)?;
            }
        }
        Ok(())
    }

    /// Takes up to `most` units out of a word if they are of that many cells ago. How many that were.
    fn lower(
        &self,
        row: &Row<'_>,
        word: usize,
        ago: u64,
        most: u64,
        now: u64,
    ) -> Result<u64, Moved> {
        let place = self.place(now);
        row.update(word, |seen| {
            let tally = Tally(seen);
            let of_cell = self.cells_ago(tally, place, now) == Some(ago);
            let back = if of_cell { tally.units().min(most) } else { 0 };
            match back {
                0 => Step::Keep(0),
                _ => Step::Write(tally.with_units(tally.units() - back).0, back),
            }
        })
    }

    /// Gives `amount` back to the cell of the charge that left this word, if that is the current one.
    pub(crate) fn give_back(
        &self,
        row: &Row<'_>,
        at: usize,
        left: u64,
        amount: u64,
        now: u64,
    ) -> Result<(), Moved> {
        let left = Tally(left);
        if self.cells_ago(left, self.place(now), now) != Some(0) {
            return Ok(());
        }
        self.lower(row, at + left.odd() as usize, 0, amount, now).map(drop)
    }

    /// Nanoseconds until `cost` fits: 0 if it does.
    pub(crate) fn wait(&self, cells: &Cells, cost: u64) -> u64 {
        if self.used(cells) + cost <= self.max {
            return 0;
        }
        match (self.max - cost).checked_sub(cells.current) {
            Some(room) => self.moment_of(cells.previous, room) - cells.into,
            None => {
                let rest = self.per - cells.into;
                rest + self.moment_of(cells.current, self.max - cost)
            }
        }
    }

    /// How far into a cell the one before it, of `units`, weighs no more than `room`.
    fn moment_of(&self, units: u64, room: u64) -> u64 {
        if units <= room {
            return 0;
        }
        let covered = u128::from(room) * u128::from(self.per) / u128::from(units);
        self.per - covered as u64
    }

    /// Nanoseconds until nothing counts any more.
    pub(crate) fn until_clear(&self, cells: &Cells) -> u64 {
        let rest = self.per - cells.into;
        match (cells.current, cells.previous) {
            (0, 0) => 0,
            (0, _) => rest,
            _ => rest + self.per,
        }
    }

    /// What a hit that brings the estimate to `used` will say of when there is more, and all, if before it there
    /// would be more after `more`. What the previous cell weighs falls within this cell, so before its end;
    /// where there is no such cell, the units of the current one fall in the next.
    pub(crate) fn foreseen(&self, more: u64, used: u64, now: u64) -> (u64, u64) {
        let rest = self.per - now % self.per;
        let next = rest + self.moment_of(used, used.saturating_sub(1));
        (if (1..=rest).contains(&more) { more } else { next }, rest + self.per)
    }

    /// Whether nothing counts by these numbers. A word that was charged in the current cell is in use
    /// even if all was given back: the same bits could come again for another key.
    pub(crate) fn is_idle(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        let place = self.place(now);
        (at..at + WORDS).all(|word| {
            let tally = Tally(row.load(word));
            self.cells_ago(tally, place, now)
                .is_none_or(|ago| ago > 1 || ago == 1 && tally.units() == 0)
        })
    }

    /// Nanoseconds since anything was spent, whatever the numbers: `u64::MAX` if nothing ever was, and 0 if
    /// that is ahead of the clock.
    pub(crate) fn untouched_for(row: &Row<'_>, at: usize, now: u64) -> u64 {
        let age = |word| {
            let tally = Tally(row.load(word));
            let least = || tally.ages(now).map_or(0, |(least, _)| least);
            if tally.is_used() { least() } else { u64::MAX }
        };
        age(at).min(age(at + 1))
    }

    pub(crate) fn freshen(row: &Row<'_>, at: usize, incarnation: u64, idle: Idle<'_>) -> bool {
        let fresh = incarnation << UNIT_BITS | FRESH;
        (at..at + WORDS).all(|word| {
            loop {
                let seen = row.load(word);
                if is_busy(idle) || row.check().is_err() {
                    return false;
                }
                if row.replace(word, seen, fresh).is_ok() {
                    return true;
                }
            }
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::row::{KeyWord, State};
    use crate::sync::AtomicU64;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 100 * SECOND + 1;

    /// Does something to a row in which nothing was ever spent.
    fn with_row(act: impl FnOnce(&Row<'_>)) {
        let live = KeyWord::new(State::Live, 1, 7);
        let (key, words) = (AtomicU64::new(live.0), [0u64; WORDS].map(AtomicU64::new));
        act(&Row::new(&key, live, &words));
    }

    fn take(counter: &Counter, row: &Row<'_>, cost: u64, now: u64) -> Option<u64> {
        let (clock, _) = Clock::manual(now);
        counter.take(row, 0, cost, false, &mut Time::read(&clock)).unwrap()
    }

    #[test]
    fn a_charge_gives_back_in_its_own_cell_only() {
        let counter = Counter { max: 10, per: 10 * SECOND };
        let used = |row: &Row<'_>, now| counter.used(&counter.read_after(row, 0, None, now));
        with_row(|row| {
            let left = take(&counter, row, 4, START).unwrap();
            take(&counter, row, 3, START + SECOND).unwrap();
            counter.give_back(row, 0, left, 3, START + 2 * SECOND).unwrap();
            assert_eq!(used(row, START + 2 * SECOND), 4);
            counter.give_back(row, 0, left, 3, START + 10 * SECOND).unwrap();
            assert_eq!(used(row, START + 10 * SECOND), 4, "its cell is over");
            take(&counter, row, 2, START + 20 * SECOND).unwrap();
            counter.give_back(row, 0, left, 3, START + 20 * SECOND).unwrap();
            assert_eq!(used(row, START + 20 * SECOND), 2, "what is there is another's");
            Counter::freshen(row, 0, 5, None);
            counter.give_back(row, 0, left, 3, START).unwrap();
            assert_eq!(Counter::untouched_for(row, 0, START), u64::MAX, "a fresh word has nothing");
        });
    }

    #[test]
    fn the_younger_word_says_how_long_nothing_was_spent() {
        let counter = Counter { max: 10, per: 10 * SECOND };
        let tick = tick_nanos(counter.scale());
        with_row(|row| {
            assert_eq!(Counter::untouched_for(row, 0, START), u64::MAX);
            take(&counter, row, 1, START).unwrap();
            let then = START + 12 * SECOND;
            let age = Counter::untouched_for(row, 0, then);
            assert!(age <= 12 * SECOND && age + tick > 12 * SECOND, "{age}");
            take(&counter, row, 1, then).unwrap();
            assert!(Counter::untouched_for(row, 0, then + 5 * SECOND) <= 5 * SECOND);
            assert_eq!(Counter::untouched_for(row, 0, START), 0, "ahead of the clock");
        });
    }

    #[test]
    fn fields_neither_meet_nor_leave_gaps() {
        let all = Tally::new(MOST_SCALE, 1, u64::MAX, tick_nanos(MOST_SCALE) * TICKS.min(100));
        assert_eq!((all.scale(), all.odd(), all.units()), (MOST_SCALE, 1, MOST));
        assert_eq!((all.0 >> UNIT_BITS) & TICKS, 100);
        assert_eq!(SCALE_SHIFT + 4, 64);
        assert_eq!(format!("{all:?}"), "Tally(1073741822 at 100 of 10^11 µs)");
        let scale = |per| Counter { max: 1, per }.scale();
        assert_eq!([1_000_000, 60 * SECOND, 366 * 86_400 * SECOND].map(scale), [1, 5, MOST_SCALE]);
    }
}
