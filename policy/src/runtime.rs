//! What is changed while a limiter is at work: overrides, exemptions, and the default limits.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::Match;
use crate::limit::{LimitPatch, LimitPatches};

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
    /// As a map: `key` with the parts (text, or the hex digits of bytes that are none), or `match`.
    ///
    /// ```
    /// use tidegate::Target;
    /// assert_eq!(Target::key("alice").to_value(), serde_json::json!({"key": ["alice"]}));
    /// ```
    pub fn to_value(&self) -> Value {
        let part = |part: &Vec<u8>| match std::str::from_utf8(part) {
            Ok(text) => json!(text),
            Err(_) => json!({ "hex": part.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
        };
        match self {
            Target::Key(parts) => json!({ "key": parts.iter().map(part).collect::<Value>() }),
            Target::Match(matches) => json!({ "match": matches.to_value() }),
        }
    }

    /// One key.
    ///
    /// ```
    /// use tidegate::Target;
    /// assert_eq!(Target::key("alice"), Target::key(["alice"]));
    /// ```
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
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Runtime {
    pub(crate) overrides: Vec<(Target, LimitPatches)>,
    pub(crate) default: LimitPatches,
    /// In place of the policy's exemptions.
    pub(crate) exempts: Option<Vec<Match>>,
    pub(crate) added: Vec<Match>,
    pub(crate) removed: Vec<Match>,
    /// What another version stored and this one can't read: its field, and the value as it stands. It is
    /// kept for the other version.
    pub(crate) unread: Vec<(&'static str, Value)>,
}

impl Runtime {
    /// The same, with limits called otherwise where `rename` says so.
    pub(crate) fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Runtime {
        let renamed = |(name, patch): &(String, LimitPatch)| {
            (rename(name).unwrap_or_else(|| name.clone()), patch.clone())
        };
        let all = |patches: &LimitPatches| patches.iter().map(renamed).collect();
        let overrides = self.overrides.iter().map(|(target, limits)| (target.clone(), all(limits)));
        Runtime { overrides: overrides.collect(), default: all(&self.default), ..self.clone() }
    }

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

/// As the file store keeps it: readable, and as exact as it is.
impl Runtime {
    pub(crate) fn to_value(&self) -> Value {
        let unread = |field: &'static str| {
            let of = move |(other, value): &(&str, Value)| (*other == field).then(|| value.clone());
            self.unread.iter().filter_map(of)
        };
        let matches = |field, all: &[Match]| {
            all.iter().map(Match::to_value).chain(unread(field)).collect::<Vec<_>>()
        };
        let one = |(target, limits): &(Target, LimitPatches)| {
            let mut one = target.to_value();
            one["limits"] = patches_value(limits);
            one
        };
        let overrides = self.overrides.iter().map(one).chain(unread("overrides"));
        json!({
            "version": 1,
            "overrides": overrides.collect::<Vec<_>>(),
            "default": patches_value(&self.default),
            "exempts": self.exempts.as_deref().map(|all| matches("exempts", all)),
            "added": matches("added", &self.added),
            "removed": matches("removed", &self.removed),
        })
    }

    /// What stands in a file. An entry that can't be read is kept as it stands, and applied to nothing.
    pub(crate) fn from_value(value: &Value) -> Runtime {
        let mut unread = Vec::new();
        let overrides = readable("overrides", value, &mut unread, |one| {
            let target = match one["key"].as_array() {
                Some(parts) => Target::Key(parts.iter().map(read_part).collect::<Option<_>>()?),
                None => Target::Match(Match::from_value(&one["match"]).ok()?),
            };
            Some((target, read_patches(&one["limits"])))
        });
        let mut matches =
            |field| readable(field, value, &mut unread, |one| Match::from_value(one).ok());
        let exempts = matches("exempts");
        let (added, removed) = (matches("added"), matches("removed"));
        Runtime {
            overrides,
            default: read_patches(&value["default"]),
            exempts: value["exempts"].is_array().then_some(exempts),
            added,
            removed,
            unread,
        }
    }
}

/// The entries of a list that can be read; the others go to `unread`.
fn readable<T>(
    field: &'static str,
    value: &Value,
    unread: &mut Vec<(&'static str, Value)>,
    read: impl Fn(&Value) -> Option<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    for one in value[field].as_array().into_iter().flatten() {
        match read(one) {
            Some(one) => all.push(one),
            None => unread.push((field, one.clone())),
        }
    }
    all
}

fn read_part(value: &Value) -> Option<Vec<u8>> {
    let hex = |text: &str| {
        let byte = |i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok();
        (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()
    };
    match (value.as_str(), value["hex"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, text) => hex(text?),
    }
}

const PERIODS: [&str; 3] = ["per", "lease", "cooldown"];

fn patches_value(patches: &LimitPatches) -> Value {
    let patch = |patch: &LimitPatch| {
        let mut map = Map::new();
        let numbers = [("max", patch.max), ("burst", patch.burst)];
        map.extend(numbers.into_iter().filter_map(|(n, v)| Some((n.to_string(), json!(v?)))));
        let periods = PERIODS.into_iter().zip([patch.per, patch.lease, patch.cooldown]);
        let micros = |period: Duration| json!(period.as_micros() as u64);
        map.extend(periods.filter_map(|(n, v)| Some((format!("{n}_us"), micros(v?)))));
        Value::Object(map)
    };
    Value::Object(patches.iter().map(|(name, one)| (name.clone(), patch(one))).collect())
}

fn read_patches(value: &Value) -> LimitPatches {
    let Value::Object(map) = value else { return Vec::new() };
    let period =
        |patch: &Value, name: &str| patch[format!("{name}_us")].as_u64().map(Duration::from_micros);
    let read = |(name, patch): (&String, &Value)| {
        let [per, lease, cooldown] = PERIODS.map(|name| period(patch, name));
        let (max, burst) = (patch["max"].as_u64(), patch["burst"].as_u64());
        (name.clone(), LimitPatch { max, per, burst, lease, cooldown, ..LimitPatch::default() })
    };
    map.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_were_written() {
        let patch = LimitPatch {
            max: Some(7),
            per: Some(Duration::from_millis(1500)),
            cooldown: Some(Duration::from_secs(60)),
            ..LimitPatch::default()
        };
        let runtime = Runtime {
            overrides: vec![
                (
                    Target::Key(vec![b"a\xff".to_vec(), b"b".to_vec()]),
                    vec![("l".into(), patch.clone())],
                ),
                (Target::Match(Match::new([("ip", "10.0.0.0/8")])), vec![]),
            ],
            default: vec![("l".into(), LimitPatch::max(3))],
            exempts: Some(vec![Match::default()]),
            added: vec![Match::new([("role", "admin"), ("role", "system")])],
            removed: vec![],
            unread: vec![],
        };
        assert_eq!(Runtime::from_value(&runtime.to_value()), runtime);
    }

    #[test]
    fn what_cannot_be_read_is_kept_for_those_who_can() {
        let newer = json!({
            "version": 1,
            "overrides": [{"key": [7], "limits": {"l": {"max": 1}}}, {"key": ["a"], "limits": {}}],
            "default": {},
            "exempts": null,
            "added": ["nobody"],
            "removed": [],
        });
        let mut runtime = Runtime::from_value(&newer);
        assert_eq!((runtime.overrides.len(), runtime.unread.len()), (1, 2));
        runtime.set_override(Target::key("b"), Vec::new());
        let written = runtime.to_value();
        assert!(written["overrides"].as_array().unwrap().contains(&newer["overrides"][0]));
        assert_eq!(written["added"], newer["added"]);
    }
}
