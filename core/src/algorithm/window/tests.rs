//! Rings on their own: damage, other numbers, give-backs, wild clocks, and an exact list of units.

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::table::row::{KeyWord, State};
use proptest::prelude::*;
use std::sync::Arc;

const NOW: u64 = 10_000_000_000;
const SECOND: u64 = 1_000_000_000;
const PER: u64 = 60_000_000;
const WINDOWS: [Window; 1] = [Window { max: 4, per_us: PER, index: 0 }];

/// The words of a ring, and a clock.
struct Setting {
    key: AtomicU64,
    words: Vec<AtomicU64>,
    clock: Clock,
    hand: Arc<ManualClock>,
}

impl Setting {
    fn new(words: impl IntoIterator<Item = u64>) -> Setting {
        let (clock, hand) = Clock::manual(NOW);
        let words = words.into_iter().map(AtomicU64::new).collect();
        let key = AtomicU64::new(KeyWord::new(State::Live, 1, 7).0);
        Setting { key, words, clock, hand }
    }

    fn empty(slots: usize) -> Setting {
        Setting::new(vec![0; HEADER_WORDS + slots])
    }

    fn with<R>(&self, act: impl FnOnce(&Ring<'_>, &mut Time<'_>) -> R) -> R {
        let row = Row::new(&self.key, KeyWord::new(State::Live, 1, 7), &self.words);
        let ring = Ring::new(&row, 0, self.words.len() - HEADER_WORDS);
        act(&ring, &mut Time::read(&self.clock))
    }

    fn take(&self, window: Window, cost: u64, keep_us: u64) -> Option<Entry> {
        self.with(|ring, time| ring.take(&[window], cost, keep_us, time).unwrap())
    }

    /// How many units are granted at once.
    fn room(&self, window: Window, keep_us: u64) -> usize {
        (0..50).take_while(|_| self.take(window, 1, keep_us).is_some()).count()
    }

    fn refund(&self, per_us: u64, units: u64) {
        self.with(|ring, time| ring.refund(per_us, &mut units.clone(), time.now()).unwrap());
    }

    fn status(&self, window: Window, cost: u64) -> Status {
        let mut told = Status::default();
        self.with(|ring, time| ring.inspect(&[window], cost, time.now(), |_, s| told = s));
        told
    }

    fn order(&self) -> Order {
        self.with(|ring, _| ring.log(ring.tip()).order)
    }
}

fn window(max: u64, seconds: u64) -> Window {
    Window { max, per_us: seconds * 1_000_000, index: 0 }
}

/// Hits a ring with these words, and says how often that was granted.
fn granted<const SLOTS: usize>(header: [u64; HEADER_WORDS], slots: [u64; SLOTS]) -> usize {
    let setting = Setting::new(header.into_iter().chain(slots));
    setting.status(WINDOWS[0], 1);
    setting.refund(PER, 1);
    (0..20).filter(|_| setting.take(WINDOWS[0], 1, PER).is_some()).count()
}

#[test]
fn an_entry_ahead_of_the_clock_whose_lap_is_damaged_hangs_nobody() {
    let ahead = |lap| Slot::new(lap, 1, stamp::of(2 * NOW)).0;
    for descent in [0, 2, u64::MAX] {
        let slots = [ahead(5), 0, 0, 0];
        assert!(granted([1, 0, 0, descent], slots) <= 4, "I8: position 0 is of lap 1");
        let slots = [ahead(1), ahead(6), ahead(1), ahead(0)];
        assert!(granted([4, 0, 9, descent], slots) <= 4, "I8: mixed");
    }
}

#[test]
fn a_damaged_ring_grants_its_limit_once() {
    let gone = |lap| Slot::new(lap, 1, stamp::of(NOW).wrapping_sub(61_000_000)).0;
    for base in [1, 2, 5, 1 << 40, u64::MAX] {
        assert!(granted([0, base, 0, 0], [0, 0, 0, 0]) <= 4, "I1: base {base}");
        let slots = [gone(3), gone(2), gone(2), gone(2)];
        assert!(granted([9, base, 0, 0], slots) <= 4, "I1: base {base}");
    }
    for head in [u64::MAX, u64::MAX - 2, u64::MAX - 9, FAR, FAR - 3] {
        assert!(granted([head, 0, 0, 0], [0, 0, 0, 0]) <= 4, "I1: head {head}");
        assert!(granted([head, head, u64::MAX, 0], [0, 0, 0, 0]) <= 4, "I1: head {head}");
        let marks = [head, head, u64::MAX, u64::MAX];
        assert!(granted(marks, [0, 0, 0, 0]) <= 4, "I1: head {head}");
    }
    // Entries that the head passes as if they had been admitted, in a ring with room for more.
    for lap in 0..8 {
        let old = gone(lap);
        let slots = [0, 0, 0, 0, old, old, old, old];
        assert!(granted([0, 0, 0, 0], slots) <= 4, "I1: lap {lap}");
    }
}

#[test]
fn damaged_positions_are_no_overflow() {
    for head in [u64::MAX, u64::MAX - 1, u64::MAX - 4, 1 << 63] {
        for mixed in [0, head, u64::MAX] {
            for descent in [0, head, u64::MAX] {
                granted([head, 0, mixed, descent], [u64::MAX; 4]);
                granted([head, u64::MAX, mixed, descent], [0, 1 << 61, 5, u64::MAX]);
            }
        }
    }
}

/// Others come in since, over entries that had left the window.
#[test]
fn a_log_as_of_an_entry_has_nothing_that_came_later() {
    let windows = [window(3, 1)];
    let setting = Setting::empty(3);
    let take = |at: u64| {
        setting.hand.set(at);
        setting.take(windows[0], 1, 1_000_000).expect("room").position
    };
    take(NOW);
    take(NOW + 500_000_000);
    let now = NOW + SECOND;
    let third = take(now);
    let view = || {
        let mut told = Status::default();
        setting.with(|ring, _| ring.inspect_by(third, &windows, 0, now, |_, s| told = s));
        told
    };
    let told = view();
    assert_eq!(told, Status { used: 2, wait: 0, more: 500_000_000, reset: SECOND });
    take(now);
    assert_eq!(view(), told);
}

const HOUR: u64 = 3_600_000_000;

#[test]
fn i13_a_call_by_a_shorter_per_overwrites_no_unit_that_a_longer_one_counts() {
    let (slow, fast) = (window(5, 3600), window(5, 1));
    let granted = |keep_us: u64| {
        let setting = Setting::empty(5);
        assert_eq!(setting.room(slow, HOUR), 5);
        setting.refund(HOUR, 1);
        setting.hand.advance(std::time::Duration::from_secs(2));
        assert!(setting.take(fast, 1, keep_us).is_some());
        // Four that are left of the first five, and the fast one.
        setting.room(slow, HOUR)
    };
    assert_eq!(granted(fast.per_us), 1, "kept by the caller's own numbers a unit is lost");
    assert_eq!(granted(HOUR), 0, "I13");
}

#[test]
fn i13_a_ring_full_of_live_entries_loses_no_unit_to_a_call_by_a_shorter_per() {
    let (slow, fast) = (window(5, 3600), window(5, 1));
    for given_back in 0..=5 {
        let setting = Setting::empty(5);
        assert_eq!(setting.room(slow, HOUR), 5);
        setting.hand.advance(std::time::Duration::from_secs(2));
        assert_eq!(setting.room(fast, HOUR), 5, "the fast numbers are not held up");
        assert_eq!(setting.status(slow, 1).used, 10, "I1: ten were granted");
        setting.refund(HOUR, given_back);
        assert_eq!(setting.room(slow, HOUR), 0, "I13: {given_back} of ten were given back");
    }
}

#[test]
fn a_refund_by_a_shorter_per_gives_nothing_back_that_is_older() {
    let setting = Setting::empty(5);
    assert_eq!(setting.room(window(5, 3600), HOUR), 5);
    setting.hand.advance(std::time::Duration::from_secs(2));
    setting.refund(1_000_000, 5);
    assert_eq!(setting.room(window(5, 3600), HOUR), 0, "I13");
}

#[test]
fn i6_an_entry_gives_back_its_own_units_while_they_count() {
    let setting = Setting::empty(5);
    let mine = setting.take(window(5, 60), 3, PER).unwrap();
    let other = setting.take(window(5, 60), 1, PER).unwrap();
    let mine = Entry::from_words(mine.to_words());
    let give_back = |entry: Entry, amount: u64| {
        setting.with(|ring, time| ring.give_back(entry, amount, PER, time.now()).unwrap())
    };
    assert_eq!(give_back(mine, 1), 1);
    assert_eq!(setting.status(window(5, 60), 1).used, 3);
    assert_eq!(give_back(mine, 9), 2, "what is left of it, and nothing of another's");
    assert_eq!(give_back(mine, 9), 0);
    assert_eq!(setting.status(window(5, 60), 1).used, 1);
    setting.hand.advance(std::time::Duration::from_secs(60));
    assert_eq!(give_back(other, 1), 0, "it has left the window");
}

#[test]
fn i6_an_entry_that_was_overwritten_or_cleared_gives_nothing_back() {
    let setting = Setting::empty(2);
    let minute = window(2, 60);
    let give_back = |entry: Entry| {
        setting.with(|ring, time| ring.give_back(entry, 1, u64::MAX >> 20, time.now()).unwrap())
    };
    let first = setting.take(minute, 1, PER).unwrap();
    setting.hand.advance(std::time::Duration::from_secs(60));
    assert_eq!(setting.room(minute, PER), 2);
    assert_eq!(give_back(first), 0, "I6: overwritten");
    let cleared = setting.with(|ring, time| ring.reset_words(PER, time.now(), None));
    assert!(cleared);
    let before = setting.take(minute, 1, PER).unwrap();
    assert!(setting.with(|ring, time| ring.reset_words(PER, time.now(), None)));
    assert_eq!(setting.room(minute, PER), 2);
    assert_eq!(give_back(before), 0, "I6: cleared");
    let nonsense = [[0, 0], [u64::MAX, u64::MAX], [1, 1 << 61], [u64::MAX, 0], [3, u64::MAX]];
    for words in nonsense {
        assert_eq!(give_back(Entry::from_words(words)), 0, "{words:?}");
    }
}

#[test]
fn a_log_is_untouched_since_its_newest_entry() {
    let setting = Setting::empty(4);
    let untouched = || setting.with(|ring, time| ring.untouched_for(time.now()));
    assert_eq!(untouched(), u64::MAX);
    setting.take(WINDOWS[0], 1, PER);
    assert_eq!(untouched(), 0);
    setting.hand.set(NOW + 1_234_567);
    assert_eq!(untouched(), 1_234_567);
    setting.take(WINDOWS[0], 2, PER);
    setting.hand.set(NOW + 3_000_000);
    assert_eq!(untouched(), 3_000_000 - 1_235_000);
    setting.hand.set(NOW - 5_000);
    assert_eq!(untouched(), 0, "I9: ahead of the clock");
    setting.with(|ring, time| ring.reset_words(PER, time.now(), None));
    assert_eq!(untouched(), u64::MAX);
}

#[test]
fn a_hit_that_overwrites_no_live_entry_is_told_by_its_own_look() {
    for costs in [[1, 1, 1, 1], [2, 1, 1, 2]] {
        let setting = Setting::empty(4);
        for (i, cost) in costs.into_iter().cycle().take(12).enumerate() {
            setting.hand.set(NOW + i as u64 * PER * 1000);
            let mut told = Status::default();
            let admitted = setting.with(|ring, time| {
                ring.hit(&WINDOWS[..1], cost, PER, time, |_, status| told = status).unwrap()
            });
            assert!(matches!(admitted, Some((_, true))), "{admitted:?}");
            assert_eq!(told, setting.status(WINDOWS[0], 0));
        }
    }
}

#[test]
fn i9_a_look_reads_stamps_ahead_as_made_now() {
    for (cost, back) in [(1, 3 * HOUR), (2, 3 * HOUR), (1, 2), (2, 1)] {
        let setting = Setting::empty(4);
        setting.hand.set(100 * HOUR * 1000);
        while setting.take(WINDOWS[0], cost, PER).is_some() {}
        setting.hand.set((100 * HOUR - back) * 1000);
        let status = setting.status(WINDOWS[0], 1);
        let most = PER * 1000;
        assert!(status.wait <= most && status.more <= most && status.reset <= most, "{status:?}");
        assert_eq!(status.used, 4);
    }
}

/// Stamps repeat after 8.9 years: one that is 5 years old seems to be 3.9 years ahead.
#[test]
fn i9_an_entry_so_old_that_it_seems_ahead_denies_for_one_per_at_most() {
    const YEAR: u64 = 365 * 24 * 3_600 * SECOND;
    let setting = Setting::empty(4);
    assert_eq!(setting.room(WINDOWS[0], PER), 4);
    setting.hand.set(4 * YEAR);
    assert!(setting.take(WINDOWS[0], 1, PER).is_some());
    setting.hand.set(5 * YEAR);
    setting.room(WINDOWS[0], PER);
    setting.hand.set(5 * YEAR + PER * 1000);
    assert_eq!(setting.room(WINDOWS[0], PER), 4);
}

/// What an exact log says: stamps of single units in microseconds, and whether they count.
fn exact(units: &[u64], window: Window, cost: u64, now: u64) -> Status {
    let left = |stamp: u64| (stamp + window.per_us) * stamp::MICRO;
    let mut live: Vec<u64> = units.iter().map(|&s| left(s)).filter(|&end| end > now).collect();
    live.sort_unstable();
    let used = live.len() as u64;
    let wait = |cost: u64| match window.max.checked_sub(cost) {
        None => crate::status::NEVER,
        Some(rest) if used <= rest => 0,
        Some(rest) => live[(used - rest - 1) as usize] - now,
    };
    let more = if used == 0 { 0 } else { wait(window.max.saturating_sub(used) + 1) };
    Status { used, wait: wait(cost), more, reset: live.last().map_or(0, |end| end - now) }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Hit(u64),
    Refund(u64),
    GiveBack(usize, u64),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u64..=3).prop_map(Op::Hit),
        1 => (1u64..=4).prop_map(Op::Refund),
        1 => (0usize..8, 1u64..=3).prop_map(|(which, amount)| Op::GiveBack(which, amount)),
        4 => (0u64..400_000_000).prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// Weights, voids and carried entries, in rings with spare room and without: whatever the
    /// order of the log, each window says what an exact list of units does.
    #[test]
    fn i5_a_log_in_any_order_says_what_an_exact_list_of_units_does(
        max in 1u64..=8, spare in 0usize..3, ops in prop::collection::vec(op(), 1..120),
    ) {
        let windows = [
            Window { max: max.div_ceil(2), per_us: 300_000, index: 0 },
            Window { max, per_us: 1_000_000, index: 1 },
        ];
        let setting = Setting::empty(max as usize + spare);
        let mut entries: Vec<(Entry, u64, u64)> = Vec::new();
        let units = |entries: &[(Entry, u64, u64)]| -> Vec<u64> {
            let each = |&(_, stamp, weight): &(Entry, u64, u64)| vec![stamp; weight as usize];
            entries.iter().flat_map(each).collect()
        };
        for op in ops {
            let now = setting.hand.now();
            let left = |stamp: u64| (stamp + 1_000_000) * stamp::MICRO <= now;
            match op {
                Op::Pass(nanos) => setting.hand.set(now + nanos),
                Op::Hit(cost) => {
                    let mut told = [Status::default(); 2];
                    let entry = setting
                        .with(|ring, time| {
                            ring.hit(&windows, cost, 1_000_000, time, |w, s| told[w.index] = s)
                        })
                        .unwrap();
                    let says = windows.map(|w| exact(&units(&entries), w, cost, now));
                    prop_assert_eq!(entry.is_some(), says.iter().all(|s| s.wait == 0), "I1");
                    match entry {
                        Some((entry, is_told)) => {
                            entries.push((entry, stamp::of(now), cost));
                            let says = windows.map(|w| exact(&units(&entries), w, 0, now));
                            prop_assert!(!is_told || told == says, "{:?} for {:?}", told, says);
                        }
                        None => prop_assert_eq!(told, says, "I5: {:?}", setting.order()),
                    }
                }
                Op::Refund(mut amount) => {
                    setting.refund(1_000_000, amount);
                    for (_, stamp, weight) in entries.iter_mut().rev() {
                        let back = if left(*stamp) { 0 } else { amount.min(*weight) };
                        (*weight, amount) = (*weight - back, amount - back);
                    }
                }
                Op::GiveBack(which, amount) => {
                    let at = entries.len().saturating_sub(which + 1);
                    let Some(&(entry, stamp, _)) = entries.get(at) else { continue };
                    // What was carried stays spent, so the ring says how much it was.
                    let mut back = setting
                        .with(|ring, time| ring.give_back(entry, amount, 1_000_000, time.now()))
                        .unwrap();
                    prop_assert!(back <= amount, "I6");
                    // A refund may have taken a carried unit of the same microsecond instead of
                    // this entry's. Such units differ in nothing but their place.
                    let same = |entry: &&mut (Entry, u64, u64)| entry.1 == stamp;
                    for (_, _, weight) in entries.iter_mut().filter(same) {
                        let from_here = back.min(*weight);
                        (*weight, back) = (*weight - from_here, back - from_here);
                    }
                    prop_assert_eq!(back, 0, "I6");
                }
            }
            let now = setting.hand.now();
            for cost in [0, 1, max] {
                for window in windows {
                    let says = exact(&units(&entries), window, cost, now);
                    prop_assert_eq!(
                        setting.status(window, cost),
                        says,
                        "I5: {:?}",
                        setting.order()
                    );
                }
            }
        }
    }

    /// Entries of any weight and age in any order, close together or far apart: the pass over them
    /// and the selection find what sorting all units does.
    #[test]
    fn i5_a_long_log_in_any_order_says_what_a_sorted_list_of_units_does(
        entries in prop::collection::vec((0u64..=4, 0u64..1 << 46), 1..200),
        closer in 0u32..46, per_us in 0u64..1 << 46, over in 0u64..1000,
        costs in prop::collection::vec(1u64..400, 6),
    ) {
        let (now, per_us) = ((1 << 58) + over, per_us >> closer | 1);
        let made = now / stamp::MICRO;
        let entries = entries.iter().map(|&(weight, age)| (weight, made - (age >> closer)));
        let entries: Vec<(u64, u64)> = entries.collect();
        let slots = entries.len() as u64;
        let words = entries.iter().map(|&(weight, stamp)| Slot::new(1, weight, stamp).0);
        let setting = Setting::new([slots, 0, 2 * slots, slots].into_iter().chain(words));
        setting.hand.set(now);
        prop_assert_eq!(setting.order(), Order::Any);
        let unit = |&(weight, stamp): &(u64, u64)| vec![stamp; weight as usize];
        let units: Vec<u64> = entries.iter().flat_map(unit).collect();
        for &cost in &costs {
            let window = Window { max: costs[0].max(cost), per_us, index: 0 };
            let says = exact(&units, window, cost, now);
            prop_assert_eq!(setting.status(window, cost), says, "I5");
        }
    }

    /// Two sets of numbers judge one log in turn: neither grants more than its own `max` in its
    /// own `per`, whatever the other granted, and whatever was given back.
    #[test]
    fn i13_numbers_that_take_turns_find_no_more_than_their_own(
        max in 1u64..=6, other in 1u64..=6, spare in 0usize..2,
        ops in prop::collection::vec((op(), any::<bool>()), 1..150),
    ) {
        let both = [
            Window { max, per_us: 3_000_000, index: 0 },
            Window { max: other, per_us: 200_000, index: 0 },
        ];
        let keep_us = both[0].per_us;
        let setting = Setting::empty(max.max(other) as usize + spare);
        let mut net: Vec<(u64, u64)> = Vec::new();
        for (op, slow) in ops {
            let window = both[usize::from(!slow)];
            let now = setting.hand.now();
            match op {
                Op::Pass(nanos) => setting.hand.set(now + nanos),
                Op::Hit(cost) => {
                    if setting.take(window, cost, keep_us).is_some() {
                        let inside = |s: u64| (s + window.per_us) * stamp::MICRO > now;
                        let used: u64 =
                            net.iter().filter(|(s, _)| inside(*s)).map(|(_, w)| w).sum();
                        prop_assert!(used + cost <= window.max, "I13: {} in use", used);
                        net.push((stamp::of(now), cost));
                    }
                }
                Op::Refund(amount) | Op::GiveBack(_, amount) => {
                    let mut amount = amount;
                    setting.refund(window.per_us, amount);
                    // No more than was asked for, though units that were moved to a younger
                    // entry may be among it.
                    for (stamp, weight) in net.iter_mut().rev() {
                        let gone = (*stamp + keep_us) * stamp::MICRO <= now;
                        let back = if gone { 0 } else { amount.min(*weight) };
                        (*weight, amount) = (*weight - back, amount - back);
                    }
                }
            }
        }
    }

    /// Any times at all, in any order: no arithmetic overflows, nothing hangs, and nothing is
    /// denied for longer than `per` by a clock that stays where it is.
    #[test]
    fn i9_a_wild_clock_overflows_nothing_and_denies_for_one_per_at_most(
        max in 1u64..=5,
        ops in prop::collection::vec((op(), any::<u64>(), 0u32..64, any::<bool>()), 1..60),
    ) {
        let window = Window { max, per_us: 1_000_000, index: 0 };
        let setting = Setting::empty(max as usize);
        for (op, bits, down, from_the_end) in ops {
            let time = bits >> down;
            setting.hand.set(if from_the_end { u64::MAX - time } else { time });
            match op {
                Op::Hit(cost) => drop(setting.take(window, cost, 1_000_000)),
                Op::Refund(amount) => setting.refund(1_000_000, amount),
                Op::GiveBack(..) | Op::Pass(_) => {}
            }
            setting.with(|ring, time| ring.untouched_for(time.now()));
            let status = setting.status(window, 1);
            // A stamp is a whole microsecond, rounded up.
            let most = 1_000_001_000;
            prop_assert!(status.wait <= most && status.more <= most && status.reset <= most);
        }
        let now = 1 << 40;
        setting.hand.set(now);
        // A refusal repairs what is ahead, so its wait is exact.
        setting.room(window, 1_000_000);
        setting.hand.set(now + setting.status(window, 1).wait);
        if setting.take(window, 1, 1_000_000).is_none() {
            // A stamp of half a range ago has come to look ahead meanwhile: it counts once more.
            setting.hand.advance(std::time::Duration::from_secs(1));
            prop_assert!(setting.take(window, 1, 1_000_000).is_some(), "I9");
        }
    }
}
