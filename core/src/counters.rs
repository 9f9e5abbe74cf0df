//! Counts for metrics that the hit path pays nothing contended for.
//!
//! Each thread has a line of its own and adds to it by a plain load and store: no other thread
//! writes there, so nothing is lost. More threads than lines share one line and add atomically.

use crossbeam_utils::CachePadded;

use crate::sync::{Ordering, PlainU64};
use crate::thread_slots::PerThread;

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
    /// Idle keys that were evicted for new ones.
    Evicted,
}

pub(crate) const COUNTS: usize = 5;

/// Counts of one thread.
#[derive(Debug)]
struct CounterLine<const N: usize>([PlainU64; N]);

impl<const N: usize> Default for CounterLine<N> {
    fn default() -> Self {
        CounterLine(std::array::from_fn(|_| PlainU64::new(0)))
    }
}

/// `N` counts that many threads add to.
///
/// ```
/// let counters = tidegate_core::Counters::<2>::default();
/// assert_eq!(counters.add(1), 1);
/// assert_eq!((counters.sum(0), counters.sum(1)), (0, 1));
/// ```
#[derive(Debug, Default)]
pub struct Counters<const N: usize> {
    lines: PerThread<CounterLine<N>>,
    /// For threads that have no line of their own.
    shared: CachePadded<CounterLine<N>>,
}

impl<const N: usize> Counters<N> {
    /// Adds one to a count below `N`. What this thread's part of it has come to.
    #[inline(always)]
    pub fn add(&self, count: usize) -> u64 {
        self.add_many(count, 1)
    }

    /// Adds `more` to a count below `N`. What this thread's part of it has come to.
    #[inline(always)]
    pub fn add_many(&self, count: usize, more: u64) -> u64 {
        match self.lines.own() {
            Some(line) => line.add_alone(count, more),
            None => self.general_add(count, more),
        }
    }

    #[cold]
    fn general_add(&self, count: usize, more: u64) -> u64 {
        self.lines.claimed(|line| match line {
            Some(line) => line.add_alone(count, more),
            None => self.shared.add_together(count, more),
        })
    }

    /// What a count has come to.
    pub fn sum(&self, count: usize) -> u64 {
        let lines = self.lines.all().chain([&*self.shared]);
        // ORDERING: Relaxed; a sum taken while threads count is as good as any moment's.
        lines.map(|line| line.0[count].load(Ordering::Relaxed)).sum()
    }
}

impl<const N: usize> CounterLine<N> {
    #[inline(always)]
    fn add_alone(&self, count: usize, more: u64) -> u64 {
        let cell = &self.0[count];
        // ORDERING: Relaxed; only this thread writes here.
        let sum = cell.load(Ordering::Relaxed).wrapping_add(more);
        cell.store(sum, Ordering::Relaxed);
        sum
    }

    fn add_together(&self, count: usize, more: u64) -> u64 {
        // ORDERING: Relaxed; a count orders nothing.
        self.0[count].fetch_add(more, Ordering::Relaxed).wrapping_add(more)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_lines() {
        let counters = Counters::<COUNTS>::default();
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
