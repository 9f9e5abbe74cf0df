//! JSON that C hands over.

use std::ffi::c_char;

use serde_json::Value;

use crate::boundary::text;
use crate::status::Failure;
use crate::status::tg_status::*;

/// Reads a JSON text that ends with NUL.
///
/// # Safety
/// It does, if it is there.
pub(crate) unsafe fn read(json: *const c_char, name: &str) -> Result<Value, Failure> {
    // SAFETY: the caller's word.
    let text = unsafe { text(json, name) }?;
    let wrong = |error| Failure::new(TG_STATUS_ARGUMENT, format!("`{name}` is not JSON: {error}"));
    serde_json::from_str(text).map_err(wrong)
}
