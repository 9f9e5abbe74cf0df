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

const COUNTS: usize = 5;
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

type Line = [PlainU64; COUNTS];

/// The counts of one engine.
#[derive(Debug)]
pub(crate) struct Counters {
    lines: Box<[CachePadded<Line>; LINES]>,
    /// For threads that found no line free.
    shared: CachePadded<Line>,
}

impl Counters {
    pub(crate) fn new() -> Counters {
        let lines = Box::new(std::array::from_fn(|_| CachePadded::default()));
        Counters { lines, shared: CachePadded::default() }
    }

    #[inline(always)]
    pub(crate) fn add(&self, count: Count) {
        self.add_many(count, 1);
    }

    #[inline(always)]
    pub(crate) fn add_many(&self, count: Count, more: u64) {
        match self.lines.get(LINE.get()) {
            Some(line) => add_alone(line, count, more),
            None => self.add_slowly(count, more),
        }
    }

    /// The first count of a thread claims its line; one that is ending, or got none, shares.
    #[cold]
    fn add_slowly(&self, count: Count, more: u64) {
        let claimed = LEASE.try_with(|lease| lease.0).unwrap_or(NONE);
        LINE.set(claimed);
        match self.lines.get(claimed) {
            Some(line) => add_alone(line, count, more),
            // ORDERING: Relaxed; a count orders nothing.
            None => drop(self.shared[count as usize].fetch_add(more, Ordering::Relaxed)),
        }
    }

    pub(crate) fn sum(&self, count: Count) -> u64 {
        let lines = self.lines.iter().chain([&self.shared]);
        // ORDERING: Relaxed; a sum taken while threads count is as good as any moment's.
        lines.map(|line| line[count as usize].load(Ordering::Relaxed)).sum()
    }
}

#[inline(always)]
fn add_alone(line: &Line, count: Count, more: u64) {
    let cell = &line[count as usize];
    // ORDERING: Relaxed; only this thread writes here.
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_lines() {
        let counters = Counters::new();
        let barrier = std::sync::Barrier::new(100);
        std::thread::scope(|s| {
            for _ in 0..100 {
                s.spawn(|| {
                    barrier.wait();
                    (0..10_000).for_each(|_| counters.add(Count::Allowed));
                    barrier.wait();
                });
            }
        });
        assert_eq!(counters.sum(Count::Allowed), 1_000_000);
        assert_eq!(counters.sum(Count::Denied), 0);
    }
}
