//! I9 across reboots: time never goes back, and at most one burst is added.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use tidegate_core::{Engine, FileError, FileLayout, Host, Limit, Limits, Options, TableFile};
use tidegate_tests::place::Place;

const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
const HOUR: u64 = 3_600 * 1_000_000_000;
const LIMIT: u64 = 10;

fn all_limits() -> Vec<Limit> {
    let hour = Duration::from_secs(3600);
    vec![
        Limit::bucket(LIMIT, hour),
        Limit::window(LIMIT, hour),
        Limit::counter(LIMIT, hour),
        Limit::fixed(LIMIT, hour),
    ]
}

/// The host after so many reboots, with a wall clock that is off by so much.
fn host(boots: u64, off: i64) -> Host {
    let here = Host::here();
    Host {
        boot: here.boot.wrapping_add(u128::from(boots)),
        wall: here.wall.saturating_add_signed(off),
        ..here
    }
}

fn engine(file: &TableFile, limit: Limit) -> Engine {
    let options = Options { capacity: 8, clock: file.clock(), ..Options::default() };
    let limits = Limits::new(&[limit]).unwrap();
    let layout = FileLayout { engines: vec![(limits.clone(), 8)], ledgers: Vec::new() };
    file.tables(&layout).unwrap().engine(0, limits, options).unwrap()
}

fn open(path: &Path, host: &Host) -> TableFile {
    match TableFile::open_on(path, host).unwrap() {
        Some(file) => file,
        None => TableFile::create_on(path, "test", 4096, false, host).unwrap().unwrap(),
    }
}

fn granted(engine: &Engine) -> u64 {
    (0..4 * LIMIT).filter(|_| engine.allow(b"alice")).count() as u64
}

/// Spends all, reboots with a wall clock that is off by so much, and says what is granted then.
fn after_reboots(limit: Limit, offs: &[i64]) -> Vec<u64> {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    let mut before = 0;
    let mut each = Vec::new();
    for (boots, &off) in offs.iter().enumerate() {
        let file = open(&path, &host(boots as u64, off));
        let now = file.clock().now();
        assert!(now >= before, "time went back by {} ns at reboot {boots}", before - now);
        each.push(granted(&engine(&file, limit)));
        before = file.clock().now();
    }
    each
}

#[test]
fn a_reboot_adds_at_most_one_burst_and_time_never_goes_back() {
    for limit in all_limits() {
        let year = YEAR as i64;
        assert_eq!(after_reboots(limit, &[0, 0, 0]), [10, 0, 0], "{limit:?}: the same time");
        assert_eq!(after_reboots(limit, &[0, year, year]), [10, 10, 0], "{limit:?}: forward");
        assert_eq!(after_reboots(limit, &[0, -year, -year, 0]), [10, 0, 0, 0], "{limit:?}: back");
        assert_eq!(after_reboots(limit, &[0, year, 0, 0]), [10, 10, 0, 0], "{limit:?}: and back");
        let hour = HOUR as i64 + 1_000_000_000;
        assert_eq!(after_reboots(limit, &[0, 2 * hour, 0]), [10, 10, 0], "{limit:?}: two hours");
    }
}

#[test]
fn a_wall_clock_that_is_off_by_years_grants_one_burst_and_keeps_the_order_of_time() {
    for limit in all_limits() {
        for tenths in [1, 5, 44, 45, 88, 89, 90, 300, 347, 348, 349, 400, 500, 2000] {
            let off = (YEAR / 10 * tenths) as i64;
            let each = after_reboots(limit, &[0, off, 0, off, 0]);
            assert!(
                each[1..].iter().all(|&n| n <= LIMIT),
                "{limit:?}, {tenths} / 10 years: {each:?}"
            );
            assert_eq!(each[2..], [0; 3], "{limit:?}, {tenths} / 10 years: {each:?}");
        }
    }
}

#[test]
fn a_wall_clock_before_1970_or_at_its_end_is_survived() {
    for limit in all_limits() {
        let each = after_reboots(limit, &[0, i64::MIN, i64::MAX, i64::MIN, 0]);
        assert_eq!((each[0], each[1]), (LIMIT, 0), "{limit:?}");
        assert!(each.iter().sum::<u64>() <= 2 * LIMIT, "{limit:?}: {each:?}");
    }
}

/// How much time passes in a file across a reboot, given what the wall clock says before and after.
fn time_across_reboot(before: u64, after: u64) -> u64 {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    let here = Host::here();
    let then = open(&path, &Host { wall: before, ..here }).clock().now();
    let next = Host { boot: here.boot.wrapping_add(1), wall: after, ..here };
    open(&path, &next).clock().now() - then
}

#[test]
fn i9_a_wall_clock_that_jumps_by_more_than_ten_years_is_not_believed() {
    let (second, wall) = (1_000_000_000, Host::here().wall);
    for years in [11, 34, 35, 56, 500] {
        let passed = time_across_reboot(wall, wall.saturating_add(years * YEAR));
        assert!(passed < 60 * second, "{years} years: {passed} ns");
    }
    for before in [0, 5, YEAR, 40 * YEAR] {
        let passed = time_across_reboot(before, wall);
        assert!(passed < 60 * second, "made while it said {before} ns: {passed} ns");
    }
    for years in [1, 5, 9] {
        let passed = time_across_reboot(wall, wall + years * YEAR);
        assert!(passed.abs_diff(years * YEAR) < 60 * second, "{years} years are: {passed} ns");
    }
}

#[test]
fn i9_a_cooldown_in_a_file_made_in_1970_lasts_its_own_time_after_the_next_boot() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    let here = Host::here();
    let file = open(&path, &Host { wall: 0, ..here });
    let noted = file.clock().now();
    drop(file);
    let next = Host { boot: here.boot.wrapping_add(1), ..here };
    let now = open(&path, &next).clock().now();
    assert!(now >= noted, "what was noted before is not ahead of the clock");
    assert!(now - noted < 60_000_000_000, "as long ago as it is");
}

#[test]
fn i9_a_clock_that_is_not_believed_never_goes_back_either() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    let here = Host::here();
    let mut before = 0;
    for (boots, years) in [0, 9, 18, 27, 60, 0, 31, 0].into_iter().enumerate() {
        let wall = here.wall + years * YEAR;
        let host = Host { boot: here.boot.wrapping_add(boots as u128), wall, ..here };
        let now = open(&path, &host).clock().now();
        assert!(now >= before, "boot {boots}: back by {} ns", before - now);
        let most = here.now + 31 * YEAR + 600_000_000_000;
        assert!(now < most, "boot {boots}: {} years", now / YEAR);
        before = now;
    }
    assert!(before > 30 * YEAR, "less than ten years at a time are believed");
}

#[test]
fn fast_limits_whose_stamps_wrap_grant_one_burst_after_any_sleep() {
    let limit = Limit::bucket(1_000, Duration::from_millis(1));
    let day = (YEAR / 365) as i64;
    for days in [1, 2, 3, 4, 5, 40, 400] {
        let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
        let path = place.path().join("default.table");
        for (boots, off) in [0, days * day].into_iter().enumerate() {
            let file = open(&path, &host(boots as u64, off));
            let engine = engine(&file, limit);
            let (started, clock) = (file.clock().now(), file.clock());
            let spent = (0..5_000).filter(|_| engine.allow(b"alice")).count() as u64;
            let refilled = (clock.now() - started) / 1_000 + 1;
            assert!(spent <= 1_000 + refilled, "{days} days: {spent} granted, {refilled} refilled");
        }
    }
}

#[test]
fn a_file_of_another_time_namespace_is_refused_with_the_remedy() {
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    drop(open(&path, &Host::here()));
    let here = Host::here();
    let elsewhere = Host { namespace: here.namespace + 1, ..here };
    let refusal = TableFile::open_on(&path, &elsewhere).unwrap_err().to_string();
    assert!(refusal.contains("time namespace") && refusal.contains("share"), "{refusal}");
    assert!(TableFile::open_on(&path, &here).unwrap().is_some(), "and left as it was");
}

#[test]
fn a_network_filesystem_is_refused_with_the_remedy() {
    const NFS: u64 = 0x6969;
    let place = Place::new(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("default.table");
    let there = Host { filesystem: Some(NFS), ..Host::here() };
    let says = |error: FileError| {
        let refusal = error.to_string();
        assert!(refusal.contains("NFS") && refusal.contains("local disk"), "{refusal}");
    };
    says(TableFile::create_on(&path, "", 64, false, &there).unwrap_err());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left behind");
    drop(open(&path, &Host::here()));
    says(TableFile::open_on(&path, &there).unwrap_err());
    assert!(TableFile::open(&path).unwrap().is_some(), "and left as it was");
}
