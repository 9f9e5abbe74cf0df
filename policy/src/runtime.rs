//! What is changed while a limiter is at work: overrides, exemptions, and the default limits.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::Match;
use crate::error::{Code, Error};
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
        let matches = |all: &[Match]| all.iter().map(Match::to_value).collect::<Vec<_>>();
        let one = |(target, limits): &(Target, LimitPatches)| {
            let mut one = target.to_value();
            one["limits"] = patches_value(limits);
            one
        };
        json!({
            "version": 1,
            "overrides": self.overrides.iter().map(one).collect::<Vec<_>>(),
            "default": patches_value(&self.default),
            "exempts": self.exempts.as_deref().map(matches),
            "added": matches(&self.added),
            "removed": matches(&self.removed),
        })
    }

    pub(crate) fn from_value(value: &Value) -> Result<Runtime, Error> {
        let list = |field: &str| value[field].as_array().cloned().unwrap_or_default();
        let matches =
            |all: Vec<Value>| all.iter().map(Match::from_value).collect::<Result<Vec<_>, _>>();
        let mut overrides = Vec::new();
        for one in list("overrides") {
            let target = match one["key"].as_array() {
                Some(parts) => Target::Key(parts.iter().map(read_part).collect::<Result<_, _>>()?),
                None => Target::Match(Match::from_value(&one["match"])?),
            };
            overrides.push((target, read_patches(&one["limits"])?));
        }
        let exempts = value["exempts"].as_array().cloned();
        Ok(Runtime {
            overrides,
            default: read_patches(&value["default"])?,
            exempts: exempts.map(matches).transpose()?,
            added: matches(list("added"))?,
            removed: matches(list("removed"))?,
        })
    }
}

fn read_part(value: &Value) -> Result<Vec<u8>, Error> {
    let wrong = || Error::new(Code::Store, format!("{value} is no part of a key"));
    let hex = |text: &str| {
        let byte = |i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok();
        (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()
    };
    match (value.as_str(), value["hex"].as_str()) {
        (Some(text), _) => Ok(text.as_bytes().to_vec()),
        (None, Some(text)) => hex(text).ok_or_else(wrong),
        (None, None) => Err(wrong()),
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

fn read_patches(value: &Value) -> Result<LimitPatches, Error> {
    let Value::Object(map) = value else { return Ok(Vec::new()) };
    let period =
        |patch: &Value, name: &str| patch[format!("{name}_us")].as_u64().map(Duration::from_micros);
    let read = |(name, patch): (&String, &Value)| {
        let [per, lease, cooldown] = PERIODS.map(|name| period(patch, name));
        let (max, burst) = (patch["max"].as_u64(), patch["burst"].as_u64());
        (name.clone(), LimitPatch { max, per, burst, lease, cooldown, ..LimitPatch::default() })
    };
    Ok(map.iter().map(read).collect())
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
        };
        let read = Runtime::from_value(&runtime.to_value()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{runtime:?}"));
    }
}
