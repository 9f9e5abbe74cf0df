//! What a log holds of its windows: counted in one pass, for all windows if stamps ascend, else for
//! each.

use super::{Log, Order, Ring, Slot, Status, Verdict, Window, load};
use crate::algorithm::stamp;
use crate::status::MOST_LIMITS;

/// How many of its oldest entries a survey keeps. Few in this crate's own tests, so that their
/// small logs have more than that too.
const KEPT: usize = if cfg!(test) { 2 } else { 16 };

/// Ages that one pass of a selection tells apart, as a power of two.
const BIN_BITS: u32 = 9;

/// Times are compared in the upper bits of a word, which leaves lap and weight out.
const UP: u32 = u64::BITS - stamp::BITS;

/// What a log whose stamps ascend holds of one window.
#[derive(Clone, Copy, Default)]
struct WindowCount {
    used: u64,
    /// The first entry inside the window, counted from the log's bottom.
    from: u32,
}

/// What a log in any order holds of one window.
struct Survey {
    used: u64,
    /// The first microsecond inside the window, in the upper bits. Times in a survey are counted
    /// from it.
    start: u64,
    newest: u64,
    /// The oldest entries in ascending order: time in the upper bits, weight in the lower.
    oldest: [u64; KEPT],
    kept: usize,
}

impl Survey {
    fn new(per_us: u64, now: u64) -> Survey {
        let outside = (now / stamp::MICRO).wrapping_sub(per_us);
        let start = outside.wrapping_add(1) << UP;
        Survey { used: 0, start, newest: 0, oldest: [0; KEPT], kept: 0 }
    }

    #[inline(always)]
    fn time(&self, slot: Slot) -> u64 {
        (slot.0 << UP).wrapping_sub(self.start)
    }

    #[inline(always)]
    fn is_within(&self, slot: Slot) -> bool {
        self.time(slot) as i64 >= 0
    }

    /// Counts an entry inside the window that is no void. From which time on, and for how much
    /// longer, others are neither among the oldest nor the newest.
    #[inline(always)]
    fn add(&mut self, slot: Slot) -> (u64, u64) {
        let time = self.time(slot);
        self.used += slot.weight();
        self.newest = self.newest.max(time);
        let entry = time | slot.weight();
        if self.kept < KEPT || entry < self.oldest[KEPT - 1] {
            self.keep(entry);
        }
        if self.kept < KEPT {
            return (self.start, 0);
        }
        let floor = self.oldest[KEPT - 1] >> UP << UP;
        (self.start.wrapping_add(floor), self.newest - floor + 1)
    }

    /// Puts an entry among the oldest.
    #[cold]
    fn keep(&mut self, entry: u64) {
        // The place after all that are older.
        let after = self.oldest[..self.kept].iter().rposition(|&other| other <= entry);
        let place = after.map_or(0, |after| after + 1);
        self.kept = KEPT.min(self.kept + 1);
        self.oldest[place..self.kept].rotate_right(1);
        self.oldest[place] = entry;
    }

    /// The stamp of a time.
    fn stamp(&self, time: u64) -> u64 {
        self.start.wrapping_add(time) >> UP
    }

    /// The stamp of the newest entry.
    fn newest(&self) -> Option<u64> {
        (self.used > 0).then(|| self.stamp(self.newest))
    }

    /// The stamp of the entry with which `need` units have left. `None` if it is none of the
    /// oldest.
    fn leaving(&self, need: u64) -> Option<u64> {
        let mut units = 0;
        let entry = self.oldest[..self.kept].iter().find(|&&entry| {
            units += entry & ((1 << UP) - 1);
            units >= need
        });
        entry.map(|&entry| self.stamp(entry))
    }
}

impl Ring<'_> {
    /// What each window holds of a log whose stamps ascend.
    fn count(&self, log: Log, windows: &[Window], now: u64) -> [WindowCount; MOST_LIMITS] {
        debug_assert!(windows.is_sorted_by_key(|window| window.per_us));
        let mut counts = [WindowCount::default(); MOST_LIMITS];
        for (count, window) in counts.iter_mut().zip(windows) {
            let is_within = |up| self.slot_of(log, up).age(now) < window.per_us as i64;
            let from = stamp::first_time(log.len(), is_within);
            *count = WindowCount { used: log.len() - from, from: from as u32 };
        }
        if log.order != Order::Plain {
            self.weigh(log, windows.len(), &mut counts);
        }
        counts
    }

    /// Adds weights up, the shortest window first: each sum goes on where the last one ended.
    fn weigh(&self, log: Log, windows: usize, counts: &mut [WindowCount]) {
        let (mut units, mut end) = (0, log.len() as u32);
        for count in &mut counts[..windows] {
            // Not above the end, should a stamp have been repaired in between.
            let from = count.from.min(end);
            units += self.slots(log.range(from..end)).map(Slot::weight).sum::<u64>();
            count.used = units;
            end = from;
        }
    }

    /// What one window holds of a log in any order. Most entries of a log that refuses are between
    /// the oldest and the newest ones, so one comparison is enough for them.
    fn survey(&self, log: Log, per_us: u64, now: u64) -> Survey {
        let mut survey = Survey::new(per_us, now);
        // Mostly the last one is the newest.
        let last = self.entries(log).rfind(|slot| slot.weight() != 0);
        if let Some(slot) = last.filter(|&slot| survey.is_within(slot)) {
            survey.newest = survey.time(slot);
        }
        // An entry that is less than `span` after `floor` changes no more than the sum.
        let (mut used, mut floor, mut span) = (0, survey.start, 0);
        for words in self.halves(log.bottom..log.position) {
            for word in words {
                let slot = load(word);
                let after_floor = (slot.0 << UP).wrapping_sub(floor);
                if after_floor < span {
                    used += slot.weight();
                } else if survey.is_within(slot) && slot.weight() != 0 {
                    (floor, span) = survey.add(slot);
                }
            }
        }
        survey.used += used;
        survey
    }

    /// The stamp of the entry with which `need` of the counted units have left, in a log whose
    /// stamps ascend. `None` if that much was given back since they were counted.
    fn leaving(&self, log: Log, count: &WindowCount, need: u64) -> Option<u64> {
        let (mut sum, rest) = (0, count.used.saturating_sub(need));
        let mut live = self.slots(log.range(count.from..log.len() as u32));
        let slot = match log.order {
            Order::Plain => Some(self.slot_of(log, log.len() - 1 - rest)),
            // From the nearer end.
            _ if need <= rest => live.find(|slot| {
                sum += slot.weight();
                sum >= need
            }),
            _ => live.rfind(|slot| {
                sum += slot.weight();
                sum > rest
            }),
        };
        slot.map(Slot::stamp)
    }

    /// The same in a log of any order, for an entry that is none of the oldest. Sums up units by
    /// age, then again within the span of ages that the answer is in, until that span is a
    /// microsecond.
    fn select(&self, log: Log, survey: &Survey, mut need: u64, now: u64) -> Option<u64> {
        let age = |time| stamp::age(survey.stamp(time), now);
        let (mut low, oldest) = (age(survey.newest), age(survey.oldest[0]));
        let mut bits = u64::BITS - ((oldest - low) as u64).leading_zeros();
        loop {
            let shift = bits.saturating_sub(BIN_BITS);
            let mut bins = [0u64; 1 << BIN_BITS];
            self.entries(log).for_each(|slot| {
                let above = slot.age(now).wrapping_sub(low) as u64;
                if above >> bits == 0 && slot.age(now) <= oldest {
                    bins[(above >> shift) as usize] += slot.weight();
                }
            });
            let bin = bins.iter().rposition(|&units| {
                let found = units >= need;
                need -= if found { 0 } else { units };
                found
            })?;
            low += (bin as i64) << shift;
            if shift == 0 {
                return Some((now / stamp::MICRO).wrapping_sub(low as u64) & stamp::MASK);
            }
            bits = shift;
        }
    }

    /// Tells what each window says to `cost`; the windows' verdict.
    pub(super) fn judge(
        &self,
        log: Log,
        windows: &[Window],
        cost: u64,
        now: u64,
        mut report: impl FnMut(&Window, Status),
    ) -> Verdict {
        if log.order == Order::Any {
            return self.judge_any(log, windows, cost, now, |window, survey| {
                let select = |need| self.select(log, survey, need, now);
                let leaving = |need| survey.leaving(need).or_else(|| select(need));
                report(window, status(window, survey.used, survey.newest(), cost, now, leaving));
            });
        }
        let counts = self.count(log, windows, now);
        self.report_counts(log, windows, &counts, (cost, now), report);
        self.judge_counts(log, windows, &counts, cost, now)
    }

    /// Judges a log whose stamps ascend. Tells what each window says after the hit if all have room
    /// for it, else what it says to `cost`.
    pub(super) fn judge_hit(
        &self,
        log: Log,
        windows: &[Window],
        cost: u64,
        now: u64,
        report: impl FnMut(&Window, Status),
    ) -> Verdict {
        let counts = self.count(log, windows, now);
        let verdict = self.judge_counts(log, windows, &counts, cost, now);
        match verdict {
            Verdict::Fits => self.foresee_counts(log, windows, &counts, (cost, now), report),
            _ => self.report_counts(log, windows, &counts, (cost, now), report),
        }
        verdict
    }

    /// Tells what each window says to `cost` at `now`.
    fn report_counts(
        &self,
        log: Log,
        windows: &[Window],
        counts: &[WindowCount],
        (cost, now): (u64, u64),
        mut report: impl FnMut(&Window, Status),
    ) {
        // Of the newest entry that is no void.
        let newest = self.entries(log).rfind(|slot| slot.weight() != 0).map(Slot::stamp);
        for (window, count) in windows.iter().zip(counts) {
            let leaving = |need| self.leaving(log, count, need);
            report(window, status(window, count.used, newest, cost, now, leaving));
        }
    }

    /// Tells what each window says after `cost` was admitted at `now`.
    fn foresee_counts(
        &self,
        log: Log,
        windows: &[Window],
        counts: &[WindowCount],
        (cost, now): (u64, u64),
        mut report: impl FnMut(&Window, Status),
    ) {
        let new = stamp::of(now);
        for (window, count) in windows.iter().zip(counts) {
            let mut live = self.slots(log.range(count.from..log.len() as u32));
            let oldest = live.find(|slot| slot.weight() != 0).map_or(new, Slot::stamp);
            let until = |stamp| until(stamp, window.per_us, now);
            let used = count.used + cost;
            report(window, Status { used, wait: 0, more: until(oldest).max(1), reset: until(new) });
        }
    }

    /// The windows' verdict on `cost`.
    #[inline(always)]
    pub(super) fn verdict(&self, log: Log, windows: &[Window], cost: u64, now: u64) -> Verdict {
        match log.order {
            Order::Plain => self.judge_plain(log, windows, cost, now),
            Order::Sorted => {
                self.judge_counts(log, windows, &self.count(log, windows, now), cost, now)
            }
            Order::Any => self.judge_any(log, windows, cost, now, |_, _| ()),
        }
    }

    /// The verdict on a log whose stamps ascend, by what was counted.
    fn judge_counts(
        &self,
        log: Log,
        windows: &[Window],
        counts: &[WindowCount],
        cost: u64,
        now: u64,
    ) -> Verdict {
        let is_ahead = |position| stamp::is_ahead(self.slot(position).stamp(), now);
        let (mut fits, mut ahead) = (true, false);
        for (window, count) in windows.iter().zip(counts) {
            fits &= count.used.saturating_add(cost) <= window.max;
            // The last are those that are ahead, and the first those that seem to be because they
            // are so old that they have wrapped.
            let from = log.bottom + u64::from(count.from);
            ahead |= from < log.position && (is_ahead(from) || is_ahead(log.position - 1));
        }
        Verdict::new(fits, ahead)
    }

    /// The same for a log in any order.
    fn judge_any(
        &self,
        log: Log,
        windows: &[Window],
        cost: u64,
        now: u64,
        mut each: impl FnMut(&Window, &Survey),
    ) -> Verdict {
        let (mut fits, mut ahead) = (true, false);
        for window in windows {
            let survey = self.survey(log, window.per_us, now);
            fits &= survey.used.saturating_add(cost) <= window.max;
            ahead |= survey.newest().is_some_and(|newest| stamp::is_ahead(newest, now));
            each(window, &survey);
        }
        Verdict::new(fits, ahead)
    }

    /// Whether a plain log has room for `cost`; then tells what each window says after it.
    #[inline(always)]
    pub(super) fn foresee_plain(
        &self,
        log: Log,
        windows: &[Window],
        cost: u64,
        now: u64,
        mut report: impl FnMut(&Window, Status),
    ) -> bool {
        // The age of an entry that is made now, whose stamp is rounded up. No other is less.
        let over = now % stamp::MICRO;
        let new = if over == 0 { 0 } else { -1 };
        debug_assert!(windows.is_sorted_by_key(|window| window.per_us));
        // What is inside a window is inside the longer ones that come after it.
        let mut from = log.len();
        for window in windows {
            let per_us = window.per_us as i64;
            let age = |up| self.slot_of(log, up).age(now);
            let is_within = |up| age(up) < per_us;
            let Some(rest) = window.max.checked_sub(cost) else { return false };
            if log.len() > rest && is_within(log.len() - 1 - rest) {
                return false;
            }
            // So no more than `rest` entries are left in the window.
            let first = (log.len() - rest.min(log.len())).min(from);
            from = first + first_inside(from - first, |up| is_within(first + up));
            let oldest = if from < log.len() { age(from).max(new) } else { new };
            // A reset may have written an expired entry meanwhile. Then the swap will fail.
            let left = |age: i64| u64::try_from(per_us - age).unwrap_or(0);
            let until = |age| (left(age) * stamp::MICRO).saturating_sub(over);
            let used = log.len() - from + cost;
            report(window, Status { used, wait: 0, more: until(oldest), reset: until(new) });
        }
        true
    }

    /// The verdict on a plain log: the entry after the `max − cost` newest must have left.
    #[inline(always)]
    pub(super) fn judge_plain(&self, log: Log, windows: &[Window], cost: u64, now: u64) -> Verdict {
        for window in windows {
            let Some(rest) = window.max.checked_sub(cost) else { return Verdict::Full };
            if log.len() <= rest {
                continue;
            }
            let decides = self.slot_of(log, log.len() - 1 - rest);
            if decides.age(now) < window.per_us as i64 {
                let is_ahead = stamp::is_ahead(decides.stamp(), now);
                return if is_ahead { Verdict::Ahead } else { Verdict::Full };
            }
        }
        Verdict::Fits
    }
}

/// As [`stamp::first_time`], for the first entry inside a window: often that is the first or none.
#[inline(always)]
fn first_inside(most: u64, is_inside: impl Fn(u64) -> bool) -> u64 {
    match most {
        0 => 0,
        // One look: an entry that is overwritten meanwhile may be outside first, then inside.
        1 => u64::from(!is_inside(0)),
        _ if is_inside(0) => 0,
        _ if !is_inside(most - 1) => most,
        _ => 1 + stamp::first_time(most - 2, |up| is_inside(1 + up)),
    }
}

/// What a window says of which `used` units were counted. `leaving` has the stamp with which a
/// number of them have left.
fn status(
    window: &Window,
    used: u64,
    newest: Option<u64>,
    cost: u64,
    now: u64,
    leaving: impl Fn(u64) -> Option<u64>,
) -> Status {
    let until = |stamp| until(stamp, window.per_us, now);
    let wait = |cost: u64| match window.max.checked_sub(cost) {
        None => crate::status::NEVER,
        Some(rest) if used <= rest => 0,
        // What was counted is a refusal, whatever was given back since: the shortest wait.
        Some(rest) => leaving(used - rest).map_or(1, until).max(1),
    };
    let more = if used == 0 { 0 } else { wait(window.max.saturating_sub(used) + 1) };
    Status { used, wait: wait(cost), more, reset: newest.map_or(0, until) }
}

/// Nanoseconds until an entry has left a window. A stamp ahead of the clock is read as now.
fn until(stamp: u64, per_us: u64, now: u64) -> u64 {
    let stamp = if stamp::is_ahead(stamp, now) { stamp::of(now) } else { stamp };
    stamp::until_age(stamp, per_us, now)
}
