//! Client addresses as keys, and ranges of them.

use std::net::{IpAddr, Ipv6Addr};

use crate::error::{Code, Error};

/// The part of an IPv6 address that one customer has, as a rule.
///
/// ```
/// assert_eq!(tidegate::ip_key("2001:db8::1", tidegate::V6_PREFIX).unwrap(), "2001:db8::/56");
/// ```
pub const V6_PREFIX: u8 = 56;

/// Makes a key of a client's address: an IPv4 address as it is, an IPv6 address cut to its first
/// `v6_prefix` bits, since one customer has that many. IPv4-mapped IPv6 addresses are unmapped
/// first.
///
/// ```
/// use tidegate::ip_key;
/// assert_eq!(ip_key("203.0.113.9", 56).unwrap(), "203.0.113.9");
/// assert_eq!(ip_key("::ffff:203.0.113.9", 56).unwrap(), "203.0.113.9");
/// assert_eq!(ip_key("2001:db8:1:2ff::7", 56).unwrap(), "2001:db8:1:200::/56");
/// assert!(ip_key("localhost", 56).is_err());
/// ```
///
/// # Errors
/// If the text is not an address, or the prefix is longer than 128.
pub fn ip_key(address: &str, v6_prefix: u8) -> Result<String, Error> {
    let parsed = parse_address(address).ok_or_else(|| {
        Error::new(
            Code::Address,
            format!("{address:?} is not an IP address (without port, brackets or spaces)"),
        )
    })?;
    if v6_prefix > 128 {
        return Err(Error::new(
            Code::Address,
            format!("a prefix has 0 to 128 bits, not {v6_prefix}"),
        ));
    }
    Ok(address_key(parsed, v6_prefix))
}

/// The key of an address that was unmapped.
pub(crate) fn address_key(address: IpAddr, v6_prefix: u8) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) if v6_prefix == 128 => v6.to_string(),
        IpAddr::V6(v6) => format!("{}/{v6_prefix}", cut(v6, v6_prefix)),
    }
}

fn cut(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

/// An address, unmapped; a zone (`%eth0`) says nothing about who it is.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(a, z)| (a, Some(z)));
    let address: IpAddr = address.parse().ok()?;
    if zone.is_some_and(|zone| zone.is_empty() || address.is_ipv4()) {
        return None;
    }
    Some(address.to_canonical())
}

/// A range of addresses: those that share its first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or a single address.
    pub(crate) fn parse(text: &str) -> Result<Range, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("{text:?} is not an address or a range of them"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits =
            match bits {
                None => most,
                Some(bits) => bits.parse().ok().filter(|&b| b <= most).ok_or_else(|| {
                    format!("{text:?}: a prefix of {address} has 0 to {most} bits")
                })?,
            };
        // A range within the IPv4-mapped addresses is one of IPv4.
        Ok(match address.to_canonical() {
            v4 @ IpAddr::V4(_) if address.is_ipv6() && bits >= 96 => {
                Range { address: v4, bits: bits - 96 }
            }
            _ => Range { address, bits },
        })
    }

    pub(crate) fn bits(self) -> u8 {
        self.bits
    }

    pub(crate) fn holds(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                (a.to_bits() ^ b.to_bits()) & mask == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => cut(a, self.bits) == cut(b, self.bits),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(range: &str, address: &str) -> bool {
        Range::parse(range).unwrap().holds(parse_address(address).unwrap())
    }

    #[test]
    fn ranges_hold_what_shares_their_first_bits() {
        assert!(holds("10.0.0.0/8", "10.255.1.2") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(
            holds("2001:db8::/32", "2001:db8:ffff::1") && !holds("2001:db8::/32", "2001:db9::1")
        );
        assert!(holds("10.0.0.7", "::ffff:10.0.0.7") && holds("::ffff:10.0.0.0/104", "10.1.1.1"));
        assert!(Range::parse("10.0.0.0/33").is_err() && Range::parse("::/129").is_err());
    }

    #[test]
    fn addresses_that_are_one_customers_are_one_key() {
        let key = |a: &str| ip_key(a, V6_PREFIX).unwrap();
        assert_eq!(key("2001:db8:0:1ff::1"), key("2001:db8:0:100:ffff::"));
        assert_ne!(key("2001:db8:0:200::1"), key("2001:db8:0:100::1"));
        assert_eq!(key("fe80::1%eth0"), key("fe80::2"));
        assert_eq!(ip_key("::1", 128).unwrap(), "::1");
        assert_eq!(ip_key("::1", 0).unwrap(), "::/0");
        for wrong in ["", "1.2.3", "1.2.3.4%x", "::1%", " 1.2.3.4", "1.2.3.4:80", "[::1]"] {
            assert!(ip_key(wrong, 56).is_err(), "{wrong}");
        }
    }
}
