//! What can't be had while a table is made is a clear error, and nothing half-made is left.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::place::{Place, run, tell};

fn suffer(harm: &str) {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = place.store();
    let arguments = ["harm", folder.to_str().unwrap(), harm];
    tell(&run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(60)));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    suffer("full");
}

#[test]
fn a_read_only_disk_is_an_error() {
    suffer("read-only");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_leaves_nothing() {
    suffer("size");
}

#[test]
fn missing_rights_are_an_error_and_leave_nothing() {
    suffer("rights");
}

#[test]
fn a_table_with_holes_on_a_full_disk_is_an_error_and_no_signal() {
    suffer("holes");
}

#[test]
fn a_table_is_made_where_there_is_no_proc() {
    suffer("no-proc");
}

#[test]
fn running_out_of_descriptors_is_an_error_and_leaves_nothing() {
    suffer("descriptors");
}
