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
    let again = open_with(&folder.join("window"), rules("window"), tidegate::Options::default());
    assert_eq!(granted(&again.unwrap(), 1), 0);
}
