//! What one key's limits must answer, in exact arithmetic.
//!
//! Nothing here is shared with the engine. A bucket is a real number that grows, a window is a list
//! of what was spent when. A counter is two cells, a fixed span is a start and a sum. Waits are
//! found by letting time pass until the cost fits, not by the engine's formulas.
//!
//! **Exact.** A bucket's content is a fraction whose denominator is always `per`, so it is kept as
//! its numerator, in *grains* of 1/per token: a nanosecond refills `max` grains, a token is `per`
//! of them. The largest sums are 10^9 tokens of 3·10^16 grains and 2^64 ns of 10^9, far within an
//! `i128`.
//!
//! **Promise 6.** The engine may lose up to 1/1000 token for each charge and gain none. So a bucket
//! is two exact ones: `most`, which loses nothing, and `least`, which loses all that may be lost.
//! The engine's answer must be one that a content between the two gives. Both are the same as soon
//! as both are full, so "since the bucket was last full" needs no bookkeeping.
//!
//! **Microseconds.** Windows and fixed spans keep a moment rounded up to the microsecond and judge
//! it by the clock rounded down, in the reference as in the engine.

#![allow(dead_code)] // Each test file uses its own part of this.

use tidegate_core::{Algorithm, Limit, LimitStatus, Limits, NEVER};

/// Nanoseconds in a microsecond.
const MICRO: u64 = 1000;
/// The most units that a cell of a counter can tell (30 bits, two codes less): it stays there.
const FULL_CELL: u64 = (1 << 30) - 2;
/// The most that one record adds to a counter or a fixed span, and one refund takes off.
const MOST_AT_ONCE: u64 = 1_000_000_000;
/// The same for a log, whose weights have 13 bits.
const MOST_LOGGED: u64 = 8_191;

/// Whether a cost fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Grants,
    Refuses,
    /// It fits by exact arithmetic, but not if all that may be lost was lost.
    Either,
}

/// From the least to the most that a number may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub u64, pub u64);

impl Span {
    fn just(exact: u64) -> Span {
        Span(exact, exact)
    }
    fn has(self, value: u64) -> bool {
        (self.0..=self.1).contains(&value)
    }
}

/// What a limit may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub limit: u64,
    pub used: Span,
    pub remaining: Span,
    pub wait: Span,
    pub reset: Span,
}

impl Expected {
    fn exactly(limit: u64, used: u64, wait: u64, reset: u64) -> Expected {
        let remaining = Span::just(limit.saturating_sub(used));
        let (used, wait, reset) = (Span::just(used), Span::just(wait), Span::just(reset));
        Expected { limit, used, remaining, wait, reset }
    }

    /// Whether the engine said so.
    pub fn admits(&self, status: &LimitStatus) -> bool {
        self.limit == status.limit
            && self.used.has(status.used)
            && self.remaining.has(status.remaining)
            && self.wait.has(status.wait)
            && self.reset.has(status.reset)
    }
}

/// A token bucket between the most and the least that may be in it, in grains.
#[derive(Clone, Debug)]
pub struct Bucket {
    max: i128,
    per: i128,
    size: i128,
    most: i128,
    least: i128,
    /// As `most`, but for what clock faults took away. A second fault may bring that back.
    unfaulted: i128,
    /// When that was counted.
    at: u64,
    /// The latest that the clock has shown. A stamp may be ahead of a clock that went back, and
    /// nothing is refilled for sure until the clock is there again.
    latest: u64,
    tick_nanos: u64,
}

impl Bucket {
    fn new(limit: &Limit, tick_nanos: u64) -> Bucket {
        let per = limit.per.as_nanos() as i128;
        let size = i128::from(limit.burst.unwrap_or(limit.max)) * per;
        let max = i128::from(limit.max);
        let (most, least, unfaulted) = (size, size, size);
        Bucket { max, per, size, most, least, unfaulted, at: 0, latest: 0, tick_nanos }
    }

    /// What a charge may lose: 1/1000 token, or a ten-millionth of a bucket above 100,000.
    fn loss(&self) -> i128 {
        let is_deep = self.size > 100_000 * self.per;
        if is_deep { self.size / 10_000_000 } else { self.per / 1000 }
    }

    fn refill(&mut self, now: u64) {
        let grown = self.max * i128::from(now.saturating_sub(self.at));
        let surely = self.max * i128::from(now.saturating_sub(self.at.max(self.latest)));
        self.most = self.size.min(self.most + grown);
        self.least = self.size.min(self.least + surely);
        self.latest = self.latest.max(now);
        // May be above full already: see `refund`.
        self.unfaulted = self.unfaulted.max(self.size.min(self.unfaulted + grown));
        self.at = now;
    }

    fn refilled(&self, now: u64) -> Bucket {
        let mut then = self.clone();
        then.refill(now);
        then
    }

    /// The documented exception to "none gained" (word.rs, Rounding): where a tick refills a token
    /// or more, a line that starts anew may be early by what a charge may lose.
    fn start_line(&mut self) {
        if self.max * i128::from(self.tick_nanos) >= self.per {
            self.most = self.size.min(self.most + self.loss());
            self.unfaulted = self.unfaulted.max(self.most);
        }
    }

    fn verdict(&self, cost: u64, now: u64) -> Verdict {
        let (then, cost) = (self.refilled(now), i128::from(cost) * self.per);
        match (then.least >= cost, then.most >= cost) {
            (true, _) => Verdict::Grants,
            (_, false) => Verdict::Refuses,
            _ => Verdict::Either,
        }
    }

    fn charge(&mut self, cost: u64, now: u64) {
        self.refill(now);
        let is_full = self.most == self.size;
        let cost = i128::from(cost) * self.per;
        self.most -= cost;
        self.unfaulted -= cost;
        if is_full {
            self.start_line();
        }
        self.least = (self.least - cost).max(0) - self.loss();
    }

    fn record(&mut self, cost: u64, now: u64) {
        self.refill(now);
        let cost = i128::from(cost) * self.per;
        self.most = (self.most - cost).max(0);
        self.unfaulted = (self.unfaulted - cost).max(0);
        self.start_line();
        self.least = (self.least - cost).max(0) - self.loss();
    }

    fn refund(&mut self, cost: u64, now: u64) {
        self.refill(now);
        let back = i128::from(cost) * self.per;
        if self.most + back >= self.size {
            self.start_line();
        }
        // The engine judges "never above full" by what a clock fault left. A second fault may bring
        // back what the first took, on top of the refund: known, and no more than was refunded.
        let whole = self.most == self.unfaulted;
        self.most = self.size.min(self.most + back);
        self.unfaulted = if whole { self.most } else { self.unfaulted + back };
        self.least = self.size.min(self.least + back);
    }

    /// The clock went back: what is there stays, and how much of it the engine takes for not yet
    /// earned is its own affair.
    fn go_back(&mut self, from: u64, now: u64) {
        self.refill(from);
        self.at = now;
        self.most = self.size.min(self.unfaulted);
        self.least = -self.loss();
    }

    /// Takes the engine's word for what is there, as its wait for the rest has it. That counts from
    /// the next tick on, so now there may be the thousandth more that it loses until then.
    fn follow(&mut self, status: &LimitStatus, now: u64) {
        self.refill(now);
        let missing = |nanos: u64| self.max * i128::from(nanos);
        let told = self.size - missing(status.reset.saturating_sub(1)) + self.loss();
        self.most = self.most.min(told);
        // A start that was rounded up to a part of a tick is not told.
        self.least = self.least.max(self.size - missing(status.reset) - self.loss());
        self.start_line();
    }

    fn wait(&self, content: i128, goal: i128) -> u64 {
        let missing = (goal - content).max(0);
        ((missing + self.max - 1) / self.max) as u64
    }

    fn status(&self, cost: u64, now: u64) -> Expected {
        let then = self.refilled(now);
        let tokens = |content: i128| (content.max(0) / self.per) as u64;
        let size = tokens(self.size);
        let until = |goal| Span(self.wait(then.most, goal), self.wait(then.least, goal));
        let wait = match cost > size {
            true => Span::just(NEVER),
            false => until(i128::from(cost) * self.per),
        };
        let remaining = Span(tokens(then.least), tokens(then.most));
        let used = Span(size - remaining.1, size - remaining.0);
        Expected { limit: size, used, remaining, wait, reset: until(self.size) }
    }
}

/// When units were spent, in nanoseconds: by a log's reckoning, rounded up to whole microseconds.
#[derive(Clone, Copy, Debug)]
struct Entry {
    stamp: u64,
    units: u64,
}

impl Entry {
    /// Still counts in a window of `per` microseconds that ends `now`.
    fn counts(&self, per: u64, now: u64) -> bool {
        now < self.stamp + per * MICRO
    }
    /// Nanoseconds until it does not.
    fn leaves(&self, per: u64, now: u64) -> u64 {
        (self.stamp + per * MICRO).saturating_sub(now)
    }
}

fn used(log: &[Entry], per: u64, now: u64) -> u64 {
    log.iter().filter(|e| e.counts(per, now)).map(|e| e.units).sum()
}

/// Lets the oldest entries leave, one after the other, until `cost` fits.
fn window_status(log: &[Entry], max: u64, per: u64, cost: u64, now: u64) -> Expected {
    let spent = used(log, per, now);
    let live = || log.iter().filter(|e| e.units > 0 && e.counts(per, now));
    let (mut left, mut wait) = (spent, 0);
    for oldest in live() {
        if left + cost <= max {
            break;
        }
        left -= oldest.units;
        wait = oldest.leaves(per, now);
    }
    // A stamp that was rounded up is not told.
    let reset = live().next_back().map_or(0, |e| e.leaves(per, now).min(per * MICRO));
    Expected::exactly(max, spent, wait, reset)
}

/// Units spent in each cell of `per` nanoseconds.
#[derive(Clone, Debug)]
pub struct Counter {
    max: u64,
    per: u64,
    cells: Vec<(u64, u64)>,
}

impl Counter {
    fn units(&self, cell: Option<u64>) -> u64 {
        let of = |&&(number, _): &&(u64, u64)| Some(number) == cell;
        self.cells.iter().rev().find(of).map_or(0, |&(_, units)| units)
    }

    /// The current cell, and the previous one weighted by how much the window covers it, rounded
    /// up.
    fn used(&self, now: u128) -> u64 {
        let per = u128::from(self.per);
        let (cell, into) = ((now / per) as u64, now % per);
        let previous = u128::from(self.units(cell.checked_sub(1)));
        self.units(Some(cell)) + (previous * (per - into)).div_ceil(per) as u64
    }

    fn add(&mut self, cost: u64, now: u64) {
        let cell = now / self.per;
        let units = self.units(Some(cell)).saturating_add(cost).min(FULL_CELL);
        self.cells.retain(|&(number, _)| number != cell);
        self.cells.push((cell, units));
        self.cells.drain(..self.cells.len().saturating_sub(2));
    }

    fn refund(&mut self, cost: u64, now: u64) {
        let cell = now / self.per;
        let mut left = cost;
        for number in [Some(cell), cell.checked_sub(1)] {
            for (_, units) in self.cells.iter_mut().filter(|(n, _)| Some(*n) == number) {
                let back = left.min(*units);
                (*units, left) = (*units - back, left - back);
            }
        }
    }

    /// The first moment at which no more than `goal` is used. The estimate only falls with time,
    /// and after two cells nothing is left of it.
    fn until(&self, goal: u64, now: u64) -> u64 {
        let (mut low, mut high) = (0, 2 * self.per);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.used(u128::from(now) + u128::from(middle)) <= goal {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    fn status(&self, cost: u64, now: u64) -> Expected {
        let wait = self.max.checked_sub(cost).map_or(NEVER, |goal| self.until(goal, now));
        Expected::exactly(self.max, self.used(now.into()), wait, self.until(0, now))
    }
}

/// A sum and when it began. One that was all given back is as good as none.
#[derive(Clone, Debug)]
pub struct Fixed {
    max: u64,
    per: u64,
    span: Option<Entry>,
}

impl Fixed {
    fn open(&self, now: u64) -> Option<Entry> {
        self.span.filter(|span| span.units > 0 && span.counts(self.per, now))
    }

    fn used(&self, now: u64) -> u64 {
        self.open(now).map_or(0, |span| span.units)
    }

    fn add(&mut self, cost: u64, now: u64) {
        let new = Entry { stamp: now, units: 0 };
        let span = self.open(now).unwrap_or(new);
        self.span = Some(Entry { units: span.units.saturating_add(cost), ..span });
    }

    fn refund(&mut self, cost: u64, now: u64) {
        if let Some(span) = self.open(now) {
            self.span = Some(Entry { units: span.units.saturating_sub(cost), ..span });
        }
    }

    fn status(&self, cost: u64, now: u64) -> Expected {
        let used = self.used(now);
        let reset = self.open(now).map_or(0, |span| span.leaves(self.per, now));
        let fits = used.checked_add(cost).is_some_and(|sum| sum <= self.max);
        let wait = if cost > self.max { NEVER } else { u64::from(!fits) * reset };
        Expected::exactly(self.max, used, wait, reset)
    }
}

#[derive(Clone, Debug)]
enum State {
    Bucket(Bucket),
    /// All windows of a key judge one log.
    Window {
        max: u64,
        per: u64,
    },
    Counter(Counter),
    Fixed(Fixed),
}

impl State {
    fn new(limit: &Limit, tick_nanos: u64) -> State {
        let (max, per) = (limit.max, limit.per.as_micros() as u64);
        match limit.algorithm {
            Algorithm::Bucket => State::Bucket(Bucket::new(limit, tick_nanos)),
            Algorithm::Window => State::Window { max, per },
            Algorithm::Counter => {
                State::Counter(Counter { max, per: per * MICRO, cells: Vec::new() })
            }
            Algorithm::Fixed => State::Fixed(Fixed { max, per, span: None }),
            _ => unimplemented!("permits are held, not spent"),
        }
    }
}

/// One key's limits.
#[derive(Clone, Debug)]
pub struct Reference {
    fresh: Vec<State>,
    states: Vec<State>,
    log: Vec<Entry>,
    longest: u64,
    slots: usize,
}

impl Reference {
    pub fn new(limits: &Limits) -> Reference {
        let state = |(i, limit)| State::new(limit, limits.tick_length(i));
        let fresh: Vec<State> = limits.stated().iter().enumerate().map(state).collect();
        let windows = || limits.stated().iter().filter(|l| l.algorithm == Algorithm::Window);
        let longest = windows().map(|l| l.per.as_micros() as u64).max().unwrap_or(0);
        let slots = windows().map(|l| l.max).max().unwrap_or(0) as usize;
        Reference { states: fresh.clone(), fresh, log: Vec::new(), longest, slots }
    }

    /// Whether `cost` fits every limit.
    pub fn verdict(&self, cost: u64, now: u64) -> Verdict {
        let each = self.states.iter().map(|state| match state {
            State::Bucket(bucket) => bucket.verdict(cost, now),
            State::Window { max, per } => fits(used(&self.log, *per, now), cost, *max),
            State::Counter(counter) => fits(counter.used(now.into()), cost, counter.max),
            State::Fixed(fixed) => fits(fixed.used(now), cost, fixed.max),
        });
        each.fold(Verdict::Grants, |all, one| match (all, one) {
            (Verdict::Refuses, _) | (_, Verdict::Refuses) => Verdict::Refuses,
            (Verdict::Either, _) | (_, Verdict::Either) => Verdict::Either,
            _ => Verdict::Grants,
        })
    }

    /// What each limit says to `cost`.
    pub fn statuses(&self, cost: u64, now: u64) -> Vec<Expected> {
        let status = |state: &State| match state {
            State::Bucket(bucket) => bucket.status(cost, now),
            State::Window { max, per } if cost > *max => {
                let wait = Span::just(NEVER);
                Expected { wait, ..window_status(&self.log, *max, *per, 0, now) }
            }
            State::Window { max, per } => window_status(&self.log, *max, *per, cost, now),
            State::Counter(counter) => counter.status(cost, now),
            State::Fixed(fixed) => fixed.status(cost, now),
        };
        self.states.iter().map(status).collect()
    }

    /// A hit of `cost` was granted.
    pub fn charge(&mut self, cost: u64, now: u64) {
        self.spend(cost, now, Bucket::charge);
    }

    /// Spends without asking.
    pub fn record(&mut self, cost: u64, now: u64) {
        self.spend(cost, now, Bucket::record);
    }

    fn spend(&mut self, cost: u64, now: u64, from: fn(&mut Bucket, u64, u64)) {
        for state in &mut self.states {
            match state {
                State::Bucket(bucket) => from(bucket, cost, now),
                State::Window { .. } => {}
                State::Counter(counter) => counter.add(cost.min(MOST_AT_ONCE), now),
                State::Fixed(fixed) => fixed.add(cost.min(MOST_AT_ONCE), now),
            }
        }
        if self.slots > 0 {
            let units = cost.min(MOST_LOGGED);
            self.log.push(Entry { stamp: now.next_multiple_of(MICRO), units });
        }
    }

    /// Gives back.
    pub fn refund(&mut self, cost: u64, now: u64) {
        for state in &mut self.states {
            match state {
                State::Bucket(bucket) => bucket.refund(cost, now),
                State::Window { .. } => {}
                State::Counter(counter) => counter.refund(cost.min(MOST_AT_ONCE), now),
                State::Fixed(fixed) => fixed.refund(cost.min(MOST_AT_ONCE), now),
            }
        }
        let mut left = cost.min(MOST_LOGGED);
        for entry in self.log.iter_mut().rev().filter(|e| e.counts(self.longest, now)) {
            let back = left.min(entry.units);
            (entry.units, left) = (entry.units - back, left - back);
        }
    }

    pub fn reset(&mut self) {
        (self.states, self.log) = (self.fresh.clone(), Vec::new());
    }

    /// The clock went back: what lies in the future becomes now.
    pub fn go_back(&mut self, from: u64, now: u64) {
        let here = now.next_multiple_of(MICRO);
        self.log.iter_mut().for_each(|entry| entry.stamp = entry.stamp.min(here));
        for state in &mut self.states {
            match state {
                State::Bucket(bucket) => bucket.go_back(from, now),
                State::Fixed(Fixed { span: Some(span), .. }) => span.stamp = span.stamp.min(now),
                State::Counter(_) => unimplemented!("a counter moves its cells by parity"),
                _ => {}
            }
        }
    }

    /// Takes the engine's word for what buckets hold after a clock fault.
    pub fn follow(&mut self, statuses: &[LimitStatus], now: u64) {
        for (state, status) in self.states.iter_mut().zip(statuses) {
            if let State::Bucket(bucket) = state {
                bucket.follow(status, now);
            }
        }
    }

    /// Whether the log may have no place for another entry: then a record makes it forget its
    /// oldest.
    pub fn log_may_be_full(&self, now: u64) -> bool {
        let live = self.log.iter().filter(|e| e.counts(self.longest, now)).count();
        self.slots > 0 && live >= self.slots
    }

    /// Whether an entry that had left every window by `latest` would be back in one `now`. The
    /// engine may have overwritten it or not.
    pub fn revives(&self, latest: u64, now: u64) -> bool {
        let gone = |e: &&Entry| !e.counts(self.longest, latest);
        self.log.iter().filter(gone).any(|e| e.counts(self.longest, now))
    }
}

fn fits(used: u64, cost: u64, max: u64) -> Verdict {
    match used.checked_add(cost).is_some_and(|sum| sum <= max) {
        true => Verdict::Grants,
        false => Verdict::Refuses,
    }
}
