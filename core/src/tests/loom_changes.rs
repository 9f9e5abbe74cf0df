//! Run-time changes, read by hits that only try.
//!
//! `policy/src/store/known.rs` is the code: it needs files and arc-swap, which loom does not have.
//! Its steps are here with the file's text as a word, and what is known as one word of text and
//! number.

use std::sync::Arc;

use super::setting::{both, model};
use crate::ForkLock;
use crate::sync::{AtomicU64, Ordering};

const TEXT_BITS: u32 = 8;

/// One process, and a file that others change too.
struct Process {
    text: Arc<AtomicU64>,
    generation: Arc<AtomicU64>,
    /// The number of a text, and the text.
    known: AtomicU64,
    reading: ForkLock<()>,
}

impl Process {
    fn new(text: &Arc<AtomicU64>, generation: &Arc<AtomicU64>) -> Arc<Process> {
        let (text, generation) = (text.clone(), generation.clone());
        let known = AtomicU64::new(0);
        Arc::new(Process { text, generation, known, reading: ForkLock::default() })
    }

    fn pair() -> (Arc<Process>, Arc<Process>) {
        let (text, generation) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        (Process::new(&text, &generation), Process::new(&text, &generation))
    }

    fn known(&self) -> (u64, u64) {
        let known = self.known.load(Ordering::Acquire);
        (known >> TEXT_BITS, known & ((1 << TEXT_BITS) - 1))
    }

    /// `Changes::put`: a newer text stays.
    fn put(&self, text: u64, number: u64) {
        let next = number << TEXT_BITS | text;
        let newer = |known: u64| (known >> TEXT_BITS < number).then_some(next);
        let _ = self.known.fetch_update(Ordering::AcqRel, Ordering::Acquire, newer);
    }

    /// `TableSections::change`, with the file's lock held: the text, then `Changes::publish`.
    fn change(&self, text: u64) {
        self.text.store(text, Ordering::Release);
        self.put(text, self.generation.load(Ordering::Acquire) + 1);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// `Changes::follow`: the text that a hit goes by.
    fn hit(&self) -> u64 {
        let now = self.generation.load(Ordering::Acquire);
        if self.known().0 < now
            && let Some(_alone) = self.reading.try_lock()
        {
            let number = self.generation.load(Ordering::Acquire);
            self.put(self.text.load(Ordering::Acquire), number);
        }
        self.known().1
    }
}

/// A thread changes something while another one of its process reads the file: its own next hit
/// goes by the change.
#[test]
fn a_change_acts_on_the_next_hit_of_its_process() {
    model(|| {
        let (mine, _) = Process::pair();
        // Another process opened the file, so that hits have something to read.
        mine.generation.fetch_add(1, Ordering::Release);
        let reader = mine.clone();
        let (_, seen) = both(move || reader.hit(), {
            let mine = mine.clone();
            move || {
                mine.change(1);
                mine.hit()
            }
        });
        assert_eq!(seen, 1);
        assert_eq!(mine.hit(), 1);
    });
}

/// Another process changes something while two threads of this one hit: neither waits, and at rest
/// the next hit goes by the change.
#[test]
fn a_change_of_another_process_comes_through() {
    model(|| {
        let (mine, theirs) = Process::pair();
        let reader = mine.clone();
        let changing = loom::thread::spawn(move || theirs.change(1));
        let (a, b) = both(move || reader.hit(), {
            let mine = mine.clone();
            move || mine.hit()
        });
        changing.join().unwrap();
        assert!(a <= 1 && b <= 1);
        assert_eq!(mine.hit(), 1);
    });
}
