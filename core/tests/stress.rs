//! Real threads on one engine, and a checker that goes over the history of what was granted.
//!
//! * **I1** bound: over any interval a bucket grants at most burst + max·(b−a)/per, a window at
//!   most `max` in any `per`
//! * **I2** no loss: n concurrent hits on a fresh key grant exactly min(n, limit)
//! * **I6** refund: gives back exactly what was taken
//! * **I7** all or nothing: at rest, the limits of a rule are charged alike
//! * **I8** never wedge: everything ends, whatever races
//! * **I10** live keys stay: an eviction changes nobody's rights
//!
//! A hit judges by a clock reading of its own that nobody outside sees. It is read between the two
//! readings that the caller takes around the call, so a grant is known to lie in `[before, after]`.
//! The checker charges an interval only with grants that lie in it whole. That is sound with any
//! clock.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tidegate_core::{
    Algorithm, Clock, Count, Engine, Limit, LimitStatuses, Limits, ManualClock, OnFull, Options,
    Time, hit_together,
};

const MILLISECOND: u64 = 1_000_000;
/// The system clock extrapolates from anchors that may differ by this much between threads.
const CLOCK_SLACK: u64 = 3_000;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_le_bytes()
}

fn engine(limits: &[Limit], capacity: usize, clock: Clock) -> Engine {
    let options = Options { capacity, on_full: OnFull::Deny, clock, seed: None };
    Engine::new(Limits::new(limits).unwrap(), options).unwrap()
}

/// A small generator of its own, so that a thread's choices cost next to nothing.
struct Dice(u64);

impl Dice {
    fn new(seed: usize) -> Dice {
        Dice((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }
}

/// Where threads meet so that they start within nanoseconds of each other: waking sleepers, as
/// `std::sync::Barrier` does, sets them microseconds apart, and they would never race.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
    broken: AtomicBool,
}

impl Gate {
    fn new(threads: usize) -> Gate {
        Gate { threads, arrived: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    fn wait(&self) {
        let goal = (self.arrived.fetch_add(1, SeqCst) / self.threads + 1) * self.threads;
        let mut turns = 0;
        while self.arrived.load(SeqCst) < goal {
            assert!(!self.broken.load(SeqCst), "another thread failed");
            turns += 1;
            // There may be more threads than cores.
            if turns % 64 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// A thread that panics must not leave the others at the gate for ever.
struct BreaksGate<'g>(&'g Gate);

impl Drop for BreaksGate<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, SeqCst);
        }
    }
}

/// Runs `act` on so many threads at once and hands back what each made.
fn on_threads<R: Send>(threads: usize, act: impl Fn(usize, &Gate) -> R + Sync) -> Vec<R> {
    let gate = Gate::new(threads);
    let run = |thread| {
        let _breaks = BreaksGate(&gate);
        gate.wait();
        act(thread, &gate)
    };
    let run = &run;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        all.into_iter().map(|thread| thread.join().expect("a thread failed")).collect()
    })
}

/// One grant: made between the two clock readings.
#[derive(Clone, Copy, Debug)]
struct Grant {
    key: usize,
    before: u64,
    after: u64,
}

/// Hits once and logs the grant.
fn hit_and_log(engine: &Engine, number: usize, log: &mut Vec<Grant>) {
    let before = engine.clock().now();
    if engine.allow(&key(number)) {
        log.push(Grant { key: number, before, after: engine.clock().now() });
    }
}

/// The grants of each key, in the order of `after`.
fn by_key(logs: Vec<Vec<Grant>>) -> Vec<Vec<Grant>> {
    let mut all = logs.concat();
    all.sort_by_key(|grant| (grant.key, grant.after));
    all.chunk_by(|a, b| a.key == b.key).map(<[Grant]>::to_vec).collect()
}

/// For each grant, a time before which neither it nor any later one of the list began: grants i..=j
/// lie whole in `[starts[i], grants[j].after]`.
fn starts(grants: &[Grant]) -> Vec<u64> {
    let mut starts: Vec<u64> = grants.iter().map(|grant| grant.before).collect();
    for i in (1..starts.len()).rev() {
        starts[i - 1] = starts[i - 1].min(starts[i]);
    }
    starts
}

/// I1 for a bucket, over all intervals at once. Let f(i) = i·per − max·start(i). Grants i..=j are
/// too many exactly when (j+1)·per − max·after(j) − f(i) is above burst·per. So the least f
/// decides.
fn check_bucket(grants: &[Grant], limit: &Limit, slack: u64) {
    let (per, max) = (limit.per.as_nanos() as i128, i128::from(limit.max));
    let burst = i128::from(limit.burst.unwrap_or(limit.max)) * per;
    let mut least = i128::MAX;
    for (i, (grant, start)) in grants.iter().zip(starts(grants)).enumerate() {
        let start = i128::from(start) - i128::from(slack);
        least = least.min(i as i128 * per - max * start);
        let most = (i as i128 + 1) * per - max * i128::from(grant.after + slack) - least;
        assert!(most <= burst, "I1: {limit:?} granted too many up to {i}: {grant:?}");
    }
}

/// I1 for a window: any max + 1 grants span at least `per`.
fn check_window(grants: &[Grant], limit: &Limit, slack: u64) {
    let (per, max) = (limit.per.as_nanos() as u64, limit.max as usize);
    let starts = starts(grants);
    for last in max..grants.len() {
        let span = (grants[last].after + slack).saturating_sub(starts[last - max] - slack);
        assert!(span >= per, "I1: {limit:?} granted {} in {span} ns: {last}", max + 1);
    }
}

/// I1 for every limit and key of a history.
fn check_history(grants: &[Vec<Grant>], limits: &[Limit], slack: u64) {
    for (grants, limit) in grants.iter().flat_map(|g| limits.iter().map(move |l| (g, l))) {
        match limit.algorithm {
            Algorithm::Bucket => check_bucket(grants, limit, slack),
            Algorithm::Window => check_window(grants, limit, slack),
            _ => unreachable!("not promised"),
        }
    }
}

#[test]
fn the_checker_itself_finds_one_grant_too_many() {
    let at = |t: u64| Grant { key: 0, before: t * MILLISECOND, after: t * MILLISECOND };
    let (bucket, window) = (Limit::bucket(1, ms(10)).burst(3), Limit::window(3, ms(10)));
    let good = [0, 0, 0, 10, 20].map(at);
    check_bucket(&good, &bucket, 0);
    check_window(&good, &window, 0);
    let fails =
        |act: &(dyn Fn() + std::panic::RefUnwindSafe)| std::panic::catch_unwind(act).is_err();
    assert!(fails(&|| check_bucket(&[0, 0, 0, 10, 19].map(at), &bucket, 0)));
    assert!(fails(&|| check_window(&[0, 1, 2, 9, 12].map(at), &window, 0)));
    // A grant that may have been early or late proves nothing.
    let vague = Grant { key: 0, before: 0, after: 10 * MILLISECOND };
    check_bucket(&[at(0), at(0), at(0), vague], &bucket, 0);
    check_window(&[at(0), at(0), at(0), vague], &window, 0);
}

/// The crowd of one run, and how much it hits.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    threads: usize,
    keys: usize,
    hits: usize,
}

const CROWDS: [Crowd; 9] = [
    Crowd { threads: 2, keys: 1, hits: 200_000 },
    Crowd { threads: 4, keys: 1, hits: 200_000 },
    Crowd { threads: 8, keys: 1, hits: 200_000 },
    Crowd { threads: 2, keys: 10, hits: 200_000 },
    Crowd { threads: 3, keys: 10, hits: 200_000 },
    Crowd { threads: 8, keys: 10, hits: 200_000 },
    Crowd { threads: 2, keys: 10_000, hits: 400_000 },
    Crowd { threads: 4, keys: 10_000, hits: 400_000 },
    Crowd { threads: 8, keys: 10_000, hits: 400_000 },
];

/// Hits by hand-moved time. The first thread empties every key and only then moves the clock on, so
/// that what must have been granted is known to the unit. The other threads hit keys at random
/// meanwhile. Returns the history and how often the clock was moved.
fn run_by_hand(
    engine: &Engine,
    hand: &ManualClock,
    crowd: Crowd,
    most: usize,
    step: Duration,
) -> (Vec<Vec<Grant>>, u64) {
    let share = crowd.hits / crowd.threads;
    let moves = (share / (most * crowd.keys)).max(2) - 1;
    let logs = on_threads(crowd.threads, |thread, _| {
        let mut log = Vec::with_capacity(crowd.hits);
        if thread > 0 {
            let mut dice = Dice::new(thread);
            (0..share).for_each(|_| hit_and_log(engine, dice.below(crowd.keys), &mut log));
            return log;
        }
        for turn in 0..=moves {
            for number in 0..most * crowd.keys {
                hit_and_log(engine, number % crowd.keys, &mut log);
            }
            if turn < moves {
                hand.advance(step);
            }
        }
        log
    });
    (by_key(logs), moves as u64)
}

/// Hits by the system's time, keys at random.
fn run_by_system(engine: &Engine, crowd: Crowd) -> Vec<Vec<Grant>> {
    let share = crowd.hits / crowd.threads;
    by_key(on_threads(crowd.threads, |thread, _| {
        let (mut log, mut dice) = (Vec::with_capacity(share), Dice::new(thread));
        (0..share).for_each(|_| hit_and_log(engine, dice.below(crowd.keys), &mut log));
        log
    }))
}

// 2,400,000 hits.
#[test]
fn buckets_grant_their_bound_and_not_one_more_by_hand_moved_time() {
    for crowd in CROWDS {
        // A step refills two tokens, so the first thread's four hits empty the key in every turn.
        let limits = [Limit::bucket(2_000, ms(1_000)).burst(4)];
        let (clock, hand) = Clock::manual(MILLISECOND);
        let engine = engine(&limits, crowd.keys, clock);
        let (history, moves) = run_by_hand(&engine, &hand, crowd, 4, ms(1));
        check_history(&history, &limits, 0);
        for grants in &history {
            let due = 4 + 2 * moves;
            assert_eq!(grants.len() as u64, due, "I1, I2: {crowd:?}: bound and no loss");
        }
        assert_eq!((history.len(), engine.total(Count::Full)), (crowd.keys, 0), "{crowd:?}");
    }
}

// 2,400,000 hits.
#[test]
fn windows_grant_their_bound_and_not_one_more_by_hand_moved_time() {
    for crowd in CROWDS {
        // Three steps to a window; the first grants of all come at its start.
        let limits = [Limit::window(4, ms(3))];
        let (clock, hand) = Clock::manual(MILLISECOND);
        let engine = engine(&limits, crowd.keys, clock);
        let (history, moves) = run_by_hand(&engine, &hand, crowd, 4, ms(1));
        check_history(&history, &limits, 0);
        for grants in &history {
            let due = 4 * (moves / 3 + 1);
            assert_eq!(grants.len() as u64, due, "I1, I2: {crowd:?}: bound and no loss");
        }
    }
}

// 2,400,000 hits.
#[test]
fn a_rule_with_both_keeps_both_bounds_by_hand_moved_time() {
    for crowd in CROWDS {
        let limits = [Limit::bucket(2_000, ms(1_000)).burst(4), Limit::window(5, ms(4))];
        let (clock, hand) = Clock::manual(MILLISECOND);
        let engine = engine(&limits, crowd.keys, clock);
        let (history, _) = run_by_hand(&engine, &hand, crowd, 5, ms(1));
        check_history(&history, &limits, 0);
        assert_eq!(history.len(), crowd.keys, "I2: {crowd:?}: every key got something");
    }
}

// 3 × 2,400,000 hits.
#[test]
fn no_interval_of_real_time_holds_more_than_the_bound() {
    let bucket = Limit::bucket(20_000, ms(1_000)).burst(5);
    let window = Limit::window(20, ms(2));
    for limits in [&[bucket][..], &[window], &[bucket, window]] {
        for crowd in CROWDS {
            let engine = engine(limits, crowd.keys, Clock::System);
            let history = run_by_system(&engine, crowd);
            check_history(&history, limits, CLOCK_SLACK);
            let granted: usize = history.iter().map(Vec::len).sum();
            assert_eq!(engine.total(Count::Allowed), granted as u64, "{crowd:?}");
            assert_eq!(engine.total(Count::Denied), (share_sum(crowd) - granted) as u64);
            assert!(granted >= crowd.keys.min(1_000), "I2: {crowd:?}: only {granted} granted");
        }
    }
}

fn share_sum(crowd: Crowd) -> usize {
    crowd.hits / crowd.threads * crowd.threads
}

/// Every thread hits each of `keys` new keys `each` times; the grants of each key.
fn hammer_fresh(
    engine: &Engine,
    threads: usize,
    keys: std::ops::Range<usize>,
    each: usize,
) -> Vec<usize> {
    let counts = on_threads(threads, |_, _| {
        // All in one order, so that they meet at every key.
        let grants = |number| (0..each).filter(|_| engine.allow(&key(number))).count();
        keys.clone().map(grants).collect::<Vec<usize>>()
    });
    (0..keys.len()).map(|i| counts.iter().map(|of_thread| of_thread[i]).sum()).collect()
}

#[test]
fn concurrent_hits_on_a_fresh_key_grant_exactly_the_limit() {
    for limit in [Limit::bucket(7, ms(60_000)), Limit::window(7, ms(60_000))] {
        for (threads, keys, each) in [
            (2, 1, 3),
            (2, 1, 9),
            (8, 1, 5),
            (2, 10, 2),
            (4, 10, 9),
            (2, 10_000, 5),
            (8, 10_000, 3),
        ] {
            // The clock stands still, so nothing refills: the sum is known.
            let engine = engine(&[limit], 20_000, Clock::manual(5).0);
            for round in 0..(2_000 / keys).max(1) {
                let fresh = round * keys..(round + 1) * keys;
                let due = (threads * each).min(7);
                let granted = hammer_fresh(&engine, threads, fresh, each);
                let wrong = granted.iter().find(|&&sum| sum != due);
                assert_eq!(wrong, None, "I2: {limit:?}, {threads} threads, {keys} keys: {due} due");
            }
        }
    }
}

#[test]
fn concurrent_records_of_a_fixed_limit_are_told_different_counts() {
    // Who counts by what `record` says, as other libraries' middleware does, grants exactly so
    // many.
    let limit = Limit { algorithm: Algorithm::Fixed, ..Limit::window(7, ms(60_000)) };
    for (threads, each) in [(2, 20_000), (8, 5_000)] {
        let engine = engine(&[limit], 64, Clock::manual(5).0);
        let record = |_: usize, _: &Gate| -> Vec<u64> {
            (0..each).map(|_| engine.record(&key(1), 1)[0].used).collect()
        };
        let mut told = on_threads(threads, record).concat();
        told.sort_unstable();
        assert!(told.into_iter().eq(1..=(threads * each) as u64), "I2: {threads} threads");
    }
}

/// Threads that meet round after round: `act` on all of them at once, `alone` on one in between.
fn in_rounds(
    threads: usize,
    rounds: usize,
    act: impl Fn(usize, usize) + Sync,
    alone: impl Fn(usize) + Sync,
) {
    on_threads(threads, |thread, gate| {
        for round in 0..rounds {
            act(thread, round);
            gate.wait();
            if thread == 0 {
                alone(round);
            }
            gate.wait();
        }
    });
}

/// What all threads were granted, by key.
fn tally(keys: usize) -> Vec<AtomicUsize> {
    (0..keys).map(|_| AtomicUsize::new(0)).collect()
}

#[test]
fn threads_that_insert_the_same_new_keys_share_one_row_for_each() {
    // A second row of a key would grant its limit a second time.
    for (threads, capacity) in [(2, 8), (2, 64), (3, 16), (8, 32)] {
        let limit = Limit::bucket(3, ms(60_000));
        let engine = engine(&[limit], capacity, Clock::manual(MILLISECOND).0);
        let granted = tally(capacity);
        let act = |_, round: usize| {
            for (number, count) in granted.iter().enumerate() {
                let name = key(round * capacity + number);
                let mine = (0..3).filter(|_| engine.allow(&name)).count();
                count.fetch_add(mine, SeqCst);
            }
        };
        let alone = |round| {
            for (number, count) in granted.iter().enumerate() {
                let sum = count.swap(0, SeqCst);
                assert_eq!(sum, 3, "I2: key {number} of round {round}, {threads} threads");
            }
            assert_eq!(engine.len(), capacity, "I10: one row for each key, round {round}");
            engine.reset_all();
            assert_eq!(engine.len(), 0);
        };
        in_rounds(threads, 24_000 / capacity, act, alone);
    }
}

#[test]
fn new_keys_that_take_over_idle_rows_have_one_row_each() {
    // Nobody frees a row here: each round's keys must take over those of the round before, which
    // the clock has made idle meanwhile.
    for limit in [Limit::bucket(3, ms(10)), Limit::window(3, ms(10))] {
        for (threads, capacity) in [(2, 8), (2, 64), (4, 32)] {
            let (clock, hand) = Clock::manual(MILLISECOND);
            let engine = engine(&[limit], capacity, clock);
            let granted = tally(capacity);
            let act = |_, round: usize| {
                for (number, count) in granted.iter().enumerate() {
                    let name = key(round * capacity + number);
                    count.fetch_add((0..3).filter(|_| engine.allow(&name)).count(), SeqCst);
                }
            };
            let alone = |round| {
                hand.advance(ms(20));
                let lost = engine.total(Count::Full);
                for (number, count) in granted.iter().enumerate() {
                    let sum = count.swap(0, SeqCst);
                    assert!(sum <= 3, "I1, I10: key {number} of round {round}: {sum} of 3");
                    // A key that lost every race for a row is refused, and that is counted.
                    assert!(sum == 3 || lost > 0, "I2: key {number} of round {round}: {sum} of 3");
                }
            };
            in_rounds(threads, 16_000 / capacity, act, alone);
            assert!(engine.total(Count::Evicted) > 0, "rows were evicted");
        }
    }
}

#[test]
fn rows_evicted_all_the_time_never_grant_twice() {
    // Twice as many keys as rows, and a clock that makes everything idle again and again under the
    // threads' feet: rows are taken over while their keys are hit. A step is exactly one refill, so
    // there is no room for a hit that is charged at an older time than its row was taken over at.
    for limits in [
        &[Limit::bucket(2, ms(1))][..],
        &[Limit::window(2, ms(1))],
        &[Limit::bucket(2, ms(1)), Limit::window(3, ms(1))],
    ] {
        for (threads, capacity) in [(2, 8), (4, 16), (8, 64)] {
            let (clock, hand) = Clock::manual(MILLISECOND);
            let engine = engine(limits, capacity, clock);
            let logs = on_threads(threads, |thread, _| {
                let (mut log, mut dice) = (Vec::with_capacity(120_000), Dice::new(thread));
                for turn in 0..120_000 / threads {
                    hit_and_log(&engine, dice.below(3 * capacity), &mut log);
                    if thread == 0 && turn % 50 == 49 {
                        hand.advance(ms(1));
                    }
                }
                log
            });
            let history = by_key(logs);
            check_history(&history, limits, 0);
            assert_eq!(history.len(), 3 * capacity, "I10: nobody was locked out");
            assert!(engine.total(Count::Evicted) > 100, "rows were evicted");
        }
    }
}

/// A hit, and sometimes its refund, on every thread. `out` never counts more than is really out: it
/// is raised after the grant and lowered before the refund.
fn hit_and_refund(engine: &Engine, name: &[u8], out: &AtomicI64, most: i64, dice: &mut Dice) {
    if engine.hit(name, 1).answer.is_allowed() {
        let now_out = out.fetch_add(1, SeqCst) + 1;
        let limits = engine.limits().stated();
        assert!(now_out <= most, "I6: {now_out} out of {most}: grants − refunds: {limits:?}");
        if dice.below(4) != 0 {
            out.fetch_sub(1, SeqCst);
            engine.refund(name, 1);
        }
    }
}

#[test]
fn refunds_that_race_with_hits_keep_the_sum() {
    let (bucket, window) = (Limit::bucket(40, ms(60_000)), Limit::window(40, ms(60_000)));
    for limits in [&[bucket][..], &[window], &[bucket, window]] {
        for threads in [2, 4, 8] {
            for round in 0..40 {
                // Microseconds pass, as they do: a log can't tell laps apart that all are of one.
                let (clock, hand) = Clock::manual(MILLISECOND);
                let engine = engine(limits, 8, clock);
                let out = AtomicI64::new(0);
                on_threads(threads, |thread, _| {
                    let mut dice = Dice::new(round * 8 + thread);
                    for _ in 0..2_000 / threads {
                        hit_and_refund(&engine, b"it", &out, 40, &mut dice);
                        hand.advance(Duration::from_micros(1));
                    }
                });
                let due = out.load(SeqCst) as u64;
                for status in engine.peek(b"it", 0).statuses.iter() {
                    assert_eq!(status.used, due, "I6, I7: {limits:?}: grants − refunds at rest");
                }
                let rest = (0..50).filter(|_| engine.allow(b"it")).count() as u64;
                assert_eq!(rest, 40 - due, "I2: {limits:?}: what is left can be had");
            }
        }
    }
}

#[test]
fn a_look_that_races_with_refunds_reports_no_endless_wait() {
    let per = Duration::from_secs(60);
    let permits = Limit::concurrent(2, per);
    for limit in [Limit::window(3, per), permits] {
        let clock = Clock::manual(5 * MILLISECOND + 999).0;
        let engine = engine(&[limit], 4, clock);
        on_threads(4, |number, _| {
            for _ in 0..20_000 {
                if number % 2 == 0 {
                    let outcome = engine.hit(b"alice", 1);
                    outcome.permit.map(|permit| engine.release(b"alice", permit));
                    engine.refund(b"alice", u64::from(outcome.answer.is_allowed()));
                }
                let wait = engine.peek(b"alice", 1).statuses[0].wait;
                assert!(wait <= per.as_nanos() as u64 + MILLISECOND, "{limit:?}: {wait} ns");
            }
        });
    }
}

#[test]
fn refunds_that_race_with_a_moving_clock_bring_no_refill() {
    // A thread that read the clock before it moved may come with its refund after others have
    // charged the word at the new time: it must not take the word back in time with it.
    for limit in [Limit::bucket(4, ms(4)), Limit::window(4, ms(4))] {
        for threads in [2, 4, 8] {
            let (clock, hand) = Clock::manual(MILLISECOND);
            let engine = engine(&[limit], 8, clock);
            let out = AtomicI64::new(0);
            on_threads(threads, |thread, _| {
                let mut dice = Dice::new(thread);
                for turn in 0..100_000 {
                    hit_and_refund(&engine, b"it", &out, i64::MAX, &mut dice);
                    if thread == 0 && turn % 20 == 19 {
                        hand.advance(ms(1));
                    }
                }
            });
            // A window's bound over n whole periods and a bucket's are the same here.
            let due = 4 + 100_000 / 20;
            let kept = out.load(SeqCst);
            assert!(kept <= due, "I6: {limit:?}, {threads} threads: {kept} kept of {due}");
        }
    }
}

/// At rest each limit of the key was charged exactly what was granted, and the rest can be had.
fn check_alike(engine: &Engine, name: &[u8], granted: usize, least: usize, what: &str) {
    let used: Vec<u64> = engine.peek(name, 0).statuses.iter().map(|status| status.used).collect();
    assert_eq!(used, vec![granted as u64; used.len()], "I7: {what}: charged alike");
    let rest = (0..least + 1).filter(|_| engine.allow(name)).count();
    assert_eq!(granted + rest, least, "I2: {what}: what is left can be had");
}

#[test]
fn limits_of_a_rule_are_charged_alike_after_any_race() {
    // The later limits are the smaller ones, so that hits which have taken the first are refused.
    let minute = ms(60_000);
    let (bucket, window) = (Limit::bucket(9, minute), Limit::window(5, minute));
    let four =
        [Limit::bucket(9, minute), Limit::fixed(8, minute), Limit::counter(7, minute), window];
    let two_buckets = [bucket, Limit::bucket(5, minute)];
    for limits in [&[bucket, window][..], &two_buckets, &four] {
        for threads in [2, 4, 8] {
            let engine = engine(limits, 2_000, Clock::manual(MILLISECOND).0);
            let granted = tally(2_000);
            on_threads(threads, |_, _| {
                for (number, count) in granted.iter().enumerate() {
                    count.fetch_add((0..4).filter(|_| engine.allow(&key(number))).count(), SeqCst);
                }
            });
            for (number, count) in granted.iter().enumerate() {
                let what = format!("{threads} threads, key {number}, {limits:?}");
                check_alike(&engine, &key(number), count.load(SeqCst), 5, &what);
            }
        }
    }
}

#[test]
fn limits_are_charged_alike_though_rows_are_pruned_meanwhile() {
    // A row is idle between its insertion and its first charge: that is where the prune strikes.
    let minute = ms(60_000);
    let limits = [Limit::bucket(9, minute), Limit::window(5, minute)];
    let engine = engine(&limits, 64, Clock::manual(MILLISECOND).0);
    let granted = tally(64);
    let act = |thread: usize, round: usize| {
        if thread == 0 {
            return (0..30).for_each(|_| _ = engine.prune());
        }
        for (number, count) in granted.iter().enumerate() {
            let name = key(round * 64 + number);
            count.fetch_add((0..2).filter(|_| engine.allow(&name)).count(), SeqCst);
        }
    };
    let alone = |round: usize| {
        for (number, count) in granted.iter().enumerate() {
            let name = key(round * 64 + number);
            let what = format!("key {number} of round {round}");
            check_alike(&engine, &name, count.swap(0, SeqCst), 5, &what);
        }
        engine.reset_all();
    };
    in_rounds(2, 2_000, act, alone);
    in_rounds(4, 500, act, alone);
}

#[test]
fn parts_in_different_tables_are_charged_alike_after_any_race() {
    let minute = ms(60_000);
    let clock = Clock::manual(MILLISECOND).0;
    let each = engine(&[Limit::bucket(9, minute)], 100, clock.clone());
    let all = engine(&[Limit::window(500, minute)], 1, clock.clone());
    let granted = tally(100);
    on_threads(4, |thread, _| {
        let mut dice = Dice::new(thread);
        for _ in 0..20_000 {
            let number = dice.below(100);
            let parts = [each.part(each.hash(&key(number))), all.part(all.hash(b""))];
            let (time, statuses) = (&mut Time::read(&clock), &mut [LimitStatuses::default(); 2]);
            let allowed = hit_together(&parts, &[1; 2], time, statuses).answer.is_allowed();
            granted[number].fetch_add(usize::from(allowed), SeqCst);
        }
    });
    let sum: usize = granted.iter().map(|count| count.load(SeqCst)).sum();
    assert_eq!(sum, 500, "I2: the shared limit is spent to the last unit");
    assert_eq!(all.peek(b"", 0).statuses[0].used, 500, "I7: the shared part");
    for (number, count) in granted.iter().enumerate() {
        let used = each.peek(&key(number), 0).statuses[0].used;
        assert_eq!(used, count.load(SeqCst) as u64, "I7: the part of key {number}");
    }
}

#[test]
fn never_more_permits_are_out_than_the_limit() {
    for (limits, threads) in [
        (&[Limit::concurrent(3, ms(1_000))][..], 2),
        (&[Limit::concurrent(3, ms(1_000))], 8),
        (&[Limit::bucket(1_000_000, ms(1_000)), Limit::concurrent(2, ms(1_000))], 4),
    ] {
        let most = limits.last().unwrap().max as usize;
        let engine = engine(limits, 8, Clock::manual(MILLISECOND).0);
        let (out, held) = (AtomicUsize::new(0), AtomicUsize::new(0));
        on_threads(threads, |_, _| {
            for _ in 0..200_000 / threads {
                let Some(permit) = engine.hit(b"it", 1).permit else { continue };
                held.fetch_add(1, SeqCst);
                let now_out = out.fetch_add(1, SeqCst) + 1;
                assert!(now_out <= most, "I1: {now_out} permits out of {most}");
                out.fetch_sub(1, SeqCst);
                assert!(engine.release(b"it", permit), "its lease has not run out");
            }
        });
        assert!(held.load(SeqCst) > 1_000);
        let statuses = engine.peek(b"it", 1).statuses;
        assert_eq!(statuses.last().unwrap().used, 0, "I6: every permit came back");
        let spent = (limits.len() == 2).then(|| statuses[0].used);
        assert!(spent.is_none_or(|used| used == held.load(SeqCst) as u64), "I7: {statuses:?}");
    }
}

#[test]
fn leases_that_expire_free_exactly_their_own_slots() {
    // Holders of the round before release while others take what the clock has freed: a late
    // release must not free another's slot, so each round grants exactly the limit.
    let limits = [Limit::concurrent(4, ms(10))];
    let (clock, hand) = Clock::manual(MILLISECOND);
    let engine = engine(&limits, 8, clock);
    let granted = AtomicUsize::new(0);
    let threads = 4;
    let old: Vec<_> = (0..threads).map(|_| std::sync::Mutex::new(Vec::new())).collect();
    let act = |thread: usize, _| {
        let mut mine = Vec::new();
        let mut late = old[thread].lock().unwrap();
        for _ in 0..8 {
            mine.extend(engine.hit(b"it", 1).permit);
            late.pop().map(|permit| engine.release(b"it", permit));
        }
        granted.fetch_add(mine.len(), SeqCst);
        *late = mine;
    };
    let alone = |round| {
        assert_eq!(granted.swap(0, SeqCst), 4, "I1, I2: permits of round {round}");
        hand.advance(ms(11));
    };
    in_rounds(threads, 4_000, act, alone);
}

/// A key of a batch that does something when it is read: what other threads might do meanwhile, but
/// at a moment that is known.
struct Sly<'e> {
    name: &'static [u8],
    meanwhile: Option<Box<dyn Fn() + 'e>>,
}

impl Sly<'_> {
    fn plain(name: &'static [u8]) -> Self {
        Sly { name, meanwhile: None }
    }
}

impl AsRef<[u8]> for Sly<'_> {
    fn as_ref(&self) -> &[u8] {
        self.meanwhile.iter().for_each(|act| act());
        self.name
    }
}

/// Keys that a batch reads, after the clock, before it judges the first.
const AHEAD: usize = 16;

#[test]
fn a_batch_that_meets_newer_words_twice_takes_none_back_in_time() {
    // The batch reads the clock, then its keys, and judges them after that; here each reading of
    // a later key moves the clock and spends the one unit of an earlier one.
    let minute = ms(60_000);
    for limit in [
        Limit::bucket(1, minute),
        Limit::window(1, minute),
        Limit::fixed(1, minute),
        Limit::counter(1, minute),
        Limit::concurrent(1, minute),
    ] {
        let (clock, hand) = Clock::manual(MILLISECOND);
        let engine = engine(&[limit], 100, clock);
        let spend_later = |name: &'static [u8]| {
            hand.advance(ms(1_000));
            assert!(engine.allow(name));
        };
        let mut keys = vec![Sly::plain(b"a"), Sly::plain(b"b"), Sly::plain(b"c")];
        keys.resize_with(AHEAD, || Sly::plain(b"filler"));
        for name in [&b"a"[..], b"b", b"c"] {
            let meanwhile = Some(Box::new(move || spend_later(name)) as Box<dyn Fn()>);
            keys.push(Sly { name: b"later", meanwhile });
        }
        let mut out = [2; AHEAD + 3];
        engine.allow_many(&keys, &mut out);
        assert_eq!(out[..3], [0, 0, 0], "I1: {limit:?}: spent at a later time");
        assert!(!engine.allow(b"c"), "I1: {limit:?}: c was spent at this very moment");
    }
}

#[test]
fn a_row_that_was_fresh_at_a_later_time_is_not_charged_in_the_past() {
    // Two are spent at t. A hit reads the clock at t and is held up; at t + 1 ms the key is idle,
    // and its row is dropped. If the hit now finds the key new and charges it at t, that charge is
    // refilled at once, and [t, t + 1 ms] has seen five where the bound is four.
    let limit = Limit::bucket(2, ms(1));
    let (clock, hand) = Clock::manual(MILLISECOND);
    let engine = engine(&[limit], 8, clock);
    assert!(engine.allow(b"it") && engine.allow(b"it") && !engine.allow(b"it"));
    let drop_idle = || {
        hand.advance(ms(1));
        assert_eq!(engine.prune(), 1);
    };
    let mut keys = vec![Sly::plain(b"it")];
    keys.resize_with(AHEAD, || Sly::plain(b"filler"));
    keys.push(Sly { name: b"later", meanwhile: Some(Box::new(drop_idle)) });
    let mut out = [2; AHEAD + 1];
    engine.allow_many(&keys, &mut out);
    let granted = usize::from(out[0]) + (0..5).filter(|_| engine.allow(b"it")).count();
    assert!(granted <= 2, "I1, I10: 2 and {granted} granted in one refill of 2");
}

#[test]
fn resets_that_race_with_hits_end_and_leave_a_sound_row() {
    let minute = ms(60_000);
    let (bucket, window) = (Limit::bucket(6, minute), Limit::window(5, minute));
    for limits in [&[bucket][..], &[window], &[bucket, window], &[Limit::fixed(5, minute)]] {
        let engine = engine(limits, 16, Clock::manual(MILLISECOND).0);
        // I8: that this returns is the assertion.
        on_threads(4, |thread, _| {
            let mut dice = Dice::new(thread);
            for turn in 0..30_000 {
                let name = key(dice.below(24));
                match dice.below(8) {
                    0 => engine.reset(&name),
                    1 => engine.refund(&name, 1),
                    2 => _ = engine.record(&name, 1),
                    3 if turn % 64 == 0 => engine.reset_all(),
                    4 if turn % 16 == 0 => _ = engine.prune(),
                    _ => _ = engine.allow(&name),
                }
            }
        });
        engine.reset_all();
        assert_eq!(engine.len(), 0, "I8: no row is stuck");
        let least = limits.iter().map(|limit| limit.max).min().unwrap() as usize;
        for number in 0..16 {
            let granted = (0..9).filter(|_| engine.allow(&key(number))).count();
            assert_eq!(granted, least, "I2: {limits:?}: a reset row is as new");
        }
    }
}

#[test]
fn each_unit_is_told_to_one() {
    const UNITS: u64 = 4_000;
    let day = Duration::from_secs(86_400);
    let limits = [
        Limit::window(UNITS, day),
        Limit::fixed(UNITS, day),
        Limit::counter(UNITS, day),
        Limit::bucket(UNITS, day),
    ];
    for stated in limits.iter().map(std::slice::from_ref).chain([&limits[..2], &limits[2..]]) {
        let (clock, _) = Clock::manual(MILLISECOND);
        let engine = engine(stated, 10, clock);
        let told = on_threads(4, |_, _| {
            let hits = (0..UNITS / 4).map(|_| engine.hit(b"k", 1).statuses[0].remaining);
            hits.collect::<Vec<_>>()
        });
        let mut told = told.concat();
        told.sort_unstable();
        assert!(told.into_iter().eq(0..UNITS), "{stated:?}");
    }
}
