//! Counts for metrics that the hit path pays nothing contended for.
//!
//! Each thread has a line of its own and adds to it by a plain load and store: no other thread
//! writes there, so nothing is lost. More threads than lines share one line and add atomically.

use std::cell::Cell;

use crossbeam_utils::CachePadded;

use crate::sync::{Ordering, PlainU64};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Hits that were allowed.
    Allowed,
    /// Hits that a limit denied.
    Denied,
    /// Hits whose cost no limit of this size could ever hold.
    Cost,
    /// Keys that found every place taken by a live key.
    Full,
    /// Idle keys that gave way to new ones.
    Evicted,
}

pub(crate) const COUNTS: usize = 5;
const LINES: usize = 64;
/// The line of a thread that has none of its own, or not asked yet.
const NONE: usize = LINES;

/// A bit for each line that belongs to a living thread.
static OWNED: PlainU64 = PlainU64::new(0);

thread_local! {
    static LINE: Cell<usize> = const { Cell::new(NONE) };
    static LEASE: Lease = Lease::claim();
}

/// A thread's line, given back when the thread ends.
struct Lease(usize);

impl Lease {
    fn claim() -> Lease {
        // ORDERING: Acquire, with the Release in `drop`: the last owner's counts are seen.
        let claimed = OWNED.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            let free = (!owned).trailing_zeros();
            (free < LINES as u32).then(|| owned | 1 << free)
        });
        Lease(claimed.map_or(NONE, |before| (!before).trailing_zeros() as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        LINE.set(NONE);
        if self.0 != NONE {
            // ORDERING: Release, see `claim`.
            OWNED.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

type Line<const N: usize> = [PlainU64; N];

fn line<const N: usize>() -> CachePadded<Line<N>> {
    CachePadded::new(std::array::from_fn(|_| PlainU64::new(0)))
}

/// `N` counts that many threads add to.
///
/// ```
/// let counters = tidegate_core::Counters::<2>::new();
/// assert_eq!(counters.add(1), 1);
/// assert_eq!((counters.sum(0), counters.sum(1)), (0, 1));
/// ```
#[derive(Debug)]
pub struct Counters<const N: usize> {
    lines: Box<[CachePadded<Line<N>>]>,
    /// For threads that found no line free.
    shared: CachePadded<Line<N>>,
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Counters<N> {
    /// All at 0.
    pub fn new() -> Self {
        Counters { lines: (0..LINES).map(|_| line()).collect(), shared: line() }
    }

    /// Adds one to a count below `N`. What this thread's part of it has come to.
    #[inline(always)]
    pub fn add(&self, count: usize) -> u64 {
        self.add_many(count, 1)
    }

    /// Adds `more` to a count below `N`. What this thread's part of it has come to.
    #[inline(always)]
    pub fn add_many(&self, count: usize, more: u64) -> u64 {
        match self.lines.get(LINE.get()) {
            Some(line) => add_alone(line, count, more),
            None => self.add_slowly(count, more),
        }
    }

    /// The first count of a thread claims its line; one that is ending, or got none, shares.
    #[cold]
    fn add_slowly(&self, count: usize, more: u64) -> u64 {
        let claimed = LEASE.try_with(|lease| lease.0).unwrap_or(NONE);
        LINE.set(claimed);
        match self.lines.get(claimed) {
            Some(line) => add_alone(line, count, more),
            // ORDERING: Relaxed; a count orders nothing.
            None => self.shared[count].fetch_add(more, Ordering::Relaxed).wrapping_add(more),
        }
    }

    /// What a count has come to.
    pub fn sum(&self, count: usize) -> u64 {
        let lines = self.lines.iter().chain([&self.shared]);
        // ORDERING: Relaxed; a sum taken while threads count is as good as any moment's.
        lines.map(|line| line[count].load(Ordering::Relaxed)).sum()
    }
}

#[inline(always)]
fn add_alone<const N: usize>(line: &Line<N>, count: usize, more: u64) -> u64 {
    let cell = &line[count];
    // ORDERING: Relaxed; only this thread writes here.
    let sum = cell.load(Ordering::Relaxed).wrapping_add(more);
    cell.store(sum, Ordering::Relaxed);
    sum
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_lines() {
        let counters = Counters::<COUNTS>::new();
        let barrier = std::sync::Barrier::new(100);
        std::thread::scope(|s| {
            for _ in 0..100 {
                s.spawn(|| {
                    barrier.wait();
                    for _ in 0..10_000 {
                        counters.add(Count::Allowed as usize);
                    }
                    barrier.wait();
                });
            }
        });
        assert_eq!(counters.sum(Count::Allowed as usize), 1_000_000);
        assert_eq!(counters.sum(Count::Denied as usize), 0);
    }
}
