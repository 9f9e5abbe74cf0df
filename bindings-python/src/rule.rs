//! A rule of a limiter.

use crate::operations::prelude::*;

/// A rule of a limiter: limits that are taken together, all or nothing. It keeps its limiter alive.
///
/// Keys are a ``str``, ``bytes``, an ``int``, an ``ipaddress``, or a tuple or list of parts.
/// Further keyword arguments are attributes of the call (``role="admin"``), which the rule may look
/// at. Names that an operation takes (``cost``, ``max``, ``timeout``, ``for_``, ``by``, ``reason``)
/// are never attributes: elsewhere they are a ``TypeError``.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Rule {
    pub(crate) inner: policy::Rule,
}

impl Rule {
    fn its_rule(&self) -> Result<policy::Rule, policy::Error> {
        Ok(self.inner.clone())
    }
}

operations! { Rule {
    /// The rule's name.
    #[getter]
    fn name(&self) -> String {
        self.inner.name()
    }

    /// What happened so far.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        results::metrics(py, &guard(|| self.inner.metrics())?)
    }

    /// The rule's last denials and alerts; with ``since``, the ``next`` of earlier ones, those
    /// after them.
    #[pyo3(signature = (since=None))]
    fn events<'py>(&self, py: Python<'py>, since: Option<Text>) -> PyResult<Bound<'py, PyAny>> {
        let since = since.as_ref().map(|since| since.0.as_str());
        results::events(py, &guard(|| self.inner.events(since))?)
    }

    /// The run-time changes of this rule with a number above ``since``: the last 256 at least, as
    /// the store keeps them.
    #[pyo3(signature = (since=WholeNumber(0)), text_signature = "($self, since=0)")]
    fn changes<'py>(&self, py: Python<'py>, since: WholeNumber) -> PyResult<Bound<'py, PyAny>> {
        results::changes(py, &py.detach(|| guard(|| self.inner.changes(since.0)))?)
    }

    fn __repr__(&self) -> String {
        format!("<Rule {:?}>", self.inner.name())
    }
} }
