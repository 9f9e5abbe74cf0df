//! How users of a table learn that another one took its place.
//!
//! ```text
//!   a process that replaces the table         a user of the table
//!   1  takes the name away from it            a  notes the generation
//!   2  retired := 1                           b  looks at `retired`, and at the name
//!   3  generation + 1                         c  each hit compares the generation with the note;
//!   4  gives the name to the new table           if they differ: a and b again
//! ```
//!
//! A user whose look came before step 2 noted a generation from before step 3, so its next hit
//! looks again. A process that opens the table by its name notes the generation first and looks at
//! the name after that. It finds the name gone and opens the new table, or its next hit looks
//! again. Both need the order on the left. Modelled by `loom_retired`.

use crate::sync::{AtomicU64, Ordering};

/// Steps 2 and 3.
pub(crate) fn retire(retired: &AtomicU64, generation: &AtomicU64) {
    // ORDERING: Relaxed; the Release below orders it, and a look by itself needs no more.
    retired.store(1, Ordering::Relaxed);
    // ORDERING: Release, with the Acquire of a hit that compares it: this hit sees `retired`, and
    // that the name is gone.
    generation.fetch_add(1, Ordering::Release);
}

/// Step b, the word.
pub(crate) fn is_retired(retired: &AtomicU64) -> bool {
    // ORDERING: Relaxed; the word stands for itself. A look that must not miss it comes after an
    // Acquire of the generation.
    retired.load(Ordering::Relaxed) != 0
}
