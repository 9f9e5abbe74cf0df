//! The loom seam: the only file that names loom or `std::sync::atomic` types.
//!
//! Everything that threads share goes through these names, so that a model runs the engine's own
//! code and not a copy of it.

pub(crate) use std::sync::atomic::Ordering;

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, fence};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, fence};

/// Counters and clocks carry no protocol, so models leave them out of the state space.
pub(crate) use std::sync::atomic::AtomicU64 as PlainU64;
