//! Proof by real processes that a table file holds what is promised of it.
//!
//! The programs in `tests/tests` spawn the binary `worker`, which has one thread. It does here what
//! may kill it. So it may fork, be stepped, run out of descriptors, and be killed.
#![cfg(target_os = "linux")]

pub mod cold;
pub mod corrupt;
pub mod endure;
pub mod forks;
#[cfg(doctest)]
mod guide;
pub mod hammer;
pub mod harm;
pub mod move_steps;
pub mod opening;
pub mod owners;
pub mod place;
pub mod power;
pub mod random;
pub mod share;
pub mod shared_words;
pub mod steps;
pub mod system;
pub mod versions;

/// The number that an environment variable gives, or another.
pub fn number_or(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
