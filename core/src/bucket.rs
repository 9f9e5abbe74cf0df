//! The cell of a token bucket: where its one word is changed.

use crate::clock::{LAG, Time};
use crate::row::{Idle, Moved, Row, Step, is_busy};
use crate::sync::{AtomicU64, Ordering};
use crate::table::{Spot, Table};
use crate::word::{Bucket, Charge, Word};

/// The answer to an attempt to spend, and the word that it left or met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Take {
    Granted(Word),
    Denied(Word),
}

/// What became of an attempt at the usual case, and the word that it left or met.
#[must_use]
pub(crate) enum Quick {
    Granted(Word),
    Denied(Word),
    /// Somebody else changed the word meanwhile.
    Lost,
    /// Not the usual case.
    Other,
}

impl Quick {
    /// Yes or no, if that is known.
    #[inline(always)]
    pub(crate) fn answer(&self) -> Option<bool> {
        match self {
            Quick::Granted(_) => Some(true),
            Quick::Denied(_) => Some(false),
            Quick::Lost | Quick::Other => None,
        }
    }
}

/// One attempt at the usual case: a token, for a key that is known and near home, without a loop.
#[inline(always)]
pub(crate) fn take_quickly(table: &Table, spot: Spot, bucket: &Bucket, now: u64) -> Quick {
    match table.at_home(spot) {
        Some((word, seen)) => take_seen(word, seen, bucket, now),
        None => take_near(table, spot, bucket, now),
    }
}

/// The same for a key that is not at home.
#[inline(never)]
fn take_near(table: &Table, spot: Spot, bucket: &Bucket, now: u64) -> Quick {
    match table.near_home(spot) {
        Some((word, seen)) => take_seen(word, seen, bucket, now),
        None => Quick::Other,
    }
}

/// As [`take_quickly`], by a moment that has `passed`, no more than [`LAG`] ago, if that is enough to tell: what
/// it writes is what would be written now.
#[inline(always)]
pub(crate) fn take_at_a_glance(table: &Table, spot: Spot, bucket: &Bucket, passed: u64) -> Quick {
    match table.at_home(spot) {
        Some((word, seen)) => take_seen_at_a_glance(word, seen, bucket, passed),
        None => take_near_at_a_glance(table, spot, bucket, passed),
    }
}

/// The same for a key that is not at home.
#[inline(never)]
fn take_near_at_a_glance(table: &Table, spot: Spot, bucket: &Bucket, passed: u64) -> Quick {
    match table.near_home(spot) {
        Some((word, seen)) => take_seen_at_a_glance(word, seen, bucket, passed),
        None => Quick::Other,
    }
}

#[inline(always)]
fn take_seen_at_a_glance(word: &AtomicU64, seen: u64, bucket: &Bucket, passed: u64) -> Quick {
    let charge = bucket.charge_quickly(Word(seen), passed, LAG);
    let charge = charge.or_else(|| bucket.charge_early(Word(seen), passed, LAG));
    charged(word, seen, charge)
}

/// As [`take_quickly`], for a word that was loaded before its key was seen live.
#[inline(always)]
pub(crate) fn take_seen(word: &AtomicU64, seen: u64, bucket: &Bucket, now: u64) -> Quick {
    match bucket.charge_quickly(Word(seen), now, 0) {
        Some(Charge::Granted(next)) => swap(word, seen, next),
        Some(Charge::Denied) => Quick::Denied(Word(seen)),
        Some(Charge::Future) | None => match bucket.restart_quickly(Word(seen), now) {
            Some(next) => swap(word, seen, next),
            None => take_known(word, seen, bucket, now),
        },
    }
}

#[inline(never)]
fn take_known(word: &AtomicU64, seen: u64, bucket: &Bucket, now: u64) -> Quick {
    let early = bucket.charge_early(Word(seen), now, 0);
    charged(word, seen, early.or_else(|| bucket.charge_known(Word(seen), now)))
}

#[inline(always)]
fn charged(word: &AtomicU64, seen: u64, charge: Option<Charge>) -> Quick {
    match charge {
        Some(Charge::Granted(next)) => swap(word, seen, next),
        Some(Charge::Denied) => Quick::Denied(Word(seen)),
        Some(Charge::Future) | None => Quick::Other,
    }
}

/// Whether a key that is near home has no token before the stamp of its line, by a clock that is read after its word.
#[inline(never)]
pub(crate) fn is_denied_early(
    table: &Table,
    spot: Spot,
    bucket: &Bucket,
    time: &mut Time<'_>,
) -> bool {
    let seen = table.at_home(spot).or_else(|| table.near_home(spot));
    seen.is_some_and(|(_, seen)| {
        let is_denied = |now: u64| {
            let charge = bucket.charge_early(Word(seen), now, 0);
            matches!(charge, Some(Charge::Denied | Charge::Future))
        };
        is_denied(time.now()) && {
            time.refresh();
            is_denied(time.now())
        }
    })
}

#[inline(always)]
fn swap(word: &AtomicU64, seen: u64, next: Word) -> Quick {
    // ORDERING: as in `Row::replace`; the newer word is not acted upon.
    match word.compare_exchange(seen, next.0, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => Quick::Granted(next),
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

/// Spends without asking, down to nothing. The word that it left.
pub(crate) fn record(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    cost: u64,
    time: &mut Time<'_>,
) -> Result<Word, Moved> {
    row.update(at, |seen| {
        let word = mended(bucket, Word(seen), time);
        match bucket.drain(word, cost, time.now()) {
            Charge::Granted(next) => Step::Write(next.0, next),
            Charge::Denied | Charge::Future => Step::Keep(Word(seen)),
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

/// What a reservation has left to give back, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// With what was refilled since rounded up.
    pub(crate) least: u64,
    /// Rounded down: for a bucket that this makes full. Any hit since would leave a whole token missing, so
    /// there was none, and without the charge it would be full too.
    pub(crate) most: u64,
}

/// Gives a reservation's share back, never above full.
pub(crate) fn give_back(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    share: Share,
    time: &mut Time<'_>,
) -> Result<(), Moved> {
    row.update(at, |seen| {
        let word = mended(bucket, Word(seen), time);
        let back = |milli: u64| bucket.refund(word, milli, time.now());
        let is_full = |word: &Word| bucket.reading(*word, time.now()).until_full() == 0;
        let partly = || back(share.least).filter(|_| share.least > 0);
        match back(share.most).filter(is_full).or_else(partly) {
            Some(word) => Step::Write(word.0, ()),
            None => Step::Keep(()),
        }
    })
}
