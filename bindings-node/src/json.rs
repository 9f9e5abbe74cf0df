//! Records that are asked for seldom, and so are handed over as JSON in JavaScript's spelling.

use policy::bindings::{inspected_value, overrides_value, stats_value};
use policy::{
    BlockedKey, Change, Changes, Events, Finding, Inspected, LimitPatches, Match, Metrics, Stats,
    Step, Target,
};
use serde_json::{Value, json};

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
    all.iter().map(|one| camel(inspected_value(one))).collect()
}

pub(crate) fn stats(stats: &Stats) -> Value {
    let Value::Object(mut fields) = stats_value(stats) else { return Value::Null };
    if let Some(Value::Object(limits)) = fields.get_mut("limits") {
        limits.values_mut().for_each(|limit| *limit = camel(limit.take()));
    }
    for name in ["budget", "blocked"] {
        fields[name] = camel(fields[name].take());
    }
    camel(Value::Object(fields))
}

pub(crate) fn steps(all: &[Step]) -> Value {
    all.iter().map(|step| camel(step.to_value())).collect()
}

pub(crate) fn exempts(all: &[Match]) -> Value {
    all.iter().map(Match::to_value).collect()
}

/// Limits as a policy has them, but for periods, which are numbers here. Other values are left as
/// they are.
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
    let Value::Array(mut all) = overrides_value(all) else { return Value::Null };
    all.iter_mut().for_each(|one| one["limits"] = limits(one["limits"].take()));
    Value::Array(all)
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
