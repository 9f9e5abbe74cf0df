//! Rate limits for chat bots, agent hubs and gateways.
//!
//! A [`Limiter`] is a policy at work: rules, each a named set of limits that are taken together, all or
//! nothing, and what happens around them. State lives in a fixed-capacity table without locks; see
//! `tidegate-core` for how.
//!
//! ```
//! use tidegate::Limiter;
//!
//! let limiter = Limiter::new("5/10s window, 20/min").unwrap();
//! for _ in 0..5 {
//!     assert!(limiter.allow("alice").unwrap());
//! }
//! let denied = limiter.hit("alice", 1).unwrap();
//! assert!(!denied.allowed);
//! assert_eq!(denied.reason(), Some("5/10s"));
//! ```

mod audit;
mod budget;
mod build;
mod call;
mod changes;
mod config;
mod decision;
mod error;
mod file;
#[cfg(target_os = "linux")]
mod folder;
mod ground;
mod headers;
mod held;
#[cfg(target_os = "linux")]
mod inspect;
mod ip;
mod judge;
mod known;
mod limit;
mod limiter;
mod matching;
mod metrics;
#[cfg(target_os = "linux")]
mod moving;
mod nearest;
mod notes;
mod parse;
mod penalty;
mod plan;
mod rule;
mod runtime;
#[cfg(feature = "schema")]
mod schema;
mod snapshot;
mod stats;
mod tables;
mod told;
#[cfg(feature = "tower")]
pub mod tower;
mod trail;
mod variant;
mod wait;
mod waiters;
mod why;

pub use audit::{Finding, Severity};
pub use budget::Budget;
pub use call::{Call, Key, MOST_PARTS, Part, RESERVED, not_an_attribute};
pub use changes::{BlockedKey, ChangeOptions, Changing};
pub use config::{
    AlertAt, Backoff, BudgetConfig, Classify, DEFAULT_CAPACITY, DEFAULT_MEMORY, HeaderNames,
    LEAST_CAPACITY, Match, Mode, Notify, Policy, RuleConfig, When,
};
pub use decision::Decision;
pub use error::{Code, Error, Problem};
pub use file::{limit_patches, limit_patches_in, parse_bytes};
pub use headers::{Facts, IETF_DRAFT, LimitLeft, Style};
pub use held::{Permit, Reservation};
#[cfg(target_os = "linux")]
pub use inspect::Inspected;
pub use ip::{V6_PREFIX, ip_key};
pub use limit::{Counts, IntoLimits, Limit, LimitPatch, LimitPatches, parse_period};
pub use limiter::{Limiter, ManualClock, Options};
pub use metrics::{Event, Events, Metrics, NamedCount};
pub use rule::{Recorded, Rule};
pub use runtime::Target;
#[cfg(feature = "schema")]
pub use schema::schema;
pub use stats::{LimitUse, Stats};
pub use tidegate_core::{Algorithm, Clock, OnFull};
/// For surfaces: what a forked child may find taken must be these.
#[doc(hidden)]
pub use tidegate_core::{ForkLock, Once};
pub use told::{Names, Tell, Told};
pub use trail::{Change, Changes};
pub use why::{Outcome, Step, StepValue, Why};

/// The README's example, as pasted.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
