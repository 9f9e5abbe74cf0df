//! A cell: the words of a row that one algorithm owns, and what is done with them.

use super::bucket::word::Bucket;
use super::counter::Counter;
use super::fixed::Fixed;
use super::limit::{Invalid, Limit};
use super::permit::{Permit, Permits};
use super::window::{Entry, WindowLog};
use super::{MOST, MakeCell};
use crate::clock::Time;
use crate::status::{LimitStatus, MOST_LIMITS};
use crate::table::row::{Idle, Moved, Row};

/// What a charge wrote in each cell: the word, or the position of its entry in a log. A status read
/// by these counts that charge, and none that came after it.
pub(crate) type Written = [Option<u64>; MOST_LIMITS];

/// What was taken from one row, for giving exactly that back.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) cells: usize,
    pub(crate) entry: Option<Entry>,
    pub(crate) permit: Option<Permit>,
    pub(crate) written: Written,
}

impl Taken {
    /// Notes what the cell that is being taken wrote: false if it refused.
    #[inline(always)]
    pub(crate) fn note(&mut self, written: Option<u64>) -> bool {
        self.written[self.cells] = written;
        written.is_some()
    }
}

/// The charge of one cell by a reservation.
pub(crate) struct ReservedCharge<'l> {
    /// The limit that was charged.
    pub(crate) limit: &'l Limit,
    pub(crate) cost: u64,
    /// The earliest reading of the clock that the charge may have gone by.
    pub(crate) at: u64,
    pub(crate) written: u64,
    pub(crate) entry: Option<Entry>,
}

impl ReservedCharge<'_> {
    /// Whether it was within the last `per` nanoseconds. Spans and cells have numbers that come
    /// again; what is as old as a period is not of this one.
    pub(crate) fn is_within(&self, per: u64, now: u64) -> bool {
        now.saturating_sub(self.at) < per
    }
}

/// What an algorithm does with its cell, which begins at word `at` of a row.
///
/// `Moved` says that the row was sealed or went to another key: look the key up again.
pub(crate) trait AlgorithmCell {
    /// How many words the cell has.
    fn words(&self) -> usize;

    /// The most that one `record` logs and one `refund` gives back.
    fn most_recorded(&self) -> u64 {
        MOST
    }

    /// Writes what the limit would say to `cost` at `now` into the first of `statuses`. With
    /// `written`, as of the charge that wrote this. A shared cell has the statuses of all limits.
    fn inspect_in(
        &self,
        row: &Row<'_>,
        at: usize,
        written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    );

    /// Whether the limits of the cell would allow `cost` at `now`: [`AlgorithmCell::inspect_in`]
    /// with less to tell.
    fn fits_in(&self, row: &Row<'_>, at: usize, cost: u64, now: u64) -> bool {
        let mut status = [LimitStatus::default()];
        self.inspect_in(row, at, None, cost, now, &mut status);
        status[0].wait == 0
    }

    /// Takes `cost` if it fits, and notes what was taken: false if it does not fit.
    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved>;

    /// Undoes a `take_from` that wrote this.
    fn undo(
        &self,
        row: &Row<'_>,
        at: usize,
        _taken: &Taken,
        written: Option<u64>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        written.map_or(Ok(()), |written| self.give_back(row, at, written, cost, time.now()))
    }

    /// Gives `amount` back to the charge that left this word, as far as its time still runs. Only
    /// cells that are undone by that word have this.
    fn give_back(
        &self,
        _row: &Row<'_>,
        _at: usize,
        _written: u64,
        _amount: u64,
        _now: u64,
    ) -> Result<(), Moved> {
        Ok(())
    }

    /// Gives up to `amount` of a charge back, as far as it still counts.
    fn give_back_own(
        &self,
        row: &Row<'_>,
        at: usize,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved>;

    /// Repairs what a clock fault left ahead of the clock. True if there was anything.
    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved>;

    /// Spends `cost` without asking. What it wrote.
    fn record_in(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved>;

    /// Gives `rest` back, never above full. Lowers `rest` by what an interrupted try gave back.
    fn refund_to(
        &self,
        row: &Row<'_>,
        at: usize,
        rest: &mut u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved>;

    /// Whether the cell is as a new key's by its own limit.
    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool;

    /// Whether no charge of the last `horizon` nanoseconds is in it, whatever limit wrote it.
    fn is_untouched_in(&self, horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool;

    /// Makes the words fresh; see [`Shape::reset_words`](crate::table::row::Shape::reset_words).
    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        incarnation: u64,
        idle: Idle<'_>,
        keep_us: u64,
        now: u64,
    ) -> bool;
}

/// The cell of one algorithm, ready for the hit path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a hit reads a bucket without another hop")]
pub(crate) enum Cell {
    Bucket(Bucket),
    Counter(Counter),
    Fixed(Fixed),
    Permits(Permits),
    /// All windows of a row share one log.
    Windows(WindowLog),
}

/// Evaluates an expression for the cell of whichever algorithm it is.
macro_rules! each_algorithm {
    ($enum:expr, $cell:ident => $act:expr) => {
        match $enum {
            Cell::Bucket($cell) => $act,
            Cell::Counter($cell) => $act,
            Cell::Fixed($cell) => $act,
            Cell::Permits($cell) => $act,
            Cell::Windows($cell) => $act,
        }
    };
}

impl Cell {
    pub(crate) fn words(&self) -> usize {
        each_algorithm!(self, cell => cell.words())
    }

    fn most_recorded(&self) -> u64 {
        each_algorithm!(self, cell => cell.most_recorded())
    }
}

/// A cell, where its words begin, and which limit it is. A shared cell knows its limits, and has 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: usize,
    pub(crate) index: usize,
    pub(crate) cell: Cell,
}

/// The cells of limits that share a row, in the order in which they are taken.
///
/// # Errors
/// Names the limit that has no cell.
pub(crate) fn cells(limits: &[Limit]) -> Result<Box<[Placed]>, (usize, Invalid)> {
    let mut cells = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        let is_first = || limits[..index].iter().all(|other| other.algorithm != limit.algorithm);
        let facts = limit.algorithm.facts();
        let (index, cell) = match facts.cell {
            MakeCell::Own(make) => (index, make(limit).map_err(|why| (index, why))?),
            MakeCell::Shared(make) if is_first() => (0, make(limits)),
            MakeCell::Shared(_) => continue,
        };
        cells.push((facts.order, Placed { at: 0, index, cell }));
    }
    cells.sort_by_key(|(order, _)| *order);
    let mut next = 0;
    let place = |(_, cell): (u8, Placed)| {
        let at = next;
        next += cell.cell.words();
        Placed { at, ..cell }
    };
    Ok(cells.into_iter().map(place).collect())
}

/// Each of these is the method of [`AlgorithmCell`] by that name, for the cell where it lies.
impl Placed {
    pub(crate) fn inspect(
        &self,
        row: &Row<'_>,
        written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    ) {
        let (at, statuses) = (self.at, &mut statuses[self.index..]);
        each_algorithm!(&self.cell, cell => cell.inspect_in(row, at, written, cost, now, statuses));
    }

    pub(crate) fn fits(&self, row: &Row<'_>, cost: u64, now: u64) -> bool {
        each_algorithm!(&self.cell, cell => cell.fits_in(row, self.at, cost, now))
    }

    pub(crate) fn take_from(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        let at = self.at;
        each_algorithm!(&self.cell, cell => cell.take_from(row, at, cost, keep_us, time, taken))
    }

    pub(crate) fn undo(
        &self,
        row: &Row<'_>,
        taken: &Taken,
        written: Option<u64>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = self.at;
        row.check()?;
        each_algorithm!(&self.cell, cell => cell.undo(row, at, taken, written, cost, time))
    }

    pub(crate) fn give_back_own(
        &self,
        row: &Row<'_>,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = self.at;
        each_algorithm!(&self.cell, cell => cell.give_back_own(row, at, charge, amount, time))
    }

    pub(crate) fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        each_algorithm!(&self.cell, cell => cell.repair_clock_skew(row, self.at, time))
    }

    pub(crate) fn record_in(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        let (at, cost) = (self.at, cost.min(self.cell.most_recorded()));
        each_algorithm!(&self.cell, cell => cell.record_in(row, at, cost, keep_us, time))
    }

    pub(crate) fn refund_to(
        &self,
        row: &Row<'_>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = self.at;
        // No more than `record` can have logged, or other charges' units would be given back.
        let mut rest = cost.min(self.cell.most_recorded());
        row.steadily(
            |row| each_algorithm!(&self.cell, cell => cell.refund_to(row, at, &mut rest, time)),
        )
    }

    pub(crate) fn is_idle(&self, row: &Row<'_>, now: u64) -> bool {
        each_algorithm!(&self.cell, cell => cell.is_idle_in(row, self.at, now))
    }

    pub(crate) fn is_untouched_for(&self, horizon: u64, row: &Row<'_>, now: u64) -> bool {
        each_algorithm!(&self.cell, cell => cell.is_untouched_in(horizon, row, self.at, now))
    }

    pub(crate) fn reset_words(
        &self,
        row: &Row<'_>,
        incarnation: u64,
        idle: Idle<'_>,
        keep_us: u64,
        now: u64,
    ) -> bool {
        let at = self.at;
        each_algorithm!(&self.cell, cell => cell.reset_in(row, at, incarnation, idle, keep_us, now))
    }
}
