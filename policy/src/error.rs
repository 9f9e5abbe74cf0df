//! What went wrong: a code to act on, and a message that says where and what to do.

use std::fmt;
use std::path::Path;

/// What kind of mistake an [`Error`] tells of.
///
/// ```
/// let error = tidegate::Limiter::new("3/min").unwrap().rule("mesages").unwrap_err();
/// assert_eq!(error.code(), tidegate::Code::Rule);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A limit, rule or policy that can't be had; see [`Error::problems`].
    Policy,
    /// A key that is not the rule's: a wrong number of parts.
    Key,
    /// No rule of that name.
    Rule,
    /// The operation is not one for this rule.
    Operation,
    /// A number outside of what the rule allows, such as a `max` above its ceiling.
    Range,
    /// An address that is none.
    Address,
    /// The store can't be had or used.
    Store,
    /// A file that can't be read.
    File,
    /// More memory than the policy allows, or than there is.
    Memory,
    /// The limiter was closed.
    Closed,
}

impl Code {
    /// The code as a word: `policy`, `key`, `rule`, `operation`, `range`, `address`, `store`,
    /// `file`, `memory` or `closed`.
    ///
    /// ```
    /// assert_eq!(tidegate::Code::Closed.as_str(), "closed");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Policy => "policy",
            Code::Key => "key",
            Code::Rule => "rule",
            Code::Operation => "operation",
            Code::Range => "range",
            Code::Address => "address",
            Code::Store => "store",
            Code::File => "file",
            Code::Memory => "memory",
            Code::Closed => "closed",
        }
    }
}

/// One mistake in a policy.
///
/// ```
/// let text = r#"{"version": 1, "rules": {"a": {"limit": "3/min"}}}"#;
/// let error = tidegate::Policy::from_text(text).unwrap_err();
/// assert_eq!(error.problems()[0].path, "rules.a.limit");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Where: `rules.messages.limits.burst.per`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), message: message.into() }
    }

    /// The same, of something that lies at `path`.
    pub(crate) fn within(&self, path: &str) -> Problem {
        match self.path.is_empty() {
            true => Problem::new(path, &*self.message),
            false => Problem::new(format!("{path}.{}", self.path), &*self.message),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Why something was refused. Whatever was refused has changed nothing.
///
/// ```
/// use tidegate::{Code, Limiter};
///
/// let error = Limiter::new("20/mni").unwrap_err();
/// assert_eq!(error.code(), Code::Policy);
/// let wrong = "limits: 20/mni: \"mni\" is not a unit; write ms, s, min, h or d";
/// assert_eq!(error.to_string(), wrong);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: String,
    problems: Vec<Problem>,
}

impl Error {
    #[cold]
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        let message = shown(message.into(), LONGEST_MESSAGE);
        Error(Box::new(Inner { code, message, problems: Vec::new() }))
    }

    /// All the problems of a policy. There is at least one.
    #[cold]
    pub(crate) fn policy(problems: Vec<Problem>) -> Error {
        let clean = |p: Problem| Problem {
            path: shown(p.path, LONGEST_PATH),
            message: shown(p.message, LONGEST_MESSAGE),
        };
        let problems: Vec<Problem> = problems.into_iter().map(clean).collect();
        let message = match &*problems {
            [one] => one.to_string(),
            many => list(many),
        };
        Error(Box::new(Inner { code: Code::Policy, message, problems }))
    }

    /// The same error, with the file that it is about.
    #[cold]
    pub(crate) fn in_file(mut self, path: &Path) -> Error {
        if self.0.code == Code::Closed {
            return self;
        }
        let path = shown(path.display().to_string(), LONGEST_PATH);
        self.0.message = format!("{path}: {}", self.0.message);
        self
    }

    /// What kind of mistake it is.
    ///
    /// ```
    /// assert_eq!(tidegate::Limiter::new("").unwrap_err().code(), tidegate::Code::Policy);
    /// ```
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The mistakes of a policy, each with its place; empty for other errors.
    ///
    /// ```
    /// assert_eq!(tidegate::Limiter::new("1/x, 2/y").unwrap_err().problems().len(), 2);
    /// ```
    pub fn problems(&self) -> &[Problem] {
        &self.0.problems
    }
}

/// Characters of a path and of a message that are shown. What is wrong may quote what a user wrote,
/// and that may be of any length.
const LONGEST_PATH: usize = 200;
const LONGEST_MESSAGE: usize = 400;
/// Problems that are shown; [`Error::problems`] has them all.
const MOST_SHOWN: usize = 50;

fn list(problems: &[Problem]) -> String {
    let mut text = format!("{} problems:", problems.len());
    for problem in problems.iter().take(MOST_SHOWN) {
        text += &format!("\n  {problem}");
    }
    if let Some(more) = problems.len().checked_sub(MOST_SHOWN).filter(|&more| more > 0) {
        text += &format!("\n  and {more} more");
    }
    text
}

/// A text that is safe to print: nothing in it moves a cursor or turns the direction of writing,
/// and the middle of a long one is left out.
fn shown(text: String, most: usize) -> String {
    let unsafe_to_print = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let escaped = match text.contains(unsafe_to_print) {
        false => text,
        true => text
            .chars()
            .flat_map(|c| match unsafe_to_print(c) {
                true => c.escape_default().collect::<Vec<_>>(),
                false => vec![c],
            })
            .collect(),
    };
    let length = escaped.chars().count();
    if length <= most {
        return escaped;
    }
    // The start says where, the end what to do.
    let (start, end) = (escaped.chars().take(most / 2), escaped.chars().skip(length - most / 2));
    start.chain(['…']).chain(end).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wrote_is_shown_on_one_line_and_not_at_length() {
        assert_eq!(shown("a\u{1b}[2Jb\n\u{202e}c".to_string(), 99), r"a\u{1b}[2Jb\n\u{202e}c");
        assert_eq!(shown("äöüßäöüß".to_string(), 4), "äö…üß");
        let problem = Problem { path: "a\n".repeat(200), message: "x".repeat(9999) };
        let error = Error::policy(vec![problem; 200]);
        assert!(error.to_string().len() < 50_000 && error.to_string().ends_with("and 150 more"));
        assert_eq!(error.problems().len(), 200);
        assert_eq!(error.to_string().lines().count(), 52);
    }
}
