//! A fork needs no care: limiters opened before it and after it share every count.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::place::{Place, run};

#[test]
fn limiters_opened_before_a_fork_and_after_it_share_every_count() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["forks", place.path().to_str().unwrap()];
    run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(60));
}
