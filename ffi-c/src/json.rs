//! What is handed to C as JSON text, and read from it.

use std::ffi::c_char;
use std::time::Duration;

use policy::{LimitPatch, LimitPatches, Target};
use serde_json::{Value, json};

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

pub(crate) fn overrides(all: &[(Target, LimitPatches)]) -> Value {
    let one = |(target, limits): &(Target, LimitPatches)| {
        let mut one = target.to_value();
        one["limits"] = patches(limits);
        one
    };
    all.iter().map(one).collect()
}
