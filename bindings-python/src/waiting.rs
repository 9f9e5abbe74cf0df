//! Waiting until a hit, a reservation or a permit is allowed, without a thread: the policy crate's own future, and two that drive it.
//!
//! `rule.wait` parks its thread, detached from the interpreter. `rule.acquire` is Python's
//! (`python/tidegate/_acquire.py`): it polls, sleeps in its event loop for as long as it is told, and is woken
//! when its turn comes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::decision::Decision;
use crate::errors::{guard, raised};
use crate::held::{Permit, Reservation};
use crate::key::OwnedCall;

/// How long a thread sleeps at most before it looks whether Python has a signal for it.
const SIGNALS: Duration = Duration::from_millis(50);

/// What is waited for.
pub(crate) enum Want {
    /// A hit of this cost.
    Hit(u64),
    /// A reservation of this estimate.
    Reservation(u64),
    Permit,
}

/// What it came to, granted or not.
pub(crate) enum Got {
    Hit(Box<policy::Decision>),
    Reservation(Box<policy::Reservation>),
    Permit(Box<policy::Permit>),
}

impl Got {
    fn into_python<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Got::Hit(decision) => Bound::new(py, Decision::from(*decision))?.into_any(),
            Got::Reservation(one) => Bound::new(py, Reservation::new(py, *one)?)?.into_any(),
            Got::Permit(permit) => Bound::new(py, Permit::new(py, *permit)?)?.into_any(),
        })
    }
}

type Answer = Result<Got, policy::Error>;
type Acquiring = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Until when the future wants to sleep, told to whoever drives it.
type Alarm = Arc<Mutex<Option<Instant>>>;

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sleep that somebody else must end: it is over when its time has come.
struct Sleep {
    until: Option<Instant>,
    alarm: Alarm,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        *locked(&self.alarm) = self.until.filter(|_| !over);
        if over { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// One who waits.
#[pyclass(frozen, module = "tidegate._tidegate")]
pub(crate) struct Waiting {
    /// None when it is over.
    acquiring: Mutex<Option<Acquiring>>,
    alarm: Alarm,
}

/// What a look came to.
enum Step {
    Done(Got),
    /// Look again after this, or when woken.
    Sleep(Duration),
}

/// What can be waited on: a rule, or a limiter's only one.
pub(crate) trait Acquire: Clone + Send + Sync + 'static {
    fn acquire_with<F: Future<Output = ()> + Send>(
        &self,
        call: policy::Call<'_>,
        want: Want,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F + Send + Sync,
    ) -> impl Future<Output = Answer> + Send;
}

macro_rules! acquire {
    ($($of:ty),*) => {$(
        impl Acquire for $of {
            fn acquire_with<F: Future<Output = ()> + Send>(
                &self,
                call: policy::Call<'_>,
                want: Want,
                timeout: Option<Duration>,
                sleep: impl Fn(Duration) -> F + Send + Sync,
            ) -> impl Future<Output = Answer> + Send {
                async move {
                    Ok(match want {
                        Want::Hit(cost) => {
                            let got = <$of>::acquire_with(self, call, cost, timeout, sleep).await?;
                            Got::Hit(Box::new(got))
                        }
                        Want::Reservation(estimate) => {
                            let got = self.acquire_reservation_with(call, estimate, timeout, sleep);
                            Got::Reservation(Box::new(got.await?))
                        }
                        Want::Permit => {
                            let got = self.acquire_permit_with(call, timeout, sleep);
                            Got::Permit(Box::new(got.await?))
                        }
                    })
                }
            }
        }
    )*};
}
acquire!(policy::Rule, policy::Limiter);

impl Waiting {
    pub(crate) fn new(
        on: &impl Acquire,
        call: OwnedCall,
        want: Want,
        timeout: Option<Duration>,
    ) -> Waiting {
        let (on, alarm) = (on.clone(), Alarm::default());
        let told = alarm.clone();
        let sleep = move |time: Duration| Sleep {
            until: Instant::now().checked_add(time),
            alarm: told.clone(),
        };
        let acquiring = async move {
            let attributes = call.attributes();
            on.acquire_with(call.call(&attributes), want, timeout, sleep).await
        };
        Waiting { acquiring: Mutex::new(Some(Box::pin(acquiring))), alarm }
    }

    fn look(&self, waker: &Waker) -> PyResult<Step> {
        // Nobody else is here, unless two threads share what is one task's.
        let Ok(mut held) = self.acquiring.try_lock() else {
            return Err(raised("OperationError", "somebody else is polling this"));
        };
        let Some(acquiring) = held.as_mut() else {
            return Err(raised("OperationError", "this is over"));
        };
        let polled = guard(|| match acquiring.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(answer) => answer.map(Some),
            Poll::Pending => Ok(None),
        });
        if matches!(polled, Ok(None)) {
            let until = *locked(&self.alarm);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            return Ok(Step::Sleep(left.unwrap_or(SIGNALS)));
        }
        let over = held.take();
        drop(held);
        drop(over);
        polled.map(|got| Step::Done(got.unwrap_or_else(|| unreachable!())))
    }

    /// Blocks this thread until it is over, detached from the interpreter while it sleeps.
    pub(crate) fn block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match self.look(&waker)? {
                Step::Done(got) => return got.into_python(py),
                Step::Sleep(left) => py.detach(|| std::thread::park_timeout(left.min(SIGNALS))),
            }
            py.check_signals()?;
        }
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Calls what an event loop handed in, from whichever thread the turn was passed on.
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
    /// Looks whether it is over. What it came to if so; if not, the seconds to sleep before looking again, unless ``wake`` is
    /// called sooner.
    fn poll<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.look(&Waker::from(Arc::new(CallBack(wake))))? {
            Step::Done(got) => got.into_python(py),
            Step::Sleep(left) => Ok(left.as_secs_f64().into_pyobject(py)?.into_any()),
        }
    }

    /// Gives up: spends nothing, and lets the next one go first.
    fn close(&self) -> PyResult<()> {
        let over = locked(&self.acquiring).take();
        guard(|| {
            drop(over);
            Ok(())
        })
    }
}

/// Python's half of `acquire`.
pub(crate) fn acquired<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static ACQUIRE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ACQUIRE.import(py, "tidegate._acquire", "acquire")
}
