//! The layer in front of a real axum server, asked over real sockets.
#![cfg(feature = "tower")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tidegate::tower::{AnswerDenied, RateLimit, RateLimitLayer, Refusal, RequestKey};
use tidegate::{Limiter, ManualClock, Rule, Style};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;
use tower_service::Service;

/// A response as it came over the wire.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Answer {
    fn parse(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_string())
        };
        Answer { status, headers: lines.map(header).collect(), body: body.to_string() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server at work, on `127.0.0.1` or on all addresses of both families.
struct Server(SocketAddr);

impl Server {
    async fn start<R: AnswerDenied<Body> + Clone + Send + Sync + 'static>(
        layer: RateLimitLayer<R>,
    ) -> Server {
        Server::start_at("127.0.0.1:0", app(layer)).await
    }

    async fn start_at(address: &str, app: Router) -> Server {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Server(address)
    }

    async fn get_from(&self, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut stream = TcpStream::connect((host, self.0.port())).await.unwrap();
        let headers: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
        stream.write_all(format!("{head}{headers}\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        Answer::parse(&text)
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.get_from("127.0.0.1", path, headers).await
    }

    /// The status for a client that a header names.
    async fn status_for(&self, forwarded_for: &str) -> u16 {
        self.get("/", &[("X-Forwarded-For", forwarded_for)]).await.status
    }
}

fn app<R: AnswerDenied<Body> + Clone + Send + Sync + 'static>(layer: RateLimitLayer<R>) -> Router {
    let own = || async { ([("x-ratelimit-limit", "the handler's")], "own") };
    Router::new().route("/", get(|| async { "hello" })).route("/own", get(own)).layer(layer)
}

/// A rule by a clock that stands still, so that nothing is refilled.
fn rule(policy: Value) -> Rule {
    let clock = ManualClock::new(Duration::ZERO, Duration::from_secs(1_000)).clock();
    let policy = json!({"version": 1, "rules": {"http": policy}});
    let options = Limiter::builder().clock(clock);
    options.value(&policy).build().unwrap().rule("http").unwrap()
}

/// By axum's peer address.
fn layer(policy: Value) -> RateLimitLayer {
    RateLimitLayer::new(rule(policy)).peer(|ConnectInfo(peer): &ConnectInfo<SocketAddr>| *peer)
}

#[tokio::test]
async fn passes_until_the_limit_then_says_429() {
    let server = Server::start(layer(json!({"limits": "2/min"}))).await;
    for left in ["1", "0"] {
        let answer = server.get("/", &[]).await;
        assert_eq!((answer.status, &*answer.body), (200, "hello"));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("2"));
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(left));
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""2/min";q=2;w=60"#));
        assert_eq!(answer.header("retry-after"), None);
    }
    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(denied.header("x-ratelimit-reset"), Some("1030"));
    assert_eq!(denied.header("ratelimit"), Some(r#""2/min";r=0;t=30"#));
    assert_eq!(denied.header("retry-after"), Some("30"));
    let expected = json!({
        "type": "about:blank", "title": "Too Many Requests", "status": 429,
        "detail": "The rate limit is reached; try again in 30000 ms.",
        "rule": "http", "reason": "2/min", "retry_after_ms": 30_000,
    });
    assert_eq!(denied.problem(), expected);
}

#[tokio::test]
async fn denial_hands_back_what_the_rule_attaches() {
    let attach = json!({"upgrade": "/plans", "fee": 5});
    let server = Server::start(layer(json!({"limits": "0/min", "attach": attach}))).await;
    let denied = server.get("/", &[]).await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, None));
    let problem = denied.problem();
    assert_eq!((&problem["attach"], &problem["retry_after_ms"]), (&attach, &Value::Null));
}

#[tokio::test]
async fn forwarded_for_is_ignored_unless_a_proxy_is_trusted() {
    let server = Server::start(layer(json!({"limits": "1/min"}))).await;
    assert_eq!(server.status_for("198.51.100.1").await, 200);
    assert_eq!(server.status_for("198.51.100.2").await, 429);
}

#[tokio::test]
async fn trusted_hops_name_the_client_from_the_right() {
    let server = Server::start(layer(json!({"limits": "1/min"})).trusted_hops(2).unwrap()).await;
    assert_eq!(server.status_for("198.51.100.1, 10.0.0.1").await, 200);
    assert_eq!(server.status_for("6.6.6.6, 198.51.100.1, 10.0.0.1").await, 429, "an invention");
    assert_eq!(server.status_for("198.51.100.2, 10.0.0.1").await, 200);
    assert_eq!(server.status_for("198.51.100.3").await, 200, "too few hops: the peer");
    assert_eq!(server.status_for("198.51.100.4").await, 429);
}

#[tokio::test]
async fn trusted_proxies_are_skipped_from_the_right() {
    let trusting = |ranges: [&'static str; 2]| {
        layer(json!({"limits": "1/min"})).trusted_proxies(ranges).unwrap()
    };
    let server = Server::start(trusting(["127.0.0.1", "10.0.0.0/8"])).await;
    assert_eq!(server.status_for("198.51.100.1, 10.0.0.1").await, 200);
    assert_eq!(server.status_for("6.6.6.6, 198.51.100.1").await, 429);
    assert_eq!(server.status_for("6.6.6.6, 198.51.100.2").await, 200);
    let server = Server::start(trusting(["192.0.2.1", "10.0.0.0/8"])).await;
    assert_eq!(server.status_for("198.51.100.1").await, 200);
    assert_eq!(server.status_for("198.51.100.2").await, 429, "the peer is not trusted");
}

#[tokio::test]
async fn mapped_ipv4_is_the_same_client() {
    let app = app(layer(json!({"limits": "1/min"})).trusted_hops(1).unwrap());
    // A socket of both families, where there are two, sees an IPv4 peer as a mapped address.
    let both =
        ["[::]:0", "127.0.0.1:0"].into_iter().find(|at| std::net::TcpListener::bind(at).is_ok());
    let server = Server::start_at(both.unwrap(), app).await;
    assert_eq!(server.get("/", &[]).await.status, 200);
    assert_eq!(server.status_for("127.0.0.1").await, 429, "the peer's own");
    assert_eq!(server.status_for("::ffff:198.51.100.1").await, 200);
    assert_eq!(server.status_for("198.51.100.1").await, 429);
}

#[tokio::test]
async fn ipv6_clients_differ_by_their_first_56_bits() {
    let server = Server::start(layer(json!({"limits": "1/min"})).trusted_hops(1).unwrap()).await;
    assert_eq!(server.status_for("2001:db8:1:200::1").await, 200);
    assert_eq!(server.status_for("2001:db8:1:2ff::2").await, 429);
    assert_eq!(server.status_for("2001:db8:1:300::1").await, 200);
}

#[tokio::test]
async fn without_a_peer_address_nothing_passes() {
    // axum puts `ConnectInfo` into the request, not a plain address.
    let blind = RateLimitLayer::new(rule(json!({"limits": "100/min"})));
    let answer = Server::start(blind).await.get("/", &[("X-Forwarded-For", "1.1.1.1")]).await;
    assert_eq!(answer.status, 500);
    let problem = answer.problem();
    assert_eq!(problem["title"], "Internal Server Error");
    assert!(problem["detail"].as_str().unwrap().contains("fallback_key"), "{problem}");
}

#[tokio::test]
async fn requests_without_a_key_share_the_fallback() {
    let rule = rule(json!({"limits": "1/min"}));
    let blind = RateLimitLayer::new(rule.clone()).fallback_key(["unknown"]);
    let server = Server::start(blind).await;
    assert_eq!(server.get("/", &[]).await.status, 200);
    assert_eq!(server.get("/", &[]).await.status, 429);
    assert!(!rule.allow("unknown").unwrap());
}

#[tokio::test]
async fn keys_may_have_several_parts() {
    let by_path = layer(json!({"key": ["path", "client"], "limits": "1/min"}))
        .key(|request, client| Some([request.uri.path().to_string(), client?.to_string()]));
    let server = Server::start(by_path).await;
    let mut seen = Vec::new();
    for path in ["/", "/", "/own"] {
        seen.push(server.get(path, &[]).await.status);
    }
    assert_eq!(seen, [200, 429, 200]);
}

#[tokio::test]
async fn key_of_the_wrong_shape_is_an_error() {
    let server = Server::start(layer(json!({"key": ["path", "client"], "limits": "1/min"}))).await;
    let answer = server.get("/", &[]).await;
    assert_eq!(answer.status, 500);
    assert!(answer.problem()["detail"].as_str().unwrap().contains("parts"), "{answer:?}");
}

#[tokio::test]
async fn attributes_reach_the_rule() {
    let policy = json!({
        "limits": "1/min",
        "when": [{"match": {"tier": "paid"}, "limits": {"1/min": {"max": 2}}}],
        "exempt": [{"ip": "198.51.100.0/24"}],
    });
    let tier = |request: &http::request::Parts| match request.headers.contains_key("x-paid") {
        true => vec![("tier", "paid".to_string())],
        false => vec![],
    };
    let server = Server::start(layer(policy).trusted_hops(1).unwrap().attributes(tier)).await;
    assert_eq!(server.get("/", &[("x-paid", "1")]).await.header("x-ratelimit-limit"), Some("2"));
    for _ in 0..3 {
        let exempt = server.get("/", &[("X-Forwarded-For", "198.51.100.7")]).await;
        assert_eq!((exempt.status, exempt.header("ratelimit")), (200, None));
    }
}

#[tokio::test]
async fn fields_that_the_handler_set_stay() {
    let server = Server::start(layer(json!({"limits": "2/min"}))).await;
    let answer = server.get("/own", &[]).await;
    assert_eq!(answer.header("x-ratelimit-limit"), Some("the handler's"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("1"));
}

#[tokio::test]
async fn slot_is_held_while_the_service_works() {
    let rule = rule(json!({"limits": "1 concurrent"}));
    let seen = rule.clone();
    let handler = get(async move || (!seen.permit("127.0.0.1").unwrap().is_held()).to_string());
    let peer = |ConnectInfo(peer): &ConnectInfo<SocketAddr>| *peer;
    let app = Router::new().route("/", handler).layer(RateLimitLayer::new(rule.clone()).peer(peer));
    let server = Server::start_at("127.0.0.1:0", app).await;
    for _ in 0..3 {
        let answer = server.get("/", &[]).await;
        assert_eq!((answer.status, &*answer.body), (200, "true"));
    }
    let _taken = rule.permit("127.0.0.1").unwrap();
    assert_eq!(server.get("/", &[]).await.status, 429);
}

#[tokio::test]
async fn closed_limiter_lets_nothing_pass() {
    let limiter = Limiter::new("100/min").unwrap();
    let rule = limiter.rule("default").unwrap();
    let server = Server::start(RateLimitLayer::new(rule).fallback_key(["all"])).await;
    assert_eq!(server.get("/", &[]).await.status, 200);
    limiter.close();
    assert_eq!(server.get("/", &[]).await.status, 500);
}

#[tokio::test]
async fn hops_and_proxies_exclude_each_other() {
    let plain = || layer(json!({"limits": "1/min"}));
    let hops_first = plain().trusted_hops(1).unwrap().trusted_proxies(["10.0.0.0/8"]);
    let proxies_first = plain().trusted_proxies(["10.0.0.0/8"]).unwrap().trusted_hops(1);
    for refused in [hops_first, proxies_first] {
        assert!(refused.unwrap_err().to_string().contains("not both"));
    }
}

#[tokio::test]
async fn answer_hook_makes_the_response_of_a_denial() {
    let layer = layer(json!({"limits": "1/min"})).answer(|refusal, own| match refusal {
        Refusal::Denied(decision) => Response::builder()
            .status(StatusCode::SERVICE_UNAVAILABLE)
            .header("x-ratelimit-limit", "the hook's")
            .body(Body::from(format!("wait {} s", decision.retry_after.unwrap().as_secs())))
            .unwrap(),
        _ => own.map(Body::from),
    });
    let server = Server::start(layer).await;
    assert_eq!(server.get("/", &[]).await.body, "hello");
    let denied = server.get("/", &[]).await;
    assert_eq!((denied.status, &*denied.body), (503, "wait 60 s"));
    assert_eq!(denied.header("x-ratelimit-limit"), Some("the hook's"));
    assert_eq!(denied.header("retry-after"), Some("60"));
    assert_eq!(denied.header("content-type"), None);
}

#[tokio::test]
async fn answer_hook_makes_the_response_without_a_judgement() {
    let kind = |refusal: &Refusal<'_>, own: Response<String>| match refusal {
        Refusal::NoKey => own.map(|_| Body::from("no key")),
        Refusal::Failed(error) => own.map(|_| Body::from(error.code().as_str())),
        _ => own.map(Body::from),
    };
    let blind = RateLimitLayer::new(rule(json!({"limits": "1/min"}))).answer(kind);
    let answer = Server::start(blind).await.get("/", &[]).await;
    assert_eq!((answer.status, &*answer.body), (500, "no key"));
    let misfit = layer(json!({"key": ["path", "client"], "limits": "1/min"})).answer(kind);
    let answer = Server::start(misfit).await.get("/", &[]).await;
    assert_eq!((answer.status, &*answer.body), (500, "key"));
}

/// A service with bodies of one type.
#[derive(Clone)]
struct Hello<B>(fn(&'static str) -> B);

impl<A, B> Service<Request<A>> for Hello<B> {
    type Response = Response<B>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<B>, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<A>) -> Self::Future {
        std::future::ready(Ok(Response::new((self.0)("hello"))))
    }
}

/// What two requests with a body of type `A` get, by a limit of one.
async fn two<A, B, R>(mut service: RateLimit<Hello<B>, R>, body: impl Fn() -> A) -> [String; 2]
where
    B: HttpBody,
    R: AnswerDenied<B>,
{
    let mut texts = [String::new(), String::new()];
    for text in &mut texts {
        let peer: SocketAddr = "203.0.113.9:4711".parse().unwrap();
        let request = Request::builder().extension(peer).body(body()).unwrap();
        let response = service.call(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.ok().unwrap().to_bytes();
        *text = format!("{status} {}", &std::str::from_utf8(&bytes).unwrap()[..5]);
    }
    texts
}

#[tokio::test]
async fn any_body_of_requests_and_responses_will_do() {
    let layer = || RateLimitLayer::new(rule(json!({"limits": "1/min"})));
    let expected = ["200 hello", "429 {\"typ"];
    let full = Hello(Full::<Bytes>::from);
    assert_eq!(two(layer().layer(full), || ()).await, expected);
    assert_eq!(two(layer().layer(Hello(String::from)), Body::empty).await, expected);
    assert_eq!(two(layer().layer(Hello(Body::from)), Vec::<u8>::new).await, expected);
    // A body that no text turns into needs the hook.
    let boxed: fn(&'static str) -> BoxBody<Bytes, Infallible> = |text| Full::from(text).boxed();
    let hook = |_: &Refusal<'_>, own: Response<String>| own.map(|text| Full::from(text).boxed());
    assert_eq!(two(layer().answer(hook).layer(Hello(boxed)), || ()).await, expected);
}

#[tokio::test]
async fn cost_hook_says_what_a_request_spends() {
    let cost = |request: &http::request::Parts| {
        request.headers.get("x-cost").map_or(1, |cost| cost.to_str().unwrap().parse().unwrap())
    };
    let server = Server::start(layer(json!({"limits": "5/min"})).cost(cost)).await;
    for (cost, left) in [("3", "2"), ("0", "2"), ("2", "0")] {
        let answer = server.get("/", &[("x-cost", cost)]).await;
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining")), (200, Some(left)));
    }
    assert_eq!(server.get("/", &[]).await.status, 429);
    assert_eq!(server.get("/", &[("x-cost", "6")]).await.problem()["reason"], "cost");
}

#[tokio::test]
async fn permits_have_no_cost() {
    let server = Server::start(layer(json!({"limits": "1 concurrent"})).cost(|_| 1)).await;
    assert_eq!(server.get("/", &[]).await.status, 200);
    for cost in [0, 2] {
        let layer = layer(json!({"limits": "1 concurrent"})).cost(move |_| cost);
        let answer = Server::start(layer).await.get("/", &[]).await;
        assert_eq!(answer.status, 500);
        assert!(answer.problem()["detail"].as_str().unwrap().contains("permit"), "{answer:?}");
    }
}

#[tokio::test]
async fn style_says_which_fields_a_response_gets() {
    for (style, legacy, ietf) in
        [(Style::Legacy, true, false), (Style::Ietf, false, true), (Style::Both, true, true)]
    {
        let server = Server::start(layer(json!({"limits": "1/min"})).style(style)).await;
        for status in [200, 429] {
            let answer = server.get("/", &[]).await;
            assert_eq!(answer.status, status);
            assert_eq!(answer.header("x-ratelimit-limit").is_some(), legacy);
            assert_eq!(answer.header("ratelimit").is_some(), ietf);
        }
    }
}

#[tokio::test]
async fn key_hook_returns_what_makes_a_key() {
    fn keyed<K: RequestKey + 'static>(
        rule: &Rule,
        key: impl Fn() -> K + Send + Sync + 'static,
    ) -> RateLimitLayer {
        RateLimitLayer::new(rule.clone()).key(move |_, _| Some(key()))
    }
    let one = rule(json!({"limits": "1/min"}));
    let two = rule(json!({"limits": "1/min", "key": ["a", "b"]}));
    let address: IpAddr = "2001:db8::1".parse().unwrap();
    let plain = [
        (keyed(&one, || "text"), "text"),
        (keyed(&one, || "owned".to_string()), "owned"),
        (keyed(&one, || u64::MAX), "18446744073709551615"),
        (keyed(&one, || -7_i64), "-7"),
        (keyed(&one, move || address), "2001:db8::1"),
        (keyed(&one, || vec!["list"]), "list"),
    ];
    for (layer, same) in plain {
        assert_eq!(Server::start(layer).await.get("/", &[]).await.status, 200);
        assert!(!one.allow(same).unwrap(), "{same}");
    }
    let parts = [
        (keyed(&two, || ["a", "1"]), ["a", "1"]),
        (keyed(&two, || vec![b"b".to_vec(), b"2".to_vec()]), ["b", "2"]),
        (keyed(&two, || ("c".to_string(), 3_u64)), ["c", "3"]),
        (keyed(&two, || (4, "d")), ["4", "d"]),
    ];
    for (layer, same) in parts {
        assert_eq!(Server::start(layer).await.get("/", &[]).await.status, 200);
        assert!(!two.allow(same).unwrap(), "{same:?}");
    }
    let fallback = RateLimitLayer::new(one.clone()).fallback_key(99_u64);
    assert_eq!(Server::start(fallback).await.get("/", &[]).await.status, 200);
    assert!(!one.allow("99").unwrap());
}
