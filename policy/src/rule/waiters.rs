//! The lines in which calls wait for their turn.
//!
//! A waiting call stands in the line of its key. Only the first of that line tries. If it waits
//! for a limit that other keys share, it also stands in that limit's line, and only the first of
//! that line tries. So a large cost is not starved by small ones that come later, of its own key
//! or of others. A call that leaves a line wakes the next one: after success, at its timeout, or
//! when it is dropped.
//!
//! No call enters its key's line while it stands in a wider line. So no two calls wait for each
//! other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use tidegate_core::{ForkGuard, ForkLock, fork_generation};

/// Names a line: the group of limits that share it, or [`WHOLE_KEY`], and a hash of the key's
/// parts.
pub(crate) type LineKey = (usize, u64);

/// In place of a group: the line of a key.
pub(crate) const WHOLE_KEY: usize = usize::MAX;

/// The lines that are not empty. All calls in them are threads and tasks of one process.
#[derive(Debug, Default)]
struct Lines {
    /// That process.
    generation: u64,
    of: HashMap<LineKey, VecDeque<Arc<Place>>>,
}

/// A waiting call: its cost, and how to wake it.
#[derive(Debug)]
struct Place {
    cost: u64,
    /// Whether something was given back that the first may take.
    nudged: AtomicBool,
    waker: ForkLock<Option<Waker>>,
}

impl Place {
    /// Stores a waker, or none, and returns the one before. A waker must be neither dropped nor
    /// woken under the lock: both may run any code, that of the waiting task included.
    fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.waker.lock(), waker)
    }
}

/// The lines of a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiters {
    lines: Arc<ForkLock<Lines>>,
}

/// A place in a line, left when dropped.
pub(crate) struct Ticket {
    waiters: Waiters,
    line: LineKey,
    place: Arc<Place>,
    /// The process in which it was taken.
    generation: u64,
}

impl Waiters {
    /// The lines of this process. Those of its parent before a fork are not among them.
    fn lines(&self) -> ForkGuard<'_, Lines> {
        let (mut lines, generation) = (self.lines.lock(), fork_generation());
        if lines.generation != generation {
            // Not dropped: that would run code of tasks which this process does not have.
            let here = Lines { generation, of: HashMap::new() };
            std::mem::forget(std::mem::replace(&mut *lines, here));
        }
        lines
    }

    pub(crate) fn join(&self, line: LineKey, cost: u64) -> Ticket {
        let (nudged, waker) = (AtomicBool::new(false), ForkLock::new(None));
        let place = Arc::new(Place { cost, nudged, waker });
        let mut lines = self.lines();
        lines.of.entry(line).or_default().push_back(place.clone());
        Ticket { waiters: self.clone(), line, place, generation: lines.generation }
    }

    /// Has the first of each of these lines try again now: something was given back.
    pub(crate) fn nudge(&self, of: impl Iterator<Item = LineKey>) {
        let lines = self.lines();
        let firsts: Vec<_> = match lines.of.is_empty() {
            true => return,
            false => of.filter_map(|line| lines.of.get(&line)?.front().cloned()).collect(),
        };
        drop(lines);
        for place in firsts {
            // ORDERING: Release, with the swap in `take_nudge`: what was given back is there. The
            // flag is set before the waker is taken. A waiter stores its waker before it reads
            // the flag.
            place.nudged.store(true, Ordering::Release);
            if let Some(waker) = place.swap(None) {
                waker.wake();
            }
        }
    }

    /// The first of these lines that is not empty.
    pub(crate) fn busy(&self, mut of: impl Iterator<Item = LineKey>) -> Option<LineKey> {
        let lines = self.lines();
        of.find(|line| lines.of.contains_key(line))
    }
}

impl Ticket {
    pub(crate) fn line(&self) -> LineKey {
        self.line
    }

    /// A ticket that was taken before a fork counts as first: its line is not of this process.
    pub(crate) fn is_first(&self) -> bool {
        let lines = self.waiters.lines();
        let first = lines.of.get(&self.line).and_then(VecDeque::front);
        self.generation != lines.generation
            || first.is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    /// What the first of its line waits for.
    pub(crate) fn cost_of_first(&self) -> u64 {
        let lines = self.waiters.lines();
        lines.of.get(&self.line).and_then(VecDeque::front).map_or(0, |first| first.cost)
    }

    /// Whether it was nudged since the last call of this.
    pub(crate) fn take_nudge(&self) -> bool {
        // ORDERING: Acquire; see `Waiters::nudge`.
        self.place.nudged.swap(false, Ordering::Acquire)
    }

    /// Stores what wakes this call. To be done before `is_first` and `take_nudge` are asked: a
    /// call that leaves, or nudges, after the answer finds the waker.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        drop(self.place.swap(Some(waker.clone())));
    }

    /// Leaves the line, and returns its first place then.
    fn leave(&self) -> Option<Arc<Place>> {
        let mut lines = self.waiters.lines();
        let line = lines.of.get_mut(&self.line)?;
        line.retain(|place| !Arc::ptr_eq(place, &self.place));
        let first = line.front().cloned();
        if first.is_none() {
            lines.of.remove(&self.line);
        }
        first
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let first = self.leave();
        let waker = first.and_then(|first| first.swap(None));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
