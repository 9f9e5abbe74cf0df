//! Laws that hold while numbers and clocks change, against exact bounds.
//!
//! A key is judged by two to four sets of numbers in turn, under a clock that stands still, sleeps
//! for up to a year and goes back. What must hold then (SPEC promises 1 and 4 to 8):
//!
//! * **I1 bound**: never too many, by the time that passed.
//! * **I5 exact wait**: a hit passes at now + wait, and not a millisecond before.
//! * **I6 refund**: at most what is missing.
//! * **I9 time**: a clock fault grants nothing, and denies for no longer than one full refill.
//! * **I13 change**: a limit that refills no faster and holds no more finds no more than was there.
//!   A faster one finds no more than it would have refilled since. None denies for longer than its
//!   own fill time.
//!
//! `reference/exact.rs` has the bounds. `TIDEGATE_CASES` is the number of sequences in all, 10,000
//! unless said.

#[path = "reference/exact.rs"]
mod exact;

use std::sync::Arc;
use std::time::Duration;

use exact::{DAY, MICRO, MILLI, Moving, SECOND, Spender, Verdict, YEAR, per};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tidegate_core::{
    Answer, Clock, Engine, Limit, LimitStatus, LimitStatuses, Limits, ManualClock, MultiOutcome,
    NEVER, Options, Permit, RowRef, Time,
};

type Checked = Result<(), TestCaseError>;

const KEY: &[u8] = b"somebody";
const OTHER: &[u8] = b"somebody else";
/// Stamps of windows, fixed counts and permits are told apart for four years.
const TOLD: u64 = 4 * YEAR;

/// So many of 100 of all sequences.
fn config(percent: u32) -> ProptestConfig {
    let failure_persistence =
        Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    let all = std::env::var("TIDEGATE_CASES").ok().and_then(|text| text.parse().ok());
    let cases = (all.unwrap_or(10_000u32) / 100).max(1) * percent;
    let max_global_rejects = 10 * cases + 1024;
    ProptestConfig { cases, failure_persistence, max_global_rejects, ..ProptestConfig::default() }
}

// ---- What is generated ----

fn per_millis() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => prop::sample::select(vec![1u64, 3, 7, 10, 100, 150, 1_000, 3_000, 10_000, 60_000]),
        3 => prop::sample::select(vec![3_600_000u64, 28_800_000, 86_400_000, 366 * 86_400_000]),
        2 => 1u64..=5_000,
        1 => 1u64..=366 * 86_400_000,
    ]
}

fn max_units() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 1u64..=5,
        4 => 1u64..=100,
        2 => 100u64..=20_000,
        2 => prop::sample::select(vec![5_000u64, 99_999, 100_000, 100_001, 200_000, 2_000_000]),
        1 => 1u64..=1_000_000_000,
        1 => prop::sample::select(vec![100_000_000u64, 999_999_999, 1_000_000_000]),
    ]
}

fn a_bucket() -> impl Strategy<Value = Limit> {
    let burst = prop_oneof![
        4 => Just(None),
        2 => (1u64..=10).prop_map(Some),
        2 => max_units().prop_map(Some),
    ];
    (max_units(), per_millis(), burst).prop_map(|(max, millis, burst)| Limit {
        burst,
        ..Limit::bucket(max, Duration::from_millis(millis))
    })
}

/// Another set of numbers for the same limit, as an override, a `when` or a call's `max` has them.
fn varied(of: Limit) -> impl Strategy<Value = Limit> {
    let times = prop::sample::select(vec![1u64, 2, 3, 10, 60, 1_000]);
    let period = |millis: u64| Duration::from_millis(millis.clamp(1, 366 * 86_400_000));
    let millis = of.per.as_millis() as u64;
    prop_oneof![
        3 => max_units().prop_map(move |max| Limit { max, burst: None, ..of }),
        2 => times.clone().prop_map(move |n| Limit { max: (of.max / n).max(1), ..of }),
        2 => times.clone().prop_map(move |n| Limit { per: period(millis * n), ..of }),
        2 => times.prop_map(move |n| Limit { per: period(millis / n), ..of }),
        2 => max_units().prop_map(move |burst| Limit { burst: Some(burst), ..of }),
        3 => a_bucket(),
    ]
}

/// Two to four sets of one bucket's numbers that the engine accepts.
fn bucket_sets() -> impl Strategy<Value = Vec<Limit>> {
    let sets = a_bucket().prop_flat_map(|own| {
        let others = prop::collection::vec(varied(own), 1..=3);
        others.prop_map(move |others| [vec![own], others].concat())
    });
    sets.prop_filter_map("refused, or too much for the reference", |mut sets| {
        sets.retain(|limit| Limits::new(&[*limit]).is_ok());
        (sets.len() > 1 && exact::grains(&sets).is_some()).then_some(sets)
    })
}

/// A cost, in terms of the most that one hit may take.
#[derive(Clone, Copy, Debug)]
enum Cost {
    Units(u64),
    Sixteenths(u64),
}

impl Cost {
    fn of(self, most: u64) -> u64 {
        match self {
            Cost::Units(units) => units,
            Cost::Sixteenths(parts) => (most * parts).div_ceil(16),
        }
    }
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        6 => Just(Cost::Units(1)),
        2 => (1u64..=5).prop_map(Cost::Units),
        4 => (1u64..=16).prop_map(Cost::Sixteenths),
    ]
}

/// How far the clock goes, in terms of a set of numbers where that matters.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nanos(u64),
    /// Parts of 16 of what one unit takes.
    OfUnit(usize, u64),
    /// Parts of 16 of what all takes, and so many nanoseconds.
    OfFill(usize, u64, u64),
    /// The wait of the last denial, less so much.
    Wait(u64),
    /// As far as the contract reaches.
    Furthest,
}

fn step() -> impl Strategy<Value = Step> {
    let nanos = prop_oneof![
        Just(0u64),
        0u64..=2_000,
        (0u64..=5_000).prop_map(|micros| micros * MICRO),
        (0u64..=5_000).prop_map(|millis| millis * MILLI),
        (0u64..=172_800).prop_map(|seconds| seconds * SECOND),
        (0u64..=400).prop_map(|days| days * DAY),
    ];
    prop_oneof![
        6 => nanos.prop_map(Step::Nanos),
        6 => (0usize..4, 0u64..=40).prop_map(|(set, parts)| Step::OfUnit(set, parts)),
        4 => (0usize..4, 0u64..=40, 0u64..3)
            .prop_map(|(set, parts, n)| Step::OfFill(set, parts, n)),
        3 => prop::sample::select(vec![0, 1, MICRO, MILLI]).prop_map(Step::Wait),
        1 => Just(Step::Furthest),
    ]
}

impl Step {
    fn nanos(self, limits: &[Limit], wait: u64, furthest: u64) -> u64 {
        let limit = |set: usize| &limits[set % limits.len()];
        let of = |units: u64, limit: &Limit, parts: u64| {
            let all = u128::from(units) * u128::from(per(limit)) * u128::from(parts);
            u64::try_from(all.div_ceil(16 * u128::from(limit.max.max(1)))).unwrap_or(u64::MAX)
        };
        let wanted = match self {
            Step::Nanos(nanos) => nanos,
            Step::OfUnit(set, parts) => of(1, limit(set), parts),
            Step::OfFill(set, parts, nanos) => {
                of(limit(set).size(), limit(set), parts).saturating_add(nanos)
            }
            Step::Wait(less) => wait.saturating_sub(less),
            Step::Furthest => furthest,
        };
        wanted.min(furthest)
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Hit(usize, Cost),
    /// The fastest path, by the engine's own numbers.
    Allow,
    /// Hits of 1, and one of all that is left.
    Drain(usize, u64),
    Record(usize, Cost),
    Refund(usize, Cost),
    /// Gives a permit back, or starts its lease anew.
    Release(usize),
    Renew(usize, usize),
    Reset,
    /// Drops what is idle, and a row of somebody else's.
    Prune,
    Pass(Step),
    Back(Step),
}

/// Which operations come up how often.
#[derive(Clone, Copy)]
struct Mix {
    back: u32,
    refund: u32,
    renew: u32,
}

fn op(mix: Mix) -> impl Strategy<Value = Op> {
    let set = || 0usize..4;
    let renewals = prop_oneof![
        1 => (set(), 0usize..8).prop_map(|(set, which)| Op::Renew(set, which)),
        2 => (0usize..8).prop_map(Op::Release),
    ];
    prop_oneof![
        20 => (set(), cost()).prop_map(|(set, cost)| Op::Hit(set, cost)),
        4 => Just(Op::Allow),
        4 => (set(), 0u64..=8).prop_map(|(set, singles)| Op::Drain(set, singles)),
        3 => (set(), cost()).prop_map(|(set, cost)| Op::Record(set, cost)),
        1 => Just(Op::Reset),
        1 => Just(Op::Prune),
        20 => step().prop_map(Op::Pass),
        mix.back => step().prop_map(Op::Back),
        mix.refund => (set(), cost()).prop_map(|(set, cost)| Op::Refund(set, cost)),
        mix.renew => renewals,
    ]
}

/// A sequence that prints on one line.
#[derive(Clone)]
struct Ops(Vec<Op>);

impl std::fmt::Debug for Ops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "{op:?}; "))
    }
}

fn ops(mix: Mix) -> impl Strategy<Value = Ops> {
    prop::collection::vec(op(mix), 1..80).prop_map(Ops)
}

const STEADY: Mix = Mix { back: 0, refund: 3, renew: 0 };
const FAULTY: Mix = Mix { back: 6, refund: 3, renew: 0 };

/// Clocks that started just now, at boot, long ago, and where stamps wrap.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..5_000_000,
        1_000_000u64..1 << 44,
        (1u64 << 44)..(1 << 62),
        Just((1u64 << 48) * 1000 - 3_141_592_653),
    ]
}

// ---- One key of one engine ----

struct Stage {
    engine: Engine,
    hand: Arc<ManualClock>,
    sets: Vec<Limits>,
    last_wait: u64,
}

impl Stage {
    /// `stated` has the limits of each set.
    fn new(stated: &[Vec<Limit>], start: u64) -> Stage {
        let sets: Vec<Limits> = stated.iter().map(|set| Limits::new(set).unwrap()).collect();
        let (clock, hand) = Clock::manual(start);
        let options = Options { capacity: 8, seed: Some(7), clock, ..Options::default() };
        let engine = Engine::new(sets[0].clone(), options).unwrap();
        assert!(sets.iter().all(|set| engine.introduce_limits(set)), "one shape");
        Stage { engine, hand, sets, last_wait: 0 }
    }

    fn now(&self) -> u64 {
        self.hand.now()
    }

    fn part(&self, set: usize) -> RowRef<'_> {
        let limits = &self.sets[set];
        RowRef { engine: &self.engine, hash: self.engine.hash(KEY), limits }
    }

    fn hit(&self, set: usize, cost: u64) -> (MultiOutcome<1>, LimitStatuses) {
        let mut statuses = LimitStatuses::default();
        let mut time = Time::read(self.engine.clock());
        let together = self.part(set).hit(cost, &mut time, &mut statuses);
        (together, statuses)
    }

    fn record(&self, set: usize, cost: u64) -> LimitStatuses {
        self.part(set).record(cost, &mut Time::read(self.engine.clock()))
    }

    fn refund(&self, set: usize, cost: u64) {
        self.part(set).refund(cost, &mut Time::read(self.engine.clock()));
    }

    fn status(&self, set: usize) -> LimitStatus {
        self.part(set).inspect(0, self.now())[0]
    }

    /// Idle rows are evicted, also for a key that comes and goes.
    fn prune(&self) {
        self.engine.prune();
        let _ = self.engine.hit(OTHER, 1);
        self.engine.reset(OTHER);
    }

    /// I5: the hit passes when its wait is over, and not `early` before. Looks take the time from
    /// their caller, so the clock stays.
    fn check_wait(&mut self, set: usize, cost: u64, wait: u64, early: u64, end: u64) -> Checked {
        self.last_wait = if wait == NEVER { 0 } else { wait };
        let then = self.now().saturating_add(wait);
        if wait == NEVER || then > end {
            return Ok(());
        }
        prop_assert_ne!(wait, 0, "I5: a denial has a wait");
        let fits = |at: u64| self.part(set).inspect(cost, at).fits();
        prop_assert!(fits(then), "I5: {} does not pass {} ns later", cost, wait);
        if wait > early {
            prop_assert!(!fits(then - early), "I5: {} passes {} ns before its wait", cost, early);
        }
        Ok(())
    }
}

fn perform<R>(run: &mut R, ops: &Ops, perform: fn(&mut R, Op) -> Checked) -> Checked {
    for (i, &op) in ops.0.iter().enumerate() {
        perform(run, op).map_err(|e| TestCaseError::fail(format!("operation {i}, {op:?}: {e}")))?;
    }
    Ok(())
}

// ---- Buckets ----

struct Buckets {
    stage: Stage,
    limits: Vec<Limit>,
    exact: exact::Bucket,
}

impl Buckets {
    fn new(limits: &[Limit], start: u64) -> Buckets {
        let sets: Vec<Vec<Limit>> = limits.iter().map(|limit| vec![*limit]).collect();
        let stage = Stage::new(&sets, start);
        let ticks: Vec<u64> = stage.sets.iter().map(|set| set.tick_length(0)).collect();
        let exact = exact::Bucket::new(limits, &ticks, start);
        Buckets { stage, limits: limits.to_vec(), exact }
    }

    fn set(&self, set: usize) -> usize {
        set % self.limits.len()
    }

    fn size(&self, set: usize) -> u64 {
        self.limits[set].size()
    }

    fn hit(&mut self, set: usize, cost: u64) -> Checked {
        let (verdict, law) = (self.exact.verdict(set, cost), self.exact.law(set));
        let (together, statuses) = self.stage.hit(set, cost);
        self.judge(set, cost, together.answer, verdict, law)?;
        if together.answer == Answer::Denied {
            let early = self.exact.sets[set].exactness(self.exact.token);
            let end = self.exact.now.saturating_add(self.exact.furthest());
            self.stage.check_wait(set, cost, statuses.wait(), early, end)?;
        }
        Ok(())
    }

    fn judge(
        &mut self,
        set: usize,
        cost: u64,
        answer: Answer,
        verdict: Verdict,
        law: &str,
    ) -> Checked {
        let (least, most) = self.exact.tokens(set);
        let there = format!("{least} to {most} tokens are there, by {:?}", self.limits[set]);
        match answer {
            Answer::Allowed => {
                prop_assert_ne!(verdict, Verdict::Refuses, "{}: {} granted, {}", law, cost, there);
                self.exact.charge(set, cost);
            }
            Answer::Denied => {
                prop_assert_ne!(verdict, Verdict::Grants, "{}: {} denied, {}", law, cost, there);
                self.exact.deny(set);
            }
            answer => prop_assert!(answer == Answer::Cost && cost > self.size(set), "{answer:?}"),
        }
        Ok(())
    }

    fn allow(&mut self) -> Checked {
        let (verdict, law) = (self.exact.verdict(0, 1), self.exact.law(0));
        let allowed = self.stage.engine.allow(KEY);
        let answer = if allowed { Answer::Allowed } else { Answer::Denied };
        self.judge(0, 1, answer, verdict, law)
    }

    /// A full bucket grants exactly its size at one instant, and no more.
    fn drain(&mut self, set: usize, singles: u64) -> Checked {
        for _ in 0..singles {
            self.hit(set, 1)?;
        }
        let rest = self.stage.status(set).remaining;
        if rest > 0 {
            self.hit(set, rest)?;
        }
        self.hit(set, 1)
    }

    fn refund(&mut self, set: usize, cost: u64) {
        if !self.exact.is_vague() {
            self.stage.refund(set, cost);
            self.exact.refund(set, cost);
        }
    }

    fn pass(&mut self, step: Step) {
        // A clock that is far on leaves room for every wait.
        let end = (u64::MAX / 2).saturating_sub(self.exact.now);
        let furthest = self.exact.furthest().min(end);
        let nanos = step.nanos(&self.limits, self.stage.last_wait, furthest);
        self.exact.go_on(nanos);
        self.stage.hand.set(self.exact.now);
    }

    fn back(&mut self, step: Step) {
        let furthest = self.exact.furthest_back();
        self.exact.go_back(step.nanos(&self.limits, self.stage.last_wait, furthest));
        self.stage.hand.set(self.exact.now);
    }

    fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Hit(set, cost) => {
                let set = self.set(set);
                self.hit(set, cost.of(self.size(set)))?;
            }
            Op::Allow => self.allow()?,
            Op::Drain(set, singles) => self.drain(self.set(set), singles)?,
            Op::Record(set, cost) => {
                let set = self.set(set);
                let cost = cost.of(self.size(set)).min(self.size(set));
                self.stage.record(set, cost);
                self.exact.record(set, cost);
            }
            Op::Refund(set, cost) => {
                let set = self.set(set);
                self.refund(set, cost.of(self.size(set)).min(self.size(set)));
            }
            Op::Reset => {
                self.stage.engine.reset(KEY);
                self.exact.reset();
            }
            Op::Prune => self.stage.prune(),
            Op::Pass(step) => self.pass(step),
            Op::Back(step) => self.back(step),
            Op::Release(..) | Op::Renew(..) => {}
        }
        self.look()
    }

    /// What each set finds is within its bounds, and no more than what any larger and faster finds.
    fn look(&self) -> Checked {
        let found: Vec<u64> =
            (0..self.limits.len()).map(|set| self.stage.status(set).remaining).collect();
        for (set, limit) in self.limits.iter().enumerate() {
            let (least, most) = self.exact.tokens(set);
            let within = (least..=most).contains(&found[set]);
            let law = self.exact.law(set);
            prop_assert!(within, "{law}: {} tokens, not {least} to {most}: {limit:?}", found[set]);
            for (other, larger) in self.limits.iter().enumerate() {
                let deep = limit.size().max(larger.size()) > 100_000;
                if is_within(limit, larger) && !deep && !self.is_early(set) {
                    let before = found[other].min(limit.size());
                    prop_assert!(
                        found[set] <= before,
                        "I13: {} tokens by {limit:?}, {before} an instant before by {larger:?}",
                        found[set]
                    );
                }
            }
        }
        Ok(())
    }

    /// Whether a tick refills a token, so that one may come early.
    fn is_early(&self, set: usize) -> bool {
        let limit = &self.limits[set];
        let tick = self.stage.sets[set].tick_length(0);
        u128::from(limit.max) * u128::from(tick) >= u128::from(per(limit))
    }
}

/// Whether it refills no faster and holds no more.
fn is_within(limit: &Limit, larger: &Limit) -> bool {
    let rate = |of: &Limit, by: &Limit| u128::from(of.max) * u128::from(per(by));
    rate(limit, larger) <= rate(larger, limit) && limit.size() <= larger.size()
}

proptest! {
    #![proptest_config(config(20))]

    #[test]
    fn a_bucket_by_changing_numbers_stays_within_its_bounds(
        limits in bucket_sets(), start in start(), ops in ops(STEADY),
    ) {
        perform(&mut Buckets::new(&limits, start), &ops, Buckets::perform)?;
    }

    #[test]
    fn a_bucket_by_changing_numbers_and_clocks_stays_within_its_bounds(
        limits in bucket_sets(), start in start(), ops in ops(FAULTY),
    ) {
        perform(&mut Buckets::new(&limits, start), &ops, Buckets::perform)?;
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_bucket_that_slept_as_long_as_it_can_tell_grants_exactly_its_size(
        limits in bucket_sets(), start in start(), ops in ops(STEADY), set in 0usize..4,
        singles in 0u64..=40,
    ) {
        let mut run = Buckets::new(&limits, start);
        perform(&mut run, &ops, Buckets::perform)?;
        run.pass(Step::Furthest);
        let set = run.set(set);
        let slept = run.exact.least(set) >= run.exact.sets[set].size;
        if slept {
            prop_assert_eq!(run.stage.status(set).remaining, run.size(set), "I9: it slept");
        }
        run.drain(set, singles)?;
        if slept {
            prop_assert_eq!(
                run.stage.hit(set, 1).0.answer,
                Answer::Denied,
                "I1: more than it holds"
            );
        }
    }

    #[test]
    fn after_a_clock_fault_a_bucket_denies_no_longer_than_one_refill(
        limits in bucket_sets(), start in start(), ops in ops(FAULTY), back in step(),
        set in 0usize..4, polls in 0u64..=16,
    ) {
        let mut run = Buckets::new(&limits, start);
        perform(&mut run, &ops, Buckets::perform)?;
        run.back(back);
        let set = run.set(set);
        run.hit(set, 1)?;
        let fill = Step::OfFill(set, 16, 0).nanos(&limits, 0, u64::MAX);
        let slack = 2 * run.stage.sets[set].tick_length(0);
        // Polls must not put the end off.
        for _ in 0..polls {
            run.pass(Step::Nanos(fill / 17));
            run.hit(set, 1)?;
        }
        run.pass(Step::Nanos(fill.saturating_add(slack)));
        run.hit(set, 1)?;
    }
}

// ---- Windows ----

/// Two to four sets of one rule's windows, with room for the largest `max`.
fn window_sets() -> impl Strategy<Value = Vec<Vec<Limit>>> {
    let window = || {
        let max = prop_oneof![12 => 1u64..=6, 3 => 1u64..=50, 1 => 1u64..=300];
        (max, per_millis()).prop_map(|(max, millis)| (max, Duration::from_millis(millis)))
    };
    let sets = (1usize..=2).prop_flat_map(move |windows| {
        prop::collection::vec(prop::collection::vec(window(), windows), 2..=4)
    });
    sets.prop_map(|sets| {
        let most = sets.iter().flatten().map(|(max, _)| *max).max().unwrap();
        let limit = |(max, per): &(u64, Duration)| Limit::window(*max, *per).ceiling(most);
        sets.iter().map(|set| set.iter().map(limit).collect()).collect()
    })
}

/// What the other algorithms share: a stage, and a clock that stays where stamps are told apart.
struct Others<M> {
    stage: Stage,
    stated: Vec<Vec<Limit>>,
    time: Moving,
    /// How far stamps are told apart.
    told: u64,
    end: u64,
    exact: M,
}

impl<M> Others<M> {
    fn new(stated: &[Vec<Limit>], start: u64, told: u64, exact: M) -> Others<M> {
        let (stage, time) = (Stage::new(stated, start), Moving::at(start));
        let end = start.saturating_add(told).min(u64::MAX / 2);
        Others { stage, stated: stated.to_vec(), time, told, end, exact }
    }

    fn set(&self, set: usize) -> usize {
        set % self.stated.len()
    }

    /// The only limit of a set.
    fn lone(&self, set: usize) -> Limit {
        self.stated[set][0]
    }

    /// The most that one hit may take.
    fn most(&self, set: usize) -> u64 {
        self.stated[set].iter().map(|limit| limit.max).min().unwrap()
    }

    fn all(&self) -> Vec<Limit> {
        self.stated.concat()
    }

    fn pass(&mut self, step: Step) {
        let furthest = YEAR.min(self.end.saturating_sub(self.time.now));
        self.time.go_on(step.nanos(&self.all(), self.stage.last_wait, furthest));
        self.stage.hand.set(self.time.now);
    }

    fn back(&mut self, step: Step, furthest: u64) {
        let furthest = furthest.min(self.time.now);
        self.time.go_back(step.nanos(&self.all(), self.stage.last_wait, furthest));
        self.stage.hand.set(self.time.now);
        self.end = self.end.min(self.time.now.saturating_add(self.told));
    }

    fn check_wait(&mut self, set: usize, cost: u64, statuses: &LimitStatuses) -> Checked {
        self.stage.check_wait(set, cost, statuses.wait(), MILLI, self.end)
    }
}

type Windows = Others<exact::Log>;

fn windows(stated: &[Vec<Limit>], start: u64) -> Windows {
    let longest = stated.iter().flatten().map(per).max().unwrap();
    let slots = stated[0][0].ceiling.unwrap();
    Others::new(stated, start, TOLD, exact::Log::new(longest, slots))
}

impl Windows {
    fn hit(&mut self, set: usize, cost: u64) -> Checked {
        let limits = self.stated[set].clone();
        let verdict = self.exact.verdict(&limits, cost, &self.time);
        let (together, statuses) = self.stage.hit(set, cost);
        match together.answer {
            Answer::Allowed => {
                prop_assert_ne!(verdict, Verdict::Refuses, "I1: {} granted by {:?}", cost, limits);
                self.exact.spend(cost, false, &self.time);
            }
            Answer::Denied => {
                prop_assert_ne!(verdict, Verdict::Grants, "I13: {} denied by {:?}", cost, limits);
                self.exact.deny(&self.time);
                self.check_wait(set, cost, &statuses)?;
            }
            answer => prop_assert!(answer == Answer::Cost && cost > self.most(set), "{answer:?}"),
        }
        Ok(())
    }

    /// A refund of units whose room others have taken is `a_log_without_room…`'s affair.
    fn refund(&mut self, set: usize, cost: u64, without_room: bool) {
        let limits = self.stated[set].clone();
        // A log that was full has moved its oldest units to younger entries, where a refund finds
        // them.
        let crowded =
            self.exact.is_crowded(&self.time) || without_room && self.exact.is_overrun(&self.time);
        if !crowded && self.exact.is_refundable(&limits, &self.time) {
            self.stage.refund(set, cost);
            self.exact.refund(&limits, cost, &self.time);
        }
    }

    fn perform(&mut self, op: Op) -> Checked {
        self.perform_op(op, false)
    }

    fn perform_without_room(&mut self, op: Op) -> Checked {
        self.perform_op(op, true)
    }

    fn perform_op(&mut self, op: Op, without_room: bool) -> Checked {
        match op {
            Op::Hit(set, cost) => {
                let set = self.set(set);
                self.hit(set, cost.of(self.most(set)))?;
            }
            Op::Allow => self.hit(0, 1)?,
            Op::Drain(set, singles) => {
                for _ in 0..=singles {
                    self.hit(self.set(set), 1)?;
                }
            }
            Op::Record(set, cost) => {
                let set = self.set(set);
                let cost = cost.of(self.most(set)).min(self.most(set));
                self.stage.record(set, cost);
                self.exact.spend(cost, true, &self.time);
            }
            Op::Refund(set, cost) => {
                let set = self.set(set);
                self.refund(set, cost.of(self.most(set)), without_room);
            }
            Op::Reset => {
                self.stage.engine.reset(KEY);
                self.exact.reset();
            }
            Op::Prune => self.stage.prune(),
            Op::Pass(step) => self.pass(step),
            Op::Back(step) => self.back(step, YEAR / 4),
            Op::Release(..) | Op::Renew(..) => {}
        }
        self.look()
    }

    fn look(&self) -> Checked {
        for (set, limits) in self.stated.iter().enumerate() {
            let statuses = self.stage.part(set).inspect(0, self.time.now);
            for (limit, status) in limits.iter().zip(statuses.iter()) {
                let (least, most) = self.exact.used(limit, &self.time);
                // A log that is full of live entries moves its oldest units to the next entry: they
                // may count for longer, where that changes no answer.
                let within = (least..=most).contains(&status.used)
                    || status.used > limit.max && most >= limit.max;
                prop_assert!(within, "I13: {} used, not {least} to {most}: {limit:?}", status.used);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(10))]

    #[test]
    fn a_window_by_changing_numbers_counts_what_was_spent_in_it(
        sets in window_sets(), start in start(), ops in ops(STEADY),
    ) {
        perform(&mut windows(&sets, start), &ops, Windows::perform)?;
    }

    #[test]
    fn a_window_by_changing_numbers_and_clocks_stays_within_its_bounds(
        sets in window_sets(), start in start(), ops in ops(FAULTY),
    ) {
        perform(&mut windows(&sets, start), &ops, Windows::perform)?;
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_log_without_room_for_the_units_of_all_numbers_forgets_none_that_counts(
        sets in window_sets(), start in start(), ops in ops(Mix { refund: 12, ..STEADY }),
    ) {
        perform(&mut windows(&sets, start), &ops, Windows::perform_without_room)?;
    }
}

// ---- Fixed counts ----

type Fixed = Others<exact::Fixed>;

fn lone_sets(of: fn(u64, Duration) -> Limit) -> impl Strategy<Value = Vec<Vec<Limit>>> {
    // Sums of a sequence stay below what a counter's cell can hold.
    let max = prop_oneof![6 => 1u64..=6, 3 => 1u64..=1_000, 1 => 1u64..=10_000_000];
    let limit = (max, per_millis())
        .prop_map(move |(max, millis)| vec![of(max, Duration::from_millis(millis))]);
    prop::collection::vec(limit, 2..=4)
}

impl Fixed {
    fn hit(&mut self, set: usize, cost: u64) -> Checked {
        let limit = self.lone(set);
        let verdict = self.exact.verdict(&limit, cost, &self.time);
        let (together, statuses) = self.stage.hit(set, cost);
        match together.answer {
            Answer::Allowed => {
                prop_assert_ne!(verdict, Verdict::Refuses, "I1: {} granted by {:?}", cost, limit);
                self.spend(set, cost, &statuses)?;
            }
            Answer::Denied => {
                prop_assert_ne!(verdict, Verdict::Grants, "I13: {} denied by {:?}", cost, limit);
                self.exact.deny(&self.time);
                self.check_wait(set, cost, &statuses)?;
            }
            answer => prop_assert!(answer == Answer::Cost && cost > limit.max, "{answer:?}"),
        }
        Ok(())
    }

    fn spend(&mut self, set: usize, cost: u64, statuses: &LimitStatuses) -> Checked {
        let (limit, used) = (self.lone(set), statuses[0].used);
        let told = self.exact.spend(&limit, cost, used, &self.time);
        prop_assert!(told, "I13: {used} used after {cost} by {limit:?}: {:?}", self.exact);
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Hit(set, cost) => {
                let set = self.set(set);
                self.hit(set, cost.of(self.most(set)))?;
            }
            Op::Allow => self.hit(0, 1)?,
            Op::Drain(set, singles) => {
                for _ in 0..=singles {
                    self.hit(self.set(set), 1)?;
                }
            }
            Op::Record(set, cost) => {
                let set = self.set(set);
                let cost = cost.of(self.most(set)).min(self.most(set));
                let statuses = self.stage.record(set, cost);
                self.spend(set, cost, &statuses)?;
            }
            Op::Refund(set, cost) => {
                let set = self.set(set);
                let (limit, cost) = (self.lone(set), cost.of(self.most(set)));
                if self.exact.is_refundable(&limit, &self.time) {
                    self.stage.refund(set, cost);
                    self.exact.refund(&limit, cost, &self.time);
                }
            }
            Op::Reset => {
                self.stage.engine.reset(KEY);
                self.exact.reset();
            }
            Op::Prune => self.stage.prune(),
            Op::Pass(step) => self.pass(step),
            Op::Back(step) => self.back(step, YEAR / 4),
            Op::Release(..) | Op::Renew(..) => {}
        }
        for set in 0..self.stated.len() {
            let (limit, status) = (self.lone(set), self.stage.status(set));
            let may = self.exact.used(per(&limit), &self.time);
            prop_assert!(
                may.contains(&status.used),
                "I13: {} used, not {may:?}: {limit:?}",
                status.used
            );
        }
        Ok(())
    }
}

// ---- Counters ----

type Counters = Others<exact::Counter>;

/// The cells of a counter are told apart for 100,000 times its fill time.
fn told_by_cells(sets: &[Vec<Limit>]) -> u64 {
    let shortest = sets.iter().flatten().map(per).min().unwrap();
    YEAR.min(shortest.saturating_mul(100_000))
}

/// A counter's word names its `per` to an eighth.
fn are_told_apart(shorter: u64, longer: u64) -> bool {
    shorter == longer || shorter + shorter / 8 <= longer
}

impl Counters {
    /// The longest tick of a word: a hundredth of its `per`.
    fn tick(&self) -> u64 {
        self.all().iter().map(per).max().unwrap() / 100
    }

    fn hit(&mut self, set: usize, cost: u64) -> Checked {
        let limit = self.lone(set);
        let known = [Spender::None, Spender::Only(set)].contains(&self.exact.spender);
        let used = self.exact.used(&limit, self.time.now);
        let (together, statuses) = self.stage.hit(set, cost);
        match together.answer {
            Answer::Allowed => {
                let fits = !known || used + cost <= limit.max;
                prop_assert!(fits, "I1: {cost} granted, {used} used by {limit:?}");
                self.exact.spend(&limit, set, cost, self.time.now);
            }
            Answer::Denied => {
                let full = !known || used + cost > limit.max;
                prop_assert!(full, "I13: {cost} denied, {used} used by {limit:?}");
                // What a clock fault left ahead is now, and over in two periods.
                self.exact.last = self.exact.last.or(Some((self.time.now, 0)));
                self.check_wait(set, cost, &statuses)?;
            }
            answer => prop_assert!(answer == Answer::Cost && cost > limit.max, "{answer:?}"),
        }
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Hit(set, cost) => {
                let set = self.set(set);
                self.hit(set, cost.of(self.most(set)))?;
            }
            Op::Allow => self.hit(0, 1)?,
            Op::Drain(set, singles) => {
                for _ in 0..=singles {
                    self.hit(self.set(set), 1)?;
                }
            }
            Op::Record(set, cost) => {
                let set = self.set(set);
                let (limit, cost) = (self.lone(set), cost.of(self.most(set)).min(self.most(set)));
                self.stage.record(set, cost);
                self.exact.spend(&limit, set, cost, self.time.now);
            }
            Op::Refund(set, cost) => {
                let set = self.set(set);
                let (limit, cost) = (self.lone(set), cost.of(self.most(set)));
                let known = self.exact.spender == Spender::Only(set);
                if known && self.exact.is_refundable(&limit, cost, self.time.now) {
                    self.stage.refund(set, cost);
                    self.exact.refund(&limit, cost, self.time.now);
                }
            }
            Op::Reset => {
                self.stage.engine.reset(KEY);
                self.exact.reset();
            }
            Op::Prune => self.stage.prune(),
            Op::Pass(step) => self.pass(step),
            Op::Back(step) => self.fault(step)?,
            Op::Release(..) | Op::Renew(..) => {}
        }
        self.look()
    }

    /// I9: a clock that goes back brings nothing back.
    fn fault(&mut self, step: Step) -> Checked {
        let used = |run: &Counters| -> Vec<u64> {
            (0..run.stated.len()).map(|set| run.stage.status(set).used).collect()
        };
        let before = used(self);
        self.back_as_far_as_told(step);
        let after = used(self);
        for (set, (before, after)) in before.iter().zip(&after).enumerate() {
            let limit = self.lone(set);
            prop_assert!(after >= before, "I9: {before} used, then {after} by {limit:?}");
        }
        self.exact.doubt();
        self.exact.last = None;
        Ok(())
    }

    /// No stamp is ever further ahead than cells are told apart.
    fn back_as_far_as_told(&mut self, step: Step) {
        self.exact.highest = self.exact.highest.max(self.time.now);
        let lowest = self.exact.highest.saturating_sub(self.told / 4);
        self.back(step, self.time.now.saturating_sub(lowest));
    }

    fn look(&self) -> Checked {
        let now = self.time.now;
        let found: Vec<u64> =
            (0..self.stated.len()).map(|set| self.stage.status(set).used).collect();
        for (set, &used) in found.iter().enumerate() {
            let limit = self.lone(set);
            if [Spender::None, Spender::Only(set)].contains(&self.exact.spender) {
                prop_assert_eq!(used, self.exact.used(&limit, now), "I1: used by {:?}", limit);
            }
            if let Some((at, units)) = self.exact.last {
                // What was spent this instant counts by any numbers, but for what falls in a tick.
                let spent = if at == now { units - units / 100 } else { 0 };
                prop_assert!(used >= spent, "I13: {used} of {spent} just spent by {limit:?}");
                let over = now - at >= 2 * per(&limit) + self.tick();
                prop_assert!(!over || used == 0, "I13: {used} used after two periods of {limit:?}");
            }
            for (other, &before) in found.iter().enumerate() {
                let larger = self.lone(other);
                if limit.max <= larger.max && are_told_apart(per(&larger), per(&limit)) {
                    // What a hundredth of `per` refills.
                    let tick = before.div_ceil(100);
                    let (left, before) =
                        (limit.max.saturating_sub(used), larger.max.saturating_sub(before));
                    prop_assert!(
                        left <= (before + tick).min(limit.max),
                        "I13: {left} left by {limit:?}, {before} an instant before by {larger:?}"
                    );
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_fixed_count_by_changing_numbers_and_clocks_stays_within_its_bounds(
        sets in lone_sets(Limit::fixed), start in start(), ops in ops(FAULTY),
    ) {
        let mut run = Fixed::new(&sets, start, TOLD, exact::Fixed::default());
        perform(&mut run, &ops, Fixed::perform)?;
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_counter_by_changing_numbers_grants_nothing(
        sets in lone_sets(Limit::counter), start in start(), ops in ops(STEADY),
    ) {
        let told = told_by_cells(&sets);
        let mut run = Counters::new(&sets, start, told, exact::Counter::default());
        perform(&mut run, &ops, Counters::perform)?;
    }

    #[test]
    fn a_counter_by_changing_clocks_grants_nothing(
        limit in lone_sets(Limit::counter), start in start(), ops in ops(FAULTY),
    ) {
        let sets = &limit[..1];
        let told = told_by_cells(sets);
        let mut run = Counters::new(sets, start, told, exact::Counter::default());
        perform(&mut run, &ops, Counters::perform)?;
    }
}

// ---- Permits ----

type Permits = Others<exact::Permits<Permit>>;

fn permit_sets() -> impl Strategy<Value = Vec<Vec<Limit>>> {
    let max = prop_oneof![6 => 1u64..=4, 1 => 1u64..=40];
    let sets = prop::collection::vec((max, per_millis()), 2..=4);
    sets.prop_map(|sets| {
        let most = sets.iter().map(|(max, _)| *max).max().unwrap();
        let limit = |(max, millis): &(u64, u64)| {
            vec![Limit::concurrent(*max, Duration::from_millis(*millis)).ceiling(most)]
        };
        sets.iter().map(limit).collect()
    })
}

impl Permits {
    fn hit(&mut self, set: usize) -> Checked {
        let limit = self.lone(set);
        let verdict = self.exact.verdict(&limit, &self.time);
        let (together, statuses) = self.stage.hit(set, 1);
        match (together.answer, together.permits[0]) {
            (Answer::Allowed, Some(permit)) => {
                prop_assert_ne!(
                    verdict,
                    Verdict::Refuses,
                    "I13: granted beside those out: {:?}",
                    limit
                );
                self.exact.grant(permit, per(&limit), &self.time);
            }
            (Answer::Denied, None) => {
                prop_assert_ne!(verdict, Verdict::Grants, "I9: denied, free slots: {:?}", limit);
                self.exact.deny(&self.time);
                self.check_wait(set, 1, &statuses)?;
            }
            answer => prop_assert!(false, "{answer:?}"),
        }
        Ok(())
    }

    fn release(&mut self, index: usize) -> Checked {
        let known = self.exact.is_out(index, per(&self.lone(0)), &self.time);
        let released = self.stage.engine.release(KEY, self.exact.held[index].permit);
        let due = known.unwrap_or(released);
        prop_assert_eq!(released, due, "I13: released, still out: {:?}", known);
        if released {
            self.exact.held.remove(index);
        }
        Ok(())
    }

    fn renew(&mut self, set: usize, index: usize) -> Checked {
        let known = self.exact.is_out(index, per(&self.lone(set)), &self.time);
        let renewed = self.stage.part(set).renew(self.exact.held[index].permit, self.time.now);
        let due = known.unwrap_or(renewed.is_some());
        prop_assert_eq!(renewed.is_some(), due, "I13: renewed by {:?}", self.lone(set));
        if let Some(permit) = renewed {
            self.exact.renew(index, permit, per(&self.lone(set)), &self.time);
        }
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Checked {
        let out = self.exact.held.len();
        match op {
            Op::Hit(set, _) | Op::Drain(set, _) | Op::Record(set, _) => self.hit(self.set(set))?,
            Op::Release(which) if out > 0 => self.release(which % out)?,
            Op::Renew(set, which) if out > 0 => self.renew(self.set(set), which % out)?,
            Op::Prune => self.stage.prune(),
            Op::Pass(step) => self.pass(step),
            Op::Back(step) => {
                self.back(step, YEAR / 4);
                self.exact.doubt(&self.time);
            }
            _ => {}
        }
        for set in 0..self.stated.len() {
            let (limit, used) = (self.lone(set), self.stage.status(set).used);
            let least = self.exact.surely_out(per(&limit), &self.time);
            let most = self.exact.maybe_out(per(&limit), &self.time);
            prop_assert!((least..=most).contains(&used), "I13: {used} out: {limit:?}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_permit_by_changing_numbers_keeps_the_lease_that_it_was_given(
        sets in permit_sets(), start in start(), ops in ops(Mix { back: 0, refund: 0, renew: 16 }),
    ) {
        let mut run = Permits::new(&sets, start, TOLD, exact::Permits::new());
        perform(&mut run, &ops, Permits::perform)?;
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    fn a_permit_by_changing_numbers_and_clocks_stays_within_its_bounds(
        sets in permit_sets(), start in start(), ops in ops(Mix { back: 6, refund: 0, renew: 16 }),
    ) {
        let mut run = Permits::new(&sets, start, TOLD, exact::Permits::new());
        perform(&mut run, &ops, Permits::perform)?;
    }
}
