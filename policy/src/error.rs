//! What went wrong: a code to act on, and a message that says where and what to do.

use std::fmt;

/// What kind of mistake an [`Error`] tells of.
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
    /// The code as a word: `policy`, `key`, `rule`, `operation`, `range`, `address`, `store`, `file`,
    /// `memory` or `closed`.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `rules.messages.limits.burst.per`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
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
/// assert_eq!(error.to_string(), "limits: 20/mni: \"mni\" is not a unit; write ms, s, min, h or d");
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
        Error(Box::new(Inner { code, message: message.into(), problems: Vec::new() }))
    }

    /// All the problems of a policy. There is at least one.
    #[cold]
    pub(crate) fn policy(problems: Vec<Problem>) -> Error {
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let message = match &*lines {
            [one] => one.clone(),
            many => format!("{} problems:\n  {}", many.len(), many.join("\n  ")),
        };
        Error(Box::new(Inner { code: Code::Policy, message, problems }))
    }

    /// What kind of mistake it is.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The mistakes of a policy, each with its place; empty for other errors.
    pub fn problems(&self) -> &[Problem] {
        &self.0.problems
    }
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
