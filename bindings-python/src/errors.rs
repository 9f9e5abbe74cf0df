//! Failures as exceptions. The classes are Python's: see `python/tidegate/_errors.py`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use policy::{Code, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The class of each code, in one place.
fn class_of(code: Code) -> &'static str {
    match code {
        Code::Policy => "PolicyError",
        Code::Key => "InvalidKeyError",
        Code::Rule => "UnknownRuleError",
        Code::Operation => "OperationError",
        Code::Range => "RangeError",
        Code::Address => "AddressError",
        Code::Store => "StoreError",
        Code::File => "PolicyFileError",
        Code::Memory => "MemoryLimitError",
        Code::Closed => "ClosedError",
        _ => "TidegateError",
    }
}

/// An exception of a class of `_errors.py`.
#[cold]
pub(crate) fn raised(class: &str, message: &str) -> PyErr {
    Python::attach(|py| made(py, class, message).map_or_else(|error| error, PyErr::from_value))
}

fn made<'py>(py: Python<'py>, class: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tidegate._errors")?.unbind()))?;
    module.bind(py).getattr(class)?.call1((message,))
}

/// A policy's error as an exception.
#[cold]
pub(crate) fn raise(error: Error) -> PyErr {
    Python::attach(|py| {
        let made = made(py, class_of(error.code()), &error.to_string());
        let raised = made.and_then(|exception| {
            if error.code() == Code::Policy {
                let problems = error.problems().iter().map(|p| (p.path.clone(), p.message.clone()));
                exception.setattr("problems", problems.collect::<Vec<_>>())?;
            }
            Ok(exception)
        });
        raised.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Runs what `policy` does for a call. A panic of it becomes an exception that `except Exception`
/// sees; pyo3's own is none. A limiter has no state that a panic could leave half done.
#[inline]
pub(crate) fn guard<R>(body: impl FnOnce() -> Result<R, Error>) -> PyResult<R> {
    // Not by `contained`: what comes out of a panic's reach is smaller before it is an exception.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(raise),
        Err(panic) => Err(broken(panic)),
    }
}

/// As [`guard`], for what makes Python objects too.
#[inline]
pub(crate) fn contained<R>(body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(broken(panic)))
}

#[cold]
fn broken(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("a mistake in Tidegate, please report it: {}", text.unwrap_or("unknown"));
    // Dropping it may panic again.
    std::mem::forget(panic);
    raised("InternalError", &message)
}

/// What a dictionary of attributes is called in `**attributes`.
pub(crate) type Attributes<'a, 'py> = Option<&'a Bound<'py, PyDict>>;
