//! The engine of Tidegate: a fixed-capacity table of atomic words that says which key may spend
//! what.
//!
//! Most users want the crate `tidegate`, which adds rules, policies and decisions.
//!
//! | part | what it is |
//! |---|---|
//! | [`Limit`], [`Limits`] | limits as stated, and checked together |
//! | [`Engine`] | a table of keys, judged by one set of limits |
//! | [`HitOutcome`], [`LimitStatus`] | the answer to a hit, and what each limit says of the key |
//! | [`Clock`] | system time, or a time that moves by hand |
//! | [`Ledger`] | notes on keys |
//!
//! One key's token bucket is one `u64`, changed by compare-and-swap. An exact window is a ring of
//! stamps. All limits of a key share a row and are taken all or nothing. There are no locks, no
//! background thread, and no memory that grows with the keys seen.
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
//! assert_eq!(sixth.statuses[0].wait, 10_000_000_000); // the first limit refuses, for ten seconds
//! hand.advance(Duration::from_secs(10));
//! assert!(engine.allow(b"alice"));
//! ```

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, unused_variables, reason = "tables in files alone use it")
)]

mod algorithm;
mod clock;
mod counters;
mod engine;
mod eviction;
mod fork;
mod ledger;
mod limits;
mod memory;
mod once;
mod status;
#[cfg(any(target_os = "linux", all(test, loom)))]
mod storage;
mod sync;
mod table;
mod thread_slots;
mod units;

#[cfg(test)]
mod tests;

pub use algorithm::limit::{LONGEST, Limit, MOST_EXACT, SHORTEST};
pub use algorithm::permit::Permit;
pub use algorithm::{Algorithm, MOST};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use clock::shared::SharedClock;
pub use clock::{Clock, ManualClock, Time};
pub use counters::{Count, Counters};
pub use engine::{
    Answer, Engine, HitOutcome, MultiOutcome, OnFull, Options, RowRef, hit_together, peek_together,
    reserve_together,
};
pub use fork::{ForkGuard, ForkLock, fork_generation};
pub use ledger::{IdleNotes, Ledger};
pub use limits::receipt::Receipt;
pub use limits::{Error, Limits};
pub use once::Once;
pub use status::{LimitStatus, LimitStatuses, MOST_LIMITS, NEVER};
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub use storage::{
    directory::{Access, Directory},
    error::FileError,
    format1::{Format1, Format1Tables},
    header::FILE_FORMAT,
    host::Host,
    layout::FileLayout,
    moving::{FileTables, Moving, NoPlace},
    offenders::{NAME_WORDS, NameWords, TopOffenders},
    table_file::{SharedWord, TableFile},
    tables::TableSections,
};
#[doc(hidden)]
pub use sync::PlainU64 as AtomicU64;
pub use table::hash::{FILE_HASH, random_seed};
pub use table::{Hash, OutOfMemory};
pub use thread_slots::PerThread;
