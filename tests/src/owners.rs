//! Folders of several users: which are refused, and the owner of a file that root or a group wrote.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{Code, Error, LimitPatch, Limiter, LimiterBuilder, Target};

use crate::place::{names, open_with};
use crate::system::{Ended, become_user, fork, is_root, set_umask, wait_within};

/// A user, and another user of its group.
const BOT: u32 = 65_534;
const COLLEAGUE: u32 = 65_533;
const STRANGER: u32 = 65_532;
/// A group of the first two.
const TEAM: u32 = 54_321;

fn rules() -> Value {
    json!({ "default": { "limits": "10/365d", "capacity": 100 } })
}

fn try_open(folder: &Path, options: LimiterBuilder) -> Result<Limiter, Error> {
    open_with(folder, rules(), options)
}

fn plain() -> LimiterBuilder {
    Limiter::builder()
}

fn shared() -> LimiterBuilder {
    Limiter::builder().group(true)
}

fn as_owner() -> LimiterBuilder {
    Limiter::builder().as_owner(true)
}

fn expect_refusal(folder: &Path, options: LimiterBuilder, words: &str) {
    let error = try_open(folder, options).map(drop).expect_err("it should be refused");
    assert_eq!(error.code(), Code::Store, "{error}");
    assert!(error.to_string().contains(words), "{words}: {error}");
    println!("{error}");
}

/// In a child: another user does not become root again.
fn as_user(user: u32, group: u32, work: impl FnOnce()) {
    let child = fork(|| {
        become_user(user, group);
        work();
        0
    });
    let ended = wait_within(child, Duration::from_secs(20));
    assert_eq!(ended, Some(Ended::Left(0)), "as user {user}");
}

/// A place that every user can reach, with a folder of the bot's.
fn home(base: &Path) -> PathBuf {
    std::fs::create_dir_all(base).unwrap();
    std::fs::set_permissions(base, PermissionsExt::from_mode(0o755)).unwrap();
    let home = base.join("bot");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(BOT), Some(BOT)).unwrap();
    home
}

fn set_vip(limiter: &Limiter) {
    let patch = vec![("10/365d".to_string(), LimitPatch::max(50))];
    limiter.set_override(Target::key("vip"), patch).unwrap();
}

/// Owner, group and mode of a file.
fn rights(path: &Path) -> (u32, u32, u32) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    (meta.uid(), meta.gid(), meta.mode() & 0o777)
}

/// Runs one case.
///
/// # Panics
/// If a user may do what it must not, or must do what it may not.
pub fn run(base: &Path, case: &str) {
    if !is_root() {
        println!("skipped: {case}: only root can become another user");
        return;
    }
    match case {
        "root" => root_in_a_users_folder(base),
        "links" => links_in_a_users_folder(base),
        "others" => files_of_others(base),
        "group" => a_group(base),
        _ => panic!("no such case: {case}"),
    }
}

fn root_in_a_users_folder(base: &Path) {
    let store = home(base).join("limits");
    as_user(BOT, BOT, || assert!(try_open(&store, plain()).unwrap().allow("vip").unwrap()));
    expect_refusal(&store, plain(), "as_owner");
    expect_refusal(&store, shared(), "as_owner");
    let root = try_open(&store, as_owner()).expect("root may, if it says so");
    set_vip(&root);
    assert!(root.allow("vip").unwrap());
    drop(root);
    // Root makes what is missing, too.
    std::fs::remove_file(store.join("default.table")).unwrap();
    drop(try_open(&store, as_owner()).expect("a new table"));
    for name in names(&store) {
        assert_eq!(rights(&store.join(&name)), (BOT, BOT, 0o600), "{name}");
    }
    let whole =
        ["changes.log", "changes.log.lock", "default.changes", "default.lock", "default.table"];
    assert_eq!(names(&store), whole);
    as_user(BOT, BOT, || {
        let bot = try_open(&store, plain()).expect("its own folder still");
        assert_eq!(bot.hit("vip", 1).unwrap().limit, Some(50), "it sees what root set");
        assert!(bot.clear_override(Target::key("vip")).unwrap() > 0);
    });
    assert_eq!(Limiter::inspect(&store).unwrap().len(), 1, "root may look");
    // To a process that is not root's it gives nothing.
    as_user(STRANGER, STRANGER, || expect_refusal(&store, as_owner(), "Permission denied"));
}

fn links_in_a_users_folder(base: &Path) {
    let (home, secret) = (home(base), base.join("secret"));
    let store = home.join("limits");
    as_user(BOT, BOT, || drop(try_open(&store, plain()).unwrap()));
    std::fs::write(&secret, "root's").unwrap();
    let links = [home.join("link"), base.join("way")];
    as_user(BOT, BOT, || symlink(&store, home.join("link")).unwrap());
    symlink(&home, base.join("way")).unwrap();
    expect_refusal(&links[0], as_owner(), "symbolic link");
    expect_refusal(&links[1].join("limits"), as_owner(), "a part of its path is a symbolic link");
    // Nor does a link lead root to a folder of its own, or have it make one.
    let roots = base.join("roots");
    drop(try_open(&roots.join("limits"), plain()).unwrap());
    as_user(BOT, BOT, || symlink(&roots, home.join("app")).unwrap());
    for name in ["limits", "new"] {
        let words = if name == "new" { "its owner has to make it" } else { "symbolic link" };
        expect_refusal(&home.join("app").join(name), as_owner(), words);
    }
    assert_eq!(names(&roots), ["limits"]);
    for name in ["default.changes", "default.lock", "default.changes.tmp"] {
        as_user(BOT, BOT, || {
            let _ = std::fs::remove_file(store.join(name));
            symlink(&secret, store.join(name)).unwrap();
        });
        if name == "default.changes" {
            expect_refusal(&store, as_owner(), "symbolic link");
        } else {
            let root = try_open(&store, as_owner()).expect("the table is sound");
            let _ = root.set_exempts(Vec::new());
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "root's", "{name}");
        assert_eq!(rights(&secret).0, 0, "{name}");
        as_user(BOT, BOT, || std::fs::remove_file(store.join(name)).unwrap());
    }
}

fn files_of_others(base: &Path) {
    let home = home(base);
    let store = home.join("limits");
    let bot = |work: &dyn Fn()| as_user(BOT, BOT, work);
    bot(&|| set_vip(&try_open(&store, plain()).unwrap()));
    // Each file is believed only if it is the bot's.
    for name in ["default.changes", "default.table"] {
        chown(store.join(name), Some(STRANGER), Some(BOT)).unwrap();
        std::fs::set_permissions(store.join(name), PermissionsExt::from_mode(0o666)).unwrap();
        bot(&|| expect_refusal(&store, plain(), "others may write it (mode 666)"));
        std::fs::set_permissions(store.join(name), PermissionsExt::from_mode(0o644)).unwrap();
        let word = if name == "default.table" { "Permission denied" } else { "Permission" };
        bot(&|| expect_refusal(&store, plain(), word));
        expect_refusal(&store, as_owner(), "it belongs to user 65532, not to 65534");
        chown(store.join(name), Some(BOT), Some(BOT)).unwrap();
        std::fs::set_permissions(store.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    }
    bot(&|| assert_eq!(try_open(&store, plain()).unwrap().overrides().unwrap().len(), 1));
    // So is the folder, also if others may read it.
    for owner in [0, STRANGER] {
        chown(&store, Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(&store, PermissionsExt::from_mode(0o755)).unwrap();
        let words = format!("this folder belongs to user {owner}, not to 65534");
        bot(&|| expect_refusal(&store, plain(), &words));
    }
}

fn a_group(base: &Path) {
    drop(home(base));
    let team = base.join("team");
    std::fs::create_dir(&team).unwrap();
    chown(&team, Some(0), Some(TEAM)).unwrap();
    std::fs::set_permissions(&team, PermissionsExt::from_mode(0o770)).unwrap();
    let store = team.join("limits");
    as_user(BOT, TEAM, || {
        // A mask that would keep the group out.
        set_umask(0o077);
        let bot = try_open(&store, shared()).unwrap();
        set_vip(&bot);
        assert_eq!((0..4).filter(|_| bot.allow("alice").unwrap()).count(), 4);
        assert!(!bot.audit().unwrap().iter().any(|finding| finding.id == "store_exposed"));
    });
    assert_eq!(rights(&store), (BOT, TEAM, 0o770));
    as_user(COLLEAGUE, TEAM, || {
        set_umask(0o077);
        let colleague = try_open(&store, shared()).expect("they share it");
        assert_eq!((0..20).filter(|_| colleague.allow("alice").unwrap()).count(), 6);
        assert_eq!(colleague.hit("vip", 1).unwrap().limit, Some(50));
        assert!(colleague.clear_override(Target::key("vip")).unwrap() > 0);
        expect_refusal(&store, plain(), "`group: true`");
    });
    let owners: Vec<_> = names(&store).iter().map(|name| rights(&store.join(name))).collect();
    // The trail and the locks are the first's; the text of changes is whose change was the last.
    let (first, last) = ((BOT, TEAM, 0o660), (COLLEAGUE, TEAM, 0o660));
    assert_eq!(owners, [first, first, last, first, first]);
    as_user(BOT, TEAM, || {
        let bot = try_open(&store, shared()).expect("still, after the colleague wrote");
        assert!(bot.overrides().unwrap().is_empty());
    });
    as_user(STRANGER, STRANGER, || expect_refusal(&store, shared(), "Permission denied"));
    // Folders above it that had to be made let the group pass, too, and no others.
    let deep = team.join("a/b/limits");
    as_user(BOT, TEAM, || {
        set_umask(0o077);
        drop(try_open(&deep, shared()).unwrap());
    });
    assert_eq!(rights(&team.join("a")), (BOT, TEAM, 0o750));
    assert_eq!(rights(&team.join("a/b")), (BOT, TEAM, 0o750));
    as_user(COLLEAGUE, TEAM, || assert!(try_open(&deep, shared()).unwrap().allow("x").unwrap()));
    // Root keeps it the group's.
    set_vip(&try_open(&store, shared().as_owner(true)).expect("root as the owner"));
    as_user(COLLEAGUE, TEAM, || {
        assert_eq!(try_open(&store, shared()).unwrap().overrides().unwrap().len(), 1)
    });
    // The owner may have left the group.
    as_user(BOT, BOT, || {
        expect_refusal(&store.with_extension("none"), shared(), "Permission denied")
    });
    std::fs::remove_file(store.join("default.table")).unwrap();
    chown(store.parent().unwrap(), Some(BOT), Some(TEAM)).unwrap();
    as_user(BOT, BOT, || {
        expect_refusal(&store, shared(), "may not give files to the folder's group")
    });
    // A group that others are in as well.
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o777)).unwrap();
    as_user(BOT, TEAM, || expect_refusal(&store, shared(), "others may write this folder"));
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o755)).unwrap();
    as_user(COLLEAGUE, TEAM, || expect_refusal(&store, shared(), "make it 770"));
}
