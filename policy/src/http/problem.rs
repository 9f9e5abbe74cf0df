//! Answers that the service never sees the request of, as `application/problem+json` (RFC 9457).

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::decision::Decision;
use crate::decision::headers::Style;

/// Adds a decision's fields. One that is there already stays: whoever set it, a handler or another
/// layer closer to it, knows more about this answer.
pub(crate) fn add_headers(headers: &mut HeaderMap, decision: &Decision) {
    for (name, value) in decision.headers(Style::Both) {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.entry(name).or_insert(value);
        }
    }
}

/// The answer to a request that was denied.
pub(crate) fn too_many<B: From<String>>(decision: &Decision) -> Response<B> {
    let wait = decision.retry_after.map(|wait| wait.as_millis() as u64);
    let detail = match wait {
        Some(wait) => format!("The rate limit is reached; try again in {wait} ms."),
        None => "This request is over the limit, and waiting does not help.".to_string(),
    };
    let mut more = Map::new();
    more.insert("rule".to_string(), decision.rule().into());
    more.insert("reason".to_string(), decision.reason().into());
    more.insert("retry_after_ms".to_string(), wait.into());
    if let Some(attach) = decision.attach() {
        more.insert("attach".to_string(), attach.clone());
    }
    let mut response = answer(StatusCode::TOO_MANY_REQUESTS, &detail, more);
    add_headers(response.headers_mut(), decision);
    response
}

/// The answer to a request that could not be judged.
pub(crate) fn unjudged<B: From<String>>(detail: &str) -> Response<B> {
    answer(StatusCode::INTERNAL_SERVER_ERROR, detail, Map::new())
}

fn answer<B: From<String>>(
    status: StatusCode,
    detail: &str,
    more: Map<String, Value>,
) -> Response<B> {
    // RFC 9457 wants the status's own phrase as the title of a type that is `about:blank`.
    let title = status.canonical_reason();
    let mut body = json!({
        "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail,
    });
    if let Some(body) = body.as_object_mut() {
        body.extend(more);
    }
    let mut response = Response::new(B::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
