//! Every finding of an audit, on policies that ask for it.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Finding, LimitPatch, Limiter, Severity, Target};

fn audit(policy: &Value) -> Vec<Finding> {
    Limiter::from_value(policy).unwrap().audit().unwrap()
}

fn found<'f>(findings: &'f [Finding], id: &str) -> Vec<(&'f str, Severity)> {
    let of = |finding: &&Finding| finding.id == id;
    findings.iter().filter(of).map(|f| (f.path.as_str(), f.severity)).collect()
}

#[test]
fn a_bad_policy_has_them_all() {
    let findings = audit(&json!({
        "version": 1,
        "rules": {
            "open": { "limits": "5/min", "mode": "off", "on_full": "allow" },
            "loose": {
                "limits": "11/10s window",
                "exempt": [{ "role": "admin" }, {}, { "ip": "0.0.0.0/0" }],
                "when": [{ "match": { "tier": "test" }, "mode": "shadow" }],
            },
            "huge": { "limits": "600/h window", "capacity": 100, "mode": "shadow" },
        },
    }));
    assert_eq!(found(&findings, "rule_disabled"), [("rules.open.mode", Severity::Warn)]);
    assert_eq!(found(&findings, "full_allows"), [("rules.open.on_full", Severity::Warn)]);
    assert_eq!(
        found(&findings, "high_burst"),
        [("rules.loose.limits", Severity::Info), ("rules.huge.limits", Severity::Info)]
    );
    assert_eq!(
        found(&findings, "exempt_all"),
        [("rules.loose.exempt[1]", Severity::Warn), ("rules.loose.exempt[2]", Severity::Warn)]
    );
    assert_eq!(
        found(&findings, "shadow"),
        [("rules.loose.when[0].mode", Severity::Info), ("rules.huge.mode", Severity::Info)]
    );
    assert_eq!(found(&findings, "large_window"), [("rules.huge.limits", Severity::Warn)]);
    assert_eq!(found(&findings, "no_budget").len(), 3);
    assert!(findings.iter().all(|finding| !finding.message.is_empty()));
}

#[test]
fn a_careful_policy_has_none() {
    let findings = audit(&json!({
        "version": 1,
        "rules": {
            "messages": {
                "limits": ["5/10s window", "20/min window"],
                "budget": { "daily": 500 },
                "exempt": [{ "ip": "10.0.0.0/8" }],
            },
        },
    }));
    assert_eq!(findings, []);
}

#[test]
fn slow_numbers_that_keep_idle_keys_are_told_of_once_a_call_is_judged_by_them() {
    let limiter = Limiter::new("10/min").unwrap();
    let slow = || {
        let findings = limiter.audit().unwrap();
        let found = findings.iter().find(|finding| finding.id == "slow_eviction");
        found.map(|f| (f.path.clone(), f.severity, f.message.clone()))
    };
    let set = |per: u64| {
        let per = Some(Duration::from_secs(per));
        let patches = vec![("10/min".into(), LimitPatch::default().per(per))];
        limiter.set_override(Target::key("vip"), patches).unwrap();
        limiter.allow("vip").unwrap()
    };
    assert!(set(540) && slow().is_none(), "nine times as long");
    set(86_400);
    let (path, severity, message) = slow().unwrap();
    assert_eq!((path.as_str(), severity), ("rules.default.limits", Severity::Info));
    assert!(message.contains("86400 s") && message.contains("need 60 s"), "{message}");
    limiter.clear_override(Target::key("vip")).unwrap();
    assert!(slow().is_some(), "the table has been judged by them");
}
