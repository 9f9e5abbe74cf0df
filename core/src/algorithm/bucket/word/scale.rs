//! How a bucket word splits its bits: see `word.rs`.

use super::MILLI;
use crate::units::{Nanos, Ticks};

/// Token bits and quanta a token of each class; class 0 is not a bucket's (see
/// [`Word::fresh`](super::Word::fresh)).
const CLASSES: [(u32, u64); 8] =
    [(0, 1), (11, 1000), (16, 1000), (22, 1000), (27, 1000), (27, 100), (27, 10), (30, 1)];
/// Bits of stamp and tokens together.
pub(super) const PAYLOAD_BITS: u32 = 56;
const MOST_TICK: u8 = 15;
/// How many ticks, and quanta refilled, a deep bucket's stamp may be behind the last charge.
pub(super) const DEEP_DELAY: u64 = 1000;
pub(super) const YEAR: u128 = 366 * 86_400 * 1_000_000_000;
/// Fills that a stamp must tell apart where it can't tell a year.
pub(super) const FILLS: u128 = 100_000;

/// Division by a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TickLength {
    pub(super) nanos: Nanos,
    /// ⌈2^(64+shift) / nanos⌉ with 2^shift < nanos ≤ 2^(shift+1). Exact for every time below 2^63:
    /// the excess is less than nanos/2^(64+shift) of it (see `rate.rs`). 0 for 1 ns.
    magic: u64,
    shift: u32,
}

impl TickLength {
    pub(super) fn new(nanos: u64) -> TickLength {
        let shift = 63 - nanos.leading_zeros();
        let magic = (1u128 << (64 + shift)).div_ceil(u128::from(nanos)) as u64;
        TickLength { nanos: Nanos(nanos), magic, shift }
    }

    #[inline(always)]
    pub(super) fn divide(&self, time: Nanos) -> u64 {
        if time.0 >> 63 != 0 || self.magic == 0 {
            return time.0 / self.nanos.0;
        }
        self.fast_divide(time)
    }

    /// As `divide`, for a step of more than 1 ns and a time below 2^63.
    #[inline(always)]
    pub(super) fn fast_divide(&self, time: Nanos) -> u64 {
        ((u128::from(time.0) * u128::from(self.magic)) >> 64) as u64 >> self.shift
    }
}

/// How a word splits its bits, as written in its own top byte, unfolded for use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// `class` and `tick`, where the word has them.
    pub(super) header: u64,
    pub(super) token_bits: u32,
    pub(super) token_mask: u64,
    pub(super) stamp_mask: u64,
    /// Quanta of a token.
    pub(super) quanta: u64,
    pub(super) offset: u64,
    pub(super) tick: TickLength,
    /// In what a tick's passed part is counted by a word with W.
    pub(super) unit: TickLength,
    /// How many ticks the last charge may be after the stamp.
    pub(super) delay: Ticks,
}

impl Scale {
    pub(super) fn new(class: u8, tick: u8) -> Scale {
        let (token_bits, quanta) = CLASSES[usize::from(class & 7)];
        let nanos = 10u64.pow(u32::from(tick));
        Scale {
            header: (u64::from(class) << 60) | (u64::from(tick) << 56),
            token_bits,
            token_mask: (1 << token_bits) - 1,
            stamp_mask: (1 << (PAYLOAD_BITS - token_bits)) - 1,
            quanta,
            offset: (1 << token_bits) >> 4,
            tick: TickLength::new(nanos),
            unit: TickLength::new((nanos / quanta).max(1)),
            delay: Ticks(if quanta == MILLI { 1 } else { DEEP_DELAY }),
        }
    }

    /// The tick of a moment.
    #[inline(always)]
    pub(super) fn tick_of(&self, now: Nanos) -> Ticks {
        Ticks(self.tick.divide(now))
    }

    /// How long so many ticks are.
    #[inline(always)]
    pub(super) fn time_of(&self, ticks: Ticks) -> Nanos {
        Nanos(ticks.0 * self.tick.nanos.0)
    }

    /// How many ticks have begun within a time.
    pub(super) fn ticks_ceil(&self, time: Nanos) -> Ticks {
        Ticks(time.0.div_ceil(self.tick.nanos.0))
    }

    /// Whole ticks within a time.
    pub(super) fn ticks_in(&self, time: Nanos) -> Ticks {
        Ticks(time.0 / self.tick.nanos.0)
    }

    /// A stamp that is as many ticks behind is that of a bucket that has filled up since.
    pub(super) fn full_lag(&self, fill: Nanos) -> Ticks {
        self.ticks_ceil(fill) + self.delay + Ticks(1)
    }

    /// How many ticks a stamp is behind, modulo the range of stamps.
    #[inline(always)]
    pub(super) fn lag(&self, stamp: Ticks, tick: Ticks) -> Ticks {
        Ticks(tick.0.wrapping_sub(stamp.0) & self.stamp_mask)
    }

    /// The stamp of a tick, where a word has it.
    #[inline(always)]
    pub(super) fn stamp_bits(&self, tick: Ticks) -> u64 {
        (tick.0 & self.stamp_mask) << self.token_bits
    }

    /// The tick and the units in it of a moment that is `over` into a tick, rounded up.
    #[inline(always)]
    pub(super) fn whole_moment(&self, tick: Ticks, over: Nanos) -> (Ticks, u64) {
        let passed = self.unit.divide(over + self.unit.nanos - Nanos(1));
        if passed < self.quanta { (tick, passed) } else { (tick + Ticks(1), 0) }
    }

    /// The most ticks by which a stamp can be behind.
    pub(super) fn most_lag(&self) -> Ticks {
        Ticks(self.stamp_mask - self.stamp_mask / 4)
    }

    /// The finest tick that tells a year and four fills apart, if it refills less than half the
    /// offset; else the coarsest that refills less, if that tells 100,000 fills apart. `None` where
    /// neither does.
    pub(super) fn fit(max: u64, per: u64, burst: u64) -> Option<Scale> {
        let class = (1u8..8).find(|&class| {
            let scale = Scale::new(class, 0);
            burst * scale.quanta + scale.offset < 1 << scale.token_bits
        })?;
        let refill = |scale: &Scale| {
            let quanta = u128::from(max) * u128::from(scale.quanta);
            u128::from(scale.tick.nanos.0) * quanta / u128::from(per)
        };
        let apart = |scale: &Scale| u128::from(scale.most_lag().0) * u128::from(scale.tick.nanos.0);
        let fill = (u128::from(burst) * u128::from(per)).div_ceil(u128::from(max));
        let fits = |scale: &Scale| 2 * refill(scale) < u128::from(scale.offset);
        let scales = || (0..=MOST_TICK).map(|tick| Scale::new(class, tick));
        let long = scales().find(|scale| apart(scale) >= YEAR + 4 * fill).filter(fits);
        long.or_else(|| scales().rfind(fits).filter(|scale| apart(scale) >= FILLS * fill))
    }
}
