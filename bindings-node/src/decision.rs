//! Decisions and other answers of numbers, on the scratch array that JavaScript reads.
//!
//! Each kind of answer is a list of fields, stated here once: the order is that on the array.
//! [`layout`] hands the names to JavaScript, and `lib/scratch.js` makes accessors of them.
//!
//! A decision stands first, then the fields of each of its limits. A text stands as its number in
//! the list of texts, a time in milliseconds, yes as 1, and none as -1.

use std::cell::RefCell;
use std::time::Duration;

use policy::bindings::{DecisionSink, DecisionView, HeaderTexts, ReadAttributes};
use policy::{Budget, Recorded, Rule};

use crate::js::{Result, Scope};
use crate::surface::{Add, Surface};

const NONE: f64 = -1.0;

/// Declares the fields of an answer, in the order in which they stand on the scratch array.
macro_rules! fields {
    ($answer:ident { $($(#[$about:meta])* $field:ident,)* }) => {
        struct $answer { $($(#[$about])* $field: f64,)* }

        impl $answer {
            const NAMES: &[&str] = &[$(stringify!($field)),*];
            const LEN: usize = Self::NAMES.len();
        }

        impl From<$answer> for [f64; $answer::LEN] {
            #[inline(always)]
            fn from(answer: $answer) -> Self {
                [$(answer.$field),*]
            }
        }

        impl From<[f64; $answer::LEN]> for $answer {
            fn from([$($field),*]: [f64; $answer::LEN]) -> Self {
                $answer { $($field),* }
            }
        }
    };
}

/// What each bit of a decision's flags says, from the lowest on.
const FLAGS: &[&str] = &["allowed", "warning", "alert", "notify"];

fields! {
    DecisionFields {
        /// Bits, as [`FLAGS`] has them.
        flags,
        reason,
        would_deny,
        attach,
        limit,
        remaining,
        retry_after_ms,
        reset_after_ms,
        /// When it was made: the upper half of the nanoseconds, as 64 bits fit in no double.
        at_high,
        /// The lower half.
        at_low,
        /// How many limits follow.
        limits,
    }
}

fields! {
    LimitFields { name, max, window_seconds, remaining, reset_after_ms, more_after_ms, }
}

fields! {
    RecordedFields { used, limit, remaining, reset_after_ms, }
}

fields! {
    BudgetFields { spent, remaining, over, over_per_hit, reset_after_ms, }
}

fields! {
    DatedFields {
        /// Seconds of the wall clock.
        reset_at,
        limit_name,
        remaining_name,
        reset_name,
    }
}

/// Where the fields of a limit stand.
fn place_of(limit: usize) -> usize {
    DecisionFields::LEN + LimitFields::LEN * limit
}

/// Gives JavaScript the names of all fields, in their order: `{ decision: ['allowed', …], … }`.
pub(crate) fn layout(add: Add<'_>, scope: Scope<'_>) -> Result<()> {
    let layout = scope.object()?;
    let lists = [
        (c"decision", DecisionFields::NAMES),
        (c"limit", LimitFields::NAMES),
        (c"dated", DatedFields::NAMES),
        (c"recorded", RecordedFields::NAMES),
        (c"budget", BudgetFields::NAMES),
        (c"flags", FLAGS),
    ];
    for (list, names) in lists {
        let names: Vec<String> = names.iter().map(|name| camel_case(name)).collect();
        let names = scope.array_of_texts(names.iter().map(String::as_str))?;
        scope.set(layout, list, names)?;
    }
    add(c"layout", layout)
}

/// `retry_after_ms` as `retryAfterMs`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| camel + &word[..1].to_uppercase() + &word[1..])
}

/// A rule, and what JavaScript knows of it.
pub(crate) struct RuleAt {
    pub(crate) rule: Rule,
    /// The numbers of its limits' names.
    names: RefCell<Vec<(Box<str>, u32)>>,
    /// The attributes of which JavaScript hands over the values.
    pub(crate) read: RefCell<ReadAttributes>,
    /// What its header fields have in common, and the numbers of their names.
    headers: RefCell<Option<(HeaderTexts, [u32; 3])>>,
}

pub(crate) fn ms(duration: Duration) -> f64 {
    // The compiler sees that this undoes `Duration::from_millis`: one instruction is left. To make
    // a double of 128 bits takes a call, and of 64 unsigned ones a branch. No time of a limiter
    // needs the 64th.
    duration.as_millis() as i64 as f64
}

fn or_none(number: Option<u64>) -> f64 {
    number.map_or(NONE, |number| number as f64)
}

impl RuleAt {
    pub(crate) fn new(rule: Rule) -> RuleAt {
        RuleAt {
            rule,
            names: RefCell::default(),
            read: RefCell::default(),
            headers: RefCell::default(),
        }
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
        let (reason, would_deny) = (text(view.reason())?, text(view.would_deny())?);
        let attach = text(attach.as_deref())?;
        let mut count = 0;
        for (index, left) in view.limits().enumerate() {
            let name = self.name(scope, surface, index, left.name)?;
            let fields = LimitFields {
                name,
                max: left.max as f64,
                window_seconds: left.window_seconds as f64,
                remaining: left.remaining as f64,
                reset_after_ms: ms(left.reset_after),
                more_after_ms: left.more_after.map_or(NONE, ms),
            };
            surface.write(place_of(index), &<[f64; _]>::from(fields));
            count += 1;
        }
        let fields = DecisionFields {
            flags: f64::from(flags(view)),
            reason,
            would_deny,
            attach,
            limit: or_none(view.limit),
            remaining: or_none(view.remaining),
            retry_after_ms: or_none(view.retry_after_ms),
            reset_after_ms: view.reset_after_ms as f64,
            at_high: (view.at >> 32) as f64,
            at_low: (view.at & 0xffff_ffff) as f64,
            limits: f64::from(count),
        };
        surface.write(0, &<[f64; _]>::from(fields));
        Ok(())
    }

    /// Dates the reset of a decision, and finds the names of its header fields. JavaScript has put
    /// the decision's time and what is left until the reset in the scratch array.
    pub(crate) fn date(&self, scope: Scope<'_>, surface: &Surface) -> Result<()> {
        let decision = DecisionFields::from(surface.read());
        let at = (decision.at_high as u64) << 32 | decision.at_low as u64;
        let after = Duration::from_millis(decision.reset_after_ms as u64);
        let mut known = self.headers.borrow_mut();
        if !known.as_ref().is_some_and(|(texts, _)| texts.are_of(&self.rule)) {
            let texts = HeaderTexts::of(&self.rule);
            let mut numbers = [0; 3];
            for (number, name) in numbers.iter_mut().zip(texts.names()) {
                *number = surface.text(scope, name)?;
            }
            *known = Some((texts, numbers));
        }
        let Some((texts, [limit, remaining, reset])) = &*known else { return Ok(()) };
        let fields = DatedFields {
            reset_at: texts.reset_at(at, after) as f64,
            limit_name: f64::from(*limit),
            remaining_name: f64::from(*remaining),
            reset_name: f64::from(*reset),
        };
        surface.write(0, &<[f64; _]>::from(fields));
        Ok(())
    }
}

/// The bits that [`FLAGS`] names.
#[inline(always)]
fn flags(view: &DecisionView<'_>) -> u8 {
    let flags = [view.allowed, view.warning, view.alert, view.notify];
    flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u8::from(flag))
}

/// Where a decision of a rule is to be written.
#[derive(Clone, Copy)]
pub(crate) struct DecisionTarget<'a, 's> {
    pub(crate) rule: &'a RuleAt,
    pub(crate) scope: Scope<'s>,
    pub(crate) surface: &'a Surface,
}

impl DecisionSink for DecisionTarget<'_, '_> {
    type Output = Result<()>;
    #[inline(always)]
    fn accept(self, view: &DecisionView<'_>) -> Result<()> {
        self.rule.write(self.scope, self.surface, view)
    }
}

pub(crate) fn write_recorded(surface: &Surface, recorded: &Recorded) {
    let fields = RecordedFields {
        used: recorded.used as f64,
        limit: recorded.limit as f64,
        remaining: recorded.remaining as f64,
        reset_after_ms: ms(recorded.reset_after),
    };
    surface.write(0, &<[f64; _]>::from(fields));
}

pub(crate) fn write_budget(surface: &Surface, budget: &Budget) {
    let fields = BudgetFields {
        spent: budget.spent as f64,
        remaining: budget.remaining as f64,
        over: f64::from(budget.over),
        over_per_hit: f64::from(budget.over_per_hit),
        reset_after_ms: ms(budget.reset_after),
    };
    surface.write(0, &<[f64; _]>::from(fields));
}
