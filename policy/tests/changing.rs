//! I13 and I9 through the policy: overrides, defaults, `when`, a call's `max` and the clock change
//! at random, and a key's bucket stays within the bounds of `core/tests/reference/exact.rs`.
//!
//! `TIDEGATE_CASES` is the number of sequences of both suites, 10,000 unless said.

#[path = "../../core/tests/reference/exact.rs"]
mod exact;

use std::time::Duration;

use exact::{MILLI, Verdict};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};
use tidegate::bindings::limit_patches;
use tidegate::{Call, Limiter, ManualClock, Rule, Target};
use tidegate_core::{Limit, Limits};

type Checked = Result<(), TestCaseError>;

const KEY: &str = "somebody";
const PERS_MS: [u64; 4] = [1_000, 10_000, 60_000, 86_400_000];

fn config() -> ProptestConfig {
    let failure_persistence =
        Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    let all = std::env::var("TIDEGATE_CASES").ok().and_then(|text| text.parse().ok());
    let cases = (all.unwrap_or(10_000u32) / 20).max(1);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

/// Which `max` and which `per` of the case: one set of numbers.
type Numbers = (usize, usize);

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Parts of 8 of the size, as a caller that `when` matches or not, with a `max` of its own or
    /// not.
    Hit(u64, bool, Option<usize>),
    Record(u64, bool),
    Refund(u64, bool),
    Override(Option<Numbers>),
    Default(Numbers),
    Reset,
    Pass(u64),
    Back(u64),
}

fn numbers() -> impl Strategy<Value = Numbers> {
    (0usize..3, 0usize..PERS_MS.len())
}

fn op() -> impl Strategy<Value = Op> {
    let step = || {
        prop_oneof![
            0u64..=3,
            0u64..=5_000,
            0u64..=200_000,
            (0u64..=60).prop_map(|d| d * 86_400_000)
        ]
    };
    prop_oneof![
        10 => (0u64..=8, any::<bool>(), prop::option::of(0usize..3))
            .prop_map(|(parts, matched, max)| Op::Hit(parts, matched, max)),
        2 => (0u64..=8, any::<bool>()).prop_map(|(parts, matched)| Op::Record(parts, matched)),
        2 => (0u64..=8, any::<bool>()).prop_map(|(parts, matched)| Op::Refund(parts, matched)),
        4 => prop::option::of(numbers()).prop_map(Op::Override),
        2 => numbers().prop_map(Op::Default),
        1 => Just(Op::Reset),
        8 => step().prop_map(Op::Pass),
        2 => step().prop_map(Op::Back),
    ]
}

fn max() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 1u64..=10, 3 => 1u64..=10_000, 1 => 1u64..=100_000]
}

struct Run {
    limiter: Limiter,
    clock: ManualClock,
    maxes: [u64; 3],
    exact: exact::Bucket,
    own: Numbers,
    when: Numbers,
    default: Option<Numbers>,
    key: Option<Numbers>,
}

impl Run {
    fn new(maxes: [u64; 3], own: Numbers, when: Numbers, start: u64) -> Run {
        let limit = |&max: &u64, &per: &u64| Limit::bucket(max, Duration::from_millis(per));
        let limits: Vec<Limit> =
            maxes.iter().flat_map(|max| PERS_MS.iter().map(move |per| limit(max, per))).collect();
        let tick = |limit: &Limit| Limits::new(&[*limit]).unwrap().tick_length(0);
        let ticks: Vec<u64> = limits.iter().map(tick).collect();
        let field = |numbers| fields(&maxes, numbers);
        let entry = json!({"match": {"t": "x"}, "limits": {"l": field(when)}});
        let rule = json!({"limits": {"l": field(own)}, "when": [entry]});
        let policy = json!({"version": 1, "rules": {"default": rule}});
        let clock = ManualClock::new(Duration::from_millis(start), Duration::ZERO);
        let options = Limiter::builder().clock(clock.clock());
        let limiter = options.value(&policy).build().unwrap();
        let exact = exact::Bucket::new(&limits, &ticks, start * MILLI);
        Run { limiter, clock, maxes, exact, own, when, default: None, key: None }
    }

    fn rule(&self) -> Rule {
        self.limiter.rule("default").unwrap()
    }

    /// What a call is judged by: its `max`, the key's override, `when`, the default, the rule.
    fn numbers(&self, matched: bool, max: Option<usize>) -> Numbers {
        let when = matched.then_some(self.when);
        let (of_layer, per) = self.key.or(when).or(self.default).unwrap_or(self.own);
        (max.unwrap_or(of_layer), per)
    }

    fn set(&self, (max, per): Numbers) -> usize {
        max * PERS_MS.len() + per
    }

    fn call<'a>(&self, matched: bool, max: Option<usize>) -> Call<'a> {
        let attributes: &'static [(&str, &str)] = if matched { &[("t", "x")] } else { &[] };
        let call = Call::of(KEY).with(attributes);
        max.map_or(call, |max| call.max(self.maxes[max]))
    }

    fn cost(&self, parts: u64, numbers: Numbers) -> u64 {
        (self.maxes[numbers.0] * parts).div_ceil(8).max(1)
    }

    fn hit(&mut self, parts: u64, matched: bool, max: Option<usize>) -> Checked {
        let numbers = self.numbers(matched, max);
        let (set, cost) = (self.set(numbers), self.cost(parts, numbers));
        let (verdict, law) = (self.exact.verdict(set, cost), self.exact.law(set));
        let there =
            format!("{:?} tokens by {:?}", self.exact.tokens(set), fields(&self.maxes, numbers));
        let decision = self.rule().hit(self.call(matched, max), cost).unwrap();
        if decision.allowed {
            prop_assert_ne!(verdict, Verdict::Refuses, "{}: {} granted, {}", law, cost, there);
            self.exact.charge(set, cost);
        } else {
            prop_assert_ne!(verdict, Verdict::Grants, "{}: {} denied, {}", law, cost, there);
            self.exact.deny(set);
        }
        Ok(())
    }

    fn patches(&self, numbers: Numbers) -> Vec<(String, tidegate::LimitPatch)> {
        limit_patches(&json!({"l": fields(&self.maxes, numbers)}), &["l".to_string()]).unwrap()
    }

    fn perform(&mut self, op: Op) -> Checked {
        match op {
            Op::Hit(parts, matched, max) => self.hit(parts, matched, max)?,
            Op::Record(parts, matched) => {
                let numbers = self.numbers(matched, None);
                let cost = self.cost(parts, numbers);
                self.rule().record(self.call(matched, None), cost).unwrap();
                self.exact.record(self.set(numbers), cost);
            }
            Op::Refund(parts, matched) if !self.exact.is_vague() => {
                let numbers = self.numbers(matched, None);
                let cost = self.cost(parts, numbers);
                self.rule().refund(self.call(matched, None), cost).unwrap();
                self.exact.refund(self.set(numbers), cost);
            }
            Op::Refund(..) => {}
            Op::Override(numbers) => {
                match numbers {
                    Some(numbers) => {
                        let patches = self.patches(numbers);
                        self.rule().set_override(Target::key(KEY), patches).unwrap();
                    }
                    None => drop(self.rule().clear_override(Target::key(KEY))),
                }
                self.key = numbers;
            }
            Op::Default(numbers) => {
                self.rule().set_default(self.patches(numbers)).unwrap();
                self.default = Some(numbers);
            }
            Op::Reset => {
                self.rule().reset(self.call(false, None)).unwrap();
                self.exact.reset();
            }
            Op::Pass(millis) => {
                let most = self.exact.furthest() / MILLI;
                self.exact.go_on(millis.min(most) * MILLI);
            }
            Op::Back(millis) => {
                let most = self.exact.furthest_back() / MILLI;
                self.exact.go_back(millis.min(most) * MILLI);
            }
        }
        self.clock.set(Duration::from_nanos(self.exact.now));
        self.look()
    }

    /// What a look finds as either caller, with each `max` and without.
    fn look(&self) -> Checked {
        for matched in [false, true] {
            for max in [None, Some(0), Some(1), Some(2)] {
                let numbers = self.numbers(matched, max);
                let set = self.set(numbers);
                let found = self.rule().peek(self.call(matched, max), 0).unwrap().remaining;
                let (least, most) = self.exact.tokens(set);
                let within = found.is_some_and(|found| (least..=most).contains(&found));
                let by = fields(&self.maxes, numbers);
                let law = self.exact.law(set);
                prop_assert!(within, "{law}: {found:?} tokens, not {least} to {most} by {by}");
            }
        }
        Ok(())
    }
}

fn fields(maxes: &[u64; 3], (max, per): Numbers) -> Value {
    json!({"max": maxes[max], "per": format!("{}ms", PERS_MS[per])})
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changes_at_run_time_grant_nothing_and_deny_no_longer_than_a_refill(
        maxes in [max(), max(), max()], own in numbers(), when in numbers(),
        start in 0u64..1 << 40, ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut run = Run::new(maxes, own, when, start);
        for (i, op) in ops.into_iter().enumerate() {
            let named = |e| TestCaseError::fail(format!("operation {i}, {op:?}: {e}"));
            run.perform(op).map_err(named)?;
        }
    }
}
