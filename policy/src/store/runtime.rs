//! What is changed while a limiter is at work: overrides, exemptions, the default limits, the mode,
//! blocks.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::limit::{LimitPatch, LimitPatches};
use crate::config::policy::{Match, Mode};
use crate::config::read::MODES;

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
#[non_exhaustive]
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
        match self {
            Target::Key(parts) => json!({ "key": parts.iter().map(part_value).collect::<Value>() }),
            Target::Match(matches) => json!({ "match": matches.to_value() }),
        }
    }

    /// What [`Target::to_value`] gave.
    pub(crate) fn from_value(value: &Value) -> Option<Target> {
        match value["key"].as_array() {
            Some(parts) => Some(Target::Key(parts.iter().map(read_part).collect::<Option<_>>()?)),
            None => Some(Target::Match(Match::from_value(&value["match"]).ok()?)),
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

/// How long a change stands, in nanoseconds of the clock of the tables. The end is not kept: a
/// clock that went back would move it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) since: u64,
    pub(crate) length: u64,
}

impl Span {
    /// A start ahead of the clock is now.
    pub(crate) fn left(&self, now: u64) -> u64 {
        self.length.saturating_sub(now.saturating_sub(self.since))
    }

    fn end(&self) -> u64 {
        self.since.saturating_add(self.length)
    }
}

/// What is noted of a change: for how long it stands, who made it, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// None: for good.
    pub(crate) span: Option<Span>,
    pub(crate) by: Option<String>,
    pub(crate) reason: Option<String>,
}

impl Note {
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.span.is_some_and(|span| span.left(now) == 0)
    }

    /// Writes it beside what was changed.
    fn write(&self, value: &mut Value) {
        if let Some(Span { since, length }) = self.span {
            (value["since_ns"], value["length_ns"]) = (json!(since), json!(length));
        }
        for (name, text) in [("by", &self.by), ("reason", &self.reason)] {
            if let Some(text) = text {
                value[name] = json!(text);
            }
        }
    }

    fn read(value: &Value) -> Note {
        let text = |name: &str| value[name].as_str().map(str::to_string);
        let span = value["since_ns"].as_u64().zip(value["length_ns"].as_u64());
        let span = span.map(|(since, length)| Span { since, length });
        Note { span, by: text("by"), reason: text("reason") }
    }
}

/// A change, and what is noted of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noted<T> {
    pub(crate) what: T,
    pub(crate) note: Note,
}

impl<T> Noted<T> {
    fn map<R>(&self, map: impl FnOnce(&T) -> R) -> Noted<R> {
        Noted { what: map(&self.what), note: self.note.clone() }
    }
}

/// An override.
pub(crate) type Override = Noted<(Target, LimitPatches)>;
/// The parts of a blocked key.
pub(crate) type Block = Noted<Vec<Vec<u8>>>;

/// For which readings of the clock what was found to stand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    since: u64,
    until: u64,
}

impl Timed {
    pub(crate) fn holds(&self, now: u64) -> bool {
        (self.since..self.until).contains(&now)
    }

    /// The same, but no longer than that.
    pub(crate) fn at_most(timed: Option<Timed>, until: u64) -> Timed {
        let (since, end) = timed.map_or((0, until), |timed| (timed.since, timed.until));
        Timed { since, until: end.min(until) }
    }
}

/// What stands changed; the rest is as the policy has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Runtime {
    pub(crate) overrides: Vec<Override>,
    pub(crate) default: Noted<LimitPatches>,
    /// In place of the policy's exemptions.
    pub(crate) exempts: Option<Noted<Vec<Match>>>,
    pub(crate) added: Vec<Noted<Match>>,
    pub(crate) removed: Vec<Match>,
    /// In place of the policy's mode, that of `when` too.
    pub(crate) mode: Option<Noted<Mode>>,
    pub(crate) blocks: Vec<Block>,
    /// The number of the last change.
    pub(crate) last: u64,
    /// What another version stored and this one can't read: its field, and the value as it stands.
    /// It is kept for the other version.
    pub(crate) unread: Vec<(&'static str, Value)>,
}

/// What ends by itself.
impl Runtime {
    fn notes(&self) -> impl Iterator<Item = &Note> {
        let overrides = self.overrides.iter().map(|one| &one.note);
        let exempts = self.exempts.iter().map(|all| &all.note);
        let added = self.added.iter().map(|one| &one.note);
        let mode = self.mode.iter().map(|mode| &mode.note);
        let blocks = self.blocks.iter().map(|one| &one.note);
        let default = std::iter::once(&self.default.note);
        overrides.chain(default).chain(exempts).chain(added).chain(mode).chain(blocks)
    }

    fn notes_mut(&mut self) -> impl Iterator<Item = &mut Note> {
        let overrides = self.overrides.iter_mut().map(|one| &mut one.note);
        let exempts = self.exempts.iter_mut().map(|all| &mut all.note);
        let added = self.added.iter_mut().map(|one| &mut one.note);
        let mode = self.mode.iter_mut().map(|mode| &mut mode.note);
        let blocks = self.blocks.iter_mut().map(|one| &mut one.note);
        let default = std::iter::once(&mut self.default.note);
        overrides.chain(default).chain(exempts).chain(added).chain(mode).chain(blocks)
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        self.notes().filter_map(|note| note.span)
    }

    /// Between which readings of the clock none ends or is ahead of the clock; none if no change
    /// ends. The ends of blocks are left out: there may be many, and whoever finds a block looks at
    /// its end.
    pub(crate) fn timed(&self) -> Option<Timed> {
        let since = self.spans().map(|span| span.since).max()?;
        let blocks = self.blocks.len();
        let others = self.notes().take(self.notes().count() - blocks);
        let ends = others.filter_map(|note| note.span).map(|span| span.end());
        Some(Timed { since, until: ends.min().unwrap_or(u64::MAX) })
    }

    /// Whether a change is ahead of a clock that was read after this.
    pub(crate) fn is_ahead(&self, now: u64) -> bool {
        self.spans().any(|span| span.since > now)
    }

    /// What is ahead of the clock starts now: nothing stands for longer than was said.
    pub(crate) fn repair(&mut self, now: u64) {
        for span in self.notes_mut().filter_map(|note| note.span.as_mut()) {
            span.since = span.since.min(now);
        }
    }

    /// Drops what is over.
    pub(crate) fn end(&mut self, now: u64) {
        self.overrides.retain(|one| !one.note.is_over(now));
        self.added.retain(|one| !one.note.is_over(now));
        self.blocks.retain(|one| !one.note.is_over(now));
        if self.default.note.is_over(now) {
            self.default = Noted::default();
        }
        self.exempts = self.exempts.take().filter(|all| !all.note.is_over(now));
        self.mode = self.mode.take().filter(|mode| !mode.note.is_over(now));
    }
}

impl Runtime {
    /// The same, with limits called otherwise where `rename` says so.
    pub(crate) fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Runtime {
        let renamed = |(name, patch): &(String, LimitPatch)| {
            (rename(name).unwrap_or_else(|| name.clone()), patch.clone())
        };
        let all = |patches: &LimitPatches| patches.iter().map(renamed).collect();
        let one = |one: &Override| one.map(|(target, limits)| (target.clone(), all(limits)));
        Runtime {
            overrides: self.overrides.iter().map(one).collect(),
            default: self.default.map(all),
            ..self.clone()
        }
    }

    pub(crate) fn override_for(&self, target: &Target) -> Option<&Override> {
        self.overrides.iter().find(|one| one.what.0 == *target)
    }

    /// Of two that match a call equally well the later is in force, so the one that is set is the
    /// last.
    pub(crate) fn set_override(&mut self, target: Target, limits: LimitPatches, note: Note) {
        self.clear_override(&target);
        self.overrides.push(Noted { what: (target, limits), note });
    }

    pub(crate) fn clear_override(&mut self, target: &Target) {
        self.overrides.retain(|one| one.what.0 != *target);
    }

    /// The exemptions in force, given the policy's own.
    pub(crate) fn exempts(&self, policy: &[Match]) -> Vec<Match> {
        let own = self.exempts.as_ref().map_or(policy, |all| &all.what);
        let mut all: Vec<Match> =
            own.iter().filter(|m| !self.removed.contains(m)).cloned().collect();
        for one in &self.added {
            if !all.contains(&one.what) {
                all.push(one.what.clone());
            }
        }
        all
    }

    /// Also where it is in force already: what is in force may end.
    pub(crate) fn add_exempt(&mut self, matches: Match, note: Note) {
        self.removed.retain(|other| *other != matches);
        self.added.retain(|one| one.what != matches);
        self.added.push(Noted { what: matches, note });
    }

    pub(crate) fn remove_exempt(&mut self, matches: &Match, policy: &[Match]) {
        self.added.retain(|one| one.what != *matches);
        // The policy's own may be in force again, when those end that were set in their place.
        if policy.contains(matches) || self.exempts(policy).contains(matches) {
            self.removed.push(matches.clone());
        }
    }

    pub(crate) fn set_exempts(&mut self, matches: Vec<Match>, note: Note) {
        self.exempts = Some(Noted { what: matches, note });
        (self.added, self.removed) = (Vec::new(), Vec::new());
    }

    pub(crate) fn set_mode(&mut self, mode: Option<Mode>, note: Note) {
        self.mode = mode.map(|what| Noted { what, note });
    }

    pub(crate) fn block_of(&self, key: &[Vec<u8>]) -> Option<&Block> {
        self.blocks.iter().find(|block| block.what == key)
    }

    pub(crate) fn block(&mut self, key: Vec<Vec<u8>>, note: Note) {
        self.unblock(&key);
        self.blocks.push(Noted { what: key, note });
    }

    pub(crate) fn unblock(&mut self, key: &[Vec<u8>]) {
        self.blocks.retain(|block| block.what != key);
    }
}

/// As the file store keeps it: readable, and as exact as it is.
impl Runtime {
    pub(crate) fn to_value(&self) -> Value {
        let unread = |field: &'static str| {
            let of = move |(other, value): &(&str, Value)| (*other == field).then(|| value.clone());
            self.unread.iter().filter_map(of)
        };
        let noted = |mut value: Value, note: &Note| {
            note.write(&mut value);
            value
        };
        let matches = |field, all: &[Match]| {
            all.iter().map(Match::to_value).chain(unread(field)).collect::<Vec<_>>()
        };
        let overrides = self.overrides.iter().map(|one| {
            let (target, limits) = &one.what;
            let mut value = target.to_value();
            value["limits"] = patches_value(limits);
            noted(value, &one.note)
        });
        let added = self.added.iter().map(|one| match one.note == Note::default() {
            true => one.what.to_value(),
            false => noted(json!({ "match": one.what.to_value() }), &one.note),
        });
        let blocks = self.blocks.iter().map(|one| {
            noted(json!({ "key": one.what.iter().map(part_value).collect::<Value>() }), &one.note)
        });
        let mode = self
            .mode
            .as_ref()
            .map(|mode| noted(json!({ "mode": mode_name(mode.what) }), &mode.note));
        let exempts = self.exempts.as_ref();
        json!({
            "version": 1,
            "last": self.last,
            "overrides": overrides.chain(unread("overrides")).collect::<Vec<_>>(),
            "default": patches_value(&self.default.what),
            "default_note": noted(json!({}), &self.default.note),
            "exempts": exempts.map(|all| matches("exempts", &all.what)),
            "exempts_note": exempts.map(|all| noted(json!({}), &all.note)),
            "added": added.chain(unread("added")).collect::<Vec<_>>(),
            "removed": matches("removed", &self.removed),
            "mode": mode.or_else(|| unread("mode").next()),
            "blocks": blocks.chain(unread("blocks")).collect::<Vec<_>>(),
        })
    }

    /// What stands in a file. An entry that can't be read is kept as it stands, and applied to
    /// nothing.
    pub(crate) fn from_value(value: &Value) -> Runtime {
        let mut unread = Vec::new();
        let overrides = readable("overrides", value, &mut unread, |one| {
            let what = (Target::from_value(one)?, read_patches(&one["limits"]));
            Some(Noted { what, note: Note::read(one) })
        });
        let added = readable("added", value, &mut unread, |one| {
            // Noted, or a match alone: its values are lists of texts.
            let noted = one["match"].is_object();
            let what = Match::from_value(if noted { &one["match"] } else { one }).ok()?;
            Some(Noted { what, note: if noted { Note::read(one) } else { Note::default() } })
        });
        let blocks = readable("blocks", value, &mut unread, |one| {
            let what = one["key"].as_array()?.iter().map(read_part).collect::<Option<_>>()?;
            Some(Noted { what, note: Note::read(one) })
        });
        let mut matches =
            |field| readable(field, value, &mut unread, |one| Match::from_value(one).ok());
        let (exempts, removed) = (matches("exempts"), matches("removed"));
        let mode = value.get("mode").filter(|mode| !mode.is_null()).and_then(|mode| {
            let known = mode["mode"].as_str().and_then(read_mode);
            if known.is_none() {
                unread.push(("mode", mode.clone()));
            }
            Some(Noted { what: known?, note: Note::read(mode) })
        });
        let note = Note::read(&value["exempts_note"]);
        Runtime {
            overrides,
            default: Noted {
                what: read_patches(&value["default"]),
                note: Note::read(&value["default_note"]),
            },
            exempts: value["exempts"].is_array().then_some(Noted { what: exempts, note }),
            added,
            removed,
            mode,
            blocks,
            last: value["last"].as_u64().unwrap_or(0),
            unread,
        }
    }
}

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, other)| *other == mode).map_or("", |(name, _)| name)
}

fn read_mode(name: &str) -> Option<Mode> {
    MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
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

pub(crate) fn part_value(part: impl AsRef<[u8]>) -> Value {
    let part = part.as_ref();
    match std::str::from_utf8(part) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": part.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
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
        let note = Note {
            span: Some(Span { since: 7, length: u64::MAX }),
            by: Some("ops".into()),
            reason: Some("a flood".into()),
        };
        let key = vec![b"a\xff".to_vec(), b"b".to_vec()];
        let by_match = Target::Match(Match::new([("ip", "10.0.0.0/8")]));
        let admin = Match::new([("role", "admin"), ("role", "system")]);
        let noted = |what| Noted { what, note: note.clone() };
        let runtime = Runtime {
            overrides: vec![
                noted((Target::Key(key.clone()), vec![("l".into(), patch.clone())])),
                Noted { what: (by_match, vec![]), note: Note::default() },
            ],
            default: Noted {
                what: vec![("l".into(), LimitPatch::max(3))],
                note: Note { span: None, ..note.clone() },
            },
            exempts: Some(Noted { what: vec![Match::default()], note: note.clone() }),
            added: vec![
                Noted { what: admin, note: Note::default() },
                Noted { what: Match::new([("match", "x")]), note: note.clone() },
            ],
            removed: vec![],
            mode: Some(Noted { what: Mode::Shadow, note: note.clone() }),
            blocks: vec![Noted { what: key, note: note.clone() }],
            last: 12,
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
            "mode": {"mode": "dream"},
            "blocks": [{"key": "alice"}],
        });
        let mut runtime = Runtime::from_value(&newer);
        assert_eq!((runtime.overrides.len(), runtime.unread.len()), (1, 4));
        runtime.set_override(Target::key("b"), Vec::new(), Note::default());
        let written = runtime.to_value();
        assert!(written["overrides"].as_array().unwrap().contains(&newer["overrides"][0]));
        assert_eq!(written["added"], newer["added"]);
        assert_eq!((&written["mode"], &written["blocks"]), (&newer["mode"], &newer["blocks"]));
    }
}
