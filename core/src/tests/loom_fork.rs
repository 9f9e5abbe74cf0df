//! The lock that a fork can't leave taken, and the value that is set once.

use std::sync::Arc;

use super::setting::{both, model};
use crate::sync::{AtomicU64, Ordering};
use crate::{ForkLock, Once};

/// A number that only the lock orders.
#[derive(Debug)]
struct Guarded(AtomicU64);

impl Default for Guarded {
    fn default() -> Guarded {
        Guarded(AtomicU64::new(0))
    }
}

impl Guarded {
    fn add(&self) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + 1, Ordering::Relaxed);
    }
}

fn both_add(lock: ForkLock<Guarded>) -> u64 {
    let lock = Arc::new(lock);
    let theirs = lock.clone();
    both(move || theirs.lock().add(), {
        let lock = lock.clone();
        move || lock.lock().add()
    });
    let added = lock.lock().0.load(Ordering::Relaxed);
    added
}

/// Each holder sees what the one before it did.
#[test]
fn one_holder_at_a_time() {
    model(|| assert_eq!(both_add(ForkLock::default()), 2));
}

/// Two threads of a child find the lock taken by a thread that is not there: one of them makes the
/// value anew, once, and both go on.
#[test]
fn a_lock_that_was_inherited_is_taken_over_once() {
    model(|| assert_eq!(both_add(ForkLock::inherited(Guarded(AtomicU64::new(40)))), 2));
}

/// A thread that only tries never waits: it has the lock, or the other thread has it.
#[test]
fn a_try_ends_at_once() {
    model(|| {
        let lock = Arc::new(ForkLock::<Guarded>::default());
        let theirs = lock.clone();
        let tried =
            move |lock: &ForkLock<Guarded>| lock.try_lock().map(|held| held.add()).is_some();
        let (a, b) = both(move || tried(&theirs), {
            let lock = lock.clone();
            move || tried(&lock)
        });
        assert!(a || b);
        assert_eq!(lock.lock().0.load(Ordering::Relaxed), u64::from(a) + u64::from(b));
    });
}

/// Two threads set a value: one of them stays, and both see it whole.
#[test]
fn two_setters_one_value() {
    model(|| {
        let once = Arc::new(Once::new());
        let theirs = once.clone();
        let set = |once: &Once<Guarded>, value| {
            once.set(Guarded(AtomicU64::new(value))).0.load(Ordering::Relaxed)
        };
        let (a, b) = both(move || set(&theirs, 1), {
            let once = once.clone();
            move || set(&once, 2)
        });
        assert_eq!(a, b);
        assert_eq!(once.get().map(|kept| kept.0.load(Ordering::Relaxed)), Some(a));
    });
}
