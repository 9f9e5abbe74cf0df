//! Exact multiplication by a rate: ⌊x·n/d⌋ without a division on the hit path.

/// `n / d` thousandths of a token for each nanosecond, in lowest terms.
///
/// `floor` is exact for every `x` up to the longest one named when the rate was made: either a
/// reciprocal was found that provably never errs in that range, or it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    n: u64,
    d: u64,
    /// ⌈2^(64 + down − up) · n/d⌉, or 0 where no reciprocal is exact up to `longest`.
    magic: u64,
    /// How far a time is shifted up before it is multiplied, and the product's high half down after:
    /// one of the two is 0.
    up: u32,
    down: u32,
}

impl Rate {
    pub(crate) fn new(n: u64, d: u64, longest: u64) -> Rate {
        debug_assert!(n > 0 && d > 0);
        let g = gcd(n, d);
        let (n, d) = (n / g, d / g);
        let (magic, shift) = reciprocal(n, d, longest).unwrap_or((0, 64));
        Rate { n, d, magic, up: 64u32.saturating_sub(shift), down: shift.saturating_sub(64) }
    }

    /// Whether `floor` needs no division.
    pub(crate) fn is_quick(&self) -> bool {
        self.magic != 0
    }

    /// As `floor`, for a rate that [is quick](Rate::is_quick).
    #[inline(always)]
    pub(crate) fn floor_quickly(&self, x: u64) -> u64 {
        let product = u128::from(x << self.up) * u128::from(self.magic);
        (product >> 64) as u64 >> self.down
    }

    /// ⌊x·n/d⌋: what `x` nanoseconds refill.
    pub(crate) fn floor(&self, x: u64) -> u64 {
        match self.is_quick() {
            true => self.floor_quickly(x),
            false => (u128::from(x) * u128::from(self.n) / u128::from(self.d)) as u64,
        }
    }

    /// ⌈x·n/d⌉.
    pub(crate) fn ceil(&self, x: u64) -> u64 {
        let floor = self.floor(x);
        let exact = u128::from(floor) * u128::from(self.d) == u128::from(x) * u128::from(self.n);
        floor + u64::from(!exact)
    }

    /// ⌊2^bits · d/n⌋, if that fits.
    pub(crate) fn pace(&self, bits: u32) -> Option<u64> {
        u64::try_from((u128::from(self.d) << bits) / u128::from(self.n)).ok()
    }

    /// The smallest number of `step`s of nanoseconds that refill a whole number of thousandths.
    pub(crate) fn period(&self, step: u64) -> u64 {
        self.d / gcd(self.d, ((u128::from(step) * u128::from(self.n)) % u128::from(self.d)) as u64)
    }

    /// ⌈milli·d/n⌉: the nanoseconds after which at least `milli` were refilled.
    #[inline(always)]
    pub(crate) fn time_ceil(&self, milli: u64) -> u64 {
        if let Some(product) = milli.checked_mul(self.d) {
            return product.div_ceil(self.n);
        }
        let product = u128::from(milli) * u128::from(self.d);
        u64::try_from(product.div_ceil(u128::from(self.n))).unwrap_or(u64::MAX)
    }

    /// ⌊milli·d/n⌋: the last nanosecond at which no more than `milli` were refilled.
    pub(crate) fn time_floor(&self, milli: u64) -> u64 {
        let product = u128::from(milli) * u128::from(self.d);
        u64::try_from(product / u128::from(self.n)).unwrap_or(u64::MAX)
    }
}

/// A multiplier and shift (up to 127; below 64 only if `longest` has the room) with ⌊x·magic / 2^shift⌋ = ⌊x·n/d⌋ for all x ≤ longest.
///
/// With magic = (2^shift·n + e)/d the product overshoots by x·e/(d·2^shift); as x·n/d is at least
/// 1/d below the next whole number, x·e < 2^shift is enough (Granlund and Montgomery, "Division by
/// invariant integers using multiplication").
fn reciprocal(n: u64, d: u64, longest: u64) -> Option<(u64, u32)> {
    let most = 127 - (64 - n.leading_zeros());
    let wide = |shift: u32| (u128::from(n) << shift).div_ceil(u128::from(d));
    let shift = (0..=most).rev().find(|&s| wide(s) <= u128::from(u64::MAX))?;
    let magic = wide(shift);
    let error = magic * u128::from(d) - (u128::from(n) << shift);
    let exact = error.checked_mul(u128::from(longest))? < 1u128 << shift;
    let room = shift >= 64 || (shift > 0 && longest < 1 << shift);
    (exact && room).then_some((magic as u64, shift))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_and_its_inverse_are_exact(
            max in 1u64..=1_000_000_000,
            per_ms in 1u64..=366 * 86_400_000,
            x in 0u64..1 << 55,
        ) {
            let (n, d) = (1000 * max, per_ms * 1_000_000);
            let x = x >> (max % 40);
            let rate = Rate::new(n, d, x);
            let whole = u128::from(x) * u128::from(n) / u128::from(d);
            prop_assert_eq!(u128::from(rate.floor(x)), whole);
            let milli = whole as u64 % (1 << 40);
            let t = rate.time_ceil(milli);
            prop_assert!(rate.floor(t) >= milli);
            prop_assert!(t == 0 || rate.floor(t - 1) < milli);
            let u = rate.time_floor(milli);
            prop_assert!(rate.ceil(u) <= milli && rate.ceil(u + 1) > milli);
        }
    }

    #[test]
    fn usual_rates_need_no_division() {
        for (max, per_s) in [(20, 60), (5_000, 1), (200, 3600), (1_000, 60), (7, 86_400)] {
            let fill = per_s * 1_000_000_000;
            assert!(Rate::new(1000 * max, fill, 2 * fill).magic != 0, "{max}/{per_s}s");
        }
    }
}
