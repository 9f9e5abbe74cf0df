//! What was changed at run time, as far as this process knows.
//!
//! ```text
//!               a change                             a hit that finds another generation
//!   file        flock, write, rename ──────────────▶ read, if no other thread does
//!   generation  add one ───────────────────────────▶ compared by every hit
//!   known       publish {text, number} ◀──────────── publish {text, number}
//! ```
//!
//! A hit loads `known` and waits for nothing: where another thread reads the file just now, the hit
//! goes on with what is known. The number of a text is the generation up to which there is no newer
//! one. It never goes back, so a reader that was slow can't put an old text in place of a new one.
//! Modelled by `loom_changes`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use tidegate_core::{AtomicU64, ForkLock};

use crate::store::runtime::Runtime;

/// A number that all who share the tables share.
#[derive(Debug)]
pub(crate) enum Number {
    Own(AtomicU64),
    #[cfg(target_os = "linux")]
    Shared(tidegate_core::SharedWord),
}

impl Default for Number {
    fn default() -> Number {
        Number::Own(AtomicU64::new(0))
    }
}

impl Number {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        match self {
            // ORDERING: Acquire, with the Release below: who sees the number then sees the change.
            Number::Own(number) => number.load(Ordering::Acquire),
            #[cfg(target_os = "linux")]
            Number::Shared(word) => word.get(),
        }
    }

    fn add(&self) {
        match self {
            // ORDERING: Release, see `get`.
            Number::Own(number) => drop(number.fetch_add(1, Ordering::Release)),
            #[cfg(target_os = "linux")]
            Number::Shared(word) => word.add(),
        }
    }

    pub(crate) fn raise(&self, to: u64) {
        match self {
            // ORDERING: Release, see `get`.
            Number::Own(number) => drop(number.fetch_max(to, Ordering::Release)),
            #[cfg(target_os = "linux")]
            Number::Shared(word) => word.raise(to),
        }
    }
}

/// A text of changes, and the generation up to which there is no newer one.
#[derive(Debug, Default)]
struct Known {
    /// As it was stored.
    text: Arc<Runtime>,
    /// The same, but nothing in it is ahead of a clock that went back.
    runtime: Arc<Runtime>,
    number: u64,
}

impl Known {
    fn new(text: Arc<Runtime>, number: u64) -> Known {
        Known { runtime: text.clone(), text, number }
    }
}

/// What is known of a rule's changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    known: ArcSwap<Known>,
    /// Counts the changes; every hit compares it.
    generation: Number,
    /// Held by a thread that changes something, also while it waits for other processes. No hit
    /// takes it.
    changing: ForkLock<()>,
    /// Held by a thread that reads what other processes have changed. A hit only tries it.
    reading: ForkLock<()>,
    /// The text is to be read although no generation says so.
    doubted: AtomicBool,
}

impl Changes {
    /// Those of a file, whose generation other processes share. `read` gives its text.
    #[cfg(target_os = "linux")]
    pub(crate) fn shared<E>(
        generation: tidegate_core::SharedWord,
        read: impl FnOnce() -> Result<Runtime, E>,
    ) -> Result<Changes, E> {
        let generation = Number::Shared(generation);
        // A process that died between a change and its count left others without it: the next one
        // to open the file tells them.
        generation.add();
        let number = generation.get();
        let known = ArcSwap::from_pointee(Known::new(Arc::new(read()?), number));
        Ok(Changes { known, generation, ..Changes::default() })
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// One change of this process at a time.
    pub(crate) fn one_at_a_time<R>(&self, change: impl FnOnce() -> R) -> R {
        let _alone = self.changing.lock();
        change()
    }

    /// Makes a text known that was just stored, before any other can be.
    pub(crate) fn publish(&self, runtime: Runtime) {
        // A thread that has read an older text read a lower generation before, since this is read
        // after the text was stored. A child that was forked while a thread published knows a
        // number that is not counted yet.
        let number = self.generation.get().max(self.known.load().number) + 1;
        self.put(Arc::new(runtime), number);
        while self.generation.get() < number {
            self.generation.add();
        }
    }

    /// Makes a text known, unless a newer one is. Whether none was.
    fn put(&self, runtime: Arc<Runtime>, number: u64) -> bool {
        self.raise(number, |_| Known::new(runtime.clone(), number))
    }

    fn raise(&self, number: u64, next: impl Fn(&Known) -> Known) -> bool {
        let newer = |known: &Arc<Known>| match known.number < number {
            true => Arc::new(next(known)),
            false => known.clone(),
        };
        self.known.rcu(newer).number < number
    }

    /// Repairs what is ahead of a clock that was read again, for this process: what is stored is
    /// repaired with the next change.
    #[cold]
    pub(crate) fn repair(&self, now: u64) {
        self.known.rcu(|known| {
            let mut runtime = Runtime::clone(&known.runtime);
            runtime.repair(now);
            let (text, number) = (known.text.clone(), known.number);
            Arc::new(Known { text, runtime: Arc::new(runtime), number })
        });
    }

    /// The newest text that can be had without waiting, and its number. `read` gives the text of a
    /// file, where there is one and it can be read.
    pub(crate) fn follow(&self, read: impl Fn() -> Option<Runtime>) -> (Arc<Runtime>, u64) {
        // ORDERING: Relaxed; whoever misses a doubt is followed by one who does not.
        if self.doubted.load(Ordering::Relaxed) {
            self.settle(&read);
        }
        let now = self.generation.get();
        if self.known.load().number < now
            && let Some(_alone) = self.reading.try_lock()
        {
            self.read(read);
        }
        let known = self.known.load();
        (known.runtime.clone(), known.number.min(now))
    }

    /// Has the text read again by the next hit, for tables whose generation others don't count any
    /// more.
    pub(crate) fn doubt(&self) {
        // ORDERING: Relaxed, as in `follow`.
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// Counts a change that its maker has not counted here, if the text is another.
    #[cold]
    fn settle(&self, read: &impl Fn() -> Option<Runtime>) {
        let Some(_alone) = self.reading.try_lock() else { return };
        // ORDERING: Relaxed, as in `follow`.
        self.doubted.store(false, Ordering::Relaxed);
        if read().is_some_and(|text| text != *self.known.load().text) {
            self.generation.add();
        }
    }

    /// The newest text, for those who may wait until another thread has read it.
    pub(crate) fn newest(&self, read: impl FnOnce() -> Option<Runtime>) -> Arc<Runtime> {
        if self.known.load().number < self.generation.get() {
            let _alone = self.reading.lock();
            self.read(read);
        }
        self.known.load().runtime.clone()
    }

    /// What is known is no older than this.
    fn confirm(&self, number: u64) {
        self.raise(number, |known| Known {
            text: known.text.clone(),
            runtime: known.runtime.clone(),
            number,
        });
    }

    fn read(&self, read: impl FnOnce() -> Option<Runtime>) {
        // Before the file: what is changed later has a higher number.
        let number = self.generation.get();
        let Some(runtime) = read() else {
            // A file that can't be read now is read at the next change; what is known stands.
            self.confirm(number);
            return;
        };
        if runtime == *self.known.load().text {
            self.confirm(number);
        } else if self.put(Arc::new(runtime), number) {
            // Others may have read just before this was changed, and the process that changed it
            // may have died before it told them.
            self.generation.add();
        }
    }
}
