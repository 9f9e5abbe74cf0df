//! What a limiter is made with, beside its policy.

use tidegate_core::{Clock, OnFull};

/// What a limiter is made with; what is set wins over the policy.
///
/// ```
/// use tidegate::{Limiter, Options};
/// let options = Options { store: Some("memory:shared".into()), capacity: Some(100), ..Options::default() };
/// let (a, b) = (Limiter::with("1/h", options.clone()).unwrap(), Limiter::with("1/h", options).unwrap());
/// assert!(a.allow("alice").unwrap() && !b.allow("alice").unwrap());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where state lives.
    pub store: Option<String>,
    /// Keys that a rule may hold live. Where neither this nor the policy states it, each rule takes
    /// what fits into its share of `memory`.
    pub capacity: Option<usize>,
    /// What happens beyond that.
    pub on_full: Option<OnFull>,
    /// Where time comes from. A file store has a clock of its own, unless this is a manual one.
    pub clock: Clock,
    /// Whether tables of a file store that don't fit the policy, or can't be read, are made anew, and
    /// their counts lost.
    pub recreate: bool,
    /// Whether the folder of a file store is shared with its group: the folder is made with mode 0770,
    /// files with 0660.
    pub group: Option<bool>,
    /// Whether root may open a file store that is another user's. Then no link is followed, and every
    /// file stays that user's. For other users it means nothing.
    pub as_owner: bool,
    /// Bytes that all tables together may take.
    pub memory: Option<u64>,
}
