//! I1 and I2: eight processes on one file grant the limit, to the unit. I10 and I13: a process of
//! another version of the policy evicts no key that still counts.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use tidegate_tests::hammer::{self, EACH, HOT, HOT_HITS, KEYS, ROUNDS, WORKERS, at};
use tidegate_tests::place::{Place, open, run, worker};
use tidegate_tests::shared_words::SharedWords;
use tidegate_tests::versions;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

#[test]
fn eight_processes_grant_the_limit_to_the_unit() {
    for algorithm in ["bucket", "window", "counter", "fixed"] {
        let started = Instant::now();
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let shared = SharedWords::create(&place.shared_words(), at::KEYS + KEYS);
        let (folder, path) = (place.store(), place.shared_words());
        let start = |number: usize| {
            let number = number.to_string();
            let (folder, path) = (folder.to_str().unwrap(), path.to_str().unwrap());
            worker(WORKER, &["hammer", folder, path, &number, algorithm]).spawn().unwrap()
        };
        let workers: Vec<_> = (0..WORKERS).map(start).collect();
        shared.set(at::GO, 1);
        for mut worker in workers {
            assert!(worker.wait().unwrap().success(), "{algorithm}");
        }
        assert_eq!(shared.get(at::HOT), HOT, "{algorithm}: the hot key");
        for key in 0..KEYS {
            assert_eq!(shared.get(at::KEYS + key), EACH, "{algorithm}: key {key}");
        }
        let limiter = open(&folder, hammer::rules(algorithm));
        assert_eq!(limiter.rule("many").unwrap().len().unwrap(), KEYS);
        let hits = WORKERS * (HOT_HITS + ROUNDS * KEYS);
        println!("{algorithm}: {hits} hits by {WORKERS} processes in {:?}", started.elapsed());
    }
}

#[test]
fn a_process_of_another_version_evicts_no_key_that_still_counts() {
    for algorithm in ["bucket", "window", "fixed", "counter"] {
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = place.store();
        let limits = |rate: &str| format!("{rate} {algorithm}");
        let flood = |rate: &str, at: u64| {
            let (folder, at) = (folder.to_str().unwrap(), at.to_string());
            let pruned =
                run(WORKER, &["flood", folder, &limits(rate), &at], Duration::from_secs(20));
            assert_eq!(pruned.trim(), "0", "I10: {algorithm} at {at}");
        };
        let start = 360_000;
        let slow = versions::at(&folder, &limits("10/h"), start);
        assert_eq!(versions::granted(&slow, "vip"), 10);
        // The other version runs beside this one, and by its numbers the key is as new.
        flood("10/min", start + 200);
        let beside = versions::at(&folder, &limits("10/h"), start + 300);
        assert_eq!(versions::granted(&beside, "vip"), 0, "I10: {algorithm}");
        drop((slow, beside));
        // It runs alone, and then the slow version is rolled back in.
        flood("10/min", start + 301);
        let again = versions::at(&folder, &limits("10/h"), start + 302);
        assert_eq!(versions::granted(&again, "vip"), 0, "I13: {algorithm}");
    }
}

#[test]
fn a_process_that_opens_a_table_while_it_is_replaced_counts_by_the_new_one() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["opening", place.path().to_str().unwrap()];
    println!("{}", run(WORKER, &arguments, Duration::from_secs(120)).trim());
}
