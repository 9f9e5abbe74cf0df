//! What a call failed for, and the JavaScript error for it.

use std::any::Any;

use policy::Problem;
use serde_json::json;

use crate::js::{Result, Scope};
use crate::surface::Surface;

/// Which class of error.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Tidegate,
    Type,
    Range,
    /// JavaScript has thrown already.
    Thrown,
}

/// Why a call failed.
pub(crate) struct Failure {
    class: Class,
    code: &'static str,
    message: String,
    problems: Vec<Problem>,
}

impl Failure {
    #[cold]
    fn new(class: Class, code: &'static str, message: impl Into<String>) -> Failure {
        Failure { class, code, message: message.into(), problems: Vec::new() }
    }
    /// A value of a type that the argument can't have.
    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(Class::Type, "argument", message)
    }
    /// A number that the argument can't be.
    #[cold]
    pub(crate) fn range(message: impl Into<String>) -> Failure {
        Failure::new(Class::Range, "range", message)
    }
    /// A mistake of ours.
    #[cold]
    pub(crate) fn mistake(message: impl Into<String>) -> Failure {
        Failure::new(Class::Tidegate, "panic", message)
    }
    #[cold]
    pub(crate) fn thrown() -> Failure {
        Failure::new(Class::Thrown, "", "")
    }
    #[cold]
    pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Failure {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        // What it carries may panic again when dropped.
        std::mem::forget(panic);
        Failure::mistake(format!("a mistake in Tidegate: {text}"))
    }

    /// The same, with an argument called as JavaScript's callers do.
    pub(crate) fn calling(self, name: &str, ours: &str) -> Failure {
        let message = match self.message.strip_prefix(name) {
            Some(rest) => format!("{ours}{rest}"),
            None => self.message,
        };
        Failure { message, ..self }
    }

    /// Throws it.
    #[cold]
    pub(crate) fn throw(self, scope: Scope<'_>, surface: &Surface) -> Result<()> {
        let Some(class) = surface.error_class(self.class) else { return Ok(()) };
        let (code, message) = (scope.text(self.code)?, scope.text(&self.message)?);
        let one = |p: &Problem| json!({ "path": p.path, "message": p.message });
        let problems: Vec<_> = self.problems.iter().map(one).collect();
        let problems = scope.text(&json!(problems).to_string())?;
        // JavaScript's own classes take the message alone, and leave the rest.
        let error = scope.construct(scope.kept(class)?, &[message, code, problems])?;
        scope.set(error, c"code", code)?;
        scope.throw(error)
    }
}

impl From<policy::Error> for Failure {
    #[cold]
    fn from(error: policy::Error) -> Failure {
        let class = match error.code() {
            policy::Code::Range => Class::Range,
            _ => Class::Tidegate,
        };
        Failure {
            class,
            code: error.code().as_str(),
            message: error.to_string(),
            problems: error.problems().to_vec(),
        }
    }
}
