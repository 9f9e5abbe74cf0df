//! Why a call failed, in the caller's memory: for languages whose calls move between threads.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use crate::boundary::{guard, null};
use crate::status::tg_status::{self, *};
use crate::status::with_last;

/// Bytes of a tg_error's text, with its NUL.
pub const TG_ERROR_TEXT_SIZE: usize = 1008;

/// Why a call failed, in the caller's memory. It is written by a call that fails, and by no other.
///
/// It is plain data without pointers and needs no initial value. It never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_error {
    /// The tg_status that the call failed with.
    pub status: i32,
    /// 0.
    pub reserved: u32,
    /// Bytes of the whole message. If that is TG_ERROR_TEXT_SIZE or more, `text` is its start.
    pub length: u64,
    /// The message, UTF-8 that ends with NUL.
    pub text: [c_char; TG_ERROR_TEXT_SIZE],
}

impl tg_error {
    /// The longest start of a text that fits and ends where a character does.
    fn fitting(text: &str) -> &str {
        let fits = |&end: &usize| end < TG_ERROR_TEXT_SIZE && text.is_char_boundary(end);
        let end = (0..=text.len().min(TG_ERROR_TEXT_SIZE)).rev().find(fits);
        &text[..end.unwrap_or(0)]
    }

    fn new(status: i32, message: &str, length: usize) -> tg_error {
        let mut text = [0; TG_ERROR_TEXT_SIZE];
        for (to, byte) in text.iter_mut().zip(tg_error::fitting(message).bytes()) {
            *to = byte as c_char;
        }
        tg_error { status, reserved: 0, length: length as u64, text }
    }
}

/// Writes to `out` with what status and why the last call of this thread failed that did.
///
/// For calls that take no tg_error: ask in the same C function as the call that failed, so that
/// both run on one thread. Where none failed, `status` is 0 and `text` is "".
///
/// Statuses: TG_STATUS_NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tg_last_error_copy(out: Option<&mut MaybeUninit<tg_error>>) -> tg_status {
    match out {
        Some(out) => {
            with_last(|status, text, length| out.write(tg_error::new(status, text, length)));
            TG_STATUS_OK
        }
        None => guard(|| Err(null("out"))),
    }
}

/// Writes down why a call failed, if what it returned says that it did; hands that on.
#[inline]
pub(crate) fn keep<R: Outcome>(result: R, error: Option<&mut MaybeUninit<tg_error>>) -> R {
    if let (Some(status), Some(error)) = (result.failure(), error) {
        with_last(|_, text, length| error.write(tg_error::new(status, text, length)));
    }
    result
}

/// What calls return.
pub(crate) trait Outcome {
    /// The status of a failure.
    fn failure(&self) -> Option<i32>;
}

impl Outcome for tg_status {
    #[inline]
    fn failure(&self) -> Option<i32> {
        (*self != TG_STATUS_OK).then_some(*self as i32)
    }
}

/// 1, 0, or a tg_status below 0.
impl Outcome for c_int {
    #[inline]
    fn failure(&self) -> Option<i32> {
        (*self < 0).then_some(-*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = "ä".repeat(TG_ERROR_TEXT_SIZE);
        let error = tg_error::new(2, &message, message.len());
        let text: Vec<u8> = error.text.iter().map(|&byte| byte as u8).collect();
        let end = text.iter().position(|&byte| byte == 0).unwrap();
        assert_eq!(std::str::from_utf8(&text[..end]).unwrap().chars().count(), 503);
        assert_eq!(error.length, 2 * TG_ERROR_TEXT_SIZE as u64);
    }
}
