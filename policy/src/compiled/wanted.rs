//! What a rule asks of its store: the kind and size of its tables.

use tidegate_core::{Engine, Ledger, OnFull};

use crate::compiled::plan::Plan;
use crate::compiled::variant::Variant;

/// Notes on a key's denials: penalty, end of an enforced wait, alert.
pub(crate) type Penalties = Ledger<3>;

/// What keys have spent today.
pub(crate) type Budgets = Ledger<1>;

/// What a rule asks of its store.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) plan: Plan,
    pub(crate) capacity: usize,
    /// Whether the capacity was stated, or may be that of tables that are there.
    pub(crate) capacity_stated: bool,
    /// Whether the store is a file.
    pub(crate) in_file: bool,
    pub(crate) on_full: OnFull,
    pub(crate) penalties: bool,
    pub(crate) budgets: bool,
}

impl Wanted {
    /// Whether tables of this capacity will do.
    pub(crate) fn can_have(&self, capacity: usize) -> bool {
        !self.capacity_stated || self.capacity == capacity
    }

    /// The same, with room for so many keys.
    pub(crate) fn holding(&self, capacity: usize) -> Wanted {
        Wanted { capacity, ..self.clone() }
    }

    /// Bytes that tables of this kind take.
    pub(crate) fn bytes_for(&self, base: &Variant) -> u64 {
        let groups = self.plan.groups.iter().zip(&base.groups).map(|(group, limits)| {
            Engine::bytes_for(limits, group_capacity(&group.scope, self.capacity))
        });
        let scope = &self.plan.penalty_scope;
        let penalties =
            self.penalties.then(|| Penalties::bytes_for(group_capacity(scope, self.capacity)));
        let budgets = self.budgets.then(|| Budgets::bytes_for(self.capacity));
        let all = groups.chain(penalties).chain(budgets);
        all.map(|bytes| bytes.unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    }
}

/// One key is all that a limit without parts has.
pub(crate) fn group_capacity(scope: &[usize], capacity: usize) -> usize {
    if scope.is_empty() { 1 } else { capacity }
}

/// Tables that a rule has already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExistingTables {
    pub(crate) capacity: usize,
    /// Whether the rule needs others, to which their counts are moved.
    pub(crate) moved: bool,
}

impl ExistingTables {
    /// Tables that the rule goes on with as they are.
    pub(crate) fn kept(capacity: usize) -> ExistingTables {
        ExistingTables { capacity, moved: false }
    }
}
