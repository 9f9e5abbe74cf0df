//! What a change of a rule's limits may state: the algorithm and the scope that a limit has, and no
//! other.

use serde_json::{Value, json};
use tidegate::bindings::limit_patches;
use tidegate::{Error, LimitPatch, Limiter, Policy, Target};

fn policy(rule: Value) -> Result<Limiter, Error> {
    let policy = json!({"version": 1, "rules": {"default": rule}});
    Limiter::from_policy(Policy::from_value(&policy)?)
}

/// A rule with one limit, by each algorithm.
const EACH: [(&str, &str); 5] = [
    ("20/min", "bucket"),
    ("20/min window", "window"),
    ("20/min counter", "counter"),
    ("20/min fixed", "fixed"),
    ("20 concurrent", "concurrent"),
];

fn limiter(limits: &str) -> Limiter {
    Limiter::new(limits).unwrap()
}

/// Sets an override for a key, as all surfaces do.
fn set(limiter: &Limiter, limits: &Value) -> Result<u64, Error> {
    let limits = limit_patches(limits, &limiter.rule("default")?.limit_names()?)?;
    limiter.set_override(Target::key("alice"), limits)
}

/// The same with the rule's own limits.
fn set_default(limiter: &Limiter, limits: &Value) -> Result<u64, Error> {
    let limits = limit_patches(limits, &limiter.rule("default")?.limit_names()?)?;
    limiter.set_default(limits)
}

#[test]
fn a_change_may_state_the_algorithm_that_the_limit_has() {
    for (text, algorithm) in EACH {
        let limiter = limiter(text);
        let name = limiter.rule("default").unwrap().limit_names().unwrap().remove(0);
        let fields = json!({name.as_str(): {"max": 5, "algorithm": algorithm}});
        for change in [&fields, &json!({name.as_str(): text}), &json!(text)] {
            set(&limiter, change).unwrap();
            set_default(&limiter, change).unwrap();
        }
        set(&limiter, &fields).unwrap();
        assert_eq!(limiter.peek("alice", 0).unwrap().limit, Some(5), "{text}");
        let when = json!([{"match": {"role": "staff"}, "limits": fields}]);
        policy(json!({"limits": text, "when": when})).unwrap();
    }
}

#[test]
fn a_change_of_algorithm_is_refused_by_name_and_changes_nothing() {
    for (text, algorithm) in EACH {
        for (other_text, other) in EACH.into_iter().filter(|(_, other)| *other != algorithm) {
            let limiter = limiter(text);
            let name = limiter.rule("default").unwrap().limit_names().unwrap().remove(0);
            // A text that names no algorithm states numbers only.
            let other_text = if other == "bucket" { "20/min bucket" } else { other_text };
            let whole = json!(other_text);
            let fields = json!({name.as_str(): {"max": 5, "algorithm": other}});
            let when = json!([{"match": {"role": "staff"}, "limits": fields}]);
            let results = [
                set(&limiter, &whole),
                set(&limiter, &fields),
                set_default(&limiter, &whole),
                set_default(&limiter, &fields),
                policy(json!({"limits": text, "when": when})).map(|_| 0),
            ];
            for result in results {
                let refusal = result.expect_err(other_text).to_string();
                let told = [algorithm, other, "algorithm", "leave"];
                assert!(told.iter().all(|word| refusal.contains(word)), "{text}: {refusal}");
            }
            assert!(limiter.overrides().unwrap().is_empty());
            assert_eq!(limiter.peek("alice", 0).unwrap().limit, Some(20));
        }
    }
}

#[test]
fn a_text_without_an_algorithm_changes_only_the_numbers() {
    for (text, _) in &EACH[..4] {
        let limiter = limiter(text);
        set(&limiter, &json!("7/h")).unwrap();
        assert_eq!(limiter.peek("alice", 0).unwrap().limit, Some(7), "{text}");
    }
}

#[test]
fn a_change_may_state_the_scope_that_the_limit_has() {
    let rule = |scope: Value| {
        json!({
            "key": ["channel", "sender"],
            "limits": {
                "own": {"max": 5, "per": "1m"},
                "all": {"max": 50, "per": "1m", "scope": ["channel"]},
            },
            "when": [{"match": {"role": "staff"}, "limits": scope}],
        })
    };
    let same = json!({
        "own": {"max": 9, "scope": ["sender", "channel"]},
        "all": {"max": 90, "scope": ["channel"]},
    });
    let limiter = policy(rule(same.clone())).unwrap();
    let limits = limit_patches(&same, &["own", "all"]).unwrap();
    limiter.set_default(limits).unwrap();
    for (other, says) in [
        (json!({"own": {"scope": ["channel"]}}), "[channel]"),
        (json!({"all": {"scope": []}}), "[]"),
        (json!({"all": {"scope": ["room"]}}), "room"),
    ] {
        let changed = limiter.set_default(limit_patches(&other, &["own", "all"]).unwrap());
        for result in [changed, policy(rule(other)).map(|_| 0)] {
            let refusal = result.expect_err(says).to_string();
            assert!(refusal.contains("scope") && refusal.contains(says), "{refusal}");
        }
    }
}

#[test]
fn overrides_are_listed_by_their_numbers() {
    let limiter = limiter("20/min window");
    set(&limiter, &json!("5/min window")).unwrap();
    let (_, listed) = limiter.overrides().unwrap().remove(0);
    assert_eq!(listed, limit_patches(&json!("5/min"), &["20/min"]).unwrap());
}

#[test]
fn limits_that_are_named_by_their_text_are_one_by_position_in_a_shared_table() {
    let on = || Limiter::builder().store("memory:changes-by-position");
    let one = on().limits("5/h fixed, 70/h").build().unwrap();
    let other = on().limits("9/h fixed, 80/h").build().unwrap();
    let patch = |name: &str, max: u64| vec![(name.to_string(), LimitPatch::max(max))];
    one.set_override(Target::key("alice"), patch("5/h", 2)).unwrap();
    assert_eq!(other.hit("alice", 1).unwrap().limit, Some(2));
    assert_eq!(other.overrides().unwrap()[0].1[0].0, "9/h");
    assert!(other.set_default(patch("5/h", 1)).is_err(), "a label is only its own limiter's");
    other.set_default(patch("80/h", 1)).unwrap();
    assert_eq!(one.hit("bob", 1).unwrap().limit, Some(1));
    assert_eq!(one.hit("bob", 1).unwrap().reason(), Some("70/h"));
}
