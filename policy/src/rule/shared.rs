//! What the handles of a limiter share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use tidegate_core::ForkLock;

use crate::config::options::Options;
use crate::config::policy::Policy;
use crate::error::Error;
use crate::metrics::event::Sequence;
use crate::rule::state::RuleState;
use crate::store::open::Store;
use crate::store::trail::Changes;

/// What the handles of a limiter share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) policy: ArcSwap<Policy>,
    pub(crate) rules: ArcSwap<HashMap<String, Arc<RuleState>>>,
    pub(crate) store: Store,
    pub(crate) options: Options,
    /// The file that it was read from.
    pub(crate) source: Option<PathBuf>,
    /// One change of the rules at a time.
    pub(crate) changing: ForkLock<Gone>,
    /// Numbers the events of all rules.
    pub(crate) sequence: Arc<Sequence>,
}

/// Rules that a reload took away and that somebody may still hold, by name.
type Gone = HashMap<String, Weak<RuleState>>;

impl Shared {
    pub(crate) fn changes_after(&self, since: u64) -> Result<Changes, Error> {
        self.store.changes_after(since)
    }
}
