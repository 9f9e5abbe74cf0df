//! The bodies of refusals, as `application/problem+json` (RFC 9457).

use serde_json::{Value, json};

use crate::decision::Decision;

/// The media type of these bodies.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What the client of a denied request learns.
///
/// ```
/// use tidegate::http::Denial;
///
/// let denied = tidegate::Limiter::new("0/min").unwrap().hit("alice", 1).unwrap();
/// let denial = Denial::from(&denied);
/// assert_eq!(denial.detail(), "This request is over the limit, and waiting does not help.");
/// assert!(denial.body().starts_with(r#"{"type":"about:blank","title":"Too Many Requests""#));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Denial<'a> {
    /// As [`Decision::rule`].
    pub rule: &'a str,
    /// As [`Decision::reason`].
    pub reason: Option<&'a str>,
    /// As [`Decision::retry_after`], in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// As [`Decision::attach`].
    pub attach: Option<&'a Value>,
}

impl<'a> From<&'a Decision> for Denial<'a> {
    fn from(decision: &'a Decision) -> Denial<'a> {
        Denial {
            rule: decision.rule(),
            reason: decision.reason(),
            retry_after_ms: decision.retry_after.map(|wait| wait.as_millis() as u64),
            attach: decision.attach(),
        }
    }
}

impl Denial<'_> {
    /// The denial in words.
    pub fn detail(&self) -> String {
        match self.retry_after_ms {
            Some(wait) => format!("The rate limit is reached; try again in {wait} ms."),
            None => "This request is over the limit, and waiting does not help.".to_string(),
        }
    }

    /// The body of an answer with status 429.
    pub fn body(&self) -> String {
        let mut body = problem(429, "Too Many Requests", &self.detail());
        body["rule"] = self.rule.into();
        body["reason"] = self.reason.into();
        body["retry_after_ms"] = self.retry_after_ms.into();
        if let Some(attach) = self.attach {
            body["attach"] = attach.clone();
        }
        body.to_string()
    }
}

/// The body of an answer with status 500, to a request that could not be judged.
///
/// ```
/// assert!(tidegate::http::unjudged("The limiter is closed.").contains(r#""status":500"#));
/// ```
pub fn unjudged(detail: &str) -> String {
    problem(500, "Internal Server Error", detail).to_string()
}

/// RFC 9457 wants the status's own phrase as the title of a type that is `about:blank`.
fn problem(status: u16, title: &str, detail: &str) -> Value {
    json!({ "type": "about:blank", "title": title, "status": status, "detail": detail })
}
