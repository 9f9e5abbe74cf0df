use super::*;
use crate::clock::host_lead;
use crate::clock::shared::{ClockWord, Seen};
use crate::storage::host::REMOTE;
use crate::storage::layout::SHAPE_AT;
use crate::table::hash::Hasher;

#[test]
fn what_was_seen_last_is_never_before_a_reading() {
    for now in [0, 1, (1 << 30) - 1, 1 << 30, 123_456_789_012_345, u64::MAX] {
        assert!(Seen::of(now).latest() >= now);
        assert!(Seen::of(now).latest() - now < 1 << Seen::SHIFT);
    }
    assert_eq!(Seen(Seen::of(5 << 30).0 ^ 1).latest(), 0, "damaged");
    assert!(Seen::of(2 << 30).0 > Seen::of((2 << 30) - 1).0, "later moments are larger words");
}

/// Else a busy rule that is always answered by the coarse time would not have noted how late it is.
#[test]
fn coarse_time_is_not_enough_when_the_time_is_to_be_noted() {
    let path = std::env::temp_dir().join(format!("tidegate-noted-{}", std::process::id()));
    let file = TableFile::create(&path, "", 64, false).unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    let Clock::Shared(clock) = file.clock() else { panic!("a file has a clock of its own") };
    let own = clock.now() - clock.ahead();
    assert_eq!(clock.coarse_now(own), Some(own + clock.ahead()));
    assert_eq!(clock.coarse_now(own + (2 << Seen::SHIFT)), None);
}

use crate::storage::directory::steps::{self, SyncStep};

fn temporary_place(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()))
}

/// A loss of power keeps what was synced, and the name if the folder was.
#[test]
fn a_table_is_whole_on_the_disk_before_it_has_its_name() {
    let path = temporary_place("synced");
    let (made, steps) = steps::of(|| TableFile::create(&path, "shape", 64, false).unwrap());
    assert!(made.is_some());
    drop(made);
    let SyncStep::Synced(synced) = &steps[0] else { panic!("{:?}", steps[0]) };
    let SyncStep::Named(named) = &steps[1] else { panic!("{:?}", steps[1]) };
    assert!(synced == named, "nothing is written between the sync and the name");
    assert_eq!(steps[2..], [SyncStep::FolderSynced]);
    // The file is cut back to what was synced.
    std::fs::write(&path, synced).unwrap();
    let file = TableFile::open(&path).unwrap().unwrap();
    assert_eq!(file.shape(), "shape");
    std::fs::remove_file(&path).unwrap();
    assert!(file.is_retired(), "it has no name any more");
}

/// It still has a name then, but not the one by which others open it.
#[test]
fn a_table_that_was_moved_away_or_has_a_second_name_is_retired() {
    let path = temporary_place("moved");
    let (second, away) = (path.with_extension("second"), path.with_extension("away"));
    let create = || TableFile::create(&path, "", 64, false).unwrap().unwrap();
    let file = create();
    std::fs::hard_link(&path, &second).unwrap();
    assert!(!file.is_retired(), "a second name does no harm");
    std::fs::remove_file(&path).unwrap();
    assert!(file.is_retired(), "the second name is not the one that others open");
    let file = create();
    assert!(!file.is_retired());
    std::fs::rename(&path, &away).unwrap();
    assert!(file.is_retired(), "moved away");
    let next = create();
    assert!(file.is_retired() && !next.is_retired(), "its name is another's");
    std::fs::rename(&away, &path).unwrap();
    assert!(!file.is_retired() && next.is_retired(), "and back");
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&second).unwrap();
}

#[test]
fn a_file_without_a_header_says_so_and_is_not_taken_for_anothers() {
    let path = temporary_place("zeroed");
    for bytes in [0, SHAPE_AT, 3 * PAGE] {
        let _ = std::fs::remove_file(&path);
        let file = crate::storage::directory::tests::private_file(&path);
        file.set_len(bytes as u64).unwrap();
        let error = TableFile::open(&path).unwrap_err();
        assert!(matches!(error, FileError::Unreadable(_)), "{error}");
        assert!(error.to_string().contains("recreate"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// A file of this process's own user may say anything.
#[test]
fn a_description_that_is_too_long_is_neither_written_nor_read() {
    let path = temporary_place("long-shape");
    let shape = |bytes: u64| "x".repeat(bytes as usize);
    let error = TableFile::create(&path, &shape(MOST_SHAPE + 1), 64, false).unwrap_err();
    assert!(error.to_string().contains("shorter names"), "{error}");
    assert!(!path.exists());
    let file = TableFile::create(&path, &shape(MOST_SHAPE), 64, false).unwrap().unwrap();
    let (directory, name) = place_of(&path).unwrap();
    let error = file.begin_move(&directory, name, &shape(MOST_SHAPE + 1), 64).unwrap_err();
    assert!(error.to_string().contains("shorter names"), "{error}");
    drop(file);
    assert_eq!(TableFile::open(&path).unwrap().unwrap().shape().len() as u64, MOST_SHAPE);
    let mut header = Header::new("", 1 << 20, false, &Host::here());
    (header.words[at::SHAPE], header.shape) = (MOST_SHAPE + 1, shape(MOST_SHAPE + 1));
    header.words[at::CHECKSUM] = header.checksum();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(header.words[at::FILE]).unwrap();
    file.write_all_at(&header.bytes(), 0).unwrap();
    let error = TableFile::open(&path).unwrap_err();
    assert!(matches!(error, FileError::Unreadable(_)), "{error}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_look_at_a_table_changes_nothing() {
    let path = temporary_place("looked-at");
    let here = Host::here();
    drop(TableFile::create_on(&path, "", 1 << 16, false, &here).unwrap());
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    // A copy with holes, which is looked at after a reboot while one process has it alone.
    file.set_len(2 * PAGE as u64).and_then(|()| file.set_len(length)).unwrap();
    assert_eq!(try_lock(&file, FlockOperation::NonBlockingLockExclusive), Lock::Granted);
    let state = || (std::fs::read(&path).unwrap(), file.metadata().unwrap().blocks());
    let before = state();
    let next = Host { boot: here.boot ^ 1, wall: here.wall + (1 << 42), ..here };
    let (directory, name) = place_of(&path).unwrap();
    let table = TableFile::inspect_in(&directory, name, &next).unwrap().unwrap();
    assert_eq!(table.shape(), "");
    assert!(before == state());
    assert!(before.1 * 512 < length, "there are holes");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_retired_table_tells_all_its_users() {
    let path = temporary_place("retired");
    let one = TableFile::create(&path, "", 64, false).unwrap().unwrap();
    let other = TableFile::open(&path).unwrap().unwrap();
    let before = other.generation().get();
    assert!(!one.is_retired() && !other.is_retired());
    one.retire();
    assert!(other.is_retired());
    assert!(other.generation().get() > before, "a hit compares it");
    std::fs::remove_file(&path).unwrap();
}

/// Two boots whose ids are alike in the bits that the clock word has.
#[test]
fn boots_are_told_apart_by_the_whole_id() {
    let path = temporary_place("boots");
    let here = Host::here();
    drop(TableFile::create_on(&path, "", 64, false, &here).unwrap());
    let hour = 3_600_000_000_000;
    for (bit, since) in [(16, 1), (63, 2), (64, 3), (127, 4)] {
        let boot = here.boot ^ 1 << bit;
        let host = Host { boot, wall: here.wall + since * hour, ..here };
        let file = TableFile::open_on(&path, &host).unwrap().unwrap();
        let now = file.clock().now();
        assert!(now >= here.now + since * hour, "bit {bit}: the clock moved on");
        drop(TableFile::open_on(&path, &Host { wall: host.wall + hour, ..host }).unwrap());
        assert!(file.clock().now() < now + hour, "bit {bit}: once for each boot");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_clock_of_a_file_of_format_1_goes_on() {
    let path = temporary_place("format-1");
    std::fs::create_dir_all(&path).unwrap();
    let (directory, here) = (Directory::unchecked(&path).unwrap(), Host::here());
    let hour = 3_600_000_000_000;
    let mut header = Header::new("old", 64, false, &here);
    header.words[at::FORMAT] = Format1Header::FORMAT;
    header.words[at::PROBE] = Hasher::portable(header.words[at::SEED]).one(b"tidegate probe").0;
    header.words[at::CLOCK] = ClockWord::new(5 * hour, here.boot).0;
    header.words[at::GENERATION] = 7;
    header.words[at::CHECKSUM] = header.checksum();
    let file = crate::storage::directory::tests::private_file(&path.join("a.table"));
    file.set_len(header.words[at::FILE]).unwrap();
    file.write_all_at(&header.bytes(), 0).unwrap();
    assert!(TableFile::open_in(&directory, "a.table", &here).is_err(), "not as it is");
    for (boot, passed) in [(here.boot, 0), (here.boot ^ 1, 9)] {
        let host = Host { boot, wall: here.wall + passed * hour, ..here };
        let old = crate::Format1::open_in(&directory, "a.table", &host).unwrap().unwrap();
        let new = old.begin_move(&directory, "a.table", "new", 64, &host).unwrap();
        let now = new.file().clock().now();
        let due = here.now + hour * passed.max(5);
        assert!((due..due + hour / 10).contains(&now), "{passed} hours: {now}, not {due}");
        assert_eq!(new.file().generation().get(), 7);
    }
    let other = Host { namespace: here.namespace ^ 1, ..here };
    assert!(crate::Format1::open_in(&directory, "a.table", &other).is_err());
    assert!(crate::Format1::open_in(&directory, "b.table", &here).unwrap().is_none());
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn without_a_boot_id_time_goes_on_all_the_same() {
    let path = temporary_place("no-boot-id");
    let here = Host::here();
    let late = Host { boot: 0, now: here.now + 3_600_000_000_000, ..here };
    drop(TableFile::create_on(&path, "", 64, false, &late).unwrap());
    let offset = || {
        let file = TableFile::open_on(&path, &Host { boot: 0, ..here }).unwrap().unwrap();
        let Clock::Shared(clock) = file.clock() else { panic!("a file has a clock of its own") };
        clock.ahead() - host_lead()
    };
    let first = offset();
    assert!(here.now + first >= late.now, "after a reboot it is not behind what was seen");
    assert_eq!(offset(), first, "and it moves on once");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn filesystems_of_other_hosts_are_known_by_their_numbers() {
    for kind in [0x6969, 0x6573_5546, 0x0bd0_0bd0, 0x4750_4653, 0x786f_4256, 0x0102_1997] {
        let host = Host { filesystem: Some(kind), ..Host::here() };
        let error = TableFile::create_on(&temporary_place("remote"), "", 64, false, &host);
        let message = error.unwrap_err().to_string();
        assert!(message.contains("local disk"), "{kind:x}: {message}");
    }
    // ext4, xfs, btrfs, tmpfs, overlayfs, zfs
    for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
        assert!(REMOTE.iter().all(|(number, _)| *number != kind), "{kind:x}");
    }
}

#[test]
fn an_offset_that_is_too_long_is_the_longest() {
    let longest = ClockWord::new(u64::MAX, 7).offset_nanos();
    let years = |nanos: u64| nanos / (365 * 86_400 * 1_000_000_000);
    assert_eq!(years(longest), 34);
    assert!(ClockWord::new(longest + 1, 7).offset_nanos() == longest, "it does not wrap");
    assert_eq!(ClockWord::new(5_000_001, 7).offset_nanos(), 6_000_000, "rounded up");
}
