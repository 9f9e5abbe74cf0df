//! A table of another shape: its counts are moved when the store is opened.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Call, Code, Error, LimitPatch, Limiter, ManualClock, Target};

/// A folder of its own, gone with the test, and a clock that is moved by hand.
struct Place {
    path: PathBuf,
    clock: ManualClock,
}

impl Place {
    fn new() -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("moving-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        let clock = ManualClock::new(Duration::from_secs(360_000), Duration::from_secs(86_400));
        Place { path, clock }
    }

    fn try_open(&self, rule: Value) -> Result<Limiter, Error> {
        let policy = json!({ "version": 1, "rules": { "default": rule } });
        let store = format!("file:{}", self.path.display());
        let options = Limiter::builder().store(store).clock(self.clock.clock());
        options.value(&policy).build()
    }

    fn open(&self, rule: Value) -> Limiter {
        self.try_open(rule).expect("a limiter")
    }

    fn refusal(&self, rule: Value) -> String {
        let before = self.table();
        let error = self.try_open(rule).expect_err("it should be refused");
        assert_eq!(error.code(), Code::Store, "{error}");
        assert!(self.table() == before, "nothing was changed");
        assert_eq!(self.names(), ["default.lock", "default.table"]);
        error.to_string()
    }

    /// The table's file by its number, and its bytes.
    fn table(&self) -> (u64, Vec<u8>) {
        use std::os::unix::fs::MetadataExt;
        let path = self.path.join("default.table");
        (std::fs::metadata(&path).unwrap().ino(), std::fs::read(&path).unwrap())
    }

    /// What lies in the folder.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
        names.retain(|name| name != "default.changes");
        if !names.contains(&"default.lock".to_string()) {
            names.push("default.lock".to_string());
        }
        names.sort();
        names
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn rule(limits: Value) -> Value {
    json!({ "limits": limits, "capacity": 100 })
}

/// Used, left, and how long until all is back, of each limit.
fn uses<'a>(limiter: &Limiter, key: impl Into<Call<'a>>) -> BTreeMap<String, (u64, u64, Duration)> {
    let stats = limiter.stats(key).unwrap();
    let limits = stats.map_or(Vec::new(), |stats| stats.limits);
    let limit = |l: tidegate::LimitUse| (l.name, (l.used, l.remaining, l.reset_after));
    limits.into_iter().map(limit).collect()
}

fn granted(limiter: &Limiter, key: &str, hits: usize) -> usize {
    (0..hits).filter(|_| limiter.allow(key).unwrap()).count()
}

const ALGORITHMS: [&str; 4] = ["bucket", "window", "counter", "fixed"];

#[test]
fn counts_go_on_whatever_becomes_of_the_other_limits() {
    for algorithm in ALGORITHMS {
        let one = json!({ "max": 10, "per": "1h", "algorithm": algorithm });
        let other = json!({ "max": 50, "per": "1d", "algorithm": "fixed" });
        let third = json!({ "max": 1000, "per": "1m" });
        let all = [
            ("alone", json!({ "a": one })),
            ("first of two", json!({ "a": one, "b": other })),
            ("beside another", json!({ "c": third, "a": one })),
            ("last of three", json!({ "c": third, "b": other, "a": one })),
        ];
        for (from, to) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            let place = Place::new();
            let old = place.open(rule(from.1.clone()));
            assert!(old.hit("alice", 3).unwrap().allowed);
            place.pass(600);
            assert!(old.hit("alice", 4).unwrap().allowed && old.hit("bob", 1).unwrap().allowed);
            place.pass(60);
            let before = ["alice", "bob", "carol"].map(|key| uses(&old, key));
            drop(old);
            let new = place.open(rule(to.1.clone()));
            let at = format!("{algorithm}, {} to {}", from.0, to.0);
            for (key, before) in ["alice", "bob", "carol"].iter().zip(before) {
                let after = uses(&new, *key);
                let both = before.keys().filter(|name| after.contains_key(*name));
                let both: Vec<_> = both.collect();
                assert!(*key == "carol" || both.contains(&&"a".to_string()), "{at}, {key}");
                both.iter().for_each(|n| assert_eq!(after[*n], before[*n], "{at}, {key}, {n}"));
                let fresh = after.iter().filter(|(name, _)| !before.contains_key(*name));
                fresh.for_each(|(name, used)| assert_eq!(used.0, 0, "{at}, {key}, {name}"));
            }
            assert_eq!(place.names(), ["default.lock", "default.table"], "{at}");
            assert_eq!(new.metrics().unwrap()[0].keys, 2, "{at}");
        }
    }
}

#[test]
fn a_window_with_more_or_less_room_keeps_its_log() {
    for (from, to) in [(10, 30), (30, 10), (10, 11), (200, 7)] {
        for costs in [vec![1; 6], vec![2, 1, 3], vec![6]] {
            let place = Place::new();
            let limit =
                |max: u64| json!({ "w": { "max": max, "per": "1m", "algorithm": "window" } });
            let old = place.open(rule(limit(from)));
            for cost in &costs {
                assert!(old.hit("alice", *cost).unwrap().allowed);
                place.pass(5);
            }
            drop(old);
            // Another capacity, so that there is a move also to less room.
            let mut moved = rule(limit(to));
            moved["capacity"] = json!(101);
            let new = place.open(moved);
            let at = format!("{from} to {to}, {costs:?}");
            assert_eq!(uses(&new, "alice")["w"].0, 6, "{at}");
            // Each unit leaves when it would have left.
            let (mut left, passed) = (6, 5 * costs.len() as u64);
            place.pass(60 - passed);
            for cost in &costs {
                let decision = new.peek("alice", to - left + 1).unwrap();
                left -= cost;
                assert!(decision.allowed, "{at}: {left} left, as the first has left just now");
                let used = uses(&new, "alice").get("w").map_or(0, |used| used.0);
                assert_eq!(used, left, "{at}");
                place.pass(5);
            }
            assert_eq!(granted(&new, "alice", 500), to as usize, "{at}");
        }
    }
}

#[test]
fn a_log_that_does_not_fit_denies_as_it_did() {
    let place = Place::new();
    let windows = |long: Option<u64>| {
        let short = json!({ "max": 5, "per": "10s", "algorithm": "window" });
        let long = long.map(|max| json!({ "max": max, "per": "1h", "algorithm": "window" }));
        match long {
            Some(long) => json!({ "short": short, "long": long }),
            None => json!({ "short": short }),
        }
    };
    let old = place.open(rule(windows(Some(200))));
    for _ in 0..7 {
        assert_eq!(granted(&old, "alice", 9), 5);
        place.pass(10);
    }
    assert_eq!(granted(&old, "alice", 3), 3);
    place.pass(4);
    assert_eq!(granted(&old, "alice", 1), 1);
    drop(old);
    // 39 entries of the last hour become 5.
    let new = place.open(rule(windows(None)));
    assert_eq!(uses(&new, "alice")["short"].0, 4);
    assert_eq!(granted(&new, "alice", 9), 1);
    place.pass(6);
    assert_eq!(granted(&new, "alice", 9), 3);
    place.pass(4);
    assert_eq!(granted(&new, "alice", 9), 2);
}

#[test]
fn several_scopes_go_on_each_by_itself() {
    let place = Place::new();
    let key = json!(["channel", "sender"]);
    let parts = |limits: Value, capacity: u64| {
        json!({
            "key": key, "limits": limits, "capacity": capacity,
        })
    };
    let each = json!({ "max": 10, "per": "1h" });
    let channel = json!({ "max": 20, "per": "1h", "algorithm": "window", "scope": ["channel"] });
    let all = json!({ "max": 30, "per": "1h", "algorithm": "fixed", "scope": [] });
    let hits = json!({ "max": 40, "per": "1h", "counts": "hits" });
    let old = json!({ "each": each, "channel": channel, "all": all, "hits": hits });
    let old = place.open(parts(old, 100));
    for (key, cost) in [(["irc", "alice"], 5), (["irc", "bob"], 4), (["web", "alice"], 3)] {
        assert!(old.hit(key, cost).unwrap().allowed);
    }
    let keys = [["irc", "alice"], ["irc", "bob"], ["web", "alice"], ["web", "carol"]];
    let before = keys.map(|key| uses(&old, key));
    drop(old);
    let mut wider = channel.clone();
    wider["max"] = json!(25);
    let new = json!({ "all": all, "hits": hits, "channel": wider, "each": each });
    let new = place.open(parts(new, 1000));
    for (key, before) in keys.iter().zip(before) {
        let after = uses(&new, *key);
        for name in ["each", "channel", "all", "hits"] {
            let (used, _, reset) = after[name];
            assert_eq!((used, reset), (before[name].0, before[name].2), "{key:?} {name}");
        }
    }
    assert_eq!(uses(&new, ["x", "y"])["all"].0, 12);
    // What `counts` is, is part of a limit: another starts fresh.
    drop(new);
    let mut cost = hits.clone();
    cost["counts"] = json!("cost");
    let third = place.open(parts(json!({ "each": each, "all": all, "hits": cost }), 1000));
    let after = uses(&third, ["irc", "alice"]);
    assert_eq!((after["each"].0, after["all"].0, after["hits"].0), (5, 12, 0));
}

#[test]
fn limits_that_are_named_by_their_text_go_on_by_position() {
    let place = Place::new();
    let old = place.open(rule(json!("5/h fixed, 100/d fixed, 70/h, 9/m window")));
    assert_eq!(granted(&old, "alice", 4), 4);
    old.set_override(Target::key("alice"), vec![("70/h".into(), LimitPatch::max(71))]).unwrap();
    drop(old);
    let new = place.open(rule(json!("80/h, 8/h fixed, 200/d fixed, 1000/d fixed")));
    let used = uses(&new, "alice");
    let by_name = |name: &str| (used[name].0, used[name].1);
    // A bucket of 70 held 66.
    assert_eq!((by_name("80/h"), by_name("8/h")), ((5, 66), (4, 4)));
    assert_eq!((by_name("200/d"), by_name("1000/d")), ((4, 196), (0, 1000)));
    // A name of one's own is no position.
    drop(new);
    let named = place.open(rule(json!({ "mine": "80/h" })));
    assert_eq!(granted(&named, "alice", 100), 80);
}

#[test]
fn budgets_go_on_always() {
    let place = Place::new();
    let with = |limits: &str, scope: Value, capacity: u64| {
        json!({
            "limits": limits, "capacity": capacity, "key": ["a", "b"], "penalty_scope": scope,
            "budget": { "daily": 100, "reset_hour_utc": 7 },
        })
    };
    let old = place.open(with("5/h", json!(["a", "b"]), 100));
    old.spend(["x", "y"], 60).unwrap();
    drop(old);
    let new = place.open(with("5/h fixed", json!(["a"]), 50));
    assert_eq!(new.budget(["x", "y"]).unwrap().spent, 60);
    drop(new);
    let third = place.open(json!({ "limits": "6/h", "capacity": 60, "key": ["a", "b"] }));
    drop(third);
    let fourth = place.open(with("6/h", json!(["a", "b"]), 100));
    assert_eq!(fourth.budget(["x", "y"]).unwrap().spent, 60, "also where no rule has one");
}

#[test]
fn penalties_go_on_and_know_their_limit_by_its_new_place() {
    let cooling =
        |max: u64, cooldown: &str| json!({ "max": max, "per": "1s", "cooldown": cooldown });
    let with = |limits: Value, scope: Value| {
        json!({
            "limits": limits, "capacity": 100, "key": ["a", "b"], "penalty_scope": scope,
            "alert": { "violations": 5, "within": "1h" },
        })
    };
    let (loose, tight) = (cooling(100, "3s"), cooling(2, "50s"));
    let start = || {
        let place = Place::new();
        let old = with(json!({ "loose": loose, "tight": tight }), json!(["a"]));
        let old = place.open(old);
        (0..3).for_each(|_| drop(old.hit(["x", "y"], 1).unwrap()));
        let stats = old.stats(["x", "y"]).unwrap().unwrap();
        assert_eq!((stats.cooldown_left.as_secs(), stats.violations), (50, 1));
        place.pass(10);
        place
    };
    let found = |place: &Place, limits: Value, scope: Value| {
        let stats = place.open(with(limits, scope)).stats(["x", "y"]).unwrap();
        stats.map_or((0, 0), |stats| (stats.cooldown_left.as_secs(), stats.violations))
    };
    let scope = || json!(["a"]);
    let place = start();
    assert_eq!(found(&place, json!({ "tight": tight, "loose": loose }), scope()), (40, 1));
    let third = json!({ "third": loose, "loose": loose, "tight": tight });
    assert_eq!(found(&place, third, scope()), (40, 1));
    assert_eq!(found(&place, json!({ "loose": loose }), scope()), (0, 1), "its limit is gone");
    let place = start();
    let both = || json!({ "loose": loose, "tight": tight });
    assert_eq!(found(&place, both(), json!(["b"])), (0, 0), "another penalty_scope");
}

#[test]
fn permits_that_are_out_stay_out() {
    let place = Place::new();
    let with = |max: u64, more: bool| {
        let jobs = json!({ "max": max, "lease": "60s", "algorithm": "concurrent" });
        match more {
            true => rule(json!({ "rate": "100/h", "jobs": jobs })),
            false => rule(json!({ "jobs": jobs })),
        }
    };
    let old = place.open(with(8, false));
    let mut held: Vec<_> = (0..6).map(|_| old.permit("job").unwrap()).collect();
    // Of the places 0 and 5 only the last stays out.
    held.drain(..5).for_each(|permit| assert!(permit.release()));
    place.pass(20);
    let second = old.permit("job").unwrap();
    for (max, more, free) in [(8, true, 6), (20, false, 18), (3, true, 1), (1, false, 0)] {
        let new = place.open(with(max, more));
        assert_eq!(new.peek("job", 0).unwrap().remaining, Some(free), "{max}");
    }
    // The longest lease is the one that a table without room for both keeps.
    let last = place.open(with(1, false));
    assert_eq!(last.peek("job", 1).unwrap().retry_after, Some(Duration::from_secs(60)));
    drop((held, second));
}

#[test]
fn run_time_changes_stay() {
    let place = Place::new();
    let old = place.open(rule(json!({ "a": "5/h" })));
    old.set_override(Target::key("vip"), vec![("a".into(), LimitPatch::max(9))]).unwrap();
    old.add_exempt(tidegate::Match::new([("role", "admin")])).unwrap();
    let new = place.open(rule(json!({ "b": "7/d", "a": "5/h" })));
    assert_eq!(new.overrides().unwrap().len(), 1);
    assert_eq!((granted(&new, "vip", 20), granted(&new, "bob", 20)), (7, 5));
    assert_eq!(new.exempts().unwrap().len(), 1);
}

#[test]
fn the_names_of_offenders_stay() {
    let place = Place::new();
    let old = place.open(rule(json!("1/h")));
    assert_eq!(granted(&old, "alice", 4), 1);
    drop(old);
    drop(place.open(rule(json!("1/h, 5/d"))));
    let seen = Limiter::inspect(&place.path).unwrap().remove(0);
    assert_eq!((seen.keys, seen.limits.len(), seen.retired), (1, 2, false));
    assert_eq!(seen.top_offenders[0].key, ["alice"]);
}

#[test]
fn other_key_parts_are_refused() {
    let place = Place::new();
    drop(place.open(rule(json!("5/h"))));
    let mut parts = rule(json!("5/h"));
    parts["key"] = json!(["a", "b"]);
    let message = place.refusal(parts);
    for told in ["parts is 1 in the file and 2 in the policy", "can't be moved", "recreate"] {
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn fewer_places_than_live_keys_are_refused() {
    let place = Place::new();
    let with = |capacity: u64| json!({ "limits": "5/h", "capacity": capacity });
    let old = place.open(with(1000));
    (0..900).for_each(|key| assert!(old.allow(format!("{key}").as_str()).unwrap()));
    drop(old);
    let message = place.refusal(with(100));
    for told in ["900 keys still count", "`capacity` of 100", "it was 1000", "recreate"] {
        assert!(message.contains(told), "{message}");
    }
    // Idle ones are evicted.
    place.pass(3_700);
    let old = place.open(with(1000));
    (0..50).for_each(|key| assert!(old.hit(format!("{key}").as_str(), 2).unwrap().allowed));
    drop(old);
    let new = place.open(with(100));
    (0..50).for_each(|key| assert_eq!(granted(&new, &format!("{key}"), 9), 3));
    // So it is with budgets, of today and of other days.
    let place = Place::new();
    let with =
        |capacity: u64| json!({ "limits": "5/h", "capacity": capacity, "budget": { "daily": 5 } });
    let old = place.open(with(100));
    (0..90).for_each(|key| assert!(!old.spend(format!("{key}").as_str(), 1).unwrap().over));
    drop(old);
    assert!(place.refusal(with(10)).contains("90 keys still count"));
    place.pass(2 * 86_400);
    place.clock.set_wall(Duration::from_secs(86_400 * 4));
    drop(place.open(with(10)));
}

#[test]
fn a_table_that_is_full_to_the_last_row_can_be_moved() {
    for (from, to) in
        [("5/h", "5/h, 7/d"), ("5/h window", "5/h window, 7/d"), ("5/h fixed", "5/h fixed, 9/h")]
    {
        let place = Place::new();
        let with = |limits: &str| json!({ "limits": limits, "capacity": 1000, "on_full": "deny" });
        let old = place.open(with(from));
        let keys: Vec<String> = (0..20_000).map(|key| format!("key-{key}")).collect();
        let known: Vec<&String> =
            keys.iter().filter(|key| old.allow(key.as_str()).unwrap()).collect();
        assert!(known.len() >= 1500, "{}", known.len());
        drop(old);
        let new = place.open(with(to));
        let wrong: Vec<_> = known.iter().filter(|key| granted(&new, key, 9) != 4).collect();
        assert!(wrong.is_empty(), "{from}: {wrong:?}");
    }
}

#[test]
fn keys_that_share_because_the_table_is_full_go_on_sharing_what_is_spent() {
    let place = Place::new();
    let with = |limits: &str| json!({ "limits": limits, "capacity": 4 });
    let old = place.open(with("5/h"));
    let keys: Vec<String> = (0..1000).map(|key| format!("key-{key}")).collect();
    let all = keys.iter().map(|key| granted(&old, key, 9)).sum::<usize>();
    assert!(all < 200, "rows of their own for few, and a few that others share: {all}");
    drop(old);
    let new = place.open(with("5/h, 1000/d"));
    assert_eq!(keys.iter().map(|key| granted(&new, key, 9)).sum::<usize>(), 0);
}

#[test]
fn users_of_the_old_table_learn_of_it_and_count_apart() {
    let place = Place::new();
    let old = place.open(rule(json!("5/h")));
    assert_eq!(granted(&old, "alice", 2), 2);
    let new = place.open(rule(json!("5/h, 100/d")));
    let told = |limiter: &Limiter| {
        let events = limiter.events(None).unwrap().events;
        let events = events.iter().filter(|event| event.reason == "retired").count();
        let audit = limiter.audit().unwrap().iter().any(|finding| finding.id == "retired");
        (limiter.metrics().unwrap()[0].retired, audit, events)
    };
    assert!(old.allow("bob").unwrap());
    assert_eq!((told(&old), told(&new)), ((true, true, 1), (false, false, 0)));
    assert_eq!((granted(&old, "alice", 9), granted(&new, "alice", 9)), (3, 3), "one quota each");
    assert!(!Limiter::inspect(&place.path).unwrap()[0].retired);
}

#[test]
fn an_older_shape_moves_the_table_back_only_if_it_is_alone() {
    let place = Place::new();
    let shapes = ["5/h", "5/h, 50/d", "5/h, 50/d, 500/d fixed"].map(|text| rule(json!(text)));
    let mut users: Vec<Limiter> = shapes.iter().map(|shape| place.open(shape.clone())).collect();
    assert_eq!(granted(&users[2], "alice", 2), 2);
    for older in &shapes[..2] {
        let message = place.refusal(older.clone());
        for told in
            ["a newer policy has moved it", "another process, or another", "to move it back"]
        {
            assert!(message.contains(told), "{message}");
        }
        // So also where the capacity is not stated.
        let mut unstated = older.clone();
        unstated.as_object_mut().unwrap().remove("capacity");
        assert!(place.refusal(unstated).contains("a newer policy"));
    }
    // The shape that it has can be opened by all, and a new one moves it on.
    assert_eq!(granted(&place.open(shapes[2].clone()), "alice", 1), 1);
    // Those who have the older tables don't matter.
    drop(users.pop());
    let back = place.open(shapes[1].clone());
    assert_eq!(granted(&back, "alice", 9), 2);
    assert!(place.refusal(shapes[0].clone()).contains("a newer policy"));
    // After that the newest is newer again.
    let third = place.open(shapes[2].clone());
    assert!(back.metrics().unwrap()[0].retired && !third.metrics().unwrap()[0].retired);
    assert!(place.refusal(shapes[1].clone()).contains("a newer policy"));
}

#[test]
fn a_long_history_of_shapes_fits_the_header() {
    let place = Place::new();
    let shape = |number: u64| {
        let limit = |at: u64| {
            (
                format!("limit-{at}-with-a-long-name"),
                json!({ "max": number + 1, "per": "1h", "algorithm": "window" }),
            )
        };
        let limits: serde_json::Map<String, Value> = (0..8).map(limit).collect();
        json!({ "limits": limits, "capacity": 10 + number })
    };
    let first = place.open(shape(1));
    assert!(first.allow("alice").unwrap());
    let mut last = first;
    for number in 2..30 {
        last = place.open(shape(number));
    }
    assert_eq!(uses(&last, "alice")["limit-0-with-a-long-name"].0, 1);
    assert!(place.refusal(shape(20)).contains("a newer policy"));
    assert_eq!(place.names(), ["default.lock", "default.table"]);
}

#[test]
fn a_history_of_long_shapes_is_cut_to_what_a_header_holds() {
    let place = Place::new();
    let long = "x".repeat(100_000);
    let shape = |number: u64| json!({ "limits": { &long: "5/h" }, "capacity": 10 + number });
    let mut last = place.open(shape(0));
    assert_eq!(granted(&last, "alice", 2), 2);
    for number in 1..20 {
        last = place.open(shape(number));
    }
    assert_eq!(uses(&last, "alice")[&long].0, 2);
    for known in [18, 15] {
        assert!(place.refusal(shape(known)).contains("a newer policy"), "{known}");
    }
}

#[test]
fn an_unstated_capacity_is_the_tables_also_if_that_is_moved() {
    let place = Place::new();
    drop(place.open(json!({ "limits": "5/h", "capacity": 70_000 })));
    let capacity = |limiter: &Limiter| limiter.metrics().unwrap()[0].capacity;
    let new = place.open(json!({ "limits": "5/h, 9/d" }));
    assert_eq!(capacity(&new), 70_000);
    drop(new);
    // Where `memory` has no room for it, it is what a new table would have.
    let store = format!("file:{}", place.path.display());
    let clock = place.clock.clock();
    let options = Limiter::builder().store(store).clock(clock).memory(4 << 20);
    let new = options.limits("5/h, 9/d, 8/d fixed").build().unwrap();
    assert!((10_000..60_000).contains(&capacity(&new)), "{}", capacity(&new));
}

#[test]
fn several_who_open_a_new_shape_at_once_move_it_once() {
    for _ in 0..40 {
        let place = Place::new();
        let old = place.open(rule(json!("10/h")));
        assert_eq!(granted(&old, "alice", 4), 4);
        let barrier = std::sync::Barrier::new(4);
        let open = || {
            barrier.wait();
            let limiter = place.open(rule(json!("10/h, 100/d")));
            (granted(&limiter, "alice", 20), limiter)
        };
        let (granted, limiters): (Vec<usize>, Vec<Limiter>) = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).unzip()
        });
        assert_eq!(granted.iter().sum::<usize>(), 6);
        assert!(limiters.iter().all(|limiter| !limiter.metrics().unwrap()[0].retired));
    }
}

#[test]
fn a_reload_to_another_shape_keeps_the_counts_of_a_file_store() {
    let place = Place::new();
    std::fs::create_dir_all(&place.path).unwrap();
    let path = place.path.join("policy.yaml");
    let write = |limits: &str| {
        let text = format!(
            "version: 1\nstore: file:limits\nrules: {{ a: {{ limits: {limits}, capacity: 10 }} }}"
        );
        std::fs::write(&path, text).unwrap();
    };
    write("5/h");
    let options = Limiter::builder().clock(place.clock.clock());
    let limiter = options.file(&path).build().unwrap();
    assert_eq!(granted(&limiter, "alice", 2), 2);
    write("\"5/h, 4/d window\"");
    limiter.reload().unwrap();
    assert_eq!(granted(&limiter, "alice", 9), 3);
    assert!(!limiter.metrics().unwrap()[0].retired);
}

#[test]
fn a_reload_goes_back_to_an_earlier_shape_if_no_other_limiter_has_the_store() {
    let place = Place::new();
    std::fs::create_dir_all(&place.path).unwrap();
    let path = place.path.join("policy.yaml");
    let write = |limits: &str| {
        let text = format!(
            "version: 1\nstore: file:limits\nrules: {{ a: {{ limits: {limits}, capacity: 10 }} }}"
        );
        std::fs::write(&path, text).unwrap();
    };
    let open = || {
        let options = Limiter::builder().clock(place.clock.clock());
        options.file(&path).build()
    };
    let shapes = ["5/h", "\"5/h, 40/d\""];
    write(shapes[0]);
    let limiter = open().unwrap();
    assert_eq!(granted(&limiter, "alice", 1), 1);
    write(shapes[1]);
    limiter.reload().unwrap();
    assert_eq!(granted(&limiter, "alice", 1), 1);
    let other = open().unwrap();
    write(shapes[0]);
    let message = limiter.reload().unwrap_err().to_string();
    assert!(message.contains("another limiter of this process, has it open"), "{message}");
    assert!(!limiter.metrics().unwrap()[0].retired);
    assert_eq!(granted(&limiter, "alice", 1), 1);
    // The limiter still counts as a user of the table.
    drop(other);
    assert!(open().unwrap_err().to_string().contains("to move it back"));
    limiter.reload().unwrap();
    assert_eq!((granted(&limiter, "alice", 9), limiter.metrics().unwrap()[0].retired), (2, false));
    // And of the one that it has now: only a newer shape retires it.
    write(shapes[1]);
    let newer = open().unwrap();
    assert_eq!((granted(&newer, "alice", 9), limiter.metrics().unwrap()[0].retired), (0, true));
}

#[test]
fn a_reload_that_is_refused_leaves_the_limiter_a_user_of_its_tables() {
    let place = Place::new();
    std::fs::create_dir_all(&place.path).unwrap();
    let path = place.path.join("policy.yaml");
    let write = |limits: &str, key: &str| {
        let rules = format!("{{ a: {{ limits: {limits} }}, b: {{ limits: 5/h, key: [{key}] }} }}");
        let text = format!("version: 1\nstore: file:limits\ncapacity: 10\nrules: {rules}");
        std::fs::write(&path, text).unwrap();
    };
    let open = || {
        let options = Limiter::builder().clock(place.clock.clock());
        options.file(&path).build()
    };
    write("5/h", "x");
    let limiter = open().unwrap();
    write("\"5/h, 40/d\"", "x");
    limiter.reload().unwrap();
    // Back, but for the other rule, which has other key parts.
    write("5/h", "\"x\", \"y\"");
    let message = limiter.reload().unwrap_err().to_string();
    assert!(message.contains("b.table") && message.contains("parts"), "{message}");
    write("5/h", "x");
    let message = open().unwrap_err().to_string();
    assert!(message.contains("a.table") && message.contains("to move it back"), "{message}");
    let rule = limiter.rule("a").unwrap();
    assert_eq!((0..9).filter(|_| rule.allow("alice").unwrap()).count(), 5);
    assert!(!rule.metrics().unwrap().retired);
}

#[test]
fn no_rule_is_moved_if_another_is_refused() {
    let place = Place::new();
    let open = |rules: Value| {
        let policy = json!({ "version": 1, "capacity": 50, "rules": rules });
        let store = format!("file:{}", place.path.display());
        let options = Limiter::builder().store(store).clock(place.clock.clock());
        options.value(&policy).build()
    };
    let [one, two] = ["5/h", "5/h, 6/d"].map(|limits| json!({ "limits": limits }));
    let parts = json!({ "limits": "5/h", "key": ["a", "b"] });
    let old = open(json!({ "a": one, "b": one })).unwrap();
    let message = open(json!({ "a": two, "b": parts })).unwrap_err().to_string();
    assert!(message.contains("parts"), "{message}");
    assert!(old.metrics().unwrap().iter().all(|rule| !rule.retired));
    let new = open(json!({ "a": two, "b": one })).unwrap();
    assert_eq!(new.metrics().unwrap().iter().filter(|rule| rule.retired).count(), 0);
    let message = open(json!({ "b": two, "a": one })).unwrap_err().to_string();
    assert!(message.contains("to move it back"), "{message}");
    assert!(!old.rule("b").unwrap().metrics().unwrap().retired, "b was not moved");
}

#[test]
fn no_rule_is_moved_if_another_is_damaged_or_has_too_few_places() {
    let place = Place::new();
    let open = |rules: Value| {
        let policy = json!({ "version": 1, "rules": rules });
        let store = format!("file:{}", place.path.display());
        let options = Limiter::builder().store(store).clock(place.clock.clock());
        options.value(&policy).build()
    };
    let with = |limits: &str, capacity: u64| json!({ "limits": limits, "capacity": capacity });
    let old = open(json!({ "a": with("5/h", 50), "b": with("5/h", 1000) })).unwrap();
    let b = old.rule("b").unwrap();
    (0..900).for_each(|key| assert!(b.allow(format!("{key}").as_str()).unwrap()));
    let refused = |b: Value, told: &str| {
        let message = open(json!({ "a": with("5/h, 6/d", 50), "b": b })).unwrap_err().to_string();
        assert!(message.contains("b.table") && message.contains(told), "{message}");
        assert!(!old.rule("a").unwrap().metrics().unwrap().retired, "a was not moved: {message}");
    };
    refused(with("5/h", 100), "900 keys still count");
    refused(with("5/h, 7/d", 100), "900 keys still count");
    // The last byte of the first word of the checksum.
    let (path, at) = (place.path.join("b.table"), 88);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    refused(with("5/h", 1000), "damaged");
}

#[test]
fn no_rule_is_moved_if_another_of_format_1_is_refused() {
    let (place, seen) = format1();
    let open = |rules: Value| {
        let policy = json!({ "version": 1, "rules": rules });
        let store = format!("file:{}", place.path.display());
        let options = Limiter::builder().store(store).clock(place.clock.clock());
        options.value(&policy).build()
    };
    let old = open(json!({ "a": { "limits": "5/h" } })).unwrap();
    let mut rule = seen["policy"]["rules"]["default"].clone();
    rule["key"].as_array_mut().unwrap().push(json!("third"));
    let rules = json!({ "a": { "limits": "5/h, 6/d" }, "default": rule });
    let message = open(rules).unwrap_err().to_string();
    assert!(message.contains("parts is 2 in the file"), "{message}");
    assert!(!old.metrics().unwrap()[0].retired, "a was not moved");
}

#[test]
fn rows_of_a_moved_table_are_kept_for_as_long_as_slower_numbers_asked() {
    let place = Place::new();
    let with = |limits: Value| json!({ "limits": limits, "capacity": 16 });
    let old = place.open(with(json!({ "a": "10/h fixed" })));
    assert_eq!(granted(&old, "vip", 20), 10);
    place.pass(1);
    // By these numbers the key is as new a minute later. Those of the old table know it for an
    // hour.
    let new = place.open(with(json!({ "a": "10/min fixed", "b": "90/min" })));
    place.pass(120);
    assert_eq!(new.prune().unwrap(), 0, "I10");
    drop((old, new));
    let back = place.open(with(json!({ "a": "10/h fixed" })));
    assert_eq!(granted(&back, "vip", 20), 0);
}

/// Tables that a build of format 1 has made, and what it said of them.
fn format1() -> (Place, Value) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format1");
    let seen: Value =
        serde_json::from_slice(&std::fs::read(fixture.join("seen.json")).unwrap()).unwrap();
    let place = Place::new();
    std::fs::create_dir(&place.path).unwrap();
    std::fs::set_permissions(&place.path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    for name in ["default.table", "jobs.table"] {
        let to = place.path.join(name);
        std::fs::copy(fixture.join(name), &to).unwrap();
        std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    place.clock.set(Duration::from_millis(seen["now_ms"].as_u64().unwrap()));
    (place, seen)
}

#[test]
fn a_table_of_format_1_is_moved() {
    let (place, seen) = format1();
    let mut policy = seen["policy"].clone();
    // Another capacity and another limit: all in one move.
    policy["rules"]["default"]["capacity"] = json!(300);
    policy["rules"]["default"]["limits"]["new"] = json!("1000/d fixed");
    let open = || {
        let store = format!("file:{}", place.path.display());
        let options = Limiter::builder().store(store).clock(place.clock.clock());
        options.value(&policy).build().unwrap()
    };
    drop(open());
    let limiter = open();
    let rule = limiter.rule("default").unwrap();
    for was in seen["keys"].as_array().unwrap() {
        let key = [was["key"][0].as_str().unwrap(), was["key"][1].as_str().unwrap()];
        let stats = rule.stats(key).unwrap().expect("a global limit is in use");
        for limit in was["limits"].as_array().unwrap() {
            let found = stats.limits.iter().find(|l| limit[0] == l.name.as_str()).unwrap();
            let used = (limit[1].as_u64().unwrap(), limit[2].as_u64().unwrap());
            assert_eq!((found.used, found.remaining), used, "{key:?} {limit}");
            let (was, is) = (limit[3].as_u64().unwrap(), found.reset_after.as_millis() as u64);
            // Never earlier; later by 1/1000 of a token at most.
            assert!(is >= was && is - was <= 361, "{key:?} {limit}: {is}");
        }
        assert_eq!(stats.cooldown_left.as_millis() as u64, was["cooldown_ms"].as_u64().unwrap());
        assert_eq!(stats.violations, was["violations"].as_u64().unwrap());
        assert_eq!(rule.budget(key).unwrap().spent, was["spent"].as_u64().unwrap());
        let peek = rule.peek(key, 1).unwrap();
        assert_eq!(peek.reason().map(str::to_string), was["reason"].as_str().map(str::to_string));
    }
    // The wait that backoff enforces goes on, too.
    assert_eq!(rule.stats(["irc", "alice"]).unwrap().unwrap().violations, 1);
    let job = limiter.rule("jobs").unwrap().peek("job", 0).unwrap();
    assert_eq!(job.remaining, seen["jobs_left"].as_u64());
    let (was, is) = (seen["jobs_reset_ms"].as_u64().unwrap(), job.reset_after.as_millis() as u64);
    assert!((was..=was + was / 100).contains(&is), "a lease of three digits: {is}, not {was}");
}

#[test]
fn units_of_a_log_that_does_not_fit_are_not_forgotten() {
    let place = Place::new();
    let with = |max: u64| rule(json!({ "w": { "max": max, "per": "1h", "algorithm": "window" } }));
    let old = place.open(with(200));
    assert_eq!(granted(&old, "alice", 40), 40);
    drop(old);
    let mut smaller = with(10);
    smaller["capacity"] = json!(101);
    let new = place.open(smaller);
    new.refund("alice", 5).unwrap();
    assert_eq!(granted(&new, "alice", 9), 0, "35 are in the hour still");
}

#[test]
fn a_log_that_does_not_fit_keeps_what_a_longer_window_sees() {
    let place = Place::new();
    let with = |max: u64, per: &str, capacity: u64| {
        let limit = json!({ "w": { "max": max, "per": per, "algorithm": "window" } });
        json!({ "limits": limit, "capacity": capacity })
    };
    for (max, due) in [(10, 0), (5, 0), (1, 0), (12, 2)] {
        let _ = std::fs::remove_dir_all(&place.path);
        let old = place.open(with(10, "1m", 100));
        assert_eq!(granted(&old, "alice", 20), 10);
        drop(old);
        place.pass(120);
        let new = place.open(with(max, "1h", 101));
        assert_eq!(granted(&new, "alice", 20), due, "{max}/h");
    }
}

#[test]
fn idle_rows_are_moved_while_there_is_room() {
    let place = Place::new();
    let with = |limits: Value| json!({ "limits": limits, "capacity": 16 });
    let old = place.open(with(json!({ "a": "5/min" })));
    assert_eq!(granted(&old, "alice", 9), 5);
    drop(old);
    place.pass(600);
    // Nobody has evicted the row. So the slower rate applies from the last charge on.
    let new = place.open(with(json!({ "b": "90/min", "a": "5/d" })));
    assert_eq!(granted(&new, "alice", 9), 0);
}

mod random {
    //! Random shapes, moved to random shapes while time passes and keys are charged.

    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    const PARTS: [&str; 2] = ["channel", "sender"];
    const KEYS: [[&str; 2]; 4] = [["irc", "a"], ["irc", "b"], ["web", "a"], ["web", "b"]];

    #[derive(Clone, Debug)]
    struct Limit {
        algorithm: &'static str,
        max: u64,
        per: u64,
        scope: Vec<&'static str>,
        counts: &'static str,
    }

    /// A limit of each name has one algorithm and scope for good, so that it goes on in every move.
    #[derive(Clone, Debug)]
    struct Shape {
        /// By name.
        limits: Vec<usize>,
        rooms: Vec<u64>,
        capacity: u64,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hit(usize, u64),
        Record(usize, u64),
        Refund(usize, u64),
        Pass(u64),
        Move(Shape),
    }

    fn limit() -> impl Strategy<Value = Limit> {
        let algorithm =
            prop::sample::select(vec!["bucket", "window", "window", "counter", "fixed"]);
        let scope = prop::sample::select(vec![vec!["channel", "sender"], vec!["sender"], vec![]]);
        let counts = prop::sample::select(vec!["cost", "cost", "hits"]);
        let numbers = (3u64..20, prop::sample::select(vec![1u64, 60, 3600]));
        (algorithm, numbers, scope, counts).prop_map(|(algorithm, (max, per), scope, counts)| {
            Limit { algorithm, max, per, scope, counts }
        })
    }

    fn shape(limits: usize) -> impl Strategy<Value = Shape> {
        let chosen = prop::sample::subsequence((0..limits).collect::<Vec<_>>(), 1..=limits);
        let rooms = prop::collection::vec(20u64..60, limits);
        (chosen.prop_shuffle(), rooms, 20u64..200).prop_map(|(limits, rooms, capacity)| Shape {
            limits,
            rooms,
            capacity,
        })
    }

    fn step(limits: usize) -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..KEYS.len(), 1u64..4).prop_map(|(key, cost)| Step::Hit(key, cost)),
            1 => (0..KEYS.len(), 1u64..9).prop_map(|(key, cost)| Step::Record(key, cost)),
            1 => (0..KEYS.len(), 1u64..4).prop_map(|(key, cost)| Step::Refund(key, cost)),
            3 => prop::sample::select(vec![1u64, 17, 400, 5_000, 70_000]).prop_map(Step::Pass),
            2 => shape(limits).prop_map(Step::Move),
        ]
    }

    fn case() -> impl Strategy<Value = (Vec<Limit>, Shape, Vec<Step>)> {
        // Up to three limits, so that there are no more scopes than a rule may have.
        prop::collection::vec(limit(), 1..=3).prop_flat_map(|limits| {
            let all = limits.len();
            (Just(limits), shape(all), prop::collection::vec(step(all), 5..40))
        })
    }

    fn policy(limits: &[Limit], shape: &Shape) -> Value {
        let stated = |&at: &usize| {
            let Limit { algorithm, max, per, scope, counts } = &limits[at];
            let stated = json!({
                "algorithm": algorithm, "max": max, "per": format!("{per}s"),
                "scope": scope, "counts": counts,
            });
            (format!("limit-{at}"), stated)
        };
        let stated: serde_json::Map<String, Value> = shape.limits.iter().map(stated).collect();
        let windows = shape.limits.iter().filter(|&&at| limits[at].algorithm == "window");
        let room = windows.map(|&at| shape.rooms[at]).max();
        let mut rule = json!({ "key": PARTS, "limits": stated, "capacity": shape.capacity });
        if let Some(room) = room {
            rule["ceiling"] = json!(room);
        }
        rule
    }

    type Seen = BTreeMap<String, (u64, u64, Duration)>;

    /// What some costs would get.
    fn asked(limiter: &Limiter, key: [&str; 2]) -> [(bool, Option<Duration>); 4] {
        [1, 2, 3, 9].map(|cost| {
            let decision = limiter.peek(key, cost).unwrap();
            (decision.allowed, decision.retry_after)
        })
    }

    fn check(limits: Vec<Limit>, first: Shape, steps: Vec<Step>) -> Result<(), TestCaseError> {
        let place = Place::new();
        let mut limiter = place.open(policy(&limits, &first));
        let mut now = first;
        for step in steps {
            match step {
                Step::Hit(key, cost) => drop(limiter.hit(KEYS[key], cost).unwrap()),
                Step::Record(key, cost) => drop(limiter.record(KEYS[key], cost).unwrap()),
                Step::Refund(key, cost) => limiter.refund(KEYS[key], cost).unwrap(),
                Step::Pass(millis) => place.clock.advance(Duration::from_millis(millis)),
                Step::Move(next) => {
                    let before = KEYS.map(|key| (uses(&limiter, key), asked(&limiter, key)));
                    drop(limiter);
                    limiter = place.open(policy(&limits, &next));
                    for (key, (before, answers)) in KEYS.iter().zip(before) {
                        let after = uses(&limiter, *key);
                        compare(&limits, &now, &next, &before, &after)?;
                        let sorted = |shape: &Shape| BTreeSet::from_iter(shape.limits.clone());
                        if sorted(&now) == sorted(&next) {
                            prop_assert_eq!(asked(&limiter, *key), answers);
                        }
                    }
                    now = next;
                }
            }
        }
        Ok(())
    }

    /// Limits of both shapes say the same. Others are fresh, but for a window beside one that went
    /// on.
    fn compare(
        limits: &[Limit],
        old: &Shape,
        new: &Shape,
        before: &Seen,
        after: &Seen,
    ) -> Result<(), TestCaseError> {
        for &at in &new.limits {
            let name = format!("limit-{at}");
            let fresh = (0, limits[at].max, Duration::ZERO);
            let found = after.get(&name).copied().unwrap_or(fresh);
            let goes_on = old.limits.contains(&at);
            let shares = |other: &usize| {
                let (a, b) = (&limits[*other], &limits[at]);
                a.algorithm == "window" && (&a.scope, a.counts) == (&b.scope, b.counts)
            };
            let due = match goes_on {
                true => before.get(&name).copied().unwrap_or(fresh),
                false if limits[at].algorithm == "window" && old.limits.iter().any(shares) => {
                    continue;
                }
                false => fresh,
            };
            prop_assert_eq!(found, due, "{}: {:?} to {:?}", name, old, new);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 300,
            failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
            ..Default::default()
        })]
        #[test]
        fn every_limit_that_goes_on_answers_as_before((limits, first, steps) in case()) {
            check(limits, first, steps)?;
        }
    }
}
