//! What a reservation took from a row, so that it gives back only its own (promise 9).
//!
//! **The row.** A receipt names the row and its key word at the charge. Every step of a row adds
//! one to the sequence in its key word, so a key word that differs tells that the row was sealed
//! since:
//!
//! * by a reset or an eviction that went through: the charge is gone, and nothing is owed;
//! * by an eviction that was undone. An evictor seals only a row that it found idle, so all that
//!   was charged before had aged out. A charge between that look and the seal is the exception: it
//!   stays spent, which grants nothing.
//!
//! So another key word, or the key in another row, means: nothing to give back. A reset of all keys
//! steps the key words of shared rows too.
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
//! **Why a bucket never gains.** Let φ be what the outstanding reservations may still give back. A
//! charge moves units from the bucket to φ. As time passes the bucket gains r·dt, and φ loses at
//! least r·dt for each reservation that is not yet empty. So bucket + φ is never more than a bucket
//! would hold in which the cancelled reservations had never been.

use crate::algorithm::window::Entry;
use crate::algorithm::{ReservedCharge, Taken, Written};
use crate::clock::Time;
use crate::limits::Limits;
use crate::table::row::{KeyWord, Row};

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
    written: Written,
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
            written: taken.written,
            entry: taken.entry,
        }
    }

    /// Whether it was a row that keys share because the table is full.
    pub(crate) fn is_shared(&self) -> bool {
        self.key.is_shared()
    }

    /// Whether the row is the one that was charged, and no thread sealed it since.
    pub(crate) fn is_of(&self, row: &Row<'_>) -> bool {
        (row.place(), row.seen()) == (self.place, self.key)
    }
}

impl Limits {
    /// Gives `amount` of a charge back, as far as it still counts. A row that is sealed on the way
    /// gets no more: see above.
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
        for (placed, written) in self.placed.iter().zip(receipt.written) {
            let Some(written) = written else { continue };
            let charge = ReservedCharge {
                limit: &self.stated[placed.index],
                cost: receipt.cost,
                at: receipt.charged_at,
                written,
                entry: receipt.entry,
            };
            if placed.give_back_own(row, &charge, amount, time).is_err() {
                return;
            }
        }
    }
}
