//! Exact sliding windows over one log: a ring of stamped entries, taken one by one without a lock.
//!
//! Words of a ring: `head`, `base`, `mixed`, then N slots.
//!
//! ```text
//!  63..61    60 … 48     47 … 0
//! ┌───────┬───────────┬───────────┐
//! │  lap  │  weight   │   stamp   │     0: never used        weight 0: void
//! └───────┴───────────┴───────────┘
//! ```
//!
//! * A *position* counts admissions for ever; position p lies in slot p mod N and carries the lap
//!   ⌊p/N⌋ + 1. `head` is a hint at the next position and never ahead of it: it is moved on, by
//!   anybody, only from p to p + 1 and only after slot p was seen to carry p's lap.
//! * **Admission** is the swap of slot `head` from the entry of one lap ago to the new one, whatever
//!   its cost (the entry's weight). There is one such slot at any time, so a hit that looked at the
//!   log and then wins its swap knows that nothing was admitted in between. A process that dies
//!   has admitted nothing, or all of it.
//! * **Looking** is O(1) while the log is *plain*: all weights 1, stamps in order. At most `max` units
//!   fit into a window exactly when entry `head + cost − 1 − max` is older than `per`. The n newest
//!   entries decide about any window of up to n, so one ring serves several windows (5/10 s, 20/min,
//!   200/h in 200 slots) and a `max` that changes at run time.
//! * **Giving back** lowers the weight of the newest entry in place, to 0 if need be. That takes
//!   units out only, so it can't make a hit that is under way wrong.
//! * A log with other weights or voids is *mixed*: it is counted slot by slot. Voids make live entries
//!   come up for overwriting too early; such an entry is *carried*, that is moved to position `head` with its old stamp by
//!   the same swap as an admission. `mixed` is the position from which the log is plain again; it
//!   is raised before the entry that makes it necessary is written.
//! * **Clearing** writes an expired entry at `head`, which makes every hit under way start over, then
//!   raises `base`; entries before `base` don't count.
//! * **Damage** (a file that others wrote into) costs denials, and grants nothing from then on. A `base`
//!   beyond the tip, which would hide entries to come, is brought back; an entry that the head passes and
//!   that no plain log has next makes the log mixed, so that every slot counts; a head near the end of
//!   all numbers starts over.
//! * Laps repeat after eight. To mistake an entry for the one it saw, a thread would have to sleep
//!   through exactly 8·k laps and find them all stamped with one microsecond: that takes a clock
//!   which stands still while hits and refunds go on.

use crate::clock::Time;
use crate::row::{Idle, Moved, Row, is_busy};
use crate::stamp;
use crate::sync::Ordering;

/// Words of a ring before its slots.
pub(crate) const HEADER_WORDS: usize = 3;
const HEAD: usize = 0;
const BASE: usize = 1;
const MIXED: usize = 2;

/// How often a log is looked at that keeps changing.
const LOOKS: usize = 8;

const WEIGHT_BITS: u32 = 13;
const LAP_SHIFT: u32 = stamp::BITS + WEIGHT_BITS;
/// The most that one entry weighs; what a `record` has beyond that is forgotten.
pub(crate) const MOST_WEIGHT: u64 = (1 << WEIGHT_BITS) - 1;

/// Positions from here on are nobody's but a damaged ring's.
const FAR: u64 = 1 << 62;

/// The numbers of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) max: u64,
    pub(crate) per_us: u64,
    /// Which of the rule's limits this is.
    pub(crate) index: usize,
}

/// An entry of the log.
#[derive(Clone, Copy, PartialEq, Eq)]
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
    /// Counts in a window of `per` that ends `now`.
    fn is_within(self, per_us: u64, now: u64) -> bool {
        self.weight() != 0 && stamp::age(self.stamp(), now) < per_us as i64
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
}

/// An entry that was just admitted, for taking exactly that one back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) position: u64,
    slot: Slot,
}

/// A log as of a position: the entries before it, down to the oldest that still counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    bottom: u64,
    position: u64,
}

impl Log {
    fn len(self) -> u64 {
        self.position - self.bottom
    }
}

/// The ring of one row.
pub(crate) struct Ring<'r> {
    row: &'r Row<'r>,
    at: usize,
    len: u64,
}

impl<'r> Ring<'r> {
    pub(crate) fn new(row: &'r Row<'r>, at: usize, slots: usize) -> Ring<'r> {
        Ring { row, at, len: slots as u64 }
    }

    fn lap(&self, position: u64) -> u64 {
        (position / self.len).wrapping_add(1) & (u64::MAX >> LAP_SHIFT)
    }
    /// The first position whose entry finds nothing left of `position`'s. (Only a damaged ring is near
    /// the end of all numbers.)
    fn lap_after(&self, position: u64) -> u64 {
        position.saturating_add(self.len + 1)
    }
    fn place(&self, position: u64) -> usize {
        self.at + HEADER_WORDS + (position % self.len) as usize
    }
    fn slot(&self, position: u64) -> Slot {
        Slot(self.row.load(self.place(position)))
    }
    fn header(&self, which: usize) -> u64 {
        self.row.load(self.at + which)
    }

    /// Raises `base` or `mixed`; they never sink.
    fn raise(&self, which: usize, to: u64) {
        // ORDERING: Release, so that who sees the entry written next sees the mark before it.
        self.row.words[self.at + which].fetch_max(to, Ordering::Release);
    }

    /// The next position, helping `head` there.
    fn tip(&self) -> Tip {
        loop {
            let position = self.header(HEAD);
            let seen = self.slot(position);
            // A head that stood still across the load of the slot is not laps behind it.
            if self.header(HEAD) != position {
                continue;
            }
            if seen.0 == 0 || seen.lap() != self.lap(position) {
                return Tip { position, seen };
            }
            if !self.follows(position, seen) {
                self.raise(MIXED, self.lap_after(position));
            }
            self.advance(position);
        }
    }

    /// Whether an entry is what a plain log has next.
    fn follows(&self, position: u64, entry: Slot) -> bool {
        let before = || self.slot(position - 1).stamp();
        let first = position <= self.bottom(position);
        entry.weight() == 1 && (first || later(before(), entry.stamp()) == entry.stamp())
    }

    /// Whether nothing has come in since the tip was read.
    fn is_tip(&self, tip: Tip) -> bool {
        self.slot(tip.position) == tip.seen
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

    /// Brings a base back that is beyond the tip, where it would hide entries to come: true if it was.
    /// (A reset raises it past a tip that was read before; but then the tip's slot is another.)
    fn mend_base(&self, tip: Tip) -> bool {
        let base = self.header(BASE);
        let beyond = base > tip.position;
        if beyond && self.is_tip(tip) {
            self.raise(MIXED, self.lap_after(tip.position));
            let lowest = tip.position.saturating_sub(self.len);
            let _ = self.row.replace(self.at + BASE, base, lowest);
        }
        beyond
    }

    /// Swaps the slot at the tip: the only way that units come in.
    fn put(&self, tip: Tip, weight: u64, stamp: u64) -> Option<Entry> {
        let position = tip.position;
        let slot = Slot::new(self.lap(position), weight, stamp);
        self.row.replace(self.place(position), tip.seen.0, slot.0).ok()?;
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
        let (base, lowest) = (self.header(BASE), position.saturating_sub(self.len));
        // A reset may have raised the base past a position that was read before, and damage past any:
        // then it hides nothing.
        if base > position { lowest } else { base.max(lowest) }
    }

    /// The log up to the tip.
    fn log(&self, tip: Tip) -> Log {
        Log { bottom: self.bottom(tip.position), position: tip.position }
    }

    /// The log when an entry was its newest. What was overwritten since had left every window; after a
    /// reset since, no more than the entry itself is known.
    pub(crate) fn log_of(&self, entry: u64) -> Log {
        let position = self.next(entry);
        if self.header(BASE) > position {
            return Log { bottom: position - 1, position };
        }
        let bottom = self.bottom(position);
        let is_there = |p: u64| self.slot(p).lap() == self.lap(p);
        let gone = match is_there(bottom) {
            true => 0,
            // The oldest go first.
            false => stamp::first_time(position - bottom, |up| is_there(bottom + up)),
        };
        Log { bottom: bottom + gone, position }
    }

    fn is_plain(&self, log: Log) -> bool {
        log.position >= self.header(MIXED)
    }

    /// The entries of a log, newest position first.
    fn entries(&self, log: Log) -> impl Iterator<Item = (u64, Slot)> + '_ {
        (log.bottom..log.position).rev().map(|p| (p, self.slot(p)))
    }

    /// Units in the window of `per` that ends `now`.
    fn used(&self, log: Log, per_us: u64, now: u64) -> u64 {
        if !self.is_plain(log) {
            let within = |(_, slot): &(u64, Slot)| slot.is_within(per_us, now);
            return self.entries(log).filter(within).map(|(_, s)| s.weight()).sum();
        }
        // Stamps are in order: find the newest entry that has left the window.
        stamp::first_time(log.len(), |back| {
            stamp::age(self.slot(log.position - 1 - back).stamp(), now) >= per_us as i64
        })
    }

    /// Nanoseconds until `cost` more fit into the window: 0 if they do.
    fn wait(&self, log: Log, window: &Window, cost: u64, now: u64) -> u64 {
        let Some(rest) = window.max.checked_sub(cost) else {
            return crate::NEVER;
        };
        if self.is_plain(log) {
            // The entry that must have left: the one after the `rest` newest.
            let oldest = || self.slot(log.position - 1 - rest).stamp();
            let blocked = log.len() > rest;
            return if blocked { stamp::until_age(oldest(), window.per_us, now) } else { 0 };
        }
        let used_in = |micros: u64| self.used(log, window.per_us.saturating_sub(micros), now);
        if self.used(log, window.per_us, now) <= rest {
            return 0;
        }
        let micros = stamp::first_time(window.per_us + 1, |t| used_in(t) <= rest);
        // 0 if others gave back between the two looks.
        (micros * stamp::MICRO).saturating_sub(now % stamp::MICRO)
    }

    fn fits(&self, log: Log, windows: &[Window], cost: u64, now: u64) -> bool {
        let mixed = !self.is_plain(log);
        windows.iter().all(|w| match mixed {
            true => self.used(log, w.per_us, now) + cost <= w.max,
            false => self.wait(log, w, cost, now) == 0,
        })
    }

    /// Admits `cost` if every window has room.
    pub(crate) fn take(
        &self,
        windows: &[Window],
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<Entry>, Moved> {
        self.admit(windows, cost, time, |log, now| self.fits(log, windows, cost, now))
    }

    /// Logs `cost` without asking. A ring full of live entries forgets its oldest, which no window
    /// needs as long as the newer ones stay: a refund can't bring it back.
    pub(crate) fn record(
        &self,
        windows: &[Window],
        cost: u64,
        time: &mut Time<'_>,
    ) -> Result<Option<Entry>, Moved> {
        self.admit(windows, cost, time, |_, _| true)
    }

    fn admit(
        &self,
        windows: &[Window],
        cost: u64,
        time: &mut Time<'_>,
        may: impl Fn(Log, u64) -> bool,
    ) -> Result<Option<Entry>, Moved> {
        let mut mends = 0;
        loop {
            let tip = self.tip();
            self.row.check()?;
            if self.mend_base(tip) {
                continue;
            }
            let log = self.log(tip);
            let newest = self.newest(log);
            match newest {
                // An empty log may have become so after the clock was read.
                None => time.refresh(),
                Some(stamp) if stamp::is_ahead(stamp, time.now()) => {
                    // An entry that is never mended is of no lap that it could have: damaged.
                    self.mend(tip.position, mends >= LOOKS, time)?;
                    mends += 1;
                    continue;
                }
                Some(_) => {}
            }
            if !may(log, time.now()) {
                // The log may have changed under the look. If nothing came in since, it was right.
                if self.is_tip(tip) {
                    return Ok(None);
                }
                continue;
            }
            if self.must_carry(tip, windows, time.now()) {
                self.carry(tip, windows, time.now());
                continue;
            }
            if cost != 1 {
                self.raise(MIXED, self.lap_after(tip.position));
            }
            let here = stamp::of(time.now());
            let stamp = newest.map_or(here, |newest| later(newest, here));
            if let Some(entry) = self.put(tip, cost, stamp) {
                return Ok(Some(entry));
            }
        }
    }

    /// The latest stamp in the log.
    fn newest(&self, log: Log) -> Option<u64> {
        if self.is_plain(log) {
            let any = log.len() > 0;
            return any.then(|| self.slot(log.position - 1).stamp());
        }
        self.entries(log).map(|(_, slot)| slot.stamp()).reduce(later)
    }

    /// Whether the entry that the tip would overwrite may still count. In a plain log it never does.
    fn must_carry(&self, tip: Tip, windows: &[Window], now: u64) -> bool {
        let log = self.log(tip);
        if self.is_plain(log) {
            return false;
        }
        let keep = longest(windows);
        let overwritten = tip.position.checked_sub(self.len);
        let counts = overwritten.is_some_and(|p| p >= self.header(BASE));
        if !counts || !tip.seen.is_within(keep, now) {
            return false;
        }
        // With every slot live (which only `record` brings about) the oldest has to go.
        let full = self.entries(log).all(|(_, slot)| slot.is_within(keep, now));
        let oldest = || self.entries(log).map(|(_, s)| s.stamp()).reduce(earlier);
        !(full && oldest() == Some(tip.seen.stamp()))
    }

    /// Moves live entries from the tip's way to its place, until one may be overwritten.
    fn carry(&self, mut tip: Tip, windows: &[Window], now: u64) {
        for _ in 0..self.len {
            self.raise(MIXED, self.lap_after(tip.position));
            if self.put(tip, tip.seen.weight(), tip.seen.stamp()).is_none() {
                return;
            }
            tip = self.tip();
            if !self.must_carry(tip, windows, now) {
                return;
            }
        }
    }

    /// Mends a log that a clock fault left in the future. True if it was.
    pub(crate) fn mend_newest(&self, time: &mut Time<'_>) -> Result<bool, Moved> {
        let tip = self.tip();
        let ahead = self.newest(self.log(tip)).is_some_and(|s| stamp::is_ahead(s, time.now()));
        if ahead {
            self.mend(tip.position, false, time)?;
        }
        Ok(ahead)
    }

    /// Stamps ahead of the clock: read it again; if it went back, bring them with it. The oldest come
    /// first, so that the newest tells of unfinished work if this process dies on the way; those of a
    /// later lap are left to the next look, unless that never comes to an end.
    #[cold]
    fn mend(&self, position: u64, any_lap: bool, time: &mut Time<'_>) -> Result<(), Moved> {
        for p in self.bottom(position)..position {
            let slot = self.slot(p);
            if !stamp::is_ahead(slot.stamp(), time.now()) {
                continue;
            }
            time.doubt();
            self.row.check()?;
            if stamp::is_ahead(slot.stamp(), time.now()) && (any_lap || slot.lap() == self.lap(p)) {
                let mended = Slot::new(slot.lap(), slot.weight(), stamp::of(time.now()));
                let _ = self.row.replace(self.place(p), slot.0, mended.0);
            }
        }
        Ok(())
    }

    /// Takes an entry back that no other limit agreed to. If it was carried since, it stays spent.
    pub(crate) fn undo(&self, entry: Entry) {
        self.raise(MIXED, self.lap_after(self.header(HEAD)));
        let _ =
            self.row.replace(self.place(entry.position), entry.slot.0, entry.slot.with_weight(0).0);
    }

    /// Gives units back, the newest first. What is `left` to give tells where to go on after `Moved`.
    pub(crate) fn refund(&self, windows: &[Window], left: &mut u64, now: u64) -> Result<(), Moved> {
        let keep = longest(windows);
        while *left > 0 {
            let tip = self.tip();
            let newest = self
                .entries(self.log(tip))
                .filter(|(_, slot)| slot.is_within(keep, now))
                .reduce(|a, b| if later(a.1.stamp(), b.1.stamp()) == a.1.stamp() { a } else { b });
            self.row.check()?;
            let Some((position, slot)) = newest else {
                return Ok(());
            };
            self.raise(MIXED, self.lap_after(tip.position));
            let back = slot.weight().min(*left);
            let lower = slot.with_weight(slot.weight() - back);
            if self.row.replace(self.place(position), slot.0, lower.0).is_ok() {
                *left -= back;
            }
        }
        Ok(())
    }

    /// Whether nothing counts any more.
    pub(crate) fn is_idle(&self, windows: &[Window], now: u64) -> bool {
        let (log, keep) = (self.log(self.tip()), longest(windows));
        if !self.is_plain(log) {
            return !self.entries(log).any(|(_, slot)| slot.is_within(keep, now));
        }
        self.newest(log).is_none_or(|s| stamp::age(s, now) >= keep as i64)
    }

    /// Empties the log. `keep` is the longest that any entry may count.
    pub(crate) fn freshen(&self, keep: u64, now: u64, idle: Idle<'_>) -> bool {
        loop {
            let tip = self.tip();
            if is_busy(idle) || self.row.check().is_err() {
                return false;
            }
            let expired = (now / stamp::MICRO).wrapping_sub(keep);
            if self.put(tip, 1, expired).is_some() {
                self.raise(BASE, tip.position.saturating_add(1));
                return true;
            }
        }
    }

    /// What a window holds, how long `cost` and one more unit have to wait, and when it is empty.
    pub(crate) fn view(&self, window: &Window, cost: u64, now: u64) -> (u64, u64, u64, u64) {
        let mut view = (0, 0, 0, 0);
        for _ in 0..LOOKS {
            let tip = self.tip();
            view = self.view_of(self.log(tip), window, cost, now);
            if self.is_tip(tip) {
                break;
            }
        }
        view
    }

    /// The same of one log.
    pub(crate) fn view_of(
        &self,
        log: Log,
        window: &Window,
        cost: u64,
        now: u64,
    ) -> (u64, u64, u64, u64) {
        let used = self.used(log, window.per_us, now);
        let wait = self.wait(log, window, cost, now);
        let one_more = window.max.saturating_sub(used) + 1;
        let more = if used == 0 { 0 } else { self.wait(log, window, one_more, now) };
        let counting = |(_, slot): &(u64, Slot)| slot.weight() != 0;
        let last = match self.is_plain(log) {
            true => self.newest(log),
            false => self.entries(log).filter(counting).map(|(_, s)| s.stamp()).reduce(later),
        };
        let reset = last.map_or(0, |s| stamp::until_age(s, window.per_us, now));
        (used, wait, more, reset)
    }
}

pub(crate) fn longest(windows: &[Window]) -> u64 {
    windows.iter().map(|w| w.per_us).max().unwrap_or(0)
}

/// The later of two stamps, modulo their wrap.
fn later(a: u64, b: u64) -> u64 {
    let ahead = a.wrapping_sub(b) & stamp::MASK;
    if ahead <= stamp::MASK / 2 { a } else { b }
}

fn earlier(a: u64, b: u64) -> u64 {
    if later(a, b) == a { b } else { a }
}

impl Ring<'_> {
    /// Gives units of one entry back, as far as they are inside the longest window.
    ///
    /// An entry stays in its slot. Carried, it has another lap there and the same stamp; mended, it has
    /// another stamp and the same lap. One that has neither is another's. (An entry of the same
    /// microsecond in that slot is as good: its units and the charge's are alike.)
    pub(crate) fn give_back(
        &self,
        entry: Entry,
        amount: u64,
        windows: &[Window],
        now: u64,
    ) -> Result<(), Moved> {
        loop {
            let log = self.log(self.tip());
            let slot = self.slot(entry.position);
            self.row.check()?;
            // Laps repeat, positions don't.
            let in_place = (log.bottom..log.position).contains(&entry.position);
            let same_lap = in_place && slot.lap() == entry.slot.lap();
            let is_mine = same_lap || slot.stamp() == entry.slot.stamp();
            let back = slot.weight().min(amount);
            if !is_mine || back == 0 || !slot.is_within(longest(windows), now) {
                return Ok(());
            }
            self.raise(MIXED, self.lap_after(log.position));
            let lower = slot.with_weight(slot.weight() - back);
            if self.row.replace(self.place(entry.position), slot.0, lower.0).is_ok() {
                return Ok(());
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::row::{KeyWord, State};
    use crate::sync::AtomicU64;

    const NOW: u64 = 10_000_000_000;
    const WINDOWS: [Window; 1] = [Window { max: 4, per_us: 60_000_000, index: 0 }];

    /// Hits a ring with these words, and says how often that was granted.
    fn granted<const WORDS: usize>(words: [u64; WORDS]) -> usize {
        let live = KeyWord::new(State::Live, 1, 7);
        let (key, words) = (AtomicU64::new(live.0), words.map(AtomicU64::new));
        let (row, (clock, _)) = (Row::new(&key, live, &words), Clock::manual(NOW));
        let ring = Ring::new(&row, 0, WORDS - HEADER_WORDS);
        let time = &mut Time::read(&clock);
        ring.view(&WINDOWS[0], 1, NOW);
        ring.refund(&WINDOWS, &mut 1, NOW).unwrap();
        (0..20).filter(|_| ring.take(&WINDOWS, 1, time).unwrap().is_some()).count()
    }

    #[test]
    fn an_entry_ahead_of_the_clock_whose_lap_is_damaged_hangs_nobody() {
        let ahead = |lap| Slot::new(lap, 1, stamp::of(2 * NOW)).0;
        assert!(granted([1, 0, 0, ahead(5), 0, 0, 0]) <= 4, "I8: position 0 is of lap 1");
        assert!(granted([4, 0, 9, ahead(1), ahead(6), ahead(1), ahead(0)]) <= 4, "I8: mixed");
    }

    #[test]
    fn a_damaged_ring_grants_its_limit_once() {
        let gone = |lap| Slot::new(lap, 1, stamp::of(NOW).wrapping_sub(61_000_000)).0;
        for base in [1, 2, 5, 1 << 40, u64::MAX] {
            assert!(granted([0, base, 0, 0, 0, 0, 0]) <= 4, "I1: base {base}");
            assert!(
                granted([9, base, 0, gone(3), gone(2), gone(2), gone(2)]) <= 4,
                "I1: base {base}"
            );
        }
        for head in [u64::MAX, u64::MAX - 2, u64::MAX - 9, FAR, FAR - 3] {
            assert!(granted([head, 0, 0, 0, 0, 0, 0]) <= 4, "I1: head {head}");
            assert!(granted([head, head, u64::MAX, 0, 0, 0, 0]) <= 4, "I1: head {head}");
        }
        // Entries that the head passes as if they had been admitted, in a ring with room for more.
        for lap in 0..8 {
            let old = gone(lap);
            assert!(granted([0, 0, 0, 0, 0, 0, 0, old, old, old, old]) <= 4, "I1: lap {lap}");
        }
    }

    #[test]
    fn damaged_positions_are_no_overflow() {
        for head in [u64::MAX, u64::MAX - 1, u64::MAX - 4, 1 << 63] {
            for mixed in [0, head, u64::MAX] {
                granted([head, 0, mixed, u64::MAX, u64::MAX, u64::MAX, u64::MAX]);
                granted([head, u64::MAX, mixed, 0, 1 << 61, 5, u64::MAX]);
            }
        }
    }

    /// Others come in since, over entries that had left the window.
    #[test]
    fn a_log_as_of_an_entry_has_nothing_that_came_later() {
        let windows = [Window { max: 3, per_us: 1_000_000, index: 0 }];
        let live = KeyWord::new(State::Live, 1, 7);
        let (key, words) = (AtomicU64::new(live.0), [0u64; 6].map(AtomicU64::new));
        let (row, (clock, hand)) = (Row::new(&key, live, &words), Clock::manual(NOW));
        let ring = Ring::new(&row, 0, 3);
        let take = |at: u64| {
            hand.set(at);
            ring.take(&windows, 1, &mut Time::read(&clock)).unwrap().expect("room").position
        };
        take(NOW);
        take(NOW + 500_000_000);
        let now = NOW + 1_000_000_000;
        let third = take(now);
        let view = || ring.view_of(ring.log_of(third), &windows[0], 0, now);
        let told = view();
        assert_eq!(told, (2, 0, 500_000_000, 1_000_000_000));
        take(now);
        assert_eq!(view(), told);
    }
}
