//! The JSON Schema that editors use: it is the one checked in, it accepts the example policies, and
//! it refuses what the reader refuses.
//!
//! The checker below knows what this schema uses of JSON Schema, and stops at anything else. (A
//! whole one brings sixty crates and takes minutes to build.)

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate::Policy;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Keywords that say something to people only.
const NOTES: [&str; 4] = ["description", "title", "$schema", "definitions"];

/// Whether a value is as a schema wants it.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(words) = schema else { return schema == &json!(true) };
    let used = words.iter().filter(|(word, _)| !NOTES.contains(&word.as_str()));
    used.into_iter().all(|(word, wanted)| holds(root, words, word, wanted, value))
}

fn holds(
    root: &Value,
    words: &serde_json::Map<String, Value>,
    word: &str,
    wanted: &Value,
    value: &Value,
) -> bool {
    let each = || wanted.as_array().expect("a list").iter();
    let number = |v: &Value| v.as_f64().expect("a number");
    match word {
        "$ref" => {
            let name = wanted.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
            fits(root, &root["definitions"][name], value)
        }
        "type" if wanted.is_array() => each().any(|one| is(one.as_str().unwrap(), value)),
        "type" => is(wanted.as_str().unwrap(), value),
        "const" => value == wanted,
        "enum" => each().any(|one| one == value),
        "anyOf" => each().any(|one| fits(root, one, value)),
        "allOf" => each().all(|one| fits(root, one, value)),
        "minimum" => !value.is_number() || number(value) >= number(wanted),
        "maximum" => !value.is_number() || number(value) <= number(wanted),
        "pattern" => value.as_str().is_none_or(|text| {
            regex_lite::Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)
        }),
        "items" => value.as_array().is_none_or(|l| l.iter().all(|one| fits(root, wanted, one))),
        "required" => each().all(|name| value.get(name.as_str().unwrap()).is_some()),
        "properties" => wanted
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, schema)| value.get(name).is_none_or(|value| fits(root, schema, value))),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = |name: &str| words.get("properties").is_some_and(|p| p.get(name).is_some());
            map.iter().all(|(name, value)| known(name) || fits(root, wanted, value))
        }),
        other => panic!("the checker does not know {other:?}"),
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        other => panic!("the checker does not know {other:?}"),
    }
}

fn accepts(policy: &Value) -> bool {
    let schema = tidegate::schema();
    fits(&schema, &schema, policy)
}

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_file_is_the_schema_of_the_types() {
    let file = std::fs::read_to_string(folder().join("policy.schema.json")).unwrap();
    assert!(
        file == format!("{:#}\n", tidegate::schema()),
        "policy.schema.json is old: cargo run -p tidegate --features schema --example schema > \
        policy/policy.schema.json"
    );
}

#[test]
fn the_example_policies_fit() {
    let examples = std::fs::read_dir(folder().join("../examples/policies")).unwrap();
    let yamls = examples.map(|e| e.unwrap().path()).filter(|p| p.extension().unwrap() == "yaml");
    let mut count = 0;
    for path in yamls {
        assert!(accepts(&yaml(&path)), "{}", path.display());
        count += 1;
    }
    assert!(count >= 5, "only {count} examples were found");
}

#[test]
fn a_typo_does_not_fit_wherever_it_is() {
    let right = yaml(&folder().join("../examples/policies/openclaw.yaml"));
    for (place, field) in [
        ("", "capactiy"),
        ("/rules/messages", "limts"),
        ("/rules/messages/limits/burst", "brust"),
        ("/rules/messages/when/0", "mach"),
        ("/rules/messages/when/0/limits/burst", "algorithm"),
        ("/rules/messages/budget", "dayly"),
    ] {
        let mut wrong = right.clone();
        wrong.pointer_mut(place).unwrap()[field] = json!(1);
        assert!(!accepts(&wrong), "{place}/{field}");
        assert!(Policy::from_value(&wrong).is_err());
    }
}

#[test]
fn values_of_the_wrong_kind_do_not_fit() {
    let rule = |rule: Value| json!({"version": 1, "rules": {"r": rule}});
    for wrong in [
        json!({"rules": {"r": {"limits": "5/s"}}}),
        json!({"version": 2, "rules": {"r": {"limits": "5/s"}}}),
        json!({"version": 1}),
        rule(json!({})),
        rule(json!({"limits": 5})),
        rule(json!({"limits": {"a": {"max": -1, "per": "1s"}}})),
        rule(json!({"limits": {"a": {"max": 1, "per": "1 fortnight"}}})),
        rule(json!({"limits": {"a": {"max": 1, "per": "1s", "algorithm": "leaky"}}})),
        rule(json!({"limits": "5/s", "mode": "loud"})),
        rule(json!({"limits": "5/s", "cooldown": 60})),
        rule(json!({"limits": "5/s", "warn_at": 80})),
        rule(json!({"limits": "5/s", "exempt": {"role": "admin"}})),
        rule(json!({"limits": "5/s", "backoff": {"steps": ["1s"]}})),
    ] {
        assert!(!accepts(&wrong), "{wrong}");
        assert!(tidegate::Limiter::from_value(&wrong).is_err(), "{wrong}");
    }
}

/// What the shared vectors take for a policy fits, too.
#[test]
fn the_policies_of_the_vectors_fit() {
    let files = std::fs::read_dir(folder().join("../tests/vectors")).unwrap();
    let json =
        files.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    for path in json {
        let vectors: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let refused = case.get("policy_error").is_some();
            assert!(refused || accepts(&case["policy"]), "{}: {}", path.display(), case["name"]);
        }
    }
}
