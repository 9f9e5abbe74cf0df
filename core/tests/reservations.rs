//! What a reservation gives back: only its own, and only while it counts (promise 9).
//!
//! * **I1 bound**: units that were not given back while they counted never exceed the limit.
//! * **I6 refund**: at one moment, what was taken comes back whole.
//! * **I9 time**: a clock that goes back makes no reservation give back more.
//! * **I13**: nor does a reset, an eviction or another row for the same key.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{
    Algorithm, Clock, Engine, Limit, LimitStatuses, Limits, ManualClock, OnFull, Options, Receipt,
    Time, reserve_together,
};

const KEY: &[u8] = b"somebody";
const MICRO: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_000 * SECOND;

fn engine_of(limits: &[Limit], capacity: usize) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(START);
    let options = Options { capacity, clock, seed: Some(7), on_full: OnFull::Deny };
    (Engine::new(Limits::new(limits).unwrap(), options).unwrap(), hand)
}

fn engine(limit: Limit) -> (Engine, Arc<ManualClock>) {
    engine_of(&[limit], 8)
}

fn reserve(engine: &Engine, key: &[u8], cost: u64) -> Option<Receipt> {
    let (part, time) = (engine.part(engine.hash(key)), &mut Time::read(engine.clock()));
    let (statuses, mut receipts) = (&mut [LimitStatuses::default()], [None]);
    let together = reserve_together(&[part], &[cost], time, statuses, &mut receipts);
    assert_eq!(together.answer.is_allowed(), receipts[0].is_some());
    receipts[0]
}

fn give_back(engine: &Engine, key: &[u8], receipt: &Receipt, amount: u64) {
    let part = engine.part(engine.hash(key));
    part.give_back(receipt, amount, &mut Time::read(engine.clock()));
}

fn remaining(engine: &Engine, key: &[u8]) -> u64 {
    engine.peek(key, 0).statuses[0].remaining
}

fn passes(engine: &Engine, key: &[u8]) -> usize {
    (0..50).filter(|_| engine.allow(key)).count()
}

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn each(max: u64, per: Duration) -> [Limit; 4] {
    [
        Limit::bucket(max, per),
        Limit::window(max, per),
        Limit::fixed(max, per),
        Limit::counter(max, per),
    ]
}

// ---- Cases ----

#[test]
fn i1_what_aged_out_is_not_given_back() {
    for limit in each(5, secs(10)) {
        let (engine, hand) = engine(limit);
        let receipt = reserve(&engine, KEY, 5).unwrap();
        hand.advance(2 * limit.per);
        assert_eq!(passes(&engine, KEY), 5);
        give_back(&engine, KEY, &receipt, 5);
        assert_eq!(passes(&engine, KEY), 0, "I1: {limit:?}");
    }
}

#[test]
fn i6_more_than_was_taken_is_never_given_back() {
    for limit in each(5, secs(10)) {
        let (engine, _hand) = engine(limit);
        assert!(engine.hit(KEY, 3).answer.is_allowed());
        let receipt = reserve(&engine, KEY, 2).unwrap();
        give_back(&engine, KEY, &receipt, 1_000);
        assert_eq!(remaining(&engine, KEY), 2, "I6: {limit:?}");
    }
}

/// What was refilled of a thousandth is not given back on top: without the reservation the bucket
/// was full and would have lost it.
#[test]
fn i1_no_part_of_a_thousandth_is_gained() {
    for micros in [100, 500, 1_000, 1_800, 1_999, 2_000, 2_001, 3_900] {
        let (engine, hand) = engine(Limit::bucket(5, secs(10)));
        let receipt = reserve(&engine, KEY, 1).unwrap();
        hand.advance(Duration::from_micros(micros));
        assert!(engine.hit(KEY, 4).answer.is_allowed());
        give_back(&engine, KEY, &receipt, 1);
        // One token is there, and the second comes after two seconds.
        let wait = engine.peek(KEY, 2).statuses[0].wait;
        assert!(wait >= 2 * SECOND, "I1: {micros} us, {wait} ns");
        assert!(wait <= 2 * SECOND + 2 * 2_000_000, "a thousandth takes 2 ms: {wait} ns");
    }
}

/// An entry that is in the way of others is carried out of it, and can't be told from others of its
/// microsecond then.
#[test]
fn i1_an_entry_that_was_carried_stays_spent_and_no_newer_one_is_given_back() {
    let (engine, hand) = engine(Limit::window(4, secs(10)));
    let receipt = reserve(&engine, KEY, 1).unwrap();
    hand.advance(secs(5));
    assert!(engine.allow(KEY));
    engine.refund(KEY, 1);
    // The log has four slots: the fourth of these finds the reservation's entry in its way.
    assert_eq!(passes(&engine, KEY), 3);
    hand.advance(secs(1));
    give_back(&engine, KEY, &receipt, 1);
    assert_eq!(passes(&engine, KEY), 0, "I1");
    hand.advance(secs(4));
    assert_eq!(passes(&engine, KEY), 1, "the reservation's own has left");
    hand.advance(secs(5));
    assert_eq!(passes(&engine, KEY), 3);
}

/// Laps repeat after eight: the slot and the lap are the same again, the entry is another.
#[test]
fn i1_an_entry_of_a_later_turn_of_the_log_is_not_given_back() {
    for rounds in 0..40 {
        let (engine, hand) = engine(Limit::window(2, secs(1)));
        let receipt = reserve(&engine, KEY, 1).unwrap();
        for _ in 0..rounds {
            hand.advance(secs(1));
            assert!(engine.allow(KEY));
        }
        hand.advance(secs(1));
        assert_eq!(passes(&engine, KEY), 2);
        give_back(&engine, KEY, &receipt, 1);
        assert_eq!(passes(&engine, KEY), 0, "I1: {rounds} rounds");
    }
}

#[test]
fn i13_a_key_that_was_evicted_and_came_back_gets_nothing() {
    for limit in each(5, secs(10)) {
        let (engine, hand) = engine_of(&[limit], 64);
        let receipt = reserve(&engine, KEY, 5).unwrap();
        hand.advance(secs(30));
        let mut came_back = 0;
        for other in 0u64..400 {
            let _ = engine.allow(&other.to_le_bytes());
            hand.advance(secs(30));
            if engine.peek(KEY, 0).statuses[0].used == 0 && passes(&engine, KEY) == 5 {
                came_back += 1;
                give_back(&engine, KEY, &receipt, 5);
                assert_eq!(passes(&engine, KEY), 0, "I13: {limit:?}");
                hand.advance(secs(30));
            }
        }
        assert!(came_back > 0, "{limit:?}");
    }
}

/// New rows all begin with the same key word: the row has to be the same, too.
#[test]
fn i13_a_key_that_came_back_in_another_row_gets_nothing() {
    for round in 0u64..20 {
        let (engine, hand) = engine_of(&[Limit::bucket(5, secs(10))], 64);
        let receipt = reserve(&engine, KEY, 5).unwrap();
        // Idle long before the charge has aged out.
        engine.refund(KEY, 5);
        hand.advance(secs(1));
        assert_eq!(engine.prune(), 1);
        for other in 0..50 {
            assert!(engine.allow(&(50 * round + other).to_le_bytes()));
        }
        assert_eq!(passes(&engine, KEY), 5);
        give_back(&engine, KEY, &receipt, 5);
        assert_eq!(passes(&engine, KEY), 0, "I13: round {round}");
    }
}

#[test]
fn i13_a_row_that_was_reset_gets_nothing() {
    for limit in each(5, secs(10)) {
        let (engine, _hand) = engine(limit);
        let receipt = reserve(&engine, KEY, 5).unwrap();
        engine.reset(KEY);
        assert_eq!(passes(&engine, KEY), 5);
        give_back(&engine, KEY, &receipt, 5);
        assert_eq!(passes(&engine, KEY), 0, "I13: {limit:?}");
    }
}

/// What is behind the clock of the charge may have been refilled since: nobody knows.
#[test]
fn i9_a_bucket_gets_nothing_while_the_clock_is_behind_the_charge() {
    let (engine, hand) = engine(Limit::bucket(5, secs(10)));
    let receipt = reserve(&engine, KEY, 5).unwrap();
    hand.set(START - 100 * SECOND);
    assert_eq!(passes(&engine, KEY), 0);
    hand.advance(secs(10));
    assert_eq!(passes(&engine, KEY), 5);
    give_back(&engine, KEY, &receipt, 5);
    assert_eq!(passes(&engine, KEY), 0, "I9");
}

/// The log was brought back with the clock, and the entry with it.
#[test]
fn i9_an_entry_that_was_mended_is_still_the_reservations() {
    let (engine, hand) = engine(Limit::window(5, secs(10)));
    let receipt = reserve(&engine, KEY, 3).unwrap();
    hand.set(START - 100 * SECOND);
    assert_eq!(passes(&engine, KEY), 2);
    give_back(&engine, KEY, &receipt, 3);
    assert_eq!(passes(&engine, KEY), 3);
    hand.advance(secs(10));
    assert_eq!(passes(&engine, KEY), 5);
    give_back(&engine, KEY, &receipt, 3);
    assert_eq!(passes(&engine, KEY), 0, "I9");
}

// ---- Against a reference ----

/// Which units a reservation took, as the reference knows them.
type Mark = usize;

/// One key under one limit, in exact arithmetic: times in microseconds.
enum Model {
    /// What was granted when, and how much of it was not given back.
    Window {
        max: u64,
        per: u64,
        log: Vec<(u64, u64)>,
    },
    /// How many spans there were, when this one began, and what was spent in it.
    Fixed {
        max: u64,
        per: u64,
        epoch: usize,
        start: u64,
        units: u64,
    },
    Counter {
        max: u64,
        per: u64,
        cells: HashMap<u64, u64>,
    },
    Bucket {
        max: u64,
        per: u64,
        most: Ideal,
        least: f64,
        at: u64,
    },
}

/// A bucket as it would be had nobody reserved what was given back: an upper bound. The charges are
/// kept, so that a settled one can be judged by what it came to.
struct Ideal {
    /// Microseconds, and tokens.
    charges: Vec<(u64, u64)>,
}

impl Ideal {
    /// Grains of 1/per token: a microsecond refills `max` of them.
    fn content(&self, max: u64, per: u64, now: u64) -> i128 {
        let full = i128::from(max) * i128::from(per);
        let (mut content, mut at) = (full, START / MICRO);
        for &(then, tokens) in self.charges.iter().chain(&[(now, 0)]) {
            content = full.min(content + i128::from(max) * i128::from(then - at));
            content -= i128::from(tokens) * i128::from(per);
            at = then;
        }
        content
    }
}

impl Model {
    fn new(limit: &Limit) -> Model {
        let (max, per) = (limit.max, limit.per.as_micros() as u64);
        match limit.algorithm {
            Algorithm::Window => Model::Window { max, per, log: Vec::new() },
            Algorithm::Fixed => Model::Fixed { max, per, epoch: 0, start: 0, units: 0 },
            Algorithm::Counter => Model::Counter { max, per, cells: HashMap::new() },
            _ => {
                let most = Ideal { charges: Vec::new() };
                Model::Bucket { max, per, most, least: max as f64, at: START / MICRO }
            }
        }
    }

    /// Whole units left, from the least to the most that the engine may say.
    fn remaining(&self, now: u64) -> (u64, u64) {
        let exact = |max: u64, used: u64| (max.saturating_sub(used), max.saturating_sub(used));
        match self {
            Model::Window { max, per, log } => {
                let inside = log.iter().filter(|(time, _)| now - time < *per);
                exact(*max, inside.map(|(_, units)| units).sum())
            }
            Model::Fixed { max, per, start, units, .. } => {
                exact(*max, if now - start < *per { *units } else { 0 })
            }
            Model::Counter { max, per, cells } => {
                let units = |cell: u64| cells.get(&cell).copied().unwrap_or(0);
                let (cell, into) = (now / per, now % per);
                exact(*max, units(cell) + (units(cell - 1) * (per - into)).div_ceil(*per))
            }
            Model::Bucket { max, per, most, least, at } => {
                let refilled = (now - at) as f64 * *max as f64 / *per as f64;
                let most = most.content(*max, *per, now) / i128::from(*per);
                ((least + refilled).min(*max as f64).max(0.0) as u64, most as u64)
            }
        }
    }

    /// Lets time pass for what a bucket has at the least. A thousandth is lost here and there.
    fn pass(&mut self, now: u64) {
        if let Model::Bucket { max, per, least, at, .. } = self {
            let refilled = (now - *at) as f64 * *max as f64 / *per as f64;
            *least = (*least + refilled).min(*max as f64) - 0.002;
            *at = now;
        }
    }

    fn take(&mut self, cost: u64, now: u64) -> Mark {
        self.pass(now);
        match self {
            Model::Window { log, .. } => {
                log.push((now, cost));
                log.len() - 1
            }
            Model::Fixed { per, epoch, start, units, .. } => {
                if now - *start >= *per || *units == 0 {
                    (*epoch, *start, *units) = (*epoch + 1, now, 0);
                }
                *units += cost;
                *epoch
            }
            Model::Counter { per, cells, .. } => {
                *cells.entry(now / *per).or_default() += cost;
                (now / *per) as usize
            }
            Model::Bucket { most, least, .. } => {
                most.charges.push((now, cost));
                *least -= cost as f64;
                most.charges.len() - 1
            }
        }
    }

    /// Gives back `amount` of the `cost` that was taken `then`.
    fn give_back(&mut self, mark: Mark, (cost, then): (u64, u64), amount: u64, now: u64) {
        self.pass(now);
        match self {
            Model::Window { log, .. } => log[mark].1 = log[mark].1.saturating_sub(amount),
            Model::Fixed { per, epoch, start, units, .. } => {
                if mark == *epoch && now - *start < *per {
                    *units = units.saturating_sub(amount);
                }
            }
            Model::Counter { per, cells, .. } => {
                if mark == (now / *per) as usize {
                    let units = cells.entry(now / *per).or_default();
                    *units = units.saturating_sub(amount);
                }
            }
            Model::Bucket { max, per, most, least, .. } => {
                most.charges[mark].1 = cost - amount;
                let refilled = (now - then) as f64 * *max as f64 / *per as f64;
                *least += (cost as f64 - refilled).clamp(0.0, amount as f64);
                *least = least.min(*max as f64);
            }
        }
    }

    /// Gives back without a reservation.
    fn refund(&mut self, mut amount: u64, now: u64) {
        match self {
            Model::Window { per, log, .. } => {
                for (_, units) in log.iter_mut().rev().filter(|(time, _)| now - time < *per) {
                    let back = amount.min(*units);
                    (*units, amount) = (*units - back, amount - back);
                }
            }
            Model::Fixed { per, start, units, .. } => {
                if now - *start < *per {
                    *units = units.saturating_sub(amount);
                }
            }
            Model::Counter { per, cells, .. } => {
                for cell in [now / *per, now / *per - 1] {
                    let units = cells.entry(cell).or_default();
                    let back = amount.min(*units);
                    (*units, amount) = (*units - back, amount - back);
                }
            }
            // By its nature it adds to what reservations may give back.
            Model::Bucket { .. } => {}
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Hit(u64),
    Reserve(u64),
    /// Which of those that are out, and how many thousandths of it were needed.
    Settle(usize, u64),
    Refund(u64),
}

fn ops() -> impl Strategy<Value = Vec<(u64, Op)>> {
    let op = prop_oneof![
        3 => (1u64..=3).prop_map(Op::Hit),
        3 => (1u64..=4).prop_map(Op::Reserve),
        3 => (0usize..8, prop_oneof![Just(0), 0u64..=1_000])
            .prop_map(|(i, part)| Op::Settle(i, part)),
        1 => (1u64..=3).prop_map(Op::Refund),
    ];
    // Each at a moment of its own, so that units of a moment are one charge's.
    let step = prop_oneof![6 => 1u64..=300_000, 3 => 1u64..=3_000_000, 1 => 1u64..=30_000_000];
    prop::collection::vec((step, op), 1..80)
}

fn any_limit() -> impl Strategy<Value = Limit> {
    (0usize..4, 1u64..=8, 1u64..=20)
        .prop_map(|(which, max, tenths)| each(max, Duration::from_millis(100 * tenths))[which])
}

struct Out {
    receipt: Receipt,
    mark: Mark,
    cost: u64,
    then: u64,
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn i1_reservations_give_back_exactly_what_the_reference_does(
        limit in any_limit(),
        ops in ops(),
    ) {
        let (engine, hand) = engine(limit);
        let (mut model, mut out): (Model, Vec<Out>) = (Model::new(&limit), Vec::new());
        for (step, op) in ops {
            hand.advance(Duration::from_micros(step));
            let now = hand.now() / MICRO;
            let (least, most) = model.remaining(now);
            let left = remaining(&engine, KEY);
            prop_assert!(
                (least..=most).contains(&left),
                "{limit:?}: {left}, not {least} to {most}"
            );
            match op {
                Op::Hit(cost) => {
                    let granted = engine.hit(KEY, cost).answer.is_allowed();
                    prop_assert_eq!(granted, cost <= left, "{:?}", limit);
                    granted.then(|| model.take(cost, now));
                }
                Op::Reserve(cost) => {
                    let receipt = reserve(&engine, KEY, cost);
                    prop_assert_eq!(receipt.is_some(), cost <= left, "{:?}", limit);
                    if let Some(receipt) = receipt {
                        out.push(Out { receipt, mark: model.take(cost, now), cost, then: now });
                    }
                }
                Op::Settle(which, part) if !out.is_empty() => {
                    let Out { receipt, mark, cost, then } = out.swap_remove(which % out.len());
                    let amount = cost - cost * part / 1_000;
                    give_back(&engine, KEY, &receipt, amount);
                    model.give_back(mark, (cost, then), amount, now);
                }
                Op::Refund(amount) if limit.algorithm != Algorithm::Bucket => {
                    engine.refund(KEY, amount);
                    model.refund(amount, now);
                }
                Op::Settle(..) | Op::Refund(_) => {}
            }
        }
    }

    /// A unit counts until `per` of time has passed since it was granted, steps back left out: so
    /// long does every window count it, whatever its clock did meanwhile.
    #[test]
    fn i9_no_clock_makes_a_window_give_back_more(
        max in 1u64..=8,
        ops in prop::collection::vec(
            (-2_000_000i64..=2_000_000, 0u8..4, 1u64..=4, 0usize..8),
            1..100,
        ),
    ) {
        let per = 1_000_000;
        let (engine, hand) = engine(Limit::window(max, Duration::from_micros(per)));
        let (mut passed, mut units, mut out) = (0u64, Vec::new(), Vec::new());
        for (step, what, cost, which) in ops {
            // One in two stands still, or nearly so.
            let step = if which % 2 == 0 { step / 1_000_000 } else { step };
            hand.set(hand.now().saturating_add_signed(step * MICRO as i64));
            passed += step.max(0) as u64;
            match what {
                0 | 1 if engine.hit(KEY, cost).answer.is_allowed() => units.push((passed, cost)),
                2 => {
                    let receipt = reserve(&engine, KEY, cost);
                    if let Some(receipt) = receipt {
                        units.push((passed, cost));
                        out.push((receipt, units.len() - 1));
                    }
                }
                3 if !out.is_empty() => {
                    let (receipt, unit): (Receipt, usize) = out.swap_remove(which % out.len());
                    let amount = cost.min(units[unit].1);
                    give_back(&engine, KEY, &receipt, amount);
                    // What has aged out counts for nothing, given back or not.
                    units[unit].1 -= amount;
                }
                _ => {}
            }
            let inside: u64 =
                units.iter().filter(|(then, _)| passed - then < per).map(|(_, n)| n).sum();
            prop_assert!(inside <= max, "I1: {inside} of {max}");
        }
    }
}

// ---- Threads ----

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// A grant that was not given back, by the clock before and after it.
#[derive(Clone, Copy)]
struct Kept {
    before: u64,
    after: u64,
    units: u64,
}

/// Reserves, settles and hits at random. What is counted is counted after it was granted, and no
/// longer before it is given back.
fn play(engine: &Engine, counted: &AtomicU64, mut dice: Dice, rounds: usize) -> Vec<Kept> {
    let (mut kept, mut out): (Vec<Kept>, Vec<(Receipt, Kept)>) = (Vec::new(), Vec::new());
    let now = || engine.clock().now();
    for _ in 0..rounds {
        let cost = 1 + dice.below(2);
        let before = now();
        match dice.below(5) {
            0 if engine.hit(KEY, cost).answer.is_allowed() => {
                counted.fetch_add(cost, SeqCst);
                kept.push(Kept { before, after: now(), units: cost });
            }
            1 | 2 => {
                if let Some(receipt) = reserve(engine, KEY, cost) {
                    counted.fetch_add(cost, SeqCst);
                    out.push((receipt, Kept { before, after: now(), units: cost }));
                }
            }
            3 | 4 if !out.is_empty() => {
                let which = dice.below(out.len() as u64) as usize;
                let (receipt, mine) = out.swap_remove(which);
                let amount = mine.units.min(1 + dice.below(2));
                counted.fetch_sub(amount, SeqCst);
                give_back(engine, KEY, &receipt, amount);
                kept.push(Kept { units: mine.units - amount, ..mine });
            }
            _ => {}
        }
    }
    kept.extend(out.into_iter().map(|(_, mine)| mine));
    kept
}

fn play_together(engine: &Engine, counted: &AtomicU64, seed: u64, rounds: usize) -> Vec<Kept> {
    std::thread::scope(|scope| {
        let player = |number: u64| {
            let dice = Dice((8 * seed + number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            scope.spawn(move || play(engine, counted, dice, rounds))
        };
        let players: Vec<_> = (0..4).map(player).collect();
        players.into_iter().flat_map(|player| player.join().unwrap()).collect()
    })
}

#[test]
fn i6_at_one_moment_threads_give_back_what_is_theirs_and_no_more() {
    let per = secs(10);
    let mixed = [Limit::window(9, per), Limit::bucket(9, per), Limit::fixed(9, per)];
    for limits in each(9, per).iter().map(std::slice::from_ref).chain([&mixed[..]]) {
        for seed in 0..10 {
            let (engine, hand) = engine_of(limits, 8);
            let counted = AtomicU64::new(0);
            let watching = AtomicBool::new(true);
            std::thread::scope(|scope| {
                let watch = || {
                    while watching.load(SeqCst) {
                        assert!(counted.load(SeqCst) <= 9, "I1");
                        std::thread::yield_now();
                    }
                };
                let watcher = scope.spawn(watch);
                play_together(&engine, &counted, seed, 2_000);
                watching.store(false, SeqCst);
                watcher.join().unwrap();
            });
            let statuses = engine.peek(KEY, 0).statuses;
            for (status, limit) in statuses.iter().zip(limits) {
                // An entry of a log that was carried stays spent.
                let is_log = limit.algorithm == Algorithm::Window;
                let counted = counted.load(SeqCst);
                let alike = status.used == counted || is_log && status.used > counted;
                assert!(alike, "I6, I7: {} of {counted}, {limits:?}, seed {seed}", status.used);
            }
            assert_eq!(hand.now(), START);
        }
    }
}

/// What was kept in any interval is within the limit: `room` of its length.
fn assert_bounded(kept: &[Kept], room: impl Fn(u64) -> u64) {
    for first in kept {
        let mut later: Vec<&Kept> = kept.iter().filter(|k| k.before >= first.before).collect();
        later.sort_by_key(|k| k.after);
        let mut units = 0;
        for one in later {
            units += one.units;
            let length = one.after - first.before;
            assert!(units <= room(length), "I1: {units} in {length} ns");
        }
    }
}

#[test]
fn i1_while_time_passes_threads_keep_no_more_than_the_limit() {
    let per = Duration::from_millis(10);
    for window in [false, true] {
        for seed in 0..4 {
            let limit = if window { Limit::window(9, per) } else { Limit::bucket(9, per) };
            let (engine, hand) = engine(limit);
            let (counted, playing) = (AtomicU64::new(0), AtomicBool::new(true));
            let kept = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while playing.load(SeqCst) {
                        hand.advance(Duration::from_micros(7));
                        std::thread::yield_now();
                    }
                });
                let kept = play_together(&engine, &counted, seed, 3_000);
                playing.store(false, SeqCst);
                kept
            });
            assert_bounded(&kept, |length| {
                let whole = length / per.as_nanos() as u64;
                match window {
                    true => 9 * (whole + 1),
                    false => 9 + (9 * length) / per.as_nanos() as u64,
                }
            });
        }
    }
}
