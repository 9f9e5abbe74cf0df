//! Law I14 for rules: no hit waits for a lock, a file or another process.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{LimitPatch, Limiter, Match, Target};

/// Longer than anything here takes, on any machine.
const FOREVER: Duration = Duration::from_secs(60);

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("never-wait-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn open(folder: &Path, rule: Value) -> Result<Limiter, tidegate::Error> {
    let policy = json!({ "version": 1, "rules": { "default": rule } });
    let store = format!("file:{}", folder.display());
    Limiter::builder().store(store).value(&policy).build()
}

fn rule() -> Value {
    json!({ "limits": { "l": "1000000/h" }, "capacity": 100 })
}

fn max(max: u64) -> Vec<(String, LimitPatch)> {
    vec![("l".to_string(), LimitPatch::max(max))]
}

fn limit(limiter: &Limiter, key: &str) -> Option<u64> {
    limiter.hit(key, 1).unwrap().limit
}

/// Runs `work` on a thread, which must come to an end.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, over) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    over.recv_timeout(FOREVER).expect("I14: it waits")
}

/// A process that stopped while it changed something holds the file's lock. A change waits for it,
/// hits do not; nor do hits that have to look at the file because another process opened it.
#[test]
fn hits_go_on_while_a_change_waits_for_another_process() {
    let folder = folder("flock");
    let limiter = open(&folder, rule()).unwrap();
    limiter.set_override(Target::key("alice"), max(7)).unwrap();
    let stopped = File::open(folder.join("default.lock")).unwrap();
    stopped.lock().unwrap();
    let (changed, change) = mpsc::channel();
    let changing = limiter.clone();
    std::thread::spawn(move || changed.send(changing.set_override(Target::key("alice"), max(8))));
    let (hitting, store) = (limiter.clone(), folder.clone());
    in_time(move || {
        for _ in 0..100 {
            // Adds to the generation, so that the next hit looks at the file.
            let other = open(&store, rule()).unwrap();
            assert_eq!((limit(&hitting, "alice"), limit(&other, "alice")), (Some(7), Some(7)));
            assert_eq!(hitting.overrides().unwrap().len(), 1);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(change.try_recv().is_err(), "the change did not wait for the lock");
    stopped.unlock().unwrap();
    change.recv_timeout(FOREVER).unwrap().unwrap();
    assert_eq!(limit(&limiter, "alice"), Some(8));
}

/// Those who read what others have changed are in nobody's way: what a process has changed itself
/// acts on its next hit.
#[test]
fn a_change_acts_on_the_next_hit_whoever_reads() {
    let folder = folder("next-hit");
    let limiter = open(&folder, rule()).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(limiter.hit("bob", 0).unwrap().allowed);
                }
            });
        }
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(open(&folder, rule()).unwrap());
            }
        });
        for turn in 1..200 {
            limiter.set_override(Target::key("alice"), max(turn)).unwrap();
            assert_eq!(limit(&limiter, "alice"), Some(turn));
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// What another process changes acts on the hits of this one too, also while threads compete to
/// read it.
#[test]
fn every_thread_comes_to_know_what_another_process_changed() {
    let folder = folder("all-threads");
    let (limiter, other) = (open(&folder, rule()).unwrap(), open(&folder, rule()).unwrap());
    for turn in 1..50 {
        other.set_default(max(turn)).unwrap();
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| while limit(&limiter, "alice") != Some(turn) {});
            }
        });
        // Once they know it, they know it.
        assert_eq!(limit(&limiter, "alice"), Some(turn));
    }
}

/// Two versions of a policy on one folder: what the newer one sets, the older one may not be able
/// to have. It goes on by its own numbers, says so, and opens again.
#[test]
fn a_stored_change_that_a_policy_cannot_have_is_skipped() {
    let folder = folder("versions");
    let slow = json!({ "limits": { "l": "10/h" }, "capacity": 100 });
    let fast = json!({ "limits": { "l": "10/ms" }, "capacity": 100 });
    let newer = open(&folder, slow).unwrap();
    let older = open(&folder, fast.clone()).unwrap();
    // A thousand billion a second is too fast for a bucket of 3.
    let most = LimitPatch::max(1_000_000_000).burst(3);
    let most = || vec![("l".to_string(), most.clone())];
    newer.set_default(most()).unwrap();
    newer.set_override(Target::key("bob"), most()).unwrap();
    let twenty = LimitPatch::max(20).burst(20);
    newer.set_override(Target::key("carol"), vec![("l".to_string(), twenty)]).unwrap();
    for older in [older, open(&folder, fast).unwrap()] {
        assert_eq!(limit(&older, "alice"), Some(10));
        assert_eq!(limit(&older, "bob"), Some(10));
        assert_eq!(limit(&older, "carol"), Some(20), "what can be had is");
        let findings = older.audit().unwrap();
        let ignored: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.id == "change_ignored")
            .map(|finding| finding.path.as_str())
            .collect();
        let paths = ["rules.default.default", "rules.default.overrides[0]"];
        let fit = ignored.iter().zip(paths).all(|(path, of)| path.starts_with(of));
        assert!(ignored.len() == 2 && fit, "{ignored:?}");
        // It may still change what it can have.
        older.add_exempt(Match::new([("role", "admin")])).unwrap();
        assert!(older.set_default(most()).is_err());
    }
    assert_eq!(limit(&newer, "alice"), Some(3), "the newer one has it still");
    assert!(newer.audit().unwrap().iter().all(|finding| finding.id != "change_ignored"));
}

/// Entries that only another version can read are kept for it, and told of.
#[test]
fn a_stored_change_that_cannot_be_read_is_skipped_and_kept() {
    let folder = folder("unread");
    let limiter = open(&folder, rule()).unwrap();
    limiter.set_override(Target::key("alice"), max(7)).unwrap();
    let file = folder.join("default.changes");
    let mut stored: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    stored["overrides"].as_array_mut().unwrap().push(json!({"key": [{"number": 1}], "limits": {}}));
    std::fs::write(&file, stored.to_string()).unwrap();
    let again = open(&folder, rule()).unwrap();
    assert_eq!((limit(&again, "alice"), limit(&limiter, "alice")), (Some(7), Some(7)));
    assert!(again.audit().unwrap().iter().any(|finding| finding.id == "change_ignored"));
    again.set_override(Target::key("bob"), max(8)).unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains(r#"{"number":1}"#), "{kept}");
}
