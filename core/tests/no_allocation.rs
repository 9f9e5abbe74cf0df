//! The hit path allocates nothing, on known and new keys, allowed or denied, full table or not.
//!
//! A counting allocator sees every allocation of the calling thread. That there are no locks is
//! seen by reading: no source file of the engine names a lock of `std::sync`. (The clock has two
//! `LazyLock`s, which are locks for the first reading of a process only, and one atomic load after
//! that.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use tidegate_core::{
    Answer, Clock, Count, Engine, Limit, LimitStatuses, Limits, OnFull, Options, Time, hit_together,
};

/// The system's allocator, with a count for each thread, so that tests may run side by side.
struct Counting;

thread_local! {
    // Constant and without a destructor: to touch it allocates nothing.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's duties are those of this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MINUTE: Duration = Duration::from_secs(60);

/// How often `act` allocated on this thread.
fn allocations(act: impl FnOnce()) -> u64 {
    let before = ALLOCATED.get();
    act();
    ALLOCATED.get() - before
}

fn engine(limits: &[Limit], on_full: OnFull, clock: Clock) -> Engine {
    let options = Options { capacity: 64, on_full, clock, seed: None };
    let engine = Engine::new(Limits::new(limits).unwrap(), options).unwrap();
    // The first count of a thread claims its line, and the first reading sets the clock up.
    let _ = engine.allow(b"warm");
    engine
}

fn key(number: usize) -> [u8; 24] {
    let mut name = *b"sender-00000000-telegram";
    name[7..15].copy_from_slice(&(number as u64).to_be_bytes());
    name
}

#[test]
fn the_counting_allocator_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 1);
    assert_eq!(allocations(|| ()), 0);
}

/// Every operation on `number`, often enough that some are denied.
fn every_operation(engine: &Engine, number: usize) {
    let name = key(number);
    for _ in 0..8 {
        _ = engine.allow(&name);
        _ = engine.hit(&name, 2);
    }
    _ = engine.hit(&name, 0);
    _ = engine.hit(&name, 1_000_000_000_000);
    _ = engine.peek(&name, 1);
    _ = engine.record(&name, 3);
    engine.refund(&name, 2);
    if let Some(permit) = engine.hit(&name, 1).permit {
        let renewed = engine.renew(&name, permit);
        assert!(renewed.is_none_or(|permit| engine.release(&name, permit)));
    }
}

/// All shapes of rules.
fn rules() -> Vec<Vec<Limit>> {
    let (bucket, window) = (Limit::bucket(5, MINUTE), Limit::window(4, MINUTE));
    let others = [Limit::fixed(5, MINUTE), Limit::counter(5, MINUTE)];
    vec![
        vec![bucket],
        vec![window],
        others.to_vec(),
        vec![window, Limit::window(20, 10 * MINUTE), Limit::window(200, 60 * MINUTE)],
        vec![bucket, window, others[0], others[1]],
        vec![bucket, Limit::concurrent(3, MINUTE)],
        vec![Limit::bucket(0, MINUTE)],
    ]
}

#[test]
fn no_operation_allocates_on_known_or_new_keys_or_in_a_full_table() {
    for limits in rules() {
        for on_full in [OnFull::Overflow, OnFull::Deny, OnFull::Allow] {
            for clock in [Clock::System, Clock::manual(1_000_000).0] {
                let engine = engine(&limits, on_full, clock);
                // Ten times the capacity: from new keys in an empty table to a full one.
                let count = allocations(|| (0..640).for_each(|n| every_operation(&engine, n)));
                assert_eq!(count, 0, "{limits:?}, {on_full:?}: new keys");
                let count = allocations(|| (0..64).for_each(|n| every_operation(&engine, n)));
                assert_eq!(count, 0, "{limits:?}, {on_full:?}: known keys");
                let full = engine.total(Count::Full);
                let never = limits[0].max == 0;
                assert!(never || full > 0, "{limits:?}: the table did get full");
            }
        }
    }
}

#[test]
fn keys_that_take_over_idle_rows_allocate_nothing() {
    for limits in rules() {
        let (clock, hand) = Clock::manual(1_000_000);
        let engine = engine(&limits, OnFull::Deny, clock);
        let count = allocations(|| {
            for wave in 0..20 {
                (0..64).for_each(|n| _ = engine.allow(&key(wave * 64 + n)));
                hand.advance(130 * MINUTE);
            }
            engine.reset(&key(0));
            _ = engine.prune();
            engine.reset_all();
        });
        assert_eq!(count, 0, "{limits:?}");
        assert!(limits[0].max == 0 || engine.total(Count::Evicted) > 0, "{limits:?}");
    }
}

#[test]
fn batches_allocate_nothing() {
    for limits in rules() {
        let engine = engine(&limits, OnFull::Overflow, Clock::System);
        let keys: Vec<[u8; 24]> = (0..500).map(key).collect();
        let mut out = vec![0; 500];
        let count = allocations(|| {
            (0..3).for_each(|_| engine.allow_many(&keys, &mut out));
        });
        assert_eq!(count, 0, "{limits:?}");
    }
}

#[test]
fn hits_on_parts_and_on_keys_of_parts_allocate_nothing() {
    let clock = Clock::System;
    let each = engine(&[Limit::bucket(5, MINUTE)], OnFull::Overflow, clock.clone());
    let all = engine(&[Limit::window(100, MINUTE)], OnFull::Overflow, clock.clone());
    let count = allocations(|| {
        for number in 0..500 {
            let hash = each.hash_parts(&[b"telegram", b"bot", &key(number)]);
            let parts = [each.part(hash), all.part(all.hash(b""))];
            let mut statuses = [LimitStatuses::default(); 2];
            let answer =
                hit_together(&parts, &[1; 2], &mut Time::read(&clock), &mut statuses).answer;
            assert!(matches!(answer, Answer::Allowed | Answer::Denied));
            _ = each.allow_hashed(hash);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn every_thread_hits_without_allocating() {
    let engine = engine(&[Limit::bucket(5, MINUTE)], OnFull::Overflow, Clock::System);
    let run = || {
        let _ = engine.allow(b"warm");
        allocations(|| (0..10_000).for_each(|n| _ = engine.allow(&key(n % 100))))
    };
    let counts = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(counts, [0; 4]);
}

/// The sources in a folder and below it. Models are no part of the engine.
fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true if path.ends_with("src/tests") => Vec::new(),
        true => sources(&path),
        false => vec![path],
    };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

#[test]
fn i14_no_source_file_of_the_engine_names_a_lock() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let all = sources(folder.as_ref());
    for path in &all {
        let source = std::fs::read_to_string(path).unwrap();
        for lock in ["Mutex", "RwLock", "Condvar", "parking_lot", "thread::park"] {
            assert!(!source.contains(lock), "I14: {} names {lock}", path.display());
        }
    }
    assert!(all.len() >= 25, "only {} files in {folder}", all.len());
}
