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
const SHARED: usize = LINES;
const UNCLAIMED: usize = LINES + 1;

/// A bit for each line that belongs to a living thread.
static OWNED: PlainU64 = PlainU64::new(0);

thread_local! {
    static LINE: Cell<usize> = const { Cell::new(UNCLAIMED) };
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
        Lease(claimed.map_or(SHARED, |before| (!before).trailing_zeros() as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        LINE.set(SHARED);
        if self.0 != SHARED {
            // ORDERING: Release, see `claim`.
            OWNED.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

#[cold]
fn claim_line() -> usize {
    // A thread that is ending has no lease any more; it uses the shared line.
    let line = LEASE.try_with(|lease| lease.0).unwrap_or(SHARED);
    LINE.set(line);
    line
}

/// The counts of one engine.
#[derive(Debug)]
pub(crate) struct Counters {
    lines: Box<[CachePadded<[PlainU64; COUNTS]>]>,
}

/// One thread's counts.
pub(crate) struct Mine<'c> {
    counts: &'c [PlainU64; COUNTS],
    shared: bool,
}

impl Mine<'_> {
    #[inline(always)]
    pub(crate) fn add(&self, count: Count) {
        let cell = &self.counts[count as usize];
        if self.shared {
            // ORDERING: Relaxed; a count orders nothing.
            cell.fetch_add(1, Ordering::Relaxed);
        } else {
            // ORDERING: Relaxed; only this thread writes here.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters { lines: (0..=LINES).map(|_| CachePadded::default()).collect() }
    }

    /// The calling thread's counts.
    #[inline(always)]
    pub(crate) fn mine(&self) -> Mine<'_> {
        let mut line = LINE.get();
        if line == UNCLAIMED {
            line = claim_line();
        }
        Mine { counts: &self.lines[line], shared: line == SHARED }
    }

    pub(crate) fn sum(&self, count: Count) -> u64 {
        // ORDERING: Relaxed; a sum taken while threads count is as good as any moment's.
        self.lines.iter().map(|line| line[count as usize].load(Ordering::Relaxed)).sum()
    }
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
                    (0..10_000).for_each(|_| counters.mine().add(Count::Allowed));
                    barrier.wait();
                });
            }
        });
        assert_eq!(counters.sum(Count::Allowed), 1_000_000);
        assert_eq!(counters.sum(Count::Denied), 0);
    }
}
