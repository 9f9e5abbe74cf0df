//! What a log holds of its windows, counted in as few passes as its order allows.

use std::ops::Range;

use super::{Log, Order, Ring, Slot, Status, Verdict, Window, earlier, later, load};
use crate::limit::MOST_LIMITS;
use crate::stamp;

/// The most runs of ascending stamps that an unsorted log is taken apart into. Few in this crate's own
/// tests, so that their small logs have more than that too.
const RUNS: usize = if cfg!(test) { 2 } else { 8 };

/// A log of one window, in any order and longer than this, is not taken apart into runs.
const SURVEYED: u64 = if cfg!(test) { 8 } else { 256 };

/// Ages that one pass over a log of more runs tells apart, as a power of two.
const BIN_BITS: u32 = 9;

/// A log as runs of ascending stamps: where each ends, counted from the log's bottom.
#[derive(Clone, Copy, Default)]
struct Runs {
    ends: [u32; RUNS],
    len: usize,
}

impl Runs {
    /// Each run as a range, counted from the log's bottom.
    fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let start = |i: usize| if i == 0 { 0 } else { self.ends[i - 1] };
        (0..self.len).map(move |i| start(i)..self.ends[i])
    }
}

/// What a log holds of one window.
#[derive(Clone, Copy, Default)]
struct Count {
    used: u64,
    /// The first entry of each run that is inside the window, counted from the log's bottom.
    from: [u32; RUNS],
    /// The oldest and the newest stamp inside the window, in a log of too many runs.
    oldest: u64,
    newest: u64,
}

/// What a log holds of each window.
pub(super) struct Counts {
    /// None for a log of too many runs.
    runs: Option<Runs>,
    each: [Count; MOST_LIMITS],
}

impl Ring<'_> {
    /// The runs of a log: one if it is sorted.
    fn runs(&self, log: Log) -> Option<Runs> {
        let mut runs = Runs::default();
        if log.order == Order::Any {
            // Stamps are compared in the upper bits of a word, which leaves lap and weight out.
            let stamp = |slot: Slot| slot.0 << (u64::BITS - stamp::BITS);
            let (mut before, mut up) = (stamp(self.slot(log.bottom)), 0);
            for words in self.halves(log.bottom..log.position) {
                for word in words {
                    let stamp = stamp(load(word));
                    if (stamp.wrapping_sub(before) as i64) < 0 {
                        *runs.ends[..RUNS - 1].get_mut(runs.len)? = up;
                        runs.len += 1;
                    }
                    (before, up) = (stamp, up + 1);
                }
            }
        }
        runs.ends[runs.len] = log.len() as u32;
        runs.len += 1;
        Some(runs)
    }

    /// The first entry of a run that is inside a window of `per`.
    fn first_within(&self, log: Log, run: Range<u32>, per_us: u64, now: u64) -> u32 {
        let start = u64::from(run.start);
        let is_within = |up| self.slot(log.bottom + start + up).age(now) < per_us as i64;
        run.start + stamp::first_time(u64::from(run.end - run.start), is_within) as u32
    }

    /// What each window holds: one pass if the log is sorted, two if it has few runs.
    pub(super) fn count(&self, log: Log, windows: &[Window], now: u64) -> Counts {
        // For one window a survey is one pass, and to look for runs is another.
        let is_surveyed = log.order == Order::Any && windows.len() == 1 && log.len() > SURVEYED;
        let runs = if is_surveyed { None } else { self.runs(log) };
        let mut counts = Counts { runs, each: Default::default() };
        let Some(runs) = &counts.runs else {
            for (count, window) in counts.each.iter_mut().zip(windows) {
                *count = self.survey(log, window.per_us, now);
            }
            return counts;
        };
        for (count, window) in counts.each.iter_mut().zip(windows) {
            for (i, run) in runs.iter().enumerate() {
                count.from[i] = self.first_within(log, run.clone(), window.per_us, now);
                count.used += u64::from(run.end - count.from[i]);
            }
        }
        if log.order != Order::Plain {
            self.weigh(log, windows, runs, &mut counts.each);
        }
        counts
    }

    /// Adds weights up, the shortest window first: each sum goes on where the last one ended.
    fn weigh(&self, log: Log, windows: &[Window], runs: &Runs, counts: &mut [Count]) {
        let mut order: [usize; MOST_LIMITS] = std::array::from_fn(|i| i);
        let order = &mut order[..windows.len()];
        order.sort_unstable_by_key(|&i| windows[i].per_us);
        counts.iter_mut().for_each(|count| count.used = 0);
        for (run, range) in runs.iter().enumerate() {
            let (mut units, mut end) = (0, range.end);
            for &i in &*order {
                // Not above the end, should a stamp have been mended in between.
                let from = counts[i].from[run].min(end);
                units += self.slots(log.range(from..end)).map(Slot::weight).sum::<u64>();
                counts[i].used += units;
                end = from;
            }
        }
    }

    /// What one window holds of a log in any order.
    fn survey(&self, log: Log, per_us: u64, now: u64) -> Count {
        // Times are compared in the upper bits of a word, which leaves lap and weight out.
        const UP: u32 = u64::BITS - stamp::BITS;
        let outside = (now / stamp::MICRO).wrapping_sub(per_us);
        let start = outside.wrapping_add(1) << UP;
        // Two sums side by side, so that none waits for the one before. Most entries of a log that refuses
        // count, so a branch costs less than a mask.
        let mut lanes = [(0, u64::MAX, 0); 2];
        let add = |(used, oldest, newest): &mut (u64, u64, u64), slot: Slot| {
            let after_start = (slot.0 << UP).wrapping_sub(start);
            if (after_start as i64) < 0 || slot.weight() == 0 {
                return;
            }
            *used += slot.weight();
            *oldest = (*oldest).min(after_start);
            *newest = (*newest).max(after_start);
        };
        for words in self.halves(log.bottom..log.position) {
            let (pairs, rest) = words.as_chunks::<2>();
            for [first, second] in pairs {
                add(&mut lanes[0], load(first));
                add(&mut lanes[1], load(second));
            }
            rest.iter().for_each(|word| add(&mut lanes[0], load(word)));
        }
        let [a, b] = lanes;
        let (used, oldest, newest) = (a.0 + b.0, a.1.min(b.1), a.2.max(b.2));
        let stamp = |after_start: u64| start.wrapping_add(after_start) >> UP;
        let (oldest, newest) = (stamp(oldest), stamp(newest));
        Count { used, oldest, newest, ..Count::default() }
    }

    /// The stamp of the entry with which `need` of the counted units have left. `None` if that much
    /// was given back since they were counted.
    fn leaving(
        &self,
        log: Log,
        runs: Option<&Runs>,
        count: &Count,
        need: u64,
        now: u64,
    ) -> Option<u64> {
        let (mut sum, rest) = (0, count.used.saturating_sub(need));
        let live = || self.slots(log.bottom + u64::from(count.from[0])..log.position);
        match runs {
            None if need == 1 => Some(count.oldest),
            None => self.select(log, count, need, now),
            Some(_) if log.order == Order::Plain => {
                Some(self.slot(log.position - 1 - rest).stamp())
            }
            Some(runs) if runs.len > 1 => self.merge(log, runs, count, need),
            // From the nearer end.
            Some(_) if need <= rest => live()
                .find(|slot| {
                    sum += slot.weight();
                    sum >= need
                })
                .map(Slot::stamp),
            Some(_) => live()
                .rfind(|slot| {
                    sum += slot.weight();
                    sum > rest
                })
                .map(Slot::stamp),
        }
    }

    /// As `leaving`, for a log of several runs: takes the oldest entry of all runs until enough have
    /// left.
    fn merge(&self, log: Log, runs: &Runs, count: &Count, need: u64) -> Option<u64> {
        let mut rest: [_; RUNS] = std::array::from_fn(|i| {
            let range = if i < runs.len { count.from[i]..runs.ends[i] } else { 0..0 };
            self.slots(log.range(range)).peekable()
        });
        let mut sum = 0;
        loop {
            let heads = rest[..runs.len].iter_mut().enumerate();
            let heads = heads.filter_map(|(i, run)| Some((i, run.peek()?.stamp())));
            let (i, stamp) = heads.reduce(|a, b| if earlier(a.1, b.1) == a.1 { a } else { b })?;
            sum += rest[i].next().map_or(0, Slot::weight);
            if sum >= need {
                return Some(stamp);
            }
        }
    }

    /// As `leaving`, for a log of too many runs: sums up units by age, then again within the span of ages
    /// that the answer is in, until that span is a microsecond.
    fn select(&self, log: Log, count: &Count, mut need: u64, now: u64) -> Option<u64> {
        let (mut low, oldest) = (stamp::age(count.newest, now), stamp::age(count.oldest, now));
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

    /// The stamp of the newest entry that is no void, in a log of few runs.
    fn newest_unit(&self, log: Log, runs: &Runs) -> Option<u64> {
        let newest = |run| self.slots(log.range(run)).rfind(|slot| slot.weight() != 0);
        runs.iter().filter_map(newest).map(Slot::stamp).reduce(later)
    }

    /// Tells what each window says to `cost`; the windows' verdict.
    pub(super) fn judge(
        &self,
        log: Log,
        windows: &[Window],
        cost: u64,
        now: u64,
        mut tell: impl FnMut(&Window, Status),
    ) -> Verdict {
        let counts = self.count(log, windows, now);
        let runs = counts.runs.as_ref();
        let newest = runs.map(|runs| self.newest_unit(log, runs));
        for (window, count) in windows.iter().zip(&counts.each) {
            let newest = newest.unwrap_or((count.used > 0).then_some(count.newest));
            let leaving = |need| self.leaving(log, runs, count, need, now);
            tell(window, status(window, count.used, newest, cost, now, leaving));
        }
        self.verdict(log, windows, &counts, cost, now)
    }

    pub(super) fn verdict(
        &self,
        log: Log,
        windows: &[Window],
        counts: &Counts,
        cost: u64,
        now: u64,
    ) -> Verdict {
        let mut each = windows.iter().zip(&counts.each);
        if each.clone().all(|(w, count)| count.used.saturating_add(cost) <= w.max) {
            return Verdict::Fits;
        }
        let is_ahead = |stamp| stamp::is_ahead(stamp, now);
        let is_ahead_at = |up: u32| is_ahead(self.slot(log.bottom + u64::from(up)).stamp());
        // A run ends with the stamps that are ahead, and starts with those that seem to be because they
        // are so old that they have wrapped.
        let ahead = each.any(|(_, count)| match &counts.runs {
            None => count.used > 0 && is_ahead(count.newest),
            Some(runs) => runs.iter().zip(count.from).any(|(run, from)| {
                from < run.end && (is_ahead_at(from) || is_ahead_at(run.end - 1))
            }),
        });
        if ahead { Verdict::Ahead } else { Verdict::Full }
    }

    /// The verdict on a plain log: the entry after the `max − cost` newest must have left.
    pub(super) fn judge_plain(&self, log: Log, windows: &[Window], cost: u64, now: u64) -> Verdict {
        for window in windows {
            let Some(rest) = window.max.checked_sub(cost) else { return Verdict::Full };
            if log.len() <= rest {
                continue;
            }
            let decides = self.slot(log.position - 1 - rest);
            if decides.age(now) < window.per_us as i64 {
                let is_ahead = stamp::is_ahead(decides.stamp(), now);
                return if is_ahead { Verdict::Ahead } else { Verdict::Full };
            }
        }
        Verdict::Fits
    }
}

/// What a window says of which `used` units were counted. `leaving` has the stamp with which a number
/// of them have left.
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
        None => crate::NEVER,
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
