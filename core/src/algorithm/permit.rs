//! Permits of a `concurrent` limit: slots with a lease, so that a dead holder's comes back.
//!
//! ```text
//!  63 … 16      15..14    13 … 10    9 … 0
//! ┌───────────┬─────────┬──────────┬──────────┐
//! │ start, µs │  nonce  │ exponent │ mantissa │      lease = mantissa · 10^exponent µs
//! └───────────┴─────────┴──────────┴──────────┘      both 0: free, and the start is a tag
//! ```
//!
//! * **A permit that is out keeps the lease it was given**, whatever lease its reader has. A slot
//!   is held while its start is younger than the lease that stands beside it. The code of a lease
//!   has three digits, rounded up. A reader with a lease of the same code takes its own for the
//!   slot's, so where all have one lease it is exact.
//! * A start ahead of a clock that was read again is now: the slot is *repaired*, with the same
//!   lease. Its holder can't release or renew it from then on, and it is free when the lease is
//!   over. A holder can't take an earlier start for its own repaired slot, since that could be
//!   another's: nonces come again after four, and a clock that went back gives later holders
//!   earlier starts.
//! * The holder of a permit knows its exact word. So a release or renewal that comes after the slot
//!   went to another holder finds another word and does nothing. It also does nothing once the
//!   lease has run out, though the slot may not be taken yet. The nonce goes up with each holder,
//!   so that two holders of one slot in one microsecond have different words.
//! * The tag of a free slot says which life of the row it is of. A hit that loaded a free slot and
//!   then slept until another key has the row finds another tag. So its swap fails.
//! * **Taking**: a hit swaps the *first* slot that is not held, if fewer than `max` are. A hit that
//!   took a later slot saw that one held. So of several hits that count the same only one gets its
//!   slot, and the others count again. No more than `max` are ever out by the taker's own limit.
//!   Slots beyond its `max`, which hits with a larger one take, count like all others. A refusal is
//!   one pass that found no such slot. While the pass is under way one thread may release a slot
//!   behind it, and another thread, which saw that slot held, take a later one. Then there was a
//!   place for as long as those two crossed.

use crate::algorithm::limit::Limit;
use crate::algorithm::{
    AlgorithmCell, AlgorithmFacts, Cell, MakeCell, ReservedCharge, Taken, stamp,
};
use crate::clock::Time;
use crate::status::LimitStatus;
use crate::sync::{AtomicU64, Ordering};
use crate::table::row::{Idle, Moved, Row};

const NONCE_BITS: u32 = 2;
const NONCE: u64 = (1 << NONCE_BITS) - 1;
const MANTISSA_BITS: u32 = 10;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
const START_SHIFT: u32 = 64 - stamp::BITS;
const CODE_BITS: u32 = START_SHIFT - NONCE_BITS;
const CODE: u64 = (1 << CODE_BITS) - 1;
/// The tag of a slot that a takeover or a reset freed; those of released ones are smaller.
const MADE_FRESH: u64 = 1 << (stamp::BITS - 1);
/// The longest lease that a limit may have, 366 days; a longer one is damage.
const LONGEST_US: u64 = 366 * 86_400_000_000;

/// The numbers of a concurrent limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permits {
    pub(crate) max: u64,
    pub(crate) lease_us: u64,
    /// Slots of the row; at least `max`.
    pub(crate) slots: usize,
}

/// A slot that is held: what its holder shows to give it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    slot: usize,
    word: u64,
    /// Held in a row that keys share because the table is full.
    pub(crate) shared: bool,
}

pub(crate) const FACTS: AlgorithmFacts = AlgorithmFacts {
    code: 5,
    has_burst: false,
    has_lease: true,
    is_log: false,
    instead_of_words: Some("spread the permits over several keys for more"),
    order: 1,
    // A limit of 0 is judged before any word is read; its cell only holds the place.
    cell: MakeCell::Own(|limit| {
        let (max, lease_us) = (limit.max.max(1), limit.per_micros());
        Ok(Cell::Permits(Permits { max, lease_us, slots: limit.slots() }))
    }),
    horizon: Limit::per_nanos,
    // Permits out at once have no rate.
    most_within: |_, _| None,
    foreseen: |limit, hit| {
        // A lease starts at a whole microsecond, rounded down.
        let leased = limit.per_nanos() - hit.now % stamp::MICRO;
        (hit.more_or(leased).min(leased), leased)
    },
};

pub(crate) fn status(permits: &Permits, out: &PermitsOut) -> LimitStatus {
    let PermitsOut { held: used, wait, more, reset, .. } = *out;
    let remaining = permits.max.saturating_sub(used);
    LimitStatus { limit: permits.max, used, remaining, wait, more, reset }
}

impl AlgorithmCell for Permits {
    fn words(&self) -> usize {
        self.slots
    }

    fn inspect_in(
        &self,
        row: &Row<'_>,
        at: usize,
        _written: Option<u64>,
        cost: u64,
        now: u64,
        statuses: &mut [LimitStatus],
    ) {
        let out = self.out(row, at, now);
        let wait = if cost == 0 { 0 } else { out.wait };
        statuses[0] = LimitStatus { wait, ..status(self, &out) };
    }

    /// Takes one permit, whatever the cost.
    fn take_from(
        &self,
        row: &Row<'_>,
        at: usize,
        _cost: u64,
        _keep_us: u64,
        time: &mut Time<'_>,
        taken: &mut Taken,
    ) -> Result<bool, Moved> {
        taken.permit = self.take(row, at, time)?;
        Ok(taken.permit.is_some())
    }

    fn undo(
        &self,
        row: &Row<'_>,
        at: usize,
        taken: &Taken,
        _written: Option<u64>,
        _cost: u64,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        taken.permit.map(|permit| self.release(row, at, permit, time.now()));
        Ok(())
    }

    /// Nothing: permits are released.
    fn give_back_own(
        &self,
        _row: &Row<'_>,
        _at: usize,
        _charge: &ReservedCharge<'_>,
        _amount: u64,
        _time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        Ok(())
    }

    /// Brings slots that are held from the future on, by a clock that went back since, to now.
    fn repair_clock_skew(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<bool, Moved> {
        let mut any = false;
        let mut sight = self.sight(time.now());
        for (i, slot) in self.each(row, at).enumerate() {
            if !sight.is_ahead(slot) {
                continue;
            }
            time.recheck_clock();
            sight = self.sight(time.now());
            if sight.is_ahead(slot) {
                row.check()?;
                let _ = row.replace(at + i, slot.0, slot.repaired(time.now()).0);
                any = true;
            }
        }
        Ok(any)
    }

    /// Nothing: permits are not spent but held.
    fn record_in(
        &self,
        _row: &Row<'_>,
        _at: usize,
        _cost: u64,
        _keep_us: u64,
        _time: &mut Time<'_>,
    ) -> Result<Option<u64>, Moved> {
        Ok(None)
    }

    /// Nothing: permits are released.
    fn refund_to(
        &self,
        _row: &Row<'_>,
        _at: usize,
        _rest: &mut u64,
        _time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        Ok(())
    }

    fn is_idle_in(&self, row: &Row<'_>, at: usize, now: u64) -> bool {
        self.held(row, at, now) == 0
    }

    /// A permit has its own end in its word.
    fn is_untouched_in(&self, _horizon: u64, row: &Row<'_>, at: usize, now: u64) -> bool {
        self.held(row, at, now) == 0
    }

    fn reset_in(
        &self,
        row: &Row<'_>,
        at: usize,
        incarnation: u64,
        idle: Idle<'_>,
        _keep_us: u64,
        now: u64,
    ) -> bool {
        self.reset_words(row, at, incarnation, idle.map(|_| now))
    }
}

/// The powers of ten.
const TENS: [u64; 16] = {
    let mut tens = [1; 16];
    let mut i = 1;
    while i < tens.len() {
        tens[i] = 10 * tens[i - 1];
        i += 1;
    }
    tens
};

/// What a lease is in a slot: its first three digits, rounded up, and how many more it has.
fn code_of(lease_us: u64) -> u64 {
    let exponent = lease_us.max(1).ilog10().saturating_sub(2);
    u64::from(exponent) << MANTISSA_BITS | lease_us.div_ceil(TENS[exponent as usize & 15])
}

fn lease_of(code: u64) -> u64 {
    let exponent = (code >> MANTISSA_BITS) as u32;
    ((code & MANTISSA) * TENS[exponent as usize & 15]).min(LONGEST_US)
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    fn start(self) -> u64 {
        self.0 >> START_SHIFT
    }
    fn code(self) -> u64 {
        self.0 & CODE
    }
    fn nonce(self) -> u64 {
        (self.0 >> CODE_BITS) & NONCE
    }
    fn with(self, start: u64, code: u64) -> Slot {
        Slot(start << START_SHIFT | self.nonce() << CODE_BITS | code)
    }
    /// The slot of its next holder, from now on.
    fn taken(self, code: u64, now: u64) -> Slot {
        let next = Slot(self.0.wrapping_add(1 << CODE_BITS));
        next.with(stamp::floor(now), code)
    }
    fn repaired(self, now: u64) -> Slot {
        self.with(stamp::floor(now), self.code())
    }
    fn released(self, row: &Row<'_>) -> Slot {
        self.with(row.seen().sequence(), 0)
    }
    fn made_fresh(self, incarnation: u64) -> Slot {
        self.with(MADE_FRESH | (incarnation & (MADE_FRESH - 1)), 0)
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (start, lease, nonce) = (self.start(), lease_of(self.code()), self.nonce());
        write!(f, "Slot(#{nonce} for {lease} µs from {start})")
    }
}

/// How slots are seen at one time by those with one lease.
///
/// A slot that is held by that lease, and no other word, comes out of one subtraction and one
/// rotation as a number below `bound`. That number is one less than the microseconds that it is
/// still held, and its nonce. A start that is ahead makes it larger. Another code, in the top bits,
/// makes it larger still.
#[derive(Clone, Copy)]
struct Sight {
    base: u64,
    bound: u64,
    lease_us: u64,
    code: u64,
    now: u64,
}

impl Sight {
    #[inline(always)]
    fn turned(&self, slot: Slot) -> u64 {
        slot.0.wrapping_sub(self.base).rotate_right(CODE_BITS)
    }

    /// Microseconds that a slot is still held: `None` if it is not, more than its lease if its
    /// start is ahead.
    fn time_left(&self, slot: Slot) -> Option<u64> {
        match self.turned(slot) {
            turned if turned < self.bound => Some((turned >> NONCE_BITS) + 1),
            _ => self.general_time_left(slot),
        }
    }

    /// The same of slots that are free, whose lease has run out or is another, or whose start is
    /// ahead.
    #[inline(never)]
    fn general_time_left(&self, slot: Slot) -> Option<u64> {
        if slot.code() == 0 {
            return None;
        }
        let left = self.lease(slot) as i64 - stamp::age(slot.start(), self.now);
        (left > 0).then_some(left as u64)
    }

    fn lease(&self, slot: Slot) -> u64 {
        if slot.code() == self.code { self.lease_us } else { lease_of(slot.code()) }
    }

    /// Whether a slot is held from a moment on that is yet to come.
    fn is_ahead(&self, slot: Slot) -> bool {
        self.time_left(slot).is_some_and(|left| left > self.lease(slot))
    }

    /// Nanoseconds until a slot is free that is held for so many microseconds more.
    fn nanos(&self, left: u64) -> u64 {
        left.saturating_mul(stamp::MICRO).saturating_sub(self.now % stamp::MICRO)
    }
}

/// What a set of slots says to a hit that wants one.
struct Chance {
    held: u64,
    /// The first that is not held.
    free: Option<(usize, Slot)>,
    ahead: bool,
}

/// Slots that are looked at together.
const LANE: usize = 8;

#[inline(always)]
fn loaded(word: &AtomicU64) -> Slot {
    // ORDERING: Acquire, as in `Row::load`, which would look at the bounds of each.
    Slot(word.load(Ordering::Acquire))
}

/// How many slots are held, and for how long, as [`Sight::turned`] has it.
struct LeaseSpan {
    held: u64,
    soonest: u64,
    latest: u64,
    ahead: bool,
}

impl LeaseSpan {
    #[inline(never)]
    fn add(&mut self, slot: Slot, sight: &Sight) {
        let Some(left) = sight.time_left(slot) else { return };
        // A start ahead is now.
        let lease = sight.lease(slot);
        let turned = (left.min(lease) - 1) << NONCE_BITS;
        self.held += 1;
        self.ahead |= left > lease;
        (self.soonest, self.latest) = (turned.min(self.soonest), turned.max(self.latest));
    }
}

/// What a concurrent limit says, in nanoseconds as in a [`LimitStatus`](crate::LimitStatus).
pub(crate) struct PermitsOut {
    pub(crate) held: u64,
    pub(crate) wait: u64,
    pub(crate) more: u64,
    pub(crate) reset: u64,
    /// Whether a start is ahead of the clock.
    pub(crate) ahead: bool,
}

impl Permits {
    fn sight(&self, now: u64) -> Sight {
        let (code, lease_us) = (code_of(self.lease_us), self.lease_us);
        // The latest start that is not held any more is one before this.
        let oldest = stamp::floor(now).wrapping_sub(lease_us).wrapping_add(1);
        let base = oldest << START_SHIFT | code;
        Sight { base, bound: lease_us << NONCE_BITS, lease_us, code, now }
    }

    fn slots_of<'r>(&self, row: &'r Row<'_>, at: usize) -> &'r [AtomicU64] {
        &row.words[at..at + self.slots]
    }

    #[inline(always)]
    fn each<'r>(&self, row: &'r Row<'_>, at: usize) -> impl Iterator<Item = Slot> + 'r {
        self.slots_of(row, at).iter().map(loaded)
    }

    /// Permits that are out.
    pub(crate) fn held(&self, row: &Row<'_>, at: usize, now: u64) -> u64 {
        let sight = self.sight(now);
        self.each(row, at).filter(|slot| sight.time_left(*slot).is_some()).count() as u64
    }

    /// Takes a slot if fewer than `max` are out.
    pub(crate) fn take(
        &self,
        row: &Row<'_>,
        at: usize,
        time: &mut Time<'_>,
    ) -> Result<Option<Permit>, Moved> {
        loop {
            let now = time.now();
            let chance = self.chance(row, at, now);
            row.check()?;
            if chance.ahead && (self.repair_clock_skew(row, at, time)? || time.now() != now) {
                continue;
            }
            let Some((slot, seen)) = chance.free.filter(|_| chance.held < self.max) else {
                return Ok(None);
            };
            let taken = seen.taken(code_of(self.lease_us), now);
            if row.replace(at + slot, seen.0, taken.0).is_ok() {
                return Ok(Some(Permit { slot, word: taken.0, shared: row.is_shared() }));
            }
        }
    }

    /// One pass over the slots, up to the first that is free unless others may count beyond it.
    fn chance(&self, row: &Row<'_>, at: usize, now: u64) -> Chance {
        let (sight, all_mine) = (self.sight(now), self.max as usize >= self.slots);
        let mut chance = Chance { held: 0, free: None, ahead: false };
        for (i, slot) in self.each(row, at).enumerate() {
            if sight.turned(slot) < sight.bound {
                chance.held += 1;
            } else if let Some(left) = sight.general_time_left(slot) {
                chance.held += 1;
                chance.ahead |= left > sight.lease(slot);
            } else if chance.free.is_none() {
                chance.free = Some((i, slot));
                if all_mine {
                    break;
                }
            }
        }
        chance
    }

    /// Gives a slot back. False, and nothing changes, if its lease had run out or it is another's.
    pub(crate) fn release(&self, row: &Row<'_>, at: usize, permit: Permit, now: u64) -> bool {
        self.swap(row, at, permit, now, Slot(permit.word).released(row)).is_some()
    }

    /// Starts the lease anew, by these numbers. `None`, and nothing changes, if it had run out or
    /// is another's.
    pub(crate) fn renew(
        &self,
        row: &Row<'_>,
        at: usize,
        permit: Permit,
        now: u64,
    ) -> Option<Permit> {
        self.swap(row, at, permit, now, Slot(permit.word).taken(code_of(self.lease_us), now))
    }

    fn swap(
        &self,
        row: &Row<'_>,
        at: usize,
        permit: Permit,
        now: u64,
        next: Slot,
    ) -> Option<Permit> {
        let held = self.sight(now).time_left(Slot(permit.word)).is_some();
        if !held || permit.slot >= self.slots {
            return None;
        }
        row.replace(at + permit.slot, permit.word, next.0).ok()?;
        Some(Permit { word: next.0, ..permit })
    }

    /// What is out, and how long until one more fits, until fewer are out, and until none is; if
    /// no thread releases, renews or takes one.
    pub(crate) fn out(&self, row: &Row<'_>, at: usize, now: u64) -> PermitsOut {
        let sight = self.sight(now);
        let mut span = LeaseSpan { held: 0, soonest: u64::MAX, latest: 0, ahead: false };
        let slots = self.slots_of(row, at).chunks_exact(LANE);
        slots.remainder().iter().for_each(|word| span.add(loaded(word), &sight));
        for lane in slots {
            // Nearly all are held by one lease, and several at a time wait less for each other.
            let turned = |word| sight.turned(loaded(word));
            let (least, most) = lane
                .iter()
                .map(turned)
                .fold((u64::MAX, 0), |(least, most), turned| (turned.min(least), turned.max(most)));
            if most < sight.bound {
                span.held += LANE as u64;
                (span.soonest, span.latest) = (least.min(span.soonest), most.max(span.latest));
            } else {
                lane.iter().for_each(|word| span.add(loaded(word), &sight));
            }
        }
        let LeaseSpan { held, ahead, .. } = span;
        if held == 0 {
            return PermitsOut { held, wait: 0, more: 0, reset: 0, ahead };
        }
        let [soonest, latest] =
            [span.soonest, span.latest].map(|turned| (turned >> NONCE_BITS) + 1);
        let too_many = (held + 1).saturating_sub(self.max);
        let more = match too_many {
            0 | 1 => soonest,
            _ => self.nth(row, at, too_many, latest, &sight),
        };
        let wait = if too_many == 0 { 0 } else { more };
        let [wait, more, reset] = [wait, more, latest].map(|left| sight.nanos(left));
        PermitsOut { held, wait, more, reset, ahead }
    }

    /// Microseconds until the first `n` of the slots that are held will be free, `latest` at the
    /// most: eight bits of that in each pass. 0 if others have released so many meanwhile.
    #[cold]
    fn nth(&self, row: &Row<'_>, at: usize, mut n: u64, latest: u64, sight: &Sight) -> u64 {
        let mut found = 0;
        for shift in (0..latest.ilog2() + 1).step_by(8).rev() {
            let mut counts = [0u64; 256];
            for slot in self.each(row, at) {
                let Some(left) = sight.time_left(slot) else { continue };
                let left = left.min(sight.lease(slot)).min(latest);
                if left >> shift >> 8 == found {
                    counts[(left >> shift) as usize & 255] += 1;
                }
            }
            let mut next = 0usize;
            while next < 255 && counts[next] < n {
                n -= counts[next];
                next += 1;
            }
            if counts[next] < n {
                return 0;
            }
            found = found << 8 | next as u64;
        }
        found
    }

    /// The slots of a row as they are in one with `slots` of them. Each keeps its place. Permits
    /// whose place is gone take free ones; if there are too few, those with the longest leases
    /// stay. Holders go on in the old table: what they release or renew there is out in the new one
    /// until the lease that was moved ends.
    #[cfg(all(target_os = "linux", not(all(test, loom))))]
    pub(crate) fn moved(&self, row: &Row<'_>, at: usize, slots: usize, now: u64) -> Vec<u64> {
        let sight = self.sight(now);
        let left = |slot: u64| sight.time_left(Slot(slot));
        let mut words: Vec<u64> = self.each(row, at).map(|slot| slot.0).collect();
        let gone = words.split_off(slots.min(words.len()));
        words.resize(slots, 0);
        for homeless in gone.into_iter().filter(|&slot| left(slot).is_some()) {
            let shortest = (0..slots).min_by_key(|&at| left(words[at]));
            if let Some(at) = shortest.filter(|&at| left(words[at]) < left(homeless)) {
                words[at] = homeless;
            }
        }
        words
    }

    /// Frees every slot: of an idle key, or (`None`) of any. (What is held does not depend on the
    /// numbers, so each slot can be judged alone.)
    pub(crate) fn reset_words(
        &self,
        row: &Row<'_>,
        at: usize,
        incarnation: u64,
        idle_at: Option<u64>,
    ) -> bool {
        let sight = idle_at.map(|now| self.sight(now));
        (at..at + self.slots).all(|i| {
            loop {
                let seen = Slot(row.load(i));
                let held = sight.is_some_and(|sight| sight.time_left(seen).is_some());
                if held || row.check().is_err() {
                    return false;
                }
                if row.replace(i, seen.0, seen.made_fresh(incarnation).0).is_ok() {
                    return true;
                }
            }
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_kept_to_three_digits_and_never_shortened() {
        for (lease, told) in [
            (1_000, 1_000),
            (1_001, 1_010),
            (60_000_000, 60_000_000),
            (12_345_678, 12_400_000),
            (999_000, 999_000),
            (999_001, 1_000_000),
            (86_400_000_000, 86_400_000_000),
            (LONGEST_US, LONGEST_US),
            (LONGEST_US - 1, LONGEST_US),
        ] {
            assert_eq!(lease_of(code_of(lease)), told);
            assert!(code_of(lease) <= CODE && code_of(lease) != 0);
        }
    }

    #[test]
    fn fields_neither_meet_nor_leave_gaps() {
        let all = Slot(0).with(stamp::MASK, CODE);
        assert_eq!(all.0 | NONCE << CODE_BITS, u64::MAX);
        assert_eq!((all.start(), all.code(), all.nonce()), (stamp::MASK, CODE, 0));
        let last = Slot(NONCE << CODE_BITS).taken(5, 7_999);
        assert_eq!((last.start(), last.code(), last.nonce()), (7, 5, 0));
        assert_eq!(format!("{last:?}"), "Slot(#0 for 5 µs from 7)");
    }

    /// By one subtraction, and by what the fields mean.
    #[test]
    fn a_slot_compared_at_once_is_what_its_fields_say() {
        let half = 1u64 << 47;
        for now_us in [0, 5, 1_000_000, half - 1, half, stamp::MASK, stamp::MASK + 7, 3 << 48] {
            for lease_us in [1_000, 60_000_000, 12_345_678, LONGEST_US] {
                let permits = Permits { max: 1, lease_us, slots: 1 };
                let sight = permits.sight(now_us * 1_000 + 999);
                let offsets =
                    [0, 1, lease_us - 1, lease_us, lease_us + 1, half - 1, half, half + 1];
                for offset in offsets.into_iter().flat_map(|o| [o, o.wrapping_neg()]) {
                    let start = now_us.wrapping_add(offset) & stamp::MASK;
                    for code in [0, 1 << MANTISSA_BITS, code_of(lease_us), code_of(77_000), CODE] {
                        for nonce in [0, NONCE] {
                            let slot = Slot(nonce << CODE_BITS).with(start, code);
                            let lease = sight.lease(slot) as i64;
                            let left = lease - stamp::age(start, sight.now);
                            let held = code != 0 && left > 0;
                            let want = held.then_some(left as u64);
                            assert_eq!(sight.time_left(slot), want, "{slot:?} at {now_us}");
                        }
                    }
                }
            }
        }
    }
}
