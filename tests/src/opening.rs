//! A table that is replaced while a process opens it.
//!
//! A child opens the table and is stopped after so many calls of the kernel. Then this process
//! replaces the table. The child must count by the new table, unless it has resolved the name for
//! the last time. (Then its hits notice: that is `loom_retired`.)

use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::TableFile;

use crate::place::open;
use crate::system::{Ended, Pid, fork, kill, next_call, stop_here, trace_me, wait};

const LIMIT: usize = 5;

fn rules() -> Value {
    json!({ "default": { "limits": format!("{LIMIT}/365d window"), "capacity": 10 } })
}

/// A child that stands before the opening.
fn start(store: &Path) -> Pid {
    let child = fork(|| {
        trace_me();
        stop_here();
        assert!(open(store, rules()).allow("alice").unwrap());
        stop_here();
        0
    });
    assert_eq!(wait(child), Ended::Stopped(libc::SIGSTOP));
    child
}

/// The next call of the kernel that is not for memory. How many of those there are depends on what
/// the allocator had free when the child was made.
fn next_step(child: Pid) -> Option<i64> {
    const OF_MEMORY: [i64; 4] = [libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap];
    std::iter::from_fn(|| next_call(child))
        .map(|call| call.number)
        .find(|number| !OF_MEMORY.contains(number))
}

fn end(child: Pid) {
    kill(child);
    assert_eq!(wait(child), Ended::Killed(libc::SIGKILL));
}

/// As `recreate` does it.
fn replace(store: &Path, old: &TableFile) {
    std::fs::remove_file(store.join("default.table")).unwrap();
    old.retire();
    drop(open(store, rules()));
}

/// Replaces the table after every call of its opening.
///
/// # Panics
/// If a process counts by the old table that could have known.
pub fn run(base: &Path) {
    std::fs::create_dir_all(base).unwrap();
    let store = |number: usize| {
        let store = base.join(format!("limits-{number}"));
        drop(open(&store, rules()));
        store
    };
    let surveyed = store(0);
    let used = TableFile::open(&surveyed.join("default.table")).unwrap();
    let child = start(&surveyed);
    let mut calls = Vec::new();
    while let Some(call) = next_step(child) {
        calls.push(call);
    }
    end(child);
    drop(used);
    let last_look = calls.iter().rposition(|number| *number == libc::SYS_newfstatat);
    let last_look = last_look.expect("it looks at the name");
    for after in 0..=last_look {
        let store = store(after + 1);
        // Open here, so that the child is never the only process with it: a child that is alone
        // takes a lock, and may be stopped with it.
        let old = TableFile::open(&store.join("default.table")).unwrap().unwrap();
        let child = start(&store);
        for _ in 0..after {
            let _ = next_step(child);
        }
        replace(&store, &old);
        while next_step(child).is_some() {}
        end(child);
        let limiter = open(&store, rules());
        let left = (0..2 * LIMIT).filter(|_| limiter.allow("alice").unwrap()).count();
        assert_eq!(left, LIMIT - 1, "replaced after call {after} of {}", calls.len());
    }
    println!("{} calls of the kernel, {} replacements", calls.len(), last_look + 1);
}
