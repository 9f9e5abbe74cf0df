//! A table, the limits of its rows, and a clock: what a hit goes through.

use crate::algorithm::bucket::word::Bucket;
use crate::algorithm::bucket::{self, Quick, Take};
use crate::algorithm::permit::{Permit, Permits};
use crate::clock::{Clock, LAG, Time};
use crate::counters::{COUNTS, Count, Counters};
use crate::eviction::{self, Eviction};
use crate::limits::charge::{Left, Taken, View, Views, bucket_view, permits_view};
use crate::limits::receipt::Receipt;
use crate::limits::{Cell, Limits};
use crate::memory::Space;
use crate::table::hash::Hasher;
use crate::table::row::{Moved, Row};
use crate::table::{Found, Full, Hash, OutOfMemory, Spot, Table, bytes_for};

/// How many keys of a batch are hashed and fetched before they are judged, by one reading of the clock.
const CHUNK: usize = 32;
/// How often a hit on several limits starts over because others were quicker.
const ATTEMPTS: usize = 64;

/// What happens to a new key when every place that it may take holds a live one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It shares one of a few buckets under the same limits.
    #[default]
    Overflow,
    /// It is denied.
    Deny,
    /// It is allowed, and nothing is counted.
    Allow,
}

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many keys it may hold live at once.
    pub capacity: usize,
    /// What happens beyond that.
    pub on_full: OnFull,
    /// Where time comes from.
    pub clock: Clock,
    /// The seed of the hash, for tables that are to hash alike; by default it is random, so that
    /// nobody outside can make keys that collide.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { capacity: 65_536, on_full: OnFull::default(), clock: Clock::System, seed: None }
    }
}

/// The answer to a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// Spent.
    Allowed,
    /// At least one limit refuses now: its view has the wait.
    Denied,
    /// The cost is above what a limit could ever hold.
    Cost,
    /// The table is full, and says no ([`OnFull::Deny`]).
    Full,
    /// The table is full, and says yes ([`OnFull::Allow`]): nothing was counted.
    Uncounted,
}

impl Answer {
    /// Yes or no.
    pub fn is_allowed(self) -> bool {
        matches!(self, Answer::Allowed | Answer::Uncounted)
    }
}

/// The answer to a hit, and what each limit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// Yes or no, and why.
    pub answer: Answer,
    /// After an allowed hit: what is left. After a denied one: what there is, and the waits.
    pub views: Views,
    /// The slot that is held, if there is a concurrent limit.
    pub permit: Option<Permit>,
    /// Whether the table is full, so that the key shares a row with others.
    pub shared: bool,
}

impl Together<1> {
    fn with(self, views: Views) -> Outcome {
        let [permit] = self.permits;
        Outcome { answer: self.answer, views, permit, shared: self.shared }
    }
}

/// Limits at work: counts what keys spend, in fixed memory, from any thread.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::{Engine, Limit, Limits, Options};
///
/// let limits = Limits::new(&[Limit::bucket(2, Duration::from_secs(60))]).unwrap();
/// let engine = Engine::new(limits, Options::default()).unwrap();
/// assert!(engine.allow(b"alice") && engine.allow(b"alice"));
/// assert!(!engine.allow(b"alice"));
/// assert!(engine.allow(b"bob"));
/// ```
#[derive(Debug)]
pub struct Engine {
    table: Table,
    /// Its own limits, and when a row may be evicted.
    eviction: Eviction,
    /// The numbers of a row whose only limit is a bucket that allows something: the common case.
    lone: Option<Bucket>,
    /// Whether that bucket fills so slowly that a glance at the clock is mostly enough.
    slow: bool,
    clock: Clock,
    hasher: Hasher,
    on_full: OnFull,
    capacity: usize,
    counters: Counters<COUNTS>,
}

impl Engine {
    /// An engine with a table of its own.
    ///
    /// # Errors
    /// If memory for the table can't be had.
    pub fn new(limits: Limits, options: Options) -> Result<Engine, OutOfMemory> {
        let hasher = Hasher::local(options.seed);
        Engine::new_in(limits, options, hasher, &Space::Heap)
    }

    pub(crate) fn new_in(
        limits: Limits,
        options: Options,
        hasher: Hasher,
        space: &Space,
    ) -> Result<Engine, OutOfMemory> {
        let Options { capacity, on_full, clock, .. } = options;
        let error = OutOfMemory { capacity, row_words: limits.row_words() };
        let table = Table::new(capacity, &limits, space).ok_or(error)?;
        let shared = space.shared(eviction::WORDS).ok_or(error)?;
        let lone = limits.lone_bucket().copied();
        let slow = lone.as_ref().is_some_and(|bucket| bucket.is_slower_than(LAG));
        Ok(Engine {
            table,
            eviction: Eviction::new(limits, shared),
            lone,
            slow,
            clock,
            hasher,
            on_full,
            capacity,
            counters: Counters::default(),
        })
    }

    /// What [`Engine::bytes`] of such an engine will be; `None` if that is beyond counting.
    pub fn bytes_for(limits: &Limits, capacity: usize) -> Option<u64> {
        bytes_for(capacity, limits.row_words())
    }

    /// The hash of a key of one part.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hash {
        self.hasher.one(key)
    }

    /// The hash of a key of several parts. Each is hashed with its length, so that parts never run
    /// into each other; a key of one part is the same as the plain key.
    pub fn hash_parts(&self, parts: &[&[u8]]) -> Hash {
        self.hasher.parts(parts)
    }

    /// The limits that the engine was made with.
    pub fn limits(&self) -> &Limits {
        self.eviction.own()
    }

    /// A key's row here, judged by the engine's own limits.
    #[inline]
    pub fn part(&self, hash: Hash) -> Part<'_> {
        Part { engine: self, hash, limits: self.limits() }
    }

    /// Introduces other numbers that keys may be judged by, so that no row which still counts under
    /// them is evicted. Call this before the first [`Part`] with such limits; it is cheap. False if
    /// their shape is not the table's.
    pub fn widen(&self, limits: &Limits) -> bool {
        self.eviction.widen(limits)
    }

    /// Nanoseconds for which an idle row may be kept: the longest [`Limits::horizon`] of all numbers
    /// that any user of the table judges rows by.
    pub fn horizon(&self) -> u64 {
        self.eviction.horizon()
    }

    /// Microseconds of the longest window that any user of the table judges rows by.
    fn keep_us(&self) -> u64 {
        self.eviction.longest_window_us()
    }

    /// The clock that it was made with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether a hit of 1 passes, and spends it: the fastest path.
    #[inline]
    pub fn allow(&self, key: &[u8]) -> bool {
        self.allow_hashed(self.hash(key))
    }

    /// As [`Engine::allow`], and how many hits of this thread have got that answer: for those who take
    /// note of one hit in so many.
    #[inline]
    pub fn allow_counted(&self, key: &[u8]) -> (bool, u64) {
        self.allow_at(self.table.spot(self.hash(key)))
    }

    /// As [`Engine::allow`], for a key that was hashed before.
    #[inline]
    pub fn allow_hashed(&self, hash: Hash) -> bool {
        self.allow_at(self.table.spot(hash)).0
    }

    #[inline(always)]
    fn allow_at(&self, spot: Spot) -> (bool, u64) {
        let allowed = match self.slow {
            true => self.try_at_a_glance(spot).answer().unwrap_or_else(|| self.allow_now(spot)),
            false => self.allow_by(spot, self.clock.now()),
        };
        let count = if allowed { Count::Allowed } else { Count::Denied };
        (allowed, self.counters.add(count as usize))
    }

    #[inline(always)]
    fn try_at_a_glance(&self, spot: Spot) -> Quick {
        match (&self.lone, self.clock.glance()) {
            (Some(bucket), Some(passed)) => {
                bucket::fast_take(&self.table, spot, bucket, passed, bucket.glance())
            }
            _ => Quick::Other,
        }
    }

    #[inline(never)]
    fn allow_now(&self, spot: Spot) -> bool {
        self.allow_by(spot, self.clock.now())
    }

    #[inline(always)]
    fn allow_by(&self, spot: Spot, now: u64) -> bool {
        self.try_quickly(spot, now).answer().unwrap_or_else(|| self.allow_slowly(spot, now))
    }

    #[inline(always)]
    fn try_quickly(&self, spot: Spot, now: u64) -> Quick {
        match &self.lone {
            Some(bucket) => bucket::fast_take(&self.table, spot, bucket, now, bucket.now()),
            None => Quick::Other,
        }
    }

    /// New keys, keys away from home, races, and limits other than one bucket.
    #[inline(never)]
    fn allow_slowly(&self, spot: Spot, now: u64) -> bool {
        let hash = spot.hash;
        let time = &mut Time::at(&self.clock, now);
        let Some(bucket) = &self.lone else {
            return self.allow_any(hash, time);
        };
        for _ in 0..ATTEMPTS {
            match self.try_quickly(spot, time.now()) {
                Quick::Granted(_) => return true,
                Quick::Denied(_) => return false,
                Quick::Lost => continue,
                Quick::Other => break,
            }
        }
        loop {
            let row = match self.row(hash, time.now()) {
                Ok(row) => row,
                Err(answer) => return answer.is_allowed(),
            };
            match bucket::take(&row, 0, bucket, 1, time) {
                Ok(take) => return matches!(take, Take::Granted(_)),
                Err(Moved) => continue,
            }
        }
    }

    /// As [`hit_together`] for one row and a cost of 1, without views of a hit that passes.
    fn allow_any(&self, hash: Hash, time: &mut Time<'_>) -> bool {
        let limits = self.limits();
        let lone = limits.placed.len() == 1;
        let (mut doubted, mut taken) = (false, Taken::default());
        if limits.smallest() == 0 {
            return false;
        }
        for _ in 0..ATTEMPTS {
            let row = match self.row(hash, time.now()) {
                Ok(row) => row,
                Err(answer) => return answer.is_allowed(),
            };
            // A lone cell refuses before it writes; several are looked at before the first is taken.
            let fits = || {
                let mut views = Views::default();
                limits.look(&row, 1, time.now(), &mut views).is_ok() && views.fits()
            };
            let fits = lone || fits();
            match fits.then(|| limits.take(&row, 1, self.keep_us(), time, &mut taken)) {
                Some(Ok(true)) => return true,
                Some(Ok(false)) if lone => return false,
                Some(_) => {}
                None if doubted => return false,
                None => {
                    let _ = limits.mend(&row, time);
                    doubted = true;
                }
            }
        }
        false
    }

    /// The key's row, made if need be, or a shared one, or the answer of a full table.
    #[inline]
    fn row(&self, hash: Hash, now: u64) -> Result<Row<'_>, Answer> {
        match self.table.find_or_insert(hash, &self.eviction, now) {
            Ok((row, Found::Known | Found::New)) => Ok(row),
            Ok((row, Found::TakenOver)) => {
                self.counters.add(Count::Evicted as usize);
                Ok(row)
            }
            Err(Full) => self.full_row(hash),
        }
    }

    #[cold]
    fn full_row(&self, hash: Hash) -> Result<Row<'_>, Answer> {
        self.counters.add(Count::Full as usize);
        match self.on_full {
            OnFull::Overflow => Ok(self.table.overflow(hash)),
            OnFull::Deny => Err(Answer::Full),
            OnFull::Allow => Err(Answer::Uncounted),
        }
    }

    /// Spends `cost` if every limit allows it, and says what each of them has left.
    ///
    /// A `cost` of 0 spends nothing and makes no row.
    pub fn hit(&self, key: &[u8], cost: u64) -> Outcome {
        let hash = self.hash(key);
        self.table.prefetch(hash);
        let (part, mut time) = (self.part(hash), Time::read(&self.clock));
        let outcome = match part.hit_lone(cost, &mut time) {
            Some((answer, view, shared)) => {
                Outcome { answer, views: Views::one(view), permit: None, shared }
            }
            None => {
                let mut views = Views::default();
                part.hit_several(cost, &mut time, &mut views).with(views)
            }
        };
        self.count(outcome.answer);
        outcome
    }

    fn count(&self, answer: Answer) {
        let count = match answer {
            Answer::Allowed | Answer::Uncounted => Count::Allowed,
            Answer::Denied | Answer::Full => Count::Denied,
            Answer::Cost => Count::Cost,
        };
        self.counters.add(count as usize);
    }

    /// What a hit would get, changing nothing.
    pub fn peek(&self, key: &[u8], cost: u64) -> Outcome {
        let (part, mut views) = (self.part(self.hash(key)), [Views::default()]);
        let together = peek_together(&[part], &[cost], &Time::read(&self.clock), &mut views);
        together.with(views[0])
    }

    /// What a key gets that may have no row and find no place.
    fn peek_full(&self, hash: Hash, now: u64) -> Answer {
        let none =
            self.table.find(hash).is_none() && !self.table.has_room(hash, &self.eviction, now);
        match self.on_full {
            OnFull::Deny if none => Answer::Full,
            OnFull::Allow if none => Answer::Uncounted,
            _ => Answer::Allowed,
        }
    }

    /// The row that a key has, or shares because the table is full.
    fn known_row(&self, hash: Hash, now: u64) -> Option<Row<'_>> {
        match self.on_full {
            OnFull::Overflow => self.table.find_or_shared(hash, &self.eviction, now),
            OnFull::Deny | OnFull::Allow => self.table.find(hash),
        }
    }

    /// Spends `cost` without asking, and says what is left. A window logs up to 8,191 units in one go,
    /// and no more entries than its largest `max`; others up to 1,000,000,000.
    pub fn record(&self, key: &[u8], cost: u64) -> Views {
        self.part(self.hash(key)).record(cost, &mut Time::read(&self.clock))
    }

    /// Gives `cost` back, never above full.
    pub fn refund(&self, key: &[u8], cost: u64) {
        self.part(self.hash(key)).refund(cost, &mut Time::read(&self.clock));
    }

    /// Gives a slot of a concurrent limit back. False if it is no longer held: its lease had run out,
    /// or it was released or reset before.
    pub fn release(&self, key: &[u8], permit: Permit) -> bool {
        self.part(self.hash(key)).release(permit, self.clock.now())
    }

    /// Starts a permit's lease anew. `None` if it had run out: others may count on the slot.
    pub fn renew(&self, key: &[u8], permit: Permit) -> Option<Permit> {
        self.part(self.hash(key)).renew(permit, self.clock.now())
    }

    /// A batch of [`Engine::allow`]: `out[i]` is 1 or 0 for `keys[i]`.
    ///
    /// # Panics
    /// If `out` is shorter than `keys`.
    pub fn allow_many<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [u8]) {
        let out = &mut out[..keys.len()];
        for (keys, out) in keys.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let now = self.clock.now();
            let mut spots = [Spot::default(); CHUNK];
            for (spot, key) in spots.iter_mut().zip(keys) {
                *spot = self.table.spot(self.hash(key.as_ref()));
            }
            self.allow_chunk(&spots[..keys.len()], out, now);
        }
    }

    /// Judges up to [`CHUNK`] keys whose home rows are on their way. Those that are not in the first
    /// line come last, when the next one has had time to arrive.
    fn allow_chunk(&self, spots: &[Spot], out: &mut [u8], now: u64) {
        let mut away = 0u32;
        for (i, (spot, allowed)) in spots.iter().zip(&mut *out).enumerate() {
            match self.try_in_line(*spot, 0, now) {
                Some(answer) => *allowed = u8::from(answer),
                None => {
                    self.table.prefetch_next(*spot);
                    away |= 1 << i;
                }
            }
        }
        while away != 0 {
            let i = away.trailing_zeros() as usize;
            let answer = self.try_in_line(spots[i], 1, now);
            out[i] = u8::from(answer.unwrap_or_else(|| self.allow_slowly(spots[i], now)));
            away &= away - 1;
        }
        let allowed = out.iter().map(|&yes| u64::from(yes)).sum();
        self.counters.add_many(Count::Allowed as usize, allowed);
        self.counters.add_many(Count::Denied as usize, out.len() as u64 - allowed);
    }

    /// The answer to a key whose row is in that line from its home on.
    #[inline(always)]
    fn try_in_line(&self, spot: Spot, lines: usize, now: u64) -> Option<bool> {
        let bucket = self.lone.as_ref()?;
        let (word, seen) = self.table.in_line(spot, lines)?;
        let taken = bucket::fast_take_seen(word, seen, bucket, now, bucket.now());
        Some(taken.answer().unwrap_or_else(|| self.allow_slowly(spot, now)))
    }

    /// Forgets what a key has spent.
    pub fn reset(&self, key: &[u8]) {
        self.reset_hashed(self.hash(key));
    }

    /// As [`Engine::reset`], for a key that was hashed before.
    pub fn reset_hashed(&self, hash: Hash) {
        self.table.reset(hash, &self.eviction, self.clock.now());
    }

    /// Forgets all keys.
    pub fn reset_all(&self) {
        self.table.reset_all(&self.eviction, self.clock.now());
    }

    /// Drops idle keys, and says how many. Nothing must call this: they give way by themselves.
    pub fn prune(&self) -> usize {
        self.table.prune(&self.eviction, self.clock.now())
    }

    /// Rows in use, idle ones until they are pruned or taken over.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no row is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Live keys that the engine has room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Rows of the table: half as many again as its capacity.
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Bytes of all rows, fixed from the start.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Bytes of the rows that keys have to themselves.
    pub fn row_bytes(&self) -> usize {
        self.table.row_bytes()
    }

    /// How often something happened so far.
    pub fn total(&self, count: Count) -> u64 {
        self.counters.sum(count as usize)
    }
}

impl Limits {
    /// What a key that was never seen would be told.
    pub(crate) fn views_of_new(&self, cost: u64) -> Views {
        let new = |stated: &crate::Limit| {
            let limit = stated.size();
            let fits = match stated.algorithm {
                crate::Algorithm::Concurrent => stated.max > 0,
                _ => cost <= limit && stated.max > 0,
            };
            let wait = if fits { 0 } else { crate::NEVER };
            let more = if stated.max > 0 { 0 } else { crate::NEVER };
            View { limit, used: 0, remaining: limit, wait, more, reset: 0 }
        };
        self.stated.iter().map(new).collect()
    }

    /// What `cost` gets from limits that say this. A limit of 0 refuses everything.
    fn judge(&self, views: &Views, cost: u64) -> Answer {
        match cost > self.smallest() && self.smallest() > 0 {
            true => Answer::Cost,
            false if views.fits() => Answer::Allowed,
            false => Answer::Denied,
        }
    }
}

/// A key's row in one of several engines, whose limits are taken together.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Where the row is.
    pub engine: &'a Engine,
    /// Whose it is, by that engine's hash.
    pub hash: Hash,
    /// What it is judged by: the engine's own limits, or others for which the engine was
    /// [widened](Engine::widen).
    pub limits: &'a Limits,
}

/// None of these counts for [`Engine::total`]: that is for whole hits, which may have several parts.
impl Part<'_> {
    /// Brings the row near, so that the clock can be read meanwhile.
    #[inline]
    pub fn prefetch(&self) {
        self.engine.table.prefetch(self.hash);
    }

    /// Spends `cost` if every limit allows it, and puts into `views` what each of them has left.
    pub fn hit(&self, cost: u64, time: &mut Time<'_>, views: &mut Views) -> Together<1> {
        if let Some((answer, view, shared)) = self.hit_lone(cost, time) {
            views.set_one(view);
            return Together { answer, permits: [None], shared };
        }
        self.hit_several(cost, time, views)
    }

    fn hit_several(&self, cost: u64, time: &mut Time<'_>, views: &mut Views) -> Together<1> {
        match self.hit_cell(cost, time, views) {
            Some(together) => together,
            // What is refused is looked at with more care.
            None => hit_together(&[*self], &[cost], time, std::array::from_mut(views)),
        }
    }

    /// As [`Part::hit`] for limits in one cell, such as windows with one log, if they allow it: a cell
    /// refuses before it writes, so it need not be looked at first. Windows with one log answer in any case.
    fn hit_cell(&self, cost: u64, time: &mut Time<'_>, views: &mut Views) -> Option<Together<1>> {
        if self.limits.placed.len() != 1 || !(1..=self.limits.smallest()).contains(&cost) {
            return None;
        }
        let row = self.engine.row(self.hash, time.now()).ok()?;
        if let Some(together) = self.refused_permit(&row, time.now(), views) {
            return Some(together);
        }
        let shared = row.is_shared();
        let (keep_us, taken) = (self.engine.keep_us(), &mut Taken::default());
        let is_taken = match self.limits.hit_lone_ring(&row, cost, keep_us, time, views, taken) {
            None => self.limits.take(&row, cost, keep_us, time, taken),
            Some(Ok(false)) => {
                return Some(Together { answer: Answer::Denied, permits: [None], shared });
            }
            Some(taken) => taken,
        };
        if !is_taken.ok()? {
            return None;
        }
        self.look_after(&row, &taken.left, time.now(), views);
        Some(Together { answer: Answer::Allowed, permits: [taken.permit], shared })
    }

    /// What a hit is told that finds no permit. They are many to look at, so that is all that it does, unless a clock
    /// fault left one in the future.
    fn refused_permit(&self, row: &Row<'_>, now: u64, views: &mut Views) -> Option<Together<1>> {
        let Cell::Permits(permits) = &self.limits.placed[0].cell else { return None };
        let out = permits.out(row, self.limits.placed[0].at, now);
        if out.wait == 0 || out.ahead || row.check().is_err() {
            return None;
        }
        views.set_one(permits_view(permits, &out));
        let shared = row.is_shared();
        Some(Together { answer: Answer::Denied, permits: [None], shared })
    }

    /// As [`Part::hit`] for limits that are one bucket, with less to hand back: the only view, and
    /// whether the row is shared. `None` for other limits, and for costs that a bucket can't take.
    #[inline(always)]
    pub fn hit_lone(&self, cost: u64, time: &mut Time<'_>) -> Option<(Answer, View, bool)> {
        let bucket = self.limits.lone_bucket()?;
        if cost == 1 {
            let spot = self.engine.table.spot(self.hash);
            let table = &self.engine.table;
            let (answer, word, asked) =
                match bucket::fast_take(table, spot, bucket, time.now(), bucket.now()) {
                    Quick::Granted(word) => (Answer::Allowed, word, 0),
                    Quick::Denied(word) => (Answer::Denied, word, cost),
                    Quick::Lost | Quick::Other => return Some(self.hit_one(bucket, cost, time)),
                };
            return Some((answer, bucket_view(bucket, word, asked, time.now()), false));
        }
        let fits = (1..=self.limits.smallest()).contains(&cost);
        fits.then(|| self.hit_one(bucket, cost, time))
    }

    #[inline(never)]
    fn hit_one(&self, bucket: &Bucket, cost: u64, time: &mut Time<'_>) -> (Answer, View, bool) {
        loop {
            let row = match self.engine.row(self.hash, time.now()) {
                Ok(row) => row,
                // No row was read: the view is that of a new key.
                Err(answer) => return (answer, self.limits.views_of_new(cost)[0], false),
            };
            let Ok(take) = bucket::take(&row, 0, bucket, cost, time) else {
                continue;
            };
            let (answer, word, asked) = match take {
                Take::Granted(word) => (Answer::Allowed, word, 0),
                Take::Denied(word) => (Answer::Denied, word, cost),
            };
            return (answer, bucket_view(bucket, word, asked, time.now()), row.is_shared());
        }
    }

    /// What each limit would say to `cost`.
    pub fn look(&self, cost: u64, now: u64) -> Views {
        let mut views = Views::default();
        self.look_to(cost, now, &mut views);
        views
    }

    fn look_to(&self, cost: u64, now: u64, views: &mut Views) {
        loop {
            let Some(row) = self.engine.known_row(self.hash, now) else {
                *views = self.limits.views_of_new(cost);
                return;
            };
            if self.limits.look(&row, cost, now, views).is_ok() {
                return;
            }
        }
    }

    /// What a charge left in a row. One that moved on since is idle again.
    fn look_after(&self, row: &Row<'_>, left: &Left, now: u64, views: &mut Views) {
        if self.limits.look_by(row, left, 0, now, views).is_err() {
            *views = self.limits.views_of_new(0);
        }
    }

    /// Spends without asking; see [`Engine::record`].
    pub fn record(&self, cost: u64, time: &mut Time<'_>) -> Views {
        if cost == 0 {
            return self.look(0, time.now());
        }
        while let Ok(row) = self.engine.row(self.hash, time.now()) {
            if let Ok(left) = self.limits.record(&row, cost, self.engine.keep_us(), time) {
                let mut views = Views::default();
                self.look_after(&row, &left, time.now(), &mut views);
                return views;
            }
        }
        self.look(0, time.now())
    }

    /// Gives `cost` back, never above full.
    pub fn refund(&self, cost: u64, time: &mut Time<'_>) {
        if let Some(row) = self.engine.known_row(self.hash, time.now()) {
            self.limits.refund(&row, cost, time);
        }
    }

    /// Mends what a clock fault left ahead of the clock, as a denial by the limits does. False if there is
    /// nothing to mend.
    pub fn mend(&self, time: &mut Time<'_>) -> bool {
        let row = self.engine.known_row(self.hash, time.now());
        row.is_some_and(|row| self.limits.mend(&row, time).unwrap_or(true))
    }

    /// Gives back what a [reservation](reserve_together) took here, up to `amount` and only what still counts:
    /// of a bucket the cost less what was refilled since, of a window its own entry while that is inside, of
    /// a fixed count or a counter only in the same span or cell; nothing after a reset or an eviction.
    /// A receipt is good for once.
    pub fn give_back(&self, receipt: &Receipt, amount: u64, time: &mut Time<'_>) {
        let row = match receipt.is_shared() {
            true => Some(self.engine.table.overflow(self.hash)),
            false => self.engine.table.find(self.hash),
        };
        if let Some(row) = row.filter(|row| receipt.is_of(row)) {
            self.limits.give_back_own(&row, receipt, amount, time);
        }
    }

    /// Gives a slot back; see [`Engine::release`].
    pub fn release(&self, permit: Permit, now: u64) -> bool {
        self.with_permit(permit, |row, at, permits| permits.release(row, at, permit, now))
            .unwrap_or(false)
    }

    /// Starts a lease anew; see [`Engine::renew`].
    pub fn renew(&self, permit: Permit, now: u64) -> Option<Permit> {
        self.with_permit(permit, |row, at, permits| permits.renew(row, at, permit, now))?
    }

    fn with_permit<R>(
        &self,
        permit: Permit,
        act: impl FnOnce(&Row<'_>, usize, &Permits) -> R,
    ) -> Option<R> {
        let row = match permit.shared {
            true => self.engine.table.overflow(self.hash),
            false => self.engine.table.find(self.hash)?,
        };
        let (at, permits) = self.limits.placed.iter().find_map(|placed| match &placed.cell {
            Cell::Permits(permits) => Some((placed.at, permits)),
            _ => None,
        })?;
        Some(act(&row, at, permits))
    }
}

/// The answer to a hit on several parts. What their limits say is put where the caller wants it, since
/// that is large to hand back; see [`Outcome::views`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Together<const N: usize> {
    /// Yes or no, and why.
    pub answer: Answer,
    /// The slot that is held in each part that has a concurrent limit.
    pub permits: [Option<Permit>; N],
    /// Whether a part's table is full, so that its key shares a row with others.
    pub shared: bool,
}

/// Spends each part's cost in it, or nothing in any: for limits that are keyed differently, or that
/// count different things. Where a cost is 0, nothing is spent.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::{Answer, Clock, Engine, Limit, Limits, Options, Time, Views, hit_together};
///
/// let limits = |max| Limits::new(&[Limit::bucket(max, Duration::from_secs(60))]).unwrap();
/// let each = Engine::new(limits(2), Options::default()).unwrap();
/// let all = Engine::new(limits(3), Options::default()).unwrap();
/// let hit = |who: &[u8]| {
///     let parts = [each.part(each.hash(who)), all.part(all.hash(b""))];
///     let views = &mut [Views::default(); 2];
///     hit_together(&parts, &[1, 1], &mut Time::read(&Clock::System), views).answer
/// };
/// assert_eq!([hit(b"a"), hit(b"a"), hit(b"b")], [Answer::Allowed; 3]);
/// assert_eq!(hit(b"b"), Answer::Denied);
/// assert_eq!(each.peek(b"b", 0).views[0].remaining, 1); // a refusal took nothing
/// ```
pub fn hit_together<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    views: &mut [Views; N],
) -> Together<N> {
    hit_noting(parts, costs, time, views, |_, _, _, _| ())
}

/// As [`hit_together`], with a receipt for what was taken in each part: for [`Part::give_back`]. A part in
/// which nothing was counted has none.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::{Clock, Engine, Limit, Limits, Options, Time, Views, reserve_together};
///
/// let limits = Limits::new(&[Limit::window(5, Duration::from_secs(10))]).unwrap();
/// let engine = Engine::new(limits, Options::default()).unwrap();
/// let (part, time) = (engine.part(engine.hash(b"alice")), &mut Time::read(&Clock::System));
/// let mut receipts = [None];
/// let views = &mut [Views::default()];
/// assert!(reserve_together(&[part], &[5], time, views, &mut receipts).answer.is_allowed());
/// part.give_back(&receipts[0].unwrap(), 3, time);
/// assert_eq!(engine.peek(b"alice", 0).views[0].remaining, 3);
/// ```
pub fn reserve_together<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    views: &mut [Views; N],
    receipts: &mut [Option<Receipt>; N],
) -> Together<N> {
    *receipts = [None; N];
    hit_noting(parts, costs, time, views, |i, row, taken, (began, now)| {
        receipts[i] = Some(Receipt::new(row, taken, costs[i], began, now));
    })
}

/// As [`hit_together`]. `note` is told of each row, what was taken from it, and the clock before and
/// after that.
fn hit_noting<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    views: &mut [Views; N],
    mut note: impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> Together<N> {
    let mut each = parts.iter().zip(costs);
    if each.any(|(part, &cost)| cost == 0 || cost > part.limits.smallest()) {
        return look_only(parts, costs, time.now(), views);
    }
    // A lone cell can't be met half-taken: its refusal needs no second look unless it was mended.
    let lone = N == 1 && parts.iter().all(|part| part.limits.placed.len() == 1);
    let denied = |shared| Together { answer: Answer::Denied, permits: [None; N], shared };
    let mut doubted = false;
    for _ in 0..ATTEMPTS {
        match attempt(parts, costs, time, views, &mut note) {
            Attempt::Done(together) => return together,
            Attempt::Refused { shared } if doubted => return denied(shared),
            Attempt::Refused { shared } => {
                doubted = true;
                if !mend_together(parts, time) && lone {
                    return denied(shared);
                }
            }
            Attempt::Lost => {}
        }
    }
    // Others took and gave back all the while. A denial needs a wait: the shortest there is.
    look_together(parts, costs, time.now(), views);
    if views.iter().all(Views::fits) && N > 0 {
        views[0].set_wait(1);
    }
    // Nobody is to be punished for that.
    denied(true)
}

/// What [`hit_together`] would say, changing nothing.
pub fn peek_together<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    time: &Time<'_>,
    views: &mut [Views; N],
) -> Together<N> {
    let now = time.now();
    let mut together = look_only(parts, costs, now, views);
    if together.answer == Answer::Allowed && !costs.contains(&0) {
        let full = |part: &Part<'_>| match part.engine.on_full {
            OnFull::Overflow => Answer::Allowed,
            _ => part.engine.peek_full(part.hash, now),
        };
        let answers = parts.each_ref().map(full);
        let counted = answers.contains(&Answer::Allowed);
        together.answer = match answers.contains(&Answer::Full) {
            true => Answer::Full,
            false if counted => Answer::Allowed,
            false => Answer::Uncounted,
        };
    }
    together
}

/// One attempt at all parts.
enum Attempt<const N: usize> {
    Done(Together<N>),
    /// Refused by what its views say.
    Refused {
        shared: bool,
    },
    /// Somebody else was quicker.
    Lost,
}

/// What a hit gets that can't or need not be charged.
fn look_only<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    now: u64,
    views: &mut [Views; N],
) -> Together<N> {
    look_together(parts, costs, now, views);
    let answers = || (0..N).map(|i| parts[i].limits.judge(&views[i], costs[i]));
    let denied = answers().find(|answer| *answer == Answer::Denied);
    let worst = denied.or_else(|| answers().find(|answer| *answer == Answer::Cost));
    let answer = worst.unwrap_or(Answer::Allowed);
    Together { answer, permits: [None; N], shared: false }
}

fn mend_together<const N: usize>(parts: &[Part<'_>; N], time: &mut Time<'_>) -> bool {
    let mut any = false;
    for part in parts {
        any |= part.mend(time);
    }
    any
}

fn look_together<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    now: u64,
    views: &mut [Views; N],
) {
    for (i, part) in parts.iter().enumerate() {
        part.look_to(costs[i], now, &mut views[i]);
    }
}

fn attempt<const N: usize>(
    parts: &[Part<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    views: &mut [Views; N],
    note: &mut impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> Attempt<N> {
    let mut rows = [const { None }; N];
    for (i, part) in parts.iter().enumerate() {
        match part.engine.row(part.hash, time.now()) {
            Ok(row) => rows[i] = Some(row),
            Err(Answer::Uncounted) => views[i] = part.limits.views_of_new(costs[i]),
            Err(answer) => {
                look_together(parts, costs, time.now(), views);
                let permits = [None; N];
                return Attempt::Done(Together { answer, permits, shared: false });
            }
        }
    }
    for (i, part) in parts.iter().enumerate() {
        let Some(row) = &rows[i] else { continue };
        if part.limits.look(row, costs[i], time.now(), &mut views[i]).is_err() {
            return Attempt::Lost;
        }
    }
    if !views.iter().all(Views::fits) {
        return Attempt::Refused { shared: is_shared(&rows) };
    }
    take_rows(parts, &rows, views, costs, time, note)
}

fn is_shared(rows: &[Option<Row<'_>>]) -> bool {
    rows.iter().flatten().any(Row::is_shared)
}

fn take_rows<const N: usize>(
    parts: &[Part<'_>; N],
    rows: &[Option<Row<'_>>; N],
    views: &mut [Views; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    note: &mut impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> Attempt<N> {
    let began = time.now();
    let mut taken: [Taken; N] = std::array::from_fn(|_| Taken::default());
    for i in 0..N {
        let Some(row) = &rows[i] else { continue };
        let keep_us = parts[i].engine.keep_us();
        if parts[i].limits.take(row, costs[i], keep_us, time, &mut taken[i]) == Ok(true) {
            continue;
        }
        for (back, row) in rows.iter().enumerate().take(i) {
            let Some(row) = row else { continue };
            parts[back].limits.give_back(row, &taken[back], costs[back], time);
        }
        return Attempt::Lost;
    }
    for (i, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        note(i, row, &taken[i], (began, time.now()));
        parts[i].look_after(row, &taken[i].left, time.now(), &mut views[i]);
    }
    let counted = rows.iter().any(Option::is_some);
    let answer = if counted { Answer::Allowed } else { Answer::Uncounted };
    let shared = is_shared(rows);
    Attempt::Done(Together { answer, permits: taken.map(|t| t.permit), shared })
}
