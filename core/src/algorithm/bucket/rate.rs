//! Exact multiplication by a rate: ⌊x·n/d⌋ without a division on the hit path.

use crate::units::Nanos;

/// `n / d` quanta for each nanosecond, in lowest terms.
///
/// Up to the longest time named when the rate was made, `floor` multiplies by a reciprocal that
/// provably never errs in that range. Beyond it, and where there is no such reciprocal, it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    n: u64,
    d: u64,
    /// ⌈2^(64 + down − up) · n/d⌉.
    magic: u64,
    /// How far a time is shifted up before it is multiplied, and the product's high half down
    /// after: one of the two is 0.
    up: u32,
    down: u32,
    /// The longest time that the reciprocal is exact for; `None` if there is no reciprocal.
    longest: Option<Nanos>,
}

impl Rate {
    pub(crate) fn new(n: u64, d: u64, longest: Nanos) -> Rate {
        debug_assert!(n > 0 && d > 0);
        let g = gcd(n, d);
        let (n, d) = (n / g, d / g);
        let found = reciprocal(n, d, longest.0);
        let (magic, shift) = found.unwrap_or((0, 64));
        let (up, down) = (64u32.saturating_sub(shift), shift.saturating_sub(64));
        Rate { n, d, magic, up, down, longest: found.map(|_| longest) }
    }

    /// Whether `fast_floor` is exact up to the longest time.
    pub(crate) fn has_reciprocal(&self) -> bool {
        self.longest.is_some()
    }

    /// As `floor`, for a rate that has a reciprocal and a time no longer than its longest.
    #[inline(always)]
    pub(crate) fn fast_floor(&self, x: Nanos) -> u64 {
        let product = u128::from(x.0 << self.up) * u128::from(self.magic);
        (product >> 64) as u64 >> self.down
    }

    /// ⌊x·n/d⌋: the quanta that a time of `x` refills.
    #[inline]
    pub(crate) fn floor(&self, x: Nanos) -> u64 {
        match self.longest {
            Some(longest) if x <= longest => self.fast_floor(x),
            _ => self.divided(x),
        }
    }

    #[cold]
    fn divided(&self, x: Nanos) -> u64 {
        let product = u128::from(x.0) * u128::from(self.n);
        u64::try_from(product / u128::from(self.d)).unwrap_or(u64::MAX)
    }

    /// ⌈x·n/d⌉.
    pub(crate) fn ceil(&self, x: Nanos) -> u64 {
        let floor = self.floor(x);
        let exact = u128::from(floor) * u128::from(self.d) == u128::from(x.0) * u128::from(self.n);
        floor.saturating_add(u64::from(!exact))
    }

    /// ⌈quanta·d/n⌉: the time after which at least `quanta` were refilled.
    #[inline(always)]
    pub(crate) fn time_ceil(&self, quanta: u64) -> Nanos {
        if let Some(product) = quanta.checked_mul(self.d) {
            return Nanos(product.div_ceil(self.n));
        }
        let product = u128::from(quanta) * u128::from(self.d);
        Nanos(u64::try_from(product.div_ceil(u128::from(self.n))).unwrap_or(u64::MAX))
    }
}

/// A multiplier and shift with ⌊x·magic / 2^shift⌋ = ⌊x·n/d⌋ for all x ≤ longest. The shift is at
/// most 127. It is below 64 only if `longest` has the room.
///
/// With magic = (2^shift·n + e)/d the product overshoots by x·e/(d·2^shift). As x·n/d is at least
/// 1/d below the next whole number, x·e < 2^shift is enough. See Granlund and Montgomery, "Division
/// by invariant integers using multiplication".
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
            shorter in 0u64..3,
        ) {
            let (n, d) = (1000 * max, per_ms * 1_000_000);
            let x = x >> (max % 40);
            // Beyond the longest time that was named, too.
            let rate = Rate::new(n, d, Nanos(x >> shorter));
            let whole = u128::from(x) * u128::from(n) / u128::from(d);
            prop_assume!(whole <= u128::from(u64::MAX));
            prop_assert_eq!(u128::from(rate.floor(Nanos(x))), whole);
            let quanta = whole as u64 % (1 << 40);
            let t = rate.time_ceil(quanta);
            prop_assert!(rate.floor(t) >= quanta);
            prop_assert!(t == Nanos(0) || rate.floor(t - Nanos(1)) < quanta);
        }
    }

    #[test]
    fn usual_rates_need_no_division() {
        for (max, per_s) in [(20, 60), (5_000, 1), (200, 3600), (1_000, 60), (7, 86_400)] {
            let fill = per_s * 1_000_000_000;
            assert!(
                Rate::new(1000 * max, fill, Nanos(2 * fill)).has_reciprocal(),
                "{max}/{per_s}s"
            );
        }
    }
}
