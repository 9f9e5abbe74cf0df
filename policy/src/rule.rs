//! A rule at work, and everything that can be done with it.

pub(crate) mod attributes;
pub(crate) mod changes;
mod fast;
pub(crate) mod headers;
pub(crate) mod held;
pub(crate) mod metrics;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod waiters;
pub(crate) mod why;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use tidegate_core::{Hash, LimitStatus, Time};

use crate::compiled::interned::Interned;
use crate::compiled::plan::MOST_LIMITS;
use crate::compiled::variant::Variant;
use crate::config::limit::Counts;
use crate::decision::Decision;
use crate::decision::view::{DecisionSink, ToDecision};
use crate::error::{Code, Error};
use crate::judge::{Effects, Op, Receipts, judge, part_of};
use crate::key::{Call, Parts};
use crate::rule::held::{Charged, Permit, Reservation};
use crate::rule::shared::Shared;
use crate::rule::state::RuleState;
use crate::snapshot::{Hashes, Resolved, RuleView, Snapshot};
use crate::time::{Day, whole_millis};

/// How many keys of a batch are hashed and fetched before they are judged.
const BATCH: usize = 32;

/// What was used after a [`record`](Rule::record): of the limit with the least left.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let recorded = limiter.record("alice", 2).unwrap();
/// assert_eq!((recorded.used, recorded.remaining), (2, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Units that are gone; more than `limit` if more was recorded than allowed.
    pub used: u64,
    /// The limit's size.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// Until the key has its full quota again, the longest over its limits.
    pub reset_after: Duration,
}

/// A rule of a limiter: limits that are taken together, all or nothing.
///
/// Cheap to clone, and safe to use from any thread. It keeps its limiter alive.
///
/// ```
/// let limiter = tidegate::Limiter::new("2/min").unwrap();
/// let rule = limiter.rule("default").unwrap();
/// assert!(rule.allow("alice").unwrap() && rule.allow("alice").unwrap());
/// assert!(!rule.allow("alice").unwrap());
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) state: Arc<RuleState>,
    pub(crate) _limiter: Arc<Shared>,
}

impl Rule {
    #[inline]
    pub(crate) fn snapshot(&self) -> Result<Guard<Arc<Snapshot>>, Error> {
        self.state.snapshot()
    }

    /// The rule's name.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.rule("default").unwrap().name(), "default");
    /// ```
    pub fn name(&self) -> String {
        self.state.last().labels.rule.clone()
    }

    /// Whether the two are one rule at work, and not only of one name: a rule that a reload took
    /// away and another one brought back is a new one, unless it was held meanwhile.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Rule) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Whether a hit of 1 passes, and spends it: the fastest path.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.allow("alice").unwrap());
    /// assert!(limiter.allow(["two", "parts"]).is_err());
    /// ```
    ///
    /// # Errors
    /// For a key that is not the rule's, a rule with permits, and a closed limiter; so with all
    /// operations.
    #[inline]
    pub fn allow<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, Error> {
        let call = call.into();
        match self.state.with_cached(|rule| self.fast_allow(rule?, call)) {
            Some(allowed) => Ok(allowed),
            None => self.allow_any(&{ call }),
        }
    }

    fn allow_any(&self, call: &Call<'_>) -> Result<bool, Error> {
        self.state.with(|rule| {
            if let Some(allowed) = self.fast_allow(rule, *call) {
                return Ok(allowed);
            }
            let snapshot = rule.snapshot;
            self.no_permits(snapshot, "allow")?;
            Ok(self.decided(snapshot, call, 1, Op::Hit)?.allowed)
        })
    }

    /// Judges a call, and counts what came of it.
    pub(crate) fn decided(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        cost: u64,
        op: Op,
    ) -> Result<Decision, Error> {
        self.judged(snapshot, call, cost, op, &mut Effects::default(), ToDecision)
    }

    /// Judges a call, counts what came of it, and hands it to `sink`.
    fn judged<S: DecisionSink>(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        cost: u64,
        op: Op,
        effects: &mut Effects<'_>,
        sink: S,
    ) -> Result<S::Output, Error> {
        judge(snapshot, call, cost, op, effects, |decision, defaulted| {
            let counts = match op {
                Op::Hit | Op::Check => true,
                Op::Try => decision.allowed,
                Op::Peek | Op::Foresee => false,
            };
            if counts {
                self.state.meter.count(snapshot, call, decision, cost);
                self.state.meter.count_default(defaulted);
            }
            sink.accept(decision)
        })
    }

    /// Whether it has a concurrent limit, so that [`permit`](Rule::permit) takes the place of a
    /// hit.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("100 concurrent").unwrap();
    /// assert!(limiter.rule("default").unwrap().has_permits().unwrap());
    /// ```
    ///
    /// # Errors
    /// If the limiter was closed.
    pub fn has_permits(&self) -> Result<bool, Error> {
        Ok(self.snapshot()?.concurrent)
    }

    pub(crate) fn no_permits(&self, snapshot: &Snapshot, operation: &str) -> Result<(), Error> {
        if snapshot.concurrent { Err(self.wants_permit(operation)) } else { Ok(()) }
    }

    /// For operations that hold a slot; `operation` is the one for other rules.
    pub(crate) fn only_permits(&self, snapshot: &Snapshot, operation: &str) -> Result<(), Error> {
        if snapshot.concurrent {
            return Ok(());
        }
        let message =
            format!("rule {:?} has no concurrent limit: use `{operation}`", snapshot.labels.rule);
        Err(Error::new(Code::Operation, message))
    }

    #[cold]
    fn wants_permit(&self, operation: &str) -> Error {
        let instead = match operation {
            "acquire" | "acquire_reservation" => "acquire_permit",
            _ => "permit",
        };
        let message = format!(
            "rule {:?} has a concurrent limit: use `{instead}` in place of `{operation}`",
            self.name()
        );
        Error::new(Code::Operation, message)
    }

    /// Spends `cost` if the rule allows it, and says how it went.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let decision = limiter.hit("alice", 2).unwrap();
    /// assert_eq!((decision.allowed, decision.remaining), (true, Some(1)));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`]; and for a `max` of the call that the rule has no room for.
    #[inline]
    pub fn hit<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Decision, Error> {
        self.hit_call(&call.into(), cost)
    }

    /// In one piece for all kinds of keys: what it finds stays in registers until the decision is
    /// written.
    fn hit_call(&self, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        self.state.with_cached(|rule| match rule {
            Some(rule) => self.hit_by(rule, call, cost),
            None => self.hit_anew(call, cost),
        })
    }

    #[cold]
    fn hit_anew(&self, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        self.state.with_new(|rule| self.hit_by(rule, call, cost))
    }

    #[inline(always)]
    fn hit_by(&self, rule: RuleView<'_>, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        match self.fast_hit(rule, call, cost, ToDecision) {
            Ok(decision) => Ok(decision),
            Err(sink) => self.hit_any(rule.snapshot, call, cost, sink),
        }
    }

    /// As [`Rule::hit`], for who writes the answer down in a form of their own; see
    /// [`DecisionView`](crate::DecisionView).
    ///
    /// # Errors
    /// As [`Rule::hit`].
    #[inline]
    #[doc(hidden)]
    pub fn hit_into<T: DecisionSink>(
        &self,
        call: &Call<'_>,
        cost: u64,
        sink: T,
    ) -> Result<T::Output, Error> {
        self.state.with_cached(|rule| {
            let Some(rule) = rule else { return self.hit_into_anew(call, cost, sink) };
            match self.fast_hit(rule, call, cost, sink) {
                Ok(output) => Ok(output),
                Err(sink) => self.hit_any(rule.snapshot, call, cost, sink),
            }
        })
    }

    #[cold]
    #[inline(never)]
    fn hit_into_anew<S: DecisionSink>(
        &self,
        call: &Call<'_>,
        cost: u64,
        sink: S,
    ) -> Result<S::Output, Error> {
        self.state.with_new(|rule| self.hit_any(rule.snapshot, call, cost, sink))
    }

    /// Out of line: without that each fast hit cost 39 instructions more.
    #[inline(never)]
    fn hit_any<S: DecisionSink>(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        cost: u64,
        sink: S,
    ) -> Result<S::Output, Error> {
        self.no_permits(snapshot, "hit")?;
        self.judged(snapshot, call, cost, Op::Hit, &mut Effects::default(), sink)
    }

    /// As a hit, but an allowed one spends nothing: for "check, do the work, then
    /// [`record`](Rule::record)". A denial counts like a hit's.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.check("alice", 1).unwrap().allowed);
    /// // ... do the work, then:
    /// limiter.record("alice", 1).unwrap();
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(2));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn check<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.snapshot()?;
        self.no_permits(&snapshot, "check")?;
        self.decided(&snapshot, &call.into(), cost, Op::Check)
    }

    /// What a hit would get, changing nothing. With a cost of 0, what is left now. `retry_after`
    /// holds no cooldown or backoff that has not begun.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.peek("alice", 1).unwrap().remaining, Some(2));
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(3));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn peek<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.snapshot()?;
        self.decided(&snapshot, &call.into(), cost, Op::Peek)
    }

    /// Where a call is counted; `None` if it is not.
    pub(crate) fn counted<'s>(
        &self,
        snapshot: &'s Snapshot,
        call: &'s Call<'_>,
        room: &'s mut Parts<'s>,
    ) -> Result<(Resolved<'s>, Option<Hashes>), Error> {
        let resolved = snapshot.resolve(call, room)?;
        let counted = snapshot.uncounted(&resolved).is_none();
        let hashes = counted.then(|| snapshot.hashes(&resolved.subject));
        Ok((resolved, hashes))
    }

    /// Spends without asking, also in a cooldown: a bucket goes no lower than 0, a window logs it.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.record("alice", 9).unwrap().remaining, 0);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn record<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Recorded, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        self.no_permits(&snapshot, "record")?;
        let mut room = Parts::default();
        let (resolved, hashes) = self.counted(&snapshot, &call, &mut room)?;
        let mut time = Time::read(snapshot.tables.clock());
        let statuses =
            each_status(&snapshot, &resolved.variant, hashes.as_ref(), |part, counts| {
                part.record(counts.of(cost), &mut time)
            });
        let statuses = &statuses[..resolved.variant.params.len()];
        let least = resolved.variant.least(|index| statuses[index].remaining);
        let longest = statuses.iter().map(|status| status.reset).max().unwrap_or(0);
        Ok(Recorded {
            used: statuses[least].used,
            limit: resolved.variant.params[least].size,
            remaining: statuses[least].remaining,
            reset_after: whole_millis(longest).unwrap_or_default(),
        })
    }

    /// Gives back, never above full; a window's newest first.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.hit("alice", 3).unwrap().allowed);
    /// limiter.refund("alice", 1).unwrap();
    /// assert!(limiter.allow("alice").unwrap());
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn refund<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<(), Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let mut room = Parts::default();
        let (resolved, hashes) = self.counted(&snapshot, &call, &mut room)?;
        if let Some(hashes) = hashes {
            self.held(&snapshot, resolved.variant.clone(), hashes).refund(cost);
        }
        Ok(())
    }

    fn held(&self, snapshot: &Guard<Arc<Snapshot>>, variant: Interned, hashes: Hashes) -> Charged {
        Charged { snapshot: Arc::clone(snapshot), variant, hashes }
    }

    /// A hit whose true cost is known later: spends the estimate, to be settled.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1000/day").unwrap();
    /// let reserved = limiter.reserve("alice", 400).unwrap();
    /// assert!(reserved.decision().allowed);
    /// reserved.settle(150);
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(850));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn reserve<'a>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
    ) -> Result<Reservation, Error> {
        self.reserve_by(&call.into(), estimate, Op::Hit, "reserve")
    }

    pub(crate) fn reserve_by(
        &self,
        call: &Call<'_>,
        estimate: u64,
        op: Op,
        operation: &str,
    ) -> Result<Reservation, Error> {
        let snapshot = self.snapshot()?;
        self.no_permits(&snapshot, operation)?;
        let mut receipts = Receipts::default();
        let mut effects = Effects { receipts: Some(&mut receipts), ..Effects::default() };
        let decision = self.judged(&snapshot, call, estimate, op, &mut effects, ToDecision)?;
        let spent = decision.allowed && decision.would.is_none();
        let held = effects
            .hashes
            .filter(|_| spent)
            .map(|hashes| self.held(&snapshot, decision.variant.clone(), hashes));
        Ok(Reservation::new(decision, held, estimate, receipts))
    }

    /// Takes all limits of a rule with a `concurrent` one, and holds a slot until it is released or
    /// dropped, or its lease runs out.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1 concurrent lease 30s").unwrap();
    /// let permit = limiter.permit("job").unwrap();
    /// assert!(permit.decision().allowed);
    /// assert!(!limiter.permit("job").unwrap().decision().allowed);
    /// drop(permit);
    /// assert!(limiter.permit("job").unwrap().decision().allowed);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`], and for rules without a concurrent limit.
    pub fn permit<'a>(&self, call: impl Into<Call<'a>>) -> Result<Permit, Error> {
        self.permit_by(&call.into(), Op::Hit, "hit")
    }

    pub(crate) fn permit_by(
        &self,
        call: &Call<'_>,
        op: Op,
        operation: &str,
    ) -> Result<Permit, Error> {
        let snapshot = self.snapshot()?;
        self.only_permits(&snapshot, operation)?;
        let mut effects = Effects::default();
        let decision = self.judged(&snapshot, call, 1, op, &mut effects, ToDecision)?;
        let held = effects
            .hashes
            .filter(|_| effects.permits.iter().any(Option::is_some))
            .map(|hashes| self.held(&snapshot, decision.variant.clone(), hashes))
            .map(|held| (held, self.state.clone()));
        Ok(Permit::new(decision, held, effects.permits))
    }

    /// A batch of [`Rule::allow`]: 1 or 0 for each key.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert_eq!(limiter.allow_many(&["alice", "bob", "alice"]).unwrap(), [1, 1, 0]);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`]; then none was judged, unless a key is not the rule's: those before it
    /// were.
    pub fn allow_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<u8>, Error> {
        let snapshot = self.snapshot()?;
        let mut mask = Vec::new();
        mask.try_reserve_exact(keys.len()).map_err(|_| no_memory(keys.len()))?;
        mask.resize(keys.len(), 0);
        if snapshot.single {
            snapshot.tables.engines[0].allow_many(keys, &mut mask);
            self.state.meter.note_batch(&snapshot, keys, &mask);
            return Ok(mask);
        }
        if snapshot.plain {
            let (engine, base) = (&snapshot.tables.engines[0], &snapshot.base);
            let rule = RuleView { snapshot: &snapshot, engine, base };
            for (keys, mask) in keys.chunks(BATCH).zip(mask.chunks_mut(BATCH)) {
                let mut hashes = [Hash::default(); BATCH];
                for (hash, key) in hashes.iter_mut().zip(keys) {
                    *hash = engine.hash(key.as_ref());
                    engine.part(*hash).prefetch();
                }
                for (index, key) in keys.iter().enumerate() {
                    let allowed = self.allow_several(rule, key.as_ref(), hashes[index]);
                    mask[index] = u8::from(allowed);
                }
            }
            return Ok(mask);
        }
        self.no_permits(&snapshot, "allow_many")?;
        for (allowed, key) in mask.iter_mut().zip(keys) {
            let decision = self.decided(&snapshot, &key.as_ref().into(), 1, Op::Hit)?;
            *allowed = u8::from(decision.allowed);
        }
        Ok(mask)
    }

    /// A batch of [`Rule::hit`] with a cost of 1.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// let decisions = limiter.hit_many(["alice", "alice"]).unwrap();
    /// assert!(decisions[0].allowed && !decisions[1].allowed);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow_many`].
    pub fn hit_many<'a, K: Into<Call<'a>>>(
        &self,
        calls: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Decision>, Error> {
        self.state.with(|rule| {
            self.no_permits(rule.snapshot, "hit_many")?;
            calls.into_iter().map(|call| self.hit_by(rule, &call.into(), 1)).collect()
        })
    }

    /// Forgets the key's limits, penalties and budget, but never those of a wider scope, and ends
    /// its block.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.hit("alice", 3).unwrap().allowed);
    /// limiter.reset("alice").unwrap();
    /// assert_eq!(limiter.stats("alice").unwrap(), None);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`].
    pub fn reset<'a>(&self, call: impl Into<Call<'a>>) -> Result<(), Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let mut room = Parts::default();
        let (subject, _) = snapshot.subject(&call, &mut room)?;
        let (plan, tables) = (snapshot.plan(), &snapshot.tables);
        // First: it has to be stored, and may fail, while the rest can't.
        if !tables.newest_runtime().blocks.is_empty() {
            self.unblock(call)?;
        }
        let whole = snapshot.whole_hash(&subject);
        let hashes = snapshot.hashes_by(whole, &subject);
        for (index, group) in plan.groups.iter().enumerate() {
            if let Some(hash) = hashes[index].filter(|_| plan.is_whole(&group.scope)) {
                tables.engines[index].reset_hashed(hash);
            }
        }
        if let Some(ledger) = tables.penalties().filter(|_| plan.is_whole(&plan.penalty_scope)) {
            ledger.reset(snapshot.penalty_hash(whole, &subject));
        }
        if let Some(ledger) = tables.budgets() {
            ledger.reset(whole);
        }
        Ok(())
    }

    /// Forgets every key, and ends all blocks.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.hit("alice", 3).unwrap().allowed);
    /// limiter.reset_all().unwrap();
    /// assert!(limiter.hit("alice", 3).unwrap().allowed);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed; so with the following.
    pub fn reset_all(&self) -> Result<(), Error> {
        self.unblock_all()?;
        self.snapshot()?.tables.reset_all();
        Ok(())
    }

    /// Drops idle keys now, and says how many. Nothing must call this: they give way by themselves.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.allow("alice").unwrap());
    /// limiter.refund("alice", 1).unwrap();
    /// assert!(limiter.prune().unwrap() <= 1);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn prune(&self) -> Result<usize, Error> {
        let snapshot = self.snapshot()?;
        let hour = snapshot.config.budget.as_ref().map_or(0, |budget| budget.reset_hour_utc);
        let today = Day::today(snapshot.tables.clock(), hour);
        self.state.forget_ended_threads();
        Ok(snapshot.tables.prune(today.number))
    }

    /// Rows in use, idle ones until they are pruned or taken over.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.allow("alice").unwrap());
    /// assert_eq!(limiter.len().unwrap(), 1);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn len(&self) -> Result<usize, Error> {
        Ok(self.snapshot()?.tables.engines.iter().map(|engine| engine.len()).sum())
    }

    /// Keys that it may hold live.
    pub(crate) fn capacity(&self) -> Result<usize, Error> {
        Ok(self.snapshot()?.tables.capacity)
    }

    /// Bytes that one key takes at the stated capacity.
    pub(crate) fn bytes_per_key(&self) -> Result<u64, Error> {
        let snapshot = self.snapshot()?;
        Ok(snapshot.tables.bytes() / snapshot.tables.capacity.max(1) as u64)
    }

    /// Nanoseconds for which an idle key may be kept, and for which the rule's own limits ask.
    pub(crate) fn horizons(&self) -> Result<(u64, u64), Error> {
        Ok(self.snapshot()?.tables.horizons())
    }

    /// Whether no row is in use.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.is_empty().unwrap());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The names of its limits, in declared order.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("5/10s window, 20/min").unwrap();
    /// assert_eq!(limiter.limit_names().unwrap(), ["5/10s", "20/min"]);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn limit_names(&self) -> Result<Vec<String>, Error> {
        Ok(self.snapshot()?.labels.limits.clone())
    }
}

#[cold]
fn no_memory(keys: usize) -> Error {
    Error::new(Code::Memory, format!("there is no memory for the answers to {keys} keys"))
}

/// Does something to the key's row in each group, and gives all statuses in declared order. A call
/// that is not counted is seen as a new key.
pub(crate) fn each_status(
    snapshot: &Snapshot,
    variant: &Variant,
    hashes: Option<&Hashes>,
    mut act: impl FnMut(tidegate_core::RowRef<'_>, Counts) -> tidegate_core::LimitStatuses,
) -> [LimitStatus; MOST_LIMITS] {
    let mut statuses = [LimitStatus::default(); MOST_LIMITS];
    for (group, stated) in snapshot.plan().groups.iter().enumerate() {
        let part = hashes.and_then(|hashes| part_of(snapshot, variant, hashes, group));
        match part.map(|part| act(part, stated.counts)) {
            Some(seen) => {
                stated.limits.iter().zip(seen.iter()).for_each(|(&i, status)| statuses[i] = *status)
            }
            None => stated.limits.iter().for_each(|&i| {
                let size = variant.params[i].size;
                statuses[i] =
                    LimitStatus { limit: size, remaining: size, ..LimitStatus::default() };
            }),
        }
    }
    statuses
}
