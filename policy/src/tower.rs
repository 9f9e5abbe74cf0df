//! A layer for axum, hyper and other tower services: one hit for each request.
//!
//! Who is limited is the client's address, by [`ip_key`](crate::ip_key), unless a [`key`](RateLimitLayer::key)
//! is given. That address is the peer's; headers can be written by anybody, so they are read only where
//! [`trusted_hops`](RateLimitLayer::trusted_hops) or [`trusted_proxies`](RateLimitLayer::trusted_proxies)
//! says whose they are. A request that has no key is answered with 500, and never passes unlimited; a
//! [`fallback_key`](RateLimitLayer::fallback_key) lets all such requests share one key in place of that.
//!
//! A denied request is answered with 429, the fields of [`Decision::headers`](crate::Decision::headers) and a body of
//! `application/problem+json`; an allowed one goes to the service, and its response gets the same fields.
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
mod service;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::Extensions;
use http::request::Parts;
use tower_layer::Layer;

use self::service::Verdict;
pub use self::service::{RateLimit, ResponseFuture};
use crate::error::Error;
use crate::http::client::ProxyTrust;
use crate::ip::{V6_PREFIX, address_key};
use crate::key::{Call, Key};
use crate::rule::Rule;

type PeerOf = Arc<dyn Fn(&Extensions) -> Option<SocketAddr> + Send + Sync>;
type KeyOf = Arc<dyn Fn(&Parts, Option<&str>) -> Option<Vec<String>> + Send + Sync>;
type AttributesOf = Arc<dyn Fn(&Parts) -> Vec<(&'static str, String)> + Send + Sync>;

/// Limits the requests of a service by a rule; see the [module](self).
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
/// #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
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
pub struct RateLimitLayer {
    rule: Rule,
    trust: ProxyTrust,
    peer: PeerOf,
    key: Option<KeyOf>,
    attributes: Option<AttributesOf>,
    fallback: Option<Vec<String>>,
}

impl RateLimitLayer {
    /// Limits by the peer's address, which a [`SocketAddr`] in the request's extensions tells.
    ///
    /// A rule with a concurrent limit holds its slot until the service has answered or the request is
    /// given up, but not while a body is still being streamed (and no longer than its lease).
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
        }
    }

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
    ) -> RateLimitLayer {
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
    pub fn trusted_hops(self, hops: usize) -> Result<RateLimitLayer, Error> {
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
    pub fn trusted_proxies<R: AsRef<str>>(
        self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<RateLimitLayer, Error> {
        Ok(RateLimitLayer { trust: self.trust.with_proxies(ranges)?, ..self })
    }

    /// Makes the key, all its parts, of a request and of the key of the client's address, if that is
    /// known. `None` for a request that has none.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// // For a rule with `key: [route, client]`.
    /// let layer = layer.key(|request, client| {
    ///     Some(vec![request.uri.path().to_string(), client?.to_string()])
    /// });
    /// ```
    #[must_use]
    pub fn key(
        mut self,
        key: impl Fn(&Parts, Option<&str>) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> RateLimitLayer {
        self.key = Some(Arc::new(key));
        self
    }

    /// The key, all its parts, that requests without one share, in place of being answered with 500.
    ///
    /// ```
    /// # let limiter = tidegate::Limiter::new("100/min").unwrap();
    /// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default").unwrap());
    /// let layer = layer.fallback_key(["unknown"]);
    /// ```
    #[must_use]
    pub fn fallback_key<P: Into<String>>(
        mut self,
        parts: impl IntoIterator<Item = P>,
    ) -> RateLimitLayer {
        self.fallback = Some(parts.into_iter().map(Into::into).collect());
        self
    }

    /// Tells the rule more about a request: its role, its tier. The client's whole address is always
    /// told, as `ip`, unless this tells another.
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
    ) -> RateLimitLayer {
        self.attributes = Some(Arc::new(attributes));
        self
    }

    fn client(&self, request: &Parts) -> Option<IpAddr> {
        let peer = (self.peer)(&request.extensions).map(|peer| peer.ip());
        let lines = request.headers.get_all("x-forwarded-for").iter();
        self.trust.client(peer, lines.map(|line| line.as_bytes()))
    }

    fn key_of(&self, request: &Parts, client: Option<IpAddr>) -> Option<Vec<String>> {
        let address = client.map(|client| address_key(client, V6_PREFIX));
        let key = match &self.key {
            Some(key) => key(request, address.as_deref()),
            None => address.map(|address| vec![address]),
        };
        key.or_else(|| self.fallback.clone())
    }

    /// What the rule says to a request; none if that has no key.
    fn judge(&self, request: &Parts) -> Result<Option<Verdict>, Error> {
        let client = self.client(request);
        let Some(key) = self.key_of(request, client) else { return Ok(None) };
        let mut told = self.attributes.as_ref().map_or(Vec::new(), |told| told(request));
        // Last, since the first of a name counts.
        told.extend(client.map(|client| ("ip", client.to_string())));
        let told: Vec<(&str, &str)> = told.iter().map(|(name, value)| (*name, &**value)).collect();
        Verdict::of(&self.rule, Call::of(Key::from(&key[..])).with(&told)).map(Some)
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule.name())
            .field("trust", &self.trust)
            .field("fallback", &self.fallback)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::new(inner, self.clone())
    }
}
