//! Locks off the hit path.

use std::sync::{Mutex, MutexGuard};

/// Locks, also after a panic of another holder: what these locks guard is whole between any two steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
