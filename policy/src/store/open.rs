//! Which store a limiter uses: its own memory, memory under a name, or a folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use tidegate_core::{Clock, ForkLock};

use crate::compiled::plan::Plan;
use crate::compiled::variant::Variant;
use crate::compiled::wanted::{ExistingTables, Wanted};
use crate::error::{Code, Error};
#[cfg(target_os = "linux")]
use crate::store::file_store::{Folder, RuleShape};
use crate::store::tables::Tables;
use crate::store::trail::{self, TrailRing};

/// Where the state of a limiter's rules lives.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// With the limiter, as the trail of changes is.
    Private(Arc<TrailRing>),
    /// In the process, under a name.
    Named(Arc<Named>),
    /// In a folder that all processes of the host share.
    #[cfg(target_os = "linux")]
    Folder(Folder),
}

/// State that everybody in the process shares who names it, for as long as anybody does.
#[derive(Debug, Default)]
pub(crate) struct Named {
    tables: ForkLock<BTreeMap<String, Weak<Tables>>>,
    trail: Arc<TrailRing>,
}

/// Of a map whose places are pointed at by their start, so that valgrind finds them.
static NAMED: ForkLock<BTreeMap<String, Weak<Named>>> = ForkLock::new(BTreeMap::new());

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Whether tables that don't fit are made anew.
    pub(crate) recreate: bool,
    /// Whether the folder's group shares it.
    pub(crate) group: bool,
    /// Whether root may open another user's folder.
    pub(crate) as_owner: bool,
}

/// What is said of stores that there are not.
#[cfg(target_os = "linux")]
const KINDS: &str = "write memory, memory:NAME or file:PATH";
#[cfg(not(target_os = "linux"))]
const KINDS: &str = "write memory or memory:NAME";

/// What is said of a folder of tables on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn needs_linux() -> Error {
    Error::new(Code::Store, format!("store file: file stores need Linux; {KINDS}"))
}

impl Store {
    /// The store of that name. A relative path is one from `base`.
    pub(crate) fn open(name: &str, base: &Path, opening: &Opening) -> Result<Store, Error> {
        let error = |message: String| Err(Error::new(Code::Store, message));
        match name.split_once(':') {
            None if name == "memory" => Ok(Store::Private(Arc::default())),
            Some(("memory", name)) if !name.is_empty() => Ok(Store::Named(named(name))),
            Some(("memory", _)) => {
                error("store \"memory:\" has no name; write memory:NAME, or memory".to_string())
            }
            Some(("file", "")) => error("store \"file:\" has no path; write file:PATH".to_string()),
            #[cfg(target_os = "linux")]
            Some(("file", path)) => {
                let access =
                    tidegate_core::Access { group: opening.group, as_owner: opening.as_owner };
                Folder::open(&base.join(path), access, opening.recreate).map(Store::Folder)
            }
            #[cfg(not(target_os = "linux"))]
            Some(("file", _)) => Err(needs_linux()),
            Some((kind @ ("redis" | "rediss" | "redis+cluster" | "redis+sentinel"), _)) => {
                error(format!("store {kind}: {}; {KINDS}", crate::config::read::NO_REDIS))
            }
            // Not the rest of it: there may be a password.
            Some((kind, _)) => error(format!("{kind:?} is not a kind of store; {KINDS}")),
            None => error(format!("{name:?} is not a store; {KINDS}")),
        }
    }

    /// Removes what opening it has made, if nothing is in it: the limiter can't be had.
    pub(crate) fn abandon(&self) {
        #[cfg(target_os = "linux")]
        if let Store::Folder(folder) = self {
            folder.abandon();
        }
    }

    /// Whether a store that has to be made is there already.
    pub(crate) fn is_there(name: &str, base: &Path) -> bool {
        name.strip_prefix("file:").is_none_or(|path| base.join(path).exists())
    }

    /// The capacity of a rule's tables, if there are some that a rule of this plan can go on from.
    pub(crate) fn capacity(&self, rule: &str, plan: &Plan) -> Option<ExistingTables> {
        match self {
            Store::Private(_) => None,
            Store::Named(named) => {
                let tables = named.tables.lock().get(rule).and_then(Weak::upgrade);
                let fit = tables.filter(|tables| plan.keeps_state_of(&tables.plan));
                fit.map(|tables| ExistingTables::kept(tables.capacity))
            }
            #[cfg(target_os = "linux")]
            Store::Folder(folder) => folder.capacity(rule, plan),
        }
    }

    /// The run-time changes after a number.
    pub(crate) fn changes_after(&self, since: u64) -> Result<trail::Changes, Error> {
        match self {
            Store::Private(trail) => Ok(trail.after(since)),
            Store::Named(named) => Ok(named.trail.after(since)),
            #[cfg(target_os = "linux")]
            Store::Folder(folder) => trail::TrailLog::after(folder, since),
        }
    }

    /// Whether tables that are there would refuse a rule, as far as that can be told beforehand.
    pub(crate) fn check(&self, rule: &str, wanted: &Wanted, clock: &Clock) -> Result<(), Error> {
        match self {
            #[cfg(target_os = "linux")]
            Store::Folder(folder) => {
                let shape = RuleShape { plan: wanted.plan.clone(), capacity: wanted.capacity };
                folder.check(rule, &shape, wanted.capacity_stated, clock)
            }
            Store::Private(_) | Store::Named(_) => Ok(()),
        }
    }

    /// The state of a rule: what is there, if its shape is the same, or new.
    pub(crate) fn tables(
        &self,
        rule: &str,
        wanted: &Wanted,
        base: &Variant,
        clock: &Clock,
    ) -> Result<Arc<Tables>, Error> {
        let named = match self {
            Store::Private(trail) => {
                return Ok(Arc::new(Tables::new(wanted, base, clock, trail)?));
            }
            #[cfg(target_os = "linux")]
            Store::Folder(folder) => {
                return Ok(Arc::new(Tables::in_folder(folder, rule, wanted, base, clock)?));
            }
            Store::Named(named) => named,
        };
        let mut all = named.tables.lock();
        if let Some(tables) = all.get(rule).and_then(Weak::upgrade) {
            check_same(rule, &tables, wanted, clock)?;
            tables.provide(wanted)?;
            tables.introduce_limits(base);
            return Ok(tables);
        }
        let tables = Arc::new(Tables::new(wanted, base, clock, &named.trail)?);
        all.insert(rule.to_string(), Arc::downgrade(&tables));
        Ok(tables)
    }
}

fn named(name: &str) -> Arc<Named> {
    let mut all = NAMED.lock();
    all.retain(|_, named| named.strong_count() > 0);
    if let Some(named) = all.get(name).and_then(Weak::upgrade) {
        return named;
    }
    let named = Arc::new(Named::default());
    all.insert(name.to_string(), Arc::downgrade(&named));
    named
}

fn check_same(rule: &str, tables: &Tables, wanted: &Wanted, clock: &Clock) -> Result<(), Error> {
    let other = |what: &str| {
        let message = format!(
            "rule {rule:?} is already in this store with {what}; use the same policy, or \
            another store name"
        );
        Err(Error::new(Code::Store, message))
    };
    match (&tables.clock, clock) {
        (Clock::System, Clock::System) => {}
        (Clock::Manual(a), Clock::Manual(b)) if Arc::ptr_eq(a, b) => {}
        _ => return other("another clock"),
    }
    if !wanted.can_have(tables.capacity) || tables.on_full != wanted.on_full {
        return other("another capacity or on_full");
    }
    if !wanted.plan.keeps_state_of(&tables.plan) {
        return other(
            "other limits (their names, algorithms, scopes or the room of their windows)",
        );
    }
    Ok(())
}

#[cfg(all(test, not(target_os = "linux")))]
mod tests {
    use crate::Limiter;

    #[test]
    fn where_there_are_no_file_stores_they_are_refused_and_nothing_else_is() {
        let file = Limiter::builder().limits("1/h").store("file:counts").build();
        let refused = "store file: file stores need Linux; write memory or memory:NAME";
        assert_eq!(file.unwrap_err().to_string(), refused);
        assert_eq!(Limiter::inspect(".").unwrap_err().to_string(), refused);
        let named = Limiter::builder().limits("1/h").store("memory:open").build().unwrap();
        named.sync().unwrap();
    }
}
