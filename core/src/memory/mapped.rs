//! Words of a file that other processes map too.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::LINE_WORDS;
use super::heap::Words;
use crate::sync::AtomicU64;

/// A file of words that other processes map too.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// Held open: a lock on it says that the words are in use.
    file: File,
}

// SAFETY: the words are atomics; the pointer is owned, and unmapped once, on drop.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared access goes through atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, which must be that long (a multiple of a page).
    pub(crate) fn new(file: File, bytes: usize) -> io::Result<Mapping> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, rights, flags, &file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes, file })
    }

    /// The file that is mapped.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// All words of the file.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: a mapping begins at a page, is valid for `bytes` until drop, and any bits are
        // words; this process and all others see them through atomics only. (Whoever truncates
        // the file ends its users by a signal, which no check can prevent.)
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.bytes / 8) }
    }

    /// Writes what has changed to the disk, and waits for it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        use rustix::mm::{MsyncFlags, msync};
        // SAFETY: exactly the range that was mapped.
        unsafe { msync(self.base.as_ptr().cast(), self.bytes, MsyncFlags::SYNC) }?;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; who holds words of it holds the mapping too.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A word of a file, found without a look at where the file is.
#[derive(Clone, Debug)]
pub(crate) struct MappedWord {
    word: NonNull<AtomicU64>,
    _mapping: Arc<Mapping>,
}

// SAFETY: it is an atomic, in a mapping that is kept.
unsafe impl Send for MappedWord {}
// SAFETY: as above.
unsafe impl Sync for MappedWord {}

impl MappedWord {
    /// Word `at` of a file, which must be that long.
    pub(crate) fn new(mapping: &Arc<Mapping>, at: usize) -> MappedWord {
        let word = NonNull::from(&mapping.words()[at]);
        MappedWord { word, _mapping: mapping.clone() }
    }
}

impl std::ops::Deref for MappedWord {
    type Target = AtomicU64;

    #[inline]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: a word of the mapping, which is held as long as this is.
        unsafe { self.word.as_ref() }
    }
}

/// Words of a file, handed out from front to back.
#[derive(Debug)]
pub(crate) struct Region {
    mapping: Arc<Mapping>,
    next: Cell<usize>,
    end: usize,
}

impl Region {
    /// From word `start` to before word `end`.
    pub(crate) fn new(mapping: Arc<Mapping>, start: usize, end: usize) -> Region {
        Region { mapping, next: Cell::new(start), end }
    }

    /// The next `len` words, from a cache line on; `None` if there are no more.
    pub(crate) fn take(&self, len: usize) -> Option<Words> {
        let at = self.next.get();
        let end = at.checked_add(len).filter(|&end| end <= self.end)?;
        let words = self.mapping.words().get(at..end)?;
        self.next.set((at + len).next_multiple_of(LINE_WORDS));
        Some(Words::of_file(words, &self.mapping))
    }
}
