//! A place for each thread, which no other thread writes to.
//!
//! A thread claims one of a few numbers when it first needs a place, and gives it back when it
//! ends; places of that number are its own until then. More threads than numbers go without.

use std::cell::Cell;
use std::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{Ordering, PlainU64};

const PLACES: usize = 64;
/// The number of a thread that has none of its own, or not asked yet.
const NONE: usize = PLACES;

/// A bit for each number that belongs to a living thread.
static OWNED: PlainU64 = PlainU64::new(0);

thread_local! {
    static LEASE: Lease = const { Lease(Cell::new(NONE)) };
}

/// A thread's number, given back when the thread ends.
struct Lease(Cell<usize>);

impl Lease {
    /// The thread's number; one that got none asks again, since others may have ended.
    fn number(&self) -> usize {
        if self.0.get() == NONE {
            // ORDERING: Acquire, with the Release in `give_back`: what the last owner left is seen.
            let claimed = OWNED.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
                let free = (!owned).trailing_zeros();
                (free < PLACES as u32).then(|| owned | 1 << free)
            });
            self.0.set(claimed.map_or(NONE, |before| (!before).trailing_zeros() as usize));
        }
        self.0.get()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        mine::set(NONE);
        if self.0.get() != NONE {
            give_back(self.0.get());
        }
    }
}

fn give_back(number: usize) {
    // ORDERING: Release, see `Lease::number`.
    OWNED.fetch_and(!(1 << number), Ordering::Release);
}

/// The number of this thread, or one that no place has. That may also be so for one that has a
/// number: then it is to ask its lease.
///
/// A shared library finds a thread's own variables by a call. The thread pointer is in a register.
/// Against `thread_local!`, an `allow` that denies takes 378 instructions for 425 in the C library,
/// one that allows 402 for 401; in an executable both take 6 more.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(miri),
    not(all(test, loom))
))]
mod mine {
    use super::{NONE, Ordering, PLACES, PlainU64};

    /// Numbers by thread: its pointer, with its number in the highest bits. A thread that meets
    /// another's entry replaces it, and so may the other.
    static KNOWN: [PlainU64; 1 << BITS] = [const { PlainU64::new(0) }; 1 << BITS];
    /// Enough that few threads meet; of what is never used, nothing is touched.
    const BITS: u32 = 14;

    const NUMBER_BITS: u32 = PLACES.trailing_zeros();
    const _: () = assert!(PLACES.is_power_of_two() && PLACES <= 64);

    #[inline(always)]
    fn thread() -> u64 {
        let pointer: u64;
        // SAFETY: reads the thread pointer, which the ABI keeps there, and nothing else.
        unsafe {
            std::arch::asm!(
                "mov {}, fs:[0]",
                out(reg) pointer,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        pointer
    }

    #[inline(always)]
    fn entry(thread: u64) -> &'static PlainU64 {
        // The golden ratio spreads them, wherever threads have their stacks.
        &KNOWN[(thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize]
    }

    #[inline(always)]
    pub(super) fn get() -> usize {
        let thread = thread();
        // ORDERING: Relaxed; only what this thread wrote is believed. (One of the same pointer that
        // ended before has taken its entry back, or else its number too was never given back.)
        let known = entry(thread).load(Ordering::Relaxed) ^ thread;
        known.rotate_left(NUMBER_BITS) as usize
    }

    pub(super) fn set(number: usize) {
        let thread = thread();
        // ORDERING: Relaxed, see `get`.
        if number != NONE {
            let known = (number as u64).rotate_right(NUMBER_BITS);
            entry(thread).store(thread ^ known, Ordering::Relaxed);
        } else if get() < PLACES {
            // Another's that comes in between is lost, and made anew.
            entry(thread).store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(miri),
    not(all(test, loom))
)))]
mod mine {
    use std::cell::Cell;

    use super::NONE;

    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    }

    #[inline(always)]
    pub(super) fn get() -> usize {
        NUMBER.get()
    }

    pub(super) fn set(number: usize) {
        NUMBER.set(number);
    }
}

/// A `T` for each thread, on cache lines of its own.
///
/// ```
/// use std::cell::Cell;
/// let seen = tidegate_core::PerThread::<Cell<u32>>::default();
/// seen.claimed(|mine| mine.unwrap().set(7));
/// seen.with(|mine| assert_eq!(mine.unwrap().get(), 7));
/// std::thread::scope(|s| {
///     s.spawn(|| seen.claimed(|mine| assert_eq!(mine.unwrap().get(), 0)));
/// });
/// ```
pub struct PerThread<T> {
    places: Box<[CachePadded<T>; PLACES]>,
}

// SAFETY: a place is lent only to the thread that owns its number, for the time of a call that
// can't keep it. Numbers change hands by Release and Acquire (see `Lease`). So a `T` is never used
// by two threads at once, but moves from one to the next, which `Send` allows. `all`, which lends
// every place to any thread, wants `Sync`.
unsafe impl<T: Send> Sync for PerThread<T> {}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        PerThread { places: Box::new(std::array::from_fn(|_| CachePadded::default())) }
    }
}

/// A number that is given back, whatever happens.
struct Vacant(usize);

impl Drop for Vacant {
    fn drop(&mut self) {
        give_back(self.0);
    }
}

/// Says nothing of the places: they are not this thread's to look at.
impl<T> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread").finish_non_exhaustive()
    }
}

impl<T> PerThread<T> {
    /// Lends this thread its own; none if it has not claimed one, or got none.
    #[inline(always)]
    pub fn with<R>(&self, ask: impl FnOnce(Option<&T>) -> R) -> R {
        ask(self.places.get(mine::get()).map(|place| &**place))
    }

    /// As [`PerThread::with`], claiming a place first: there is none for one of too many threads,
    /// and for one that is ending.
    pub fn claimed<R>(&self, ask: impl FnOnce(Option<&T>) -> R) -> R {
        // All threads of a model are one to the system, and would share a place.
        if cfg!(all(test, loom)) {
            return ask(None);
        }
        let number = LEASE.try_with(Lease::number).unwrap_or(NONE);
        mine::set(number);
        ask(self.places.get(number).map(|place| &**place))
    }

    /// Runs `clean` on the places that no living thread has.
    pub fn vacant(&self, clean: impl Fn(&T)) {
        for (number, place) in self.places.iter().enumerate() {
            // ORDERING: Acquire, see `Lease::number`: for the time of the call this thread is the
            // owner.
            if OWNED.fetch_or(1 << number, Ordering::Acquire) & 1 << number == 0 {
                let _owner = Vacant(number);
                clean(place);
            }
        }
    }
}

/// What any thread may look at need not be lent.
impl<T: Sync> PerThread<T> {
    /// This thread's own; none if it has not claimed one, or got none.
    #[inline(always)]
    pub(crate) fn own(&self) -> Option<&T> {
        self.places.get(mine::get()).map(|place| &**place)
    }

    /// Those of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.places.iter().map(|place| &**place)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Threads come and go, more than there are places: no place is ever two threads' at once.
    #[test]
    fn a_place_is_one_threads_at_a_time() {
        let places = PerThread::<Cell<u64>>::default();
        let sum = PlainU64::new(0);
        for _ in 0..4 {
            let barrier = std::sync::Barrier::new(PLACES + 8);
            std::thread::scope(|s| {
                for _ in 0..PLACES + 8 {
                    s.spawn(|| {
                        barrier.wait();
                        for _ in 0..10_000 {
                            let add = |mine: Option<&Cell<u64>>| {
                                mine.map(|mine| mine.set(mine.get() + 1)).is_some()
                            };
                            let added = places.with(add) || places.claimed(add);
                            sum.fetch_add(added.into(), Ordering::Relaxed);
                        }
                        barrier.wait();
                    });
                }
            });
        }
        let sum = sum.into_inner();
        assert!(sum > 0 && sum <= 4 * 10_000 * (PLACES as u64 + 8));
        assert_eq!(sum, places.places.into_iter().map(|place| place.get()).sum::<u64>());
    }

    /// What a thread left is there for a thread that cleans up, and what a living one has is not.
    #[test]
    fn the_places_of_ended_threads_are_vacant() {
        let places = PerThread::<Cell<u64>>::default();
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|s| {
            s.spawn(|| {
                places.claimed(|mine| mine.map(|mine| mine.set(8)));
                barrier.wait();
                barrier.wait();
                places.with(|mine| assert!(mine.is_none_or(|mine| mine.get() == 8)));
            });
            barrier.wait();
            // Now, so that the other one can't have got its number.
            let ended = s.spawn(|| places.claimed(|mine| mine.map(|mine| mine.set(7))).is_some());
            let had_one = ended.join().unwrap();
            // A thread of another test may have the number meanwhile.
            let cleaned = PlainU64::new(0);
            while had_one && cleaned.load(Ordering::Relaxed) != 7 {
                places.vacant(|place| {
                    cleaned.fetch_max(place.take(), Ordering::Relaxed);
                });
                std::thread::yield_now();
            }
            barrier.wait();
        });
    }

    /// A thread that came when all places were taken has one once others have ended.
    #[test]
    fn who_got_none_asks_again() {
        // Threads of other tests come and go: one of them may end too early, and leave its number.
        assert!((0..100).any(|_| a_late_thread_had_none()));
    }

    fn a_late_thread_had_none() -> bool {
        let places = PerThread::<Cell<u64>>::default();
        let [full, over] = [(); 2].map(|()| std::sync::Barrier::new(PLACES + 1));
        std::thread::scope(|s| {
            for _ in 0..PLACES {
                s.spawn(|| {
                    places.claimed(|_| ());
                    full.wait();
                    over.wait();
                });
            }
            full.wait();
            let late = s.spawn(|| {
                let had_none = places.claimed(|mine| mine.is_none());
                over.wait();
                while places.claimed(|mine| mine.is_none()) {
                    std::thread::yield_now();
                }
                had_none
            });
            late.join().unwrap()
        })
    }
}
