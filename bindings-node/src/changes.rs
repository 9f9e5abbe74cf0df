//! What is changed of a rule at run time: overrides, exemptions, defaults, the mode, blocks, and
//! the trail of them all.
//!
//! Each change ends with `forMs`, `by` and `reason`, and gives its number; 0 if there was nothing
//! to change.

use std::rc::Rc;
use std::time::Duration;

use policy::bindings::{self, limit_patches};
use policy::{ChangeOptions, Changing, Error, LimitPatches, Match, Mode, Target};
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::handle::{Handle, json_of};
use crate::js::{Kind, Result, Scope, Value};
use crate::json;
use crate::key::{count, key_parts, optional_text, text, with_call};
use crate::surface::{Add, NativeCall, NativeResult, Surface, bind};

type Cold<'c> = NativeCall<'c, ()>;

fn rule<'c>(call: &Cold<'c>, handle: Value) -> Result<&'c policy::Rule> {
    Ok(&Handle::of(call.scope, handle)?.rule()?.rule)
}

/// A time in milliseconds. What is no time becomes one that the policy refuses.
fn period(scope: Scope<'_>, value: Value) -> Result<Option<Duration>> {
    if matches!(scope.kind(value)?, Kind::Undefined | Kind::Null) {
        return Ok(None);
    }
    let ms = scope.double(value).ok_or_else(|| Failure::argument("forMs is not a number"))?;
    let refused = if ms > 0.0 { Duration::MAX } else { Duration::ZERO };
    Ok(Some(Duration::try_from_secs_f64(ms / 1e3).unwrap_or(refused)))
}

/// The rule of a call, to be changed as `[forMs, by, reason]` say.
fn changing<'c>(
    call: &Cold<'c>,
    handle: Value,
    [for_ms, by, reason]: [Value; 3],
) -> Result<Changing<'c>> {
    let mut options = ChangeOptions::default().for_(period(call.scope, for_ms)?);
    options.by = optional_text(call.scope, by, "by")?;
    options.reason = optional_text(call.scope, reason, "reason")?;
    let changing = rule(call, handle)?.changing(options);
    changing.map_err(|error| Failure::from(error).calling("for_", "forMs"))
}

/// The number of a change.
fn number(call: &Cold<'_>, number: std::result::Result<u64, Error>) -> NativeResult {
    call.scope.number(number? as f64).map(Some)
}

/// What changes of a rule's limits.
fn patches(call: &Cold<'_>, handle: Value, limits: Value) -> Result<LimitPatches> {
    Ok(limit_patches(&json_of(call.scope, limits)?, &rule(call, handle)?.limit_names()?)?)
}

fn one_match(scope: Scope<'_>, matches: Value) -> Result<Match> {
    Ok(Match::from_value(&json_of(scope, matches)?)?)
}

/// The target of an override: a key, or a match as JSON.
fn target(scope: Scope<'_>, key: Value, matches: Value) -> Result<Target> {
    match scope.kind(matches)? {
        Kind::Text => Ok(Target::Match(one_match(scope, matches)?)),
        _ => Ok(Target::Key(key_parts(scope, key)?)),
    }
}

fn mode(scope: Scope<'_>, mode: Value) -> Result<Mode> {
    let text = text(scope, mode, "mode")?;
    let wrong = || Failure::range(format!("mode is enforce, shadow or off, not {text:?}"));
    bindings::mode(&text).ok_or_else(wrong)
}

/// The number after which changes are asked for.
pub(crate) fn since(scope: Scope<'_>, since: Value) -> Result<u64> {
    Ok(count(scope, since, "since")?.unwrap_or(0))
}

pub(crate) fn functions(add: Add<'_>, scope: Scope<'_>, surface: &Rc<Surface>) -> Result<()> {
    macro_rules! functions {
        ($($name:literal: $body:expr;)*) => { $(add($name, bind(scope, surface, (), $body)?)?;)* };
    }
    functions! {
        c"setOverride": |call: Cold<'_>, values: [Value; 7]| {
            let [handle, key, matches, limits, for_ms, by, reason] = values;
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            let limits = patches(&call, handle, limits)?;
            number(&call, changing.set_override(target(call.scope, key, matches)?, limits))
        };
        c"clearOverride": |call: Cold<'_>, [handle, key, matches, for_ms, by, reason]: [Value; 6]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            number(&call, changing.clear_override(target(call.scope, key, matches)?))
        };
        c"overrides": |call: Cold<'_>, [handle]: [Value; 1]| {
            let overrides = rule(&call, handle)?.overrides()?;
            call.scope.text(&json::overrides(&overrides).to_string()).map(Some)
        };
        c"setDefault": |call: Cold<'_>, [handle, limits, for_ms, by, reason]: [Value; 5]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            number(&call, changing.set_default(patches(&call, handle, limits)?))
        };
        c"addExempt": |call: Cold<'_>, [handle, matches, for_ms, by, reason]: [Value; 5]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            number(&call, changing.add_exempt(one_match(call.scope, matches)?))
        };
        c"removeExempt": |call: Cold<'_>, [handle, matches, for_ms, by, reason]: [Value; 5]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            number(&call, changing.remove_exempt(&one_match(call.scope, matches)?))
        };
        c"setExempts": |call: Cold<'_>, [handle, matches, for_ms, by, reason]: [Value; 5]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            let Json::Array(all) = json_of(call.scope, matches)? else {
                return Err(Failure::argument("exemptions are an array of matches"));
            };
            let all = all.iter().map(Match::from_value).collect::<std::result::Result<_, _>>()?;
            number(&call, changing.set_exempts(all))
        };
        c"exempts": |call: Cold<'_>, [handle]: [Value; 1]| {
            let exempts = rule(&call, handle)?.exempts()?;
            call.scope.text(&json::exempts(&exempts).to_string()).map(Some)
        };
        c"setMode": |call: Cold<'_>, [handle, name, for_ms, by, reason]: [Value; 5]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            number(&call, changing.set_mode(mode(call.scope, name)?))
        };
        c"clearMode": |call: Cold<'_>, [handle, for_ms, by, reason]: [Value; 4]| {
            number(&call, changing(&call, handle, [for_ms, by, reason])?.clear_mode())
        };
        c"block": |call: Cold<'_>, [handle, key, max, attributes, for_ms, by, reason]: [Value; 7]| {
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            with_call(call.scope, [key, max, attributes], |one| number(&call, changing.block(*one)))
        };
        c"unblock": |call: Cold<'_>, values: [Value; 7]| {
            let [handle, key, max, attributes, for_ms, by, reason] = values;
            let changing = changing(&call, handle, [for_ms, by, reason])?;
            let blocked = with_call(call.scope, [key, max, attributes], |one| {
                Ok(changing.unblock(*one)?)
            })?;
            call.scope.boolean(blocked).map(Some)
        };
        c"blocks": |call: Cold<'_>, [handle]: [Value; 1]| {
            let blocks = rule(&call, handle)?.blocks()?;
            call.scope.text(&json::blocks(&blocks).to_string()).map(Some)
        };
        c"changes": |call: Cold<'_>, [handle, number]: [Value; 2]| {
            let changes = rule(&call, handle)?.changes(since(call.scope, number)?)?;
            call.scope.text(&json::changes(&changes).to_string()).map(Some)
        };
    }
    Ok(())
}
