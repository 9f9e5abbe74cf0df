//! The client of a request: the peer, or the address that a trusted proxy names.
//!
//! `X-Forwarded-For` grows at its right end: each proxy adds the address that called it. Addresses
//! left of the first one that a trusted proxy wrote can be invented. So the header is read from the
//! right, and only as far as trusted proxies wrote it.
//!
//! `tests/vectors/http/client.json` holds the cases that every surface replays.

use std::net::IpAddr;

use crate::error::{Code, Error};
use crate::ip::{Range, parse_address};

const BOTH: &str =
    "either trusted hops or trusted proxies, not both: they are two ways to read one header";

/// The proxies whose `X-Forwarded-For` a service believes.
///
/// ```
/// use tidegate::http::ProxyTrust;
///
/// let lines = ["6.6.6.6, 203.0.113.9, 10.0.0.2"];
/// let lines = || lines.iter().map(|line| line.as_bytes());
/// let peer = "10.0.0.1".parse().ok();
///
/// let none = ProxyTrust::default();
/// assert_eq!(none.client(peer, lines()), peer);
/// let proxies = ProxyTrust::default().with_proxies(["10.0.0.0/8"]).unwrap();
/// assert_eq!(proxies.client(peer, lines()), "203.0.113.9".parse().ok());
/// assert!(proxies.with_hops(2).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProxyTrust {
    /// How many proxies stand before the service, whatever their addresses. Zero with `proxies`.
    hops: usize,
    /// Where the trusted proxies are. Empty with `hops`.
    proxies: Vec<Range>,
}

impl ProxyTrust {
    /// Believes this many proxies, whatever their addresses.
    ///
    /// # Errors
    /// If ranges of proxies are trusted already.
    pub fn with_hops(self, hops: usize) -> Result<ProxyTrust, Error> {
        ProxyTrust { hops, ..self }.checked()
    }

    /// Believes the proxies in these ranges.
    ///
    /// # Errors
    /// If a text is neither an address nor a range, or if a number of hops is trusted already.
    pub fn with_proxies<R: AsRef<str>>(
        self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<ProxyTrust, Error> {
        let ranges = ranges.into_iter().map(|range| Range::parse(range.as_ref()));
        let proxies: Result<_, String> = ranges.collect();
        let proxies = proxies.map_err(|message| Error::new(Code::Address, message))?;
        ProxyTrust { proxies, ..self }.checked()
    }

    fn checked(self) -> Result<ProxyTrust, Error> {
        match self.hops > 0 && !self.proxies.is_empty() {
            true => Err(Error::new(Code::Operation, BOTH)),
            false => Ok(self),
        }
    }

    /// The client's address, unmapped. `lines` are those of `X-Forwarded-For`, in their order.
    ///
    /// A header may hold fewer addresses than there are hops, or an item that is no address. Then
    /// the result is the peer with hops, and the last trusted proxy with ranges. The clients of
    /// that proxy share its key, and no invented address is believed.
    pub fn client<'a>(
        &self,
        peer: Option<IpAddr>,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> Option<IpAddr> {
        let peer = peer.map(|address| address.to_canonical());
        let mut named = named(lines);
        match self.hops {
            0 => peer.map(|peer| self.beyond(peer, named)),
            hops => named.nth(hops - 1).flatten().or(peer),
        }
    }

    /// The first address from the right that is not a trusted proxy's.
    fn beyond(&self, peer: IpAddr, mut named: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut last = peer;
        while self.proxies.iter().any(|range| range.holds(last)) {
            match named.next().flatten() {
                Some(address) => last = address,
                None => break,
            }
        }
        last
    }
}

/// The addresses of a header, from the right; `None` for an item that is no address.
fn named<'a>(
    lines: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> impl Iterator<Item = Option<IpAddr>> {
    let items = lines.rev().flat_map(|line| line.rsplit(|&byte| byte == b','));
    items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty()).map(read_address)
}

/// Reads an address as proxies and servers write it, perhaps with brackets and a port.
///
/// ```
/// use tidegate::http::read_address;
///
/// assert_eq!(read_address(b"[2001:db8::1]:443"), "2001:db8::1".parse().ok());
/// assert_eq!(read_address(b"203.0.113.9:4711"), "203.0.113.9".parse().ok());
/// assert_eq!(read_address(b"unknown"), None);
/// ```
pub fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        let is_end = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return parse_address(address).filter(|_| is_end);
    }
    // Without brackets, only an IPv4 address can have a port: it has no colon of its own.
    match text.split_once(':') {
        Some((address, port)) if address.contains('.') && is_port(port) => parse_address(address),
        _ => parse_address(text),
    }
}

fn is_port(text: &str) -> bool {
    let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (1..=5).contains(&text.len()) && are_digits && text.parse::<u16>().is_ok()
}
