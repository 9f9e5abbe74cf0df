//! What happens when the system refuses memory.
//!
//! Rust ends the process at the first small allocation that fails, and stable Rust has no way to
//! fail the call instead. So the library has a reserve, which is address space and no memory as
//! long as nothing needs it. Where the system refuses an allocation, the reserve gives it, and the
//! call goes on to its end.
//!
//! ```text
//!   call begins ── more than half of the small blocks in use? ──▶ TG_STATUS_MEMORY
//!   it makes something that stays, or a text? ── no room for it? ──▶ TG_STATUS_MEMORY
//!   it needs a list? ── the system has none? ──▶ TG_STATUS_MEMORY
//!   allocation ── refused? ──▶ from the reserve ── used up? ──▶ the process ends
//!   what was made stays? ── was an allocation refused meanwhile? ──▶ free it, TG_STATUS_MEMORY
//! ```
//!
//! The reserve has small blocks and large ones apart, so that a large one never takes what a hit
//! needs. Each block goes back by itself: one that stays pins only its own bytes. There is no
//! lock, since a child of fork() would find it held for ever.
//!
//! Tables don't come from here: they are mapped, and a refusal is an error of `policy`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::status::Failure;
use crate::status::tg_status::*;

/// Bytes of the reserve: the first half is of small blocks, the second of large ones.
const RESERVE_BYTES: usize = 1 << 20;
const HALF: usize = RESERVE_BYTES / 2;
/// Its alignment, and the largest that it gives: that of padded cache lines.
const ALIGNMENT: usize = 128;
/// Granules that one word has a bit for. A block is a run of granules of one word.
const GRANULES: usize = 64;
const SMALL_WORDS: usize = HALF / (ALIGNMENT * GRANULES);

/// Which granules of a run of bytes are in use.
struct Pool<const WORDS: usize> {
    /// Bytes of a granule.
    granule: usize,
    /// A bit for each granule that is in use. Threads that take or free a block write it.
    used: [AtomicU64; WORDS],
    /// How many granules are in use, for a quick look. A child of fork() may find it a few off.
    count: AtomicUsize,
}

/// The lowest run of so many bits that are 0, as a mask.
fn free_run(used: u64, count: usize) -> Option<u64> {
    let starts = (1..count).fold(!used, |free, _| free & free >> 1);
    (starts != 0).then(|| run(starts.trailing_zeros() as usize, count))
}

fn run(start: usize, count: usize) -> u64 {
    (u64::MAX >> (GRANULES - count)) << start
}

impl<const WORDS: usize> Pool<WORDS> {
    const fn new() -> Pool<WORDS> {
        Pool {
            granule: HALF / (WORDS * GRANULES),
            used: [const { AtomicU64::new(0) }; WORDS],
            count: AtomicUsize::new(0),
        }
    }

    fn granules(&self, size: usize) -> usize {
        size.div_ceil(self.granule)
    }

    /// The largest block.
    fn largest(&self) -> usize {
        self.granule * GRANULES
    }

    /// Where a block of so many bytes begins; none if no word has room for it.
    fn take(&self, size: usize) -> Option<usize> {
        let count = self.granules(size);
        let (index, start) = self.used.iter().enumerate().find_map(|(index, word)| {
            // ORDERING: Acquire, with the Release in `give_back`: what the block's last owner did
            // to it was before.
            let taken = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |used| {
                free_run(used, count).map(|run| used | run)
            });
            Some((index, free_run(taken.ok()?, count)?.trailing_zeros() as usize))
        })?;
        // ORDERING: Relaxed; nothing else is read by it.
        self.count.fetch_add(count, Ordering::Relaxed);
        Some((index * GRANULES + start) * self.granule)
    }

    fn give_back(&self, offset: usize, size: usize) {
        let (count, first) = (self.granules(size), offset / self.granule);
        let taken = run(first % GRANULES, count);
        // ORDERING: Release, see `take`.
        self.used[first / GRANULES].fetch_and(!taken, Ordering::Release);
        // ORDERING: Relaxed, as in `take`.
        self.count.fetch_sub(count, Ordering::Relaxed);
    }

    #[inline(always)]
    fn is_half_free(&self) -> bool {
        // ORDERING: Relaxed; a number that may change at once.
        self.count.load(Ordering::Relaxed) <= WORDS * GRANULES / 2
    }
}

struct Reserve {
    bytes: UnsafeCell<Bytes>,
    small: Pool<SMALL_WORDS>,
    large: Pool<1>,
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
    small: Pool::new(),
    large: Pool::new(),
    refusals: AtomicU64::new(0),
};

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
        let offset = match layout.size() {
            _ if layout.align() > ALIGNMENT => None,
            size if size <= self.small.largest() => self.small.take(size),
            // Not all of it: `policy` asks for that much to see whether the system has memory.
            size if size <= self.large.largest() / 2 => self.large.take(size).map(|at| HALF + at),
            _ => None,
        };
        offset.map_or(null_mut(), |offset| self.start().wrapping_add(offset))
    }

    #[cold]
    fn give_back(&self, block: *mut u8, layout: Layout) {
        let offset = block.addr() - self.start().addr();
        match offset.checked_sub(HALF) {
            None => self.small.give_back(offset, layout.size()),
            Some(offset) => self.large.give_back(offset, layout.size()),
        }
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
            return RESERVE.give_back(block, layout);
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

/// It allocates nothing.
#[cold]
#[inline(never)]
fn no_memory() -> Failure {
    Failure::new(TG_STATUS_MEMORY, "the system has no memory left")
}

/// Refuses a call as long as little of the reserve is left.
#[inline(always)]
pub(crate) fn is_left() -> Result<(), Failure> {
    if RESERVE.small.is_half_free() { Ok(()) } else { Err(no_memory()) }
}

/// Bytes that a call which makes something may need, whatever it was handed.
const ROOM: usize = 1 << 20;
/// Bytes that it may need for each byte that it was handed.
const ROOM_FOR_EACH: usize = 64;

/// Refuses a call that makes something of so many bytes unless the system has room for that now.
pub(crate) fn has_room(bytes: usize) -> Result<(), Failure> {
    if !RESERVE.large.is_half_free() {
        return Err(no_memory());
    }
    is_there(bytes.saturating_mul(ROOM_FOR_EACH).saturating_add(ROOM))
}

/// Refuses a call unless the system gives a block of that size now.
pub(crate) fn is_there(bytes: usize) -> Result<(), Failure> {
    let mut block = list::<u8>(bytes)?;
    // Else the compiler leaves the allocation out.
    std::hint::black_box(&mut block);
    Ok(())
}

/// A list with room for so many. The system gives it, never the reserve: its caller can do without.
pub(crate) fn list<T>(count: usize) -> Result<Vec<T>, Failure> {
    let layout = Layout::array::<T>(count).map_err(|_| no_memory())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the size is not 0.
    let block = NonNull::new(unsafe { System.alloc(layout) }).ok_or_else(no_memory)?;
    // SAFETY: it has this layout, and `Allocator` hands the system's blocks back to the system.
    Ok(unsafe { Vec::from_raw_parts(block.as_ptr().cast(), 0, count) })
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
    fn each_block_comes_back_by_itself() {
        let pool = Pool::<2>::new();
        let (granule, word) = (pool.granule, pool.largest());
        assert_eq!([pool.take(1), pool.take(granule + 1)], [Some(0), Some(granule)]);
        // A block is of one word: this one does not fit into the first any more.
        assert_eq!([pool.take(word), pool.take(word)], [Some(word), None]);
        pool.give_back(0, 1);
        assert_eq!([pool.take(granule), pool.take(granule)], [Some(0), Some(3 * granule)]);
        assert!(!pool.is_half_free());
        pool.give_back(word, word);
        assert!(pool.is_half_free() && pool.take(word) == Some(word));
    }

    #[test]
    fn the_reserve_gives_small_and_large_blocks() {
        let sizes = [1, 128, 129, 8 << 10, (8 << 10) + 1, HALF / 2];
        for layout in sizes.map(|size| layout(size, ALIGNMENT)) {
            let block = RESERVE.take(layout);
            assert!(RESERVE.has(block) && block.addr().is_multiple_of(ALIGNMENT));
            assert_eq!(block.addr() - RESERVE.start().addr() >= HALF, layout.size() > 8 << 10);
            RESERVE.give_back(block, layout);
        }
        assert!(RESERVE.take(layout(HALF / 2 + 1, 1)).is_null());
        assert!(RESERVE.take(layout(8, 256)).is_null());
    }

    /// No byte is two threads' at once, and all are there in the end.
    #[test]
    fn threads_share_a_pool() {
        let pool = Pool::<2>::new();
        let owners = [const { AtomicU64::new(0) }; 2 * GRANULES];
        let granules = |at: usize, size| &owners[at / pool.granule..][..pool.granules(size)];
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (pool, granules) = (&pool, &granules);
                s.spawn(move || {
                    for i in 0..20_000 {
                        let size = (i % 9 + thread) * pool.granule / 2 + 1;
                        let Some(at) = pool.take(size) else { continue };
                        let before = |one: &AtomicU64| one.fetch_add(1, Ordering::Relaxed);
                        assert!(granules(at, size).iter().all(|one| before(one) == 0));
                        let after = |one: &AtomicU64| one.fetch_sub(1, Ordering::Relaxed);
                        assert!(granules(at, size).iter().all(|one| after(one) == 1));
                        pool.give_back(at, size);
                    }
                });
            }
        });
        assert!(
            pool.count.into_inner() == 0
                && pool.used.iter().all(|w| w.load(Ordering::Relaxed) == 0)
        );
    }

    #[test]
    fn what_can_not_be_had_is_refused() {
        assert!(has_room(usize::MAX / 2).is_err() && has_room(isize::MAX as usize / 64).is_err());
        assert!(has_room(0).is_ok() && is_left().is_ok());
    }
}
