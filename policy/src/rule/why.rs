//! Why a call is judged as it is: each step of the judgement, and where its limits come from.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::NEVER;

use crate::config::policy::{Match, Mode};
use crate::decision::Decision;
use crate::error::Error;
use crate::judge::Op;
use crate::judge::penalty::Running;
use crate::key::{Call, Parts};
use crate::rule::{Rule, each_status};
use crate::snapshot::source::Source;
use crate::snapshot::{Layers, Resolved, Snapshot};
use crate::store::runtime::mode_name;
use crate::time::Day;

/// What a step of the judgement came to.
///
/// ```
/// assert_eq!(tidegate::Outcome::Deny.as_str(), "deny");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The rule has no such thing.
    None,
    /// It stands in nobody's way.
    Pass,
    /// It allows the call, uncounted, and ends the judgement.
    Allow,
    /// It refuses the call. The first step that does is the decision's reason.
    Deny,
}

impl Outcome {
    /// `none`, `pass`, `allow` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Pass => "pass",
            Outcome::Allow => "allow",
            Outcome::Deny => "deny",
        }
    }
}

/// What a step goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepValue {
    /// Nothing.
    #[default]
    None,
    /// The mode, or why a key is blocked.
    Text(String),
    /// A limit's size, or a day's budget.
    Number(u64),
    /// A cooldown.
    Time(Duration),
    /// The exemption that matches.
    Match(Match),
}

/// One step of the judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// `mode`, `exempt`, `blocked`, `cost`, `budget`, `cooldown`, `backoff`, or `limit`, once for
    /// each.
    pub step: &'static str,
    /// What it came to.
    pub outcome: Outcome,
    /// The limit that it is about.
    pub limit: Option<String>,
    /// What it goes by: the mode, the exemption that matches, why a key is blocked, a limit's size,
    /// the day's budget, a cooldown.
    pub value: StepValue,
    /// Who stated that value: `rule`, `default` (set at run time), `when[0]`, `override` or `call`;
    /// of a mode, an exemption and a block `change` if it was set at run time.
    pub source: Option<String>,
    /// When it ends, since the start of 1970, if it refuses the call and ends.
    pub until: Option<Duration>,
    /// Who made the change that it comes from, if that is known.
    pub by: Option<String>,
}

impl Step {
    fn new(step: &'static str, outcome: Outcome) -> Step {
        let (limit, value, source, until, by) = (None, StepValue::None, None, None, None);
        Step { step, outcome, limit, value, source, until, by }
    }

    fn stating(self, value: StepValue, source: Source) -> Step {
        Step { value, source: Some(source.text()), ..self }
    }

    fn of(self, limit: &str) -> Step {
        Step { limit: Some(limit.to_string()), ..self }
    }

    fn until(self, until: Option<Duration>) -> Step {
        Step { until, ..self }
    }

    /// As a map, for surfaces that speak JSON; times in milliseconds.
    pub fn to_value(&self) -> Value {
        let ms = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let value = match &self.value {
            StepValue::None => Value::Null,
            StepValue::Text(text) => json!(text),
            StepValue::Number(number) => json!(number),
            StepValue::Time(time) => json!(ms(time)),
            StepValue::Match(matches) => matches.to_value(),
        };
        json!({
            "step": self.step,
            "outcome": self.outcome.as_str(),
            "limit": self.limit,
            "value": value,
            "source": self.source,
            "until_ms": self.until.as_ref().map(ms),
            "by": self.by,
        })
    }
}

/// Why a call is judged as it is; see [`Rule::why`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// What a [`peek`](Rule::peek) gets.
    pub decision: Decision,
    /// In the order of judgement. A step that allows is the last; after one that refuses, the rest
    /// is told too.
    pub steps: Vec<Step>,
}

impl Why {
    /// As a map, for surfaces that speak JSON; times in milliseconds.
    ///
    /// ```
    /// let why = tidegate::Limiter::new("3/min").unwrap().why("alice", 1).unwrap().to_value();
    /// assert_eq!(why["steps"][0]["value"], "enforce");
    /// ```
    pub fn to_value(&self) -> Value {
        let told = self.decision.view();
        json!({
            "decision": {
                "allowed": told.allowed,
                "rule": self.decision.rule(),
                "reason": told.reason(),
                "limit": told.limit,
                "remaining": told.remaining,
                "retry_after_ms": told.retry_after_ms,
                "reset_after_ms": told.reset_after_ms,
                "warning": told.warning,
                "alert": told.alert,
                "notify": told.notify,
                "would_deny": told.would_deny(),
                "attach": told.attach(),
                "limits": told.limits().map(|left| left.to_value()).collect::<Vec<_>>(),
            },
            "steps": self.steps.iter().map(Step::to_value).collect::<Vec<_>>(),
        })
    }
}

/// A call whose judgement is told of.
struct Explained<'s> {
    snapshot: &'s Snapshot,
    resolved: &'s Resolved<'s>,
    layers: Layers,
    /// Whether the call has a `max` of its own.
    max: bool,
    cost: u64,
    /// When it was judged.
    now: u64,
}

impl Explained<'_> {
    fn ends(&self, left: u64) -> Option<Duration> {
        let left = (left != NEVER).then(|| Duration::from_nanos(left))?;
        Some(self.snapshot.labels.dates.wall(self.now).saturating_add(left))
    }

    /// The step with the value that it goes by, who stated that, and who made the change if it was
    /// one.
    fn by(&self, step: Step, value: StepValue, source: Source) -> Step {
        let note = self.snapshot.note_of(source, self.layers, &self.resolved.subject);
        Step { by: note.and_then(|note| note.by), ..step.stating(value, source) }
    }

    fn name(&self, index: usize) -> &str {
        &self.snapshot.labels.limits[index]
    }

    fn mode(&self) -> Step {
        let mode = self.resolved.variant.effective.mode;
        let outcome = if mode == Mode::Off { Outcome::Allow } else { Outcome::Pass };
        let name = StepValue::Text(mode_name(mode).to_string());
        self.by(Step::new("mode", outcome), name, self.snapshot.mode_source(self.layers))
    }

    fn exempt(&self) -> Step {
        let all = self.snapshot.exempts_in_force();
        let own = &self.snapshot.config.exempt;
        match self.snapshot.exemption(&self.resolved.subject).and_then(|at| all.get(at)) {
            Some(matches) => {
                let source = if own.contains(matches) { Source::Rule } else { Source::Change };
                let by = self.snapshot.exempt_note(matches).and_then(|note| note.by);
                let value = StepValue::Match(matches.clone());
                Step { by, ..Step::new("exempt", Outcome::Allow).stating(value, source) }
            }
            None if all.is_empty() => Step::new("exempt", Outcome::None),
            None => Step::new("exempt", Outcome::Pass),
        }
    }

    fn blocked(&self) -> Step {
        let Some(note) = self.snapshot.block_of(&self.resolved.subject, self.now) else {
            return Step::new("blocked", Outcome::None);
        };
        let until = note.span.and_then(|span| self.ends(span.left(self.now)));
        let why = note.reason.clone().map_or(StepValue::None, StepValue::Text);
        let step = Step::new("blocked", Outcome::Deny).until(until).stating(why, Source::Change);
        Step { by: note.by.clone(), ..step }
    }

    fn size(&self, step: Step, index: usize) -> Step {
        let size = self.resolved.variant.params[index].size;
        let source = self.snapshot.size_source(self.layers, index, self.max);
        self.by(step.of(self.name(index)), StepValue::Number(size), source)
    }

    fn cost(&self) -> Step {
        let variant = &self.resolved.variant;
        match variant.smallest {
            None => Step::new("cost", Outcome::None),
            Some(index) if self.cost > variant.most_cost() => {
                self.size(Step::new("cost", Outcome::Deny), index)
            }
            Some(index) => self.size(Step::new("cost", Outcome::Pass), index),
        }
    }

    fn budget(&self) -> Step {
        let Some(budget) = &self.snapshot.config.budget else {
            return Step::new("budget", Outcome::None);
        };
        let day = Day::today(self.snapshot.tables.clock(), budget.reset_hour_utc);
        let whole = self.snapshot.whole_hash(&self.resolved.subject);
        let spent = self.snapshot.spent(whole).on(day.number);
        let step = match spent >= budget.daily {
            true => Step::new("budget", Outcome::Deny).until(self.ends(day.left_nanos())),
            false => Step::new("budget", Outcome::Pass),
        };
        step.stating(StepValue::Number(budget.daily), Source::Rule)
    }

    fn running(&self) -> Running {
        let (snapshot, subject) = (self.snapshot, &self.resolved.subject);
        let hash = || snapshot.penalty_hash(snapshot.whole_hash(subject), subject);
        let notes = snapshot.tables.penalties().and_then(|ledger| ledger.read(hash()));
        Running::read(notes.unwrap_or_default(), &self.resolved.variant, self.now)
    }

    fn cooldown(&self, running: &Running) -> Step {
        let params = &self.resolved.variant.params;
        if let Some(index) = running.cooling.filter(|_| running.cooldown > 0) {
            let length = StepValue::Time(Duration::from_nanos(params[index].cooldown));
            let source = self.snapshot.cooldown_source(self.layers, index);
            let step = Step::new("cooldown", Outcome::Deny).until(self.ends(running.cooldown));
            return self.by(step.of(self.name(index)), length, source);
        }
        let any = params.iter().any(|params| params.cooldown > 0);
        Step::new("cooldown", if any { Outcome::Pass } else { Outcome::None })
    }

    fn backoff(&self, running: &Running) -> Step {
        let enforced = self.resolved.variant.backoff.as_ref().is_some_and(|steps| steps.enforce);
        match running.enforced {
            0 if enforced => Step::new("backoff", Outcome::Pass),
            0 => Step::new("backoff", Outcome::None),
            left => Step::new("backoff", Outcome::Deny).until(self.ends(left)),
        }
    }

    fn limits(&self) -> impl Iterator<Item = Step> {
        let (snapshot, variant) = (self.snapshot, &self.resolved.variant);
        let hashes = snapshot.hashes(&self.resolved.subject);
        let statuses = each_status(snapshot, variant, Some(&hashes), |part, counts| {
            part.inspect(counts.of(self.cost), self.now)
        });
        (0..variant.params.len()).map(move |index| {
            let wait = statuses[index].wait;
            let step = match wait {
                0 => Step::new("limit", Outcome::Pass),
                _ => Step::new("limit", Outcome::Deny).until(self.ends(wait)),
            };
            self.size(step, index)
        })
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![self.mode()];
        if steps[0].outcome == Outcome::Allow {
            return steps;
        }
        steps.push(self.exempt());
        if steps[1].outcome == Outcome::Allow {
            return steps;
        }
        steps.push(self.blocked());
        let running = self.running();
        steps.extend([self.cost(), self.budget(), self.cooldown(&running), self.backoff(&running)]);
        steps.extend(self.limits());
        steps
    }
}

impl Rule {
    /// Why a hit would get what it would get: the judgement in order, each number with its source.
    /// Changes nothing.
    ///
    /// ```
    /// use tidegate::{LimitPatch, Outcome, Target};
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// let limits = vec![("1/h".into(), LimitPatch::max(2))];
    /// limiter.set_override(Target::key("alice"), limits).unwrap();
    /// assert!(limiter.hit("alice", 2).unwrap().allowed);
    /// let why = limiter.why("alice", 1).unwrap();
    /// let last = why.steps.last().unwrap();
    /// assert_eq!((last.step, last.outcome), ("limit", Outcome::Deny));
    /// assert_eq!(last.source.as_deref(), Some("override"));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::peek`].
    pub fn why<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Why, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let decision = self.decided(&snapshot, &call, cost, Op::Peek)?;
        let mut room = Parts::default();
        let resolved = snapshot.resolve(&call, &mut room)?;
        let layers = snapshot.layers_in_force(&resolved.subject);
        let max = call.max.is_some();
        let told = Explained {
            snapshot: &snapshot,
            resolved: &resolved,
            layers,
            max,
            cost,
            now: decision.at,
        };
        let steps = told.steps();
        Ok(Why { decision, steps })
    }
}
