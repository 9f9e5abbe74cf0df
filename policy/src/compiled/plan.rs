//! How a rule's limits lie in tables: those of one scope that count the same share a row.

use tidegate_core::Algorithm;

use crate::config::limit::{Counts, Limit, REASONS, algorithm_name};
use crate::config::policy::RuleConfig;
use crate::error::Problem;
use crate::key::MOST_PARTS;

/// The most limits of a rule.
pub(crate) const MOST_LIMITS: usize = 8;
/// The most scopes of a rule's limits; one whose limits count costs and hits is two.
pub(crate) const MOST_GROUPS: usize = 4;

/// Limits that are keyed alike and count the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Which parts of the key, in the key's order.
    pub(crate) scope: Vec<usize>,
    /// What is taken from them. (All windows of a row share one log, and so its weights.)
    pub(crate) counts: Counts,
    /// Which limits of the rule.
    pub(crate) limits: Vec<usize>,
}

/// The shape of a rule's state. It stays as it is while limits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) names: Vec<String>,
    /// For each limit whether its name is a label only, so that it is known by position.
    pub(crate) labelled: Vec<bool>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) groups: Vec<Group>,
    /// For each limit its group, and its place there.
    pub(crate) places: Vec<(usize, usize)>,
    /// For each limit the largest `max` that may be asked of it; nothing for those that need no
    /// room.
    pub(crate) ceilings: Vec<u64>,
    pub(crate) parts: usize,
    /// Which parts penalties are kept for.
    pub(crate) penalty_scope: Vec<usize>,
}

impl Plan {
    /// The plan of a rule, or all that is wrong with its shape.
    pub(crate) fn new(rule: &RuleConfig) -> Result<Plan, Vec<Problem>> {
        let mut problems = check_key(rule);
        problems.extend(check_names(&rule.limits));
        let mut groups: Vec<Group> = Vec::new();
        let mut places = Vec::new();
        for (index, limit) in rule.limits.iter().enumerate() {
            let path = || format!("limits.{}.scope", limit.name);
            let scope = scope_of(limit.scope.as_deref(), &rule.key, path, &mut problems);
            places.push(place_in(&mut groups, scope, limit.counts, index));
        }
        problems.extend(check_counts(&rule.limits));
        problems.extend(check_groups(&groups, rule));
        problems.extend(check_ceiling(rule));
        let path = || "penalty_scope".to_string();
        let penalty_scope = scope_of(rule.penalty_scope.as_deref(), &rule.key, path, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Plan {
            names: rule.limits.iter().map(|limit| limit.name.clone()).collect(),
            labelled: rule.limits.iter().map(|limit| limit.labelled).collect(),
            algorithms: rule.limits.iter().map(|limit| limit.algorithm).collect(),
            ceilings: rule.limits.iter().map(|limit| ceiling(limit, rule)).collect(),
            groups,
            places,
            parts: rule.key.len(),
            penalty_scope,
        })
    }

    /// A plan as a file describes it: a name (and whether it is a label), an algorithm, a scope
    /// with what it counts, and its room for each limit.
    pub(crate) fn described(
        parts: usize,
        (names, labelled): (Vec<String>, Vec<bool>),
        algorithms: Vec<Algorithm>,
        scopes: Vec<(Vec<usize>, Counts)>,
        ceilings: Vec<u64>,
        penalty_scope: Vec<usize>,
    ) -> Plan {
        let (mut groups, mut places) = (Vec::new(), Vec::new());
        for (index, (scope, counts)) in scopes.into_iter().enumerate() {
            places.push(place_in(&mut groups, scope, counts, index));
        }
        Plan { names, labelled, algorithms, groups, places, ceilings, parts, penalty_scope }
    }

    /// Whether state kept by `other` can be used by this one. (Roomier logs can't be grown.)
    pub(crate) fn keeps_state_of(&self, other: &Plan) -> bool {
        // Only logs need room: a bucket's `max` is a number like any other.
        let fits = |index| self.room(index) <= other.room(index);
        self.names.len() == other.names.len()
            && (0..self.names.len()).all(|index| self.is_same_limit(index, other))
            && self.algorithms == other.algorithms
            && self.groups == other.groups
            && self.parts == other.parts
            && self.penalty_scope == other.penalty_scope
            && (0..self.names.len()).all(fits)
    }

    /// Whether limit `index` of both is one: of one name, or without names of their own.
    pub(crate) fn is_same_limit(&self, index: usize, other: &Plan) -> bool {
        self.names[index] == other.names[index] || self.labelled[index] && other.labelled[index]
    }

    /// What a store calls limit `index`: its name or, where that is a label, its position among the
    /// labelled limits of the same algorithm and scope. No name begins as such a text does.
    pub(crate) fn stored_name(&self, index: usize) -> String {
        if !self.labelled[index] {
            return self.names[index].clone();
        }
        let (algorithm, scope) = (self.algorithms[index], self.scope(index));
        let alike = |&other: &usize| {
            self.labelled[other]
                && self.algorithms[other] == algorithm
                && self.scope(other) == scope
        };
        let position = (0..=index).filter(alike).count();
        format!("№{position} {} {scope:?}", algorithm_name(algorithm))
    }

    /// Which parts limit `index` is keyed by.
    pub(crate) fn scope(&self, index: usize) -> &[usize] {
        &self.groups[self.places[index].0].scope
    }

    /// How much limit `index` has room for; nothing for those that need none.
    pub(crate) fn room(&self, index: usize) -> Option<u64> {
        let has_ceiling = self.algorithms[index].has_ceiling();
        has_ceiling.then_some(self.ceilings[index])
    }

    /// What limit `index` counts.
    pub(crate) fn counts(&self, index: usize) -> Counts {
        self.groups[self.places[index].0].counts
    }

    pub(crate) fn is_whole(&self, scope: &[usize]) -> bool {
        scope.len() == self.parts
    }

    /// Whether limits are within the room that their logs have.
    pub(crate) fn check_limits(&self, limits: &[Limit]) -> Vec<Problem> {
        let beyond = |(limit, &ceiling): (&Limit, &u64)| {
            let has_ceiling = limit.algorithm.has_ceiling();
            // What no ceiling allows, the engine refuses.
            let most = tidegate_core::MOST_EXACT;
            (has_ceiling && limit.max > ceiling && limit.max <= most).then(|| Problem {
                path: format!("limits.{}.max", limit.name),
                message: format!(
                    "{} is above {ceiling}, the most that this {} has room for; state a larger \
                    `ceiling` in the rule",
                    limit.max,
                    algorithm_name(limit.algorithm)
                ),
            })
        };
        limits.iter().zip(&self.ceilings).filter_map(beyond).collect()
    }
}

/// Puts a limit into its group, and says where it is now.
fn place_in(
    groups: &mut Vec<Group>,
    scope: Vec<usize>,
    counts: Counts,
    index: usize,
) -> (usize, usize) {
    let known = groups.iter().position(|group| group.scope == scope && group.counts == counts);
    let at = known.unwrap_or_else(|| {
        groups.push(Group { scope, counts, limits: Vec::new() });
        groups.len() - 1
    });
    groups[at].limits.push(index);
    (at, groups[at].limits.len() - 1)
}

/// The largest `max` that a limit may come to have.
fn ceiling(limit: &Limit, rule: &RuleConfig) -> u64 {
    let stated = rule.when.iter().flat_map(|when| &when.limits);
    let changed = stated.filter(|(name, _)| *name == limit.name).filter_map(|(_, patch)| patch.max);
    // One that is too large is told of where it stands, in `when`.
    let changed = changed.map(|max| max.min(tidegate_core::MOST_EXACT));
    changed.chain([limit.max]).chain(rule.ceiling).max().unwrap_or(limit.max)
}

fn check_key(rule: &RuleConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    if rule.key.is_empty() || rule.key.len() > MOST_PARTS {
        let message = format!("a key has 1 to {MOST_PARTS} parts, not {}", rule.key.len());
        problems.push(Problem::new("key", message));
    }
    for (index, part) in rule.key.iter().enumerate() {
        if part.is_empty() {
            problems.push(Problem::new("key", "a part has no name"));
        }
        if rule.key[..index].contains(part) {
            problems.push(Problem::new("key", format!("{part:?} is there twice")));
        }
    }
    problems
}

fn check_names(limits: &[Limit]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if limits.is_empty() || limits.len() > MOST_LIMITS {
        let message = format!("a rule has 1 to {MOST_LIMITS} limits, not {}", limits.len());
        problems.push(Problem::new("limits", message));
    }
    for (index, limit) in limits.iter().enumerate() {
        let name = &limit.name;
        let path = format!("limits.{name}");
        if name.is_empty() || !name.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            problems.push(Problem::new(
                "limits",
                format!("{name:?}: a name is printable ASCII, and not empty"),
            ));
        }
        if REASONS.contains(&name.as_str()) {
            let message = "this name is a reason of its own in decisions; choose another";
            problems.push(Problem::new(&path, message));
        }
        if limits[..index].iter().any(|other| other.name == *name) {
            problems.push(Problem::new(
                &path,
                "there are two limits of this name; give one of them another",
            ));
        }
    }
    problems
}

/// The places of the named parts, in the key's order; all of them if none are named.
pub(crate) fn scope_of(
    stated: Option<&[String]>,
    key: &[String],
    path: impl Fn() -> String,
    problems: &mut Vec<Problem>,
) -> Vec<usize> {
    let Some(stated) = stated else {
        return (0..key.len()).collect();
    };
    for part in stated {
        if !key.contains(part) {
            let parts = key.join(", ");
            problems
                .push(Problem::new(path(), format!("{part:?} is no part of the key [{parts}]")));
        }
    }
    (0..key.len()).filter(|&index| stated.contains(&key[index])).collect()
}

fn check_ceiling(rule: &RuleConfig) -> Option<Problem> {
    let is_log = |limit: &&Limit| limit.algorithm.is_log();
    let largest = rule.limits.iter().filter(is_log).map(|limit| limit.max).max()?;
    let ceiling = rule.ceiling?;
    let most = tidegate_core::MOST_EXACT;
    let message = match ceiling {
        _ if ceiling > most => format!("{ceiling} is above {most}, the most that a window logs"),
        _ if ceiling < largest => {
            format!("{ceiling} is below {largest}, the largest max of the rule's windows")
        }
        _ => return None,
    };
    Some(Problem::new("ceiling", message))
}

fn check_counts(limits: &[Limit]) -> Vec<Problem> {
    let wrong = |limit: &&Limit| limit.algorithm.has_lease() && limit.counts == Counts::Hits;
    let problem = |limit: &Limit| {
        let path = format!("limits.{}.counts", limit.name);
        Problem::new(path, "a concurrent limit counts permits; leave `counts` out")
    };
    limits.iter().filter(wrong).map(problem).collect()
}

fn check_groups(groups: &[Group], rule: &RuleConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    if groups.len() > MOST_GROUPS {
        let apart = match groups.iter().any(|group| group.counts == Counts::Hits) {
            true => " (those of costs and of hits are two)",
            false => "",
        };
        let message =
            format!("there are {} scopes{apart}; a rule has at most {MOST_GROUPS}", groups.len());
        problems.push(Problem::new("limits", message));
    }
    for group in groups {
        let concurrent = |&&index: &&usize| rule.limits[index].algorithm.has_lease();
        if group.limits.iter().filter(concurrent).count() > 1 {
            let message = "one concurrent limit for each scope is enough: the smaller one";
            problems.push(Problem::new("limits", message));
        }
    }
    problems
}
