//! Decisions, and what else is told in numbers, in the scratch array that JavaScript reads.
//!
//! ```text
//! 0 flags  1 reason  2 would_deny  3 attach  4 limit  5 remaining  6 retry_after  7 reset_after
//! 8, 9 made at (two halves)  10 how many limits, and for each:
//! name, max, window (seconds), remaining, reset after, more after
//! ```
//!
//! Texts are told by their number, times in milliseconds, and -1 is none. `lib/decision.js` reads the same.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use policy::bindings::{DecisionSink, DecisionView, Facts};
use policy::{Budget, LimitLeft, Recorded, Rule, Style};

use crate::failure::Failure;
use crate::js::{Result, Scope};
use crate::surface::Surface;

const HEAD: usize = 11;
const EACH: usize = 6;
const NONE: f64 = -1.0;

/// A rule, and the numbers of its limits' names.
pub(crate) struct RuleAt {
    pub(crate) rule: Rule,
    names: RefCell<Vec<(Box<str>, u32)>>,
}

pub(crate) fn ms(duration: Duration) -> f64 {
    // The compiler sees that this undoes `Duration::from_millis`: one instruction is left. To make a double of
    // 128 bits takes a call, and of 64 unsigned ones a branch. No time of a limiter needs the 64th.
    duration.as_millis() as i64 as f64
}

fn or_none(number: Option<u64>) -> f64 {
    number.map_or(NONE, |number| number as f64)
}

impl RuleAt {
    pub(crate) fn new(rule: Rule) -> RuleAt {
        RuleAt { rule, names: RefCell::default() }
    }

    /// The number of a limit's name, most likely the one at this place.
    #[inline]
    fn name(&self, scope: Scope<'_>, surface: &Surface, at: usize, name: &str) -> Result<f64> {
        match self.names.borrow().get(at) {
            Some((known, number)) if **known == *name => return Ok(f64::from(*number)),
            _ => {}
        }
        self.learn(scope, surface, at, name)
    }

    #[cold]
    fn learn(&self, scope: Scope<'_>, surface: &Surface, at: usize, name: &str) -> Result<f64> {
        let number = surface.text(scope, name)?;
        let mut names = self.names.borrow_mut();
        names.truncate(at);
        if names.len() == at {
            names.push((name.into(), number));
        }
        Ok(f64::from(number))
    }

    /// Writes a decision down.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        scope: Scope<'_>,
        surface: &Surface,
        view: &DecisionView<'_>,
    ) -> Result<()> {
        let text = |text: Option<&str>| match text {
            None => Ok(NONE),
            Some(text) => surface.text(scope, text).map(f64::from),
        };
        let attach = view.attach().map(|value| value.to_string());
        let (reason, would) = (text(view.reason())?, text(view.would_deny())?);
        let attach = text(attach.as_deref())?;
        let flags = u8::from(view.allowed)
            | u8::from(view.warning) << 1
            | u8::from(view.alert) << 2
            | u8::from(view.notify) << 3;
        let mut count = 0;
        for (index, left) in view.limits().enumerate() {
            let name = self.name(scope, surface, index, left.name)?;
            let numbers: [f64; EACH] = [
                name,
                left.max as f64,
                left.window_seconds as f64,
                left.remaining as f64,
                ms(left.reset_after),
                left.more_after.map_or(NONE, ms),
            ];
            surface.write(HEAD + EACH * index, &numbers);
            count += 1;
        }
        surface.write(
            0,
            &[
                f64::from(flags),
                reason,
                would,
                attach,
                or_none(view.limit),
                or_none(view.remaining),
                or_none(view.retry_after_ms),
                view.reset_after_ms as f64,
                (view.at >> 32) as f64,
                (view.at & 0xffff_ffff) as f64,
                f64::from(count),
            ],
        );
        Ok(())
    }

    /// The header fields of the decision that JavaScript has put back in the scratch array.
    pub(crate) fn headers(&self, surface: &Surface, style: &str) -> Result<Vec<(String, String)>> {
        let style = match style {
            "both" => Style::Both,
            "legacy" => Style::Legacy,
            "ietf" => Style::Ietf,
            other => {
                let message = format!("the style of headers is legacy, ietf or both, not {other}");
                return Err(Failure::range(message));
            }
        };
        let scratch = surface.read();
        let count = scratch[10] as usize;
        let at = |index: usize| &scratch[HEAD + EACH * index..][..EACH];
        let name = |index| surface.text_of(at(index)[0]).unwrap_or_default();
        let names: Vec<Rc<str>> = (0..count).map(name).collect();
        let left = |index: usize| LimitLeft {
            name: &names[index],
            max: at(index)[1] as u64,
            window_seconds: at(index)[2] as u64,
            remaining: at(index)[3] as u64,
            reset_after: time(at(index)[4]).unwrap_or_default(),
            more_after: time(at(index)[5]),
        };
        let limits: Vec<LimitLeft<'_>> = (0..count).map(left).collect();
        let reason = surface.text_of(scratch[1]);
        let facts = Facts {
            allowed: scratch[0] as u8 & 1 == 1,
            reason: reason.as_deref(),
            limit: number(scratch[4]),
            remaining: number(scratch[5]),
            retry_after: time(scratch[6]),
            reset_after: time(scratch[7]).unwrap_or_default(),
            at: (scratch[8] as u64) << 32 | scratch[9] as u64,
            limits: &limits,
        };
        Ok(facts.headers(&self.rule, style))
    }
}

/// Where a decision of a rule is to be written.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a, 's> {
    pub(crate) rule: &'a RuleAt,
    pub(crate) scope: Scope<'s>,
    pub(crate) surface: &'a Surface,
}

impl DecisionSink for Written<'_, '_> {
    type Output = Result<()>;
    #[inline(always)]
    fn accept(self, view: &DecisionView<'_>) -> Result<()> {
        self.rule.write(self.scope, self.surface, view)
    }
}

fn number(number: f64) -> Option<u64> {
    (number >= 0.0).then_some(number as u64)
}

fn time(ms: f64) -> Option<Duration> {
    number(ms).map(Duration::from_millis)
}

pub(crate) fn write_recorded(surface: &Surface, recorded: &Recorded) {
    surface.write(
        0,
        &[
            recorded.used as f64,
            recorded.limit as f64,
            recorded.remaining as f64,
            ms(recorded.reset_after),
        ],
    );
}

pub(crate) fn write_budget(surface: &Surface, budget: &Budget) {
    surface.write(
        0,
        &[
            budget.spent as f64,
            budget.remaining as f64,
            f64::from(budget.over),
            f64::from(budget.over_per_hit),
            ms(budget.reset_after),
        ],
    );
}
