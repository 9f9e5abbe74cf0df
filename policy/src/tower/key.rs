//! What a layer's `key` hook may return.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::key::{Key, Part};

/// A key that owns what it is made of.
///
/// | type | the key |
/// |---|---|
/// | `String`, `&'static str` | its bytes |
/// | a whole number of up to 64 bits | its decimal digits |
/// | `IpAddr`, `Ipv4Addr`, `Ipv6Addr` | the text of the address |
/// | `Vec<T>`, `[T; N]`, of texts or bytes | several parts |
/// | a tuple of up to four texts and whole numbers | several parts |
///
/// ```
/// use tidegate::{Key, tower::RequestKey};
///
/// struct UserId(u64);
///
/// impl RequestKey for UserId {
///     fn as_key(&self) -> Key<'_> {
///         Key::from(self.0)
///     }
/// }
/// # let limiter = tidegate::Limiter::new("100/min")?;
/// # let layer = tidegate::tower::RateLimitLayer::new(limiter.rule("default")?);
/// let layer = layer.key(|request, _| Some(UserId(request.uri.path().len() as u64)));
/// # Ok::<(), tidegate::Error>(())
/// ```
pub trait RequestKey {
    /// The key.
    fn as_key(&self) -> Key<'_>;
}

/// One part of a [`RequestKey`] that is a tuple.
///
/// ```
/// use tidegate::tower::{KeyPart, RequestKey};
///
/// let key = ("/chat".to_string(), 42_u64);
/// assert_eq!(format!("{:?}", key.as_key()), r#"["/chat", "42"]"#);
/// assert_eq!(format!("{:?}", key.1.as_part()), r#""42""#);
/// ```
pub trait KeyPart {
    /// The part.
    fn as_part(&self) -> Part<'_>;
}

macro_rules! by_value {
    ($trait:ident, $function:ident, $result:ident: $($name:ty)*) => {
        $(
            impl $trait for $name {
                fn $function(&self) -> $result<'_> {
                    $result::from(*self)
                }
            }
        )*
    };
}

by_value! { RequestKey, as_key, Key: &'static str i64 i32 u64 u32 usize IpAddr Ipv4Addr Ipv6Addr }
by_value! { KeyPart, as_part, Part: &'static str i64 i32 u64 u32 usize }

impl RequestKey for String {
    fn as_key(&self) -> Key<'_> {
        Key::from(self)
    }
}

impl KeyPart for String {
    fn as_part(&self) -> Part<'_> {
        Part::from(self)
    }
}

impl<T: AsRef<[u8]>> RequestKey for [T] {
    fn as_key(&self) -> Key<'_> {
        Key::parts(self.iter().map(AsRef::as_ref))
    }
}

impl<T: AsRef<[u8]>> RequestKey for Vec<T> {
    fn as_key(&self) -> Key<'_> {
        self[..].as_key()
    }
}

impl<T: AsRef<[u8]>, const N: usize> RequestKey for [T; N] {
    fn as_key(&self) -> Key<'_> {
        self[..].as_key()
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {
        $(
            impl<$($name: KeyPart),*> RequestKey for ($($name),*) {
                fn as_key(&self) -> Key<'_> {
                    #[allow(non_snake_case)]
                    let ($($name),*) = self;
                    Key::from(($($name.as_part()),*))
                }
            }
        )*
    };
}

tuples! { (A B) (A B C) (A B C D) }
