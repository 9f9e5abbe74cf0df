//! A table is published whole: 500 cold starts of four processes, some of them killed at it.
//!
//! `COLD_ROUNDS` and `COLD_SEED` ask for others.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::number_or;
use tidegate_tests::place::{Place, run};

#[test]
fn cold_starts_leave_one_whole_file_whoever_is_killed() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let (rounds, seed) = (number_or("COLD_ROUNDS", 500), number_or("COLD_SEED", 1));
    let (rounds, seed) = (rounds.to_string(), seed.to_string());
    let arguments = ["cold", place.path().to_str().unwrap(), &rounds, &seed];
    println!("{}", run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(600)).trim());
}

#[test]
fn run_time_changes_are_whole_whoever_is_killed_at_them() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["change", place.path().to_str().unwrap(), "100", "1"];
    println!("{}", run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(600)).trim());
}
