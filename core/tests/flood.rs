//! More keys than the table has room for, on purpose.
//!
//! * **I10** live keys stay: a full table drops nobody, and an eviction changes no rights
//! * **I12** fixed memory: resident memory does not grow with the number of keys seen

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{
    Answer, Clock, Count, Engine, Limit, LimitStatuses, Limits, ManualClock, OnFull, Options,
    RowRef, Time,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Tests of this file run one at a time: one of them weighs the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_le_bytes()
}

/// A key of the flood, which is none of the others.
fn invented(number: usize) -> [u8; 9] {
    let mut name = [b'!'; 9];
    name[..8].copy_from_slice(&key(number));
    name
}

struct Setup {
    engine: Engine,
    hand: std::sync::Arc<ManualClock>,
}

fn setup(limits: &[Limit], capacity: usize, on_full: OnFull, seed: Option<u64>) -> Setup {
    let (clock, hand) = Clock::manual(1_000_000_000);
    let options = Options { capacity, on_full, clock, seed };
    Setup { engine: Engine::new(Limits::new(limits).unwrap(), options).unwrap(), hand }
}

fn grants(engine: &Engine, name: &[u8], hits: usize) -> usize {
    (0..hits).filter(|_| engine.allow(name)).count()
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Fills the table with keys that have spent all they had, until one finds no place.
fn fill(engine: &Engine) -> usize {
    let full = |number: &usize| {
        let _ = engine.allow(&invented(*number));
        engine.total(Count::Full) > 0
    };
    (0..10 * engine.capacity()).find(full).expect("a table that never gets full")
}

#[test]
fn live_keys_keep_their_counts_in_a_flood_of_ten_times_the_capacity() {
    let _alone = alone();
    for (limit, step, refilled) in [
        // Six seconds bring one token, which is all that a key of the flood had spent.
        (Limit::bucket(10, MINUTE), Duration::from_secs(6), 1),
        // Five seconds, ten times, bring a window nothing: all of its ten were spent at once.
        (Limit::window(10, MINUTE), Duration::from_secs(5), 0),
    ] {
        let Setup { engine, hand } = setup(&[limit], 10_000, OnFull::Overflow, None);
        let live = |hits, due, when: &str| {
            for number in 0..1_000 {
                let granted = grants(&engine, &key(number), hits);
                assert_eq!(granted, due, "I10: {limit:?}: live key {number} {when}");
            }
        };
        live(4, 4, "before the flood");
        for wave in 0..10 {
            (0..10_000).for_each(|n| _ = engine.allow(&invented(wave * 10_000 + n)));
            match wave {
                // The clock has not moved: ten in all, and not one more.
                0 => live(9, 6, "in the first wave"),
                _ => live(3, refilled, "in a later wave"),
            }
            hand.advance(step);
        }
        assert!(engine.total(Count::Evicted) > 0 || engine.total(Count::Full) > 0);
        assert!(engine.len() <= engine.rows(), "I12");
    }
}

#[test]
fn live_keys_keep_their_counts_while_another_thread_floods() {
    let _alone = alone();
    let Setup { engine, .. } = setup(&[Limit::bucket(50, MINUTE)], 10_000, OnFull::Overflow, None);
    (0..1_000).for_each(|number| assert!(engine.allow(&key(number))));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..100_000).for_each(|n| _ = engine.allow(&invented(n))));
        for round in 1..60 {
            for number in 0..1_000 {
                let allowed = engine.allow(&key(number));
                assert_eq!(allowed, round < 50, "I10: live key {number}, hit {round}");
            }
        }
    });
    assert!(engine.total(Count::Full) > 0, "the flood was one");
}

#[cfg(target_os = "linux")]
#[test]
fn resident_memory_does_not_grow_with_the_keys_seen() {
    let _alone = alone();
    // What the process itself may need meanwhile, for a stack or a buffer.
    const ELSE: usize = 1 << 20;
    let before = resident();
    let Setup { engine, hand } =
        setup(&[Limit::bucket(10, MINUTE)], 60_000, OnFull::Overflow, None);
    let mut next = 0;
    let mut wave = |keys: usize| {
        (next..next + keys).for_each(|n| _ = engine.allow(&invented(n)));
        next += keys;
        resident()
    };
    let full = wave(90_000);
    assert!(full - before <= engine.bytes() + ELSE, "I12: {full} after {before}");
    for _ in 0..10 {
        hand.advance(Duration::from_secs(6));
        let now = wave(60_000);
        assert!(
            now <= full + ELSE,
            "I12: {now} bytes after {full}, with {} stated",
            engine.bytes()
        );
    }
    assert_eq!(
        engine.bytes(),
        setup(&[Limit::bucket(10, MINUTE)], 60_000, OnFull::Overflow, None).engine.bytes()
    );
}

/// `capacity` random keys all find a place, and all stay live.
fn check_capacity(limits: &[Limit], capacity: usize, seed: Option<u64>) {
    let Setup { engine, .. } = setup(limits, capacity, OnFull::Deny, seed);
    let allowed = (0..capacity).filter(|&n| engine.allow(&key(n))).count();
    assert_eq!(allowed, capacity, "I10: seed {seed:?}: refused below the stated capacity");
    assert_eq!(engine.total(Count::Full), 0, "I10: seed {seed:?}");
    assert_eq!((engine.len(), engine.capacity()), (capacity, capacity));
    let again = (0..capacity).filter(|&n| engine.allow(&key(n))).count();
    assert_eq!(again, 0, "I10: seed {seed:?}: a live key was dropped");
}

#[test]
fn no_key_is_refused_below_a_capacity_of_a_thousand() {
    let _alone = alone();
    // One unit an hour, and the clock stands still: every key is spent, so nothing is evicted.
    let (bucket, window) = (Limit::bucket(1, HOUR), Limit::window(1, HOUR));
    (0..200).for_each(|seed| check_capacity(&[bucket], 1_000, Some(seed)));
    (0..20).for_each(|_| check_capacity(&[bucket], 1_000, None));
    for limits in [&[window][..], &[bucket, window], &[bucket, Limit::fixed(1, HOUR)]] {
        (0..20).for_each(|seed| check_capacity(limits, 1_000, Some(seed)));
    }
    // Tables in which a row may be anywhere.
    (1..100).for_each(|capacity| check_capacity(&[bucket], capacity, Some(7)));
}

#[test]
fn no_key_is_refused_below_a_capacity_of_a_million() {
    let _alone = alone();
    for seed in [Some(1), Some(2), None] {
        check_capacity(&[Limit::bucket(1, HOUR)], 1_000_000, seed);
    }
}

#[test]
fn a_key_costs_at_most_24_bytes_and_all_bytes_are_stated() {
    let _alone = alone();
    for capacity in [1_000, 1_000_000] {
        let engine = setup(&[Limit::bucket(20, MINUTE)], capacity, OnFull::Deny, None).engine;
        // Rows are a multiple of eight, whatever their width.
        let most = 16 * (3 * capacity).div_ceil(2).next_multiple_of(8);
        assert!(engine.row_bytes() <= most, "I12: {} at {capacity}", engine.row_bytes());
        let shared = engine.bytes() - engine.row_bytes();
        assert!((1..=1_024).contains(&shared), "I12: {shared} bytes for shared rows");
        assert!(2 * engine.rows() >= 3 * capacity);
    }
}

/// A slot for each unit, four words that say where the log stands, and the key's own.
#[test]
fn a_window_of_20_costs_200_bytes_a_row_and_300_a_key() {
    let _alone = alone();
    for capacity in [1_000, 100_000] {
        let engine = setup(&[Limit::window(20, MINUTE)], capacity, OnFull::Deny, None).engine;
        assert_eq!(engine.row_bytes(), 200 * engine.rows(), "I12");
        let most = 200 * (3 * capacity).div_ceil(2).next_multiple_of(8);
        assert!(engine.row_bytes() <= most, "I12: {} at {capacity}", engine.row_bytes());
    }
}

#[test]
fn a_full_table_that_denies_says_so_and_drops_nobody() {
    let _alone = alone();
    let Setup { engine, .. } = setup(&[Limit::bucket(1, HOUR)], 100, OnFull::Deny, Some(3));
    let first = fill(&engine);
    assert!(first >= 100, "I10: full after {first} keys");
    let denied = (engine.total(Count::Denied), engine.total(Count::Full));
    let outcome = engine.hit(&invented(first), 1);
    assert_eq!((outcome.answer, outcome.permit), (Answer::Full, None));
    assert!(!engine.allow(&invented(first)));
    assert_eq!(engine.total(Count::Denied), denied.0 + 2, "metrics count it");
    assert_eq!(engine.total(Count::Full), denied.1 + 2, "metrics count it");
    for number in 0..first {
        assert_eq!(engine.hit(&invented(number), 1).answer, Answer::Denied, "I10: key {number}");
    }
}

#[test]
fn a_full_table_that_allows_counts_nothing() {
    let _alone = alone();
    let Setup { engine, .. } = setup(&[Limit::bucket(1, HOUR)], 100, OnFull::Allow, Some(3));
    let first = fill(&engine);
    let rows = engine.len();
    for _ in 0..5 {
        assert_eq!(engine.hit(&invented(first), 1).answer, Answer::Uncounted);
        assert!(engine.allow(&invented(first)));
    }
    assert!(engine.total(Count::Full) >= 10, "metrics count it");
    assert_eq!(engine.len(), rows);
    let still = (0..first).filter(|&n| engine.allow(&invented(n))).count();
    assert_eq!(still, 0, "I10: those with a row of their own are limited as before");
}

#[test]
fn keys_without_a_place_share_a_few_buckets_under_the_same_limits() {
    let _alone = alone();
    // All rows are spent for an hour; the minute's share of the shared ones comes back.
    let limits = [Limit::bucket(60, HOUR).burst(4)];
    let Setup { engine, hand } = setup(&limits, 100, OnFull::Overflow, Some(3));
    let mut number = 0;
    while engine.total(Count::Full) == 0 {
        assert!(number < 1_000, "a table that never gets full");
        number += 1;
        _ = grants(&engine, &invented(number), 5);
    }
    let own: Vec<usize> = (1..number).collect();
    engine.reset_all();
    own.iter().for_each(|&n| assert_eq!(grants(&engine, &invented(n), 5), 4));
    let flood = || (1_000..3_000).filter(|&n| engine.allow(&invented(n))).count();
    let shared = flood();
    assert!((4..=32).contains(&shared), "{shared} granted: a few buckets of four");
    assert_eq!(shared % 4, 0, "each to the last unit");
    assert_eq!(flood(), 0, "a flood does not get round the limit");
    hand.advance(Duration::from_secs(60));
    assert_eq!(flood(), shared / 4, "nor does it lock everyone out: a minute brings one each");
    own.iter().for_each(|&n| assert_eq!(grants(&engine, &invented(n), 5), 1, "I10: key {n}"));
}

#[test]
fn inserts_evict_idle_keys() {
    let _alone = alone();
    let both = [Limit::bucket(2, MINUTE), Limit::window(3, HOUR)];
    for (limits, idle_after) in [
        (&[Limit::bucket(2, MINUTE)][..], MINUTE),
        (&[Limit::window(2, MINUTE)], MINUTE),
        (&[Limit::fixed(2, MINUTE)], MINUTE),
        (&[Limit::counter(2, MINUTE)], 2 * MINUTE),
        (&both, HOUR),
    ] {
        let Setup { engine, hand } = setup(limits, 1_000, OnFull::Deny, None);
        for generation in 0..5 {
            for number in 0..1_000 {
                let name = key(generation * 1_000 + number);
                assert_eq!(grants(&engine, &name, 3), 2, "I10: {limits:?}: a new key is fresh");
            }
            assert_eq!(engine.total(Count::Full), 0, "I10: {limits:?}: generation {generation}");
            hand.advance(idle_after);
        }
        assert!(engine.total(Count::Evicted) >= 3_000, "{limits:?}");
        assert!(engine.len() <= engine.rows(), "I12");
    }
}

/// Some keys are judged by slower numbers than all others, as by an override.
#[test]
fn keys_with_numbers_of_their_own_keep_their_counts_in_a_flood() {
    let _alone = alone();
    for (own, slow) in [
        (Limit::bucket(10, MINUTE), Limit::bucket(10, HOUR)),
        (Limit::window(10, MINUTE), Limit::window(10, HOUR)),
        (Limit::fixed(10, MINUTE), Limit::fixed(10, HOUR)),
        (Limit::counter(10, MINUTE), Limit::counter(10, HOUR)),
    ] {
        let Setup { engine, hand } = setup(&[own], 1_000, OnFull::Overflow, None);
        hand.advance(100 * HOUR);
        let slow = Limits::new(&[slow]).unwrap();
        assert!(engine.introduce_limits(&slow));
        let hits = |number: usize| {
            let part = RowRef { engine: &engine, hash: engine.hash(&key(number)), limits: &slow };
            let hit = |_: &usize| {
                let mut time = Time::read(engine.clock());
                let together = part.hit(1, &mut time, &mut LimitStatuses::default());
                assert!(!together.shared, "I10: key {number} has its own row");
                together.answer == Answer::Allowed
            };
            (0..20).filter(hit).count()
        };
        (0..100).for_each(|number| assert_eq!(hits(number), 10));
        for wave in 0..5 {
            (0..3_000).for_each(|n| _ = engine.allow(&invented(wave * 3_000 + n)));
            // Less than a token of theirs, and more than the flood needs to be as new.
            hand.advance(MINUTE + Duration::from_secs(5));
            let back: usize = (0..100).map(hits).sum();
            assert_eq!(back, 0, "I10: {own:?}, wave {wave}");
        }
        // After the slowest of all numbers the rows are evicted.
        hand.advance(2 * HOUR);
        let evicted = engine.total(Count::Evicted);
        (0..900).for_each(|n| _ = engine.allow(&invented(100_000 + n)));
        assert!(engine.total(Count::Evicted) > evicted, "{own:?}");
    }
}

#[test]
fn prune_drops_idle_keys_and_says_how_many() {
    let _alone = alone();
    let Setup { engine, hand } = setup(&[Limit::bucket(6, MINUTE)], 1_000, OnFull::Deny, None);
    assert!(engine.is_empty() && engine.prune() == 0);
    (0..600).for_each(|n| _ = grants(&engine, &key(n), 1 + n % 2));
    assert_eq!((engine.prune(), engine.len()), (0, 600), "I10: nobody is idle yet");
    // A token takes ten seconds: those that spent one are idle, those that spent two are not.
    hand.advance(Duration::from_secs(10));
    assert_eq!((engine.prune(), engine.len()), (300, 300));
    assert_eq!(grants(&engine, &key(1), 9), 5, "I10: one that stayed");
    assert_eq!(grants(&engine, &key(0), 9), 6, "I10: one that was dropped is new");
    hand.advance(MINUTE);
    assert_eq!((engine.prune(), engine.len(), engine.prune()), (301, 0, 0));
}

#[test]
fn reset_forgets_one_key_and_reset_all_forgets_them_all() {
    let _alone = alone();
    let limits = [Limit::bucket(5, MINUTE), Limit::window(3, HOUR)];
    let Setup { engine, .. } = setup(&limits, 100, OnFull::Deny, None);
    (0..50).for_each(|n| assert_eq!(grants(&engine, &key(n), 4), 3));
    engine.reset(&key(7));
    engine.reset(b"unknown");
    assert_eq!(grants(&engine, &key(7), 4), 3, "a reset key is as new");
    assert_eq!(grants(&engine, &key(8), 4), 0, "the others are as before");
    engine.reset_all();
    assert_eq!((engine.len(), engine.bytes() > 0), (0, true));
    (0..50).for_each(|n| assert_eq!(grants(&engine, &key(n), 4), 3));
}
