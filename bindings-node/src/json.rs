//! What is told seldom, and so as JSON: in JavaScript's own spelling.

use std::time::Duration;

use policy::{
    BlockedKey, Budget, Change, Changes, Events, Finding, Inspected, InspectedLimit, LimitPatches,
    LimitUse, Match, Metrics, NamedCount, Stats, Step, Target,
};
use serde_json::{Map, Value, json};

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn counts(counts: &[NamedCount]) -> Vec<Value> {
    counts.iter().map(|one| json!({ "key": one.key, "count": one.count })).collect()
}

/// A record in JavaScript's own spelling: its fields, but not what is in them.
fn camel(record: Value) -> Value {
    let Value::Object(fields) = record else { return record };
    fields.into_iter().map(|(name, value)| (camel_name(&name), value)).collect()
}

fn camel_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_string();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        name + &head.to_ascii_uppercase() + tail
    })
}

pub(crate) fn metrics(metrics: &Metrics) -> Value {
    camel(metrics.to_value())
}

pub(crate) fn events(all: &Events) -> Value {
    let events: Vec<Value> = all.events.iter().map(|event| camel(event.to_value())).collect();
    json!({ "events": events, "next": all.next, "missed": all.missed })
}

pub(crate) fn findings(all: &[Finding]) -> Value {
    all.iter().map(Finding::to_value).collect()
}

pub(crate) fn inspected(all: &[Inspected]) -> Value {
    let one = |it: &Inspected| {
        json!({
            "rule": it.rule,
            "format": it.format,
            "limits": it.limits.iter().map(InspectedLimit::to_value).collect::<Vec<_>>(),
            "capacity": it.capacity,
            "keys": it.keys,
            "penalised": it.penalised,
            "spending": it.spending,
            "overrides": it.overrides,
            "bytes": it.bytes,
            "retired": it.retired,
            "topOffenders": counts(&it.top_offenders),
        })
    };
    all.iter().map(one).collect()
}

fn budget(budget: &Budget) -> Value {
    json!({
        "spent": budget.spent,
        "remaining": budget.remaining,
        "over": budget.over,
        "overPerHit": budget.over_per_hit,
        "resetAfterMs": ms(budget.reset_after),
    })
}

pub(crate) fn stats(stats: &Stats) -> Value {
    let limit = |limit: &LimitUse| {
        let used = json!({
            "used": limit.used,
            "max": limit.max,
            "remaining": limit.remaining,
            "resetAfterMs": ms(limit.reset_after),
        });
        (limit.name.clone(), used)
    };
    json!({
        "limits": stats.limits.iter().map(limit).collect::<Map<_, _>>(),
        "cooldownLeftMs": ms(stats.cooldown_left),
        "violations": stats.violations,
        "lastAllowedMs": stats.last_allowed.map(ms),
        "budget": stats.budget.as_ref().map(budget),
        "blocked": stats.blocked.as_ref().map(|block| camel(block.to_value())),
    })
}

pub(crate) fn steps(all: &[Step]) -> Value {
    all.iter().map(|step| camel(step.to_value())).collect()
}

pub(crate) fn exempts(all: &[Match]) -> Value {
    all.iter().map(Match::to_value).collect()
}

/// Limits as a policy has them, but for periods, which are numbers here. Other values are left as they are.
fn limits(value: Value) -> Value {
    let Value::Object(limits) = value else { return value };
    let field = |(name, value): (String, Value)| {
        let period = value.as_str().and_then(|text| text.strip_suffix("ms")?.parse::<u64>().ok());
        (name, period.map_or(value, Value::from))
    };
    let limit = |(name, value)| match value {
        Value::Object(fields) => (name, fields.into_iter().map(field).collect()),
        other => (name, other),
    };
    limits.into_iter().map(limit).collect()
}

pub(crate) fn overrides(all: &[(Target, LimitPatches)]) -> Value {
    let one = |(target, patches): &(Target, LimitPatches)| {
        let mut value = target.to_value();
        value["limits"] =
            limits(patches.iter().map(|(name, patch)| (name.clone(), patch.to_value())).collect());
        value
    };
    all.iter().map(one).collect()
}

pub(crate) fn blocks(all: &[BlockedKey]) -> Value {
    all.iter().map(|block| camel(block.to_value())).collect()
}

pub(crate) fn changes(all: &Changes) -> Value {
    let one = |change: &Change| {
        let mut value = change.to_value();
        for side in ["before", "after"] {
            value[side] = limits(value[side].take());
        }
        camel(value)
    };
    let changes: Vec<Value> = all.changes.iter().map(one).collect();
    json!({ "changes": changes, "next": all.next, "missed": all.missed })
}
