//! Rate limits for chat bots, agent hubs and gateways: one lock-free engine, fixed memory.
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
//!
//! # Concepts
//!
//! | word | type | meaning |
//! |---|---|---|
//! | limit | [`Limit`] | how much one key may spend over time, by one algorithm |
//! | rule | [`Rule`], [`RuleConfig`] | limits that are taken all or nothing, and their options |
//! | policy | [`Policy`] | named rules, where their state lives, how many keys it holds |
//! | limiter | [`Limiter`], [`LimiterBuilder`] | a policy at work |
//! | key | [`Key`] | who is limited: text, bytes, a number, an address, or several parts |
//! | call | [`Call`] | a key, with attributes and a `max` of its own |
//! | decision | [`Decision`] | the answer to a hit |
//!
//! A limiter with one rule has the rule's operations itself. State lives in tables of a fixed
//! capacity, without locks. No thread runs in the background.
//!
//! # Limits as text
//!
//! ```text
//! limits    = limit *("," limit)
//! limit     = MAX "/" period ["burst" N] [algorithm]
//!           | N "concurrent" ["lease" period]
//! period    = [N] unit                   ; 10s, 5 min, h
//! unit      = ms | s | min | h | d       ; and their long forms: sec, minutes, hour, days
//! algorithm = bucket | window | counter | fixed
//! ```
//!
//! | algorithm | what it does |
//! |---|---|
//! | `bucket` (default) | a token bucket of size `burst`, refilled evenly |
//! | `window` | an exact sliding window, for a `max` of up to 4,096 |
//! | `counter` | a two-cell sliding counter, approximate, for a large `max` |
//! | `fixed` | a count that is forgotten one period after its first hit |
//! | `concurrent` | permits that are out at once |
//!
//! # Examples
//!
//! A token bucket:
//!
//! ```
//! let limiter = tidegate::Limiter::new("10/h burst 3")?;
//! assert!((0..3).all(|_| limiter.allow("alice").unwrap()));
//! assert!(!limiter.allow("alice")?);
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! An exact window:
//!
//! ```
//! let limiter = tidegate::Limiter::new("2/h window")?;
//! assert_eq!(limiter.hit("alice", 2)?.remaining, Some(0));
//! assert!(limiter.hit("alice", 1)?.retry_after.is_some());
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! Several limits, taken all or nothing. The decision names the limit that denied:
//!
//! ```
//! let limiter = tidegate::Limiter::new(["1/min window", "20/h", "100/d fixed"])?;
//! assert!(limiter.allow("alice")?);
//! assert_eq!(limiter.hit("alice", 1)?.reason(), Some("1/min"));
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! A rule whose key has parts, and a limit that all keys share:
//!
//! ```
//! use std::time::Duration;
//! use tidegate::{Limit, Limiter, Policy, RuleConfig};
//!
//! let mut sends = RuleConfig::new([
//!     Limit::bucket(250, Duration::from_secs(86_400)).named("phone").scope(["phone"]),
//!     Limit::bucket(80, Duration::from_secs(1)).named("all").scope([""; 0]),
//! ])?;
//! sends.key = vec!["phone".into(), "template".into()];
//! let limiter = Limiter::from_policy(Policy::new([("sends", sends)]))?;
//! assert!(limiter.rule("sends")?.allow(["+4930123", "welcome"])?);
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! A cooldown after a denial:
//!
//! ```
//! use std::time::Duration;
//! use tidegate::{Limit, Limiter};
//!
//! let burst = Limit::window(1, Duration::from_secs(10)).cooldown(Duration::from_secs(60));
//! let limiter = Limiter::new(burst)?;
//! assert!(limiter.allow("alice")? && !limiter.allow("alice")?);
//! assert_eq!(limiter.hit("alice", 1)?.reason(), Some("cooldown"));
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! A file store, which all processes of a host share. It needs Linux:
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! use tidegate::Limiter;
//!
//! # let folder = std::env::temp_dir().join(format!("tidegate-front-{}", std::process::id()));
//! let store = format!("file:{}", folder.display());
//! let open = || Limiter::builder().limits("1/h").store(&*store).build();
//! let (bot, gateway) = (open()?, open()?);
//! assert!(bot.allow("alice")? && !gateway.allow("alice")?);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # }
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! Waiting until a hit is allowed, here on the calling thread. [`Limiter::acquire_with`] is the
//! same for async code:
//!
//! ```
//! let limiter = tidegate::Limiter::new("1000/s burst 1")?;
//! assert!(limiter.wait("alice", 1, None)?.allowed && limiter.wait("alice", 1, None)?.allowed);
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! A manual clock, for tests that never sleep:
//!
//! ```
//! use std::time::Duration;
//! use tidegate::{Limiter, ManualClock};
//!
//! let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
//! let limiter = Limiter::builder().limits("1/min").clock(&clock).build()?;
//! assert!(limiter.allow("alice")?);
//! let wait = limiter.hit("alice", 1)?.retry_after.unwrap();
//! clock.advance(wait);
//! assert!(limiter.allow("alice")?);
//! # Ok::<(), tidegate::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `yaml` (default) | policy files in YAML; without it they are JSON |
//! | `tokio` | `acquire`, which sleeps by tokio's timer |
//! | `tower` | the module `tower`: a layer for axum, hyper and other tower services |
//! | `schema` | the function `schema`: the JSON Schema of policy files |

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, unused_variables, reason = "file stores alone use it")
)]

#[doc(hidden)]
pub mod bindings;
mod compiled;
mod config;
mod decision;
mod error;
#[doc(hidden)]
pub mod http;
mod ip;
mod judge;
mod key;
mod limiter;
mod metrics;
mod notes;
mod room;
mod rule;
mod snapshot;
mod store;
mod time;
#[cfg(feature = "tower")]
pub mod tower;
mod wait;

pub use config::limit::{Counts, IntoLimits, Limit, LimitPatch, LimitPatches};
pub use config::policy::{
    AlertAt, Backoff, BudgetConfig, Classify, DEFAULT_CAPACITY, DEFAULT_MEMORY, HeaderNames,
    LEAST_CAPACITY, Match, Mode, Notify, Policy, RuleConfig, When,
};
#[cfg(feature = "schema")]
pub use config::schema::schema;
pub use decision::Decision;
pub use decision::headers::{IETF_DRAFT, LimitLeft, Style};
pub use error::{Code, Error, Problem};
pub use ip::{V6_PREFIX, ip_key};
pub use judge::budget::Budget;
pub use key::name::NamedCount;
pub use key::{Call, Key, MOST_PARTS, Part};
pub use limiter::audit::{Finding, Severity};
pub use limiter::builder::LimiterBuilder;
pub use limiter::{Limiter, ManualClock};
pub use metrics::Metrics;
pub use metrics::event::{Event, Events};
pub use rule::changes::{BlockedKey, ChangeOptions, Changing};
pub use rule::held::{Permit, Reservation};
pub use rule::stats::{LimitUse, Stats};
pub use rule::why::{Outcome, Step, StepValue, Why};
pub use rule::{Recorded, Rule};
pub use store::described::{Inspected, InspectedLimit};
pub use store::runtime::Target;
pub use store::trail::{Change, Changes};
pub use tidegate_core::{Algorithm, Clock, OnFull};
