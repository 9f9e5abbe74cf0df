//! Names of keys, as metrics keep them.

use crate::key::{Call, MOST_PARTS};

/// Bytes of a name that are kept.
const NAME_BYTES: usize = 128;

/// The golden ratio, by which a sample is spread so that keys which come in turns are all met.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key by name, and how often it was met; an estimate once a rule is busy.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// let heaviest = limiter.metrics().unwrap()[0].heaviest[0].clone();
/// assert_eq!((heaviest.key[0].as_str(), heaviest.count), ("alice", 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedCount {
    /// The key's parts, as text; long ones are cut.
    pub key: Vec<String>,
    /// How often.
    pub count: u64,
}

/// A key's parts as its caller gave them, cut to what is kept. Of fixed size, so that noting a name
/// allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; NAME_BYTES],
    /// Where each part ends.
    ends: [u8; MOST_PARTS],
    parts: u8,
}

impl Name {
    /// As the top offenders of a file keep it: the number of parts, where they end, and the bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn to_words(self) -> tidegate_core::NameWords {
        let mut words = [0; tidegate_core::NAME_WORDS];
        words[0] = u64::from(self.parts);
        words[1] = u64::from_le_bytes(self.ends);
        for (word, bytes) in words[2..].iter_mut().zip(self.bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    /// From the top offenders of a file, which anybody may have damaged.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_words(words: &tidegate_core::NameWords) -> Option<Name> {
        let mut name = Name { bytes: [0; NAME_BYTES], ends: words[1].to_le_bytes(), parts: 0 };
        name.parts = u8::try_from(words[0]).ok().filter(|&n| usize::from(n) <= MOST_PARTS)?;
        for (bytes, word) in name.bytes.as_chunks_mut::<8>().0.iter_mut().zip(&words[2..]) {
            *bytes = word.to_le_bytes();
        }
        let ends = &name.ends[..usize::from(name.parts)];
        let sound = ends.is_sorted() && ends.iter().all(|&end| usize::from(end) <= NAME_BYTES);
        sound.then_some(name)
    }

    pub(crate) fn of(call: &Call<'_>) -> Name {
        let parts = call.key.len().min(MOST_PARTS);
        let mut name = Name { bytes: [0; NAME_BYTES], ends: [0; MOST_PARTS], parts: parts as u8 };
        let mut end = 0;
        for index in 0..parts {
            let part = call.key.part(index);
            let kept = part.len().min(NAME_BYTES - end);
            name.bytes[end..end + kept].copy_from_slice(&part[..kept]);
            end += kept;
            name.ends[index] = end as u8;
        }
        name
    }

    /// The same for the same name, and seldom for another.
    pub(crate) fn mark(&self) -> u64 {
        let used = self.ends[usize::from(self.parts).saturating_sub(1)];
        let words = self.bytes.as_chunks::<8>().0.iter().take(usize::from(used).div_ceil(8));
        let words = words.map(|word| u64::from_le_bytes(*word));
        words.fold(u64::from_le_bytes(self.ends), |mark, word| {
            (mark ^ word).wrapping_mul(SPREAD).rotate_left(32)
        })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let mut start = 0;
        let ends = self.ends[..usize::from(self.parts)].iter();
        ends.map(|&end| {
            let part = &self.bytes[start..usize::from(end)];
            start = usize::from(end);
            String::from_utf8_lossy(part).into_owned()
        })
        .collect()
    }

    /// A name without parts.
    pub(crate) fn empty() -> Name {
        Name { bytes: [0; NAME_BYTES], ends: [0; MOST_PARTS], parts: 0 }
    }
}
