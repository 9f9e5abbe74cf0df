//! Who stated what a call is judged by: the policy, a run-time change, or the call.

use crate::compiled::matching::{Matcher, Subject};
use crate::config::limit::{LimitPatch, LimitPatches};
use crate::config::policy::{Match, When};
use crate::snapshot::{Layers, Snapshot};
use crate::store::runtime::{Note, Target};

/// Who stated what a call is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Rule,
    Default,
    When(usize),
    Override,
    OverrideByMatch,
    /// What was set at run time and is no limit.
    Change,
    Call,
}

impl Source {
    pub(crate) fn text(self) -> String {
        match self {
            Source::Rule => "rule".to_string(),
            Source::Default => "default".to_string(),
            Source::When(index) => format!("when[{index}]"),
            Source::Override | Source::OverrideByMatch => "override".to_string(),
            Source::Change => "change".to_string(),
            Source::Call => "call".to_string(),
        }
    }
}

impl Snapshot {
    /// What each layer changes of the limits, the weakest first.
    fn patches(&self, layers: Layers) -> impl Iterator<Item = (Source, &LimitPatches)> {
        let when = layers.when.checked_sub(1);
        let by_match = layers.by_match.checked_sub(1).map(|at| &self.by_match[at]);
        let by_key = layers.by_key.checked_sub(1).map(|at| &self.key_layers[at]);
        let when = when.map(|at| (Source::When(at), &self.config.when[at].limits));
        let by_match = by_match.map(|(_, limits)| (Source::OverrideByMatch, limits));
        let by_key = by_key.map(|limits| (Source::Override, limits));
        [(Source::Default, &self.default)].into_iter().chain(when).chain(by_match).chain(by_key)
    }

    /// Who stated a field of a limit last; nobody, if it is not stated.
    fn source<T>(
        &self,
        layers: Layers,
        index: usize,
        own: Option<T>,
        field: impl Fn(&LimitPatch) -> Option<T>,
    ) -> Option<Source> {
        let name = &self.config.limits[index].name;
        let changed = self.patches(layers).filter(|(_, limits)| {
            limits.iter().any(|(other, patch)| other == name && field(patch).is_some())
        });
        changed.last().map(|(source, _)| source).or(own.map(|_| Source::Rule))
    }

    /// Who stated the size of a limit; `by_call` if the call has a `max`, which an unwritten burst
    /// follows.
    pub(crate) fn size_source(&self, layers: Layers, index: usize, by_call: bool) -> Source {
        let limit = &self.config.limits[index];
        let burst = self.source(layers, index, limit.burst, |patch| patch.burst);
        let max = || self.source(layers, index, Some(limit.max), |patch| patch.max);
        burst.or_else(|| if by_call { Some(Source::Call) } else { max() }).unwrap_or(Source::Rule)
    }

    /// Who stated the cooldown of a limit.
    pub(crate) fn cooldown_source(&self, layers: Layers, index: usize) -> Source {
        let own = self.config.limits[index].cooldown;
        let source = self.source(layers, index, own, |patch| patch.cooldown);
        let of_rule = || self.when_source(layers, |when| when.cooldown.is_some());
        source.unwrap_or_else(of_rule)
    }

    /// Who stated the mode.
    pub(crate) fn mode_source(&self, layers: Layers) -> Source {
        match self.mode {
            Some(_) => Source::Change,
            None => self.when_source(layers, |when| when.mode.is_some()),
        }
    }

    /// What is noted of a run-time change that a call is judged by. For who asks why: the changes
    /// are searched.
    pub(crate) fn note_of(
        &self,
        source: Source,
        layers: Layers,
        subject: &Subject<'_>,
    ) -> Option<Note> {
        let runtime = self.changes();
        match source {
            Source::Default => Some(runtime.default.note),
            Source::Change => runtime.mode.map(|mode| mode.note),
            Source::Override => {
                let key = Target::Key(subject.parts().iter().map(|part| part.to_vec()).collect());
                runtime.override_for(&key).map(|one| one.note.clone())
            }
            Source::OverrideByMatch => {
                let matcher = &self.by_match.get(layers.by_match.checked_sub(1)?)?.0;
                let is_it = |target: &Target| match target {
                    Target::Match(m) => {
                        Matcher::new(m, &self.config.key).ok().as_ref() == Some(matcher)
                    }
                    Target::Key(_) => false,
                };
                let found = runtime.overrides.into_iter().find(|one| is_it(&one.what.0));
                found.map(|one| one.note)
            }
            Source::Rule | Source::When(_) | Source::Call => None,
        }
    }

    fn when_source(&self, layers: Layers, states: impl Fn(&When) -> bool) -> Source {
        let when = layers.when.checked_sub(1).filter(|&at| states(&self.config.when[at]));
        when.map_or(Source::Rule, Source::When)
    }

    /// What is noted of an exemption that was made at run time.
    pub(crate) fn exempt_note(&self, matches: &Match) -> Option<Note> {
        let runtime = self.changes();
        let added = runtime.added.into_iter().find(|one| one.what == *matches);
        let all = runtime.exempts.filter(|all| all.what.contains(matches));
        added.map(|one| one.note).or(all.map(|all| all.note))
    }
}
