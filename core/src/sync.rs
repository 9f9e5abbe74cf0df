//! The only file that names loom, `std::sync::atomic` or `portable_atomic` types.
//!
//! Everything that threads share goes through these names, so that a model runs the engine's own
//! code and not a copy of it.
//!
//! A target without 64-bit atomics has those of `portable_atomic`, which take a lock inside the
//! process. Other processes don't see that lock, so no file is mapped there. The cfg
//! `tidegate_portable_atomic` takes the same path on every target, for tests (`make portable`).

pub(crate) use std::sync::atomic::Ordering;

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, fence};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::{AtomicPtr, fence};

#[cfg(not(all(test, loom)))]
pub(crate) use PlainU64 as AtomicU64;

/// Counters and clocks carry no protocol, so models leave them out of the state space.
#[cfg(any(not(target_has_atomic = "64"), tidegate_portable_atomic))]
pub use portable_atomic::AtomicU64 as PlainU64;
#[cfg(all(target_has_atomic = "64", not(tidegate_portable_atomic)))]
pub use std::sync::atomic::AtomicU64 as PlainU64;

/// Whether words are atomic between processes too.
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) const ATOMIC_BETWEEN_PROCESSES: bool =
    cfg!(all(target_has_atomic = "64", not(tidegate_portable_atomic)));
