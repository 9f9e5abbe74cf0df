//! What is done with a rule.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::Duration;

use policy::bindings::{DecisionSink, Got, Waiting, Want};
use policy::{Error, Permit, Reservation};

use crate::decision::{DecisionTarget, RuleAt, ms, write_budget, write_recorded};
use crate::failure::Failure;
use crate::handle::Handle;
use crate::js::{Result, Scope, Value};
use crate::json;
use crate::key::{
    CallShape, MOST_TEXTS, count, optional_text, owned_call, with_any_key, with_call,
    with_plain_key, with_spread,
};
use crate::surface::{Add, NativeCall, NativeResult, Surface, bind};
use crate::wait::WaitingCalls;

/// Judges a call by its rule, and has the decision written down: `(key, cost, max, attributes)`.
/// `true` as of [`spread`].
#[inline(always)]
fn decide(
    call: NativeCall<'_, Rc<RuleAt>>,
    [key, cost, max, attributes]: [Value; 4],
    judge: impl FnOnce(&policy::Call<'_>, u64, DecisionTarget<'_, '_>) -> Result<()>,
) -> NativeResult {
    let NativeCall { scope, surface, it: rule } = call;
    let cost = cost_of(scope, cost)?;
    if is_outdated(scope, rule, attributes)? {
        return scope.boolean(true).map(Some);
    }
    with_call(scope, [key, max, attributes], |one| {
        judge(one, cost, DecisionTarget { rule, scope, surface })
    })?;
    Ok(None)
}

/// Whether attributes were left out, and wrongly so: the rule reads others than JavaScript knew.
/// A number in place of the attributes says that none of them was to be read.
#[inline]
fn is_outdated(scope: Scope<'_>, rule: &RuleAt, attributes: Value) -> Result<bool> {
    if attributes.is_null() || scope.double(attributes).is_none() {
        return Ok(false);
    }
    Ok(rule.read.borrow_mut().is_renewed(&rule.rule)?)
}

/// The same, with the texts of the call as arguments of their own: `(shape, cost, max, ...texts)`.
/// `true` if nothing was judged, because the rule reads other attributes than JavaScript knew.
#[inline(always)]
fn spread(
    call: &NativeCall<'_, Rc<RuleAt>>,
    [shape, cost, max, texts @ ..]: [Value; 3 + MOST_TEXTS],
    judge: impl FnOnce(&policy::Call<'_>, u64) -> NativeResult,
) -> NativeResult {
    let (scope, rule) = (call.scope, call.it);
    let (shape, cost) = (CallShape::read(scope, shape), cost_of(scope, cost)?);
    if !shape.has_attributes {
        return with_spread(scope, (shape, max), texts, &[], |one| judge(one, cost));
    }
    let mut read = rule.read.borrow_mut();
    if read.is_renewed(&rule.rule)? {
        return scope.boolean(true).map(Some);
    }
    with_spread(scope, (shape, max), texts, read.names(), |one| judge(one, cost))
}

#[inline]
fn cost_of(scope: Scope<'_>, cost: Value) -> Result<u64> {
    if cost.is_null() {
        return Ok(1);
    }
    Ok(count(scope, cost, "cost")?.unwrap_or(1))
}

/// A whole number that must be there.
fn given_count(scope: Scope<'_>, value: Value, what: &str) -> Result<u64> {
    let missing = || Failure::argument(format!("{what} is not a number"));
    count(scope, value, what)?.ok_or_else(missing)
}

/// The calls that must be fast, bound to their rule.
fn hot(scope: Scope<'_>, surface: &Rc<Surface>, rule: &Rc<RuleAt>) -> Result<Value> {
    let object = scope.object()?;
    let allow = bind(
        scope,
        surface,
        rule.clone(),
        |call: NativeCall<'_, Rc<RuleAt>>, [key, left_out]: [Value; 2]| {
            if is_outdated(call.scope, call.it, left_out)? {
                return call.scope.boolean(true).map(Some);
            }
            let (rule, mut buffer) = (&call.it.rule, [const { MaybeUninit::uninit() }; _]);
            let allowed = match call.scope.short_ascii(key, &mut buffer) {
                Some(text) => rule.allow(text)?,
                None => with_any_key(call.scope, key, |one| Ok(rule.allow(*one)?))?,
            };
            // A yes is `undefined`, which need not be asked for.
            if allowed { Ok(None) } else { call.scope.boolean(false).map(Some) }
        },
    )?;
    scope.set(object, c"allow", allow)?;
    let hit = bind(scope, surface, rule.clone(), |call: NativeCall<'_, Rc<RuleAt>>, values| {
        decide(call, values, |one, cost, to| to.rule.rule.hit_into(one, cost, to)?)
    })?;
    scope.set(object, c"hit", hit)?;
    let check = bind(scope, surface, rule.clone(), |call: NativeCall<'_, Rc<RuleAt>>, values| {
        decide(call, values, |one, cost, to| to.accept(&to.rule.rule.check(*one, cost)?.view()))
    })?;
    scope.set(object, c"check", check)?;
    let peek = bind(scope, surface, rule.clone(), |call: NativeCall<'_, Rc<RuleAt>>, values| {
        decide(call, values, |one, cost, to| to.accept(&to.rule.rule.peek(*one, cost)?.view()))
    })?;
    scope.set(object, c"peek", peek)?;
    let record = bind(scope, surface, rule.clone(), |call: NativeCall<'_, Rc<RuleAt>>, values| {
        let [key, cost, max, attributes] = values;
        let cost = cost_of(call.scope, cost)?;
        if is_outdated(call.scope, call.it, attributes)? {
            return call.scope.boolean(true).map(Some);
        }
        let recorded = with_call(call.scope, [key, max, attributes], |one| {
            Ok(call.it.rule.record(*one, cost)?)
        })?;
        write_recorded(call.surface, &recorded);
        Ok(None)
    })?;
    scope.set(object, c"record", record)?;
    Ok(object)
}

/// The same calls, as [`spread`] takes them. JavaScript asks for them when it first needs one: most
/// rules need none, and each function takes memory.
fn spread_out(scope: Scope<'_>, surface: &Rc<Surface>, rule: &Rc<RuleAt>) -> Result<Value> {
    let object = scope.object()?;
    type OnRule<'c> = NativeCall<'c, Rc<RuleAt>>;
    macro_rules! spread_out {
        ($($name:literal: $judge:expr;)*) => { $(
            let function = bind(scope, surface, rule.clone(), |call: OnRule<'_>, values| {
                let to = DecisionTarget { rule: call.it, scope: call.scope, surface: call.surface };
                spread(&call, values, |one, cost| $judge(to, one, cost))
            })?;
            scope.set(object, $name, function)?;
        )* };
    }
    spread_out! {
        c"allow": |to: DecisionTarget<'_, '_>, one: &policy::Call<'_>, _| {
            let allowed = to.rule.rule.allow(*one)?;
            if allowed { Ok(None) } else { to.scope.boolean(false).map(Some) }
        };
        c"hit": |to: DecisionTarget<'_, '_>, one: &policy::Call<'_>, cost| {
            to.rule.rule.hit_into(one, cost, to)?.map(|()| None)
        };
        c"check": |to: DecisionTarget<'_, '_>, one: &policy::Call<'_>, cost| {
            to.accept(&to.rule.rule.check(*one, cost)?.view()).map(|()| None)
        };
        c"peek": |to: DecisionTarget<'_, '_>, one: &policy::Call<'_>, cost| {
            to.accept(&to.rule.rule.peek(*one, cost)?.view()).map(|()| None)
        };
        c"record": |to: DecisionTarget<'_, '_>, one: &policy::Call<'_>, cost| {
            write_recorded(to.surface, &to.rule.rule.record(*one, cost)?);
            Ok(None)
        };
    }
    Ok(object)
}

/// A rule for JavaScript: its handle, its name, and the calls that must be fast.
pub(crate) fn made(scope: Scope<'_>, surface: &Rc<Surface>, rule: policy::Rule) -> Result<Value> {
    let name = scope.text(&rule.name())?;
    let rule = Rc::new(RuleAt::new(rule));
    let object = hot(scope, surface, &rule)?;
    let handle = Handle::Rule(rule, RefCell::default());
    scope.set(object, c"handle", scope.owner(Box::new(handle))?)?;
    scope.set(object, c"name", name)?;
    Ok(object)
}

/// A call of something that is not hot: on the rule that its first argument is.
type Cold<'c> = NativeCall<'c, ()>;

fn rule<'c>(call: &Cold<'c>, handle: Value) -> Result<&'c Rc<RuleAt>> {
    Handle::of(call.scope, handle)?.rule()
}

fn line<'c>(call: &Cold<'c>, handle: Value) -> Result<&'c RefCell<WaitingCalls>> {
    Handle::of(call.scope, handle)?.line()
}

/// `(rule, key, number, max, attributes)`, for what takes a key.
fn keyed<R>(
    call: &Cold<'_>,
    [handle, key, max, attributes]: [Value; 4],
    act: impl FnOnce(&policy::Rule, policy::Call<'_>) -> std::result::Result<R, Error>,
) -> Result<R> {
    let rule = rule(call, handle)?;
    with_call(call.scope, [key, max, attributes], |one| Ok(act(&rule.rule, *one)?))
}

/// Plain keys, one behind the other.
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn read(scope: Scope<'_>, list: Value) -> Result<Keys> {
        let len = scope.array_len(list)?;
        let len = len.ok_or_else(|| Failure::argument("keys is not an array"))?;
        let mut keys = Keys { bytes: Vec::new(), ends: Vec::new() };
        for index in 0..len {
            with_plain_key(scope, scope.element(list, index)?, |key| {
                keys.bytes.extend_from_slice(key);
            })?;
            keys.ends.push(keys.bytes.len());
        }
        Ok(keys)
    }

    fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end]).collect()
    }
}

/// The least that a call with a key can cost: it is copied to the stack, and that is all.
#[cfg(feature = "bench")]
pub(crate) unsafe extern "C" fn noop(
    env: napi_sys::napi_env,
    info: napi_sys::napi_callback_info,
) -> Value {
    // SAFETY: this is the call.
    let scope = unsafe { Scope::new(env) };
    // SAFETY: as before.
    let Some(([key], _)) = (unsafe { scope.arguments::<1>(info) }) else {
        return std::ptr::null_mut();
    };
    std::hint::black_box(scope.copy_text(key));
    std::ptr::null_mut()
}

pub(crate) fn functions(add: Add<'_>, scope: Scope<'_>, surface: &Rc<Surface>) -> Result<()> {
    // SAFETY: it reads no data.
    #[cfg(feature = "bench")]
    add(c"noop", unsafe { scope.function(noop, Box::new(())) }?)?;
    macro_rules! functions {
        ($($name:literal: $body:expr;)*) => { $(add($name, bind(scope, surface, (), $body)?)?;)* };
    }
    functions! {
        c"spread": |call: Cold<'_>, [handle]: [Value; 1]| {
            spread_out(call.scope, call.surface, rule(&call, handle)?).map(Some)
        };
        // Dates a decision that JavaScript has put back in the scratch array.
        c"date": |call: Cold<'_>, [handle]: [Value; 1]| {
            rule(&call, handle)?.date(call.scope, call.surface)?;
            Ok(None)
        };
        // The names of the attributes that the rule reads, as the last call found them.
        c"readAttributes": |call: Cold<'_>, [handle]: [Value; 1]| {
            let read = rule(&call, handle)?.read.borrow();
            call.scope.array_of_texts(read.names().iter().map(String::as_str)).map(Some)
        };
        c"refund": |call: Cold<'_>, [handle, key, cost, max, attributes]: [Value; 5]| {
            let cost = cost_of(call.scope, cost)?;
            keyed(&call, [handle, key, max, attributes], |rule, one| rule.refund(one, cost))?;
            Ok(None)
        };
        c"reset": |call: Cold<'_>, [handle, key, _, max, attributes]: [Value; 5]| {
            keyed(&call, [handle, key, max, attributes], |rule, one| rule.reset(one))?;
            Ok(None)
        };
        c"isLimited": |call: Cold<'_>, [handle, key, _, max, attributes]: [Value; 5]| {
            let limited = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.is_limited(one)
            })?;
            call.scope.boolean(limited).map(Some)
        };
        c"spend": |call: Cold<'_>, [handle, key, amount, max, attributes]: [Value; 5]| {
            let amount = given_count(call.scope, amount, "amount")?;
            let budget = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.spend(one, amount)
            })?;
            write_budget(call.surface, &budget);
            Ok(None)
        };
        c"budget": |call: Cold<'_>, [handle, key, _, max, attributes]: [Value; 5]| {
            let budget = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.budget(one)
            })?;
            write_budget(call.surface, &budget);
            Ok(None)
        };
        c"stats": |call: Cold<'_>, [handle, key, _, max, attributes]: [Value; 5]| {
            let stats = keyed(&call, [handle, key, max, attributes], |rule, one| rule.stats(one))?;
            let text = stats.map_or("null".to_string(), |stats| json::stats(&stats).to_string());
            call.scope.text(&text).map(Some)
        };
        // The decision in the scratch array, the steps as JSON.
        c"why": |call: Cold<'_>, [handle, key, cost, max, attributes]: [Value; 5]| {
            let cost = cost_of(call.scope, cost)?;
            let why = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.why(one, cost)
            })?;
            rule(&call, handle)?.write(call.scope, call.surface, &why.decision.view())?;
            call.scope.text(&json::steps(&why.steps).to_string()).map(Some)
        };
        c"reserve": |call: Cold<'_>, [handle, key, estimate, max, attributes]: [Value; 5]| {
            let estimate = given_count(call.scope, estimate, "estimate")?;
            let reserved = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.reserve(one, estimate)
            })?;
            rule(&call, handle)?.write(call.scope, call.surface, &reserved.decision().view())?;
            call.scope.owner(Box::new(Handle::Reservation(Cell::new(Some(reserved))))).map(Some)
        };
        c"permit": |call: Cold<'_>, [handle, key, _, max, attributes]: [Value; 5]| {
            let permit = keyed(&call, [handle, key, max, attributes], |rule, one| {
                rule.permit(one)
            })?;
            rule(&call, handle)?.write(call.scope, call.surface, &permit.decision().view())?;
            call.scope.owner(Box::new(Handle::Permit(permit))).map(Some)
        };
        c"settle": |call: Cold<'_>, [handle, actual]: [Value; 2]| {
            let actual = given_count(call.scope, actual, "actual")?;
            let reserved = Handle::of(call.scope, handle)?.reservation()?.take();
            let settled = reserved.map(|reserved| reserved.settle(actual));
            call.scope.boolean(settled.is_some()).map(Some)
        };
        c"cancel": |call: Cold<'_>, [handle]: [Value; 1]| {
            let reserved = Handle::of(call.scope, handle)?.reservation()?.take();
            call.scope.boolean(reserved.map(Reservation::cancel).is_some()).map(Some)
        };
        c"release": |call: Cold<'_>, [handle]: [Value; 1]| {
            let permit: &Permit = Handle::of(call.scope, handle)?.permit()?;
            call.scope.boolean(permit.release()).map(Some)
        };
        c"renew": |call: Cold<'_>, [handle]: [Value; 1]| {
            call.scope.boolean(Handle::of(call.scope, handle)?.permit()?.renew()).map(Some)
        };
        c"isHeld": |call: Cold<'_>, [handle]: [Value; 1]| {
            call.scope.boolean(Handle::of(call.scope, handle)?.permit()?.is_held()).map(Some)
        };
        c"hasPermits": |call: Cold<'_>, [handle]: [Value; 1]| {
            call.scope.boolean(rule(&call, handle)?.rule.has_permits()?).map(Some)
        };
        c"allowMany": |call: Cold<'_>, [handle, keys]: [Value; 2]| {
            let keys = Keys::read(call.scope, keys)?;
            call.scope.mask(&rule(&call, handle)?.rule.allow_many(&keys.slices())?).map(Some)
        };
        c"resetAll": |call: Cold<'_>, [handle]: [Value; 1]| {
            rule(&call, handle)?.rule.reset_all()?;
            Ok(None)
        };
        c"prune": |call: Cold<'_>, [handle]: [Value; 1]| {
            call.scope.number(rule(&call, handle)?.rule.prune()? as f64).map(Some)
        };
        c"size": |call: Cold<'_>, [handle]: [Value; 1]| {
            call.scope.number(rule(&call, handle)?.rule.len()? as f64).map(Some)
        };
        c"metrics": |call: Cold<'_>, [handle]: [Value; 1]| {
            let metrics = rule(&call, handle)?.rule.metrics()?;
            call.scope.text(&json::metrics(&metrics).to_string()).map(Some)
        };
        c"events": |call: Cold<'_>, [handle, since]: [Value; 2]| {
            let since = optional_text(call.scope, since, "since")?;
            let events = rule(&call, handle)?.rule.events(since.as_deref())?;
            call.scope.text(&json::events(&events).to_string()).map(Some)
        };
        // The number of the waiting call, or 0 if the decision is there at once. What is held is
        // taken by `got`.
        c"join": |call: Cold<'_>, [handle, key, cost, max, attributes, timeout, kind]: [Value; 7]| {
            let want = match count(call.scope, kind, "kind")? {
                Some(1) => Want::Reservation(given_count(call.scope, cost, "estimate")?),
                Some(2) => Want::Permit,
                _ => Want::Hit(cost_of(call.scope, cost)?),
            };
            let timeout = count(call.scope, timeout, "timeoutMs")?.map(Duration::from_millis);
            let one = owned_call(call.scope, [key, max, attributes])?;
            let rule = rule(&call, handle)?;
            let waiting = Waiting::new(rule.rule.clone(), one, want, timeout);
            let mut line = line(&call, handle)?.borrow_mut();
            let number = match line.join(waiting)? {
                Ok(got) => {
                    rule.write(call.scope, call.surface, &got.decision().view())?;
                    line.got = Some(got);
                    0
                }
                Err(number) => number,
            };
            call.scope.number(f64::from(number)).map(Some)
        };
        // The number of the next call that has an answer, or throws its error.
        c"next": |call: Cold<'_>, [handle]: [Value; 1]| {
            let next = line(&call, handle)?.borrow_mut().next();
            let Some((number, result)) = next else { return call.scope.number(0.0).map(Some) };
            call.surface.write(crate::surface::SCRATCH - 1, &[f64::from(number)]);
            let got = result?;
            rule(&call, handle)?.write(call.scope, call.surface, &got.decision().view())?;
            line(&call, handle)?.borrow_mut().got = Some(got);
            call.scope.number(f64::from(number)).map(Some)
        };
        // The reservation or permit of the last answer.
        c"got": |call: Cold<'_>, [handle]: [Value; 1]| {
            let handle = match line(&call, handle)?.borrow_mut().got.take() {
                Some(Got::Reservation(reserved)) => Handle::Reservation(Cell::new(Some(*reserved))),
                Some(Got::Permit(permit)) => Handle::Permit(*permit),
                Some(Got::Hit(_)) | None => return Ok(None),
            };
            call.scope.owner(Box::new(handle)).map(Some)
        };
        // Milliseconds until the next waiting call is due; -1 if none waits.
        c"rest": |call: Cold<'_>, [handle]: [Value; 1]| {
            let rest = line(&call, handle)?.borrow().rest();
            call.scope.number(rest.map_or(-1.0, |rest| ms(rest) + 1.0)).map(Some)
        };
        c"leave": |call: Cold<'_>, [handle, number]: [Value; 2]| {
            let number = count(call.scope, number, "number")?.unwrap_or(0);
            line(&call, handle)?.borrow_mut().leave(u32::try_from(number).unwrap_or(0));
            Ok(None)
        };
        c"wakeAll": |call: Cold<'_>, [handle]: [Value; 1]| {
            line(&call, handle)?.borrow_mut().wake_all();
            Ok(None)
        };
    }
    Ok(())
}
