//! What a bucket's word says at one moment.

use super::{Bucket, MILLI, RefillLine};

/// What a word says at one moment, read once for all questions.
pub(crate) struct Reading<'b> {
    pub(super) bucket: &'b Bucket,
    /// `None` if the bucket is full.
    pub(super) line: Option<RefillLine>,
}

impl Reading<'_> {
    /// Whole tokens.
    #[inline]
    pub(crate) fn tokens(&self) -> u64 {
        let Some(line) = self.line else {
            return self.bucket.burst();
        };
        // A division by a constant is a multiplication.
        match (line.content.max(0) as u64, self.bucket.scale.quanta) {
            (content, MILLI) => content / MILLI,
            (content, 1) => content,
            (content, quanta) => content / quanta,
        }
    }

    /// Nanoseconds until so many tokens are there, to the nanosecond: 0 if they are.
    #[inline]
    pub(crate) fn wait(&self, tokens: u64) -> u64 {
        let goal = self.bucket.quanta(tokens);
        match &self.line {
            Some(line) if line.content < goal => self.bucket.until(line, goal),
            _ => 0,
        }
    }

    /// The same without what a start that was rounded up adds: a fresh hit of `1/min` says 60 s.
    #[inline(always)]
    pub(crate) fn due(&self, tokens: u64) -> u64 {
        let goal = self.bucket.quanta(tokens);
        match self.line {
            Some(line) if line.content < goal => {
                self.bucket.until(&RefillLine { since: line.since.max(0), ..line }, goal)
            }
            _ => 0,
        }
    }
}
