//! JSON that C hands over, and that is handed to C.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use serde_json::Value;

use crate::boundary::{given, guard, owned_text, text};
use crate::memory::has_room;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// Reads a JSON text that ends with NUL.
///
/// # Safety
/// It does, if it is there.
pub(crate) unsafe fn read(json: *const c_char, name: &str) -> Result<Value, Failure> {
    // SAFETY: the caller's word.
    let text = unsafe { text(json, name) }?;
    has_room(text.len())?;
    let wrong = |error| Failure::new(TG_STATUS_ARGUMENT, format!("`{name}` is not JSON: {error}"));
    serde_json::from_str(text).map_err(wrong)
}

/// Bytes of a long text of ours.
const TEXT: usize = 16 << 10;

/// Writes what is known of a handle as a text that the caller frees.
pub(crate) fn write<T>(
    handle: Option<&T>,
    name: &str,
    out: Option<&mut MaybeUninit<*mut c_char>>,
    value: impl FnOnce(&T) -> Result<Value, Failure>,
) -> tg_status {
    guard(|| {
        let (handle, out) = (given(handle, name)?, given(out, "out")?);
        has_room(TEXT)?;
        out.write(owned_text(value(handle)?.to_string())?);
        Ok(())
    })
}
