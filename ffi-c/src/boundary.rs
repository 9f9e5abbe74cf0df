//! Where C comes in: NULL, lengths, text, and panics that go no further.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::memory;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// Runs the body of a function that says how it went. It does not begin while memory is short.
#[inline(always)]
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> tg_status {
    // A failure is reported within: a result that holds one would go through memory.
    let run =
        || memory::is_left().and_then(|()| body()).map_or_else(Failure::report, |()| TG_STATUS_OK);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked)
}

/// Runs the body of a function that says yes (1), no (0), or what went wrong (less than 0). It
/// begins also while memory is short: some of these functions give back.
#[inline(always)]
pub(crate) fn answer(body: impl FnOnce() -> Result<bool, Failure>) -> c_int {
    let run = || body().map_or_else(|failure| -(failure.report() as c_int), c_int::from);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| -(panicked(panic) as c_int))
}

/// Frees a handle, or nothing; a panic on the way ends here.
pub(crate) fn free<T>(handle: Option<Box<T>>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(handle))) {
        panicked(panic);
    }
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> tg_status {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    // What it carries may panic again when dropped.
    std::mem::forget(panic);
    Failure::new(TG_STATUS_PANIC, format!("a mistake in Tidegate: {text}")).report()
}

#[cold]
#[inline(never)]
pub(crate) fn null(name: &str) -> Failure {
    Failure::new(TG_STATUS_NULL, format!("`{name}` is NULL"))
}

/// What must not be NULL.
#[inline]
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| null(name))
}

/// `count` objects, which may be at NULL if there are none.
///
/// # Safety
/// What is at `data`, if anything, is that many and stays as it is meanwhile.
#[inline]
pub(crate) unsafe fn slice<'a, T>(
    data: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(null(name));
    }
    length(count, size_of::<T>(), name)?;
    // SAFETY: not NULL, not longer than any object, and the caller's word for the rest.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// As [`slice`], to be written.
///
/// # Safety
/// As [`slice`], and no other thread reads or writes it meanwhile.
pub(crate) unsafe fn room<'a, T>(
    data: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(null(name));
    }
    length(count, size_of::<T>(), name)?;
    // SAFETY: as in `slice`; what is there may be of any value.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), count) })
}

#[inline]
fn length(count: usize, size: usize, name: &str) -> Result<(), Failure> {
    match count.checked_mul(size).is_some_and(|bytes| bytes <= isize::MAX as usize) {
        true => Ok(()),
        false => Err(no_length(count, name)),
    }
}

#[cold]
#[inline(never)]
fn no_length(count: usize, name: &str) -> Failure {
    Failure::new(TG_STATUS_LENGTH, format!("`{name}`: {count} is no length"))
}

/// Text that ends with NUL.
///
/// # Safety
/// What is at `text`, if anything, does.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: not NULL, and the caller's word for the rest.
    utf8(unsafe { CStr::from_ptr(text) }.to_bytes(), name)
}

/// As [`text`], which may be NULL.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(
    text: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: the caller's word.
        false => unsafe { self::text(text, name) }.map(Some),
    }
}

pub(crate) fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Failure> {
    let wrong = |_| Failure::new(TG_STATUS_UTF8, format!("`{name}` is not UTF-8 text"));
    std::str::from_utf8(bytes).map_err(wrong)
}

/// Writes a text and its NUL into a caller's buffer; of no capacity, only how long it is.
///
/// # Safety
/// `buffer` has that capacity, if any.
pub(crate) unsafe fn write_text(
    text: &str,
    buffer: *mut c_char,
    capacity: usize,
    out_len: &mut MaybeUninit<usize>,
) -> Result<(), Failure> {
    if capacity > 0 {
        // SAFETY: the caller's word.
        let room = unsafe { room(buffer.cast::<u8>(), capacity, "buffer") }?;
        if capacity <= text.len() {
            let message = format!("the buffer has {capacity} bytes; {} are needed", text.len() + 1);
            return Err(Failure::new(TG_STATUS_BUFFER, message));
        }
        let bytes = text.bytes().chain([0]);
        for (to, byte) in room.iter_mut().zip(bytes) {
            to.write(byte);
        }
    }
    out_len.write(text.len());
    Ok(())
}

/// A text that the caller frees with `tg_string_free`.
pub(crate) fn owned_text(text: String) -> Result<*mut c_char, Failure> {
    let text = CString::new(text);
    text.map(CString::into_raw).map_err(|_| Failure::new(TG_STATUS_OTHER, "a text with a NUL"))
}

/// Frees a text that a function of this library wrote to a `char **`. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: made by `owned_text`, and freed once, as the header asks.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Panics inside, to see what comes out.
#[cfg(feature = "test-hooks")]
#[unsafe(no_mangle)]
pub extern "C" fn tg_test_panic() -> tg_status {
    guard(|| panic!("on purpose"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(guard(|| panic!("on purpose")), TG_STATUS_PANIC);
        assert_eq!(answer(|| panic!("{}", 7)), -30);
        struct Twice;
        impl Drop for Twice {
            fn drop(&mut self) {
                panic!("again")
            }
        }
        assert_eq!(guard(|| std::panic::panic_any(Twice)), TG_STATUS_PANIC);
        free(Some(Box::new(Twice)));
    }
}
