//! Limits as users state them, checked and made ready for the hit path.

pub(crate) mod charge;
pub(crate) mod receipt;

use std::time::Duration;

use crate::algorithm::bucket::word::Bucket;
use crate::algorithm::counter::Counter;
use crate::algorithm::fixed::Fixed;
use crate::algorithm::permit::Permits;
use crate::algorithm::{Algorithm, Cell, MOST, Placed, stamp, window};
use crate::status::MOST_LIMITS;

/// The largest `max` of an exact window and of a concurrent limit.
pub const MOST_EXACT: u64 = 4_096;
/// The shortest `per`.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// The longest `per`.
pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

const YEAR_NANOS: u128 = LONGEST.as_nanos();

/// How much one key may spend over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How it counts.
    pub algorithm: Algorithm,
    /// How much in each `per`; 0 means never.
    pub max: u64,
    /// The period, or a concurrent limit's lease.
    pub per: Duration,
    /// A bucket's size, if it is not `max`.
    pub burst: Option<u64>,
    /// The largest `max` that a window's log must have room for, if it is more than `max`.
    pub ceiling: Option<u64>,
}

impl Limit {
    fn new(algorithm: Algorithm, max: u64, per: Duration) -> Limit {
        Limit { algorithm, max, per, burst: None, ceiling: None }
    }

    /// A token bucket that refills `max` tokens each `per` and holds as many.
    pub fn bucket(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Bucket, max, per)
    }
    /// An exact sliding window.
    pub fn window(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Window, max, per)
    }
    /// A two-cell sliding counter.
    pub fn counter(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Counter, max, per)
    }
    /// A count that is forgotten `per` after its first hit.
    pub fn fixed(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Fixed, max, per)
    }
    /// At most `max` permits at once, each for `lease` unless renewed.
    pub fn concurrent(max: u64, lease: Duration) -> Limit {
        Limit::new(Algorithm::Concurrent, max, lease)
    }
    /// The same limit with a bucket of this size.
    pub fn burst(self, burst: u64) -> Limit {
        Limit { burst: Some(burst), ..self }
    }
    /// The same limit with room for a `max` of up to `ceiling`.
    pub fn ceiling(self, ceiling: u64) -> Limit {
        Limit { ceiling: Some(ceiling), ..self }
    }

    /// A bucket's size, else `max`; 0 for a limit that never allows.
    pub fn size(&self) -> u64 {
        match self.algorithm {
            Algorithm::Bucket if self.max > 0 => self.burst.unwrap_or(self.max),
            _ => self.max,
        }
    }

    /// The most that one hit could ever take. A permit holds one slot whatever the cost.
    fn most_cost(&self) -> u64 {
        match self.algorithm {
            Algorithm::Concurrent if self.max > 0 => MOST,
            _ => self.size(),
        }
    }

    fn per_nanos(&self) -> u64 {
        self.per.as_nanos() as u64
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let exact = matches!(self.algorithm, Algorithm::Window | Algorithm::Concurrent);
        let field = if self.algorithm == Algorithm::Concurrent { "lease" } else { "per" };
        if self.max > MOST {
            return Err(("max", format!("{} is above {MOST}, the largest max", self.max)));
        }
        if exact && self.max.max(self.ceiling.unwrap_or(0)) > MOST_EXACT {
            let which = if self.max > MOST_EXACT { "max" } else { "ceiling" };
            let remedy = match self.algorithm {
                Algorithm::Window => "use algorithm counter or bucket for more",
                _ => "spread the permits over several keys for more",
            };
            return Err((which, format!("an exact log keeps at most {MOST_EXACT}; {remedy}")));
        }
        if self.per < SHORTEST || self.per > LONGEST {
            return Err((field, format!("{:?} is not within 1 ms and 366 days", self.per)));
        }
        if !self.per.subsec_nanos().is_multiple_of(1000) {
            return Err((field, format!("{:?} is not a whole number of microseconds", self.per)));
        }
        if self.ceiling.is_some_and(|ceiling| !exact || ceiling < self.max) {
            let reason = "only a window or a concurrent limit has one, and not below its max";
            return Err(("ceiling", reason.to_string()));
        }
        match self.burst {
            Some(_) if self.algorithm != Algorithm::Bucket => {
                Err(("burst", "only a bucket has a burst".to_string()))
            }
            Some(burst) if burst > MOST || (burst == 0 && self.max > 0) => {
                Err(("burst", format!("{burst} is not within 1 and {MOST}")))
            }
            _ => Ok(()),
        }
    }
}

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
        for (limit, stated) in limits.iter().enumerate() {
            stated.check().map_err(|(field, reason)| Error { limit, field, reason })?;
        }
        let mut placed = Vec::new();
        for (index, limit) in limits.iter().enumerate() {
            if let Some(cell) =
                single(limit).map_err(|(field, reason)| Error { limit: index, field, reason })?
            {
                placed.push(Placed { at: 0, index, cell });
            }
        }
        // Permits and then the log come last: what was taken before them is easier to give back.
        placed.sort_by_key(|p| matches!(p.cell, Cell::Permits(_)));
        placed.extend(ring(limits));
        let mut width = 0;
        for one in &mut placed {
            one.at = width;
            width += one.cell.words();
        }
        let smallest = limits.iter().map(Limit::most_cost).min().unwrap_or(0);
        Ok(Limits { placed: placed.into(), stated: limits.into(), width, smallest })
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

    /// How finely limit `index` keeps time: a clock that steps back by less than this is no fault.
    pub fn tick_nanos(&self, index: usize) -> u64 {
        let tick = |p: &Placed| match &p.cell {
            Cell::Bucket(bucket) if p.index == index => Some(bucket.tick_nanos()),
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

/// The cell of a limit that has words of its own. A limit of 0 is judged before any word is read;
/// its cell only holds the place.
fn single(limit: &Limit) -> Result<Option<Cell>, (&'static str, String)> {
    let max = limit.max.max(1);
    let per = limit.per_nanos();
    Ok(Some(match limit.algorithm {
        Algorithm::Window => return Ok(None),
        Algorithm::Bucket => {
            let burst = limit.burst.unwrap_or(max).max(1);
            let reason = || {
                let is_slow = u128::from(burst) * u128::from(per) > u128::from(max) * YEAR_NANOS;
                let (what, remedy) = match is_slow {
                    true => ("take too long to fill", "smaller"),
                    false => ("are refilled too fast to be counted", "larger"),
                };
                format!(
                    "{burst} tokens at {max} in {:?} {what}; make the burst {remedy}",
                    limit.per
                )
            };
            Cell::Bucket(Bucket::new(max, per, burst).ok_or_else(|| ("burst", reason()))?)
        }
        Algorithm::Counter => Cell::Counter(Counter { max, per }),
        Algorithm::Fixed => Cell::Fixed(Fixed { max, per_us: per / 1000 }),
        Algorithm::Concurrent => {
            let slots = max.max(limit.ceiling.unwrap_or(0)) as usize;
            Cell::Permits(Permits { max, lease_us: per / 1000, slots })
        }
    }))
}

/// The log that all windows share.
fn ring(limits: &[Limit]) -> Option<Placed> {
    let stated = || limits.iter().enumerate().filter(|(_, l)| l.algorithm == Algorithm::Window);
    let slots = stated().map(|(_, l)| l.max.max(l.ceiling.unwrap_or(0)).max(1)).max()? as usize;
    let windows = stated()
        .map(|(index, l)| window::Window { max: l.max, per_us: l.per_nanos() / 1000, index })
        .collect();
    Some(Placed { at: 0, index: 0, cell: Cell::Ring { slots, windows } })
}
