//! Policies loaded from files, texts and maps: read, and checked where something can't be read.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_core::Serialize;
use serde_json::Value;
use tidegate_core::Clock;

use crate::compiled::validate;
use crate::config::parse::{MOST_TEXT, parse, too_long};
use crate::config::policy::Policy;
use crate::config::read::Reader;
use crate::config::value::plain_value;
use crate::error::{Code, Error, Problem};

impl Policy {
    /// Reads a policy file: JSON, or YAML with the feature `yaml`.
    ///
    /// # Errors
    /// If it can't be read, or with all its problems.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Policy, Error> {
        let path = path.as_ref();
        let text = read(path).map_err(|why| Error::new(Code::File, why).in_file(path))?;
        Policy::from_text(&text).map_err(|error| error.in_file(path))
    }

    /// Reads a policy's text, as that of a file. `${NAME:-default}` takes environment variables.
    ///
    /// ```
    /// # #[cfg(feature = "yaml")] {
    /// let policy = tidegate::Policy::from_text("
    /// version: 1
    /// rules:
    ///   messages:
    ///     limits: { per-minute: { max: 20, per: 1m, algorithm: window } }
    /// ").unwrap();
    /// assert_eq!(policy.rules[0].1.limits[0].name(), "per-minute");
    /// # }
    /// ```
    ///
    /// # Errors
    /// With all its problems.
    pub fn from_text(text: &str) -> Result<Policy, Error> {
        let mut value = parse(text).map_err(|message| crate::config::limit::one("", message))?;
        let mut reader = Reader::default();
        reader.substitute("", &mut value);
        checked(reader, &value)
    }

    /// Reads a policy from a map, as a file has it: a `serde_json::Value`, or any type that
    /// serializes to such a map.
    ///
    /// # Errors
    /// With all its problems.
    pub fn from_value(value: &impl Serialize) -> Result<Policy, Error> {
        checked(Reader::default(), &plain_value(value)?)
    }

    /// As [`Policy::from_value`], where a period may be a number too: so many of `unit`.
    ///
    /// ```
    /// use serde_json::json;
    /// use std::time::Duration;
    /// let map = json!({"version": 1, "rules": {"a": {"limits": "2/min", "cooldown": 1.5}}});
    /// let policy = tidegate::Policy::from_value_in(&map, Duration::from_secs(1)).unwrap();
    /// assert_eq!(policy.rules[0].1.cooldown, Some(Duration::from_millis(1500)));
    /// ```
    ///
    /// # Errors
    /// With all its problems.
    #[doc(hidden)]
    pub fn from_value_in(value: &Value, unit: Duration) -> Result<Policy, Error> {
        checked(Reader::counting_in(unit), value)
    }
}

/// The policy, or all its problems. One that can be read is checked when a limiter is made of it.
fn checked(mut reader: Reader, value: &Value) -> Result<Policy, Error> {
    let policy = reader.policy(value)?;
    if !reader.problems.is_empty() {
        check_the_rest(&mut reader, policy.clone());
    }
    reader.finish(Some(policy))
}

/// What else is wrong: with the rules that could be read.
fn check_the_rest(reader: &mut Reader, mut policy: Policy) {
    let unread = |name: &str| {
        let path = format!("rules.{name}");
        let within = |p: &Problem| p.path == path || p.path.starts_with(&format!("{path}."));
        reader.problems.iter().any(within)
    };
    policy.rules.retain(|(name, _)| !unread(name));
    if policy.rules.is_empty() {
        return;
    }
    policy.fallback = None;
    if let Err(error) = validate::check(&policy, &Clock::System) {
        reader.problems.extend_from_slice(error.problems());
        if let (Code::Memory, message) = (error.code(), error.to_string()) {
            reader.wrong("memory", message.strip_prefix("memory: ").unwrap_or(&message));
        }
    }
}

/// The text of a file, or why it can't be had.
fn read(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    // No more than that: some files, such as /dev/zero, have no end.
    let most = MOST_TEXT as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > MOST_TEXT {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|_| "this is not UTF-8 text".to_string())
}
