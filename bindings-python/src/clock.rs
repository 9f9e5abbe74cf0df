//! A clock that is moved by hand.

use pyo3::prelude::*;

use crate::value::Seconds;

/// A clock that is moved by hand, for tests that don't wait. Its wall time moves along.
///
/// Hand it to any number of limiters: ``Limiter("20/min", clock=clock)``. Times are seconds, or
/// timedeltas.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct ManualClock {
    pub(crate) clock: policy::ManualClock,
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=None, wall=None), text_signature = "(start=0.0, wall=0.0)")]
    fn new(start: Option<Seconds>, wall: Option<Seconds>) -> PyResult<ManualClock> {
        let read = |time: Option<Seconds>| time.map_or(Ok(Default::default()), Seconds::duration);
        Ok(ManualClock { clock: policy::ManualClock::new(read(start)?, read(wall)?) })
    }

    /// Moves the clock on, and its wall time with it.
    fn advance(&self, seconds: Seconds) -> PyResult<()> {
        self.clock.advance(seconds.duration()?);
        Ok(())
    }

    /// Sets the clock, back too.
    fn set(&self, seconds: Seconds) -> PyResult<()> {
        self.clock.set(seconds.duration()?);
        Ok(())
    }

    /// What the clock shows, in seconds.
    fn now(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    /// Sets the wall time alone: seconds since the start of 1970.
    fn set_wall(&self, unix: Seconds) -> PyResult<()> {
        self.clock.set_wall(unix.duration()?);
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<ManualClock at {}>", self.now())
    }
}
