//! Where time comes from. Nothing below the engine reads a clock on its own.

#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod shared;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(loom)))]
mod tsc;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::sync::{Ordering, PlainU64};

/// The clock of an engine: the host's monotonic time, or one that a test moves by hand.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Clock {
    /// Monotonic time in nanoseconds since the process first asked; time asleep counts too on
    /// Linux.
    #[default]
    System,
    /// Time that only moves when told to.
    Manual(Arc<ManualClock>),
    /// Time that all processes which map a file agree on.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    Shared(shared::SharedClock),
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

    /// The wall clock, read after everything this thread has seen so far: as
    /// [`Time::recheck_clock`].
    #[cold]
    pub fn wall_after_all(&self) -> Duration {
        // ORDERING: SeqCst, so that the clock is not read before the note that asked for it.
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

    /// A moment that has passed, no more than [`COARSE_MAX_AGE`] ago; none if there is none at
    /// hand. This takes half the time of reading the clock, and keeps nothing else waiting.
    #[inline(always)]
    pub(crate) fn coarse_now(&self) -> Option<u64> {
        if let Clock::Manual(hand) = self {
            return hand.coarse_now();
        }
        let passed = system_coarse_now()?;
        match self {
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Clock::Shared(clock) => clock.coarse_now(passed),
            _ => Some(passed),
        }
    }

    /// Now, read again by the kernel's own clock and after everything this thread has seen so far:
    /// for telling a clock fault from a race with a thread that is a little ahead.
    #[cold]
    fn now_after_all(&self) -> u64 {
        // ORDERING: SeqCst, so that the clock is not read before the word that asked for it.
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
    /// How far the coarse time is behind, or [`NO_COARSE_TIME`].
    lag: PlainU64,
}

/// The lag of a clock that has no coarse time.
const NO_COARSE_TIME: u64 = u64::MAX;

impl ManualClock {
    /// A clock at `nanos`, with a wall time of 0.
    fn at(nanos: u64) -> ManualClock {
        let wall_lead = PlainU64::new(0u64.wrapping_sub(nanos));
        ManualClock { nanos: PlainU64::new(nanos), wall_lead, lag: PlainU64::new(NO_COARSE_TIME) }
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
        // ORDERING: Acquire, with the Release in `set`: a thread that sees the new time sees what
        // was done before.
        self.nanos.load(Ordering::Acquire)
    }

    /// From now on, hits that the coarse time is enough for see this clock behind by `lag`, a
    /// second at most: for tests of what that changes, which is nothing.
    #[doc(hidden)]
    pub fn set_lag(&self, lag: Duration) {
        // ORDERING: Release, see `now`.
        self.lag.store((lag.as_nanos() as u64).min(COARSE_MAX_AGE), Ordering::Release);
    }

    fn coarse_now(&self) -> Option<u64> {
        // ORDERING: Acquire, as in `now`.
        let lag = self.lag.load(Ordering::Acquire);
        (lag != NO_COARSE_TIME).then(|| self.now().saturating_sub(lag))
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

    /// Reads the clock again, for a state that was found as new: it may have become so after the
    /// clock was read, and what is charged to it must not lie before that.
    pub(crate) fn refresh(&mut self) {
        // ORDERING: SeqCst, as in `now_after_all`.
        std::sync::atomic::fence(Ordering::SeqCst);
        self.now = self.clock.now();
    }

    /// Reads the clock again. Only a word that was loaded *before* this, and is still ahead after
    /// it, shows a clock fault and may be repaired; any other may just be newer than the reading.
    ///
    /// ```
    /// let (clock, hand) = tidegate_core::Clock::manual(5);
    /// let mut time = tidegate_core::Time::read(&clock);
    /// hand.set(9);
    /// time.recheck_clock();
    /// assert_eq!(time.now(), 9);
    /// ```
    #[cold]
    pub fn recheck_clock(&mut self) {
        self.now = self.clock.now_after_all();
    }
}

/// How old the coarse time may be: a second, far more than the few milliseconds between two ticks
/// of a kernel. (Were it older, a hit would be judged as if it had come that much earlier.)
pub(crate) const COARSE_MAX_AGE: u64 = 1_000_000_000;

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
    static START: crate::once::Once<std::time::Instant> = crate::once::Once::new();
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
use tsc::coarse_now as system_coarse_now;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(loom))))]
fn system_coarse_now() -> Option<u64> {
    None
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(loom))))]
pub(crate) fn system_now() -> u64 {
    kernel_now()
}
