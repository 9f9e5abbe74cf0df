//! Keys and attributes, as Python has them.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use policy::bindings::{OwnedCall, not_an_attribute};
use policy::{Call, Key};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::errors::{Attributes, contained, raise};
use crate::value::{WholeNumber, kind, to_tuple, utf8};

const FORMS: &str = "a key is a str, bytes, an int, an ipaddress, or a tuple or list of them";

/// A key of one part, or a part of one. It is text, bytes, a whole number or an address. A number
/// is its decimal digits, an address its text.
#[inline]
pub(crate) fn part<'a>(object: Borrowed<'a, '_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(Cow::Borrowed(utf8(text, "a key")?.as_bytes())),
        Err(_) => other_part(object),
    }
}

fn other_part<'a>(object: Borrowed<'a, '_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if object.cast::<PyBytes>().is_ok() {
        return Ok(Cow::Borrowed(object.extract::<&[u8]>()?));
    }
    let text = match digits(&object)? {
        Some(digits) => Some(digits),
        None => address(&object)?,
    };
    match text {
        Some(text) => Ok(Cow::Owned(text.into_bytes())),
        None => Err(PyTypeError::new_err(format!("{FORMS}, not {}", kind(&object)))),
    }
}

/// A whole number in decimal; none for something else, truth values too.
fn digits(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if object.cast::<PyInt>().is_err() || object.cast::<PyBool>().is_ok() {
        return Ok(None);
    }
    match object.extract::<i64>() {
        Ok(number) => Ok(Some(number.to_string())),
        // A subclass may print as something else.
        Err(_) => Ok(Some(
            object.py().get_type::<PyInt>().call_method1("__repr__", (object,))?.extract()?,
        )),
    }
}

/// An `ipaddress` as text; none for something else. Pythons differ in how they write some
/// addresses, so that the text is made here.
fn address(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    static CLASSES: PyOnceLock<[Py<PyAny>; 4]> = PyOnceLock::new();
    let py = object.py();
    let classes = CLASSES.get_or_try_init(py, || {
        let module = py.import("ipaddress")?;
        let class = |name| module.getattr(name).map(Bound::unbind);
        let [v4, v6] = [class("IPv4Address")?, class("IPv6Address")?];
        Ok::<_, PyErr>([v4, v6, class("IPv4Interface")?, class("IPv6Interface")?])
    })?;
    let is = |index: usize| object.is_instance(classes[index].bind(py));
    if !(is(0)? || is(1)?) || is(2)? || is(3)? {
        return Ok(None);
    }
    let packed = object.getattr("packed")?;
    let packed: &[u8] = packed.extract()?;
    if let Ok(bytes) = <[u8; 4]>::try_from(packed) {
        return Ok(Some(Ipv4Addr::from(bytes).to_string()));
    }
    let Ok(bytes) = <[u8; 16]>::try_from(packed) else { return Ok(None) };
    let scope: Option<String> = object.getattr("scope_id")?.extract()?;
    let scope = scope.map_or_else(String::new, |scope| format!("%{scope}"));
    Ok(Some(format!("{}{scope}", Ipv6Addr::from(bytes))))
}

/// The parts of a key that is a tuple or list; none for other keys.
pub(crate) fn parts<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    match object.cast::<PyTuple>().is_ok() || object.cast::<PyList>().is_ok() {
        true => to_tuple(object).map(Some),
        false => Ok(None),
    }
}

/// What is known about a call besides its key. Values are texts or whole numbers.
fn texts(attributes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let read = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name = utf8(name.cast::<PyString>()?.as_borrowed(), "an attribute's name")?.to_string();
        if let Some(message) = not_an_attribute(&name) {
            return Err(PyTypeError::new_err(message));
        }
        match attribute(value.as_borrowed())? {
            Some(text) => Ok((name, text.into_owned())),
            None => Err(PyTypeError::new_err(format!(
                "attribute {name:?} should be a str or an int, not {}",
                kind(&value)
            ))),
        }
    };
    attributes.iter().map(read).collect()
}

/// The value of an attribute as text; none for what can't be one.
#[inline]
pub(crate) fn attribute<'a>(value: Borrowed<'a, '_, PyAny>) -> PyResult<Option<Cow<'a, str>>> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(Some(Cow::Borrowed(utf8(text, "an attribute")?))),
        Err(_) => Ok(digits(&value)?.map(Cow::Owned)),
    }
}

/// Does something with a call.
#[inline]
pub(crate) fn with_call<R>(
    key: &Bound<'_, PyAny>,
    max: Option<WholeNumber>,
    attributes: Attributes<'_, '_>,
    body: impl FnOnce(Call<'_>) -> Result<R, policy::Error>,
) -> PyResult<R> {
    in_call(key, max, attributes, |call| body(call).map_err(raise))
}

/// As [`with_call`], for what makes Python objects too.
#[inline]
pub(crate) fn in_call<R>(
    key: &Bound<'_, PyAny>,
    max: Option<WholeNumber>,
    attributes: Attributes<'_, '_>,
    body: impl FnOnce(Call<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast::<PyString>()
        && max.is_none()
        && attributes.is_none()
    {
        let text = utf8(text.as_borrowed(), "a key")?;
        return contained(|| body(Call::from(text)));
    }
    if attributes.is_some() {
        let owned = owned_call(key, max, attributes)?;
        return contained(|| owned.with(body));
    }
    with_key(key, |key| {
        let call = Call::of(key);
        contained(|| body(max.map_or(call, |max| call.max(max.0))))
    })
}

/// Does something with a key, whose parts are read where they are.
#[inline]
pub(crate) fn with_key<R>(
    key: &Bound<'_, PyAny>,
    body: impl FnOnce(Key<'_>) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(text) = key.cast::<PyString>() {
        return body(Key::from(utf8(text.as_borrowed(), "a key")?));
    }
    match parts(key)? {
        None => body(Key::from(&*other_part(key.as_borrowed())?)),
        Some(all) => {
            let parts = all.iter_borrowed().map(part).collect::<PyResult<Vec<_>>>()?;
            body(Key::parts(parts.iter().map(|part| &**part)))
        }
    }
}

/// A call that borrows from no Python object.
pub(crate) fn owned_call(
    key: &Bound<'_, PyAny>,
    max: Option<WholeNumber>,
    attributes: Attributes<'_, '_>,
) -> PyResult<OwnedCall> {
    let parts = match parts(key)? {
        Some(all) => {
            all.iter_borrowed().map(|one| Ok(part(one)?.into_owned())).collect::<PyResult<_>>()?
        }
        None => vec![part(key.as_borrowed())?.into_owned()],
    };
    let attributes = attributes.map_or(Ok(Vec::new()), texts)?;
    Ok(OwnedCall::new(parts, attributes, max.map(|max| max.0)))
}
