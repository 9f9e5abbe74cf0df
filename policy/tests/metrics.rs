//! What is told of a rule: names by sample, once it is busy.

use serde_json::json;
use tidegate::{Code, Limiter, NamedCount};

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

#[test]
fn an_allow_that_is_denied_counts_for_the_limit_that_denied_it() {
    let cases = [
        ("2/h window, 3/d window", "2/h"),
        ("3/h window, 2/d window", "2/d"),
        ("2/h, 3/d fixed", "2/h"),
        ("3/h, 2/d fixed", "2/d"),
        ("3/h, 0/d", "0/d"),
    ];
    for (limits, by) in cases {
        let limiter = Limiter::new(limits).unwrap();
        let allowed = (0..10).filter(|_| limiter.allow("alice").unwrap()).count() as u64;
        let metrics = limiter.metrics().unwrap().remove(0);
        assert_eq!(metrics.allowed, allowed, "{limits}");
        assert_eq!(metrics.denied, [(by.to_string(), 10 - allowed)], "{limits}");
        assert_eq!(metrics.top_offenders[0].count, 10 - allowed, "{limits}");
    }
}

/// What shadow mode lets pass is allowed, and told apart: nobody was denied.
#[test]
fn a_shadowed_hit_counts_as_allowed_and_never_as_denied() {
    let rule =
        json!({ "limits": "1/h", "mode": "shadow", "alert": { "violations": 2, "within": "1m" } });
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let limiter = Limiter::from_value(&policy).unwrap();
    for _ in 0..4 {
        assert!(limiter.hit("alice", 1).unwrap().allowed);
    }
    let metrics = limiter.metrics().unwrap().remove(0);
    assert_eq!((metrics.allowed, metrics.shadowed, metrics.alerts), (4, 3, 1));
    assert_eq!(metrics.denied, []);
    let [heaviest] = &*metrics.heaviest else { panic!("{:?}", metrics.heaviest) };
    assert_eq!((&*heaviest.key, heaviest.count), (&["alice".to_string()][..], 4));
    // The alert is an event all the same; what was let pass is none.
    let events = limiter.events(None).unwrap().events;
    assert!(events.len() == 1 && events[0].alert, "{events:?}");
}

/// Every alert is an event, also if another thread looks at the names meanwhile.
#[test]
fn no_alert_is_lost_to_those_who_look() {
    let rule = json!({ "limits": "1/h", "alert": { "violations": 1, "within": "1m" } });
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let limiter = Limiter::from_value(&policy).unwrap();
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
    let alerts = limiter.events(None).unwrap().events.iter().filter(|event| event.alert).count();
    assert_eq!((alerts, limiter.metrics().unwrap()[0].alerts), (200, 200));
}

fn two_rules() -> Limiter {
    let policy = serde_json::json!({"version": 1, "rules": {
        "busy": {"limits": "1/h"}, "quiet": {"limits": "1/h"},
    }});
    Limiter::from_value(&policy).unwrap()
}

fn deny(limiter: &Limiter, rule: &str, times: usize) {
    let rule = limiter.rule(rule).unwrap();
    assert!(rule.peek("alice", 1).unwrap().reason().is_some() || rule.allow("alice").unwrap());
    (0..times).for_each(|_| assert!(!rule.allow("alice").unwrap()));
}

#[test]
fn one_cursor_misses_no_event_of_the_quieter_rule() {
    let limiter = two_rules();
    deny(&limiter, "busy", 5);
    let first = limiter.events(None).unwrap();
    assert_eq!((first.events.len(), first.missed), (5, 0));
    deny(&limiter, "quiet", 2);
    deny(&limiter, "busy", 1);
    let second = limiter.events(Some(&first.next)).unwrap();
    let rules: Vec<&str> = second.events.iter().map(|event| event.rule.as_str()).collect();
    assert_eq!((rules, second.missed), (vec!["quiet", "quiet", "busy"], 0));
    assert_eq!(second.events.iter().map(|event| event.number).collect::<Vec<_>>(), [6, 7, 8]);
    let third = limiter.events(Some(&second.next)).unwrap();
    assert_eq!((third.events.len(), third.missed, third.next), (0, 0, second.next));
    // The same text says how far a reader is with one rule.
    let quiet = limiter.rule("quiet").unwrap().events(Some(&first.next)).unwrap();
    assert_eq!((quiet.events.len(), quiet.missed), (2, 0));
}

#[test]
fn events_that_gave_way_are_counted_as_missed() {
    let limiter = two_rules();
    deny(&limiter, "quiet", 3);
    let seen = limiter.events(None).unwrap().next;
    deny(&limiter, "busy", 300);
    let all = limiter.events(None).unwrap();
    assert_eq!((all.events.len(), all.missed), (259, 44));
    let new = limiter.events(Some(&seen)).unwrap();
    assert_eq!((new.events.len(), new.missed), (256, 44));
    let busy = limiter.rule("busy").unwrap().events(Some(&seen)).unwrap();
    assert_eq!((busy.events.len(), busy.missed), (256, 44));
    assert_eq!(limiter.rule("quiet").unwrap().events(None).unwrap().missed, 0);
}

#[test]
fn a_cursor_of_another_limiter_starts_over_and_another_text_is_an_error() {
    let (one, other) = (two_rules(), two_rules());
    deny(&one, "busy", 4);
    deny(&other, "busy", 2);
    let next = one.events(None).unwrap().next;
    assert_eq!(other.events(Some(&next)).unwrap().events.len(), 2);
    for text in ["", "7", "x-1", "0000000-1", "00000000-", "00000000--1"] {
        let error = one.events(Some(text)).unwrap_err();
        assert_eq!(error.code(), Code::Range, "{text}: {error}");
    }
    one.close();
    assert_eq!(one.events(None).unwrap_err().code(), Code::Closed);
}

#[test]
fn whoever_goes_on_by_next_sees_every_event_once_while_others_deny() {
    let limiter = two_rules();
    deny(&limiter, "busy", 0);
    deny(&limiter, "quiet", 0);
    let (mut cursor, mut seen) = (None::<String>, Vec::new());
    let mut read = || {
        let more = limiter.events(cursor.as_deref()).unwrap();
        assert_eq!(more.missed, 0);
        seen.extend(more.events.iter().map(|event| event.number));
        cursor = Some(more.next);
    };
    std::thread::scope(|scope| {
        let denied = ["busy", "quiet"].map(|rule| {
            let limiter = limiter.clone();
            scope.spawn(move || deny(&limiter, rule, 250))
        });
        while !denied.iter().all(|thread| thread.is_finished()) {
            read();
        }
    });
    read();
    // A denial that finds the names busy is not noted, and has no number.
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<u64>>());
}
