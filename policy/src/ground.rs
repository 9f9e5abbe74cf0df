//! What decisions point at: the numbers that they were made by, and the names that they are told with.
//!
//! To count its owners, each decision would swap a word twice, as dear as the hit itself; and all threads
//! would swap the same one. So what policies state is kept for as long as the process lives, once for
//! all limiters that state the same, and pointed at by whoever likes. That is bounded: beyond
//! [`MOST_KEPT`], and for what is made at run time, owners are counted.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::variant::Variant;

/// How many different ones are kept: some hundred kilobytes at the most.
const MOST_KEPT: usize = 256;

static KEPT: Mutex<Vec<&'static Variant>> = Mutex::new(Vec::new());

/// The numbers that a decision was made by, and the names it is told with.
#[derive(Clone, Debug)]
pub(crate) enum Ground {
    Kept(&'static Variant),
    Own(Arc<Variant>),
}

impl Ground {
    /// For what a policy states.
    pub(crate) fn kept(variant: Variant) -> Ground {
        if !variant.face.is_lasting() {
            return Ground::own(variant);
        }
        let mut kept = lock(&KEPT);
        if let Some(same) = kept.iter().find(|other| other.is_like(&variant)) {
            return Ground::Kept(same);
        }
        if kept.len() == MOST_KEPT {
            return Ground::own(variant);
        }
        let lasting: &Variant = Box::leak(Box::new(variant));
        kept.push(lasting);
        Ground::Kept(lasting)
    }

    /// For what comes and goes.
    pub(crate) fn own(variant: Variant) -> Ground {
        Ground::Own(Arc::new(variant))
    }
}

impl Deref for Ground {
    type Target = Variant;

    #[inline]
    fn deref(&self) -> &Variant {
        match self {
            Ground::Kept(variant) => variant,
            Ground::Own(variant) => variant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limiter, ManualClock, Options};

    fn kept(limiter: &Limiter) -> Option<&'static Variant> {
        match limiter.hit("alice", 1).unwrap().variant {
            Ground::Kept(variant) => Some(variant),
            Ground::Own(_) => None,
        }
    }

    /// A program that makes the same limiter again and again does not grow, and one that makes others
    /// all the time stops growing.
    #[test]
    fn what_is_kept_is_bounded() {
        let same = || kept(&Limiter::new("71/min").unwrap()).map(std::ptr::from_ref);
        let first = same();
        assert!(first.is_some() && (0..50).all(|_| same() == first));
        for max in 1_000..1_000 + 2 * MOST_KEPT as u64 {
            let limiter = Limiter::new(&*format!("{max}/min")).unwrap();
            assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(max));
        }
        assert_eq!(lock(&KEPT).len(), MOST_KEPT);
        assert!(kept(&Limiter::new("72/min").unwrap()).is_none());
        assert_eq!(same(), first);
    }

    /// A clock moved by hand is its owner's, and goes with it.
    #[test]
    fn a_manual_clock_is_not_kept() {
        let clock = ManualClock::new(Default::default(), Default::default()).clock();
        let options = Options { clock, ..Options::default() };
        assert!(kept(&Limiter::with("71/min", options).unwrap()).is_none());
    }
}
