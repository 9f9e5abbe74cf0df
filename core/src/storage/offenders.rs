//! The names that were denied most, kept in a file: for a process that inspects the file from
//! outside.
//!
//! A few slots, each a name's hash, its count, the name, and a check of all that. No thread locks,
//! so a slot may be torn by two threads that write at once, or by a process that dies. Then the
//! check does not fit. Readers pass such a slot over, and the next to note that name repairs it. A
//! new name takes the place, and the count, of the lightest.

use crate::memory::Words;
use crate::sync::Ordering;

/// Words of a name.
pub const NAME_WORDS: usize = 18;
const SLOTS: usize = 32;
const SLOT_WORDS: usize = 3 + NAME_WORDS;
/// Words of the top offenders.
pub(crate) const WORDS: usize = SLOTS * SLOT_WORDS;

const HASH: usize = 0;
const COUNT: usize = 1;
const CHECK: usize = 2;
const NAME: usize = 3;

/// A name in a fixed number of words.
pub type NameWords = [u64; NAME_WORDS];

/// The names that were noted most.
///
/// The words are written by threads that note a name, and read by threads that ask.
#[derive(Debug)]
pub struct TopOffenders {
    words: Words,
}

fn hash_of(name: &NameWords) -> u64 {
    let mut bytes = [0; 8 * NAME_WORDS];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(name) {
        *bytes = word.to_le_bytes();
    }
    rapidhash::v3::rapidhash_v3(&bytes)
}

impl TopOffenders {
    pub(crate) fn new(words: Words) -> TopOffenders {
        TopOffenders { words }
    }

    fn load(&self, slot: usize, at: usize) -> u64 {
        // ORDERING: Relaxed; a slot that is torn is told by its check.
        self.words[slot * SLOT_WORDS + at].load(Ordering::Relaxed)
    }

    fn store(&self, slot: usize, at: usize, value: u64) {
        // ORDERING: Relaxed, as above.
        self.words[slot * SLOT_WORDS + at].store(value, Ordering::Relaxed);
    }

    fn name(&self, slot: usize) -> Option<NameWords> {
        let name: NameWords = std::array::from_fn(|word| self.load(slot, NAME + word));
        let hash = self.load(slot, HASH);
        (hash == hash_of(&name) && self.load(slot, CHECK) == !hash).then_some(name)
    }

    /// Adds `weight` to a name.
    pub fn note(&self, name: &NameWords, weight: u64) {
        let hash = hash_of(name);
        let known = (0..SLOTS).find(|&slot| self.load(slot, HASH) == hash);
        let lightest = || (0..SLOTS).min_by_key(|&slot| self.load(slot, COUNT)).unwrap_or(0);
        let slot = known.unwrap_or_else(lightest);
        // ORDERING: Relaxed, as above.
        self.words[slot * SLOT_WORDS + COUNT].fetch_add(weight, Ordering::Relaxed);
        if known.is_none() || self.name(slot).is_none() {
            self.store(slot, CHECK, 0);
            self.store(slot, HASH, hash);
            name.iter().enumerate().for_each(|(word, value)| self.store(slot, NAME + word, *value));
            self.store(slot, CHECK, !hash);
        }
    }

    /// Names and their counts, the heaviest first.
    pub fn names(&self) -> Vec<(NameWords, u64)> {
        let named = |slot| Some((self.name(slot)?, self.load(slot, COUNT)));
        let mut all: Vec<(NameWords, u64)> = (0..SLOTS).filter_map(named).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn name(number: u64) -> NameWords {
        std::array::from_fn(|word| number * 100 + word as u64)
    }

    #[test]
    fn the_heaviest_names_stay() {
        let offenders = TopOffenders::new(Words::zeroed(WORDS, false).unwrap());
        for round in 0..100 {
            offenders.note(&name(1), 10);
            offenders.note(&name(2), 5);
            offenders.note(&name(1_000 + round), 1);
        }
        let names = offenders.names();
        assert_eq!((names[0], names[1]), ((name(1), 1_000), (name(2), 500)));
        assert_eq!(names.len(), SLOTS);
    }

    #[test]
    fn a_torn_slot_is_passed_over_and_mended() {
        let offenders = TopOffenders::new(Words::zeroed(WORDS, false).unwrap());
        offenders.note(&name(7), 3);
        offenders.store(0, NAME + 4, 99);
        assert_eq!(offenders.names(), []);
        offenders.note(&name(7), 1);
        assert_eq!(offenders.names(), [(name(7), 4)]);
    }
}
