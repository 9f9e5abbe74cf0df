//! I1 and I2: eight processes on one file grant the limit, to the unit.
#![cfg(target_os = "linux")]

use std::time::Instant;

use tidegate_tests::board::Board;
use tidegate_tests::hammer::{self, EACH, HOT, HOT_HITS, KEYS, ROUNDS, WORKERS, at};
use tidegate_tests::place::{Place, open, worker};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

#[test]
fn eight_processes_grant_the_limit_to_the_unit() {
    for algorithm in ["bucket", "window", "counter", "fixed"] {
        let started = Instant::now();
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let board = Board::create(&place.board(), at::KEYS + KEYS);
        let (folder, path) = (place.store(), place.board());
        let start = |number: usize| {
            let number = number.to_string();
            let (folder, path) = (folder.to_str().unwrap(), path.to_str().unwrap());
            worker(WORKER, &["hammer", folder, path, &number, algorithm]).spawn().unwrap()
        };
        let workers: Vec<_> = (0..WORKERS).map(start).collect();
        board.set(at::GO, 1);
        for mut worker in workers {
            assert!(worker.wait().unwrap().success(), "{algorithm}");
        }
        assert_eq!(board.get(at::HOT), HOT, "{algorithm}: the hot key");
        for key in 0..KEYS {
            assert_eq!(board.get(at::KEYS + key), EACH, "{algorithm}: key {key}");
        }
        let limiter = open(&folder, hammer::rules(algorithm));
        assert_eq!(limiter.rule("many").unwrap().len().unwrap(), KEYS);
        let hits = WORKERS * (HOT_HITS + ROUNDS * KEYS);
        println!("{algorithm}: {hits} hits by {WORKERS} processes in {:?}", started.elapsed());
    }
}
