//! The order of judgement: off, exempt, blocked, cost, budget, cooldown, enforced backoff, limits.

pub(crate) mod budget;
pub(crate) mod penalty;

use std::array::from_fn;
use std::time::Duration;

use crate::notes::Spent;
use tidegate_core::{
    Answer, LimitStatus, LimitStatuses, NEVER, Permit, Receipt, RowRef, Time, hit_together,
    peek_together, reserve_together,
};

use crate::compiled::interned::Interned;
use crate::compiled::plan::MOST_GROUPS;
use crate::compiled::variant::Variant;
use crate::config::policy::Mode;
use crate::decision::view::DecisionView;
use crate::decision::{Decision, HeaderStatus, Reason};
use crate::error::Error;
use crate::judge::penalty::{Barred, Denial, Standing};
use crate::key::Call;
use crate::snapshot::{Hashes, Resolved, Snapshot};
use crate::store::runtime::Note;
use crate::time::{Day, whole_millis};

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
    fn only_looks(self) -> bool {
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
    Look,
    Spend,
    /// Spend, and note what was taken.
    Reserve(&'r mut Receipts),
}

/// What is needed to go on from a decision, beside it: it is large to hand back.
#[derive(Default)]
pub(crate) struct Found<'r> {
    /// Where to note what was taken; none if nobody will give it back.
    pub(crate) receipts: Option<&'r mut Receipts>,
    pub(crate) permits: [Option<Permit>; MOST_GROUPS],
    /// Where it was counted; none if it was not.
    pub(crate) hashes: Option<Hashes>,
    pub(crate) defaulted: bool,
}

/// What all limits of a rule say. It is large to hand back, so that it is filled where it is wanted.
struct Joint {
    answer: Answer,
    /// In declared order.
    views: LimitStatuses,
    permits: [Option<Permit>; MOST_GROUPS],
    shared: bool,
}

impl Joint {
    fn new() -> Joint {
        Joint {
            answer: Answer::Allowed,
            views: LimitStatuses::default(),
            permits: [None; MOST_GROUPS],
            shared: false,
        }
    }
}

/// Where a call's row of a group is, by these numbers; `None` if the rule has no such group.
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
fn ask_one(part: &RowRef<'_>, cost: u64, how: Ask<'_>, time: &mut Time<'_>, joint: &mut Joint) {
    let together = match how {
        Ask::Spend => part.hit(cost, time, &mut joint.views),
        Ask::Look => peek_together(&[*part], &[cost], time, std::array::from_mut(&mut joint.views)),
        Ask::Reserve([receipt, ..]) => {
            let views = std::array::from_mut(&mut joint.views);
            reserve_together(&[*part], &[cost], time, views, std::array::from_mut(receipt))
        }
    };
    (joint.answer, joint.shared) = (together.answer, together.shared);
    [joint.permits[0]] = together.permits;
}

fn ask<const N: usize>(
    snapshot: &Snapshot,
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    how: Ask<'_>,
    time: &mut Time<'_>,
    joint: &mut Joint,
) {
    let mut views = [LimitStatuses::default(); N];
    let together = match how {
        Ask::Spend => hit_together(parts, costs, time, &mut views),
        Ask::Look => peek_together(parts, costs, time, &mut views),
        Ask::Reserve(receipts) => {
            let mut mine = [None; N];
            let together = reserve_together(parts, costs, time, &mut views, &mut mine);
            receipts[..N].copy_from_slice(&mine);
            together
        }
    };
    (joint.answer, joint.shared) = (together.answer, together.shared);
    joint.permits[..N].copy_from_slice(&together.permits);
    joint.views = snapshot.plan().places.iter().map(|&(group, at)| views[group][at]).collect();
}

/// A call under judgement.
struct Case<'s> {
    snapshot: &'s Snapshot,
    resolved: &'s Resolved<'s>,
    hashes: &'s Hashes,
    op: Op,
    cost: u64,
    now: u64,
}

/// Judges a call. The clock is read once, and again only where a state seems to be ahead of it.
pub(crate) fn judge(
    snapshot: &Snapshot,
    call: &Call<'_>,
    cost: u64,
    op: Op,
    found: &mut Found<'_>,
) -> Result<Decision, Error> {
    let resolved = &snapshot.resolve(call)?;
    found.defaulted = resolved.defaulted;
    if let Some(reason) = snapshot.uncounted(resolved) {
        let allowed = DecisionView::allowed(&resolved.variant, snapshot.tables.clock().now());
        let uncounted = DecisionView { reason: Some(reason), ..allowed };
        return Ok(uncounted.to_decision(&resolved.variant));
    }
    let hashes = found.hashes.insert(snapshot.hashes(&resolved.subject));
    if let Some(part) = part_of(snapshot, &resolved.variant, hashes, 0) {
        part.prefetch();
    }
    let mut time = Time::read(snapshot.tables.clock());
    let now = time.now();
    let case = Case { snapshot, resolved, hashes, op, cost, now };
    let mut decision = DecisionView::allowed(&resolved.variant, now).to_decision(&resolved.variant);
    let how = match found.receipts.as_deref_mut() {
        Some(receipts) => Ask::Reserve(receipts),
        None if op.spends() => Ask::Spend,
        None => Ask::Look,
    };
    case.decide(how, &mut found.permits, &mut time, &mut decision);
    Ok(decision)
}

impl Case<'_> {
    fn variant(&self) -> &Interned {
        &self.resolved.variant
    }

    /// Asks the groups of the rule together. How many there are is known at compile time below.
    fn ask(&self, (cost, how): (u64, Ask<'_>), time: &mut Time<'_>, joint: &mut Joint) {
        let snapshot = self.snapshot;
        let of = |group: usize| part_of(snapshot, self.variant(), self.hashes, group);
        let Some(a) = of(0) else {
            // A rule has at least one group.
            return;
        };
        let groups = &snapshot.plan().groups;
        let costs = |group: usize| groups[group].counts.of(cost);
        match (of(1), of(2), of(3)) {
            (None, ..) => ask_one(&a, costs(0), how, time, joint),
            (Some(b), None, _) => ask(snapshot, &[a, b], &from_fn(costs), how, time, joint),
            (Some(b), Some(c), None) => {
                ask(snapshot, &[a, b, c], &from_fn(costs), how, time, joint)
            }
            (Some(b), Some(c), Some(d)) => {
                ask(snapshot, &[a, b, c, d], &from_fn(costs), how, time, joint)
            }
        }
    }

    /// Repairs the limits of a key whose notes were ahead of the clock. Their stamps are ahead too, and would
    /// deny the key anew when its penalty is over.
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
        decision: &mut Decision,
    ) {
        let mut joint = Joint::new();
        if let Some(block) = self.snapshot.block_of(&self.resolved.subject, self.now) {
            return self.blocked(block, time, decision);
        }
        if self.cost > self.variant().most_cost() {
            self.ask((0, Ask::Look), time, &mut joint);
            return self.too_costly(&joint, decision);
        }
        let standing = self.standing(time);
        if let Some(barred) = self.barred(&standing) {
            if standing.repaired {
                self.repair_limits(time);
            }
            self.ask((self.cost, Ask::Look), time, &mut joint);
            return self.refuse(&joint, &barred, &standing, decision);
        }
        self.ask((self.cost, how), time, &mut joint);
        // What a half-done hit of another caused must start no penalty: look again.
        if joint.answer == Answer::Denied && self.op == Op::Check {
            self.ask((self.cost, Ask::Look), time, &mut joint);
        }
        if self.snapshot.concurrent {
            *permits = joint.permits;
        }
        match joint.answer {
            Answer::Allowed | Answer::Uncounted => self.allow(&mut joint, &standing, decision),
            Answer::Denied => self.deny(&joint, &standing, decision),
            Answer::Cost => self.too_costly(&joint, decision),
            Answer::Full => {
                let barred = Barred { reason: Reason::Full, wait: NEVER, cooling: None };
                self.refuse(&joint, &barred, &standing, decision);
            }
        }
    }

    /// Refused by hand. The same hit passes when the block and all that runs beside it are over.
    #[cold]
    fn blocked(&self, block: &Note, time: &mut Time<'_>, decision: &mut Decision) {
        let standing = self.standing(time);
        if standing.repaired {
            self.repair_limits(time);
        }
        let left = block.span.map_or(NEVER, |span| span.left(time.now()));
        let too_costly = self.cost > self.variant().most_cost();
        let beside = self.barred(&standing).map_or(0, |barred| barred.wait);
        let wait = if too_costly { NEVER } else { left.max(beside) };
        let mut joint = Joint::new();
        self.ask((if too_costly { 0 } else { self.cost }, Ask::Look), time, &mut joint);
        let barred = Barred { reason: Reason::Blocked, wait, cooling: None };
        self.refuse(&joint, &barred, &standing, decision);
    }

    /// What the key's denials so far lead to.
    fn standing(&self, time: &mut Time<'_>) -> Standing {
        let Some(ledger) = self.snapshot.tables.penalties() else {
            return Standing::unknown(time.now());
        };
        let hash = self.snapshot.penalty_hash(&self.resolved.subject);
        Standing::read(ledger, hash, self.variant(), time, !self.op.only_looks())
    }

    fn barred(&self, standing: &Standing) -> Option<Barred> {
        let Some(wait) = self.budget_wait() else {
            return standing.barred;
        };
        let wait = wait.max(standing.barred.map_or(0, |barred| barred.wait));
        Some(Barred { reason: Reason::Budget, wait, cooling: None })
    }

    /// How long until the budget is there again, if it is spent.
    fn budget_wait(&self) -> Option<u64> {
        let budget = self.snapshot.config.budget.as_ref()?;
        let spent = self.snapshot.spent(&self.resolved.subject);
        // The wall clock is read only for keys that have spent something.
        if spent == Spent::default() && budget.daily > 0 {
            return None;
        }
        let clock = self.snapshot.tables.clock();
        let mut day = Day::today(clock, budget.reset_hour_utc);
        if spent.is_ahead(day.number) {
            day = Day::today_again(clock, budget.reset_hour_utc);
            if !self.op.only_looks() && spent.is_ahead(day.number) {
                self.snapshot.repair_spent(&self.resolved.subject, spent, day.number);
            }
        }
        (spent.on(day.number) >= budget.daily).then(|| day.left_nanos())
    }

    fn views<'j>(&self, joint: &'j Joint) -> &'j [LimitStatus] {
        &joint.views[..self.variant().numbers.len()]
    }

    fn least(&self, joint: &Joint) -> usize {
        let views = self.views(joint);
        self.variant().least(|index| views[index].remaining)
    }

    fn reset_after(&self, joint: &Joint) -> Duration {
        let longest = self.views(joint).iter().map(|view| view.reset).max().unwrap_or(0);
        whole_millis(longest).unwrap_or_default()
    }

    /// What every decision says of its limits.
    fn fill(&self, joint: &Joint, decision: &mut Decision) {
        for (left, view) in decision.left.iter_mut().zip(self.views(joint)) {
            *left = HeaderStatus::new(view);
        }
        decision.reset_after = self.reset_after(joint);
    }

    fn allow(&self, joint: &mut Joint, standing: &Standing, decision: &mut Decision) {
        if self.op.only_looks() {
            self.foresee(joint);
        }
        let least = self.least(joint);
        self.fill(joint, decision);
        let size = |index: usize| self.variant().numbers[index].size;
        decision.limit = Some(size(least));
        decision.remaining = Some(joint.views[least].remaining);
        let little = |(index, view): (usize, &LimitStatus)| {
            self.variant().warns(view.remaining, size(index))
        };
        decision.warning = self.views(joint).iter().enumerate().any(little);
        if !self.op.only_looks() {
            standing.forgive(self.snapshot.tables.penalties());
        }
    }

    /// What the limits would say after the hit.
    fn foresee(&self, joint: &mut Joint) {
        let plan = self.snapshot.plan();
        let after = |(view, &(group, at)): (&LimitStatus, &(usize, usize))| {
            let cost = plan.groups[group].counts.of(self.cost);
            view.after(&self.variant().groups[group].stated()[at], cost, self.now)
        };
        joint.views = joint.views.iter().zip(&plan.places).map(after).collect();
    }

    /// Denied for good: nothing starts, and nothing is counted.
    fn too_costly(&self, joint: &Joint, decision: &mut Decision) {
        let index = self.variant().smallest.unwrap_or_else(|| self.least(joint));
        self.fill(joint, decision);
        decision.allowed = false;
        decision.reason = Some(Reason::Cost);
        decision.limit = Some(self.variant().numbers[index].size);
        decision.remaining = Some(joint.views[index].remaining);
        decision.retry_after = None;
        decision.notify = self.op.counts_denials() && self.variant().notifies_always();
        self.shadow(decision);
    }

    /// Refused by something other than the limits: no violation.
    fn refuse(&self, joint: &Joint, barred: &Barred, standing: &Standing, decision: &mut Decision) {
        let own = self.views(joint).iter().map(|view| view.wait).max().unwrap_or(0);
        self.fill(joint, decision);
        decision.allowed = false;
        decision.reason = Some(barred.reason);
        decision.limit = match barred.reason {
            Reason::Cooldown => barred.cooling.map(|index| self.variant().numbers[index].size),
            _ => None,
        };
        decision.remaining = Some(0);
        decision.retry_after = whole_millis(barred.wait.max(own));
        decision.notify =
            self.op.counts_denials() && standing.tell(&self.snapshot.tables, self.variant());
        self.shadow(decision);
    }

    fn deny(&self, joint: &Joint, standing: &Standing, decision: &mut Decision) {
        let views = self.views(joint);
        let denial = match self.op.waits() {
            true => Denial::without_cooldowns(views),
            false => Denial::of(views, self.variant()),
        };
        // Keys that share a row because the table is full have no penalties.
        let counts = self.op.counts_denials() && !joint.shared;
        let verdict = match counts {
            true => standing.count(&denial, &self.snapshot.tables, self.variant()),
            false => denial.uncounted(self.variant()),
        };
        if let Some(barred) = &verdict.barred {
            // Another thread's denial came first and has begun to bar the key.
            return self.refuse(joint, barred, standing, decision);
        }
        self.fill(joint, decision);
        decision.allowed = false;
        decision.reason = Some(Reason::limit(denial.limit));
        decision.limit = Some(self.variant().numbers[denial.limit].size);
        decision.remaining = Some(views[denial.limit].remaining);
        decision.retry_after = whole_millis(verdict.wait);
        decision.alert = counts && verdict.alert;
        decision.notify = self.op.counts_denials() && verdict.notify;
        self.shadow(decision);
    }

    /// In shadow mode a denial is only told of.
    fn shadow(&self, decision: &mut Decision) {
        if self.variant().effective.mode == Mode::Shadow {
            decision.would = decision.reason.take();
            decision.allowed = true;
            decision.notify = false;
            decision.retry_after = Some(Duration::ZERO);
        }
    }
}
