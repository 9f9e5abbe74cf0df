//! Whose request it is: the peer, or whom a trusted proxy names.
//!
//! `X-Forwarded-For` grows at its right end: each proxy adds the address that it was called from. What
//! stands left of the first address that a trusted proxy wrote can be anybody's invention, so it is
//! read from the right, and only as far as somebody trusted wrote it.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use crate::ip::{Range, parse_address};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Whose word on the client's address counts.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// Nobody's: the client is the peer.
    Peer,
    /// As many proxies stand before the service, whatever their addresses.
    Hops(usize),
    /// Those of proxies in these ranges.
    Proxies(Vec<Range>),
}

impl Trust {
    /// The client's address, unmapped. Where the header falls short of what was promised, it is the
    /// last address that is sure: a proxy's, which its clients then share, and never an invented one.
    pub(crate) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let peer = peer.map(|address| address.to_canonical());
        match self {
            Trust::Peer | Trust::Hops(0) => peer,
            Trust::Hops(hops) => forwarded(headers).nth(hops - 1).flatten().or(peer),
            Trust::Proxies(ranges) => peer.map(|peer| beyond(peer, headers, ranges)),
        }
    }
}

/// The first address from the right that is not a trusted proxy's.
fn beyond(peer: IpAddr, headers: &HeaderMap, ranges: &[Range]) -> IpAddr {
    let mut named = forwarded(headers);
    let mut last = peer;
    while ranges.iter().any(|range| range.holds(last)) {
        match named.next().flatten() {
            Some(address) => last = address,
            None => break,
        }
    }
    last
}

/// What `X-Forwarded-For` names, from the right; `None` for what is no address.
fn forwarded(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let items = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
    items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty()).map(read)
}

/// An address as proxies write it: some add the port, and brackets.
fn read(item: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(item).ok()?;
    let bracketed = || parse_address(text.strip_prefix('[')?.strip_suffix(']')?);
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip().to_canonical());
    parse_address(text).or_else(bracketed).or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trust: &Trust, peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let client = trust.client(peer.parse().ok(), &headers);
        client.map_or(String::new(), |address| address.to_string())
    }

    #[test]
    fn hops_are_counted_from_the_right_over_all_lines() {
        let lines = ["6.6.6.6, 1.1.1.1", "2.2.2.2 ,, 3.3.3.3,"];
        let nth = |hops| client(&Trust::Hops(hops), "10.0.0.1", &lines);
        assert_eq!(
            [0, 1, 2, 3, 4].map(nth),
            ["10.0.0.1", "3.3.3.3", "2.2.2.2", "1.1.1.1", "6.6.6.6"]
        );
        assert_eq!(nth(5), "10.0.0.1", "too few: the peer");
        assert_eq!(client(&Trust::Hops(1), "10.0.0.1", &["1.1.1.1, unknown"]), "10.0.0.1");
        assert_eq!(
            client(&Trust::Hops(1), "", &["1.1.1.1"]),
            "1.1.1.1",
            "a socket without addresses"
        );
        assert_eq!(client(&Trust::Hops(2), "", &["1.1.1.1"]), "");
    }

    #[test]
    fn trusted_ranges_are_walked_up_to_the_first_stranger() {
        let trust = Trust::Proxies(vec![Range::parse("10.0.0.0/8").unwrap()]);
        let of = |peer: &str, line: &str| client(&trust, peer, &[line]);
        assert_eq!(of("9.9.9.9", "1.1.1.1"), "9.9.9.9", "a stranger's word");
        assert_eq!(of("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2"), "1.1.1.1");
        assert_eq!(of("::ffff:10.0.0.1", "6.6.6.6, ::ffff:1.1.1.1"), "1.1.1.1");
        assert_eq!(of("10.0.0.1", "1.1.1.1, junk, 10.0.0.2"), "10.0.0.2", "the last that is sure");
        assert_eq!(of("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3");
        assert_eq!(client(&trust, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(of("", "1.1.1.1"), "", "nobody is there to be trusted");
    }

    #[test]
    fn addresses_may_come_with_ports_and_brackets() {
        let addresses =
            ["1.1.1.1:80", "[2001:db8::1]:80", "[2001:db8::1]", "2001:db8::1", "::ffff:1.1.1.1"];
        let read = |text: &str| read(text.as_bytes()).map_or(String::new(), |a| a.to_string());
        let expected = ["1.1.1.1", "2001:db8::1", "2001:db8::1", "2001:db8::1", "1.1.1.1"];
        assert_eq!(addresses.map(read), expected);
        assert_eq!(
            ["", "unknown", "_hidden", "1.1.1.1:x", "[1.1.1.1", "\u{e9}"].map(read),
            [""; 6]
        );
    }
}
