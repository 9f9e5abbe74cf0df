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

mod compiled;
mod config;
mod decision;
mod error;
/// For surfaces of this crate; not a part of what it promises.
#[doc(hidden)]
pub mod http;
mod ip;
mod judge;
mod key;
mod limiter;
mod metrics;
mod notes;
mod rule;
mod snapshot;
mod store;
mod time;
#[cfg(feature = "tower")]
pub mod tower;
mod wait;

pub use config::limit::{Counts, IntoLimits, Limit, LimitPatch, LimitPatches, parse_period};
pub use config::options::Options;
pub use config::policy::{
    AlertAt, Backoff, BudgetConfig, Classify, DEFAULT_CAPACITY, DEFAULT_MEMORY, HeaderNames,
    LEAST_CAPACITY, Match, Mode, Notify, Policy, RuleConfig, When,
};
pub use config::read::{limit_patches, limit_patches_in, parse_bytes};
#[cfg(feature = "schema")]
pub use config::schema::schema;
pub use decision::Decision;
pub use decision::headers::{Facts, IETF_DRAFT, LimitLeft, Style};
pub use decision::view::{DecisionSink, DecisionView, Names};
pub use error::{Code, Error, Problem};
pub use ip::{V6_PREFIX, ip_key};
pub use judge::budget::Budget;
pub use key::name::NamedCount;
pub use key::{Call, Key, MOST_PARTS, Part, RESERVED, not_an_attribute};
pub use limiter::audit::{Finding, Severity};
pub use limiter::{Limiter, ManualClock};
pub use metrics::Metrics;
pub use metrics::event::{Event, Events};
pub use rule::changes::{BlockedKey, ChangeOptions, Changing};
pub use rule::held::{Permit, Reservation};
pub use rule::stats::{LimitUse, Stats};
pub use rule::why::{Outcome, Step, StepValue, Why};
pub use rule::{Recorded, Rule};
#[cfg(target_os = "linux")]
pub use store::inspect::Inspected;
pub use store::runtime::Target;
pub use store::trail::{Change, Changes};
pub use tidegate_core::{Algorithm, Clock, OnFull};
/// For surfaces: what a forked child may find taken must be these.
#[doc(hidden)]
pub use tidegate_core::{ForkLock, Once};

/// The README's example, as pasted.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
