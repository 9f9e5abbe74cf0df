//! What belongs to a rule at work: its snapshot, and the copy of it that each thread keeps.

use std::cell::{Ref, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::{ArcSwap, Guard};
use tidegate_core::{AtomicU64, Engine, PerThread};

use crate::compiled::interned::Interned;
use crate::error::{Code, Error};
use crate::metrics::Meter;
use crate::metrics::event::Sequence;
use crate::rule::waiters::Waiters;
use crate::snapshot::{RuleView, Snapshot};

/// What belongs to a rule for as long as its limiter lives, whatever its policy becomes.
#[derive(Debug)]
pub(crate) struct RuleState {
    live: ArcSwap<Snapshot>,
    /// How often `live` was replaced by another policy's.
    replaced: AtomicU64,
    /// What each thread goes by, so that a hit need not count one more owner of `live`, which would
    /// have all threads write to one place. An idle thread may keep an old one.
    cached: PerThread<Place>,
    pub(crate) meter: Meter,
    pub(crate) waiters: Waiters,
}

/// A panic leaves what a thread keeps as it was: it is replaced whole, or not.
impl std::panic::RefUnwindSafe for RuleState {}

type Place = RefCell<Option<ThreadCache>>;

/// A rule as a thread found it.
#[derive(Debug)]
struct ThreadCache {
    /// The rule's `replaced` before it was looked at.
    replaced: u64,
    snapshot: Arc<Snapshot>,
    /// The first of the snapshot's, where it is found without going from one to the other: a hit
    /// can't begin before it has read the engine's seed.
    engine: Arc<Engine>,
    base: Interned,
}

impl ThreadCache {
    #[inline(always)]
    fn live(&self) -> RuleView<'_> {
        RuleView { snapshot: &self.snapshot, engine: &self.engine, base: &self.base }
    }
}

impl RuleState {
    pub(crate) fn new(snapshot: Snapshot, sequence: Arc<Sequence>) -> RuleState {
        RuleState {
            live: ArcSwap::from_pointee(snapshot),
            replaced: AtomicU64::new(0),
            cached: PerThread::default(),
            meter: Meter::new(sequence),
            waiters: Waiters::default(),
        }
    }

    /// The rule as it was last seen, which others may have changed or closed since.
    pub(crate) fn last(&self) -> Guard<Arc<Snapshot>> {
        self.live.load()
    }

    /// From the next hit on, of all threads.
    pub(crate) fn replace(&self, next: Snapshot) {
        self.live.store(Arc::new(next));
        // ORDERING: Release, with the Acquire of who reads it: who sees this count sees `next`. Who
        // looked in between has an older count, and looks again next time.
        self.replaced.fetch_add(1, Ordering::Release);
        self.forget_ended_threads();
    }

    /// They look no more: what they went by, and the tables of that, would stay.
    pub(super) fn forget_ended_threads(&self) {
        self.cached.vacant(|place| drop(place.take()));
    }

    /// Asks the rule as this thread found it; none if it does not stand so any more.
    #[inline(always)]
    pub(super) fn with_cached<R>(&self, ask: impl FnOnce(Option<RuleView<'_>>) -> R) -> R {
        self.cached.with(|mine| {
            let cached = mine.and_then(|mine| self.current(mine));
            ask(cached.as_ref().map(|cached| cached.live()))
        })
    }

    #[inline(always)]
    fn current<'p>(&self, place: &'p Place) -> Option<Ref<'p, ThreadCache>> {
        // ORDERING: Acquire, see `replace`.
        let replaced = self.replaced.load(Ordering::Acquire);
        let is_current =
            |cached: &&ThreadCache| cached.replaced == replaced && cached.snapshot.is_current();
        Ref::filter_map(place.try_borrow().ok()?, |cached| cached.as_ref().filter(is_current)).ok()
    }

    /// Asks the rule as it stands now.
    #[inline(always)]
    pub(super) fn with<R>(
        &self,
        ask: impl FnOnce(RuleView<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.with_cached(|cached| match cached {
            Some(current) => ask(current),
            None => self.with_new(ask),
        })
    }

    /// Asks the rule as it stands now, which this thread goes by from now on.
    #[cold]
    #[inline(never)]
    pub(super) fn with_new<R>(
        &self,
        ask: impl FnOnce(RuleView<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.cached.claimed(|mine| {
            // A thread may not find its place at once.
            if let Some(cached) = mine.and_then(|mine| self.current(mine)) {
                return ask(cached.live());
            }
            // ORDERING: Acquire, see `replace`. Read before the snapshot, so that no later one is
            // missed.
            let replaced = self.replaced.load(Ordering::Acquire);
            let snapshot = self.snapshot()?;
            // There is no place for one of too many threads; and in a call within a call the outer
            // one's stays where it is.
            if let Some(Ok(mut mine)) = mine.map(RefCell::try_borrow_mut) {
                let base = snapshot.base.apart();
                let engine = snapshot.tables.engines[0].clone();
                *mine =
                    Some(ThreadCache { replaced, snapshot: Arc::clone(&snapshot), engine, base });
            }
            let engine = &snapshot.tables.engines[0];
            ask(RuleView { snapshot: &snapshot, engine, base: &snapshot.base })
        })
    }

    /// The rule as it stands now.
    pub(crate) fn snapshot(&self) -> Result<Guard<Arc<Snapshot>>, Error> {
        let snapshot = self.live.load();
        if snapshot.is_current() { Ok(snapshot) } else { self.renewed(&snapshot) }
    }

    #[cold]
    fn renewed(&self, old: &Guard<Arc<Snapshot>>) -> Result<Guard<Arc<Snapshot>>, Error> {
        if old.closed {
            return Err(closed());
        }
        if !old.is_in_time() && old.tables.was_retired() {
            // Processes of another shape change what this one goes by, and can't tell it so.
            old.tables.look_again();
        }
        if old.tables.runtime().1 == old.generation && old.is_in_time() {
            // Another thread reads what was changed; until then this is all that is known.
            return Ok(Guard::from_inner(Arc::clone(old)));
        }
        let next = Snapshot::new(old.config.clone(), old.labels.clone(), old.tables.clone())?;
        let next = Arc::new(next);
        // Who loses to a reload or to another change goes by its own, which knows all that was
        // changed before this call. The winner's may not: it may have been read before that.
        self.live.compare_and_swap(old, next.clone());
        self.meter.note_retired(&next);
        Ok(Guard::from_inner(next))
    }
}

#[cold]
pub(crate) fn closed() -> Error {
    Error::new(Code::Closed, "the limiter is closed")
}
