//! The words of a table: zeroed, aligned to cache lines, never moved.
//!
//! All `unsafe` for raw memory is here. Tables see a slice of atomics and nothing else, so rows may
//! as well lie in bytes that other processes map.

use crate::sync::AtomicU64;

/// Bytes of a cache line on the processors we know; two lines are fetched together on some, which
/// costs a table nothing.
pub(crate) const LINE_BYTES: usize = 64;
/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / 8;

#[cfg(not(all(test, loom)))]
pub(crate) use real::Words;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) use real::{MappedWord, Mapping, Region};

/// Where a table's words come from.
#[derive(Debug)]
pub(crate) enum Space {
    /// This process alone.
    Heap,
    /// A mapped file, from its beginning to its end.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    Mapped {
        tables: Region,
        /// Words of the header that the users of each table share, table by table.
        shared: Region,
    },
}

impl Space {
    /// `len` zeroed words, or in a file those that are there. `dense` ones are all touched sooner or later.
    pub(crate) fn words(&self, len: usize, dense: bool) -> Option<Words> {
        match self {
            Space::Heap => Words::zeroed(len, dense),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Space::Mapped { tables, .. } => tables.take(len),
        }
    }

    /// `len` words that the users of the next engine's table share.
    pub(crate) fn shared(&self, len: usize) -> Option<Words> {
        match self {
            Space::Heap => Words::zeroed(len, false),
            #[cfg(all(target_os = "linux", not(all(test, loom))))]
            Space::Mapped { shared, .. } => shared.take(len),
        }
    }
}

#[cfg(not(all(test, loom)))]
mod real {
    use super::{AtomicU64, LINE_BYTES};
    use std::ptr::NonNull;

    /// Tables above this ask for huge pages: with small ones the first miss of a hit is the TLB's.
    #[cfg(target_os = "linux")]
    const HUGE: usize = 2 << 20;

    /// A fixed run of words, never moved.
    #[derive(Debug)]
    pub(crate) struct Words {
        start: NonNull<AtomicU64>,
        len: usize,
        _owner: Owner,
    }

    /// What keeps the words where they are.
    #[derive(Debug)]
    #[allow(dead_code, reason = "held to be dropped")]
    enum Owner {
        Heap(Heap),
        #[cfg(target_os = "linux")]
        File(std::sync::Arc<Mapping>),
    }

    /// What was mapped or allocated; the words may begin after its base.
    #[derive(Debug)]
    struct Heap {
        base: NonNull<u8>,
        bytes: usize,
    }

    // SAFETY: the words are atomics; the pointer is owned, and freed once, on drop.
    unsafe impl Send for Words {}
    // SAFETY: as above; shared access goes through atomics only.
    unsafe impl Sync for Words {}

    impl Words {
        /// `len` zeroed words, or `None` if there is no memory for them.
        ///
        /// A large table that is `dense` has its memory at once and in huge pages; others are
        /// touched as keys come.
        pub(crate) fn zeroed(len: usize, dense: bool) -> Option<Words> {
            let bytes = len.checked_mul(8)?.max(LINE_BYTES);
            let (base, start, bytes) = allocate(bytes, dense)?;
            Some(Words { start: start.cast(), len, _owner: Owner::Heap(Heap { base, bytes }) })
        }

        #[inline]
        pub(crate) fn prefetch(&self, index: usize) {
            debug_assert!(index < self.len);
            #[cfg(target_arch = "x86_64")]
            {
                use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                let address = self.start.as_ptr().wrapping_add(index).cast();
                // SAFETY: a prefetch reads nothing and faults nowhere.
                unsafe { _mm_prefetch(address, _MM_HINT_T0) };
            }
        }
    }

    impl std::ops::Deref for Words {
        type Target = [AtomicU64];

        #[inline]
        fn deref(&self) -> &[AtomicU64] {
            // SAFETY: `start` is aligned, valid for `len` zero-initialised words until drop, and
            // nobody has a non-atomic view of them.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for Heap {
        fn drop(&mut self) {
            release(self.base, self.bytes);
        }
    }

    /// A file of words that other processes map too.
    #[cfg(target_os = "linux")]
    #[derive(Debug)]
    pub(crate) struct Mapping {
        base: NonNull<u8>,
        bytes: usize,
        /// Held open: a lock on it says that the words are in use.
        file: std::fs::File,
    }

    // SAFETY: the words are atomics; the pointer is owned, and unmapped once, on drop.
    #[cfg(target_os = "linux")]
    unsafe impl Send for Mapping {}
    // SAFETY: as above; shared access goes through atomics only.
    #[cfg(target_os = "linux")]
    unsafe impl Sync for Mapping {}

    #[cfg(target_os = "linux")]
    impl Mapping {
        /// Maps the first `bytes` of a file, which must be that long (a multiple of a page).
        pub(crate) fn new(file: std::fs::File, bytes: usize) -> std::io::Result<Mapping> {
            use rustix::mm::{MapFlags, ProtFlags, mmap};
            let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
            // SAFETY: a new mapping, at an address of the kernel's choice.
            let base = unsafe { mmap(std::ptr::null_mut(), bytes, rights, flags, &file, 0) }?;
            let base = NonNull::new(base.cast()).ok_or(std::io::ErrorKind::OutOfMemory)?;
            Ok(Mapping { base, bytes, file })
        }

        /// The file that is mapped.
        pub(crate) fn file(&self) -> &std::fs::File {
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
        pub(crate) fn sync(&self) -> std::io::Result<()> {
            use rustix::mm::{MsyncFlags, msync};
            // SAFETY: exactly the range that was mapped.
            unsafe { msync(self.base.as_ptr().cast(), self.bytes, MsyncFlags::SYNC) }?;
            Ok(())
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: exactly what was mapped; who holds words of it holds the mapping too.
            let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }

    /// A word of a file, found without a look at where the file is.
    #[cfg(target_os = "linux")]
    #[derive(Clone, Debug)]
    pub(crate) struct MappedWord {
        word: NonNull<AtomicU64>,
        _mapping: std::sync::Arc<Mapping>,
    }

    // SAFETY: it is an atomic, in a mapping that is kept.
    #[cfg(target_os = "linux")]
    unsafe impl Send for MappedWord {}
    // SAFETY: as above.
    #[cfg(target_os = "linux")]
    unsafe impl Sync for MappedWord {}

    #[cfg(target_os = "linux")]
    impl MappedWord {
        /// Word `at` of a file, which must be that long.
        pub(crate) fn new(mapping: &std::sync::Arc<Mapping>, at: usize) -> MappedWord {
            let word = NonNull::from(&mapping.words()[at]);
            MappedWord { word, _mapping: mapping.clone() }
        }
    }

    #[cfg(target_os = "linux")]
    impl std::ops::Deref for MappedWord {
        type Target = AtomicU64;

        #[inline]
        fn deref(&self) -> &AtomicU64 {
            // SAFETY: a word of the mapping, which is held as long as this is.
            unsafe { self.word.as_ref() }
        }
    }

    /// Words of a file, handed out from front to back.
    #[cfg(target_os = "linux")]
    #[derive(Debug)]
    pub(crate) struct Region {
        mapping: std::sync::Arc<Mapping>,
        next: std::cell::Cell<usize>,
        end: usize,
    }

    #[cfg(target_os = "linux")]
    impl Region {
        /// From word `start` to before word `end`.
        pub(crate) fn new(mapping: std::sync::Arc<Mapping>, start: usize, end: usize) -> Region {
            Region { mapping, next: std::cell::Cell::new(start), end }
        }

        /// The next `len` words, from a cache line on; `None` if there are no more.
        pub(crate) fn take(&self, len: usize) -> Option<Words> {
            let at = self.next.get();
            let end = at.checked_add(len).filter(|&end| end <= self.end)?;
            let words = self.mapping.words().get(at..end)?;
            self.next.set((at + len).next_multiple_of(super::LINE_WORDS));
            let start = NonNull::from(words).cast();
            Some(Words { start, len, _owner: Owner::File(self.mapping.clone()) })
        }
    }

    /// Zero pages straight from the kernel: `alloc_zeroed` with an alignment would touch them all.
    #[cfg(target_os = "linux")]
    fn allocate(bytes: usize, dense: bool) -> Option<(NonNull<u8>, NonNull<u8>, usize)> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let huge = dense && bytes >= 2 * HUGE;
        let total = if huge { bytes.checked_add(HUGE)? } else { bytes };
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping, at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), total, rights, flags) }.ok()?;
        let skip = if huge { base.cast::<u8>().align_offset(HUGE) } else { 0 };
        let start = base.cast::<u8>().wrapping_add(skip);
        if huge {
            // SAFETY: the range lies in the mapping made above; a refusal changes nothing.
            let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxHugepage) };
            // A huge page costs its first user a millisecond or more: that is paid here, not by a hit.
            // SAFETY: as above; kernels before 5.14 refuse, and pages are touched lazily.
            let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxPopulateWrite) };
        }
        Some((NonNull::new(base.cast())?, NonNull::new(start)?, total))
    }

    #[cfg(target_os = "linux")]
    fn release(base: NonNull<u8>, bytes: usize) {
        // SAFETY: exactly what `allocate` mapped; `Words` is being dropped, so no borrow is left.
        let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
    }

    #[cfg(not(target_os = "linux"))]
    fn layout(bytes: usize) -> Option<std::alloc::Layout> {
        std::alloc::Layout::from_size_align(bytes, LINE_BYTES).ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(bytes: usize, _dense: bool) -> Option<(NonNull<u8>, NonNull<u8>, usize)> {
        // SAFETY: `bytes` is at least a line, so the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) })?;
        Some((start, start, bytes))
    }

    #[cfg(not(target_os = "linux"))]
    fn release(base: NonNull<u8>, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: the pointer and layout are those of `allocate`.
            unsafe { std::alloc::dealloc(base.as_ptr(), layout) };
        }
    }
}

/// A modelled atomic is a ticket and not the value, so models run on a boxed slice.
#[cfg(all(test, loom))]
#[derive(Debug)]
pub(crate) struct Words(Box<[AtomicU64]>);

#[cfg(all(test, loom))]
impl Words {
    pub(crate) fn zeroed(len: usize, _dense: bool) -> Option<Words> {
        Some(Words((0..len).map(|_| AtomicU64::new(0)).collect()))
    }
    pub(crate) fn prefetch(&self, _index: usize) {}
}

#[cfg(all(test, loom))]
impl std::ops::Deref for Words {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}
