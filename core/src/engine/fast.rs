//! Every shortcut of a hit: one bucket in a row, one cell in a row, batches of keys.
//!
//! Each answers as `multi` does, with less work. What a shortcut does not cover, it hands on.

use super::{ATTEMPTS, Answer, Engine, MultiOutcome, RowRef};
use crate::algorithm::bucket::word::{Bucket, Margin};
use crate::algorithm::bucket::{self, FastOutcome, Take};
use crate::algorithm::{Cell, Taken, Written, permit};
use crate::clock::Time;
use crate::counters::Count;
use crate::limits::charge::LoneRing;
use crate::status::{LimitStatus, LimitStatuses};
use crate::table::row::{Moved, Row};
use crate::table::{Hash, Spot, Table};

/// How many keys of a batch are hashed and fetched before they are judged, by one reading of the
/// clock.
const CHUNK: usize = 32;

/// One attempt at the usual case: a token, for a key that is known and near home, without a loop.
#[inline(always)]
fn fast_take(table: &Table, spot: Spot, limit: &Bucket, now: u64, margin: &Margin) -> FastOutcome {
    match table.at_home(spot) {
        Some((word, seen)) => bucket::fast_take_seen(word, seen, limit, now, margin),
        None => fast_take_near(table, spot, limit, now, margin),
    }
}

/// The same for a key that is not at home.
#[inline(never)]
fn fast_take_near(
    table: &Table,
    spot: Spot,
    limit: &Bucket,
    now: u64,
    margin: &Margin,
) -> FastOutcome {
    match table.near_home(spot) {
        Some((word, seen)) => bucket::fast_take_seen(word, seen, limit, now, margin),
        None => FastOutcome::Other,
    }
}

impl Engine {
    #[inline(always)]
    pub(super) fn allow_at(&self, spot: Spot) -> (bool, u64) {
        let allowed = match self.slow {
            true => self.fast_try_coarse(spot).answer().unwrap_or_else(|| self.allow_now(spot)),
            false => self.allow_by(spot, self.clock.now()),
        };
        let count = if allowed { Count::Allowed } else { Count::Denied };
        (allowed, self.counters.add(count as usize))
    }

    #[inline(always)]
    fn fast_try_coarse(&self, spot: Spot) -> FastOutcome {
        match (&self.lone, self.clock.coarse_now()) {
            (Some(bucket), Some(passed)) => {
                fast_take(&self.table, spot, bucket, passed, bucket.coarse())
            }
            _ => FastOutcome::Other,
        }
    }

    #[inline(never)]
    fn allow_now(&self, spot: Spot) -> bool {
        self.allow_by(spot, self.clock.now())
    }

    #[inline(always)]
    fn allow_by(&self, spot: Spot, now: u64) -> bool {
        self.fast_try(spot, now).answer().unwrap_or_else(|| self.general_allow(spot, now))
    }

    #[inline(always)]
    fn fast_try(&self, spot: Spot, now: u64) -> FastOutcome {
        match &self.lone {
            Some(bucket) => fast_take(&self.table, spot, bucket, now, bucket.now()),
            None => FastOutcome::Other,
        }
    }

    /// New keys, keys away from home, races, and limits other than one bucket.
    #[inline(never)]
    fn general_allow(&self, spot: Spot, now: u64) -> bool {
        let hash = spot.hash;
        let time = &mut Time::at(&self.clock, now);
        let Some(bucket) = &self.lone else {
            return self.allow_any(hash, time, None::<fn(&LimitStatuses)>).is_allowed();
        };
        for _ in 0..ATTEMPTS {
            match self.fast_try(spot, time.now()) {
                FastOutcome::Granted(_) => return true,
                FastOutcome::Denied(_) => return false,
                FastOutcome::Lost => continue,
                FastOutcome::Other => break,
            }
        }
        loop {
            let row = match self.row(hash, time.now()) {
                Ok(row) => row,
                Err(answer) => return answer.is_allowed(),
            };
            match bucket::take(&row, 0, bucket, 1, time) {
                Ok(take) => return matches!(take, Take::Granted(_)),
                Err(Moved) => continue,
            }
        }
    }

    /// As [`Engine::allow_counted`] for a key that was hashed, with the whole answer. On
    /// [`Answer::Denied`], `explain` gets what each limit said. So the caller need not judge the
    /// key again to name the limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::{Engine, Limit, Limits, Options};
    ///
    /// let limit = |max| Limit::bucket(max, Duration::from_secs(60));
    /// let limits = Limits::new(&[limit(9), limit(1)]).unwrap();
    /// let engine = Engine::new(limits, Options::default()).unwrap();
    /// let mut waits = Vec::new();
    /// for _ in 0..2 {
    ///     let explain = |statuses: &tidegate_core::LimitStatuses| {
    ///         waits = statuses.iter().map(|status| status.wait > 0).collect();
    ///     };
    ///     let _ = engine.allow_explained(engine.hash(b"alice"), explain);
    /// }
    /// assert_eq!(waits, [false, true]);
    /// ```
    #[inline(always)]
    pub fn allow_explained(
        &self,
        hash: Hash,
        explain: impl FnOnce(&LimitStatuses),
    ) -> (Answer, u64) {
        self.table.prefetch(hash);
        let answer = self.allow_any(hash, &mut Time::read(&self.clock), Some(explain));
        let count = if answer.is_allowed() { Count::Allowed } else { Count::Denied };
        (answer, self.counters.add(count as usize))
    }

    /// As [`hit_together`] for one row and a cost of 1, without statuses of a hit that passes.
    #[inline]
    fn allow_any(
        &self,
        hash: Hash,
        time: &mut Time<'_>,
        explain: Option<impl FnOnce(&LimitStatuses)>,
    ) -> Answer {
        match self.limits().placed.len() {
            _ if self.limits().smallest() == 0 => self.refuse(hash, time, explain),
            1 => self.allow_cell(hash, time, explain),
            _ => self.allow_cells(hash, time, explain),
        }
    }

    /// A lone cell refuses before it writes.
    fn allow_cell(
        &self,
        hash: Hash,
        time: &mut Time<'_>,
        explain: Option<impl FnOnce(&LimitStatuses)>,
    ) -> Answer {
        for _ in 0..ATTEMPTS {
            let row = match self.row(hash, time.now()) {
                Ok(row) => row,
                Err(answer) => return answer,
            };
            match self.limits().take_lone(&row, 1, self.keep_us(), time) {
                Ok(true) => return Answer::Allowed,
                Ok(false) => break,
                Err(Moved) => {}
            }
        }
        self.refuse(hash, time, explain)
    }

    /// A denial, explained by what the row holds now.
    fn refuse(
        &self,
        hash: Hash,
        time: &Time<'_>,
        explain: Option<impl FnOnce(&LimitStatuses)>,
    ) -> Answer {
        if let Some(explain) = explain {
            explain(&self.part(hash).inspect(1, time.now()));
        }
        Answer::Denied
    }

    /// Several cells are inspected before the first is taken.
    fn allow_cells(
        &self,
        hash: Hash,
        time: &mut Time<'_>,
        explain: Option<impl FnOnce(&LimitStatuses)>,
    ) -> Answer {
        let limits = self.limits();
        let (mut rechecked, mut taken) = (false, Taken::default());
        let mut statuses = LimitStatuses::default();
        for _ in 0..ATTEMPTS {
            let row = match self.row(hash, time.now()) {
                Ok(row) => row,
                Err(answer) => return answer,
            };
            let seen = limits.inspect(&row, 1, time.now(), &mut statuses);
            if seen.is_ok() && statuses.fits() {
                if let Ok(true) = limits.take(&row, 1, self.keep_us(), time, &mut taken) {
                    return Answer::Allowed;
                }
            } else if rechecked {
                break;
            } else {
                let _ = limits.repair_clock_skew(&row, time);
                rechecked = true;
            }
        }
        if let Some(explain) = explain {
            explain(&statuses);
        }
        Answer::Denied
    }

    /// A batch of [`Engine::allow`]: `out[i]` is 1 or 0 for `keys[i]`.
    ///
    /// # Panics
    /// If `out` is shorter than `keys`.
    pub fn allow_many<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [u8]) {
        let out = &mut out[..keys.len()];
        for (keys, out) in keys.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let now = self.clock.now();
            let mut spots = [Spot::default(); CHUNK];
            for (spot, key) in spots.iter_mut().zip(keys) {
                *spot = self.table.spot(self.hash(key.as_ref()));
            }
            self.allow_chunk(&spots[..keys.len()], out, now);
        }
    }

    /// Judges up to [`CHUNK`] keys whose home rows are on their way. Those that are not in the
    /// first line come last, when the next one has had time to arrive.
    fn allow_chunk(&self, spots: &[Spot], out: &mut [u8], now: u64) {
        let mut away = 0u32;
        for (i, (spot, allowed)) in spots.iter().zip(&mut *out).enumerate() {
            match self.try_in_line(*spot, 0, now) {
                Some(answer) => *allowed = u8::from(answer),
                None => {
                    self.table.prefetch_next(*spot);
                    away |= 1 << i;
                }
            }
        }
        while away != 0 {
            let i = away.trailing_zeros() as usize;
            let answer = self.try_in_line(spots[i], 1, now);
            out[i] = u8::from(answer.unwrap_or_else(|| self.general_allow(spots[i], now)));
            away &= away - 1;
        }
        let allowed = out.iter().map(|&yes| u64::from(yes)).sum();
        self.counters.add_many(Count::Allowed as usize, allowed);
        self.counters.add_many(Count::Denied as usize, out.len() as u64 - allowed);
    }

    /// The answer to a key whose row is in that line from its home on.
    #[inline(always)]
    fn try_in_line(&self, spot: Spot, lines: usize, now: u64) -> Option<bool> {
        let bucket = self.lone.as_ref()?;
        let (word, seen) = self.table.in_line(spot, lines)?;
        let taken = bucket::fast_take_seen(word, seen, bucket, now, bucket.now());
        Some(taken.answer().unwrap_or_else(|| self.general_allow(spot, now)))
    }
}

impl RowRef<'_> {
    /// As [`RowRef::hit`] for limits in one cell, such as windows with one log, if they allow it: a
    /// cell refuses before it writes, so it need not be looked at first. Windows with one log
    /// answer in any case.
    pub(super) fn hit_cell(
        &self,
        cost: u64,
        time: &mut Time<'_>,
        statuses: &mut LimitStatuses,
    ) -> Option<MultiOutcome<1>> {
        if self.limits.placed.len() != 1 || !(1..=self.limits.smallest()).contains(&cost) {
            return None;
        }
        let row = self.engine.row(self.hash, time.now()).ok()?;
        if let Some(together) = self.refused_permit(&row, time.now(), statuses) {
            return Some(together);
        }
        let shared = row.is_shared();
        let keep_us = self.engine.keep_us();
        let outcome = |answer, permit| Some(MultiOutcome { answer, permits: [permit], shared });
        if let Some(done) = self.limits.hit_lone_ring(&row, cost, keep_us, time, statuses) {
            return match done.ok()? {
                LoneRing::Refused => outcome(Answer::Denied, None),
                LoneRing::AdmittedAndTold => outcome(Answer::Allowed, None),
                LoneRing::Admitted(entry) => {
                    let mut written = Written::default();
                    written[0] = Some(entry);
                    self.inspect_after(&row, &written, time.now(), statuses);
                    outcome(Answer::Allowed, None)
                }
            };
        }
        let taken = &mut Taken::default();
        if !self.limits.take(&row, cost, keep_us, time, taken).ok()? {
            return None;
        }
        self.inspect_after(&row, &taken.written, time.now(), statuses);
        outcome(Answer::Allowed, taken.permit)
    }

    /// What a hit is told that finds no permit. They are many to look at, so that is all that it
    /// does, unless a clock fault left one in the future.
    fn refused_permit(
        &self,
        row: &Row<'_>,
        now: u64,
        statuses: &mut LimitStatuses,
    ) -> Option<MultiOutcome<1>> {
        let Cell::Permits(permits) = &self.limits.placed[0].cell else { return None };
        let out = permits.out(row, self.limits.placed[0].at, now);
        if out.wait == 0 || out.ahead || row.check().is_err() {
            return None;
        }
        statuses.set_one(permit::status(permits, &out));
        let shared = row.is_shared();
        Some(MultiOutcome { answer: Answer::Denied, permits: [None], shared })
    }

    /// As [`RowRef::hit`] for limits that are one bucket, with less to hand back: the only status,
    /// and whether the row is shared. `None` for other limits, and for costs that a bucket can't
    /// take.
    #[inline(always)]
    pub fn hit_lone(&self, cost: u64, time: &mut Time<'_>) -> Option<(Answer, LimitStatus, bool)> {
        let bucket = self.limits.lone_bucket()?;
        if cost == 1 {
            let spot = self.engine.table.spot(self.hash);
            let table = &self.engine.table;
            let (answer, word, asked) =
                match fast_take(table, spot, bucket, time.now(), bucket.now()) {
                    FastOutcome::Granted(word) => (Answer::Allowed, word, 0),
                    FastOutcome::Denied(word) => (Answer::Denied, word, cost),
                    FastOutcome::Lost | FastOutcome::Other => {
                        return Some(self.hit_one(bucket, cost, time));
                    }
                };
            return Some((answer, bucket::status(bucket, word, asked, time.now()), false));
        }
        let fits = (1..=self.limits.smallest()).contains(&cost);
        fits.then(|| self.hit_one(bucket, cost, time))
    }

    #[inline(never)]
    fn hit_one(
        &self,
        bucket: &Bucket,
        cost: u64,
        time: &mut Time<'_>,
    ) -> (Answer, LimitStatus, bool) {
        loop {
            let row = match self.engine.row(self.hash, time.now()) {
                Ok(row) => row,
                // No row was read: the status is that of a new key.
                Err(answer) => return (answer, self.limits.statuses_of_new(cost)[0], false),
            };
            let Ok(take) = bucket::take(&row, 0, bucket, cost, time) else {
                continue;
            };
            let (answer, word, asked) = match take {
                Take::Granted(word) => (Answer::Allowed, word, 0),
                Take::Denied(word) => (Answer::Denied, word, cost),
            };
            return (answer, bucket::status(bucket, word, asked, time.now()), row.is_shared());
        }
    }
}
