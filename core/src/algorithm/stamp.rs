//! Times in state words other than buckets: microseconds modulo 2^48 (8.9 years).
//!
//! **One rule for every stored time**: a stamp ahead of a clock that was read again is now. Half of
//! the range counts as past and half as ahead, so 4.4 years are told apart either way.
//!
//! **Rounding.** A clock has nanoseconds and a stamp has microseconds, and something has to give:
//!
//! * [`of`] rounds a moment up, and an age is rounded down. A span between two stored moments is
//!   then never shorter than it looks, which is what a window needs, but up to 999 ns longer:
//!   `1/min` would say 60,001 ms.
//! * [`exact`] also says by how many nanoseconds it was rounded up (10 bits more, the *lead*). Then
//!   every age is exact: the span is not shorter by a nanosecond, and not longer. A word that has
//!   those bits to spare keeps them.
//! * [`floor`] rounds a moment down, so the span may be up to 999 ns shorter and is never reported
//!   as longer. That will do for leases, which are no bound on a rate.
//!
//! Nothing less than `exact` does both. Two moments of one microsecond that are stored alike must
//! expire at one time. At the end of the earlier one's span, the later one's is too short. At the
//! end of the later one's span, the earlier one's wait is rounded up a second time.

/// Bits of a stored time.
pub(crate) const BITS: u32 = 48;
pub(crate) const MASK: u64 = (1 << BITS) - 1;
/// Nanoseconds in a microsecond.
pub(crate) const MICRO: u64 = 1000;
/// Bits of an exact one: those above [`BITS`] are its lead.
pub(crate) const EXACT_BITS: u32 = BITS + LEAD_BITS;
const LEAD_BITS: u32 = 10;

/// The stamp of something that happens at `now`, rounded up.
#[inline]
pub(crate) fn of(now: u64) -> u64 {
    now.div_ceil(MICRO) & MASK
}

/// The stamp of something that happens at `now`, with its lead.
#[inline]
pub(crate) fn exact(now: u64) -> u64 {
    let lead = (MICRO - now % MICRO) % MICRO;
    lead << BITS | of(now)
}

/// The stamp of something that happens at `now`, rounded down.
#[inline]
pub(crate) fn floor(now: u64) -> u64 {
    (now / MICRO) & MASK
}

/// How many nanoseconds before its microsecond an exact stamp was made; 0 for the others.
#[inline]
fn lead(stamp: u64) -> u64 {
    (stamp >> BITS) & ((1 << LEAD_BITS) - 1)
}

/// Microseconds since `stamp`, rounded down; negative if it lies in the future.
#[inline]
pub(crate) fn age(stamp: u64, now: u64) -> i64 {
    let then = now / MICRO + (now % MICRO + lead(stamp)) / MICRO;
    let distance = then.wrapping_sub(stamp & MASK) << (64 - BITS);
    (distance as i64) >> (64 - BITS)
}

/// The same for a stamp without a lead, in the low bits of a word.
#[inline]
pub(crate) fn age_in(word: u64, now: u64) -> i64 {
    let distance = (now / MICRO).wrapping_sub(word) << (64 - BITS);
    (distance as i64) >> (64 - BITS)
}

/// Nanoseconds since `stamp`: 0 if it lies in the future.
pub(crate) fn nanos_since(stamp: u64, now: u64) -> u64 {
    let whole = u64::try_from(age(stamp, now)).map(|micros| micros * MICRO);
    whole.map_or(0, |whole| whole + (now % MICRO + lead(stamp)) % MICRO)
}

/// Whether `stamp` is later than anything that happens at `now` could be stamped.
#[inline]
pub(crate) fn is_ahead(stamp: u64, now: u64) -> bool {
    // One without a lead may have been rounded up from now.
    let least = if lead(stamp) == 0 && !now.is_multiple_of(MICRO) { -1 } else { 0 };
    age(stamp, now) < least
}

/// Nanoseconds from `now` until `stamp` is `micros` old: 0 if it is. One that a clock fault left in
/// the future counts as made now.
pub(crate) fn until_age(stamp: u64, micros: u64, now: u64) -> u64 {
    if is_ahead(stamp, now) {
        return micros.saturating_mul(MICRO);
    }
    let left = u64::try_from(micros as i64 - age(stamp, now)).unwrap_or(0);
    left.saturating_mul(MICRO).saturating_sub((now % MICRO + lead(stamp)) % MICRO)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOWS: [u64; 7] = [0, 1, 999, 1000, 1_500_001, (1 << 48) * 1000 - 1, (1 << 58) + 17];

    #[test]
    fn ages_and_waits_agree_to_the_nanosecond() {
        for now in NOWS {
            for stamp in [of(now), exact(now), floor(now)] {
                assert!(!is_ahead(stamp, now) && age(stamp, now) <= 0);
                let wait = until_age(stamp, 60_000_000, now);
                assert_eq!(age(stamp, now + wait), 60_000_000);
                assert_eq!(age(stamp, now + wait - 1), 60_000_000 - 1);
                assert!(is_ahead(of(now + 1001), now) && is_ahead(exact(now + 1001), now));
            }
        }
    }

    #[test]
    fn each_way_of_rounding_keeps_its_promise() {
        for now in NOWS {
            let wait = |stamp| until_age(stamp, 60_000_000, now);
            assert_eq!(wait(exact(now)), 60_000_000_000);
            assert!((60_000_000_000..60_000_001_000).contains(&wait(of(now))));
            assert!((59_999_999_001..=60_000_000_000).contains(&wait(floor(now))));
            assert_eq!(nanos_since(exact(now), now + 1_234), 1_234);
            assert_eq!((nanos_since(exact(now + 1), now), age(exact(now), now)), (0, 0));
        }
    }

    #[test]
    fn the_end_of_all_time_overflows_nothing() {
        for now in [u64::MAX, u64::MAX - 1, u64::MAX - 999, 0, 5] {
            assert!(!is_ahead(exact(now), now) && until_age(exact(now), 5, now) == 5_000);
            for stamp in [of(u64::MAX), exact(u64::MAX - 7), floor(u64::MAX), MASK, u64::MAX, 0] {
                let _ = (age(stamp, now), is_ahead(stamp, now), nanos_since(stamp, now));
                assert!(until_age(stamp, 1_000, now) <= 1_001_000);
            }
        }
    }

    #[test]
    fn first_time_is_the_first() {
        for goal in 0..20 {
            assert_eq!(first_time(19, |t| t >= goal), goal.min(19));
        }
    }
}
