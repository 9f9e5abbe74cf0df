//! What the middlewares share with those of other languages: client addresses and refusals.

use std::borrow::Cow;
use std::net::IpAddr;

use policy::bindings::address_key;
use policy::http::{Denial, ProxyTrust, read_address, unjudged};
use policy::{Call, V6_PREFIX};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::decision::Decision;
use crate::errors::guard;
use crate::fast::Fast;
use crate::limiter::Limiter;
use crate::rule::Rule;
use crate::value::{Text, WholeNumber};

/// The proxies that a middleware believes.
#[pyclass(frozen, module = "tidegate._tidegate", name = "_ProxyTrust")]
pub(crate) struct Trust {
    proxies: ProxyTrust,
    reads_lines: bool,
}

impl Trust {
    /// The client's address. `lines` are read only where some proxy is believed.
    fn address(
        &self,
        peer: Option<&Bound<'_, PyString>>,
        lines: &Bound<'_, PyAny>,
    ) -> PyResult<Option<IpAddr>> {
        // A text with lone surrogates is no address, and no reason to fail.
        let peer = peer.and_then(|peer| read_address(peer.to_string_lossy().as_bytes()));
        let lines: Vec<Bound<'_, PyString>> = match self.reads_lines {
            true => lines.extract()?,
            false => Vec::new(),
        };
        let lines: Vec<_> = lines.iter().map(|line| line.to_string_lossy()).collect();
        guard(|| Ok(self.proxies.client(peer, lines.iter().map(|line| line.as_bytes()))))
    }
}

fn hit_from<C: Fast>(on: &C, client: IpAddr) -> Result<Option<policy::Decision>, policy::Error> {
    if on.permits()? {
        return Ok(None);
    }
    let (address, key) = (client.to_string(), address_key(client, V6_PREFIX));
    on.hit_by(Call::of(&key).with(&[("ip", &address)]), 1).map(Some)
}

#[pymethods]
impl Trust {
    #[new]
    fn new(hops: WholeNumber, proxies: Vec<Text>) -> PyResult<Trust> {
        let hops = usize::try_from(hops.0).unwrap_or(usize::MAX);
        let reads_lines = hops > 0 || !proxies.is_empty();
        let ranges = proxies.iter().map(|text| &text.0);
        let proxies = guard(|| ProxyTrust::default().with_hops(hops)?.with_proxies(ranges))?;
        Ok(Trust { proxies, reads_lines })
    }

    /// Whether the lines of ``X-Forwarded-For`` are read.
    #[getter]
    fn reads_lines(&self) -> bool {
        self.reads_lines
    }

    /// A client's address and its key, of the peer's address and the lines of ``X-Forwarded-For``.
    fn client(
        &self,
        peer: Option<&Bound<'_, PyString>>,
        lines: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(String, String)>> {
        let client = self.address(peer, lines)?;
        Ok(client.map(|client| (client.to_string(), address_key(client, V6_PREFIX))))
    }

    /// A hit by the client's key, with its address as ``ip``. None if the client is not known, or
    /// the rule has permits.
    fn hit(
        &self,
        rule: &Bound<'_, PyAny>,
        peer: Option<&Bound<'_, PyString>>,
        lines: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Decision>> {
        let Some(client) = self.address(peer, lines)? else { return Ok(None) };
        let hit = match rule.cast::<Rule>() {
            Ok(rule) => guard(|| hit_from(rule.get(), client)),
            Err(_) => {
                let limiter = rule.cast::<Limiter>()?.get();
                guard(|| hit_from(limiter, client))
            }
        };
        Ok(hit?.map(Decision::from))
    }
}

/// The header fields of a response, names and values as bytes, and those of the decision that are
/// not among them.
#[pyfunction]
#[pyo3(name = "_with_fields")]
pub(crate) fn with_fields<'py>(
    decision: &Decision,
    present: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let py = present.py();
    let mut missing = decision.all_fields();
    let all = PyList::empty(py);
    for field in present.try_iter()? {
        let field = field?;
        let name = match field.cast::<PyTuple>() {
            Ok(pair) => pair.get_item(0)?,
            Err(_) => field.get_item(0)?,
        };
        let name = name.extract::<Cow<'_, [u8]>>()?;
        missing.retain(|(own, _)| !own.as_bytes().eq_ignore_ascii_case(&name));
        all.append(&field)?;
    }
    for (name, value) in missing {
        let name = PyBytes::new(py, name.to_ascii_lowercase().as_bytes());
        all.append((name, PyBytes::new(py, value.as_bytes())))?;
    }
    Ok(all)
}
/// A denial in words.
#[pyfunction]
#[pyo3(name = "_denial")]
pub(crate) fn denial(decision: &Decision) -> String {
    decision.denied(|denial: Denial<'_>| denial.detail())
}

/// The body of an answer to a denied request.
#[pyfunction]
#[pyo3(name = "_denial_body")]
pub(crate) fn denial_body(decision: &Decision) -> String {
    decision.denied(|denial: Denial<'_>| denial.body())
}

/// The body of an answer to a request that could not be judged.
#[pyfunction]
#[pyo3(name = "_unjudged_body")]
pub(crate) fn unjudged_body(detail: Text) -> String {
    unjudged(&detail.0)
}
