//! A log that is moved to a ring of another size.

use super::{HEAD, HEADER_WORDS, LAP_SHIFT, MOST_READS, MOST_WEIGHT, Ring, Slot};
use crate::algorithm::stamp;
use crate::sync::Ordering;

/// The entries of a log that count for anybody, the oldest first.
pub(crate) struct Entries(Vec<Slot>);

impl Entries {
    /// Those of a ring of format 1, which has no `descent`.
    pub(crate) fn of_format1(words: &[u64], now: u64) -> Entries {
        let [head, base, _, slots @ ..] = words else { return Entries(Vec::new()) };
        let len = slots.len() as u64;
        let slot = |position: u64| Slot(slots[(position % len) as usize]);
        let lap = |position: u64| (position / len).wrapping_add(1) & (u64::MAX >> LAP_SHIFT);
        let is_taken = |&p: &u64| slot(p).0 != 0 && slot(p).lap() == lap(p);
        // The head is a hint, and an entry or more behind.
        let all = *head..head.saturating_add(len);
        let tip = all.clone().find(|p| !is_taken(p)).unwrap_or(all.end);
        let lowest = tip.saturating_sub(len);
        let bottom = if *base > tip { lowest } else { lowest.max(*base) };
        let counts = |slot: &Slot| slot.weight() != 0;
        Entries::sorted((bottom..tip).map(slot).filter(counts).collect(), now)
    }

    fn sorted(mut found: Vec<Slot>, now: u64) -> Entries {
        // The sort keeps the order of entries of one microsecond.
        found.sort_by_key(|slot| std::cmp::Reverse(stamp::age(slot.stamp(), now)));
        Entries(found)
    }

    /// The `most` youngest of them. Those beyond go, the oldest first. Units that are not older
    /// than `keep_us` are added to the oldest entry that stays, as when a ring is full of live
    /// entries.
    fn cut(mut self, most: usize, keep_us: u64, now: u64) -> Vec<Slot> {
        let beyond = self.0.len().saturating_sub(most);
        let gone = self.0.drain(..beyond).filter(|slot| slot.is_within(keep_us, now));
        let units: u64 = gone.map(Slot::weight).sum();
        if let Some(oldest) = self.0.first_mut() {
            *oldest = oldest.with_weight((oldest.weight() + units).min(MOST_WEIGHT));
        }
        self.0
    }
}

impl Ring<'_> {
    /// The log as it is now, while others may be writing to it.
    pub(crate) fn read_out(&self, now: u64) -> Entries {
        let mut found = Vec::new();
        for _ in 0..MOST_READS {
            let tip = self.tip();
            found.clear();
            found.extend(self.entries(self.log(tip)).filter(|slot| slot.weight() != 0));
            if self.is_tip(tip) {
                break;
            }
        }
        Entries::sorted(found, now)
    }

    /// Writes a log into a ring that was never used and that no other thread has.
    pub(crate) fn fill(&self, entries: Entries, keep_us: u64, now: u64) {
        let entries = entries.cut(self.len as usize, keep_us, now);
        let words = &self.row.words[self.at..];
        for (position, slot) in entries.iter().enumerate() {
            let moved = Slot::new(self.lap(position as u64), slot.weight(), slot.stamp());
            // ORDERING: Relaxed; no other thread has the row yet.
            words[HEADER_WORDS + position].store(moved.0, Ordering::Relaxed);
            if moved.weight() != 1 {
                self.mark_mixed(position as u64);
            }
        }
        // ORDERING: Relaxed, as above.
        words[HEAD].store(entries.len() as u64, Ordering::Relaxed);
    }
}
