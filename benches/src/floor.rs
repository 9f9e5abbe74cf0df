//! The floor: what nothing that hashes a key, reads the clock and changes a word can beat.
//!
//! ahash of the key, a clock, one load and one compare-and-swap of the slot that the hash names, in
//! as many bytes as the engine's rows take. No key is compared, no token counted.

use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use tidegate_core::Clock;

use crate::{BATCH, Limiter};

/// Which clock a floor reads.
pub trait Reads: Sync {
    /// Nanoseconds.
    fn now() -> u64;
}

/// The engine's own clock, which its answers are exact by.
pub struct Exact;

impl Reads for Exact {
    #[inline(always)]
    fn now() -> u64 {
        Clock::System.now()
    }
}

/// The kernel's last tick. `allow` reads no more where the answer can't have changed since. By
/// itself it would not do: it is some milliseconds old.
pub struct Tick;

impl Reads for Tick {
    #[cfg(target_os = "linux")]
    #[inline(always)]
    fn now() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[cfg(not(target_os = "linux"))]
    fn now() -> u64 {
        Exact::now()
    }
}

/// Hash, clock, load, swap.
pub struct Floor<C: Reads> {
    slots: Vec<AtomicU64>,
    hasher: RandomState,
    clock: PhantomData<C>,
}

impl<C: Reads> Floor<C> {
    /// Slots of `bytes` in all.
    pub fn new(bytes: usize) -> Floor<C> {
        let mut slots = Vec::with_capacity(bytes / 8);
        advise_huge(&slots);
        slots.resize_with(bytes / 8, || AtomicU64::new(0));
        Floor { slots, hasher: RandomState::new(), clock: PhantomData }
    }

    /// One call.
    #[inline]
    pub fn swap(&self, key: &[u8]) -> bool {
        let slot = self.slot(key);
        prefetch(slot);
        swap(slot, C::now())
    }

    /// [`BATCH`] calls at most; how many said yes.
    pub fn swap_batch<K: AsRef<[u8]>>(&self, keys: &[K]) -> usize {
        let mut slots = [&self.slots[0]; BATCH];
        for (slot, key) in slots.iter_mut().zip(keys) {
            *slot = self.slot(key.as_ref());
            prefetch(slot);
        }
        let now = C::now();
        slots[..keys.len()].iter().filter(|slot| swap(slot, now)).count()
    }

    #[inline]
    fn slot(&self, key: &[u8]) -> &AtomicU64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        let place = (u128::from(hasher.finish()) * self.slots.len() as u128) >> 64;
        &self.slots[place as usize]
    }
}

/// The load and the swap. Who meets another thread tries again: each call changes the word.
#[inline]
fn swap(slot: &AtomicU64, now: u64) -> bool {
    let mut seen = slot.load(Ordering::Acquire);
    while let Err(newer) = slot.compare_exchange(seen, now, Ordering::Release, Ordering::Acquire) {
        seen = newer;
    }
    seen <= now
}

impl<C: Reads> Limiter for Floor<C> {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        self.swap(key.as_bytes())
    }
}

/// Hash, clock, load: what a denial can't do without.
pub struct DenyFloor<C: Reads>(pub Floor<C>);

impl<C: Reads> Limiter for DenyFloor<C> {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        let slot = self.0.slot(key.as_bytes());
        C::now() < slot.load(Ordering::Acquire)
    }
}

/// [`BATCH`] hashes and prefetches, one reading of the clock, then the loads and swaps.
pub struct BatchFloor<C: Reads>(pub Floor<C>);

impl<C: Reads> Limiter for BatchFloor<C> {
    fn allow(&self, key: &String) -> bool {
        self.0.allow(key)
    }

    fn run(&self, keys: &[String]) -> usize {
        keys.chunks(BATCH).map(|batch| self.0.swap_batch(batch)).sum()
    }
}

#[inline]
fn prefetch(slot: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults nowhere.
        unsafe { _mm_prefetch(std::ptr::from_ref(slot).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// Asks for huge pages, as the engine does, for memory that was reserved and not touched yet.
#[cfg(target_os = "linux")]
fn advise_huge(slots: &Vec<AtomicU64>) {
    const HUGE: usize = 2 << 20;
    let (start, bytes) = (slots.as_ptr().cast::<u8>(), slots.capacity() * 8);
    let skip = start.align_offset(HUGE);
    if bytes < skip + 2 * HUGE {
        return;
    }
    let whole = (bytes - skip) / HUGE * HUGE;
    let start = start.wrapping_add(skip).cast_mut().cast();
    // SAFETY: whole pages inside the vector's own allocation; a refusal changes nothing.
    let _ = unsafe { rustix::mm::madvise(start, whole, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_slots: &Vec<AtomicU64>) {}
