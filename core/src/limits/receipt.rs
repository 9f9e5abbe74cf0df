//! What a reservation took from a row, so that it gives back only its own (promise 9).
//!
//! **The row.** A receipt names the row and its key word at the charge. Every step of a row adds one to
//! the sequence in its key word, so a key word that differs tells that the row was sealed since:
//!
//! * by a reset or an eviction that went through: the charge is gone, and nothing is owed;
//! * by an eviction that was undone. An evictor seals only a row that it found idle, so all that was
//!   charged before had aged out. A charge between that look and the seal is the exception: it stays
//!   spent, which grants nothing.
//!
//! So another key word, or the key in another row, means: nothing to give back. A reset of all keys steps
//! the key words of shared rows too.
//!
//! **The cells**, each by what the charge left there:
//!
//! | cell | gives back |
//! |---|---|
//! | bucket | at most the estimate less what was refilled since the charge |
//! | window | the charge's own entry, if it is inside the longest window |
//! | fixed | in the span of the charge, while that is open |
//! | counter | in the cell of the charge, while that is the current one |
//! | permits | nothing: they are released |
//!
//! **Why a bucket never gains.** Let φ be what the outstanding reservations may still give back. A charge
//! moves units from the bucket to φ. As time passes the bucket gains r·dt, and φ loses at least r·dt for each
//! reservation that is not yet empty. So bucket + φ is never more than a bucket would hold in which
//! the cancelled reservations had never been.

use crate::algorithm::bucket::word::{Bucket, MILLI, Word};
use crate::algorithm::bucket::{self, Share};
use crate::algorithm::stamp::MICRO;
use crate::algorithm::window::{self, Entry, Ring};
use crate::algorithm::{Cell, Placed};
use crate::algorithm::{Left, Taken, bucket_status};
use crate::clock::Time;
use crate::limits::{Limit, Limits};
use crate::table::row::{KeyWord, Moved, Row};

/// What one charge took from one row: for [`RowRef::give_back`](crate::RowRef::give_back), once.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// Where the row is.
    place: usize,
    /// Its key word when it was charged.
    key: KeyWord,
    /// The earliest reading of the clock that the charge may have gone by.
    charged_at: u64,
    cost: u64,
    /// What the charge left in each cell.
    left: Left,
    entry: Option<Entry>,
}

impl Receipt {
    /// For a charge of `cost`, begun at `began`.
    pub(crate) fn new(row: &Row<'_>, taken: &Taken, cost: u64, began: u64, now: u64) -> Receipt {
        Receipt {
            place: row.place(),
            key: row.seen(),
            charged_at: began.min(now),
            cost,
            left: taken.left,
            entry: taken.entry,
        }
    }

    /// Whether it was a row that keys share because the table is full.
    pub(crate) fn is_shared(&self) -> bool {
        self.key.is_shared()
    }

    /// Whether the row is the one that was charged, and nobody sealed it since.
    pub(crate) fn is_of(&self, row: &Row<'_>) -> bool {
        (row.place(), row.seen()) == (self.place, self.key)
    }
}

impl Limits {
    /// Gives `amount` of a charge back, as far as it still counts. A row that is sealed on the way gets no
    /// more: see above.
    pub(crate) fn give_back_own(
        &self,
        row: &Row<'_>,
        receipt: &Receipt,
        amount: u64,
        time: &mut Time<'_>,
    ) {
        let amount = amount.min(receipt.cost);
        if time.now() < receipt.charged_at {
            time.recheck_clock();
        }
        for (index, placed) in self.placed.iter().enumerate() {
            let Some(left) = receipt.left[index] else { continue };
            if self.give_back_to(placed, row, receipt, left, amount, time).is_err() {
                return;
            }
        }
    }

    fn give_back_to(
        &self,
        placed: &Placed,
        row: &Row<'_>,
        receipt: &Receipt,
        left: u64,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let (at, now) = (placed.at, time.now());
        // Spans and cells have numbers that come again; what is as old as a period is not of this one.
        let is_young = |per: u64| now.saturating_sub(receipt.charged_at) < per;
        match &placed.cell {
            Cell::Bucket(bucket) => {
                let limit = &self.stated[placed.index];
                match share_of(limit, bucket, receipt, Word(left), amount, now) {
                    Some(share) => bucket::give_back(row, at, bucket, share, time),
                    None => Ok(()),
                }
            }
            // By a clock behind the charge its units may have aged out: all ahead of it counts as now.
            Cell::Counter(counter) if is_young(counter.per) && now >= receipt.charged_at => {
                counter.give_back(row, at, left, amount, now)
            }
            Cell::Fixed(fixed) if is_young(fixed.per_us * MICRO) => {
                fixed.give_back(row, at, left, amount, now)
            }
            Cell::Counter(_) | Cell::Fixed(_) | Cell::Permits(_) => Ok(()),
            Cell::Ring { slots, windows } => match receipt.entry {
                Some(entry) => {
                    let keep_us = window::longest(windows);
                    Ring::new(row, at, *slots).give_back(entry, amount, keep_us, now).map(drop)
                }
                None => Ok(()),
            },
        }
    }
}

/// What a bucket gets back of `amount`: no more than the estimate less what was refilled since.
///
/// What was refilled is rounded up, so that rounding is never in the key's favour. It may be rounded down if
/// the bucket would not have been full by now without the charge: then even the whole estimate would be no
/// gain, because a bucket that is not full loses nothing of its refill.
///
/// `None` if nothing is left to give. That includes a clock behind the charge: it went back, and what was
/// refilled by it since is not known.
fn share_of(
    limit: &Limit,
    bucket: &Bucket,
    receipt: &Receipt,
    left: Word,
    amount: u64,
    now: u64,
) -> Option<Share> {
    let age = now.checked_sub(receipt.charged_at)?;
    let (max, per) = (u128::from(limit.max), limit.per.as_nanos());
    let refilled = u128::from(MILLI) * max * u128::from(age);
    let share = |refilled: u128| {
        let spent = u128::from(MILLI * receipt.cost).saturating_sub(refilled);
        (spent as u64).min(MILLI * amount)
    };
    let most = share(refilled / per);
    let until_full = bucket_status(bucket, left, 0, receipt.charged_at).reset;
    // That is after the charge; without it the bucket is full earlier, by the time that the cost takes.
    let earlier = (u128::from(receipt.cost) * per).div_ceil(max);
    let has_room = u128::from(age) + earlier < u128::from(until_full);
    let least = if has_room { most } else { share(refilled.div_ceil(per)) };
    (most > 0).then_some(Share { least, most })
}
