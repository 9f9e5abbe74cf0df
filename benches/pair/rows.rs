// The rows of `pair.sh`, for one version of the crates: included twice, with `core`
// and `policy` in scope.

use std::hint::black_box;
use std::time::Duration;

use super::{Run, Setting, key};
use serde_json::json;

fn engine(limits: &[core::Limit], capacity: usize) -> core::Engine {
    let limits = core::Limits::new(limits).expect("limits in range");
    let options = core::Options { capacity, clock: core::Clock::System, ..Default::default() };
    core::Engine::new(limits, options).expect("memory for a bench")
}

fn bucket(max: u64, seconds: u64, burst: u64) -> core::Limit {
    core::Limit::bucket(max, Duration::from_secs(seconds)).burst(burst)
}

fn window(max: u64, seconds: u64) -> core::Limit {
    core::Limit::window(max, Duration::from_secs(seconds))
}

/// Asks the engine key by key.
fn allows(engine: core::Engine, keys: &[String]) -> Run<'_> {
    let mut next = 0;
    Box::new(move |calls| {
        let mut allowed = 0;
        for _ in 0..calls {
            allowed += u64::from(engine.allow(keys[next].as_bytes()));
            next = if next + 1 == keys.len() { 0 } else { next + 1 };
        }
        allowed
    })
}

fn hits(engine: core::Engine, cost: u64, keys: &[String]) -> Run<'_> {
    let mut next = 0;
    Box::new(move |calls| {
        for _ in 0..calls {
            // Whole, and by no field's name: names differ between versions.
            black_box(engine.hit(keys[next].as_bytes(), cost));
            next = if next + 1 == keys.len() { 0 } else { next + 1 };
        }
        0
    })
}

fn batches(engine: core::Engine, keys: &[String]) -> Run<'_> {
    let mut next = 0;
    Box::new(move |calls| {
        let (mut out, mut allowed) = ([0; 32], 0);
        for _ in 0..calls / 32 {
            engine.allow_many(&keys[next..next + 32], &mut out);
            allowed += out.iter().map(|&yes| u64::from(yes)).sum::<u64>();
            next = if next + 64 > keys.len() { 0 } else { next + 32 };
        }
        allowed
    })
}

/// A log of 4,096 places that is full of live entries, as `kind` has it.
fn log(kind: &str) -> core::Engine {
    let engine = engine(&[window(4096, 3600)], 8);
    let key = key(0);
    let key = key.as_bytes();
    let hit = |times: usize, cost: u64| {
        for _ in 0..times {
            let _ = engine.hit(key, cost);
        }
    };
    match kind {
        "plain" => hit(4096, 1),
        "weights" => hit(2048, 2),
        "carried" => {
            // Voids between live entries, and then a lap of new entries: the live ones are carried.
            for _ in 0..32 {
                hit(128, 1);
                engine.refund(key, 1);
            }
            hit(4096, 1);
        }
        _ => unreachable!(),
    }
    assert!(!engine.allow(key), "a full log");
    engine
}

fn rule(options: serde_json::Value) -> policy::Rule {
    let mut rule = json!({ "limits": "1000000000/min", "capacity": 65_536 });
    for (field, value) in options.as_object().expect("a map") {
        rule[field] = value.clone();
    }
    let stated = json!({ "version": 1, "memory": "1GB", "rules": { "default": rule } });
    // By a file: that constructor has the same name in both versions.
    let file = std::env::temp_dir().join(format!("tidegate-pair-{}.json", std::process::id()));
    std::fs::write(&file, stated.to_string()).expect("a file for the policy");
    let limiter = policy::Limiter::from_file(&file).expect("a policy");
    drop(std::fs::remove_file(&file));
    limiter.rule("default").expect("its rule")
}

fn rule_hits(rule: policy::Rule, keys: &[String]) -> Run<'_> {
    let mut next = 0;
    Box::new(move |calls| {
        let mut allowed = 0;
        for _ in 0..calls {
            allowed += u64::from(rule.hit(&keys[next], 1).expect("a key").allowed);
            next = if next + 1 == keys.len() { 0 } else { next + 1 };
        }
        allowed
    })
}

fn rule_allows(rule: policy::Rule, keys: &[String]) -> Run<'_> {
    let mut next = 0;
    Box::new(move |calls| {
        let mut allowed = 0;
        for _ in 0..calls {
            allowed += u64::from(rule.allow(&keys[next]).expect("a key"));
            next = if next + 1 == keys.len() { 0 } else { next + 1 };
        }
        allowed
    })
}

/// The contender of one row.
pub fn run<'k>(setting: &Setting, keys: &'k [String]) -> Run<'k> {
    let capacity = setting.keys.max(65_536);
    let usual = || bucket(1_000_000_000, 60, 1_000_000_000);
    let common = || bucket(100_000, 60, 100_000);
    let spent = |engine: core::Engine, units: u64| {
        super::each(setting.keys, |key| {
            let _ = engine.record(key.as_bytes(), units);
        });
        engine
    };
    // By single hits: a log without weights.
    let hit = |engine: core::Engine, times: usize| {
        super::each(setting.keys, |key| {
            for _ in 0..times {
                let _ = engine.hit(key.as_bytes(), 1);
            }
        });
        engine
    };
    match setting.kind {
        "usual" => allows(spent(engine(&[usual()], capacity), 500_000_000), keys),
        "common" => allows(spent(engine(&[common()], capacity), 50_000), keys),
        "full" => allows(engine(&[bucket(1_000_000_000, 1, 1_000_000_000)], capacity), keys),
        "deny" => allows(spent(engine(&[bucket(1, 3600, 1)], capacity), 1), keys),
        "deep" => allows(spent(engine(&[bucket(1_000, 1, 4_000_000)], capacity), 1_000_000), keys),
        "deep deny" => {
            hits(spent(engine(&[bucket(1, 60, 2_000_000)], capacity), 2_000_000), 1, keys)
        }
        "hit" => hits(spent(engine(&[usual()], capacity), 500_000_000), 1, keys),
        "batch" => batches(spent(engine(&[usual()], capacity), 500_000_000), keys),
        "windows" => allows(engine(&[window(4_000, 1)], 256), keys),
        "windows deny" => allows(hit(engine(&[window(20, 3600)], capacity), 20), keys),
        "weighted windows deny" => allows(spent(engine(&[window(20, 3600)], capacity), 20), keys),
        "three windows deny" => {
            let all = [window(5, 3600), window(20, 7200), window(200, 86_400)];
            allows(hit(engine(&all, capacity.min(65_536)), 5), keys)
        }
        "counter" => allows(
            engine(&[core::Limit::counter(1_000_000_000, Duration::from_secs(60))], capacity),
            keys,
        ),
        "fixed" => allows(
            engine(&[core::Limit::fixed(1_000_000_000, Duration::from_secs(60))], capacity),
            keys,
        ),
        "plain log deny" => hits(log("plain"), 1, keys),
        "weighted log deny" => hits(log("weights"), 1, keys),
        "carried log deny" => hits(log("carried"), 1, keys),
        "carried log deny 9" => hits(log("carried"), 9, keys),
        "permits deny" => {
            let rule = rule(json!({ "limits": "4096 concurrent lease 1h", "capacity": 8 }));
            let key = key(0);
            for _ in 0..4096 {
                let permit = rule.permit(&key).expect("a key");
                assert!(permit.decision().allowed, "a permit");
                std::mem::forget(permit);
            }
            Box::new(move |calls| {
                let out = |_| u64::from(rule.permit(&key).expect("a key").decision().allowed);
                (0..calls).map(out).sum()
            })
        }
        "rule allow" => {
            let rule = rule(json!({}));
            super::each(setting.keys, |key| drop(rule.record(key, 500_000_000)));
            rule_allows(rule, keys)
        }
        "rule hit" => {
            let rule = rule(json!({}));
            super::each(setting.keys, |key| drop(rule.record(key, 500_000_000)));
            rule_hits(rule, keys)
        }
        "rule with a cooldown, deny" => {
            let rule = rule(json!({ "limits": "1/h", "cooldown": "1s" }));
            super::each(setting.keys, |key| drop(rule.record(key, 1)));
            rule_hits(rule, keys)
        }
        "rule with when and exempt" => rule_hits(
            rule(json!({
                "when": [{
                    "match": { "role": "staff" },
                    "limits": { "1000000000/min": { "max": 999_999_999 } },
                }],
                "exempt": [{ "role": "admin" }],
            })),
            keys,
        ),
        kind => unreachable!("{kind}"),
    }
}
