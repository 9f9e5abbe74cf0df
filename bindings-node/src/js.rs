//! JavaScript values, in and out: the only file that calls Node-API.
//!
//! A [`Scope`] is one call from JavaScript. Values live as long as the call does; what outlives it
//! is a [`KeptValue`]. Everything happens on the thread of its environment (the main thread or a
//! worker), which is why nothing here is shared between threads.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use napi_sys as sys;
pub(crate) use napi_sys::napi_value as Value;

use crate::failure::Failure;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A call from JavaScript, and what can be done meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'e> {
    env: sys::napi_env,
    during: PhantomData<&'e ()>,
}

/// A value that is kept until the environment ends.
pub(crate) struct KeptValue(sys::napi_ref);

/// A stack buffer for texts: most keys fit.
pub(crate) type TextBuffer = [MaybeUninit<u8>; SHORT];
const SHORT: usize = 256;

/// How many units of a text are read at once.
const CHUNK: usize = 16;

/// What a value is, as far as that matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Undefined,
    Null,
    Number,
    Text,
    BigInt,
    Object,
    Other,
}

fn ok(status: sys::napi_status) -> Result<()> {
    match status {
        sys::Status::napi_ok => Ok(()),
        sys::Status::napi_pending_exception => Err(Failure::thrown()),
        other => Err(Failure::mistake(format!("Node-API said {other}"))),
    }
}

impl<'e> Scope<'e> {
    /// # Safety
    /// `env` is that of the call that is under way, for as long as `'e`.
    pub(crate) unsafe fn new(env: sys::napi_env) -> Scope<'e> {
        Scope { env, during: PhantomData }
    }

    /// Runs a call that writes a value.
    fn made(
        self,
        make: impl FnOnce(sys::napi_env, *mut Value) -> sys::napi_status,
    ) -> Result<Value> {
        let mut value = ptr::null_mut();
        ok(make(self.env, &mut value))?;
        Ok(value)
    }

    pub(crate) fn kind(self, value: Value) -> Result<Kind> {
        if value.is_null() {
            return Ok(Kind::Undefined);
        }
        let mut kind = 0;
        // SAFETY: a value of this call, and a place for the answer.
        ok(unsafe { sys::napi_typeof(self.env, value, &mut kind) })?;
        Ok(match kind {
            sys::ValueType::napi_undefined => Kind::Undefined,
            sys::ValueType::napi_null => Kind::Null,
            sys::ValueType::napi_number => Kind::Number,
            sys::ValueType::napi_string => Kind::Text,
            sys::ValueType::napi_bigint => Kind::BigInt,
            sys::ValueType::napi_object => Kind::Object,
            _ => Kind::Other,
        })
    }

    /// A text in ASCII, in a buffer. `None` if it is none, or may not fit.
    ///
    /// Its units of 16 bits are asked for, and narrowed here: Node writes those in less time than
    /// UTF-8.
    #[inline]
    pub(crate) fn short_ascii(self, value: Value, buffer: &mut TextBuffer) -> Option<&[u8]> {
        let (mut units, mut len) = ([const { MaybeUninit::<u16>::uninit() }; SHORT + CHUNK], 0);
        let start = units.as_mut_ptr().cast();
        // SAFETY: the buffer has room for so many; Node writes no more, and how much it wrote.
        let status =
            unsafe { sys::napi_get_value_string_utf16(self.env, value, start, SHORT, &mut len) };
        // The last one is a NUL: what leaves no room besides may have been cut.
        if status != sys::Status::napi_ok || len >= SHORT - 1 {
            return None;
        }
        units[len..len + CHUNK].fill(MaybeUninit::new(0));
        let (mut all, chunks) = ([0; CHUNK], len.div_ceil(CHUNK));
        for (from, to) in
            units.as_chunks::<CHUNK>().0.iter().zip(buffer.as_chunks_mut().0).take(chunks)
        {
            // SAFETY: `len` units were written, and as many zeros as fill the last chunk.
            let from = from.map(|unit| unsafe { unit.assume_init() });
            *to = from.map(|unit| MaybeUninit::new(unit as u8));
            all = std::array::from_fn(|i| all[i] | from[i]);
        }
        let is_ascii = all.iter().fold(0, |all, some| all | some) < 0x80;
        // SAFETY: so many bytes were written.
        is_ascii.then(|| unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), len) })
    }

    /// Copies a text to the stack as one usually would, and does no more. How long it is.
    #[cfg(feature = "bench")]
    pub(crate) fn copy_text(self, value: Value) -> usize {
        let (mut buffer, mut len) = ([const { MaybeUninit::<u8>::uninit() }; SHORT], 0);
        let start = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has that size; Node writes no more, and how much it wrote.
        unsafe { sys::napi_get_value_string_utf8(self.env, value, start, SHORT, &mut len) };
        len
    }

    /// A text of any length. `None` if it is no text.
    pub(crate) fn long_text(self, value: Value) -> Option<Vec<u8>> {
        let mut len = 0;
        // SAFETY: without a buffer, only the length is written.
        let status = unsafe {
            sys::napi_get_value_string_utf8(self.env, value, ptr::null_mut(), 0, &mut len)
        };
        if status != sys::Status::napi_ok {
            return None;
        }
        let mut text = vec![0; len + 1];
        // SAFETY: there is room for the text and its NUL.
        let status = unsafe {
            sys::napi_get_value_string_utf8(
                self.env,
                value,
                text.as_mut_ptr().cast(),
                len + 1,
                &mut len,
            )
        };
        text.truncate(len);
        (status == sys::Status::napi_ok).then_some(text)
    }

    /// The code units of a text.
    pub(crate) fn utf16(self, value: Value) -> Result<Vec<u16>> {
        let mut len = 0;
        // SAFETY: without a buffer, only the length is written.
        ok(unsafe {
            sys::napi_get_value_string_utf16(self.env, value, ptr::null_mut(), 0, &mut len)
        })?;
        let mut units = vec![0; len + 1];
        // SAFETY: there is room for the text and its NUL.
        ok(unsafe {
            sys::napi_get_value_string_utf16(self.env, value, units.as_mut_ptr(), len + 1, &mut len)
        })?;
        units.truncate(len);
        Ok(units)
    }

    #[inline]
    pub(crate) fn double(self, value: Value) -> Option<f64> {
        let mut number = 0.0;
        // SAFETY: a value of this call, and a place for the answer.
        let status = unsafe { sys::napi_get_value_double(self.env, value, &mut number) };
        (status == sys::Status::napi_ok).then_some(number)
    }

    /// The decimal digits of a bigint.
    pub(crate) fn digits(self, value: Value) -> Result<Vec<u8>> {
        // SAFETY: a value of this call, and a place for the answer. A bigint's text calls no code
        // of the user's.
        let text = self.made(|env, out| unsafe { sys::napi_coerce_to_string(env, value, out) })?;
        self.long_text(text).ok_or_else(|| Failure::mistake("a bigint has no text".to_string()))
    }

    /// A copy of the bytes of a Uint8Array (a Buffer is one). `None` if it is none. A copy, since
    /// other threads may share its memory and change it meanwhile.
    pub(crate) fn bytes(self, value: Value) -> Result<Option<Vec<u8>>> {
        let mut is = false;
        // SAFETY: a value of this call, and a place for the answer.
        ok(unsafe { sys::napi_is_typedarray(self.env, value, &mut is) })?;
        if !is {
            return Ok(None);
        }
        let (mut kind, mut len, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: a typed array, and places for what is asked.
        ok(unsafe {
            sys::napi_get_typedarray_info(
                self.env,
                value,
                &mut kind,
                &mut len,
                &mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        })?;
        if kind != sys::TypedarrayType::uint8_array {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(len);
        if len > 0 && !data.is_null() {
            // SAFETY: Node says that so many bytes are there, and we have room for them.
            unsafe { ptr::copy_nonoverlapping(data.cast::<u8>(), bytes.as_mut_ptr(), len) };
            // SAFETY: just written.
            unsafe { bytes.set_len(len) };
        }
        Ok(Some(bytes))
    }

    /// How long an array is. `None` if it is none.
    pub(crate) fn array_len(self, value: Value) -> Result<Option<u32>> {
        let mut is = false;
        // SAFETY: a value of this call, and a place for the answer.
        ok(unsafe { sys::napi_is_array(self.env, value, &mut is) })?;
        if !is {
            return Ok(None);
        }
        let mut len = 0;
        // SAFETY: an array, and a place for its length.
        ok(unsafe { sys::napi_get_array_length(self.env, value, &mut len) })?;
        Ok(Some(len))
    }

    pub(crate) fn element(self, array: Value, index: u32) -> Result<Value> {
        // SAFETY: values of this call, and a place for the answer.
        self.made(|env, out| unsafe { sys::napi_get_element(env, array, index, out) })
    }

    /// What an external value that we made points to. `None` if it is no external value.
    pub(crate) fn external(self, value: Value) -> Option<*mut c_void> {
        let mut data = ptr::null_mut();
        // SAFETY: a value of this call, and a place for the answer.
        let status = unsafe { sys::napi_get_value_external(self.env, value, &mut data) };
        (status == sys::Status::napi_ok).then_some(data)
    }
}

/// Values to hand out.
impl Scope<'_> {
    pub(crate) fn boolean(self, yes: bool) -> Result<Value> {
        // SAFETY: a place for the answer.
        self.made(|env, out| unsafe { sys::napi_get_boolean(env, yes, out) })
    }

    pub(crate) fn number(self, number: f64) -> Result<Value> {
        // SAFETY: a place for the answer.
        self.made(|env, out| unsafe { sys::napi_create_double(env, number, out) })
    }

    pub(crate) fn text(self, text: &str) -> Result<Value> {
        let (data, len) = (text.as_ptr().cast(), text.len() as isize);
        // SAFETY: the text is that long, and is copied.
        self.made(|env, out| unsafe { sys::napi_create_string_utf8(env, data, len, out) })
    }

    pub(crate) fn array_of_texts<'t>(self, texts: impl Iterator<Item = &'t str>) -> Result<Value> {
        // SAFETY: a place for the answer.
        let array = self.made(|env, out| unsafe { sys::napi_create_array(env, out) })?;
        for (index, text) in texts.enumerate() {
            self.set_element(array, index as u32, self.text(text)?)?;
        }
        Ok(array)
    }

    pub(crate) fn mask(self, bytes: &[u8]) -> Result<Value> {
        let mut data = ptr::null_mut();
        let len = bytes.len();
        // SAFETY: places for the buffer and its address.
        let buffer = self
            .made(|env, out| unsafe { sys::napi_create_arraybuffer(env, len, &mut data, out) })?;
        if len > 0 {
            // SAFETY: a new buffer of that length.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), len) };
        }
        let kind = sys::TypedarrayType::uint8_array;
        // SAFETY: the array covers the buffer.
        self.made(|env, out| unsafe { sys::napi_create_typedarray(env, kind, len, buffer, 0, out) })
    }

    /// A Float64Array, and where its numbers are: they stay there while the array lives.
    pub(crate) fn doubles(self, len: usize) -> Result<(Value, *mut f64)> {
        let mut data = ptr::null_mut();
        // SAFETY: places for the buffer and its address.
        let buffer = self.made(|env, out| unsafe {
            sys::napi_create_arraybuffer(env, len * 8, &mut data, out)
        })?;
        let kind = sys::TypedarrayType::float64_array;
        // SAFETY: the array covers the buffer.
        let array = self.made(|env, out| unsafe {
            sys::napi_create_typedarray(env, kind, len, buffer, 0, out)
        })?;
        Ok((array, data.cast()))
    }

    pub(crate) fn set_element(self, array: Value, index: u32, value: Value) -> Result<()> {
        // SAFETY: values of this call.
        ok(unsafe { sys::napi_set_element(self.env, array, index, value) })
    }

    pub(crate) fn object(self) -> Result<Value> {
        // SAFETY: a place for the answer.
        self.made(|env, out| unsafe { sys::napi_create_object(env, out) })
    }

    pub(crate) fn set(self, object: Value, name: &CStr, value: Value) -> Result<()> {
        // SAFETY: values of this call, and a text that ends with NUL.
        ok(unsafe { sys::napi_set_named_property(self.env, object, name.as_ptr(), value) })
    }

    /// A value that owns something, until it is collected or the environment ends.
    pub(crate) fn owner<T>(self, owned: Box<T>) -> Result<Value> {
        let data = Box::into_raw(owned);
        let finalize: sys::napi_finalize = Some(drop_box::<T>);
        let made = self.made(|env, out| {
            // SAFETY: the data is freed by `drop_box`, once.
            unsafe { sys::napi_create_external(env, data.cast(), finalize, ptr::null_mut(), out) }
        });
        if made.is_err() {
            // SAFETY: just made, and Node did not take it.
            drop(unsafe { Box::from_raw(data) });
        }
        made
    }

    /// A function with data of its own.
    ///
    /// # Safety
    /// `callback` expects such data.
    pub(crate) unsafe fn function<T>(
        self,
        callback: unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> Value,
        data: Box<T>,
    ) -> Result<Value> {
        let data: *mut c_void = Box::into_raw(data).cast();
        let function = self.made(|env, out| {
            // SAFETY: the caller's word for the callback; the data lives as long as the function.
            unsafe { sys::napi_create_function(env, ptr::null(), 0, Some(callback), data, out) }
        })?;
        // SAFETY: the data is freed by `drop_box`, once, when the function is collected.
        ok(unsafe {
            sys::napi_add_finalizer(
                self.env,
                function,
                data,
                Some(drop_box::<T>),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        })?;
        Ok(function)
    }

    pub(crate) fn keep(self, value: Value) -> Result<KeptValue> {
        let mut kept = ptr::null_mut();
        // SAFETY: an object of this call, and a place for the reference.
        ok(unsafe { sys::napi_create_reference(self.env, value, 1, &mut kept) })?;
        Ok(KeptValue(kept))
    }

    pub(crate) fn kept(self, kept: &KeptValue) -> Result<Value> {
        // SAFETY: a reference of this environment, which is never deleted.
        self.made(|env, out| unsafe { sys::napi_get_reference_value(env, kept.0, out) })
    }

    pub(crate) fn construct(self, class: Value, arguments: &[Value]) -> Result<Value> {
        let (count, values) = (arguments.len(), arguments.as_ptr());
        // SAFETY: values of this call, so many.
        self.made(|env, out| unsafe { sys::napi_new_instance(env, class, count, values, out) })
    }

    pub(crate) fn throw(self, error: Value) -> Result<()> {
        // SAFETY: an error of this call.
        ok(unsafe { sys::napi_throw(self.env, error) })
    }

    /// The arguments of the call, NULL for those that were not given, and its function's data.
    ///
    /// # Safety
    /// `info` is that of the call.
    #[inline]
    pub(crate) unsafe fn arguments<const N: usize>(
        self,
        info: sys::napi_callback_info,
    ) -> Option<([Value; N], *mut c_void)> {
        let (mut values, mut count, mut data) = ([ptr::null_mut(); N], N, ptr::null_mut());
        // SAFETY: the caller's word; there is room for so many.
        let status = unsafe {
            sys::napi_get_cb_info(
                self.env,
                info,
                &mut count,
                values.as_mut_ptr(),
                ptr::null_mut(),
                &mut data,
            )
        };
        // What was not given is `undefined`, which would have to be asked for.
        values.iter_mut().skip(count).for_each(|value| *value = ptr::null_mut());
        (status == sys::Status::napi_ok).then_some((values, data))
    }
}

/// Frees what a function or an external value owned.
unsafe extern "C" fn drop_box<T>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // A panic must not cross into Node. No caller could be given an error.
    let dropped = std::panic::catch_unwind(|| {
        // SAFETY: made by `Box::into_raw` of this type, and freed by Node once.
        drop(unsafe { Box::from_raw(data.cast::<T>()) });
    });
    std::mem::forget(dropped);
}
