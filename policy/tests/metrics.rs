//! What is told of a rule: names by sample, once it is busy.

use serde_json::json;
use tidegate::{Limiter, NamedCount};

/// Far more than the hits whose names are all kept.
const MANY: usize = 64_000;
const SENDERS: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// Each of four senders stands for about a quarter of all.
fn assert_even(named: &[NamedCount], all: usize) {
    assert_eq!(named.len(), SENDERS.len(), "{named:?}");
    for one in named {
        let share = one.count as f64 / all as f64;
        assert!((0.2..0.3).contains(&share), "{one:?} of {all}");
    }
}

#[test]
fn keys_that_come_in_turns_are_all_named() {
    let limiter = Limiter::new("1000000000/s").unwrap();
    let other = Limiter::new("1000000000/s").unwrap();
    for turn in 0..MANY {
        // Another rule is hit in between: what it counts must not take this one's turns.
        assert!(other.allow("mallory").unwrap());
        assert!(limiter.allow(SENDERS[turn % 4]).unwrap());
    }
    assert_even(&limiter.metrics().unwrap()[0].heaviest, MANY);
    for turn in 0..MANY {
        assert!(limiter.hit(SENDERS[turn % 4], 1).unwrap().allowed);
    }
    assert_even(&limiter.metrics().unwrap()[0].heaviest, 2 * MANY);
}

#[test]
fn batches_of_any_length_name_all_their_keys() {
    // The stride by which a batch's names are sampled, and a length beside it.
    for length in [60, 61, 122] {
        let limiter = Limiter::new("1000000000/s").unwrap();
        let keys: Vec<&str> = SENDERS.into_iter().cycle().take(length).collect();
        let batches = 40 * MANY / length;
        for _ in 0..batches {
            limiter.allow_many(&keys).unwrap();
        }
        assert_even(&limiter.metrics().unwrap()[0].heaviest, batches * length);
    }
}

#[test]
fn batches_are_named_too() {
    for limits in ["1/h", "1/h, 2/h"] {
        let limiter = Limiter::new(limits).unwrap();
        for _ in 0..MANY / 4 {
            limiter.allow_many(&SENDERS).unwrap();
        }
        let metrics = limiter.metrics().unwrap().remove(0);
        assert_even(&metrics.top_offenders, MANY);
        assert_eq!(metrics.denied, [("1/h".to_string(), MANY as u64 - 4)], "{limits}");
    }
}

/// What shadow mode lets pass is allowed, and told apart: nobody was denied.
#[test]
fn a_shadowed_hit_counts_as_allowed_and_never_as_denied() {
    let rule =
        json!({ "limits": "1/h", "mode": "shadow", "alert": { "violations": 2, "within": "1m" } });
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let limiter = Limiter::from_policy(&policy).unwrap();
    for _ in 0..4 {
        assert!(limiter.hit("alice", 1).unwrap().allowed);
    }
    let metrics = limiter.metrics().unwrap().remove(0);
    assert_eq!((metrics.allowed, metrics.shadowed, metrics.alerts), (4, 3, 1));
    assert_eq!(metrics.denied, []);
    assert_eq!(metrics.heaviest, [NamedCount { key: vec!["alice".into()], count: 4 }]);
    // The alert is an event all the same; what was let pass is none.
    let events = limiter.events(0).unwrap();
    assert!(events.len() == 1 && events[0].alert, "{events:?}");
}

/// Every alert is an event, also if another thread looks at the names meanwhile.
#[test]
fn no_alert_is_lost_to_those_who_look() {
    let rule = json!({ "limits": "1/h", "alert": { "violations": 1, "within": "1m" } });
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let limiter = Limiter::from_policy(&policy).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                limiter.metrics().unwrap();
            }
        });
        for key in 0..200u64 {
            let hit = || limiter.hit(key.to_string().as_str(), 1).unwrap();
            assert!(hit().allowed && hit().alert);
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let alerts = limiter.events(0).unwrap().iter().filter(|event| event.alert).count();
    assert_eq!((alerts, limiter.metrics().unwrap()[0].alerts), (200, 200));
}
