//! The limits of a row, checked together and made ready for the hit path.

pub(crate) mod charge;
pub(crate) mod receipt;

use crate::algorithm::bucket::word::Bucket;
use crate::algorithm::limit::Limit;
use crate::algorithm::{Cell, Placed, cells, stamp};
use crate::status::MOST_LIMITS;

/// Why limits can't be had: which one, which field of it, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The limit's place in the list.
    pub limit: usize,
    /// `max`, `per`, `burst`, `lease`, `ceiling` or `limits`.
    pub field: &'static str,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "limits[{}].{}: {}", self.limit, self.field, self.reason)
    }
}

impl std::error::Error for Error {}

/// The limits of a row, in the order in which they are taken.
///
/// The shape (how many words, and which algorithm has which) is the table's; the numbers may differ
/// from call to call, as long as the shape is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub(crate) placed: Box<[Placed]>,
    /// As given, by index.
    pub(crate) stated: Box<[Limit]>,
    width: usize,
    smallest: u64,
}

impl Limits {
    /// Checks and compiles limits that share a row.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::{Limit, Limits};
    ///
    /// let limits = Limits::new(&[Limit::bucket(20, Duration::from_secs(60))]).unwrap();
    /// assert_eq!(limits.row_words(), 2);
    /// let error = Limits::new(&[Limit::window(5_000, Duration::from_secs(60))]).unwrap_err();
    /// assert_eq!(error.field, "max");
    /// assert!(error.reason.contains("counter"));
    /// ```
    ///
    /// # Errors
    /// Names the limit and field that can't be kept exactly enough.
    pub fn new(limits: &[Limit]) -> Result<Limits, Error> {
        if limits.is_empty() || limits.len() > MOST_LIMITS {
            let reason = format!("a row has 1 to {MOST_LIMITS} limits, not {}", limits.len());
            return Err(Error { limit: 0, field: "limits", reason });
        }
        let invalid = |limit, (field, reason)| Error { limit, field, reason };
        for (index, limit) in limits.iter().enumerate() {
            limit.check().map_err(|why| invalid(index, why))?;
        }
        let placed = cells(limits).map_err(|(index, why)| invalid(index, why))?;
        let width = placed.iter().map(|placed| placed.cell.words()).sum();
        let smallest = limits.iter().map(Limit::most_cost).min().unwrap_or(0);
        Ok(Limits { placed, stated: limits.into(), width, smallest })
    }

    /// Words of a row: the key's and the state's.
    pub fn row_words(&self) -> usize {
        1 + self.width
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.stated.len()
    }

    /// Never: there is at least one limit.
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    /// The limits as they were stated.
    pub fn stated(&self) -> &[Limit] {
        &self.stated
    }

    /// How finely limit `index` keeps time, in nanoseconds. A clock that steps back by less is no
    /// fault.
    pub fn tick_length(&self, index: usize) -> u64 {
        let tick = |p: &Placed| match &p.cell {
            Cell::Bucket(bucket) if p.index == index => Some(bucket.tick_length().0),
            _ => None,
        };
        self.placed.iter().find_map(tick).unwrap_or(stamp::MICRO)
    }

    /// Whether rows made for `other` can be judged by these numbers.
    pub fn same_shape(&self, other: &Limits) -> bool {
        let shape = |limits: &Limits| {
            let of = |p: &Placed| (p.at, p.index, p.cell.words(), std::mem::discriminant(&p.cell));
            limits.placed.iter().map(of).collect::<Vec<_>>()
        };
        self.width == other.width && shape(self) == shape(other)
    }

    /// The most that one hit could ever take: the smallest of the limits' sizes.
    #[inline]
    pub(crate) fn smallest(&self) -> u64 {
        self.smallest
    }

    /// The bucket of a row that has nothing else, if it ever allows anything.
    pub(crate) fn lone_bucket(&self) -> Option<&Bucket> {
        match &*self.placed {
            [Placed { cell: Cell::Bucket(bucket), .. }] if self.smallest > 0 => Some(bucket),
            _ => None,
        }
    }
}
