//! What JavaScript holds on to: one external value for each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use policy::http::ProxyTrust;
use policy::{Limiter, ManualClock, Permit, Reservation};
use serde_json::Value as Json;

use crate::decision::RuleAt;
use crate::failure::Failure;
use crate::js::{Result, Scope, Value};
use crate::key::text;
use crate::wait::WaitingCalls;

/// Every external value of ours points to one of these, so that any of them can be asked what it
/// is.
#[expect(clippy::large_enum_variant, reason = "each handle is in a box of its own")]
pub(crate) enum Handle {
    Limiter(Limiter),
    Rule(Rc<RuleAt>, RefCell<WaitingCalls>),
    Reservation(Cell<Option<Reservation>>),
    Permit(Permit),
    Clock(ManualClock),
    Trust(ProxyTrust),
}

#[cold]
fn not(what: &str) -> Failure {
    Failure::argument(format!("this is not {what} of this package"))
}

impl Handle {
    /// What an argument of the call points to, which lives as long as the call.
    pub(crate) fn of<'c>(scope: Scope<'c>, value: Value) -> Result<&'c Handle> {
        let data = scope.external(value).ok_or_else(|| not("a handle"))?;
        // SAFETY: only the package's own code calls with external values, and only with those that
        // we made.
        Ok(unsafe { &*data.cast::<Handle>() })
    }
    pub(crate) fn limiter(&self) -> Result<&Limiter> {
        let Handle::Limiter(limiter) = self else { return Err(not("a limiter")) };
        Ok(limiter)
    }
    pub(crate) fn rule(&self) -> Result<&Rc<RuleAt>> {
        let Handle::Rule(rule, _) = self else { return Err(not("a rule")) };
        Ok(rule)
    }
    pub(crate) fn line(&self) -> Result<&RefCell<WaitingCalls>> {
        let Handle::Rule(_, line) = self else { return Err(not("a rule")) };
        Ok(line)
    }
    pub(crate) fn reservation(&self) -> Result<&Cell<Option<Reservation>>> {
        let Handle::Reservation(reservation) = self else { return Err(not("a reservation")) };
        Ok(reservation)
    }
    pub(crate) fn permit(&self) -> Result<&Permit> {
        let Handle::Permit(permit) = self else { return Err(not("a permit")) };
        Ok(permit)
    }
    pub(crate) fn clock(&self) -> Result<&ManualClock> {
        let Handle::Clock(clock) = self else { return Err(not("a clock")) };
        Ok(clock)
    }
    pub(crate) fn trust(&self) -> Result<&ProxyTrust> {
        let Handle::Trust(trust) = self else { return Err(not("a proxy trust")) };
        Ok(trust)
    }
}

/// Reads what JavaScript wrote as JSON.
pub(crate) fn json_of(scope: Scope<'_>, value: Value) -> Result<Json> {
    let text = text(scope, value, "JSON")?;
    serde_json::from_str(&text).map_err(|error| Failure::argument(format!("no JSON: {error}")))
}
