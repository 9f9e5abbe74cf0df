//! The limits that a call is judged by: the rule's, changed layer by layer, and compiled.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_core as core;

use crate::compiled::labels::RuleLabels;
use crate::compiled::plan::Plan;
use crate::config::limit::{Counts, Limit, LimitPatches, period_text};
use crate::config::policy::{AlertAt, Backoff, Mode, Notify, RuleConfig, When};
use crate::error::Problem;
use crate::time::nanos;

/// Parts of one that `warn_at` is kept in.
const WHOLE: u64 = 1_000_000_000;

/// What a rule comes to for a call, before it is compiled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effective {
    pub(crate) limits: Vec<Limit>,
    pub(crate) warn_at: Option<f64>,
    pub(crate) cooldown: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) alert: Option<AlertAt>,
    pub(crate) notify: Notify,
    pub(crate) mode: Mode,
    pub(crate) attach: Option<Value>,
}

impl Effective {
    pub(crate) fn of(rule: &RuleConfig) -> Effective {
        Effective {
            limits: rule.limits.clone(),
            warn_at: rule.warn_at,
            cooldown: rule.cooldown,
            backoff: rule.backoff.clone(),
            alert: rule.alert,
            notify: rule.notify,
            mode: rule.mode,
            attach: rule.attach.clone(),
        }
    }

    /// With other parameters for the limits named. Names that are unknown were refused before.
    pub(crate) fn patched(mut self, patches: &LimitPatches) -> Effective {
        for (name, patch) in patches {
            for limit in self.limits.iter_mut().filter(|limit| limit.name == *name) {
                *limit = limit.patched(patch);
            }
        }
        self
    }

    /// With another `max` of its limit, if it has but one.
    pub(crate) fn with_max(mut self, max: u64) -> Option<Effective> {
        let [limit] = &mut *self.limits else { return None };
        limit.max = max;
        Some(self)
    }

    /// In this mode, if one was set at run time.
    pub(crate) fn in_mode(self, mode: Option<Mode>) -> Effective {
        Effective { mode: mode.unwrap_or(self.mode), ..self }
    }

    pub(crate) fn changed(self, when: &When) -> Effective {
        let mut changed = self.patched(&when.limits);
        changed.warn_at = when.warn_at.or(changed.warn_at);
        changed.cooldown = when.cooldown.or(changed.cooldown);
        changed.backoff = when.backoff.clone().or(changed.backoff);
        changed.alert = when.alert.or(changed.alert);
        changed.notify = when.notify.unwrap_or(changed.notify);
        changed.mode = when.mode.unwrap_or(changed.mode);
        changed.attach = when.attach.clone().or(changed.attach);
        changed
    }
}

/// One limit's parameters, as the order of judgement needs them.
#[derive(Clone, Debug)]
pub(crate) struct LimitParams {
    /// A bucket's size, else `max`.
    pub(crate) size: u64,
    /// Nanoseconds; 0 for none.
    pub(crate) cooldown: u64,
    /// Seconds, rounded up; 0 for a concurrent limit, which has no window.
    pub(crate) window_seconds: u64,
}

/// What repeated denials lead to, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    steps: Box<[u64]>,
    pub(crate) quiet: u64,
    round: u64,
    pub(crate) enforce: bool,
}

impl Steps {
    fn new(backoff: &Backoff) -> Steps {
        Steps {
            steps: backoff.steps.iter().map(|step| nanos(*step)).collect(),
            quiet: nanos(backoff.quiet),
            round: backoff.round.map_or(1, nanos).max(1),
            enforce: backoff.enforce,
        }
    }

    /// What denial number `count` of a run reports at least.
    pub(crate) fn step(&self, count: u64) -> u64 {
        let index = (count.max(1) as usize - 1).min(self.steps.len().saturating_sub(1));
        self.steps.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn rounded(&self, wait: u64) -> u64 {
        wait.div_ceil(self.round).saturating_mul(self.round)
    }

    /// The longest wait that a denial can announce, if the limits' own is `own`.
    fn longest(&self, own: u64) -> u64 {
        self.rounded(self.steps.iter().copied().max().unwrap_or(0).max(own)).max(self.quiet)
    }
}

/// A rule's limits at work, compiled.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) labels: Arc<RuleLabels>,
    pub(crate) effective: Effective,
    /// For each group of the plan.
    pub(crate) groups: Box<[core::Limits]>,
    /// For each limit, in declared order.
    pub(crate) params: Box<[LimitParams]>,
    /// The limit that holds least of those that count costs, unless one never allows anything.
    pub(crate) smallest: Option<usize>,
    /// Whether some limits count costs and others hits.
    mixed: bool,
    /// What must be left of a limit of [`WHOLE`] for no warning.
    warn_below: Option<u64>,
    pub(crate) backoff: Option<Steps>,
    /// Violations, and the nanoseconds of the span.
    pub(crate) alert: Option<(u64, u64)>,
    pub(crate) attach: Option<Arc<Value>>,
    /// Nanoseconds after a denial when nothing of it matters any more.
    pub(crate) keep: u64,
}

impl Variant {
    /// Compiles what a rule comes to, or says what can't be had.
    pub(crate) fn new(
        effective: Effective,
        plan: &Plan,
        labels: &Arc<RuleLabels>,
    ) -> Result<Variant, Vec<Problem>> {
        let mut problems = plan.check_limits(&effective.limits);
        problems.extend(check_options(&effective));
        // One by one first, so that each of several is told of.
        for (limit, ceiling) in effective.limits.iter().zip(&plan.ceilings) {
            if let Err(error) = core::Limits::new(&[limit.to_core(*ceiling)]) {
                add(&mut problems, limit, error);
            }
        }
        let mut groups = Vec::new();
        for group in &plan.groups {
            let stated: Vec<core::Limit> = group
                .limits
                .iter()
                .map(|&i| effective.limits[i].to_core(plan.ceilings[i]))
                .collect();
            match core::Limits::new(&stated) {
                Ok(limits) => groups.push(limits),
                Err(error) => {
                    let limit = &effective.limits[group.limits[error.limit]];
                    add(&mut problems, limit, error);
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Variant::compiled(effective, groups.into(), labels.clone()))
    }

    /// Whether it says the same in all things: the rest follows from these.
    pub(crate) fn is_like(&self, other: &Variant) -> bool {
        let Variant {
            labels,
            effective,
            groups,
            attach,
            params: _,
            smallest: _,
            mixed: _,
            warn_below: _,
            backoff: _,
            alert: _,
            keep: _,
        } = self;
        // In the same order too, which equality does not ask for.
        let text = |attach: &Option<Arc<Value>>| attach.as_ref().map(|value| value.to_string());
        (labels, effective, groups) == (&other.labels, &other.effective, &other.groups)
            && text(attach) == text(&other.attach)
    }

    fn compiled(
        effective: Effective,
        groups: Box<[core::Limits]>,
        labels: Arc<RuleLabels>,
    ) -> Variant {
        let params: Box<[LimitParams]> =
            effective.limits.iter().map(|limit| limit_params(limit, effective.cooldown)).collect();
        let by_cost = |limit: &&Limit| !limit.algorithm.has_lease() && limit.counts == Counts::Cost;
        let never = effective.limits.iter().any(|limit| limit.max == 0);
        let sizes = || effective.limits.iter().enumerate().filter(|(_, limit)| by_cost(limit));
        let smallest = sizes().min_by_key(|(_, limit)| limit.size()).map(|(index, _)| index);
        let backoff = effective.backoff.as_ref().map(Steps::new);
        let alert = effective.alert.map(|alert| (alert.violations, nanos(alert.within)));
        let own = effective.limits.iter().map(Limit::horizon).max().unwrap_or(0);
        let cooldown = params.iter().map(|n| n.cooldown).max().unwrap_or(0);
        let within = alert.map_or(0, |(_, within)| within);
        let announced = backoff.as_ref().map_or(own, |steps| steps.longest(own.max(cooldown)));
        Variant {
            labels,
            groups,
            params,
            smallest: smallest.filter(|_| !never),
            mixed: effective.limits.iter().any(|l| l.counts != effective.limits[0].counts),
            warn_below: effective.warn_at.map(|at| ((1.0 - at) * WHOLE as f64).round() as u64),
            backoff,
            alert,
            attach: effective.attach.clone().map(Arc::new),
            keep: announced.max(cooldown).max(within),
            effective,
        }
    }

    /// The limit with the least left; ties go to the one declared first. Costs and hits are
    /// compared by their shares of the limits' sizes.
    #[inline]
    pub(crate) fn least(&self, remaining: impl Fn(usize) -> u64) -> usize {
        if self.mixed {
            return self.least_share(&remaining);
        }
        (0..self.params.len()).min_by_key(|&index| remaining(index)).unwrap_or(0)
    }

    /// Apart, so that its wide arithmetic takes no registers from rules that need none.
    #[cold]
    #[inline(never)]
    fn least_share(&self, remaining: &dyn Fn(usize) -> u64) -> usize {
        let size = |index: usize| u128::from(self.params[index].size.max(1));
        let shares = |&a: &usize, &b: &usize| {
            let (of_a, of_b) = (u128::from(remaining(a)), u128::from(remaining(b)));
            (of_a * size(b)).cmp(&(of_b * size(a)))
        };
        (0..self.params.len()).min_by(shares).unwrap_or(0)
    }

    /// Whether what is left of a limit is worth a warning.
    pub(crate) fn warns(&self, remaining: u64, size: u64) -> bool {
        self.warn_below.is_some_and(|below| {
            u128::from(remaining) * u128::from(WHOLE) < u128::from(below) * u128::from(size)
        })
    }

    /// Whether denials lead to anything that has to be remembered.
    pub(crate) fn has_penalties(&self) -> bool {
        self.backoff.is_some()
            || self.alert.is_some()
            || self.effective.notify == Notify::Once
            || self.params.iter().any(|n| n.cooldown > 0)
    }

    /// The cost that no limit could ever hold.
    pub(crate) fn most_cost(&self) -> u64 {
        self.smallest.map_or(u64::MAX, |index| self.params[index].size)
    }
}

/// Adds what the engine says of a limit, unless its field is known to be wrong.
fn add(problems: &mut Vec<Problem>, limit: &Limit, error: core::Error) {
    let path = format!("limits.{}.{}", limit.name, error.field);
    if !problems.iter().any(|p| p.path == path) {
        problems.push(Problem { path, message: error.reason });
    }
}

fn limit_params(limit: &Limit, cooldown: Option<Duration>) -> LimitParams {
    let seconds = nanos(limit.per).div_ceil(1_000_000_000).max(1);
    LimitParams {
        size: limit.size(),
        cooldown: limit.cooldown.or(cooldown).map_or(0, nanos),
        window_seconds: if limit.algorithm.has_lease() { 0 } else { seconds },
    }
}

/// The longest that a penalty may last: stamps tell less than nine years apart.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// A period as it is written, if it can be; code may ask for less than a millisecond.
fn exact_text(period: Duration) -> String {
    match period.subsec_nanos().is_multiple_of(1_000_000) {
        true => period_text(period),
        false => format!("{period:?}"),
    }
}

fn check_options(effective: &Effective) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut wrong = |path: &str, message: String| {
        problems.push(Problem { path: path.to_string(), message });
    };
    if let Some(at) = effective.warn_at
        && !(0.0..=1.0).contains(&at)
    {
        wrong(
            "warn_at",
            format!("{at} is not within 0 and 1; 0.8 warns when less than 0.2 is left"),
        );
    }
    let mut duration = |path: &str, value: Duration, least: Duration| {
        if value < least || value > LONGEST {
            let least = if least.is_zero() { "0" } else { "1 ms" };
            wrong(path, format!("{} is not within {least} and 366 days", exact_text(value)));
        }
    };
    let millisecond = Duration::from_millis(1);
    if let Some(cooldown) = effective.cooldown {
        duration("cooldown", cooldown, Duration::ZERO);
    }
    for limit in &effective.limits {
        let field = limit.algorithm.period_field();
        duration(&format!("limits.{}.{field}", limit.name), limit.per, millisecond);
        if let Some(cooldown) = limit.cooldown {
            duration(&format!("limits.{}.cooldown", limit.name), cooldown, Duration::ZERO);
        }
    }
    if let Some(backoff) = &effective.backoff {
        backoff.steps.iter().for_each(|step| duration("backoff.steps", *step, millisecond));
        duration("backoff.quiet", backoff.quiet, millisecond);
        if let Some(round) = backoff.round {
            duration("backoff.round", round, millisecond);
        }
    }
    if let Some(alert) = effective.alert {
        duration("alert.within", alert.within, millisecond);
    }
    if let Some(backoff) = &effective.backoff
        && !(1..=127).contains(&backoff.steps.len())
    {
        wrong("backoff.steps", format!("there are 1 to 127 steps, not {}", backoff.steps.len()));
    }
    if let Some(alert) = effective.alert
        && !(1..=crate::notes::Alert::MOST).contains(&alert.violations)
    {
        let most = crate::notes::Alert::MOST;
        wrong("alert.violations", format!("{} is not within 1 and {most}", alert.violations));
    }
    problems
}
