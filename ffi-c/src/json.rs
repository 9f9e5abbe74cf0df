//! What is handed to C as JSON text, and read from it.

use std::ffi::c_char;
use std::time::Duration;

use policy::{Event, Finding, LimitPatch, LimitPatches, Match, Metrics, NamedCount, Target};
use serde_json::{Map, Value, json};

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

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn metrics(all: &[Metrics]) -> Value {
    let counts = |counts: &[NamedCount]| -> Vec<Value> {
        counts.iter().map(|one| json!({ "key": one.key, "count": one.count })).collect()
    };
    let one = |m: &Metrics| {
        let denied = m.denied.iter().map(|(reason, count)| (reason.clone(), json!(count)));
        json!({
            "rule": m.rule,
            "allowed": m.allowed,
            "warned": m.warned,
            "denied": denied.collect::<Map<_, _>>(),
            "shadowed": m.shadowed,
            "exempt": m.exempt,
            "off": m.off,
            "alerts": m.alerts,
            "evictions": m.evictions,
            "full": m.full,
            "overflow": m.overflow,
            "classify_defaults": m.classify_defaults,
            "capacity": m.capacity,
            "keys": m.keys,
            "bytes": m.bytes,
            "top_offenders": counts(&m.top_offenders),
            "heaviest": counts(&m.heaviest),
        })
    };
    all.iter().map(one).collect()
}

pub(crate) fn events(all: &[Event]) -> Value {
    let one = |event: &Event| {
        json!({
            "number": event.number,
            "rule": event.rule,
            "key": event.key,
            "reason": event.reason,
            "alert": event.alert,
            "at_ms": ms(event.at),
        })
    };
    all.iter().map(one).collect()
}

pub(crate) fn findings(all: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        json!({
            "id": finding.id,
            "severity": finding.severity.as_str(),
            "path": finding.path,
            "message": finding.message,
        })
    };
    all.iter().map(one).collect()
}

fn matching(matches: &Match) -> Value {
    matches.fields.iter().map(|(field, values)| (field.clone(), json!(values))).collect()
}

pub(crate) fn exempts(all: &[Match]) -> Value {
    all.iter().map(matching).collect()
}

/// As a policy file has it.
fn patch(patch: &LimitPatch) -> Value {
    let numbers = [("max", patch.max), ("burst", patch.burst)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, json!(number?))));
    let periods = [("per", patch.per), ("lease", patch.lease), ("cooldown", patch.cooldown)];
    let period = |(name, period): (&'static str, Option<Duration>)| {
        Some((name, json!(format!("{}ms", ms(period?)))))
    };
    let all = numbers.chain(periods.into_iter().filter_map(period));
    all.map(|(name, value)| (name.to_string(), value)).collect()
}

fn patches(patches: &LimitPatches) -> Value {
    patches.iter().map(|(name, one)| (name.clone(), patch(one))).collect()
}

/// A part of a key: text, or bytes that are none.
fn part(part: &[u8]) -> Value {
    match std::str::from_utf8(part) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": part.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
}

pub(crate) fn overrides(all: &[(Target, LimitPatches)]) -> Value {
    let one = |(target, limits): &(Target, LimitPatches)| match target {
        Target::Key(parts) => {
            let parts: Vec<Value> = parts.iter().map(|one| part(one)).collect();
            json!({ "key": parts, "limits": patches(limits) })
        }
        Target::Match(one) => json!({ "match": matching(one), "limits": patches(limits) }),
    };
    all.iter().map(one).collect()
}
