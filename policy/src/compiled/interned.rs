//! What decisions point at: the limits that they were made by, and the names that they are told
//! with.
//!
//! To count its owners, each decision would swap a word twice, as dear as the hit itself. So what
//! policies state is kept for as long as the process lives, once for all limiters that state the
//! same, and pointed at by whoever likes. That is bounded: beyond [`MOST_KEPT`], and for what is
//! made at run time, owners are counted.
//!
//! With an `Arc<Variant>` a hit has two locked instructions more, on one word that all threads
//! share. Without them it takes 0.76 times as long (AMD EPYC, one thread, one hot key).

use std::ops::Deref;
use std::sync::Arc;

use tidegate_core::ForkLock;

use crate::compiled::variant::Variant;

/// How many different ones are kept: one for a rule and for each entry of its `when`, of about a
/// kilobyte and what the policy attaches.
const MOST_KEPT: usize = 1024;

static KEPT: ForkLock<Vec<&'static Variant>> = ForkLock::new(Vec::new());

/// The limits that a decision was made by, and the names it is told with.
#[derive(Clone, Debug)]
#[expect(clippy::redundant_allocation, reason = "a count for each thread, beside that of all")]
pub(crate) enum Interned {
    Kept(&'static Variant),
    /// Twice, so that each thread may have a count of its own.
    Own(Arc<Arc<Variant>>),
}

impl Interned {
    /// For what a policy states.
    pub(crate) fn kept(variant: Variant) -> Interned {
        // What is attached has hash tables, which are pointed at by their middle: valgrind would
        // call them possibly lost. So it goes with its limiter.
        if !variant.labels.is_lasting() || variant.attach.is_some() {
            return Interned::own(variant);
        }
        // A hit may come here after a change, and waits for nobody.
        let Some(mut kept) = KEPT.try_lock() else { return Interned::own(variant) };
        if let Some(same) = kept.iter().find(|other| other.is_like(&variant)) {
            return Interned::Kept(same);
        }
        if kept.len() == MOST_KEPT {
            return Interned::own(variant);
        }
        let lasting: &Variant = Box::leak(Box::new(variant));
        kept.push(lasting);
        Interned::Kept(lasting)
    }

    /// For what comes and goes.
    pub(crate) fn own(variant: Variant) -> Interned {
        Interned::Own(Arc::new(Arc::new(variant)))
    }

    /// The same, with a count that is not written to by those of this one.
    pub(crate) fn apart(&self) -> Interned {
        match self {
            Interned::Kept(variant) => Interned::Kept(variant),
            Interned::Own(variant) => Interned::Own(Arc::new(Arc::clone(variant))),
        }
    }
}

impl Deref for Interned {
    type Target = Variant;

    #[inline]
    fn deref(&self) -> &Variant {
        match self {
            Interned::Kept(variant) => variant,
            Interned::Own(variant) => variant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LimitPatch, Limiter, ManualClock};

    fn kept(limiter: &Limiter) -> Option<&'static Variant> {
        match limiter.hit("alice", 1).unwrap().variant {
            Interned::Kept(variant) => Some(variant),
            Interned::Own(_) => None,
        }
    }

    /// A program that makes the same limiter again and again does not grow, and one that makes
    /// others all the time stops growing.
    #[test]
    fn what_is_kept_is_bounded() {
        let same = || kept(&Limiter::new("71/min").unwrap()).map(std::ptr::from_ref);
        // Another test may be in the way for a moment.
        let again = || (0..50).filter_map(|_| same());
        let first = again().next().unwrap();
        assert!(again().all(|one| one == first));
        for max in 1_000..1_000 + 2 * MOST_KEPT as u64 {
            let limiter = Limiter::new(&*format!("{max}/min")).unwrap();
            assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(max));
        }
        assert_eq!(KEPT.lock().len(), MOST_KEPT);
        assert!(kept(&Limiter::new("72/min").unwrap()).is_none());
        assert!(again().count() > 0 && again().all(|one| one == first));
    }

    /// A program that changes its default all the time does not use them up.
    #[test]
    fn what_is_changed_at_run_time_is_not_kept() {
        let limiter = Limiter::new("71/min").unwrap();
        let changed = |max: u64| {
            limiter.set_default(vec![("71/min".into(), LimitPatch::max(max))]).unwrap();
            kept(&limiter).is_some()
        };
        assert!(!(73..80).any(changed));
    }

    /// What is attached goes with the limiter.
    #[test]
    fn what_is_attached_is_not_kept() {
        let mut rule = crate::RuleConfig::new("71/min").unwrap();
        rule.attach = Some(serde_json::json!({"upgrade": "https://example.org"}));
        assert!(kept(&Limiter::builder().rule(rule).build().unwrap()).is_none());
    }

    /// A clock moved by hand is its owner's, and goes with it.
    #[test]
    fn a_manual_clock_is_not_kept() {
        let clock = ManualClock::new(Default::default(), Default::default()).clock();
        let options = Limiter::builder().clock(clock);
        assert!(kept(&options.limits("71/min").build().unwrap()).is_none());
    }
}
