//! A damaged table never crashes, hangs, grants too much, or is silently made anew:
//! 500 of them by a seed.
//!
//! `CORRUPT_CASES` and `CORRUPT_SEED` ask for others.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::number_or;
use tidegate_tests::place::{Place, run};

#[test]
fn damaged_tables_never_crash_hang_grant_too_much_or_come_anew() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let (cases, seed) = (number_or("CORRUPT_CASES", 500), number_or("CORRUPT_SEED", 1));
    let (cases, seed) = (cases.to_string(), seed.to_string());
    let arguments = ["corrupt", place.path().to_str().unwrap(), &cases, &seed];
    println!("{}", run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(1800)).trim());
}
