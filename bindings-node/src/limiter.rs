//! Limiters, clocks, and what needs neither.

use std::rc::Rc;
use std::time::Duration;

use policy::bindings;
use policy::{Clock, Limiter, LimiterBuilder, ManualClock, Policy, RuleConfig};
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::handle::{Handle, json_of};
use crate::js::{Kind, Result, Scope, Value};
use crate::key::{count, optional_text, text};
use crate::surface::{Add, NativeCall, NativeResult, Surface, bind};
use crate::{changes, json, rule};

type Cold<'c> = NativeCall<'c, ()>;

/// Some 146 years, so that no clock runs over.
const MOST_MS: u64 = (i64::MAX / 2_000_000) as u64;

fn limiter<'c>(call: &Cold<'c>, handle: Value) -> Result<&'c Limiter> {
    Handle::of(call.scope, handle)?.limiter()
}

fn clock<'c>(call: &Cold<'c>, handle: Value) -> Result<&'c ManualClock> {
    Handle::of(call.scope, handle)?.clock()
}

/// A time in milliseconds; parts of one count.
fn time(scope: Scope<'_>, value: Value, what: &str) -> Result<Duration> {
    let ms = scope.double(value);
    let ms = ms.ok_or_else(|| Failure::argument(format!("{what} is not a number")))?;
    match ms >= 0.0 && ms <= MOST_MS as f64 {
        true => Ok(Duration::from_nanos((ms * 1e6).round() as u64)),
        false => Err(Failure::range(format!("{what} is from 0 to {MOST_MS} ms, not {ms}"))),
    }
}

/// What a limiter is made with: a map as JSON, and perhaps a clock.
fn options(scope: Scope<'_>, map: Value, clock: Value) -> Result<LimiterBuilder> {
    let map = json_of(scope, map)?;
    let clock = match scope.kind(clock)? {
        Kind::Undefined | Kind::Null => Clock::default(),
        _ => Handle::of(scope, clock)?.clock()?.clock(),
    };
    let on_full = map["on_full"].as_str().map(|text| {
        let wrong = || Failure::range(format!("onFull is overflow, deny or allow, not {text}"));
        bindings::on_full(text).ok_or_else(wrong)
    });
    let memory = match &map["memory"] {
        Json::String(text) => Some(bindings::parse_bytes(text)?),
        other => other.as_u64(),
    };
    let builder = Limiter::builder()
        .capacity(map["capacity"].as_u64().map(|capacity| capacity as usize))
        .on_full(on_full.transpose()?)
        .clock(clock)
        .recreate(map["recreate"] == Json::Bool(true))
        .group(map["group"].as_bool())
        .memory(memory);
    Ok(match map["store"].as_str() {
        Some(store) => builder.store(store),
        None => builder,
    })
}

fn made(scope: Scope<'_>, limiter: Limiter) -> NativeResult {
    scope.owner(Box::new(Handle::Limiter(limiter))).map(Some)
}

pub(crate) fn functions(add: Add<'_>, scope: Scope<'_>, surface: &Rc<Surface>) -> Result<()> {
    macro_rules! functions {
        ($($name:literal: $body:expr;)*) => { $(add($name, bind(scope, surface, (), $body)?)?;)* };
    }
    functions! {
        c"fromRule": |call: Cold<'_>, [rule, map, clock]: [Value; 3]| {
            let rule = RuleConfig::from_value(&json_of(call.scope, rule)?)?;
            made(call.scope, options(call.scope, map, clock)?.rule(rule).build()?)
        };
        c"fromPolicy": |call: Cold<'_>, [policy, map, clock]: [Value; 3]| {
            let policy = Policy::from_value(&json_of(call.scope, policy)?)?;
            made(call.scope, options(call.scope, map, clock)?.policy(policy).build()?)
        };
        c"fromFile": |call: Cold<'_>, [path, map, clock]: [Value; 3]| {
            let path = text(call.scope, path, "path")?;
            made(call.scope, options(call.scope, map, clock)?.file(path).build()?)
        };
        c"rules": |call: Cold<'_>, [handle]: [Value; 1]| {
            let names = limiter(&call, handle)?.rules();
            call.scope.array_of_texts(names.iter().map(String::as_str)).map(Some)
        };
        // The name of the rule that a name leads to, or of the main one.
        c"ruleName": |call: Cold<'_>, [handle, name]: [Value; 2]| {
            let limiter = limiter(&call, handle)?;
            let rule = match call.scope.kind(name)? {
                Kind::Undefined => limiter.main()?.clone(),
                _ => limiter.rule(&text(call.scope, name, "a rule's name")?)?,
            };
            call.scope.text(&rule.name()).map(Some)
        };
        c"rule": |call: Cold<'_>, [handle, name]: [Value; 2]| {
            let rule = limiter(&call, handle)?.rule(&text(call.scope, name, "a rule's name")?)?;
            rule::made(call.scope, call.surface, rule).map(Some)
        };
        // Whether a rule is still the limiter's of its name.
        c"isSame": |call: Cold<'_>, [handle, rule]: [Value; 2]| {
            let rule = &Handle::of(call.scope, rule)?.rule()?.rule;
            let now = limiter(&call, handle)?.rule(&rule.name());
            call.scope.boolean(now.is_ok_and(|now| now.is_same(rule))).map(Some)
        };
        c"close": |call: Cold<'_>, [handle]: [Value; 1]| {
            limiter(&call, handle)?.close();
            Ok(None)
        };
        c"reload": |call: Cold<'_>, [handle]: [Value; 1]| {
            limiter(&call, handle)?.reload()?;
            Ok(None)
        };
        c"sync": |call: Cold<'_>, [handle]: [Value; 1]| {
            limiter(&call, handle)?.sync()?;
            Ok(None)
        };
        c"audit": |call: Cold<'_>, [handle]: [Value; 1]| {
            let findings = limiter(&call, handle)?.audit()?;
            call.scope.text(&json::findings(&findings).to_string()).map(Some)
        };
        c"allMetrics": |call: Cold<'_>, [handle]: [Value; 1]| {
            let all: Json = limiter(&call, handle)?.metrics()?.iter().map(json::metrics).collect();
            call.scope.text(&all.to_string()).map(Some)
        };
        c"allEvents": |call: Cold<'_>, [handle, since]: [Value; 2]| {
            let since = optional_text(call.scope, since, "since")?;
            let events = limiter(&call, handle)?.events(since.as_deref())?;
            call.scope.text(&json::events(&events).to_string()).map(Some)
        };
        c"allChanges": |call: Cold<'_>, [handle, since]: [Value; 2]| {
            let changes = limiter(&call, handle)?.changes(changes::since(call.scope, since)?)?;
            call.scope.text(&json::changes(&changes).to_string()).map(Some)
        };
        c"inspect": |call: Cold<'_>, [path]: [Value; 1]| {
            let found = Limiter::inspect(text(call.scope, path, "path")?)?;
            call.scope.text(&json::inspected(&found).to_string()).map(Some)
        };
        c"ipKey": |call: Cold<'_>, [address, prefix]: [Value; 2]| {
            let address = text(call.scope, address, "address")?;
            let prefix = count(call.scope, prefix, "v6Prefix")?.unwrap_or(policy::V6_PREFIX.into());
            let prefix = u8::try_from(prefix).map_err(|_| {
                Failure::range(format!("v6Prefix has 0 to 128 bits, not {prefix}"))
            })?;
            call.scope.text(&policy::ip_key(&address, prefix)?).map(Some)
        };
        c"clock": |call: Cold<'_>, [start, wall]: [Value; 2]| {
            let start = time(call.scope, start, "start")?;
            let clock = ManualClock::new(start, time(call.scope, wall, "wall")?);
            call.scope.owner(Box::new(Handle::Clock(clock))).map(Some)
        };
        c"advance": |call: Cold<'_>, [handle, step]: [Value; 2]| {
            clock(&call, handle)?.advance(time(call.scope, step, "the step")?);
            Ok(None)
        };
        c"setClock": |call: Cold<'_>, [handle, now]: [Value; 2]| {
            clock(&call, handle)?.set(time(call.scope, now, "the time")?);
            Ok(None)
        };
        c"setWall": |call: Cold<'_>, [handle, wall]: [Value; 2]| {
            clock(&call, handle)?.set_wall(time(call.scope, wall, "the wall time")?);
            Ok(None)
        };
        c"now": |call: Cold<'_>, [handle]: [Value; 1]| {
            let now = clock(&call, handle)?.now();
            call.scope.number(now.as_nanos() as f64 / 1e6).map(Some)
        };
        // The fields of a rule that are periods.
        c"periods": |call: Cold<'_>, []: [Value; 0]| {
            call.scope.array_of_texts(bindings::PERIODS.into_iter()).map(Some)
        };
        c"version": |call: Cold<'_>, []: [Value; 0]| {
            call.scope.text(env!("CARGO_PKG_VERSION")).map(Some)
        };
    }
    Ok(())
}
