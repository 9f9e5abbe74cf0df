//! The ring: admissions, helpers, weights, refunds.

use super::setting::{SECOND, at_once, both, engine, model, table, window};
use crate::algorithm::window::{Ring, Window};
use crate::clock::{Clock, ManualClock, Time};
use std::sync::Arc;

#[test]
fn two_takers_one_place() {
    model(|| {
        let (engine, _) = engine(&[window(1, 1)]);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I1, I2: one place");
    });
}

#[test]
fn two_takers_in_a_ring_that_has_wrapped() {
    model(|| {
        // Both entries have left the window, and the next admission overwrites the older one.
        let (engine, hand) = engine(&[window(2, 1)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        hand.set(20 * SECOND);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a && b, "I2: there is room for both");
        assert!(!engine.allow(b"k"), "I1");
    });
}

#[test]
fn a_hit_that_searches_a_log_against_two_takers() {
    model(|| {
        // Both entries have left the window. The takers overwrite what the hit looks at.
        let (engine, hand) = engine(&[window(2, 1)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        hand.set(20 * SECOND);
        let (hit, allowed) = at_once(
            &engine,
            move |e| e.hit(b"k", 1),
            move |e| [e.allow(b"k"), e.allow(b"k")].into_iter().filter(|&is| is).count() as u64,
        );
        let hits = u64::from(hit.answer.is_allowed());
        assert_eq!(hits + allowed, 2, "I1, I2");
        let used = hit.statuses[0].used;
        assert!((1..=2).contains(&used), "as the hit left it, or as it was refused: {used}");
    });
}

#[test]
fn two_windows_two_takers() {
    model(|| {
        // Two in a second, three in ten. After one hit a second ago there is room for two.
        let (engine, hand) = engine(&[window(2, 1), window(3, 10)]);
        assert!(engine.allow(b"k"));
        hand.set(11 * SECOND);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a && b, "I2");
        assert!(!engine.allow(b"k"), "I1: both windows are full");
        hand.set(12 * SECOND);
        assert!(!engine.allow(b"k"), "I1: the long one still is");
    });
}

#[test]
fn cost_two_against_cost_one() {
    model(|| {
        let (engine, _) = engine(&[window(2, 1)]);
        let (two, one) = at_once(
            &engine,
            move |e| e.hit(b"k", 2).answer.is_allowed(),
            move |e| e.hit(b"k", 1).answer.is_allowed(),
        );
        assert!(two ^ one, "I1, I2: either fits, both don't");
        let used = engine.peek(b"k", 0).statuses[0].used;
        assert_eq!(used, if two { 2 } else { 1 }, "all of a cost or nothing");
    });
}

#[test]
fn refund_against_take() {
    model(|| {
        let (engine, _) = engine(&[window(2, 1)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        let (_, taken) = at_once(&engine, move |e| e.refund(b"k", 1), move |e| e.allow(b"k"));
        let used = engine.peek(b"k", 0).statuses[0].used;
        assert_eq!(used, 1 + u64::from(taken), "I6: two, less one, and what was taken");
        assert_eq!(engine.allow(b"k"), !taken, "I1, I6");
    });
}

#[test]
fn two_refunds_against_a_full_ring() {
    model(|| {
        let (engine, _) = engine(&[window(2, 1)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        at_once(&engine, move |e| e.refund(b"k", 1), move |e| e.refund(b"k", 1));
        assert_eq!(engine.peek(b"k", 0).statuses[0].used, 0, "I6: two given back are two");
    });
}

#[test]
fn carrying_against_a_take() {
    model(|| {
        // A void lies above a live entry, so the next hit must carry that entry.
        let (engine, _) = engine(&[window(2, 1)]);
        assert!(engine.allow(b"k") && engine.allow(b"k"));
        engine.refund(b"k", 1);
        let (a, b) = at_once(&engine, move |e| e.allow(b"k"), move |e| e.allow(b"k"));
        assert!(a ^ b, "I1, I2: one place");
        assert_eq!(engine.peek(b"k", 0).statuses[0].used, 2, "I6: nothing was lost by carrying");
    });
}

#[test]
fn a_slot_taken_against_a_helper_that_moves_the_head() {
    model(|| {
        // One has swapped the slot and stopped before it moved the head.
        let shared = table(&[window(2, 1)]);
        let windows = [Window { max: 2, per_us: 1_000_000, index: 0 }];
        let (clock, _) = Clock::manual(10 * SECOND);
        let hash = super::setting::key(5);
        let (row, _) = shared.0.find_or_insert(hash, &shared.1, 10 * SECOND).unwrap();
        Ring::new(&row, 0, 2).put_and_stop(10 * SECOND);
        let take = |shared: &std::sync::Arc<(crate::table::Table, crate::Limits)>| {
            let (shared, clock) = (shared.clone(), clock.clone());
            move || {
                let row = shared.0.find(hash).unwrap();
                let ring = Ring::new(&row, 0, 2);
                ring.take(&windows, 1, 1_000_000, &mut Time::read(&clock)).unwrap().is_some()
            }
        };
        let (a, b) = both(take(&shared), take(&shared));
        assert!(a ^ b, "I1, I8: the stopped one's entry counts, and one place is left");
    });
}

#[test]
fn an_idle_ring_is_evicted_against_its_own_key() {
    model(|| {
        let (engine, hand) = engine(&[window(1, 1)]);
        assert!(engine.allow(b"k"));
        hand.set(20 * SECOND);
        let (_, granted) = at_once(&engine, move |e| e.prune(), move |e| e.allow(b"k"));
        assert!(granted, "I10");
        assert!(!engine.allow(b"k"), "I1: pruning takes no live key");
    });
}

/// A ring of two slots that calls judge by two in ten seconds, or by two in one.
#[derive(Clone)]
struct Judged {
    table: Arc<(crate::table::Table, crate::Limits)>,
    clock: Clock,
    hand: Arc<ManualClock>,
}

const SLOW: Window = Window { max: 2, per_us: 10_000_000, index: 0 };
const FAST: Window = Window { max: 2, per_us: 1_000_000, index: 0 };

impl Judged {
    fn new() -> Judged {
        let table = table(&[window(2, 10)]);
        table.0.find_or_insert(super::setting::key(5), &table.1, 10 * SECOND).unwrap();
        let (clock, hand) = Clock::manual(10 * SECOND);
        Judged { table, clock, hand }
    }

    fn with<R>(&self, act: impl FnOnce(&Ring<'_>, &mut Time<'_>) -> R) -> R {
        let row = self.table.0.find(super::setting::key(5)).unwrap();
        act(&Ring::new(&row, 0, 2), &mut Time::read(&self.clock))
    }

    fn take(&self, window: Window) -> bool {
        self.with(|ring, time| ring.take(&[window], 1, SLOW.per_us, time).unwrap().is_some())
    }

    fn used(&self) -> u64 {
        let mut used = 0;
        self.with(|ring, time| ring.inspect(&[SLOW], 1, time.now(), |_, told| used = told.used));
        used
    }
}

#[test]
fn an_entry_given_back_against_a_take() {
    model(|| {
        let judged = Judged::new();
        let mine = judged.with(|ring, time| ring.take(&[SLOW], 1, SLOW.per_us, time).unwrap());
        assert!(judged.take(SLOW));
        let (one, two) = (judged.clone(), judged.clone());
        let give_back = move || {
            one.with(|ring, time| ring.give_back(mine.unwrap(), 1, SLOW.per_us, time.now()))
        };
        let (back, taken) = both(give_back, move || two.take(SLOW));
        assert_eq!(back, Ok(1), "I6: nobody carried or overwrote it");
        assert_eq!(judged.used(), 1 + u64::from(taken), "I6: two, less one, and what was taken");
        assert_eq!(judged.take(SLOW), !taken, "I1, I6");
    });
}

#[test]
fn carrying_for_a_longer_per_against_a_take_by_a_shorter_one() {
    model(|| {
        let judged = Judged::new();
        assert!(judged.take(SLOW) && judged.take(SLOW));
        judged.with(|ring, time| ring.refund(SLOW.per_us, &mut 1, time.now()).unwrap());
        judged.hand.set(12 * SECOND);
        let (one, two) = (judged.clone(), judged.clone());
        let (slow, fast) = both(move || one.take(SLOW), move || two.take(FAST));
        assert!(fast, "I2: its own window has room for both");
        assert_eq!(judged.used(), 2 + u64::from(slow), "I13: nothing was overwritten");
        assert!(!judged.take(SLOW), "I1");
    });
}

#[test]
fn two_takes_by_a_shorter_per_in_a_ring_full_of_live_entries() {
    model(|| {
        let judged = Judged::new();
        assert!(judged.take(SLOW) && judged.take(SLOW));
        judged.hand.set(12 * SECOND);
        let (one, two) = (judged.clone(), judged.clone());
        let (a, b) = both(move || one.take(FAST), move || two.take(FAST));
        assert!(a && b, "I2: their own window has room for both");
        assert_eq!(
            judged.used(),
            4,
            "I13: each overwritten unit is added to the next oldest, once"
        );
        judged.with(|ring, time| ring.refund(SLOW.per_us, &mut 2, time.now()).unwrap());
        assert!(!judged.take(SLOW), "I13: two of four are left");
    });
}
