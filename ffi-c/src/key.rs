//! Keys and attributes, as C has them.

use policy::{Call, Key, MOST_PARTS};

use crate::boundary::{slice, utf8};
use crate::status::Failure;
use crate::status::tg_status::*;

/// The `version` of a tg_key.
pub const TG_KEY_VERSION: u32 = 1;
/// The most parts that a key has.
pub const TG_MOST_PARTS: usize = 8;
/// The most attributes that a call has.
pub const TG_MOST_ATTRIBUTES: usize = 32;

const _: () = assert!(TG_MOST_PARTS == MOST_PARTS);

/// Some bytes, which need no NUL. `data` may be NULL if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_bytes {
    /// Where they are.
    pub data: *const u8,
    /// How many there are.
    pub len: usize,
}

/// Something else about a call that a rule may read: `role`, `tier`, `ip`. Both are UTF-8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_attribute {
    /// Its name.
    pub name: tg_bytes,
    /// Its value.
    pub value: tg_bytes,
}

/// A key, and what else is known about the call. Start from TG_KEY_INIT or
/// TG_KEY_PARTS_INIT.
///
/// A key is compared as bytes. A whole number is its decimal digits (`snprintf` with "%llu"). An
/// address is its text (`inet_ntop`). So they are the same keys as in other languages.
///
/// Everything it points to is the caller's, and is read during the call only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_key {
    /// TG_KEY_VERSION.
    pub version: u32,
    /// 1 if `max` is given, 0 if not.
    pub has_max: u32,
    /// The key, if `parts` is NULL.
    pub bytes: tg_bytes,
    /// The key's parts, in the rule's order, or NULL. One part is the same key as its bytes.
    pub parts: *const tg_bytes,
    /// How many; at most TG_MOST_PARTS.
    pub part_count: usize,
    /// What else is known, or NULL. Those that the rule does not name are ignored. Names that
    /// operations take ("cost", "max", "timeout", "estimate", "amount", "for_", "by", "reason") are
    /// no rule's.
    pub attributes: *const tg_attribute,
    /// How many; at most TG_MOST_ATTRIBUTES.
    pub attribute_count: usize,
    /// For this call, in place of the limit's `max`, in rules with one limit.
    pub max: u64,
}

impl tg_bytes {
    /// # Safety
    /// As [`slice`].
    #[inline]
    pub(crate) unsafe fn get<'a>(self, name: &str) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller's word.
        unsafe { slice(self.data, self.len, name) }
    }
}

impl tg_key {
    /// A key of bytes and nothing else.
    #[inline(always)]
    pub(crate) fn of_bytes(data: *const u8, len: usize) -> tg_key {
        tg_key {
            version: TG_KEY_VERSION,
            has_max: 0,
            bytes: tg_bytes { data, len },
            parts: std::ptr::null(),
            part_count: 0,
            attributes: std::ptr::null(),
            attribute_count: 0,
            max: 0,
        }
    }

    /// Hands the call on as Rust has it.
    ///
    /// # Safety
    /// What it points to is there.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(
        &self,
        body: impl FnOnce(&Call<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let more = self.part_count | self.attribute_count | self.has_max as usize;
        if self.version == TG_KEY_VERSION && self.parts.is_null() && more == 0 {
            // SAFETY: the caller's word.
            return body(&Call::from(unsafe { self.bytes.get("key.bytes") }?));
        }
        // SAFETY: the caller's word.
        unsafe { self.with_more(body) }
    }

    /// For keys that are more than bytes. Apart, since it takes a large frame.
    ///
    /// # Safety
    /// As [`tg_key::with`].
    #[inline(never)]
    unsafe fn with_more<R>(
        &self,
        body: impl FnOnce(&Call<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.check()?;
        // SAFETY: the caller's word.
        let mut call = Call::of(unsafe { self.key() }?);
        if self.has_max == 1 {
            call = call.max(self.max);
        }
        let mut all = [("", ""); TG_MOST_ATTRIBUTES];
        // SAFETY: the caller's word.
        let given = unsafe { slice(self.attributes, self.attribute_count, "key.attributes") }?;
        for (to, one) in all.iter_mut().zip(given) {
            // SAFETY: the caller's word.
            let name = unsafe { one.name.get("key.attributes.name") }?;
            // SAFETY: the caller's word.
            let value = unsafe { one.value.get("key.attributes.value") }?;
            *to = (utf8(name, "key.attributes.name")?, utf8(value, "key.attributes.value")?);
        }
        body(&call.with(&all[..given.len()]))
    }

    fn check(&self) -> Result<(), Failure> {
        let plain = self.version == TG_KEY_VERSION && self.has_max <= 1;
        match plain && self.part_count <= MOST_PARTS && self.attribute_count <= TG_MOST_ATTRIBUTES {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    fn wrong(&self) -> Failure {
        if self.version != TG_KEY_VERSION {
            let message = format!("key.version is {}: use TG_KEY_INIT", self.version);
            return Failure::new(TG_STATUS_ARGUMENT, message);
        }
        if self.has_max > 1 {
            let message = format!("key.has_max is 0 or 1, not {}", self.has_max);
            return Failure::new(TG_STATUS_ARGUMENT, message);
        }
        if self.part_count > MOST_PARTS {
            let message = format!("a key has at most {MOST_PARTS} parts, not {}", self.part_count);
            return Failure::new(TG_STATUS_KEY, message);
        }
        let most = format!("at most {TG_MOST_ATTRIBUTES} attributes, not {}", self.attribute_count);
        Failure::new(TG_STATUS_LENGTH, most)
    }

    /// # Safety
    /// What it points to is there.
    #[inline]
    unsafe fn key<'a>(&self) -> Result<Key<'a>, Failure> {
        if self.parts.is_null() && self.part_count == 0 {
            // SAFETY: the caller's word.
            return Ok(Key::from(unsafe { self.bytes.get("key.bytes") }?));
        }
        if self.bytes.len > 0 {
            let message = "key.bytes and key.parts are both given; a key is one of them";
            return Err(Failure::new(TG_STATUS_ARGUMENT, message));
        }
        let mut all = [&[] as &[u8]; MOST_PARTS];
        // SAFETY: the caller's word.
        let given = unsafe { slice(self.parts, self.part_count, "key.parts") }?;
        for (to, part) in all.iter_mut().zip(given) {
            // SAFETY: the caller's word.
            *to = unsafe { part.get("key.parts.data") }?;
        }
        Ok(Key::parts(all.into_iter().take(given.len())))
    }
}
