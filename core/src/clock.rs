//! Where time comes from. Nothing below the engine reads a clock on its own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::sync::{Ordering, PlainU64};

/// The clock of an engine: the host's monotonic time, or one that a test moves by hand.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// Monotonic time in nanoseconds since the process first asked; time asleep counts too on Linux.
    #[default]
    System,
    /// Time that only moves when told to.
    Manual(Arc<ManualClock>),
    /// Time that all processes which map a file agree on.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    Shared(crate::storage::file::SharedClock),
}

impl Clock {
    /// A clock at `nanos` that moves by hand, and the handle to move it with.
    ///
    /// ```
    /// use std::time::Duration;
    /// let (clock, hand) = tidegate_core::Clock::manual(0);
    /// hand.advance(Duration::from_secs(3));
    /// assert_eq!(clock.now(), 3_000_000_000);
    /// ```
    pub fn manual(nanos: u64) -> (Clock, Arc<ManualClock>) {
        let hand = Arc::new(ManualClock::at(nanos));
        (Clock::Manual(hand.clone()), hand)
    }

    /// The wall clock: time since the start of 1970, UTC. Only for what people date by it, such as
    /// the end of a day; it may jump.
    pub fn wall(&self) -> Duration {
        match self {
            Clock::Manual(hand) => hand.wall(),
            _ => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
        }
    }

    /// The wall clock, read after everything this thread has seen so far: as [`Time::doubt`].
    #[cold]
    pub fn wall_after_all(&self) -> Duration {
        // ORDERING: SeqCst, so that the clock is not read before the note that raised the doubt.
        std::sync::atomic::fence(Ordering::SeqCst);
        self.wall()
    }

    /// How many nanoseconds it is ahead of [`Clock::System`]; none for one that is moved by hand.
    ///
    /// ```
    /// assert_eq!(tidegate_core::Clock::System.ahead(), Some(0));
    /// ```
    pub fn ahead(&self) -> Option<u64> {
        match self {
            Clock::System => Some(0),
            Clock::Manual(_) => None,
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Clock::Shared(clock) => Some(clock.ahead()),
        }
    }

    /// Nanoseconds now.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self {
            Clock::System => system_now(),
            _ => self.now_elsewhere(),
        }
    }

    #[inline(never)]
    fn now_elsewhere(&self) -> u64 {
        match self {
            Clock::System => system_now(),
            Clock::Manual(hand) => hand.now(),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Clock::Shared(clock) => clock.now(),
        }
    }

    /// A moment that has passed, no more than [`LAG`] ago; none if there is none at hand. This takes half
    /// the time of reading the clock, and keeps nothing else waiting.
    #[inline(always)]
    pub(crate) fn glance(&self) -> Option<u64> {
        if let Clock::Manual(hand) = self {
            return hand.glance();
        }
        let passed = system_glance()?;
        match self {
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Clock::Shared(clock) => clock.glance(passed),
            _ => Some(passed),
        }
    }

    /// Now, read again by the kernel's own clock and after everything this thread has seen so far:
    /// for telling a clock fault from a race with a thread that is a little ahead.
    #[cold]
    fn now_after_all(&self) -> u64 {
        // ORDERING: SeqCst, so that the clock is not read before the word that raised the doubt.
        std::sync::atomic::fence(Ordering::SeqCst);
        match self {
            Clock::System => kernel_now().max(system_now()),
            Clock::Manual(hand) => hand.now(),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Clock::Shared(clock) => clock.now_after_all(),
        }
    }
}

/// A clock that stands still until it is moved; forward, or back to see what a fault does.
///
/// Its wall time moves along, and can be set on its own.
#[derive(Debug)]
pub struct ManualClock {
    nanos: PlainU64,
    /// What the wall clock is ahead of `nanos`, modulo 2^64.
    wall_lead: PlainU64,
    /// How far behind a glance is, or [`NO_GLANCE`].
    lag: PlainU64,
}

/// The lag of a clock at which there is nothing to glance at.
const NO_GLANCE: u64 = u64::MAX;

impl ManualClock {
    /// A clock at `nanos`, with a wall time of 0.
    fn at(nanos: u64) -> ManualClock {
        let wall_lead = PlainU64::new(0u64.wrapping_sub(nanos));
        ManualClock { nanos: PlainU64::new(nanos), wall_lead, lag: PlainU64::new(NO_GLANCE) }
    }

    /// Time since the start of 1970, as this clock has it; 0 if that lies before.
    pub fn wall(&self) -> Duration {
        // ORDERING: Acquire, as in `now`.
        let wall = self.now().wrapping_add(self.wall_lead.load(Ordering::Acquire));
        Duration::from_nanos(if (wall as i64) < 0 { 0 } else { wall })
    }

    /// Sets the wall time, and leaves the clock itself alone.
    pub fn set_wall(&self, unix: Duration) {
        let lead = (unix.as_nanos() as u64).wrapping_sub(self.now());
        // ORDERING: Release, see `now`.
        self.wall_lead.store(lead, Ordering::Release);
    }

    /// Nanoseconds now.
    pub fn now(&self) -> u64 {
        // ORDERING: Acquire, with the Release in `set`: who sees the new time sees what was done before.
        self.nanos.load(Ordering::Acquire)
    }

    /// From now on, hits that a glance is enough for see this clock behind by `lag`, a second at most: for
    /// tests of what that changes, which is nothing.
    #[doc(hidden)]
    pub fn set_lag(&self, lag: Duration) {
        // ORDERING: Release, see `now`.
        self.lag.store((lag.as_nanos() as u64).min(LAG), Ordering::Release);
    }

    fn glance(&self) -> Option<u64> {
        // ORDERING: Acquire, as in `now`.
        let lag = self.lag.load(Ordering::Acquire);
        (lag != NO_GLANCE).then(|| self.now().saturating_sub(lag))
    }

    /// Moves on by `step`.
    pub fn advance(&self, step: Duration) {
        let later = |now: u64| Some(now.saturating_add(step.as_nanos() as u64));
        // ORDERING: Release and Acquire, see `now`.
        let _ = self.nanos.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    /// Jumps to `nanos`, back too.
    pub fn set(&self, nanos: u64) {
        // ORDERING: Release, see `now`.
        self.nanos.store(nanos, Ordering::Release);
    }
}

/// The moment of one operation: read once, and again whenever a word seems to be ahead of it.
///
/// ```
/// let (clock, hand) = tidegate_core::Clock::manual(5);
/// let time = tidegate_core::Time::read(&clock);
/// hand.set(9);
/// assert_eq!(time.now(), 5);
/// ```
#[derive(Debug)]
pub struct Time<'c> {
    clock: &'c Clock,
    now: u64,
}

impl<'c> Time<'c> {
    /// Reads the clock.
    #[inline]
    pub fn read(clock: &'c Clock) -> Time<'c> {
        Time { clock, now: clock.now() }
    }

    /// A moment that was read before.
    pub(crate) fn at(clock: &'c Clock, now: u64) -> Time<'c> {
        Time { clock, now }
    }

    /// Nanoseconds.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Reads the clock again, for a state that was found as new: it may have become so after the clock
    /// was read, and what is charged to it must not lie before that.
    pub(crate) fn refresh(&mut self) {
        // ORDERING: SeqCst, as in `now_after_all`.
        std::sync::atomic::fence(Ordering::SeqCst);
        self.now = self.clock.now();
    }

    /// Reads the clock again. Only a word that was loaded *before* this, and is still ahead after it,
    /// shows a clock fault and may be mended; any other may just be newer than the reading.
    ///
    /// ```
    /// let (clock, hand) = tidegate_core::Clock::manual(5);
    /// let mut time = tidegate_core::Time::read(&clock);
    /// hand.set(9);
    /// time.doubt();
    /// assert_eq!(time.now(), 9);
    /// ```
    #[cold]
    pub fn doubt(&mut self) {
        self.now = self.clock.now_after_all();
    }
}

/// How old a glance may be: a second, far more than the few milliseconds between two ticks of a kernel.
/// (Were it older, a hit would be judged as if it had come that much earlier.)
pub(crate) const LAG: u64 = 1_000_000_000;

/// The clock starts here and not at 0, so that a stamp of 0 is always in the past.
const ORIGIN: u64 = 1_000_000_000;

/// Time since the process first asked: small numbers, so that the stamps of fast limits, which wrap
/// soonest, have their whole range before them.
#[cfg(target_os = "linux")]
pub(crate) fn kernel_now() -> u64 {
    ORIGIN + since_boot().saturating_sub(start())
}

#[cfg(not(target_os = "linux"))]
fn kernel_now() -> u64 {
    static START: crate::Once<std::time::Instant> = crate::Once::new();
    ORIGIN + START.get_or_make(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// When this process first asked.
#[cfg(target_os = "linux")]
fn start() -> u64 {
    /// 0 before that.
    static START: PlainU64 = PlainU64::new(0);
    // ORDERING: Relaxed, here and below; the number is all that there is. The first one stays. Not
    // `LazyLock`: a forked child would wait for a thread that it does not have.
    match START.load(Ordering::Relaxed) {
        0 => {
            let now = since_boot().max(1);
            let first = START.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            first.err().unwrap_or(now)
        }
        start => start,
    }
}

/// Time since the host was booted, the same for all its processes.
#[cfg(target_os = "linux")]
fn since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the host's time is ahead of this process's.
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) fn host_lead() -> u64 {
    start()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(loom)))]
#[inline(always)]
pub(crate) fn system_now() -> u64 {
    tsc::now()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(loom)))]
use tsc::glance as system_glance;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(loom))))]
fn system_glance() -> Option<u64> {
    None
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(loom))))]
pub(crate) fn system_now() -> u64 {
    kernel_now()
}

/// The processor's time stamp counter, tied to the kernel's clock.
///
/// `clock_gettime` costs two to three times what the counter itself does. Where the kernel runs on
/// the counter too (so it is invariant and the same on all cores), time is extrapolated from an
/// *anchor*, a pair of counter and kernel time that is at most [`SPAN`] old and was read within
/// [`TIGHT`], so it strays from the kernel's by a microsecond or so: half of one for reading the pair,
/// and what slewing and an early guess of the pace can do in a millisecond. The anchor is a sequence lock whose readers never wait: who meets a writer asks the kernel.
///
/// Reading the counter takes 10 ns and more, and on some processors all that comes before is waited for,
/// and all that comes after waits. Who can do with less glances at the kernel's tick instead, a number
/// in memory: as long as it is that of the anchor, the anchor is not older than a tick. It changes when
/// the host goes to sleep, too. It may stand still for longer where a virtual machine was stopped, until its
/// next tick, and where the processor that keeps the time gets no time itself.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(loom)))]
mod tsc {
    use super::{Ordering, PlainU64, kernel_now};
    use crate::Once;
    use crossbeam_utils::CachePadded;
    use std::sync::atomic::fence;

    /// How long an anchor serves, in nanoseconds: less than any kernel's tick, so that one is set soon after
    /// each, and glances find it.
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
        /// The kernel's tick then. 0 as long as there is nothing to glance at.
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
    pub(super) fn glance() -> Option<u64> {
        // ORDERING: Relaxed; without an anchor the tick is not asked for, which is no number in memory everywhere.
        if ANCHOR.tick.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let tick = tick();
        // ORDERING: Acquire, with the Release in `publish`: the time is of this tick's anchor, or of a later
        // one, which has passed as well.
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
        // Within the span the product is less than 2^52, and the way from the counter to the time is what
        // a hit waits for.
        let counts = counter().wrapping_sub(start);
        if counts < span {
            return nanos + (counts.wrapping_mul(scale) >> 32);
        }
        renew(before, start, nanos, scale)
    }

    /// Asks the kernel, and sets a new anchor if nobody else is at it.
    #[cold]
    fn renew(sequence: u64, start: u64, nanos: u64, scale: u64) -> u64 {
        let Some((first_counter, first_nanos)) = *FIRST.get_or_make(find_first) else {
            return kernel_now();
        };
        let gone_wrong = sequence != 0 && sequence & 1 == 0 && scale == 0;
        // Before the pair: if the next tick comes in between, the anchor serves no glance.
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
        // ORDERING: Acquire on success keeps the stores below behind it; who loses leaves.
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
        // ORDERING: Release, see `glance`.
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
        fn a_glance_is_at_a_moment_that_has_passed_not_long_ago() {
            let (mut glances, started) = (0, kernel_now());
            while kernel_now() - started < 60_000_000 {
                let low = kernel_now();
                let passed = glance();
                let (here, high) = (system_now(), kernel_now());
                if let Some(passed) = passed {
                    assert!(passed < here + 2_000 && passed < high, "{passed} is ahead of {here}");
                    assert!(passed + crate::clock::LAG > low, "{passed} is far behind {low}");
                    glances += 1;
                }
            }
            assert!(glances > 0 || FIRST.get_or_make(find_first).is_none());
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
}
