//! What run-time changes take: their target, how long they last, their maker and the reason.

use std::time::Duration;

use policy::bindings::mode;
use policy::{ChangeOptions, Match, Mode, Target};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyFloat, PyInt, PyMapping, PyString};

use crate::errors::{raise, raised};
use crate::key::{owned_call, parts};
use crate::value::{Text, kind, to_json, to_tuple};

/// The target of an override: a mapping is a match, all else a key.
pub(crate) fn target(object: &Bound<'_, PyAny>) -> PyResult<Target> {
    match object.cast::<PyMapping>().is_ok() && parts(object)?.is_none() {
        true => Ok(Target::Match(matching(object)?)),
        false => Ok(Target::key(owned_call(object, None, None)?.key())),
    }
}

pub(crate) fn matching(object: &Bound<'_, PyAny>) -> PyResult<Match> {
    match object.cast::<PyMapping>() {
        Ok(_) => Match::from_value(&to_json(object)?).map_err(raise),
        Err(_) => Err(PyTypeError::new_err(format!(
            "a match is a mapping such as {{\"role\": \"admin\"}}, not {}",
            kind(object)
        ))),
    }
}

/// A list of matches: any iterable, but not a single match or a text.
pub(crate) fn matches(object: &Bound<'_, PyAny>) -> PyResult<Vec<Match>> {
    let one = object.cast::<PyMapping>().is_ok()
        || object.cast::<PyString>().is_ok()
        || object.cast::<PyBytes>().is_ok();
    if one || object.try_iter().is_err() {
        let message = format!("matches should be an iterable of mappings, not {}", kind(object));
        return Err(PyTypeError::new_err(message));
    }
    to_tuple(object)?.iter().map(|one| matching(&one)).collect()
}

/// A mode by its name.
pub(crate) struct ModeName(pub(crate) Mode);

impl FromPyObject<'_, '_> for ModeName {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<ModeName> {
        let wanted = "mode should be one of enforce, shadow, off";
        if object.cast::<PyString>().is_err() {
            return Err(PyTypeError::new_err(format!("{wanted}, not {}", kind(&object))));
        }
        let Text(name) = object.extract()?;
        match mode(&name) {
            Some(mode) => Ok(ModeName(mode)),
            None => Err(raised("RangeError", &format!("{wanted}, not {name:?}"))),
        }
    }
}

/// For how long a change is made: seconds, a `timedelta`, or a text such as `1h`.
#[derive(Clone, Copy)]
pub(crate) struct Lasting(Duration);

impl FromPyObject<'_, '_> for Lasting {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Lasting> {
        if object.cast::<PyString>().is_ok() {
            let Text(text) = object.extract()?;
            let wrong = |error| raised("RangeError", &format!("for_: {error}"));
            return policy::bindings::parse_period(&text).map(Lasting).map_err(wrong);
        }
        let is_number = object.cast::<PyInt>().is_ok() || object.cast::<PyFloat>().is_ok();
        let seconds: f64 = if object.cast::<PyDelta>().is_ok() {
            object.call_method0("total_seconds")?.extract()?
        } else if is_number && object.cast::<PyBool>().is_err() {
            // An `int` that no float holds is longer than any time.
            object.extract().unwrap_or(f64::INFINITY)
        } else {
            return Err(PyTypeError::new_err(format!(
                "for_ should be a number of seconds, a timedelta, or a text such as \"1h\", not {}",
                kind(&object)
            )));
        };
        // The policy crate refuses both of the replacements, and says which times it takes.
        let replacement = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        Ok(Lasting(Duration::try_from_secs_f64(seconds).unwrap_or(replacement)))
    }
}

pub(crate) fn options(
    for_: Option<Lasting>,
    by: Option<Text>,
    reason: Option<Text>,
) -> ChangeOptions {
    let mut options = ChangeOptions::default().for_(for_.map(|time| time.0));
    (options.by, options.reason) = (by.map(|text| text.0), reason.map(|text| text.0));
    options
}
