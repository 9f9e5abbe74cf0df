//! Checks a whole policy, and tells of everything that is wrong with it at once.

use std::sync::Arc;

use crate::notes::Spent;
use tidegate_core::Clock;

use crate::compiled::labels::{Dates, RuleLabels};
use crate::compiled::matching::Matcher;
use crate::compiled::plan::{Plan, scope_of};
use crate::compiled::variant::{Effective, Variant};
use crate::compiled::wanted::{ExistingTables, Wanted};
use crate::config::limit::{LimitPatch, LimitPatches, algorithm_name, counts_name, not_its_period};
use crate::config::policy::{DEFAULT_CAPACITY, LEAST_CAPACITY, Match, Policy, RuleConfig};
use crate::config::read::{NO_RULE, not_an_hour};
use crate::config::suggest::unknown;
use crate::error::{Code, Error, Problem};
use crate::key::not_an_attribute;

/// A rule that can be had.
pub(crate) struct Built {
    pub(crate) name: String,
    pub(crate) config: Arc<RuleConfig>,
    pub(crate) labels: Arc<RuleLabels>,
    pub(crate) wanted: Wanted,
    pub(crate) base: Variant,
}

/// All rules of a policy, or all its problems.
pub(crate) fn check(policy: &Policy, clock: &Clock) -> Result<Vec<Built>, Error> {
    check_beside(policy, clock, |_| None)
}

/// As [`check`], where a rule may have tables already, as `known` says.
pub(crate) fn check_beside(
    policy: &Policy,
    clock: &Clock,
    known: impl Fn(&Built) -> Option<ExistingTables>,
) -> Result<Vec<Built>, Error> {
    let (mut built, mut problems) = (Vec::new(), check_policy(policy));
    for (name, config) in &policy.rules {
        match check_rule(policy, name, config, clock) {
            Ok(rule) => built.push(rule),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(|p| under(&format!("rules.{name}"), p)))
            }
        }
    }
    if !problems.is_empty() {
        return Err(Error::policy(problems));
    }
    check_memory(policy, &mut built, known)?;
    Ok(built)
}

/// The same error, with paths from the rule on.
pub(crate) fn within_rule(error: Error, rule: &str) -> Error {
    if error.problems().is_empty() {
        return error;
    }
    let prefix = format!("rules.{rule}.");
    let short = |p: &Problem| Problem {
        path: p.path.strip_prefix(&prefix).unwrap_or(&p.path).to_string(),
        message: p.message.clone(),
    };
    Error::policy(error.problems().iter().map(short).collect())
}

fn under(path: &str, problem: Problem) -> Problem {
    let path = match problem.path.is_empty() {
        true => path.to_string(),
        false => format!("{path}.{}", problem.path),
    };
    Problem { path, ..problem }
}

const NO_GROUP: &str = "a store in memory has no folder that a group could share; \
     write `store: file:PATH`, or leave it out";
const NOTHING_TO_RECREATE: &str = "a store in memory has no tables to make anew; \
     write `store: file:PATH`, or leave it out";
const NO_ROOM: &str = "there must be room for one key at least";

pub(crate) fn is_in_memory(store: &str) -> bool {
    store.split(':').next() == Some("memory")
}

/// What is wrong with `recreate` beside a store in memory.
pub(crate) fn nothing_to_recreate() -> Problem {
    Problem::new("recreate", NOTHING_TO_RECREATE)
}

fn check_policy(policy: &Policy) -> Vec<Problem> {
    let mut problems = Vec::new();
    let names: Vec<&String> = policy.rules.iter().map(|(name, _)| name).collect();
    if names.is_empty() {
        problems.push(Problem::new("rules", NO_RULE));
    }
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            problems.push(Problem::new("rules", "there is a rule without a name"));
        }
        if names[..index].contains(name) {
            problems
                .push(Problem::new(format!("rules.{name}"), "there are two rules of this name"));
        }
    }
    if let Some(fallback) = policy.fallback.as_ref().filter(|name| !names.contains(name)) {
        problems.push(Problem::new("fallback", unknown("rule", fallback, &names)));
    }
    for (path, name) in [
        ("headers.limit", &policy.headers.limit),
        ("headers.remaining", &policy.headers.remaining),
        ("headers.reset", &policy.headers.reset),
    ] {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            problems.push(Problem::new(path, format!("{name:?} is not a header's name")));
        }
    }
    if policy.capacity == Some(0) {
        problems.push(Problem::new("capacity", NO_ROOM));
    }
    if policy.group && is_in_memory(&policy.store) {
        problems.push(Problem::new("group", NO_GROUP));
    }
    problems
}

fn check_rule(
    policy: &Policy,
    name: &str,
    config: &RuleConfig,
    clock: &Clock,
) -> Result<Built, Vec<Problem>> {
    let mut problems = check_options(config);
    let plan = match Plan::new(config) {
        Ok(plan) => plan,
        Err(wrong) => {
            problems.extend(wrong);
            return Err(problems);
        }
    };
    let labels = Arc::new(RuleLabels {
        rule: name.to_string(),
        limits: plan.names.clone(),
        headers: policy.headers.clone(),
        dates: Dates::new(clock),
    });
    let base = Variant::new(Effective::of(config), &plan, &labels);
    let whens = check_whens(config, &plan, &labels, base.is_err());
    let penalties = whens.as_ref().is_ok_and(|penalties| *penalties);
    problems.extend(whens.err().unwrap_or_default());
    let base = match base {
        Ok(base) if problems.is_empty() => base,
        Ok(_) => return Err(problems),
        Err(wrong) => {
            problems.extend(wrong);
            return Err(problems);
        }
    };
    // A file has room for all that a rule may come to ask for.
    let in_file = policy.store.starts_with("file:");
    let capacity = config.capacity.or(policy.capacity);
    let wanted = Wanted {
        penalties: in_file || penalties || base.has_penalties(),
        budgets: in_file || config.budget.is_some(),
        capacity: capacity.unwrap_or(DEFAULT_CAPACITY),
        capacity_stated: capacity.is_some(),
        in_file,
        on_full: config.on_full.unwrap_or(policy.on_full),
        plan,
    };
    if config.capacity == Some(0) {
        return Err(vec![Problem::new("capacity", NO_ROOM)]);
    }
    Ok(Built { name: name.to_string(), config: Arc::new(config.clone()), labels, wanted, base })
}

/// Checks every entry of `when`; says whether any of them has penalties.
fn check_whens(
    config: &RuleConfig,
    plan: &Plan,
    labels: &Arc<RuleLabels>,
    base_is_wrong: bool,
) -> Result<bool, Vec<Problem>> {
    let (mut penalties, mut problems) = (false, Vec::new());
    for (index, when) in config.when.iter().enumerate() {
        let path = format!("when[{index}]");
        let mut found = check_match(&format!("{path}.match"), &when.matches, &config.key);
        found.extend(check_patches(&format!("{path}.limits"), &when.limits, plan, &config.key));
        if found.is_empty() && !base_is_wrong {
            match Variant::new(Effective::of(config).changed(when), plan, labels) {
                Ok(variant) => penalties |= variant.has_penalties(),
                Err(wrong) => found.extend(wrong.into_iter().map(|p| under(&path, p))),
            }
        }
        problems.extend(found);
    }
    if problems.is_empty() { Ok(penalties) } else { Err(problems) }
}

/// Whether there are such limits, and whether they are what is stated and have what is to change.
pub(crate) fn check_patches(
    path: &str,
    limits: &LimitPatches,
    plan: &Plan,
    key: &[String],
) -> Vec<Problem> {
    let wrong = |(name, patch): &(String, LimitPatch)| {
        let path = format!("{path}.{name}");
        match plan.names.iter().position(|known| known == name) {
            Some(index) => check_patch(&path, patch, index, plan, key),
            None => vec![Problem::new(path, unknown("limit", name, &plan.names))],
        }
    };
    limits.iter().flat_map(wrong).collect()
}

fn check_patch(
    path: &str,
    patch: &LimitPatch,
    index: usize,
    plan: &Plan,
    key: &[String],
) -> Vec<Problem> {
    let (algorithm, mut problems) = (plan.algorithms[index], Vec::new());
    let permits = algorithm.has_lease();
    let field = if permits { "per" } else { "lease" };
    if let Some(other) = patch.algorithm.filter(|other| *other != algorithm) {
        let names = (algorithm_name(algorithm), algorithm_name(other));
        problems.push(Problem::new(format!("{path}.algorithm"), fixed("algorithm", names)));
    } else if (if permits { patch.per } else { patch.lease }).is_some() {
        problems.push(Problem::new(format!("{path}.{field}"), not_its_period(permits)));
    }
    if let Some(stated) = &patch.scope {
        let path = format!("{path}.scope");
        let own = &plan.groups[plan.places[index].0].scope;
        let before = problems.len();
        let scope = scope_of(Some(stated), key, || path.clone(), &mut problems);
        if problems.len() == before && scope != *own {
            let named = own.iter().map(|&part| key[part].as_str()).collect::<Vec<_>>();
            let names = (format!("[{}]", named.join(", ")), format!("[{}]", stated.join(", ")));
            problems.push(Problem::new(path, fixed("scope", (&names.0, &names.1))));
        }
    }
    let own = plan.counts(index);
    if let Some(other) = patch.counts.filter(|other| *other != own) {
        let names = (counts_name(own), counts_name(other));
        problems.push(Problem::new(format!("{path}.counts"), fixed("counts", names)));
    }
    problems
}

/// What is said of a change of what can't change.
fn fixed(what: &str, (own, other): (&str, &str)) -> String {
    format!(
        "a limit's {what} can't change, from {own} to {other}; leave it out here, or state \
        another limit in the rule"
    )
}

fn check_match(path: &str, matches: &Match, key: &[String]) -> Vec<Problem> {
    let wrong = Matcher::new(matches, key).err().unwrap_or_default();
    wrong
        .into_iter()
        .map(|(field, message)| Problem::new(format!("{path}.{field}"), message))
        .collect()
}

fn check_options(config: &RuleConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, matches) in config.exempt.iter().enumerate() {
        problems.extend(check_match(&format!("exempt[{index}]"), matches, &config.key));
    }
    if let Some(budget) = &config.budget {
        if budget.reset_hour_utc > 23 {
            let message = not_an_hour(u64::from(budget.reset_hour_utc));
            problems.push(Problem::new("budget.reset_hour_utc", message));
        }
        if budget.daily > Spent::MOST {
            let message = format!("{} is above {}, the largest budget", budget.daily, Spent::MOST);
            problems.push(Problem::new("budget.daily", message));
        }
    }
    if let Some(classify) = &config.classify {
        let place = config.key.iter().position(|part| *part == classify.to);
        if place.is_some_and(|place| place + 1 != config.key.len()) {
            let message =
                format!("{:?} must be the last part of the key, which callers omit", classify.to);
            problems.push(Problem::new("classify.to", message));
        }
        if let Some(message) = not_an_attribute(&classify.from) {
            problems.push(Problem::new("classify.from", message));
        }
        if let Some(message) = not_an_attribute(&classify.to).filter(|_| place.is_none()) {
            problems.push(Problem::new("classify.to", message));
        }
        if classify.from == classify.to {
            problems.push(Problem::new("classify.to", "it must have another name than `from`"));
        }
    }
    problems
}

impl Built {
    /// Bytes of its tables with room for so many keys.
    fn bytes(&self, capacity: usize) -> u64 {
        self.wanted.holding(capacity).bytes_for(&self.base)
    }

    /// The most keys, up to the default, whose tables take no more than `share` bytes.
    fn most_keys(&self, share: u64) -> usize {
        let (mut fits, mut beyond) = (0, DEFAULT_CAPACITY + 1);
        while beyond - fits > 1 {
            let middle = fits + (beyond - fits) / 2;
            if self.bytes(middle) <= share { fits = middle } else { beyond = middle }
        }
        fits
    }
}

/// Gives each rule without a stated capacity its share of `memory`: what the stated ones leave,
/// divided equally. Tables that are there already keep their capacity, and the others have what
/// they leave. So do those that are moved, if there is room; else they have a share, as new ones.
fn check_memory(
    policy: &Policy,
    built: &mut [Built],
    known: impl Fn(&Built) -> Option<ExistingTables>,
) -> Result<(), Error> {
    let (mut needed, mut there) = (Vec::new(), 0u64);
    let (mut moved, mut sharers) = (Vec::new(), Vec::new());
    for rule in built {
        let found = if rule.wanted.capacity_stated { None } else { known(rule) };
        rule.wanted.capacity = found.map_or(rule.wanted.capacity, |found| found.capacity);
        let bytes = rule.bytes(rule.wanted.capacity);
        match found {
            Some(found) if found.moved => moved.push((rule, bytes)),
            // A file that others made takes its room whether this process opens it or not.
            Some(_) if rule.wanted.in_file => there = there.saturating_add(bytes),
            None if !rule.wanted.capacity_stated => sharers.push(rule),
            _ => needed.push((rule.name.clone(), bytes)),
        }
    }
    let sum = needed.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    if sum > policy.memory {
        return Err(too_much(policy, &needed, sum));
    }
    let mut rest = (policy.memory - sum).saturating_sub(there);
    for (rule, bytes) in moved {
        match rest.checked_sub(bytes) {
            Some(left) => rest = left,
            None => sharers.push(rule),
        }
    }
    let (share, all) = (rest / (sharers.len() as u64).max(1), sharers.len());
    for rule in sharers {
        rule.wanted.capacity = rule.most_keys(share);
        if rule.wanted.capacity < LEAST_CAPACITY {
            return Err(too_little(policy, rule, (share, all)));
        }
    }
    Ok(())
}

fn too_much(policy: &Policy, needed: &[(String, u64)], sum: u64) -> Error {
    let rules: Vec<String> =
        needed.iter().map(|(name, bytes)| format!("{name} {}", megabytes(*bytes))).collect();
    let message = format!(
        "memory: the tables need {} ({}), and {} is allowed; state a smaller `capacity`, \
        smaller windows or a larger `memory`",
        megabytes(sum),
        rules.join(", "),
        megabytes(policy.memory),
    );
    Error::new(Code::Memory, message)
}

/// What is said of a rule whose share has no room for the least number of keys.
fn too_little(policy: &Policy, rule: &Built, (share, sharers): (u64, usize)) -> Error {
    let among = match sharers {
        1 => String::new(),
        _ => format!(" for each of {sharers} rules without a `capacity`"),
    };
    let message = format!(
        "memory: {LEAST_CAPACITY} keys of rule {} need {}, and {} of {} is left{among}; \
         state a larger `memory`, a smaller `capacity`, or smaller windows",
        rule.name,
        megabytes(rule.bytes(LEAST_CAPACITY)),
        megabytes(share),
        megabytes(policy.memory),
    );
    Error::new(Code::Memory, message)
}

/// As `memory: 256MB` means it.
const MB: u64 = 1 << 20;

fn megabytes(bytes: u64) -> String {
    match bytes {
        u64::MAX => "more than can be counted".to_string(),
        0..MB => format!("{bytes} bytes"),
        _ => format!("{:.1} MB", bytes as f64 / MB as f64),
    }
}
