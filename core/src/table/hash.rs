//! Hashing of keys: keyed, so that no outsider can make keys that collide.
//!
//! Tables in files are shared by builds of several languages, so their hash is frozen by name and
//! version: rapidhash v3, seeded from the file's header, over the bytes of a key of one part. A key
//! of several parts is the hash of its parts' lengths and hashes, each as eight bytes, the lowest
//! first.
//!
//! Tables in memory use a smaller form of it, which is quicker for short keys and may change with
//! any version.

use std::hash::{BuildHasher, Hasher as _};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline, rapidhash_v3_seeded};

use crate::table::Hash;

/// The name of the hash that files use; it is written into them.
pub const FILE_HASH: &str = "rapidhash-v3";

/// The most parts that a key of a file's table has.
const MOST_PARTS: usize = 16;

/// A number that can't be foreseen, from the system: the seed of tables that are to hash alike.
///
/// ```
/// assert_ne!(tidegate_core::random_seed(), tidegate_core::random_seed());
/// ```
pub fn random_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// A keyed hash. Two of one kind and seed hash alike.
#[derive(Clone, Debug)]
pub(crate) enum Hasher {
    /// For tables of this process.
    Local(Secrets),
    /// For tables in files.
    Portable(Secrets),
}

#[derive(Clone)]
pub(crate) struct Secrets(RapidSecrets);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Hasher {
    /// For tables of this process; by a random seed if none is given.
    pub(crate) fn local(seed: Option<u64>) -> Hasher {
        Hasher::Local(Secrets(RapidSecrets::seed(seed.unwrap_or_else(random_seed))))
    }

    /// For tables in a file with this seed.
    pub(crate) fn portable(seed: u64) -> Hasher {
        Hasher::Portable(Secrets(RapidSecrets::seed(seed)))
    }

    /// The hash of a key of one part.
    #[inline]
    pub(crate) fn one(&self, key: &[u8]) -> Hash {
        match self {
            Hasher::Local(secrets) => Hash(local(key, &secrets.0)),
            Hasher::Portable(secrets) => Hash(rapidhash_v3_seeded(key, &secrets.0)),
        }
    }

    /// The hash of a key of several parts. Each is hashed with its length, so that parts never run
    /// into each other; a key of one part is the same as the plain key.
    pub(crate) fn parts(&self, parts: &[&[u8]]) -> Hash {
        if let [one] = parts {
            return self.one(one);
        }
        match self {
            Hasher::Local(secrets) => Hash(local_parts(parts, &secrets.0)),
            Hasher::Portable(secrets) => Hash(portable_parts(parts, &secrets.0)),
        }
    }
}

#[inline(always)]
fn local(bytes: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_nano_inline::<true, false>(bytes, secrets)
}

/// Each part is hashed by itself, so that the processor hashes several at once.
fn local_parts(parts: &[&[u8]], secrets: &RapidSecrets) -> u64 {
    let join = |whole: u64, part: &&[u8]| {
        let pair = u128::from(local(part, secrets)) << 64 | u128::from(whole);
        local(&pair.to_le_bytes(), secrets)
    };
    parts.iter().fold(secrets.seed, join)
}

fn portable_parts(parts: &[&[u8]], secrets: &RapidSecrets) -> u64 {
    let mut bytes = [0; 16 * MOST_PARTS];
    let len = parts.len().min(MOST_PARTS);
    for (slot, part) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(parts) {
        let hash = u128::from(rapidhash_v3_seeded(part, secrets));
        *slot = (hash << 64 | part.len() as u128).to_le_bytes();
    }
    rapidhash_v3_seeded(&bytes[..16 * len], secrets)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The file format rests on these numbers: they must never change.
    #[test]
    fn the_hash_of_files_is_frozen() {
        let hasher = Hasher::portable(7);
        assert_eq!(hasher.one(b"").0, FROZEN[0]);
        assert_eq!(hasher.one(b"alice").0, FROZEN[1]);
        assert_eq!(hasher.one(&[0xab; 1000]).0, FROZEN[2]);
        assert_eq!(hasher.parts(&[b"telegram", b"main", b"alice"]).0, FROZEN[3]);
        assert_eq!(hasher.parts(&[]).0, FROZEN[4]);
    }

    const FROZEN: [u64; 5] = [
        0xa49cbec2f26e8f77,
        0xe4c5d1e1f9314960,
        0xebe00c4eb439085a,
        0x5981a2eac7bb1c06,
        0xa49cbec2f26e8f77,
    ];

    #[test]
    fn parts_never_run_into_each_other() {
        for hasher in [Hasher::portable(1), Hasher::local(Some(1))] {
            assert_ne!(hasher.parts(&[b"a:b", b"c"]), hasher.parts(&[b"a", b"b:c"]));
            assert_ne!(hasher.parts(&[b"ab", b""]), hasher.parts(&[b"", b"ab"]));
            assert_eq!(hasher.parts(&[b"x"]), hasher.one(b"x"));
        }
    }
}
