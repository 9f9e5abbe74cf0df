//! What a caller holds on to after a hit: reservations and permits.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::decision::Decision;
use crate::errors::guard;
use crate::value::WholeNumber;

/// A slot of a concurrent limit: a context manager that releases it, falsy if it was denied.
///
/// A permit that is neither released nor left goes with the object, or after the limit's lease.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Permit {
    permit: policy::Permit,
    decision: Py<Decision>,
}

impl Permit {
    pub(crate) fn new(py: Python<'_>, permit: policy::Permit) -> PyResult<Permit> {
        let decision = Py::new(py, Decision::from(permit.decision().clone()))?;
        Ok(Permit { permit, decision })
    }
}

#[pymethods]
impl Permit {
    /// How the hit went.
    #[getter]
    fn decision(&self, py: Python<'_>) -> Py<Decision> {
        self.decision.clone_ref(py)
    }

    /// Gives the slot back. False if it was no longer held.
    fn release(&self) -> PyResult<bool> {
        guard(|| Ok(self.permit.release()))
    }

    /// Starts the lease anew. False if the slot is lost.
    fn renew(&self) -> PyResult<bool> {
        guard(|| Ok(self.permit.renew()))
    }

    fn __bool__(&self) -> bool {
        self.permit.decision().allowed
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.release().map(|_| ())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let held = if self.permit.is_held() { "held" } else { "not held" };
        Ok(format!("<Permit {held} {}>", self.decision.bind(py).repr()?))
    }
}

/// An estimate that was spent, to be settled once; falsy if it was denied.
///
/// As a context manager it gives the estimate back if the body fails before it is settled;
/// otherwise what is not settled stays spent.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Reservation {
    /// None once it is settled.
    reservation: Mutex<Option<policy::Reservation>>,
    decision: Py<Decision>,
}

impl Reservation {
    pub(crate) fn new(py: Python<'_>, reservation: policy::Reservation) -> PyResult<Reservation> {
        let decision = Py::new(py, Decision::from(reservation.decision().clone()))?;
        let open = reservation.decision().allowed.then_some(reservation);
        Ok(Reservation { reservation: Mutex::new(open), decision })
    }

    /// What is to be settled, the first time.
    fn take(&self) -> Option<policy::Reservation> {
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Reservation {
    /// How the hit went.
    #[getter]
    fn decision(&self, py: Python<'_>) -> Py<Decision> {
        self.decision.clone_ref(py)
    }

    /// Gives back or takes the difference to the true cost. False if it was settled or cancelled
    /// before, or denied.
    fn settle(&self, actual: WholeNumber) -> PyResult<bool> {
        guard(|| Ok(self.take().map(|reserved| reserved.settle(actual.0)).is_some()))
    }

    /// Gives the estimate back. False as with ``settle``.
    fn cancel(&self) -> PyResult<bool> {
        guard(|| Ok(self.take().map(policy::Reservation::cancel).is_some()))
    }

    fn __bool__(&self) -> bool {
        self.decision.get().__bool__()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !kind.is_none() {
            self.cancel()?;
        }
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Reservation {}>", self.decision.bind(py).repr()?))
    }
}
