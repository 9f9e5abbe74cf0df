//! The lines in which those stand who wait.
//!
//! Whoever waits stands in the line of their key; only the first of it tries. If what they wait for is a
//! limit that other keys share, they stand in that limit's line as well, and only its first tries. So
//! a large cost is not starved by small ones that come later, by its own key or by others. Who leaves
//! a line, by success, timeout or being dropped, wakes the next.
//!
//! Nobody waits for a place in a key's line while holding one in a wider line, so no two wait for each
//! other.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tidegate_core::{ForkGuard, ForkLock, fork_generation};

/// Which line: the group of limits that share it, or [`WHOLE_KEY`], and a hash of the key's parts.
pub(crate) type LineKey = (usize, u64);

/// In place of a group: the line of a key.
pub(crate) const WHOLE_KEY: usize = usize::MAX;

/// The lines in which somebody stands, all of them threads and tasks of one process.
#[derive(Debug, Default)]
struct Lines {
    /// That process.
    generation: u64,
    of: HashMap<LineKey, VecDeque<Arc<Place>>>,
}

/// One who waits: for how much, and how to wake it.
#[derive(Debug)]
struct Place {
    cost: u64,
    /// Whether something was given back that the first may take.
    nudged: AtomicBool,
    waker: ForkLock<Option<Waker>>,
}

impl Place {
    /// Puts a waker there, or none, and gives what was there. Neither dropping nor waking one may
    /// happen under the lock: both can run any code, that of the very task it is about too.
    fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.waker.lock(), waker)
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The lines of a rule.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    lines: ForkLock<Lines>,
}

/// A place in a line, left when dropped.
pub(crate) struct Ticket<'w> {
    waiters: &'w Waiters,
    line: LineKey,
    place: Arc<Place>,
    /// The process in which it was taken.
    generation: u64,
}

impl Waiters {
    /// The lines of this process: those of the one that it was forked from are not here.
    fn lines(&self) -> ForkGuard<'_, Lines> {
        let (mut lines, generation) = (self.lines.lock(), fork_generation());
        if lines.generation != generation {
            // Not dropped: that would run code of tasks which this process does not have.
            let here = Lines { generation, of: HashMap::new() };
            std::mem::forget(std::mem::replace(&mut *lines, here));
        }
        lines
    }

    pub(crate) fn join(&self, line: LineKey, cost: u64) -> Ticket<'_> {
        let (nudged, waker) = (AtomicBool::new(false), ForkLock::new(None));
        let place = Arc::new(Place { cost, nudged, waker });
        let mut lines = self.lines();
        lines.of.entry(line).or_default().push_back(place.clone());
        Ticket { waiters: self, line, place, generation: lines.generation }
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
            // ORDERING: Release, with the swap in `take_nudge`: what was given back is there. The flag is set
            // before the waker is taken, and a waiter leaves its waker before it looks at the flag.
            place.nudged.store(true, Ordering::Release);
            if let Some(waker) = place.swap(None) {
                waker.wake();
            }
        }
    }

    /// The first of these lines in which somebody stands.
    pub(crate) fn busy(&self, mut of: impl Iterator<Item = LineKey>) -> Option<LineKey> {
        let lines = self.lines();
        of.find(|line| lines.of.contains_key(line))
    }
}

impl Ticket<'_> {
    pub(crate) fn line(&self) -> LineKey {
        self.line
    }

    /// One that was taken before a fork has nobody before it.
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

    /// Whether it was nudged since it was last asked.
    fn take_nudge(&self) -> bool {
        // ORDERING: Acquire; see `Waiters::nudge`.
        self.place.nudged.swap(false, Ordering::Acquire)
    }

    /// Blocks for `most`, or until it is nudged.
    pub(crate) fn nap(&self, most: Duration) {
        self.park_until(most, || self.take_nudge());
    }

    /// Resolves with `sleep`, or when it is nudged.
    pub(crate) async fn sleep(&self, sleep: impl Future<Output = ()>) {
        self.until(sleep, || self.take_nudge()).await;
    }

    /// Blocks until it is first, or for `most`.
    pub(crate) fn wait_turn(&self, most: Duration) {
        self.park_until(most, || self.is_first());
    }

    fn park_until(&self, most: Duration, is_over: impl Fn() -> bool) {
        let end = Instant::now().checked_add(most);
        loop {
            // Before looking: who leaves, or nudges, after the look finds the waker.
            let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
            drop(self.place.swap(Some(waker)));
            let left = end.map_or(most, |end| end.saturating_duration_since(Instant::now()));
            if is_over() || left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Resolves when it is first, or with `sleep`.
    pub(crate) async fn turn(&self, sleep: impl Future<Output = ()>) {
        self.until(sleep, || self.is_first()).await;
    }

    async fn until(&self, sleep: impl Future<Output = ()>, is_over: impl Fn() -> bool) {
        let mut sleep = pin!(sleep);
        poll_fn(|cx| {
            // Before looking: who leaves, or nudges, after the look finds the waker.
            drop(self.place.swap(Some(cx.waker().clone())));
            match is_over() {
                true => Poll::Ready(()),
                false => sleep.as_mut().poll(cx),
            }
        })
        .await;
    }

    /// Leaves the line, and gives who is first in it then.
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

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let first = self.leave();
        let waker = first.and_then(|first| first.swap(None));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
