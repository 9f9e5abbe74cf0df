//! The two-cell sliding counter, for windows too large to log exactly.
//!
//! Time is cut into cells of `per`. The even cells share one word and the odd ones the other, each
//! (cell 34 | units 30); a word that names neither this cell nor the one before counts nothing. What
//! was spent in the window is estimated as the current cell's units plus the previous cell's,
//! weighted by how much of that cell the window still covers, rounded up. The estimate takes the
//! previous cell's hits as evenly spread, so a window may see up to 2·max − 1.

use crate::clock::Time;
use crate::row::{Idle, Moved, Row, Step, is_busy};

pub(crate) const WORDS: usize = 2;
const UNIT_BITS: u32 = 30;
/// This count marks a word that no hit has touched; the cell bits are its incarnation.
const FRESH: u64 = (1 << UNIT_BITS) - 1;
/// The most that a cell counts; more is forgotten.
const MOST: u64 = FRESH - 1;
const CELL_MASK: u64 = u64::MAX >> UNIT_BITS;
/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// The numbers of a counter limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) max: u64,
    pub(crate) per: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tally(u64);

impl Tally {
    fn new(cell: u64, units: u64) -> Tally {
        Tally((cell & CELL_MASK) << UNIT_BITS | units.min(MOST))
    }
    fn is_fresh(self) -> bool {
        self.0 & FRESH == FRESH
    }
    fn names(self, cell: u64) -> bool {
        !self.is_fresh() && self.0 != 0 && self.0 >> UNIT_BITS == cell & CELL_MASK
    }
    fn units_in(self, cell: u64) -> u64 {
        if self.names(cell) { self.0 & FRESH } else { 0 }
    }
    /// How many cells the word is ahead of `cell`; 0 if it is not.
    fn cells_ahead(self, cell: u64) -> u64 {
        let ahead = (self.0 >> UNIT_BITS).wrapping_sub(cell) & CELL_MASK;
        if self.is_fresh() || ahead > CELL_MASK / 4 { 0 } else { ahead }
    }
}

/// The units of the current and the previous cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    current: u64,
    previous: u64,
    /// Nanoseconds of the current cell that have passed.
    into: u64,
}

impl Counter {
    fn place(&self, now: u64) -> (u64, u64) {
        (now / self.per, now % self.per)
    }

    fn word_at(cell: u64) -> usize {
        (cell & 1) as usize
    }

    pub(crate) fn read(&self, row: &Row<'_>, at: usize, now: u64) -> Cells {
        self.read_after(row, at, None, now)
    }

    /// The same as of the charge that left this word. (Its cell may be over by now.)
    pub(crate) fn read_after(
        &self,
        row: &Row<'_>,
        at: usize,
        left: Option<u64>,
        now: u64,
    ) -> Cells {
        let (cell, into) = self.place(now);
        let units = |cell: u64| {
            let mine = left.map(Tally).filter(|tally| tally.names(cell));
            mine.unwrap_or_else(|| Tally(row.load(at + Self::word_at(cell)))).units_in(cell)
        };
        Cells { current: units(cell), previous: cell.checked_sub(1).map_or(0, units), into }
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
            let (cell, _) = self.place(time.now());
            let taken = row.update(at + Self::word_at(cell), |seen| {
                if Tally(seen).cells_ahead(cell) != 0 {
                    return Step::Keep(None);
                }
                let mut cells = self.read(row, at, time.now());
                cells.current = Tally(seen).units_in(cell);
                if !always && self.used(&cells).saturating_add(cost) > self.max {
                    return Step::Keep(Some(None));
                }
                let tally = Tally::new(cell, cells.current.saturating_add(cost));
                Step::Write(tally.0, Some(Some(tally.0)))
            })?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// A cell in the future: read the clock again; if it went back, bring the word with it.
    /// True if there was one.
    pub(crate) fn mend(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let mut any = false;
        for parity in 0..WORDS {
            any |= row.update(at + parity, |seen| {
                if Tally(seen).cells_ahead(self.place(time.now()).0) == 0 {
                    return Step::Keep(false);
                }
                time.doubt();
                let (cell, _) = self.place(time.now());
                match Tally(seen).cells_ahead(cell) {
                    0 => Step::Keep(false),
                    ahead => {
                        let mended = cell - u64::from(Self::word_at(cell) != parity && cell > 0);
                        let units = Tally(seen).units_in(cell + ahead);
                        Step::Write(Tally::new(mended, units).0, true)
                    }
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
        let (cell, _) = self.place(now);
        for cell in [Some(cell), cell.checked_sub(1)].into_iter().flatten() {
            *left -= row.update(at + Self::word_at(cell), |seen| {
                let units = Tally(seen).units_in(cell);
                let back = units.min(*left);
                match back {
                    0 => Step::Keep(0),
                    _ => Step::Write(Tally::new(cell, units - back).0, back),
                }
            })?;
        }
        Ok(())
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

    /// Whether nothing counts by these numbers.
    pub(crate) fn is_idle(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        let (cell, _) = self.place(now);
        // A word that names the current cell is in use even if all was given back: the same bits
        // could come again for another key. So is one that is a little ahead of a clock that was read
        // earlier or went back. One that is far ahead was written by a shorter `per`, whose cells have larger numbers; who knows
        // that `per` judges it by that too, and where nobody does any more it counts no longer.
        let quiet = |word: usize| {
            let tally = Tally(row.load(word));
            let ahead = tally.cells_ahead(cell);
            let little = ahead == 1 || ahead != 0 && ahead.saturating_mul(self.per) <= DAY;
            !tally.names(cell) && !little
        };
        self.used(&self.read(row, at, now)) == 0 && quiet(at) && quiet(at + 1)
    }

    /// Whether nothing counts by any `per` of up to half of `horizon`. A word does not say which
    /// `per` its cell is of, so it is taken for the longest; one that is ahead for that counts.
    pub(crate) fn is_untouched_for(horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        let cell = now / (horizon / 2).max(1);
        (at..at + WORDS).all(|word| {
            let tally = Tally(row.load(word));
            let unused = tally.is_fresh() || tally.0 == 0;
            unused || cell.checked_sub(2).is_some_and(|old| tally.0 >> UNIT_BITS <= old)
        })
    }

    pub(crate) fn freshen(row: &Row<'_>, at: usize, incarnation: u64, idle: Idle<'_>) -> bool {
        let fresh = (incarnation & CELL_MASK) << UNIT_BITS | FRESH;
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

impl Counter {
    /// Gives units back that a charge took which left this word, while its cell is the current one.
    pub(crate) fn give_back(
        &self,
        row: &Row<'_>,
        at: usize,
        left: u64,
        amount: u64,
        now: u64,
    ) -> Result<(), Moved> {
        let (cell, _) = self.place(now);
        if !Tally(left).names(cell) {
            return Ok(());
        }
        row.update(at + Self::word_at(cell), |seen| {
            let units = Tally(seen).units_in(cell);
            match units.min(amount) {
                0 => Step::Keep(()),
                back => Step::Write(Tally::new(cell, units - back).0, ()),
            }
        })
    }
}
