//! The order of judgement: off, exempt, blocked, cost, budget, cooldown, enforced backoff, limits.

pub(crate) mod budget;
pub(crate) mod penalty;

use std::array::from_fn;

use crate::notes::Spent;
use tidegate_core::{
    Answer, Hash, LimitStatus, LimitStatuses, NEVER, Permit, Receipt, RowRef, Time, hit_together,
    peek_together, reserve_together,
};

use crate::compiled::plan::{MOST_GROUPS, MOST_LIMITS};
use crate::compiled::variant::Variant;
use crate::config::policy::Mode;
use crate::decision::view::DecisionView;
use crate::decision::{HeaderStatus, Reason};
use crate::error::Error;
use crate::judge::penalty::{Denial, PenaltyState, Refusal};
use crate::key::{Call, Parts};
use crate::snapshot::{Hashes, Resolved, Snapshot};
use crate::store::runtime::Note;
use crate::time::{Day, millis};

/// What is wanted of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Spend if allowed. A denial counts.
    Hit,
    /// Spend nothing. A denial counts.
    Check,
    /// Change nothing.
    Peek,
    /// Spend if allowed. A denial counts for nothing, and says when the next try may pass.
    Try,
    /// What a try would get, changing nothing.
    Foresee,
}

impl Op {
    fn spends(self) -> bool {
        matches!(self, Op::Hit | Op::Try)
    }
    fn counts_denials(self) -> bool {
        matches!(self, Op::Hit | Op::Check)
    }
    fn is_read_only(self) -> bool {
        matches!(self, Op::Peek | Op::Foresee)
    }
    /// Whether it is asked for those who wait: their denials lead to nothing.
    fn waits(self) -> bool {
        matches!(self, Op::Try | Op::Foresee)
    }
}

/// What a reservation took in each group.
pub(crate) type Receipts = [Option<Receipt>; MOST_GROUPS];

/// How the limits of a rule are asked.
enum Ask<'r> {
    Peek,
    Spend,
    /// Spend, and note what was taken.
    Reserve(&'r mut Receipts),
}

/// What a judgement did, beside its decision. It is filled in place, since it is large.
#[derive(Default)]
pub(crate) struct Effects<'r> {
    /// Where to note what was taken; none if nobody will give it back.
    pub(crate) receipts: Option<&'r mut Receipts>,
    pub(crate) permits: [Option<Permit>; MOST_GROUPS],
    /// Where it was counted; none if it was not.
    pub(crate) hashes: Option<Hashes>,
}

/// Scratch for what the engine says of all limits of a rule. It is filled in place: returned by
/// value, its 400 bytes were copied at each call.
struct LimitAnswers {
    answer: Answer,
    /// In declared order.
    statuses: LimitStatuses,
    permits: [Option<Permit>; MOST_GROUPS],
    shared: bool,
}

impl LimitAnswers {
    fn new() -> LimitAnswers {
        LimitAnswers {
            answer: Answer::Allowed,
            statuses: LimitStatuses::default(),
            permits: [None; MOST_GROUPS],
            shared: false,
        }
    }
}

/// Where a call's row of a group is, under this variant; `None` if the rule has no such group.
pub(crate) fn part_of<'a>(
    snapshot: &'a Snapshot,
    variant: &'a Variant,
    hashes: &Hashes,
    group: usize,
) -> Option<RowRef<'a>> {
    let hash = hashes[group]?;
    Some(RowRef { engine: &snapshot.tables.engines[group], hash, limits: &variant.groups[group] })
}

/// A lone group has its limits in declared order.
fn ask_one(
    part: &RowRef<'_>,
    cost: u64,
    how: Ask<'_>,
    time: &mut Time<'_>,
    answers: &mut LimitAnswers,
) {
    let together = match how {
        Ask::Spend => part.hit(cost, time, &mut answers.statuses),
        Ask::Peek => {
            peek_together(&[*part], &[cost], time, std::array::from_mut(&mut answers.statuses))
        }
        Ask::Reserve([receipt, ..]) => {
            let statuses = std::array::from_mut(&mut answers.statuses);
            reserve_together(&[*part], &[cost], time, statuses, std::array::from_mut(receipt))
        }
    };
    (answers.answer, answers.shared) = (together.answer, together.shared);
    [answers.permits[0]] = together.permits;
}

fn ask<const N: usize>(
    snapshot: &Snapshot,
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    how: Ask<'_>,
    time: &mut Time<'_>,
    answers: &mut LimitAnswers,
) {
    let mut statuses = [LimitStatuses::default(); N];
    let together = match how {
        Ask::Spend => hit_together(parts, costs, time, &mut statuses),
        Ask::Peek => peek_together(parts, costs, time, &mut statuses),
        Ask::Reserve(receipts) => {
            let mut mine = [None; N];
            let together = reserve_together(parts, costs, time, &mut statuses, &mut mine);
            receipts[..N].copy_from_slice(&mine);
            together
        }
    };
    (answers.answer, answers.shared) = (together.answer, together.shared);
    answers.permits[..N].copy_from_slice(&together.permits);
    answers.statuses.clear();
    let places = snapshot.plan().places.iter();
    answers.statuses.extend(places.map(|&(group, at)| statuses[group][at]));
}

/// A call under judgement.
struct Case<'s> {
    snapshot: &'s Snapshot,
    resolved: &'s Resolved<'s>,
    /// The limits that it is judged by, found once.
    variant: &'s Variant,
    /// The hash of the whole key.
    whole: Hash,
    hashes: &'s Hashes,
    op: Op,
    cost: u64,
    now: u64,
}

/// Judges a call. The clock is read once, and again only where a state seems to be ahead of it.
/// `done` gets the decision, and whether `classify` had to use its default. The decision is large:
/// whoever wants to own it makes it of the view, where it is to stay.
#[inline(always)]
pub(crate) fn judge<R>(
    snapshot: &Snapshot,
    call: &Call<'_>,
    cost: u64,
    op: Op,
    effects: &mut Effects<'_>,
    done: impl FnOnce(&DecisionView<'_>, bool) -> R,
) -> Result<R, Error> {
    let mut room = Parts::default();
    let resolved = &snapshot.resolve(call, &mut room)?;
    let mut headers = [HeaderStatus::default(); MOST_LIMITS];
    let mut decision = DecisionView::allowed(&resolved.variant, 0);
    match snapshot.uncounted(resolved) {
        Some(reason) => {
            decision.reason = Some(reason);
            decision.at = snapshot.tables.clock().now();
        }
        None => {
            judge_counted(snapshot, resolved, cost, op, effects, &mut decision, &mut headers);
            decision.statuses = &headers[..resolved.variant.params.len()];
        }
    }
    Ok(done(&decision, resolved.defaulted))
}

/// As [`judge`], for a call that counts. `decision` says yes so far, and `headers` is for what it
/// says of its limits.
#[inline(always)]
fn judge_counted(
    snapshot: &Snapshot,
    resolved: &Resolved<'_>,
    cost: u64,
    op: Op,
    effects: &mut Effects<'_>,
    decision: &mut DecisionView<'_>,
    headers: &mut [HeaderStatus; MOST_LIMITS],
) {
    let whole = snapshot.whole_hash(&resolved.subject);
    let hashes = effects.hashes.insert(snapshot.hashes_by(whole, &resolved.subject));
    let variant: &Variant = &resolved.variant;
    if let Some(part) = part_of(snapshot, variant, hashes, 0) {
        part.prefetch();
    }
    let mut time = Time::read(snapshot.tables.clock());
    let now = time.now();
    let case = Case { snapshot, resolved, variant, whole, hashes, op, cost, now };
    decision.at = now;
    let mut answers = LimitAnswers::new();
    let how = match effects.receipts.as_deref_mut() {
        Some(receipts) => Ask::Reserve(receipts),
        None if op.spends() => Ask::Spend,
        None => Ask::Peek,
    };
    case.decide(how, &mut effects.permits, &mut time, &mut answers, decision);
    let mut longest = 0;
    for (header, status) in headers.iter_mut().zip(case.statuses(&answers)) {
        *header = HeaderStatus::new(status);
        longest = longest.max(status.reset);
    }
    decision.reset_after_ms = millis(longest).unwrap_or_default();
}

impl Case<'_> {
    fn variant(&self) -> &Variant {
        self.variant
    }

    /// Asks the groups of the rule together. How many there are is known at compile time below.
    fn ask(&self, (cost, how): (u64, Ask<'_>), time: &mut Time<'_>, answers: &mut LimitAnswers) {
        let snapshot = self.snapshot;
        let of = |group: usize| part_of(snapshot, self.variant(), self.hashes, group);
        let Some(a) = of(0) else {
            // A rule has at least one group.
            return;
        };
        let groups = &snapshot.plan().groups;
        let costs = |group: usize| groups[group].counts.of(cost);
        match (of(1), of(2), of(3)) {
            (None, ..) => ask_one(&a, costs(0), how, time, answers),
            (Some(b), None, _) => ask(snapshot, &[a, b], &from_fn(costs), how, time, answers),
            (Some(b), Some(c), None) => {
                ask(snapshot, &[a, b, c], &from_fn(costs), how, time, answers)
            }
            (Some(b), Some(c), Some(d)) => {
                ask(snapshot, &[a, b, c, d], &from_fn(costs), how, time, answers)
            }
        }
    }

    /// Repairs the limits of a key whose notes were ahead of the clock. Their stamps are ahead too,
    /// and would deny the key anew when its penalty is over.
    #[cold]
    fn repair_limits(&self, time: &mut Time<'_>) {
        let part = |group| part_of(self.snapshot, self.variant(), self.hashes, group);
        (0..MOST_GROUPS).filter_map(part).for_each(|part| _ = part.repair_clock_skew(time));
    }

    /// Judges into a decision that says yes so far: it is large to hand on.
    fn decide(
        &self,
        how: Ask<'_>,
        permits: &mut [Option<Permit>; MOST_GROUPS],
        time: &mut Time<'_>,
        answers: &mut LimitAnswers,
        decision: &mut DecisionView<'_>,
    ) {
        if let Some(block) = self.snapshot.block_of(&self.resolved.subject, self.now) {
            return self.blocked(block, time, answers, decision);
        }
        if self.cost > self.variant().most_cost() {
            self.ask((0, Ask::Peek), time, answers);
            return self.too_costly(answers, decision);
        }
        let state = self.penalty_state(time);
        if let Some(refusal) = self.refusal(&state) {
            if state.repaired {
                self.repair_limits(time);
            }
            self.ask((self.cost, Ask::Peek), time, answers);
            return self.refuse(answers, &refusal, &state, decision);
        }
        self.ask((self.cost, how), time, answers);
        // Another thread's hit over several tables may be half done, and be given back. The engine
        // rechecks a hit's denial, but not a peek's. Such a denial must start no penalty.
        if answers.answer == Answer::Denied && self.op == Op::Check {
            self.ask((self.cost, Ask::Peek), time, answers);
        }
        if self.snapshot.concurrent {
            *permits = answers.permits;
        }
        match answers.answer {
            Answer::Allowed | Answer::Uncounted => self.allow(answers, &state, decision),
            Answer::Denied => self.deny(answers, &state, decision),
            Answer::Cost => self.too_costly(answers, decision),
            Answer::Full => {
                let refusal = Refusal { reason: Reason::Full, wait: NEVER, cooling: None };
                self.refuse(answers, &refusal, &state, decision);
            }
        }
    }

    /// Refused by hand. The same hit passes when the block and all that runs beside it are over.
    #[cold]
    fn blocked(
        &self,
        block: &Note,
        time: &mut Time<'_>,
        answers: &mut LimitAnswers,
        decision: &mut DecisionView<'_>,
    ) {
        let state = self.penalty_state(time);
        if state.repaired {
            self.repair_limits(time);
        }
        let left = block.span.map_or(NEVER, |span| span.left(time.now()));
        let too_costly = self.cost > self.variant().most_cost();
        let beside = self.refusal(&state).map_or(0, |refusal| refusal.wait);
        let wait = if too_costly { NEVER } else { left.max(beside) };
        self.ask((if too_costly { 0 } else { self.cost }, Ask::Peek), time, answers);
        let refusal = Refusal { reason: Reason::Blocked, wait, cooling: None };
        self.refuse(answers, &refusal, &state, decision);
    }

    /// What the key's denials so far lead to.
    fn penalty_state(&self, time: &mut Time<'_>) -> PenaltyState {
        let Some(ledger) = self.snapshot.tables.penalties() else {
            return PenaltyState::unknown(time.now());
        };
        let hash = self.snapshot.penalty_hash(self.whole, &self.resolved.subject);
        PenaltyState::read(ledger, hash, self.variant(), time, !self.op.is_read_only())
    }

    fn refusal(&self, state: &PenaltyState) -> Option<Refusal> {
        let Some(wait) = self.budget_wait() else {
            return state.refusal;
        };
        let wait = wait.max(state.refusal.map_or(0, |refusal| refusal.wait));
        Some(Refusal { reason: Reason::Budget, wait, cooling: None })
    }

    /// How long until the budget is there again, if it is spent.
    fn budget_wait(&self) -> Option<u64> {
        let budget = self.snapshot.config.budget.as_ref()?;
        let spent = self.snapshot.spent(self.whole);
        // The wall clock is read only for keys that have spent something.
        if spent == Spent::default() && budget.daily > 0 {
            return None;
        }
        let clock = self.snapshot.tables.clock();
        let mut day = Day::today(clock, budget.reset_hour_utc);
        if spent.is_ahead(day.number) {
            day = Day::today_again(clock, budget.reset_hour_utc);
            if !self.op.is_read_only() && spent.is_ahead(day.number) {
                self.snapshot.repair_spent(self.whole, spent, day.number);
            }
        }
        (spent.on(day.number) >= budget.daily).then(|| day.left_nanos())
    }

    fn statuses<'j>(&self, answers: &'j LimitAnswers) -> &'j [LimitStatus] {
        &answers.statuses[..self.variant().params.len()]
    }

    fn least(&self, answers: &LimitAnswers) -> usize {
        let statuses = self.statuses(answers);
        self.variant().least(|index| statuses[index].remaining)
    }

    fn allow(
        &self,
        answers: &mut LimitAnswers,
        state: &PenaltyState,
        decision: &mut DecisionView<'_>,
    ) {
        if self.op.is_read_only() {
            self.foresee(answers);
        }
        let least = self.least(answers);
        let size = |index: usize| self.variant().params[index].size;
        decision.limit = Some(size(least));
        decision.remaining = Some(answers.statuses[least].remaining);
        let little = |(index, status): (usize, &LimitStatus)| {
            self.variant().warns(status.remaining, size(index))
        };
        decision.warning = self.statuses(answers).iter().enumerate().any(little);
        if !self.op.is_read_only() {
            state.forgive(self.snapshot.tables.penalties());
        }
    }

    /// What the limits would say after the hit.
    fn foresee(&self, answers: &mut LimitAnswers) {
        let plan = self.snapshot.plan();
        let after = |(status, &(group, at)): (&LimitStatus, &(usize, usize))| {
            let cost = plan.groups[group].counts.of(self.cost);
            status.after(&self.variant().groups[group].stated()[at], cost, self.now)
        };
        answers.statuses = answers.statuses.iter().zip(&plan.places).map(after).collect();
    }

    /// Denied for good: nothing starts, and nothing is counted.
    fn too_costly(&self, answers: &LimitAnswers, decision: &mut DecisionView<'_>) {
        let index = self.variant().smallest.unwrap_or_else(|| self.least(answers));
        decision.allowed = false;
        decision.reason = Some(Reason::Cost);
        decision.limit = Some(self.variant().params[index].size);
        decision.remaining = Some(answers.statuses[index].remaining);
        decision.retry_after_ms = None;
        decision.notify = self.op.counts_denials() && self.variant().notifies_always();
        self.shadow(decision);
    }

    /// Refused by something other than the limits: no violation.
    fn refuse(
        &self,
        answers: &LimitAnswers,
        refusal: &Refusal,
        state: &PenaltyState,
        decision: &mut DecisionView<'_>,
    ) {
        let own = self.statuses(answers).iter().map(|status| status.wait).max().unwrap_or(0);
        decision.allowed = false;
        decision.reason = Some(refusal.reason);
        decision.limit = match refusal.reason {
            Reason::Cooldown => refusal.cooling.map(|index| self.variant().params[index].size),
            _ => None,
        };
        decision.remaining = Some(0);
        decision.retry_after_ms = millis(refusal.wait.max(own));
        decision.notify =
            self.op.counts_denials() && state.takes_notice(&self.snapshot.tables, self.variant());
        self.shadow(decision);
    }

    fn deny(&self, answers: &LimitAnswers, state: &PenaltyState, decision: &mut DecisionView<'_>) {
        let statuses = self.statuses(answers);
        let denial = match self.op.waits() {
            true => Denial::without_cooldowns(statuses),
            false => Denial::of(statuses, self.variant()),
        };
        // Keys that share a row because the table is full have no penalties.
        let counts = self.op.counts_denials() && !answers.shared;
        let verdict = match counts {
            true => state.count(&denial, &self.snapshot.tables, self.variant()),
            false => denial.uncounted(self.variant()),
        };
        if let Some(refusal) = &verdict.refusal {
            // Another thread's denial came first and has begun to bar the key.
            return self.refuse(answers, refusal, state, decision);
        }
        decision.allowed = false;
        decision.reason = Some(Reason::limit(denial.limit));
        decision.limit = Some(self.variant().params[denial.limit].size);
        decision.remaining = Some(statuses[denial.limit].remaining);
        decision.retry_after_ms = millis(verdict.wait);
        decision.alert = counts && verdict.alert;
        decision.notify = self.op.counts_denials() && verdict.notify;
        self.shadow(decision);
    }

    /// In shadow mode a denial is only told of.
    fn shadow(&self, decision: &mut DecisionView<'_>) {
        if self.variant().effective.mode == Mode::Shadow {
            decision.would = decision.reason.take();
            decision.allowed = true;
            decision.notify = false;
            decision.retry_after_ms = Some(0);
        }
    }
}
