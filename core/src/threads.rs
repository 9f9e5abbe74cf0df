//! A place for each thread, which no other thread writes to.
//!
//! A thread claims one of a few numbers when it first needs a place, and gives it back when it ends;
//! places of that number are its own until then. More threads than numbers go without.

use std::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{Ordering, PlainU64};

const PLACES: usize = 64;
/// The number of a thread that has none of its own, or not asked yet.
const NONE: usize = PLACES;

/// A bit for each number that belongs to a living thread.
static OWNED: PlainU64 = PlainU64::new(0);

thread_local! {
    static LEASE: Lease = Lease::claim();
}

/// The number of this thread, or [`NONE`].
///
/// A shared library finds a thread's own variable by a call, which takes as long as all else that
/// is done with it here. One in the block that is made with each thread needs no call; there is room
/// for a few such words of libraries that are opened late, of which this is one.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri)))]
mod place {
    use std::arch::{asm, global_asm};

    use super::NONE;

    // All threads start with 0: it stands for `NONE`, and what is kept is that much more.
    global_asm!(
        ".pushsection .tbss, \"awT\", @nobits",
        ".balign 8",
        ".globl tidegate_core_place",
        ".hidden tidegate_core_place",
        ".type tidegate_core_place, @object",
        ".size tidegate_core_place, 8",
        "tidegate_core_place:",
        ".zero 8",
        ".popsection",
    );

    #[inline(always)]
    pub(super) fn get() -> usize {
        let kept: usize;
        // SAFETY: reads this thread's own word, which is above.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + tidegate_core_place@gottpoff]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) kept,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        NONE.wrapping_add(kept)
    }

    pub(super) fn set(place: usize) {
        // SAFETY: writes this thread's own word, which is above.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + tidegate_core_place@gottpoff]",
                "mov qword ptr fs:[{0}], {1}",
                out(reg) _,
                in(reg) place.wrapping_sub(NONE),
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri))))]
mod place {
    use std::cell::Cell;

    use super::NONE;

    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(NONE) };
    }

    #[inline(always)]
    pub(super) fn get() -> usize {
        PLACE.get()
    }

    pub(super) fn set(place: usize) {
        PLACE.set(place);
    }
}

/// A thread's number, given back when the thread ends.
struct Lease(usize);

impl Lease {
    fn claim() -> Lease {
        // ORDERING: Acquire, with the Release in `drop`: what the last owner left is seen.
        let claimed = OWNED.fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            let free = (!owned).trailing_zeros();
            (free < PLACES as u32).then(|| owned | 1 << free)
        });
        Lease(claimed.map_or(NONE, |before| (!before).trailing_zeros() as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        place::set(NONE);
        if self.0 != NONE {
            // ORDERING: Release, see `claim`.
            OWNED.fetch_and(!(1 << self.0), Ordering::Release);
        }
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
    places: Box<[CachePadded<T>]>,
}

// SAFETY: a place is lent only to the thread that owns its number, for the time of a call that
// can't keep it; numbers change hands by Release and Acquire (see `Lease`), so that a `T` is never used
// by two threads at once, but moves from one to the next, which `Send` allows. `all`, which lends
// every place to anybody, wants `Sync`.
unsafe impl<T: Send> Sync for PerThread<T> {}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        PerThread { places: (0..PLACES).map(|_| CachePadded::default()).collect() }
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
        ask(self.places.get(place::get()).map(|place| &**place))
    }

    /// As [`PerThread::with`], claiming a place first: there is none for one of too many threads, and
    /// for one that is ending.
    pub fn claimed<R>(&self, ask: impl FnOnce(Option<&T>) -> R) -> R {
        // All threads of a model are one to the system, and would share a place.
        if cfg!(not(all(test, loom))) {
            place::set(LEASE.try_with(|lease| lease.0).unwrap_or(NONE));
        }
        self.with(ask)
    }
}

/// What any thread may look at need not be lent.
impl<T: Sync> PerThread<T> {
    /// This thread's own; none if it has not claimed one, or got none.
    #[inline(always)]
    pub(crate) fn own(&self) -> Option<&T> {
        self.places.get(place::get()).map(|place| &**place)
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
        let without = std::sync::atomic::AtomicUsize::new(0);
        for _ in 0..4 {
            let barrier = std::sync::Barrier::new(PLACES + 8);
            std::thread::scope(|s| {
                for _ in 0..PLACES + 8 {
                    s.spawn(|| {
                        let has = places.claimed(|mine| mine.is_some());
                        without.fetch_add(usize::from(!has), Ordering::Relaxed);
                        barrier.wait();
                        for _ in 0..10_000 {
                            places.with(|mine| mine.map(|mine| mine.set(mine.get() + 1)));
                        }
                        barrier.wait();
                    });
                }
            });
        }
        let threads = 4 * (PLACES + 8) - without.load(Ordering::Relaxed);
        // Other tests of this process have some of the places.
        assert!((1..=4 * PLACES).contains(&threads));
        let sum: u64 = places.places.into_iter().map(|place| place.get()).sum();
        assert_eq!(sum, 10_000 * threads as u64);
    }
}
