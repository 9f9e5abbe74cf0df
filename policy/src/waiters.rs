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
        let place = Arc::new(Place { cost, waker: Mutex::new(None) });
        self.lines().entry(line).or_default().push_back(place.clone());
        Ticket { waiters: self, line, place }
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

    /// Blocks until it is first, or for `most`.
    pub(crate) fn wait_turn(&self, most: Duration) {
        let lines = self.waiters.lines();
        let waiting = |lines: &mut Lines| !self.is_first_in(lines);
        drop(self.waiters.moved.wait_timeout_while(lines, most, waiting));
    }

    /// Resolves when it is first, or with `sleep`.
    pub(crate) async fn turn(&self, sleep: impl Future<Output = ()>) {
        let mut sleep = pin!(sleep);
        poll_fn(|cx| {
            // Before looking: who leaves after the look finds the waker.
            drop(self.place.swap(Some(cx.waker().clone())));
            match self.is_first() {
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
