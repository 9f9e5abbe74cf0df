//! Where a rule's state lives. The seam for other stores: whatever gives these gives a store.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::notes::Spent;
#[cfg(target_os = "linux")]
use tidegate_core::TableFile;
use tidegate_core::{
    Clock, Engine, Ledger, Limits, OnFull, Once, Options, OutOfMemory, random_seed,
};

use crate::compiled::plan::Plan;
use crate::compiled::variant::Variant;
use crate::compiled::wanted::{Budgets, Penalties, Wanted, group_capacity};
use crate::error::{Code, Error};
#[cfg(target_os = "linux")]
use crate::store::file_store::{Folder, RuleShape};
use crate::store::known::{Changes, Number};
use crate::store::runtime::{Runtime, Timed};
use crate::store::trail::{Change, TrailRing};

/// How many nanoseconds a user of a retired table goes by changes without looking for others.
const LOOK_AGAIN: u64 = 1_000_000_000;

/// Whether nothing was spent of a budget on that day.
pub(crate) fn is_unspent(notes: &[u64; 1], day: u64) -> bool {
    Spent::from_note(notes[0]).on(day) == 0
}

/// How often a table is opened again because another took its place meanwhile.
#[cfg(target_os = "linux")]
const MOST_REOPENINGS: usize = 100;

/// The ledgers of a file, by number.
pub(crate) const PENALTIES: usize = 0;
pub(crate) const BUDGETS: usize = 1;

/// What new tables are made of.
#[derive(Debug)]
enum Maker {
    /// Memory of this process, hashed by this seed.
    Heap(u64),
    /// The tables of a file, in their order.
    #[cfg(target_os = "linux")]
    File(tidegate_core::TableSections),
}

impl Maker {
    fn seed(&self) -> Option<u64> {
        match self {
            Maker::Heap(seed) => Some(*seed),
            #[cfg(target_os = "linux")]
            Maker::File(_) => None,
        }
    }

    fn engine(
        &self,
        index: usize,
        limits: Limits,
        options: Options,
    ) -> Result<Engine, OutOfMemory> {
        match self {
            Maker::Heap(seed) => Engine::new(limits, Options { seed: Some(*seed), ..options }),
            #[cfg(target_os = "linux")]
            Maker::File(tables) => tables.engine(index, limits, options),
        }
    }

    fn ledger<const W: usize>(
        &self,
        index: usize,
        capacity: usize,
    ) -> Result<Ledger<W>, OutOfMemory> {
        match self {
            Maker::Heap(seed) => Ledger::new(capacity, *seed),
            #[cfg(target_os = "linux")]
            Maker::File(tables) => tables.ledger(index),
        }
    }
}

/// Where run-time changes are kept for other processes.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Disk {
    folder: Folder,
    rule: String,
    file: TableFile,
    /// Names of offenders, for those who look from outside.
    offenders: Option<tidegate_core::TopOffenders>,
}

/// The state of one rule.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) plan: Plan,
    pub(crate) capacity: usize,
    pub(crate) on_full: OnFull,
    /// For each group of the plan.
    pub(crate) engines: Box<[Arc<Engine>]>,
    penalties: Once<Penalties>,
    budgets: Once<Budgets>,
    /// What tables in memory are hashed by. Those of a file are all made when it is opened.
    seed: Option<u64>,
    pub(crate) clock: Clock,
    #[cfg(target_os = "linux")]
    disk: Option<Disk>,
    /// How long a denial may matter, in nanoseconds: the longest that any variant of anybody asks
    /// for.
    keep: Number,
    /// What was changed at run time, by anybody who shares this state.
    changes: Changes,
    /// The trail of changes in memory. Those of a file have theirs in the folder.
    trail: Arc<TrailRing>,
}

impl Tables {
    /// Makes tables in memory. `base` are the rule's own limits.
    pub(crate) fn new(
        wanted: &Wanted,
        base: &Variant,
        clock: &Clock,
        trail: &Arc<TrailRing>,
    ) -> Result<Tables, Error> {
        let tables = Tables::make(wanted, base, clock, &Maker::Heap(random_seed()))?;
        Ok(Tables { trail: trail.clone(), ..tables })
    }

    /// The tables of a rule in a folder, which are made if they are not there.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_folder(
        folder: &Folder,
        rule: &str,
        wanted: &Wanted,
        base: &Variant,
        clock: &Clock,
    ) -> Result<Tables, Error> {
        let mut reopenings = 0;
        loop {
            let tables = Tables::opened(folder, rule, wanted, base, clock)?;
            // The generation was noted before: if the table loses its name only now, a hit will
            // notice. Modelled by `loom_retired::an_opener_finds_the_name_gone_or_notices`.
            let lost = tables.disk.as_ref().is_some_and(|disk| disk.file.has_lost_its_name());
            if !lost || reopenings == MOST_REOPENINGS {
                return Ok(tables);
            }
            reopenings += 1;
        }
    }

    #[cfg(target_os = "linux")]
    fn opened(
        folder: &Folder,
        rule: &str,
        wanted: &Wanted,
        base: &Variant,
        clock: &Clock,
    ) -> Result<Tables, Error> {
        let shape = RuleShape { plan: wanted.plan.clone(), capacity: wanted.capacity };
        let manual = matches!(clock, Clock::Manual(_));
        let bytes = |shape: &RuleShape| wanted.within(shape).bytes_for(base);
        let offenders = tidegate_core::TableSections::OFFENDER_WORDS as u64 * 8;
        let words =
            |shape: &RuleShape| usize::try_from(bytes(shape).checked_add(offenders)? / 8).ok();
        let wants = (&shape, wanted.capacity_stated, &base.groups[..]);
        let (file, shape) = folder.table(rule, wants, clock, words)?;
        let wanted = wanted.within(&shape);
        let base = Variant::new(base.effective.clone(), &wanted.plan, &base.labels);
        let base = base.map_err(Error::policy)?;
        let clock = if manual { clock.clone() } else { file.clock() };
        let alone = file.begin_era_if_alone(clock.now());
        alone.map_err(|error| Error::new(Code::Store, format!("rule {rule:?}: {error}")))?;
        let tables = shape.layout().and_then(|layout| file.tables(&layout));
        let no_place =
            || Error::new(Code::Store, format!("rule {rule:?}: no file has such tables"));
        let maker = Maker::File(tables.ok_or_else(no_place)?);
        let mut tables = Tables::make(&wanted, &base, &clock, &maker)?;
        tables.keep = Number::Shared(file.keep());
        tables.keep.raise(base.keep);
        tables.changes = Changes::shared(file.generation(), || folder.read_changes(rule))?;
        let offenders = match &maker {
            Maker::File(tables) => tables.top_offenders(),
            Maker::Heap(_) => None,
        };
        tables.disk =
            Some(Disk { folder: folder.clone(), rule: rule.to_string(), file, offenders });
        Ok(tables)
    }

    fn make(
        wanted: &Wanted,
        base: &Variant,
        clock: &Clock,
        maker: &Maker,
    ) -> Result<Tables, Error> {
        let mut engines = Vec::new();
        for (index, (group, limits)) in wanted.plan.groups.iter().zip(&base.groups).enumerate() {
            let options = Options {
                capacity: group_capacity(&group.scope, wanted.capacity),
                on_full: wanted.on_full,
                clock: clock.clone(),
                seed: None,
            };
            engines
                .push(Arc::new(maker.engine(index, limits.clone(), options).map_err(no_memory)?));
        }
        let tables = Tables {
            plan: wanted.plan.clone(),
            capacity: wanted.capacity,
            on_full: wanted.on_full,
            engines: engines.into(),
            penalties: Once::new(),
            budgets: Once::new(),
            seed: maker.seed(),
            clock: clock.clone(),
            #[cfg(target_os = "linux")]
            disk: None,
            keep: Number::default(),
            changes: Changes::default(),
            trail: Arc::default(),
        };
        tables.keep.raise(base.keep);
        tables.make_ledgers_by(maker, wanted.penalties, wanted.budgets)?;
        Ok(tables)
    }

    /// Makes what a rule asks for beyond its limits, if it is not there.
    pub(crate) fn provide(&self, wanted: &Wanted) -> Result<(), Error> {
        self.make_ledgers(wanted.penalties, wanted.budgets)
    }

    pub(crate) fn make_penalties(&self) -> Result<(), Error> {
        self.make_ledgers(true, false)
    }

    fn make_ledgers(&self, penalties: bool, budgets: bool) -> Result<(), Error> {
        match self.seed {
            Some(seed) => self.make_ledgers_by(&Maker::Heap(seed), penalties, budgets),
            None => Ok(()),
        }
    }

    fn make_ledgers_by(&self, maker: &Maker, penalties: bool, budgets: bool) -> Result<(), Error> {
        if penalties && self.penalties.get().is_none() {
            let capacity = group_capacity(&self.plan.penalty_scope, self.capacity);
            self.penalties.set(maker.ledger(PENALTIES, capacity).map_err(no_memory)?);
        }
        if budgets && self.budgets.get().is_none() {
            self.budgets.set(maker.ledger(BUDGETS, self.capacity).map_err(no_memory)?);
        }
        Ok(())
    }

    /// Where names of offenders are kept for those who look from outside.
    #[cfg(target_os = "linux")]
    pub(crate) fn top_offenders(&self) -> Option<&tidegate_core::TopOffenders> {
        self.disk.as_ref()?.offenders.as_ref()
    }

    /// Whether another table has taken this one's place, so that others don't see what is counted
    /// here.
    pub(crate) fn is_retired(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.disk.as_ref().is_some_and(|disk| disk.file.is_retired());
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The same, as far as it is known without asking the kernel.
    pub(crate) fn was_retired(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.disk.as_ref().is_some_and(|disk| disk.file.was_retired());
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Is no user of its file any more if no other is, so that the next to open it has it alone.
    /// False if another is, or there is no file.
    pub(crate) fn leave_if_alone(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.disk.as_ref().is_some_and(|disk| disk.file.leave_if_alone().unwrap_or(false));
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Is a user of its file again.
    pub(crate) fn come_back(&self) {
        #[cfg(target_os = "linux")]
        if let Some(disk) = &self.disk {
            // If another has it alone for longer than this waits, that one has put another in its
            // place.
            let _ = disk.file.share();
        }
    }

    /// Writes counts to the disk, where there is one.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        if let Some(disk) = &self.disk {
            return disk.file.sync().map_err(|error| Error::new(Code::Store, error.to_string()));
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        let engines: usize = self.engines.iter().map(|engine| engine.bytes()).sum();
        let penalties = self.penalties().map_or(0, Ledger::bytes);
        (engines + penalties + self.budgets().map_or(0, Ledger::bytes)) as u64
    }

    pub(crate) fn penalties(&self) -> Option<&Penalties> {
        self.penalties.get()
    }

    pub(crate) fn budgets(&self) -> Option<&Budgets> {
        self.budgets.get()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Introduces limits. Before that no row may be judged by them.
    pub(crate) fn introduce_limits(&self, variant: &Variant) {
        if self.keep.get() < variant.keep {
            self.keep.raise(variant.keep);
        }
        // ORDERING: SeqCst, with the fence of an evictor between its seal of notes and its look at
        // `keep`: it sees the longer one, or whoever looks notes up later sees the seal. Needed
        // also if another user has raised it.
        fence(Ordering::SeqCst);
        for (engine, limits) in self.engines.iter().zip(&variant.groups) {
            engine.introduce_limits(limits);
        }
    }

    /// Nanoseconds for which an idle row may be kept, and for which the rule's own limits ask.
    pub(crate) fn horizons(&self) -> (u64, u64) {
        let longest = |horizon: fn(&Engine) -> u64| {
            self.engines.iter().map(|engine| horizon(engine)).max().unwrap_or(0)
        };
        (longest(Engine::horizon), longest(|engine| engine.limits().horizon()))
    }

    /// Whether notes on a key matter no more.
    pub(crate) fn is_forgotten(&self, notes: &[u64; 3], now: u64) -> bool {
        let keep = self.keep.get();
        let penalty = crate::notes::Penalty::from_note(notes[0]);
        penalty.since_last(now).is_none_or(|age| age >= keep)
    }

    /// Forgets every key.
    pub(crate) fn reset_all(&self) {
        self.engines.iter().for_each(|engine| engine.reset_all());
        if let Some(penalties) = self.penalties() {
            penalties.reset_all();
        }
        if let Some(budgets) = self.budgets() {
            budgets.reset_all();
        }
    }

    /// Drops idle keys, and says how many rows that freed.
    pub(crate) fn prune(&self, today: u64) -> usize {
        let now = self.clock.now();
        let engines: usize = self.engines.iter().map(|engine| engine.prune()).sum();
        let penalties = self
            .penalties()
            .map_or(0, |ledger| ledger.prune(&|notes| self.is_forgotten(notes, now)));
        let unspent = |notes: &[u64; 1]| is_unspent(notes, today);
        engines + penalties + self.budgets().map_or(0, |ledger| ledger.prune(&unspent))
    }

    /// Takes over what was changed at run time in other tables, if nothing was in these.
    pub(crate) fn adopt(&self, other: &Tables) {
        let changed = other.newest_runtime();
        self.changes.one_at_a_time(|| {
            if self.changes.generation() == 0 && *changed != Runtime::default() {
                self.changes.publish(Runtime::clone(&changed));
            }
        });
    }

    /// What was changed at run time as far as it can be known without waiting, and the number of
    /// the change.
    pub(crate) fn runtime(&self) -> (Arc<Runtime>, u64) {
        self.changes.follow(|| self.read_changes())
    }

    /// What was changed at run time, for those who may wait.
    pub(crate) fn newest_runtime(&self) -> Arc<Runtime> {
        self.changes.newest(|| self.read_changes())
    }

    /// What stands in the file, if there is one and it can be read.
    fn read_changes(&self) -> Option<Runtime> {
        #[cfg(target_os = "linux")]
        if let Some(disk) = &self.disk {
            return disk.folder.read_changes(&disk.rule).ok();
        }
        None
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.changes.generation()
    }

    /// What was changed at run time and stands now, and for which readings of the clock that is so;
    /// none if nothing of it ends.
    pub(crate) fn in_force(&self, runtime: &Arc<Runtime>) -> (Arc<Runtime>, Option<Timed>) {
        // Processes of another shape can't tell of their changes here: they are looked for.
        let look = |timed| match self.was_retired() {
            true => Some(Timed::at_most(timed, self.clock.now().saturating_add(LOOK_AGAIN))),
            false => timed,
        };
        if runtime.timed().is_none() {
            return (runtime.clone(), look(None));
        }
        // Read after the text: what is ahead of it shows a clock that went back.
        let now = self.clock.now();
        if runtime.is_ahead(now) {
            self.changes.repair(now);
        }
        let mut standing = Runtime::clone(runtime);
        standing.repair(now);
        standing.end(now);
        let timed = look(standing.timed());
        (Arc::new(standing), timed)
    }

    /// Has the changes read again by the next hit.
    pub(crate) fn look_again(&self) {
        self.changes.doubt();
    }

    /// Changes something at run time, and gives the change's number; nothing is changed if `change`
    /// fails, or says so by giving none, and then the number is 0.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Runtime, u64) -> Result<Option<Change>, Error>,
    ) -> Result<u64, Error> {
        let change = |runtime: &mut Runtime| {
            let now = self.clock.now();
            runtime.repair(now);
            runtime.end(now);
            change(runtime, now)
        };
        self.changes.one_at_a_time(|| {
            #[cfg(target_os = "linux")]
            if let Some(disk) = &self.disk {
                // Until it is published no other process may change the text.
                let Some((runtime, _alone)) = disk.folder.change(&disk.rule, change)? else {
                    return Ok(0);
                };
                let number = runtime.last;
                self.changes.publish(runtime);
                if self.is_retired() {
                    disk.folder.tell(&disk.rule);
                }
                return Ok(number);
            }
            let mut next = Runtime::clone(&self.newest_runtime());
            let Some(change) = change(&mut next)? else { return Ok(0) };
            next.last = self.trail.add(change);
            let number = next.last;
            self.changes.publish(next);
            Ok(number)
        })
    }
}

#[cfg(target_os = "linux")]
impl Wanted {
    /// The same, in a file of this shape: with room for all that a rule may come to ask for.
    fn within(&self, shape: &RuleShape) -> Wanted {
        let (plan, capacity) = (shape.plan.clone(), shape.capacity);
        Wanted { plan, capacity, penalties: true, budgets: true, ..self.clone() }
    }
}

/// What a file holds, for those who look from outside.
#[cfg(target_os = "linux")]
pub(crate) struct FileContents {
    pub(crate) keys: usize,
    pub(crate) penalised: usize,
    pub(crate) spending: usize,
    pub(crate) names: Vec<(tidegate_core::NameWords, u64)>,
}

#[cfg(target_os = "linux")]
impl FileContents {
    /// Counts rows. Numbers don't matter for that, only the shape, so any limits of it will do.
    pub(crate) fn of(file: &TableFile, shape: &RuleShape) -> Option<FileContents> {
        let tables = file.tables(&shape.layout()?)?;
        let penalties: Penalties = tables.ledger(PENALTIES).ok()?;
        let budgets: Budgets = tables.ledger(BUDGETS).ok()?;
        let names = tables.top_offenders().map_or(Vec::new(), |offenders| offenders.names());
        Some(FileContents {
            keys: tables.used_rows(0)?,
            penalised: penalties.len(),
            spending: budgets.len(),
            names,
        })
    }
}

fn no_memory(error: tidegate_core::OutOfMemory) -> Error {
    Error::new(Code::Memory, error.to_string())
}
