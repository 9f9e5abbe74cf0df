//! I1, I2, I8: `kill -9` at every instruction of an operation wedges no process and grants nothing.
//!
//! By default at every one that changes the file, before it and after it, and at some all over the
//! operation; `KILL_STEPS=0` kills at every single one. What a kill would leave of a move is
//! checked after every single instruction in any case; other processes see four of them.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use tidegate_tests::place::{Place, run};
use tidegate_tests::{number_or, steps};

#[test]
fn a_process_killed_at_any_instruction_wedges_nobody_and_grants_nothing() {
    let most = number_or("KILL_STEPS", 24).to_string();
    for operation in steps::names() {
        let (place, started) = (Place::new(env!("CARGO_TARGET_TMPDIR")), Instant::now());
        let folder = place.store();
        let arguments = ["steps", folder.to_str().unwrap(), operation, &most];
        let found = run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(1800));
        println!("{} in {:?}", found.trim(), started.elapsed());
    }
}

#[test]
fn a_process_killed_while_it_moves_a_table_leaves_the_old_one_or_the_new_one() {
    let most = number_or("KILL_STEPS", 2).to_string();
    let (place, started) = (Place::new(env!("CARGO_TARGET_TMPDIR")), Instant::now());
    let arguments = ["move_steps", place.path().to_str().unwrap(), &most];
    let limit = Duration::from_secs(if most == "0" { 24 * 3_600 } else { 1_800 });
    let found = run(env!("CARGO_BIN_EXE_worker"), &arguments, limit);
    println!("{} in {:?}", found.trim(), started.elapsed());
}
