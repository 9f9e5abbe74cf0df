//! Answers that are plain records: named tuples of `python/tidegate/_results.py`.

use std::time::Duration;

use policy::{
    BlockedKey, Budget, Change, Changes, Event, Events, Finding, LimitPatch, LimitPatches, Match,
    Metrics, NamedCount, Recorded, Stats, Step, StepValue, Target, Why,
};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::decision::{Decision, LimitFields};
use crate::value::to_python;

type Made<'py> = PyResult<Bound<'py, PyAny>>;

fn made<'py>(py: Python<'py>, class: &str, fields: impl PyCallArgs<'py>) -> Made<'py> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tidegate._results")?.unbind()))?;
    module.bind(py).getattr(class)?.call1(fields)
}

pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

pub(crate) fn limit_left<'py>(py: Python<'py>, fields: LimitFields) -> Made<'py> {
    made(py, "LimitLeft", fields)
}

pub(crate) fn recorded<'py>(py: Python<'py>, it: &Recorded) -> Made<'py> {
    made(py, "Recorded", (it.used, it.limit, it.remaining, seconds(it.reset_after)))
}

pub(crate) fn budget<'py>(py: Python<'py>, it: &Budget) -> Made<'py> {
    made(py, "Budget", (it.spent, it.remaining, it.over, it.over_per_hit, seconds(it.reset_after)))
}

pub(crate) fn stats<'py>(py: Python<'py>, it: &Stats) -> Made<'py> {
    let limits = PyDict::new(py);
    for one in &it.limits {
        let fields = (&one.name, one.used, one.max, one.remaining, seconds(one.reset_after));
        limits.set_item(&one.name, made(py, "LimitUse", fields)?)?;
    }
    let budget = it.budget.as_ref().map(|it| budget(py, it)).transpose()?;
    let last = it.last_allowed.map(seconds);
    let blocked = it.blocked.as_ref().map(|it| blocked(py, it)).transpose()?;
    made(py, "Stats", (limits, seconds(it.cooldown_left), it.violations, last, budget, blocked))
}

fn step<'py>(py: Python<'py>, it: &Step) -> Made<'py> {
    let value = match &it.value {
        StepValue::Text(text) => PyString::new(py, text).into_any(),
        StepValue::Number(number) => number.into_pyobject(py)?.into_any(),
        StepValue::Time(time) => seconds(*time).into_pyobject(py)?.into_any(),
        StepValue::Match(one) => matching(py, one)?,
        _ => py.None().into_bound(py),
    };
    let until = it.until.map(seconds);
    let fields = (it.step, it.outcome.as_str(), &it.limit, value, &it.source, until, &it.by);
    made(py, "Step", fields)
}

pub(crate) fn why<'py>(py: Python<'py>, it: Why) -> Made<'py> {
    let steps = it.steps.iter().map(|one| step(py, one)).collect::<PyResult<Vec<_>>>()?;
    made(py, "Why", (Decision::from(it.decision), steps))
}

fn counts<'py>(py: Python<'py>, all: &[NamedCount]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    all.iter().map(|one| made(py, "KeyCount", (PyTuple::new(py, &one.key)?, one.count))).collect()
}

pub(crate) fn metrics<'py>(py: Python<'py>, it: &Metrics) -> Made<'py> {
    let denied = PyDict::new(py);
    it.denied.iter().try_for_each(|(reason, count)| denied.set_item(reason, count))?;
    // More fields than a tuple of pyo3's holds.
    let fields = PyDict::new(py);
    fields.set_item("rule", &it.rule)?;
    fields.set_item("denied", denied)?;
    fields.set_item("top_offenders", counts(py, &it.top_offenders)?)?;
    fields.set_item("heaviest", counts(py, &it.heaviest)?)?;
    let numbers = [
        ("allowed", it.allowed),
        ("warned", it.warned),
        ("shadowed", it.shadowed),
        ("exempt", it.exempt),
        ("off", it.off),
        ("alerts", it.alerts),
        ("evictions", it.evictions),
        ("full", it.full),
        ("overflow", it.overflow),
        ("classify_defaults", it.classify_defaults),
        ("capacity", it.capacity as u64),
        ("keys", it.keys as u64),
        ("bytes", it.bytes),
    ];
    numbers.into_iter().try_for_each(|(name, number)| fields.set_item(name, number))?;
    fields.set_item("retired", it.retired)?;
    made(py, "_metrics", (fields,))
}

fn event<'py>(py: Python<'py>, it: &Event) -> Made<'py> {
    let key = PyTuple::new(py, &it.key)?;
    made(py, "Event", (it.number, &it.rule, key, &it.reason, it.alert, seconds(it.at)))
}

pub(crate) fn events<'py>(py: Python<'py>, it: &Events) -> Made<'py> {
    let all = it.events.iter().map(|one| event(py, one)).collect::<PyResult<Vec<_>>>()?;
    made(py, "Events", (all, &it.next, it.missed))
}

pub(crate) fn finding<'py>(py: Python<'py>, it: &Finding) -> Made<'py> {
    made(py, "Finding", (it.id, it.severity.as_str(), &it.path, &it.message))
}

pub(crate) fn inspected<'py>(py: Python<'py>, it: &policy::Inspected) -> Made<'py> {
    let limits = it.limits.iter().map(|one| to_python(py, &one.to_value()));
    let limits = PyList::new(py, limits.collect::<PyResult<Vec<_>>>()?)?;
    let top = counts(py, &it.top_offenders)?;
    let fields = (
        &it.rule,
        it.format,
        limits,
        it.capacity,
        it.keys,
        it.penalised,
        it.spending,
        it.overrides,
        it.bytes,
        top,
        it.retired,
    );
    made(py, "Inspected", fields)
}

pub(crate) fn matching<'py>(py: Python<'py>, matches: &Match) -> Made<'py> {
    let dict = PyDict::new(py);
    matches.fields.iter().try_for_each(|(field, values)| dict.set_item(field, values))?;
    Ok(dict.into_any())
}

/// As it can be handed to `set_override` again.
fn patches<'py>(py: Python<'py>, patches: &LimitPatches) -> Made<'py> {
    let all = PyDict::new(py);
    for (name, LimitPatch { max, per, burst, lease, cooldown, .. }) in patches {
        let one = PyDict::new(py);
        for (field, number) in [("max", max), ("burst", burst)] {
            number.map_or(Ok(()), |number| one.set_item(field, number))?;
        }
        for (field, period) in [("per", per), ("lease", lease), ("cooldown", cooldown)] {
            period.map_or(Ok(()), |period| one.set_item(field, seconds(period)))?;
        }
        all.set_item(name, one)?;
    }
    Ok(all.into_any())
}

/// A key's parts: texts, or bytes that are none.
fn key<'py>(py: Python<'py>, parts: &[Vec<u8>]) -> Made<'py> {
    let part = |part: &Vec<u8>| match std::str::from_utf8(part) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, part).into_any(),
    };
    Ok(PyTuple::new(py, parts.iter().map(part))?.into_any())
}

pub(crate) fn overriding<'py>(py: Python<'py>, it: &(Target, LimitPatches)) -> Made<'py> {
    Ok((target(py, &it.0)?, patches(py, &it.1)?).into_pyobject(py)?.into_any())
}

fn target<'py>(py: Python<'py>, it: &Target) -> Made<'py> {
    match it {
        Target::Key(parts) => key(py, parts),
        Target::Match(matches) => matching(py, matches),
        _ => Ok(py.None().into_bound(py)),
    }
}

pub(crate) fn blocked<'py>(py: Python<'py>, it: &BlockedKey) -> Made<'py> {
    made(py, "BlockedKey", (key(py, &it.key)?, it.until.map(seconds), &it.by, &it.reason))
}

fn change<'py>(py: Python<'py>, it: &Change) -> Made<'py> {
    let fields = (
        it.number,
        seconds(it.at),
        &it.rule,
        &it.op,
        it.target.as_ref().map(|it| target(py, it)).transpose()?,
        to_python(py, &it.before)?,
        to_python(py, &it.after)?,
        it.until.map(seconds),
        &it.by,
        &it.reason,
    );
    made(py, "Change", fields)
}

pub(crate) fn changes<'py>(py: Python<'py>, it: &Changes) -> Made<'py> {
    let all = it.changes.iter().map(|one| change(py, one)).collect::<PyResult<Vec<_>>>()?;
    made(py, "Changes", (all, it.next, it.missed))
}
