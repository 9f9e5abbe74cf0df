//! The engine of Tidegate: a fixed-capacity table of atomic words that says who may spend what.
//!
//! One key's token bucket is one `u64`, changed by compare-and-swap; exact windows are a ring of
//! stamps; all limits of a key share a row and are taken all or nothing. No locks, no background
//! thread, no memory that grows with the keys seen. ARCHITECTURE.md explains the words, the ring
//! and the row protocol, and why they are safe.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::{Answer, Clock, Engine, Limit, Limits, Options};
//!
//! let limits = Limits::new(&[
//!     Limit::window(5, Duration::from_secs(10)),
//!     Limit::window(20, Duration::from_secs(60)),
//! ]).unwrap();
//! let (clock, hand) = Clock::manual(0);
//! let engine = Engine::new(limits, Options { clock, ..Options::default() }).unwrap();
//!
//! assert!((0..5).all(|_| engine.allow(b"alice")));
//! let sixth = engine.hit(b"alice", 1);
//! assert_eq!(sixth.answer, Answer::Denied);
//! assert_eq!(sixth.views[0].wait, 10_000_000_000); // the first limit refuses, for ten seconds
//! hand.advance(Duration::from_secs(10));
//! assert!(engine.allow(b"alice"));
//! ```

#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod board;
mod bucket;
mod clock;
mod counter;
mod counters;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod directory;
mod engine;
mod eviction;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod file;
mod fixed;
mod fork;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod format1;
mod hash;
mod hit;
mod ledger;
mod limit;
mod memory;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod moving;
mod once;
mod penalty;
mod permit;
mod rate;
mod receipt;
#[cfg(any(target_os = "linux", all(test, loom)))]
mod retired;
mod row;
mod stamp;
mod sync;
mod table;
mod threads;
mod window;
mod word;

#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use board::{Board, NAME_WORDS, Name};
pub use clock::{Clock, ManualClock, Time};
pub use counters::{Count, Counters};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use directory::{Access, Directory};
pub use engine::{
    Answer, Engine, OnFull, Options, OutOfMemory, Outcome, Part, Together, hit_together,
    peek_together, reserve_together,
};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use file::{FILE_FORMAT, FileError, Host, SharedClock, SharedWord, TableFile, Tables};
pub use fork::{ForkGuard, ForkLock, fork_generation};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use format1::{Format1, Format1Tables};
pub use hash::{FILE_HASH, random_seed};
pub use hit::{View, Views};
pub use ledger::{IdleNotes, Ledger};
pub use limit::{
    Algorithm, Error, LONGEST, Limit, Limits, MOST, MOST_EXACT, MOST_LIMITS, SHORTEST,
};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use moving::{FileLayout, FileTables, Moving, NoPlace};
pub use once::Once;
pub use penalty::{Alert, Penalty, Spent, Until};
pub use permit::Permit;
pub use receipt::Receipt;
pub use table::Hash;
pub use threads::PerThread;

/// A wait that never ends: the cost can't pass however long one waits.
pub const NEVER: u64 = u64::MAX;
