//! Several limits in one row: looked at together, taken all or nothing.
//!
//! First all limits are looked at, so that a denial writes nothing. Then they are taken one by one
//! in the order of [`Limits`]; if a later one refuses after all, because somebody else was quicker,
//! what was taken is given back. Between the two a concurrent hit may be refused that would have
//! passed, but none is let through that should not. A process that dies in between has spent
//! what it took.

use crate::NEVER;
use crate::algorithm::bucket::word::{Bucket, MILLI, Word};
use crate::algorithm::counter::Counter;
use crate::algorithm::fixed::Fixed;
use crate::algorithm::permit::{Out, Permit, Permits};
use crate::algorithm::window::{self, Entry, Ring, Status, Window};
use crate::algorithm::{bucket, stamp};
use crate::clock::Time;
use crate::limits::{Algorithm, Cell, Limit, Limits, MOST_LIMITS, Placed};
use crate::table::row::{Idle, Moved, Row};

/// What one limit says: how much is left, and when there is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// A bucket's size, else `max`.
    pub limit: u64,
    /// Whole units that are gone. More than `limit` if more was recorded than allowed.
    pub used: u64,
    /// Whole units that are left.
    pub remaining: u64,
    /// Nanoseconds until the cost asked about fits: 0 if it does, [`NEVER`] if it can't.
    pub wait: u64,
    /// Nanoseconds until more than `remaining` is left: 0 if nothing is used.
    pub more: u64,
    /// Nanoseconds until the whole quota is there again.
    pub reset: u64,
}

impl View {
    /// What a limit would say after a hit of `cost` that it allows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::{Clock, Engine, Limit, Limits, Options};
    ///
    /// let limit = Limit::bucket(20, Duration::from_secs(60));
    /// let (clock, _) = Clock::manual(0);
    /// let options = Options { clock, ..Options::default() };
    /// let engine = Engine::new(Limits::new(&[limit]).unwrap(), options).unwrap();
    /// let foreseen = engine.peek(b"alice", 2).views[0].after(&limit, 2, 0);
    /// assert_eq!(foreseen, engine.hit(b"alice", 2).views[0]);
    /// ```
    #[must_use]
    pub fn after(self, limit: &Limit, cost: u64, now: u64) -> View {
        if cost == 0 || limit.max == 0 {
            return self;
        }
        let per = limit.per.as_nanos() as u64;
        let held = if limit.algorithm == Algorithm::Concurrent { 1 } else { cost };
        let used = self.used.saturating_add(held);
        let refill = |tokens: u64| {
            let product = u128::from(tokens) * u128::from(per);
            product.div_ceil(u128::from(limit.max)) as u64
        };
        // A lease starts at a whole microsecond, rounded down.
        let leased = per - now % stamp::MICRO;
        let or = |first: u64| if self.used == 0 { first } else { self.more };
        let (more, reset) = match limit.algorithm {
            Algorithm::Bucket => (or(refill(1)), self.reset.saturating_add(refill(cost))),
            Algorithm::Counter => Counter { max: limit.max, per }.foreseen(self.more, used, now),
            Algorithm::Fixed if self.reset > 0 => (or(self.reset), self.reset),
            Algorithm::Fixed | Algorithm::Window => (or(per), per),
            Algorithm::Concurrent => (or(leased).min(leased), leased),
        };
        let remaining = self.remaining.saturating_sub(held);
        View { used, remaining, wait: 0, more, reset: self.reset.max(reset), ..self }
    }
}

/// What the limits of a row say, in the order in which they were stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Views {
    views: [View; MOST_LIMITS],
    len: u8,
}

impl Views {
    pub(crate) fn one(view: View) -> Views {
        let mut views = Views::default();
        views.set_one(view);
        views
    }

    pub(crate) fn set_one(&mut self, view: View) {
        self.views[0] = view;
        self.len = 1;
    }

    pub(crate) fn set_wait(&mut self, wait: u64) {
        self.views[0].wait = wait;
    }

    /// Whether the cost fits every limit now.
    pub fn fits(&self) -> bool {
        self.iter().all(|view| view.wait == 0)
    }

    /// The longest wait of the limits: 0 if the cost fits.
    pub fn wait(&self) -> u64 {
        self.iter().map(|view| view.wait).max().unwrap_or(0)
    }
}

/// The first [`MOST_LIMITS`] of them.
impl FromIterator<View> for Views {
    fn from_iter<I: IntoIterator<Item = View>>(each: I) -> Views {
        let mut views = Views::default();
        for (slot, view) in views.views.iter_mut().zip(each) {
            *slot = view;
            views.len += 1;
        }
        views
    }
}

impl std::ops::Deref for Views {
    type Target = [View];
    fn deref(&self) -> &[View] {
        &self.views[..usize::from(self.len)]
    }
}

/// What a charge left in each cell: the word that it wrote, or the place of its entry in a log. Who looks
/// at a row by these is told of the charge, and of no other that came after it.
pub(crate) type Left = [Option<u64>; MOST_LIMITS];

/// What was taken from one row, for giving exactly that back.
#[derive(Default)]
pub(crate) struct Taken {
    cells: usize,
    pub(crate) entry: Option<Entry>,
    pub(crate) permit: Option<Permit>,
    pub(crate) left: Left,
}

/// What a bucket's word says.
#[inline(always)]
pub(crate) fn bucket_view(bucket: &Bucket, word: Word, cost: u64, now: u64) -> View {
    let reading = bucket.reading(word, now);
    let (limit, remaining) = (bucket.burst(), reading.tokens());
    let wait = match cost {
        _ if cost > limit => NEVER,
        _ if cost <= remaining => 0,
        _ => reading.wait(cost),
    };
    let more = if remaining < limit { reading.due(remaining + 1) } else { 0 };
    View { limit, used: limit - remaining, remaining, wait, more, reset: reading.due(limit) }
}

/// An entry's stamp is rounded up to the microsecond. Only the wait of a refusal has to count with that:
/// a fresh hit of `1/min` says 60 s.
fn window_view(window: &Window, status: Status) -> View {
    let Status { used, wait, more, reset } = status;
    let per = window.per_us * stamp::MICRO;
    let (more, reset) = (more.min(per), reset.min(per));
    View { limit: window.max, used, remaining: window.max.saturating_sub(used), wait, more, reset }
}

pub(crate) fn permits_view(permits: &Permits, out: &Out) -> View {
    let Out { held: used, wait, more, reset, .. } = *out;
    let remaining = permits.max.saturating_sub(used);
    View { limit: permits.max, used, remaining, wait, more, reset }
}

impl Limits {
    /// What a key that was never seen would be told.
    pub(crate) fn views_of_new(&self, cost: u64) -> Views {
        let new = |stated: &Limit| {
            let limit = stated.size();
            let fits = match stated.algorithm {
                Algorithm::Concurrent => stated.max > 0,
                _ => cost <= limit && stated.max > 0,
            };
            let wait = if fits { 0 } else { NEVER };
            let more = if stated.max > 0 { 0 } else { NEVER };
            View { limit, used: 0, remaining: limit, wait, more, reset: 0 }
        };
        self.stated.iter().map(new).collect()
    }

    /// What each limit would say to `cost` now, writing nothing. (Views are large to hand back.)
    pub(crate) fn look(
        &self,
        row: &Row<'_>,
        cost: u64,
        now: u64,
        views: &mut Views,
    ) -> Result<(), Moved> {
        self.look_by(row, &Left::default(), cost, now, views)
    }

    /// The same as of the charge that left this.
    pub(crate) fn look_by(
        &self,
        row: &Row<'_>,
        left: &Left,
        cost: u64,
        now: u64,
        views: &mut Views,
    ) -> Result<(), Moved> {
        views.len = self.len() as u8;
        row.steadily(|row| {
            for (placed, left) in self.placed.iter().zip(left) {
                self.look_at(placed, row, *left, cost, now, &mut views.views);
            }
            for (view, stated) in views.views.iter_mut().zip(&self.stated) {
                if stated.max == 0 {
                    *view = View { wait: NEVER, more: NEVER, reset: view.reset, ..View::default() };
                }
            }
            row.check()
        })
    }

    fn look_at(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        left: Option<u64>,
        cost: u64,
        now: u64,
        views: &mut [View],
    ) {
        let (at, index) = (placed.at, placed.index);
        let of = |max: u64, used: u64, wait: u64, more: u64, reset: u64| {
            let wait = if cost > max { NEVER } else { wait };
            View { limit: max, used, remaining: max.saturating_sub(used), wait, more, reset }
        };
        match &placed.cell {
            Cell::Bucket(bucket) => {
                let word = left.unwrap_or_else(|| row.load(at));
                views[index] = bucket_view(bucket, Word(word), cost, now);
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
                let view = permits_view(permits, &out);
                views[index] = View { wait: if cost == 0 { 0 } else { out.wait }, ..view };
            }
            Cell::Ring { slots, windows } => {
                let ring = Ring::new(row, at, *slots);
                let tell = |w: &Window, status| views[w.index] = window_view(w, status);
                match left {
                    Some(entry) => ring.look_by(entry, windows, cost, now, tell),
                    None => ring.look(windows, cost, now, tell),
                }
            }
        }
    }

    /// Takes `cost` from every limit or from none: false if one refuses. Callers have looked first. A log's
    /// entries that are younger than `keep_us` are kept, for other numbers too. `taken` is an out-parameter,
    /// as it is large: to return it cost a third of a hit on a fixed count.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        *taken = Taken::default();
        for placed in &self.placed {
            match self.take_from(placed, row, cost, keep_us, time, taken) {
                Ok(true) => taken.cells += 1,
                // A row that was sealed may have been reset: start over from what it is now.
                refused => {
                    self.give_back(row, taken, cost, time);
                    return refused;
                }
            }
        }
        Ok(true)
    }

    /// As `take` for limits that are one log of windows, else `None`. A log that refuses is looked at
    /// once: `views` has what its windows said.
    pub(crate) fn hit_lone_ring(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        views: &mut Views,
        taken: &mut Taken,
    ) -> Option<Result<bool, Moved>> {
        let [Placed { at, cell: Cell::Ring { slots, windows }, .. }] = &*self.placed else {
            return None;
        };
        views.len = self.len() as u8;
        let tell = |w: &Window, status| views.views[w.index] = window_view(w, status);
        let ring = Ring::new(row, *at, *slots);
        let entry = ring.hit(windows, cost, keep_us, time, tell);
        Some(entry.map(|entry| {
            taken.cells = 1;
            taken.entry = entry;
            taken.left[0] = entry.map(|entry| entry.position);
            entry.is_some()
        }))
    }

    /// Takes `cost` from one cell: false if it refuses.
    fn take_from(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        let at = placed.at;
        let left = match &placed.cell {
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

    /// Undoes a `take`. A row that was cleared since, or is another's, gets nothing, so that no unit of a later hit
    /// is given back. One that was sealed by an evictor that found it in use is reopened.
    pub(crate) fn give_back(&self, row: &Row<'_>, taken: &Taken, cost: u64, time: &mut Time<'_>) {
        for (placed, left) in self.placed[..taken.cells].iter().zip(&taken.left) {
            let mut undo = |row: &Row<'_>| self.undo(placed, row, taken, *left, cost, time);
            if row.unless_cleared(&mut undo).is_err() {
                return;
            }
        }
    }

    fn undo(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        taken: &Taken,
        left: Option<u64>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = placed.at;
        row.check()?;
        match (&placed.cell, left) {
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

    /// Mends what a clock fault left in the future, so that a refusal's wait is right. True if that
    /// changed anything, or the clock turned out to be later than it was read.
    pub(crate) fn mend(&self, row: &Row<'_>, time: &mut Time<'_>) -> Result<bool, Moved> {
        let before = time.now();
        let mut any = false;
        for placed in &self.placed {
            let at = placed.at;
            any |= match &placed.cell {
                Cell::Bucket(bucket) => bucket::mend(row, at, bucket, time)?,
                Cell::Counter(counter) => counter.mend(row, at, time)?,
                Cell::Fixed(fixed) => fixed.mend_open(row, at, time),
                Cell::Permits(permits) => permits.mend(row, at, time)?,
                Cell::Ring { slots, .. } => Ring::new(row, at, *slots).mend_ahead(time)?,
            };
        }
        Ok(any || time.now() != before)
    }

    /// Spends without asking. Permits are not spent but held, so they are left alone.
    pub(crate) fn record(
        &self,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Left, Moved> {
        let mut left = Left::default();
        for (placed, left) in self.placed.iter().zip(&mut left) {
            *left = row.steadily(|row| self.record_in(placed, row, cost, keep_us, time))?;
        }
        Ok(left)
    }

    fn record_in(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        let at = placed.at;
        let cost = cost.min(placed.cell.most_recorded());
        match &placed.cell {
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

    /// Gives `cost` back to every limit. A row that is another's by now was idle: nothing is owed.
    pub(crate) fn refund(&self, row: &Row<'_>, cost: u64, time: &mut Time<'_>) {
        for placed in &self.placed {
            if self.refund_to(placed, row, cost, time).is_err() {
                return;
            }
        }
    }

    fn refund_to(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let at = placed.at;
        // No more than `record` can have logged, or others' units would be given back.
        let mut left = cost.min(placed.cell.most_recorded());
        row.steadily(|row| match &placed.cell {
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
}

impl Placed {
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

    /// Makes the cell's words fresh; see [`Shape::freshen`](crate::table::row::Shape::freshen).
    pub(crate) fn freshen(
        &self,
        row: &Row<'_>,
        incarnation: u64,
        idle: Idle<'_>,
        keep_us: u64,
        now: u64,
    ) -> bool {
        match &self.cell {
            Cell::Bucket(_) => bucket::freshen(row, self.at, incarnation, idle),
            Cell::Counter(_) => Counter::freshen(row, self.at, incarnation, idle),
            Cell::Fixed(_) => Fixed::freshen(row, self.at, idle),
            Cell::Permits(permits) => permits.freshen(row, self.at, incarnation, idle.map(|_| now)),
            Cell::Ring { slots, .. } => Ring::new(row, self.at, *slots).freshen(keep_us, now, idle),
        }
    }
}
