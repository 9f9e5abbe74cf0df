//! What is changed of a rule at run time: overrides, exemptions, defaults.

use crate::config::Match;
use crate::error::{Code, Error, Problem};
use crate::limit::{LimitPatch, LimitPatches};
use crate::rule::Rule;
use crate::runtime::Target;
use crate::snapshot::Snapshot;

impl Rule {
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
    /// For limits that the rule does not have, another algorithm or scope than a limit's own, numbers
    /// that can't be had, and a `max` above the rule's `ceiling`.
    pub fn set_override(
        &self,
        target: impl Into<Target>,
        limits: LimitPatches,
    ) -> Result<(), Error> {
        let (snapshot, target) = (self.snapshot()?, target.into());
        check_target(&snapshot, &target)?;
        let limits = checked(&snapshot, limits)?;
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
        Ok(self.snapshot()?.changes().overrides)
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
        let limits = checked(&snapshot, limits)?;
        let tables = &snapshot.tables;
        self.change(
            &snapshot,
            |runtime| {
                runtime.default = limits;
                Ok(())
            },
            |next| {
                if !next.refused_default.is_empty() {
                    return Err(next.refused_default.clone());
                }
                if next.base.has_penalties() {
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
        snapshot.check_match(&matches).map_err(Error::policy)?;
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
        matches.iter().try_for_each(|one| snapshot.check_match(one)).map_err(Error::policy)?;
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
        Ok(snapshot.tables.newest_runtime().exempts(&snapshot.config.exempt))
    }
}

impl Rule {
    /// Stored changes that this policy can't apply, and why.
    pub(crate) fn ignored_changes(&self) -> Result<Vec<Problem>, Error> {
        let snapshot = self.snapshot()?;
        Ok(snapshot.ignored(&snapshot.tables.newest_runtime()))
    }
}

/// A key of other parts than the rule's is a wrong key; a match is part of the policy.
fn check_target(snapshot: &Snapshot, target: &Target) -> Result<(), Error> {
    snapshot.check_target(target).map_err(|problems| match (target, &problems[..]) {
        (Target::Key(_), [problem]) => Error::new(Code::Key, &*problem.message),
        _ => Error::policy(problems),
    })
}

/// What is to change, as a store keeps it, if the rule has such limits, and they are by the algorithms
/// and scopes stated.
fn checked(snapshot: &Snapshot, limits: LimitPatches) -> Result<LimitPatches, Error> {
    let (key, plan) = (&snapshot.config.key, snapshot.own_plan());
    let problems = crate::build::check_patches("limits", &limits, &plan, key);
    if !problems.is_empty() {
        return Err(Error::policy(problems));
    }
    let stored = |(name, patch): (String, LimitPatch)| {
        let index = plan.names.iter().position(|known| *known == name);
        (index.map_or(name, |index| plan.stored_name(index)), patch.changes())
    };
    Ok(limits.into_iter().map(stored).collect())
}
