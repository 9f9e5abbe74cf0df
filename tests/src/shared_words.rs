//! Words that workers and their test share, beside the tables that are tested: what was granted,
//! and what a worker was about to do when it was killed.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::system::{Shared, map_shared};

/// A mapped run of words.
#[derive(Debug)]
pub struct SharedWords(Shared);

impl SharedWords {
    /// Makes one of so many words, all 0.
    ///
    /// # Panics
    /// If it can't be had.
    pub fn create(path: &Path, words: usize) -> SharedWords {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path);
        let file = file.expect("shared words");
        file.set_len(8 * words as u64).expect("room for shared words");
        SharedWords(map_shared(&file, words).expect("mapped words"))
    }

    /// Opens one that is there.
    ///
    /// # Panics
    /// If it can't be had.
    pub fn open(path: &Path) -> SharedWords {
        let file = OpenOptions::new().read(true).write(true).open(path).expect("shared words");
        let words = file.metadata().expect("its length").len() as usize / 8;
        SharedWords(map_shared(&file, words).expect("mapped words"))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0.words()[at]
    }

    /// A word.
    pub fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::SeqCst)
    }

    /// Sets a word.
    pub fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::SeqCst);
    }

    /// Adds to a word, and says what it was.
    pub fn add(&self, at: usize, more: u64) -> u64 {
        self.word(at).fetch_add(more, Ordering::SeqCst)
    }

    /// Waits until a word is no longer 0.
    pub fn await_start(&self, at: usize) {
        while self.get(at) == 0 {
            std::thread::yield_now();
        }
    }
}
