//! One key that is judged by several sets of numbers under a clock that may jump, in exact
//! arithmetic.
//!
//! SPEC promises bounds, not one answer: a charge may lose a little, a change of numbers may cost
//! what the old rate had refilled, a clock fault may cost a full refill. So each model here holds
//! the least and the most that the contract allows, and says [`Verdict::Either`] between them.
//! Nothing is shared with the engine, and nothing is taken from how the engine keeps its state.
//!
//! * `now` is what the clock shows. `passed` is how far it has moved forward, all steps added up. A
//!   clock that goes back changes `now` only.
//! * **Never too much** is judged by `passed`: a unit that was spent counts until `per` has passed.
//! * **Never too little** is judged by `now`: a stored time counts until the clock shows `per`
//!   more. A stored time ahead of the clock is now, for good once a denial has seen it (promises 5
//!   and 8).

#![allow(dead_code)] // Each test file uses its own part of this.

use tidegate_core::Limit;

pub const MICRO: u64 = 1_000;
pub const MILLI: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
pub const DAY: u64 = 86_400 * SECOND;
pub const YEAR: u64 = 365 * DAY;

/// Whether a cost fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Grants,
    Refuses,
    /// The contract allows both.
    Either,
}

impl Verdict {
    fn of(surely_fits: bool, may_fit: bool) -> Verdict {
        match (surely_fits, may_fit) {
            (_, false) => Verdict::Refuses,
            (true, _) => Verdict::Grants,
            _ => Verdict::Either,
        }
    }
}

pub fn per(limit: &Limit) -> u64 {
    limit.per.as_nanos() as u64
}

pub fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

// ---- Token buckets ----

/// Grains in a token, for which every rate and every loss below is a whole number of grains. `None`
/// if an `i128` could overflow.
pub fn grains(limits: &[Limit]) -> Option<i128> {
    let pers = limits.iter().map(|limit| i128::from(per(limit)));
    // Losses are 1/1000 token and 1/10,000,000 of a bucket.
    let all = pers.fold(10_000_000, |all: i128, per| all.saturating_mul(per / gcd(all, per)));
    (all <= 10i128.pow(28)).then_some(all)
}

/// One set of a bucket's numbers, in grains.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Refilled in a nanosecond.
    rate: i128,
    pub size: i128,
    /// What a charge may lose (promise 6).
    loss: i128,
    /// How much a token may come early (promise 6).
    early: i128,
    /// How far the moment of a charge may be kept off, in nanoseconds (promise 7).
    slack: u64,
    /// What a stamp tells apart, in nanoseconds (promise 8).
    horizon: u64,
}

impl Numbers {
    pub fn new(limit: &Limit, tick: u64, token: i128) -> Numbers {
        let rate = i128::from(limit.max) * (token / i128::from(per(limit)));
        let size = i128::from(limit.size()) * token;
        let deep = limit.size() > 100_000;
        let loss = if deep { size / 10_000_000 } else { token / 1000 };
        // Promise 6 says "a whole token in a tick". A deep bucket that keeps whole tokens only
        // can't be exact at its full moment without coming early too: DESIGN.md section 2, "From
        // full".
        let quick = rate.saturating_mul(i128::from(tick)) >= token;
        let early = if deep || quick { loss } else { 0 };
        let slack = tick.saturating_mul(if deep { 1000 } else { 1 });
        let fill = u64::try_from(size / rate).unwrap_or(u64::MAX);
        let horizon = YEAR.min(fill.saturating_mul(100_000));
        Numbers { rate, size, loss, early, slack, horizon }
    }

    fn refills(&self, nanos: u64) -> i128 {
        self.rate.saturating_mul(i128::from(nanos))
    }

    fn is_within(&self, other: &Numbers) -> bool {
        self.rate <= other.rate && self.size <= other.size
    }

    /// What a millisecond is to an exact wait: 1/1000 of a token's time if that is more.
    pub fn exactness(&self, token: i128) -> u64 {
        MILLI.max(u64::try_from(token / self.rate / 1000).unwrap_or(u64::MAX / 2) + 1)
    }
}

/// What the last charge left, and when.
#[derive(Clone, Debug)]
struct Left {
    set: usize,
    at: u64,
    passed: u64,
    least: i128,
    most: i128,
    slack: u64,
    /// A denial has seen that it lay ahead of the clock.
    mended: bool,
    /// By numbers that did not write it.
    foreign: bool,
    /// By how much the moment that slower numbers left in the same tick may have been rounded up,
    /// in nanoseconds.
    late: u64,
}

/// A bucket between the least and the most that may be in it.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub token: i128,
    pub sets: Vec<Numbers>,
    pub now: u64,
    passed: u64,
    /// None: full by all numbers. Several after a refund, which may be counted from its own moment
    /// or from that of the charge before it.
    left: Vec<Left>,
    /// From known to be full on, at one instant and by one set: what is there exactly.
    run: Option<(usize, i128)>,
    /// The moments that the stored stamp may lie between, and how far it can be told.
    oldest: u64,
    newest: u64,
    told: u64,
    /// The latest that the clock has shown.
    latest: u64,
}

impl Bucket {
    pub fn new(limits: &[Limit], ticks: &[u64], now: u64) -> Bucket {
        let token = grains(limits).expect("checked by the generator");
        let number = |(limit, tick): (&Limit, &u64)| Numbers::new(limit, *tick, token);
        let sets: Vec<_> = limits.iter().zip(ticks).map(number).collect();
        let (left, run) = (Vec::new(), None);
        Bucket {
            token,
            sets,
            now,
            passed: 0,
            left,
            run,
            oldest: 0,
            newest: 0,
            told: 0,
            latest: now,
        }
    }

    fn most_of(&self, left: &Left, set: usize) -> i128 {
        let (reader, writer) = (&self.sets[set], &self.sets[left.set]);
        let since = self.passed - left.passed;
        let slack = if set == left.set && !left.foreign { 0 } else { left.slack };
        let own =
            left.most.saturating_add(reader.refills(since.saturating_add(slack))).min(reader.size);
        // No more than was there an instant before.
        let before = left.most.saturating_add(writer.refills(since));
        let before = before.min(writer.size + writer.early);
        if reader.is_within(writer) && !left.foreign { own.min(before) } else { own }
    }

    fn least_of(&self, left: &Left, set: usize) -> i128 {
        let (reader, writer) = (&self.sets[set], &self.sets[left.set]);
        if self.now < left.at {
            return 0;
        }
        let since = (self.now - left.at).saturating_sub(left.late);
        if set == left.set && !left.mended {
            return left.least.saturating_add(reader.refills(since)).min(reader.size);
        }
        // Readings of another scale are rounded down, twice; the charge may be kept as a tick
        // later.
        let rounded = 3 * reader.loss;
        let own = reader.refills(since.saturating_sub(left.slack));
        let kept = left.least.saturating_add(own);
        let kept = kept.saturating_sub(self.lost_to_slower(left, reader, writer));
        let least = if left.mended { own } else { own.max(kept) };
        least.min(reader.size + rounded) - rounded
    }

    /// What the writer's rate refilled between the moment that is stored and the charge may be
    /// lost. That is the slack's, or a token if the stamp of a bucket that was full stays until one
    /// has come.
    fn lost_to_slower(&self, left: &Left, reader: &Numbers, writer: &Numbers) -> i128 {
        let slower = (writer.rate - reader.rate).max(0);
        let token = if slower > 0 { self.token } else { 0 };
        slower.saturating_mul(i128::from(left.slack)).saturating_add(token)
    }

    /// The most that `set` may find.
    pub fn most(&self, set: usize) -> i128 {
        let each = self.left.iter().map(|left| self.most_of(left, set));
        each.max().unwrap_or(self.sets[set].size)
    }

    /// The least that `set` may find.
    pub fn least(&self, set: usize) -> i128 {
        let each = self.left.iter().map(|left| self.least_of(left, set));
        each.min().unwrap_or(self.sets[set].size)
    }

    /// Whole tokens from the least to the most.
    pub fn tokens(&self, set: usize) -> (u64, u64) {
        let whole = |grains: i128| (grains.max(0) / self.token) as u64;
        match self.run {
            Some((run, left)) if run == set => (whole(left), whole(left)),
            _ => (whole(self.least(set)), whole(self.most(set).min(self.sets[set].size))),
        }
    }

    pub fn verdict(&self, set: usize, cost: u64) -> Verdict {
        let (least, most) = self.tokens(set);
        Verdict::of(least >= cost, most >= cost)
    }

    /// The law that a wrong answer to `set` would break.
    pub fn law(&self, set: usize) -> &'static str {
        match () {
            () if self.left.iter().any(|left| left.mended || left.at > self.now) => "I9",
            () if self.left.iter().any(|left| left.set != set) => "I13",
            () => "I1",
        }
    }

    fn is_changed(&self, set: usize) -> bool {
        match &self.left[..] {
            [left] => left.set != set || left.at > self.now,
            several => !several.is_empty(),
        }
    }

    /// What is known to be there exactly, if anything is.
    fn exactly(&self, set: usize) -> Option<i128> {
        let run = self.run.filter(|(run, _)| *run == set).map(|(_, left)| left);
        let size = self.sets[set].size;
        run.or((self.least(set) >= size).then_some(size))
    }

    /// A hit of `cost` was granted.
    pub fn charge(&mut self, set: usize, cost: u64) {
        self.spend(set, cost);
    }

    /// Spends without asking, no lower than 0: a fraction that readings round off may stay.
    pub fn record(&mut self, set: usize, cost: u64) {
        let empties = self.least(set) < i128::from(cost) * self.token;
        let rest = if empties { self.sets[set].loss } else { 0 };
        self.spend(set, cost);
        self.left[0].most += rest;
    }

    fn spend(&mut self, set: usize, cost: u64) {
        let cost = i128::from(cost) * self.token;
        let (least, most, numbers) = (self.least(set), self.most(set), &self.sets[set]);
        let changed = self.is_changed(set);
        let early = if changed || most >= numbers.size { numbers.early } else { 0 };
        let loss = if changed { 3 } else { 1 } * numbers.loss;
        let least = (least - cost).max(0) - loss;
        let most = (most - cost).max(0) + early;
        self.run = self.exactly(set).map(|left| (set, (left - cost).max(0)));
        self.put(vec![self.left_now(set, least, most)]);
        self.told = self.sets[set].horizon;
    }

    fn left_now(&self, set: usize, least: i128, most: i128) -> Left {
        let slack = self.sets[set].slack;
        let of_this_tick =
            |left: &Left| left.late > 0 && self.now - left.at.min(self.now) < left.slack;
        let is_late = self.is_changed(set) || self.left.iter().any(of_this_tick);
        let late = if is_late { slack / 1000 + 1 } else { 0 };
        Left {
            set,
            // A moment that the clock has shown before, and that is within a tick, may be kept.
            at: self.now.max(self.latest.min(self.now.saturating_add(slack))),
            passed: self.passed,
            least,
            most,
            slack,
            mended: false,
            foreign: false,
            late,
        }
    }

    fn put(&mut self, left: Vec<Left>) {
        self.left = left;
        (self.oldest, self.newest) = (self.now, self.now);
    }

    /// Whether another refund would be one too many to keep account of.
    pub fn is_vague(&self) -> bool {
        self.left.len() >= 8
    }

    /// Gives back, at most what is missing.
    pub fn refund(&mut self, set: usize, cost: u64) {
        self.run = None;
        if self.left.is_empty() {
            return;
        }
        let cost = i128::from(cost) * self.token;
        let (least, most, numbers) = (self.least(set), self.most(set), &self.sets[set]);
        let back = |there: i128| cost.min(numbers.size - there).max(0);
        let (most_back, least_back) = (back(least), back(most));
        let kept = self.left.iter().map(|left| Left {
            least: left.least + least_back - 3 * numbers.loss,
            most: left.most + most_back + numbers.early,
            slack: left.slack.max(numbers.slack),
            ..*left
        });
        let anew_least = least.max(0) + back(least) - 3 * numbers.loss;
        let anew_most = (most + cost).min(numbers.size) + numbers.early;
        let told = self.told.min(numbers.horizon);
        // A bucket that is full by these numbers keeps its stamp.
        let (oldest, newest) = (self.oldest, self.newest);
        let all = kept.chain([self.left_now(set, anew_least, anew_most)]).collect();
        self.put(all);
        (self.told, self.oldest) = (told, oldest.min(self.now));
        self.newest = newest.max(self.now);
    }

    /// A hit was denied. That mends a time which lies ahead: from now on one full refill is due,
    /// but for what a word may keep off (promise 7).
    pub fn deny(&mut self, set: usize) {
        let (now, numbers) = (self.now, &self.sets[set]);
        for left in self.left.iter_mut().filter(|left| left.at > now) {
            left.slack = left.slack.max(numbers.slack);
            (left.at, left.mended, left.foreign) = (now, true, left.foreign || set != left.set);
            self.told = self.told.min(numbers.horizon);
        }
    }

    pub fn reset(&mut self) {
        (self.left, self.run) = (Vec::new(), None);
    }

    /// Whether no stored time lies ahead of the clock.
    pub fn is_steady(&self) -> bool {
        self.left.iter().all(|left| left.at <= self.now)
    }

    /// How far the clock may go on so that the stored stamp is still told (promise 8).
    pub fn furthest(&self) -> u64 {
        if self.left.is_empty() {
            return 2 * YEAR;
        }
        let slack = self.left.iter().map(|left| left.slack).max().unwrap_or(0);
        let told = self.told.saturating_sub(2 * slack);
        self.oldest.saturating_add(told).saturating_sub(self.now)
    }

    /// How far the clock may go back so that the stored stamp is seen to be ahead.
    pub fn furthest_back(&self) -> u64 {
        if self.left.is_empty() {
            return self.now;
        }
        self.now - self.newest.saturating_sub(self.told / 4).min(self.now)
    }

    pub fn go_on(&mut self, nanos: u64) {
        (self.now, self.passed) = (self.now + nanos, self.passed + nanos);
        self.latest = self.latest.max(self.now);
        if nanos > 0 {
            self.run = None;
        }
    }

    pub fn go_back(&mut self, nanos: u64) {
        self.now -= nanos;
        self.oldest = self.oldest.min(self.now);
        if nanos > 0 {
            self.run = None;
        }
    }
}

// ---- Stored times of the others ----

/// When something began, and how much it is.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The latest moment of the clock that may be stored for it.
    stamp: u64,
    passed: u64,
    pub units: u64,
}

impl Entry {
    /// Counts for `per` by any reading of the contract.
    fn surely_counts(&self, per: u64, time: &Moving) -> bool {
        time.passed - self.passed < per
    }
    /// Counts for `per`, a microsecond of rounding included.
    fn may_count(&self, per: u64, time: &Moving) -> bool {
        time.now < self.stamp.saturating_add(per).saturating_add(MICRO)
    }
}

/// A clock, and how far it has moved forward.
#[derive(Clone, Copy, Debug)]
pub struct Moving {
    pub now: u64,
    pub passed: u64,
    /// `passed` when it last went back.
    back_at: Option<u64>,
}

impl Moving {
    pub fn at(now: u64) -> Moving {
        Moving { now, passed: 0, back_at: None }
    }
    pub fn go_on(&mut self, nanos: u64) {
        (self.now, self.passed) = (self.now + nanos, self.passed + nanos);
    }
    pub fn go_back(&mut self, nanos: u64) {
        self.now -= nanos;
        self.back_at = Some(self.passed);
    }
    /// Whether it has gone back, less than `nanos` ago.
    pub fn went_back_within(&self, nanos: u64) -> bool {
        self.back_at.is_some_and(|at| self.passed - at < nanos)
    }
    fn entry(&self, units: u64) -> Entry {
        Entry { stamp: self.now, passed: self.passed, units }
    }
    /// What lies ahead is now, once a denial has seen it.
    fn mend<'e>(&self, entries: impl Iterator<Item = &'e mut Entry>) {
        entries.for_each(|entry| entry.stamp = entry.stamp.min(self.now));
    }
}

// ---- Windows ----

/// All that was spent. Every window of every set of numbers judges this one log.
#[derive(Clone, Debug)]
pub struct Log {
    entries: Vec<Entry>,
    /// The longest `per` of any set.
    longest: u64,
    slots: u64,
    /// Until so much has passed, more has been logged than there is room for.
    crowded: u64,
    /// The same, and a record brought it about.
    overrun: u64,
}

impl Log {
    pub fn new(longest: u64, slots: u64) -> Log {
        Log { entries: Vec::new(), longest, slots, crowded: 0, overrun: 0 }
    }

    fn surely_used(&self, per: u64, time: &Moving) -> u64 {
        let counted = self.entries.iter().filter(|entry| entry.surely_counts(per, time));
        counted.map(|entry| entry.units).sum()
    }

    fn maybe_used(&self, per: u64, time: &Moving) -> u64 {
        let counted = self.entries.iter().filter(|entry| entry.may_count(per, time));
        counted.map(|entry| entry.units).sum()
    }

    /// Whether units of one set push those of another out of the room that there is.
    pub fn is_crowded(&self, time: &Moving) -> bool {
        time.passed < self.crowded
    }

    pub fn is_overrun(&self, time: &Moving) -> bool {
        time.passed < self.overrun
    }

    pub fn verdict(&self, windows: &[Limit], cost: u64, time: &Moving) -> Verdict {
        let crowded = self.is_crowded(time);
        let fits = |window: &Limit, used: u64| used + cost <= window.max;
        let surely = |w: &Limit| !crowded && fits(w, self.maybe_used(per(w), time));
        let maybe = |w: &Limit| fits(w, self.surely_used(per(w), time));
        Verdict::of(windows.iter().all(surely), windows.iter().all(maybe))
    }

    /// What a window may say is used. No more than `max` can be insisted on: the rest may be
    /// forgotten.
    pub fn used(&self, window: &Limit, time: &Moving) -> (u64, u64) {
        let least = self.surely_used(per(window), time).min(window.max);
        let most = self.maybe_used(per(window), time);
        (least, if self.is_crowded(time) { u64::MAX } else { most.max(least) })
    }

    pub fn spend(&mut self, cost: u64, recorded: bool, time: &Moving) {
        // A log keeps its stamps in order.
        let newest = self.entries.iter().map(|entry| entry.stamp).max().unwrap_or(0);
        let entry = time.entry(cost);
        self.entries.push(Entry { stamp: entry.stamp.max(newest), ..entry });
        if self.maybe_used(self.longest, time) > self.slots {
            self.crowded = time.passed.saturating_add(self.longest + MICRO);
            if recorded {
                self.overrun = self.crowded;
            }
        }
    }

    /// Whether it is known which entries a refund takes.
    pub fn is_refundable(&self, windows: &[Limit], time: &Moving) -> bool {
        let per = windows.iter().map(per).max().unwrap_or(0);
        let clear = self.surely_used(per, time) == self.maybe_used(per, time);
        clear && !time.went_back_within(self.longest + MICRO)
    }

    /// Gives back the newest units that the longest of these windows counts.
    pub fn refund(&mut self, windows: &[Limit], cost: u64, time: &Moving) {
        let per = windows.iter().map(per).max().unwrap_or(0);
        let mut left = cost;
        for entry in self.entries.iter_mut().rev().filter(|entry| entry.surely_counts(per, time)) {
            let back = left.min(entry.units);
            (entry.units, left) = (entry.units - back, left - back);
        }
    }

    pub fn deny(&mut self, time: &Moving) {
        time.mend(self.entries.iter_mut());
    }

    pub fn reset(&mut self) {
        (self.entries, self.crowded, self.overrun) = (Vec::new(), 0, 0);
    }
}

// ---- Fixed counts ----

/// A sum, and when it began.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    span: Option<Entry>,
}

impl Fixed {
    /// What may be used: one number, or two if the span may be over or not.
    pub fn used(&self, per: u64, time: &Moving) -> Vec<u64> {
        let Some(span) = self.span else { return vec![0] };
        match (span.surely_counts(per, time), span.may_count(per, time)) {
            (true, _) => vec![span.units],
            (_, false) => vec![0],
            _ => vec![0, span.units],
        }
    }

    pub fn verdict(&self, limit: &Limit, cost: u64, time: &Moving) -> Verdict {
        let used = self.used(per(limit), time);
        let fits = |used: &u64| used + cost <= limit.max;
        Verdict::of(used.iter().all(fits), used.iter().any(fits))
    }

    /// `cost` was spent, after which `used` is said to be used. False if it can't be.
    pub fn spend(&mut self, limit: &Limit, cost: u64, used: u64, time: &Moving) -> bool {
        let before = self.used(per(limit), time);
        let Some(found) = before.into_iter().find(|before| before + cost == used) else {
            return false;
        };
        let open = self.span.filter(|_| found > 0).unwrap_or(time.entry(0));
        self.span = Some(Entry { units: used, ..open });
        true
    }

    pub fn is_refundable(&self, limit: &Limit, time: &Moving) -> bool {
        self.used(per(limit), time).len() == 1
    }

    /// A span whose units were all given back is over.
    pub fn refund(&mut self, limit: &Limit, cost: u64, time: &Moving) {
        let open = self.span.filter(|_| self.used(per(limit), time) != [0]);
        if let Some(span) = open {
            let units = span.units.saturating_sub(cost);
            self.span = (units > 0).then_some(Entry { units, ..span });
        }
    }

    pub fn deny(&mut self, time: &Moving) {
        time.mend(self.span.iter_mut());
    }

    pub fn reset(&mut self) {
        self.span = None;
    }
}

// ---- Counters ----

/// Two cells on the clock's multiples of `per`, as long as one set of numbers spends.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    cells: Vec<(u64, u64)>,
    pub spender: Spender,
    /// The last charge: its moment, and what was spent at that moment.
    pub last: Option<(u64, u64)>,
    /// The most that the clock has shown before it went back.
    pub highest: u64,
}

/// Which set of numbers spent all that was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spender {
    #[default]
    None,
    Only(usize),
    Several,
}

impl Counter {
    fn units(&self, cell: Option<u64>) -> u64 {
        let of = |(number, _): &&(u64, u64)| Some(*number) == cell;
        self.cells.iter().find(of).map_or(0, |(_, units)| *units)
    }

    /// The current cell, and the previous one weighted by its overlap, rounded up.
    pub fn used(&self, limit: &Limit, now: u64) -> u64 {
        let per = per(limit);
        let (cell, into) = (now / per, now % per);
        let previous = u128::from(self.units(cell.checked_sub(1)));
        let weighted = (previous * u128::from(per - into)).div_ceil(per.into());
        self.units(Some(cell)) + weighted as u64
    }

    pub fn spend(&mut self, limit: &Limit, set: usize, cost: u64, now: u64) {
        let cell = now / per(limit);
        let units = self.units(Some(cell)) + cost;
        self.cells.retain(|(number, _)| *number != cell);
        self.cells.push((cell, units));
        let same = self.last.filter(|(at, _)| *at == now).map_or(0, |(_, spent)| spent);
        self.last = Some((now, same + cost));
        self.spender = match self.spender {
            Spender::None => Spender::Only(set),
            Spender::Only(only) if only == set => Spender::Only(set),
            _ => Spender::Several,
        };
    }

    /// Whether the current cell holds `cost`: the contract leaves open what else a refund takes.
    pub fn is_refundable(&self, limit: &Limit, cost: u64, now: u64) -> bool {
        self.units(Some(now / per(limit))) >= cost
    }

    pub fn refund(&mut self, limit: &Limit, cost: u64, now: u64) {
        let cell = now / per(limit);
        let mut cells = self.cells.iter_mut();
        if let Some((_, units)) = cells.find(|(number, _)| *number == cell) {
            *units -= cost;
        }
        self.last = self.last.map(|(at, _)| (at, 0));
    }

    /// The cells are no longer known.
    pub fn doubt(&mut self) {
        if self.spender != Spender::None {
            self.spender = Spender::Several;
        }
    }

    pub fn reset(&mut self) {
        *self = Counter { highest: self.highest, ..Counter::default() };
    }
}

// ---- Permits ----

/// A permit that was granted, with the lease that it was given.
#[derive(Clone, Debug)]
pub struct Held<P> {
    pub permit: P,
    entry: Entry,
    lease: u64,
    /// The clock has shown less than when it was granted.
    foreseen: bool,
    /// A caller to whom its lease may have been over has taken a slot since: perhaps this one's.
    replaced: bool,
}

/// Permits that are out.
#[derive(Clone, Debug)]
pub struct Permits<P> {
    pub held: Vec<Held<P>>,
}

impl<P> Held<P> {
    fn new(permit: P, lease: u64, time: &Moving) -> Held<P> {
        Held { permit, entry: time.entry(1), lease, foreseen: false, replaced: false }
    }

    /// But for a microsecond of rounding.
    fn is_surely_out(&self, by: u64, time: &Moving) -> bool {
        // A caller whose lease has the same three digits takes this one for its own.
        let rounded = if by == self.lease { 0 } else { self.lease / 100 };
        !self.replaced && self.entry.surely_counts(self.lease - rounded - MICRO, time)
    }

    /// A caller with another lease may know this one to three digits, rounded up.
    fn may_be_out(&self, by: u64, time: &Moving) -> bool {
        let rounded = if by == self.lease { 0 } else { self.lease / 100 };
        self.entry.may_count(self.lease + rounded, time)
    }
}

/// `by` is the lease of the numbers that look.
impl<P: Copy> Permits<P> {
    pub fn new() -> Permits<P> {
        Permits { held: Vec::new() }
    }

    pub fn surely_out(&self, by: u64, time: &Moving) -> u64 {
        self.held.iter().filter(|held| held.is_surely_out(by, time)).count() as u64
    }

    pub fn maybe_out(&self, by: u64, time: &Moving) -> u64 {
        self.held.iter().filter(|held| held.may_be_out(by, time)).count() as u64
    }

    pub fn verdict(&self, limit: &Limit, time: &Moving) -> Verdict {
        let surely_fits = self.maybe_out(per(limit), time) < limit.max;
        Verdict::of(surely_fits, self.surely_out(per(limit), time) < limit.max)
    }

    pub fn grant(&mut self, permit: P, lease: u64, time: &Moving) {
        for held in &mut self.held {
            held.replaced |= !held.is_surely_out(lease, time);
        }
        self.held.push(Held::new(permit, lease, time));
    }

    /// Whether a permit is still its holder's, if that is known. One that was granted ahead of the
    /// clock may be mended: then it is out for one lease, and nobody's to give back.
    pub fn is_out(&self, index: usize, by: u64, time: &Moving) -> Option<bool> {
        let held = &self.held[index];
        let surely = held.is_surely_out(0, time) && !held.foreseen;
        (surely || !held.may_be_out(by, time)).then_some(surely)
    }

    /// The clock went back.
    pub fn doubt(&mut self, time: &Moving) {
        self.held.iter_mut().for_each(|held| held.foreseen |= held.entry.stamp > time.now);
    }

    /// The lease starts anew, by the numbers of the renewal.
    pub fn renew(&mut self, index: usize, permit: P, lease: u64, time: &Moving) {
        self.held[index] = Held::new(permit, lease, time);
    }

    pub fn deny(&mut self, time: &Moving) {
        time.mend(self.held.iter_mut().map(|held| &mut held.entry));
    }
}
