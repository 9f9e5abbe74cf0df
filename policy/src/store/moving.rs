//! What of a table goes on in a table of another shape.
//!
//! | | goes on if |
//! |---|---|
//! | a limit | it keeps its name (position, if named by its text), algorithm, scope, `counts` |
//! | penalties | `penalty_scope` is the same |
//! | budgets | always |
//!
//! Everything else starts fresh. All windows of one scope that count the same share a log. So a
//! window that is added beside others finds what their log holds. A cooldown that runs is over if
//! its limit is not in the new table.

use tidegate_core::{
    Clock, FileLayout, FileTables, Format1, Format1Tables, Limits, NoPlace, TableFile,
};

use crate::compiled::plan::Plan;
use crate::compiled::wanted::group_capacity;
use crate::notes::{Penalty, Until};
use crate::store::file_store::RuleShape;
use crate::store::tables::{BUDGETS, PENALTIES, is_unspent};
use crate::time::Day;

impl RuleShape {
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
        (old_plan, old): (&Plan, &Source<'_>),
        keep: u64,
        clock: &Clock,
    ) -> Result<(), NoPlace> {
        let now = clock.now();
        for (to, group) in self.groups.iter().enumerate() {
            let like = |other: &crate::compiled::plan::Group| {
                other.scope == group.scope && other.counts == group.counts
            };
            let Some(from) = old_plan.groups.iter().position(like) else { continue };
            let place = |&index: &usize| Some(old_plan.places[self.origin(index, old_plan)?].1);
            let limits: Vec<_> = group.limits.iter().map(place).collect();
            old.move_engine(new, (to, from), &limits, now)?;
        }
        if self.penalty_scope == old_plan.penalty_scope {
            let number = |old: usize| {
                (0..self.names.len()).find(|&index| self.origin(index, old_plan) == Some(old))
            };
            let renumber = |notes: &mut [u64; 3]| {
                if matches!(old, Source::Format1(_)) {
                    notes[1] = Until::note_of_format1(notes[1], Penalty::from_note(notes[0]));
                }
                notes[0] = Penalty::from_note(notes[0]).renumbered(number).note();
            };
            let is_idle = |notes: &[u64; 3]| {
                Penalty::from_note(notes[0]).since_last(now).is_none_or(|age| age >= keep)
            };
            old.move_ledger(new, PENALTIES, is_idle, renumber)?;
        }
        // By the latest of all hours at which a day may begin: what is over then is over for all.
        let day = Day::today(clock, 23).number;
        old.move_ledger(new, BUDGETS, |notes| is_unspent(notes, day), |_| ())?;
        old.move_offenders(new);
        Ok(())
    }
}

/// The tables that rows are moved from.
enum Source<'f> {
    Here(FileTables),
    Format1(Format1Tables<'f>),
}

impl Source<'_> {
    fn move_engine(
        &self,
        new: &FileTables,
        (to, from): (usize, usize),
        limits: &[Option<usize>],
        now: u64,
    ) -> Result<(), NoPlace> {
        match self {
            Source::Here(old) => new.move_engine(to, old, from, limits, now),
            Source::Format1(old) => new.move_engine_of_format1(to, old, from, limits, now),
        }
    }

    fn move_ledger<const W: usize>(
        &self,
        new: &FileTables,
        which: usize,
        is_idle: impl Fn(&[u64; W]) -> bool,
        change: impl Fn(&mut [u64; W]),
    ) -> Result<(), NoPlace> {
        match self {
            Source::Here(old) => new.move_ledger(which, old, which, is_idle, change),
            Source::Format1(old) => new.move_ledger_of_format1(which, old, which, is_idle, change),
        }
    }

    fn move_offenders(&self, new: &FileTables) {
        match self {
            Source::Here(old) => new.move_offenders(old),
            Source::Format1(old) => new.move_offenders_of_format1(old),
        }
    }
}

/// What is said of a file that is not as it says.
fn damaged() -> String {
    "its tables are not as it describes them; remove it to start afresh".to_string()
}

fn no_place(from: &RuleShape, to: &RuleShape, NoPlace { rows }: NoPlace) -> String {
    format!(
        "{rows} keys still count, and a table with a `capacity` of {} has no place for them all; \
         state a larger one (it was {}), or open with `recreate` to forget them",
        to.capacity, from.capacity
    )
}

/// Moves all that goes on from a file of one shape to a new one of another.
pub(crate) fn move_rows(
    (from, old): (&RuleShape, &TableFile),
    (to, new): (&RuleShape, &TableFile),
    clock: &Clock,
) -> Result<(), String> {
    let old_tables = from.layout().and_then(|layout| old.laid_out(&layout)).ok_or_else(damaged)?;
    let new_tables = to.layout().and_then(|layout| new.laid_out(&layout)).ok_or_else(damaged)?;
    let (source, keep) = (Source::Here(old_tables), old.keep().get());
    let moved = to.plan.move_rows(&new_tables, (&from.plan, &source), keep, clock);
    moved.map_err(|error| no_place(from, to, error))
}

/// Whether [`move_rows`] would find a place for each row that counts for somebody.
pub(crate) fn check_rows(
    (from, old): (&RuleShape, &TableFile),
    to: &RuleShape,
    clock: &Clock,
) -> Result<(), String> {
    let old_tables = from.layout().and_then(|layout| old.laid_out(&layout)).ok_or_else(damaged)?;
    // Without memory it can't be told.
    let planned = to.layout().and_then(|layout| FileTables::planned(&layout));
    let Some(planned) = planned else { return Ok(()) };
    let (source, keep) = (Source::Here(old_tables), old.keep().get());
    let moved = to.plan.move_rows(&planned, (&from.plan, &source), keep, clock);
    moved.map_err(|error| no_place(from, to, error))
}

/// The same as [`move_rows`] from a file of format 1. Its words are read by the limits that keys
/// are judged by from now on.
pub(crate) fn move_rows_of_format1(
    (from, old): (&RuleShape, &Format1),
    (to, new): (&RuleShape, &TableFile),
    limits: &[Limits],
    clock: &Clock,
) -> Result<(), String> {
    let old_tables = from.layout();
    let old_tables = old_tables.as_ref().and_then(|layout| old.laid_out(layout));
    let mut layout = to.layout().ok_or_else(damaged)?;
    for (engine, limits) in layout.engines.iter_mut().zip(limits) {
        engine.0 = limits.clone();
    }
    let new_tables = new.laid_out(&layout).ok_or_else(damaged)?;
    let source = Source::Format1(old_tables.ok_or_else(damaged)?);
    // How long notes matter was not written down then.
    let moved = to.plan.move_rows(&new_tables, (&from.plan, &source), u64::MAX, clock);
    moved.map_err(|error| no_place(from, to, error))
}
