//! How limits count: one file for each algorithm.
//!
//! An algorithm's file has a constant of [`AlgorithmFacts`] and a type that is an
//! [`AlgorithmCell`]. A new algorithm is such a file, a variant of [`Algorithm`] and a variant of
//! [`Cell`]. The rest of the engine asks the methods of these types and names no algorithm.

pub(crate) mod bucket;
mod cell;
pub(crate) mod counter;
pub(crate) mod fixed;
pub(crate) mod limit;
pub(crate) mod permit;
pub(crate) mod stamp;
pub(crate) mod window;

use crate::status::LimitStatus;

pub(crate) use cell::{AlgorithmCell, Cell, Placed, ReservedCharge, Taken, Written, cells};
use limit::{Invalid, Limit};

/// The largest `max` and `burst`.
pub const MOST: u64 = 1_000_000_000;

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A token bucket, refilled evenly.
    Bucket,
    /// An exact sliding window.
    Window,
    /// A sliding window estimated from two cells, for a `max` too large to log.
    Counter,
    /// A count that starts at the first hit and is forgotten `per` later.
    Fixed,
    /// Permits that are out at once; `per` is the lease.
    Concurrent,
}

/// What the rest of the engine, and the policy crate, must know of an algorithm.
pub(crate) struct AlgorithmFacts {
    /// Its number in the digest of a set of limits. Files keep it, so it never changes.
    pub(crate) code: u64,
    /// Whether `burst` may differ from `max`.
    pub(crate) has_burst: bool,
    /// Whether `per` is a lease. A hit then holds one permit, whatever its cost.
    pub(crate) has_lease: bool,
    /// Whether each hit is an entry in a log.
    pub(crate) is_log: bool,
    /// What to do for a `max` above [`MOST_EXACT`](limit::MOST_EXACT), where each unit of `max`
    /// takes a word of the row.
    pub(crate) instead_of_words: Option<&'static str>,
    /// Cells of a smaller number are taken first: what they took is easier to give back.
    pub(crate) order: u8,
    /// Makes the cell.
    pub(crate) cell: MakeCell,
    /// Nanoseconds after which the limit has forgotten a charge.
    pub(crate) horizon: fn(&Limit) -> u64,
    /// The most that is granted within so many nanoseconds; `None` if there is no bound.
    pub(crate) most_within: fn(&Limit, u128) -> Option<u128>,
    /// What a hit will bring: `more` and `reset` of the status after it.
    pub(crate) foreseen: fn(&Limit, &Foreseen) -> (u64, u64),
}

/// Makes the cell of one limit, or the one cell that all limits of the algorithm in a row share.
#[derive(Clone, Copy)]
pub(crate) enum MakeCell {
    Own(fn(&Limit) -> Result<Cell, Invalid>),
    Shared(fn(&[Limit]) -> Cell),
}

/// A hit that a limit allows and that has not come yet.
pub(crate) struct Foreseen {
    /// What the limit says before the hit.
    pub(crate) before: LimitStatus,
    pub(crate) cost: u64,
    /// Units that are gone after the hit.
    pub(crate) used: u64,
    pub(crate) now: u64,
}

impl Foreseen {
    /// When there will be more: `first` if this is the first hit, else as before it.
    pub(crate) fn more_or(&self, first: u64) -> u64 {
        if self.before.used == 0 { first } else { self.before.more }
    }
}

impl Algorithm {
    fn facts(self) -> &'static AlgorithmFacts {
        match self {
            Algorithm::Bucket => &bucket::FACTS,
            Algorithm::Window => &window::FACTS,
            Algorithm::Counter => &counter::FACTS,
            Algorithm::Fixed => &fixed::FACTS,
            Algorithm::Concurrent => &permit::FACTS,
        }
    }

    /// Whether the period is a lease: a hit holds one permit, whatever its cost.
    pub fn has_lease(self) -> bool {
        self.facts().has_lease
    }

    /// Whether each hit is an entry in a log, so that the age of the newest one is known.
    pub fn is_log(self) -> bool {
        self.facts().is_log
    }

    /// Whether each unit of `max` takes a word of the row, so that `max` has a ceiling.
    pub fn has_ceiling(self) -> bool {
        self.facts().instead_of_words.is_some()
    }

    /// The field that states the period: `per` or `lease`.
    pub fn period_field(self) -> &'static str {
        if self.has_lease() { "lease" } else { "per" }
    }

    /// Its number in the digest of a set of limits.
    pub(crate) fn code(self) -> u64 {
        self.facts().code
    }
}
