//! What does a rule add to the engine's own hit?
//!
//! Prints the table "What a rule adds" of BENCHMARKS.md: `cargo run --release -p tidegate-benches
//! --bin rules` (about a minute; `-- --quick` for a smoke run, whose figures mean nothing).
//!
//! One thread; 24-byte keys, one hot and 10,000 drawn evenly, all known before the clock starts.
//! Limits are so deep that nothing is denied, but for the rows that say so. The unit is
//! nanoseconds a call: the median of all rounds, and the minimum in brackets. Contenders take
//! turns in short rounds, and differences and ratios are medians over rounds. What distorts it
//! is said in `peers.rs`.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Call, Limiter, Rule};
use tidegate_benches::{Quota, Row, Tidegate, distinct, key, measure, print, uniform};
use tidegate_core::{Clock, Engine};

const DEEP: &str = "1000000000/min";

fn rule(options: Value) -> Rule {
    let mut rule = json!({ "limits": DEEP, "capacity": 65_536 });
    for (field, value) in options.as_object().expect("a map") {
        rule[field] = value.clone();
    }
    let policy = json!({ "version": 1, "memory": "1GB", "rules": { "default": rule } });
    let limiter = Limiter::from_value(&policy).expect("a policy that can be had");
    limiter.rule("default").expect("its rule")
}

fn engine() -> Engine {
    Tidegate::new(Quota::USUAL, 65_536).0
}

fn windows(count: usize) -> Engine {
    let per = |seconds| tidegate_core::Limit::window(4_000, Duration::from_millis(seconds));
    let limits: Vec<_> = [2, 20, 40].into_iter().take(count).map(per).collect();
    let limits = tidegate_core::Limits::new(&limits).expect("windows in range");
    tidegate_benches::engine(limits, 256, Clock::System)
}

/// Windows so short that nothing is denied, and one log for all of them.
fn window_rule(count: usize) -> Rule {
    let texts = ["4000/2ms window", "4000/20ms window", "4000/40ms window"];
    rule(json!({ "limits": texts[..count], "capacity": 256 }))
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (rounds, calls) = if quick { (3, 1 << 10) } else { (41, 1 << 15) };
    for (title, keys) in [("one hot key", vec![key(7)]), ("10,000 keys", uniform(10_000, 1 << 16))]
    {
        one_bucket(title, &keys, rounds, calls);
    }
    several_windows(rounds, calls);
}

fn one_bucket(title: &str, keys: &[String], rounds: usize, calls: usize) {
    let of = |i: usize| &keys[i % keys.len()];
    let engine = engine();
    let plain = rule(json!({}));
    let matched = rule(json!({
        "when": [{ "match": { "role": "staff" }, "limits": { DEEP: { "max": 999_999_999 } } }],
        "exempt": [{ "role": "admin" }],
    }));
    let cooled = rule(json!({
        "cooldown": "1s", "notify": "once", "alert": { "violations": 10, "within": "5m" },
    }));
    let scoped = rule(json!({
        "limits": { "each": DEEP, "all": { "max": 1_000_000_000, "per": "1m", "scope": [] } },
    }));
    let spent = rule(json!({ "limits": "1/h" }));
    for key in distinct(10_000).iter().chain(keys.iter().take(1)) {
        let half = 500_000_000;
        engine.record(key.as_bytes(), half);
        for rule in [&plain, &matched, &cooled] {
            let _ = rule.record(key, half);
        }
        let _ = spent.allow(key);
    }
    std::thread::sleep(Duration::from_millis(1_100));
    let role = [("role", "guest")];
    let rows = [
        Row {
            name: "engine, allow",
            against: 0,
            work: Box::new(|i| engine.allow(of(i).as_bytes())),
        },
        Row {
            name: "rule of one bucket, allow",
            against: 0,
            work: Box::new(|i| plain.allow(of(i)).is_ok_and(|a| a)),
        },
        Row {
            name: "engine, hit",
            against: 2,
            work: Box::new(|i| engine.hit(of(i).as_bytes(), 1).answer.is_allowed()),
        },
        Row {
            name: "rule of one bucket, hit",
            against: 2,
            work: Box::new(|i| plain.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
        Row {
            name: "with `when` and `exempt`, hit",
            against: 3,
            work: Box::new(|i| {
                matched.hit(Call::of(of(i)).with(&role), 1).as_ref().is_ok_and(|d| d.allowed)
            }),
        },
        Row {
            name: "with cooldown, notify and alert, hit",
            against: 3,
            work: Box::new(|i| cooled.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
        Row {
            name: "two scopes, hit",
            against: 3,
            work: Box::new(|i| scoped.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
        Row {
            name: "rule of one bucket, denied allow",
            against: 0,
            work: Box::new(|i| spent.allow(of(i)).is_ok_and(|a| a)),
        },
    ];
    print(title, &rows, &measure(&rows, rounds, calls));
}

fn several_windows(rounds: usize, calls: usize) {
    let (one, three) = (windows(1), windows(3));
    let (rule_one, rule_three) = (window_rule(1), window_rule(3));
    let keys: Vec<String> = (0..64).map(key).collect();
    let of = |i: usize| &keys[i % keys.len()];
    let rows = [
        Row {
            name: "engine, one window, allow",
            against: 0,
            work: Box::new(|i| one.allow(of(i).as_bytes())),
        },
        Row {
            name: "engine, three windows, allow",
            against: 0,
            work: Box::new(|i| three.allow(of(i).as_bytes())),
        },
        Row {
            name: "rule of one window, allow",
            against: 2,
            work: Box::new(|i| rule_one.allow(of(i)).is_ok_and(|a| a)),
        },
        Row {
            name: "rule of three windows, allow",
            against: 2,
            work: Box::new(|i| rule_three.allow(of(i)).is_ok_and(|a| a)),
        },
        Row {
            name: "rule of one window, hit",
            against: 4,
            work: Box::new(|i| rule_one.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
        Row {
            name: "rule of three windows, hit",
            against: 4,
            work: Box::new(|i| rule_three.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
    ];
    print("windows, 64 keys", &rows, &measure(&rows, rounds, calls));
}
