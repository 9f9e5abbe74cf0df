//! Keys that are blocked by hand.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use policy::BlockedKey;

use crate::boundary::{answer, given};
use crate::changes::{change, changing, named, tg_change_options};
use crate::json;
use crate::key::tg_key;
use crate::rule::tg_rule;
use crate::status::tg_status;

/// Refuses a key from the next hit on, with reason "blocked": for a ban, or as long as an
/// upstream's `Retry-After` says. What was said of the key before is replaced.
///
/// The block is kept with the store and acts in every process that shares it. It counts for no
/// cooldown, backoff or alert. `tg_record`, `tg_spend` and `tg_renew` work, and exempt keys pass;
/// `tg_reset` ends it. If as many keys are blocked as the rule has room for, it is TG_STATUS_STORE.
/// `options` and `out_number` as in `tg_set_override_with`.
///
/// Statuses: those of a key and of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_block(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        let key = given(key, "key")?;
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        unsafe { key.with(|call| Ok(changing.block(*call))) }
    })
}

/// Ends a block. Returns 1, 0 if the key was not blocked, or a tg_status below 0.
///
/// Statuses: those of a key and of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_unblock(rule: Option<&tg_rule>, key: Option<&tg_key>) -> c_int {
    // SAFETY: the caller's word.
    unsafe { tg_unblock_with(rule, key, None) }
}

/// As `tg_unblock`, with options, which may be NULL.
///
/// Statuses: those of a key and of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_unblock_with(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    options: Option<&tg_change_options>,
) -> c_int {
    answer(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        unsafe { key.with(|call| changing.unblock(*call).map_err(named)) }
    })
}

/// The keys that are blocked, a JSON list: key (a list of parts), until_ms (Unix time; null: for
/// good), by, reason.
///
/// Writes the text to `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn tg_blocks(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(rule, "rule", out, |rule| {
        Ok(rule.rule.blocks()?.iter().map(BlockedKey::to_value).collect())
    })
}
