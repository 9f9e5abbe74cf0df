//! A table, the limits of its rows, and a clock: what a hit goes through.

mod fast;
mod multi;
mod row_ref;

pub use multi::{MultiOutcome, hit_together, peek_together, reserve_together};
pub use row_ref::RowRef;

use crate::algorithm::bucket::word::Bucket;
use crate::algorithm::permit::Permit;
use crate::clock::{COARSE_MAX_AGE, Clock, Time};
use crate::counters::{COUNTS, Count, Counters};
use crate::eviction::{self, Eviction};
use crate::limits::Limits;
use crate::memory::Backing;
use crate::status::LimitStatuses;
use crate::table::hash::Hasher;
use crate::table::row::Row;
use crate::table::{Found, Full, Hash, OutOfMemory, Table, bytes_for};

/// How often a hit on several limits starts over because others were quicker.
const ATTEMPTS: usize = 64;

/// What happens to a new key when every place that it may take holds a live one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// no outsider can make keys that collide.
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
    /// At least one limit refuses now: its status has the wait.
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
pub struct HitOutcome {
    /// Yes or no, and why.
    pub answer: Answer,
    /// After an allowed hit: what is left. After a denied one: what there is, and the waits.
    pub statuses: LimitStatuses,
    /// The slot that is held, if there is a concurrent limit.
    pub permit: Option<Permit>,
    /// Whether the table is full, so that the key shares a row with others.
    pub shared: bool,
}

impl MultiOutcome<1> {
    fn with(self, statuses: LimitStatuses) -> HitOutcome {
        let [permit] = self.permits;
        HitOutcome { answer: self.answer, statuses, permit, shared: self.shared }
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
    /// Whether that bucket fills so slowly that the coarse time is mostly enough.
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
        Engine::new_in(limits, options, hasher, &Backing::Heap)
    }

    pub(crate) fn new_in(
        limits: Limits,
        options: Options,
        hasher: Hasher,
        backing: &Backing,
    ) -> Result<Engine, OutOfMemory> {
        let Options { capacity, on_full, clock, .. } = options;
        let error = OutOfMemory { capacity, row_words: limits.row_words() };
        let table = Table::new(capacity, &limits, backing).ok_or(error)?;
        let shared = backing.eviction(eviction::WORDS).ok_or(error)?;
        let lone = limits.lone_bucket().copied();
        let slow = lone.as_ref().is_some_and(|bucket| bucket.is_slower_than(COARSE_MAX_AGE));
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
    pub fn part(&self, hash: Hash) -> RowRef<'_> {
        RowRef { engine: self, hash, limits: self.limits() }
    }

    /// Introduces other numbers that keys may be judged by, so that no row which still counts under
    /// them is evicted. Call this before the first [`RowRef`] with such limits; it is cheap. False
    /// if their shape is not the table's.
    pub fn introduce_limits(&self, limits: &Limits) -> bool {
        self.eviction.introduce_limits(limits)
    }

    /// Nanoseconds for which an idle row may be kept: the longest [`Limits::horizon`] of all
    /// numbers that any user of the table judges rows by.
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

    /// As [`Engine::allow`], and how many hits of this thread have got that answer: for those who
    /// take note of one hit in so many.
    #[inline]
    pub fn allow_counted(&self, key: &[u8]) -> (bool, u64) {
        self.allow_at(self.table.spot(self.hash(key)))
    }

    /// As [`Engine::allow`], for a key that was hashed before.
    #[inline]
    pub fn allow_hashed(&self, hash: Hash) -> bool {
        self.allow_at(self.table.spot(hash)).0
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
    pub fn hit(&self, key: &[u8], cost: u64) -> HitOutcome {
        let hash = self.hash(key);
        self.table.prefetch(hash);
        let (part, mut time) = (self.part(hash), Time::read(&self.clock));
        let outcome = match part.hit_lone(cost, &mut time) {
            Some((answer, status, shared)) => {
                HitOutcome { answer, statuses: LimitStatuses::one(status), permit: None, shared }
            }
            None => {
                let mut statuses = LimitStatuses::default();
                part.hit_several(cost, &mut time, &mut statuses).with(statuses)
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
    pub fn peek(&self, key: &[u8], cost: u64) -> HitOutcome {
        let (part, mut statuses) = (self.part(self.hash(key)), [LimitStatuses::default()]);
        let together = peek_together(&[part], &[cost], &Time::read(&self.clock), &mut statuses);
        together.with(statuses[0])
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

    /// Spends `cost` without asking, and says what is left. A window logs up to 8,191 units in one
    /// go, and no more entries than its largest `max`; others up to 1,000,000,000.
    pub fn record(&self, key: &[u8], cost: u64) -> LimitStatuses {
        self.part(self.hash(key)).record(cost, &mut Time::read(&self.clock))
    }

    /// Gives `cost` back, never above full.
    pub fn refund(&self, key: &[u8], cost: u64) {
        self.part(self.hash(key)).refund(cost, &mut Time::read(&self.clock));
    }

    /// Gives a slot of a concurrent limit back. False if it is no longer held: its lease had run
    /// out, or it was released or reset before.
    pub fn release(&self, key: &[u8], permit: Permit) -> bool {
        self.part(self.hash(key)).release(permit, self.clock.now())
    }

    /// Starts a permit's lease anew. `None` if it had run out: others may count on the slot.
    pub fn renew(&self, key: &[u8], permit: Permit) -> Option<Permit> {
        self.part(self.hash(key)).renew(permit, self.clock.now())
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

    /// Drops idle keys, and says how many. Nothing must call this: inserts evict them.
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
