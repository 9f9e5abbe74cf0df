//! A value that is set once, by the first thread that comes, without a lock.
//!
//! `OnceLock` makes others wait while one thread sets it, and in a forked child that thread may not
//! be there. Here each thread makes a value of its own, and the first pointer that is stored stays.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::sync::{AtomicPtr, Ordering};

/// A value that is set at most once and read without waiting.
///
/// ```
/// let once = tidegate_core::Once::new();
/// assert_eq!(once.get(), None);
/// assert_eq!((once.set(1), once.set(2)), (&1, &1));
/// ```
pub struct Once<T> {
    /// Null, or a box that stays until this is dropped. Written by the first [`Once::set`] alone.
    value: AtomicPtr<T>,
    owns: PhantomData<T>,
}

// SAFETY: a value is made by one thread, read by many and dropped by any: that needs both.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for Once<T> {}

impl<T> Once<T> {
    /// Nothing yet.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Once<T> {
        Once { value: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Nothing yet. An atomic of a model is not made by constants.
    #[cfg(all(test, loom))]
    pub fn new() -> Once<T> {
        Once { value: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// The value, if it was set.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // ORDERING: Acquire, with the Release in `set`: a thread that sees the pointer sees the
        // value.
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: null, or from `Box::into_raw` in `set`, and freed by `&mut self` alone.
        unsafe { value.as_ref() }
    }

    /// Sets the value, unless another was first. The one that stays.
    pub fn set(&self, value: T) -> &T {
        let mine = Box::into_raw(Box::new(value));
        let null = ptr::null_mut();
        // ORDERING: Release, see `get`; Acquire for the thread that comes second and reads the
        // first one's value.
        let set = self.value.compare_exchange(null, mine, Ordering::Release, Ordering::Acquire);
        let stays = match set {
            Ok(_) => mine,
            Err(theirs) => {
                // SAFETY: from `Box::into_raw` above, and no other thread was shown it.
                drop(unsafe { Box::from_raw(mine) });
                theirs
            }
        };
        // SAFETY: as in `get`; not null.
        unsafe { &*stays }
    }

    /// The value, which `make` gives if there is none. Two threads may both make one.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.set(make()),
        }
    }

    /// Takes the value out.
    pub fn take(&mut self) -> Option<T> {
        // ORDERING: Relaxed; no other thread has it.
        let value = self.value.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: from `Box::into_raw` in `set`; no reference outlives the exclusive one that is
        // here.
        (!value.is_null()).then(|| *unsafe { Box::from_raw(value) })
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}
