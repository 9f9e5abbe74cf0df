//! The answer to a hit.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use policy::bindings::STYLES;
use policy::http::Denial;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::Value;

use crate::errors::raised;
use crate::results::{limit_left, seconds};
use crate::value::{to_json, to_python};

/// The answer to a hit: true if it was allowed.
///
/// ``retry_after`` says when the same hit would pass; ``headers()`` says all of it to an HTTP
/// client. Decisions can be compared, hashed and pickled.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Decision(DecisionForm);

#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are made by a hit, where a box would be one more allocation"
)]
enum DecisionForm {
    /// As the engine gave it.
    Made(policy::Decision),
    /// As it came out of a pickle.
    Restored(Box<Restored>),
}

/// The fields of a `LimitLeft`, in its order: name, max, remaining, reset_after, more_after.
pub(crate) type LimitFields = (String, u64, u64, f64, Option<f64>);

/// What a pickle holds, in this order.
type Pickled<'py> = (
    (bool, String, Option<String>, Option<u64>, Option<u64>, Option<f64>),
    (f64, bool, bool, bool, Option<String>, Bound<'py, PyAny>),
    [Vec<(String, String)>; 3],
    Vec<LimitFields>,
);

struct Restored {
    allowed: bool,
    rule: String,
    reason: Option<String>,
    limit: Option<u64>,
    remaining: Option<u64>,
    retry_after: Option<f64>,
    reset_after: f64,
    warning: bool,
    alert: bool,
    notify: bool,
    would_deny: Option<String>,
    attach: Option<Value>,
    /// In each style.
    headers: [Vec<(String, String)>; 3],
    limits: Vec<LimitFields>,
}

impl From<policy::Decision> for Decision {
    #[inline]
    fn from(decision: policy::Decision) -> Decision {
        Decision(DecisionForm::Made(decision))
    }
}

impl Decision {
    #[inline]
    fn get<'a, T>(
        &'a self,
        made: impl FnOnce(&'a policy::Decision) -> T,
        restored: impl FnOnce(&'a Restored) -> T,
    ) -> T {
        match &self.0 {
            DecisionForm::Made(it) => made(it),
            DecisionForm::Restored(it) => restored(it),
        }
    }

    fn attached(&self) -> Option<&Value> {
        self.get(policy::Decision::attach, |it| it.attach.as_ref())
    }

    /// Runs `body` on what a denied client reads.
    pub(crate) fn denied<T>(&self, body: impl FnOnce(Denial<'_>) -> T) -> T {
        let millis = |seconds: f64| (seconds * 1e3).round() as u64;
        body(Denial {
            rule: self.rule(),
            reason: self.reason(),
            retry_after_ms: self.retry_after().map(millis),
            attach: self.attached(),
        })
    }

    /// The header fields in all styles.
    pub(crate) fn all_fields(&self) -> Vec<(String, String)> {
        self.fields(0)
    }

    fn fields(&self, style: usize) -> Vec<(String, String)> {
        self.get(|it| it.headers(STYLES[style].1), |it| it.headers[style].clone())
    }

    fn limit_fields(&self) -> Vec<LimitFields> {
        let fields = |left: policy::LimitLeft<'_>| {
            let more = left.more_after.map(seconds);
            (left.name.to_string(), left.max, left.remaining, seconds(left.reset_after), more)
        };
        self.get(|it| it.limits().map(fields).collect(), |it| it.limits.clone())
    }

    /// All that is compared, but for what is attached.
    fn compared(&self) -> impl Hash + PartialEq {
        let words = (
            self.rule().to_string(),
            self.reason().map(str::to_string),
            self.would_deny().map(str::to_string),
        );
        let times = (self.retry_after().map(f64::to_bits), self.reset_after().to_bits());
        let flags = (self.allowed(), self.warning(), self.alert(), self.notify());
        let bits = |(name, max, remaining, reset, more): LimitFields| {
            (name, max, remaining, reset.to_bits(), more.map(f64::to_bits))
        };
        let limits: Vec<_> = self.limit_fields().into_iter().map(bits).collect();
        (flags, words, times, self.limit(), self.remaining(), limits)
    }
}

#[pymethods]
impl Decision {
    /// Whether the hit was allowed; also the truth value.
    #[getter]
    fn allowed(&self) -> bool {
        self.get(|it| it.allowed, |it| it.allowed)
    }

    /// The name of the rule that was hit.
    #[getter]
    fn rule(&self) -> &str {
        self.get(|it| it.rule(), |it| &it.rule)
    }

    /// Why it was denied: the denying limit's name, ``blocked``, ``cooldown``, ``backoff``,
    /// ``budget``, ``cost`` or ``full``; or why it was not counted: ``exempt`` or ``off``. None
    /// when allowed and counted.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.get(policy::Decision::reason, |it| it.reason.as_deref())
    }

    /// The size of the limit with the least left, or of the one that denies.
    #[getter]
    fn limit(&self) -> Option<u64> {
        self.get(|it| it.limit, |it| it.limit)
    }

    /// What is left of that limit, rounded down.
    #[getter]
    fn remaining(&self) -> Option<u64> {
        self.get(|it| it.remaining, |it| it.remaining)
    }

    /// Seconds until the same hit would pass: 0.0 when allowed, None where waiting never helps.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.get(|it| it.retry_after.map(seconds), |it| it.retry_after)
    }

    /// Seconds until the key has its full quota again.
    #[getter]
    fn reset_after(&self) -> f64 {
        self.get(|it| seconds(it.reset_after), |it| it.reset_after)
    }

    /// How it left each limit, in the order in which the rule states them.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let limits = self.limit_fields().into_iter().map(|fields| limit_left(py, fields));
        PyTuple::new(py, limits.collect::<PyResult<Vec<_>>>()?)
    }

    /// Whether an allowed hit left little (the rule's ``warn_at``).
    #[getter]
    fn warning(&self) -> bool {
        self.get(|it| it.warning, |it| it.warning)
    }

    /// Whether this denial was the one that reached the rule's ``alert``.
    #[getter]
    fn alert(&self) -> bool {
        self.get(|it| it.alert, |it| it.alert)
    }

    /// Whether the sender should be notified of this denial.
    #[getter]
    fn notify(&self) -> bool {
        self.get(|it| it.notify, |it| it.notify)
    }

    /// In shadow mode, why it would have been denied.
    #[getter]
    fn would_deny(&self) -> Option<&str> {
        self.get(policy::Decision::would_deny, |it| it.would_deny.as_deref())
    }

    /// What the rule hands back with a denial.
    #[getter]
    fn attach<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.attached().map(|value| to_python(py, value)).transpose()
    }

    /// The decision as header fields, in the order in which they are best sent.
    ///
    /// ``style`` is ``legacy`` (``X-RateLimit-…``), ``ietf`` (``RateLimit-Policy``, ``RateLimit``)
    /// or ``both``.
    #[pyo3(signature = (style="both"))]
    fn headers<'py>(&self, py: Python<'py>, style: &str) -> PyResult<Bound<'py, PyDict>> {
        let style = STYLES.iter().position(|(name, _)| *name == style);
        let wrong = || raised("RangeError", "style should be one of both, legacy, ietf");
        let headers = PyDict::new(py);
        for (name, value) in self.fields(style.ok_or_else(wrong)?) {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }

    pub(crate) fn __bool__(&self) -> bool {
        self.allowed()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Decision>().ok()?.get();
        Some(self.compared() == other.compared() && self.attached() == other.attached())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.compared().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text =
            String::from(if self.allowed() { "<Decision allowed" } else { "<Decision denied" });
        let mut say = |name: &str, value: String| text += &format!(" {name}={value}");
        say("rule", PyString::new(py, self.rule()).repr()?.to_string());
        for (name, word) in [("reason", self.reason()), ("would_deny", self.would_deny())] {
            if let Some(word) = word {
                say(name, PyString::new(py, word).repr()?.to_string());
            }
        }
        if let (Some(remaining), Some(limit)) = (self.remaining(), self.limit()) {
            say("remaining", format!("{remaining}/{limit}"));
        }
        if !self.allowed() {
            say(
                "retry_after",
                self.retry_after().map_or("None".to_string(), |time| time.to_string()),
            );
        }
        say("reset_after", self.reset_after().to_string());
        let flags =
            [("warning", self.warning()), ("alert", self.alert()), ("notify", self.notify())];
        flags
            .into_iter()
            .filter(|(_, set)| *set)
            .for_each(|(name, _)| say(name, "True".to_string()));
        Ok(text + ">")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let words = |word: Option<&str>| word.map(str::to_string);
        let first = (
            self.allowed(),
            self.rule().to_string(),
            words(self.reason()),
            self.limit(),
            self.remaining(),
            self.retry_after(),
        );
        let attach = self.attach(py)?.unwrap_or_else(|| py.None().into_bound(py));
        let second = (
            self.reset_after(),
            self.warning(),
            self.alert(),
            self.notify(),
            words(self.would_deny()),
            attach,
        );
        let restore = py.import("tidegate._tidegate")?.getattr("_restore_decision")?;
        let headers = [0, 1, 2].map(|style| self.fields(style));
        Ok((restore, (first, second, headers, self.limit_fields())))
    }
}

/// A decision of what its pickle holds. Older pickles have no limits.
#[pyfunction]
#[pyo3(name = "_restore_decision", signature = (first, second, headers, limits=Vec::new()))]
pub(crate) fn restore_decision(
    first: (bool, String, Option<String>, Option<u64>, Option<u64>, Option<f64>),
    second: (f64, bool, bool, bool, Option<String>, Bound<'_, PyAny>),
    headers: [Vec<(String, String)>; 3],
    limits: Vec<LimitFields>,
) -> PyResult<Decision> {
    let (allowed, rule, reason, limit, remaining, retry_after) = first;
    let (reset_after, warning, alert, notify, would_deny, attach) = second;
    let attach = Some(to_json(&attach)?).filter(|value| !value.is_null());
    Ok(Decision(DecisionForm::Restored(Box::new(Restored {
        allowed,
        rule,
        reason,
        limit,
        remaining,
        retry_after,
        reset_after,
        warning,
        alert,
        notify,
        would_deny,
        attach,
        headers,
        limits,
    }))))
}
