//! Laws of the policy layer, for random rules and random sequences of what can be done with them.
//!
//! * **One answer**: every field of every answer is that of `reference`, a simple reading of the
//!   contract. The answers are those of hit, check, peek, record, spend, budget, is_limited and
//!   stats. The contract is the order of judgement, cooldown, backoff, alert, notify, warn_at,
//!   budget, scopes, `when`, overrides, defaults and exemptions.
//! * **I4 denial is free**: a denial under a rule without penalties changes nothing that `stats` or
//!   `peek` can see, of any key.
//! * **I5 exact wait**: a denied hit passes at now + retry_after where no advice lengthens it, and
//!   a millisecond before it does not.
//! * **Peek is what a hit gets**, but for `alert` and `notify`, and changes nothing.
//! * **Stats is none exactly when the key is as new**: then, and only then, a reset changes nothing
//!   that can be seen.
//! * **I6 refund**: a hit and its refund leave a rule as it was.

mod reference;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use reference::{Changed, DAY, Kind, Op, PARTS, Patch, Reference};
use tidegate::{
    AlertAt, Backoff, BudgetConfig, Call, ChangeOptions, Decision, Limit, LimitPatch, LimitPatches,
    Limiter, ManualClock, Match, Mode, Notify, RuleConfig, Stats, Target, When,
};

type Checked = Result<(), TestCaseError>;

/// 2024-01-15 22:00:00 UTC.
const WALL: u64 = 1_705_356_000_000;
const CHANNELS: [&str; 2] = ["discord", "irc"];
const SENDERS: [&str; 3] = ["alice", "bob", "carol"];
const ROLES: [&str; 2] = ["staff", "guest"];
/// Room for all that a sequence may log.
const ROOM: u64 = 200;

fn config(cases: u32) -> ProptestConfig {
    let failure_persistence =
        Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    ProptestConfig { cases, failure_persistence, max_shrink_iters: 5_000, ..Default::default() }
}

// ---- What is generated ----

fn maybe<S: Strategy>(strategy: S) -> impl Strategy<Value = Option<S::Value>>
where
    S::Value: Clone,
{
    prop_oneof![2 => Just(None), 1 => strategy.prop_map(Some)]
}

fn scope() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![3 => Just(vec![0, 1]), 1 => Just(vec![1]), 1 => Just(vec![0]), 1 => Just(vec![])]
}

fn short() -> impl Strategy<Value = u64> {
    prop_oneof![prop::sample::select(vec![1, 50, 100, 250, 1000]), 1u64..2000]
}

fn limit() -> impl Strategy<Value = reference::Limit> {
    let kind = prop::sample::select(vec![Kind::Bucket, Kind::Window, Kind::Fixed]);
    let token = prop::sample::select(vec![1u64, 10, 100, 250]);
    (kind, 1u64..=6, short(), token, maybe(1u64..=8), maybe(0u64..1500), scope()).prop_map(
        |(kind, max, per, token, burst, cooldown, scope)| {
            let per = if kind == Kind::Bucket { max * token } else { per };
            let burst = burst.filter(|_| kind == Kind::Bucket);
            reference::Limit { name: String::new(), kind, max, per, burst, cooldown, scope, token }
        },
    )
}

/// Numbers for a change; what they come to depends on the limit.
type Change = (usize, u64, u64, Option<u64>, Option<u64>);

fn change() -> impl Strategy<Value = Change> {
    (0usize..3, 0u64..=8, short(), maybe(1u64..=8), maybe(0u64..1500))
}

/// A change that a rule has room for, and by which a bucket's tokens take as long as before.
fn patch(limits: &[reference::Limit], roomy: bool, change: Change) -> Patch {
    let (limit, max, per, burst, cooldown) = change;
    let limit = limit % limits.len();
    let of = &limits[limit];
    let (max, per, burst) = match of.kind {
        Kind::Bucket => {
            (Some(max), Some(max * of.token).filter(|per| *per > 0), burst.filter(|_| max > 0))
        }
        Kind::Window if !roomy => (Some(max.min(of.max)), None, None),
        Kind::Window | Kind::Fixed => (Some(max), (per % 2 == 0).then_some(per), None),
    };
    Patch { limit, max, per, burst, cooldown }
}

fn matches() -> impl Strategy<Value = reference::Match> {
    let channel = maybe(prop::sample::select(&CHANNELS[..]));
    let sender = maybe(prop::sample::select(&SENDERS[..]));
    let role = prop::option::of(prop::sample::select(&ROLES[..]));
    (channel, sender, role).prop_map(|(channel, sender, role)| {
        let fields = [("channel", channel), ("sender", sender), ("role", role)];
        let stated = |(field, value): (&str, Option<&str>)| Some((field.into(), value?.into()));
        fields.into_iter().filter_map(stated).collect()
    })
}

fn notify() -> impl Strategy<Value = reference::Notify> {
    use reference::Notify::{Always, Once, Silent};
    prop_oneof![1 => Just(Silent), 3 => Just(Once), 2 => Just(Always)]
}

fn backoff() -> impl Strategy<Value = reference::Backoff> {
    let round = maybe(prop::sample::select(vec![7u64, 100, 1000]));
    (prop::collection::vec(short(), 1..=3), short(), round, any::<bool>()).prop_map(
        |(steps, quiet, round, enforce)| reference::Backoff {
            steps,
            quiet: 2 * quiet,
            round,
            enforce,
        },
    )
}

fn budget() -> impl Strategy<Value = reference::Budget> {
    let hour = prop::sample::select(vec![0u64, 6, 23]);
    (1u64..30, maybe(1u64..10), hour).prop_map(|(daily, per_hit, reset_hour)| reference::Budget {
        daily,
        per_hit,
        reset_hour,
    })
}

/// A rule, and whether its windows have room for whatever comes.
#[derive(Clone, Debug)]
struct Plan {
    rule: reference::Rule,
    roomy: bool,
}

fn mode() -> impl Strategy<Value = reference::Mode> {
    use reference::Mode::{Enforce, Off, Shadow};
    prop_oneof![12 => Just(Enforce), 3 => Just(Shadow), 1 => Just(Off)]
}

fn terms(penalties: bool) -> impl Strategy<Value = reference::Terms> {
    let limits = prop::collection::vec(limit(), 1..=3);
    let warn_at = maybe(prop::sample::select(vec![0u64, 25, 50, 80, 90, 100]));
    let alert = maybe((1u64..=4, 1u64..4000));
    (limits, warn_at, maybe(0u64..1500), maybe(backoff()), alert, notify(), mode()).prop_map(
        move |(mut limits, warn_at, cooldown, backoff, alert, notify, mode)| {
            for (index, limit) in limits.iter_mut().enumerate() {
                limit.name = format!("limit-{index}");
                limit.cooldown = limit.cooldown.filter(|_| penalties);
            }
            reference::Terms {
                limits,
                warn_at,
                cooldown: cooldown.filter(|_| penalties),
                backoff: backoff.filter(|_| penalties),
                alert: alert.filter(|_| penalties),
                notify: if penalties { notify } else { reference::Notify::Always },
                mode,
            }
        },
    )
}

fn plan(penalties: bool) -> impl Strategy<Value = Plan> {
    let when = (matches(), prop::collection::vec(change(), 0..3), maybe(0u64..1500)).prop_flat_map(
        |(matches, changes, cooldown)| {
            (Just(matches), Just(changes), Just(cooldown), maybe(notify()), maybe(mode()))
        },
    );
    let whens = prop::collection::vec(when, 0..3);
    let exempt = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(matches(), 1..2)];
    (terms(penalties), scope(), maybe(budget()), whens, exempt, any::<bool>()).prop_map(
        move |(terms, penalty_scope, budget, whens, exempt, roomy)| {
            let quiet = |mut patch: Patch| {
                patch.cooldown = patch.cooldown.filter(|_| penalties);
                patch
            };
            let when = whens.into_iter().map(|(matches, changes, cooldown, notify, mode)| {
                let patches = changes.into_iter().map(|c| quiet(patch(&terms.limits, roomy, c)));
                let (cooldown, notify) =
                    (cooldown.filter(|_| penalties), notify.filter(|_| penalties));
                reference::When { patches: patches.collect(), matches, cooldown, notify, mode }
            });
            let when = when.collect();
            let exempt = exempt.into_iter().filter(|matches| !matches.is_empty()).collect();
            Plan { rule: reference::Rule { terms, penalty_scope, budget, when, exempt }, roomy }
        },
    )
}

/// Who calls: channel, sender, role.
type Who = (usize, usize, Option<usize>);

#[derive(Clone, Debug)]
enum Act {
    Judge(Who, Op, u64, Option<u64>),
    Record(Who, u64),
    Refund(Who, u64),
    Spend(Who, u64),
    Reset(Who),
    Step(u64),
    OverrideKey(Who, Vec<Change>),
    ClearKey(Who),
    OverrideMatch(reference::Match, Vec<Change>),
    ClearMatch(usize),
    Default(Vec<Change>),
    AddExempt(reference::Match),
    RemoveExempt(usize),
    Mode(Option<reference::Mode>),
    Block(Who),
    Unblock(Who),
    /// For how long the changes from here on are made.
    Lasting(Option<u64>),
}

fn who() -> impl Strategy<Value = Who> {
    // Most calls are one key's, or little would ever be spent.
    let sender = prop_oneof![6 => Just(0usize), 2 => Just(1), 1 => Just(2)];
    let channel = prop_oneof![4 => Just(0usize), 1 => Just(1)];
    (channel, sender, prop_oneof![3 => Just(None), 1 => (0usize..2).prop_map(Some)])
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![12 => Just(1u64), 1 => Just(0), 4 => 2u64..=4, 1 => 5u64..=9]
}

fn step() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0u64),
        4 => 1u64..=20,
        6 => prop::sample::select(vec![10u64, 50, 100, 250, 1000]),
        4 => 1u64..=3000,
        1 => prop::sample::select(vec![3_600_000u64, DAY]),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let changes = || prop::collection::vec(change(), 0..=2);
    let op = prop_oneof![6 => Just(Op::Hit), 2 => Just(Op::Check), 1 => Just(Op::Peek)];
    let max = prop_oneof![12 => Just(None), 1 => (0u64..=6).prop_map(Some)];
    prop_oneof![
        40 => (who(), op, cost(), max)
            .prop_map(|(who, op, cost, max)| Act::Judge(who, op, cost, max)),
        3 => (who(), cost()).prop_map(|(who, cost)| Act::Record(who, cost)),
        4 => (who(), cost()).prop_map(|(who, cost)| Act::Refund(who, cost)),
        4 => (who(), 0u64..12).prop_map(|(who, amount)| Act::Spend(who, amount)),
        2 => who().prop_map(Act::Reset),
        22 => step().prop_map(Act::Step),
        2 => (who(), changes()).prop_map(|(who, changes)| Act::OverrideKey(who, changes)),
        1 => who().prop_map(Act::ClearKey),
        2 => (matches(), changes()).prop_map(|(m, changes)| Act::OverrideMatch(m, changes)),
        1 => (0usize..3).prop_map(Act::ClearMatch),
        1 => changes().prop_map(Act::Default),
        1 => matches().prop_map(Act::AddExempt),
        2 => (0usize..3).prop_map(Act::RemoveExempt),
        1 => maybe(mode()).prop_map(Act::Mode),
        2 => who().prop_map(Act::Block),
        1 => who().prop_map(Act::Unblock),
        2 => prop_oneof![Just(None), (1u64..=3000).prop_map(Some)].prop_map(Act::Lasting),
    ]
}

// ---- The rule at work, beside its reference ----

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn stated_match(matches: &reference::Match) -> Match {
    Match::new(matches.iter().cloned())
}

fn stated_patches(limits: &[reference::Limit], patches: &[Patch]) -> LimitPatches {
    let stated = |patch: &Patch| {
        let changed = patch.max.map_or_else(LimitPatch::default, LimitPatch::max);
        let changed = changed.per(patch.per.map(ms)).burst(patch.burst);
        let changed = changed.cooldown(patch.cooldown.map(ms));
        (limits[patch.limit].name.clone(), changed)
    };
    patches.iter().map(stated).collect()
}

fn names(scope: &[usize]) -> Vec<String> {
    scope.iter().map(|&part| PARTS[part].to_string()).collect()
}

fn stated_notify(notify: reference::Notify) -> Notify {
    match notify {
        reference::Notify::Silent => Notify::Silent,
        reference::Notify::Once => Notify::Once,
        reference::Notify::Always => Notify::Always,
    }
}

fn stated_mode(mode: reference::Mode) -> Mode {
    match mode {
        reference::Mode::Enforce => Mode::Enforce,
        reference::Mode::Shadow => Mode::Shadow,
        reference::Mode::Off => Mode::Off,
    }
}

fn stated_limit(limit: &reference::Limit) -> Limit {
    let stated = match limit.kind {
        Kind::Bucket => Limit::bucket(limit.max, ms(limit.per)),
        Kind::Window => Limit::window(limit.max, ms(limit.per)),
        Kind::Fixed => Limit::fixed(limit.max, ms(limit.per)),
    };
    let stated = stated.named(&limit.name).scope(names(&limit.scope));
    let stated = limit.burst.map_or(stated.clone(), |burst| stated.burst(burst));
    limit.cooldown.map_or(stated.clone(), |cooldown| stated.cooldown(ms(cooldown)))
}

fn stated_rule(plan: &Plan) -> RuleConfig {
    let (rule, terms) = (&plan.rule, &plan.rule.terms);
    let when = |when: &reference::When| {
        let mut stated = When::new(stated_match(&when.matches));
        stated.limits = stated_patches(&terms.limits, &when.patches);
        stated.cooldown = when.cooldown.map(ms);
        stated.notify = when.notify.map(stated_notify);
        stated.mode = when.mode.map(stated_mode);
        stated
    };
    let backoff = |backoff: &reference::Backoff| {
        let steps = backoff.steps.iter().map(|step| ms(*step));
        let mut stated = Backoff::new(steps, ms(backoff.quiet));
        stated.round = backoff.round.map(ms);
        stated.enforce = backoff.enforce;
        stated
    };
    let budget = |budget: &reference::Budget| {
        let stated = BudgetConfig::new(budget.daily).reset_hour_utc(budget.reset_hour as u8);
        budget.per_hit.map_or(stated.clone(), |most| stated.per_hit(most))
    };
    let mut stated = RuleConfig::default();
    stated.key = names(&[0, 1]);
    stated.limits = terms.limits.iter().map(stated_limit).collect();
    stated.warn_at = terms.warn_at.map(|at| at as f64 / 100.0);
    stated.cooldown = terms.cooldown.map(ms);
    stated.backoff = terms.backoff.as_ref().map(backoff);
    stated.alert = terms.alert.map(|(violations, within)| AlertAt::new(violations, ms(within)));
    stated.notify = stated_notify(terms.notify);
    stated.penalty_scope = Some(names(&rule.penalty_scope));
    stated.budget = rule.budget.as_ref().map(budget);
    stated.when = rule.when.iter().map(when).collect();
    stated.exempt = rule.exempt.iter().map(stated_match).collect();
    stated.mode = stated_mode(terms.mode);
    stated.attach = Some("attached".into());
    stated.ceiling = plan.roomy.then_some(ROOM);
    stated.capacity = Some(64);
    stated
}

/// A limiter, its clock, and what both should do.
struct Pair {
    plan: Plan,
    limiter: Limiter,
    clock: ManualClock,
    reference: Reference,
    /// For how long changes are made.
    lasting: Option<u64>,
}

fn call_of(who: Who, max: Option<u64>) -> reference::Call {
    let role = who.2.map(|role| ROLES[role].to_string());
    reference::Call { key: [CHANNELS[who.0].into(), SENDERS[who.1].into()], role, max }
}

/// Does something with a call as the crate takes it.
fn with_call<R>(call: &reference::Call, act: impl FnOnce(Call<'_>) -> R) -> R {
    let parts = [call.key[0].as_str(), call.key[1].as_str()];
    let attributes: Vec<(&str, &str)> = call.role.iter().map(|r| ("role", r.as_str())).collect();
    let stated = Call::of(parts).with(&attributes);
    act(call.max.map_or(stated, |max| stated.max(max)))
}

fn whole(duration: Duration) -> u64 {
    assert_eq!(duration.subsec_nanos() % 1_000_000, 0, "rounded up to whole milliseconds");
    duration.as_millis() as u64
}

/// A decision as the reference puts it.
fn answer_of(decision: &Decision) -> reference::Answer {
    reference::Answer {
        allowed: decision.allowed,
        reason: decision.reason().map(str::to_string),
        would: decision.would_deny().map(str::to_string),
        limit: decision.limit,
        remaining: decision.remaining,
        retry: decision.retry_after.map(whole),
        reset: Some(whole(decision.reset_after)),
        warning: decision.warning,
        alert: decision.alert,
        notify: decision.notify,
    }
}

fn spending_of(budget: &tidegate::Budget) -> reference::Spending {
    reference::Spending {
        spent: budget.spent,
        remaining: budget.remaining,
        over: budget.over,
        over_per_hit: budget.over_per_hit,
        reset: whole(budget.reset_after),
    }
}

fn stats_of(stats: &Stats) -> reference::Stats {
    reference::Stats {
        limits: stats
            .limits
            .iter()
            .map(|limit| (limit.used, limit.max, limit.remaining, whole(limit.reset_after)))
            .collect(),
        cooldown_left: whole(stats.cooldown_left),
        violations: stats.violations,
        last_allowed: stats.last_allowed.map(whole),
        budget: stats.budget.as_ref().map(spending_of),
        blocked: stats.blocked.as_ref().map(|blocked| blocked.until.map(whole)),
    }
}

fn everybody() -> impl Iterator<Item = reference::Call> {
    let roles = [None, Some(0), Some(1)];
    (0..CHANNELS.len() * SENDERS.len() * roles.len())
        .map(move |i| call_of((i % 2, i / 2 % 3, roles[i / 6]), None))
}

/// All that can be seen of a rule's state.
fn seen(limiter: &Limiter) -> Vec<(Option<Stats>, Decision, Decision)> {
    let see = |call: reference::Call| {
        with_call(&call, |call| {
            (
                limiter.stats(call).unwrap(),
                limiter.peek(call, 0).unwrap(),
                limiter.peek(call, 1).unwrap(),
            )
        })
    };
    everybody().map(see).collect()
}

impl Pair {
    fn new(plan: &Plan) -> Pair {
        let clock = ManualClock::new(ms(5), ms(WALL));
        let options = Limiter::builder().clock(clock.clock());
        Pair {
            limiter: options.rule(stated_rule(plan)).build().unwrap(),
            reference: Reference::new(plan.rule.clone(), 5, WALL),
            clock,
            plan: plan.clone(),
            lasting: None,
        }
    }

    fn patches(&self, changes: &[Change]) -> (Vec<Patch>, LimitPatches) {
        let limits = &self.plan.rule.terms.limits;
        let to_patch = |change: &Change| patch(limits, self.plan.roomy, *change);
        let patches: Vec<Patch> = changes.iter().map(to_patch).collect();
        let stated = stated_patches(limits, &patches);
        (patches, stated)
    }

    fn step(&mut self, step: u64) {
        self.clock.advance(ms(step));
        self.reference.step(step);
    }

    fn judge(&mut self, call: &reference::Call, op: Op, cost: u64) -> Result<Decision, String> {
        let decided = with_call(call, |call| match op {
            Op::Hit => self.limiter.hit(call, cost),
            Op::Check => self.limiter.check(call, cost),
            Op::Peek => self.limiter.peek(call, cost),
        });
        decided.map_err(|error| error.to_string())
    }

    fn check_judged(&mut self, call: &reference::Call, op: Op, cost: u64) -> Checked {
        let foreseen = self.judge(call, Op::Peek, cost).map_err(TestCaseError::fail)?;
        let decision = self.judge(call, op, cost).map_err(TestCaseError::fail)?;
        let due_foreseen = self.reference.judge(call, cost, Op::Peek);
        let due = self.reference.judge(call, cost, op);
        let told = |decision: &Decision, due: &reference::Answer| {
            let answer = answer_of(decision);
            reference::Answer { reset: answer.reset.filter(|_| due.reset.is_some()), ..answer }
        };
        prop_assert_eq!(told(&decision, &due), due.clone(), "{:?} {:?} of {}", call, op, cost);
        prop_assert_eq!(decision.attach().is_some(), !due.allowed);
        let got_foreseen = told(&foreseen, &due_foreseen);
        prop_assert_eq!(got_foreseen, due_foreseen, "{:?}, before a {:?} of {}", call, op, cost);
        Ok(())
    }

    /// Everything that can be asked about a call without changing anything.
    fn check_seen(&mut self, call: &reference::Call) -> Checked {
        let reference = &self.reference;
        with_call(call, |stated| -> Checked {
            let limiter = &self.limiter;
            let peeked = limiter.peek(stated, 1).unwrap();
            let limited = limiter.is_limited(stated).unwrap();
            prop_assert_eq!(limited, reference.is_limited(call), "{:?}: {:?}", call, peeked);
            if !reference.is_suspended(call) {
                let stats = limiter.stats(stated).unwrap();
                prop_assert_eq!(stats.as_ref().map(stats_of), reference.stats(call));
            }
            if reference.rule.budget.is_some() {
                let budget = limiter.budget(stated).unwrap();
                prop_assert_eq!(spending_of(&budget), reference.spending(call, 0));
            }
            Ok(())
        })
    }

    fn act(&mut self, act: &Act) -> Checked {
        match act {
            Act::Judge(who, op, cost, max) => {
                let max = max.filter(|_| self.takes_max());
                let max = max.map(|max| if self.plan.roomy { max } else { max.min(self.most()) });
                let call = call_of(*who, max);
                self.check_judged(&call, *op, *cost)?;
                self.check_seen(&call_of(*who, None))?;
            }
            Act::Record(who, cost) => self.record(&call_of(*who, None), *cost)?,
            Act::Refund(who, cost) => {
                let call = call_of(*who, None);
                if !self.reference.is_suspended(&call) {
                    with_call(&call, |call| self.limiter.refund(call, *cost)).unwrap();
                    self.reference.refund(&call, *cost);
                }
            }
            Act::Spend(who, amount) => {
                let call = call_of(*who, None);
                if self.reference.rule.budget.is_some() {
                    let got = with_call(&call, |call| self.limiter.spend(call, *amount)).unwrap();
                    prop_assert_eq!(spending_of(&got), self.reference.spend(&call, *amount));
                }
            }
            Act::Reset(who) => {
                let call = call_of(*who, None);
                with_call(&call, |call| self.limiter.reset(call)).unwrap();
                self.reference.reset(&call);
            }
            Act::Step(step) => self.step(*step),
            change => self.change(change)?,
        }
        Ok(())
    }

    /// A bucket's `max` alone would change what a token takes; and only one limit has one.
    fn takes_max(&self) -> bool {
        let limits = &self.plan.rule.terms.limits;
        limits.len() == 1 && limits[0].kind != Kind::Bucket
    }

    fn most(&self) -> u64 {
        self.plan.rule.terms.limits[0].max
    }

    /// A log that is full of what was recorded forgets its oldest entries, so it needs room.
    fn record(&mut self, call: &reference::Call, cost: u64) -> Checked {
        let windows = self.plan.rule.terms.limits.iter().any(|l| l.kind == Kind::Window);
        if (windows && !self.plan.roomy) || self.reference.is_suspended(call) {
            return Ok(());
        }
        let got = with_call(call, |call| self.limiter.record(call, cost)).unwrap();
        let got = (got.used, got.limit, got.remaining, whole(got.reset_after));
        prop_assert_eq!(got, self.reference.record(call, cost));
        Ok(())
    }

    fn change(&mut self, act: &Act) -> Checked {
        let key = |call: &reference::Call| Target::key([call.key[0].as_str(), &call.key[1]]);
        let options = ChangeOptions::default().for_(self.lasting.map(ms));
        let (limiter, lasting) = (self.limiter.clone(), self.lasting);
        let changing = limiter.changing(options.clone()).unwrap();
        match act {
            Act::Lasting(time) => self.lasting = *time,
            Act::OverrideKey(who, changes) => {
                let (call, (patches, stated)) = (call_of(*who, None), self.patches(changes));
                changing.set_override(key(&call), stated).unwrap();
                self.reference.by_key.retain(|(other, _)| *other != call.key);
                self.reference.by_key.push((call.key.clone(), patches));
                self.reference.lasts(Changed::Key(call.key), lasting);
            }
            Act::ClearKey(who) => {
                let call = call_of(*who, None);
                let before = self.reference.by_key.len();
                self.reference.by_key.retain(|(other, _)| *other != call.key);
                let cleared = self.reference.by_key.len() < before;
                prop_assert_eq!(limiter.clear_override(key(&call)).unwrap() > 0, cleared);
                self.reference.lasts(Changed::Key(call.key), None);
            }
            Act::OverrideMatch(matches, changes) => {
                let (patches, stated) = self.patches(changes);
                changing.set_override(stated_match(matches), stated).unwrap();
                self.reference.by_match.retain(|(other, _)| other != matches);
                self.reference.by_match.push((matches.clone(), patches));
                self.reference.lasts(Changed::Match(matches.clone()), lasting);
            }
            Act::ClearMatch(index) if *index < self.reference.by_match.len() => {
                let (matches, _) = self.reference.by_match.remove(*index);
                prop_assert!(limiter.clear_override(stated_match(&matches)).unwrap() > 0);
                self.reference.lasts(Changed::Match(matches), None);
            }
            Act::Default(changes) => {
                let (patches, stated) = self.patches(changes);
                changing.set_default(stated).unwrap();
                self.reference.default = patches;
                self.reference.lasts(Changed::Default, lasting);
            }
            // An exemption from everything would leave nothing to look at.
            Act::AddExempt(matches) if !matches.is_empty() => {
                changing.add_exempt(stated_match(matches)).unwrap();
                let reference = &mut self.reference;
                reference.added.retain(|other| other != matches);
                if reference.rule.exempt.contains(matches) && !reference.exempts.contains(matches) {
                    reference.exempts.push(matches.clone());
                }
                reference.added.push(matches.clone());
                reference.lasts(Changed::Exempt(matches.clone()), lasting);
            }
            Act::RemoveExempt(index) => {
                let reference = &mut self.reference;
                let all = reference.exempts.iter().chain(&reference.added);
                if let Some(matches) = all.clone().nth(*index).cloned() {
                    reference.exempts.retain(|other| *other != matches);
                    reference.added.retain(|other| *other != matches);
                    prop_assert!(limiter.remove_exempt(&stated_match(&matches)).unwrap() > 0);
                    reference.lasts(Changed::Exempt(matches), None);
                }
            }
            Act::Mode(Some(mode)) => {
                changing.set_mode(stated_mode(*mode)).unwrap();
                self.reference.mode = Some(*mode);
                self.reference.lasts(Changed::Mode, lasting);
            }
            Act::Mode(None) => {
                let cleared = limiter.clear_mode().unwrap() > 0;
                prop_assert_eq!(cleared, self.reference.mode.take().is_some());
                self.reference.lasts(Changed::Mode, None);
            }
            Act::Block(who) => {
                let call = call_of(*who, None);
                with_call(&call, |call| limiter.block(call, &options)).unwrap();
                self.reference.blocks.retain(|other| *other != call.key);
                self.reference.blocks.push(call.key.clone());
                self.reference.lasts(Changed::Block(call.key), lasting);
            }
            Act::Unblock(who) => {
                let call = call_of(*who, None);
                let was = self.reference.blocks.contains(&call.key);
                prop_assert_eq!(with_call(&call, |call| limiter.unblock(call)).unwrap(), was);
                self.reference.blocks.retain(|other| *other != call.key);
                self.reference.lasts(Changed::Block(call.key), None);
            }
            _ => {}
        }
        Ok(())
    }
}

fn acts(len: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), len)
}

proptest! {
    #![proptest_config(config(5_000))]

    #[test]
    fn every_answer_is_the_references(plan in plan(true), acts in acts(60..=100)) {
        let mut pair = Pair::new(&plan);
        for (at, act) in acts.iter().enumerate() {
            let at = |error| TestCaseError::fail(format!("act {at}, {act:?}: {error}"));
            pair.act(act).map_err(at)?;
        }
        for call in everybody() {
            pair.check_seen(&call)?;
        }
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn i4_a_denial_without_penalties_changes_nothing(
        plan in plan(false),
        acts in acts(20..=40),
        costs in prop::collection::vec((who(), cost(), any::<bool>()), 8),
    ) {
        let mut pair = Pair::new(&plan);
        for act in &acts {
            // Changes may bring a cooldown, which is a penalty.
            if !matches!(act, Act::OverrideKey(..) | Act::OverrideMatch(..) | Act::Default(_)) {
                pair.act(act)?;
            }
        }
        for (who, cost, check) in costs {
            let before = seen(&pair.limiter);
            let op = if check { Op::Check } else { Op::Hit };
            let decision = pair.judge(&call_of(who, None), op, cost).unwrap();
            if !decision.allowed || decision.would_deny().is_some() {
                prop_assert_eq!(seen(&pair.limiter), before, "{:?} changed something", decision);
            }
        }
    }

    #[test]
    fn i5_a_hit_passes_when_told_and_not_before(
        plan in plan(true),
        acts in acts(20..=60),
        who in who(),
        cost in cost(),
    ) {
        let mut pair = Pair::new(&plan);
        for act in &acts {
            pair.act(act)?;
        }
        let call = call_of(who, None);
        let denied = pair.judge(&call, Op::Hit, cost).unwrap();
        // Advice, and what is rounded up, is longer than need be.
        let advised = plan.rule.terms.backoff.is_some();
        let wait = denied.retry_after.map(whole);
        let wait = wait.filter(|wait| !pair.reference.changes_within(*wait));
        if let (false, Some(wait)) = (denied.allowed, wait) {
            pair.step(wait - 1);
            let early = pair.judge(&call, Op::Peek, cost).unwrap();
            prop_assert!(advised || !early.allowed, "{:?} passed too early", denied);
            pair.step(1);
            let then = pair.judge(&call, Op::Hit, cost).unwrap();
            let due = pair.reference.terms(&call).mode == reference::Mode::Enforce;
            let passes = !due || then.allowed || over_budget(&then);
            prop_assert!(passes, "{:?} then {:?}", denied, then);
        }
    }

    #[test]
    fn stats_is_none_exactly_when_a_reset_changes_nothing(
        plan in plan(true),
        acts in acts(20..=60),
        wait in step(),
        who in who(),
    ) {
        let mut plan = plan;
        // Only what is the key's own is forgotten by a reset.
        plan.rule.penalty_scope = vec![0, 1];
        plan.rule.terms.limits.iter_mut().for_each(|limit| limit.scope = vec![0, 1]);
        let (mut pair, mut fresh) = (Pair::new(&plan), Pair::new(&plan));
        let call = call_of(who, None);
        for act in &acts {
            pair.act(act)?;
            if !matches!(act, Act::Judge(..) | Act::Record(..) | Act::Refund(..) | Act::Spend(..)) {
                fresh.act(act)?;
            }
        }
        pair.step(wait);
        fresh.step(wait);
        let stats = with_call(&call, |call| pair.limiter.stats(call)).unwrap();
        if stats.is_none() && !pair.reference.is_suspended(&call) {
            // A key of which nothing is known does as a new one, whatever comes.
            for act in acts.iter().filter(|act| is_of(act, who)) {
                if let Act::Judge(_, op, cost, _) = act {
                    let got = answer_of(&pair.judge(&call, *op, *cost).unwrap());
                    prop_assert_eq!(got, answer_of(&fresh.judge(&call, *op, *cost).unwrap()));
                }
            }
        }
        with_call(&call, |call| pair.limiter.reset(call)).unwrap();
        prop_assert_eq!(with_call(&call, |call| pair.limiter.stats(call)).unwrap(), None);
    }

    #[test]
    fn i6_a_refunded_hit_leaves_the_rule_as_it_was(
        plan in plan(true),
        acts in acts(20..=60),
        who in who(),
        cost in cost(),
    ) {
        let mut pair = Pair::new(&plan);
        for act in &acts {
            pair.act(act)?;
        }
        let call = call_of(who, None);
        let see = |limiter: &Limiter| {
            with_call(&call, |call| {
                let limits = limiter.stats(call).unwrap().map(|stats| stats.limits);
                (limits, limiter.peek(call, 0).unwrap(), limiter.peek(call, 1).unwrap())
            })
        };
        let before = see(&pair.limiter);
        let hit = pair.judge(&call, Op::Hit, cost).unwrap();
        if hit.allowed && hit.reason().is_none() && hit.would_deny().is_none() {
            with_call(&call, |call| pair.limiter.refund(call, cost)).unwrap();
            let after = see(&pair.limiter);
            // That the key was allowed ends its episode, and that may be all that was known of it.
            prop_assert!(after.0.is_none() || after.0 == before.0, "{:?}, {:?}", before, after);
            prop_assert_eq!((after.1, after.2), (before.1, before.2));
        }
    }
}

fn over_budget(decision: &Decision) -> bool {
    decision.reason() == Some("budget")
}

fn is_of(act: &Act, who: Who) -> bool {
    matches!(act, Act::Judge(other, ..) if (other.0, other.1) == (who.0, who.1))
}
