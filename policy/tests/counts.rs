//! Limits that count hits beside limits that count costs, where the vectors don't reach: threads
//! and files.

use serde_json::{Value, json};
use tidegate::{Counts, Limit, Limiter};

fn policy(requests: u64, tokens: u64) -> Value {
    json!({"version": 1, "rules": {"default": {"capacity": 16, "limits": {
        "requests": {"max": requests, "per": "1h", "counts": "hits"},
        "tokens": {"max": tokens, "per": "1h"},
    }}}})
}

fn used(limiter: &Limiter) -> (u64, u64) {
    let stats = limiter.stats("alice").unwrap().unwrap();
    (stats.limits[0].used, stats.limits[1].used)
}

#[test]
fn threads_take_of_both_limits_or_of_none() {
    for (requests, tokens) in [(100, 1_000_000), (1_000, 2_000)] {
        let limiter = Limiter::from_value(&policy(requests, tokens)).unwrap();
        let granted = |cost: u64| {
            let hit = |_: &u64| limiter.hit("alice", cost).unwrap().allowed;
            (0..200).filter(hit).count() as u64
        };
        let (hits, spent) = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (5..9).map(|cost| scope.spawn(move || (granted(cost), cost))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .fold((0, 0), |(hits, spent), (granted, cost)| {
                    (hits + granted, spent + granted * cost)
                })
        });
        let found = used(&limiter);
        // A refill may give a unit back while the test runs.
        assert!(found.0.abs_diff(hits) <= 1 && found.1.abs_diff(spent) <= 2_000, "{found:?}");
        assert!(hits <= requests + 1 && spent <= tokens + 2_000);
    }
}

#[test]
fn a_limit_that_is_built() {
    let minute = std::time::Duration::from_secs(60);
    let requests = Limit::window(2, minute).named("requests").counts(Counts::Hits);
    let limiter = Limiter::new([requests, Limit::fixed(10_000, minute)]).unwrap();
    assert!(limiter.hit("alice", 9_000).unwrap().allowed);
    assert_eq!(used(&limiter), (1, 9_000));
    let rule = tidegate::Limiter::new(Limit::concurrent(5).counts(Counts::Hits));
    assert!(rule.unwrap_err().to_string().contains("counts"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_keeps_both_and_knows_what_is_counted() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("counts-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let options = || Limiter::builder().store(format!("file:{}", path.display()));
    let open = |policy: &Value| options().value(policy).build();
    let first = open(&policy(60, 100_000)).unwrap();
    assert!(first.hit("alice", 1_200).unwrap().allowed);
    let second = open(&policy(60, 100_000)).unwrap();
    assert!(second.hit("alice", 800).unwrap().allowed);
    let found = used(&first);
    assert!(found.0 == 2 && found.1.abs_diff(2_000) <= 100, "{found:?}");
    drop((first, second));
    // What is counted is part of a limit: one that counts something else starts fresh, the other
    // goes on.
    let mut other = policy(60, 100_000);
    other["rules"]["default"]["limits"]["requests"]["counts"] = json!("cost");
    let found = used(&open(&other).unwrap());
    assert!(found.0 == 0 && found.1.abs_diff(2_000) <= 100, "{found:?}");
    let found = used(&open(&policy(60, 100_000)).unwrap());
    assert!(found.0 == 0 && found.1.abs_diff(2_000) <= 100, "{found:?}");
    let _ = std::fs::remove_dir_all(&path);
}
