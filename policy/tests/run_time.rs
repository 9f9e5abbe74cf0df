//! Run-time changes with an end, a name and a reason; the mode; blocks; and the trail of them all.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{
    Call, ChangeOptions, Code, LimitPatch, LimitPatches, Limiter, ManualClock, Match, Mode,
    Outcome, Policy, Target,
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn clock() -> ManualClock {
    ManualClock::new(Duration::from_secs(1000), Duration::from_secs(1_700_000_000))
}

fn of_rule(rule: Value, clock: &ManualClock, store: &str) -> Limiter {
    let policy = json!({"version": 1, "capacity": 1024, "rules": {"default": rule}});
    let options = Limiter::builder().clock(clock.clock()).store(store);
    options.policy(Policy::from_value(&policy).unwrap()).build().unwrap()
}

fn of(limits: &str, clock: &ManualClock) -> Limiter {
    of_rule(json!({"limits": {"l": limits}}), clock, "memory")
}

fn lasting(time: Duration) -> ChangeOptions {
    ChangeOptions::default().for_(time)
}

fn by(name: &str, reason: &str) -> ChangeOptions {
    ChangeOptions::default().by(name).reason(reason)
}

fn max(max: u64) -> LimitPatches {
    vec![("l".to_string(), LimitPatch::max(max))]
}

/// A folder for one test, gone with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path =
            std::env::temp_dir().join(format!("tidegate-run-time-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Place(path)
    }
    fn store(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a hit of 1 says: the reason, and until when.
fn says(limiter: &Limiter, key: &str) -> (Option<String>, Option<Duration>) {
    let decision = limiter.hit(key, 1).unwrap();
    (decision.reason().map(str::to_string), decision.retry_after)
}

fn blocked_for(time: Duration) -> (Option<String>, Option<Duration>) {
    (Some("blocked".to_string()), Some(time))
}

#[test]
fn a_blocked_key_is_refused_and_nobody_else() {
    let clock = clock();
    let limiter = of("5/min", &clock);
    limiter.block("mallory", &lasting(MINUTE)).unwrap();
    let decision = limiter.hit("mallory", 1).unwrap();
    assert!(!decision.allowed && !decision.alert);
    assert_eq!(
        (decision.reason(), decision.limit, decision.remaining),
        (Some("blocked"), None, Some(0))
    );
    assert_eq!(decision.retry_after, Some(MINUTE));
    assert!(!limiter.allow("mallory").unwrap() && limiter.allow("alice").unwrap());
    assert_eq!(limiter.allow_many(&["mallory", "bob"]).unwrap(), [0, 1]);
    assert!(limiter.is_limited("mallory").unwrap() && !limiter.is_limited("alice").unwrap());
    assert_eq!(limiter.peek("mallory", 0).unwrap().reason(), Some("blocked"));
    assert_eq!(limiter.metrics().unwrap()[0].denied, [("blocked".to_string(), 3)]);
    clock.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(says(&limiter, "mallory"), blocked_for(Duration::from_millis(1)));
    clock.advance(Duration::from_millis(1));
    let after = limiter.hit("mallory", 5).unwrap();
    assert!(after.allowed, "a block has spent nothing");
    assert!(limiter.blocks().unwrap().is_empty());
}

#[test]
fn an_endless_block_has_no_retry_time_and_ends_by_hand() {
    let clock = clock();
    let limiter = of("5/min", &clock);
    let number = limiter.block("mallory", &by("ops", "spam")).unwrap();
    clock.advance(400 * 24 * HOUR);
    assert_eq!(says(&limiter, "mallory"), (Some("blocked".into()), None));
    let blocked = limiter.blocks().unwrap().remove(0);
    assert_eq!((&*blocked.key, blocked.until), (&[b"mallory".to_vec()][..], None));
    let (by, reason) = (blocked.by.as_deref(), blocked.reason.as_deref());
    assert_eq!((by, reason, limiter.blocks().unwrap().len()), (Some("ops"), Some("spam"), 1));
    assert_eq!(limiter.stats("mallory").unwrap().unwrap().blocked, Some(blocked));
    assert!(limiter.unblock("mallory").unwrap() && !limiter.unblock("mallory").unwrap());
    assert!(limiter.allow("mallory").unwrap());
    assert_eq!(limiter.changes(number).unwrap().changes.len(), 1, "the second changed nothing");
}

#[test]
fn a_block_replaces_the_block_before_it() {
    let clock = clock();
    let limiter = of("5/min", &clock);
    limiter.block("mallory", &ChangeOptions::default()).unwrap();
    limiter.block("mallory", &lasting(SECOND)).unwrap();
    assert_eq!(limiter.blocks().unwrap().len(), 1);
    clock.advance(SECOND);
    assert!(limiter.allow("mallory").unwrap(), "what was replaced is not restored");
}

#[test]
fn a_reset_ends_a_block() {
    let clock = clock();
    let limiter = of("5/min", &clock);
    for key in ["a", "b", "c"] {
        limiter.block(key, &ChangeOptions::default()).unwrap();
    }
    limiter.reset("a").unwrap();
    assert!(limiter.allow("a").unwrap() && !limiter.allow("b").unwrap());
    limiter.reset_all().unwrap();
    assert!(limiter.blocks().unwrap().is_empty());
    assert!(limiter.allow("b").unwrap() && limiter.allow("c").unwrap());
    let ops: Vec<String> = limiter.changes(3).unwrap().changes.into_iter().map(|c| c.op).collect();
    assert_eq!(ops, ["unblock", "unblock"]);
}

#[test]
fn a_block_counts_for_no_penalty_and_leaves_the_rest_at_work() {
    let clock = clock();
    let rule = json!({
        "limits": {"l": {"max": 1, "per": "1h", "cooldown": "10s"}},
        "backoff": {"steps": ["1s", "20s"], "quiet": "60s"},
        "alert": {"violations": 2, "within": "1h"},
        "budget": {"daily": 5},
    });
    let limiter = of_rule(rule, &clock, "memory");
    limiter.block("mallory", &lasting(SECOND)).unwrap();
    for _ in 0..5 {
        assert_eq!(says(&limiter, "mallory"), blocked_for(SECOND));
    }
    assert!(limiter.is_limited("mallory").unwrap());
    assert_eq!(limiter.record("mallory", 1).unwrap().used, 1);
    assert_eq!(limiter.spend("mallory", 2).unwrap().spent, 2);
    assert_eq!(limiter.stats("mallory").unwrap().unwrap().violations, 0);
    clock.advance(SECOND);
    let denied = limiter.hit("mallory", 1).unwrap();
    assert!(!denied.alert && denied.reason() == Some("l"), "the first violation");
    assert_eq!(limiter.metrics().unwrap()[0].alerts, 0);
}

#[test]
fn order_a_block_comes_after_exemptions_and_before_the_cost() {
    let clock = clock();
    let rule = json!({
        "limits": {"l": "2/h"}, "exempt": [{"role": "admin"}], "budget": {"daily": 1},
    });
    let limiter = of_rule(rule, &clock, "memory");
    limiter.spend("alice", 1).unwrap();
    limiter.block("alice", &lasting(SECOND)).unwrap();
    let admin = Call::of("alice").with(&[("role", "admin")]);
    assert_eq!(limiter.hit(admin, 1).unwrap().reason(), Some("exempt"));
    let costly = limiter.hit("alice", 3).unwrap();
    assert_eq!((costly.reason(), costly.retry_after), (Some("blocked"), None), "it never passes");
    let hit = limiter.hit("alice", 1).unwrap();
    assert_eq!(hit.reason(), Some("blocked"));
    assert!(hit.retry_after > Some(SECOND), "the budget is spent until the reset hour");
    let steps = limiter.why("alice", 1).unwrap().steps;
    let names: Vec<&str> = steps.iter().map(|step| step.step).collect();
    let order = ["mode", "exempt", "blocked", "cost", "budget", "cooldown", "backoff", "limit"];
    assert_eq!(names, order);
    limiter.set_mode(Mode::Off).unwrap();
    assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("off"));
}

#[test]
fn shadow_tells_of_a_block_and_lets_pass() {
    let clock = clock();
    let limiter = of_rule(json!({"limits": {"l": "2/h"}, "mode": "shadow"}), &clock, "memory");
    limiter.block("mallory", &ChangeOptions::default()).unwrap();
    let decision = limiter.hit("mallory", 1).unwrap();
    assert_eq!((decision.allowed, decision.would_deny()), (true, Some("blocked")));
}

#[test]
fn a_permit_that_is_out_can_be_renewed_while_its_key_is_blocked() {
    let clock = clock();
    let limiter = of("2 concurrent lease 10s", &clock);
    let permit = limiter.permit("job").unwrap();
    limiter.block("job", &ChangeOptions::default()).unwrap();
    assert!(!limiter.permit("job").unwrap().decision().allowed);
    clock.advance(6 * SECOND);
    assert!(permit.renew());
    clock.advance(6 * SECOND);
    assert!(permit.release());
}

#[test]
fn who_waits_waits_for_the_end_of_a_block() {
    let limiter = Limiter::new("5/min").unwrap();
    limiter.block("alice", &lasting(Duration::from_millis(60))).unwrap();
    let since = std::time::Instant::now();
    assert!(limiter.wait("alice", 1, None).unwrap().allowed);
    assert!(since.elapsed() >= Duration::from_millis(59));
    limiter.block("alice", &ChangeOptions::default()).unwrap();
    let denied = limiter.wait("alice", 1, None).unwrap();
    assert_eq!(denied.reason(), Some("blocked"), "at once: it never ends");
    assert_eq!(limiter.metrics().unwrap()[0].denied, [], "waiting counts no denial");
}

#[test]
fn there_is_an_error_where_no_room_is_left_for_a_block() {
    let options = Limiter::builder().capacity(2);
    let limiter = options.limits("5/min").build().unwrap();
    for key in ["a", "b", "a"] {
        limiter.block(key, &ChangeOptions::default()).unwrap();
    }
    let error = limiter.block("c", &ChangeOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::Store);
    assert!(error.to_string().contains("larger capacity"), "{error}");
    assert!(limiter.allow("c").unwrap(), "nothing was changed");
    limiter.unblock("a").unwrap();
    limiter.block("c", &ChangeOptions::default()).unwrap();
}

#[test]
fn a_block_is_for_the_whole_key() {
    let clock = clock();
    let rule = json!({"key": ["channel", "sender"], "limits": {"l": "5/min"}});
    let limiter = of_rule(rule, &clock, "memory");
    limiter.block(["telegram", "mallory"], &ChangeOptions::default()).unwrap();
    assert!(!limiter.allow(["telegram", "mallory"]).unwrap());
    assert!(limiter.allow(["discord", "mallory"]).unwrap());
    assert_eq!(limiter.block("mallory", &ChangeOptions::default()).unwrap_err().code(), Code::Key);
}

#[test]
fn blocks_and_the_mode_outlive_the_process_that_made_them() {
    let (clock, place) = (clock(), Place::new("outlive"));
    let rule = json!({"limits": {"l": "5/min"}});
    {
        let limiter = of_rule(rule.clone(), &clock, &place.store());
        limiter.block("mallory", &lasting(MINUTE)).unwrap();
        limiter.block(b"\xff\x00".as_slice(), &by("ops", "spam")).unwrap();
        limiter.changing(lasting(HOUR)).unwrap().set_mode(Mode::Shadow).unwrap();
    }
    clock.advance(40 * SECOND);
    let limiter = of_rule(rule, &clock, &place.store());
    assert_eq!(limiter.hit("mallory", 1).unwrap().would_deny(), Some("blocked"));
    limiter.clear_mode().unwrap();
    assert_eq!(says(&limiter, "mallory"), blocked_for(20 * SECOND));
    let blocks = limiter.blocks().unwrap();
    assert_eq!(blocks[0].until, Some(Duration::from_secs(1_700_000_060)));
    assert_eq!(
        (blocks[1].key[0].as_slice(), blocks[1].by.as_deref()),
        (&b"\xff\x00"[..], Some("ops"))
    );
}

#[test]
fn another_process_goes_by_a_block_on_its_next_hit() {
    let (clock, place) = (clock(), Place::new("shared"));
    let rule = json!({"limits": {"l": "5/min"}});
    let one = of_rule(rule.clone(), &clock, &place.store());
    let other = of_rule(rule, &clock, &place.store());
    assert!(other.allow("mallory").unwrap());
    one.block("mallory", &lasting(MINUTE)).unwrap();
    assert_eq!(says(&other, "mallory"), blocked_for(MINUTE));
    assert!(other.unblock("mallory").unwrap());
    assert!(one.allow("mallory").unwrap());
}

#[test]
fn i9_a_clock_that_goes_back_lengthens_no_change() {
    for store in ["memory", "file"] {
        let (clock, place) = (clock(), Place::new("back"));
        let store = if store == "file" { place.store() } else { store.to_string() };
        let rule = json!({"limits": {"l": "5/min"}});
        let limiter = of_rule(rule.clone(), &clock, &store);
        clock.set(Duration::from_secs(90_000));
        limiter.block("mallory", &lasting(MINUTE)).unwrap();
        limiter
            .changing(lasting(MINUTE))
            .unwrap()
            .set_override(Target::key("alice"), max(9))
            .unwrap();
        clock.set(Duration::from_secs(2_000));
        assert_eq!(says(&limiter, "mallory"), blocked_for(MINUTE));
        clock.advance(59 * SECOND);
        assert_eq!(says(&limiter, "mallory"), blocked_for(SECOND));
        assert_eq!(limiter.peek("alice", 0).unwrap().limit, Some(9));
        clock.advance(SECOND);
        assert!(limiter.allow("mallory").unwrap());
        assert_eq!(limiter.peek("alice", 0).unwrap().limit, Some(5));
        // Who makes a change stores what was repaired.
        limiter.block("eve", &lasting(MINUTE)).unwrap();
        clock.set(Duration::from_secs(1_000));
        limiter.set_mode(Mode::Enforce).unwrap();
        let other = of_rule(rule, &clock, &store);
        if store != "memory" {
            clock.advance(MINUTE);
            assert!(other.allow("eve").unwrap());
        }
    }
}

#[test]
fn each_change_ends_by_itself_and_restores_nothing() {
    let clock = clock();
    let rule = json!({"limits": {"l": "5/h"}, "exempt": [{"key": "boss"}]});
    let limiter = of_rule(rule, &clock, "memory");
    let alice = || Target::key("alice");
    let staff = || Call::of("bob").with(&[("role", "staff")]);
    let hour = || limiter.changing(lasting(HOUR)).unwrap();
    limiter.set_override(alice(), max(7)).unwrap();
    hour().set_override(alice(), max(9)).unwrap();
    hour().set_override(Match::new([("role", "staff")]), max(8)).unwrap();
    limiter.set_default(max(6)).unwrap();
    hour().set_default(max(4)).unwrap();
    let sizes = || {
        let of = |call: Call<'_>| limiter.peek(call, 0).unwrap().limit;
        (of("alice".into()), of(staff()), of("carol".into()))
    };
    assert_eq!(sizes(), (Some(9), Some(8), Some(4)));
    clock.advance(HOUR - SECOND);
    assert_eq!(sizes(), (Some(9), Some(8), Some(4)));
    clock.advance(SECOND);
    assert_eq!(sizes(), (Some(5), Some(5), Some(5)));
    assert!(limiter.overrides().unwrap().is_empty());

    hour().add_exempt(Match::new([("role", "staff")])).unwrap();
    assert_eq!(limiter.hit(staff(), 1).unwrap().reason(), Some("exempt"));
    clock.advance(HOUR);
    assert_eq!(limiter.hit(staff(), 1).unwrap().reason(), None);
    hour().set_exempts(vec![]).unwrap();
    assert_eq!(limiter.hit("boss", 1).unwrap().reason(), None);
    clock.advance(HOUR);
    assert_eq!(limiter.hit("boss", 1).unwrap().reason(), Some("exempt"), "the policy's own");

    hour().set_mode(Mode::Off).unwrap();
    assert_eq!(limiter.hit("alice", 99).unwrap().reason(), Some("off"));
    clock.advance(HOUR);
    assert_eq!(limiter.hit("alice", 99).unwrap().reason(), Some("cost"));
}

#[test]
fn an_exemption_that_was_taken_back_stays_so_when_others_end() {
    let clock = clock();
    let limiter =
        of_rule(json!({"limits": {"l": "5/h"}, "exempt": [{"key": "boss"}]}), &clock, "memory");
    let boss = || Match::new([("key", "boss")]);
    limiter.changing(lasting(HOUR)).unwrap().set_exempts(vec![]).unwrap();
    limiter.add_exempt(boss()).unwrap();
    limiter.remove_exempt(&boss()).unwrap();
    clock.advance(HOUR);
    assert_eq!(limiter.hit("boss", 1).unwrap().reason(), None);
    limiter.changing(lasting(HOUR)).unwrap().set_exempts(vec![boss()]).unwrap();
    limiter.changing(by("ops", "for good")).unwrap().add_exempt(boss()).unwrap();
    let exempt = limiter.why("boss", 1).unwrap().steps.pop().unwrap();
    assert_eq!(exempt.by.as_deref(), Some("ops"));
    clock.advance(HOUR);
    assert_eq!(limiter.hit("boss", 1).unwrap().reason(), Some("exempt"));
}

#[test]
fn the_mode_that_is_set_wins_over_when_and_the_rule() {
    let clock = clock();
    let rule = json!({
        "limits": {"l": "1/h"}, "mode": "off",
        "when": [{"match": {"role": "guest"}, "mode": "shadow"}],
    });
    let limiter = of_rule(rule, &clock, "memory");
    let guest = || Call::of("g").with(&[("role", "guest")]);
    limiter.changing(by("ops", "an attack")).unwrap().set_mode(Mode::Enforce).unwrap();
    assert!(limiter.hit(guest(), 1).unwrap().allowed && !limiter.hit(guest(), 1).unwrap().allowed);
    assert!(limiter.allow("alice").unwrap() && !limiter.allow("alice").unwrap());
    let mode = limiter.why(guest(), 1).unwrap().steps.remove(0);
    assert_eq!((mode.source.as_deref(), mode.by.as_deref()), (Some("change"), Some("ops")));
    assert!(limiter.clear_mode().unwrap() > 0);
    assert_eq!(limiter.clear_mode().unwrap(), 0);
    assert_eq!(limiter.hit(guest(), 1).unwrap().would_deny(), Some("l"));
    assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("off"));
}

#[test]
fn why_says_who_made_the_change_that_a_number_comes_from() {
    let clock = clock();
    let limiter = of("5/h", &clock);
    let by_whom = |call: Call<'_>| {
        let last = limiter.why(call, 1).unwrap().steps.pop().unwrap();
        (last.source.unwrap(), last.by)
    };
    let changing = |name: &str| limiter.changing(by(name, "asked")).unwrap();
    assert_eq!(by_whom("alice".into()), ("rule".to_string(), None));
    changing("a").set_default(max(6)).unwrap();
    assert_eq!(by_whom("alice".into()), ("default".to_string(), Some("a".to_string())));
    changing("b").set_override(Match::new([("role", "staff")]), max(7)).unwrap();
    let staff = || Call::of("alice").with(&[("role", "staff")]);
    assert_eq!(by_whom(staff()), ("override".to_string(), Some("b".to_string())));
    changing("c").set_override(Target::key("alice"), max(8)).unwrap();
    assert_eq!(by_whom(staff()), ("override".to_string(), Some("c".to_string())));
    limiter.block("alice", &by("d", "spam")).unwrap();
    let why = limiter.why("alice", 1).unwrap();
    let block = why.steps.iter().find(|step| step.step == "blocked").unwrap();
    assert_eq!((block.outcome, block.by.as_deref()), (Outcome::Deny, Some("d")));
    assert_eq!(block.to_value()["value"], "spam");
    changing("e").add_exempt(Match::new([("role", "staff")])).unwrap();
    let exempt = limiter.why(staff(), 1).unwrap().steps.pop().unwrap();
    assert_eq!((exempt.source.as_deref(), exempt.by.as_deref()), (Some("change"), Some("e")));
}

#[test]
fn options_that_cannot_be_had_change_nothing() {
    let clock = clock();
    let limiter = of("5/h", &clock);
    let long = |len: usize| "x".repeat(len);
    let wrong = [
        lasting(Duration::ZERO),
        lasting(Duration::from_micros(999)),
        lasting(Duration::MAX),
        ChangeOptions::default().by(long(201)),
        ChangeOptions::default().reason(long(1001)),
    ];
    for options in wrong {
        assert_eq!(limiter.block("alice", &options).unwrap_err().code(), Code::Range);
        assert_eq!(limiter.changing(options).unwrap_err().code(), Code::Range);
    }
    let changing = limiter.changing(lasting(HOUR)).unwrap();
    let endless = [
        changing.clear_override(Target::key("alice")).map(drop),
        changing.remove_exempt(&Match::default()).map(drop),
        changing.clear_mode().map(drop),
        changing.unblock("alice").map(drop),
    ];
    for refused in endless {
        assert!(refused.unwrap_err().to_string().contains("for_"));
    }
    assert_eq!(limiter.changes(0).unwrap().changes, []);
}

/// Makes one change of each kind.
fn make_all(limiter: &Limiter) -> Vec<u64> {
    let hour = by("ops", "a drill").for_(HOUR);
    let (timed, named) =
        (limiter.changing(hour).unwrap(), limiter.changing(by("ops", "a drill")).unwrap());
    let (alice, staff) = (|| Target::key("alice"), || Match::new([("role", "staff")]));
    vec![
        timed.set_override(alice(), max(7)).unwrap(),
        timed.set_override(alice(), max(9)).unwrap(),
        named.clear_override(alice()).unwrap(),
        timed.set_default(max(4)).unwrap(),
        named.set_default(vec![]).unwrap(),
        timed.add_exempt(staff()).unwrap(),
        named.remove_exempt(&staff()).unwrap(),
        timed.set_exempts(vec![staff()]).unwrap(),
        timed.set_mode(Mode::Shadow).unwrap(),
        named.clear_mode().unwrap(),
        timed.block("mallory").unwrap(),
        u64::from(named.unblock("mallory").unwrap()) * 12,
    ]
}

#[test]
fn the_trail_tells_of_every_change() {
    for store in ["memory", "file"] {
        let (clock, place) = (clock(), Place::new("trail"));
        let store = if store == "file" { place.store() } else { store.to_string() };
        let limiter = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &store);
        assert_eq!(make_all(&limiter), (1..=12).collect::<Vec<u64>>());
        let seen = limiter.changes(0).unwrap();
        assert_eq!((seen.next, seen.missed, seen.changes.len()), (12, 0, 12));
        let told: Vec<Value> = seen.changes.iter().map(|change| change.to_value()).collect();
        let alice = json!({"key": ["alice"]});
        let staff = json!({"match": {"role": ["staff"]}});
        let expected = [
            ("set_override", alice.clone(), json!(null), json!({"l": {"max": 7}})),
            ("set_override", alice.clone(), json!({"l": {"max": 7}}), json!({"l": {"max": 9}})),
            ("clear_override", alice, json!({"l": {"max": 9}}), json!(null)),
            ("set_default", json!(null), json!(null), json!({"l": {"max": 4}})),
            ("set_default", json!(null), json!({"l": {"max": 4}}), json!({})),
            ("add_exempt", staff.clone(), json!(false), json!(true)),
            ("remove_exempt", staff, json!(true), json!(false)),
            ("set_exempts", json!(null), json!([]), json!([{"role": ["staff"]}])),
            ("set_mode", json!(null), json!(null), json!("shadow")),
            ("clear_mode", json!(null), json!("shadow"), json!(null)),
            ("block", json!({"key": ["mallory"]}), json!(false), json!(true)),
            ("unblock", json!({"key": ["mallory"]}), json!(true), json!(false)),
        ];
        for (index, (told, (op, target, before, after))) in told.iter().zip(expected).enumerate() {
            let endless = op.starts_with("clear") || ["remove_exempt", "unblock"].contains(&op);
            let until = (!endless && index != 4).then_some(1_700_003_600_000u64);
            let expected = json!({
                "number": index + 1, "at_ms": 1_700_000_000_000u64, "rule": "default", "op": op,
                "target": target, "before": before, "after": after, "until_ms": until,
                "by": "ops", "reason": "a drill",
            });
            assert_eq!(*told, expected);
        }
        let later = limiter.changes(10).unwrap();
        assert_eq!((later.changes.len(), later.next, later.missed), (2, 12, 0));
        let none = limiter.changes(12).unwrap();
        assert_eq!((none.changes.len(), none.next, none.missed), (0, 12, 0));
        for next in [99, u64::MAX] {
            let unread = limiter.changes(next).unwrap();
            assert_eq!((unread.changes.len(), unread.next, unread.missed), (0, next, 0));
        }
    }
}

#[test]
fn the_trail_keeps_the_last_256_and_says_how_many_are_gone() {
    let clock = clock();
    let limiter = of("5/h", &clock);
    for _ in 0..300 {
        limiter.set_mode(Mode::Shadow).unwrap();
    }
    let seen = limiter.changes(10).unwrap();
    assert_eq!(
        (seen.changes.len(), seen.changes[0].number, seen.next, seen.missed),
        (256, 45, 300, 34)
    );
    assert_eq!(limiter.changes(44).unwrap().missed, 0);
}

#[test]
fn one_trail_for_all_rules_of_a_store() {
    for store in ["memory", "file"] {
        let (clock, place) = (clock(), Place::new("rules"));
        let store = if store == "file" { place.store() } else { store.to_string() };
        let policy = json!({"version": 1, "capacity": 1024, "rules": {
            "a": {"limits": "5/h"}, "changes": {"limits": "5/h"},
        }});
        let options = Limiter::builder().clock(clock.clock()).store(store);
        let limiter = options.policy(Policy::from_value(&policy).unwrap()).build().unwrap();
        let (a, b) = (limiter.rule("a").unwrap(), limiter.rule("changes").unwrap());
        assert_eq!(a.set_mode(Mode::Off).unwrap(), 1);
        assert_eq!(b.set_mode(Mode::Off).unwrap(), 2);
        assert_eq!(a.clear_mode().unwrap(), 3);
        let numbers = |seen: tidegate::Changes| -> Vec<u64> {
            seen.changes.iter().map(|change| change.number).collect()
        };
        assert_eq!(numbers(limiter.changes(0).unwrap()), [1, 2, 3]);
        assert_eq!(numbers(a.changes(0).unwrap()), [1, 3]);
        assert_eq!((numbers(b.changes(0).unwrap()), b.changes(0).unwrap().next), (vec![2], 3));
    }
}

#[test]
fn a_line_of_the_trail_whose_change_was_not_made_is_not_told() {
    use std::io::Write;
    let (clock, place) = (clock(), Place::new("void"));
    let limiter = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &place.store());
    limiter.set_mode(Mode::Off).unwrap();
    limiter.set_mode(Mode::Shadow).unwrap();
    let log = place.0.join("changes.log");
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 2);
    // As a process leaves it that is killed between the line and the change, and one within the
    // line.
    let third = text.lines().last().unwrap().replace("\"number\":2", "\"number\":3");
    for rest in [format!("{third}\n"), third[..20].to_string()] {
        std::fs::OpenOptions::new()
            .append(true)
            .open(&log)
            .unwrap()
            .write_all(rest.as_bytes())
            .unwrap();
        let seen = limiter.changes(0).unwrap();
        assert_eq!((seen.changes.len(), seen.next), (2, 2));
    }
    assert_eq!(limiter.set_mode(Mode::Enforce).unwrap(), 3, "its number was not used");
    let seen = limiter.changes(2).unwrap();
    assert_eq!((seen.changes[0].after.clone(), seen.changes.len()), (json!("enforce"), 1));
}

#[test]
fn a_long_trail_is_turned_over_and_goes_on() {
    let (clock, place) = (clock(), Place::new("turned"));
    let limiter = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &place.store());
    let long = limiter.changing(by("ops", &"x".repeat(1000))).unwrap();
    long.set_mode(Mode::Off).unwrap();
    // A full file, without making thousands of changes.
    let log = place.0.join("changes.log");
    let line = std::fs::read_to_string(&log).unwrap();
    let lines: String = (1..=1000)
        .map(|number| line.replace("\"number\":1", &format!("\"number\":{number}")))
        .collect();
    std::fs::write(&log, &lines).unwrap();
    let changes = place.0.join("default.changes");
    let text = std::fs::read_to_string(&changes).unwrap();
    std::fs::write(&changes, text.replace("\"last\":1", "\"last\":1000")).unwrap();
    assert_eq!(long.set_mode(Mode::Shadow).unwrap(), 1001);
    assert!(place.0.join("changes.log.1").exists());
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);
    let seen = limiter.changes(500).unwrap();
    assert_eq!((seen.changes.len(), seen.next, seen.missed), (501, 1001, 0));
}

/// The same rule with one more limit, so that its table has another shape.
fn of_next_release(clock: &ManualClock, place: &Place) -> Limiter {
    of_rule(json!({"limits": {"l": "5/h", "day": "50/d"}}), clock, &place.store())
}

#[test]
fn changes_cross_a_move_in_both_directions() {
    let (clock, place) = (clock(), Place::new("moved"));
    let old = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &place.store());
    assert!(old.allow("mallory").unwrap());
    let new = of_next_release(&clock, &place);
    assert!(new.allow("mallory").unwrap() && old.metrics().unwrap()[0].retired);
    old.block("mallory", &ChangeOptions::default()).unwrap();
    assert!(!new.allow("mallory").unwrap(), "by the next hit");
    new.unblock("mallory").unwrap();
    new.block("eve", &ChangeOptions::default()).unwrap();
    // The old one may have looked just now.
    clock.advance(SECOND);
    assert!(!old.allow("eve").unwrap() && old.allow("mallory").unwrap());
    assert_eq!(old.changes(0).unwrap(), new.changes(0).unwrap());
}

#[test]
fn a_removed_text_of_changes_takes_no_line_from_the_trail() {
    let (clock, place) = (clock(), Place::new("removed"));
    let limiter = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &place.store());
    limiter.set_mode(Mode::Off).unwrap();
    std::fs::remove_file(place.0.join("default.changes")).unwrap();
    assert_eq!(limiter.changes(0).unwrap().changes.len(), 1);
    assert_eq!(limiter.set_mode(Mode::Shadow).unwrap(), 2);
    assert_eq!(limiter.changes(0).unwrap().changes.len(), 2);
}

#[test]
fn the_trail_tells_only_the_size_of_what_is_large() {
    let clock = clock();
    let limiter = of("5/h", &clock);
    let many = |n: usize| (0..n).map(|i| Match::new([("key", format!("{i:050}"))])).collect();
    limiter.set_exempts(many(100)).unwrap();
    limiter.set_exempts(many(1000)).unwrap();
    let seen = limiter.changes(0).unwrap().changes;
    assert_eq!(seen[1].before.as_array().map(Vec::len), Some(100));
    assert!(seen[1].after["bytes"].as_u64() > Some(50_000), "{}", seen[1].after);
}

#[test]
fn a_reset_that_cannot_be_stored_resets_nothing() {
    let (clock, place) = (clock(), Place::new("unstored"));
    let limiter = of_rule(json!({"limits": {"l": "5/h"}}), &clock, &place.store());
    assert!(limiter.hit("mallory", 5).unwrap().allowed);
    limiter.block("mallory", &ChangeOptions::default()).unwrap();
    let log = place.0.join("changes.log");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    assert!(limiter.reset("mallory").is_err() && limiter.reset_all().is_err());
    assert_eq!(limiter.stats("mallory").unwrap().unwrap().limits[0].used, 5);
    assert!(!limiter.allow("mallory").unwrap(), "hits go on");
    limiter.reset("alice").unwrap();
}

#[test]
fn a_rule_without_changes_goes_the_plain_way_again_when_they_have_ended() {
    let clock = clock();
    let limiter = of("5/h", &clock);
    limiter.block("mallory", &lasting(SECOND)).unwrap();
    assert!(limiter.allow("alice").unwrap());
    clock.advance(SECOND);
    assert_eq!((0..9).filter(|_| limiter.allow("alice").unwrap()).count(), 4);
}
