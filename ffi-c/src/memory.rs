//! What happens when the system refuses memory.
//!
//! Rust ends the process at the first small allocation that fails, and stable Rust has no way to
//! fail the call instead. So the library has a reserve, which is address space and no memory as
//! long as nothing needs it. Where the system refuses an allocation, the reserve gives it, and the
//! call goes on to its end.
//!
//! ```text
//!   call begins ── more than half of the reserve in use? ──▶ TG_STATUS_MEMORY
//!   it makes something that stays, or a text? ── no room for it? ──▶ TG_STATUS_MEMORY
//!   allocation ── refused? ──▶ from the reserve ── used up? ──▶ the process ends
//!   what was made stays? ── was an allocation refused meanwhile? ──▶ free it, TG_STATUS_MEMORY
//! ```
//!
//! Tables don't come from here: they are mapped, and a refusal is an error of `policy`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::status::Failure;
use crate::status::tg_status::*;

/// Bytes of the reserve. Calls begin while half of it is free.
const RESERVE_BYTES: usize = 1 << 20;
/// Its alignment, and the largest that it gives: that of padded cache lines.
const ALIGNMENT: usize = 128;

/// The reserve: a run of bytes that are given from the start on, and all given back at once, when
/// the last of them is freed.
///
/// `state` is how many blocks are out 32, bytes that were given 32. Written by every thread that
/// takes a block or frees one.
struct Reserve {
    bytes: UnsafeCell<Bytes>,
    state: AtomicU64,
    /// How often the system refused an allocation.
    refusals: AtomicU64,
}

#[repr(C, align(128))]
struct Bytes([u8; RESERVE_BYTES]);

const _: () = assert!(align_of::<Bytes>() == ALIGNMENT);

// SAFETY: a block is given to one taker, by a compare-and-swap, until that frees it.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve {
    bytes: UnsafeCell::new(Bytes([0; RESERVE_BYTES])),
    state: AtomicU64::new(0),
    refusals: AtomicU64::new(0),
};

/// The reserve's state with one more block; none if it does not fit. And where the block begins.
fn with_block(state: u64, layout: Layout) -> Option<(u64, usize)> {
    let (blocks, given) = (state >> 32, (state & 0xffff_ffff) as usize);
    let start = given.next_multiple_of(layout.align());
    let end = start.checked_add(layout.size()).filter(|&end| end <= RESERVE_BYTES)?;
    (layout.align() <= ALIGNMENT).then_some(((blocks + 1) << 32 | end as u64, start))
}

/// The reserve's state with one block less.
fn without_block(state: u64) -> u64 {
    let blocks = (state >> 32) - 1;
    if blocks == 0 { 0 } else { blocks << 32 | state & 0xffff_ffff }
}

impl Reserve {
    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    #[inline]
    fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.start().addr()) < RESERVE_BYTES
    }

    /// A block of any content, or NULL.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        // ORDERING: Relaxed; only a difference to what this thread read before is looked at.
        self.refusals.fetch_add(1, Ordering::Relaxed);
        // ORDERING: Acquire, with the Release in `give_back`: what the block's last owner did to it
        // was before.
        let taken = self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
            with_block(state, layout).map(|(next, _)| next)
        });
        match taken.ok().and_then(|state| with_block(state, layout)) {
            Some((_, start)) => self.start().wrapping_add(start),
            None => null_mut(),
        }
    }

    #[cold]
    fn give_back(&self) {
        // ORDERING: Release, see `take`. It always has a next state, so it can't fail.
        let next = |state| Some(without_block(state));
        let _ = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, next);
    }
}

/// The system's allocator, and the reserve where that has no memory.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: blocks are the system's, or of the reserve, which gives each byte to one block at a time,
// aligned as asked for. Nothing here unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { RESERVE.take(layout) } else { block }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = RESERVE.take(layout);
        if !block.is_null() {
            // SAFETY: the block is that large, and no other owner has it.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.has(block) {
            return RESERVE.give_back();
        }
        // SAFETY: the caller's word, and the block is the system's.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !RESERVE.has(block) {
            // SAFETY: the caller's word, and the block is the system's.
            let grown = unsafe { System.realloc(block, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller's word.
        unsafe { self.move_block(block, layout, size) }
    }
}

impl Allocator {
    /// Another block with the same content, in place of this one; or NULL, and this one stays.
    ///
    /// # Safety
    /// As `GlobalAlloc::realloc`.
    #[cold]
    unsafe fn move_block(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's word: the size is not 0, and no larger than an object.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are at least that large, and the new one is no other's.
            unsafe { moved.copy_from_nonoverlapping(block, size.min(layout.size())) };
            // SAFETY: the caller's word.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

#[cold]
#[inline(never)]
fn no_memory() -> Failure {
    Failure::new(TG_STATUS_MEMORY, "the system has no memory left")
}

/// Refuses a call as long as little of the reserve is left.
#[inline(always)]
pub(crate) fn is_left() -> Result<(), Failure> {
    // ORDERING: Relaxed; a number that may change at once.
    let given = RESERVE.state.load(Ordering::Relaxed) & 0xffff_ffff;
    if given > RESERVE_BYTES as u64 / 2 { Err(no_memory()) } else { Ok(()) }
}

/// Bytes that a call which makes something may need, whatever it was handed.
const ROOM: usize = 1 << 20;
/// Bytes that it may need for each byte that it was handed.
const ROOM_FOR_EACH: usize = 64;

/// Refuses a call that makes something of so many bytes unless the system has room for that now.
pub(crate) fn has_room(bytes: usize) -> Result<(), Failure> {
    let size = bytes.saturating_mul(ROOM_FOR_EACH).saturating_add(ROOM);
    let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| no_memory())?;
    // Else the compiler leaves the allocation out.
    // SAFETY: the size is not 0.
    let block = std::hint::black_box(unsafe { System.alloc(layout) });
    let block = NonNull::new(block).ok_or_else(no_memory)?;
    // SAFETY: from the line above, and freed once.
    unsafe { System.dealloc(block.as_ptr(), layout) };
    Ok(())
}

/// A list with room for so many.
pub(crate) fn list<T>(count: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| no_memory())?;
    Ok(list)
}

/// Makes what stays after the call. If the system refuses memory meanwhile, it is dropped: what
/// stays must not lie in the reserve.
pub(crate) fn lasting<T>(make: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // ORDERING: Relaxed, as in `take`.
    let refusals = || RESERVE.refusals.load(Ordering::Relaxed);
    let before = refusals();
    let made = make()?;
    if refusals() == before { Ok(made) } else { Err(no_memory()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_lie_apart_and_all_come_back() {
        let (one, start) = with_block(0, layout(10, 1)).unwrap();
        let (two, next) = with_block(one, layout(10, 128)).unwrap();
        assert_eq!((start, next, two), (0, 128, 2 << 32 | 138));
        assert_eq!(without_block(without_block(two)), 0);
        assert_eq!(without_block(two), 1 << 32 | 138);
        assert!(with_block(two, layout(RESERVE_BYTES, 1)).is_none());
        assert!(with_block(0, layout(8, 256)).is_none());
        assert!(with_block(0, layout(RESERVE_BYTES, 1)).is_some());
    }

    #[test]
    fn what_can_not_be_had_is_refused() {
        assert!(has_room(usize::MAX / 2).is_err() && has_room(isize::MAX as usize / 64).is_err());
        assert!(has_room(0).is_ok() && is_left().is_ok());
    }
}
