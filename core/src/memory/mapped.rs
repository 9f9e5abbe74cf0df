//! Words of a file that other processes map too.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::heap::Words;
use crate::sync::{ATOMIC_BETWEEN_PROCESSES, AtomicU64};

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
    /// Maps the first `bytes` of a file, which must be that long (a multiple of a page). Refused
    /// where words are not atomic between processes, and where there is no room for so many bytes.
    pub(crate) fn new(file: File, bytes: u64) -> io::Result<Mapping> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        if !ATOMIC_BETWEEN_PROCESSES {
            let why =
                "this processor has no 64-bit atomics that processes could share; use `memory`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
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

    /// The words of a section; `None` if the file ends before it does.
    pub(crate) fn section(self: &Arc<Mapping>, section: &Range<usize>) -> Option<Words> {
        Some(Words::of_file(self.words().get(section.clone())?, self))
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
        // SAFETY: exactly what was mapped; a value that holds words of it holds the mapping too.
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

/// The sections of one table in a mapped file, by numbers of words.
#[derive(Debug)]
pub(crate) struct MappedTable {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) rows: Range<usize>,
    pub(crate) overflow: Range<usize>,
    pub(crate) eviction: Range<usize>,
}

impl MappedTable {
    /// The words of a section; `None` unless it has `len` of them.
    pub(super) fn words(&self, section: &Range<usize>, len: usize) -> Option<Words> {
        (section.len() == len).then(|| self.mapping.section(section))?
    }
}
