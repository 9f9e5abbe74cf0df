//! Laws that hold for all limits and all sequences of operations, against an exact reference.
//!
//! * **I1 bound**: granted in any `[a, b]` ≤ burst + max·(b − a)/per; in any window of `per` ≤ max.
//! * **I4 denial is free**: it changes nothing, for its own key or another, then or later.
//! * **I5 exact wait** (promise 4): a hit passes at now + wait, not a nanosecond before.
//! * **I6 refund**: restores what the hit took, never above full.
//! * **I7 all or nothing**: limits of a rule are charged together or not at all.
//! * **I9 time** (promise 5): no clock behaviour grants more, none denies longer than one full
//!   refill.
//! * **Promise 6**: for each charge at most 1/1000 of a token is lost, none gained.
//!
//! Every field of every answer is compared with `reference`: to the unit and the nanosecond, but
//! for what promise 6 lets a bucket lose.

mod reference;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use reference::{Reference, Verdict};
use tidegate_core::{
    Algorithm, Answer, Clock, Engine, Limit, LimitStatuses, Limits, ManualClock, NEVER, Options,
};

type Checked = Result<(), TestCaseError>;

const KEY: &[u8] = b"somebody";
const OTHER: &[u8] = b"somebody else";
const MILLISECOND: u64 = 1_000_000;
const DAY: u64 = 86_400_000 * MILLISECOND;
/// Stamps of windows and fixed spans are told apart for 2^47 µs, 4.4 years.
const STAMP_HORIZON: u64 = 4 * 365 * DAY;
/// A counter tells three quarters of 2^24 ticks apart, each at least 1/125 of its cell.
const CELL_HORIZON: u64 = 100_000;

/// `TIDEGATE_TIMES` makes campaigns of it.
fn config(cases: u32) -> ProptestConfig {
    let failure_persistence =
        Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    let times = std::env::var("TIDEGATE_TIMES").ok().and_then(|text| text.parse::<u32>().ok());
    let cases = cases * times.unwrap_or(1);
    let max_global_rejects = cases + 1024;
    ProptestConfig { cases, failure_persistence, max_global_rejects, ..ProptestConfig::default() }
}

/// How old the moment is that hits may go by if that is enough: up to a second, at random.
fn some_lag(now: u64) -> Duration {
    Duration::from_nanos(now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34)
}

fn engine_at(limits: &Limits, now: u64) -> (Engine, Arc<ManualClock>) {
    let (clock, hand) = Clock::manual(now);
    hand.set_lag(some_lag(now));
    let options = Options { capacity: 8, seed: Some(7), clock, ..Options::default() };
    // The same suite runs on mapped rows, as a module of `mapped.rs`.
    #[cfg(target_os = "linux")]
    if module_path!().starts_with("mapped") {
        return (mapped(limits, options), hand);
    }
    (Engine::new(limits.clone(), options).unwrap(), hand)
}

/// An engine whose rows are in a file, which has lost its name by the time it is used.
#[cfg(target_os = "linux")]
fn mapped(limits: &Limits, options: Options) -> Engine {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("mapped-{}-{number}", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let words = Engine::bytes_for(limits, options.capacity).unwrap() as usize / 8;
    let file = tidegate_core::TableFile::create(&path, "", words, true).unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    let engines = vec![(limits.clone(), options.capacity)];
    let layout = tidegate_core::FileLayout { engines, ledgers: Vec::new() };
    file.tables(&layout).unwrap().engine(0, limits.clone(), options).unwrap()
}

// ---- What is generated ----

/// Small numbers are where limits bite in 200 operations; the large ones are for the arithmetic.
fn max_units() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1u64..=5,
        4 => 1u64..=100,
        2 => 1u64..=100_000,
        1 => 1u64..=1_000_000_000,
        1 => Just(1_000_000_000u64),
    ]
}

fn max_logged() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 1u64..=5, 6 => 1u64..=50, 1 => 1u64..=4096]
}

fn per() -> impl Strategy<Value = Duration> {
    let micros = prop_oneof![
        4 => 1_000u64..=20_000,
        3 => prop::sample::select(vec![1_000, 7_000, 1_000_000, 10_000_000, 60_000_000]),
        2 => (1u64..=3_600_000).prop_map(|ms| ms * 1_000),
        1 => prop::sample::select(vec![86_400_000_000, 366 * 86_400_000_000]),
        1 => (1u64..=366 * 86_400_000).prop_map(|ms| ms * 1_000),
    ];
    micros.prop_map(Duration::from_micros)
}

fn burst_of(max: u64) -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        3 => Just(None),
        2 => (1u64..=10).prop_map(Some),
        1 => (1..=(2 * max).min(1_000_000_000)).prop_map(Some),
        1 => (1u64..=1_000_000_000).prop_map(Some),
    ]
}

fn a_bucket() -> impl Strategy<Value = Limit> {
    let all = (max_units(), per())
        .prop_flat_map(|(max, per)| burst_of(max).prop_map(move |burst| (max, per, burst)));
    all.prop_map(|(max, per, burst)| {
        let wanted = Limit { burst, ..Limit::bucket(max, per) };
        // What takes centuries to fill is refused: `boundaries.rs` looks at that.
        if Limits::new(&[wanted]).is_ok() { wanted } else { Limit::bucket(max, per) }
    })
}

fn a_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        3 => a_bucket(),
        3 => (max_logged(), per()).prop_map(|(max, per)| Limit::window(max, per)),
        1 => (max_units(), per()).prop_map(|(max, per)| Limit::counter(max, per)),
        1 => (max_units(), per()).prop_map(|(max, per)| Limit::fixed(max, per)),
    ]
}

/// Limits without a counter, whose cells move in their own way when the clock goes back.
fn a_faultless_limit() -> impl Strategy<Value = Limit> {
    a_limit().prop_filter("a counter", |limit| limit.algorithm != Algorithm::Counter)
}

fn several(range: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Limit>> {
    prop::collection::vec(a_limit(), range)
}

/// A cost, in terms of the most that one hit may take.
#[derive(Clone, Copy, Debug)]
enum Cost {
    Units(u64),
    Sixteenths(u64),
    OneTooMany,
}

impl Cost {
    fn of(self, most: u64) -> u64 {
        match self {
            Cost::Units(units) => units,
            Cost::Sixteenths(parts) => (most * parts).div_ceil(16),
            Cost::OneTooMany => most + 1,
        }
    }
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        12 => Just(Cost::Units(1)),
        4 => (0u64..=4).prop_map(Cost::Units),
        6 => (1u64..=16).prop_map(Cost::Sixteenths),
        1 => Just(Cost::OneTooMany),
    ]
}

/// How time moves on, in terms of a limit of the rule where that matters.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nanos(u64),
    /// Parts of 64 of the `per` of a limit.
    OfPer(usize, u64),
    /// Parts of 16 of the time that one unit takes.
    OfUnit(usize, u64),
    /// To the end of the last wait, or a nanosecond short of it.
    Wait,
    WaitButOne,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0u64..=2_000).prop_map(Step::Nanos),
        2 => (0u64..=50).prop_map(|ms| Step::Nanos(ms * MILLISECOND)),
        1 => (0u64..=10_000_000).prop_map(Step::Nanos),
        4 => (0usize..4, 1u64..=80).prop_map(|(i, parts)| Step::OfPer(i, parts)),
        4 => (0usize..4, 1u64..=40).prop_map(|(i, parts)| Step::OfUnit(i, parts)),
        3 => Just(Step::Wait),
        2 => Just(Step::WaitButOne),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// The fastest path, which is code of its own.
    Allow,
    Hit(Cost),
    Peek(Cost),
    Record(Cost),
    Refund(Cost),
    Reset,
    Pass(Step),
    /// The clock goes back by this many milliseconds more than the coarsest tick.
    Back(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Allow),
        16 => cost().prop_map(Op::Hit),
        4 => cost().prop_map(Op::Peek),
        3 => cost().prop_map(Op::Record),
        4 => cost().prop_map(Op::Refund),
        1 => Just(Op::Reset),
        16 => step().prop_map(Op::Pass),
        1 => (2u64..=5_000).prop_map(Op::Back),
    ]
}

/// Hits and time, nothing that promise 1 leaves out.
fn plain_op() -> impl Strategy<Value = Op> {
    prop_oneof![2 => Just(Op::Allow), 4 => cost().prop_map(Op::Hit), 5 => step().prop_map(Op::Pass)]
}

/// A sequence that prints on one line.
#[derive(Clone)]
struct Ops(Vec<Op>);

impl std::fmt::Debug for Ops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "{op:?}; "))
    }
}

/// As many as `mean` on average: of all lengths, so that a failure shrinks to a short one.
fn ops(of: impl Strategy<Value = Op>, mean: usize) -> impl Strategy<Value = Ops> {
    prop::collection::vec(of, 1..2 * mean).prop_map(Ops)
}

/// Clocks that started at boot, long ago, and near the places where stamps wrap.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000_000u64),
        1_000_000u64..1 << 44,
        (1u64..1 << 20).prop_map(|ms| (1 << 30) * MILLISECOND + ms * MILLISECOND),
        (1u64 << 44)..(1 << 62),
        Just((1u64 << 48) * 1000 - 3_141_592_653),
    ]
}

// ---- One key, its reference, and a clock that stays where stamps are told apart ----

/// How long a bucket may lie untouched before its stamp could be taken for a later one ("Wrap" in
/// word.rs), found from outside: by when a bucket that was drained is no longer seen full.
fn patience(limits: &Limits, index: usize) -> u64 {
    let limit = limits.stated()[index];
    let alone = Limits::new(&[limit]).unwrap();
    let (probe, hand) = engine_at(&alone, MILLISECOND);
    let size = limit.burst.unwrap_or(limit.max);
    let outcome = probe.hit(KEY, size);
    let slack = outcome.statuses[0].reset + 2 * limits.tick_length(index);
    let is_full = |age: u64| {
        hand.set(MILLISECOND + age);
        probe.peek(KEY, 0).statuses[0].remaining == size
    };
    let (mut good, enough) = (slack, (4 * slack).max(10 * 366 * DAY));
    // Steps of less than a third, so that none leaps over the last quarter of the stamps.
    while good < enough && is_full(good + good / 4 + 1) {
        good += good / 4 + 1;
    }
    // A stamp may be a refill older than the charge that was last written to it.
    good - slack
}

struct Run {
    limits: Limits,
    engine: Engine,
    hand: Arc<ManualClock>,
    reference: Reference,
    /// The most that one hit may take.
    most: u64,
    /// Of the buckets.
    patience: u64,
    /// When the buckets were last written, and the end of what other stamps can tell.
    written: u64,
    end: u64,
    latest: u64,
    last_wait: u64,
}

impl Run {
    fn new(stated: &[Limit], start: u64) -> Run {
        let limits = Limits::new(stated).unwrap();
        let (engine, hand) = engine_at(&limits, start);
        let size = |limit: &Limit| match limit.algorithm {
            Algorithm::Bucket => limit.burst.unwrap_or(limit.max),
            _ => limit.max,
        };
        let bucket = |&i: &usize| stated[i].algorithm == Algorithm::Bucket;
        let patience = (0..stated.len()).filter(bucket).map(|i| patience(&limits, i)).min();
        let counters = stated.iter().filter(|limit| limit.algorithm == Algorithm::Counter);
        let told = counters.map(|limit| limit.per.as_nanos() as u64).min().unwrap_or(NEVER);
        Run {
            engine,
            hand,
            reference: Reference::new(&limits),
            most: stated.iter().map(size).min().unwrap(),
            patience: patience.unwrap_or(NEVER),
            written: start,
            end: start + STAMP_HORIZON.min(told.saturating_mul(CELL_HORIZON)),
            latest: start,
            last_wait: 0,
            limits,
        }
    }

    fn now(&self) -> u64 {
        self.hand.now()
    }

    fn has(&self, algorithm: Algorithm) -> bool {
        self.limits.stated().iter().any(|limit| limit.algorithm == algorithm)
    }

    fn nanos(&self, step: Step) -> u64 {
        let limit = |i: usize| self.limits.stated()[i % self.limits.len()];
        let per = |i: usize| limit(i).per.as_nanos() as u64;
        match step {
            Step::Nanos(nanos) => nanos,
            Step::OfPer(i, parts) => per(i) / 64 * parts,
            Step::OfUnit(i, parts) => (per(i) * parts / 16).div_ceil(limit(i).max),
            Step::Wait => self.last_wait,
            Step::WaitButOne => self.last_wait.saturating_sub(1),
        }
    }

    fn pass(&mut self, nanos: u64) {
        if self.tells(nanos) {
            let then = self.now() + nanos;
            self.hand.set(then);
            self.hand.set_lag(some_lag(then));
            self.latest = self.latest.max(then);
            self.last_wait = self.last_wait.saturating_sub(nanos);
        }
    }

    fn compare(&self, statuses: &LimitStatuses, cost: u64) -> Checked {
        let expected = self.reference.statuses(cost, self.now());
        prop_assert_eq!(expected.len(), statuses.len());
        for (expected, status) in expected.iter().zip(statuses.iter()) {
            let stated = self.limits.stated();
            prop_assert!(
                expected.admits(status),
                "at {} of {stated:?}, cost {cost}:\n{status:?} is not\n{expected:?}",
                self.now()
            );
        }
        Ok(())
    }

    fn peek(&self, cost: u64) -> Checked {
        let outcome = self.engine.peek(KEY, cost);
        prop_assert_eq!(outcome.answer == Answer::Cost, cost > self.most);
        prop_assert_eq!(outcome.answer == Answer::Allowed, outcome.statuses.fits());
        self.compare(&outcome.statuses, cost)
    }

    fn hit(&mut self, cost: u64) -> Checked {
        let before = self.engine.peek(KEY, cost);
        let verdict = self.reference.verdict(cost, self.now());
        let outcome = self.engine.hit(KEY, cost);
        if cost == 0 {
            return self.compare(&outcome.statuses, 0);
        }
        prop_assert_eq!(outcome.answer, before.answer, "what peek said");
        match outcome.answer {
            Answer::Allowed => {
                prop_assert_ne!(verdict, Verdict::Refuses, "granted {} too early", cost);
                self.reference.charge(cost, self.now());
                self.written = self.now();
                self.compare(&outcome.statuses, 0)
            }
            Answer::Denied => {
                prop_assert_ne!(verdict, Verdict::Grants, "denied {} too late", cost);
                prop_assert_eq!(self.engine.peek(KEY, cost), before, "I4: a denial is free");
                self.last_wait = outcome.statuses.wait();
                self.compare(&outcome.statuses, cost)
            }
            answer => {
                prop_assert!(answer == Answer::Cost && cost > self.most, "{answer:?}");
                self.compare(&outcome.statuses, cost)
            }
        }
    }

    fn allow(&mut self) -> Checked {
        let before = self.engine.peek(KEY, 1);
        let verdict = self.reference.verdict(1, self.now());
        if self.engine.allow(KEY) {
            prop_assert_ne!(verdict, Verdict::Refuses, "allowed too early");
            self.reference.charge(1, self.now());
            self.written = self.now();
        } else {
            prop_assert_ne!(verdict, Verdict::Grants, "denied too late");
            prop_assert_eq!(self.engine.peek(KEY, 1), before, "I4: a denial is free");
            self.last_wait = before.statuses.wait();
        }
        self.compare(&self.engine.peek(KEY, 0).statuses, 0)
    }

    fn record(&mut self, cost: u64) -> Checked {
        if cost > 0 && self.reference.log_may_be_full(self.now()) {
            return Ok(()); // `a_log_recorded_over_still_waits_exactly` looks at that.
        }
        let statuses = self.engine.record(KEY, cost);
        if cost > 0 {
            self.reference.record(cost, self.now());
            self.written = self.now();
        }
        self.compare(&statuses, 0)
    }

    /// Steps back, and spends one unit, so that every limit has met the new time.
    fn back(&mut self, millis: u64) -> Checked {
        let (from, then) = (self.now(), self.back_by(millis));
        let room = !self.reference.log_may_be_full(then);
        let revived = self.reference.revives(self.latest, then);
        if then == from || self.has(Algorithm::Counter) || revived || !room {
            return Ok(());
        }
        self.hand.set(then);
        self.reference.go_back(from, then);
        self.reference.record(1, then);
        let statuses = self.engine.record(KEY, 1);
        self.compare(&statuses, 0)?;
        self.reference.follow(&statuses, then);
        (self.written, self.last_wait) = (then, 0);
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Allow => return self.allow(),
            Op::Hit(cost) => return self.hit(cost.of(self.most)),
            Op::Peek(cost) => return self.peek(cost.of(self.most)),
            Op::Record(cost) => return self.record(cost.of(self.most)),
            Op::Back(millis) => return self.back(millis),
            Op::Refund(cost) => {
                self.engine.refund(KEY, cost.of(self.most));
                self.reference.refund(cost.of(self.most), self.now());
            }
            Op::Reset => {
                self.engine.reset(KEY);
                self.reference.reset();
            }
            Op::Pass(step) => self.pass(self.nanos(step)),
        }
        self.peek(1)
    }
}

fn answers_match_the_reference(stated: &[Limit], start: u64, ops: &Ops) -> Checked {
    let mut run = Run::new(stated, start);
    for (i, &op) in ops.0.iter().enumerate() {
        run.perform(op).map_err(|e| TestCaseError::fail(format!("operation {i}, {op:?}: {e}")))?;
    }
    Ok(())
}

// Ten thousand sequences in all, in four tests so that they share the cores.
proptest! {
    #![proptest_config(config(2_500))]

    #[test]
    fn a_bucket_answers_as_exact_arithmetic_does(
        limit in a_bucket(), start in start(), ops in ops(op(), 200),
    ) {
        answers_match_the_reference(&[limit], start, &ops)?;
    }

    #[test]
    fn a_lone_limit_answers_as_exact_arithmetic_does(
        limit in a_limit(), start in start(), ops in ops(op(), 200),
    ) {
        answers_match_the_reference(&[limit], start, &ops)?;
    }

    #[test]
    fn limits_of_a_rule_answer_as_exact_arithmetic_does(
        limits in several(2..=4), start in start(), ops in ops(op(), 200),
    ) {
        answers_match_the_reference(&limits, start, &ops)?;
    }

    #[test]
    fn limits_that_meet_clock_faults_answer_as_exact_arithmetic_does(
        limits in prop::collection::vec(a_faultless_limit(), 1..=3),
        start in start(),
        ops in ops(prop_oneof![9 => op(), 1 => (2u64..=60_000).prop_map(Op::Back)], 200),
    ) {
        answers_match_the_reference(&limits, start, &ops)?;
    }
}

// ---- Each law by itself ----

/// A grant, by a clock that only ever goes forward.
#[derive(Clone, Copy, Debug)]
struct Grant {
    at: u64,
    cost: u64,
}

/// Hits a key, and says what was granted. Steps back pass no time.
fn grants(run: &mut Run, ops: &Ops) -> Vec<Grant> {
    let (mut granted, mut passed) = (Vec::new(), 0);
    for &op in &ops.0 {
        let before = run.now();
        match op {
            Op::Allow => {
                if run.engine.allow(KEY) {
                    granted.push(Grant { at: passed, cost: 1 });
                    run.written = before;
                }
            }
            Op::Hit(cost) => {
                let cost = cost.of(run.most);
                let outcome = run.engine.hit(KEY, cost);
                match outcome.answer {
                    Answer::Allowed if cost > 0 => {
                        granted.push(Grant { at: passed, cost });
                        run.written = before;
                    }
                    Answer::Allowed => {}
                    _ => run.last_wait = outcome.statuses.wait(),
                }
            }
            Op::Pass(step) => run.pass(run.nanos(step)),
            Op::Back(millis) => run.step_back(millis),
            _ => unreachable!("promise 1 is about hits"),
        }
        passed += run.now().saturating_sub(before);
    }
    granted
}

/// I1, multiplied out: spent·per ≤ burst·per + max·(b − a), over all intervals from grant to grant.
fn bucket_bound(limit: &Limit, tick_nanos: u64, granted: &[Grant]) -> Checked {
    let (max, per) = (i128::from(limit.max), limit.per.as_nanos() as i128);
    let burst = i128::from(limit.burst.unwrap_or(limit.max));
    // What `reference` calls early: where a tick refills a token, 1/1000 of one, or a ten-millionth
    // of a bucket above 100,000.
    let loss = if burst > 100_000 { burst * per / 10_000_000 } else { per / 1000 };
    let early = if max * i128::from(tick_nanos) >= per { loss } else { 0 };
    for (i, first) in granted.iter().enumerate() {
        let mut spent = 0;
        for last in &granted[i..] {
            spent += i128::from(last.cost);
            let bound = burst * per + max * i128::from(last.at - first.at) + early;
            prop_assert!(spent * per <= bound, "{spent} from {first:?} to {last:?} of {limit:?}");
        }
    }
    Ok(())
}

/// No span of `per` has more than `most`.
fn window_bound(limit: &Limit, most: u64, granted: &[Grant]) -> Checked {
    let per = limit.per.as_nanos() as u64;
    for last in granted {
        let within = granted.iter().filter(|g| g.at <= last.at && last.at - g.at < per);
        let spent: u64 = within.map(|grant| grant.cost).sum();
        prop_assert!(spent <= most, "{spent} in the window until {last:?} of {limit:?}");
    }
    Ok(())
}

fn bounds_hold(limits: &Limits, granted: &[Grant]) -> Checked {
    for (i, limit) in limits.stated().iter().enumerate() {
        match limit.algorithm {
            Algorithm::Bucket => bucket_bound(limit, limits.tick_length(i), granted)?,
            Algorithm::Window => window_bound(limit, limit.max, granted)?,
            // Its documented error.
            Algorithm::Counter => window_bound(limit, 2 * limit.max - 1, granted)?,
            _ => {}
        }
    }
    Ok(())
}

impl Run {
    /// Whether the stamps there are, which are as old as the last write, are still told from later
    /// ones `nanos` from now.
    fn tells(&self, nanos: u64) -> bool {
        let then = self.now().saturating_add(nanos);
        then < self.end && then - self.written.min(then) < self.patience
    }

    /// The coarsest of the limits' ticks.
    fn tick(&self) -> u64 {
        (0..self.limits.len()).map(|i| self.limits.tick_length(i)).max().unwrap()
    }

    /// The time a little more than a tick ago; now, if stamps could not tell that from the future.
    fn back_by(&self, millis: u64) -> u64 {
        let by = self.tick() + (2 + millis) * MILLISECOND;
        let latest = self.now().max(self.written);
        let told = by + (latest - self.now()) < self.patience / 4;
        self.now() - if told && by + MILLISECOND < self.now() { by } else { 0 }
    }

    fn step_back(&mut self, millis: u64) {
        self.hand.set(self.back_by(millis));
    }

    fn all_views(&self, key: &[u8]) -> [LimitStatuses; 3] {
        [0, 1, self.most].map(|cost| self.engine.peek(key, cost).statuses)
    }
}

/// How long a limit may deny one unit, whatever happened to the clock.
fn full_refill(limit: &Limit) -> u64 {
    let per = limit.per.as_nanos() as u64;
    match limit.algorithm {
        Algorithm::Bucket => {
            let full = u128::from(limit.burst.unwrap_or(limit.max)) * u128::from(per);
            full.div_ceil(limit.max.into()) as u64
        }
        // What moved to the current cell weighs until the end of the next.
        Algorithm::Counter => 2 * per,
        _ => per,
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn never_too_many_are_granted_in_any_interval(
        limits in several(1..=3), start in start(), ops in ops(plain_op(), 200),
    ) {
        let mut run = Run::new(&limits, start);
        let granted = grants(&mut run, &ops);
        bounds_hold(&run.limits, &granted)?;
    }

    #[test]
    fn a_clock_that_goes_back_grants_nothing_extra(
        limits in prop::collection::vec(a_faultless_limit(), 1..=3),
        start in start(),
        ops in ops(prop_oneof![5 => plain_op(), 1 => (0u64..=5_000).prop_map(Op::Back)], 200),
    ) {
        let mut run = Run::new(&limits, start);
        let granted = grants(&mut run, &ops);
        bounds_hold(&run.limits, &granted)?;
    }

    #[test]
    fn a_clock_that_goes_back_denies_no_longer_than_one_refill(
        // A counter is mended when it is next asked, which another limit's denial may put off.
        limits in prop_oneof![several(1..=1), prop::collection::vec(a_faultless_limit(), 1..=3)],
        start in start(), ops in ops(plain_op(), 20), by in 2u64..=5_000,
    ) {
        let mut run = Run::new(&limits, start);
        grants(&mut run, &ops);
        run.step_back(by);
        let refill = limits.iter().map(full_refill).max().unwrap();
        prop_assume!(run.tells(2 * refill));
        // Polls are denied hits, which must not put the end off; the last comes a tick late.
        // A counter knows its last charge to a hundredth of its `per`.
        let (from, late) = (run.now(), 16 + 2 * run.tick() + refill / 100);
        for poll in 0..=16 {
            run.hand.set(from + refill / 16 * poll + if poll == 16 { late } else { 0 });
            if run.engine.hit(KEY, 1).answer == Answer::Allowed {
                return Ok(());
            }
        }
        prop_assert!(false, "I9: denied for more than {refill} ns by {limits:?}");
    }

    #[test]
    fn a_denial_leaves_no_trace(
        limits in several(1..=3), start in start(), ops in ops(plain_op(), 60),
    ) {
        let (mut run, twin) = (Run::new(&limits, start), Run::new(&limits, start));
        for op in ops.0 {
            match op {
                Op::Allow if run.engine.allow(KEY) => {
                    prop_assert!(twin.engine.allow(KEY));
                    run.written = run.now();
                }
                Op::Hit(cost) => {
                    let cost = cost.of(run.most);
                    let outcome = run.engine.hit(KEY, cost);
                    if outcome.answer == Answer::Allowed && cost > 0 {
                        prop_assert_eq!(twin.engine.hit(KEY, cost), outcome);
                        run.written = run.now();
                    }
                }
                Op::Pass(step) => run.pass(run.nanos(step)),
                _ => {}
            }
            twin.hand.set(run.now());
            twin.hand.set_lag(some_lag(run.now()));
            prop_assert_eq!(run.all_views(KEY), twin.all_views(KEY), "the twin was never denied");
        }
    }

    #[test]
    fn a_hit_passes_when_its_wait_is_over_and_not_a_nanosecond_before(
        limits in several(1..=3), start in start(), ops in ops(op(), 30), cost in cost(),
    ) {
        let mut run = Run::new(&limits, start);
        ops.0.into_iter().try_for_each(|op| run.perform(op))?;
        let cost = cost.of(run.most);
        let denied = run.engine.hit(KEY, cost);
        let (now, wait) = (run.now(), denied.statuses.wait());
        if denied.answer == Answer::Denied && run.tells(wait) {
            run.hand.set(now + wait - 1);
            prop_assert_eq!(run.engine.peek(KEY, cost).answer, Answer::Denied, "a wait too long");
            run.hand.set(now + wait);
            prop_assert_eq!(run.engine.hit(KEY, cost).answer, Answer::Allowed, "I5: {:?}", limits);
        }
    }

    #[test]
    fn a_refund_restores_what_the_hit_took(
        limits in several(1..=3), start in start(), ops in ops(op(), 30), cost in cost(),
    ) {
        let mut run = Run::new(&limits, start);
        ops.0.into_iter().try_for_each(|op| run.perform(op))?;
        let cost = cost.of(run.most);
        let before = run.engine.peek(KEY, 0).statuses;
        if run.engine.hit(KEY, cost).answer != Answer::Allowed {
            return Ok(());
        }
        run.engine.refund(KEY, cost);
        let after = run.engine.peek(KEY, 0).statuses;
        for (limit, (before, after)) in limits.iter().zip(before.iter().zip(after.iter())) {
            match limit.algorithm {
                Algorithm::Bucket => {
                    // But for the time of what promise 6 lets a charge lose.
                    let (per, size) = (limit.per.as_nanos() as u64, before.limit);
                    let deep = u128::from(size) * u128::from(per) / 10_000_000;
                    let grains = if size > 100_000 { deep as u64 } else { per / 1000 };
                    // Once for the charge, and once for what it read.
                    let lost = 2 * grains.div_ceil(limit.max) + 1;
                    let kept = before.reset..=before.reset + lost;
                    prop_assert!(kept.contains(&after.reset), "I6: {before:?} {after:?} {limit:?}");
                }
                _ => prop_assert_eq!(after, before, "I6: {:?}", limit),
            }
        }
    }

    #[test]
    fn limits_taken_together_are_charged_as_each_would_be_alone(
        limits in several(2..=4), start in start(), ops in ops(plain_op(), 60),
    ) {
        let mut run = Run::new(&limits, start);
        let alone: Vec<Run> = limits.iter().map(|&limit| Run::new(&[limit], start)).collect();
        for op in ops.0 {
            match op {
                Op::Hit(cost) => {
                    let cost = cost.of(run.most).clamp(1, run.most);
                    let fits = alone.iter().all(|one| one.engine.peek(KEY, cost).statuses.fits());
                    let allowed = run.engine.hit(KEY, cost).answer.is_allowed();
                    prop_assert_eq!(allowed, fits);
                    for one in alone.iter().filter(|_| allowed) {
                        prop_assert!(one.engine.hit(KEY, cost).answer.is_allowed());
                        run.written = run.now();
                    }
                }
                Op::Pass(step) => run.pass(run.nanos(step)),
                _ => {}
            }
            alone.iter().for_each(|one| one.hand.set(run.now()));
            let together = run.engine.peek(KEY, 1).statuses;
            let each: Vec<_> =
                alone.iter().map(|one| one.engine.peek(KEY, 1).statuses[0]).collect();
            prop_assert_eq!(&together[..], &each[..], "I7: {:?}", limits);
        }
    }

    #[test]
    fn another_key_is_never_affected(
        limits in several(1..=3), start in start(), ops in ops(op(), 60),
    ) {
        let (mut run, twin) = (Run::new(&limits, start), Run::new(&limits, start));
        for op in ops.0 {
            run.perform(op)?;
            twin.hand.set(run.now());
            twin.hand.set_lag(some_lag(run.now()));
            prop_assert_eq!(run.all_views(OTHER), twin.all_views(OTHER));
            prop_assert_eq!(run.engine.hit(OTHER, 1), twin.engine.hit(OTHER, 1));
        }
    }

    #[test]
    fn a_log_recorded_over_still_waits_exactly(
        max in 1u64..=6, per in per(), start in start(), ops in ops(op(), 100),
    ) {
        let mut run = Run::new(&[Limit::window(max, per)], start);
        for op in ops.0 {
            let now = run.now();
            match op {
                Op::Hit(cost) if run.engine.hit(KEY, cost.of(max)).answer == Answer::Allowed => {
                    run.reference.charge(cost.of(max), now);
                }
                Op::Record(cost) => {
                    run.engine.record(KEY, cost.of(max));
                    run.reference.record(cost.of(max), now);
                }
                Op::Pass(step) => run.pass(run.nanos(step)),
                _ => {}
            }
            let (status, exact) =
                (run.engine.peek(KEY, 1).statuses[0], &run.reference.statuses(1, run.now())[0]);
            prop_assert_eq!((status.wait, status.reset), (exact.wait.0, exact.reset.0));
            // Of more entries than it has slots the log adds the oldest to the next, and counts
            // them with it.
            prop_assert!(status.used >= exact.used.0);
            run.last_wait = status.wait;
        }
    }
}

#[test]
fn peek_says_what_a_hit_of_nothing_gets() {
    let second = Duration::from_secs(1);
    for limit in [Limit::window(3, second), Limit::counter(3, second), Limit::fixed(3, second)] {
        let run = Run::new(&[limit], 1_000_000_000);
        run.engine.record(KEY, 5);
        let peeked = run.engine.peek(KEY, 0);
        assert_eq!(run.engine.hit(KEY, 0), peeked, "more was recorded than allowed: {limit:?}");
    }
}

/// Found by `limits_that_meet_clock_faults_answer_as_exact_arithmetic_does`.
#[test]
fn a_clock_that_keeps_going_back_refills_nothing() {
    let limit = Limit::bucket(1, Duration::from_millis(1)).burst(3);
    let run = Run::new(&[limit], 10_000_032_000);
    let hit = || run.engine.hit(KEY, 1).answer;
    assert_eq!([hit(), hit(), hit(), hit()].map(Answer::is_allowed), [true, true, true, false]);
    run.hand.advance(Duration::from_micros(2_500));
    assert_eq!([hit(), hit(), hit()].map(Answer::is_allowed), [true, true, false]);
    // Half a token is left, and no time passes from now on.
    for times in 1..100 {
        run.hand.set(run.now() - 2 * run.limits.tick_length(0));
        assert_eq!(hit(), Answer::Denied, "I9: after {times} steps back");
    }
}

/// Found by `a_bucket_answers_as_exact_arithmetic_does`.
#[test]
fn a_clock_that_goes_back_within_a_tick_makes_no_wait_longer() {
    let run = Run::new(&[Limit::bucket(32, Duration::from_secs(60)).burst(64)], 10_003_000_000);
    let tick = run.limits.tick_length(0);
    assert_eq!(run.engine.hit(KEY, 64).answer, Answer::Allowed);
    run.hand.set(10_001_000_000);
    assert_eq!(10_001_000_000 / tick, 10_003_000_000 / tick, "one tick");
    let wait = run.engine.hit(KEY, 1).statuses.wait();
    assert!(wait <= 1_875_000_000, "I9: a token's time, and not {wait} ns");
    run.hand.advance(Duration::from_nanos(wait));
    assert_eq!(run.engine.hit(KEY, 1).answer, Answer::Allowed, "I5: after {wait} ns");
}

/// Found by `limits_of_a_rule_answer_as_exact_arithmetic_does`.
#[test]
fn a_fixed_span_that_starts_between_microseconds_ends_when_it_says() {
    let run = Run::new(&[Limit::fixed(1, Duration::from_millis(1))], 1_000_000_001);
    assert_eq!(run.engine.hit(KEY, 1).answer, Answer::Allowed);
    let wait = run.engine.hit(KEY, 1).statuses.wait();
    run.hand.advance(Duration::from_nanos(wait));
    assert_eq!(run.engine.hit(KEY, 1).answer, Answer::Allowed, "I5: after {wait} ns");
}
