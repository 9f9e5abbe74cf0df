//! Models that need private constructors: each runs the engine's own code under loom, which tries
//! every interleaving and every outcome that the memory model allows, and asserts one law.
//!
//! A process that is killed is modelled by a thread that does the first steps of an operation and
//! no more (`stopped_…`). What it had written stays, what it would have written never comes.

#[cfg(loom)]
mod loom_bucket;
#[cfg(loom)]
mod loom_changes;
#[cfg(loom)]
mod loom_eviction;
#[cfg(loom)]
mod loom_fork;
#[cfg(loom)]
mod loom_insert;
#[cfg(loom)]
mod loom_ledger;
#[cfg(loom)]
mod loom_receipt;
#[cfg(loom)]
mod loom_retired;
#[cfg(loom)]
mod loom_rule;
#[cfg(loom)]
mod loom_window;

#[cfg(loom)]
mod setting {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::algorithm::limit::Limit;
    use crate::clock::{Clock, ManualClock};
    use crate::limits::Limits;
    use crate::memory::Backing;
    use crate::table::{Hash, Table};
    use crate::{Engine, Options};

    pub(crate) const SECOND: u64 = 1_000_000_000;

    /// Checks `f` in every interleaving with at most two preemptions, or LOOM_MAX_PREEMPTIONS.
    pub(crate) fn model(f: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
        builder.max_branches = 100_000;
        builder.check(f);
    }

    /// A limit of `max` in a second, as a bucket.
    pub(crate) fn bucket(max: u64) -> Limit {
        Limit::bucket(max, Duration::from_secs(1))
    }

    pub(crate) fn window(max: u64, seconds: u64) -> Limit {
        Limit::window(max, Duration::from_secs(seconds))
    }

    pub(crate) fn limits(stated: &[Limit]) -> Limits {
        Limits::new(stated).unwrap()
    }

    /// An engine whose clock stands at ten seconds, in the smallest table there is.
    pub(crate) fn engine(stated: &[Limit]) -> (Arc<Engine>, Arc<ManualClock>) {
        let (clock, hand) = Clock::manual(10 * SECOND);
        let options = Options { capacity: 1, clock, seed: Some(1), ..Options::default() };
        (Arc::new(Engine::new(limits(stated), options).unwrap()), hand)
    }

    /// A table of the fewest rows, and the limits of its rows: one line, so every key is at home.
    pub(crate) fn table(stated: &[Limit]) -> Arc<(Table, Limits)> {
        let limits = limits(stated);
        Arc::new((Table::with_rows(1, &limits, &Backing::Heap).unwrap(), limits))
    }

    /// A key by its fingerprint.
    pub(crate) fn key(print: u64) -> Hash {
        Hash(print)
    }

    /// Runs two threads to their ends.
    pub(crate) fn both<A: 'static, B: 'static>(
        a: impl FnOnce() -> A + 'static,
        b: impl FnOnce() -> B + 'static,
    ) -> (A, B) {
        let a = loom::thread::spawn(a);
        let b = b();
        (a.join().unwrap(), b)
    }

    /// Does two things to one engine at once.
    pub(crate) fn at_once<A: 'static, B: 'static>(
        engine: &Arc<Engine>,
        a: impl FnOnce(&Engine) -> A + 'static,
        b: impl FnOnce(&Engine) -> B + 'static,
    ) -> (A, B) {
        let (first, second) = (engine.clone(), engine.clone());
        both(move || a(&first), move || b(&second))
    }
}
