//! What a limiter is made with, beside its policy.

use tidegate_core::{Clock, OnFull};

/// What a limiter is made with; what is set wins over the policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Where state lives.
    pub(crate) store: Option<String>,
    /// Keys that a rule may hold live. Where neither this nor the policy states it, each rule takes
    /// what fits into its share of `memory`.
    pub(crate) capacity: Option<usize>,
    /// What happens beyond that.
    pub(crate) on_full: Option<OnFull>,
    /// Where time comes from. A file store has a clock of its own, unless this is a manual one.
    pub(crate) clock: Clock,
    /// Whether tables of a file store that don't fit the policy, or can't be read, are made anew,
    /// and their counts lost.
    pub(crate) recreate: bool,
    /// Whether the folder of a file store is shared with its group: the folder is made with mode
    /// 0770, files with 0660.
    pub(crate) group: Option<bool>,
    /// Whether root may open a file store that is another user's. Then no link is followed, and
    /// every file stays that user's. For other users it means nothing.
    pub(crate) as_owner: bool,
    /// Bytes that all tables together may take.
    pub(crate) memory: Option<u64>,
}
