//! The order of judgement: off, exempt, cost, budget, cooldown, enforced backoff, limits.

use std::sync::Arc;

use tidegate_core::{Answer, NEVER, Part, Permit, Spent, Time, View, hit_together, peek_together};

use crate::budget::Day;
use crate::call::Call;
use crate::config::Mode;
use crate::decision::{Decision, Ground, Left, Reason, whole_millis};
use crate::error::Error;
use crate::penalty::{Denial, Standing};
use crate::plan::{MOST_GROUPS, MOST_LIMITS};
use crate::snapshot::{Hashes, Resolved, Snapshot};
use crate::variant::Variant;

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

/// A decision, and what is needed to go on from it.
pub(crate) struct Judged {
    pub(crate) decision: Decision,
    pub(crate) permits: [Option<Permit>; MOST_GROUPS],
    /// Where it was counted; none if it was not.
    pub(crate) hashes: Option<Hashes>,
    pub(crate) defaulted: bool,
}

/// What all limits of a rule say, in declared order.
struct Joint {
    answer: Answer,
    views: [View; MOST_LIMITS],
    permits: [Option<Permit>; MOST_GROUPS],
    shared: bool,
}

/// Where a call's row of a group is, by these numbers; `None` if the rule has no such group.
pub(crate) fn part_of<'a>(
    snapshot: &'a Snapshot,
    variant: &'a Variant,
    hashes: &Hashes,
    group: usize,
) -> Option<Part<'a>> {
    let hash = hashes[group]?;
    Some(Part { engine: &snapshot.tables.engines[group], hash, limits: &variant.groups[group] })
}

/// Asks the groups of a rule together. The number of groups is known at compile time below.
fn join(
    snapshot: &Snapshot,
    variant: &Variant,
    hashes: &Hashes,
    time: &mut Time<'_>,
    (cost, spend): (u64, bool),
) -> Joint {
    match [0, 1, 2, 3].map(|group| part_of(snapshot, variant, hashes, group)) {
        [Some(a), None, ..] => ask(snapshot, &[a], cost, spend, time),
        [Some(a), Some(b), None, _] => ask(snapshot, &[a, b], cost, spend, time),
        [Some(a), Some(b), Some(c), None] => ask(snapshot, &[a, b, c], cost, spend, time),
        [Some(a), Some(b), Some(c), Some(d)] => ask(snapshot, &[a, b, c, d], cost, spend, time),
        // A rule has at least one group.
        [None, ..] => ask(snapshot, &[], cost, spend, time),
    }
}

fn ask<const N: usize>(
    snapshot: &Snapshot,
    parts: &[Part<'_>; N],
    cost: u64,
    spend: bool,
    time: &mut Time<'_>,
) -> Joint {
    let mut joint = Joint {
        answer: Answer::Allowed,
        views: [View::default(); MOST_LIMITS],
        permits: [None; MOST_GROUPS],
        shared: false,
    };
    if let ([part], true) = (&parts[..], spend) {
        let outcome = part.hit(cost, time);
        (joint.answer, joint.shared, joint.permits[0]) =
            (outcome.answer, outcome.shared, outcome.permit);
        joint.place(snapshot, |_| &outcome.views);
        return joint;
    }
    let together =
        if spend { hit_together(parts, cost, time) } else { peek_together(parts, cost, time) };
    (joint.answer, joint.shared) = (together.answer, together.shared);
    joint.permits[..N].copy_from_slice(&together.permits);
    joint.place(snapshot, |group| &together.views[group]);
    joint
}

impl Joint {
    fn place<'v>(&mut self, snapshot: &Snapshot, of: impl Fn(usize) -> &'v [View]) {
        for (view, &(group, place)) in self.views.iter_mut().zip(&snapshot.plan().places) {
            *view = of(group)[place];
        }
    }
}

/// A call under judgement.
struct Case<'s> {
    snapshot: &'s Snapshot,
    resolved: Resolved<'s>,
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
) -> Result<Judged, Error> {
    let resolved = snapshot.resolve(call)?;
    let defaulted = resolved.defaulted;
    if let Some(reason) = snapshot.uncounted(&resolved) {
        let decision = plain(&resolved.variant, Some(reason), snapshot.tables.clock().now());
        return Ok(Judged { decision, permits: [None; MOST_GROUPS], hashes: None, defaulted });
    }
    let hashes = snapshot.hashes(&resolved.subject);
    if let Some(part) = part_of(snapshot, &resolved.variant, &hashes, 0) {
        part.prefetch();
    }
    let mut time = Time::read(snapshot.tables.clock());
    let now = time.now();
    let case = Case { snapshot, resolved, op, cost, now };
    let (decision, permits) = case.decide(&hashes, &mut time);
    Ok(Judged { decision, permits, hashes: Some(hashes), defaulted })
}

/// An allowed decision about which nothing else is known.
#[inline]
fn plain(variant: &Arc<Variant>, reason: Option<Reason>, now: u64) -> Decision {
    Decision {
        allowed: true,
        limit: None,
        remaining: None,
        retry_after: Some(std::time::Duration::ZERO),
        reset_after: std::time::Duration::ZERO,
        warning: false,
        alert: false,
        notify: false,
        reason,
        would: None,
        variant: Ground::Own(variant.clone()),
        left: [Left::default(); MOST_LIMITS],
        at: now,
    }
}

/// What the only bucket of a plain rule said to a hit.
pub(crate) struct Plain {
    /// Why it is denied.
    pub(crate) denied: Option<Reason>,
    pub(crate) warning: bool,
    view: View,
    now: u64,
}

/// A hit of a plain rule with one bucket: what the order of judgement comes to then. `None` if the
/// general way has to be gone.
#[inline(always)]
pub(crate) fn hit_plainly(snapshot: &Snapshot, key: &[u8], cost: u64) -> Option<Plain> {
    let engine = &snapshot.tables.engines[0];
    let part = engine.part(engine.hash(key));
    part.prefetch();
    let mut time = Time::read(snapshot.tables.clock());
    let (answer, view, _) = part.hit_lone(cost, &mut time)?;
    let denied = match answer {
        Answer::Allowed | Answer::Uncounted => None,
        Answer::Denied => Some(Reason::Limit(0)),
        Answer::Cost | Answer::Full => Some(Reason::Full),
    };
    let warning = denied.is_none() && snapshot.base().warns(view.remaining, view.limit);
    Some(Plain { denied, warning, view, now: time.now() })
}

impl Plain {
    /// In one piece, so that it is written once: where the caller wants it.
    #[inline(always)]
    pub(crate) fn decision(&self, variant: Ground) -> Decision {
        let (view, full) = (&self.view, self.denied == Some(Reason::Full));
        let mut left = [Left::default(); MOST_LIMITS];
        left[0] = Left::new(view);
        Decision {
            allowed: self.denied.is_none(),
            limit: (!full).then_some(view.limit),
            remaining: Some(if full { 0 } else { view.remaining }),
            retry_after: whole_millis(if full { NEVER } else { view.wait }),
            reset_after: whole_millis(view.reset).unwrap_or_default(),
            warning: self.warning,
            alert: false,
            notify: self.denied.is_some() && variant.notifies_always(),
            reason: self.denied,
            would: None,
            variant,
            left,
            at: self.now,
        }
    }
}

/// Why a call is refused before its limits are asked, and for how long at least.
#[derive(Clone, Copy)]
pub(crate) struct Barred {
    pub(crate) reason: Reason,
    pub(crate) wait: u64,
    /// The limit whose cooldown runs.
    pub(crate) cooling: Option<usize>,
}

impl Case<'_> {
    fn variant(&self) -> &Arc<Variant> {
        &self.resolved.variant
    }

    fn decide(
        &self,
        hashes: &Hashes,
        time: &mut Time<'_>,
    ) -> (Decision, [Option<Permit>; MOST_GROUPS]) {
        let none = [None; MOST_GROUPS];
        let mut look = |cost| join(self.snapshot, self.variant(), hashes, time, (cost, false));
        if self.cost > self.variant().most_cost() {
            return (self.too_costly(&look(0)), none);
        }
        let standing = self.standing();
        if let Some(barred) = self.barred(&standing) {
            let joint = look(self.cost);
            return (self.refuse(&joint, &barred, &standing), none);
        }
        let mut joint = self.ask_limits(hashes, time);
        let decision = match joint.answer {
            Answer::Allowed | Answer::Uncounted => self.allow(&mut joint, &standing),
            Answer::Denied => self.deny(&joint, &standing),
            Answer::Cost => self.too_costly(&joint),
            Answer::Full => {
                let barred = Barred { reason: Reason::Full, wait: NEVER, cooling: None };
                self.refuse(&joint, &barred, &standing)
            }
        };
        (decision, joint.permits)
    }

    fn ask_limits(&self, hashes: &Hashes, time: &mut Time<'_>) -> Joint {
        let mut ask = |spend| join(self.snapshot, self.variant(), hashes, time, (self.cost, spend));
        if self.op.spends() {
            return ask(true);
        }
        let first = ask(false);
        match first.answer {
            // What a half-done hit of another caused must start no penalty: look again.
            Answer::Denied if self.op == Op::Check => ask(false),
            _ => first,
        }
    }

    /// What the key's denials so far lead to.
    fn standing(&self) -> Standing {
        let known = self.snapshot.tables.penalties().filter(|_| self.variant().has_penalties());
        let notes = known.map(|ledger| {
            let hash = self.snapshot.penalty_hash(&self.resolved.subject);
            (hash, ledger.read(hash).unwrap_or_default())
        });
        Standing::new(notes, self.variant(), self.now)
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
        let day = Day::today(self.snapshot.tables.clock(), budget.reset_hour_utc);
        (spent.on(day.number) >= budget.daily).then(|| day.left_nanos())
    }

    fn views<'j>(&self, joint: &'j Joint) -> &'j [View] {
        &joint.views[..self.variant().numbers.len()]
    }

    /// The limit with the least left; ties go to the one declared first.
    fn least(&self, joint: &Joint) -> usize {
        let views = self.views(joint);
        (0..views.len()).min_by_key(|&index| views[index].remaining).unwrap_or(0)
    }

    fn reset_after(&self, joint: &Joint) -> std::time::Duration {
        let longest = self.views(joint).iter().map(|view| view.reset).max().unwrap_or(0);
        whole_millis(longest).unwrap_or_default()
    }

    fn filled(&self, joint: &Joint) -> Decision {
        let mut decision = plain(self.variant(), None, self.now);
        for (left, view) in decision.left.iter_mut().zip(self.views(joint)) {
            *left = Left::new(view);
        }
        decision.reset_after = self.reset_after(joint);
        decision
    }

    fn allow(&self, joint: &mut Joint, standing: &Standing) -> Decision {
        if self.op.only_looks() {
            self.foresee(joint);
        }
        let least = self.least(joint);
        let mut decision = self.filled(joint);
        let size = |index: usize| self.variant().numbers[index].size;
        decision.limit = Some(size(least));
        decision.remaining = Some(joint.views[least].remaining);
        let little =
            |(index, view): (usize, &View)| self.variant().warns(view.remaining, size(index));
        decision.warning = self.views(joint).iter().enumerate().any(little);
        if !self.op.only_looks() {
            standing.forgive(self.snapshot.tables.penalties());
        }
        decision
    }

    /// What the limits would say after the hit.
    fn foresee(&self, joint: &mut Joint) {
        let plan = self.snapshot.plan();
        for (view, &(group, place)) in joint.views.iter_mut().zip(&plan.places) {
            let limit = &self.variant().groups[group].stated()[place];
            *view = view.after(limit, self.cost, self.now);
        }
    }

    /// Denied for good: nothing starts, and nothing is counted.
    fn too_costly(&self, joint: &Joint) -> Decision {
        let index = self.variant().smallest.unwrap_or_else(|| self.least(joint));
        let mut decision = self.filled(joint);
        decision.allowed = false;
        decision.reason = Some(Reason::Cost);
        decision.limit = Some(self.variant().numbers[index].size);
        decision.remaining = Some(joint.views[index].remaining);
        decision.retry_after = None;
        decision.notify = self.op.counts_denials() && self.variant().notifies_always();
        self.shadowed(decision)
    }

    /// Refused by something other than the limits: no violation.
    fn refuse(&self, joint: &Joint, barred: &Barred, standing: &Standing) -> Decision {
        let own = self.views(joint).iter().map(|view| view.wait).max().unwrap_or(0);
        let mut decision = self.filled(joint);
        decision.allowed = false;
        decision.reason = Some(barred.reason);
        decision.limit = match barred.reason {
            Reason::Cooldown => barred.cooling.map(|index| self.variant().numbers[index].size),
            _ => None,
        };
        decision.remaining = Some(0);
        decision.retry_after = whole_millis(barred.wait.max(own));
        decision.notify = self.op.counts_denials()
            && standing.tell(&self.snapshot.tables, self.variant(), self.now);
        self.shadowed(decision)
    }

    fn deny(&self, joint: &Joint, standing: &Standing) -> Decision {
        let views = self.views(joint);
        let denial = match self.op.waits() {
            true => Denial::without_cooldowns(views),
            false => Denial::of(views, self.variant()),
        };
        // Keys that share a row because the table is full have no penalties.
        let counts = self.op.counts_denials() && !joint.shared;
        let verdict = match counts {
            true => standing.count(&denial, &self.snapshot.tables, self.variant(), self.now),
            false if self.op == Op::Peek => standing.foresee(&denial, self.variant(), self.now),
            // A cooldown or a step that this denial does not start is nothing to wait for.
            false => denial.uncounted(self.variant()),
        };
        if let Some(barred) = &verdict.barred {
            // Another thread's denial came first and has begun to bar the key.
            return self.refuse(joint, barred, standing);
        }
        let mut decision = self.filled(joint);
        decision.allowed = false;
        decision.reason = Some(Reason::limit(denial.limit));
        decision.limit = Some(self.variant().numbers[denial.limit].size);
        decision.remaining = Some(views[denial.limit].remaining);
        decision.retry_after = whole_millis(verdict.wait);
        decision.alert = counts && verdict.alert;
        decision.notify = self.op.counts_denials() && verdict.notify;
        self.shadowed(decision)
    }

    /// In shadow mode a denial is only told of.
    fn shadowed(&self, mut decision: Decision) -> Decision {
        if self.variant().effective.mode == Mode::Shadow {
            decision.would = decision.reason.take();
            decision.allowed = true;
            decision.notify = false;
            decision.retry_after = Some(std::time::Duration::ZERO);
        }
        decision
    }
}
