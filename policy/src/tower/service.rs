//! A service whose requests are judged before it sees them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{RateLimitLayer, answer};
use crate::decision::Decision;
use crate::error::Error;
use crate::key::Call;
use crate::rule::Rule;
use crate::rule::held::Permit;

const NO_KEY: &str = "This request has no key to be limited by: either the layer's `key` gave none, or its \
    extensions hold no peer address. Name the extension that does with `peer`, or set a `fallback_key`.";

/// A decision, with the slot that it holds if the rule has any.
pub(super) enum Verdict {
    Hit(Box<Decision>),
    Permit(Box<Permit>),
}

impl Verdict {
    pub(super) fn of(rule: &Rule, call: Call<'_>) -> Result<Verdict, Error> {
        match rule.has_permits()? {
            true => Ok(Verdict::Permit(rule.permit(call)?.into())),
            false => Ok(Verdict::Hit(rule.hit(call, 1)?.into())),
        }
    }

    fn decision(&self) -> &Decision {
        match self {
            Verdict::Hit(decision) => decision,
            Verdict::Permit(permit) => permit.decision(),
        }
    }
}

/// A service whose requests are limited: what a [`RateLimitLayer`] makes of it.
///
/// Its responses' bodies must be makeable from text, as those of axum (`axum::body::Body`) and of hyper
/// (`http_body_util::Full<Bytes>`) are.
///
/// ```
/// use tidegate::tower::{RateLimit, RateLimitLayer};
/// use tower_layer::Layer;
///
/// let limiter = tidegate::Limiter::new("100/min").unwrap();
/// let layer = RateLimitLayer::new(limiter.rule("default").unwrap());
/// let service: RateLimit<axum::Router> = layer.layer(axum::Router::new());
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit<S> {
    inner: S,
    layer: Arc<RateLimitLayer>,
}

impl<S> RateLimit<S> {
    pub(super) fn new(inner: S, layer: RateLimitLayer) -> RateLimit<S> {
        RateLimit { inner, layer: Arc::new(layer) }
    }
}

impl<S, A, B> Service<Request<A>> for RateLimit<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: From<String>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let response = match self.layer.judge(&parts) {
            Ok(Some(verdict)) if verdict.decision().allowed => {
                let inner = self.inner.call(Request::from_parts(parts, body));
                return ResponseFuture { state: State::Passed { inner, verdict: Some(verdict) } };
            }
            Ok(Some(verdict)) => answer::too_many(verdict.decision()),
            Ok(None) => answer::unjudged(NO_KEY),
            Err(error) => answer::unjudged(&error.to_string()),
        };
        ResponseFuture { state: State::Answered { response: Some(response) } }
    }
}

pin_project! {
    /// The response of a [`RateLimit`]: the service's, with the decision's header fields, or a refusal.
    ///
    /// ```
    /// use tidegate::tower::ResponseFuture;
    /// use tower_service::Service;
    ///
    /// fn response<S, B>(service: &mut S, request: http::Request<()>) -> ResponseFuture<S::Future, B>
    /// where
    ///     S: Service<http::Request<()>, Response = http::Response<B>> + Clone,
    ///     B: From<String>,
    /// {
    ///     # let limiter = tidegate::Limiter::new("100/min").unwrap();
    ///     # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    ///     tower_layer::Layer::layer(&layer, service.clone()).call(request)
    /// }
    /// ```
    pub struct ResponseFuture<F, B> {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, B> {
        Passed { #[pin] inner: F, verdict: Option<Verdict> },
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
            Projected::Passed { inner, verdict } => {
                let mut response = ready!(inner.poll(cx))?;
                // Taken, so that a slot is free again before the response is sent.
                if let Some(verdict) = verdict.take() {
                    answer::add_headers(response.headers_mut(), verdict.decision());
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
