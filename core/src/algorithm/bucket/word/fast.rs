//! One token from a bucket, in the usual cases and without a division: the only shortcut of a
//! charge.

use super::{Bucket, Charge, MILLI, SCALE_MASK, Scale, WHOLE, Word};
use crate::units::{Nanos, Ticks};

/// How much may change between the tick that the fast path looks at and the moment that it decides
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Margin {
    /// Quanta that may be refilled.
    pub(super) gain: u64,
    /// A stamp fewer ticks behind has seen no token come since.
    pub(super) deny_lag: Ticks,
    /// A stamp fewer ticks behind has no debt that is over and brought a token.
    pub(super) debt_lag: Ticks,
    /// Whether `now` is exact, so that a line can start from it.
    pub(super) exact: bool,
    /// Whether it is exact, and a tick refills a token or more.
    pub(super) coarse: bool,
}

/// How far into its tick a moment is.
#[inline(always)]
fn over(scale: &Scale, now: Nanos, tick: Ticks) -> Nanos {
    now - scale.time_of(tick)
}

impl Bucket {
    /// What [`Bucket::charge`] says of one token, in the usual cases; `None` in all others, which
    /// are new keys, words of other scales, and the tick in which the answer changes.
    ///
    /// The answer holds for every moment that the margin allows for. Mostly only what is refilled
    /// until the present tick counts, so that the exact time does not matter.
    #[inline(always)]
    pub(crate) fn fast_charge(&self, word: Word, now: u64, margin: &Margin) -> Option<Charge> {
        let scale = &self.scale;
        if word.0 & SCALE_MASK != self.fast_header || now >> 63 != 0 {
            return None;
        }
        let now = Nanos(now);
        let tick = Ticks(scale.tick.fast_divide(now));
        let lag = scale.lag(word.stamp(scale), tick);
        let stored = word.0 & scale.token_mask;
        let (one, full) = (scale.offset + scale.quanta, scale.offset + self.full);
        // A word of slower numbers may have W here too.
        if margin.coarse && lag.0 | word.0 >> 63 == 0 {
            // What this tick has refilled so far decides.
            let refilled = self.rate.fast_floor(over(scale, now, tick));
            if stored + refilled >= full {
                let rest = full - scale.quanta - refilled;
                return Some(Charge::Granted(Word(word.0 & !scale.token_mask | rest)));
            }
        }
        let none = if word.is_whole() { one } else { scale.offset + 1 };
        // In the tick of W the clock may be before W's moment, which the general path repairs.
        if stored < none && lag.0.wrapping_sub(word.0 >> 63) < margin.deny_lag.0 {
            return Some(Charge::Denied);
        }
        if lag < self.hold {
            if stored + margin.gain < one {
                let over = over(scale, now, tick);
                let is_ahead = || !margin.exact || !self.is_past_whole(stored, over);
                let is_sure = lag < margin.debt_lag && !(word.is_whole() && is_ahead());
                return is_sure.then_some(Charge::Denied);
            }
            if stored >= one && stored + margin.gain < full {
                return Some(Charge::Granted(Word(word.0 - scale.quanta)));
            }
            if word.is_whole() || !margin.exact {
                return None;
            }
            // A tick refills much of the bucket: what it has refilled so far decides.
            let over = over(scale, now, tick);
            let held = stored + self.rate.fast_floor(scale.time_of(lag) + over);
            if held >= full {
                return self.fast_restart(word, lag, tick, now, margin);
            }
            let usual = held >= one && stored >= scale.quanta;
            return usual.then(|| Charge::Granted(Word(word.0 - scale.quanta)));
        }
        if lag >= self.full_lag {
            return self.fast_restart(word, lag, tick, now, margin);
        }
        let (mut held, mut since) = (stored, scale.time_of(lag));
        if word.is_whole() {
            if scale.quanta != MILLI || stored < scale.offset {
                return None;
            }
            let passed = (stored - scale.offset) % MILLI;
            let started = Nanos(passed * scale.unit.nanos.0);
            (held, since) = (stored - passed, since.saturating_sub(started));
        }
        held += self.rate.fast_floor(since);
        if stored < scale.offset && lag >= margin.debt_lag {
            return None;
        }
        if held + margin.gain < one {
            return Some(Charge::Denied);
        }
        if held >= full {
            return self.fast_restart(word, lag, tick, now, margin);
        }
        let usual = held >= one && held + margin.gain < full;
        let stamp = scale.stamp_bits(tick);
        let moved = Word(scale.header | stamp | held.wrapping_sub(scale.quanta));
        usual.then_some(Charge::Granted(moved))
    }

    /// Whether W's moment, of a word without a whole token, has come by then in the tick.
    #[inline]
    fn is_past_whole(&self, stored: u64, over: Nanos) -> bool {
        let passed = stored.wrapping_sub(self.scale.offset);
        passed.saturating_mul(self.scale.unit.nanos.0) < (over + self.scale.unit.nanos).0
    }

    /// One token from a bucket that is full, or whose stamp is a little ahead of `now`.
    #[inline(always)]
    fn fast_restart(
        &self,
        word: Word,
        lag: Ticks,
        tick: Ticks,
        now: Nanos,
        margin: &Margin,
    ) -> Option<Charge> {
        let scale = &self.scale;
        if lag > scale.most_lag() {
            // Another thread read its clock after this one read the coarse time: what it left is
            // there now.
            let stored = word.0 & scale.token_mask;
            let (one, full) = (scale.offset + scale.quanta, scale.offset + self.full);
            let is_near = Ticks(scale.stamp_mask) - lag < self.near;
            let usual = !margin.exact && is_near && stored >= one && stored + margin.gain < full;
            return usual.then(|| Charge::Granted(Word(word.0 - scale.quanta)));
        }
        if !margin.exact {
            return None;
        }
        let over = over(scale, now, tick);
        let rest = scale.offset + self.full - scale.quanta;
        let (whole, tick, stored) = match self.is_coarse {
            true => (0, tick, rest - self.rate.fast_floor(over)),
            false => {
                let (tick, passed) = scale.whole_moment(tick, over);
                (WHOLE, tick, rest + passed)
            }
        };
        let stamp = scale.stamp_bits(tick);
        Some(Charge::Granted(Word(whole | scale.header | stamp | stored)))
    }
}
