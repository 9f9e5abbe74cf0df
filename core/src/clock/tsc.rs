//! The processor's time stamp counter, tied to the kernel's clock.
//!
//! `clock_gettime` costs two to three times what the counter itself does. Where the kernel runs on
//! the counter too, the counter is invariant and the same on all cores. There time is extrapolated
//! from an *anchor*: a pair of counter and kernel time, at most [`SPAN`] old and read within
//! [`TIGHT`]. It strays from the kernel's time by a microsecond or so. Half of that comes from
//! reading the pair, the rest from slewing and an early guess of the pace. The anchor is a sequence
//! lock whose readers never wait: a reader that meets a writer asks the kernel.
//!
//! Reading the counter takes 10 ns and more. On some processors it waits for all that comes before,
//! and all that comes after waits for it. A hit for which an older time will do reads the time of
//! the kernel's last tick instead, a number in memory. As long as that is the anchor's tick, the
//! anchor is not older than a tick. The tick also changes when the host goes to sleep. It may stand
//! still for longer where a virtual machine was stopped, until its next tick. So it may where the
//! processor that keeps the time gets no time itself.
//!
//! The coarse time costs instructions: an `allow` takes 262 with it and 217 without. It saves the
//! wait for the counter. So an `allow` of one hot key takes 0.82 times as long with it, and of one
//! of 10,000 keys 0.86 (AMD EPYC).

use std::sync::atomic::fence;

use crossbeam_utils::CachePadded;

use super::kernel_now;
use crate::once::Once;
use crate::sync::{Ordering, PlainU64};

/// How long an anchor serves, in nanoseconds: less than any kernel's tick, so that one is set soon
/// after each, and serves as coarse time.
const SPAN: u64 = 500_000;
/// How long the first two anchors are apart: the kernel is asked until then.
const BASELINE: u64 = 20_000_000;
/// A pair read across more counts than this was interrupted.
const TIGHT: u64 = 3_000;
/// An anchor that is off by more than this from what the last one foretold shows that the
/// counter can't be trusted.
const ASTRAY: u64 = 50_000;

/// Odd while written; 0 before the first anchor.
static ANCHOR: CachePadded<Anchor> = CachePadded::new(Anchor {
    sequence: PlainU64::new(0),
    counter: PlainU64::new(0),
    nanos: PlainU64::new(0),
    scale: PlainU64::new(0),
    span: PlainU64::new(0),
    tick: PlainU64::new(0),
});

/// The counter and the kernel's time at the first call, for measuring the counter's pace;
/// `None` where the kernel does not run on it.
static FIRST: Once<Option<(u64, u64)>> = Once::new();

fn find_first() -> Option<(u64, u64)> {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let name = std::fs::read_to_string(source).ok()?;
    // The first attempt is slow: its code is not in the cache yet.
    (0..16).filter(|_| name.trim() == "tsc").find_map(|_| pair())
}

struct Anchor {
    sequence: PlainU64,
    counter: PlainU64,
    nanos: PlainU64,
    /// Nanoseconds for each count, times 2^32. 0: don't use the counter (any more).
    scale: PlainU64,
    /// How many counts the anchor serves; 0 as well then.
    span: PlainU64,
    /// The kernel's tick then. 0 as long as there is no coarse time.
    tick: PlainU64,
}

/// The time of the kernel's last tick, by a clock of its own. Never 0: that is when it was booted.
#[inline(always)]
fn tick() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    (time.tv_sec as u64) << 30 | time.tv_nsec as u64
}

/// The anchor's time, if it is of this tick.
#[inline(always)]
pub(super) fn coarse_now() -> Option<u64> {
    // ORDERING: Relaxed; without an anchor the tick is not asked for, which is no number in memory
    // everywhere.
    if ANCHOR.tick.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let tick = tick();
    // ORDERING: Acquire, with the Release in `publish`: the time is of this tick's anchor, or of a
    // later one, which has passed as well.
    let of = ANCHOR.tick.load(Ordering::Acquire);
    (of == tick).then(|| ANCHOR.nanos.load(Ordering::Relaxed))
}

#[inline]
fn counter() -> u64 {
    // SAFETY: every x86_64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[inline(always)]
pub(super) fn now() -> u64 {
    // ORDERING: Acquire, with the Release in `publish`; the fields are read after it.
    let before = ANCHOR.sequence.load(Ordering::Acquire);
    // ORDERING: Relaxed; torn reads are found out by the second look at the sequence.
    let (start, nanos, scale, span) = (
        ANCHOR.counter.load(Ordering::Relaxed),
        ANCHOR.nanos.load(Ordering::Relaxed),
        ANCHOR.scale.load(Ordering::Relaxed),
        ANCHOR.span.load(Ordering::Relaxed),
    );
    fence(Ordering::Acquire);
    // ORDERING: Relaxed; the fence above keeps it behind the fields.
    let after = ANCHOR.sequence.load(Ordering::Relaxed);
    // An odd sequence never equals the even one below it.
    if before & !1 != after {
        return renew(before, start, nanos, scale);
    }
    // Within the span the product is less than 2^52, and the way from the counter to the time is
    // what a hit waits for.
    let counts = counter().wrapping_sub(start);
    if counts < span {
        return nanos + (counts.wrapping_mul(scale) >> 32);
    }
    renew(before, start, nanos, scale)
}

/// Asks the kernel, and sets a new anchor if no other thread does.
#[cold]
fn renew(sequence: u64, start: u64, nanos: u64, scale: u64) -> u64 {
    let Some((first_counter, first_nanos)) = *FIRST.get_or_make(find_first) else {
        return kernel_now();
    };
    let gone_wrong = sequence != 0 && sequence & 1 == 0 && scale == 0;
    // Before the pair: if the next tick comes in between, the anchor is no coarse time.
    let tick = tick();
    let Some((counter, now)) = pair().filter(|_| !gone_wrong && sequence & 1 == 0) else {
        return kernel_now();
    };
    if now.saturating_sub(first_nanos) < BASELINE {
        return now;
    }
    let passed = (u128::from(counter.wrapping_sub(start)) * u128::from(scale)) >> 32;
    let recent = sequence != 0 && passed < 100 * u128::from(SPAN);
    let pace = ((u128::from(now - first_nanos) << 32)
        / u128::from(counter.wrapping_sub(first_counter).max(1))) as u64;
    // A counter that jumped or changed its pace is not one that the kernel can run on.
    let straight = !recent || (nanos + passed as u64).abs_diff(now) < ASTRAY;
    let steady = sequence == 0 || pace.abs_diff(scale) <= scale / 100;
    let scale = if straight && steady { pace } else { 0 };
    publish(sequence, counter, now, scale, tick);
    now
}

fn publish(sequence: u64, counter: u64, nanos: u64, scale: u64, tick: u64) {
    // ORDERING: Acquire on success keeps the stores below behind it; the loser leaves.
    let won = ANCHOR.sequence.compare_exchange(
        sequence,
        sequence + 1,
        Ordering::Acquire,
        Ordering::Relaxed,
    );
    if won.is_err() {
        return;
    }
    // ORDERING: Release, so that no reader sees a field before the odd sequence.
    fence(Ordering::Release);
    ANCHOR.counter.store(counter, Ordering::Relaxed);
    ANCHOR.nanos.store(nanos, Ordering::Relaxed);
    ANCHOR.scale.store(scale, Ordering::Relaxed);
    // ORDERING: Release, see `coarse_now`.
    ANCHOR.tick.store(if scale == 0 { 0 } else { tick }, Ordering::Release);
    ANCHOR.span.store((SPAN << 32).checked_div(scale).unwrap_or(0), Ordering::Relaxed);
    // ORDERING: Release, with the Acquire in `now`.
    ANCHOR.sequence.store(sequence + 2, Ordering::Release);
}

/// The counter and the kernel's time at (nearly) one moment.
fn pair() -> Option<(u64, u64)> {
    let before = counter();
    let now = kernel_now();
    let width = counter().wrapping_sub(before);
    (width < TIGHT).then_some((before + width / 2, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::system_now;

    #[test]
    fn coarse_time_has_passed_not_long_ago() {
        let (mut readings, started) = (0, kernel_now());
        let gone = || kernel_now() - started;
        // On a busy machine the thread may not run for most of that time.
        while gone() < 60_000_000 || readings == 0 && gone() < 20_000_000_000 {
            let low = kernel_now();
            let passed = coarse_now();
            let (here, high) = (system_now(), kernel_now());
            if let Some(passed) = passed {
                assert!(passed < here + 2_000 && passed < high, "{passed} is ahead of {here}");
                assert!(
                    passed + crate::clock::COARSE_MAX_AGE > low,
                    "{passed} is far behind {low}"
                );
                readings += 1;
            }
        }
        assert!(readings > 0 || FIRST.get_or_make(find_first).is_none());
    }

    #[test]
    fn keeps_to_the_kernels_clock_on_all_threads() {
        let check = || {
            let started = kernel_now();
            let mut last = 0;
            while kernel_now() - started < 60_000_000 {
                let (low, here, high) = (kernel_now(), system_now(), kernel_now());
                assert!(here + 2_000 > low, "{here} is behind {low}");
                assert!(here < high + 2_000, "{here} is ahead of {high}");
                assert!(here + 2_000 > last, "{here} after {last}");
                last = here;
            }
        };
        std::thread::scope(|s| (0..2).for_each(|_| drop(s.spawn(check))));
    }
}
