//! The responses of a layer, and the header fields of the service's.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

use crate::decision::Decision;
use crate::decision::headers::Style;
use crate::http::problem::{Denial, PROBLEM_JSON, unjudged as unjudged_body};

/// Adds a decision's fields. A field that is set already stays: the handler or layer that set it
/// knows more about this response.
pub(super) fn add_headers(headers: &mut HeaderMap, decision: &Decision) {
    for (name, value) in decision.headers(Style::Both) {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.entry(name).or_insert(value);
        }
    }
}

/// The response to a denied request.
pub(super) fn too_many<B: From<String>>(decision: &Decision) -> Response<B> {
    let mut response = problem(StatusCode::TOO_MANY_REQUESTS, Denial::from(decision).body());
    add_headers(response.headers_mut(), decision);
    response
}

/// The response to a request that could not be judged.
pub(super) fn unjudged<B: From<String>>(detail: &str) -> Response<B> {
    problem(StatusCode::INTERNAL_SERVER_ERROR, unjudged_body(detail))
}

fn problem<B: From<String>>(status: StatusCode, body: String) -> Response<B> {
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    response
}
