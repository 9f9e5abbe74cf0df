//! What is changed while a limiter is at work: overrides, default limits, exemptions and the mode.
//!
//! A `_with` function makes the change; the function without takes no options and calls it.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::time::Duration;

use policy::bindings::{self, limit_patches, overrides_value};
use policy::{ChangeOptions, Changing, LimitPatches, Match, Mode, Target};
use serde_json::Value;

use crate::boundary::{given, guard, optional_text, text};
use crate::json;
use crate::key::tg_key;
use crate::memory::has_room;
use crate::rule::tg_rule;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// The `version` of tg_change_options.
pub const TG_CHANGE_OPTIONS_VERSION: u32 = 1;

/// How long a run-time change lasts, its maker and the reason. Start from TG_CHANGE_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_change_options {
    /// TG_CHANGE_OPTIONS_VERSION.
    pub version: u32,
    /// 0.
    pub reserved: u32,
    /// After so many milliseconds the change ends by itself; at most 36,600 days. What was there
    /// before it is not restored. 0: the change stands until it is taken back. A change that takes
    /// something back has no end: for it, anything but 0 is TG_STATUS_OPERATION.
    pub for_ms: u64,
    /// Its maker, at most 200 bytes; or NULL.
    pub by: *const c_char,
    /// Why, at most 1,000 bytes; or NULL.
    pub reason: *const c_char,
}

impl tg_change_options {
    /// # Safety
    /// What it points to is there.
    unsafe fn read(&self) -> Result<ChangeOptions, Failure> {
        let wrong = |message| Err(Failure::new(TG_STATUS_ARGUMENT, message));
        if self.version != TG_CHANGE_OPTIONS_VERSION {
            return wrong(format!(
                "options.version is {}: use TG_CHANGE_OPTIONS_INIT",
                self.version
            ));
        }
        if self.reserved != 0 {
            let message = "options.reserved is not 0: use TG_CHANGE_OPTIONS_INIT";
            return wrong(message.to_string());
        }
        // SAFETY: the caller's word.
        let by = unsafe { optional_text(self.by, "options.by") }?;
        // SAFETY: the caller's word.
        let reason = unsafe { optional_text(self.reason, "options.reason") }?;
        let for_ = (self.for_ms > 0).then(|| Duration::from_millis(self.for_ms));
        let mut options = ChangeOptions::default().for_(for_);
        (options.by, options.reason) = (by.map(str::to_string), reason.map(str::to_string));
        Ok(options)
    }
}

/// An error about options, by the names that they have in C.
pub(crate) fn named(error: policy::Error) -> Failure {
    match error.to_string().strip_prefix("for_: ") {
        Some(rest) => Failure::of(error.code(), format!("options.for_ms: {rest}")),
        None => error.into(),
    }
}

/// A rule, to be changed with these options. NULL: none.
///
/// # Safety
/// What the options point to is there.
pub(crate) unsafe fn changing<'r>(
    rule: &'r tg_rule,
    options: Option<&tg_change_options>,
) -> Result<Changing<'r>, Failure> {
    let options = match options {
        None => ChangeOptions::default(),
        // SAFETY: the caller's word.
        Some(options) => unsafe { options.read() }?,
    };
    rule.rule.changing(options).map_err(named)
}

/// Changes a rule, and writes the change's number down.
pub(crate) fn change(
    rule: Option<&tg_rule>,
    out_number: Option<&mut MaybeUninit<u64>>,
    change: impl FnOnce(&tg_rule) -> Result<Result<u64, policy::Error>, Failure>,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        has_room(0)?;
        let number = change(rule)?.map_err(named)?;
        if let Some(out) = out_number {
            out.write(number);
        }
        Ok(())
    })
}

/// As [`change`], of what a match selects.
///
/// # Safety
/// What the options point to is there, and the match is a text that ends with NUL, if there is one.
unsafe fn change_matching(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
    how: impl FnOnce(Changing<'_>, Match) -> Result<u64, policy::Error>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let matches = unsafe { matching(match_json) }?;
        Ok(how(changing, matches))
    })
}

/// Whether something was changed: 1, 0, or a status below 0.
fn whether(change: impl FnOnce(Option<&mut MaybeUninit<u64>>) -> tg_status) -> c_int {
    let mut number = MaybeUninit::new(0);
    match change(Some(&mut number)) {
        // SAFETY: it was 0 from the start.
        TG_STATUS_OK => c_int::from(unsafe { number.assume_init() } > 0),
        status => -(status as c_int),
    }
}

impl tg_rule {
    /// Reads what changes of this rule's limits.
    ///
    /// # Safety
    /// A text that ends with NUL, if there is one.
    unsafe fn patches(&self, limits: *const c_char) -> Result<LimitPatches, Failure> {
        // SAFETY: the caller's word.
        let limits = unsafe { json::read(limits, "limits") }?;
        let (policy, name) = (self.limiter.policy(), self.rule.name());
        let rule = policy.rules.iter().find(|(other, _)| *other == name);
        let names = rule.into_iter().flat_map(|(_, rule)| &rule.limits);
        let names: Vec<&str> = names.map(|limit| limit.name()).collect();
        Ok(limit_patches(&limits, &names)?)
    }
}

/// # Safety
/// What the key points to is there.
unsafe fn target(key: Option<&tg_key>) -> Result<Target, Failure> {
    // SAFETY: the caller's word.
    unsafe { given(key, "key")?.with(|call| Ok(Target::key(call.key()))) }
}

/// # Safety
/// A text that ends with NUL, if there is one.
unsafe fn matching(text: *const c_char) -> Result<Match, Failure> {
    // SAFETY: the caller's word.
    Ok(Match::from_value(&unsafe { json::read(text, "match") }?)?)
}

/// Judges a key by other limits from the next hit on, in every process that shares the store.
///
/// `limits` is JSON: `{"per-minute": {"max": 60}}`, or for a rule with one limit a text,
/// `"60/min"`. What was set for the same key before is replaced. Of `key` only the key itself
/// counts.
///
/// Statuses: those of a key and of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    limits: *const c_char,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { tg_set_override_with(rule, key, limits, None, None) }
}

/// As `tg_set_override`, with options, and the number of the change.
///
/// So with each `..._with`: `options` may be NULL. `out_number` may be NULL. If not, the number
/// that the change has in `tg_changes` is written to it: 0 if there was nothing to take back.
///
/// Statuses: those of a key and of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override_with(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    limits: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let target = unsafe { target(key) }?;
        // SAFETY: the caller's word.
        let limits = unsafe { rule.patches(limits) }?;
        Ok(changing.set_override(target, limits))
    })
}

/// As `tg_set_override`, for all calls that match: `{"role": ["admin", "system"]}`, as JSON.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override_match(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    limits: *const c_char,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { tg_set_override_match_with(rule, match_json, limits, None, None) }
}

/// As `tg_set_override_match`, with options.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override_match_with(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    limits: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let matches = unsafe { matching(match_json) }?;
        // SAFETY: the caller's word.
        let limits = unsafe { rule.patches(limits) }?;
        Ok(changing.set_override(matches, limits))
    })
}

/// Takes a key's override back. Returns 1, 0 if there was none, or a tg_status below 0.
///
/// Statuses: those of a key and of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override(rule: Option<&tg_rule>, key: Option<&tg_key>) -> c_int {
    // SAFETY: the caller's word.
    whether(|number| unsafe { tg_clear_override_with(rule, key, None, number) })
}

/// Takes a key's override back, with options.
///
/// Statuses: those of a key and of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override_with(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let target = unsafe { target(key) }?;
        Ok(changing.clear_override(target))
    })
}

/// Takes the override of a match back. Returns as `tg_clear_override` does.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override_match(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> c_int {
    // SAFETY: the caller's word.
    whether(|number| unsafe { tg_clear_override_match_with(rule, match_json, None, number) })
}

/// Takes the override of a match back, with options.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override_match_with(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    let how = |changing: Changing<'_>, matches: Match| changing.clear_override(matches);
    // SAFETY: the caller's word.
    unsafe { change_matching(rule, match_json, options, out_number, how) }
}

/// The overrides in force, a JSON list of maps with limits, and key (a list of parts) or match.
///
/// Writes the text to `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn tg_overrides(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(rule, "rule", out, |rule| Ok(overrides_value(&rule.rule.overrides()?)))
}

/// Changes the rule's own limits from the next hit on; `limits` as in `tg_set_override`, and `{}`
/// takes that back.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_default(
    rule: Option<&tg_rule>,
    limits: *const c_char,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { tg_set_default_with(rule, limits, None, None) }
}

/// As `tg_set_default`, with options.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_default_with(
    rule: Option<&tg_rule>,
    limits: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let limits = unsafe { rule.patches(limits) }?;
        Ok(changing.set_default(limits))
    })
}

/// Allows the calls that match (JSON, as in `tg_set_override_match`) from the next hit on,
/// uncounted.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_add_exempt(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { tg_add_exempt_with(rule, match_json, None, None) }
}

/// As `tg_add_exempt`, with options.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_add_exempt_with(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    let how = |changing: Changing<'_>, matches: Match| changing.add_exempt(matches);
    // SAFETY: the caller's word.
    unsafe { change_matching(rule, match_json, options, out_number, how) }
}

/// Takes an exemption back, the policy's own too. Returns 1, 0 if it was not in force, or a
/// tg_status below 0.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_remove_exempt(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> c_int {
    // SAFETY: the caller's word.
    whether(|number| unsafe { tg_remove_exempt_with(rule, match_json, None, number) })
}

/// Takes an exemption back, with options.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_remove_exempt_with(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    let how = |changing: Changing<'_>, matches: Match| changing.remove_exempt(&matches);
    // SAFETY: the caller's word.
    unsafe { change_matching(rule, match_json, options, out_number, how) }
}

/// Replaces all exemptions by these, a JSON list of matches.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_exempts(
    rule: Option<&tg_rule>,
    matches: *const c_char,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { tg_set_exempts_with(rule, matches, None, None) }
}

/// As `tg_set_exempts`, with options.
///
/// Statuses: those of a change; TG_STATUS_POLICY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_exempts_with(
    rule: Option<&tg_rule>,
    matches: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let Value::Array(all) = unsafe { json::read(matches, "matches") }? else {
            return Err(Failure::new(TG_STATUS_ARGUMENT, "`matches` is not a JSON list"));
        };
        let all = all.iter().map(Match::from_value).collect::<Result<_, _>>()?;
        Ok(changing.set_exempts(all))
    })
}

/// The exemptions in force, a JSON list of matches.
///
/// Writes the text to `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn tg_exempts(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(rule, "rule", out, |rule| {
        Ok(rule.rule.exempts()?.iter().map(Match::to_value).collect())
    })
}

/// # Safety
/// A text that ends with NUL, if there is one.
unsafe fn mode(mode: *const c_char) -> Result<Mode, Failure> {
    // SAFETY: the caller's word.
    let mode = unsafe { text(mode, "mode") }?;
    bindings::mode(mode).ok_or_else(|| {
        let mode: String = mode.escape_debug().take(40).collect();
        let message = format!("`mode` is \"enforce\", \"shadow\" or \"off\", not \"{mode}\"");
        Failure::new(TG_STATUS_ARGUMENT, message)
    })
}

/// Judges in this mode from the next hit on, whatever the policy and its `when` say: "enforce",
/// "shadow" (every hit is allowed, and `would_deny` says what would have been) or "off" (nothing is
/// counted).
///
/// `options` and `out_number` as in `tg_set_override_with`.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_mode(
    rule: Option<&tg_rule>,
    mode: *const c_char,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        // SAFETY: the caller's word.
        let mode = unsafe { self::mode(mode) }?;
        Ok(changing.set_mode(mode))
    })
}

/// Takes `tg_set_mode` back: the policy's mode is in force again.
///
/// `options` and `out_number` as in `tg_set_override_with`.
///
/// Statuses: those of a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_mode(
    rule: Option<&tg_rule>,
    options: Option<&tg_change_options>,
    out_number: Option<&mut MaybeUninit<u64>>,
) -> tg_status {
    change(rule, out_number, |rule| {
        // SAFETY: the caller's word.
        let changing = unsafe { changing(rule, options) }?;
        Ok(changing.clear_mode())
    })
}
