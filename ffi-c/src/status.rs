//! What a call can come to, and the message of the last one that failed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};

use policy::Code;

/// What a call came to. Numbers are never changed nor used again.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tg_status {
    /// It was done. A denial is an answer, and so is also TG_STATUS_OK.
    TG_STATUS_OK = 0,
    /// A pointer is NULL that must not be.
    TG_STATUS_NULL = 1,
    /// A structure of another version, a constant that there is not, or a text that is no JSON.
    TG_STATUS_ARGUMENT = 2,
    /// A length that no object has.
    TG_STATUS_LENGTH = 3,
    /// A text that is not UTF-8.
    TG_STATUS_UTF8 = 4,
    /// The buffer is too small; the message says how much is needed.
    TG_STATUS_BUFFER = 5,
    /// A limit, rule or policy that can't be had.
    TG_STATUS_POLICY = 10,
    /// A key that is not the rule's: a wrong number of parts.
    TG_STATUS_KEY = 11,
    /// No rule of that name.
    TG_STATUS_RULE = 12,
    /// The operation is not one for this rule or limiter.
    TG_STATUS_OPERATION = 13,
    /// A number outside of what is allowed, such as a `max` above the rule's ceiling.
    TG_STATUS_RANGE = 14,
    /// An address that is none.
    TG_STATUS_ADDRESS = 15,
    /// The store can't be had or used.
    TG_STATUS_STORE = 16,
    /// A file that can't be read.
    TG_STATUS_FILE = 17,
    /// More memory than the policy allows, or than there is.
    TG_STATUS_MEMORY = 18,
    /// The limiter was closed.
    TG_STATUS_CLOSED = 19,
    /// A mistake in Tidegate itself. The process goes on; please report the message.
    TG_STATUS_PANIC = 30,
    /// Something that this version has no number for; the message says what.
    TG_STATUS_OTHER = 31,
}

use tg_status::*;

const NAMES: [(tg_status, &CStr); 18] = [
    (TG_STATUS_OK, c"ok"),
    (TG_STATUS_NULL, c"null"),
    (TG_STATUS_ARGUMENT, c"argument"),
    (TG_STATUS_LENGTH, c"length"),
    (TG_STATUS_UTF8, c"utf8"),
    (TG_STATUS_BUFFER, c"buffer"),
    (TG_STATUS_POLICY, c"policy"),
    (TG_STATUS_KEY, c"key"),
    (TG_STATUS_RULE, c"rule"),
    (TG_STATUS_OPERATION, c"operation"),
    (TG_STATUS_RANGE, c"range"),
    (TG_STATUS_ADDRESS, c"address"),
    (TG_STATUS_STORE, c"store"),
    (TG_STATUS_FILE, c"file"),
    (TG_STATUS_MEMORY, c"memory"),
    (TG_STATUS_CLOSED, c"closed"),
    (TG_STATUS_PANIC, c"panic"),
    (TG_STATUS_OTHER, c"other"),
];

/// Why a call failed.
pub(crate) struct Failure {
    status: tg_status,
    message: Cow<'static, str>,
}

impl Failure {
    #[cold]
    pub(crate) fn new(status: tg_status, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure { status, message: message.into() }
    }

    /// Leaves the message to the thread.
    #[cold]
    pub(crate) fn report(self) -> tg_status {
        LAST.with_borrow_mut(|last| last.keep(self.status, &self.message));
        self.status
    }
}

impl From<policy::Error> for Failure {
    #[cold]
    fn from(error: policy::Error) -> Failure {
        Failure::of(error.code(), error.to_string())
    }
}

impl Failure {
    /// What an error of this code is in C.
    #[cold]
    pub(crate) fn of(code: Code, message: String) -> Failure {
        let status = match code {
            Code::Policy => TG_STATUS_POLICY,
            Code::Key => TG_STATUS_KEY,
            Code::Rule => TG_STATUS_RULE,
            Code::Operation => TG_STATUS_OPERATION,
            Code::Range => TG_STATUS_RANGE,
            Code::Address => TG_STATUS_ADDRESS,
            Code::Store => TG_STATUS_STORE,
            Code::File => TG_STATUS_FILE,
            Code::Memory => TG_STATUS_MEMORY,
            Code::Closed => TG_STATUS_CLOSED,
            _ => TG_STATUS_OTHER,
        };
        Failure::new(status, message)
    }
}

/// Bytes of the message that a thread keeps, with its NUL.
const TEXT_SIZE: usize = 4096;

/// With what status and why a thread's last call failed that did.
///
/// It is in the thread's own memory and has no destructor: to keep a message needs no memory, also
/// on a thread's first call, and a thread that ends has it to its end.
struct Last {
    status: i32,
    text: [u8; TEXT_SIZE],
    /// Bytes of `text` before its NUL.
    end: usize,
    /// Bytes of the whole message.
    length: usize,
}

thread_local! {
    static LAST: RefCell<Last> = const {
        RefCell::new(Last { status: 0, text: [0; TEXT_SIZE], end: 0, length: 0 })
    };
}

impl Last {
    /// Keeps as many of the message's characters as fit. A NUL is written as `\0`.
    fn keep(&mut self, status: tg_status, message: &str) {
        (self.status, self.end, self.length) = (status as i32, 0, 0);
        for character in message.chars() {
            let mut utf8 = [0; 4];
            let bytes = match character {
                '\0' => "\\0",
                other => other.encode_utf8(&mut utf8),
            };
            let is_whole = self.end == self.length;
            self.length += bytes.len();
            if is_whole && self.length < TEXT_SIZE {
                self.text[self.end..self.length].copy_from_slice(bytes.as_bytes());
                self.end = self.length;
            }
        }
        self.text[self.end] = 0;
    }
}

/// Reads why the last call of this thread failed that did: status, text, bytes of the whole
/// message.
pub(crate) fn with_last<R>(read: impl FnOnce(i32, &str, usize) -> R) -> R {
    LAST.with_borrow(|last| {
        let text = std::str::from_utf8(&last.text[..last.end]);
        read(last.status, text.unwrap_or_default(), last.length)
    })
}

/// Why the last call that failed on this thread did so: text that ends with NUL, "" if none has.
///
/// Ask on the thread that failed. The text is the library's: it is good until the next call of this
/// thread that fails. A call that succeeds leaves it as it was. Of a message of more than 4,095
/// bytes it is the start.
#[unsafe(no_mangle)]
pub extern "C" fn tg_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.text.as_ptr().cast())
}

/// A status as a word: "ok", "null", "policy" and so on; "unknown" for a number that is none. The
/// sign does not matter, so that what `tg_allow` returned can be asked for too. Never NULL, and
/// never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tg_status_name(status: i32) -> *const c_char {
    let known =
        NAMES.iter().find(|(known, _)| (*known as i32).unsigned_abs() == status.unsigned_abs());
    known.map_or(c"unknown", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failure_is_the_threads_own() {
        // SAFETY: the text is the library's, and this thread does not fail meanwhile.
        let last = || unsafe { CStr::from_ptr(tg_last_error()) }.to_owned();
        assert_eq!(Failure::new(TG_STATUS_KEY, "a\0b").report(), TG_STATUS_KEY);
        assert_eq!(&*last(), c"a\\0b");
        std::thread::spawn(move || assert_eq!(&*last(), c"")).join().unwrap();
    }

    #[test]
    fn a_long_message_keeps_its_start() {
        let message = "ä".repeat(TEXT_SIZE);
        Failure::new(TG_STATUS_KEY, message).report();
        with_last(|_, text, length| assert_eq!((text.len(), length), (4094, 2 * TEXT_SIZE)));
        Failure::new(TG_STATUS_RULE, "short").report();
        with_last(|status, text, length| assert_eq!((status, text, length), (12, "short", 5)));
    }
}
