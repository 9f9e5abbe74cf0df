//! Waiting until a hit, a reservation or a permit is allowed: the policy's state machine, and two
//! ways to drive it.
//!
//! `rule.wait` parks its thread, detached from the interpreter. `rule.acquire` is Python's
//! (`python/tidegate/_acquire.py`). It polls, sleeps in its event loop for the seconds that the
//! poll returned, and is woken when its turn comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use policy::bindings::{Got, OwnedCall, WaitStep, Want};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::decision::Decision;
use crate::errors::{guard, raised};
use crate::held::{Permit, Reservation};

/// The longest that a thread sleeps before it asks whether Python has a signal for it.
const SIGNALS: Duration = Duration::from_millis(50);

fn to_python(py: Python<'_>, got: Got) -> PyResult<Bound<'_, PyAny>> {
    Ok(match got {
        Got::Hit(decision) => Bound::new(py, Decision::from(*decision))?.into_any(),
        Got::Reservation(one) => Bound::new(py, Reservation::new(py, *one)?)?.into_any(),
        Got::Permit(permit) => Bound::new(py, Permit::new(py, *permit)?)?.into_any(),
    })
}

/// A call that waits.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Waiting {
    /// None when it is over.
    waiting: Mutex<Option<policy::bindings::Waiting>>,
}

impl Waiting {
    pub(crate) fn new(
        rule: policy::Rule,
        call: OwnedCall,
        want: Want,
        timeout: Option<Duration>,
    ) -> Waiting {
        let waiting = policy::bindings::Waiting::new(rule, call, want, timeout);
        Waiting { waiting: Mutex::new(Some(waiting)) }
    }

    fn step(&self, waker: &Waker) -> PyResult<WaitStep> {
        // Held only if two threads share what belongs to one task.
        let Ok(mut held) = self.waiting.try_lock() else {
            return Err(raised("OperationError", "another thread is polling this"));
        };
        let Some(waiting) = held.as_mut() else {
            return Err(raised("OperationError", "this is over"));
        };
        let step = guard(|| waiting.step(waker));
        if !matches!(step, Ok(WaitStep::Sleep(_))) {
            let over = held.take();
            // Dropped last: it wakes the next call in line, which may run any code.
            drop(held);
            drop(over);
        }
        step
    }

    /// Blocks this thread until it is over, detached from the interpreter while it sleeps.
    pub(crate) fn block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match self.step(&waker)? {
                WaitStep::Done(got) => return to_python(py, got),
                WaitStep::Sleep(most) => py.detach(|| std::thread::park_timeout(most.min(SIGNALS))),
            }
            py.check_signals()?;
        }
    }

    /// The coroutine that polls it: Python's half of `acquire`.
    pub(crate) fn acquired(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ACQUIRE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        ACQUIRE.import(py, "tidegate._acquire", "acquire")?.call1((self,))
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Calls what an event loop handed in, from the thread that passed the turn on.
struct CallBack(Py<PyAny>);

impl Wake for CallBack {
    fn wake(self: Arc<Self>) {
        // An interpreter that ends has no task to wake any more.
        Python::try_attach(|py| {
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, None);
            }
        });
    }
}

#[pymethods]
impl Waiting {
    /// Tries, if it is the call's turn. Returns what it waited for, or the seconds to sleep before
    /// the next poll, unless ``wake`` is called sooner.
    fn poll<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.step(&Waker::from(Arc::new(CallBack(wake))))? {
            WaitStep::Done(got) => to_python(py, got),
            WaitStep::Sleep(most) => Ok(most.as_secs_f64().into_pyobject(py)?.into_any()),
        }
    }

    /// Gives up: spends nothing, and lets the next one go first.
    fn close(&self) -> PyResult<()> {
        let over = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        guard(|| {
            drop(over);
            Ok(())
        })
    }
}
