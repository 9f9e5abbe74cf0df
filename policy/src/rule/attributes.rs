//! Which attributes a rule reads, for surfaces that convert no others.

use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::rule::Rule;
use crate::snapshot::Snapshot;

/// The names of the attributes that hits of a rule read. A call may leave out all others: no
/// decision depends on them.
///
/// A new policy or a run-time change may make a rule read others. So a surface asks
/// [`is_renewed`](ReadAttributes::is_renewed) before each hit.
///
/// ```
/// use tidegate::bindings::ReadAttributes;
/// use tidegate::{Limiter, Match};
///
/// let rule = Limiter::new("3/min").unwrap().rule("default").unwrap();
/// let mut read = ReadAttributes::default();
/// assert!(!read.is_renewed(&rule).unwrap() && read.names().is_empty());
/// rule.add_exempt(Match::new([("role", "admin")])).unwrap();
/// assert!(read.is_renewed(&rule).unwrap());
/// assert_eq!(read.names(), ["role"]);
/// assert!(!read.is_renewed(&rule).unwrap());
/// ```
#[derive(Debug, Default)]
pub struct ReadAttributes {
    /// The snapshot that was asked last. Its memory stays while this lives, so no other snapshot
    /// can have its address. What it owns does not stay.
    of: Weak<Snapshot>,
    names: Vec<String>,
}

impl ReadAttributes {
    /// The names, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the rule now reads other attributes than these names said. The names are brought up
    /// to date.
    ///
    /// # Errors
    /// If the limiter is closed.
    #[inline]
    pub fn is_renewed(&mut self, rule: &Rule) -> Result<bool, Error> {
        let of = self.of.as_ptr();
        let is_same =
            rule.state.with_cached(|view| view.is_some_and(|view| std::ptr::eq(view.snapshot, of)));
        if is_same { Ok(false) } else { self.renew(rule) }
    }

    #[cold]
    fn renew(&mut self, rule: &Rule) -> Result<bool, Error> {
        let snapshot = rule.snapshot()?;
        if std::ptr::eq(Arc::as_ptr(&snapshot), self.of.as_ptr()) {
            return Ok(false);
        }
        self.of = Arc::downgrade(&snapshot);
        let names = snapshot.attributes();
        if names.iter().eq(&self.names) {
            return Ok(false);
        }
        self.names = names.into_iter().map(str::to_string).collect();
        Ok(true)
    }
}
