//! Notes against notes, and against rows that are evicted.

use std::sync::Arc;

use super::setting::{both, key, model};
use crate::Ledger;

/// A note is idle when it is 0.
fn idle(notes: &[u64; 1]) -> bool {
    notes[0] == 0
}

fn add(ledger: &Ledger<1>, print: u64) -> Option<u64> {
    ledger.update(key(print), 0, &idle, |note| (note + 1, note + 1))
}

/// Two threads note something about one new key: both notes count.
#[test]
fn two_notes_on_one_new_key() {
    model(|| {
        let ledger: Arc<Ledger<1>> = Arc::new(Ledger::new(1, 1).unwrap());
        let theirs = ledger.clone();
        both(move || add(&theirs, 1), {
            let ledger = ledger.clone();
            move || add(&ledger, 1)
        });
        assert_eq!(ledger.read(key(1)), Some([2]));
    });
}

/// A row is pruned while its key is noted: the note is kept, or made in a new row, never lost.
#[test]
fn a_note_against_prune() {
    model(|| {
        let ledger: Arc<Ledger<1>> = Arc::new(Ledger::new(1, 1).unwrap());
        add(&ledger, 1);
        ledger.update_known(key(1), 0, |_| (0, ()));
        let theirs = ledger.clone();
        both(move || theirs.prune(&idle), {
            let ledger = ledger.clone();
            move || add(&ledger, 1)
        });
        assert_eq!(ledger.read(key(1)), Some([1]));
    });
}

/// A row is cleared while its key is noted: what is left is whole.
#[test]
fn a_note_against_reset() {
    model(|| {
        let ledger: Arc<Ledger<1>> = Arc::new(Ledger::new(1, 1).unwrap());
        add(&ledger, 1);
        let theirs = ledger.clone();
        let (_, noted) = both(move || theirs.reset(key(1)), {
            let ledger = ledger.clone();
            move || add(&ledger, 1)
        });
        let left = ledger.read(key(1)).map_or(0, |notes| notes[0]);
        assert!(noted == Some(2) && left <= 2 || noted == Some(1) && left <= 1, "{noted:?} {left}");
    });
}
