//! The responses of a layer, and the header fields of the service's.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

use crate::decision::Decision;
use crate::decision::headers::Style;
use crate::error::Error;
use crate::http::problem::{Denial, PROBLEM_JSON, unjudged};

const NO_KEY: &str = "This request has no key to be limited by: either the layer's `key` gave \
    none, or its extensions hold no peer address. Name the extension that does with `peer`, or \
    set a `fallback_key`.";

/// Why a layer answers a request itself.
///
/// ```
/// use tidegate::tower::Refusal;
///
/// fn kind(refusal: &Refusal<'_>) -> &'static str {
///     match refusal {
///         Refusal::Denied(_) => "over the limit",
///         Refusal::NoKey => "no key",
///         _ => "not judged",
///     }
/// }
/// let denied = tidegate::Limiter::new("0/min")?.hit("alice", 1)?;
/// assert_eq!(kind(&Refusal::Denied(&denied)), "over the limit");
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Refusal<'a> {
    /// The rule denied the request. The layer's own response has status 429.
    Denied(&'a Decision),
    /// The request has no key. The layer's own response has status 500.
    NoKey,
    /// The rule could not judge the request. The layer's own response has status 500.
    Failed(&'a Error),
}

impl Refusal<'_> {
    /// The layer's own response, without the decision's header fields.
    fn response(&self) -> Response<String> {
        let (status, body) = match self {
            Refusal::Denied(decision) => {
                (StatusCode::TOO_MANY_REQUESTS, Denial::from(*decision).body())
            }
            Refusal::NoKey => (StatusCode::INTERNAL_SERVER_ERROR, unjudged(NO_KEY)),
            Refusal::Failed(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, unjudged(&error.to_string()))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        response
    }

    /// The response that is sent: by the hook, and with the decision's header fields.
    pub(super) fn answered_by<B>(&self, hook: &impl AnswerDenied<B>, style: Style) -> Response<B> {
        let mut response = hook.answer(self, self.response());
        if let Refusal::Denied(decision) = self {
            add_headers(response.headers_mut(), decision, style);
        }
        response
    }
}

/// Makes the responses of a layer, with bodies of type `B`: [`ProblemJson`], or any closure or
/// function that [`RateLimitLayer::answer`](super::RateLimitLayer::answer) takes.
///
/// A function pointer lets the type of the layer be named:
///
/// ```
/// use http::Response;
/// use tidegate::tower::{RateLimitLayer, Refusal};
///
/// type StatusOnly = fn(&Refusal<'_>, Response<String>) -> Response<()>;
///
/// let limiter = tidegate::Limiter::new("100/min")?;
/// let layer: RateLimitLayer<StatusOnly> =
///     RateLimitLayer::new(limiter.rule("default")?).answer(|_, own| own.map(drop));
/// # Ok::<(), tidegate::Error>(())
/// ```
pub trait AnswerDenied<B> {
    /// The response to a request that does not reach the service. `own` is the layer's own
    /// response: a status, and a body of `application/problem+json`.
    fn answer(&self, refusal: &Refusal<'_>, own: Response<String>) -> Response<B>;
}

impl<B, F: Fn(&Refusal<'_>, Response<String>) -> Response<B>> AnswerDenied<B> for F {
    fn answer(&self, refusal: &Refusal<'_>, own: Response<String>) -> Response<B> {
        self(refusal, own)
    }
}

/// The answers of a layer that has no other: `application/problem+json`, in any body that can be
/// made from a text.
///
/// ```
/// use tidegate::tower::{ProblemJson, RateLimitLayer};
///
/// let limiter = tidegate::Limiter::new("100/min")?;
/// let layer: RateLimitLayer<ProblemJson> = RateLimitLayer::new(limiter.rule("default")?);
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProblemJson;

impl<B: From<String>> AnswerDenied<B> for ProblemJson {
    fn answer(&self, _: &Refusal<'_>, own: Response<String>) -> Response<B> {
        own.map(B::from)
    }
}

/// Adds a decision's fields. A field that is set already stays: the handler, hook or layer that
/// set it knows more about this response.
pub(super) fn add_headers(headers: &mut HeaderMap, decision: &Decision, style: Style) {
    for (name, value) in decision.headers(style) {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.entry(name).or_insert(value);
        }
    }
}
