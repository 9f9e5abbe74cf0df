//! The cell of a token bucket: where its one word is changed.

use crate::clock::Time;
use crate::row::{Idle, Moved, Row, Step, is_busy};
use crate::sync::Ordering;
use crate::table::{Hash, Table};
use crate::word::{Bucket, Charge, Word};

/// The answer to an attempt to spend, and the word that it left or met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Take {
    Granted(Word),
    Denied(Word),
}

/// What became of an attempt at the usual case.
#[must_use]
pub(crate) enum Quick {
    Granted,
    Denied,
    /// Somebody else changed the word meanwhile.
    Lost,
    /// Not the usual case.
    Other,
}

/// One attempt at the usual case: a token, for a key that is known and near home, without a loop.
#[inline(always)]
pub(crate) fn take_quickly(table: &Table, hash: Hash, bucket: &Bucket, now: u64) -> Quick {
    let Some((word, seen)) = table.at_home(hash).or_else(|| table.near_home(hash)) else {
        return Quick::Other;
    };
    let charge = bucket.charge_quickly(Word(seen), now);
    let next = match charge.or_else(|| bucket.charge_known(Word(seen), now)) {
        Some(Charge::Granted(next)) => next.0,
        Some(Charge::Denied) => return Quick::Denied,
        Some(Charge::Future) | None => return Quick::Other,
    };
    // ORDERING: as in `Row::replace`; the newer word is not acted upon.
    match word.compare_exchange(seen, next, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => Quick::Granted,
        Err(_) => Quick::Lost,
    }
}

/// Takes `cost` thousandths if they are there. A refusal stores nothing, but to mend a stamp that a
/// clock fault left in the future.
pub(crate) fn take(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    cost: u64,
    time: &mut Time<'_>,
) -> Result<Take, Moved> {
    row.update(at, |seen| match bucket.charge(Word(seen), cost, renewed(seen, time)) {
        Charge::Granted(word) => Step::Write(word.0, Take::Granted(word)),
        Charge::Denied if !bucket.is_before(Word(seen), time.now()) => {
            Step::Keep(Take::Denied(Word(seen)))
        }
        Charge::Denied | Charge::Future => in_doubt(bucket, Word(seen), cost, time),
    })
}

/// The time to judge a word by: a fresh one may have become so after the clock was read.
fn renewed(seen: u64, time: &mut Time<'_>) -> u64 {
    if Word(seen).is_fresh() {
        time.refresh();
    }
    time.now()
}

/// Mends a word that a clock fault left in the future. True if there was one.
pub(crate) fn mend(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    time: &mut Time<'_>,
) -> Result<bool, Moved> {
    row.update(at, |seen| match mended(bucket, Word(seen), time) {
        Word(same) if same == seen => Step::Keep(false),
        Word(mended) => Step::Write(mended, true),
    })
}

/// The stamp is ahead of our clock: another thread's clock reading is newer, or a clock fault.
#[cold]
fn in_doubt(bucket: &Bucket, word: Word, cost: u64, time: &mut Time<'_>) -> Step<Take> {
    let mended = mended(bucket, word, time);
    match bucket.charge(mended, cost, time.now()) {
        Charge::Granted(next) => Step::Write(next.0, Take::Granted(next)),
        _ if mended == word => Step::Keep(Take::Denied(word)),
        _ => Step::Write(mended.0, Take::Denied(mended)),
    }
}

/// A word that was just loaded, mended if it is ahead of a clock that is read after that.
fn mended(bucket: &Bucket, word: Word, time: &mut Time<'_>) -> Word {
    if bucket.is_before(word, time.now()) {
        time.doubt();
    }
    bucket.mended(word, time.now())
}

/// Spends without asking, down to nothing.
pub(crate) fn record(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    cost: u64,
    time: &mut Time<'_>,
) -> Result<(), Moved> {
    row.update(at, |seen| {
        let word = mended(bucket, Word(seen), time);
        match bucket.drain(word, cost, time.now()) {
            Charge::Granted(next) => Step::Write(next.0, ()),
            Charge::Denied | Charge::Future => Step::Keep(()),
        }
    })
}

/// Gives back, never above full.
pub(crate) fn refund(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    milli: u64,
    time: &mut Time<'_>,
) -> Result<(), Moved> {
    row.update(at, |seen| {
        let word = mended(bucket, Word(seen), time);
        match bucket.refund(word, milli, time.now()) {
            Some(word) => Step::Write(word.0, ()),
            None => Step::Keep(()),
        }
    })
}

/// Makes the word fresh. False if it is in use, or the row moved on.
pub(crate) fn freshen(row: &Row<'_>, at: usize, incarnation: u64, idle: Idle<'_>) -> bool {
    loop {
        let seen = row.load(at);
        if is_busy(idle) || row.check().is_err() {
            return false;
        }
        if row.replace(at, seen, Word::fresh(incarnation).0).is_ok() {
            return true;
        }
    }
}
