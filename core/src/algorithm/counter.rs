//! The two-cell sliding counter, for windows too large to log exactly.
//!
//! Time is cut into cells of `per`, from the clock's 0 on. What was spent in the window is
//! estimated as the current cell's units plus the previous cell's, weighted by how much of that
//! cell the window still covers, rounded up. The estimate takes the previous cell's hits as evenly
//! spread, so a window may see up to 2·max − 1.
//!
//! ```text
//!  63 … 55   54    53 … 30      29 … 0
//! ┌────────┬─────┬────────────┬─────────┐
//! │ class  │ odd │ last spent │  units  │      units all ones: fresh, and the rest an incarnation
//! └────────┴─────┴────────────┴─────────┘      0: never used
//! ```
//!
//! * Two words, for even cells and for odd ones. A word does not name its cell, which only a limit
//!   with the same `per` could read. It says *when the last of its units was spent*, in ticks
//!   modulo 2^24, and the *class* of its writer's `per`. There are eight classes for each doubling.
//!   A tick is 1/125 to 1/111 of `per`.
//! * **One reading.** By any `per` the units of a word count in full up to a moment that the word
//!   alone decides, and then fall evenly to 0 within `per`. What is used, how long to wait and when
//!   all is clear follow from these moments, so they agree at any time.
//!   * By a `per` of the word's own class that moment is the end of its cell. Where its tick lies
//!     in two cells, it is the one that is even or odd as the word is: the writer's own numbers
//!     find exactly the cells that it counted in.
//!   * By a longer `per` it is one such `per` after the tick's start: the latest that a cell could
//!     end. So slower numbers never find less used than the writer does.
//!   * By a shorter `per` it is the end of the tick: they find what they would have refilled since,
//!     to within a tick.
//!   * A word of one's own class whose tick lies in no cell of its parity is another's of nearly
//!     the same `per`, and is read as by a longer one. Where the parity fits by chance it can't be
//!     told from one's own: numbers whose `per` differs by less than an eighth may take the other's
//!     units for their previous cell's.
//! * A charge goes into the current cell's word, with what that still counts for, and both are
//!   spent now.
//! * The last quarter of the range, and what would be before the clock's 0, is ahead of the clock
//!   and counts as now. Once the clock was read again the stamp is repaired, and the units stay.

use std::cmp::Ordering::{Equal, Greater, Less};

use crate::algorithm::limit::Limit;
use crate::algorithm::{
    AlgorithmCell, AlgorithmFacts, Cell, MakeCell, ReservedCharge, Taken, stamp,
};
use crate::clock::Time;
use crate::status::{LimitStatus, NEVER};
use crate::table::row::{Idle, Moved, Row, WordStep, is_busy};

pub(crate) const WORDS: usize = 2;
const UNIT_BITS: u32 = 30;
const TICK_BITS: u32 = 24;
const TICKS: u64 = (1 << TICK_BITS) - 1;
const ODD_SHIFT: u32 = UNIT_BITS + TICK_BITS;
const CLASS_SHIFT: u32 = ODD_SHIFT + 1;
/// Ticks in the longest `per` of a class: three quarters of all ticks are 100,000 of it.
const FINENESS: u64 = 125;
/// More than 2 to this many nanoseconds no `per` has: damage.
const MOST_DOUBLINGS: u64 = 55;
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

pub(crate) const FACTS: AlgorithmFacts = AlgorithmFacts {
    code: 3,
    has_burst: false,
    has_lease: false,
    is_log: false,
    instead_of_words: None,
    order: 0,
    cell: MakeCell::Own(|limit| Ok(Cell::Counter(Counter::of(limit)))),
    // The cell of the charge, and the next one.
    horizon: |limit| limit.per_nanos().saturating_mul(2),
    most_within: Limit::most_in_periods,
    foreseen: |limit, hit| Counter::of(limit).foreseen(hit.before.more, hit.used, hit.now),
};

impl AlgorithmCell for Counter {
    fn words(&self) -> usize {
        WORDS
    }

    fn inspect_in(
        &self,
        row: &Row<'_>,
        at: usize,
        written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    ) {
        let cells = self.read_after(row, at, written, now);
        let wait = if cost > self.max { NEVER } else { self.wait(&cells, cost) };
        let (used, reset) = (self.used(&cells), self.until_clear(&cells));
        let remaining = self.max.saturating_sub(used);
        let more = if used == 0 { 0 } else { self.wait(&cells, remaining + 1) };
        statuses[0] = LimitStatus { limit: self.max, used, remaining, wait, more, reset };
    }

    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        Ok(taken.note(self.take(row, at, cost, false, time)?))
    }

    /// Gives `amount` back to the cell of the charge that left this word, if that is the current
    /// one.
    fn give_back(
        &self,
        row: &Row<'_>,
        at: usize,
        left: u64,
        amount: u64,
        now: u64,
    ) -> Result<(), Moved> {
        let left = Tally(left);
        if self.share(left, now).full <= 0 {
            return Ok(());
        }
        self.lower(row, at + left.odd() as usize, true, amount, now).map(drop)
    }

    fn give_back_own(
        &self,
        row: &Row<'_>,
        at: usize,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        // By a clock behind the charge its units may have aged out: all ahead of it counts as now.
        let now = time.now();
        if !charge.is_within(self.per, now) || now < charge.at {
            return Ok(());
        }
        self.give_back(row, at, charge.written, amount, now)
    }

    /// A stamp ahead of the clock: reads it again; if it went back, brings the word with it.
    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let mut any = false;
        for word in at..at + WORDS {
            any |= row.update(word, |seen| {
                if !Tally(seen).is_ahead(time.now()) {
                    return WordStep::Keep(false);
                }
                time.recheck_clock();
                match Tally(seen).is_ahead(time.now()) {
                    false => WordStep::Keep(false),
                    true => WordStep::Write(Tally(seen).repaired(time.now()).0, true),
                }
            })?;
        }
        Ok(any)
    }

    fn record_in(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        self.take(row, at, cost, true, time)
    }

    fn refund_to(
        &self,
        row: &Row<'_>,
        at: usize,
        rest: &mut u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        self.refund(row, at, rest, time.now())
    }

    /// Whether nothing counts by this limit. A word that was charged in the current cell is in use
    /// even if all was given back: the same bits could come again for another key.
    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        let cells = self.read_after(row, at, None, now);
        cells.0.iter().all(|share| share.units == 0 && share.full <= 0)
    }

    fn is_untouched_in(&self, horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        Counter::untouched_for(row, at, now) >= horizon
    }

    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        incarnation: u64,
        idle: Idle<'_>,
        _keep_us: u64,
        _now: u64,
    ) -> bool {
        Counter::reset_words(row, at, incarnation, idle)
    }
}

/// Units, and when the last of them was spent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tally(u64);

impl Tally {
    /// Units of which the last is spent now.
    fn new(class: u64, odd: u64, units: u64, now: u64) -> Tally {
        let last = (now / tick_nanos(class)) & TICKS;
        let time = class << CLASS_SHIFT | odd << ODD_SHIFT | last << UNIT_BITS;
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
    fn class(self) -> u64 {
        self.0 >> CLASS_SHIFT
    }
    fn odd(self) -> u64 {
        (self.0 >> ODD_SHIFT) & 1
    }

    /// Nanoseconds since the tick began in which the last unit was spent; `None` if that is ahead.
    fn age(self, now: u64) -> Option<u64> {
        let tick = tick_nanos(self.class());
        let (ticks, into) = (now / tick, now % tick);
        let lag = ticks.wrapping_sub(self.0 >> UNIT_BITS) & TICKS;
        let is_past = lag <= TICKS / 4 * 3 && lag <= ticks;
        is_past.then(|| lag * tick + into)
    }
    fn is_ahead(self, now: u64) -> bool {
        self.is_used() && self.age(now).is_none()
    }
    /// What is ahead of the clock, as of now.
    fn repaired(self, now: u64) -> Tally {
        Tally::new(self.class(), self.odd(), self.units(), now)
    }
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = (self.0 >> UNIT_BITS) & TICKS;
        let tick = tick_nanos(self.class());
        write!(f, "Tally({} at {last} of {tick} ns)", self.units())
    }
}

/// The class of a `per`: how often it doubles 1 ns, and the next three binary digits.
fn class_of(per: u64) -> u64 {
    let doublings = u64::from(per.max(8).ilog2());
    doublings << 3 | (per >> (doublings - 3)) & 7
}

fn tick_nanos(class: u64) -> u64 {
    let doublings = (class >> 3).clamp(3, MOST_DOUBLINGS);
    let longest = (9 + (class & 7)) << (doublings - 3);
    longest.div_ceil(FINENESS)
}

/// The units of a word, by some `per`.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    units: u64,
    /// Nanoseconds from now until they begin to fall.
    full: i64,
}

/// What both words say at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells([Share; WORDS]);

impl Counter {
    /// A limit of 0 is judged before any word is read; its cell only holds the place.
    fn of(limit: &Limit) -> Counter {
        Counter { max: limit.max.max(1), per: limit.per_nanos() }
    }

    fn word_at(cell: u64) -> usize {
        (cell & 1) as usize
    }

    fn end_of(&self, cell: u64) -> u64 {
        (cell + 1).saturating_mul(self.per)
    }

    /// The moment from which on the units of a word that is in use fall.
    fn falls_at(&self, tally: Tally, now: u64) -> u64 {
        let Some(age) = tally.age(now) else {
            return self.end_of(now / self.per);
        };
        let (start, tick) = (now - age, tick_nanos(tally.class()));
        match tally.class().cmp(&class_of(self.per)) {
            Less => start.saturating_add(self.per),
            Greater => start.saturating_add(tick),
            Equal => self.falls_in_cells(start, tick, tally.odd()),
        }
    }

    /// The same for a tick by numbers of one's own class.
    fn falls_in_cells(&self, start: u64, tick: u64, odd: u64) -> u64 {
        let (cell, into) = (start / self.per, start % self.per);
        if cell & 1 == odd {
            self.end_of(cell)
        } else if into + tick > self.per {
            self.end_of(cell + 1)
        } else {
            start.saturating_add(self.per)
        }
    }

    fn share(&self, tally: Tally, now: u64) -> Share {
        if !tally.is_used() {
            return Share::default();
        }
        let falls = self.falls_at(tally, now);
        let fallen = now.saturating_sub(falls).min(self.per);
        let units = if fallen == self.per { 0 } else { tally.units() };
        Share { units, full: falls.saturating_sub(now) as i64 - fallen as i64 }
    }

    /// What counts now; with `left`, as of the charge that left this word. (Its cell may be over by
    /// now.)
    pub(crate) fn read_after(
        &self,
        row: &Row<'_>,
        at: usize,
        left: Option<u64>,
        now: u64,
    ) -> Cells {
        Cells([0, 1].map(|odd| {
            let mine = left.map(Tally).filter(|tally| tally.odd() == odd as u64);
            self.share(mine.unwrap_or_else(|| Tally(row.load(at + odd))), now)
        }))
    }

    /// The estimate of what was spent in the window that ends now.
    pub(crate) fn used(&self, cells: &Cells) -> u64 {
        self.used_after(cells, 0)
    }

    /// The same so many nanoseconds later.
    fn used_after(&self, cells: &Cells, nanos: u64) -> u64 {
        cells.0.iter().map(|share| self.weighted(share, nanos)).sum()
    }

    fn weighted(&self, share: &Share, nanos: u64) -> u64 {
        let fallen = nanos as i64 - share.full;
        if fallen <= 0 || share.units == 0 {
            return share.units;
        }
        let product = u128::from(share.units) * u128::from(self.per.saturating_sub(fallen as u64));
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
            self.repair_clock_skew(row, at, time)?;
            let now = time.now();
            let odd = Self::word_at(now / self.per);
            let taken = row.update(at + odd, |seen| {
                let seen = Tally(seen);
                if seen.is_ahead(now) {
                    return WordStep::Keep(None);
                }
                let other = self.share(Tally(row.load(at + 1 - odd)), now);
                let kept = self.weighted(&self.share(seen, now), 0);
                let used = kept + self.weighted(&other, 0);
                if !always && used.saturating_add(cost) > self.max {
                    return WordStep::Keep(Some(None));
                }
                let units = kept.saturating_add(cost);
                let tally = Tally::new(class_of(self.per), odd as u64, units, now);
                WordStep::Write(tally.0, Some(Some(tally.0)))
            })?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
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
        for in_full in [true, false] {
            for word in at..at + WORDS {
                *left -= self.lower(row, word, in_full, *left, now)?;
            }
        }
        Ok(())
    }

    /// Takes up to `most` units out of a word if they count in full, or if they are falling. How
    /// many that were.
    fn lower(
        &self,
        row: &Row<'_>,
        word: usize,
        in_full: bool,
        most: u64,
        now: u64,
    ) -> Result<u64, Moved> {
        row.update(word, |seen| {
            let share = self.share(Tally(seen), now);
            let back = if (share.full > 0) == in_full { share.units.min(most) } else { 0 };
            match back {
                0 => WordStep::Keep(0),
                _ => WordStep::Write(Tally(seen).with_units(share.units - back).0, back),
            }
        })
    }

    /// Nanoseconds until `cost` fits: 0 if it does.
    pub(crate) fn wait(&self, cells: &Cells, cost: u64) -> u64 {
        let room = self.max.saturating_sub(cost);
        if self.used(cells) <= room {
            return 0;
        }
        let [mut first, mut last] = cells.0;
        if first.units > 0 && (last.units == 0 || last.full < first.full) {
            (first, last) = (last, first);
        }
        if first.units > 0 && last.full - first.full < self.per as i64 {
            // Of different numbers: both fall at a time.
            let clear = self.until_clear(cells);
            return stamp::first_time(clear, |nanos| self.used_after(cells, nanos) <= room);
        }
        let fallen = match room.checked_sub(last.units) {
            Some(room) => first.full + self.moment_of(first.units, room) as i64,
            None => last.full + self.moment_of(last.units, room) as i64,
        };
        fallen.max(0) as u64
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
        let counting = cells.0.iter().filter(|share| share.units > 0);
        counting.map(|share| (share.full + self.per as i64) as u64).max().unwrap_or(0)
    }

    /// What a hit that brings the estimate to `used` will say of when there is more, and all, if
    /// before it there would be more after `more`. What the previous cell weighs falls within this
    /// cell, so before its end; where there is no such cell, the units of the current one fall in
    /// the next.
    pub(crate) fn foreseen(&self, more: u64, used: u64, now: u64) -> (u64, u64) {
        let rest = self.per - now % self.per;
        let next = rest + self.moment_of(used, used.saturating_sub(1));
        (if (1..=rest).contains(&more) { more } else { next }, rest + self.per)
    }

    /// Nanoseconds since anything was spent, whatever the numbers: `u64::MAX` if nothing ever was,
    /// and 0 if that is ahead of the clock.
    pub(crate) fn untouched_for(row: &Row<'_>, at: usize, now: u64) -> u64 {
        let age = |word| {
            let tally = Tally(row.load(word));
            let tick = tick_nanos(tally.class());
            let least = || tally.age(now).map_or(0, |age| age.saturating_sub(tick));
            if tally.is_used() { least() } else { u64::MAX }
        };
        age(at).min(age(at + 1))
    }

    pub(crate) fn reset_words(row: &Row<'_>, at: usize, incarnation: u64, idle: Idle<'_>) -> bool {
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
    use crate::sync::AtomicU64;
    use crate::table::row::{KeyWord, State};

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
            Counter::reset_words(row, 0, 5, None);
            counter.give_back(row, 0, left, 3, START).unwrap();
            assert_eq!(Counter::untouched_for(row, 0, START), u64::MAX, "a fresh word has nothing");
        });
    }

    #[test]
    fn the_younger_word_says_how_long_nothing_was_spent() {
        let counter = Counter { max: 10, per: 10 * SECOND };
        let tick = tick_nanos(class_of(counter.per));
        with_row(|row| {
            assert_eq!(Counter::untouched_for(row, 0, START), u64::MAX);
            take(&counter, row, 1, START).unwrap();
            let then = START + 12 * SECOND;
            let age = Counter::untouched_for(row, 0, then);
            assert!(age <= 12 * SECOND && age + tick >= 12 * SECOND, "{age}");
            take(&counter, row, 1, then).unwrap();
            assert!(Counter::untouched_for(row, 0, then + 5 * SECOND) <= 5 * SECOND);
            assert_eq!(Counter::untouched_for(row, 0, START), 0, "ahead of the clock");
        });
    }

    #[test]
    fn i9_nothing_counts_again_at_the_end_of_all_time() {
        for per in [1_000_000, 10 * SECOND, 366 * 86_400 * SECOND] {
            let counter = Counter { max: 10, per };
            with_row(|row| {
                take(&counter, row, 10, u64::MAX).unwrap();
                let cells = counter.read_after(row, 0, None, u64::MAX);
                assert_eq!(counter.used(&cells), 10);
                assert!(
                    counter.wait(&cells, 1) <= 2 * per && counter.until_clear(&cells) <= 2 * per
                );
            });
        }
        let year = Counter { max: 10, per: 366 * 86_400 * SECOND };
        with_row(|row| {
            take(&year, row, 10, 5).unwrap();
            assert_eq!(year.used(&year.read_after(row, 0, None, u64::MAX)), 0, "584 years later");
            assert!(year.is_idle_in(row, 0, u64::MAX));
        });
    }

    #[test]
    fn fields_neither_meet_nor_leave_gaps() {
        let longest = class_of(366 * 86_400 * SECOND);
        let all = Tally::new(longest, 1, u64::MAX, tick_nanos(longest) * 100);
        assert_eq!((all.class(), all.odd(), all.units()), (longest, 1, MOST));
        assert_eq!((all.0 >> UNIT_BITS) & TICKS, 100);
        assert_eq!(Tally(u64::MAX).class(), (1 << (64 - CLASS_SHIFT)) - 1);
        let minute = Tally::new(class_of(60 * SECOND), 0, 7, 9 * tick_nanos(class_of(60 * SECOND)));
        assert_eq!(format!("{minute:?}"), "Tally(7 at 9 of 481036338 ns)");
    }

    #[test]
    fn a_tick_is_a_hundredth_of_its_per_and_all_ticks_are_a_hundred_thousand_of_it() {
        let mut classes = vec![];
        for per in
            (0..35).map(|n| 1_000_000u64 << n).flat_map(|per| [per, per / 8 * 9, per / 8 * 15])
        {
            let tick = tick_nanos(class_of(per));
            assert!(tick >= per / 126 && tick <= per / 110, "{tick} of {per}");
            let told = u128::from(TICKS / 4 * 3) * u128::from(tick);
            assert!(told >= 100_000 * u128::from(per), "{tick} of {per}");
            classes.push(class_of(per));
        }
        assert!(classes.is_sorted_by(|a, b| a < b), "longer ones have higher classes");
        for damage in [0, 7, 511] {
            assert!(tick_nanos(damage) > 0);
        }
    }
}
