//! One table for all processes of a host: what is promised of `store: file:PATH`.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{
    Call, Code, Error, LimitPatch, Limiter, LimiterBuilder, ManualClock, Match, Target,
};

/// A folder of its own, gone with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("file-store-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        Place(path)
    }
    fn store(&self) -> String {
        format!("file:{}", self.0.display())
    }
    fn table(&self) -> PathBuf {
        self.0.join("default.table")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open_with(place: &Place, rule: Value, options: LimiterBuilder) -> Result<Limiter, Error> {
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    options.store(place.store()).value(&policy).build()
}

fn open(place: &Place, rule: Value) -> Result<Limiter, Error> {
    open_with(place, rule, Limiter::builder())
}

fn rule(limits: &str) -> Value {
    json!({ "limits": limits, "capacity": 100 })
}

fn granted(limiter: &Limiter, key: &str, hits: usize) -> usize {
    (0..hits).filter(|_| limiter.allow(key).unwrap()).count()
}

fn refusal(result: Result<Limiter, Error>) -> String {
    let error = result.expect_err("it should be refused");
    assert_eq!(error.code(), Code::Store, "{error}");
    error.to_string()
}

#[test]
fn two_limiters_on_one_folder_share_every_count() {
    for limits in ["10/h", "10/h window", "10/h counter", "10/h fixed"] {
        let place = Place::new();
        let (a, b) = (open(&place, rule(limits)).unwrap(), open(&place, rule(limits)).unwrap());
        assert_eq!(granted(&a, "alice", 4) + granted(&b, "alice", 20), 10, "{limits}");
        assert!(!a.allow("alice").unwrap());
    }
}

#[test]
fn counts_outlive_their_limiter() {
    let place = Place::new();
    let limiter = open(&place, rule("10/h window")).unwrap();
    assert_eq!(granted(&limiter, "alice", 7), 7);
    limiter.sync().unwrap();
    drop(limiter);
    assert_eq!(granted(&open(&place, rule("10/h window")).unwrap(), "alice", 10), 3);
}

#[test]
fn penalties_and_budgets_are_shared_too() {
    let place = Place::new();
    let stated = json!({
        "limits": "1/s", "capacity": 100, "cooldown": "1h",
        "budget": { "daily": 5 },
    });
    let (a, b) = (open(&place, stated.clone()).unwrap(), open(&place, stated).unwrap());
    assert!(a.allow("alice").unwrap() && !a.allow("alice").unwrap());
    assert_eq!(b.hit("alice", 1).unwrap().reason(), Some("cooldown"));
    a.spend("bob", 5).unwrap();
    assert_eq!(b.hit("bob", 1).unwrap().reason(), Some("budget"));
}

#[test]
fn run_time_changes_act_on_the_next_hit_of_everybody_and_stay() {
    let place = Place::new();
    let (a, b) = (open(&place, rule("2/h")).unwrap(), open(&place, rule("2/h")).unwrap());
    a.set_override(Target::key("alice"), vec![("2/h".into(), LimitPatch::max(5))]).unwrap();
    a.add_exempt(Match::new([("role", "admin")])).unwrap();
    assert_eq!(b.hit("alice", 1).unwrap().limit, Some(5));
    assert_eq!(b.exempts().unwrap().len(), 1);
    drop((a, b));
    let c = open(&place, rule("2/h")).unwrap();
    assert_eq!(c.overrides().unwrap().len(), 1);
    assert!(c.clear_override(Target::key("alice")).unwrap() > 0);
    assert_eq!(c.hit("bob", 1).unwrap().limit, Some(2));
}

#[test]
fn other_numbers_are_adopted_and_other_keys_are_refused_with_the_remedy() {
    let place = Place::new();
    drop(open(&place, rule("10/h window")).unwrap());
    let named = |limit: Value| json!({ "limits": { "10/h": limit }, "capacity": 100 });
    let limiter = open(&place, named(json!({ "max": 5, "per": "1h", "algorithm": "window" })));
    assert_eq!(granted(&limiter.unwrap(), "alice", 10), 5);
    // (What is moved to another shape is in moving.rs.)
    let parts = json!({ "limits": "10/h window", "capacity": 100, "key": ["a", "b"] });
    let message = refusal(open(&place, parts));
    assert!(message.contains("parts") && message.contains("recreate"), "{message}");
    // Without a stated capacity the file's is taken.
    let limiter = open(&place, json!({ "limits": "10/h window" })).unwrap();
    assert_eq!(limiter.metrics().unwrap()[0].capacity, 100);
    drop(limiter);
    let recreate = Limiter::builder().recreate(true);
    let limiter = open_with(&place, rule("10/h"), recreate).unwrap();
    assert_eq!(granted(&limiter, "alice", 20), 10, "made anew");
}

#[test]
fn a_table_that_cannot_be_read_is_made_anew_only_if_told_so() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("truncated", |bytes| bytes.truncate(bytes.len() - 8)),
        ("format", |bytes| bytes[8] ^= 0x40),
        ("damaged", |bytes| bytes[40] ^= 1),
    ];
    for (word, damage) in damages {
        let place = Place::new();
        assert_eq!(granted(&open(&place, rule("10/h")).unwrap(), "alice", 20), 10);
        let path = place.0.join("default.table");
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let message = refusal(open(&place, rule("10/h")));
        assert!(message.contains(word) && message.contains("recreate"), "{word}: {message}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing was changed");
        let recreate = || Limiter::builder().recreate(true);
        let limiter = open_with(&place, rule("10/h"), recreate()).unwrap();
        assert_eq!(granted(&limiter, "alice", 20), 10, "made anew");
        drop(limiter);
        // What is no table at all is somebody else's, and stays.
        std::fs::write(&path, "a letter to alice").unwrap();
        let message = refusal(open_with(&place, rule("10/h"), recreate()));
        assert!(message.contains("no table"), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter to alice");
    }
}

#[test]
fn a_table_of_an_unknown_format_is_refused_with_what_to_do() {
    let place = Place::new();
    drop(open(&place, rule("10/h")).unwrap());
    let path = place.0.join("default.table");
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[8], 2, "the second word is the format");
    bytes[8] = 3;
    std::fs::write(&path, &bytes).unwrap();
    let message = refusal(open(&place, rule("10/h")));
    for told in [
        "default.table",
        "of format 3 (this build reads 2)",
        "open with `recreate`, or remove it, to start afresh",
    ] {
        assert!(message.contains(told), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing was changed");
    // One that says that it is of format 1, and is not.
    bytes[8] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let message = refusal(open(&place, rule("10/h")));
    assert!(message.contains("its header is damaged; open with `recreate`"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing was changed");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(granted(&open(&place, rule("10/h")).unwrap(), "alice", 20), 10, "afresh");
}

#[test]
fn several_who_recreate_at_once_have_one_table() {
    for _ in 0..60 {
        let place = Place::new();
        drop(open(&place, rule("10/h window")).unwrap());
        let barrier = std::sync::Barrier::new(4);
        let recreate = || {
            barrier.wait();
            let options = Limiter::builder().recreate(true);
            let limiter = open_with(&place, rule("10/h"), options).expect("a table");
            granted(&limiter, "alice", 20)
        };
        let all: usize = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..4).map(|_| scope.spawn(recreate)).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).sum()
        });
        assert_eq!(all, 10);
    }
}

#[test]
fn folder_and_files_are_for_their_owner_alone() {
    let place = Place::new();
    let limiter = open(&place, rule("10/h")).unwrap();
    limiter.add_exempt(Match::new([("a", "b")])).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.0), 0o700);
    for entry in std::fs::read_dir(&place.0).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert!(!limiter.audit().unwrap().iter().any(|finding| finding.id == "store_exposed"));
    std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(place.table(), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(limiter.audit().unwrap().iter().any(|finding| finding.id == "store_exposed"));
}

#[test]
fn what_is_not_a_table_is_refused_and_left_alone() {
    let place = Place::new();
    drop(open(&place, rule("10/h")).unwrap());
    let table = place.table();
    let sound = std::fs::read(&table).unwrap();
    let refuse = |word: &str| {
        let before = std::fs::symlink_metadata(&table).unwrap().len();
        let message = refusal(open(&place, rule("10/h")));
        assert!(message.contains(word) && message.contains("default.table"), "{word}: {message}");
        assert_eq!(std::fs::symlink_metadata(&table).unwrap().len(), before, "left alone");
        std::fs::remove_file(&table).or_else(|_| std::fs::remove_dir(&table)).unwrap();
    };
    let put = |bytes: &[u8]| {
        std::fs::write(&table, bytes).unwrap();
        std::fs::set_permissions(&table, PermissionsExt::from_mode(0o600)).unwrap();
    };
    // Every length up to two pages, and just short of the whole.
    for length in (0..=8192).chain([sound.len() - 1, sound.len() - 4096]) {
        put(&sound[..length]);
        refuse(if length < 1024 { "no table" } else { "truncated" });
    }
    put(&[sound.clone(), vec![0; 4096]].concat());
    refuse("bytes");
    let mut other = sound.clone();
    other[0] ^= 1;
    put(&other);
    refuse("no table");
    let mut other = sound.clone();
    other[8] = 9;
    put(&other);
    refuse("format 9");
    let mut other = sound.clone();
    other[80..88].fill(0xff);
    put(&other);
    refuse("damaged");
    let mut other = sound.clone();
    other[16..24].reverse();
    put(&other);
    refuse("byte order");
    // The number that keys are hashed by, and what it makes of a text that all builds know.
    for at in [40, 48] {
        let mut other = sound.clone();
        other[at] ^= 1;
        put(&other);
        refuse("damaged");
    }
    put(&sound);
    std::fs::set_permissions(&table, PermissionsExt::from_mode(0o622)).unwrap();
    refuse("others may write");
    use rustix::fs::{CWD, FileType, Mode};
    rustix::fs::mknodat(CWD, &table, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refuse("not a regular file");
    drop(std::os::unix::net::UnixListener::bind(&table).unwrap());
    refuse("default.table");
    std::os::unix::fs::symlink("/dev/null", &table).unwrap();
    refuse("symbolic link");
    std::fs::create_dir(&table).unwrap();
    refuse("default.table");
    put(&sound);
    assert_eq!(granted(&open(&place, rule("10/h")).unwrap(), "alice", 20), 10);
}

#[test]
fn no_bit_of_the_header_can_be_flipped_unnoticed_and_give_anything_away() {
    let place = Place::new();
    let limiter = open(&place, rule("10/h")).unwrap();
    assert_eq!(granted(&limiter, "alice", 10), 10);
    drop(limiter);
    let sound = std::fs::read(place.table()).unwrap();
    let (mut refused, mut served) = (0, 0);
    let header = u64::from_ne_bytes(sound[24..32].try_into().unwrap()) as usize;
    for bit in 0..8 * header {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(place.table(), &flipped).unwrap();
        match open(&place, rule("10/h")) {
            Err(error) => {
                assert_eq!(error.code(), Code::Store, "bit {bit}: {error}");
                refused += 1;
            }
            Ok(limiter) => {
                assert_eq!(granted(&limiter, "alice", 3), 0, "bit {bit}");
                served += 1;
            }
        }
    }
    assert!(refused > 1000 && served > 1000, "{refused} refused, {served} served");
}

#[test]
fn a_manual_clocks_file_opens_only_with_one() {
    let place = Place::new();
    let clock = ManualClock::new(Duration::from_secs(5), Duration::ZERO);
    let manual = || Limiter::builder().clock(clock.clock());
    let limiter = open_with(&place, rule("10/min"), manual()).unwrap();
    assert_eq!(granted(&limiter, "alice", 20), 10);
    assert!(refusal(open(&place, rule("10/min"))).contains("manual"));
    clock.advance(Duration::from_secs(6));
    let again = open_with(&place, rule("10/min"), manual()).unwrap();
    assert_eq!(granted(&again, "alice", 20), 1);
}

#[test]
fn a_folder_that_cannot_be_had_is_a_clear_error() {
    let place = Place::new();
    std::fs::write(&place.0, b"a file").unwrap();
    assert!(refusal(open(&place, rule("10/h"))).contains("not a folder"));
    std::fs::remove_file(&place.0).unwrap();
    std::fs::create_dir(&place.0).unwrap();
    std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(refusal(open(&place, rule("10/h"))).contains("others may write"));
    std::fs::write(place.0.join("file"), b"a file").unwrap();
    let under = Place(place.0.join("file/folder"));
    assert!(refusal(open(&under, rule("10/h"))).contains("not a folder"));
}

#[test]
fn a_store_can_be_looked_at_from_outside() {
    let place = Place::new();
    let policy = json!({ "version": 1, "rules": {
        "a/b": {
            "limits": "2/h window, 9/day", "capacity": 100, "cooldown": "1h",
            "key": ["channel", "sender"]
        },
        "plain": {
            "limits": { "each": "3/h", "all": { "max": 5, "per": "1h", "scope": [] } },
            "capacity": 50
        },
    }});
    let options = Limiter::builder().store(place.store());
    let limiter = options.value(&policy).build().unwrap();
    let rule = limiter.rule("a/b").unwrap();
    for sender in ["alice", "bob"] {
        let allowed = (0..5).filter(|_| rule.allow(["telegram", sender]).unwrap()).count();
        assert_eq!(allowed, 2);
    }
    rule.set_override(Target::key(["x", "y"]), vec![("9/day".into(), LimitPatch::max(3))]).unwrap();
    let found = Limiter::inspect(&place.0).unwrap();
    assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["a/b", "plain"]);
    let seen = &found[0];
    assert_eq!((seen.capacity, seen.keys, seen.penalised, seen.overrides), (100, 2, 2, 1));
    assert_eq!((seen.limits.len(), &*seen.limits[0].name), (2, "2/h"));
    assert_eq!(seen.top_offenders[0].key[0], "telegram");
    assert_eq!(seen.top_offenders.iter().map(|o| o.count).sum::<u64>(), 6);
    assert_eq!(found[1].keys, 0);
    assert!(Limiter::inspect(place.0.join("no/such/folder")).is_err());
    assert!(!rule.allow(["telegram", "alice"]).unwrap(), "its users are not disturbed");
}

/// A limiter whose clock stands still, on a table with little room.
fn clock() -> ManualClock {
    ManualClock::new(Duration::from_secs(1000), Duration::ZERO)
}

fn open_small(place: &Place, clock: &ManualClock) -> Limiter {
    let options = Limiter::builder().clock(clock.clock());
    open_with(place, json!({ "limits": "10/min", "capacity": 16 }), options).unwrap()
}

/// New keys, more than there is room for.
fn flood(limiter: &Limiter) {
    let granted =
        (0..500).filter(|i| limiter.allow(format!("flood-{i}").as_str()).unwrap()).count();
    assert!(granted < 500, "there is no room for so many");
}

#[test]
fn a_key_with_an_override_is_not_evicted_by_a_process_that_has_not_hit_it_yet() {
    let deep = LimitPatch::max(5).burst(100);
    let slow = LimitPatch::default().per(Duration::from_secs(3_600));
    let patches = [(LimitPatch::max(100), 100), (LimitPatch::max(3), 3), (deep, 100), (slow, 10)];
    let targets = [Target::key("vip"), Target::from(Match::new([("key", "vip")]))];
    for (target, (patch, size)) in targets.iter().flat_map(|t| patches.iter().map(move |p| (t, p)))
    {
        let (place, clock) = (Place::new(), clock());
        let first = open_small(&place, &clock);
        first.set_override(target.clone(), vec![("10/min".into(), patch.clone())]).unwrap();
        assert_eq!(granted(&first, "vip", size / 2), size / 2);
        drop(first);
        // By the rule's own numbers all is back by now, if it was not above its size all the time.
        clock.advance(Duration::from_secs(if patch.per.is_some() { 61 } else { 0 }));
        clock.advance(Duration::from_millis(100));
        let second = open_small(&place, &clock);
        flood(&second);
        assert_eq!(granted(&second, "vip", 200), size - size / 2, "{target:?} {patch:?}");
    }
}

#[test]
fn a_key_with_a_max_of_its_call_is_evicted_by_no_other_process() {
    let (place, clock) = (Place::new(), clock());
    let (first, second) = (open_small(&place, &clock), open_small(&place, &clock));
    assert!(second.allow("somebody").unwrap());
    let hits = |limiter: &Limiter, many: usize| {
        let call = || Call::of("vip").max(100);
        (0..many).filter(|_| limiter.allow(call()).unwrap()).count()
    };
    assert_eq!(hits(&first, 50), 50);
    clock.advance(Duration::from_millis(100));
    flood(&second);
    assert_eq!(hits(&first, 200), 50);
    drop((first, second));
    clock.advance(Duration::from_millis(100));
    let third = open_small(&place, &clock);
    flood(&third);
    assert_eq!(hits(&third, 200), 0);
}

#[test]
fn a_max_that_the_policy_states_for_some_is_known_to_all() {
    let (place, clock) = (Place::new(), clock());
    let stated = json!({
        "limits": { "l": "8/min" }, "capacity": 16,
        "when": [{ "match": { "role": "x" }, "limits": { "l": { "per": "1h" } } }],
    });
    let manual = || Limiter::builder().clock(clock.clock());
    let first = open_with(&place, stated.clone(), manual()).unwrap();
    first.set_default(vec![("l".into(), LimitPatch::max(2))]).unwrap();
    let call = || Call::of("vip").with(&[("role", "x")]).max(8);
    assert_eq!((0..4).filter(|_| first.allow(call()).unwrap()).count(), 4);
    clock.advance(Duration::from_secs(40));
    let second = open_with(&place, stated, manual()).unwrap();
    second.prune().unwrap();
    assert_eq!(second.peek(call(), 0).unwrap().remaining, Some(4));
}

#[test]
fn a_max_that_the_policy_states_is_known_to_all_whatever_the_run_time_default_changes() {
    // The default, what is spent by the policy's own `max`, after how many seconds another prunes,
    // and what is left then.
    let slow = LimitPatch::max(2).per(Duration::from_secs(3_600));
    let deep = LimitPatch::max(60).burst(100);
    for (default, spent, seconds, left) in [(slow, 5, 60, 5), (deep, 100, 101, 16)] {
        let (place, clock) = (Place::new(), clock());
        let (first, second) = (open_small(&place, &clock), open_small(&place, &clock));
        first.set_default(vec![("10/min".into(), default.clone())]).unwrap();
        assert!(second.allow("somebody").unwrap());
        let call = || Call::of("vip").max(10);
        assert_eq!((0..spent).filter(|_| first.allow(call()).unwrap()).count(), spent);
        clock.advance(Duration::from_secs(seconds));
        second.prune().unwrap();
        assert_eq!(first.peek(call(), 0).unwrap().remaining, Some(left), "{default:?}");
    }
}

fn open_limits(place: &Place, clock: &ManualClock, limits: &str) -> Limiter {
    let options = Limiter::builder().clock(clock.clock());
    open_with(place, json!({ "limits": { "l": limits }, "capacity": 16 }), options).unwrap()
}

#[test]
fn a_version_of_the_policy_evicts_no_key_that_counts_under_another() {
    // I10, I13: while a new version is rolled out, both judge the keys of one folder.
    for algorithm in ["bucket", "window", "fixed", "counter"] {
        for slow_opens_first in [true, false] {
            let (place, clock) =
                (Place::new(), ManualClock::new(Duration::from_secs(360_000), Duration::ZERO));
            let open = |limits: &str| open_limits(&place, &clock, &format!("{limits} {algorithm}"));
            let early = (!slow_opens_first).then(|| open("10/min"));
            let slow = open("10/h");
            let fast = early.unwrap_or_else(|| open("10/min"));
            assert_eq!(granted(&slow, "vip", 20), 10);
            clock.advance(Duration::from_secs(200));
            // Before the flood: a key without a row would share one with it, and be denied as well.
            assert_eq!(fast.prune().unwrap(), 0, "{algorithm}, {slow_opens_first}");
            flood(&fast);
            assert_eq!(granted(&slow, "vip", 20), 0, "{algorithm}, {slow_opens_first}");
        }
    }
}

#[test]
fn changes_that_meet_in_one_key_are_known_to_a_process_that_never_met_them() {
    let deep = LimitPatch::default().burst(1_000);
    let staff = |key| Call::of(key).with(&[("role", "staff")]);
    for by_call in [false, true] {
        let (place, clock) = (Place::new(), clock());
        let (first, second) = (open_small(&place, &clock), open_small(&place, &clock));
        let is_staff = Target::from(Match::new([("role", "staff")]));
        first.set_override(is_staff, vec![("10/min".into(), deep.clone())]).unwrap();
        if !by_call {
            let slow = vec![("10/min".into(), LimitPatch::max(1))];
            first.set_override(Target::key("vip"), slow).unwrap();
        }
        let call = || if by_call { staff("vip").max(1) } else { staff("vip") };
        assert_eq!((0..500).filter(|_| first.allow(call()).unwrap()).count(), 500);
        assert!(second.allow("somebody").unwrap());
        // At ten a minute, or in a bucket of ten, all would be back.
        clock.advance(Duration::from_secs(2 * 3_600));
        flood(&second);
        second.prune().unwrap();
        let left = first.peek(call(), 0).unwrap().remaining;
        assert_eq!(left, Some(620), "I10: by a call's max: {by_call}");
    }
}

#[test]
fn a_process_that_has_a_folder_to_itself_forgets_slow_numbers_when_their_time_is_over() {
    let (place, clock) = (Place::new(), clock());
    let first = open_small(&place, &clock);
    let call = || Call::of("vip").max(1_000);
    assert_eq!((0..500).filter(|_| first.allow(call()).unwrap()).count(), 500);
    drop(first);
    // After a restart, alone, it knows of no such call. What was spent under it still counts.
    let second = open_small(&place, &clock);
    clock.advance(Duration::from_secs(20));
    second.prune().unwrap();
    let left = second.peek(call(), 0).unwrap().remaining.unwrap();
    assert!(left < 900, "I10: {left}");
    drop(second);
    clock.advance(Duration::from_secs(120));
    let third = open_small(&place, &clock);
    clock.advance(Duration::from_secs(120));
    third.prune().unwrap();
    // By its own numbers a key that was seen once is as new after six seconds.
    assert!(third.allow("somebody").unwrap());
    clock.advance(Duration::from_secs(6));
    assert_eq!(third.prune().unwrap(), 1);
    // Beside others it is not alone.
    let fourth = open_small(&place, &clock);
    assert!(fourth.allow(call()).unwrap() && third.allow("somebody").unwrap());
    let fifth = open_small(&place, &clock);
    clock.advance(Duration::from_secs(6));
    assert_eq!(fifth.prune().unwrap(), 0, "I10: others may ask for more");
}

#[test]
fn notes_are_kept_for_the_longest_cooldown_of_any_process() {
    let (place, clock) = (Place::new(), clock());
    let open = |cooldown: &str| {
        let options = Limiter::builder().clock(clock.clock());
        let rule = json!({ "limits": "1/s", "cooldown": cooldown, "capacity": 16 });
        open_with(&place, rule, options).unwrap()
    };
    let (long, short) = (open("1h"), open("2s"));
    assert_eq!(granted(&long, "vip", 2), 1);
    clock.advance(Duration::from_secs(60));
    short.prune().unwrap();
    let reason = long.hit("vip", 1).unwrap().reason().map(str::to_string);
    assert_eq!(reason.as_deref(), Some("cooldown"), "I13");
}

#[test]
fn rows_of_a_counter_are_evicted_when_the_policy_counts_by_a_longer_period() {
    let (place, clock) =
        (Place::new(), ManualClock::new(Duration::from_secs(30 * 86_400), Duration::ZERO));
    let open = |limits: &str| {
        let manual = Limiter::builder().clock(clock.clock());
        open_with(&place, json!({ "limits": { "l": limits }, "capacity": 16 }), manual).unwrap()
    };
    let first = open("10/s counter");
    assert!((0..10).all(|key| first.allow(format!("key-{key}").as_str()).unwrap()));
    drop(first);
    let second = open("600/min counter");
    clock.advance(Duration::from_secs(180));
    assert_eq!(second.prune().unwrap(), 10, "nothing of them counts any more");
}

#[test]
fn who_learns_of_a_change_tells_the_others_as_its_maker_may_have_died() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let clock = clock();
    let made = open_small(&elsewhere, &clock);
    made.set_override(Target::key("vip"), vec![("10/min".into(), LimitPatch::max(77))]).unwrap();
    let [first, second, third] = [(); 3].map(|()| open_small(&place, &clock));
    // They are told to look, and the third does so at once.
    first.set_default(vec![("10/min".into(), LimitPatch::max(20))]).unwrap();
    let limit = |limiter: &Limiter| limiter.peek("vip", 0).unwrap().limit;
    assert_eq!([limit(&third), limit(&third)], [Some(20); 2]);
    // A change whose maker dies before it can tell anybody, and the second looks now.
    let changes = |place: &Place| place.table().with_extension("changes");
    std::fs::copy(changes(&elsewhere), changes(&place)).unwrap();
    assert_eq!(limit(&second), Some(77));
    assert_eq!(limit(&third), Some(77), "it acts on the next hit of everybody");
}

#[test]
fn a_limit_that_is_named_by_its_text_may_get_other_numbers_in_the_next_release() {
    let place = Place::new();
    let before = open(&place, rule("5/h fixed, 100/d fixed, 70/h")).unwrap();
    assert_eq!(granted(&before, "alice", 4), 4);
    let patch = |name: &str, max: u64| vec![(name.to_string(), LimitPatch::max(max))];
    before.set_override(Target::key("bob"), patch("5/h", 2)).unwrap();
    before.set_override(Target::key("carol"), patch("70/h", 1)).unwrap();
    before.set_default(patch("100/d", 50)).unwrap();
    let after = open(&place, rule("9/h fixed, 200/d fixed, 80/h")).unwrap();
    assert_eq!(after.limit_names().unwrap(), ["9/h", "200/d", "80/h"]);
    // Both go on with the same counts, and each by its own numbers.
    assert_eq!((granted(&after, "alice", 10), granted(&before, "alice", 10)), (5, 0));
    for limiter in [&before, &after] {
        assert_eq!(limiter.peek("bob", 0).unwrap().limit, Some(2));
        assert_eq!(limiter.peek("carol", 0).unwrap().limit, Some(1));
    }
    let named: Vec<String> =
        after.overrides().unwrap().into_iter().map(|(_, limits)| limits[0].0.clone()).collect();
    assert_eq!(named, ["9/h", "80/h"]);
    // What the later release changes, the earlier one goes by.
    after.set_override(Target::key("bob"), patch("9/h", 3)).unwrap();
    assert_eq!(before.peek("bob", 0).unwrap().limit, Some(3));
    drop((before, after));
    assert_eq!(
        open(&place, rule("9/h fixed, 200/d fixed, 80/h")).unwrap().overrides().unwrap().len(),
        2
    );
}

#[test]
fn a_label_is_no_name_and_a_name_is_no_label() {
    let place = Place::new();
    let named = |name: &str, limit: &str| json!({ "limits": { name: limit }, "capacity": 100 });
    drop(open(&place, named("mine", "5/h")).unwrap());
    assert!(open(&place, named("mine", "9/h")).is_ok());
    for other in [named("other", "5/h"), rule("5/h")] {
        assert_eq!(granted(&open(&place, named("mine", "5/h")).unwrap(), "alice", 9), 5);
        assert_eq!(granted(&open(&place, other).unwrap(), "alice", 9), 5, "it is another limit");
    }
    let place = Place::new();
    drop(open(&place, rule("5/h")).unwrap());
    // Limits that a list or code states without a name have labels too.
    let listed = json!({ "limits": [{ "max": 8, "per": "1h" }], "capacity": 100 });
    assert_eq!(open(&place, listed).unwrap().limit_names().unwrap(), ["8/h"]);
}
