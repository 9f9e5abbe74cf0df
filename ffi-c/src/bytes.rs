//! Calls whose key is some bytes: for languages that can't hand over structures of pointers, and
//! whose calls move between threads.
//!
//! Each builds the tg_key and calls the function that has its name without `_bytes`. What checks
//! the arguments is there.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use crate::blocks::{tg_block, tg_unblock_with};
use crate::boundary::{given, guard, room, slice};
use crate::changes::{tg_change_options, tg_clear_override_with, tg_set_override_with};
use crate::decision::tg_decision;
use crate::error::{keep, tg_error};
use crate::held::{tg_permit, tg_permit_handle, tg_reservation, tg_reserve};
use crate::key::tg_key;
use crate::memory::list;
use crate::rule::*;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// Spends `cost` for a key if its rule allows: `tg_hit` for a key of `key_len` bytes at `key`.
///
/// So with each `..._bytes`: it is the function of that name, for a key that is one part, without
/// attributes. No argument is a structure that holds pointers. `error` is where a call that fails
/// leaves the reason; it may be NULL.
///
/// Statuses: those of `tg_hit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_hit_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_hit(rule, Some(&key), cost, out) }, error)
}

/// `tg_check` for a key of bytes.
///
/// Statuses: those of `tg_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_check_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_check(rule, Some(&key), cost, out) }, error)
}

/// `tg_peek` for a key of bytes.
///
/// Statuses: those of `tg_peek`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_peek_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_peek(rule, Some(&key), cost, out) }, error)
}

/// `tg_record` for a key of bytes.
///
/// Statuses: those of `tg_record`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_record_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_recorded>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_record(rule, Some(&key), cost, out) }, error)
}

/// `tg_refund` for a key of bytes.
///
/// Statuses: those of `tg_refund`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_refund_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_refund(rule, Some(&key), cost) }, error)
}

/// `tg_reserve` for a key of bytes.
///
/// Statuses: those of `tg_reserve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_reserve_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    estimate: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
    out_reservation: Option<&mut MaybeUninit<*mut tg_reservation>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_reserve(rule, Some(&key), estimate, out, out_reservation) }, error)
}

/// `tg_permit` for a key of bytes.
///
/// Statuses: those of `tg_permit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_permit_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    out: Option<&mut MaybeUninit<tg_decision>>,
    out_permit: Option<&mut MaybeUninit<*mut tg_permit_handle>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_permit(rule, Some(&key), out, out_permit) }, error)
}

/// `tg_spend` for a key of bytes.
///
/// Statuses: those of `tg_spend`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_spend_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    amount: u64,
    out: Option<&mut MaybeUninit<tg_budget_state>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_spend(rule, Some(&key), amount, out) }, error)
}

/// `tg_budget` for a key of bytes.
///
/// Statuses: those of `tg_budget`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_budget_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    out: Option<&mut MaybeUninit<tg_budget_state>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_budget(rule, Some(&key), out) }, error)
}

/// `tg_is_limited` for a key of bytes.
///
/// Statuses: those of `tg_is_limited`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_is_limited_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> c_int {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_is_limited(rule, Some(&key)) }, error)
}

/// `tg_stats` for a key of bytes.
///
/// Statuses: those of `tg_stats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_stats_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    out: Option<&mut MaybeUninit<tg_key_stats>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_stats(rule, Some(&key), out) }, error)
}

/// `tg_why` for a key of bytes.
///
/// Statuses: those of `tg_why`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_why_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    cost: u64,
    out: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_why(rule, Some(&key), cost, out) }, error)
}

/// `tg_reset` for a key of bytes.
///
/// Statuses: those of `tg_reset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_reset_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_reset(rule, Some(&key)) }, error)
}

/// `tg_block` for a key of bytes.
///
/// The texts of `options`, if any, are in memory of C's.
///
/// Statuses: those of `tg_block`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_block_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_block(rule, Some(&key), options, out_number) }, error)
}

/// `tg_unblock_with` for a key of bytes.
///
/// Statuses: those of `tg_unblock_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_unblock_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    options: Option<&tg_change_options>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> c_int {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_unblock_with(rule, Some(&key), options) }, error)
}

/// `tg_set_override_with` for a key of bytes.
///
/// Statuses: those of `tg_set_override_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    limits: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_set_override_with(rule, Some(&key), limits, options, out_number) }, error)
}

/// `tg_clear_override_with` for a key of bytes.
///
/// Statuses: those of `tg_clear_override_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override_bytes(
    rule: Option<&tg_rule>,
    key: *const u8,
    key_len: usize,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let key = tg_key::of_bytes(key, key_len);
    // SAFETY: the caller's word.
    keep(unsafe { tg_clear_override_with(rule, Some(&key), options, out_number) }, error)
}

/// `tg_allow_many` for keys that lie one after the other at `keys`: the first `key_lens[0]` bytes
/// are the first key, and so on. One call costs such a language far less than `count` calls.
///
/// `key_lens` has `count` lengths, and `out_mask` room for `count`. All keys together have
/// `keys_len` bytes: where that is not the sum of the lengths, it is TG_STATUS_LENGTH.
///
/// Statuses: those of `tg_allow_many`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_allow_many_bytes(
    rule: Option<&tg_rule>,
    keys: *const u8,
    keys_len: usize,
    key_lens: *const usize,
    count: usize,
    out_mask: *mut u8,
    error: Option<&mut MaybeUninit<tg_error>>,
) -> tg_status {
    let status = guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let keys = unsafe { slice(keys, keys_len, "keys") }?;
        // SAFETY: the caller's word.
        let lens = unsafe { slice(key_lens, count, "key_lens") }?;
        // SAFETY: the caller's word.
        let out = unsafe { room(out_mask, count, "out_mask") }?;
        allow_each(rule, &split(keys, lens)?, out)
    });
    keep(status, error)
}

/// The keys that lie one after the other.
fn split<'k>(keys: &'k [u8], lens: &[usize]) -> Result<Vec<&'k [u8]>, Failure> {
    let (mut rest, mut all) = (keys, list(lens.len())?);
    for &len in lens {
        let (key, after) = rest.split_at_checked(len).ok_or_else(|| no_sum(keys))?;
        all.push(key);
        rest = after;
    }
    if rest.is_empty() { Ok(all) } else { Err(no_sum(keys)) }
}

#[cold]
fn no_sum(keys: &[u8]) -> Failure {
    let message = format!("`keys_len` is {}, which is not the sum of `key_lens`", keys.len());
    Failure::new(TG_STATUS_LENGTH, message)
}
