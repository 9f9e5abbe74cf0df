//! The heaviest of many keys, in little memory.

use crate::key::name::{Name, NamedCount};

/// Names that are watched, of which the first [`SHOWN`] are shown.
const WATCHED: usize = 64;

const SHOWN: usize = 10;

/// The heaviest of many names in little memory ("space saving", after Metwally, Agrawal and El
/// Abbadi): a new name takes the place, and the count, of the lightest.
#[derive(Debug)]
pub(crate) struct Heaviest {
    names: Vec<Name>,
    /// For each name: its mark, so that most names need not be compared.
    marks: Vec<u64>,
    counts: Vec<u64>,
}

impl Heaviest {
    pub(crate) fn new() -> Heaviest {
        Heaviest {
            names: Vec::with_capacity(WATCHED),
            marks: Vec::with_capacity(WATCHED),
            counts: Vec::with_capacity(WATCHED),
        }
    }

    pub(crate) fn add(&mut self, name: &Name, weight: u64) {
        let mark = name.mark();
        let mut alike = (0..).zip(&self.marks).filter(|&(_, other)| *other == mark);
        if let Some((at, _)) = alike.find(|&(at, _): &(usize, _)| self.names[at] == *name) {
            self.counts[at] += weight;
        } else if self.names.len() < WATCHED {
            self.names.push(*name);
            self.marks.push(mark);
            self.counts.push(weight);
        } else if let Some(lightest) = (0..WATCHED).min_by_key(|&at| self.counts[at]) {
            self.names[lightest] = *name;
            self.marks[lightest] = mark;
            self.counts[lightest] += weight;
        }
    }

    pub(crate) fn shown(&self) -> Vec<NamedCount> {
        let named = |(name, count): (&Name, &u64)| NamedCount { key: name.texts(), count: *count };
        let mut all: Vec<NamedCount> = self.names.iter().zip(&self.counts).map(named).collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        all.truncate(SHOWN);
        all
    }
}
