//! Folders are for their owner, or for their group; root leaves them as they were. (Needs root.)
#![cfg(target_os = "linux")]

use std::time::Duration;

use tidegate_tests::place::{Place, run, tell};

fn check(case: &str) {
    // Not in the build's folder, which other users may not reach.
    let place = Place::new(std::env::temp_dir().to_str().unwrap());
    let folder = place.store();
    let arguments = ["owners", folder.to_str().unwrap(), case];
    tell(&run(env!("CARGO_BIN_EXE_worker"), &arguments, Duration::from_secs(60)));
}

#[test]
fn root_leaves_a_users_folder_the_users() {
    check("root");
}

#[test]
fn root_follows_no_link_of_a_user() {
    check("links");
}

#[test]
fn files_and_folders_of_others_are_not_believed() {
    check("others");
}

#[test]
fn a_group_shares_a_folder() {
    check("group");
}
