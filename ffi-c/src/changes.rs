//! What is changed while a limiter is at work: overrides, exemptions, and the default limits.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use policy::{LimitPatches, Match, Target, limit_patches};
use serde_json::Value;

use crate::boundary::{answer, given, guard, owned_text};
use crate::json;
use crate::key::tg_key;
use crate::rule::tg_rule;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

impl tg_rule {
    /// Reads what changes of this rule's limits.
    fn patches(&self, limits: &Value) -> Result<LimitPatches, Failure> {
        let (policy, name) = (self.limiter.policy(), self.rule.name());
        let rule = policy.rules.iter().find(|(other, _)| *other == name);
        let names = rule.into_iter().flat_map(|(_, rule)| &rule.limits);
        let names: Vec<&str> = names.map(|limit| limit.name()).collect();
        Ok(limit_patches(limits, &names)?)
    }
}

/// # Safety
/// What the key points to is there.
unsafe fn target(key: &tg_key) -> Result<Target, Failure> {
    // SAFETY: the caller's word.
    unsafe { key.with(|call| Ok(Target::key(call.key()))) }
}

/// # Safety
/// A text that ends with NUL, if there is one.
unsafe fn matching(text: *const c_char) -> Result<Match, Failure> {
    // SAFETY: the caller's word.
    Ok(Match::from_value(&unsafe { json::read(text, "match") }?)?)
}

/// Judges a key by other limits from the next hit on, in every process that shares the store.
///
/// `limits` is JSON: `{"per-minute": {"max": 60}}`, or for a rule with one limit a text, `"60/min"`. What
/// was set for the same key before is replaced. Of `key` only the key itself counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    limits: *const c_char,
) -> tg_status {
    guard(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        // SAFETY: the caller's word.
        let limits = rule.patches(&unsafe { json::read(limits, "limits") }?)?;
        // SAFETY: the caller's word.
        Ok(rule.rule.set_override(unsafe { target(key) }?, limits)?)
    })
}

/// As `tg_set_override`, for all calls that match: `{"role": ["admin", "system"]}`, as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_override_match(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
    limits: *const c_char,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let limits = rule.patches(&unsafe { json::read(limits, "limits") }?)?;
        // SAFETY: the caller's word.
        Ok(rule.rule.set_override(unsafe { matching(match_json) }?, limits)?)
    })
}

/// Takes a key's override back. Returns 1, 0 if there was none, or a tg_status below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override(rule: Option<&tg_rule>, key: Option<&tg_key>) -> c_int {
    answer(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        // SAFETY: the caller's word.
        Ok(rule.rule.clear_override(unsafe { target(key) }?)?)
    })
}

/// Takes the override of a match back. Returns as `tg_clear_override` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_clear_override_match(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> c_int {
    answer(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        Ok(rule.rule.clear_override(unsafe { matching(match_json) }?)?)
    })
}

/// The overrides in force, a JSON list of maps with limits, and key (a list of parts) or match.
///
/// Writes the text to `out`; free it with `tg_string_free`.
#[unsafe(no_mangle)]
pub extern "C" fn tg_overrides(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    guard(|| {
        let (rule, out) = (given(rule, "rule")?, given(out, "out")?);
        out.write(owned_text(json::overrides(&rule.rule.overrides()?).to_string())?);
        Ok(())
    })
}

/// Changes the rule's own limits from the next hit on; `limits` as in `tg_set_override`, and `{}` takes
/// that back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_default(
    rule: Option<&tg_rule>,
    limits: *const c_char,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let limits = rule.patches(&unsafe { json::read(limits, "limits") }?)?;
        Ok(rule.rule.set_default(limits)?)
    })
}

/// Allows the calls that match (JSON, as in `tg_set_override_match`) from the next hit on, uncounted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_add_exempt(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        Ok(rule.rule.add_exempt(unsafe { matching(match_json) }?)?)
    })
}

/// Takes an exemption back, the policy's own too. Returns 1, 0 if it was not in force, or a tg_status
/// below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_remove_exempt(
    rule: Option<&tg_rule>,
    match_json: *const c_char,
) -> c_int {
    answer(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        Ok(rule.rule.remove_exempt(&unsafe { matching(match_json) }?)?)
    })
}

/// Puts these exemptions, a JSON list of matches, in place of all others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_set_exempts(
    rule: Option<&tg_rule>,
    matches: *const c_char,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let Value::Array(all) = unsafe { json::read(matches, "matches") }? else {
            return Err(Failure::new(TG_STATUS_ARGUMENT, "`matches` is not a JSON list"));
        };
        let all = all.iter().map(Match::from_value).collect::<Result<_, _>>()?;
        Ok(rule.rule.set_exempts(all)?)
    })
}

/// The exemptions in force, a JSON list of matches.
///
/// Writes the text to `out`; free it with `tg_string_free`.
#[unsafe(no_mangle)]
pub extern "C" fn tg_exempts(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    guard(|| {
        let (rule, out) = (given(rule, "rule")?, given(out, "out")?);
        out.write(owned_text(
            rule.rule.exempts()?.iter().map(Match::to_value).collect::<Value>().to_string(),
        )?);
        Ok(())
    })
}
