//! Counts, names and the last events. Counting costs a hit one line of the thread's own; names are
//! taken by sample once a rule is busy.

pub(crate) mod event;
pub(crate) mod heaviest;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::{Value, json};
use tidegate_core::{AtomicU64, Counters, ForkGuard, ForkLock};

use crate::compiled::labels::RuleLabels;
use crate::compiled::plan::MOST_LIMITS;
use crate::decision::Reason;
use crate::decision::view::DecisionView;
use crate::key::Call;
use crate::key::name::{Name, NamedCount, SPREAD};
use crate::metrics::event::{Event, Sequence};
use crate::metrics::heaviest::Heaviest;
use crate::snapshot::Snapshot;

/// What is counted of a rule; denials by a limit come after these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Count {
    Allowed,
    Warned,
    Exempt,
    Off,
    Blocked,
    Cooldown,
    Backoff,
    Budget,
    Cost,
    Full,
    Shadowed,
    Alerts,
    Defaulted,
    Batched,
}

const NAMED_COUNTS: usize = 14;
const COUNTS: usize = NAMED_COUNTS + MOST_LIMITS;

/// Names are kept of every hit so often, and then of one in [`SAMPLE`].
const WARM: u64 = 1024;
const SAMPLE: u64 = 64;
/// Events that are kept.
const EVENTS: usize = 256;

/// An event as it is kept.
#[derive(Clone, Debug)]
struct Happened {
    number: u64,
    name: Name,
    /// None: the table is retired.
    reason: Option<Reason>,
    alert: bool,
    at: Duration,
    labels: Arc<RuleLabels>,
}

/// Room for all of it is taken at the start; what is never used is never touched.
#[derive(Debug)]
struct SampledNames {
    offenders: Heaviest,
    users: Heaviest,
    events: VecDeque<Happened>,
    /// How many events gave way to later ones, and the number of the last that did.
    dropped: u64,
    last_dropped: u64,
}

impl Default for SampledNames {
    fn default() -> SampledNames {
        let events = VecDeque::with_capacity(EVENTS);
        let (offenders, users) = (Heaviest::new(), Heaviest::new());
        SampledNames { offenders, users, events, dropped: 0, last_dropped: 0 }
    }
}

/// What is counted and noted of one rule.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counters: Counters<COUNTS>,
    warm: AtomicU64,
    /// Whether it was told that the table is retired.
    told_retired: AtomicBool,
    /// A hit only tries to lock it.
    names: ForkLock<SampledNames>,
    /// Alerts of hits that found `names` locked: the next one to lock it keeps them.
    late: ArcSwapOption<Late>,
    pub(crate) sequence: Arc<Sequence>,
}

/// An alert that is still to be kept, and the one before it.
#[derive(Debug)]
struct Late {
    happened: Happened,
    before: Option<Arc<Late>>,
    /// How many there are, this one included.
    many: usize,
}

impl Meter {
    /// Whose events are numbered with those of the limiter's other rules.
    pub(crate) fn new(sequence: Arc<Sequence>) -> Meter {
        Meter { sequence, ..Meter::default() }
    }

    /// Numbers the alerts that still have none, so that a reader of the last number finds them.
    pub(crate) fn number_late(&self) {
        drop(self.names());
    }

    /// The keys that were denied most, and those that were met most; waits for other threads.
    pub(crate) fn top_keys(&self) -> (Vec<NamedCount>, Vec<NamedCount>) {
        let names = self.names();
        (names.offenders.shown(), names.users.shown())
    }

    /// The names, with every alert; waits for other threads.
    fn names(&self) -> ForkGuard<'_, SampledNames> {
        let mut names = self.names.lock();
        self.keep_late(&mut names);
        names
    }

    fn keep_late(&self, names: &mut SampledNames) {
        if self.late.load().is_none() {
            return;
        }
        let mut next = self.late.swap(None);
        let mut all = Vec::new();
        while let Some(late) = next {
            all.push(late.happened.clone());
            next = late.before.clone();
        }
        all.into_iter().rev().for_each(|happened| names.keep_alert(&self.sequence, happened));
    }

    /// More than can be shown are not kept.
    fn put_late(&self, happened: &Happened) {
        self.late.rcu(|before| {
            let many = 1 + before.as_ref().map_or(0, |late| late.many);
            let late = || Late { happened: happened.clone(), before: before.clone(), many };
            if many > EVENTS { before.clone() } else { Some(Arc::new(late())) }
        });
    }

    /// Whether the names of so many more hits are all kept, as a new rule's are.
    #[inline]
    fn keeps_all(&self, hits: u64) -> bool {
        // ORDERING: Relaxed; a few names more or less.
        let all = self.warm.load(Ordering::Relaxed) < WARM;
        if all {
            self.warm.fetch_add(hits, Ordering::Relaxed);
        }
        all
    }

    /// Whether the name of a thread's `nth` hit is to be kept: for how many hits it stands, or 0.
    #[inline]
    pub(crate) fn weight(&self, nth: u64) -> u64 {
        if self.keeps_all(1) {
            return 1;
        }
        if nth.wrapping_mul(SPREAD) < u64::MAX / SAMPLE { SAMPLE } else { 0 }
    }

    /// Notes a batch for a rule with one limit, which the engine has counted. Where names are
    /// sampled, the others are not looked at: one key in so many is noted, from another place on in
    /// each batch.
    pub(crate) fn note_batch<K: AsRef<[u8]>>(&self, snapshot: &Snapshot, keys: &[K], mask: &[u8]) {
        let many = keys.len() as u64;
        let before = self.counters.add_many(Count::Batched as usize, many).wrapping_sub(many);
        let every = if self.keeps_all(many) { 1 } else { SAMPLE };
        // Any batch in a row starts elsewhere, whatever its length.
        let first = (before.wrapping_mul(SPREAD) >> 32) % every;
        let note = |at: u64| {
            let (key, denied) = (keys[at as usize].as_ref(), mask[at as usize] == 0);
            let denied = denied.then_some(Reason::Limit(0));
            self.note_name(snapshot, &key.into(), denied, every, 1);
        };
        (first..many).step_by(every as usize).for_each(note);
    }

    /// Counts which of several limits denied a hit that the engine has counted.
    pub(crate) fn count_reason(&self, reason: Reason) {
        self.counters.add(index_of(reason));
    }

    /// Keeps the name of a hit's key, which stands for `weight` hits.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_name(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        reason: Option<Reason>,
        weight: u64,
        cost: u64,
    ) {
        // Who is in the way of another just goes on.
        let Some(mut names) = self.names.try_lock() else { return };
        let name = Name::of(call);
        #[cfg(target_os = "linux")]
        if let Some(offenders) = snapshot.tables.top_offenders().filter(|_| reason.is_some()) {
            offenders.note(&name.to_words(), weight);
        }
        match reason {
            None => names.users.add(&name, weight.saturating_mul(cost)),
            Some(reason) => {
                names.offenders.add(&name, weight);
                names.push(&self.sequence, Happened::new(snapshot, name, Some(reason), false));
            }
        }
    }

    /// Counts a hit, and keeps its name if it is one of the sample or raised an alert.
    pub(crate) fn count(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        decision: &DecisionView<'_>,
        cost: u64,
    ) {
        if let Some(reason @ (Reason::Exempt | Reason::Off)) = decision.reason {
            self.counters.add(index_of(reason));
            return;
        }
        if decision.would.is_some() {
            self.counters.add(Count::Shadowed as usize);
        }
        if let Some(reason) = decision.would.or(decision.reason).filter(|_| decision.alert) {
            self.count_alert(snapshot, call, reason);
        }
        match decision.reason {
            Some(reason) if decision.alert => drop(self.counters.add(index_of(reason))),
            denied => self.fast_count(snapshot, call, denied, decision.warning, cost),
        }
    }

    /// Counts a hit that led to nothing beyond itself.
    #[inline(always)]
    pub(crate) fn fast_count(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        denied: Option<Reason>,
        warning: bool,
        cost: u64,
    ) {
        let nth = self.counters.add(denied.map_or(Count::Allowed as usize, index_of));
        if warning {
            self.counters.add(Count::Warned as usize);
        }
        let weight = self.weight(nth);
        if weight > 0 {
            self.note_name(snapshot, call, denied, weight, cost);
        }
    }

    #[cold]
    fn count_alert(&self, snapshot: &Snapshot, call: &Call<'_>, reason: Reason) {
        self.counters.add(Count::Alerts as usize);
        let happened = Happened::new(snapshot, Name::of(call), Some(reason), true);
        // Every alert is kept, and no hit waits for a thread that holds the names.
        match self.names.try_lock() {
            Some(mut names) => {
                self.keep_late(&mut names);
                names.keep_alert(&self.sequence, happened);
            }
            None => self.put_late(&happened),
        }
    }

    /// Whether the rule's table is retired. Tells of it in one event; never waits for a lock.
    pub(crate) fn note_retired(&self, snapshot: &Snapshot) -> bool {
        let retired = snapshot.tables.is_retired();
        // ORDERING: Relaxed; whoever is first tells.
        let told = |flag: &AtomicBool| flag.swap(true, Ordering::Relaxed);
        if retired
            && let Some(mut names) = self.names.try_lock()
            && !told(&self.told_retired)
        {
            let nobody = Name::empty();
            names.push(&self.sequence, Happened::new(snapshot, nobody, None, false));
        }
        retired
    }

    /// Counts a call that classify had no class for, if it was one.
    pub(crate) fn count_default(&self, defaulted: bool) {
        if defaulted {
            self.counters.add(Count::Defaulted as usize);
        }
    }

    pub(crate) fn total(&self, count: Count) -> u64 {
        self.counters.sum(count as usize)
    }

    /// Denials by limit `index`, but for those of the fastest path.
    pub(crate) fn denied_by(&self, index: usize) -> u64 {
        self.counters.sum(NAMED_COUNTS + index)
    }

    /// The events with a number above `since` and at most `last`, and how many of them gave way.
    pub(crate) fn events(&self, since: u64, last: u64) -> (Vec<Event>, u64) {
        let names = self.names();
        let due = names.events.iter().filter(|one| one.number > since && one.number <= last);
        let dropped = names.last_dropped.min(last).saturating_sub(since).min(names.dropped);
        (due.map(Happened::told).collect(), dropped)
    }
}

impl SampledNames {
    fn keep_alert(&mut self, sequence: &Sequence, happened: Happened) {
        self.offenders.add(&happened.name, 1);
        self.push(sequence, happened);
    }

    fn push(&mut self, sequence: &Sequence, happened: Happened) {
        if self.events.len() == EVENTS
            && let Some(oldest) = self.events.pop_front()
        {
            (self.dropped, self.last_dropped) = (self.dropped + 1, oldest.number);
        }
        self.events.push_back(Happened { number: sequence.next(), ..happened });
    }
}

impl Happened {
    /// Its number is given when it is kept.
    fn new(snapshot: &Snapshot, name: Name, reason: Option<Reason>, alert: bool) -> Happened {
        let (at, labels) = (snapshot.tables.clock().wall(), snapshot.labels.clone());
        Happened { number: 0, name, reason, alert, at, labels }
    }

    fn told(&self) -> Event {
        Event {
            number: self.number,
            rule: self.labels.rule.clone(),
            key: self.name.texts(),
            reason: self.reason.map_or("retired", |reason| reason.name(&self.labels)).to_string(),
            alert: self.alert,
            at: self.at,
        }
    }
}

fn index_of(reason: Reason) -> usize {
    let count = match reason {
        Reason::Limit(index) => return NAMED_COUNTS + usize::from(index),
        Reason::Blocked => Count::Blocked,
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
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let metrics: tidegate::Metrics = limiter.metrics().unwrap().remove(0);
/// assert_eq!((metrics.capacity, metrics.keys), (65_536, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Whether another table took the place of this rule's in a file store, or it was removed: what
    /// is counted here, others don't see.
    pub retired: bool,
    /// Keys that were denied most.
    pub top_offenders: Vec<NamedCount>,
    /// Keys that spent most.
    pub heaviest: Vec<NamedCount>,
}

impl Metrics {
    /// As a map, for surfaces that speak JSON.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.metrics().unwrap()[0].to_value()["capacity"], 65_536);
    /// ```
    pub fn to_value(&self) -> Value {
        let counts = |counts: &[NamedCount]| -> Value {
            counts.iter().map(|one| json!({ "key": one.key, "count": one.count })).collect()
        };
        let denied = self.denied.iter().map(|(reason, count)| (reason.clone(), json!(count)));
        json!({
            "rule": self.rule,
            "allowed": self.allowed,
            "warned": self.warned,
            "denied": denied.collect::<Value>(),
            "shadowed": self.shadowed,
            "exempt": self.exempt,
            "off": self.off,
            "alerts": self.alerts,
            "evictions": self.evictions,
            "full": self.full,
            "overflow": self.overflow,
            "classify_defaults": self.classify_defaults,
            "capacity": self.capacity,
            "keys": self.keys,
            "bytes": self.bytes,
            "retired": self.retired,
            "top_offenders": counts(&self.top_offenders),
            "heaviest": counts(&self.heaviest),
        })
    }
}
