//! `allow` and `hit` by Python's fast calling convention.
//!
//! For a method with `**attributes` pyo3 takes the slow one. The interpreter then makes a tuple for
//! each call, which alone is twice the price of a hit. So the two methods that are called for every
//! message replace pyo3's own. They take a key, perhaps a cost, and a few attributes. Any other
//! call goes on to the method that they replaced. Only that knows the whole signature and all
//! errors.

use std::borrow::Cow;
use std::ffi::CString;
use std::ptr::null_mut;

use policy::Call;
use policy::bindings::is_reserved;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple, PyType};
use pyo3::{PyClass, PyTypeInfo};

use crate::decision::Decision;
use crate::errors::{contained, guard, raise};
use crate::key::{attribute, in_call, with_call, with_key};
use crate::value::utf8;

/// The most attributes that a call has without an allocation for them.
const MOST_ATTRIBUTES: usize = 4;

/// What the two replaced.
pub(crate) struct Replaced {
    allow: PyOnceLock<Py<PyAny>>,
    hit: PyOnceLock<Py<PyAny>>,
}

impl Replaced {
    pub(crate) const fn new() -> Replaced {
        Replaced { allow: PyOnceLock::new(), hit: PyOnceLock::new() }
    }
}

/// A class with the two.
pub(crate) trait Fast: PyClass<Frozen = True> + PyTypeInfo + Sync {
    const REPLACED: &'static Replaced;
    fn allow_by<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, policy::Error>;
    fn hit_by<'a>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
    ) -> Result<policy::Decision, policy::Error>;
    fn permits(&self) -> Result<bool, policy::Error>;
}

/// What the interpreter hands a method by this convention.
#[derive(Clone, Copy)]
struct Handed<'a, 'py> {
    slf: Borrowed<'a, 'py, PyAny>,
    /// Those by position, and after them those by name.
    all: *const *mut ffi::PyObject,
    by_position: usize,
    names: Option<Borrowed<'a, 'py, PyAny>>,
}

impl<'a, 'py> Handed<'a, 'py> {
    /// # Safety
    /// They are what the interpreter handed, and the call is not over in `'a`.
    #[inline]
    unsafe fn new(
        py: Python<'py>,
        slf: *mut ffi::PyObject,
        all: *const *mut ffi::PyObject,
        by_position: ffi::Py_ssize_t,
        names: *mut ffi::PyObject,
    ) -> Handed<'a, 'py> {
        // SAFETY: the caller's word; the interpreter keeps it alive during the call.
        let slf = unsafe { Borrowed::from_ptr(py, slf) };
        // SAFETY: as before; it is null if there are none.
        let names = unsafe { Borrowed::from_ptr_or_opt(py, names) };
        Handed { slf, all, by_position: by_position as usize, names }
    }

    #[inline]
    fn argument(&self, index: usize) -> Borrowed<'a, 'py, PyAny> {
        // SAFETY: callers ask for those that `by_position` and `names` count.
        let place = unsafe { self.all.add(index) };
        // SAFETY: so it is one of the interpreter's.
        let object = unsafe { *place };
        // SAFETY: the interpreter keeps arguments alive during the call.
        unsafe { Borrowed::from_ptr(self.slf.py(), object) }
    }

    /// The key, if it is all there is but for `more` arguments by position.
    #[inline]
    fn key(&self, more: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let plain = self.by_position == 1 + more && self.names.is_none();
        plain.then(|| self.argument(0))
    }

    /// Runs `body` on the call, if its names are those of a few attributes. None too where
    /// something is wrong with it.
    #[inline]
    fn with_attributes<R>(
        &self,
        body: impl FnOnce(Call<'_>) -> PyResult<R>,
    ) -> Option<PyResult<R>> {
        let names = self.names?.cast::<PyTuple>().ok()?;
        let mut values = [const { Cow::Borrowed("") }; MOST_ATTRIBUTES];
        let mut attributes = [("", ""); MOST_ATTRIBUTES];
        for (index, value) in (0..names.len()).zip(&mut values) {
            *value = attribute(self.argument(self.by_position + index)).ok()??;
        }
        for ((name, value), pair) in names.iter_borrowed().zip(&values).zip(&mut attributes) {
            *pair = (attribute_name(name)?, value);
        }
        let attributes = attributes.get(..names.len())?;
        Some(with_key(&self.argument(0), |key| body(Call::of(key).with(attributes))))
    }

    #[inline]
    fn of<C: Fast>(&self) -> &'a C {
        // SAFETY: the descriptor has checked that it is of its class.
        let slf: Borrowed<'a, 'py, C> = unsafe { self.slf.cast_unchecked() };
        let slf: *const C = slf.get();
        // SAFETY: a frozen object lives where it is for as long as it is borrowed, which is `'a`.
        unsafe { &*slf }
    }

    #[cold]
    fn hand_on(&self, to: &PyOnceLock<Py<PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.slf.py();
        let by_position = (0..self.by_position).map(|index| self.argument(index));
        let arguments =
            PyTuple::new(py, [self.slf].into_iter().chain(by_position).collect::<Vec<_>>())?;
        let named = PyDict::new(py);
        if let Some(names) = self.names {
            for (index, name) in names.cast::<PyTuple>()?.iter().enumerate() {
                named.set_item(name, self.argument(self.by_position + index))?;
            }
        }
        let replaced = to
            .get(py)
            .ok_or_else(|| pyo3::exceptions::PySystemError::new_err("nothing was replaced"))?;
        replaced.bind(py).call(arguments, Some(&named))
    }
}

/// The text of an attribute's name. None for an argument of `allow` or `hit`, and for a reserved
/// name.
#[inline]
fn attribute_name<'a>(name: Borrowed<'a, '_, PyAny>) -> Option<&'a str> {
    let name = utf8(name.cast().ok()?, "an attribute's name").ok()?;
    (name != "key" && !is_reserved(name)).then_some(name)
}

#[inline]
fn answer(py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> *mut ffi::PyObject {
    match result {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            null_mut()
        }
    }
}

/// # Safety
/// Called by the interpreter, as a method of `C`.
unsafe extern "C" fn allow<C: Fast>(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls, so that this thread is attached to it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: handed on as they are.
    let handed = unsafe { Handed::new(py, slf, arguments, count, names) };
    let Some(key) = handed.key(0) else {
        return answer(py, allow_with::<C>(&handed));
    };
    let allowed = match key.cast::<PyString>() {
        Ok(text) => utf8(text, "a key").and_then(|key| guard(|| handed.of::<C>().allow_by(key))),
        Err(_) => allow_other(handed.of::<C>(), &key),
    };
    answer(py, allowed.map(|allowed| truth(py, allowed)))
}

#[inline]
fn truth(py: Python<'_>, truth: bool) -> Bound<'_, PyAny> {
    PyBool::new(py, truth).to_owned().into_any()
}

/// With names.
#[inline(never)]
fn allow_with<'py, C: Fast>(handed: &Handed<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let allow = |call: Call<'_>| guard(|| handed.of::<C>().allow_by(call));
    let allowed = (handed.by_position == 1).then(|| handed.with_attributes(allow)).flatten();
    match allowed {
        Some(allowed) => Ok(truth(handed.slf.py(), allowed?)),
        None => handed.hand_on(&C::REPLACED.allow),
    }
}

/// For keys that are no text. Apart, as are those of `hit`: they take a large frame, which texts
/// would pay for.
#[inline(never)]
fn allow_other<C: Fast>(on: &C, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    with_call(key, None, None, |call| on.allow_by(call))
}

/// # Safety
/// As `allow`.
unsafe extern "C" fn hit<C: Fast>(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls, so that this thread is attached to it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: handed on as they are.
    let handed = unsafe { Handed::new(py, slf, arguments, count, names) };
    let cost = if count == 2 { handed.argument(1).extract::<u64>() } else { Ok(1) };
    let (Some(key), Ok(cost)) = (handed.key((count == 2).into()), &cost) else {
        return answer(py, hit_with::<C>(&handed, cost.ok()));
    };
    let hit = match key.cast::<PyString>() {
        Ok(text) => utf8(text, "a key")
            .and_then(|key| contained(|| made(py, handed.of::<C>().hit_by(key, *cost)))),
        Err(_) => hit_other(handed.of::<C>(), &key, *cost),
    };
    answer(py, hit)
}

/// With names.
#[inline(never)]
fn hit_with<'py, C: Fast>(
    handed: &Handed<'_, 'py>,
    cost: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let cost = cost.filter(|_| matches!(handed.by_position, 1 | 2));
    let hit = cost.and_then(|cost| {
        let hit = |call: Call<'_>| handed.of::<C>().hit_by(call, cost);
        handed.with_attributes(|call| contained(|| made(handed.slf.py(), hit(call))))
    });
    hit.unwrap_or_else(|| handed.hand_on(&C::REPLACED.hit))
}

#[inline(never)]
fn hit_other<'py, C: Fast>(
    on: &C,
    key: &Bound<'py, PyAny>,
    cost: u64,
) -> PyResult<Bound<'py, PyAny>> {
    in_call(key, None, None, |call| made(key.py(), on.hit_by(call, cost)))
}

/// Made where it is to be: a decision is large to hand on.
#[inline]
fn made(
    py: Python<'_>,
    hit: Result<policy::Decision, policy::Error>,
) -> PyResult<Bound<'_, PyAny>> {
    match hit {
        Ok(decision) => Ok(Bound::new(py, Decision::from(decision))?.into_any()),
        Err(error) => Err(raise(error)),
    }
}

/// Puts the two in the place of pyo3's own, with their signatures and documentation.
pub(crate) fn install<C: Fast>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<C>();
    replace(&class, "allow", &C::REPLACED.allow, allow::<C>)?;
    replace(&class, "hit", &C::REPLACED.hit, hit::<C>)
}

fn replace(
    class: &Bound<'_, PyType>,
    name: &str,
    replaced: &PyOnceLock<Py<PyAny>>,
    by: ffi::PyCFunctionFastWithKeywords,
) -> PyResult<()> {
    let old = class.getattr(name)?;
    let (signature, text) = (old.getattr("__text_signature__")?, old.getattr("__doc__")?);
    let method = Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: by },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: CString::new(format!("{name}{signature}\n--\n\n{text}"))?.into_raw(),
    });
    // SAFETY: the class is alive, and the method, which its descriptor points to from now on, is
    // never freed.
    let descriptor = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), Box::leak(method)) };
    // SAFETY: it is a new reference, or null with an exception set.
    let descriptor = unsafe { Bound::from_owned_ptr_or_err(class.py(), descriptor) }?;
    class.setattr(name, descriptor)?;
    let _ = replaced.set(class.py(), old.unbind());
    Ok(())
}
