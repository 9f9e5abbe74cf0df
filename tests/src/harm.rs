//! Disks, rights and descriptors that run out while a table is made: an error, and no broken table.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Code, Error, Limiter};

use crate::place::{names, open_with};
use crate::system::{
    Ended, become_nobody, fork, is_root, leave_mounts, limit_descriptors, limit_file_size,
    make_read_only, mount_memory, wait_within,
};

fn rules(capacity: usize) -> Value {
    json!({ "default": { "limits": "10/365d", "capacity": capacity } })
}

fn try_open(folder: &Path, capacity: usize) -> Result<Limiter, Error> {
    open_with(folder, rules(capacity), Limiter::builder())
}

fn expect_refusal(folder: &Path, capacity: usize, words: &[&str]) {
    let error = try_open(folder, capacity).expect_err("there is not enough");
    assert_eq!(error.code(), Code::Store, "{error}");
    let message = error.to_string();
    assert!(words.iter().any(|word| message.contains(word)), "{message}");
    println!("{message}");
}

/// In a child, since what is given up here does not come back.
fn in_child(work: impl FnOnce()) {
    let child = fork(|| {
        work();
        0
    });
    let ended = wait_within(child, Duration::from_secs(20));
    assert_eq!(ended, Some(Ended::Left(0)), "I8");
}

/// Does one kind of harm.
///
/// # Panics
/// If what comes of it is not a clear error, or something is left behind.
pub fn run(folder: &Path, harm: &str) {
    match harm {
        "full" => full(folder),
        "read-only" => read_only(folder),
        "size" => too_large(folder),
        "rights" => no_rights(folder),
        "descriptors" => no_descriptors(folder),
        "holes" => holes(folder),
        "no-proc" => no_proc(folder),
        _ => panic!("no such harm: {harm}"),
    }
}

/// A small disk of this process's own; false where that needs more rights.
fn small_disk(folder: &Path) -> bool {
    std::fs::create_dir_all(folder).unwrap();
    let mounted = leave_mounts().and_then(|()| mount_memory(folder, "size=128k,mode=700"));
    if let Err(error) = &mounted {
        println!("skipped: no small disk can be mounted here ({error})");
    }
    mounted.is_ok()
}

fn full(folder: &Path) {
    if !small_disk(folder) {
        return;
    }
    let store = folder.join("limits");
    expect_refusal(&store, 10_000, &["No space left"]);
    assert!(names(&store).is_empty(), "nothing is left: {:?}", names(&store));
    // What fits is made, and then there is room for a rule's changes no more.
    let limiter = try_open(&store, 100).expect("a small table");
    assert!((0..10).all(|_| limiter.allow("alice").unwrap()) && !limiter.allow("alice").unwrap());
    let filler = vec![0; 1 << 20];
    let _ = std::fs::write(folder.join("filler"), filler);
    let error = limiter.add_exempt(tidegate::Match::new([("role", "admin")]));
    let error = error.expect_err("the disk is full");
    println!("{error}");
    assert_eq!(error.code(), Code::Store, "{error}");
    assert!(!names(&store).iter().any(|name| name.contains("tmp")), "{:?}", names(&store));
    assert!(!limiter.allow("alice").unwrap(), "hits go on");
    assert_eq!((0..20).filter(|_| limiter.allow("bob").unwrap()).count(), 10, "of new keys too");
}

fn read_only(folder: &Path) {
    if !small_disk(folder) {
        return;
    }
    let (there, missing) = (folder.join("there"), folder.join("missing"));
    drop(try_open(&there, 100).expect("a table"));
    make_read_only(folder).expect("a disk that was mounted");
    expect_refusal(&there, 100, &["Read-only file system"]);
    expect_refusal(&missing, 100, &["Read-only file system"]);
    assert_eq!(names(folder), ["there"]);
    assert_eq!(names(&there), ["default.table"]);
}

fn too_large(folder: &Path) {
    in_child(|| {
        limit_file_size(64 << 10);
        expect_refusal(folder, 10_000, &["File too large"]);
        assert!(names(folder).is_empty(), "nothing is left: {:?}", names(folder));
        assert!(try_open(folder, 100).expect("a small table").allow("alice").unwrap());
    });
}

fn no_rights(folder: &Path) {
    drop(try_open(folder, 100).expect("a table"));
    let other = folder.with_extension("other");
    std::fs::create_dir(&other).unwrap();
    in_child(|| {
        if is_root() {
            become_nobody();
            expect_refusal(folder, 100, &["Permission denied"]);
            expect_refusal(&other, 100, &["this folder belongs to user 0, not to 65534"]);
        } else {
            println!("skipped: only root can give rights up");
        }
    });
    assert_eq!(names(folder), ["default.table"]);
    assert!(names(&other).is_empty(), "nothing is left: {:?}", names(&other));
}

/// A copy of a table that has holes where its zeros were, on a disk without room for them.
fn holes(folder: &Path) {
    if !small_disk(folder) {
        return;
    }
    let store = folder.join("limits");
    drop(try_open(&store, 1_000).expect("a table"));
    let table = store.join("default.table");
    let bytes = std::fs::read(&table).unwrap();
    let header = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let make_holes = || {
        let file = std::fs::File::options().write(true).open(&table).unwrap();
        file.set_len(header as u64).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
    };
    make_holes();
    let _ = std::fs::write(folder.join("filler"), vec![0; 1 << 20]);
    in_child(|| {
        expect_refusal(&store, 1_000, &["No space left"]);
    });
    std::fs::remove_file(folder.join("filler")).unwrap();
    make_holes();
    let limiter = try_open(&store, 1_000).expect("there is room again");
    let _ = std::fs::write(folder.join("filler"), vec![0; 1 << 20]);
    // Without room for its rows, the first hit would end by a signal.
    assert!((0..500).all(|key| limiter.allow(format!("key-{key}").as_str()).unwrap()));
}

/// A process that has no /proc: files without a name can't be linked, and the boot has no id.
fn no_proc(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let hidden = leave_mounts().and_then(|()| mount_memory(Path::new("/proc"), "size=4k"));
    if let Err(error) = hidden {
        println!("skipped: /proc can't be hidden here ({error})");
        return;
    }
    let store = folder.join("limits");
    let limiter = try_open(&store, 100).expect("a table");
    limiter.add_exempt(tidegate::Match::new([("role", "admin")])).unwrap();
    assert_eq!((0..20).filter(|_| limiter.allow("alice").unwrap()).count(), 10);
    let whole =
        ["changes.log", "changes.log.lock", "default.changes", "default.lock", "default.table"];
    assert_eq!(names(&store), whole);
    drop(limiter);
    let again = try_open(&store, 100).expect("a table");
    assert!(!again.allow("alice").unwrap(), "the counts go on");
}

fn no_descriptors(folder: &Path) {
    // From none to enough: every call on the way fails once.
    for spare in 0..8 {
        let folder = folder.with_extension(spare.to_string());
        in_child(|| {
            // The next that would be given out.
            let next = std::fs::File::open("/dev/null").unwrap().as_raw_fd() as u64;
            limit_descriptors(next + spare);
            match try_open(&folder, 100) {
                Ok(limiter) => assert!(limiter.allow("alice").unwrap() && spare > 0),
                Err(error) => {
                    assert_eq!(error.code(), Code::Store, "{error}");
                    assert!(error.to_string().contains("Too many open files"), "{error}");
                    println!("{spare} spare: {error}");
                }
            }
        });
        let left = names(&folder);
        assert!(left.is_empty() || left == ["default.table"], "{spare} spare: {left:?}");
        assert_eq!(try_open(&folder, 100).map(|l| l.allow("bob").unwrap()).ok(), Some(true));
    }
}
