//! A loss of power at any moment leaves a folder that opens, and keeps what had returned.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::place::{Place, run};
use tidegate_tests::power;

#[test]
fn a_loss_of_power_leaves_the_state_of_before_or_after() {
    for case in power::names() {
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let arguments = ["power", place.path().to_str().unwrap(), case];
        let found = run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(600));
        println!("{}", found.trim());
    }
}
