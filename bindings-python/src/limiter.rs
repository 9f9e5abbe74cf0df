//! A policy at work.

// Options are keyword arguments in Python.
#![allow(clippy::too_many_arguments)]

use std::path::PathBuf;

use policy::{LimiterBuilder, OnFull, Policy, RuleConfig};
use pyo3::types::PyType;
use serde_json::Value;

use crate::clock::ManualClock;
use crate::errors::raised;
use crate::operations::prelude::*;
use crate::rule::Rule;
use crate::value::{Bytes, StoreText};

/// A policy at work: rules, and where their state lives. Safe to use from any thread.
///
/// ``Limiter("20/min")`` has one rule, ``default``, of these limits; options of a rule go by
/// keyword:
///
/// >>> limiter = Limiter(["5/10s window", "20/min window"], cooldown="60s")
/// >>> limiter.allow("alice")
/// True
///
/// ``store`` is where state lives: ``memory``, ``memory:NAME``, ``file:PATH`` (or a path: a folder
/// that all processes of the host share). ``capacity`` is how many keys a rule may hold. Unless
/// stated, it is what fits into ``memory``, at most 65,536. ``memory`` is bytes, or a text such as
/// ``"64MB"``; 256 MB unless stated. ``on_full`` (``overflow``, ``deny`` or ``allow``) is what
/// becomes of new keys then, ``clock`` a ManualClock. ``recreate=True`` makes tables of a file
/// store that don't fit the policy, or can't be read, anew. ``group=True`` shares the folder of a
/// file store with its group. Times are texts (``"60s"``), seconds, or timedeltas.
///
/// A limiter with one rule has its operations itself. It is a context manager that closes itself,
/// and always true. A forked child may use it: with a file store it counts together with its
/// parent, with memory it has a copy.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Limiter {
    inner: policy::Limiter,
}

fn on_full(text: Option<Text>) -> PyResult<Option<OnFull>> {
    let Some(Text(text)) = text else { return Ok(None) };
    let wrong = || format!("on_full: this should be one of overflow, deny, allow, not {text:?}");
    policy::bindings::on_full(&text).map(Some).ok_or_else(|| raised("PolicyError", &wrong()))
}

impl Limiter {
    /// The rule that the limiter's own operations are about.
    fn its_rule(&self) -> Result<policy::Rule, policy::Error> {
        self.inner.main().cloned()
    }
}

fn options(
    store: Option<StoreText>,
    capacity: Option<WholeNumber>,
    full: Option<Text>,
    clock: Option<&Bound<'_, ManualClock>>,
    recreate: bool,
    memory: Option<Bytes>,
    group: Option<bool>,
) -> PyResult<LimiterBuilder> {
    let builder = policy::Limiter::builder()
        .capacity(capacity.map(|capacity| usize::try_from(capacity.0).unwrap_or(usize::MAX)))
        .on_full(on_full(full)?)
        .clock(clock.map(|clock| clock.get().clock.clock()).unwrap_or_default())
        .recreate(recreate)
        .memory(memory.map(|memory| memory.0))
        .group(group);
    Ok(match store {
        Some(store) => builder.store(store.0),
        None => builder,
    })
}

operations! { Limiter {
    #[new]
    #[pyo3(
        signature = (
            limits, *, store=None, capacity=None, on_full=None, clock=None, recreate=false,
            memory=None, group=None, **rule_options
        ),
        text_signature = "(\
            limits, *, store=\"memory\", capacity=None, on_full=\"overflow\", clock=None, \
            recreate=False, memory=None, group=False, **rule_options)"
    )]
    fn new(
        py: Python<'_>,
        limits: &Bound<'_, PyAny>,
        store: Option<StoreText>,
        capacity: Option<WholeNumber>,
        on_full: Option<Text>,
        clock: Option<&Bound<'_, ManualClock>>,
        recreate: bool,
        memory: Option<Bytes>,
        group: Option<bool>,
        rule_options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Limiter> {
        let options = options(store, capacity, on_full, clock, recreate, memory, group)?;
        let mut rule = rule_options
            .map_or(Ok(Value::Object(Default::default())), |options| to_json(options))?;
        rule["limits"] = to_json(limits)?;
        let made = || options.rule(RuleConfig::from_value_in(&rule, UNIT)?).build();
        py.detach(|| guard(made)).map(|inner| Limiter { inner })
    }

    /// A limiter of a policy as a mapping, as a policy file has it. Keyword arguments win over the
    /// policy's own.
    #[classmethod]
    #[pyo3(
        signature = (
            mapping, *, store=None, capacity=None, on_full=None, clock=None, recreate=false,
            memory=None, group=None
        )
    )]
    fn from_policy(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        mapping: &Bound<'_, PyAny>,
        store: Option<StoreText>,
        capacity: Option<WholeNumber>,
        on_full: Option<Text>,
        clock: Option<&Bound<'_, ManualClock>>,
        recreate: bool,
        memory: Option<Bytes>,
        group: Option<bool>,
    ) -> PyResult<Limiter> {
        let options = options(store, capacity, on_full, clock, recreate, memory, group)?;
        let policy = to_json(mapping)?;
        let made =
            || options.policy(Policy::from_value_in(&policy, UNIT)?).build();
        py.detach(|| guard(made)).map(|inner| Limiter { inner })
    }

    /// A limiter of a policy file, YAML or JSON, which ``reload`` reads again.
    #[classmethod]
    #[pyo3(
        signature = (
            path, *, store=None, capacity=None, on_full=None, clock=None, recreate=false,
            memory=None, group=None
        )
    )]
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        store: Option<StoreText>,
        capacity: Option<WholeNumber>,
        on_full: Option<Text>,
        clock: Option<&Bound<'_, ManualClock>>,
        recreate: bool,
        memory: Option<Bytes>,
        group: Option<bool>,
    ) -> PyResult<Limiter> {
        let options = options(store, capacity, on_full, clock, recreate, memory, group)?;
        let made = || options.file(path).build();
        py.detach(|| guard(made)).map(|inner| Limiter { inner })
    }

    /// Inspects the tables of a file store's folder from outside, while processes may use them.
    #[staticmethod]
    fn inspect<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let seen = py.detach(|| guard(|| policy::Limiter::inspect(path)))?;
        seen.iter().map(|one| results::inspected(py, one)).collect()
    }

    /// A rule by its name, or the policy's ``fallback``. Also ``limiter[name]``.
    fn rule(&self, name: Text) -> PyResult<Rule> {
        guard(|| self.inner.rule(&name.0)).map(|inner| Rule { inner })
    }

    fn __getitem__(&self, name: Text) -> PyResult<Rule> {
        self.rule(name)
    }

    /// The names of all rules, in declared order.
    fn rules(&self) -> Vec<String> {
        self.inner.rules()
    }

    /// Reads the policy file again: all or nothing. Rules that were gotten go by the new policy.
    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| guard(|| self.inner.reload()))
    }

    /// Findings on the policy: what is allowed, but may not be meant.
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let findings = py.detach(|| guard(|| self.inner.audit()))?;
        findings.iter().map(|finding| results::finding(py, finding)).collect()
    }

    /// What happened so far, by rule.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        py.detach(|| guard(|| self.inner.metrics()))?
            .iter()
            .map(|metrics| results::metrics(py, metrics))
            .collect()
    }

    /// The last denials and alerts of all rules; with ``since``, the ``next`` of earlier ones,
    /// those after them.
    #[pyo3(signature = (since=None))]
    fn events<'py>(&self, py: Python<'py>, since: Option<Text>) -> PyResult<Bound<'py, PyAny>> {
        let since = since.as_ref().map(|since| since.0.as_str());
        results::events(py, &guard(|| self.inner.events(since))?)
    }

    /// The run-time changes of all rules with a number above ``since``: the last 256 at least, as
    /// the store keeps them.
    #[pyo3(signature = (since=WholeNumber(0)), text_signature = "($self, since=0)")]
    fn changes<'py>(&self, py: Python<'py>, since: WholeNumber) -> PyResult<Bound<'py, PyAny>> {
        results::changes(py, &py.detach(|| guard(|| self.inner.changes(since.0)))?)
    }

    /// Writes a file store's tables to its disk now. Nothing must call this: the system does it by
    /// and by.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| guard(|| self.inner.sync()))
    }

    /// Lets go: every operation from now on is a ``ClosedError``.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            guard(|| {
                self.inner.close();
                Ok(())
            })
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<Limiter {:?}>", self.inner.rules())
    }
} }
