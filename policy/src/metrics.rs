//! Counts, names and the last events. Counting costs a hit one line of the thread's own; names are
//! taken by sample once a rule is busy.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::{Counters, Engine, OnFull};

use crate::call::{Call, MOST_PARTS};
use crate::decision::Reason;
use crate::judge::{Judged, Op, judge};
use crate::plan::MOST_LIMITS;
use crate::rule::Rule;
use crate::snapshot::Snapshot;

/// What is counted of a rule; denials by a limit come after these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Count {
    Allowed,
    Warned,
    Exempt,
    Off,
    Cooldown,
    Backoff,
    Budget,
    Cost,
    Full,
    Shadowed,
    Alerts,
    Defaulted,
}

const NAMED_COUNTS: usize = 12;
const COUNTS: usize = NAMED_COUNTS + MOST_LIMITS;

/// Names are kept of every hit so often, and then of one in [`SAMPLE`].
const WARM: u64 = 1024;
const SAMPLE: u32 = 64;
/// Names that are watched, of which the first [`SHOWN`] are shown.
const WATCHED: usize = 64;
const SHOWN: usize = 10;
/// Events that are kept.
const EVENTS: usize = 256;
/// Bytes of a name that are kept.
const NAME_BYTES: usize = 128;

thread_local! {
    static TICK: Cell<u32> = const { Cell::new(0) };
}

/// A key by name, and how often it was met; an estimate once a rule is busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCount {
    /// The key's parts, as text; long ones are cut.
    pub key: Vec<String>,
    /// How often.
    pub count: u64,
}

/// What happened: a denial, or an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Grows by one with each event of a rule.
    pub number: u64,
    /// The rule.
    pub rule: String,
    /// The key's parts, as text.
    pub key: Vec<String>,
    /// Why it was denied.
    pub reason: String,
    /// Whether the denial raised the rule's alert.
    pub alert: bool,
    /// When, since the start of 1970.
    pub at: Duration,
}

/// The heaviest of many names in little memory ("space saving", after Metwally, Agrawal and El Abbadi): a
/// new name takes the place, and the count, of the lightest.
#[derive(Debug, Default)]
struct Heaviest {
    names: Vec<(Vec<Vec<u8>>, u64)>,
}

impl Heaviest {
    fn add(&mut self, name: &[&[u8]], weight: u64) {
        let same = |known: &Vec<Vec<u8>>| known.iter().map(Vec::as_slice).eq(name.iter().copied());
        if let Some((_, count)) = self.names.iter_mut().find(|(known, _)| same(known)) {
            *count += weight;
            return;
        }
        let own = name.iter().map(|part| part.to_vec()).collect();
        if self.names.len() < WATCHED {
            self.names.push((own, weight));
        } else if let Some(lightest) = self.names.iter_mut().min_by_key(|(_, count)| *count) {
            *lightest = (own, lightest.1 + weight);
        }
    }

    fn shown(&self) -> Vec<NamedCount> {
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let named = |(key, count): &(Vec<Vec<u8>>, u64)| NamedCount {
            key: key.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect(),
            count: *count,
        };
        all.into_iter().take(SHOWN).map(named).collect()
    }
}

#[derive(Debug, Default)]
struct Names {
    offenders: Heaviest,
    users: Heaviest,
    events: VecDeque<Event>,
    last: u64,
}

/// What is counted and noted of one rule.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counters: Counters<COUNTS>,
    warm: AtomicU64,
    names: Mutex<Names>,
}

/// The key's parts as its caller gave them, cut to what is kept.
fn name_of<'a>(call: &'a Call<'_>) -> ([&'a [u8]; MOST_PARTS], usize) {
    let cut = |part: &'a [u8]| &part[..part.len().min(NAME_BYTES)];
    let len = call.key.len().min(MOST_PARTS);
    (std::array::from_fn(|i| if i < len { cut(call.key.part(i)) } else { &[] }), len)
}

impl Meter {
    /// Whether the next hit's name is to be kept, for how many hits it stands, or 0.
    #[inline]
    fn weight(&self) -> u64 {
        // ORDERING: Relaxed; a few names more or less.
        if self.warm.load(Ordering::Relaxed) < WARM {
            self.warm.fetch_add(1, Ordering::Relaxed);
            return 1;
        }
        TICK.with(|tick| {
            tick.set(tick.get().wrapping_add(1));
            if tick.get() % SAMPLE == 0 { u64::from(SAMPLE) } else { 0 }
        })
    }

    /// Whether a hit on the fastest path is to be looked at; then [`Meter::note`] it.
    #[inline]
    pub(crate) fn samples(&self) -> bool {
        // ORDERING: Relaxed, as above.
        if self.warm.load(Ordering::Relaxed) < WARM {
            return true;
        }
        TICK.with(|tick| {
            tick.set(tick.get().wrapping_add(1));
            tick.get() % SAMPLE == 0
        })
    }

    /// Notes a hit of the fastest path, which the engine has counted. Which of several limits
    /// denied it is looked up and counted here.
    #[cold]
    pub(crate) fn note(&self, snapshot: &Snapshot, call: &Call<'_>, allowed: bool) {
        // ORDERING: Relaxed, as above.
        let weight = match self.warm.fetch_add(1, Ordering::Relaxed) < WARM {
            true => 1,
            false => u64::from(SAMPLE),
        };
        let reason = || judge(snapshot, call, 1, Op::Peek).ok()?.decision.reason;
        let reason = match (allowed, snapshot.several) {
            (true, _) => None,
            (false, false) => Some(Reason::Limit(0)),
            (false, true) => reason().or(Some(Reason::Limit(0))),
        };
        if let Some(reason) = reason.filter(|_| snapshot.several) {
            self.counters.add(index_of(reason));
        }
        self.note_name(snapshot, call, reason, weight, 1);
    }

    fn note_name(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        reason: Option<Reason>,
        weight: u64,
        cost: u64,
    ) {
        // Who is in the way of another just goes on.
        let Ok(mut names) = self.names.try_lock() else { return };
        let (parts, len) = name_of(call);
        match reason {
            None => names.users.add(&parts[..len], weight.saturating_mul(cost)),
            Some(reason) => {
                names.offenders.add(&parts[..len], weight);
                names.push(snapshot, &parts[..len], reason, false);
            }
        }
    }

    /// Counts a hit, and keeps its name if it is one of the sample.
    pub(crate) fn count(&self, snapshot: &Snapshot, call: &Call<'_>, judged: &Judged, cost: u64) {
        let decision = &judged.decision;
        let denied = decision.would.or(decision.reason.filter(|_| !decision.allowed));
        self.counters.add(match (denied, decision.reason) {
            (Some(reason), _) => index_of(reason),
            (None, Some(reason)) => index_of(reason),
            (None, None) => Count::Allowed as usize,
        });
        let more = [
            (decision.warning, Count::Warned),
            (decision.alert, Count::Alerts),
            (decision.would.is_some(), Count::Shadowed),
            (judged.defaulted, Count::Defaulted),
        ];
        more.iter()
            .filter(|(happened, _)| *happened)
            .for_each(|(_, c)| self.counters.add(*c as usize));
        if decision.alert
            && let Some(reason) = denied
        {
            let (parts, len) = name_of(call);
            let mut names = self.names.lock().unwrap_or_else(|e| e.into_inner());
            names.push(snapshot, &parts[..len], reason, true);
        }
        let weight = self.weight();
        if weight > 0 && judged.hashes.is_some() && !(decision.alert && denied.is_some()) {
            self.note_name(snapshot, call, denied, weight, cost);
        }
    }

    pub(crate) fn total(&self, count: Count) -> u64 {
        self.counters.sum(count as usize)
    }

    /// Denials by limit `index`, but for those of the fastest path.
    fn denied_by(&self, index: usize) -> u64 {
        self.counters.sum(NAMED_COUNTS + index)
    }

    pub(crate) fn events(&self, since: u64) -> Vec<Event> {
        let names = self.names.lock().unwrap_or_else(|e| e.into_inner());
        names.events.iter().filter(|event| event.number > since).cloned().collect()
    }
}

impl Names {
    fn push(&mut self, snapshot: &Snapshot, key: &[&[u8]], reason: Reason, alert: bool) {
        self.last += 1;
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            number: self.last,
            rule: snapshot.face.rule.clone(),
            key: key.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect(),
            reason: reason.name(&snapshot.face).to_string(),
            alert,
            at: snapshot.tables.clock().wall(),
        });
    }
}

fn index_of(reason: Reason) -> usize {
    let count = match reason {
        Reason::Limit(index) => return NAMED_COUNTS + index,
        Reason::Cooldown => Count::Cooldown,
        Reason::Backoff => Count::Backoff,
        Reason::Budget => Count::Budget,
        Reason::Cost => Count::Cost,
        Reason::Full => Count::Full,
        Reason::Exempt => Count::Exempt,
        Reason::Off => Count::Off,
    };
    count as usize
}

/// What happened to a rule's hits so far, and how full its tables are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The rule.
    pub rule: String,
    /// Hits that were allowed and counted.
    pub allowed: u64,
    /// Those of them that set `warning`.
    pub warned: u64,
    /// Hits that were denied (in shadow mode: would have been), by reason.
    pub denied: Vec<(String, u64)>,
    /// Denials that shadow mode let pass.
    pub shadowed: u64,
    /// Hits that were exempt.
    pub exempt: u64,
    /// Hits while the rule was off.
    pub off: u64,
    /// Alerts raised.
    pub alerts: u64,
    /// Idle keys that gave way to new ones.
    pub evictions: u64,
    /// New keys that found the table full and were answered by `on_full: deny` or `allow`.
    pub full: u64,
    /// New keys that found the table full and shared a bucket.
    pub overflow: u64,
    /// Calls for which `classify` had to use its default.
    pub classify_defaults: u64,
    /// Keys that it may hold live.
    pub capacity: usize,
    /// Rows in use, in the table of the rule's first scope.
    pub keys: usize,
    /// Bytes of all its tables, fixed from the start.
    pub bytes: u64,
    /// Keys that were denied most.
    pub top_offenders: Vec<NamedCount>,
    /// Keys that spent most.
    pub heaviest: Vec<NamedCount>,
}

impl Rule {
    /// What happened so far. Counts are exact; names are exact until a rule has seen a thousand hits,
    /// and then estimated from one hit in 64.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/min").unwrap();
    /// (0..3).for_each(|_| drop(limiter.allow("alice").unwrap()));
    /// let metrics = limiter.metrics().unwrap().remove(0);
    /// assert_eq!((metrics.allowed, metrics.denied), (1, vec![("1/min".to_string(), 2)]));
    /// assert_eq!(metrics.top_offenders[0].key, ["alice"]);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn metrics(&self) -> Result<Metrics, crate::Error> {
        let snapshot = self.state.snapshot()?;
        let (meter, tables) = (&self.state.meter, &snapshot.tables);
        let engine = |count| tables.engines.iter().map(|e: &Engine| e.total(count)).sum::<u64>();
        let first = &tables.engines[0];
        let mut denied: Vec<(String, u64)> = snapshot
            .face
            .limits
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), meter.denied_by(index)))
            .collect();
        // The fastest path leaves counting a lone limit's denials to the engine.
        if !snapshot.several {
            denied[0].1 += first.total(tidegate_core::Count::Denied);
        }
        let reasons = [Count::Cooldown, Count::Backoff, Count::Budget, Count::Cost, Count::Full];
        let names = ["cooldown", "backoff", "budget", "cost", "full"];
        denied
            .extend(names.iter().zip(reasons).map(|(name, c)| (name.to_string(), meter.total(c))));
        denied.retain(|(_, count)| *count > 0);
        let crowded = engine(tidegate_core::Count::Full);
        let overflows = tables.on_full == OnFull::Overflow;
        let names = meter.names.lock().unwrap_or_else(|e| e.into_inner());
        Ok(Metrics {
            rule: snapshot.face.rule.clone(),
            allowed: meter.total(Count::Allowed) + first.total(tidegate_core::Count::Allowed),
            warned: meter.total(Count::Warned),
            denied,
            shadowed: meter.total(Count::Shadowed),
            exempt: meter.total(Count::Exempt),
            off: meter.total(Count::Off),
            alerts: meter.total(Count::Alerts),
            evictions: engine(tidegate_core::Count::Evicted),
            full: if overflows { 0 } else { crowded },
            overflow: if overflows { crowded } else { 0 },
            classify_defaults: meter.total(Count::Defaulted),
            capacity: tables.capacity,
            keys: first.len(),
            bytes: tables.bytes(),
            top_offenders: names.offenders.shown(),
            heaviest: names.users.shown(),
        })
    }

    /// The last denials and alerts after event number `since`, from a ring of 256. Once a rule is busy,
    /// one denial in 64 is kept, and every alert.
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn events(&self, since: u64) -> Result<Vec<Event>, crate::Error> {
        self.state.snapshot()?;
        Ok(self.state.meter.events(since))
    }
}
