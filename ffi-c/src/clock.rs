//! A clock that is moved by hand.

use std::mem::MaybeUninit;
use std::time::Duration;

use policy::ManualClock;

use crate::boundary::{free, given, guard};
use crate::memory::lasting;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// A clock that is moved by hand, for tests that don't wait. Its wall time moves along.
///
/// Threads may share it. Limiters that go by it keep it alive: it may be freed before them.
pub struct tg_manual_clock {
    pub(crate) clock: ManualClock,
}

/// Some 146 years, so that no clock runs over.
const MOST_MS: u64 = (i64::MAX / 2_000_000) as u64;

fn time(ms: u64, name: &str) -> Result<Duration, Failure> {
    match ms <= MOST_MS {
        true => Ok(Duration::from_millis(ms)),
        false => {
            Err(Failure::new(TG_STATUS_RANGE, format!("`{name}` is at most {MOST_MS}, not {ms}")))
        }
    }
}

/// A clock that shows `start_ms`, with a wall time of `wall_ms` since the start of 1970.
/// Writes it to `out`; free it with `tg_manual_clock_free`.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_new(
    start_ms: u64,
    wall_ms: u64,
    out: Option<&mut MaybeUninit<*mut tg_manual_clock>>,
) -> tg_status {
    guard(|| {
        let out = given(out, "out")?;
        let clock = ManualClock::new(time(start_ms, "start_ms")?, time(wall_ms, "wall_ms")?);
        out.write(Box::into_raw(lasting(|| Ok(Box::new(tg_manual_clock { clock })))?));
        Ok(())
    })
}

/// Frees a clock. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_free(clock: Option<Box<tg_manual_clock>>) {
    free(clock);
}

/// Moves the clock on.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_advance(
    clock: Option<&tg_manual_clock>,
    step_ms: u64,
) -> tg_status {
    guard(|| {
        given(clock, "clock")?.clock.advance(time(step_ms, "step_ms")?);
        Ok(())
    })
}

/// Sets the clock, back too.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_set(clock: Option<&tg_manual_clock>, now_ms: u64) -> tg_status {
    guard(|| {
        given(clock, "clock")?.clock.set(time(now_ms, "now_ms")?);
        Ok(())
    })
}

/// Sets the wall time alone: milliseconds since the start of 1970.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_set_wall(
    clock: Option<&tg_manual_clock>,
    unix_ms: u64,
) -> tg_status {
    guard(|| {
        given(clock, "clock")?.clock.set_wall(time(unix_ms, "unix_ms")?);
        Ok(())
    })
}

/// Writes what the clock shows to `out`.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_manual_clock_now(
    clock: Option<&tg_manual_clock>,
    out: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    guard(|| {
        let (clock, out) = (given(clock, "clock")?, given(out, "out")?);
        out.write(u64::try_from(clock.clock.now().as_millis()).unwrap_or(u64::MAX));
        Ok(())
    })
}
