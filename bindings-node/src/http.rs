//! What the integrations share with other languages: client addresses and refusals.

use std::rc::Rc;

use policy::Code;
use policy::http::{Denial, ProxyTrust, read_address, unjudged};

use crate::failure::Failure;
use crate::handle::{Handle, json_of};
use crate::js::{Kind, Result, Scope, Value};
use crate::key::{count, text};
use crate::surface::{Add, NativeCall, Surface, bind};

type Cold<'c> = NativeCall<'c, ()>;

/// What `trustedProxies` and `trustedHops` are refused for is a wrong argument, in JavaScript.
fn refused(error: policy::Error) -> Failure {
    match error.code() {
        Code::Address => Failure::range(error.to_string()),
        _ => Failure::argument(error.to_string()),
    }
}

fn ranges(scope: Scope<'_>, value: Value) -> Result<Vec<String>> {
    let wrong = || Failure::argument("trustedProxies is an array of strings");
    let len = scope.array_len(value)?.ok_or_else(wrong)?;
    (0..len).map(|at| text(scope, scope.element(value, at)?, "a trusted proxy")).collect()
}

/// A text that may be missing. Lone surrogates are replaced: no address has any.
fn bytes(scope: Scope<'_>, value: Value, what: &str) -> Result<Option<Vec<u8>>> {
    match scope.kind(value)? {
        Kind::Undefined | Kind::Null => Ok(None),
        _ => match scope.long_text(value) {
            Some(text) => Ok(Some(text)),
            None => Err(Failure::argument(format!("{what} is not a string"))),
        },
    }
}

pub(crate) fn functions(add: Add<'_>, scope: Scope<'_>, surface: &Rc<Surface>) -> Result<()> {
    macro_rules! functions {
        ($($name:literal: $body:expr;)*) => { $(add($name, bind(scope, surface, (), $body)?)?;)* };
    }
    functions! {
        c"trust": |call: Cold<'_>, [hops, proxies]: [Value; 2]| {
            let hops = count(call.scope, hops, "trustedHops")?.unwrap_or(0) as usize;
            let proxies = ranges(call.scope, proxies)?;
            let trust = ProxyTrust::default().with_hops(hops);
            let trust = trust.and_then(|trust| trust.with_proxies(proxies)).map_err(refused)?;
            call.scope.owner(Box::new(Handle::Trust(trust))).map(Some)
        };
        // The client's address, given the peer's and `X-Forwarded-For`. Undefined if unknown.
        c"client": |call: Cold<'_>, [trust, peer, header]: [Value; 3]| {
            let trust = Handle::of(call.scope, trust)?.trust()?;
            let peer = bytes(call.scope, peer, "the peer's address")?;
            let peer = peer.and_then(|peer| read_address(&peer));
            let header = bytes(call.scope, header, "X-Forwarded-For")?;
            let client = trust.client(peer, header.iter().map(Vec::as_slice));
            client.map(|client| call.scope.text(&client.to_string())).transpose()
        };
        // The body of the answer to a denied request: the decision's fields as JSON.
        c"denialBody": |call: Cold<'_>, [decision]: [Value; 1]| {
            let decision = json_of(call.scope, decision)?;
            let attach = Some(&decision["attach"]).filter(|attach| !attach.is_null());
            let denial = Denial {
                rule: decision["rule"].as_str().unwrap_or_default(),
                reason: decision["reason"].as_str(),
                retry_after_ms: decision["retryAfterMs"].as_u64(),
                attach,
            };
            call.scope.text(&denial.body()).map(Some)
        };
        c"unjudgedBody": |call: Cold<'_>, [detail]: [Value; 1]| {
            call.scope.text(&unjudged(&text(call.scope, detail, "the detail")?)).map(Some)
        };
    }
    Ok(())
}
