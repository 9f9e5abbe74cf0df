//! How many keys a rule may hold where nobody says, and what `memory` counts.

use serde_json::{Value, json};
use tidegate::{Code, DEFAULT_CAPACITY, Error, LEAST_CAPACITY, Limiter, LimiterBuilder, Policy};

const MB: u64 = 1 << 20;

fn made(policy: &Value, options: LimiterBuilder) -> Result<Limiter, Error> {
    options.value(policy).build()
}

fn capacities(limiter: &Limiter) -> Vec<usize> {
    limiter.metrics().unwrap().iter().map(|rule| rule.capacity).collect()
}

fn bytes(limiter: &Limiter) -> u64 {
    limiter.metrics().unwrap().iter().map(|rule| rule.bytes).sum()
}

fn adapted(limiter: &Limiter) -> Vec<String> {
    let findings = limiter.audit().unwrap().into_iter();
    findings.filter(|one| one.id == "capacity_adapted").map(|one| one.path).collect()
}

#[test]
fn a_large_window_holds_what_fits() {
    let limiter = Limiter::new("500/h window").unwrap();
    let held = capacities(&limiter)[0];
    assert!((LEAST_CAPACITY..DEFAULT_CAPACITY).contains(&held), "{held}");
    assert!(bytes(&limiter) <= 256 * MB && bytes(&limiter) > 250 * MB);
    assert_eq!(adapted(&limiter), ["rules.default.capacity"]);
    let more = Limiter::builder().memory(1 << 30);
    let limiter = more.limits("500/h window").build().unwrap();
    assert_eq!((capacities(&limiter), adapted(&limiter).len()), (vec![DEFAULT_CAPACITY], 0));
}

#[test]
fn what_fits_is_as_much_as_fits() {
    for limits in ["20/min", "100/h window", "3 concurrent"] {
        for memory in [2 * MB, 3 * MB, 5 * MB, 9 * MB] {
            let options = Limiter::builder().memory(memory);
            let limiter = options.clone().limits(limits).build().unwrap();
            let held = capacities(&limiter)[0];
            assert!(bytes(&limiter) <= memory, "{limits} in {memory}");
            if held == DEFAULT_CAPACITY {
                continue;
            }
            let capacity = Some(held + 1);
            let refused = options.capacity(capacity).limits(limits).build().unwrap_err();
            assert_eq!(refused.code(), Code::Memory, "{limits}: {} keys fit too", held + 1);
        }
    }
}

#[test]
fn stated_capacities_come_first_and_the_rest_is_shared_equally() {
    let policy = |memory: u64| {
        json!({"version": 1, "memory": memory, "rules": {
            "stated": {"limits": "100/h window", "capacity": 1000},
            "a": {"limits": "400/h window"},
            "b": {"limits": "400/h window"},
            "small": {"limits": "20/min"},
        }})
    };
    let limiter = made(&policy(64 * MB), Limiter::builder()).unwrap();
    let [stated, a, b, small] = capacities(&limiter)[..] else { panic!("four rules") };
    assert_eq!((stated, small, a), (1000, DEFAULT_CAPACITY, b));
    let all = limiter.metrics().unwrap();
    let share = (64 * MB - all[0].bytes) / 3;
    assert!(all[1].bytes <= share && all[1].bytes > share - share / 50, "{} {share}", all[1].bytes);
    assert_eq!(adapted(&limiter), ["rules.a.capacity", "rules.b.capacity"]);
    let error = made(&policy(8 * MB), Limiter::builder()).unwrap_err();
    assert_eq!(error.code(), Code::Memory);
    assert!(error.to_string().contains("1024 keys of rule a"), "{error}");
    let error = made(&policy(MB / 4), Limiter::builder()).unwrap_err();
    assert!(error.to_string().contains("stated"), "{error}");
}

#[test]
fn memory_is_an_option_that_wins_over_the_policy() {
    let policy = json!({"version": 1, "memory": "1KB", "rules": {"a": {"limits": "20/min"}}});
    assert_eq!(made(&policy, Limiter::builder()).unwrap_err().code(), Code::Memory);
    let more = Limiter::builder().memory(8 * MB);
    assert_eq!(capacities(&made(&policy, more).unwrap()), [DEFAULT_CAPACITY]);
}

#[test]
fn a_stated_default_is_not_adapted() {
    let options = Limiter::builder().capacity(DEFAULT_CAPACITY);
    let error = options.limits("500/h window").build().unwrap_err();
    assert_eq!(error.code(), Code::Memory, "{error}");
    let text = "version: 1\ncapacity: 65536\nrules: { a: { limits: 500/h window } }";
    assert_eq!(Policy::from_text(text).unwrap().capacity, Some(65_536));
}

#[test]
fn those_who_share_a_table_by_name_take_its_capacity() {
    let on = |capacity| Limiter::builder().store("memory:capacity-by-name").capacity(capacity);
    let first = on(Some(50)).limits("1/h").build().unwrap();
    let second = on(None).limits("1/h").build().unwrap();
    assert_eq!(capacities(&second), [50]);
    assert!(first.allow("alice").unwrap() && !second.allow("alice").unwrap());
    assert_eq!(on(Some(51)).limits("1/h").build().unwrap_err().code(), Code::Store);
}

#[test]
fn a_reload_keeps_tables_and_lets_new_rules_have_the_rest() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("capacity-reload.yaml");
    let a = "a: { limits: { l: { max: 400, per: 1h, algorithm: window } } }";
    let b = "b: { limits: { l: { max: 400, per: 1h, algorithm: window } } }";
    let write = |rules: &str| {
        std::fs::write(&path, format!("version: 1\nmemory: 64MB\nrules:\n  {rules}\n")).unwrap();
    };
    write(&format!("{a}\n  {b}"));
    let limiter = Limiter::from_file(&path).unwrap();
    let both = capacities(&limiter);
    assert!(limiter.rule("a").unwrap().allow("alice").unwrap());
    write(a);
    limiter.reload().unwrap();
    assert_eq!(capacities(&limiter), both[..1], "its table stays");
    assert_eq!(limiter.rule("a").unwrap().peek("alice", 0).unwrap().remaining, Some(399));
    write(&format!("{a}\n  {b}"));
    limiter.reload().unwrap();
    assert!(bytes(&limiter) <= 64 * MB);
}

#[test]
fn a_reload_of_a_bucket_to_larger_numbers_keeps_its_counts() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("capacity-larger.yaml");
    let write = |max: u64| {
        let text = format!("version: 1\nrules: {{ a: {{ limits: {{ l: {max}/h }} }} }}");
        std::fs::write(&path, text).unwrap();
    };
    write(5);
    let limiter = Limiter::from_file(&path).unwrap();
    assert!(limiter.hit("alice", 5).unwrap().allowed);
    write(10);
    limiter.reload().unwrap();
    assert!(!limiter.hit("alice", 6).unwrap().allowed, "what was spent stays spent");
}

#[cfg(target_os = "linux")]
mod file {
    use super::*;

    fn place(name: &str) -> (std::path::PathBuf, String) {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("capacity-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let store = format!("file:{}", path.display());
        (path, store)
    }

    #[test]
    fn the_capacity_of_a_table_that_is_there_wins_over_an_unstated_one() {
        let (path, store) = place("wins");
        let options = |capacity, memory| {
            Limiter::builder().store(store.clone()).capacity(capacity).memory(memory)
        };
        drop(options(Some(3000), None).limits("100/h window").build().unwrap());
        for memory in [None, Some(4 * MB), Some(64 * MB)] {
            let limiter = options(None, memory).limits("100/h window").build().unwrap();
            assert_eq!(capacities(&limiter), [3000]);
        }
        // To one that is stated the table is moved.
        let other = options(Some(3001), None).limits("100/h window").build().unwrap();
        assert_eq!(capacities(&other), [3001]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn memory_counts_the_ledgers_of_a_file() {
        let (path, store) = place("ledgers");
        let needed = {
            let capacity = Some(2000);
            let options = Limiter::builder().store(store.clone()).capacity(capacity);
            bytes(&options.limits("20/min").build().unwrap())
        };
        std::fs::remove_dir_all(&path).unwrap();
        let within = |memory: u64| {
            let (capacity, memory) = (Some(2000), Some(memory));
            let options = Limiter::builder().store(store.clone()).capacity(capacity).memory(memory);
            options.limits("20/min").build()
        };
        assert_eq!(within(needed - 1).unwrap_err().code(), Code::Memory);
        assert_eq!(bytes(&within(needed).unwrap()), needed);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_store_of_adapted_tables_opens_again_beside_more_rules() {
        let (path, store) = place("again");
        let rule = json!({"limits": {"l": {"max": 300, "per": "1h", "algorithm": "window"}}});
        let policy = |rules: &[&str]| {
            let rules: serde_json::Map<String, Value> =
                rules.iter().map(|name| (name.to_string(), rule.clone())).collect();
            json!({"version": 1, "memory": "24MB", "rules": rules})
        };
        let options = Limiter::builder().store(store);
        let both = capacities(&made(&policy(&["a", "b"]), options.clone()).unwrap());
        // Fewer rules would have larger shares, but the table is there.
        let limiter = made(&policy(&["a"]), options.clone()).unwrap();
        assert_eq!((capacities(&limiter), adapted(&limiter).len()), (both[..1].to_vec(), 1));
        std::fs::remove_dir_all(path).unwrap();
    }
}
