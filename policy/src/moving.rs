//! What of a table goes on in a table of another shape.
//!
//! | | goes on if |
//! |---|---|
//! | a limit | it keeps its algorithm, scope and `counts`, and its name; one that is named by its text keeps its position instead |
//! | penalties | `penalty_scope` is the same |
//! | budgets | always |
//!
//! Everything else starts fresh. All windows of one scope that count the same share a log. So a window
//! that is added beside others finds what their log holds. A cooldown that runs is over if its limit
//! is not in the new table.

use tidegate_core::{Clock, FileLayout, FileTables, Limits, NoPlace, Penalty, TableFile};

use crate::budget::Day;
use crate::folder::Shape;
use crate::plan::Plan;
use crate::tables::{group_capacity, is_unspent};

/// The ledgers of a file, in their order.
const PENALTIES: usize = 0;
const BUDGETS: usize = 1;

impl Shape {
    /// How tables of this shape lie in a file. Numbers don't matter for that, so any will do.
    pub(crate) fn layout(&self) -> Option<FileLayout> {
        let mut engines = Vec::new();
        for group in &self.plan.groups {
            let stated = |&index: &usize| {
                let per = std::time::Duration::from_secs(1);
                let limit = crate::Limit::new(self.plan.algorithms[index], 1, per);
                limit.to_core(self.plan.ceilings[index].max(1))
            };
            let limits: Vec<_> = group.limits.iter().map(stated).collect();
            let capacity = group_capacity(&group.scope, self.capacity);
            engines.push((Limits::new(&limits).ok()?, capacity));
        }
        let penalties = group_capacity(&self.plan.penalty_scope, self.capacity);
        Some(FileLayout { engines, ledgers: vec![(3, penalties), (1, self.capacity)] })
    }
}

impl Plan {
    /// The limit of `old` that limit `index` goes on from.
    fn origin(&self, index: usize, old: &Plan) -> Option<usize> {
        let name = self.stored_name(index);
        (0..old.names.len()).find(|&other| {
            old.stored_name(other) == name
                && old.labelled[other] == self.labelled[index]
                && old.algorithms[other] == self.algorithms[index]
                && old.scope(other) == self.scope(index)
                && old.counts(other) == self.counts(index)
        })
    }

    /// Moves all that goes on from tables of one plan to new ones of another.
    fn move_rows(
        &self,
        new: &FileTables,
        (old_plan, old): (&Plan, &FileTables),
        keep: u64,
        clock: &Clock,
    ) -> Result<(), NoPlace> {
        let now = clock.now();
        for (to, group) in self.groups.iter().enumerate() {
            let like = |other: &crate::plan::Group| {
                other.scope == group.scope && other.counts == group.counts
            };
            let Some(from) = old_plan.groups.iter().position(like) else { continue };
            let place = |&index: &usize| Some(old_plan.places[self.origin(index, old_plan)?].1);
            let limits: Vec<_> = group.limits.iter().map(place).collect();
            new.move_engine(to, old, from, &limits, now)?;
        }
        if self.penalty_scope == old_plan.penalty_scope {
            let number = |old: usize| {
                (0..self.names.len()).find(|&index| self.origin(index, old_plan) == Some(old))
            };
            let renumber = |notes: &mut [u64; 3]| {
                notes[0] = Penalty::from_note(notes[0]).renumbered(number).note();
            };
            let is_idle = |notes: &[u64; 3]| {
                Penalty::from_note(notes[0]).since_last(now).is_none_or(|age| age >= keep)
            };
            new.move_ledger(PENALTIES, old, PENALTIES, is_idle, renumber)?;
        }
        // By the latest of all hours at which a day may begin: what is over then is over for all.
        let day = Day::today(clock, 23).number;
        new.move_ledger(BUDGETS, old, BUDGETS, |notes| is_unspent(notes, day), |_| ())?;
        new.move_board(old);
        Ok(())
    }
}

/// Moves all that goes on from a file of one shape to a new one of another.
pub(crate) fn move_rows(
    (from, old): (&Shape, &TableFile),
    (to, new): (&Shape, &TableFile),
    clock: &Clock,
) -> Result<(), String> {
    let damaged =
        || "its tables are not as it describes them; remove it to start afresh".to_string();
    let old_tables = from.layout().and_then(|layout| old.laid_out(&layout)).ok_or_else(damaged)?;
    let new_tables = to.layout().and_then(|layout| new.laid_out(&layout)).ok_or_else(damaged)?;
    let moved = to.plan.move_rows(&new_tables, (&from.plan, &old_tables), old.keep().get(), clock);
    moved.map_err(|NoPlace { rows }| {
        format!(
            "{rows} keys still count, and a table with a `capacity` of {} has no place for them all; \
             state a larger one (it was {}), or open with `recreate` to forget them",
            to.capacity, from.capacity
        )
    })
}
