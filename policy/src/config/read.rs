//! Policy files: YAML or JSON, read into [`Policy`] with every mistake named by its path.

use std::time::Duration;

use serde_core::Serialize;
use serde_json::{Map, Value, json};
use tidegate_core::OnFull;

use crate::config::limit::{
    ALGORITHMS, COUNTS, DEFAULT_LEASE, Limit, LimitPatch, LimitPatches, not_its_period,
    parse_algorithm, parse_limit, parse_limits, parse_patch, period,
};
use crate::config::policy::{
    AlertAt, Backoff, BudgetConfig, Classify, HeaderNames, Match, Mode, Notify, Policy, RuleConfig,
    When,
};
use crate::config::suggest::unknown;
use crate::config::value::plain_value;
use crate::error::{Error, Problem};

/// Fields of each map that a policy file has; what is not here is a mistake.
pub(crate) mod fields {
    pub(crate) const POLICY: &[&str] = &[
        "version", "store", "capacity", "on_full", "memory", "group", "fallback", "headers",
        "rules",
    ];
    /// Of a policy whose state lives in Redis; the first also of its rules.
    pub(crate) const REDIS: &[&str] =
        &["on_outage", "deadline", "share", "lease", "local", "secret", "prefix", "deny_cache"];
    pub(crate) const RULE: &[&str] = &[
        "key",
        "limits",
        "warn_at",
        "cooldown",
        "backoff",
        "alert",
        "notify",
        "penalty_scope",
        "budget",
        "classify",
        "when",
        "exempt",
        "mode",
        "attach",
        "ceiling",
        "capacity",
        "on_full",
    ];
    pub(crate) const LIMIT: &[&str] =
        &["name", "max", "per", "burst", "algorithm", "lease", "cooldown", "scope", "counts"];
    pub(crate) const PATCH: &[&str] =
        &["max", "per", "burst", "lease", "cooldown", "algorithm", "scope", "counts"];
    pub(crate) const WHEN: &[&str] =
        &["match", "limits", "warn_at", "cooldown", "backoff", "alert", "notify", "mode", "attach"];
    pub(crate) const BACKOFF: &[&str] = &["steps", "quiet", "round", "enforce"];
    pub(crate) const ALERT: &[&str] = &["violations", "within"];
    pub(crate) const BUDGET: &[&str] = &["daily", "per_hit", "reset_hour_utc", "unit"];
    pub(crate) const CLASSIFY: &[&str] = &["from", "to", "map", "default"];
    pub(crate) const HEADERS: &[&str] = &["limit", "remaining", "reset"];
}

pub(crate) const NOTIFY: [(&str, Notify); 3] =
    [("silent", Notify::Silent), ("once", Notify::Once), ("always", Notify::Always)];
pub(crate) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
pub(crate) const ON_FULL: [(&str, OnFull); 3] =
    [("overflow", OnFull::Overflow), ("deny", OnFull::Deny), ("allow", OnFull::Allow)];

/// What is said of all that needs one.
pub(crate) const NO_REDIS: &str = "this build has no Redis store";

/// Reads what changes of a rule's limits, from a map by names or, for a rule with one limit, a
/// text.
///
/// ```
/// use serde_json::json;
/// let value = json!({"per-minute": {"max": 60}});
/// let patches = tidegate::bindings::limit_patches(&value, &["per-minute"]).unwrap();
/// assert_eq!(patches, [("per-minute".to_string(), tidegate::LimitPatch::max(60))]);
/// ```
///
/// # Errors
/// With all problems.
pub fn limit_patches<S: AsRef<str>>(value: &Value, names: &[S]) -> Result<LimitPatches, Error> {
    patches(Reader::default(), value, names)
}

/// As [`limit_patches`], where a period may be a number too: so many of `unit`.
///
/// ```
/// use std::time::Duration;
/// let map = serde_json::json!({"a": {"per": 90}});
/// let second = Duration::from_secs(1);
/// let patches = tidegate::bindings::limit_patches_in(&map, &["a"], second).unwrap();
/// assert_eq!(patches[0].1.per, Some(Duration::from_secs(90)));
/// ```
///
/// # Errors
/// With all problems.
pub fn limit_patches_in<S: AsRef<str>>(
    value: &Value,
    names: &[S],
    unit: Duration,
) -> Result<LimitPatches, Error> {
    patches(Reader::counting_in(unit), value, names)
}

fn patches<S: AsRef<str>>(
    mut reader: Reader,
    value: &Value,
    names: &[S],
) -> Result<LimitPatches, Error> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let patches = reader.patches("limits", value, &names);
    reader.finish(patches)
}

impl Match {
    /// Reads a match from a map, as a policy file has it: a `serde_json::Value`, or any type that
    /// serializes to such a map.
    ///
    /// ```
    /// let value = serde_json::json!({"role": ["admin", "system"]});
    /// let matches = tidegate::Match::from_value(&value).unwrap();
    /// assert_eq!(matches, tidegate::Match::new([("role", "admin"), ("role", "system")]));
    /// ```
    ///
    /// # Errors
    /// With all problems.
    pub fn from_value(value: &impl Serialize) -> Result<Match, Error> {
        let value = plain_value(value)?;
        let mut reader = Reader::default();
        let matches = reader.matching("match", &value);
        reader.finish(matches)
    }

    /// The map that [`Match::from_value`] reads.
    ///
    /// ```
    /// let matches = tidegate::Match::new([("role", "admin")]);
    /// assert_eq!(matches.to_value(), serde_json::json!({"role": ["admin"]}));
    /// ```
    pub fn to_value(&self) -> Value {
        self.fields.iter().map(|(field, values)| (field.clone(), json!(values))).collect()
    }
}

impl RuleConfig {
    /// Reads a rule from a map, as a policy file has it: a `serde_json::Value`, or any type that
    /// serializes to such a map.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// let map = BTreeMap::from([("limits", "20/min"), ("cooldown", "60s")]);
    /// assert_eq!(tidegate::RuleConfig::from_value(&map)?.limits.len(), 1);
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    ///
    /// # Errors
    /// With all problems; their paths begin at the rule.
    pub fn from_value(value: &impl Serialize) -> Result<RuleConfig, Error> {
        RuleConfig::read(Reader::default(), &plain_value(value)?)
    }

    /// As [`RuleConfig::from_value`], where a period may be a number too: so many of `unit`.
    ///
    /// ```
    /// use std::time::Duration;
    /// let map = serde_json::json!({"limits": "2/min", "cooldown": 1500});
    /// let rule = tidegate::RuleConfig::from_value_in(&map, Duration::from_millis(1)).unwrap();
    /// assert_eq!(rule.cooldown, Some(Duration::from_millis(1500)));
    /// ```
    ///
    /// # Errors
    /// As [`RuleConfig::from_value`].
    #[doc(hidden)]
    pub fn from_value_in(value: &Value, unit: Duration) -> Result<RuleConfig, Error> {
        RuleConfig::read(Reader::counting_in(unit), value)
    }

    fn read(mut reader: Reader, value: &Value) -> Result<RuleConfig, Error> {
        let rule = reader.rule("", value);
        reader.finish(rule)
    }
}

/// Replaces `${NAME}` and `${NAME:-default}` in a text by environment variables.
fn substituted(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        let end = from.find('}').ok_or("there is a \"${\" without a \"}\"")?;
        let inner = &from[2..end];
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(n, d)| (n, Some(d)));
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !named {
            return Err(format!("{name:?} is not an environment variable's name"));
        }
        let value = lookup(name).filter(|value| !value.is_empty()).or(default.map(str::to_string));
        let value = value.ok_or_else(|| {
            format!(
                "the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        })?;
        out.push_str(before);
        out.push_str(&value);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn at(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_string() } else { format!("{path}.{field}") }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A number or a text as it is, the rest by its kind.
fn seen(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        other => kind(other).to_string(),
    }
}

/// So many of a unit, to the microsecond; none if that is no time.
fn counted(count: f64, unit: Duration) -> Option<Duration> {
    let micros = (count * unit.as_micros() as f64).round();
    (0.0..=(1_u64 << 60) as f64).contains(&micros).then(|| Duration::from_micros(micros as u64))
}

/// A map's field, unless it is blank.
fn field<'v>(map: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    map.get(name).filter(|value| !value.is_null())
}

/// What is said of a policy without rules.
pub(crate) const NO_RULE: &str = "there is no rule; write rules: { NAME: { limits: 20/min } }, say";

/// Reads values, and collects what is wrong on the way.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) problems: Vec<Problem>,
    /// Where a variable could not be had.
    unset: Vec<String>,
    /// What a period that is a number counts; without it, such a period is a mistake.
    unit: Option<Duration>,
}

impl Reader {
    pub(crate) fn counting_in(unit: Duration) -> Reader {
        Reader { unit: Some(unit), ..Reader::default() }
    }

    pub(crate) fn wrong(&mut self, path: &str, message: impl Into<String>) {
        // Who is told that a variable is not set need not hear that `${NAME}` is no number.
        if self.unset.iter().any(|unset| unset == path) {
            return;
        }
        self.problems.push(Problem { path: path.to_string(), message: message.into() });
    }

    fn expected<T>(&mut self, path: &str, what: &str, value: &Value) -> Option<T> {
        self.wrong(path, format!("this should be {what}, not {}", kind(value)));
        None
    }

    /// What was read, if nothing is wrong.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T, Error> {
        match read {
            Some(read) if self.problems.is_empty() => Ok(read),
            _ => Err(Error::policy(self.problems)),
        }
    }

    pub(crate) fn substitute(&mut self, path: &str, value: &mut Value) {
        match value {
            Value::String(text) => match substituted(text, |name| std::env::var(name).ok()) {
                Ok(done) => *text = done,
                Err(message) => {
                    self.wrong(path, message);
                    self.unset.push(path.to_string());
                }
            },
            Value::Array(list) => {
                for (index, one) in list.iter_mut().enumerate() {
                    self.substitute(&format!("{path}[{index}]"), one);
                }
            }
            Value::Object(map) => {
                map.iter_mut().for_each(|(field, one)| self.substitute(&at(path, field), one));
            }
            _ => {}
        }
    }

    /// A map with these fields and no others.
    fn map<'v>(
        &mut self,
        path: &str,
        value: &'v Value,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Value::Object(map) = value else {
            return self.expected(path, "a map", value);
        };
        for field in map.keys().filter(|field| !known.contains(&field.as_str())) {
            let of_redis = match known {
                fields::POLICY => fields::REDIS,
                fields::RULE => &fields::REDIS[..1],
                _ => &[],
            };
            let message = match of_redis.contains(&field.as_str()) {
                true => {
                    format!("{NO_REDIS}, and `{field}` means nothing without one; leave it out")
                }
                false => unknown("field", field, known),
            };
            self.wrong(&at(path, field), message);
        }
        Some(map)
    }

    fn text(&mut self, path: &str, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            other => self.expected(path, "text", other),
        }
    }

    /// Text, or a number or a truth value by its text.
    fn scalar(&mut self, path: &str, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            other => self.expected(path, "text, a number, or true or false", other),
        }
    }

    fn texts(&mut self, path: &str, value: &Value) -> Option<Vec<String>> {
        match value {
            Value::Array(list) => {
                let each = list.iter().enumerate();
                each.map(|(index, one)| self.scalar(&format!("{path}[{index}]"), one)).collect()
            }
            Value::Object(_) | Value::Null => {
                self.expected(path, "text, or a list of texts", value)
            }
            one => self.scalar(path, one).map(|one| vec![one]),
        }
    }

    fn whole(&mut self, path: &str, value: &Value) -> Option<u64> {
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole_of(number.as_f64())),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            let message = format!("this should be a whole number from 0 on, not {}", seen(value));
            self.wrong(path, message);
        }
        number
    }

    fn hour(&mut self, path: &str, value: &Value) -> Option<u8> {
        let hour = self.whole(path, value)?;
        let within = u8::try_from(hour).ok().filter(|hour| *hour < 24);
        if within.is_none() {
            self.wrong(path, not_an_hour(hour));
        }
        within
    }

    fn fraction(&mut self, path: &str, value: &Value) -> Option<f64> {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok().filter(|n: &f64| n.is_finite()),
            _ => None,
        };
        if number.is_none() {
            self.wrong(path, format!("this should be a number such as 0.8, not {}", seen(value)));
        }
        number
    }

    fn truth(&mut self, path: &str, value: &Value) -> Option<bool> {
        match value {
            Value::Bool(truth) => Some(*truth),
            Value::String(text) if text == "true" || text == "false" => Some(text == "true"),
            other => self.expected(path, "true or false", other),
        }
    }

    fn period(&mut self, path: &str, value: &Value) -> Option<Duration> {
        let message = match value {
            Value::String(text) => match period(text) {
                Ok(period) => return Some(period),
                Err(message) => message,
            },
            Value::Number(number) => match (self.unit, number.as_f64()) {
                (None, _) => format!("{number} has no unit; write {number}s, say"),
                (Some(unit), count) => match count.and_then(|count| counted(count, unit)) {
                    Some(period) => return Some(period),
                    None => format!("{number} is no period"),
                },
            },
            other => format!("this should be a period such as 10s, not {}", kind(other)),
        };
        self.wrong(path, message);
        None
    }

    fn choice<T: Copy>(&mut self, path: &str, value: &Value, choices: &[(&str, T)]) -> Option<T> {
        // Some YAML writers take `off` for a truth value.
        let text = match value {
            Value::Bool(false) => "off",
            other => other.as_str().unwrap_or_default(),
        };
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.wrong(
                path,
                format!("this should be one of {}, not {}", names.join(", "), seen(value)),
            );
        }
        found
    }

    /// What can be read of a policy; `problems` says what could not.
    pub(crate) fn policy(&mut self, value: &Value) -> Result<Policy, Error> {
        let mut policy = Policy::default();
        if !value.is_object() {
            let message =
                format!("a policy is a map with `version` and `rules`, not {}", kind(value));
            return Err(crate::config::limit::one("", message));
        }
        if let Some(map) = self.map("", value, fields::POLICY) {
            self.policy_fields(map, &mut policy);
        }
        Ok(policy)
    }

    fn policy_fields(&mut self, map: &Map<String, Value>, policy: &mut Policy) {
        let get = |name: &str| field(map, name);
        match get("version") {
            Some(version) if version.as_u64() == Some(1) => {}
            Some(other) => {
                let message = format!(
                    "this build reads version 1 only, not {}; write version: 1",
                    seen(other)
                );
                self.wrong("version", message);
            }
            None => self.wrong("version", "it is missing; write version: 1"),
        }
        if let Some(store) = get("store").and_then(|v| self.text("store", v)) {
            policy.store = store;
        }
        if let Some(capacity) = get("capacity").and_then(|v| self.whole("capacity", v)) {
            policy.capacity = Some(capacity as usize);
        }
        if let Some(on_full) = get("on_full").and_then(|v| self.choice("on_full", v, &ON_FULL)) {
            policy.on_full = on_full;
        }
        if let Some(memory) = get("memory").and_then(|v| self.bytes("memory", v)) {
            policy.memory = memory;
        }
        if let Some(group) = get("group").and_then(|v| self.truth("group", v)) {
            policy.group = group;
        }
        policy.fallback = get("fallback").and_then(|v| self.text("fallback", v));
        if let Some(headers) = get("headers") {
            self.headers(headers, &mut policy.headers);
        }
        match get("rules") {
            Some(Value::Object(rules)) => {
                for (name, rule) in rules {
                    let rule = self.rule(&format!("rules.{name}"), rule).unwrap_or_default();
                    policy.rules.push((name.clone(), rule));
                }
            }
            Some(other) => {
                let _: Option<()> = self.expected("rules", "a map of rules by their names", other);
            }
            None => self.wrong("rules", NO_RULE),
        }
    }

    /// A number of bytes: plain, or with `KB`, `MB` or `GB`.
    fn bytes(&mut self, path: &str, value: &Value) -> Option<u64> {
        match value {
            Value::String(text) => bytes(text).map_err(|message| self.wrong(path, message)).ok(),
            other => self.whole(path, other),
        }
    }

    fn headers(&mut self, value: &Value, names: &mut HeaderNames) {
        let Some(map) = self.map("headers", value, fields::HEADERS) else { return };
        let slots = [
            ("limit", &mut names.limit),
            ("remaining", &mut names.remaining),
            ("reset", &mut names.reset),
        ];
        for (name, slot) in slots {
            if let Some(name) = field(map, name).and_then(|v| self.text(&at("headers", name), v)) {
                *slot = name;
            }
        }
    }

    fn rule(&mut self, path: &str, value: &Value) -> Option<RuleConfig> {
        if !value.is_object() {
            return self.expected(path, "a map such as { limits: 20/min }", value);
        }
        let map = self.map(path, value, fields::RULE)?;
        let get = |name: &str| field(map, name);
        let of = |field: &str| at(path, field);
        let key = get("key").and_then(|v| self.texts(&of("key"), v));
        let mut rule =
            RuleConfig { key: key.unwrap_or(vec!["key".to_string()]), ..RuleConfig::default() };
        match get("limits") {
            Some(limits) => rule.limits = self.limits(&of("limits"), limits),
            None => self.wrong(&of("limits"), "there is no limit; write limits: 20/min, say"),
        }
        rule.warn_at = get("warn_at").and_then(|v| self.fraction(&of("warn_at"), v));
        rule.cooldown = get("cooldown").and_then(|v| self.period(&of("cooldown"), v));
        rule.backoff = get("backoff").and_then(|v| self.backoff(&of("backoff"), v));
        rule.alert = get("alert").and_then(|v| self.alert(&of("alert"), v));
        rule.notify =
            get("notify").and_then(|v| self.choice(&of("notify"), v, &NOTIFY)).unwrap_or_default();
        rule.penalty_scope = get("penalty_scope").and_then(|v| self.texts(&of("penalty_scope"), v));
        rule.budget = get("budget").and_then(|v| self.budget(&of("budget"), v));
        rule.classify = get("classify").and_then(|v| self.classify(&of("classify"), v));
        rule.mode =
            get("mode").and_then(|v| self.choice(&of("mode"), v, &MODES)).unwrap_or_default();
        rule.attach = get("attach").cloned();
        rule.ceiling = get("ceiling").and_then(|v| self.whole(&of("ceiling"), v));
        let capacity = get("capacity").and_then(|v| self.whole(&of("capacity"), v));
        rule.capacity = capacity.map(|capacity| capacity as usize);
        rule.on_full = get("on_full").and_then(|v| self.choice(&of("on_full"), v, &ON_FULL));
        if let Some(exempt) = get("exempt") {
            rule.exempt = self.list(&of("exempt"), exempt, Reader::matching);
        }
        let names: Vec<&str> = rule.limits.iter().map(Limit::name).collect();
        if let Some(when) = get("when") {
            rule.when =
                self.list(&of("when"), when, |reader, path, v| reader.when(path, v, &names));
        }
        Some(rule)
    }

    fn list<T>(
        &mut self,
        path: &str,
        value: &Value,
        mut read: impl FnMut(&mut Reader, &str, &Value) -> Option<T>,
    ) -> Vec<T> {
        let Value::Array(list) = value else {
            self.expected::<()>(path, "a list", value);
            return Vec::new();
        };
        let each = list.iter().enumerate();
        each.filter_map(|(index, one)| read(self, &format!("{path}[{index}]"), one)).collect()
    }

    fn limits(&mut self, path: &str, value: &Value) -> Vec<Limit> {
        match value {
            Value::String(text) => self.limit_texts(path, text),
            Value::Array(list) => {
                let mut limits = Vec::new();
                for (index, one) in list.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    match one {
                        Value::String(text) => limits.extend(self.limit_texts(&path, text)),
                        other => limits.extend(self.limit(&path, other, None)),
                    }
                }
                limits
            }
            Value::Object(map) => {
                let each = map.iter();
                each.filter_map(|(name, one)| self.limit(&at(path, name), one, Some(name)))
                    .collect()
            }
            other => {
                self.expected::<()>(path, "text such as 20/min, a list, or a map by names", other);
                Vec::new()
            }
        }
    }

    fn limit_texts(&mut self, path: &str, text: &str) -> Vec<Limit> {
        match parse_limits(text) {
            Ok(limits) => limits,
            Err(wrong) => {
                wrong.into_iter().for_each(|message| self.wrong(path, message));
                Vec::new()
            }
        }
    }

    fn limit(&mut self, path: &str, value: &Value, name: Option<&str>) -> Option<Limit> {
        if let Value::String(text) = value {
            return match parse_limit(text) {
                Ok(limit) => Some(limit.named(name.unwrap_or_default())),
                Err(message) => {
                    self.wrong(path, format!("{text}: {message}"));
                    None
                }
            };
        }
        if !value.is_object() {
            return self.expected(path, "text such as 20/min, or a map", value);
        }
        let map = self.map(path, value, fields::LIMIT)?;
        let get = |name: &str| field(map, name);
        let of = |field: &str| at(path, field);
        let algorithm = match get("algorithm") {
            Some(value) => self.choice(&of("algorithm"), value, &ALGORITHMS),
            None => parse_algorithm("bucket"),
        };
        let permits = algorithm == parse_algorithm("concurrent");
        let max = match get("max") {
            Some(value) => self.whole(&of("max"), value),
            None => {
                self.wrong(&of("max"), "it is missing: how much may be spent?");
                None
            }
        };
        let (mine, others) = if permits { ("lease", "per") } else { ("per", "lease") };
        let per = match get(mine) {
            Some(value) => self.period(&of(mine), value),
            None if permits => Some(DEFAULT_LEASE),
            None => {
                self.wrong(&of("per"), "it is missing: in what time?");
                None
            }
        };
        if get(others).is_some() {
            self.wrong(&of(others), not_its_period(permits));
        }
        let burst = get("burst").and_then(|v| self.whole(&of("burst"), v));
        let cooldown = get("cooldown").and_then(|v| self.period(&of("cooldown"), v));
        let scope = get("scope").and_then(|v| self.texts(&of("scope"), v));
        let counts = get("counts").and_then(|v| self.choice(&of("counts"), v, &COUNTS));
        let stated = get("name").and_then(|v| self.text(&of("name"), v));
        if let (Some(name), Some(_)) = (name, &stated) {
            self.wrong(&of("name"), format!("this limit is already called {name:?}"));
        }
        let limit = Limit::new(algorithm?, max?, per?);
        let limit = match name.map(str::to_string).or(stated) {
            Some(name) => limit.named(name),
            None => limit,
        };
        Some(Limit { burst, cooldown, scope, counts: counts.unwrap_or_default(), ..limit })
    }

    fn when(&mut self, path: &str, value: &Value, names: &[&str]) -> Option<When> {
        let map = self.map(path, value, fields::WHEN)?;
        let get = |name: &str| field(map, name);
        let of = |field: &str| at(path, field);
        let matches = match get("match") {
            Some(value) => self.matching(&of("match"), value),
            None => {
                self.wrong(&of("match"), "it is missing: which calls is this for?");
                None
            }
        };
        let limits = get("limits").and_then(|v| self.patches(&of("limits"), v, names));
        Some(When {
            limits: limits.unwrap_or_default(),
            warn_at: get("warn_at").and_then(|v| self.fraction(&of("warn_at"), v)),
            cooldown: get("cooldown").and_then(|v| self.period(&of("cooldown"), v)),
            backoff: get("backoff").and_then(|v| self.backoff(&of("backoff"), v)),
            alert: get("alert").and_then(|v| self.alert(&of("alert"), v)),
            notify: get("notify").and_then(|v| self.choice(&of("notify"), v, &NOTIFY)),
            mode: get("mode").and_then(|v| self.choice(&of("mode"), v, &MODES)),
            attach: get("attach").cloned(),
            matches: matches?,
        })
    }

    fn patches(&mut self, path: &str, value: &Value, names: &[&str]) -> Option<LimitPatches> {
        match (value, names) {
            (Value::Object(map), _) => {
                let read = |(name, one): (&String, &Value)| {
                    Some((name.clone(), self.patch(&at(path, name), one)?))
                };
                let read: Vec<_> = map.iter().map(read).collect();
                Some(read.into_iter().flatten().collect())
            }
            (Value::String(_), [only]) => Some(vec![(only.to_string(), self.patch(path, value)?)]),
            (other, _) => self.expected(path, "a map of changes by the limits' names", other),
        }
    }

    /// What changes of one limit: a map of fields, or a text whose parameters are taken.
    fn patch(&mut self, path: &str, value: &Value) -> Option<LimitPatch> {
        if let Value::String(text) = value {
            let read = parse_patch(text).map_err(|message| format!("{text}: {message}"));
            return read.map_err(|message| self.wrong(path, message)).ok();
        }
        if !value.is_object() {
            return self.expected(path, "a map of fields", value);
        }
        let map = self.map(path, value, fields::PATCH)?;
        let get = |name: &str| field(map, name);
        let of = |field: &str| at(path, field);
        Some(LimitPatch {
            max: get("max").and_then(|v| self.whole(&of("max"), v)),
            per: get("per").and_then(|v| self.period(&of("per"), v)),
            burst: get("burst").and_then(|v| self.whole(&of("burst"), v)),
            lease: get("lease").and_then(|v| self.period(&of("lease"), v)),
            cooldown: get("cooldown").and_then(|v| self.period(&of("cooldown"), v)),
            algorithm: get("algorithm").and_then(|v| self.choice(&of("algorithm"), v, &ALGORITHMS)),
            scope: get("scope").and_then(|v| self.texts(&of("scope"), v)),
            counts: get("counts").and_then(|v| self.choice(&of("counts"), v, &COUNTS)),
        })
    }

    fn matching(&mut self, path: &str, value: &Value) -> Option<Match> {
        let Value::Object(map) = value else {
            return self.expected(path, "a map of fields and values", value);
        };
        let mut fields = Vec::new();
        for (field, values) in map {
            fields.push((field.clone(), self.texts(&at(path, field), values)?));
        }
        Some(Match { fields })
    }

    fn backoff(&mut self, path: &str, value: &Value) -> Option<Backoff> {
        let map = self.map(path, value, fields::BACKOFF)?;
        let of = |field: &str| at(path, field);
        let steps = match field(map, "steps") {
            Some(value) => self.list(&of("steps"), value, Reader::period),
            None => {
                self.wrong(&of("steps"), "they are missing: write steps: [1s, 2s, 5s], say");
                Vec::new()
            }
        };
        let quiet = match field(map, "quiet") {
            Some(value) => self.period(&of("quiet"), value),
            None => {
                self.wrong(&of("quiet"), "it is missing: after how long does it start over?");
                None
            }
        };
        let round = field(map, "round").and_then(|v| self.period(&of("round"), v));
        let enforce = field(map, "enforce").and_then(|v| self.truth(&of("enforce"), v));
        Some(Backoff { steps, quiet: quiet?, round, enforce: enforce.unwrap_or(false) })
    }

    fn alert(&mut self, path: &str, value: &Value) -> Option<AlertAt> {
        let map = self.map(path, value, fields::ALERT)?;
        let of = |field: &str| at(path, field);
        let (violations, within) = (field(map, "violations"), field(map, "within"));
        if violations.is_none() || within.is_none() {
            self.wrong(
                path,
                "both `violations` and `within` are needed: { violations: 10, within: 5m }",
            );
        }
        let violations = violations.and_then(|v| self.whole(&of("violations"), v));
        let within = within.and_then(|v| self.period(&of("within"), v));
        Some(AlertAt { violations: violations?, within: within? })
    }

    fn budget(&mut self, path: &str, value: &Value) -> Option<BudgetConfig> {
        let map = self.map(path, value, fields::BUDGET)?;
        let of = |field: &str| at(path, field);
        let daily = match field(map, "daily") {
            Some(value) => self.whole(&of("daily"), value),
            None => {
                self.wrong(&of("daily"), "it is missing: how much may be spent in a day?");
                None
            }
        };
        let hour = field(map, "reset_hour_utc").and_then(|v| self.hour(&of("reset_hour_utc"), v));
        Some(BudgetConfig {
            per_hit: field(map, "per_hit").and_then(|v| self.whole(&of("per_hit"), v)),
            reset_hour_utc: hour.unwrap_or(0),
            unit: field(map, "unit").and_then(|v| self.text(&of("unit"), v)),
            daily: daily?,
        })
    }

    fn classify(&mut self, path: &str, value: &Value) -> Option<Classify> {
        let map = self.map(path, value, fields::CLASSIFY)?;
        let mut needed = |name: &str| match field(map, name) {
            Some(value) => self.scalar(&at(path, name), value),
            None => {
                self.wrong(
                    &at(path, name),
                    "it is missing; classify needs from, to, map and default",
                );
                None
            }
        };
        let (from, to, default) = (needed("from"), needed("to"), needed("default"));
        let mut pairs = Vec::new();
        match field(map, "map") {
            Some(Value::Object(map)) => {
                for (value, class) in map {
                    let class = self.scalar(&at(&at(path, "map"), value), class);
                    pairs.extend(class.map(|class| (value.clone(), class)));
                }
            }
            Some(other) => drop(self.expected::<()>(&at(path, "map"), "a map of values", other)),
            None => self.wrong(&at(path, "map"), "it is missing: what is made of what?"),
        }
        Some(Classify { from: from?, to: to?, map: pairs, default: default? })
    }
}

/// Reads a number of bytes: a whole number, alone or with `KB`, `MB` or `GB`.
///
/// ```
/// assert_eq!(tidegate::bindings::parse_bytes("64MB").unwrap(), 64 << 20);
/// assert_eq!(tidegate::bindings::parse_bytes("4096").unwrap(), 4096);
/// ```
///
/// # Errors
/// If it is none, with the reason.
pub fn parse_bytes(text: &str) -> Result<u64, Error> {
    bytes(text).map_err(|message| crate::config::limit::one("", message))
}

fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KB", 1u64 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
    let unit = units.into_iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (count, size) = unit.unwrap_or((text, 1));
    let count: Option<u64> = count.trim().parse().ok();
    let wrong = || format!("{text:?} is no number of bytes; write 64MB, say");
    count.map(|count| count.saturating_mul(size)).ok_or_else(wrong)
}

/// What is said of a number that is not an hour.
pub(crate) fn not_an_hour(hour: u64) -> String {
    format!("{hour} is not an hour of the day, 0 to 23")
}

fn whole_of(number: Option<f64>) -> Option<u64> {
    number.filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n)).map(|n| n as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_their_defaults() {
        let lookup = |name: &str| match name {
            "SET" => Some("7".to_string()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let read = |text: &str| substituted(text, lookup);
        assert_eq!(read("${SET}/${UNSET:-min}").unwrap(), "7/min");
        assert_eq!(read("${EMPTY:-x}${UNSET:-}").unwrap(), "x");
        assert_eq!(read("no $variable {here}").unwrap(), "no $variable {here}");
        assert!(read("${UNSET}").unwrap_err().contains("UNSET"));
        assert!(read("${SET").is_err() && read("${a b}").is_err());
    }
}
