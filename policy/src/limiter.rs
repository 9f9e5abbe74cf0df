//! A policy at work.

pub(crate) mod audit;
pub(crate) mod builder;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_core::Serialize;
use tidegate_core::{Clock, ForkLock};

use crate::compiled::validate::{self, Built};
use crate::compiled::wanted::ExistingTables;
use crate::config::limit::{IntoLimits, LimitPatches};
use crate::config::options::Options;
use crate::config::policy::{Match, Mode, Policy, RuleConfig};
use crate::error::{Code, Error};
use crate::limiter::builder::LimiterBuilder;
use crate::metrics::Metrics;
use crate::metrics::event::{Events, Sequence};
use crate::rule::changes::{BlockedKey, ChangeOptions, Changing};
use crate::rule::shared::Shared;
use crate::rule::state::{RuleState, closed};
use crate::rule::stats::Stats;
use crate::rule::{Recorded, Rule};
use crate::snapshot::Snapshot;
use crate::store::open::{Opening, Store};
use crate::store::runtime::Target;
use crate::store::tables::Tables;
use crate::store::trail::Changes;
use crate::{Budget, Call, Decision, Permit, Reservation, Why};

/// The rule of a limiter that is made from limits alone.
const DEFAULT_RULE: &str = "default";

/// A clock that only moves when told to, for tests that don't wait. Its wall time moves along.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Limiter, ManualClock};
///
/// let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
/// let limiter = Limiter::builder().limits("1/min").clock(&clock).build().unwrap();
/// assert!(limiter.allow("alice").unwrap() && !limiter.allow("alice").unwrap());
/// clock.advance(Duration::from_secs(60));
/// assert!(limiter.allow("alice").unwrap());
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    hand: Arc<tidegate_core::ManualClock>,
}

impl ManualClock {
    /// A clock at `start`, whose wall time is `wall` since the start of 1970.
    pub fn new(start: Duration, wall: Duration) -> ManualClock {
        let (_, hand) = Clock::manual(crate::time::nanos(start));
        hand.set_wall(wall);
        ManualClock { hand }
    }
    /// What a limiter is given.
    pub fn clock(&self) -> Clock {
        Clock::Manual(self.hand.clone())
    }
    /// Moves on.
    pub fn advance(&self, step: Duration) {
        self.hand.advance(step);
    }
    /// Jumps, back too.
    pub fn set(&self, now: Duration) {
        self.hand.set(crate::time::nanos(now));
    }
    /// The time.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.hand.now())
    }
    /// Sets the wall time alone.
    pub fn set_wall(&self, unix: Duration) {
        self.hand.set_wall(unix);
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Clock {
        clock.clock()
    }
}

/// A policy at work. Cheap to clone, and safe to use from any thread.
///
/// ```
/// use tidegate::Limiter;
///
/// let limiter = Limiter::new(["5/10s window", "20/min window", "200/h window"]).unwrap();
/// let decision = limiter.hit("alice", 1).unwrap();
/// assert!(decision.allowed);
/// assert_eq!(decision.remaining, Some(4));
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    shared: Arc<Shared>,
    /// The rule that operations on the limiter itself are about.
    main: Option<Rule>,
}

impl Limiter {
    /// A limiter with one rule, `default`, of these limits.
    ///
    /// # Errors
    /// For limits that can't be read or had.
    pub fn new(limits: impl IntoLimits) -> Result<Limiter, Error> {
        Limiter::builder().limits(limits).build()
    }

    /// A builder, for limiters with a store, a clock or other options.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::builder().limits("1/h").capacity(9).build().unwrap();
    /// assert_eq!(limiter.metrics().unwrap()[0].capacity, 9);
    /// ```
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// A limiter of a policy that is built in code.
    ///
    /// ```
    /// use tidegate::{Limiter, Policy, RuleConfig};
    /// let policy = Policy::new([("a", RuleConfig::new("1/h").unwrap())]);
    /// assert_eq!(Limiter::from_policy(policy).unwrap().rules(), ["a"]);
    /// ```
    ///
    /// # Errors
    /// With all problems of the policy; and if its store can't be had.
    pub fn from_policy(policy: Policy) -> Result<Limiter, Error> {
        Limiter::builder().policy(policy).build()
    }

    /// A limiter of a policy as a map, with the fields of a policy file: a `serde_json::Value`, or
    /// any type that serializes to such a map.
    ///
    /// ```
    /// let policy = serde_json::json!({"version": 1, "rules": {"messages": {"limits": "20/min"}}});
    /// let limiter = tidegate::Limiter::from_value(&policy).unwrap();
    /// assert!(limiter.rule("messages").unwrap().allow("alice").unwrap());
    /// ```
    ///
    /// # Errors
    /// As [`Limiter::from_policy`].
    pub fn from_value(policy: &impl Serialize) -> Result<Limiter, Error> {
        Limiter::builder().value(policy).build()
    }

    /// A limiter of a policy file: JSON, or YAML with the feature `yaml`.
    ///
    /// # Errors
    /// If the file can't be read; and as [`Limiter::from_policy`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Limiter, Error> {
        Limiter::builder().file(path.as_ref()).build()
    }

    /// One rule, `default`. Problems are named by their path within the rule.
    fn of_rule(rule: RuleConfig, options: Options) -> Result<Limiter, Error> {
        let policy = Policy::new([(DEFAULT_RULE, rule)]);
        Limiter::make(policy, options, None)
            .map_err(|error| validate::within_rule(error, DEFAULT_RULE))
    }

    fn of_file(path: PathBuf, options: Options) -> Result<Limiter, Error> {
        let policy = Policy::from_file(&path)?;
        Limiter::make(policy, options, Some(path.clone())).map_err(|error| error.in_file(&path))
    }

    fn make(policy: Policy, options: Options, source: Option<PathBuf>) -> Result<Limiter, Error> {
        let policy = with_options(policy, &options);
        if options.recreate && validate::is_in_memory(&policy.store) {
            return Err(Error::policy(vec![validate::nothing_to_recreate()]));
        }
        let stated = source.as_deref().filter(|_| options.store.is_none());
        let base = stated.and_then(Path::parent).unwrap_or(Path::new(""));
        // First: a policy that can't be had must not leave a folder behind.
        let checked = match Store::is_there(&policy.store, base) {
            true => None,
            false => Some(validate::check(&policy, &options.clock)?),
        };
        let (recreate, as_owner) = (options.recreate, options.as_owner);
        let opening = Opening { recreate, group: policy.group, as_owner };
        let store = Store::open(&policy.store, base, &opening)?;
        let made = Limiter::make_in(store.clone(), checked, policy, options, source);
        if made.is_err() {
            store.abandon();
        }
        made
    }

    /// `checked`: the policy's rules, where no table was there that could say more of them.
    fn make_in(
        store: Store,
        checked: Option<Vec<Built>>,
        policy: Policy,
        options: Options,
        source: Option<PathBuf>,
    ) -> Result<Limiter, Error> {
        let known = |rule: &Built| store.capacity(&rule.name, &rule.wanted.plan);
        let built = match checked {
            Some(built) => built,
            None => validate::check_beside(&policy, &options.clock, known)?,
        };
        let (mut rules, sequence) = (HashMap::new(), Arc::<Sequence>::default());
        if built.len() > 1 {
            let mut each = built.iter();
            each.try_for_each(|rule| store.check(&rule.name, &rule.wanted, &options.clock))?;
        }
        for rule in &built {
            has_room()?;
            let tables = store.tables(&rule.name, &rule.wanted, &rule.base, &options.clock)?;
            let labels = Arc::new(rule.labels.with_clock(tables.clock()));
            let snapshot = Snapshot::new(rule.config.clone(), labels, tables)?;
            let state = RuleState::new(snapshot, sequence.clone());
            rules.insert(rule.name.clone(), Arc::new(state));
        }
        let shared = Arc::new(Shared {
            policy: ArcSwap::from_pointee(policy),
            rules: ArcSwap::from_pointee(rules),
            store,
            options,
            source,
            changing: ForkLock::default(),
            sequence,
        });
        let main = shared.main();
        let main = main.map(|state| Rule { state, _limiter: shared.clone() });
        Ok(Limiter { shared, main })
    }

    /// A rule by its name, or the policy's `fallback` for names that it does not know.
    ///
    /// ```
    /// let policy = serde_json::json!({
    ///     "version": 1,
    ///     "fallback": "b",
    ///     "rules": {"a": {"limits": "1/s"}, "b": {"limits": "2/s"}},
    /// });
    /// let limiter = tidegate::Limiter::from_value(&policy).unwrap();
    /// assert_eq!(limiter.rule("a").unwrap().name(), "a");
    /// assert_eq!(limiter.rule("other").unwrap().name(), "b");
    /// ```
    ///
    /// # Errors
    /// If there is neither, or the limiter is closed.
    pub fn rule(&self, name: &str) -> Result<Rule, Error> {
        let (rules, policy) = (self.shared.rules.load(), self.shared.policy.load());
        let fallback = || policy.fallback.as_ref().and_then(|name| rules.get(name));
        let Some(state) = rules.get(name).or_else(fallback) else {
            self.shared.open()?;
            let known: Vec<&String> = policy.rules.iter().map(|(name, _)| name).collect();
            return Err(Error::new(
                Code::Rule,
                crate::config::suggest::unknown("rule", name, &known),
            ));
        };
        if state.last().closed {
            return Err(closed());
        }
        Ok(Rule { state: state.clone(), _limiter: self.shared.clone() })
    }

    /// The names of the policy's rules, in the order stated.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.rules(), ["default"]);
    /// ```
    pub fn rules(&self) -> Vec<String> {
        self.shared.policy.load().rules.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The policy at work.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.policy().store, "memory");
    /// ```
    pub fn policy(&self) -> Arc<Policy> {
        self.shared.policy.load_full()
    }

    /// Reads the policy file again: all or nothing. Keys keep their state where the shape of a
    /// rule's limits (their names, algorithms and scopes) is the same. A limit that is named by its
    /// text counts by its position: `5/min` may become `9/min`. A file store moves counts to
    /// another shape, as when it is opened; other stores start afresh then.
    ///
    /// ```
    /// let path = std::env::temp_dir().join(format!("tidegate-doc-{}.json", std::process::id()));
    /// std::fs::write(&path, r#"{"version": 1, "rules": {"a": {"limits": "1/h"}}}"#).unwrap();
    /// let limiter = tidegate::Limiter::from_file(&path).unwrap();
    /// std::fs::write(&path, r#"{"version": 1, "rules": {"a": {"limits": "5/h"}}}"#).unwrap();
    /// limiter.reload().unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(5));
    /// std::fs::remove_file(path).unwrap();
    /// ```
    ///
    /// # Errors
    /// If the limiter was not made from a file; and as [`Limiter::from_file`]. Then nothing is
    /// changed.
    pub fn reload(&self) -> Result<(), Error> {
        self.shared.open()?;
        let Some(source) = &self.shared.source else {
            let message = "this limiter was not made from a file; there is nothing to read again";
            return Err(Error::new(Code::Operation, message));
        };
        self.replace(Policy::from_file(source)?).map_err(|error| error.in_file(source))
    }

    fn replace(&self, policy: Policy) -> Result<(), Error> {
        let shared = &self.shared;
        let mut gone = shared.changing.lock();
        let policy = with_options(policy, &shared.options);
        let known = shared.policy.load();
        if (&policy.store, policy.group) != (&known.store, known.group) {
            let message = "store: another store needs another limiter; nothing was reloaded";
            return Err(Error::new(Code::Store, message));
        }
        // A rule that comes back is the one that its holders have.
        let mut old = HashMap::clone(&shared.rules.load());
        let back = gone.iter().filter_map(|(name, state)| Some((name.clone(), state.upgrade()?)));
        old.extend(back);
        let known = |rule: &Built| {
            let (name, plan) = (&rule.name, &rule.wanted.plan);
            let tables = old.get(name).map(|state| state.last().tables.clone());
            let kept = tables.filter(|tables| plan.keeps_state_of(&tables.plan));
            let kept = kept.map(|kept| ExistingTables::kept(kept.capacity));
            kept.or_else(|| shared.store.capacity(name, plan))
        };
        let built = validate::check_beside(&policy, &shared.options.clock, known)?;
        shared.open()?;
        // Before the first is moved: all or nothing.
        let clock = &shared.options.clock;
        let mut opened = built.iter().filter(|rule| kept_tables(rule, &old).is_none());
        let left = leave_tables(&built, &old);
        let checked =
            opened.try_for_each(|rule| shared.store.check(&rule.name, &rule.wanted, clock));
        let renew = |()| built.iter().map(|rule| shared.renewed(rule, &old)).collect();
        let next: Result<Vec<_>, Error> = checked.and_then(renew);
        if next.is_err() {
            left.iter().for_each(|state| come_back(state));
        }
        let mut rules = HashMap::new();
        for (rule, snapshot) in built.iter().zip(next?) {
            let state = match old.remove(&rule.name) {
                Some(state) => {
                    state.replace(snapshot);
                    state
                }
                None => Arc::new(RuleState::new(snapshot, shared.sequence.clone())),
            };
            rules.insert(rule.name.clone(), state);
        }
        *gone = old.iter().map(|(name, state)| (name.clone(), Arc::downgrade(state))).collect();
        shared.rules.store(Arc::new(rules));
        shared.policy.store(Arc::new(policy));
        Ok(())
    }

    /// Lets go: every operation from now on is an error.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.close();
    /// assert_eq!(limiter.allow("alice").unwrap_err().code(), tidegate::Code::Closed);
    /// ```
    pub fn close(&self) {
        let gone = self.shared.changing.lock();
        let held = gone.values().filter_map(Weak::upgrade);
        for state in self.shared.rules.load().values().cloned().chain(held) {
            if let Ok(closed) = state.last().closed() {
                state.replace(closed);
            }
        }
    }

    /// Writes the counts of a file store to the disk, and waits for it. Without it they are in the
    /// page cache, which outlives processes but not a loss of power. Nothing to do for other
    /// stores.
    ///
    /// # Errors
    /// If the disk says no, or the limiter is closed.
    pub fn sync(&self) -> Result<(), Error> {
        self.rules().iter().try_for_each(|name| self.rule(name)?.state.snapshot()?.tables.sync())
    }

    /// What happened so far, by rule.
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn metrics(&self) -> Result<Vec<Metrics>, Error> {
        self.rules().iter().map(|name| self.rule(name)?.metrics()).collect()
    }

    /// The last denials and alerts of all rules, 256 of each; with `since`, what `next` was, those
    /// after that. One text says how far a reader is with all rules.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// (0..2).for_each(|_| drop(limiter.allow("alice").unwrap()));
    /// let seen = limiter.events(None).unwrap();
    /// let event = &seen.events[0];
    /// assert_eq!((event.key[0].as_str(), event.reason.as_str()), ("alice", "1/h"));
    /// assert!(limiter.events(Some(&seen.next)).unwrap().events.is_empty());
    /// ```
    ///
    /// # Errors
    /// If `since` is not what `next` was, or the limiter is closed.
    pub fn events(&self, since: Option<&str>) -> Result<Events, Error> {
        self.shared.open()?;
        let sequence = &self.shared.sequence;
        let rules = self.shared.rules.load();
        rules.values().for_each(|state| state.meter.number_late());
        // First, so that an event which comes meanwhile is the next reader's, whatever its rule.
        let (last, since) = (sequence.last(), sequence.known(since)?);
        let mut events = Vec::new();
        // Again: a rule that a reload has brought may have the last number.
        for state in self.shared.rules.load().values() {
            events.extend(state.meter.events(since, last).0);
        }
        events.sort_by_key(|event| event.number);
        let missed = last.saturating_sub(since) - events.len() as u64;
        Ok(Events { events, next: sequence.cursor(last), missed })
    }

    /// The run-time changes of all rules with a number above `since`: at least the last 256 that
    /// the store has seen.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// limiter.set_mode(tidegate::Mode::Off).unwrap();
    /// assert_eq!(limiter.changes(0).unwrap().changes[0].op, "set_mode");
    /// assert!(limiter.changes(1).unwrap().changes.is_empty());
    /// ```
    ///
    /// # Errors
    /// If the trail can't be read, or the limiter is closed.
    pub fn changes(&self, since: u64) -> Result<Changes, Error> {
        self.shared.open()?;
        self.shared.changes_after(since)
    }

    /// See [`Rule::changing`].
    ///
    /// # Errors
    /// As [`Rule::changing`]; and if it is not clear which rule is meant.
    pub fn changing(&self, options: ChangeOptions) -> Result<Changing<'_>, Error> {
        self.main()?.changing(options)
    }

    /// The folder of a file store.
    #[cfg(target_os = "linux")]
    pub(crate) fn folder(&self) -> Option<&crate::store::file_store::Folder> {
        match &self.shared.store {
            Store::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    /// The rule that operations on the limiter itself are about: its only one, or `default`.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.main().unwrap().name(), "default");
    /// ```
    ///
    /// # Errors
    /// If it has several and none is called `default`.
    #[inline]
    pub fn main(&self) -> Result<&Rule, Error> {
        self.main.as_ref().ok_or_else(|| {
            let names = self.rules().join(", ");
            let message = format!("this limiter has several rules ({names}): name one with `rule`");
            Error::new(Code::Rule, message)
        })
    }
}

/// Bytes that a rule needs beside its tables, and some more.
const ROOM: usize = 1 << 19;

/// An error where a rule would find no memory.
fn has_room() -> Result<(), Error> {
    match crate::room::is_there(ROOM) {
        true => Ok(()),
        false => Err(Error::new(Code::Memory, "the system has no memory left for another rule")),
    }
}

/// The tables that a rule had, if it can go on with them.
fn kept_tables(rule: &Built, old: &HashMap<String, Arc<RuleState>>) -> Option<Arc<Tables>> {
    let tables = old.get(&rule.name)?.last().tables.clone();
    let fits = has_shape_of(rule, &tables) && rule.wanted.on_full == tables.on_full;
    fits.then_some(tables)
}

fn has_shape_of(rule: &Built, tables: &Tables) -> bool {
    rule.wanted.plan.keeps_state_of(&tables.plan) && rule.wanted.can_have(tables.capacity)
}

/// Leaves the tables that others of another shape are to replace, and says whose these were. A file
/// is moved back to an earlier shape only if nobody has it open, and this limiter has it.
fn leave_tables(built: &[Built], old: &HashMap<String, Arc<RuleState>>) -> Vec<Arc<RuleState>> {
    let left = |rule: &Built| {
        let state = old.get(&rule.name)?;
        let tables = &state.last().tables;
        let leaves = !has_shape_of(rule, tables) && tables.leave_if_alone();
        leaves.then(|| state.clone())
    };
    built.iter().filter_map(left).collect()
}

/// Goes on with tables that were left.
fn come_back(state: &RuleState) {
    let last = state.last();
    last.tables.come_back();
    // Whoever opened them meanwhile was alone, and may have begun an era without the limits of this
    // limiter.
    let again = Snapshot::new(last.config.clone(), last.labels.clone(), last.tables.clone());
    if let (Ok(again), false) = (again, last.closed) {
        state.replace(again);
    }
}

impl Shared {
    /// An error if it is closed.
    fn open(&self) -> Result<(), Error> {
        match self.rules.load().values().any(|state| state.last().closed) {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    fn main(&self) -> Option<Arc<RuleState>> {
        let rules = self.rules.load();
        let only = rules.values().next().filter(|_| rules.len() == 1);
        rules.get(DEFAULT_RULE).or(only).cloned()
    }

    /// A rule as the new policy has it, with the state it had if that fits.
    fn renewed(
        &self,
        rule: &Built,
        old: &HashMap<String, Arc<RuleState>>,
    ) -> Result<Snapshot, Error> {
        has_room()?;
        let last = old.get(&rule.name).map(|state| state.last());
        let known = last.as_ref().map(|last| last.tables.clone());
        let tables = match kept_tables(rule, old) {
            Some(tables) => {
                tables.provide(&rule.wanted)?;
                tables
            }
            None => {
                let clock = &self.options.clock;
                let made = self.store.tables(&rule.name, &rule.wanted, &rule.base, clock)?;
                // In memory, counts of another shape can't be kept; what was changed at run time
                // can.
                if let Some(known) = known {
                    made.adopt(&known);
                }
                made
            }
        };
        // Who has written names down goes by the labels: it stays while it says the same.
        let same = last
            .filter(|last| last.labels.is_like(&rule.labels) && Arc::ptr_eq(&last.tables, &tables));
        let labels = same.map(|last| last.labels.clone());
        let labels = labels.unwrap_or_else(|| Arc::new(rule.labels.with_clock(tables.clock())));
        Snapshot::new(rule.config.clone(), labels, tables)
    }
}

fn with_options(mut policy: Policy, options: &Options) -> Policy {
    if let Some(store) = &options.store {
        policy.store.clone_from(store);
    }
    if let Some(group) = options.group {
        policy.group = group;
    }
    if let Some(capacity) = options.capacity {
        policy.capacity = Some(capacity);
        policy.rules.iter_mut().for_each(|(_, rule)| rule.capacity = None);
    }
    if let Some(memory) = options.memory {
        policy.memory = memory;
    }
    if let Some(on_full) = options.on_full {
        policy.on_full = on_full;
        policy.rules.iter_mut().for_each(|(_, rule)| rule.on_full = None);
    }
    policy
}

impl Limiter {
    /// See [`Rule::acquire_with`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1000/s burst 1").unwrap();
    /// assert!(limiter.acquire_with("alice", 1, None, tokio::time::sleep).await.unwrap().allowed);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::acquire_with`]; and if it is not clear which rule is meant.
    pub async fn acquire_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Decision, Error> {
        self.main()?.acquire_with(call, cost, timeout, sleep).await
    }

    /// See [`Rule::acquire_permit_with`].
    ///
    /// # Errors
    /// As [`Rule::acquire_permit_with`]; and if it is not clear which rule is meant.
    pub async fn acquire_permit_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Permit, Error> {
        self.main()?.acquire_permit_with(call, timeout, sleep).await
    }

    /// See [`Rule::acquire_reservation_with`].
    ///
    /// # Errors
    /// As [`Rule::acquire_reservation_with`]; and if it is not clear which rule is meant.
    pub async fn acquire_reservation_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Reservation, Error> {
        self.main()?.acquire_reservation_with(call, estimate, timeout, sleep).await
    }

    /// See [`Rule::acquire_permit`].
    ///
    /// # Errors
    /// As [`Rule::acquire_permit`]; and if it is not clear which rule is meant.
    #[cfg(feature = "tokio")]
    pub async fn acquire_permit<'a>(
        &self,
        call: impl Into<Call<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Permit, Error> {
        self.main()?.acquire_permit(call, timeout).await
    }

    /// See [`Rule::acquire_reservation`].
    ///
    /// # Errors
    /// As [`Rule::acquire_reservation`]; and if it is not clear which rule is meant.
    #[cfg(feature = "tokio")]
    pub async fn acquire_reservation<'a>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
        timeout: Option<Duration>,
    ) -> Result<Reservation, Error> {
        self.main()?.acquire_reservation(call, estimate, timeout).await
    }

    /// See [`Rule::acquire`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1000/s burst 1").unwrap();
    /// assert!(limiter.acquire("alice", 1, None).await.unwrap().allowed);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::acquire`]; and if it is not clear which rule is meant.
    #[cfg(feature = "tokio")]
    pub async fn acquire<'a>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Decision, Error> {
        self.main()?.acquire(call, cost, timeout).await
    }
}

/// Operations of the limiter's only rule, or of the one called `default`.
macro_rules! of_the_main_rule {
    ($(
        $(#[$meta:meta])*
        fn $name:ident $(<$life:lifetime>)?(&self $(, $arg:ident: $type:ty)*) -> $result:ty;
    )*) => {
        impl Limiter {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                #[doc = concat!(
                    "As [`Rule::", stringify!($name),
                    "`]; and if it is not clear which rule is meant."
                )]
                #[inline]
                pub fn $name $(<$life>)? (&self $(, $arg: $type)*) -> Result<$result, Error> {
                    self.main()?.$name($($arg),*)
                }
            )*
        }
    };
}

of_the_main_rule! {
    /// See [`Rule::allow`].
    fn allow<'a>(&self, call: impl Into<Call<'a>>) -> bool;
    /// See [`Rule::hit`].
    fn hit<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Decision;
    /// See [`Rule::check`].
    fn check<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Decision;
    /// See [`Rule::peek`].
    fn peek<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Decision;
    /// See [`Rule::why`].
    fn why<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Why;
    /// See [`Rule::record`].
    fn record<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> Recorded;
    /// See [`Rule::refund`].
    fn refund<'a>(&self, call: impl Into<Call<'a>>, cost: u64) -> ();
    /// See [`Rule::reserve`].
    fn reserve<'a>(&self, call: impl Into<Call<'a>>, estimate: u64) -> Reservation;
    /// See [`Rule::permit`].
    fn permit<'a>(&self, call: impl Into<Call<'a>>) -> Permit;
    /// See [`Rule::allow_many`].
    fn allow_many(&self, keys: &[impl AsRef<[u8]>]) -> Vec<u8>;
    /// See [`Rule::hit_many`].
    fn hit_many<'a>(&self, calls: impl IntoIterator<Item = impl Into<Call<'a>>>) -> Vec<Decision>;
    /// See [`Rule::wait`].
    fn wait<'a>(&self, call: impl Into<Call<'a>>, cost: u64, timeout: Option<Duration>) -> Decision;
    /// See [`Rule::wait_permit`].
    fn wait_permit<'a>(&self, call: impl Into<Call<'a>>, timeout: Option<Duration>) -> Permit;
    /// See [`Rule::wait_reservation`].
    fn wait_reservation<'a>(
        &self, call: impl Into<Call<'a>>, estimate: u64, timeout: Option<Duration>
    ) -> Reservation;
    /// See [`Rule::spend`].
    fn spend<'a>(&self, call: impl Into<Call<'a>>, amount: u64) -> Budget;
    /// See [`Rule::budget`].
    fn budget<'a>(&self, call: impl Into<Call<'a>>) -> Budget;
    /// See [`Rule::is_limited`].
    fn is_limited<'a>(&self, call: impl Into<Call<'a>>) -> bool;
    /// See [`Rule::stats`].
    fn stats<'a>(&self, call: impl Into<Call<'a>>) -> Option<Stats>;
    /// See [`Rule::reset`].
    fn reset<'a>(&self, call: impl Into<Call<'a>>) -> ();
    /// See [`Rule::reset_all`].
    fn reset_all(&self) -> ();
    /// See [`Rule::prune`].
    fn prune(&self) -> usize;
    /// See [`Rule::len`].
    fn len(&self) -> usize;
    /// See [`Rule::is_empty`].
    fn is_empty(&self) -> bool;
    /// See [`Rule::has_permits`].
    fn has_permits(&self) -> bool;
    /// See [`Rule::limit_names`].
    fn limit_names(&self) -> Vec<String>;
    /// See [`Rule::set_override`].
    fn set_override(&self, target: impl Into<Target>, limits: LimitPatches) -> u64;
    /// See [`Rule::clear_override`].
    fn clear_override(&self, target: impl Into<Target>) -> u64;
    /// See [`Rule::overrides`].
    fn overrides(&self) -> Vec<(Target, LimitPatches)>;
    /// See [`Rule::set_default`].
    fn set_default(&self, limits: LimitPatches) -> u64;
    /// See [`Rule::add_exempt`].
    fn add_exempt(&self, matches: Match) -> u64;
    /// See [`Rule::remove_exempt`].
    fn remove_exempt(&self, matches: &Match) -> u64;
    /// See [`Rule::set_exempts`].
    fn set_exempts(&self, matches: Vec<Match>) -> u64;
    /// See [`Rule::exempts`].
    fn exempts(&self) -> Vec<Match>;
    /// See [`Rule::set_mode`].
    fn set_mode(&self, mode: Mode) -> u64;
    /// See [`Rule::clear_mode`].
    fn clear_mode(&self) -> u64;
    /// See [`Rule::block`].
    fn block<'a>(&self, call: impl Into<Call<'a>>, options: &ChangeOptions) -> u64;
    /// See [`Rule::unblock`].
    fn unblock<'a>(&self, call: impl Into<Call<'a>>) -> bool;
    /// See [`Rule::blocks`].
    fn blocks(&self) -> Vec<BlockedKey>;
}

impl Limiter {
    /// Looks at the tables of a folder, one by one, while others may be using them. Nothing is
    /// changed, and no policy is needed.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use tidegate::Limiter;
    ///
    /// let folder = std::env::temp_dir().join(format!("tidegate-inspect-{}", std::process::id()));
    /// let builder = Limiter::builder().limits("1/h").capacity(10);
    /// let limiter = builder.store(format!("file:{}", folder.display())).build().unwrap();
    /// (0..3).for_each(|_| drop(limiter.allow("alice").unwrap()));
    /// limiter.sync().unwrap();
    /// let seen = Limiter::inspect(&folder).unwrap().remove(0);
    /// assert_eq!((seen.rule.as_str(), seen.keys), ("default", 1));
    /// assert_eq!(seen.top_offenders[0].key, ["alice"]);
    /// std::fs::remove_dir_all(folder).unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the folder can't be read or is another user's (root may look at any), or a table in it is
    /// not sound; and where there are no file stores: they need Linux.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Vec<crate::Inspected>, Error> {
        #[cfg(target_os = "linux")]
        return crate::store::inspect::inspect(path.as_ref());
        #[cfg(not(target_os = "linux"))]
        Err(crate::store::open::needs_linux())
    }
}
