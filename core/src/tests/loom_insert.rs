//! New keys: one row for each, whoever comes at once and whoever dies on the way.

use super::setting::{at_once, both, bucket, engine, key, model, table};
use crate::table::Hash;
use crate::table::row::{KeyWord, State};

const NOW: u64 = 10_000_000_000;

#[test]
fn two_inserts_of_one_new_key() {
    model(|| {
        // Two buckets make a row of four words. Two rows lie in a line, so claims can differ.
        let (engine, _) = engine(&[bucket(1), bucket(1)]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I2: a second row would grant twice");
        assert_eq!(engine.len(), 1, "one row for one key");
    });
}

#[test]
fn two_inserts_of_one_key_whose_first_row_is_freed() {
    model(|| {
        // Row 0 is another key's when one thread looks and free when the other does, so that the
        // two claim different rows.
        let shared = table(&[bucket(1), bucket(1)]);
        insert(&shared, key(7));
        let (a, b) = both(
            {
                let shared = shared.clone();
                move || {
                    shared.0.free(key(7), &shared.1, NOW);
                    insert(&shared, key(9))
                }
            },
            {
                let shared = shared.clone();
                move || insert(&shared, key(9))
            },
        );
        assert_eq!(a, b, "both have the same row");
        assert!(shared.0.len() <= 2);
    });
}

#[test]
fn two_inserts_of_different_keys_for_one_place() {
    model(|| {
        let shared = table(&[bucket(1), bucket(1)]);
        let (a, b) = both(
            {
                let shared = shared.clone();
                move || insert(&shared, key(7))
            },
            {
                let shared = shared.clone();
                move || insert(&shared, key(9))
            },
        );
        assert_ne!(a, b, "one row for each key");
        assert_eq!(shared.0.len(), 2);
        assert_eq!(insert(&shared, key(7)), a);
        assert_eq!(insert(&shared, key(9)), b);
    });
}

#[test]
fn a_claimant_that_stopped_blocks_nobody() {
    model(|| {
        let shared = table(&[bucket(1), bucket(1)]);
        let (_, row) = both(
            {
                let shared = shared.clone();
                move || stopped_after_claim(&shared, key(9))
            },
            {
                let shared = shared.clone();
                move || insert(&shared, key(9))
            },
        );
        assert_eq!(insert(&shared, key(9)), row, "I8, and the row stays the same one");
        assert_eq!(shared.0.len(), 1);
        let other = insert(&shared, key(7));
        assert_ne!(other, row, "I8: a dead claim's place can be had");
    });
}

#[test]
fn a_claimant_that_stopped_in_the_other_row_blocks_nobody() {
    model(|| {
        let shared = table(&[bucket(1), bucket(1)]);
        // It claimed row 1 while row 0 was another key's. That key is gone.
        insert(&shared, key(7));
        stopped_after_claim(&shared, key(9));
        let (_, row) = both(
            {
                let shared = shared.clone();
                move || shared.0.free(key(7), &shared.1, NOW)
            },
            {
                let shared = shared.clone();
                move || insert(&shared, key(9))
            },
        );
        assert_eq!(insert(&shared, key(9)), row, "I8");
    });
}

/// The key's row, by the address of its key word.
fn insert(shared: &(crate::table::Table, crate::Limits), hash: Hash) -> usize {
    let (row, _) = shared.0.find_or_insert(hash, &shared.1, NOW).expect("there is room");
    assert!(row.seen().is_live(KeyWord::print_of(hash.0)) && row.seen().state() == State::Live);
    std::ptr::from_ref(row.key) as usize
}

fn stopped_after_claim(shared: &(crate::table::Table, crate::Limits), hash: Hash) {
    shared.0.claim_first_free(hash);
}
