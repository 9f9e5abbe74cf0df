//! The folder of a file store: how it is made, what in it is believed, and how its users learn that
//! it is gone.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tidegate::{Code, Error, LimitPatch, Limiter, LimiterBuilder, Match, Target};

/// A folder of its own, gone with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("folders-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Place(path)
    }
    fn store(&self) -> PathBuf {
        self.0.join("limits")
    }
    fn file(&self, name: &str) -> PathBuf {
        self.store().join(name)
    }
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.store()).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open_rule(folder: &Path, rule: Value, options: LimiterBuilder) -> Result<Limiter, Error> {
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let store = format!("file:{}", folder.display());
    options.store(store).value(&policy).build()
}

fn open_with(folder: &Path, options: LimiterBuilder) -> Result<Limiter, Error> {
    open_rule(folder, json!({ "limits": "5/h", "capacity": 100 }), options)
}

fn open(folder: &Path) -> Result<Limiter, Error> {
    open_with(folder, Limiter::builder())
}

fn recreate() -> LimiterBuilder {
    Limiter::builder().recreate(true)
}

fn refusal(result: Result<Limiter, Error>) -> String {
    let error = result.map(drop).expect_err("it should be refused");
    assert_eq!(error.code(), Code::Store, "{error}");
    error.to_string()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn granted(limiter: &Limiter, hits: usize) -> usize {
    (0..hits).filter(|_| limiter.allow("alice").unwrap()).count()
}

#[test]
fn missing_folders_above_are_made() {
    let place = Place::new();
    let deep = place.0.join("a/b/c/limits");
    assert_eq!(granted(&open(&deep).unwrap(), 9), 5);
    assert_eq!(mode(&deep), 0o700);
    assert_eq!(mode(&place.0.join("a/b")) & 0o022, 0, "others may not write those either");
}

#[test]
fn a_policy_that_cannot_be_had_leaves_no_folder() {
    let place = Place::new();
    let wrong = json!({ "limits": "5/h", "when": [{ "match": { "a": "b" }, "mode": "shadow",
        "limits": { "unknown": { "max": 1 } } }] });
    let error = open_rule(&place.store(), wrong, Limiter::builder()).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::Policy, "{error}");
    let large = json!({ "limits": "4096/h window", "capacity": 100_000 });
    let error = open_rule(&place.store(), large, Limiter::builder()).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::Memory, "{error}");
    assert!(!place.store().exists());
}

#[test]
fn a_path_is_from_the_place_that_states_it() {
    let place = Place::new();
    let file = place.0.join("policy.yaml");
    std::fs::write(&file, "version: 1\nstore: file:limits\nrules: { a: { limits: 5/h } }").unwrap();
    drop(Limiter::from_file(&file).unwrap());
    assert!(place.file("a.table").exists(), "from the policy's folder, if the policy states it");
    // From the working directory, if code does.
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let other = up.join(place.0.strip_prefix("/").unwrap()).join("other");
    let store = format!("file:{}", other.display());
    drop(Limiter::builder().store(store).file(&file).build().unwrap());
    assert!(place.0.join("other/a.table").exists());
}

#[test]
fn a_folder_that_is_a_link_is_refused() {
    let place = Place::new();
    drop(open(&place.store()).unwrap());
    let link = place.0.join("link");
    symlink(place.store(), &link).unwrap();
    for name in ["link", "link/", "link//"] {
        let message = refusal(open(&place.0.join(name)));
        assert!(message.contains("symbolic link"), "{message}");
    }
    let elsewhere = place.0.join("elsewhere");
    symlink(&elsewhere, place.0.join("dangling")).unwrap();
    assert!(refusal(open(&place.0.join("dangling"))).contains("symbolic link"));
    assert!(!elsewhere.exists());
}

#[test]
fn no_file_of_the_folder_is_followed_as_a_link() {
    let place = Place::new();
    let limiter = open(&place.store()).unwrap();
    let victim = place.0.join("victim");
    for name in ["default.changes.tmp", "default.lock", "default.changes"] {
        std::fs::write(&victim, "precious").unwrap();
        let _ = std::fs::remove_file(place.file(name));
        symlink(&victim, place.file(name)).unwrap();
        let changed = limiter.add_exempt(Match::new([("role", "admin")]));
        assert_eq!(changed.is_ok(), name == "default.changes.tmp", "{name}: {changed:?}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        std::fs::remove_file(place.file(name)).unwrap();
    }
    // Nor is text believed that lies elsewhere.
    std::fs::write(&victim, r#"{"exempts":[{}]}"#).unwrap();
    symlink(&victim, place.file("default.changes")).unwrap();
    let message = refusal(open(&place.store()));
    assert!(message.contains("default.changes") && message.contains("symbolic link"), "{message}");
}

#[test]
fn changes_that_others_may_write_are_not_believed() {
    let place = Place::new();
    let limiter = open(&place.store()).unwrap();
    limiter.set_override(Target::key("vip"), vec![("5/h".into(), LimitPatch::max(9))]).unwrap();
    let changes = place.file("default.changes");
    std::fs::write(&changes, r#"{"added":[{}]}"#).unwrap();
    set_mode(&changes, 0o666);
    let message = refusal(open(&place.store()));
    for told in ["default.changes", "others may write it (mode 666)", "make it 600"] {
        assert!(message.contains(told), "{message}");
    }
    // Those who have the table open go on with what they know.
    assert_eq!(limiter.hit("vip", 1).unwrap().limit, Some(9));
    let error = limiter.add_exempt(Match::new([("role", "admin")])).unwrap_err();
    assert!(error.to_string().contains("others may write it"), "{error}");
    assert_eq!(granted(&limiter, 9), 5);
}

#[test]
fn a_lock_that_others_may_write_is_not_used() {
    let place = Place::new();
    let limiter = open(&place.store()).unwrap();
    std::fs::write(place.file("default.lock"), "").unwrap();
    set_mode(&place.file("default.lock"), 0o666);
    let error = limiter.add_exempt(Match::new([("role", "admin")])).unwrap_err();
    assert!(error.to_string().contains("default.lock"), "{error}");
}

fn retired_events(limiter: &Limiter) -> usize {
    let events = limiter.events(None).unwrap();
    events.events.iter().filter(|e| e.reason == "retired" && e.key.is_empty() && !e.alert).count()
}

fn expect_retired(limiter: &Limiter, retired: bool) {
    assert_eq!(limiter.metrics().unwrap()[0].retired, retired);
    assert_eq!(limiter.metrics().unwrap()[0].to_value()["retired"], retired);
    let found = limiter.audit().unwrap().into_iter().find(|finding| finding.id == "retired");
    assert_eq!(found.map(|finding| finding.path), retired.then(|| "rules.default".to_string()));
    assert_eq!(retired_events(limiter), usize::from(retired), "one event");
}

#[test]
fn users_of_a_table_that_was_made_anew_learn_of_it() {
    let place = Place::new();
    let old = [(); 7].map(|()| open(&place.store()).unwrap());
    old.iter().for_each(|limiter| expect_retired(limiter, false));
    let other = json!({ "limits": "5/h window", "capacity": 100 });
    let new = open_rule(&place.store(), other, recreate()).unwrap();
    // By the next hit too, without anybody who asks.
    assert!(old[0].allow("alice").unwrap());
    old.iter().for_each(|limiter| expect_retired(limiter, true));
    expect_retired(&new, false);
    assert!(!Limiter::inspect(place.store()).unwrap()[0].retired);
}

#[test]
fn users_of_a_folder_that_was_removed_learn_of_it() {
    let place = Place::new();
    let old = open(&place.store()).unwrap();
    assert_eq!(granted(&old, 3), 3);
    std::fs::remove_dir_all(place.store()).unwrap();
    expect_retired(&old, true);
    let new = open(&place.store()).unwrap();
    expect_retired(&new, false);
    let error = old.add_exempt(Match::new([("role", "admin")])).unwrap_err();
    assert_eq!(error.code(), Code::Store, "{error}");
    assert!(error.to_string().contains("the folder was removed while it was in use"), "{error}");
    assert_eq!(place.names(), ["default.table"], "the new folder is not touched");
    assert_eq!(granted(&old, 9), 2, "hits go on");
}

#[test]
fn users_of_a_table_that_was_removed_or_replaced_learn_of_it() {
    let place = Place::new();
    let old = open(&place.store()).unwrap();
    std::fs::copy(place.file("default.table"), place.file("copy")).unwrap();
    std::fs::rename(place.file("copy"), place.file("default.table")).unwrap();
    expect_retired(&old, true);
    let next = open(&place.store()).unwrap();
    expect_retired(&next, false);
    std::fs::remove_file(place.file("default.table")).unwrap();
    expect_retired(&next, true);
}

/// It has a name still, but not the one that others open.
#[test]
fn users_of_a_table_that_was_moved_away_learn_of_it() {
    let place = Place::new();
    let old = open(&place.store()).unwrap();
    std::fs::hard_link(place.file("default.table"), place.file("second")).unwrap();
    expect_retired(&old, false);
    std::fs::rename(place.file("default.table"), place.file("away")).unwrap();
    expect_retired(&old, true);
    let new = open(&place.store()).unwrap();
    expect_retired(&new, false);
}

#[test]
fn a_folder_that_was_made_for_nothing_is_removed() {
    let place = Place::new();
    let store = place.0.join("a/b/limits");
    let shape = "x".repeat(2 << 20);
    let rule = json!({ "limits": { shape: "5/h" }, "capacity": 100 });
    let message = refusal(open_rule(&store, rule, Limiter::builder()));
    assert!(message.contains("its description has"), "{message}");
    assert!(!place.0.join("a").exists());
    // One that was there stays.
    std::fs::create_dir(place.0.join("a")).unwrap();
    std::fs::write(place.0.join("a/b"), "").unwrap();
    assert!(refusal(open(&store)).contains("not a folder"));
    assert!(place.0.join("a/b").exists());
}

/// Opened as shared, it would be nobody else's all the same.
#[test]
fn a_folder_that_its_group_can_not_use_is_refused_to_be_shared() {
    let place = Place::new();
    let shared = || Limiter::builder().group(true);
    drop(open(&place.store()).unwrap());
    for unshared in [0o700, 0o750, 0o755] {
        set_mode(&place.store(), unshared);
        let message = refusal(open_with(&place.store(), shared()));
        assert!(message.contains("make it 770 and its files 660"), "{message}");
    }
    set_mode(&place.store(), 0o770);
    let message = refusal(open_with(&place.store(), shared()));
    assert!(message.contains("default.table: the folder's group may not write it"), "{message}");
    set_mode(&place.file("default.table"), 0o660);
    drop(open_with(&place.store(), shared()).unwrap());
    assert_eq!(Limiter::inspect(place.store()).unwrap().len(), 1);
}

#[test]
fn memory_can_not_be_made_anew() {
    for store in ["memory", "memory:recreate"] {
        let options = || Limiter::builder().store(store).recreate(true);
        let message = options().limits("5/h").build().unwrap_err().to_string();
        assert!(
            message.contains("recreate: ") && message.contains("`store: file:PATH`"),
            "{message}"
        );
        drop(options().recreate(false).limits("5/h").build().unwrap());
    }
}

#[test]
fn a_group_can_not_share_memory() {
    for store in ["memory", "memory:name"] {
        let options = || Limiter::builder().store(store).group(true);
        let error = options().limits("5/h").build().map(drop).unwrap_err();
        assert_eq!(error.code(), Code::Policy, "{error}");
        let message = error.to_string();
        assert!(message.contains("group: ") && message.contains("`store: file:PATH`"), "{message}");
        drop(options().group(false).limits("5/h").build().unwrap());
    }
}

/// What a loss of power may leave of a file that was never synced.
#[test]
fn a_table_of_zeros_is_refused_with_what_to_do_and_can_be_made_anew() {
    for length in [None, Some(0), Some(1024), Some(4096)] {
        let place = Place::new();
        drop(open(&place.store()).unwrap());
        let table = place.file("default.table");
        let length = length.unwrap_or(std::fs::metadata(&table).unwrap().len());
        let file = std::fs::File::options().write(true).open(&table).unwrap();
        file.set_len(0).and_then(|()| file.set_len(length)).unwrap();
        let message = refusal(open(&place.store()));
        for told in ["default.table", "a loss of power", "open with `recreate`, or remove it"] {
            assert!(message.contains(told), "{message}");
        }
        assert_eq!(granted(&open_with(&place.store(), recreate()).unwrap(), 9), 5, "{length}");
        assert_eq!(granted(&open(&place.store()).unwrap(), 9), 0, "{length}");
    }
}

#[test]
fn what_killed_makers_left_is_removed_by_the_next_to_open() {
    let place = Place::new();
    let limiter = open(&place.store()).unwrap();
    for name in ["default.table.0123456789abcdef.tmp", "default.changes.00000000deadbeef.tmp"] {
        std::fs::write(place.file(name), "half").unwrap();
    }
    std::fs::write(place.file("notes.tmp"), "not ours").unwrap();
    drop(open(&place.store()).unwrap());
    assert_eq!(place.names(), ["default.table", "notes.tmp"]);
    limiter.add_exempt(Match::new([("role", "admin")])).unwrap();
    let whole = [
        "changes.log",
        "changes.log.lock",
        "default.changes",
        "default.lock",
        "default.table",
        "notes.tmp",
    ];
    assert_eq!(place.names(), whole);
}

#[test]
fn a_group_has_a_folder_and_files_that_it_may_write() {
    let place = Place::new();
    let shared = || Limiter::builder().group(true);
    let limiter = open_with(&place.store(), shared()).unwrap();
    limiter.add_exempt(Match::new([("role", "admin")])).unwrap();
    assert_eq!(mode(&place.store()), 0o770);
    for name in place.names() {
        assert_eq!(mode(&place.file(&name)), 0o660, "{name}");
    }
    let exposed = |limiter: &Limiter| {
        limiter.audit().unwrap().iter().any(|finding| finding.id == "store_exposed")
    };
    assert!(!exposed(&limiter));
    let message = refusal(open(&place.store()));
    assert!(message.contains("`group: true`"), "{message}");
    set_mode(&place.store(), 0o775);
    set_mode(&place.file("default.table"), 0o664);
    assert!(exposed(&limiter));
    set_mode(&place.store(), 0o777);
    assert!(refusal(open_with(&place.store(), shared())).contains("others may write this folder"));
    set_mode(&place.store(), 0o770);
    set_mode(&place.file("default.table"), 0o666);
    assert!(refusal(open_with(&place.store(), shared())).contains("others may write it"));
}

#[test]
fn a_policy_says_whether_a_group_shares_its_store() {
    let place = Place::new();
    let file = place.0.join("policy.yaml");
    let write = |group: &str| {
        let text =
            format!("version: 1\nstore: file:limits\n{group}\nrules: {{ a: {{ limits: 5/h }} }}");
        std::fs::write(&file, text).unwrap();
    };
    write("group: true");
    let limiter = Limiter::from_file(&file).unwrap();
    assert_eq!((mode(&place.store()), limiter.policy().group), (0o770, true));
    write("");
    let error = limiter.reload().unwrap_err().to_string();
    assert!(error.contains("another store needs another limiter"), "{error}");
    let shared = Limiter::builder().group(true);
    drop(shared.file(&file).build().unwrap());
    write("group: maybe");
    let error = Limiter::from_file(&file).map(drop).unwrap_err().to_string();
    assert!(error.contains("group: "), "{error}");
}
