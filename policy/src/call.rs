//! Who is limited, and what else is known about a call.

use std::fmt;

/// The most parts that a key has.
///
/// ```
/// assert_eq!(tidegate::MOST_PARTS, 8);
/// ```
pub const MOST_PARTS: usize = 8;

/// A whole number as its decimal digits.
#[derive(Clone, Copy)]
struct Digits {
    bytes: [u8; 20],
    start: u8,
}

impl Digits {
    fn new(number: i64) -> Digits {
        let (mut bytes, mut start, mut left) = ([0; 20], 20, number.unsigned_abs());
        loop {
            start -= 1;
            bytes[start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if number < 0 {
            start -= 1;
            bytes[start] = b'-';
        }
        Digits { bytes, start: start as u8 }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// Who is limited: text, bytes, a whole number, or several parts. Compared as bytes; a number is its
/// decimal digits, and a key of one part is the plain key.
///
/// ```
/// use tidegate::Key;
/// assert_eq!(format!("{:?}", Key::from(42)), r#""42""#);
/// assert_eq!(format!("{:?}", Key::from(["telegram", "alice"])), r#"["telegram", "alice"]"#);
/// ```
#[derive(Clone, Copy)]
pub struct Key<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    One(&'a [u8]),
    Number(Digits),
    /// The number of parts may be more than fits: then the key is no rule's.
    Parts([&'a [u8]; MOST_PARTS], usize),
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
            Form::Number(digits) => Some(digits.as_bytes()),
            Form::Parts(..) => None,
        }
    }

    /// How many parts it has.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Parts(_, len) => *len,
            _ => 1,
        }
    }

    /// Part `index`, of those that fit.
    pub(crate) fn part(&self, index: usize) -> &[u8] {
        match &self.0 {
            Form::Parts(parts, _) => parts[index],
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
impl From<i64> for Key<'_> {
    fn from(key: i64) -> Self {
        Key(Form::Number(Digits::new(key)))
    }
}
impl From<i32> for Key<'_> {
    fn from(key: i32) -> Self {
        Key(Form::Number(Digits::new(key.into())))
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
    /// With attributes; those that the rule does not name are ignored.
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
    }

    #[test]
    fn a_list_of_one_part_is_the_plain_key() {
        assert_eq!(Key::from(["x"]).single(), Key::from("x").single());
        assert_eq!(Key::from(&b"x"[..]).single(), Some(&b"x"[..]));
        assert_eq!(Key::from(["a"; 9]).len(), 9);
    }
}
