//! Exact sliding windows over one log: a ring of stamped entries, taken one by one without a lock.
//!
//! Words of a ring: `head`, `base`, `mixed`, `descent`, then N slots.
//!
//! ```text
//!  63..61    60 … 48     47 … 0
//! ┌───────┬───────────┬───────────┐
//! │  lap  │  weight   │   stamp   │     0: never used        weight 0: void
//! └───────┴───────────┴───────────┘
//! ```
//!
//! * A *position* counts admissions for ever; position p lies in slot p mod N and carries the lap
//!   ⌊p/N⌋ + 1. `head` is a hint at the next position and never ahead of it. Any thread may move it
//!   on, only from p to p + 1, and only after slot p was seen to carry p's lap.
//! * **Admission** is the swap of slot `head` from the entry of one lap ago to the new one,
//!   whatever its cost (the entry's weight). There is one such slot at any time, so a hit that read
//!   the log and then wins its swap knows that nothing was admitted in between. A process that dies
//!   has admitted nothing, or all of it.
//! * **Reading** takes as long as the log's [`Order`] demands. The n newest entries decide about
//!   any window of up to n, so one ring serves several windows (5/10 s, 20/min, 200/h in 200 slots)
//!   and a `max` that changes at run time.
//!
//!   | order | what holds | a hit | a denial's statuses |
//!   |---|---|---|---|
//!   | plain | every weight is 1, stamps ascend | O(1) | a binary search for each window |
//!   | sorted | stamps ascend | one sum of weights | the same sum, and a walk from the nearer end |
//!   | any | nothing | one pass for each window | the same; more if the 16 oldest are too few |
//!
//! * `mixed` is the position from which the log is plain again. `descent` is the last position
//!   whose stamp is below the one before it: a log from there on is sorted. Both are raised before
//!   the entry is written that makes it necessary.
//! * **Giving back** lowers the weight of an entry in place, to 0 if need be. That takes units out
//!   only, so it can't make a hit that is under way wrong.
//! * **No live entry is lost.** The caller names `keep_us`, the longest `per` of all numbers that
//!   the log is judged by. If the entry at the tip is younger than that, there are two cases:
//!   * Some other entry is void or older. Then the one at the tip is *carried*: moved to position
//!     `head` with its old stamp, by the same swap as an admission.
//!   * All entries are live (numbers with a shorter `per` let them in, or `record`). Then the
//!     oldest is overwritten, and its units are *added to the next oldest*. For windows of up to N
//!     that changes no answer. The N entries that stay are at least N units, so the overwritten
//!     units alone decide nothing. The units that do decide leave no earlier than the next oldest.
//!     Only after units were given back may the moved ones deny for longer than exact, by less than
//!     `per`.
//! * **Clearing** writes an expired entry at `head`, which makes every hit under way start over,
//!   then raises `base`; entries before `base` don't count.
//! * **Clocks.** A stamp ahead of a clock that was read again is now: a hit repairs it before it
//!   adds an entry behind it, and before it is refused by it. An inspection repairs nothing and
//!   reads it as now.
//! * **Damage** (a file that others wrote into) costs denials, and grants nothing from then on. A
//!   `base` beyond the tip would hide entries to come, so it is brought back. An entry that the
//!   head passes, and that no plain log has next, raises `mixed` and `descent`, so that every slot
//!   counts. A head near the end of all numbers starts over.
//! * Laps repeat after eight. To mistake an entry for the one it saw, a thread would have to sleep
//!   through exactly 8·k laps, all stamped with one microsecond. That takes a clock which stands
//!   still while hits and refunds go on.

mod count;
mod log;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
mod moving;

#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) use moving::Entries;

pub(crate) use log::{FACTS, WindowLog, status};

use std::ops::Range;

use crate::algorithm::stamp;
use crate::clock::Time;
use crate::sync::{AtomicU64, Ordering};
use crate::table::row::{Idle, Moved, Row, is_busy};

/// Words of a ring before its slots.
pub(crate) const HEADER_WORDS: usize = 4;
const HEAD: usize = 0;
const BASE: usize = 1;
const MIXED: usize = 2;
const DESCENT: usize = 3;

/// How often a log is looked at that keeps changing.
const MOST_READS: usize = 8;

const WEIGHT_BITS: u32 = 13;
const LAP_SHIFT: u32 = stamp::BITS + WEIGHT_BITS;
/// The most that one entry weighs; what a `record` has beyond that is forgotten.
pub(crate) const MOST_WEIGHT: u64 = (1 << WEIGHT_BITS) - 1;

/// Positions from here on are only in a damaged ring.
const FAR: u64 = 1 << 62;

/// The numbers of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) max: u64,
    pub(crate) per_us: u64,
    /// Which of the rule's limits this is.
    pub(crate) index: usize,
}

/// What a log says of one window; times in nanoseconds from now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) used: u64,
    /// Until the cost asked about fits: 0 if it does.
    pub(crate) wait: u64,
    /// Until one unit more is left than now: 0 if nothing is used.
    pub(crate) more: u64,
    /// Until nothing is used.
    pub(crate) reset: u64,
}

/// An entry of the log.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    fn new(lap: u64, weight: u64, stamp: u64) -> Slot {
        let weight = weight.min(MOST_WEIGHT);
        Slot(lap << LAP_SHIFT | weight << stamp::BITS | (stamp & stamp::MASK))
    }
    fn lap(self) -> u64 {
        self.0 >> LAP_SHIFT
    }
    fn weight(self) -> u64 {
        (self.0 >> stamp::BITS) & MOST_WEIGHT
    }
    fn stamp(self) -> u64 {
        self.0 & stamp::MASK
    }
    fn with_weight(self, weight: u64) -> Slot {
        Slot::new(self.lap(), weight, self.stamp())
    }
    fn age(self, now: u64) -> i64 {
        stamp::age_in(self.0, now)
    }
    /// Counts in a window of `per` that ends `now`.
    fn is_within(self, per_us: u64, now: u64) -> bool {
        self.weight() != 0 && self.age(now) < per_us as i64
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot(lap {}, {} at {} us)", self.lap(), self.weight(), self.stamp())
    }
}

/// The place of the next admission, and the entry of one lap ago that it would replace.
#[derive(Clone, Copy, Debug)]
struct Tip {
    position: u64,
    seen: Slot,
    /// The slot, counted from the ring's start, and the lap of an entry there. Both come from one
    /// division.
    place: u64,
    lap: u64,
}

/// An entry that was admitted, for taking exactly that one back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) position: u64,
    slot: Slot,
}

#[cfg(test)]
impl Entry {
    /// The entry as plain numbers.
    pub(crate) fn to_words(self) -> [u64; 2] {
        [self.position, self.slot.0]
    }

    /// The entry of such numbers. Any numbers will do: an entry that is not in the log gives
    /// nothing back.
    pub(crate) fn from_words([position, slot]: [u64; 2]) -> Entry {
        Entry { position, slot: Slot(slot) }
    }
}

/// What is known of the entries of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Every weight is 1, and stamps ascend with the position.
    Plain,
    /// Stamps ascend with the position.
    Sorted,
    Any,
}

/// A log as of a position: the entries before it, down to the oldest that still counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    bottom: u64,
    position: u64,
    /// The slot of the bottom, counted from the ring's start. Others are found from it without a
    /// division.
    start: u64,
    order: Order,
}

impl Log {
    fn len(self) -> u64 {
        self.position - self.bottom
    }
    /// The positions of entries that are counted from the bottom.
    fn range(self, up: Range<u32>) -> Range<u64> {
        self.bottom + u64::from(up.start)..self.bottom + u64::from(up.end)
    }
}

/// What the windows say to a hit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fits,
    Full,
    /// Full, and entries are ahead of the clock.
    Ahead,
}

impl Verdict {
    fn new(fits: bool, ahead: bool) -> Verdict {
        match (fits, ahead) {
            (true, _) => Verdict::Fits,
            (false, false) => Verdict::Full,
            (false, true) => Verdict::Ahead,
        }
    }
}

/// What an admission does with the entry that it would overwrite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// It counts no more.
    Free,
    /// It is moved out of the way.
    Carry,
    /// It is the oldest of a ring full of live entries: its units are added to the next oldest.
    Full,
}

/// The ring of one row.
pub(crate) struct Ring<'r> {
    row: &'r Row<'r>,
    at: usize,
    len: u64,
    /// The slots. Kept here, as a pointer in the row is read again after each atomic load.
    slots: &'r [AtomicU64],
}

impl<'r> Ring<'r> {
    pub(crate) fn new(row: &'r Row<'r>, at: usize, slots: usize) -> Ring<'r> {
        let first = at + HEADER_WORDS;
        Ring { row, at, len: slots as u64, slots: &row.words[first..first + slots] }
    }

    fn lap(&self, position: u64) -> u64 {
        (position / self.len).wrapping_add(1) & (u64::MAX >> LAP_SHIFT)
    }
    /// The first position whose entry finds nothing left of `position`'s. (Only a damaged ring is
    /// near the end of all numbers.)
    fn lap_after(&self, position: u64) -> u64 {
        position.saturating_add(self.len + 1)
    }
    fn place(&self, position: u64) -> usize {
        self.at + HEADER_WORDS + (position % self.len) as usize
    }
    fn slot(&self, position: u64) -> Slot {
        Slot(self.row.load(self.place(position)))
    }
    /// The slot of a log that is so many entries above its bottom.
    #[inline(always)]
    fn slot_of(&self, log: Log, up: u64) -> Slot {
        let place = log.start + up;
        let place = if place < self.len { place } else { place - self.len };
        load(&self.slots[place as usize])
    }
    fn header(&self, which: usize) -> u64 {
        self.row.load(self.at + which)
    }

    /// The words of a range of positions, at most a lap: up to the ring's end, and from its start.
    #[inline(always)]
    fn halves(&self, range: Range<u64>) -> [&[AtomicU64]; 2] {
        let words = self.slots;
        let (count, start) =
            ((range.end - range.start) as usize, (range.start % self.len) as usize);
        let straight = count.min(words.len() - start);
        [&words[start..start + straight], &words[..count - straight]]
    }

    /// The slots of a range of positions, at most a lap, without a division for each.
    #[inline(always)]
    fn slots(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        let [to_the_end, from_the_start] = self.halves(range);
        to_the_end.iter().chain(from_the_start).map(load)
    }

    /// Raises `base`, `mixed` or `descent`; they never sink.
    fn raise(&self, which: usize, to: u64) {
        // ORDERING: Release, so that a thread that sees the entry written next sees the mark before
        // it.
        self.row.words[self.at + which].fetch_max(to, Ordering::Release);
    }

    /// Marks that the entry at `position` has another weight than 1.
    fn mark_mixed(&self, position: u64) {
        self.raise(MIXED, self.lap_after(position));
    }

    /// Marks that stamps may descend at `position`, or that nothing is known of those before it.
    fn mark_descent(&self, position: u64) {
        self.raise(DESCENT, position);
        self.mark_mixed(position);
    }

    /// The next position, helping `head` there.
    fn tip(&self) -> Tip {
        loop {
            let position = self.header(HEAD);
            let (place, lap) = (position % self.len, self.lap(position));
            let seen = load(&self.slots[place as usize]);
            // A head that stood still across the load of the slot is not laps behind it.
            if self.header(HEAD) != position {
                continue;
            }
            if seen.0 == 0 || seen.lap() != lap {
                return Tip { position, seen, place, lap };
            }
            self.mark(position, seen);
            self.advance(position);
        }
    }

    /// Raises the marks that an entry makes necessary, if it is not what a plain log has next.
    fn mark(&self, position: u64, entry: Slot) {
        let before = || self.slot(position - 1).stamp();
        let first = position <= self.bottom(position);
        if !first && later(before(), entry.stamp()) != entry.stamp() {
            self.mark_descent(position);
        } else if entry.weight() != 1 {
            self.mark_mixed(position);
        }
    }

    /// Whether nothing has come in since the tip was read.
    fn is_tip(&self, tip: Tip) -> bool {
        load(&self.slots[tip.place as usize]) == tip.seen
    }

    /// Moves `head` past a position that was seen taken.
    fn advance(&self, position: u64) {
        let _ = self.row.replace(self.at + HEAD, position, self.next(position));
    }

    /// The position after another. Far ones start over, at one of the same slot and lap.
    fn next(&self, position: u64) -> u64 {
        let all_laps = self.len << (u64::BITS - LAP_SHIFT);
        if position < FAR { position + 1 } else { position % all_laps + all_laps + 1 }
    }

    /// Brings a base back that is beyond the tip, where it would hide entries to come.
    /// (A reset raises it past a tip that was read before; but then the tip's slot is another.)
    #[cold]
    fn repair_base(&self, tip: Tip, base: u64) {
        if self.is_tip(tip) {
            self.mark_descent(tip.position);
            let lowest = tip.position.saturating_sub(self.len);
            let _ = self.row.replace(self.at + BASE, base, lowest);
        }
    }

    /// Swaps the slot at the tip: the only way that units come in.
    fn put(&self, tip: Tip, weight: u64, stamp: u64) -> Option<Entry> {
        let position = tip.position;
        let slot = Slot::new(tip.lap, weight, stamp);
        let at = self.at + HEADER_WORDS + tip.place as usize;
        self.row.replace(at, tip.seen.0, slot.0).ok()?;
        self.advance(position);
        Some(Entry { position, slot })
    }

    /// An admission by a process that is killed before it moves the head on.
    #[cfg(all(test, loom))]
    pub(crate) fn put_and_stop(&self, now: u64) {
        let tip = self.tip();
        let slot = Slot::new(self.lap(tip.position), 1, stamp::of(now));
        let _ = self.row.replace(self.place(tip.position), tip.seen.0, slot.0);
    }

    /// The oldest position that still counts.
    fn bottom(&self, position: u64) -> u64 {
        self.bottom_by(self.header(BASE), position)
    }

    fn bottom_by(&self, base: u64, position: u64) -> u64 {
        let lowest = position.saturating_sub(self.len);
        // A reset may have raised the base past a position that was read before, and damage past
        // any: then it hides nothing.
        if base > position { lowest } else { base.max(lowest) }
    }

    /// The order of the entries between two positions.
    fn order(&self, bottom: u64, position: u64) -> Order {
        match position >= self.header(MIXED) {
            true => Order::Plain,
            false if bottom >= self.header(DESCENT) => Order::Sorted,
            false => Order::Any,
        }
    }

    /// The entries between two positions, and their order.
    fn log_between(&self, bottom: u64, position: u64) -> Log {
        Log { bottom, position, start: bottom % self.len, order: self.order(bottom, position) }
    }

    /// The log up to the tip.
    fn log(&self, tip: Tip) -> Log {
        self.log_to(tip, self.bottom(tip.position))
    }

    /// The log from a position of the tip's last lap up to the tip.
    fn log_to(&self, tip: Tip, bottom: u64) -> Log {
        let (place, len) = (tip.place, tip.position - bottom);
        let start = if place >= len { place - len } else { place + self.len - len };
        Log { bottom, position: tip.position, start, order: self.order(bottom, tip.position) }
    }

    /// The log when an entry was its newest. What was overwritten since had left every window;
    /// after a reset since, no more than the entry itself is known.
    pub(crate) fn log_of(&self, entry: u64) -> Log {
        let position = self.next(entry);
        if self.header(BASE) > position {
            return self.log_between(position - 1, position);
        }
        let bottom = self.bottom(position);
        let is_there = |p: u64| self.slot(p).lap() == self.lap(p);
        let gone = match is_there(bottom) {
            true => 0,
            // The oldest go first.
            false => stamp::first_time(position - bottom, |up| is_there(bottom + up)),
        };
        self.log_between(bottom + gone, position)
    }

    /// The entries of a log, the oldest position first.
    #[inline(always)]
    fn entries(&self, log: Log) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        self.slots(log.bottom..log.position)
    }

    /// Admits `cost` if every window has room. `keep_us` is the longest `per` of all numbers that
    /// the log is judged by.
    pub(crate) fn take(
        &self,
        windows: &[Window],
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<Entry>, Moved> {
        let admitted =
            self.admit(cost, keep_us, time, |log, now| self.verdict(log, windows, cost, now))?;
        Ok(admitted.map(|(entry, _)| entry))
    }

    /// As `take`, for windows of which the shortest comes first. When it refuses, it has told what
    /// each window says. When it admits, it may have told what each window says after that, and
    /// says whether it has. The log was read before the admission's swap, which succeeds only if
    /// nothing was admitted since.
    pub(crate) fn hit(
        &self,
        windows: &[Window],
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        mut report: impl FnMut(&Window, Status),
    ) -> Result<Option<(Entry, bool)>, Moved> {
        let mut is_told = false;
        let admitted = self.admit(cost, keep_us, time, |log, now| {
            is_told = log.order != Order::Any;
            match log.order {
                Order::Plain if self.foresee_plain(log, windows, cost, now, &mut report) => {
                    Verdict::Fits
                }
                Order::Any => self.judge(log, windows, cost, now, &mut report),
                _ => self.judge_hit(log, windows, cost, now, &mut report),
            }
        })?;
        // The units of an entry that was overwritten while it was live count for another.
        Ok(admitted.map(|(entry, room)| (entry, is_told && room == Room::Free)))
    }

    /// Logs `cost` without asking.
    pub(crate) fn record(
        &self,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<Entry>, Moved> {
        Ok(self.admit(cost, keep_us, time, |_, _| Verdict::Fits)?.map(|(entry, _)| entry))
    }

    #[inline(always)]
    fn admit(
        &self,
        cost: u64,
        keep_us: u64,
        time: &mut Time<'_>,
        mut judge: impl FnMut(Log, u64) -> Verdict,
    ) -> Result<Option<(Entry, Room)>, Moved> {
        let mut repairs = 0;
        loop {
            let tip = self.tip();
            self.row.check()?;
            let base = self.header(BASE);
            if base > tip.position {
                self.repair_base(tip, base);
                continue;
            }
            let log = self.log_to(tip, self.bottom_by(base, tip.position));
            if log.len() == 0 {
                // It may have become empty after the clock was read.
                time.refresh();
            } else if self.is_last_ahead(log, time.now()) {
                self.repair_entries(tip.position, &mut repairs, time)?;
                continue;
            }
            match judge(log, time.now()) {
                Verdict::Fits => {}
                Verdict::Ahead => {
                    self.mark_descent(tip.position);
                    self.repair_entries(tip.position, &mut repairs, time)?;
                    continue;
                }
                // The log may have changed under the look. If nothing came in since, it was right.
                Verdict::Full if self.is_tip(tip) => return Ok(None),
                Verdict::Full => continue,
            }
            let is_live = tip.seen.is_within(keep_us, time.now());
            let room = if is_live { self.room(tip, log, keep_us, time.now()) } else { Room::Free };
            if room == Room::Carry {
                self.carry(tip, keep_us, time.now());
                continue;
            }
            if cost != 1 || room == Room::Full {
                self.mark_mixed(tip.position);
            }
            // Not before the last entry's, which is not ahead.
            if let Some(entry) = self.put(tip, cost, stamp::of(time.now())) {
                if room == Room::Full {
                    self.add_to_oldest(tip.seen.weight());
                }
                return Ok(Some((entry, room)));
            }
        }
    }

    /// Whether the entry before the tip is ahead of the clock. No entry may be put behind such a
    /// one.
    fn is_last_ahead(&self, log: Log, now: u64) -> bool {
        stamp::is_ahead(self.slot_of(log, log.len() - 1).stamp(), now)
    }

    /// What to do with a live entry at the tip.
    #[cold]
    fn room(&self, tip: Tip, log: Log, keep_us: u64, now: u64) -> Room {
        // Before the base it is live for no reader.
        if log.len() < self.len {
            return Room::Free;
        }
        let mut entries = self.entries(log);
        let full = log.order == Order::Plain || entries.all(|slot| slot.is_within(keep_us, now));
        let is_oldest = || {
            let oldest = || self.entries(log).map(Slot::stamp).reduce(earlier);
            log.order != Order::Any || oldest() == Some(tip.seen.stamp())
        };
        if full && is_oldest() { Room::Full } else { Room::Carry }
    }

    /// Moves live entries from the tip's way to its place, until one may be overwritten.
    #[cold]
    fn carry(&self, mut tip: Tip, keep_us: u64, now: u64) {
        for _ in 0..self.len {
            self.mark_mixed(tip.position);
            self.mark(tip.position, tip.seen);
            if self.put(tip, tip.seen.weight(), tip.seen.stamp()).is_none() {
                return;
            }
            tip = self.tip();
            let is_live = tip.seen.is_within(keep_us, now);
            if !is_live || self.room(tip, self.log(tip), keep_us, now) != Room::Carry {
                return;
            }
        }
    }

    /// Adds the units of an entry that was overwritten to the oldest that is left. The thread that
    /// overwrote it does this alone, so they are added once; if it dies before, they are lost.
    #[cold]
    fn add_to_oldest(&self, units: u64) {
        loop {
            let tip = self.tip();
            let log = self.log(tip);
            let first = log.bottom;
            let older = |a: u64, b: u64| {
                let (first, second) = (self.slot(a).stamp(), self.slot(b).stamp());
                if later(first, second) == first && first != second { b } else { a }
            };
            let oldest = match log.order {
                _ if log.len() == 0 => return,
                Order::Any => (first..log.position).reduce(older).unwrap_or(first),
                _ => first,
            };
            let slot = self.slot(oldest);
            let heavier = slot.with_weight(slot.weight() + units);
            self.mark_mixed(oldest);
            let is_there = slot.lap() == self.lap(oldest);
            if is_there && self.row.replace(self.place(oldest), slot.0, heavier.0).is_ok() {
                return;
            }
            // An entry of a lap that it can't have is damage: the log counts it as it is.
            if !is_there && self.is_tip(tip) {
                return;
            }
        }
    }

    /// Repairs a log that a clock fault left in the future. True if it was.
    pub(crate) fn repair_clock_skew(&self, time: &mut Time<'_>) -> Result<bool, Moved> {
        let tip = self.tip();
        let log = self.log(tip);
        let is_ahead = |slot: Slot| stamp::is_ahead(slot.stamp(), time.now());
        let last = log.len() > 0 && self.is_last_ahead(log, time.now());
        let other = || match log.order {
            Order::Any => self.entries(log).any(is_ahead),
            _ => log.len() > 0 && is_ahead(self.slot(log.bottom)),
        };
        if !last && !other() {
            return Ok(false);
        }
        if !last {
            self.mark_descent(tip.position);
        }
        self.repair_entries(tip.position, &mut 0, time)?;
        Ok(true)
    }

    /// Stamps ahead of the clock: read it again; if it went back, bring them with it. The oldest
    /// come first: if this process dies on the way, the newest still shows that work is left.
    /// Entries of a later lap are left to the next try. If that never comes to an end, they are
    /// damaged.
    #[cold]
    fn repair_entries(
        &self,
        position: u64,
        repairs: &mut usize,
        time: &mut Time<'_>,
    ) -> Result<(), Moved> {
        let any_lap = *repairs >= MOST_READS;
        *repairs += 1;
        let all = self.bottom(position)..position;
        let is_past = |p: &u64| !stamp::is_ahead(self.slot(*p).stamp(), time.now());
        // Entries that are brought back are later than those behind them which are not ahead.
        let last_past = all.clone().rev().find(is_past);
        for p in all {
            let slot = self.slot(p);
            if !stamp::is_ahead(slot.stamp(), time.now()) {
                continue;
            }
            time.recheck_clock();
            self.row.check()?;
            if stamp::is_ahead(slot.stamp(), time.now()) && (any_lap || slot.lap() == self.lap(p)) {
                last_past.filter(|past| *past > p).into_iter().for_each(|p| self.mark_descent(p));
                let repaired = Slot::new(slot.lap(), slot.weight(), stamp::of(time.now()));
                let _ = self.row.replace(self.place(p), slot.0, repaired.0);
            }
        }
        Ok(())
    }

    /// Takes an entry back that no other limit agreed to.
    pub(crate) fn undo(&self, entry: Entry) {
        let all = entry.slot.weight();
        while let Some(slot) = self.found(entry) {
            if self.lower(entry, slot, all).is_some() {
                return;
            }
        }
    }

    /// Gives up to `amount` units of one entry back, and says how many: none if the entry is older
    /// than `keep_us`, or was cleared or overwritten.
    pub(crate) fn give_back(
        &self,
        entry: Entry,
        amount: u64,
        keep_us: u64,
        now: u64,
    ) -> Result<u64, Moved> {
        loop {
            let found = self.found(entry);
            self.row.check()?;
            let Some(slot) = found.filter(|slot| slot.is_within(keep_us, now)) else {
                return Ok(0);
            };
            if let Some(units) = self.lower(entry, slot, amount) {
                return Ok(units);
            }
        }
    }

    /// An entry as it is now, with the stamp that a clock fault may have changed. `None` if it was
    /// cleared, overwritten or carried: a carried entry can't be told from another of the same
    /// microsecond, so it stays spent.
    fn found(&self, entry: Entry) -> Option<Slot> {
        let tip = self.tip().position;
        let slot = self.slot(entry.position);
        let is_there = (self.bottom(tip)..tip).contains(&entry.position);
        (is_there && slot.lap() == entry.slot.lap()).then_some(slot)
    }

    /// Lowers the weight of an entry that was seen as `slot`, and says by how much. `None` if the
    /// slot changed.
    fn lower(&self, entry: Entry, slot: Slot, amount: u64) -> Option<u64> {
        let units = slot.weight().min(amount);
        self.mark_mixed(entry.position);
        let lower = slot.with_weight(slot.weight() - units);
        self.row.replace(self.place(entry.position), slot.0, lower.0).ok().map(|()| units)
    }

    /// Gives units back that are younger than `per_us`, the newest first. What is `left` to give
    /// tells where to go on after `Moved`.
    pub(crate) fn refund(&self, per_us: u64, left: &mut u64, now: u64) -> Result<(), Moved> {
        while *left > 0 {
            let tip = self.tip();
            let newest = self.newest_within(self.log(tip), per_us, now);
            self.row.check()?;
            let Some(entry) = newest else {
                return Ok(());
            };
            *left -= self.lower(entry, entry.slot, *left).unwrap_or(0);
        }
        Ok(())
    }

    /// The newest entry that is no void.
    fn newest_within(&self, log: Log, per_us: u64, now: u64) -> Option<Entry> {
        let positions = (log.bottom..log.position).rev();
        let newest_first = positions.zip(self.entries(log).rev());
        let mut live = newest_first
            .map(|(position, slot)| Entry { position, slot })
            .filter(|entry| entry.slot.is_within(per_us, now));
        if log.order != Order::Any {
            return live.next();
        }
        let newer = |a: Entry, b: Entry| {
            if later(a.slot.stamp(), b.slot.stamp()) == a.slot.stamp() { a } else { b }
        };
        live.reduce(newer)
    }

    /// The latest stamp in the log, voids included.
    fn newest(&self, log: Log) -> Option<u64> {
        match log.order {
            Order::Any => self.entries(log).map(Slot::stamp).reduce(later),
            _ => (log.len() > 0).then(|| self.slot_of(log, log.len() - 1).stamp()),
        }
    }

    /// Whether nothing counts any more by windows of up to `keep_us`.
    pub(crate) fn is_idle(&self, keep_us: u64, now: u64) -> bool {
        let log = self.log(self.tip());
        match log.order {
            Order::Plain => self.newest(log).is_none_or(|s| stamp::age(s, now) >= keep_us as i64),
            _ => !self.entries(log).any(|slot| slot.is_within(keep_us, now)),
        }
    }

    /// Nanoseconds since the newest entry, given back or not: 0 if it is ahead of the clock, and
    /// `u64::MAX` in an empty log.
    pub(crate) fn untouched_for(&self, now: u64) -> u64 {
        let Some(newest) = self.newest(self.log(self.tip())) else {
            return u64::MAX;
        };
        let micros = u64::try_from(stamp::age(newest, now));
        micros.map_or(0, |micros| micros * stamp::MICRO + now % stamp::MICRO)
    }

    /// Empties the log. `keep_us` is the longest that any entry may count.
    pub(crate) fn reset_words(&self, keep_us: u64, now: u64, idle: Idle<'_>) -> bool {
        loop {
            let tip = self.tip();
            if is_busy(idle) || self.row.check().is_err() {
                return false;
            }
            let expired = (now / stamp::MICRO).wrapping_sub(keep_us);
            if self.put(tip, 1, expired).is_some() {
                self.raise(BASE, tip.position.saturating_add(1));
                return true;
            }
        }
    }

    /// Tells what each window says to `cost`.
    pub(crate) fn inspect(
        &self,
        windows: &[Window],
        cost: u64,
        now: u64,
        mut report: impl FnMut(&Window, Status),
    ) {
        for _ in 0..MOST_READS {
            let tip = self.tip();
            self.judge(self.log(tip), windows, cost, now, &mut report);
            if self.is_tip(tip) {
                break;
            }
        }
    }

    /// Whether each window has room for `cost`.
    pub(crate) fn fits(&self, windows: &[Window], cost: u64, now: u64) -> bool {
        let mut fits = false;
        for _ in 0..MOST_READS {
            let tip = self.tip();
            fits = self.verdict(self.log(tip), windows, cost, now) == Verdict::Fits;
            if self.is_tip(tip) {
                break;
            }
        }
        fits
    }

    /// The same of the log when an entry was its newest.
    pub(crate) fn inspect_by(
        &self,
        entry: u64,
        windows: &[Window],
        cost: u64,
        now: u64,
        report: impl FnMut(&Window, Status),
    ) {
        self.judge(self.log_of(entry), windows, cost, now, report);
    }
}

pub(crate) fn longest(windows: &[Window]) -> u64 {
    windows.iter().map(|w| w.per_us).max().unwrap_or(0)
}

#[inline(always)]
fn load(word: &AtomicU64) -> Slot {
    // ORDERING: Acquire, as in `Row::load`.
    Slot(word.load(Ordering::Acquire))
}

/// The later of two stamps, modulo their wrap.
fn later(a: u64, b: u64) -> u64 {
    let ahead = a.wrapping_sub(b) & stamp::MASK;
    if ahead <= stamp::MASK / 2 { a } else { b }
}

fn earlier(a: u64, b: u64) -> u64 {
    if later(a, b) == a { b } else { a }
}

#[cfg(all(test, not(loom)))]
mod tests;
