//! What is changed of a rule at run time: overrides, exemptions, defaults, the mode, blocks.

use std::time::Duration;

use serde_json::Value;

use crate::config::limit::{LimitPatch, LimitPatches};
use crate::config::policy::{Match, Mode};
use crate::error::{Code, Error, Problem};
use crate::key::{Call, Parts};
use crate::rule::Rule;
use crate::snapshot::Snapshot;
use crate::store::runtime::{Note, Runtime, Span, Target, mode_name, part_value};
use crate::store::trail::{Change, Changes};
use crate::time::{ms, nanos};

/// For how long a change is made, by whom, and why.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{ChangeOptions, Mode};
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let options = ChangeOptions::default()
///     .for_(Duration::from_secs(3600))
///     .by("ops")
///     .reason("a new limit is tried");
/// assert_eq!(limiter.changing(options).unwrap().set_mode(Mode::Shadow).unwrap(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeOptions {
    /// After this the change ends by itself, and what was there before it is not restored. None: it
    /// stands until it is taken back.
    pub for_: Option<Duration>,
    /// Who makes it; at most 200 bytes.
    pub by: Option<String>,
    /// Why; at most 1,000 bytes.
    pub reason: Option<String>,
}

/// The shortest and the longest time for which a change can be made.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(36_600 * 86_400);

/// Bytes of what a trail tells of before and after, each; of more it tells how many they are.
const MOST_TOLD: usize = 32 << 10;

impl ChangeOptions {
    /// With an end: after this time.
    #[must_use]
    pub fn for_(self, time: impl Into<Option<Duration>>) -> ChangeOptions {
        ChangeOptions { for_: time.into(), ..self }
    }
    /// With who makes it.
    #[must_use]
    pub fn by(self, by: impl Into<String>) -> ChangeOptions {
        ChangeOptions { by: Some(by.into()), ..self }
    }
    /// With why it is made.
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> ChangeOptions {
        ChangeOptions { reason: Some(reason.into()), ..self }
    }

    fn check(&self) -> Result<(), Error> {
        let range = |message: String| Err(Error::new(Code::Range, message));
        if self.for_.is_some_and(|time| !(SHORTEST..=LONGEST).contains(&time)) {
            return range("for_: a change is made for 1 ms to 36,600 days".to_string());
        }
        for (name, text, most) in [("by", &self.by, 200), ("reason", &self.reason, 1000)] {
            if text.as_ref().is_some_and(|text| text.len() > most) {
                return range(format!("{name}: it has more than {most} bytes"));
            }
        }
        Ok(())
    }

    /// For what takes something back, which has no end.
    fn check_endless(&self, operation: &str) -> Result<(), Error> {
        match self.for_ {
            None => Ok(()),
            Some(_) => {
                let message = format!("for_: {operation} has no end; give it to what is set anew");
                Err(Error::new(Code::Operation, message))
            }
        }
    }

    fn note(&self, now: u64) -> Note {
        let span = self.for_.map(|length| Span { since: now, length: nanos(length) });
        Note { span, by: self.by.clone(), reason: self.reason.clone() }
    }
}

/// A key that is blocked.
///
/// ```
/// use tidegate::ChangeOptions;
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// limiter.block("mallory", &ChangeOptions::default()).unwrap();
/// let blocked = limiter.blocks().unwrap().remove(0);
/// assert_eq!((blocked.key, blocked.until), (vec![b"mallory".to_vec()], None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedKey {
    /// The parts of the key.
    pub key: Vec<Vec<u8>>,
    /// When it ends, since the start of 1970; none if it does not.
    pub until: Option<Duration>,
    /// Who blocked it.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl BlockedKey {
    pub(crate) fn new(key: Vec<Vec<u8>>, note: &Note, snapshot: &Snapshot, now: u64) -> BlockedKey {
        let wall = snapshot.labels.dates.wall(now);
        let until = note.span.map(|span| wall.saturating_add(Duration::from_nanos(span.left(now))));
        BlockedKey { key, until, by: note.by.clone(), reason: note.reason.clone() }
    }

    /// As a map, for surfaces that speak JSON; `until` in milliseconds.
    pub fn to_value(&self) -> Value {
        serde_json::json!({
            "key": self.key.iter().map(part_value).collect::<Vec<_>>(),
            "until_ms": self.until.map(ms),
            "by": self.by,
            "reason": self.reason,
        })
    }
}

/// A rule that is changed with [`ChangeOptions`]: see [`Rule::changing`].
#[derive(Debug)]
pub struct Changing<'r> {
    rule: &'r Rule,
    options: ChangeOptions,
}

/// What is told of a change in the trail, beside what all have.
struct TrailEntry {
    op: &'static str,
    target: Option<Target>,
    before: Value,
    after: Value,
}

impl Changing<'_> {
    /// Makes a change that is told of; none is made where nothing is told.
    fn change(
        &self,
        snapshot: &Snapshot,
        change: impl FnOnce(&mut Runtime, Note) -> Result<Option<TrailEntry>, Error>,
    ) -> Result<u64, Error> {
        let options = &self.options;
        let brief = |value: Value| match value.to_string().len() {
            0..=MOST_TOLD => value,
            _ => serde_json::json!({ "bytes": value.to_string().len() }),
        };
        snapshot.tables.change(|runtime, now| {
            let Some(told) = change(runtime, options.note(now))? else { return Ok(None) };
            let at = snapshot.tables.clock().wall();
            Ok(Some(Change {
                number: 0,
                at,
                rule: snapshot.labels.rule.clone(),
                op: told.op.to_string(),
                target: told.target,
                before: brief(told.before),
                after: brief(told.after),
                until: options.for_.map(|time| at.saturating_add(time)),
                by: options.by.clone(),
                reason: options.reason.clone(),
            }))
        })
    }

    /// As [`Rule::set_override`].
    ///
    /// # Errors
    /// As [`Rule::set_override`].
    pub fn set_override(
        &self,
        target: impl Into<Target>,
        limits: LimitPatches,
    ) -> Result<u64, Error> {
        let (snapshot, target) = (self.rule.snapshot()?, target.into());
        check_target(&snapshot, &target)?;
        let after = limits_value(&limits);
        let limits = checked(&snapshot, limits)?;
        self.change(&snapshot, |runtime, note| {
            let before = stored_value(&snapshot, runtime.override_for(&target).map(|o| &o.what.1));
            runtime.set_override(target.clone(), limits, note);
            let next = snapshot.with_runtime(runtime)?;
            if next.check_override(&target).map_err(Error::policy)? {
                snapshot.tables.make_penalties()?;
            }
            Ok(Some(TrailEntry { op: "set_override", target: Some(target), before, after }))
        })
    }

    /// As [`Rule::clear_override`].
    ///
    /// # Errors
    /// As [`Rule::clear_override`]; and if the options state an end.
    pub fn clear_override(&self, target: impl Into<Target>) -> Result<u64, Error> {
        self.options.check_endless("clear_override")?;
        let (snapshot, target) = (self.rule.snapshot()?, target.into());
        self.change(&snapshot, |runtime, _| {
            let Some(old) = runtime.override_for(&target) else { return Ok(None) };
            let before = stored_value(&snapshot, Some(&old.what.1));
            runtime.clear_override(&target);
            let (op, after) = ("clear_override", Value::Null);
            Ok(Some(TrailEntry { op, target: Some(target), before, after }))
        })
    }

    /// As [`Rule::set_default`].
    ///
    /// # Errors
    /// As [`Rule::set_default`].
    pub fn set_default(&self, limits: LimitPatches) -> Result<u64, Error> {
        let snapshot = self.rule.snapshot()?;
        let after = limits_value(&limits);
        let limits = checked(&snapshot, limits)?;
        self.change(&snapshot, |runtime, note| {
            let before = stored_value(&snapshot, Some(&runtime.default.what));
            // What is taken back does not end.
            let note = if limits.is_empty() { Note { span: None, ..note } } else { note };
            (runtime.default.what, runtime.default.note) = (limits, note);
            let next = snapshot.with_runtime(runtime)?;
            if !next.refused_default.is_empty() {
                return Err(Error::policy(next.refused_default.clone()));
            }
            if next.base.has_penalties() {
                snapshot.tables.make_penalties()?;
            }
            Ok(Some(TrailEntry { op: "set_default", target: None, before, after }))
        })
    }

    /// As [`Rule::add_exempt`].
    ///
    /// # Errors
    /// As [`Rule::add_exempt`].
    pub fn add_exempt(&self, matches: Match) -> Result<u64, Error> {
        let snapshot = self.rule.snapshot()?;
        snapshot.check_match(&matches).map_err(Error::policy)?;
        let policy = &snapshot.config.exempt;
        self.change(&snapshot, |runtime, note| {
            let before = runtime.exempts(policy).contains(&matches).into();
            runtime.add_exempt(matches.clone(), note);
            let target = Some(Target::Match(matches));
            Ok(Some(TrailEntry { op: "add_exempt", target, before, after: true.into() }))
        })
    }

    /// As [`Rule::remove_exempt`].
    ///
    /// # Errors
    /// As [`Rule::remove_exempt`]; and if the options state an end.
    pub fn remove_exempt(&self, matches: &Match) -> Result<u64, Error> {
        self.options.check_endless("remove_exempt")?;
        let snapshot = self.rule.snapshot()?;
        let policy = &snapshot.config.exempt;
        self.change(&snapshot, |runtime, _| {
            if !runtime.exempts(policy).contains(matches) {
                return Ok(None);
            }
            runtime.remove_exempt(matches, policy);
            let (target, before, after) = (matches.clone().into(), true.into(), false.into());
            Ok(Some(TrailEntry { op: "remove_exempt", target: Some(target), before, after }))
        })
    }

    /// As [`Rule::set_exempts`].
    ///
    /// # Errors
    /// As [`Rule::set_exempts`].
    pub fn set_exempts(&self, matches: Vec<Match>) -> Result<u64, Error> {
        let snapshot = self.rule.snapshot()?;
        matches.iter().try_for_each(|one| snapshot.check_match(one)).map_err(Error::policy)?;
        let value = |all: &[Match]| all.iter().map(Match::to_value).collect::<Value>();
        self.change(&snapshot, |runtime, note| {
            let before = value(&runtime.exempts(&snapshot.config.exempt));
            let after = value(&matches);
            runtime.set_exempts(matches, note);
            Ok(Some(TrailEntry { op: "set_exempts", target: None, before, after }))
        })
    }

    /// As [`Rule::set_mode`].
    ///
    /// # Errors
    /// As [`Rule::set_mode`].
    pub fn set_mode(&self, mode: Mode) -> Result<u64, Error> {
        self.change_mode("set_mode", Some(mode))
    }

    /// As [`Rule::clear_mode`].
    ///
    /// # Errors
    /// As [`Rule::clear_mode`]; and if the options state an end.
    pub fn clear_mode(&self) -> Result<u64, Error> {
        self.options.check_endless("clear_mode")?;
        self.change_mode("clear_mode", None)
    }

    fn change_mode(&self, op: &'static str, mode: Option<Mode>) -> Result<u64, Error> {
        let name = |mode: Option<Mode>| mode.map(mode_name).into();
        let snapshot = self.rule.snapshot()?;
        self.change(&snapshot, |runtime, note| {
            let before = runtime.mode.as_ref().map(|mode| mode.what);
            if before.is_none() && mode.is_none() {
                return Ok(None);
            }
            runtime.set_mode(mode, note);
            Ok(Some(TrailEntry { op, target: None, before: name(before), after: name(mode) }))
        })
    }

    /// As [`Rule::unblock`], and whether it was blocked.
    ///
    /// # Errors
    /// As [`Rule::unblock`]; and if the options state an end.
    pub fn unblock<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, Error> {
        self.options.check_endless("unblock")?;
        let (snapshot, call) = (self.rule.snapshot()?, call.into());
        let key = key_of(&snapshot, &call)?;
        let number = self.change(&snapshot, |runtime, _| {
            if runtime.block_of(&key).is_none() {
                return Ok(None);
            }
            runtime.unblock(&key);
            let (target, before, after) = (Target::Key(key), true.into(), false.into());
            Ok(Some(TrailEntry { op: "unblock", target: Some(target), before, after }))
        })?;
        Ok(number > 0)
    }

    /// As [`Rule::block`].
    ///
    /// # Errors
    /// As [`Rule::block`].
    pub fn block<'a>(&self, call: impl Into<Call<'a>>) -> Result<u64, Error> {
        let (snapshot, call) = (self.rule.snapshot()?, call.into());
        let key = key_of(&snapshot, &call)?;
        let most = snapshot.tables.capacity;
        self.change(&snapshot, |runtime, note| {
            let before = runtime.block_of(&key).is_some();
            if !before && runtime.blocks.len() >= most {
                let message = format!(
                    "rule {:?} has no room for another blocked key: {most} are blocked, as many \
                    as its \
                     capacity; unblock some, or give the rule a larger capacity",
                    snapshot.labels.rule
                );
                return Err(Error::new(Code::Store, message));
            }
            runtime.block(key.clone(), note);
            let target = Some(Target::Key(key));
            Ok(Some(TrailEntry { op: "block", target, before: before.into(), after: true.into() }))
        })
    }
}

/// Run-time changes act on the next hit in every process that shares the store. Each gives the
/// number of the change, by which [`Rule::changes`] tells of it; 0 if there was nothing to change.
impl Rule {
    /// To change something for a time, and to say who does and why.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{ChangeOptions, LimitPatch, Target};
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let hour = ChangeOptions::default().for_(Duration::from_secs(3600));
    /// let nine = vec![("3/min".into(), LimitPatch::max(9))];
    /// limiter.changing(hour).unwrap().set_override(Target::key("alice"), nine).unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(9));
    /// ```
    ///
    /// # Errors
    /// For a time that is too short or too long, and for texts that are too long.
    pub fn changing(&self, options: ChangeOptions) -> Result<Changing<'_>, Error> {
        options.check()?;
        Ok(Changing { rule: self, options })
    }

    fn without_note(&self) -> Changing<'_> {
        Changing { rule: self, options: ChangeOptions::default() }
    }

    /// Judges a key, or the calls that match, by other limits from the next hit on. What was set
    /// for the same target before is replaced.
    ///
    /// ```
    /// use tidegate::{LimitPatch, Target};
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let limits = vec![("3/min".into(), LimitPatch::max(9))];
    /// limiter.set_override(Target::key("alice"), limits).unwrap();
    /// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(9));
    /// ```
    ///
    /// # Errors
    /// For limits that the rule does not have, another algorithm or scope than a limit's own,
    /// values that can't be had, and a `max` above the rule's `ceiling`.
    pub fn set_override(
        &self,
        target: impl Into<Target>,
        limits: LimitPatches,
    ) -> Result<u64, Error> {
        self.without_note().set_override(target, limits)
    }

    /// Takes an override back. 0 if there was none.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.clear_override(tidegate::Target::key("alice")).unwrap(), 0);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn clear_override(&self, target: impl Into<Target>) -> Result<u64, Error> {
        self.without_note().clear_override(target)
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
        let overrides = self.snapshot()?.changes().overrides;
        Ok(overrides.into_iter().map(|one| one.what).collect())
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
    pub fn set_default(&self, limits: LimitPatches) -> Result<u64, Error> {
        self.without_note().set_default(limits)
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
    pub fn add_exempt(&self, matches: Match) -> Result<u64, Error> {
        self.without_note().add_exempt(matches)
    }

    /// Takes an exemption back, the policy's own too. 0 if it was not in force.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert_eq!(limiter.remove_exempt(&tidegate::Match::new([("role", "admin")])).unwrap(), 0);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn remove_exempt(&self, matches: &Match) -> Result<u64, Error> {
        self.without_note().remove_exempt(matches)
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
    pub fn set_exempts(&self, matches: Vec<Match>) -> Result<u64, Error> {
        self.without_note().set_exempts(matches)
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
        let (runtime, _) = snapshot.tables.in_force(&snapshot.tables.newest_runtime());
        Ok(runtime.exempts(&snapshot.config.exempt))
    }

    /// Judges in this mode from the next hit on, whatever the policy and its `when` say.
    ///
    /// ```
    /// use tidegate::Mode;
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// limiter.set_mode(Mode::Off).unwrap();
    /// assert_eq!(limiter.hit("alice", 9).unwrap().reason(), Some("off"));
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn set_mode(&self, mode: Mode) -> Result<u64, Error> {
        self.without_note().set_mode(mode)
    }

    /// Takes [`Rule::set_mode`] back. 0 if none was set.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// limiter.set_mode(tidegate::Mode::Off).unwrap();
    /// limiter.clear_mode().unwrap();
    /// assert!(limiter.allow("alice").unwrap() && !limiter.allow("alice").unwrap());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn clear_mode(&self) -> Result<u64, Error> {
        self.without_note().clear_mode()
    }

    /// Refuses a key by hand, with reason `blocked`: for a ban, or as long as an upstream's
    /// `Retry-After` says. What was said of the key before is replaced. The block is kept with the
    /// store; it counts for no cooldown, backoff or alert. [`Rule::record`], [`Rule::spend`] and
    /// [`Permit::renew`](crate::Permit::renew) work, and exempt keys pass.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::ChangeOptions;
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let minute = ChangeOptions::default().for_(Duration::from_secs(60));
    /// limiter.block("mallory", &minute).unwrap();
    /// assert_eq!(limiter.hit("mallory", 1).unwrap().reason(), Some("blocked"));
    /// ```
    ///
    /// # Errors
    /// For a key that is not the rule's; and if as many keys are blocked as the rule has room for.
    pub fn block<'a>(
        &self,
        call: impl Into<Call<'a>>,
        options: &ChangeOptions,
    ) -> Result<u64, Error> {
        self.changing(options.clone())?.block(call)
    }

    /// Ends a block. False if the key was not blocked.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(!limiter.unblock("mallory").unwrap());
    /// ```
    ///
    /// # Errors
    /// For a key that is not the rule's.
    pub fn unblock<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, Error> {
        self.without_note().unblock(call)
    }

    /// Ends all blocks, by one change: the trail tells how many there were.
    pub(crate) fn unblock_all(&self) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        if snapshot.tables.newest_runtime().blocks.is_empty() {
            return Ok(());
        }
        let number = self.without_note().change(&snapshot, |runtime, _| {
            let before = runtime.blocks.len();
            runtime.blocks.clear();
            let told =
                TrailEntry { op: "unblock", target: None, before: before.into(), after: 0.into() };
            Ok((before > 0).then_some(told))
        });
        number.map(drop)
    }

    /// The keys that are blocked.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// assert!(limiter.blocks().unwrap().is_empty());
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn blocks(&self) -> Result<Vec<BlockedKey>, Error> {
        let snapshot = self.snapshot()?;
        let now = snapshot.tables.clock().now();
        let (runtime, _) = snapshot.tables.in_force(&snapshot.tables.newest_runtime());
        let blocks = runtime.blocks.iter();
        Ok(blocks.map(|one| BlockedKey::new(one.what.clone(), &one.note, &snapshot, now)).collect())
    }

    /// The run-time changes of this rule with a number above `since`: at least those of the last
    /// 256 that its store has seen.
    ///
    /// ```
    /// use tidegate::Mode;
    /// let limiter = tidegate::Limiter::new("3/min").unwrap();
    /// let number = limiter.rule("default").unwrap().set_mode(Mode::Off).unwrap();
    /// let seen = limiter.rule("default").unwrap().changes(0).unwrap();
    /// assert_eq!((seen.changes[0].number, seen.next, seen.missed), (number, number, 0));
    /// ```
    ///
    /// # Errors
    /// If the trail can't be read, or the limiter is closed.
    pub fn changes(&self, since: u64) -> Result<Changes, Error> {
        let name = self.snapshot()?.labels.rule.clone();
        let mut changes = self._limiter.changes_after(since)?;
        changes.changes.retain(|change| change.rule == name);
        Ok(changes)
    }
}

impl Rule {
    /// Stored changes that this policy can't apply, and why.
    pub(crate) fn ignored_changes(&self) -> Result<Vec<Problem>, Error> {
        let snapshot = self.snapshot()?;
        let (runtime, _) = snapshot.tables.in_force(&snapshot.tables.newest_runtime());
        Ok(snapshot.ignored(&runtime))
    }
}

/// A key of other parts than the rule's is a wrong key; a match is part of the policy.
fn check_target(snapshot: &Snapshot, target: &Target) -> Result<(), Error> {
    snapshot.check_target(target).map_err(|problems| match (target, &problems[..]) {
        (Target::Key(_), [problem]) => Error::new(Code::Key, &*problem.message),
        _ => Error::policy(problems),
    })
}

/// What is to change, as a store keeps it, if the rule has such limits, and they are by the
/// algorithms and scopes stated.
fn checked(snapshot: &Snapshot, limits: LimitPatches) -> Result<LimitPatches, Error> {
    let (key, plan) = (&snapshot.config.key, snapshot.own_plan());
    let problems = crate::compiled::validate::check_patches("limits", &limits, &plan, key);
    if !problems.is_empty() {
        return Err(Error::policy(problems));
    }
    let stored = |(name, patch): (String, LimitPatch)| {
        let index = plan.names.iter().position(|known| *known == name);
        (index.map_or(name, |index| plan.stored_name(index)), patch.changes())
    };
    Ok(limits.into_iter().map(stored).collect())
}

/// The whole key of a call.
fn key_of(snapshot: &Snapshot, call: &Call<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut room = Parts::default();
    let (subject, _) = snapshot.subject(call, &mut room)?;
    Ok(subject.parts().iter().map(|part| part.to_vec()).collect())
}

fn limits_value(limits: &LimitPatches) -> Value {
    limits.iter().map(|(name, patch)| (name.clone(), patch.to_value())).collect()
}

/// Limits as a store has them, by this policy's names; null for none.
fn stored_value(snapshot: &Snapshot, limits: Option<&LimitPatches>) -> Value {
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else { return Value::Null };
    let plan = snapshot.own_plan();
    let label = |name: &String| {
        let at = (0..plan.names.len()).find(|&index| plan.stored_name(index) == *name);
        at.map_or(name.clone(), |index| plan.names[index].clone())
    };
    limits.iter().map(|(name, patch)| (label(name), patch.to_value())).collect()
}
