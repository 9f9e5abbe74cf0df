//! Times in state words other than buckets: microseconds modulo 2^48 (8.9 years).
//!
//! A moment is stored rounded up and compared rounded down, so a span between two stored hits is
//! never shorter than it looks.

/// Bits of a stored time.
pub(crate) const BITS: u32 = 48;
pub(crate) const MASK: u64 = (1 << BITS) - 1;
/// Nanoseconds in a microsecond.
pub(crate) const MICRO: u64 = 1000;

/// The stamp of something that happens at `now`.
#[inline]
pub(crate) fn of(now: u64) -> u64 {
    now.div_ceil(MICRO) & MASK
}

/// Microseconds since `stamp`; negative if it lies in the future.
#[inline]
pub(crate) fn age(stamp: u64, now: u64) -> i64 {
    let distance = (now / MICRO).wrapping_sub(stamp) << (64 - BITS);
    (distance as i64) >> (64 - BITS)
}

/// Whether `stamp` is later than anything that happens at `now` could be stamped.
#[inline]
pub(crate) fn is_ahead(stamp: u64, now: u64) -> bool {
    age(stamp, now) < -1 || (age(stamp, now) == -1 && now.is_multiple_of(MICRO))
}

/// Nanoseconds from `now` until `stamp` is `micros` old: 0 if it is. One that a clock fault left in
/// the future counts as made now.
pub(crate) fn until_age(stamp: u64, micros: u64, now: u64) -> u64 {
    let left = micros as i64 - age(stamp, now).max(-1);
    if left <= 0 { 0 } else { (left as u64).saturating_mul(MICRO) - now % MICRO }
}

/// The smallest `t` in `0..=most` that satisfies `done`, which once true stays true.
pub(crate) fn first_time(most: u64, done: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if done(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Microseconds since `stamp`, or none where it is ahead of the clock. The last quarter of the range
/// counts as ahead, so that silences of up to 6.7 years are told apart.
pub(crate) fn since(stamp: u64, now: u64) -> Option<u64> {
    let distance = (now / MICRO).wrapping_sub(stamp) & MASK;
    (distance < 3 << (BITS - 2)).then_some(distance)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ages_and_waits_agree_to_the_nanosecond() {
        for now in [0, 1, 999, 1000, 1_500_001, (1 << 48) * 1000 - 1, (1 << 58) + 17] {
            let stamp = of(now);
            assert!(!is_ahead(stamp, now) && age(stamp, now) <= 0);
            let wait = until_age(stamp, 60_000_000, now);
            assert_eq!(age(stamp, now + wait), 60_000_000);
            assert_eq!(age(stamp, now + wait - 1), 60_000_000 - 1);
            assert!(is_ahead(of(now + 1001), now));
        }
    }

    #[test]
    fn first_time_is_the_first() {
        for goal in 0..20 {
            assert_eq!(first_time(19, |t| t >= goal), goal.min(19));
        }
    }

    #[test]
    fn a_stamp_is_ahead_in_the_last_quarter_of_the_range() {
        let range = 1 << BITS;
        for start in [0, 1, 77, MASK] {
            let at = |micros: u64| since(start, start.wrapping_add(micros).wrapping_mul(MICRO));
            assert_eq!(
                (at(0), at(5), at(range / 4 * 3 - 1)),
                (Some(0), Some(5), Some(range / 4 * 3 - 1))
            );
            assert_eq!((at(range / 4 * 3), at(range - 1), at(range)), (None, None, Some(0)));
        }
    }
}
