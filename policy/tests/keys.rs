//! Keys of every kind, and names that are never attributes.

use std::net::IpAddr;

use serde_json::json;
use tidegate::bindings::RESERVED;
use tidegate::{Call, Key, Limiter, Match};

const MOST: &str = "18446744073709551615";

/// Whether the second key finds what the first one has spent.
fn are_one(parts: usize, first: Key<'_>, second: Key<'_>) -> bool {
    let names: Vec<String> = (0..parts).map(|index| format!("part{index}")).collect();
    let rule = json!({"limits": "1/h", "key": names});
    let policy = json!({"version": 1, "rules": {"default": rule}});
    let limiter = Limiter::from_value(&policy).unwrap();
    assert!(limiter.allow(first).unwrap());
    !limiter.allow(second).unwrap()
}

#[test]
fn whole_numbers_are_one_key_with_their_digits() {
    assert!(are_one(1, Key::from(u64::MAX), Key::from("18446744073709551615")));
    assert!(are_one(1, Key::from(i64::MIN), Key::from("-9223372036854775808")));
    assert!(are_one(1, Key::from(7_u64), Key::from(7_i32)));
    assert!(are_one(1, Key::from(7_usize), Key::from(7_u32)));
    assert!(!are_one(1, Key::from(u64::MAX), Key::from(-1)));
    assert!(!are_one(1, Key::from(7), Key::from("07")));
}

#[test]
fn addresses_are_one_key_with_their_text() {
    let address = |text: &str| Key::from(text.parse::<IpAddr>().unwrap());
    assert!(are_one(1, address("2001:db8:0:0:0:0:0:1"), Key::from("2001:db8::1")));
    assert!(are_one(1, address("192.0.2.1"), Key::from("192.0.2.1")));
    assert!(!are_one(1, address("192.0.2.1"), address("::ffff:192.0.2.1")));
}

#[test]
fn tuples_are_one_key_with_the_list_of_their_texts() {
    assert!(are_one(2, Key::from(("telegram", 42)), Key::from(["telegram", "42"])));
    assert!(are_one(2, Key::from((1_u64, 2_i64)), Key::from(["1", "2"])));
    assert!(are_one(3, Key::from(("a", &b"b"[..], 3)), Key::from(["a", "b", "3"])));
    assert!(are_one(2, Key::from((b"a", 3)), Key::from(["a", "3"])));
    assert!(are_one(4, Key::from((1, "b", -3, u64::MAX)), Key::from(["1", "b", "-3", MOST])));
    assert!(!are_one(2, Key::from((1, 23)), Key::from((12, 3))));
    assert!(!are_one(2, Key::from(("a", 1)), Key::from((1, "a"))));
    let limiter = Limiter::new("1/h").unwrap();
    assert!(limiter.allow(("telegram", 42)).unwrap_err().to_string().contains("part"));
}

#[test]
fn names_that_operations_take_are_no_attributes_of_a_policy() {
    for (name, takers) in RESERVED {
        let of = |rule: serde_json::Value| {
            let policy = json!({"version": 1, "rules": {"default": rule}});
            Limiter::from_value(&policy)
        };
        let classify = json!({"from": name, "to": "tier", "map": {}, "default": "low"});
        for rule in [
            json!({"limits": "1/h", "exempt": [{name: "x"}]}),
            json!({"limits": "1/h", "when": [{"match": {name: "x"}, "mode": "off"}]}),
            json!({"limits": "1/h", "classify": classify}),
        ] {
            let error = of(rule).unwrap_err().to_string();
            let told = takers.iter().all(|taker| error.contains(taker));
            assert!(!takers.is_empty() && told && error.contains(name), "{error}");
        }
        let limiter = Limiter::new("1/h").unwrap();
        assert!(limiter.add_exempt(Match::new([(name, "x")])).is_err());
        // A part of the key may be called so, and a call's attribute of that name is nobody's.
        let part = json!({"limits": "1/h", "key": [name], "exempt": [{name: "x"}]});
        assert_eq!(of(part).unwrap().hit("x", 1).unwrap().reason(), Some("exempt"));
        assert!(limiter.allow(Call::of("a").with(&[(name, "x")])).unwrap());
    }
}
