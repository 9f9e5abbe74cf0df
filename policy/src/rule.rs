//! A rule at work, and everything that can be done with it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tidegate_core::{Spent, Time, View};

use crate::budget::{Budget, Day};
use crate::call::Call;
use crate::config::{BudgetConfig, Match};
use crate::decision::{Decision, Ground, whole_millis};
use crate::error::{Code, Error, Problem};
use crate::held::{Held, Permit, Reservation};
use crate::judge::{Judged, Op, Plain, hit_plainly, judge, part_of};
use crate::limit::LimitPatches;
use crate::limiter::Shared;
use crate::matching::Matcher;
use crate::metrics::Meter;
use crate::penalty::Record;
use crate::plan::MOST_LIMITS;
use crate::runtime::Target;
use crate::snapshot::{Hashes, Resolved, Snapshot};
use crate::tables::is_unspent;
use crate::variant::Variant;
use crate::waiters::Waiters;

/// What belongs to a rule for as long as its limiter lives, whatever its policy becomes.
#[derive(Debug)]
pub(crate) struct RuleState {
    pub(crate) live: ArcSwap<Snapshot>,
    pub(crate) meter: Meter,
    pub(crate) waiters: Waiters,
}

impl RuleState {
    pub(crate) fn new(snapshot: Snapshot) -> RuleState {
        RuleState {
            live: ArcSwap::from_pointee(snapshot),
            meter: Meter::default(),
            waiters: Waiters::default(),
        }
    }

    /// The rule as it stands now.
    #[inline]
    pub(crate) fn snapshot(&self) -> Result<Guard<Arc<Snapshot>>, Error> {
        let snapshot = self.live.load();
        if snapshot.generation == snapshot.tables.generation() && !snapshot.closed {
            return Ok(snapshot);
        }
        self.renewed(&snapshot)
    }

    #[cold]
    fn renewed(&self, old: &Guard<Arc<Snapshot>>) -> Result<Guard<Arc<Snapshot>>, Error> {
        if old.closed {
            return Err(Error::new(Code::Closed, "the limiter is closed"));
        }
        let next = Snapshot::new(old.config.clone(), old.face.clone(), old.tables.clone())?;
        let next = Arc::new(next);
        // Who loses to a reload or to another change goes by its own, which knows all that was
        // changed before this call. The winner's may not: it may have been read before that.
        self.live.compare_and_swap(old, next.clone());
        Ok(Guard::from_inner(next))
    }
}

/// What one limit holds of a key.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert!(limiter.allow("alice").unwrap());
/// let used = limiter.stats("alice").unwrap().unwrap().limits.remove(0);
/// assert_eq!((used.name.as_str(), used.used, used.remaining), ("3/min", 1, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The limit's name.
    pub name: String,
    /// Whole units that are gone.
    pub used: u64,
    /// A bucket's size, else `max`.
    pub max: u64,
    /// Whole units that are left.
    pub remaining: u64,
    /// Until the whole quota is there again.
    pub reset_after: Duration,
}

/// What is known of a key.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// assert_eq!(limiter.stats("alice").unwrap(), None);
/// assert!(limiter.allow("alice").unwrap());
/// let stats = limiter.stats("alice").unwrap().unwrap();
/// assert_eq!((stats.limits[0].used, stats.violations), (1, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Each limit, in declared order.
    pub limits: Vec<LimitUse>,
    /// What its cooldown has to run.
    pub cooldown_left: Duration,
    /// Denials in the span of the rule's alert, or in the run of its backoff.
    pub violations: u64,
    /// Since its last allowed hit, where the rule keeps that: one with a window does.
    pub last_allowed: Option<Duration>,
    /// Its budget, if the rule has one.
    pub budget: Option<Budget>,
}

/// What was used after a [`record`](Rule::record): of the limit with the least left.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let recorded = limiter.record("alice", 2).unwrap();
/// assert_eq!((recorded.used, recorded.remaining), (2, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
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
    fn snapshot(&self) -> Result<Guard<Arc<Snapshot>>, Error> {
        self.state.snapshot()
    }

    /// The rule's name.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.rule("default").unwrap().name(), "default");
    /// ```
    pub fn name(&self) -> String {
        self.state.live.load().face.rule.clone()
    }

    /// The names of its limits, in the order stated.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min, 9/h").unwrap();
    /// assert_eq!(limiter.rule("default").unwrap().limit_names(), ["3/min", "9/h"]);
    /// ```
    pub fn limit_names(&self) -> Vec<String> {
        self.state.live.load().face.limits.clone()
    }

    /// Whether the two are one rule at work, and not only of one name: a rule that a reload took away
    /// and another one brought back is a new one.
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
        let snapshot = self.snapshot()?;
        if let Some(key) = snapshot.plain_key(&call) {
            let allowed = snapshot.tables.engines[0].allow(key);
            let weight = self.state.meter.weight();
            if weight > 0 || !allowed && snapshot.several {
                self.state.meter.note(&snapshot, &call, allowed, weight);
            }
            return Ok(allowed);
        }
        self.allow_any(&snapshot, &call)
    }

    fn allow_any(&self, snapshot: &Snapshot, call: &Call<'_>) -> Result<bool, Error> {
        self.no_permits(snapshot, "allow")?;
        Ok(self.judged(snapshot, call, 1, Op::Hit)?.decision.allowed)
    }

    /// Judges a call, and counts what came of it.
    fn judged(
        &self,
        snapshot: &Snapshot,
        call: &Call<'_>,
        cost: u64,
        op: Op,
    ) -> Result<Judged, Error> {
        let judged = judge(snapshot, call, cost, op)?;
        let counts = match op {
            Op::Hit | Op::Check => true,
            Op::Try => judged.decision.allowed,
            Op::Peek | Op::Foresee => false,
        };
        if counts {
            self.state.meter.count(snapshot, call, &judged.decision, cost);
            if judged.defaulted {
                self.state.meter.count_default();
            }
        }
        Ok(judged)
    }

    /// Whether it has a concurrent limit, so that [`permit`](Rule::permit) takes the place of a hit.
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

    fn no_permits(&self, snapshot: &Snapshot, operation: &str) -> Result<(), Error> {
        if snapshot.concurrent { Err(self.wants_permit(operation)) } else { Ok(()) }
    }

    #[cold]
    fn wants_permit(&self, operation: &str) -> Error {
        let message = format!(
            "rule {:?} has a concurrent limit: use `permit` in place of `{operation}`",
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
    pub fn hit<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Result<Decision, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        match self.hit_plainly(&snapshot, &call, cost) {
            Some(plain) => Ok(plain.decision(Ground::Rule(snapshot))),
            None => self.hit_any(&snapshot, &call, cost),
        }
    }

    #[inline(always)]
    fn hit_plainly(&self, snapshot: &Snapshot, call: &Call<'_>, cost: u64) -> Option<Plain> {
        let key = snapshot.plain_key(call).filter(|_| !snapshot.several)?;
        let plain = hit_plainly(snapshot, key, cost)?;
        self.state.meter.count_plainly(snapshot, call, plain.denied, plain.warning, cost);
        Some(plain)
    }

    fn hit_any(&self, snapshot: &Snapshot, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        self.no_permits(snapshot, "hit")?;
        Ok(self.judged(snapshot, call, cost, Op::Hit)?.decision)
    }

    /// As a hit, but an allowed one spends nothing: for "check, do the work, then [`record`](Rule::record)".
    /// A denial counts like a hit's.
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
        Ok(self.judged(&snapshot, &call.into(), cost, Op::Check)?.decision)
    }

    /// What a hit would get, changing nothing. With a cost of 0, what is left now.
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
        Ok(self.judged(&snapshot, &call.into(), cost, Op::Peek)?.decision)
    }

    /// As [`Rule::hit`] for those who wait: a denial counts for nothing.
    pub(crate) fn attempt(&self, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.snapshot()?;
        self.no_permits(&snapshot, "acquire")?;
        Ok(self.judged(&snapshot, call, cost, Op::Try)?.decision)
    }

    /// What [`Rule::attempt`] would get, changing nothing.
    pub(crate) fn foresee(&self, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.snapshot()?;
        self.no_permits(&snapshot, "acquire")?;
        Ok(self.judged(&snapshot, call, cost, Op::Foresee)?.decision)
    }

    /// Where a call is counted; `None` if it is not.
    fn counted<'s>(
        &self,
        snapshot: &'s Snapshot,
        call: &'s Call<'_>,
    ) -> Result<(Resolved<'s>, Option<Hashes>), Error> {
        let resolved = snapshot.resolve(call)?;
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
        let (resolved, hashes) = self.counted(&snapshot, &call)?;
        let mut time = Time::read(snapshot.tables.clock());
        let views = each_view(&snapshot, &resolved.variant, hashes.as_ref(), |part| {
            part.record(cost, &mut time)
        });
        let views = &views[..resolved.variant.numbers.len()];
        let least = (0..views.len()).min_by_key(|&i| views[i].remaining).unwrap_or(0);
        let longest = views.iter().map(|view| view.reset).max().unwrap_or(0);
        Ok(Recorded {
            used: views[least].used,
            limit: resolved.variant.numbers[least].size,
            remaining: views[least].remaining,
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
        let (resolved, hashes) = self.counted(&snapshot, &call)?;
        if let Some(hashes) = hashes {
            self.held(&snapshot, Arc::clone(&resolved.variant), hashes).refund(cost);
        }
        Ok(())
    }

    fn held(&self, snapshot: &Guard<Arc<Snapshot>>, variant: Arc<Variant>, hashes: Hashes) -> Held {
        Held { snapshot: Arc::clone(snapshot), variant, hashes }
    }

    /// A hit whose true cost is known later: spends the estimate, to be settled.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1000/min").unwrap();
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
        let (snapshot, call) = (self.snapshot()?, call.into());
        self.no_permits(&snapshot, "reserve")?;
        let judged = self.judged(&snapshot, &call, estimate, Op::Hit)?;
        let spent = judged.decision.allowed && judged.decision.would.is_none();
        let held = judged
            .hashes
            .filter(|_| spent)
            .map(|hashes| self.held(&snapshot, judged.decision.variant.owned(), hashes));
        Ok(Reservation::new(judged.decision, held, estimate))
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
        let (snapshot, call) = (self.snapshot()?, call.into());
        if !snapshot.concurrent {
            let message =
                format!("rule {:?} has no concurrent limit: use `hit`", snapshot.face.rule);
            return Err(Error::new(Code::Operation, message));
        }
        let judged = self.judged(&snapshot, &call, 1, Op::Hit)?;
        let held = judged
            .hashes
            .filter(|_| judged.permits.iter().any(Option::is_some))
            .map(|hashes| self.held(&snapshot, judged.decision.variant.owned(), hashes));
        Ok(Permit::new(judged.decision, held, judged.permits))
    }

    /// A batch of [`Rule::allow`]: 1 or 0 for each key.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert_eq!(limiter.allow_many(&["alice", "bob", "alice"]).unwrap(), [1, 1, 0]);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`]; then none was judged, unless a key is not the rule's: those before it were.
    pub fn allow_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<u8>, Error> {
        let snapshot = self.snapshot()?;
        let mut mask = vec![0; keys.len()];
        if snapshot.plain {
            snapshot.tables.engines[0].allow_many(keys, &mut mask);
            let denied = mask.iter().zip(keys).filter(|(allowed, _)| **allowed == 0);
            if snapshot.several {
                denied.for_each(|(_, key)| {
                    let weight = self.state.meter.weight();
                    self.state.meter.note(&snapshot, &key.as_ref().into(), false, weight);
                });
            }
            return Ok(mask);
        }
        self.no_permits(&snapshot, "allow_many")?;
        for (allowed, key) in mask.iter_mut().zip(keys) {
            let judged = self.judged(&snapshot, &key.as_ref().into(), 1, Op::Hit)?;
            *allowed = u8::from(judged.decision.allowed);
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
        let snapshot = self.snapshot()?;
        self.no_permits(&snapshot, "hit_many")?;
        let base = || Ground::Own(snapshot.base().clone());
        let hit = |call: Call<'_>| match self.hit_plainly(&snapshot, &call, 1) {
            Some(plain) => Ok(plain.decision(base())),
            None => self.hit_any(&snapshot, &call, 1),
        };
        calls.into_iter().map(|call| hit(call.into())).collect()
    }

    fn budget_config<'s>(&self, snapshot: &'s Snapshot) -> Result<&'s BudgetConfig, Error> {
        snapshot.config.budget.as_ref().ok_or_else(|| {
            let message =
                format!("rule {:?} has no budget; state one in its policy", snapshot.face.rule);
            Error::new(Code::Operation, message)
        })
    }

    /// Records what was spent of the day's budget, always.
    ///
    /// ```
    /// let budget = tidegate::BudgetConfig { daily: 5, per_hit: None, reset_hour_utc: 0, unit: None };
    /// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
    /// rule.budget = Some(budget);
    /// let limiter = tidegate::Limiter::with_rule(rule, tidegate::Options::default()).unwrap();
    /// assert!(limiter.spend("alice", 6).unwrap().over);
    /// ```
    ///
    /// # Errors
    /// If the rule has no budget; and as [`Rule::allow`].
    pub fn spend<'a>(&self, call: impl Into<Call<'a>>, amount: u64) -> Result<Budget, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let budget = self.budget_config(&snapshot)?;
        let (resolved, hashes) = self.counted(&snapshot, &call)?;
        let day = Day::today(snapshot.tables.clock(), budget.reset_hour_utc);
        let over_per_hit = budget.per_hit.is_some_and(|most| amount > most);
        let ledger = snapshot.tables.budgets().filter(|_| hashes.is_some());
        let spent = ledger.and_then(|ledger| {
            let hash = snapshot.whole_hash(&resolved.subject);
            ledger.update(hash, 0, &|notes| is_unspent(notes, day.number), |note| {
                let spent = Spent::from_note(note).plus(amount, day.number);
                (spent.note(), spent.on(day.number))
            })
        });
        Ok(Budget::new(budget.daily, spent.unwrap_or(0), over_per_hit, &day))
    }

    /// How the key stands with its budget.
    ///
    /// ```
    /// let budget = tidegate::BudgetConfig { daily: 5, per_hit: None, reset_hour_utc: 0, unit: None };
    /// let mut rule = tidegate::RuleConfig::new("3/min").unwrap();
    /// rule.budget = Some(budget);
    /// let limiter = tidegate::Limiter::with_rule(rule, tidegate::Options::default()).unwrap();
    /// assert_eq!(limiter.budget("alice").unwrap().remaining, 5);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::spend`].
    pub fn budget<'a>(&self, call: impl Into<Call<'a>>) -> Result<Budget, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let budget = self.budget_config(&snapshot)?;
        let resolved = snapshot.resolve(&call)?;
        Ok(budget_of(&snapshot, &resolved, budget))
    }

    /// Whether the key should be left alone: with backoff, if it was denied less than `quiet` ago;
    /// without, if a hit of 1 would be denied now.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert!(!limiter.is_limited("alice").unwrap());
    /// assert!(limiter.allow("alice").unwrap());
    /// assert!(limiter.is_limited("alice").unwrap());
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`].
    pub fn is_limited<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let resolved = snapshot.resolve(&call)?;
        if resolved.variant.backoff.is_none() {
            return Ok(!self.judged(&snapshot, &call, 1, Op::Peek)?.decision.allowed);
        }
        let counted = snapshot.uncounted(&resolved).is_none();
        Ok(counted && record_of(&snapshot, &resolved).is_some_and(|r| r.is_recent))
    }

    /// What is known of a key; `None` exactly when its state is that of a new one.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.hit("alice", 2).unwrap().allowed.then_some(()).unwrap();
    /// assert_eq!(limiter.stats("alice").unwrap().unwrap().limits[0].used, 2);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::allow`].
    pub fn stats<'a>(&self, call: impl Into<Call<'a>>) -> Result<Option<Stats>, Error> {
        let (snapshot, call) = (self.snapshot()?, call.into());
        let resolved = snapshot.resolve(&call)?;
        let variant = &resolved.variant;
        let hashes = snapshot.hashes(&resolved.subject);
        let now = snapshot.tables.clock().now();
        let views = each_view(&snapshot, variant, Some(&hashes), |part| part.look(0, now));
        let views = &views[..variant.numbers.len()];
        let record = record_of(&snapshot, &resolved);
        let budget = snapshot.config.budget.as_ref().map(|b| budget_of(&snapshot, &resolved, b));
        let is_new = views.iter().all(|view| view.used == 0 && view.reset == 0)
            && record.as_ref().is_none_or(|record| record.is_new)
            && budget.is_none_or(|budget| budget.spent == 0);
        if is_new {
            return Ok(None);
        }
        let limit = |(index, view): (usize, &View)| LimitUse {
            name: snapshot.face.limits[index].clone(),
            used: view.used,
            max: variant.numbers[index].size,
            remaining: view.remaining,
            reset_after: whole_millis(view.reset).unwrap_or_default(),
        };
        let left = record.as_ref().map_or(0, |record| record.cooldown_left);
        Ok(Some(Stats {
            limits: views.iter().enumerate().map(limit).collect(),
            cooldown_left: whole_millis(left).unwrap_or_default(),
            violations: record.map_or(0, |record| record.violations),
            last_allowed: last_allowed(&snapshot, variant, views),
            budget,
        }))
    }

    /// Forgets the key's limits, penalties and budget, but never those of a wider scope.
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
        let (subject, _) = snapshot.subject(&call)?;
        let (plan, tables) = (snapshot.plan(), &snapshot.tables);
        let hashes = snapshot.hashes(&subject);
        for (index, group) in plan.groups.iter().enumerate() {
            if let Some(hash) = hashes[index].filter(|_| plan.is_whole(&group.scope)) {
                tables.engines[index].reset_hashed(hash);
            }
        }
        if let Some(ledger) = tables.penalties().filter(|_| plan.is_whole(&plan.penalty_scope)) {
            ledger.reset(snapshot.penalty_hash(&subject));
        }
        if let Some(ledger) = tables.budgets() {
            ledger.reset(snapshot.whole_hash(&subject));
        }
        Ok(())
    }

    /// Forgets every key.
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
        Ok(self.snapshot()?.tables.engines.iter().map(tidegate_core::Engine::len).sum())
    }

    /// Bytes that one key takes at the stated capacity.
    pub(crate) fn bytes_per_key(&self) -> Result<u64, Error> {
        let snapshot = self.snapshot()?;
        Ok(snapshot.tables.bytes() / snapshot.tables.capacity.max(1) as u64)
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

    /// Judges a key, or the calls that match, by other limits from the next hit on. What was set for the
    /// same target before is replaced.
    ///
    /// ```
    /// use tidegate::{LimitPatch, Target};
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.set_override(Target::key("alice"), vec![("3/min".into(), LimitPatch::max(9))]).unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(9));
    /// ```
    ///
    /// # Errors
    /// For limits that the rule does not have, numbers that can't be had, and a `max` above the
    /// rule's `ceiling`.
    pub fn set_override(
        &self,
        target: impl Into<Target>,
        limits: LimitPatches,
    ) -> Result<(), Error> {
        let (snapshot, target) = (self.snapshot()?, target.into());
        self.check_target(&snapshot, &target)?;
        check_patches(&snapshot, &limits)?;
        let tables = &snapshot.tables;
        self.change(
            &snapshot,
            |runtime| {
                runtime.set_override(target.clone(), limits);
                Ok(())
            },
            |next| {
                if next.check_override(&target)? {
                    tables.make_penalties().map_err(|e| vec![Problem::new("", e.to_string())])?;
                }
                Ok(())
            },
        )
    }

    fn check_target(&self, snapshot: &Snapshot, target: &Target) -> Result<(), Error> {
        match target {
            Target::Match(matches) => self.check_match(snapshot, matches),
            Target::Key(parts) if parts.len() != snapshot.plan().parts => {
                let names = snapshot.config.key.join(", ");
                let message = format!(
                    "an override is for all parts of a key [{names}], not for {}",
                    parts.len()
                );
                Err(Error::new(Code::Key, message))
            }
            Target::Key(_) => Ok(()),
        }
    }

    fn check_match(&self, snapshot: &Snapshot, matches: &Match) -> Result<(), Error> {
        Matcher::new(matches, &snapshot.config.key).map(drop).map_err(|wrong| {
            Error::policy(
                wrong.into_iter().map(|(field, message)| Problem::new(&field, message)).collect(),
            )
        })
    }

    /// Changes something at run time if the rule as it would then be can be had.
    fn change<R>(
        &self,
        snapshot: &Snapshot,
        change: impl FnOnce(&mut crate::runtime::Runtime) -> Result<R, Error>,
        check: impl FnOnce(&Snapshot) -> Result<(), Vec<Problem>>,
    ) -> Result<R, Error> {
        snapshot.tables.change(|runtime| {
            let result = change(runtime)?;
            let next = snapshot.with_runtime(runtime)?;
            check(&next).map_err(Error::policy)?;
            Ok(result)
        })
    }

    /// Takes an override back. False if there was none.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(!limiter.clear_override(tidegate::Target::key("alice")).unwrap());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn clear_override(&self, target: impl Into<Target>) -> Result<bool, Error> {
        let target = target.into();
        self.snapshot()?.tables.change(|runtime| Ok(runtime.clear_override(&target)))
    }

    /// The overrides in force.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.overrides().unwrap().is_empty());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn overrides(&self) -> Result<Vec<(Target, LimitPatches)>, Error> {
        Ok(self.snapshot()?.tables.runtime().0.overrides.clone())
    }

    /// Changes the rule's own limits from the next hit on; an empty list takes that back.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.set_default(vec![("3/min".into(), tidegate::LimitPatch::max(1))]).unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(1));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::set_override`].
    pub fn set_default(&self, limits: LimitPatches) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        check_patches(&snapshot, &limits)?;
        let tables = &snapshot.tables;
        self.change(
            &snapshot,
            |runtime| {
                runtime.default = limits;
                Ok(())
            },
            |next| {
                if next.base().has_penalties() {
                    tables.make_penalties().map_err(|e| vec![Problem::new("", e.to_string())])?;
                }
                Ok(())
            },
        )
    }

    /// Allows the calls that match from the next hit on, uncounted.
    ///
    /// ```
    /// use tidegate::{Call, Match};
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.add_exempt(Match::new([("role", "admin")])).unwrap();
    /// let admin = Call::of("alice").with(&[("role", "admin")]);
    /// assert_eq!(limiter.hit(admin, 1).unwrap().reason(), Some("exempt"));
    /// ```
    ///
    /// # Errors
    /// For values of `ip` that are no addresses.
    pub fn add_exempt(&self, matches: Match) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        self.check_match(&snapshot, &matches)?;
        snapshot.tables.change(|runtime| {
            runtime.add_exempt(matches, &snapshot.config.exempt);
            Ok(())
        })
    }

    /// Takes an exemption back, the policy's own too. False if it was not in force.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(!limiter.remove_exempt(&tidegate::Match::new([("role", "admin")])).unwrap());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn remove_exempt(&self, matches: &Match) -> Result<bool, Error> {
        let snapshot = self.snapshot()?;
        snapshot
            .tables
            .change(|runtime| Ok(runtime.remove_exempt(matches, &snapshot.config.exempt)))
    }

    /// Puts these exemptions in place of all others.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.set_exempts(vec![tidegate::Match::new([("key", "alice")])]).unwrap();
    /// assert_eq!(limiter.hit("alice", 99).unwrap().reason(), Some("exempt"));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::add_exempt`].
    pub fn set_exempts(&self, matches: Vec<Match>) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        matches.iter().try_for_each(|one| self.check_match(&snapshot, one))?;
        snapshot.tables.change(|runtime| {
            runtime.set_exempts(matches);
            Ok(())
        })
    }

    /// The exemptions in force.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.exempts().unwrap().is_empty());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn exempts(&self) -> Result<Vec<Match>, Error> {
        let snapshot = self.snapshot()?;
        Ok(snapshot.tables.runtime().0.exempts(&snapshot.config.exempt))
    }
}

/// Names that the rule does not have are mistakes.
fn check_patches(snapshot: &Snapshot, limits: &LimitPatches) -> Result<(), Error> {
    let problems = crate::build::check_patches("limits", limits, snapshot.plan());
    if problems.is_empty() { Ok(()) } else { Err(Error::policy(problems)) }
}

/// Does something to the key's row in each group, and gives all views in declared order. A call that is
/// not counted is seen as a new key.
fn each_view(
    snapshot: &Snapshot,
    variant: &Variant,
    hashes: Option<&Hashes>,
    mut act: impl FnMut(tidegate_core::Part<'_>) -> tidegate_core::Views,
) -> [View; MOST_LIMITS] {
    let mut views = [View::default(); MOST_LIMITS];
    for (group, stated) in snapshot.plan().groups.iter().enumerate() {
        let part = hashes.and_then(|hashes| part_of(snapshot, variant, hashes, group));
        match part.map(&mut act) {
            Some(seen) => {
                stated.limits.iter().zip(seen.iter()).for_each(|(&i, view)| views[i] = *view)
            }
            None => stated.limits.iter().for_each(|&i| {
                let size = variant.numbers[i].size;
                views[i] = View { limit: size, remaining: size, ..View::default() };
            }),
        }
    }
    views
}

fn budget_of(snapshot: &Snapshot, resolved: &Resolved<'_>, budget: &BudgetConfig) -> Budget {
    let day = Day::today(snapshot.tables.clock(), budget.reset_hour_utc);
    let spent = snapshot.spent(&resolved.subject);
    Budget::new(budget.daily, spent.on(day.number), false, &day)
}

fn record_of(snapshot: &Snapshot, resolved: &Resolved<'_>) -> Option<Record> {
    let notes = snapshot.tables.penalties()?.read(snapshot.penalty_hash(&resolved.subject))?;
    Some(Record::read(notes, &resolved.variant, snapshot.tables.clock().now()))
}

/// Since the newest entry of a window: what is left until it is empty tells.
fn last_allowed(snapshot: &Snapshot, variant: &Variant, views: &[View]) -> Option<Duration> {
    let windows = snapshot.plan().algorithms.iter().zip(&variant.effective.limits).zip(views);
    let ages = windows
        .filter(|((algorithm, _), view)| {
            **algorithm == tidegate_core::Algorithm::Window && view.reset > 0
        })
        .map(|((_, limit), view)| limit.per.saturating_sub(Duration::from_nanos(view.reset)));
    ages.min()
}
