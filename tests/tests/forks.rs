//! A fork needs no care: limiters opened before it and after it share every count.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::forks::OPERATIONS;
use tidegate_tests::number_or;
use tidegate_tests::place::{Place, run};

#[test]
fn limiters_opened_before_a_fork_and_after_it_share_every_count() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["forks", place.path().to_str().unwrap()];
    run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(60));
}

/// Law I14: whatever other threads were at, a child hangs in no operation.
#[test]
fn no_fork_beside_busy_threads_hangs() {
    let forks = number_or("TIDEGATE_FORKS", 400).to_string();
    for operation in OPERATIONS {
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let arguments = ["storm", place.path().to_str().unwrap(), operation, &forks];
        run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(120));
    }
}

#[test]
fn a_child_keeps_no_lock_that_its_parent_gave_back() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["kept_lock", place.path().to_str().unwrap()];
    run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(50));
}
