//! A service whose requests are judged before it sees them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::RateLimitLayer;
use super::answer::{AnswerDenied, ProblemJson, Refusal, add_headers};
use crate::decision::Decision;
use crate::decision::headers::Style;
use crate::error::{Code, Error};
use crate::key::Call;
use crate::rule::Rule;
use crate::rule::held::Permit;

const PERMIT_COST: &str =
    "a rule with a concurrent limit takes one permit for each request: its cost is 1";

/// A decision, with the slot that it holds if the rule has any.
pub(super) enum Judged {
    Hit(Box<Decision>),
    Permit(Box<Permit>),
}

impl Judged {
    pub(super) fn of(rule: &Rule, call: Call<'_>, cost: u64) -> Result<Judged, Error> {
        match rule.has_permits()? {
            true if cost != 1 => Err(Error::new(Code::Operation, PERMIT_COST)),
            true => Ok(Judged::Permit(rule.permit(call)?.into())),
            false => Ok(Judged::Hit(rule.hit(call, cost)?.into())),
        }
    }

    fn decision(&self) -> &Decision {
        match self {
            Judged::Hit(decision) => decision,
            Judged::Permit(permit) => permit.decision(),
        }
    }
}

/// A service whose requests are limited by a [`RateLimitLayer`].
///
/// Any body of a request will do. The body of the responses must be one that the layer's
/// [`AnswerDenied`] makes. Without an answer hook that is any type that is `From<String>`:
/// `axum::body::Body`, `http_body_util::Full<Bytes>`, `String`.
///
/// ```
/// use tidegate::tower::{RateLimit, RateLimitLayer};
/// use tower_layer::Layer;
///
/// let limiter = tidegate::Limiter::new("100/min").unwrap();
/// let layer = RateLimitLayer::new(limiter.rule("default").unwrap());
/// let service: RateLimit<axum::Router> = layer.layer(axum::Router::new());
/// ```
pub struct RateLimit<S, R = ProblemJson> {
    inner: S,
    layer: Arc<RateLimitLayer<R>>,
}

impl<S, R> RateLimit<S, R> {
    pub(super) fn new(inner: S, layer: RateLimitLayer<R>) -> RateLimit<S, R> {
        RateLimit { inner, layer: Arc::new(layer) }
    }
}

// Not derived: the layer is shared, so its hook needs no `Clone`, and a closure has no `Debug`.
impl<S: Clone, R> Clone for RateLimit<S, R> {
    fn clone(&self) -> RateLimit<S, R> {
        RateLimit { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S: fmt::Debug, R> fmt::Debug for RateLimit<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("RateLimit");
        fields.field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<S, A, B, R> Service<Request<A>> for RateLimit<S, R>
where
    S: Service<Request<A>, Response = Response<B>>,
    R: AnswerDenied<B>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let (answer, style) = (&self.layer.answer, self.layer.style);
        let response = match self.layer.judge(&parts) {
            Ok(Some(verdict)) if verdict.decision().allowed => {
                let inner = self.inner.call(Request::from_parts(parts, body));
                let verdict = Some(verdict);
                return ResponseFuture { state: Progress::Passed { inner, verdict, style } };
            }
            Ok(Some(verdict)) => Refusal::Denied(verdict.decision()).answered_by(answer, style),
            Ok(None) => Refusal::NoKey.answered_by(answer, style),
            Err(error) => Refusal::Failed(&error).answered_by(answer, style),
        };
        ResponseFuture { state: Progress::Answered { response: Some(response) } }
    }
}

pin_project! {
    /// The response of a [`RateLimit`]: a refusal, or the service's response with the decision's
    /// header fields.
    ///
    /// ```
    /// use tidegate::tower::ResponseFuture;
    /// use tower_service::Service;
    ///
    /// type Response<B> = http::Response<B>;
    ///
    /// fn respond<S, B>(service: &S, request: http::Request<()>) -> ResponseFuture<S::Future, B>
    /// where
    ///     S: Service<http::Request<()>, Response = Response<B>> + Clone,
    ///     B: From<String>,
    /// {
    ///     # let limiter = tidegate::Limiter::new("100/min").unwrap();
    ///     # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    ///     tower_layer::Layer::layer(&layer, service.clone()).call(request)
    /// }
    /// ```
    pub struct ResponseFuture<F, B> {
        #[pin]
        state: Progress<F, B>,
    }
}

pin_project! {
    #[project = Projected]
    enum Progress<F, B> {
        Passed { #[pin] inner: F, verdict: Option<Judged>, style: Style },
        Answered { response: Option<Response<B>> },
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().state.project() {
            Projected::Passed { inner, verdict, style } => {
                let mut response = ready!(inner.poll(cx))?;
                // Taken, so that a slot is free again before the response is sent.
                if let Some(verdict) = verdict.take() {
                    add_headers(response.headers_mut(), verdict.decision(), *style);
                }
                Poll::Ready(Ok(response))
            }
            Projected::Answered { response } => {
                Poll::Ready(Ok(response.take().expect("polled after it was ready")))
            }
        }
    }
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
