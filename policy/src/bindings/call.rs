//! A call that borrows nothing.

use std::net::IpAddr;

use crate::key::{Call, Key, RESERVED};

/// As [`ip_key`](crate::ip_key), of an address that was read and unmapped.
///
/// ```
/// let address = "2001:db8:1:2ff::7".parse().unwrap();
/// assert_eq!(tidegate::bindings::address_key(address, 56), "2001:db8:1:200::/56");
/// ```
pub fn address_key(address: IpAddr, v6_prefix: u8) -> String {
    crate::ip::address_key(address, v6_prefix)
}

/// Whether an operation takes this name itself, so that it is never an attribute.
///
/// ```
/// use tidegate::bindings::is_reserved;
/// assert_eq!((is_reserved("cost"), is_reserved("role")), (true, false));
/// ```
#[inline]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|(reserved, _)| *reserved == name)
}

/// A call that outlives the values that its caller handed over: a waiting call is one.
///
/// ```
/// use tidegate::bindings::OwnedCall;
///
/// let role = ("role".to_string(), "admin".to_string());
/// let call = OwnedCall::new(vec![b"alice".to_vec()], vec![role], Some(5));
/// let limiter = tidegate::Limiter::new("1/s").unwrap();
/// assert_eq!(call.with(|call| limiter.peek(call, 0)).unwrap().limit, Some(5));
/// ```
#[derive(Clone, Debug)]
pub struct OwnedCall {
    parts: Vec<Vec<u8>>,
    attributes: Vec<(String, String)>,
    max: Option<u64>,
}

impl OwnedCall {
    /// A call of these key parts, these attributes by name, and a `max` of its own.
    pub fn new(
        parts: Vec<Vec<u8>>,
        attributes: Vec<(String, String)>,
        max: Option<u64>,
    ) -> OwnedCall {
        OwnedCall { parts, attributes, max }
    }

    /// Its key.
    pub fn key(&self) -> Key<'_> {
        Key::parts(self.parts.iter().map(Vec::as_slice))
    }

    /// Runs `body` on the call.
    pub fn with<R>(&self, body: impl FnOnce(Call<'_>) -> R) -> R {
        let call = Call { max: self.max, ..Call::of(self.key()) };
        if self.attributes.is_empty() {
            return body(call);
        }
        let pairs = self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs: Vec<_> = pairs.collect();
        body(call.with(&pairs))
    }
}
