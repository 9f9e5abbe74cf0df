//! Limiters opened before a fork and after it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::Limiter;

use crate::place::{open, open_with};
use crate::system::{Ended, fork, wait_within};

const LIMIT: usize = 50;

fn rules(algorithm: &str) -> Value {
    json!({ "default": { "limits": format!("{LIMIT}/365d {algorithm}"), "capacity": 10 } })
}

fn granted(limiter: &Limiter, hits: usize) -> i32 {
    (0..hits).filter(|_| limiter.allow("alice").unwrap()).count() as i32
}

/// Forks children that go on with their parent's limiter, and others that open one.
///
/// # Panics
/// If they do not agree.
pub fn run(folder: &Path) {
    for algorithm in ["bucket", "window", "counter", "fixed"] {
        let folder = folder.join(algorithm);
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let limiter = open(&folder, rules(algorithm));
        let mine = granted(&limiter, 5);
        let inherited = || granted(&limiter, 8);
        let anew = || granted(&open(&folder, rules(algorithm)), 8);
        let children: Vec<_> = (0..4).flat_map(|_| [fork(inherited), fork(anew)]).collect();
        let theirs: i32 = children
            .into_iter()
            .map(|child| match wait_within(child, Duration::from_secs(20)) {
                Some(Ended::Left(granted)) => granted,
                other => panic!("{algorithm}: I8: {other:?}"),
            })
            .sum();
        assert_eq!((mine + theirs) as usize, LIMIT, "{algorithm}: I2 across forks");
        assert!(!limiter.allow("alice").unwrap(), "{algorithm}");
        // What a child changes at run time, its parent goes by.
        let child = fork(|| {
            limiter.add_exempt(tidegate::Match::new([("role", "admin")])).unwrap();
            limiter.reset("alice").unwrap();
            0
        });
        assert_eq!(wait_within(child, Duration::from_secs(20)), Some(Ended::Left(0)));
        assert_eq!(limiter.exempts().unwrap().len(), 1, "{algorithm}");
        assert_eq!(granted(&limiter, 2 * LIMIT) as usize, LIMIT, "{algorithm}");
    }
    let again = open_with(&folder.join("window"), rules("window"), tidegate::Limiter::builder());
    assert_eq!(granted(&again.unwrap(), 1), 0);
}

/// What children and busy threads do beside each other: one operation each.
pub const OPERATIONS: [&str; 11] = [
    "alert", "metrics", "rule", "override", "block", "named", "wait", "permit", "reload", "first",
    "open",
];

/// A limiter of all that may be locked, in this process's memory or in a folder.
struct Setting {
    limiter: Limiter,
    folder: std::path::PathBuf,
}

impl Setting {
    fn new(folder: &Path, operation: &str) -> Setting {
        let folder = folder.join(operation);
        std::fs::create_dir_all(&folder).unwrap();
        let policy = folder.join("policy.yaml");
        std::fs::write(&policy, POLICY).unwrap();
        Setting { limiter: Limiter::from_file(&policy).unwrap(), folder }
    }

    /// Does it once. `turn` tells threads and turns apart.
    fn act(&self, operation: &str, turn: u64) {
        let limiter = &self.limiter;
        let rule = |name: &str| limiter.rule(name).unwrap();
        let key = (turn % 50).to_string();
        let max = |max| vec![("l".to_string(), tidegate::LimitPatch::max(max))];
        let target = tidegate::Target::key(key.as_str());
        match operation {
            // Every denial is an alert, and every alert wants the names.
            "alert" => drop(rule("alerts").hit(turn.to_string().as_str(), 2).unwrap()),
            "metrics" => drop((limiter.metrics().unwrap(), limiter.events(None).unwrap())),
            "rule" => drop(limiter.rule("none").unwrap_err()),
            "override" => {
                rule("changed").set_override(target.clone(), max(turn % 9)).unwrap();
                drop(rule("changed").hit(key.as_str(), 1).unwrap());
                rule("changed").clear_override(target).unwrap();
            }
            "block" => {
                let for_ = Some(Duration::from_millis(1 + turn % 3));
                let options = tidegate::ChangeOptions::default().for_(for_);
                rule("changed").block(key.as_str(), &options).unwrap();
                drop(rule("changed").hit(key.as_str(), 1).unwrap());
                rule("changed").unblock(key.as_str()).unwrap();
                drop((rule("changed").blocks().unwrap(), limiter.changes(0).unwrap()));
            }
            "named" => {
                let store = format!("memory:{key}");
                let options = tidegate::Limiter::builder().store(store).capacity(1);
                options.limits("1/h").build().unwrap().allow("alice").unwrap();
            }
            "wait" => {
                let most = Some(Duration::from_millis(3));
                drop(rule("waiting").wait("alice", 1, most).unwrap());
            }
            "permit" => {
                let permit = rule("permits").permit(key.as_str()).unwrap();
                permit.renew();
                permit.release();
            }
            "reload" => limiter.reload().unwrap(),
            // The first hit by numbers that were not met before compiles them.
            "first" => {
                rule("changed").set_default(max(1 + turn % 9)).unwrap();
                let attributes = [("role", "staff")];
                let call = tidegate::Call::of(key.as_str()).with(&attributes);
                drop(rule("changed").hit(call, 1).unwrap());
            }
            "open" => {
                let rules = json!({ "default": { "limits": "9/h", "capacity": 1 } });
                let limiter = open(&self.folder.join("limits"), rules);
                limiter.add_exempt(tidegate::Match::new([("role", "admin")])).unwrap();
            }
            other => panic!("no such operation: {other}"),
        }
        drop(rule("changed").hit(key.as_str(), 1).unwrap());
    }
}

const POLICY: &str = r#"
version: 1
capacity: 100
rules:
  alerts: { limits: { l: 1/h }, alert: { violations: 1, within: 1m } }
  changed: { limits: { l: 9/h }, when: [ { match: { role: staff }, limits: { l: { max: 8 } } } ] }
  waiting: { limits: { l: 1000/s burst 1 } }
  permits: { limits: { l: 2 concurrent } }
"#;

/// Forks beside threads that are busy with the same operation. Whatever lock a thread holds at that
/// moment, the child can do every operation.
///
/// # Panics
/// If a child hangs or fails (I14).
pub fn storm(folder: &Path, operation: &str, forks: u64) {
    let setting = Setting::new(folder, operation);
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|s| {
        for thread in 0..2 {
            let (setting, is_over) = (&setting, &is_over);
            s.spawn(move || {
                (0..).take_while(|_| !is_over()).for_each(|turn| {
                    setting.act(operation, thread << 32 | turn);
                });
            });
        }
        let children: Vec<_> = (0..forks)
            .map(|turn| {
                let child = crate::system::fork_beside_threads(|| {
                    crate::system::watchdog(20);
                    (0..3).for_each(|more| setting.act(operation, (3 << 32) + 3 * turn + more));
                    0
                });
                (turn, crate::system::wait(child))
            })
            .filter(|(_, ended)| *ended != Ended::Left(0))
            .collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(children.is_empty(), "{operation}: I14: {children:?}");
    });
}

/// Children that were forked during a change of their parent live on. The parent's next change
/// does not wait for them, nor does a change of another process.
///
/// # Panics
/// If one does.
pub fn kept_lock(folder: &Path) {
    let rules = || json!({ "default": { "limits": "9/h", "capacity": 1 } });
    let limiter = open(&folder.join("limits"), rules());
    let change = || limiter.add_exempt(tidegate::Match::new([("role", "admin")])).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
    let children: Vec<_> = std::thread::scope(|s| {
        s.spawn(|| (0..).take_while(|_| !is_over()).for_each(|_| assert!(change() > 0)));
        let nap = || {
            crate::system::watchdog(60);
            std::thread::sleep(Duration::from_secs(60));
            0
        };
        let children = (0..100).map(|_| crate::system::fork_beside_threads(nap)).collect();
        change();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        children
    });
    change();
    children.into_iter().for_each(|child| {
        crate::system::kill(child);
        crate::system::wait(child);
    });
}
