//! Python values as the policy crate takes them, and back: options as JSON, times, counts, paths.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString,
    PyTuple,
};
use serde_json::{Map, Value};

use crate::errors::raised;

/// Numbers for times are seconds in Python.
pub(crate) const UNIT: Duration = Duration::from_secs(1);

/// Some 146 years, so that no clock runs over.
const MOST_SECONDS: f64 = (i64::MAX / 2_000_000_000) as f64;

/// Deeper than any policy, and shallow enough for every stack: a list nested in itself is an
/// error.
const DEEPEST: usize = 64;

/// A text that is UTF-8, as a `str` with lone surrogates is not.
#[inline]
pub(crate) fn utf8<'a>(text: Borrowed<'a, '_, PyString>, what: &str) -> PyResult<&'a str> {
    text.extract::<&'a str>().map_err(|_| surrogates(what))
}

#[cold]
fn surrogates(what: &str) -> PyErr {
    let message = format!(
        "{what} has lone surrogates, which no UTF-8 text has; encode it, and hand over the bytes"
    );
    raised("InvalidKeyError", &message)
}

/// A whole number from 0 on.
#[derive(Clone, Copy)]
pub(crate) struct WholeNumber(pub(crate) u64);

impl FromPyObject<'_, '_> for WholeNumber {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<WholeNumber> {
        object.extract::<u64>().map(WholeNumber).map_err(|error| match object.cast::<PyInt>() {
            Ok(_) => raised(
                "RangeError",
                &format!("this should be a whole number from 0 to 2**64 - 1, not {}", *object),
            ),
            Err(_) => error,
        })
    }
}

/// A text.
pub(crate) struct Text(pub(crate) String);

impl FromPyObject<'_, '_> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Text> {
        let text = object.cast::<PyString>()?;
        Ok(Text(utf8(text, "this")?.to_string()))
    }
}

/// A number of bytes: a whole number, or a text such as `64MB`.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromPyObject<'_, '_> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Bytes> {
        if object.cast::<PyString>().is_err() {
            return object.extract::<WholeNumber>().map(|count| Bytes(count.0));
        }
        let text = object.extract::<Text>()?.0;
        policy::bindings::parse_bytes(&text).map(Bytes).map_err(crate::errors::raise)
    }
}

/// A time: seconds, or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(f64);

impl FromPyObject<'_, '_> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Seconds> {
        if object.cast::<PyDelta>().is_ok() {
            return Ok(Seconds(object.call_method0("total_seconds")?.extract()?));
        }
        let wrong = |_| {
            PyTypeError::new_err(format!(
                "a time is a number of seconds or a timedelta, not {}",
                kind(&object)
            ))
        };
        object.extract::<f64>().map(Seconds).map_err(wrong)
    }
}

impl Seconds {
    /// As a duration; a clock's time has an end.
    pub(crate) fn duration(self) -> PyResult<Duration> {
        match (0.0..=MOST_SECONDS).contains(&self.0) {
            true => Ok(Duration::from_secs_f64(self.0)),
            false => Err(raised(
                "RangeError",
                &format!("a time is from 0 to {MOST_SECONDS} seconds, not {}", self.0),
            )),
        }
    }

    /// As a timeout; one that never ends is none.
    pub(crate) fn timeout(self) -> PyResult<Option<Duration>> {
        if self.0 > MOST_SECONDS { Ok(None) } else { self.duration().map(Some) }
    }
}

/// A store: its text, or a path, which is that of a folder.
pub(crate) struct StoreText(pub(crate) String);

impl FromPyObject<'_, '_> for StoreText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<StoreText> {
        if object.cast::<PyString>().is_ok() {
            return Ok(StoreText(object.extract::<Text>()?.0));
        }
        let path: PathBuf = object.extract()?;
        let path = path.into_os_string().into_string();
        let path = path.map_err(|_| raised("StoreError", "the path of a store should be UTF-8"))?;
        Ok(StoreText(format!("file:{path}")))
    }
}

/// What a value is called in a message.
pub(crate) fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "this".to_string(), |name| name.to_string())
}

/// A mapping, sequence or plain value as a policy file would have it. Which fields there may be is
/// not known here: the policy crate says what is wrong.
pub(crate) fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(raised("PolicyError", "this is nested too deeply"));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(utf8(text.as_borrowed(), "a text")?.into());
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if object.cast::<PyInt>().is_ok() {
        return whole(object);
    }
    if object.cast::<PyFloat>().is_ok() || object.cast::<PyDelta>().is_ok() {
        return finite(object.extract::<Seconds>()?.0);
    }
    if let Ok(map) = object.cast::<PyMapping>() {
        return map_value(map, depth);
    }
    if object.cast::<PyBytes>().is_err()
        && let Ok(list) = object.cast::<PySequence>()
    {
        let items = (0..list.len()?).map(|index| nested(&list.get_item(index)?, depth + 1));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    Err(PyTypeError::new_err(format!("{} has no place in a policy", kind(object))))
}

/// A number that JSON has. It would take another for nothing, and nothing is no mistake.
fn finite(number: f64) -> PyResult<Value> {
    match number.is_finite() {
        true => Ok(number.into()),
        false => Err(raised("PolicyError", &format!("{number} has no place in a policy"))),
    }
}

fn whole(number: &Bound<'_, PyAny>) -> PyResult<Value> {
    let signed = number.extract::<i64>().map(Value::from);
    let any = signed.or_else(|_| number.extract::<u64>().map(Value::from));
    any.or_else(|_| finite(number.extract::<f64>()?))
}

fn map_value(map: &Bound<'_, PyMapping>, depth: usize) -> PyResult<Value> {
    let mut fields = Map::new();
    for item in map.items()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        // As in YAML, where a name may be a number or a truth value.
        let name = match name.cast::<PyString>() {
            Ok(text) => utf8(text.as_borrowed(), "a name")?.to_string(),
            Err(_) => name.str()?.extract()?,
        };
        fields.insert(name, nested(&value, depth + 1)?);
    }
    Ok(Value::Object(fields))
}

/// A value of a policy, such as `attach`, as plain Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (None, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::Array(list) => {
            let items = list.iter().map(|one| to_python(py, one)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (name, one) in map {
                dict.set_item(name, to_python(py, one)?)?;
            }
            dict.into_any()
        }
    })
}

/// Any iterable as a tuple, which can't change while it is read.
pub(crate) fn to_tuple<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: called with the interpreter attached, on an object that is alive.
    let tuple = unsafe { pyo3::ffi::PySequence_Tuple(keys.as_ptr()) };
    // SAFETY: it is a new reference, or null with an exception set.
    let tuple = unsafe { Bound::from_owned_ptr_or_err(keys.py(), tuple) }?;
    Ok(tuple.cast_into()?)
}
