//! Words on the heap, and where words are freed.

use std::ptr::NonNull;

use super::LINE_BYTES;
#[cfg(target_os = "linux")]
use super::mapped::Mapping;
use crate::sync::AtomicU64;

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

    /// Words of a file, which stays mapped as long as they are held.
    #[cfg(target_os = "linux")]
    pub(super) fn of_file(words: &[AtomicU64], mapping: &std::sync::Arc<Mapping>) -> Words {
        let start = NonNull::from(words).cast();
        Words { start, len: words.len(), _owner: Owner::File(mapping.clone()) }
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
        // no thread has a non-atomic view of them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        release(self.base, self.bytes);
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
