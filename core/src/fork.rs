//! A lock for what is off the hit path, which a forked child never finds taken for ever.
//!
//! A fork copies all memory, and of the threads only the one that called it. A lock that another
//! thread held is taken in the child, and no thread is there to give it back. So the word of this
//! lock names the process whose thread took it, by *generation*: a number that `pthread_atfork`
//! raises in every child.
//!
//! ```text
//! word:  generation 63 │ held 1
//!
//!   free ──────▶ held         by a thread of the present generation
//!   held (old generation) ──▶ held (present): the holder is not here. What it changed may be torn,
//!                             so it is forgotten without being looked at, and made anew
//! ```
//!
//! Not covered: a child made by a bare `clone` system call, since no handler runs there.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU64, Ordering, PlainU64};

const HELD: u64 = 1;

/// How often this process's memory was copied by a fork on the way from the first process.
static GENERATION: PlainU64 = PlainU64::new(0);

/// The number of forks between this process and the one in which it was first asked: a child has
/// another than its parent.
///
/// ```
/// assert_eq!(tidegate_core::fork_generation(), tidegate_core::fork_generation());
/// ```
#[inline]
pub fn fork_generation() -> u64 {
    #[cfg(all(unix, not(miri)))]
    handler::install();
    // ORDERING: Relaxed; it is written while a process has one thread.
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(all(unix, not(miri)))]
mod handler {
    use std::ffi::c_int;

    use super::{GENERATION, Ordering, PlainU64};

    type Handler = Option<unsafe extern "C" fn()>;

    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    static INSTALLED: PlainU64 = PlainU64::new(0);

    unsafe extern "C" fn in_child() {
        // ORDERING: Relaxed; the child has no other thread yet.
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    /// Before the first lock is taken, so that no child misses that it is one.
    #[inline]
    pub(super) fn install() {
        // ORDERING: Relaxed; a thread that sees it set comes after a call that has returned.
        if INSTALLED.load(Ordering::Relaxed) == 0 {
            install_now();
        }
    }

    #[cold]
    fn install_now() {
        // SAFETY: the handler touches one atomic, which a child of many threads may. Two threads
        // may install it twice: the number is then raised by two. Without memory for it there is
        // none, and a child of this process is on its own.
        unsafe { pthread_atfork(None, None, Some(in_child)) };
        // ORDERING: Relaxed, see `install`. After the call: a child made in between has no lock to
        // mind.
        INSTALLED.store(1, Ordering::Relaxed);
    }
}

/// A mutual exclusion lock. Where its holder is a thread of the process that this one was forked
/// from, it is free, and what it guards starts anew.
///
/// Threads that wait for it sleep in short naps, so it is for what is held shortly or locked
/// seldom.
///
/// ```
/// let lock = tidegate_core::ForkLock::new(1);
/// *lock.lock() += 1;
/// let held = lock.lock();
/// assert!(*held == 2 && lock.try_lock().is_none());
/// ```
pub struct ForkLock<T> {
    word: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is lent to the one thread that moved the word to held, until it moves it back.
unsafe impl<T: Send> Sync for ForkLock<T> {}

/// A panic of a holder leaves the value as it was then; what these locks guard is whole between any
/// two steps.
impl<T> std::panic::RefUnwindSafe for ForkLock<T> {}
impl<T> std::panic::UnwindSafe for ForkLock<T> {}

/// A lock that is held; given back when dropped.
pub struct ForkGuard<'a, T> {
    lock: &'a ForkLock<T>,
    free: u64,
    /// It lends the value out as a `&mut` does, and is shared between threads only where that is.
    lent: PhantomData<&'a mut T>,
}

impl<T> ForkLock<T> {
    /// A free lock.
    #[cfg(not(all(test, loom)))]
    pub const fn new(value: T) -> ForkLock<T> {
        ForkLock { word: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// A free lock, of a model.
    #[cfg(all(test, loom))]
    pub fn new(value: T) -> ForkLock<T> {
        ForkLock { word: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// One that a thread of the process before held when it was forked.
    #[cfg(test)]
    pub(crate) fn inherited(value: T) -> ForkLock<T> {
        let before = fork_generation().wrapping_sub(1) << 1;
        ForkLock { word: AtomicU64::new(before | HELD), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> ForkLock<T> {
    /// Takes the lock unless another thread of this process holds it. Never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<ForkGuard<'_, T>> {
        let free = fork_generation() << 1;
        // ORDERING: Relaxed; the swap below decides.
        let seen = self.word.load(Ordering::Relaxed);
        if seen == free | HELD {
            return None;
        }
        // Before it is taken: should this panic, nothing has happened.
        let fresh = (seen & HELD != 0).then(T::default);
        // ORDERING: Acquire, with the Release of the holder before: what it changed is seen. A
        // holder of the process before gave nothing back, and what it changed is not looked at.
        let taken =
            self.word.compare_exchange(seen, free | HELD, Ordering::Acquire, Ordering::Relaxed);
        let guard = taken.ok().map(|_| ForkGuard { lock: self, free, lent: PhantomData })?;
        if let Some(fresh) = fresh {
            // SAFETY: the guard is this thread's alone. What was there may be torn, and is neither
            // read nor dropped.
            unsafe { self.value.get().write(fresh) };
        }
        Some(guard)
    }

    /// Takes the lock, and waits as long as another thread of this process holds it.
    pub fn lock(&self) -> ForkGuard<'_, T> {
        let mut turn = 0;
        loop {
            match self.try_lock() {
                Some(guard) => return guard,
                None => nap(turn),
            }
            turn += 1;
        }
    }
}

/// A holder is seldom longer than the first steps; one that waits for a disk is waited for by the
/// last.
#[cfg(not(all(test, loom)))]
fn nap(turn: u32) {
    match turn {
        0..16 => std::hint::spin_loop(),
        16..32 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(u64::from(turn.min(1000)))),
    }
}

#[cfg(all(test, loom))]
fn nap(_turn: u32) {
    loom::thread::yield_now();
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the word says that this thread alone has it, until `drop`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for ForkGuard<'_, T> {
    fn drop(&mut self) {
        // ORDERING: Release, see `try_lock`.
        self.lock.word.store(self.free, Ordering::Release);
    }
}

impl<T: Default> Default for ForkLock<T> {
    fn default() -> ForkLock<T> {
        ForkLock::new(T::default())
    }
}

/// Says nothing of the value: another thread may be changing it.
impl<T> fmt::Debug for ForkLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkLock").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_holds_it_at_a_time() {
        let lock = ForkLock::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }

    #[test]
    fn what_another_process_held_is_free_and_made_anew() {
        let lock = ForkLock::inherited(7);
        assert_eq!(*lock.try_lock().unwrap(), 0);
        *lock.lock() = 8;
        assert_eq!(*lock.lock(), 8);
    }
}
