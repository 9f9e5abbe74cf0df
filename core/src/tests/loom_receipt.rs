//! What was taken, given back: by its receipt, or by a hit that one of its limits refused.

use std::sync::Arc;
use std::time::Duration;

use super::setting::{SECOND, at_once, both, bucket, engine, key, model, table, window};
use crate::algorithm::Taken;
use crate::clock::{Clock, Time};
use crate::limits::receipt::Receipt;
use crate::{Engine, Limit, LimitStatuses, reserve_together};

/// Two in a second, by every algorithm that spends.
fn limits_of_two() -> [Limit; 4] {
    let second = Duration::from_secs(1);
    [bucket(2), window(2, 1), Limit::fixed(2, second), Limit::counter(2, second)]
}

fn reserve(engine: &Engine, cost: u64) -> Receipt {
    let (part, mut receipts) = (engine.part(engine.hash(b"k")), [None]);
    let (time, statuses) = (&mut Time::read(engine.clock()), &mut [LimitStatuses::default()]);
    let told = reserve_together(&[part], &[cost], time, statuses, &mut receipts);
    assert!(told.answer.is_allowed());
    receipts[0].expect("it was counted")
}

fn give_back(engine: &Engine, receipt: &Receipt, amount: u64) {
    let part = engine.part(engine.hash(b"k"));
    part.give_back(receipt, amount, &mut Time::read(engine.clock()));
}

fn left(engine: &Engine) -> u64 {
    engine.peek(b"k", 0).statuses[0].remaining
}

#[test]
fn a_reservation_given_back_against_a_hit() {
    for limit in limits_of_two() {
        model(move || {
            let (engine, _) = engine(&[limit]);
            let mine = reserve(&engine, 2);
            let (_, taken) =
                at_once(&engine, move |e| give_back(e, &mine, 2), move |e| e.allow(b"k"));
            assert_eq!(left(&engine), 2 - u64::from(taken), "I6: two given back, {limit:?}");
        });
    }
}

/// Between the reservation and the hit a tick of every cell passes. (Within one tick the hit may
/// leave the very word that the reservation left, and who loaded that before the reset can't tell.)
#[test]
fn a_reservation_given_back_against_a_reset_and_a_hit() {
    for limit in limits_of_two() {
        model(move || {
            let (engine, hand) = engine(&[limit]);
            let mine = reserve(&engine, 1);
            hand.set(10 * SECOND + SECOND / 50);
            let reset_and_hit = move |e: &Engine| {
                e.reset(b"k");
                e.allow(b"k")
            };
            let (_, taken) = at_once(&engine, move |e| give_back(e, &mine, 1), reset_and_hit);
            assert!(taken, "I2");
            assert_eq!(left(&engine), 1, "I13: the hit is not given back, {limit:?}");
        });
    }
}

/// A hit that its second limit refuses undoes the first, unless a reset has done so.
#[test]
fn a_half_hit_undone_against_a_reset_and_a_hit() {
    model(|| {
        let shared = table(&[bucket(2), bucket(1)]);
        let hit = |shared: &Arc<(crate::table::Table, crate::Limits)>, now: u64| {
            let (row, _) = shared.0.find_or_insert(key(1), &shared.1, now).expect("there is room");
            let (clock, _) = Clock::manual(now);
            let time = &mut Time::read(&clock);
            shared.1.take(&row, 1, 0, time, &mut Taken::default()) == Ok(true)
        };
        assert!(hit(&shared, 10 * SECOND));
        let (half, whole) = (shared.clone(), shared.clone());
        let later = 10 * SECOND + SECOND / 1000;
        let (_, taken) = both(
            move || hit(&half, 10 * SECOND),
            move || {
                whole.0.reset(key(1), &whole.1, later);
                hit(&whole, later)
            },
        );
        let mut statuses = LimitStatuses::default();
        let row = shared.0.find(key(1)).expect("it was hit");
        shared.1.inspect(&row, 0, later, &mut statuses).unwrap();
        let left = [statuses[0].remaining, statuses[1].remaining];
        // The reset came before both hits, or between them.
        assert!(left == [1, 0] || !taken && left == [2, 1], "I7, I13: {left:?}");
    });
}
