//! Idle rows that change hands, and who may be surprised by it.

use super::setting::{SECOND, both, bucket, key, limits, model, table};
use crate::algorithm::Taken;
use crate::algorithm::bucket;
use crate::algorithm::bucket::word::{Bucket, Word};
use crate::clock::{Clock, Time};
use crate::eviction::{self, Eviction};
use crate::memory::Words;
use crate::table::row::{Moved, Row, Shape, State, step};
use crate::table::{Hash, Table};
use crate::{Limit, Limits};

/// A moment at which what was spent at [`EARLY`] has come back.
const LATE: u64 = 20 * SECOND;
const EARLY: u64 = 10 * SECOND;

type Shared = std::sync::Arc<(Table, Limits)>;

/// Two rows, both idle at [`LATE`]: of keys 1 and 2.
fn full_of_idle_rows() -> Shared {
    let shared = table(&[bucket(1), bucket(1)]);
    assert!(hit(&shared, key(1), EARLY) && hit(&shared, key(2), EARLY));
    shared
}

/// A hit of both limits, as the engine does it.
fn hit(shared: &Shared, hash: Hash, now: u64) -> bool {
    hit_by(&shared.0, &shared.1, &shared.1, hash, now)
}

/// A hit that is judged by these numbers.
fn hit_by(table: &Table, shape: &impl Shape, numbers: &Limits, hash: Hash, now: u64) -> bool {
    let (clock, _) = Clock::manual(now);
    loop {
        let Ok((row, _)) = table.find_or_insert(hash, shape, now) else { return false };
        match numbers.take(&row, 1, 0, &mut Time::read(&clock), &mut Taken::default()) {
            Ok(taken) => return taken,
            Err(Moved) => continue,
        }
    }
}

/// One of the limits charged by hand, given what an earlier look found.
fn charge(row: &Row<'_>, at: usize, now: u64) -> Result<bool, Moved> {
    let (clock, _) = Clock::manual(now);
    let numbers = Bucket::new(1, SECOND, 1).unwrap();
    let take = bucket::take(row, at, &numbers, 1, &mut Time::read(&clock))?;
    Ok(matches!(take, bucket::Take::Granted(_)))
}

#[test]
fn insert_against_eviction() {
    model(|| {
        // The row of key 1 is idle: key 1 comes back while key 3 wants a row.
        let shared = full_of_idle_rows();
        let (new, old) = both(
            {
                let shared = shared.clone();
                move || hit(&shared, key(3), LATE)
            },
            {
                let shared = shared.clone();
                move || hit(&shared, key(1), LATE)
            },
        );
        assert!(new && old, "I10: there is a row for both, and a token in each");
        assert!(!hit(&shared, key(1), LATE) || !shared.0.holds(key(1)), "I1");
    });
}

#[test]
fn look_up_against_eviction_and_reuse() {
    model(|| {
        // A thread has found key 1's row. Meanwhile the row becomes key 3's, who spends its token.
        let shared = full_of_idle_rows();
        let (late, _) = both(
            {
                let shared = shared.clone();
                move || {
                    let row = shared.0.find(key(1)).ok_or(Moved)?;
                    charge(&row, 0, LATE)
                }
            },
            {
                let shared = shared.clone();
                move || {
                    assert!(hit(&shared, key(3), LATE), "I8");
                    assert!(!hit(&shared, key(3), LATE), "I1: nobody else's refill is key 3's");
                }
            },
        );
        match late {
            Ok(granted) => assert!(granted && shared.0.holds(key(1)), "I10: its own token"),
            Err(Moved) => {}
        }
    });
}

#[test]
fn two_takeovers_of_two_rows_for_one_new_key() {
    model(|| {
        let shared = full_of_idle_rows();
        let take = |shared: &Shared| {
            let shared = shared.clone();
            move || hit(&shared, key(3), LATE)
        };
        let (a, b) = both(take(&shared), take(&shared));
        assert!(a ^ b, "I2: a second row would grant twice");
    });
}

#[test]
fn two_new_keys_for_two_idle_rows() {
    model(|| {
        let shared = full_of_idle_rows();
        let take = |shared: &Shared, print| {
            let shared = shared.clone();
            move || hit(&shared, key(print), LATE)
        };
        let (a, b) = both(take(&shared, 3), take(&shared, 4));
        assert!(a && b, "both find a place");
        assert!(!hit(&shared, key(3), LATE) && !hit(&shared, key(4), LATE), "I10");
    });
}

/// What a taker has done when it stops for ever, or sleeps.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Sealed,
    FirstWordFresh,
    AllFresh,
    HandedOver,
}

const STOPS: [Stop; 4] = [Stop::Sealed, Stop::FirstWordFresh, Stop::AllFresh, Stop::HandedOver];

/// Takes key 1's row over for key 3, up to a step.
fn stopped_takeover(shared: &Shared, stop: Stop) {
    let Some(row) = shared.0.find(key(1)) else { return };
    if !shared.1.is_idle(&row, LATE) {
        return;
    }
    let Ok(sealed) = step(row.key, row.seen(), row.seen().then(State::Sealed)) else { return };
    let row = Row::new(row.key, sealed, row.words);
    let words = match stop {
        Stop::Sealed => 0,
        Stop::FirstWordFresh => 1,
        Stop::AllFresh | Stop::HandedOver => 2,
    };
    for at in 0..words {
        let numbers = Bucket::new(1, SECOND, 1).unwrap();
        let idle = || numbers.is_idle(Word(row.load(at)), LATE);
        if !bucket::reset_words(&row, at, sealed.sequence(), Some(&idle)) {
            return;
        }
    }
    if let Stop::HandedOver = stop {
        let _ = step(row.key, sealed, sealed.then_for(State::Pending, 3));
    }
}

#[test]
fn a_taker_that_stopped_blocks_nobody() {
    for stop in STOPS {
        model(move || {
            let shared = full_of_idle_rows();
            let (_, old) = both(
                {
                    let shared = shared.clone();
                    move || stopped_takeover(&shared, stop)
                },
                {
                    let shared = shared.clone();
                    move || hit(&shared, key(1), LATE)
                },
            );
            assert!(old, "I8, I10 at {stop:?}: key 1 has its token");
            assert!(hit(&shared, key(3), LATE), "I8 at {stop:?}: key 3 finds a place");
            assert!(!hit(&shared, key(3), LATE), "I1 at {stop:?}");
        });
    }
}

#[test]
fn a_taker_that_sleeps_wakes_in_another_life() {
    // Its row was reopened and charged by its own key, then sealed by another taker that was about
    // to find it in use. The sleeper's last step names a sealed row too, but not this sealing.
    model(|| {
        let shared = full_of_idle_rows();
        // The taker is the thread that runs first, so that two preemptions are enough.
        let (spent, _) = both(
            {
                let shared = shared.clone();
                move || {
                    let spent = hit(&shared, key(1), LATE);
                    seal_and_reopen(&shared, key(1));
                    spent
                }
            },
            {
                let shared = shared.clone();
                move || stopped_takeover(&shared, Stop::HandedOver)
            },
        );
        assert!(spent, "I10: key 1 has its token");
        assert!(!hit(&shared, key(1), LATE), "I1: and has spent it");
    });
}

/// What a taker does that finds the row in use after all.
fn seal_and_reopen(shared: &Shared, hash: Hash) {
    let Some(row) = shared.0.find(hash) else { return };
    if let Ok(sealed) = step(row.key, row.seen(), row.seen().then(State::Sealed)) {
        let _ = step(row.key, sealed, sealed.then(State::Live));
    }
}

#[test]
fn a_row_that_lived_again_keeps_what_was_spent() {
    model(|| {
        let shared = full_of_idle_rows();
        let (_, spent) = both(
            {
                let shared = shared.clone();
                move || stopped_takeover(&shared, Stop::HandedOver)
            },
            {
                let shared = shared.clone();
                move || {
                    let back = hit(&shared, key(1), LATE);
                    let new = hit(&shared, key(4), LATE);
                    let again = hit(&shared, key(4), LATE);
                    (back, new, again)
                }
            },
        );
        assert_eq!(spent, (true, true, false), "I1, I10: key 4's token is spent once");
        assert!(!hit(&shared, key(4), LATE), "I1: and stays spent");
    });
}

#[test]
fn prune_against_hit() {
    model(|| {
        let shared = full_of_idle_rows();
        let (_, granted) = both(
            {
                let shared = shared.clone();
                move || shared.0.prune(&shared.1, LATE)
            },
            {
                let shared = shared.clone();
                move || hit(&shared, key(1), LATE)
            },
        );
        assert!(granted, "I10");
        assert!(!hit(&shared, key(1), LATE), "I1: pruning takes no live key");
    });
}

/// A user of the table judges a key by slower numbers than those by which its row is idle, while
/// another evicts idle rows. What evicts is given.
fn introduce_against(evict: fn(&Table, &Eviction)) {
    model(move || {
        let shared = full_of_idle_rows();
        let words = Words::zeroed(eviction::WORDS, false).unwrap();
        let eviction = std::sync::Arc::new(Eviction::new(shared.1.clone(), words));
        let slow = || limits(&[Limit::bucket(1, std::time::Duration::from_secs(3_600)); 2]);
        let (_, unsealed) = both(
            {
                let (shared, eviction) = (shared.clone(), eviction.clone());
                move || evict(&shared.0, &eviction)
            },
            {
                let (shared, eviction) = (shared.clone(), eviction.clone());
                move || {
                    assert!(eviction.introduce_limits(&slow()));
                    let unsealed = shared.0.is_unsealed(key(1));
                    let granted = hit_by(&shared.0, &*eviction, &slow(), key(1), LATE);
                    assert!(!unsealed || !granted, "I13: it finds what was spent");
                    unsealed
                }
            },
        );
        let granted = hit_by(&shared.0, &*eviction, &slow(), key(1), LATE);
        assert!(!unsealed || !granted, "I10: and nobody drops it later");
    });
}

/// Whoever finds its row unsealed after it has introduced its numbers finds the state, and keeps
/// it. A row that was sealed before counts as evicted before.
#[test]
fn numbers_introduced_against_eviction() {
    introduce_against(|table, eviction| {
        let _ = table.find_or_insert(key(3), eviction, LATE);
    });
}

#[test]
fn numbers_introduced_against_prune() {
    introduce_against(|table, eviction| _ = table.prune(eviction, LATE));
}

/// As [`numbers_introduced_against_prune`], for a count beside its span: what is charged after the
/// eviction stays.
#[test]
fn a_fixed_charge_by_new_numbers_against_prune() {
    model(|| {
        let fixed = |max, secs| Limit::fixed(max, std::time::Duration::from_secs(secs));
        let shared = table(&[fixed(1, 1)]);
        assert!(hit(&shared, key(1), EARLY));
        let words = Words::zeroed(eviction::WORDS, false).unwrap();
        let eviction = std::sync::Arc::new(Eviction::new(shared.1.clone(), words));
        let slow = move || limits(&[fixed(2, 3_600)]);
        let (_, granted) = both(
            {
                let (shared, eviction) = (shared.clone(), eviction.clone());
                move || shared.0.prune(&*eviction, LATE)
            },
            {
                let (shared, eviction) = (shared.clone(), eviction.clone());
                move || {
                    assert!(eviction.introduce_limits(&slow()));
                    hit_by(&shared.0, &*eviction, &slow(), key(1), LATE)
                }
            },
        );
        let again = || hit_by(&shared.0, &*eviction, &slow(), key(1), LATE);
        let more = (0..3).filter(|_| again()).count();
        assert!(usize::from(granted) + more <= 2, "I1: {granted} and {more}");
    });
}
