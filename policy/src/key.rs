//! Who is limited, and what else is known about a call.

pub(crate) mod name;

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most parts that a key has.
///
/// ```
/// assert_eq!(tidegate::MOST_PARTS, 8);
/// ```
pub const MOST_PARTS: usize = 8;

/// Room for the parts of a key.
pub(crate) type Parts<'a> = [&'a [u8]; MOST_PARTS];

/// Names that operations take, and which do. They are never attributes: no match of a policy names
/// one, and surfaces whose options and attributes stand together refuse them elsewhere.
///
/// ```
/// let mut all = tidegate::bindings::RESERVED.iter();
/// let (_, takers) = all.find(|(name, _)| *name == "amount").unwrap();
/// assert_eq!(*takers, ["spend"]);
/// ```
pub const RESERVED: [(&str, &[&str]); 8] = [
    ("cost", &["hit", "check", "peek", "record", "refund", "wait", "acquire", "why"]),
    (
        "max",
        &[
            "hit",
            "check",
            "peek",
            "record",
            "refund",
            "reserve",
            "wait",
            "acquire",
            "wait_reservation",
            "acquire_reservation",
            "why",
        ],
    ),
    (
        "timeout",
        &[
            "wait",
            "acquire",
            "wait_permit",
            "acquire_permit",
            "wait_reservation",
            "acquire_reservation",
        ],
    ),
    ("estimate", &["reserve", "wait_reservation", "acquire_reservation"]),
    ("amount", &["spend"]),
    ("for_", &["block", "set_override", "set_default", "set_mode", "add_exempt", "set_exempts"]),
    ("by", CHANGES),
    ("reason", CHANGES),
];

/// The operations that change a rule at run time.
const CHANGES: &[&str] = &[
    "block",
    "unblock",
    "set_override",
    "clear_override",
    "set_default",
    "set_mode",
    "clear_mode",
    "add_exempt",
    "remove_exempt",
    "set_exempts",
];

/// What is said of a reserved name in the place of an attribute; none for other names.
///
/// ```
/// let message = tidegate::bindings::not_an_attribute("cost").unwrap();
/// assert!(message.contains("hit, check"));
/// assert!(tidegate::bindings::not_an_attribute("role").is_none());
/// ```
pub fn not_an_attribute(name: &str) -> Option<String> {
    let (_, takers) = RESERVED.iter().find(|(reserved, _)| *reserved == name)?;
    let what = match takers {
        [] => "the name is kept".to_string(),
        [one] => format!("it is an argument of {one}"),
        [first @ .., last] => format!("it is an argument of {} and {last}", first.join(", ")),
    };
    Some(format!("{name:?} is never an attribute: {what}"))
}

/// The longest text of an address: eight groups of four digits, with colons between.
const LONGEST: usize = 39;

/// A text of its own: the decimal digits of a whole number, or an address.
#[derive(Clone, Copy)]
struct ShortText {
    bytes: [u8; LONGEST],
    len: u8,
}

impl ShortText {
    fn new(text: &[u8]) -> ShortText {
        let mut bytes = [0; LONGEST];
        bytes[..text.len()].copy_from_slice(text);
        ShortText { bytes, len: text.len() as u8 }
    }

    fn address(address: IpAddr) -> ShortText {
        let mut short = ShortText { bytes: [0; LONGEST], len: 0 };
        // Every address has room, so that nothing is refused.
        let _ = write!(short, "{address}");
        short
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.len);
        let room = self.bytes.get_mut(start..start + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len() as u8;
        Ok(())
    }
}

/// A whole number as its decimal digits, from `start` on.
#[derive(Clone, Copy)]
struct Digits {
    bytes: [u8; Digits::MOST],
    start: u8,
}

impl Digits {
    /// Digits of the largest number, or of the smallest with its sign.
    const MOST: usize = 20;

    fn new(negative: bool, size: u64) -> Digits {
        let (mut bytes, mut start, mut left) = ([0; Digits::MOST], Digits::MOST, size);
        loop {
            start -= 1;
            bytes[start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if negative {
            start -= 1;
            bytes[start] = b'-';
        }
        Digits { bytes, start: start as u8 }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// One part of a key that is a tuple: text, bytes, or a whole number, which is its decimal digits.
///
/// ```
/// use tidegate::{Key, Part};
/// let (channel, user): (Part<'_>, Part<'_>) = ("telegram".into(), 42_u64.into());
/// assert_eq!(format!("{:?}", Key::from((channel, user))), r#"["telegram", "42"]"#);
/// ```
#[derive(Clone, Copy)]
pub struct Part<'a>(PartForm<'a>);

#[derive(Clone, Copy)]
enum PartForm<'a> {
    Bytes(&'a [u8]),
    Number(Digits),
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match &self.0 {
            PartForm::Bytes(bytes) => bytes,
            PartForm::Number(digits) => digits.as_bytes(),
        };
        write!(f, "{:?}", String::from_utf8_lossy(bytes))
    }
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(part: &'a str) -> Part<'a> {
        Part(PartForm::Bytes(part.as_bytes()))
    }
}
impl<'a> From<&'a String> for Part<'a> {
    fn from(part: &'a String) -> Part<'a> {
        Part(PartForm::Bytes(part.as_bytes()))
    }
}
impl<'a> From<&'a [u8]> for Part<'a> {
    fn from(part: &'a [u8]) -> Part<'a> {
        Part(PartForm::Bytes(part))
    }
}
impl<'a, const N: usize> From<&'a [u8; N]> for Part<'a> {
    fn from(part: &'a [u8; N]) -> Part<'a> {
        Part(PartForm::Bytes(part))
    }
}

/// Who is limited: text, bytes, a whole number, an address, or several parts.
///
/// | made from | the key |
/// |---|---|
/// | `&str`, `&String`, `&[u8]`, `&[u8; N]` | its bytes |
/// | a whole number of up to 64 bits | its decimal digits |
/// | `IpAddr`, `Ipv4Addr`, `Ipv6Addr` | the text of the address |
/// | `[&str; N]`, `&[&str]`, `&[String]`, [`Key::parts`] | several parts |
/// | a tuple of up to four texts, byte slices and numbers | several parts |
///
/// Keys are compared as bytes. Every language makes the same key of the same number. A key of one
/// part is the plain key.
///
/// ```
/// use std::net::IpAddr;
/// use tidegate::{Key, Limiter};
///
/// assert_eq!(format!("{:?}", Key::from(42)), r#""42""#);
/// assert_eq!(format!("{:?}", Key::from(u64::MAX)), r#""18446744073709551615""#);
/// assert_eq!(format!("{:?}", Key::from(IpAddr::from([192, 0, 2, 1]))), r#""192.0.2.1""#);
/// assert_eq!(format!("{:?}", Key::from(["telegram", "alice"])), r#"["telegram", "alice"]"#);
/// assert_eq!(format!("{:?}", Key::from(("telegram", 42, b"x"))), r#"["telegram", "42", "x"]"#);
///
/// let limiter = Limiter::new("1/h")?;
/// assert!(limiter.allow(42_u64)? && !limiter.allow("42")?);
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Key<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    One(&'a [u8]),
    ShortText(ShortText),
    /// The number of parts may be more than fits: then the key is no rule's.
    Parts([&'a [u8]; MOST_PARTS], usize),
    /// A tuple with numbers in it.
    Tuple(Tuple<'a>),
}

/// The most parts of a tuple.
const MOST_OF_TUPLE: usize = 4;

#[derive(Clone, Copy)]
struct Tuple<'a> {
    parts: [PartIn<'a>; MOST_OF_TUPLE],
    len: u8,
    /// The digits of all numbers, one after the other.
    digits: [u8; MOST_OF_TUPLE * Digits::MOST],
}

#[derive(Clone, Copy)]
enum PartIn<'a> {
    Bytes(&'a [u8]),
    /// Where its digits begin and end.
    Number(u8, u8),
}

impl<'a> Tuple<'a> {
    fn new<const N: usize>(parts: [Part<'a>; N]) -> Tuple<'a> {
        let mut tuple = Tuple {
            parts: [PartIn::Number(0, 0); MOST_OF_TUPLE],
            len: N as u8,
            digits: [0; MOST_OF_TUPLE * Digits::MOST],
        };
        let mut end = 0;
        for (slot, part) in tuple.parts.iter_mut().zip(&parts) {
            *slot = match &part.0 {
                PartForm::Bytes(bytes) => PartIn::Bytes(bytes),
                PartForm::Number(digits) => {
                    let (start, digits) = (end, digits.as_bytes());
                    end += digits.len();
                    tuple.digits[start..end].copy_from_slice(digits);
                    PartIn::Number(start as u8, end as u8)
                }
            };
        }
        tuple
    }

    fn part(&self, index: usize) -> &[u8] {
        match self.parts[index] {
            PartIn::Bytes(bytes) => bytes,
            PartIn::Number(start, end) => &self.digits[usize::from(start)..usize::from(end)],
        }
    }
}

impl<'a> Key<'a> {
    /// A key of several parts.
    ///
    /// ```
    /// let parts = vec![b"telegram".to_vec(), b"alice".to_vec()];
    /// let key = tidegate::Key::parts(parts.iter().map(Vec::as_slice));
    /// assert_eq!(format!("{key:?}"), r#"["telegram", "alice"]"#);
    /// ```
    pub fn parts(parts: impl IntoIterator<Item = &'a [u8]>) -> Key<'a> {
        let mut all = [&[] as &[u8]; MOST_PARTS];
        let mut len = 0;
        for part in parts {
            if let Some(slot) = all.get_mut(len) {
                *slot = part;
            }
            len += 1;
        }
        match len {
            1 => Key(Form::One(all[0])),
            _ => Key(Form::Parts(all, len)),
        }
    }

    /// The plain key, if it has one part.
    #[inline]
    pub(crate) fn single(&self) -> Option<&[u8]> {
        match &self.0 {
            Form::One(bytes) => Some(bytes),
            Form::ShortText(short) => Some(short.as_bytes()),
            Form::Parts(..) | Form::Tuple(_) => None,
        }
    }

    /// How many parts it has.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Parts(_, len) => *len,
            Form::Tuple(tuple) => usize::from(tuple.len),
            _ => 1,
        }
    }

    /// All parts, of a key that has no more than fit.
    #[inline]
    pub(crate) fn all_parts<'s>(&'s self, room: &'s mut Parts<'s>) -> &'s [&'s [u8]] {
        match &self.0 {
            Form::One(bytes) => std::slice::from_ref(bytes),
            Form::Parts(parts, len) => &parts[..*len],
            _ => self.parts_in(room),
        }
    }

    /// The same, of a key whose parts do not lie side by side.
    fn parts_in<'s>(&'s self, room: &'s mut Parts<'s>) -> &'s [&'s [u8]] {
        (0..self.len()).for_each(|index| room[index] = self.part(index));
        &room[..self.len()]
    }

    /// All parts and one more, for which there must be a place.
    #[inline]
    pub(crate) fn parts_and<'s>(
        &'s self,
        last: &'s [u8],
        room: &'s mut Parts<'s>,
    ) -> &'s [&'s [u8]] {
        let len = self.len();
        (0..len).for_each(|index| room[index] = self.part(index));
        room[len] = last;
        &room[..=len]
    }

    /// Part `index`, of those that fit.
    pub(crate) fn part(&self, index: usize) -> &[u8] {
        match &self.0 {
            Form::Parts(parts, _) => parts[index],
            Form::Tuple(tuple) => tuple.part(index),
            _ => self.single().unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a str> for Key<'a> {
    #[inline]
    fn from(key: &'a str) -> Key<'a> {
        Key(Form::One(key.as_bytes()))
    }
}
impl<'a> From<&'a String> for Key<'a> {
    #[inline]
    fn from(key: &'a String) -> Key<'a> {
        Key(Form::One(key.as_bytes()))
    }
}
impl<'a> From<&'a [u8]> for Key<'a> {
    #[inline]
    fn from(key: &'a [u8]) -> Key<'a> {
        Key(Form::One(key))
    }
}
impl<'a, const N: usize> From<&'a [u8; N]> for Key<'a> {
    #[inline]
    fn from(key: &'a [u8; N]) -> Key<'a> {
        Key(Form::One(key))
    }
}

/// Whole numbers are their decimal digits, as a key and as a part of one.
macro_rules! whole_numbers {
    ($($number:ty)*) => {
        $(
            impl From<$number> for Part<'_> {
                fn from(part: $number) -> Self {
                    #[allow(unused_comparisons, reason = "some of them have a sign")]
                    let negative = part < 0;
                    // The distance of a negative one from 0, as its sign is kept apart.
                    let size = if negative { (part as u64).wrapping_neg() } else { part as u64 };
                    Part(PartForm::Number(Digits::new(negative, size)))
                }
            }
            impl From<$number> for Key<'_> {
                fn from(key: $number) -> Self {
                    match Part::from(key).0 {
                        PartForm::Number(digits) => {
                            Key(Form::ShortText(ShortText::new(digits.as_bytes())))
                        }
                        PartForm::Bytes(bytes) => Key(Form::One(bytes)),
                    }
                }
            }
        )*
    };
}

whole_numbers! { i64 i32 u64 u32 usize }

impl From<IpAddr> for Key<'_> {
    fn from(key: IpAddr) -> Self {
        Key(Form::ShortText(ShortText::address(key)))
    }
}
impl From<Ipv4Addr> for Key<'_> {
    fn from(key: Ipv4Addr) -> Self {
        Key::from(IpAddr::V4(key))
    }
}
impl From<Ipv6Addr> for Key<'_> {
    fn from(key: Ipv6Addr) -> Self {
        Key::from(IpAddr::V6(key))
    }
}
impl<'a, A: Into<Part<'a>>, B: Into<Part<'a>>> From<(A, B)> for Key<'a> {
    fn from((a, b): (A, B)) -> Key<'a> {
        Key(Form::Tuple(Tuple::new([a.into(), b.into()])))
    }
}
impl<'a, A: Into<Part<'a>>, B: Into<Part<'a>>, C: Into<Part<'a>>> From<(A, B, C)> for Key<'a> {
    fn from((a, b, c): (A, B, C)) -> Key<'a> {
        Key(Form::Tuple(Tuple::new([a.into(), b.into(), c.into()])))
    }
}
impl<'a, A, B, C, D> From<(A, B, C, D)> for Key<'a>
where
    A: Into<Part<'a>>,
    B: Into<Part<'a>>,
    C: Into<Part<'a>>,
    D: Into<Part<'a>>,
{
    fn from((a, b, c, d): (A, B, C, D)) -> Key<'a> {
        Key(Form::Tuple(Tuple::new([a.into(), b.into(), c.into(), d.into()])))
    }
}
impl<'a> From<&'a [&'a str]> for Key<'a> {
    fn from(parts: &'a [&'a str]) -> Key<'a> {
        Key::parts(parts.iter().map(|part| part.as_bytes()))
    }
}
impl<'a> From<&'a [String]> for Key<'a> {
    fn from(parts: &'a [String]) -> Key<'a> {
        Key::parts(parts.iter().map(|part| part.as_bytes()))
    }
}
impl<'a, const N: usize> From<[&'a str; N]> for Key<'a> {
    fn from(parts: [&'a str; N]) -> Key<'a> {
        Key::parts(parts.into_iter().map(str::as_bytes))
    }
}
impl<'a, const N: usize> From<&'a [&'a str; N]> for Key<'a> {
    fn from(parts: &'a [&'a str; N]) -> Key<'a> {
        Key::from(&parts[..])
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        match self.single() {
            Some(key) => write!(f, "{:?}", text(key)),
            None => {
                let parts = (0..self.len().min(MOST_PARTS)).map(|i| text(self.part(i)));
                f.debug_list().entries(parts).finish()
            }
        }
    }
}

/// A key, and what else is known about the call: attributes, and a `max` of its own.
///
/// Whatever makes a [`Key`] makes a call without attributes.
///
/// ```
/// use tidegate::{Call, Limiter};
///
/// let limiter = Limiter::new("2/min").unwrap();
/// let call = Call::of("alice").with(&[("role", "admin")]).max(1);
/// assert!(limiter.hit(call, 1).unwrap().allowed);
/// assert!(!limiter.hit(call, 1).unwrap().allowed);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) attributes: &'a [(&'a str, &'a str)],
    pub(crate) max: Option<u64>,
}

impl<'a> Call<'a> {
    /// A call by this key.
    ///
    /// ```
    /// let call = tidegate::Call::of(["telegram", "alice"]);
    /// assert_eq!(format!("{:?}", call.key()), r#"["telegram", "alice"]"#);
    /// ```
    pub fn of(key: impl Into<Key<'a>>) -> Call<'a> {
        Call { key: key.into(), attributes: &[], max: None }
    }
    /// With attributes; those that the rule does not name are ignored. No rule names those that
    /// operations take themselves ([`RESERVED`]).
    ///
    /// ```
    /// let call = tidegate::Call::of("alice").with(&[("role", "guest")]);
    /// assert!(tidegate::Limiter::new("1/s").unwrap().allow(call).unwrap());
    /// ```
    #[must_use]
    pub fn with(self, attributes: &'a [(&'a str, &'a str)]) -> Call<'a> {
        Call { attributes, ..self }
    }
    /// With another `max` for this call, of a rule with one limit.
    ///
    /// ```
    /// let call = tidegate::Call::of("alice").max(9);
    /// assert_eq!(tidegate::Limiter::new("1/s").unwrap().hit(call, 1).unwrap().limit, Some(9));
    /// ```
    #[must_use]
    pub fn max(self, max: u64) -> Call<'a> {
        Call { max: Some(max), ..self }
    }
    /// Its key.
    ///
    /// ```
    /// assert_eq!(format!("{:?}", tidegate::Call::of(7).key()), r#""7""#);
    /// ```
    pub fn key(&self) -> Key<'a> {
        self.key
    }
}

impl<'a, K: Into<Key<'a>>> From<K> for Call<'a> {
    #[inline]
    fn from(key: K) -> Call<'a> {
        Call { key: key.into(), attributes: &[], max: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_their_digits() {
        for number in [0, 7, -1, 1_234_567_890_123, i64::MAX, i64::MIN] {
            assert_eq!(Key::from(number).single().unwrap(), number.to_string().as_bytes());
        }
        for number in [0, 7, 1 << 53, i64::MAX as u64 + 1, u64::MAX] {
            assert_eq!(Key::from(number).single().unwrap(), number.to_string().as_bytes());
        }
        assert_eq!(Key::from(i32::MIN).single().unwrap(), i32::MIN.to_string().as_bytes());
        assert_eq!(Key::from(u32::MAX).single().unwrap(), u32::MAX.to_string().as_bytes());
    }

    #[test]
    fn addresses_are_their_text() {
        for text in [
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "2001:db8::1",
            "::ffff:192.0.2.1",
            "1111:2222:3333:4444:5555:6666:7777:8888",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(Key::from(address).single().unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_tuple_is_the_list_of_its_texts() {
        let mixed = Key::from(("a", u64::MAX, i64::MIN, &b"b"[..]));
        let texts = ["a", "18446744073709551615", "-9223372036854775808", "b"];
        assert_eq!((mixed.len(), mixed.single()), (4, None));
        assert!((0..4).all(|index| mixed.part(index) == texts[index].as_bytes()));
        let numbers = Key::from((u64::MAX, u64::MAX, u64::MAX, u64::MAX));
        assert!((0..4).all(|index| numbers.part(index) == texts[1].as_bytes()));
        assert_eq!(format!("{:?}", Key::from((1, 2, "c"))), r#"["1", "2", "c"]"#);
    }

    #[test]
    fn a_list_of_one_part_is_the_plain_key() {
        assert_eq!(Key::from(["x"]).single(), Key::from("x").single());
        assert_eq!(Key::from(&b"x"[..]).single(), Some(&b"x"[..]));
        assert_eq!(Key::from(["a"; 9]).len(), 9);
    }
}
