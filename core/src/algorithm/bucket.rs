//! The cell of a token bucket: where its one word is changed.

pub(crate) mod rate;
pub(crate) mod word;

use crate::algorithm::bucket::word::{Bucket, Charge, Margin, Word};
use crate::algorithm::limit::{Invalid, LONGEST, Limit};
use crate::algorithm::{AlgorithmCell, AlgorithmFacts, Cell, MakeCell, ReservedCharge, Taken};
use crate::clock::Time;
use crate::status::{LimitStatus, NEVER};
use crate::sync::{AtomicU64, Ordering};
use crate::table::row::{Idle, Moved, Row, WordStep, is_busy};
use crate::units::MilliTokens;

pub(crate) const FACTS: AlgorithmFacts = AlgorithmFacts {
    code: 1,
    has_burst: true,
    has_lease: false,
    is_log: false,
    instead_of_words: None,
    order: 0,
    cell: MakeCell::Own(make),
    horizon: fill_time,
    most_within: |limit, span| {
        let refilled = u128::from(limit.max) * span / u128::from(limit.per_nanos().max(1));
        Some(u128::from(limit.size()) + refilled)
    },
    foreseen: |limit, hit| {
        let refill = |tokens: u64| {
            let product = u128::from(tokens) * u128::from(limit.per_nanos());
            product.div_ceil(u128::from(limit.max)) as u64
        };
        (hit.more_or(refill(1)), hit.before.reset.saturating_add(refill(hit.cost)))
    },
};

/// Nanoseconds from empty to full; the period where nothing is ever refilled.
fn fill_time(limit: &Limit) -> u64 {
    if limit.max == 0 {
        return limit.per_nanos();
    }
    let fill = u128::from(limit.size()) * u128::from(limit.per_nanos());
    u64::try_from(fill.div_ceil(u128::from(limit.max))).unwrap_or(u64::MAX)
}

/// The cell of a limit. A limit of 0 is judged before any word is read; its cell only holds the
/// place.
fn make(limit: &Limit) -> Result<Cell, Invalid> {
    let (max, per) = (limit.max.max(1), limit.per_nanos());
    let burst = limit.burst.unwrap_or(max).max(1);
    let reason = || {
        let longest = u128::from(max) * LONGEST.as_nanos();
        let (what, remedy) = match u128::from(burst) * u128::from(per) > longest {
            true => ("take too long to fill", "smaller"),
            false => ("are refilled too fast to be counted", "larger"),
        };
        format!("{burst} tokens at {max} in {:?} {what}; make the burst {remedy}", limit.per)
    };
    let bucket = Bucket::new(max, per, burst).ok_or_else(|| ("burst", reason()))?;
    Ok(Cell::Bucket(bucket))
}

/// What a bucket's word says.
#[inline(always)]
pub(crate) fn status(bucket: &Bucket, word: Word, cost: u64, now: u64) -> LimitStatus {
    let reading = bucket.reading(word, now);
    let (limit, remaining) = (bucket.burst(), reading.tokens());
    let wait = match cost {
        _ if cost > limit => NEVER,
        _ if cost <= remaining => 0,
        _ => reading.wait(cost),
    };
    let more = if remaining < limit { reading.due(remaining + 1) } else { 0 };
    LimitStatus { limit, used: limit - remaining, remaining, wait, more, reset: reading.due(limit) }
}

impl AlgorithmCell for Bucket {
    fn words(&self) -> usize {
        1
    }

    fn most_recorded(&self) -> u64 {
        self.burst()
    }

    fn inspect_in(
        &self,
        row: &Row<'_>,
        at: usize,
        written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    ) {
        let word = written.unwrap_or_else(|| row.load(at));
        statuses[0] = status(self, Word(word), cost, now);
    }

    fn fits_in(&self, row: &Row<'_>, at: usize, cost: u64, now: u64) -> bool {
        cost <= self.reading(Word(row.load(at)), now).tokens()
    }

    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        let written = match take(row, at, self, cost, time)? {
            Take::Granted(word) => Some(word.0),
            Take::Denied(_) => None,
        };
        Ok(taken.note(written))
    }

    fn undo(
        &self,
        row: &Row<'_>,
        at: usize,
        _taken: &Taken,
        _written: Option<u64>,
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        refund(row, at, self, MilliTokens::of_tokens(cost), time)
    }

    fn give_back_own(
        &self,
        row: &Row<'_>,
        at: usize,
        charge: &ReservedCharge<'_>,
        amount: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        match share_of(self, charge, amount, time.now()) {
            Some(share) => give_back(row, at, self, share, time),
            None => Ok(()),
        }
    }

    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        row.update(at, |seen| match repaired(self, Word(seen), time) {
            Word(same) if same == seen => WordStep::Keep(false),
            Word(repaired) => WordStep::Write(repaired, true),
        })
    }

    fn record_in(
        &self,
        row: &Row<'_>,
        at: usize,
        cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        record(row, at, self, cost, time).map(|word| Some(word.0))
    }

    fn refund_to(
        &self,
        row: &Row<'_>,
        at: usize,
        rest: &mut u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        refund(row, at, self, MilliTokens::of_tokens(*rest), time)
    }

    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        self.is_idle(Word(row.load(at)), now)
    }

    fn is_untouched_in(&self, horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        Word(row.load(at)).untouched_for(now) >= horizon
    }

    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        incarnation: u64,
        idle: Idle<'_>,
        _keep_us: u64,
        _now: u64,
    ) -> bool {
        reset_words(row, at, incarnation, idle)
    }
}

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

/// One attempt at the usual case: a token, from a word that was loaded before its key was seen
/// live. No loop.
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
        Some(Charge::Recheck | Charge::Ahead) | None => FastOutcome::Other,
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
        Charge::Granted(word) => WordStep::Write(word.0, Take::Granted(word)),
        Charge::Denied => WordStep::Keep(Take::Denied(Word(seen))),
        Charge::Recheck | Charge::Ahead => take_rechecked(bucket, Word(seen), cost, time),
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
fn take_rechecked(bucket: &Bucket, word: Word, cost: u64, time: &mut Time<'_>) -> WordStep<Take> {
    time.refresh();
    let (mut current, mut charge) = (word, bucket.charge(word, cost, time.now()));
    if charge == Charge::Ahead {
        current = repaired(bucket, word, time);
        charge = bucket.charge(current, cost, time.now());
    }
    match charge {
        Charge::Granted(next) => WordStep::Write(next.0, Take::Granted(next)),
        _ if current == word => WordStep::Keep(Take::Denied(word)),
        _ => WordStep::Write(current.0, Take::Denied(current)),
    }
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
            Charge::Granted(next) => WordStep::Write(next.0, next),
            Charge::Denied | Charge::Recheck | Charge::Ahead => WordStep::Keep(Word(seen)),
        }
    })
}

/// Gives tokens back, never above full.
pub(crate) fn refund(
    row: &Row<'_>,
    at: usize,
    bucket: &Bucket,
    back: MilliTokens,
    time: &mut Time<'_>,
) -> Result<(), Moved> {
    row.update(at, |seen| {
        let word = repaired(bucket, Word(seen), time);
        match bucket.refund(word, back, time.now()) {
            Some(word) => WordStep::Write(word.0, ()),
            None => WordStep::Keep(()),
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

/// What a reservation has left to give back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// With what was refilled since rounded up.
    pub(crate) least: MilliTokens,
    /// Rounded down: for a bucket that this makes full. Any hit since would leave a whole token
    /// missing, so there was none, and without the charge it would be full too.
    pub(crate) most: MilliTokens,
}

/// What a bucket gets back of `amount`: no more than the estimate less what was refilled since.
///
/// What was refilled is rounded up, so that rounding is never in the key's favour. It may be
/// rounded down if the bucket would not have been full by now without the charge. Then even the
/// whole estimate would be no gain: a bucket that is not full loses nothing of its refill.
///
/// `None` if nothing is left to give. That includes a clock behind the charge: it went back, and
/// what was refilled by it since is not known.
fn share_of(bucket: &Bucket, charge: &ReservedCharge<'_>, amount: u64, now: u64) -> Option<Share> {
    let age = now.checked_sub(charge.at)?;
    let (max, per) = (u128::from(charge.limit.max), charge.limit.per.as_nanos());
    let refilled = u128::from(MilliTokens::PER_TOKEN) * max * u128::from(age);
    let share = |refilled: u128| {
        let spent = u128::from(MilliTokens::of_tokens(charge.cost).0).saturating_sub(refilled);
        MilliTokens(spent as u64).min(MilliTokens::of_tokens(amount))
    };
    let most = share(refilled / per);
    let until_full = status(bucket, Word(charge.written), 0, charge.at).reset;
    // That is after the charge. Without it the bucket is full earlier, by the time that the cost
    // takes.
    let earlier = (u128::from(charge.cost) * per).div_ceil(max);
    let has_room = u128::from(age) + earlier < u128::from(until_full);
    let least = if has_room { most } else { share(refilled.div_ceil(per)) };
    (most > MilliTokens(0)).then_some(Share { least, most })
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
        let back = |share: MilliTokens| bucket.refund(word, share, time.now());
        let is_full = |word: &Word| bucket.reading(*word, time.now()).wait(bucket.burst()) == 0;
        let partly = || back(share.least).filter(|_| share.least > MilliTokens(0));
        match back(share.most).filter(is_full).or_else(partly) {
            Some(word) => WordStep::Write(word.0, ()),
            None => WordStep::Keep(()),
        }
    })
}
