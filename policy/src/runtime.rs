//! What is changed while a limiter is at work: overrides, exemptions, and the default limits.

use crate::config::Match;
use crate::limit::LimitPatches;

/// Whom an override is for.
///
/// ```
/// use tidegate::{Limiter, LimitPatch, Match, Target};
///
/// let limiter = Limiter::new("20/min").unwrap();
/// let sixty = vec![("20/min".to_string(), LimitPatch::max(60))];
/// limiter.set_override(Target::key("alice"), sixty.clone()).unwrap();
/// limiter.set_override(Target::Match(Match::new([("role", "staff")])), sixty).unwrap();
/// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(60));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// One key, by all its parts.
    Key(Vec<Vec<u8>>),
    /// All calls that match.
    Match(Match),
}

impl Target {
    /// One key.
    pub fn key<'a>(key: impl Into<crate::Key<'a>>) -> Target {
        let key = key.into();
        Target::Key((0..key.len().min(crate::MOST_PARTS)).map(|i| key.part(i).to_vec()).collect())
    }
}

impl From<Match> for Target {
    fn from(matches: Match) -> Target {
        Target::Match(matches)
    }
}

/// What stands changed; the rest is as the policy has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runtime {
    pub(crate) overrides: Vec<(Target, LimitPatches)>,
    pub(crate) default: LimitPatches,
    /// In place of the policy's exemptions.
    pub(crate) exempts: Option<Vec<Match>>,
    pub(crate) added: Vec<Match>,
    pub(crate) removed: Vec<Match>,
}

impl Runtime {
    pub(crate) fn set_override(&mut self, target: Target, limits: LimitPatches) {
        match self.overrides.iter_mut().find(|(other, _)| *other == target) {
            Some((_, old)) => *old = limits,
            None => self.overrides.push((target, limits)),
        }
    }

    /// False if there was none.
    pub(crate) fn clear_override(&mut self, target: &Target) -> bool {
        let before = self.overrides.len();
        self.overrides.retain(|(other, _)| other != target);
        self.overrides.len() < before
    }

    /// The exemptions in force, given the policy's own.
    pub(crate) fn exempts(&self, policy: &[Match]) -> Vec<Match> {
        let own = self.exempts.as_deref().unwrap_or(policy);
        own.iter().chain(&self.added).filter(|m| !self.removed.contains(m)).cloned().collect()
    }

    pub(crate) fn add_exempt(&mut self, matches: Match, policy: &[Match]) {
        self.removed.retain(|other| *other != matches);
        if !self.exempts(policy).contains(&matches) {
            self.added.push(matches);
        }
    }

    /// False if it was not in force.
    pub(crate) fn remove_exempt(&mut self, matches: &Match, policy: &[Match]) -> bool {
        let was = self.exempts(policy).contains(matches);
        self.added.retain(|other| other != matches);
        if self.exempts(policy).contains(matches) {
            self.removed.push(matches.clone());
        }
        was
    }

    pub(crate) fn set_exempts(&mut self, matches: Vec<Match>) {
        (self.exempts, self.added, self.removed) = (Some(matches), Vec::new(), Vec::new());
    }
}
