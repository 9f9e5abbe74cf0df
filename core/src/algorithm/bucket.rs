//! The cell of a token bucket: where its one word is changed.

pub(crate) mod rate;
pub(crate) mod word;

use crate::algorithm::bucket::word::{Bucket, Charge, Margin, Word};
use crate::clock::Time;
use crate::sync::{AtomicU64, Ordering};
use crate::table::row::{Idle, Moved, Row, Step, is_busy};

/// The answer to an attempt to spend, and the word that it left or met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Take {
    Granted(Word),
    Denied(Word),
}

/// What became of an attempt at the usual case, and the word that it left or met.
#[must_use]
pub(crate) enum FastOutcome {
    Granted(Word),
    Denied(Word),
    /// Another thread changed the word meanwhile.
    Lost,
    /// Not the usual case.
    Other,
}

impl FastOutcome {
    /// Yes or no, if that is known.
    #[inline(always)]
    pub(crate) fn answer(&self) -> Option<bool> {
        match self {
            FastOutcome::Granted(_) => Some(true),
            FastOutcome::Denied(_) => Some(false),
            FastOutcome::Lost | FastOutcome::Other => None,
        }
    }
}

/// One attempt at the usual case: a token, from a word that was loaded before its key was seen live.
/// No loop.
#[inline(always)]
pub(crate) fn fast_take_seen(
    word: &AtomicU64,
    seen: u64,
    bucket: &Bucket,
    now: u64,
    margin: &Margin,
) -> FastOutcome {
    match bucket.fast_charge(Word(seen), now, margin) {
        Some(Charge::Granted(next)) => swap(word, seen, next),
        Some(Charge::Denied) => FastOutcome::Denied(Word(seen)),
        Some(Charge::Doubtful | Charge::Ahead) | None => FastOutcome::Other,
    }
}

#[inline(always)]
fn swap(word: &AtomicU64, seen: u64, next: Word) -> FastOutcome {
    // ORDERING: as in `Row::replace`; the newer word is not acted upon.
    match word.compare_exchange(seen, next.0, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => FastOutcome::Granted(next),
        Err(_) => FastOutcome::Lost,
    }
}

/// Takes `cost` tokens if they are there. A refusal stores nothing, but to repair a stamp that a
/// clock fault left ahead of the clock.
pub(crate) fn take(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    cost: u64,
    time: &mut Time<'_>,
) -> Result<Take, Moved> {
    row.update(at, |seen| match bucket.charge(Word(seen), cost, renewed(seen, time)) {
        Charge::Granted(word) => Step::Write(word.0, Take::Granted(word)),
        Charge::Denied => Step::Keep(Take::Denied(Word(seen))),
        Charge::Doubtful | Charge::Ahead => take_in_doubt(bucket, Word(seen), cost, time),
    })
}

/// The time to judge a word by: a fresh one may have become so after the clock was read.
fn renewed(seen: u64, time: &mut Time<'_>) -> u64 {
    if Word(seen).is_fresh() {
        time.refresh();
    }
    time.now()
}

/// The clock was read before the word's last charge, or it went back.
#[cold]
fn take_in_doubt(bucket: &Bucket, word: Word, cost: u64, time: &mut Time<'_>) -> Step<Take> {
    time.refresh();
    let (mut current, mut charge) = (word, bucket.charge(word, cost, time.now()));
    if charge == Charge::Ahead {
        current = repaired(bucket, word, time);
        charge = bucket.charge(current, cost, time.now());
    }
    match charge {
        Charge::Granted(next) => Step::Write(next.0, Take::Granted(next)),
        _ if current == word => Step::Keep(Take::Denied(word)),
        _ => Step::Write(current.0, Take::Denied(current)),
    }
}

/// Repairs a word that a clock fault left ahead of the clock. True if there was one.
pub(crate) fn repair_clock_skew(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    time: &mut Time<'_>,
) -> Result<bool, Moved> {
    row.update(at, |seen| match repaired(bucket, Word(seen), time) {
        Word(same) if same == seen => Step::Keep(false),
        Word(repaired) => Step::Write(repaired, true),
    })
}

/// A word that was just loaded, repaired if it is ahead of a clock that is read after that.
fn repaired(bucket: &Bucket, word: Word, time: &mut Time<'_>) -> Word {
    if bucket.repaired(word, time.now()) != word {
        time.recheck_clock();
    }
    bucket.repaired(word, time.now())
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
        let word = repaired(bucket, Word(seen), time);
        match bucket.drain(word, cost, time.now()) {
            Charge::Granted(next) => Step::Write(next.0, next),
            Charge::Denied | Charge::Doubtful | Charge::Ahead => Step::Keep(Word(seen)),
        }
    })
}

/// Gives thousandths of a token back, never above full.
pub(crate) fn refund(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    milli: u64,
    time: &mut Time<'_>,
) -> Result<(), Moved> {
    row.update(at, |seen| {
        let word = repaired(bucket, Word(seen), time);
        match bucket.refund(word, milli, time.now()) {
            Some(word) => Step::Write(word.0, ()),
            None => Step::Keep(()),
        }
    })
}

/// Makes the word fresh. False if it is in use, or the row moved on.
pub(crate) fn reset_words(row: &Row<'_>, at: usize, incarnation: u64, idle: Idle<'_>) -> bool {
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
        let word = repaired(bucket, Word(seen), time);
        let back = |milli: u64| bucket.refund(word, milli, time.now());
        let is_full = |word: &Word| bucket.reading(*word, time.now()).wait(bucket.burst()) == 0;
        let partly = || back(share.least).filter(|_| share.least > 0);
        match back(share.most).filter(is_full).or_else(partly) {
            Some(word) => Step::Write(word.0, ()),
            None => Step::Keep(()),
        }
    })
}
