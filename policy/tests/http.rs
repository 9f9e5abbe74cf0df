//! Replays `tests/vectors/http/client.json`, which Python and Node replay too.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::http::{Denial, ProxyTrust, read_address};
use tidegate::{Error, Limiter, ManualClock};

fn table() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/http/client.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn rows(table: &Value, name: &str) -> Vec<Value> {
    table[name].as_array().unwrap().clone()
}

fn trust(row: &Value) -> Result<ProxyTrust, Error> {
    let hops = row["hops"].as_u64().unwrap_or(0) as usize;
    let proxies = row["proxies"].as_array().into_iter().flatten().map(|one| one.as_str().unwrap());
    ProxyTrust::default().with_hops(hops)?.with_proxies(proxies)
}

/// The header's lines; `repeat` says how often the last one comes.
fn lines(row: &Value) -> Vec<String> {
    let lines = row["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let mut lines: Vec<String> = lines.map(str::to_string).collect();
    if let Some(times) = row["repeat"].as_u64() {
        let last = lines.pop().unwrap();
        lines.push(last.repeat(times as usize));
    }
    lines
}

#[test]
fn every_surface_finds_the_same_client() {
    for row in rows(&table(), "cases") {
        let peer = row["peer"].as_str().and_then(|peer| read_address(peer.as_bytes()));
        let lines = lines(&row);
        let client = trust(&row).unwrap().client(peer, lines.iter().map(|line| line.as_bytes()));
        assert_eq!(client, row["client"].as_str().map(|it| it.parse::<IpAddr>().unwrap()), "{row}");
    }
}

#[test]
fn every_surface_refuses_the_same_settings() {
    for row in rows(&table(), "refused") {
        assert_eq!(row["message"], trust(&row).unwrap_err().to_string(), "{row}");
    }
    let proxies = ProxyTrust::default().with_proxies(["10.0.0.0/8"]).unwrap();
    assert!(proxies.with_hops(1).unwrap_err().to_string().contains("not both"));
}

#[test]
fn every_surface_answers_denials_with_the_same_body() {
    for row in rows(&table(), "problems") {
        let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
        let policy = json!({"version": 1, "rules": {"http": row["policy"]}});
        let limiter = Limiter::builder().value(&policy).clock(&clock).build().unwrap();
        let rule = limiter.rule("http").unwrap();
        let mut last = String::new();
        for _ in 0..row["hits"].as_u64().unwrap() {
            last = Denial::from(&rule.hit("alice", 1).unwrap()).body();
        }
        assert_eq!(row["body"], last);
    }
}

#[test]
fn a_header_that_is_no_text_names_no_client() {
    let hops = ProxyTrust::default().with_hops(1).unwrap();
    let peer = "10.0.0.1".parse().ok();
    for line in [&b"1.1.1.1, \xff"[..], b"1.1.1.1, 2.2.2.2\xc3", b"\x00"] {
        assert_eq!(hops.client(peer, [line].into_iter()), peer, "{line:?}");
    }
}
