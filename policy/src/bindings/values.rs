//! Records as maps, for surfaces that speak JSON. Times are milliseconds.

use serde_json::{Map, Value, json};

use crate::config::limit::LimitPatches;
use crate::judge::budget::Budget;
use crate::rule::changes::BlockedKey;
use crate::rule::stats::{LimitUse, Stats};
use crate::store::runtime::Target;
use crate::time::ms;

/// A budget as a map.
///
/// ```
/// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
/// rule.budget = Some(tidegate::BudgetConfig::new(5));
/// let limiter = tidegate::Limiter::builder().rule(rule).build().unwrap();
/// let budget = tidegate::bindings::budget_value(&limiter.spend("alice", 2).unwrap());
/// assert_eq!(budget["remaining"], 3);
/// ```
pub fn budget_value(budget: &Budget) -> Value {
    json!({
        "spent": budget.spent,
        "remaining": budget.remaining,
        "over": budget.over,
        "over_per_hit": budget.over_per_hit,
        "reset_after_ms": ms(budget.reset_after),
    })
}

/// What is known of a key, as a map.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// let stats = tidegate::bindings::stats_value(&limiter.stats("alice").unwrap().unwrap());
/// assert_eq!(stats["limits"]["3/min"]["used"], 1);
/// ```
pub fn stats_value(stats: &Stats) -> Value {
    let limit = |limit: &LimitUse| {
        let used = json!({
            "used": limit.used,
            "max": limit.max,
            "remaining": limit.remaining,
            "reset_after_ms": ms(limit.reset_after),
        });
        (limit.name.clone(), used)
    };
    json!({
        "limits": stats.limits.iter().map(limit).collect::<Map<_, _>>(),
        "cooldown_left_ms": ms(stats.cooldown_left),
        "violations": stats.violations,
        "last_allowed_ms": stats.last_allowed.map(ms),
        "budget": stats.budget.as_ref().map(budget_value),
        "blocked": stats.blocked.as_ref().map(BlockedKey::to_value),
    })
}

/// Overrides as a list of maps: `limits`, and `key` or `match`.
///
/// ```
/// use tidegate::{LimitPatch, Limiter, Target};
/// let limiter = Limiter::new("3/min").unwrap();
/// let patches = vec![("3/min".into(), LimitPatch::max(60))];
/// limiter.set_override(Target::key("alice"), patches).unwrap();
/// let all = tidegate::bindings::overrides_value(&limiter.overrides().unwrap());
/// assert_eq!(all, serde_json::json!([{"key": ["alice"], "limits": {"3/min": {"max": 60}}}]));
/// ```
pub fn overrides_value(all: &[(Target, LimitPatches)]) -> Value {
    let one = |(target, limits): &(Target, LimitPatches)| {
        let mut one = target.to_value();
        one["limits"] =
            limits.iter().map(|(name, patch)| (name.clone(), patch.to_value())).collect();
        one
    };
    all.iter().map(one).collect()
}

/// What a table file holds, as a map.
pub fn inspected_value(it: &crate::Inspected) -> Value {
    use crate::InspectedLimit;
    let count = |one: &crate::key::name::NamedCount| json!({"key": one.key, "count": one.count});
    json!({
        "rule": it.rule,
        "format": it.format,
        "limits": it.limits.iter().map(InspectedLimit::to_value).collect::<Value>(),
        "capacity": it.capacity,
        "keys": it.keys,
        "penalised": it.penalised,
        "spending": it.spending,
        "overrides": it.overrides,
        "bytes": it.bytes,
        "retired": it.retired,
        "top_offenders": it.top_offenders.iter().map(count).collect::<Value>(),
    })
}
