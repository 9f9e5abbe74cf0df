//! What the middlewares share with those of other languages: client addresses and refusals.

use policy::http::{Denial, ProxyTrust, read_address, unjudged};
use policy::{V6_PREFIX, ip_key};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::decision::Decision;
use crate::errors::guard;
use crate::value::{Count, Text};

/// The proxies that a middleware believes.
#[pyclass(frozen, module = "tidegate._tidegate", name = "_ProxyTrust")]
pub(crate) struct Trust(ProxyTrust);

#[pymethods]
impl Trust {
    #[new]
    fn new(hops: Count, proxies: Vec<Text>) -> PyResult<Trust> {
        let hops = usize::try_from(hops.0).unwrap_or(usize::MAX);
        let proxies = proxies.iter().map(|text| &text.0);
        guard(|| ProxyTrust::default().with_hops(hops)?.with_proxies(proxies)).map(Trust)
    }

    /// A client's address and its key, of the peer's address and the lines of ``X-Forwarded-For``.
    fn client(
        &self,
        peer: Option<Bound<'_, PyString>>,
        lines: Vec<Bound<'_, PyString>>,
    ) -> PyResult<Option<(String, String)>> {
        // A text with lone surrogates is no address, and no reason to fail.
        let peer = peer.and_then(|peer| read_address(peer.to_string_lossy().as_bytes()));
        let lines: Vec<_> = lines.iter().map(|line| line.to_string_lossy()).collect();
        let client = self.0.client(peer, lines.iter().map(|line| line.as_bytes()));
        let with_key = |client: std::net::IpAddr| {
            let address = client.to_string();
            let key = ip_key(&address, V6_PREFIX)?;
            Ok((address, key))
        };
        guard(|| client.map(with_key).transpose())
    }
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
