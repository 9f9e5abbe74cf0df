//! How limits count: one file for each algorithm, and one enum, [`Cell`], that tells them apart.
//!
//! Whatever is done to a cell of a row goes through [`Placed`]. A new algorithm is a file below, a
//! variant of [`Cell`], and an arm in each function here.

pub(crate) mod bucket;
pub(crate) mod counter;
pub(crate) mod fixed;
pub(crate) mod permit;
pub(crate) mod stamp;
pub(crate) mod window;

use crate::clock::Time;
use crate::status::{LimitStatus, MOST_LIMITS, NEVER};
use crate::table::row::{Idle, Moved, Row};
use bucket::word::{Bucket, MILLI, Word};
use counter::Counter;
use fixed::Fixed;
use permit::{Out, Permit, Permits};
use window::{Entry, Ring, Status, Window};

/// The largest `max` and `burst`.
pub const MOST: u64 = 1_000_000_000;

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A token bucket, refilled evenly.
    Bucket,
    /// An exact sliding window.
    Window,
    /// A sliding window estimated from two cells, for a `max` too large to log.
    Counter,
    /// A count that starts at the first hit and is forgotten `per` later.
    Fixed,
    /// Permits that are out at once; `per` is the lease.
    Concurrent,
}

/// One algorithm's numbers, at work in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a hit reads a bucket's numbers without another hop")]
pub(crate) enum Cell {
    Bucket(Bucket),
    Counter(Counter),
    Fixed(Fixed),
    Permits(Permits),
    /// All windows of a row share one log.
    Ring {
        slots: usize,
        windows: Box<[window::Window]>,
    },
}

impl Cell {
    /// The most that one `record` logs and one `refund` gives back.
    pub(crate) fn most_recorded(&self) -> u64 {
        match self {
            Cell::Bucket(bucket) => bucket.burst(),
            Cell::Counter(_) | Cell::Fixed(_) | Cell::Permits(_) => MOST,
            Cell::Ring { .. } => window::MOST_WEIGHT,
        }
    }

    pub(crate) fn words(&self) -> usize {
        match self {
            Cell::Bucket(_) => 1,
            Cell::Counter(_) => counter::WORDS,
            Cell::Fixed(_) => fixed::WORDS,
            Cell::Permits(permits) => permits.slots,
            Cell::Ring { slots, .. } => window::HEADER_WORDS + slots,
        }
    }
}

/// A cell, where its words begin, and which limit it is (a ring's windows know theirs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: usize,
    pub(crate) index: usize,
    pub(crate) cell: Cell,
}

/// What a charge left in each cell: the word that it wrote, or the place of its entry in a log. Who looks
/// at a row by these is told of the charge, and of no other that came after it.
pub(crate) type Left = [Option<u64>; MOST_LIMITS];

/// What was taken from one row, for giving exactly that back.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) cells: usize,
    pub(crate) entry: Option<Entry>,
    pub(crate) permit: Option<Permit>,
    pub(crate) left: Left,
}

/// What a bucket's word says.
#[inline(always)]
pub(crate) fn bucket_status(bucket: &Bucket, word: Word, cost: u64, now: u64) -> LimitStatus {
    let reading = bucket.reading(word, now);
    let (limit, remaining) = (bucket.burst(), reading.tokens());
    let wait = match cost {
        _ if cost > limit => NEVER,
        _ if cost <= remaining => 0,
        _ => reading.wait(cost),
    };
    let more = if remaining < limit { reading.due(remaining + 1) } else { 0 };
    LimitStatus { limit, used: limit - remaining, remaining, wait, more, reset: reading.due(limit) }
}

/// An entry's stamp is rounded up to the microsecond. Only the wait of a refusal has to count with that:
/// a fresh hit of `1/min` says 60 s.
pub(crate) fn window_status(window: &Window, status: Status) -> LimitStatus {
    let Status { used, wait, more, reset } = status;
    let per = window.per_us * stamp::MICRO;
    let (more, reset) = (more.min(per), reset.min(per));
    LimitStatus {
        limit: window.max,
        used,
        remaining: window.max.saturating_sub(used),
        wait,
        more,
        reset,
    }
}

pub(crate) fn permits_status(permits: &Permits, out: &Out) -> LimitStatus {
    let Out { held: used, wait, more, reset, .. } = *out;
    let remaining = permits.max.saturating_sub(used);
    LimitStatus { limit: permits.max, used, remaining, wait, more, reset }
}

impl Placed {
    pub(crate) fn inspect(
        &self,
        row: &Row<'_>,
        left: Option<u64>,
        cost: u64,
        now: u64,
        views: &mut [LimitStatus],
    ) {
        let (at, index) = (self.at, self.index);
        let of = |max: u64, used: u64, wait: u64, more: u64, reset: u64| {
            let wait = if cost > max { NEVER } else { wait };
            LimitStatus { limit: max, used, remaining: max.saturating_sub(used), wait, more, reset }
        };
        match &self.cell {
            Cell::Bucket(bucket) => {
                let word = left.unwrap_or_else(|| row.load(at));
                views[index] = bucket_status(bucket, Word(word), cost, now);
            }
            Cell::Counter(counter) => {
                let cells = counter.read_after(row, at, left, now);
                let wait = if cost > counter.max { NEVER } else { counter.wait(&cells, cost) };
                let (used, reset) = (counter.used(&cells), counter.until_clear(&cells));
                let one_more = counter.max.saturating_sub(used) + 1;
                let more = if used == 0 { 0 } else { counter.wait(&cells, one_more) };
                views[index] = of(counter.max, used, wait, more, reset);
            }
            Cell::Fixed(fixed) => {
                let spent = fixed.read_after(row, at, left, now);
                let reset = fixed.until_over(&spent, now);
                let wait = if spent.used.saturating_add(cost) > fixed.max { reset } else { 0 };
                views[index] = of(fixed.max, spent.used, wait, reset, reset);
            }
            Cell::Permits(permits) => {
                let out = permits.out(row, at, now);
                let view = permits_status(permits, &out);
                views[index] = LimitStatus { wait: if cost == 0 { 0 } else { out.wait }, ..view };
            }
            Cell::Ring { slots, windows } => {
                let ring = Ring::new(row, at, *slots);
                let tell = |w: &Window, status| views[w.index] = window_status(w, status);
                match left {
                    Some(entry) => ring.inspect_by(entry, windows, cost, now, tell),
                    None => ring.inspect(windows, cost, now, tell),
                }
            }
        }
    }

    /// Takes `cost` from one cell: false if it refuses.
    pub(crate) fn take_from(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        let at = self.at;
        let left = match &self.cell {
            Cell::Bucket(bucket) => match bucket::take(row, at, bucket, cost, time)? {
                bucket::Take::Granted(word) => Some(word.0),
                bucket::Take::Denied(_) => None,
            },
            Cell::Counter(counter) => counter.take(row, at, cost, false, time)?,
            Cell::Fixed(fixed) => fixed.take(row, at, cost, false, time)?,
            Cell::Permits(permits) => {
                taken.permit = permits.take(row, at, time)?;
                return Ok(taken.permit.is_some());
            }
            Cell::Ring { slots, windows } => {
                let ring = Ring::new(row, at, *slots);
                taken.entry = ring.take(windows, cost, keep_us, time)?;
                taken.entry.map(|entry| entry.position)
            }
        };
        taken.left[taken.cells] = left;
        Ok(left.is_some())
    }

    pub(crate) fn undo(
        &self,
        row: &Row<'_>,
        taken: &Taken,
        left: Option<u64>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = self.at;
        row.check()?;
        match (&self.cell, left) {
            (Cell::Bucket(bucket), _) => bucket::refund(row, at, bucket, MILLI * cost, time),
            (Cell::Counter(counter), Some(left)) => {
                counter.give_back(row, at, left, cost, time.now())
            }
            (Cell::Fixed(fixed), Some(left)) => fixed.give_back(row, at, left, cost, time.now()),
            (Cell::Counter(_) | Cell::Fixed(_), None) => Ok(()),
            (Cell::Permits(permits), _) => {
                taken.permit.map(|permit| permits.release(row, at, permit, time.now()));
                Ok(())
            }
            (Cell::Ring { slots, .. }, _) => {
                let ring = Ring::new(row, at, *slots);
                taken.entry.into_iter().for_each(|entry| ring.undo(entry));
                Ok(())
            }
        }
    }

    /// As [`Limits::repair_clock_skew`](crate::limits::Limits), for one cell.
    pub(crate) fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let at = self.at;
        match &self.cell {
            Cell::Bucket(bucket) => bucket::repair_clock_skew(row, at, bucket, time),
            Cell::Counter(counter) => counter.repair_clock_skew(row, at, time),
            Cell::Fixed(fixed) => Ok(fixed.repair_clock_skew(row, at, time)),
            Cell::Permits(permits) => permits.repair_clock_skew(row, at, time),
            Cell::Ring { slots, .. } => Ring::new(row, at, *slots).repair_clock_skew(time),
        }
    }

    pub(crate) fn record_in(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        let at = self.at;
        let cost = cost.min(self.cell.most_recorded());
        match &self.cell {
            Cell::Bucket(bucket) => {
                bucket::record(row, at, bucket, cost, time).map(|word| Some(word.0))
            }
            Cell::Counter(counter) => counter.take(row, at, cost, true, time),
            Cell::Fixed(fixed) => fixed.take(row, at, cost, true, time),
            Cell::Permits(_) => Ok(None),
            Cell::Ring { slots, .. } => {
                let ring = Ring::new(row, at, *slots);
                Ok(ring.record(cost, keep_us, time)?.map(|entry| entry.position))
            }
        }
    }

    pub(crate) fn refund_to(
        &self,
        row: &Row<'_>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = self.at;
        // No more than `record` can have logged, or others' units would be given back.
        let mut left = cost.min(self.cell.most_recorded());
        row.steadily(|row| match &self.cell {
            Cell::Bucket(bucket) => bucket::refund(row, at, bucket, MILLI * left, time),
            Cell::Counter(counter) => counter.refund(row, at, &mut left, time.now()),
            Cell::Fixed(fixed) => fixed.refund(row, at, left, time.now()),
            Cell::Permits(_) => Ok(()),
            Cell::Ring { slots, windows } => {
                // By the caller's own windows: older units are not missing in them.
                let per_us = window::longest(windows);
                Ring::new(row, at, *slots).refund(per_us, &mut left, time.now())
            }
        })
    }

    /// Whether the cell is as a new key's by its own numbers.
    pub(crate) fn is_idle(&self, row: &Row<'_>, now: u64) -> bool {
        match &self.cell {
            Cell::Bucket(bucket) => bucket.is_idle(Word(row.load(self.at)), now),
            Cell::Counter(counter) => counter.is_idle(row, self.at, now),
            Cell::Fixed(fixed) => fixed.is_idle(row, self.at, now),
            Cell::Permits(permits) => permits.held(row, self.at, now) == 0,
            Cell::Ring { slots, windows } => {
                Ring::new(row, self.at, *slots).is_idle(window::longest(windows), now)
            }
        }
    }

    /// Whether no charge of the last `horizon` nanoseconds is in the cell, whatever numbers wrote it.
    pub(crate) fn is_untouched_for(&self, horizon: u64, row: &Row<'_>, now: u64) -> bool {
        match &self.cell {
            Cell::Bucket(_) => Word(row.load(self.at)).untouched_for(now) >= horizon,
            Cell::Counter(_) => Counter::untouched_for(row, self.at, now) >= horizon,
            Cell::Fixed(_) => Fixed::untouched_for(row, self.at, now) >= horizon,
            // A permit has its own end in its word.
            Cell::Permits(permits) => permits.held(row, self.at, now) == 0,
            Cell::Ring { slots, .. } => {
                Ring::new(row, self.at, *slots).untouched_for(now) >= horizon
            }
        }
    }

    /// Makes the cell's words fresh; see [`Shape::reset_words`](crate::table::row::Shape::reset_words).
    pub(crate) fn reset_words(
        &self,
        row: &Row<'_>,
        incarnation: u64,
        idle: Idle<'_>,
        keep_us: u64,
        now: u64,
    ) -> bool {
        match &self.cell {
            Cell::Bucket(_) => bucket::reset_words(row, self.at, incarnation, idle),
            Cell::Counter(_) => Counter::reset_words(row, self.at, incarnation, idle),
            Cell::Fixed(_) => Fixed::reset_words(row, self.at, idle),
            Cell::Permits(permits) => {
                permits.reset_words(row, self.at, incarnation, idle.map(|_| now))
            }
            Cell::Ring { slots, .. } => {
                Ring::new(row, self.at, *slots).reset_words(keep_us, now, idle)
            }
        }
    }
}
