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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::lock::lock;

/// Which line: the group of limits that share it, or [`WHOLE_KEY`], and a hash of the key's parts.
pub(crate) type LineKey = (usize, u64);

/// In place of a group: the line of a key.
pub(crate) const WHOLE_KEY: usize = usize::MAX;

type Lines = HashMap<LineKey, VecDeque<Arc<Place>>>;

/// One who waits: for how much, and how to wake the task, if it is one.
#[derive(Debug)]
struct Place {
    cost: u64,
    /// Whether something was given back that the first may take. Written and read under the lock of the lines.
    nudged: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Place {
    /// Puts a waker there, or none, and gives what was there. Neither dropping nor waking one may
    /// happen under the lock: both can run any code, that of the very task it is about too.
    fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        let mut held = lock(&self.waker);
        std::mem::replace(&mut *held, waker)
    }
}

/// The lines of a rule.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    lines: Mutex<Lines>,
    moved: Condvar,
}

/// A place in a line, left when dropped.
pub(crate) struct Ticket<'w> {
    waiters: &'w Waiters,
    line: LineKey,
    place: Arc<Place>,
}

impl Waiters {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        lock(&self.lines)
    }

    pub(crate) fn join(&self, line: LineKey, cost: u64) -> Ticket<'_> {
        let place =
            Arc::new(Place { cost, nudged: AtomicBool::new(false), waker: Mutex::new(None) });
        self.lines().entry(line).or_default().push_back(place.clone());
        Ticket { waiters: self, line, place }
    }

    /// Has the first of each of these lines try again now: something was given back.
    pub(crate) fn nudge(&self, of: impl Iterator<Item = LineKey>) {
        let lines = self.lines();
        if lines.is_empty() {
            return;
        }
        let firsts: Vec<_> = of.filter_map(|line| lines.get(&line)?.front().cloned()).collect();
        // ORDERING: Relaxed: the lock of the lines orders it.
        firsts.iter().for_each(|place| place.nudged.store(true, Ordering::Relaxed));
        drop(lines);
        self.moved.notify_all();
        firsts.iter().filter_map(|place| place.swap(None)).for_each(Waker::wake);
    }

    /// The first of these lines in which somebody stands.
    pub(crate) fn busy(&self, mut of: impl Iterator<Item = LineKey>) -> Option<LineKey> {
        let lines = self.lines();
        of.find(|line| lines.contains_key(line))
    }
}

impl Ticket<'_> {
    pub(crate) fn line(&self) -> LineKey {
        self.line
    }

    fn is_first_in(&self, lines: &Lines) -> bool {
        let first = lines.get(&self.line).and_then(VecDeque::front);
        first.is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    pub(crate) fn is_first(&self) -> bool {
        self.is_first_in(&self.waiters.lines())
    }

    /// What the first of its line waits for.
    pub(crate) fn cost_of_first(&self) -> u64 {
        let lines = self.waiters.lines();
        lines.get(&self.line).and_then(VecDeque::front).map_or(0, |first| first.cost)
    }

    /// Whether it was nudged since it was last asked.
    fn take_nudge(&self, _lines: &Lines) -> bool {
        // ORDERING: Relaxed: see `Waiters::nudge`.
        self.place.nudged.swap(false, Ordering::Relaxed)
    }

    /// Blocks for `most`, or until it is nudged.
    pub(crate) fn nap(&self, most: Duration) {
        let lines = self.waiters.lines();
        let waiting = |lines: &mut Lines| !self.take_nudge(lines);
        drop(self.waiters.moved.wait_timeout_while(lines, most, waiting));
    }

    /// Resolves with `sleep`, or when it is nudged.
    pub(crate) async fn sleep(&self, sleep: impl Future<Output = ()>) {
        self.until(sleep, || self.take_nudge(&self.waiters.lines())).await;
    }

    /// Blocks until it is first, or for `most`.
    pub(crate) fn wait_turn(&self, most: Duration) {
        let lines = self.waiters.lines();
        let waiting = |lines: &mut Lines| !self.is_first_in(lines);
        drop(self.waiters.moved.wait_timeout_while(lines, most, waiting));
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
        let line = lines.get_mut(&self.line)?;
        line.retain(|place| !Arc::ptr_eq(place, &self.place));
        let first = line.front().cloned();
        if first.is_none() {
            lines.remove(&self.line);
        }
        first
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let first = self.leave();
        self.waiters.moved.notify_all();
        let waker = first.and_then(|first| first.swap(None));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
