//! Which library this is, and what needs no limiter.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::boundary::{given, guard, text, write_text};
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// The version of the structures and functions of this header. It grows when something is added.
pub const TG_ABI_VERSION: u32 = 3;
/// The oldest version that programs may have been compiled for.
pub const TG_ABI_VERSION_OLDEST: u32 = 3;
/// Bytes that every key of `tg_ip_key` fits into, with its NUL.
pub const TG_IP_KEY_SIZE: usize = 64;
/// The part of an IPv6 address that one customer has, as a rule.
pub const TG_V6_PREFIX: u32 = 56;

// The longest is an IPv6 address of 45 characters, a slash and three digits.
const _: () = assert!(TG_V6_PREFIX == policy::V6_PREFIX as u32 && TG_IP_KEY_SIZE > 49);

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version: "0.1.0". Never NULL, and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tg_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// The library's TG_ABI_VERSION, which may be later than the header's.
#[unsafe(no_mangle)]
pub extern "C" fn tg_abi_version() -> u32 {
    TG_ABI_VERSION
}

/// The library's TG_ABI_VERSION_OLDEST: a program compiled with a TG_ABI_VERSION from this to
/// `tg_abi_version` works with it.
#[unsafe(no_mangle)]
pub extern "C" fn tg_abi_version_oldest() -> u32 {
    TG_ABI_VERSION_OLDEST
}

/// Makes a key of a client's address: IPv4 as it is, IPv6 cut to its first `v6_prefix` bits
/// (TG_V6_PREFIX, unless you know better). IPv4-mapped IPv6 addresses are unmapped first.
///
/// Writes as `tg_decision_headers` does; TG_IP_KEY_SIZE bytes are always enough.
///
/// Statuses: TG_STATUS_UTF8, TG_STATUS_ADDRESS, TG_STATUS_RANGE, TG_STATUS_LENGTH,
/// TG_STATUS_BUFFER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_ip_key(
    address: *const c_char,
    v6_prefix: u32,
    buffer: *mut c_char,
    capacity: usize,
    out_len: Option<&mut MaybeUninit<usize>>,
) -> tg_status {
    guard(|| {
        // SAFETY: the caller's word.
        let address = unsafe { text(address, "address") }?;
        let out_len = given(out_len, "out_len")?;
        let prefix = u8::try_from(v6_prefix).map_err(|_| {
            let message = format!("a prefix has 0 to 128 bits, not {v6_prefix}");
            Failure::new(TG_STATUS_ADDRESS, message)
        })?;
        let key = policy::ip_key(address, prefix)?;
        // SAFETY: the caller's word.
        unsafe { write_text(&key, buffer, capacity, out_len) }
    })
}
