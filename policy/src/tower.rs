//! A layer for axum, hyper and other tower services: one hit for each request.
//!
//! | hook | what it decides | without it |
//! |---|---|---|
//! | [`peer`] | which extension knows the peer's address | a [`SocketAddr`] |
//! | [`trusted_hops`], [`trusted_proxies`] | how far `X-Forwarded-For` is believed | not at all |
//! | [`key`] | the key of a request | the client's address, by [`ip_key`](crate::ip_key) |
//! | [`fallback_key`] | the key of requests that have none | they get status 500 |
//! | [`attributes`] | what else the rule may match | the client's address, as `ip` |
//! | [`cost`] | what a request spends | 1 |
//! | [`answer`] | the layer's own responses, and their bodies | `application/problem+json` |
//! | [`style`] | which header fields a response gets | [`Style::Both`] |
//!
//! [`peer`]: RateLimitLayer::peer
//! [`trusted_hops`]: RateLimitLayer::trusted_hops
//! [`trusted_proxies`]: RateLimitLayer::trusted_proxies
//! [`key`]: RateLimitLayer::key
//! [`fallback_key`]: RateLimitLayer::fallback_key
//! [`attributes`]: RateLimitLayer::attributes
//! [`cost`]: RateLimitLayer::cost
//! [`answer`]: RateLimitLayer::answer
//! [`style`]: RateLimitLayer::style
//!
//! Any client can write a header, so headers are read only as far as proxies are trusted. A request
//! without a key never passes unlimited.
//!
//! An allowed request goes to the service. A denied request gets status 429. Both responses get the
//! fields of [`Decision::headers`](crate::Decision::headers).
//!
//! ```
//! use std::net::SocketAddr;
//! use axum::{Router, extract::ConnectInfo, routing::get};
//! use tidegate::{Limiter, tower::RateLimitLayer};
//!
//! let limiter = Limiter::new("100/min burst 20").unwrap();
//! let layer = RateLimitLayer::new(limiter.rule("default").unwrap())
//!     .peer(|ConnectInfo(peer): &ConnectInfo<SocketAddr>| *peer);
//! let app: Router = Router::new().route("/", get(async || "hello")).layer(layer);
//! // axum puts the peer's address there only if it is served so:
//! let service = app.into_make_service_with_connect_info::<SocketAddr>();
//! ```

mod answer;
mod key;
mod service;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::request::Parts;
use http::{Extensions, Response};
use tower_layer::Layer;

pub use self::answer::{AnswerDenied, ProblemJson, Refusal};
pub use self::key::{KeyPart, RequestKey};
use self::service::Judged;
pub use self::service::{RateLimit, ResponseFuture};
use crate::decision::headers::Style;
use crate::error::Error;
use crate::http::client::ProxyTrust;
use crate::ip::{V6_PREFIX, address_key};
use crate::key::Call;
use crate::rule::Rule;

type PeerOf = Arc<dyn Fn(&Extensions) -> Option<SocketAddr> + Send + Sync>;
type KeyOf = Arc<dyn Fn(&Parts, Option<&str>) -> Option<Box<dyn RequestKey>> + Send + Sync>;
type CostOf = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type AttributesOf = Arc<dyn Fn(&Parts) -> Vec<(&'static str, String)> + Send + Sync>;

/// Limits the requests of a service by a rule; see the [module](self).
///
/// `R` makes the responses to requests that do not reach the service.
///
/// ```
/// use std::net::SocketAddr;
/// use tidegate::{Limiter, tower::RateLimitLayer};
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// # #[derive(Clone)] struct Hello;
/// # impl Service<http::Request<()>> for Hello {
/// #     type Response = http::Response<String>;
/// #     type Error = std::convert::Infallible;
/// #     type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
/// #     fn poll_ready(
/// #         &mut self,
/// #         _: &mut std::task::Context<'_>,
/// #     ) -> std::task::Poll<Result<(), Self::Error>> {
/// #         std::task::Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: http::Request<()>) -> Self::Future {
/// #         std::future::ready(Ok(http::Response::new("hello".to_string())))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limiter = Limiter::new("1/min").unwrap();
/// let mut service = RateLimitLayer::new(limiter.rule("default").unwrap()).layer(Hello);
/// let request = || {
///     let peer: SocketAddr = "203.0.113.9:4711".parse().unwrap();
///     http::Request::builder().extension(peer).body(()).unwrap()
/// };
/// let first = service.call(request()).await.unwrap();
/// assert_eq!(first.headers()["x-ratelimit-remaining"], "0");
/// assert_eq!(service.call(request()).await.unwrap().status(), 429);
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimitLayer<R = ProblemJson> {
    rule: Rule,
    trust: ProxyTrust,
    peer: PeerOf,
    key: Option<KeyOf>,
    attributes: Option<AttributesOf>,
    fallback: Option<Arc<dyn RequestKey + Send + Sync>>,
    cost: Option<CostOf>,
    style: Style,
    answer: R,
}

impl RateLimitLayer {
    /// Limits by the peer's address, which is a [`SocketAddr`] in the request's extensions.
    ///
    /// A rule with a concurrent limit holds a permit until the service has made its response, or
    /// until the request is given up. It holds none while a body is sent, and none beyond the
    /// lease.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// ```
    pub fn new(rule: Rule) -> RateLimitLayer {
        RateLimitLayer {
            rule,
            trust: ProxyTrust::default(),
            peer: Arc::new(|extensions| extensions.get().copied()),
            key: None,
            attributes: None,
            fallback: None,
            cost: None,
            style: Style::default(),
            answer: ProblemJson,
        }
    }
}

impl<R> RateLimitLayer<R> {
    /// Names the extension of a request that knows the peer's address: for axum its `ConnectInfo`.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.peer(|ConnectInfo(peer): &ConnectInfo<SocketAddr>| *peer);
    /// ```
    #[must_use]
    pub fn peer<T: Send + Sync + 'static>(
        mut self,
        peer: impl Fn(&T) -> SocketAddr + Send + Sync + 'static,
    ) -> RateLimitLayer<R> {
        self.peer = Arc::new(move |extensions| extensions.get().map(&peer));
        self
    }

    /// Believes `X-Forwarded-For` for this many proxies, which no client can bypass.
    ///
    /// The client is the address number `hops` from the right. With fewer addresses than that it
    /// is the peer, as with 0.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.trusted_hops(1).unwrap(); // one load balancer, in front of everything
    /// ```
    ///
    /// # Errors
    /// If [`trusted_proxies`](RateLimitLayer::trusted_proxies) are set: hops and proxies are two
    /// ways to read one header.
    pub fn trusted_hops(self, hops: usize) -> Result<RateLimitLayer<R>, Error> {
        Ok(RateLimitLayer { trust: self.trust.with_hops(hops)?, ..self })
    }

    /// Believes `X-Forwarded-For` as far as proxies in these ranges wrote it.
    ///
    /// The client is the first address from the right that no range holds. The peer's address
    /// comes before those of the header.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.trusted_proxies(["10.0.0.0/8", "2001:db8::/32"]).unwrap();
    /// assert!(layer.clone().trusted_proxies(["localhost"]).is_err());
    /// assert!(layer.trusted_hops(1).is_err());
    /// ```
    ///
    /// # Errors
    /// If a text is neither an address nor a range, or if
    /// [`trusted_hops`](RateLimitLayer::trusted_hops) are set.
    pub fn trusted_proxies<T: AsRef<str>>(
        self,
        ranges: impl IntoIterator<Item = T>,
    ) -> Result<RateLimitLayer<R>, Error> {
        Ok(RateLimitLayer { trust: self.trust.with_proxies(ranges)?, ..self })
    }

    /// Makes the key of a request. The hook gets the client's address as a key, if the address is
    /// known. It returns `None` for a request without a key.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// #[derive(Clone)]
    /// struct Account { id: u64 } // what a layer for authentication has found out
    ///
    /// let by_account =
    ///     layer.clone().key(|request, _| Some(request.extensions.get::<Account>()?.id));
    /// // For a rule with `key: [route, client]`.
    /// let by_route = layer.key(|request, client| {
    ///     Some((request.uri.path().to_string(), client?.to_string()))
    /// });
    /// ```
    #[must_use]
    pub fn key<K: RequestKey + 'static>(
        mut self,
        key: impl Fn(&Parts, Option<&str>) -> Option<K> + Send + Sync + 'static,
    ) -> RateLimitLayer<R> {
        self.key = Some(Arc::new(move |request, client| {
            key(request, client).map(|key| Box::new(key) as Box<dyn RequestKey>)
        }));
        self
    }

    /// The key that requests without one share, in place of being answered with 500.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.fallback_key("unknown");
    /// // For a rule with `key: [route, client]`.
    /// let layer = layer.fallback_key(["unknown", "unknown"]);
    /// ```
    #[must_use]
    pub fn fallback_key(
        mut self,
        key: impl RequestKey + Send + Sync + 'static,
    ) -> RateLimitLayer<R> {
        self.fallback = Some(Arc::new(key));
        self
    }

    /// Makes the cost of a request, which is 1 without this hook. A cost of 0 spends nothing.
    ///
    /// A rule with a concurrent limit takes permits, which have no cost: any cost but 1 is answered
    /// with 500.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.cost(|request| if request.method == http::Method::POST { 5 } else { 1 });
    /// ```
    #[must_use]
    pub fn cost(
        mut self,
        cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static,
    ) -> RateLimitLayer<R> {
        self.cost = Some(Arc::new(cost));
        self
    }

    /// Which rate-limit fields the responses get.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.style(tidegate::Style::Ietf);
    /// ```
    #[must_use]
    pub fn style(self, style: Style) -> RateLimitLayer<R> {
        RateLimitLayer { style, ..self }
    }

    /// Makes the responses to requests that do not reach the service, with any type of body.
    ///
    /// The hook gets the layer's own response. A denial's rate-limit fields are added to what the
    /// hook returns, unless the hook has set them.
    ///
    /// ```
    /// use tidegate::tower::Refusal;
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.answer(|refusal, own| match refusal {
    ///     Refusal::Denied(decision) if decision.reason() == Some("cooldown") => {
    ///         let later = http::Response::builder().status(429);
    ///         let later = later.header("content-type", "text/plain");
    ///         later.body(axum::body::Body::from("Come back later.")).unwrap()
    ///     }
    ///     _ => own.map(axum::body::Body::from),
    /// });
    /// ```
    #[must_use]
    pub fn answer<B, F>(self, answer: F) -> RateLimitLayer<F>
    where
        F: Fn(&Refusal<'_>, Response<String>) -> Response<B>,
    {
        let RateLimitLayer { rule, trust, peer, key, attributes, fallback, cost, style, .. } = self;
        RateLimitLayer { rule, trust, peer, key, attributes, fallback, cost, style, answer }
    }

    /// Makes the attributes of a request, such as its role or its tier. The client's whole address
    /// is the attribute `ip`, unless the hook gives another one.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// #[derive(Clone)]
    /// struct Account { tier: String } // what a layer for authentication has found out
    ///
    /// let layer = layer.attributes(|request| match request.extensions.get::<Account>() {
    ///     Some(account) => vec![("tier", account.tier.clone())],
    ///     None => vec![],
    /// });
    /// ```
    #[must_use]
    pub fn attributes(
        mut self,
        attributes: impl Fn(&Parts) -> Vec<(&'static str, String)> + Send + Sync + 'static,
    ) -> RateLimitLayer<R> {
        self.attributes = Some(Arc::new(attributes));
        self
    }

    fn client(&self, request: &Parts) -> Option<IpAddr> {
        let peer = (self.peer)(&request.extensions).map(|peer| peer.ip());
        let lines = request.headers.get_all("x-forwarded-for").iter();
        self.trust.client(peer, lines.map(|line| line.as_bytes()))
    }

    /// What the rule says to a request; none if that has no key.
    fn judge(&self, request: &Parts) -> Result<Option<Judged>, Error> {
        let client = self.client(request);
        let address = client.map(|client| address_key(client, V6_PREFIX));
        let own = match &self.key {
            Some(key) => key(request, address.as_deref()),
            None => address.map(|address| Box::new(address) as Box<dyn RequestKey>),
        };
        let key = match (&own, &self.fallback) {
            (Some(key), _) => key.as_key(),
            (None, Some(fallback)) => fallback.as_key(),
            (None, None) => return Ok(None),
        };
        let mut attributes = self.attributes.as_ref().map_or(Vec::new(), |of| of(request));
        // Last, since the first of a name counts.
        attributes.extend(client.map(|client| ("ip", client.to_string())));
        let attributes: Vec<(&str, &str)> =
            attributes.iter().map(|(name, value)| (*name, &**value)).collect();
        let cost = self.cost.as_ref().map_or(1, |cost| cost(request));
        Judged::of(&self.rule, Call::of(key).with(&attributes), cost).map(Some)
    }
}

impl<R> fmt::Debug for RateLimitLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule.name())
            .field("trust", &self.trust)
            .field("fallback", &self.fallback.as_ref().map(|key| key.as_key()))
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

impl<S, R: Clone> Layer<S> for RateLimitLayer<R> {
    type Service = RateLimit<S, R>;

    fn layer(&self, inner: S) -> RateLimit<S, R> {
        RateLimit::new(inner, self.clone())
    }
}
