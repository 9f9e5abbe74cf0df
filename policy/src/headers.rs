//! A decision as HTTP header fields.

use std::time::Duration;

use crate::decision::{Decision, Left, Reason};

/// The draft that the `ietf` fields follow; it still moves.
///
/// ```
/// assert!(tidegate::IETF_DRAFT.starts_with("draft-ietf-httpapi-ratelimit-headers"));
/// ```
pub const IETF_DRAFT: &str = "draft-ietf-httpapi-ratelimit-headers-10";

/// Which header fields.
///
/// ```
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// let headers = limiter.hit("alice", 1).unwrap().headers(tidegate::Style::Legacy);
/// assert_eq!(headers[0], ("X-RateLimit-Limit".to_string(), "3".to_string()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, under the names that the policy gives them.
    Legacy,
    /// `RateLimit-Policy` and `RateLimit`, as structured fields of [`IETF_DRAFT`].
    Ietf,
    /// All of them.
    #[default]
    Both,
}

fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// A string of a structured field. Names are printable ASCII, checked when the rule is made.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Decision {
    /// The decision as header fields, names and values, in the order in which they are best sent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limiter, ManualClock, Options, Style};
    ///
    /// let clock = ManualClock::new(Duration::ZERO, Duration::ZERO).clock();
    /// let limiter = Limiter::with("20/min", Options { clock, ..Options::default() }).unwrap();
    /// let headers = limiter.hit("alice", 1).unwrap().headers(Style::Ietf);
    /// assert_eq!(headers[0], ("RateLimit-Policy".to_string(), r#""20/min";q=20;w=60"#.to_string()));
    /// assert_eq!(headers[1], ("RateLimit".to_string(), r#""20/min";r=19;t=3"#.to_string()));
    /// ```
    pub fn headers(&self, style: Style) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if matches!(self.reason, Some(Reason::Exempt | Reason::Off)) {
            return headers;
        }
        if style != Style::Ietf {
            self.legacy(&mut headers);
        }
        if style != Style::Legacy {
            headers.push(("RateLimit-Policy".to_string(), self.policy_items()));
            headers.push(("RateLimit".to_string(), self.limit_items()));
        }
        if let Some(wait) = self.retry_after.filter(|_| !self.allowed) {
            headers.push(("Retry-After".to_string(), seconds_up(wait).max(1).to_string()));
        }
        headers
    }

    fn legacy(&self, headers: &mut Vec<(String, String)>) {
        let names = &self.face().headers;
        if let Some(limit) = self.limit {
            headers.push((names.limit.clone(), limit.to_string()));
        }
        if let Some(remaining) = self.remaining {
            headers.push((names.remaining.clone(), remaining.to_string()));
        }
        let after = if self.allowed { Some(self.reset_after) } else { self.retry_after };
        if let Some(after) = after {
            headers.push((names.reset.clone(), seconds_up(self.wall() + after).to_string()));
        }
    }

    /// The wall time at which the decision was made.
    fn wall(&self) -> Duration {
        let clock = &self.face().clock;
        let age = Duration::from_nanos(clock.now().saturating_sub(self.at));
        clock.wall().saturating_sub(age)
    }

    fn policy_items(&self) -> String {
        let item =
            |(name, numbers): (&String, &crate::variant::Numbers)| match numbers.window_seconds {
                0 => format!("{};q={};qu=\"concurrent-requests\"", quoted(name), numbers.size),
                window => format!("{};q={};w={window}", quoted(name), numbers.size),
            };
        let items = self.face().limits.iter().zip(&self.variant.numbers).map(item);
        items.collect::<Vec<_>>().join(", ")
    }

    fn limit_items(&self) -> String {
        // A key that must wait for something else has nothing, whatever its limits say.
        let waits =
            matches!(self.reason, Some(Reason::Cooldown | Reason::Backoff | Reason::Budget));
        let item = |(name, left): (&String, &Left)| {
            let (remaining, after) = match waits {
                true => (0, self.retry_after.map(seconds_up)),
                false => (left.remaining(), left.more_seconds()),
            };
            match after {
                Some(after) => format!("{};r={remaining};t={after}", quoted(name)),
                None => format!("{};r={remaining}", quoted(name)),
            }
        };
        self.face().limits.iter().zip(&self.left).map(item).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_that_need_it_are_escaped() {
        assert_eq!(super::quoted(r#"a "b" \c"#), r#""a \"b\" \\c""#);
    }
}
