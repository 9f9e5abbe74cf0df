//! What limits say of a key.

/// The most limits that share a row.
pub const MOST_LIMITS: usize = 8;
/// A wait that never ends: the cost can't pass however long one waits.
pub const NEVER: u64 = u64::MAX;

/// What one limit says: how much is left, and when there is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStatus {
    /// A bucket's size, else `max`.
    pub limit: u64,
    /// Whole units that are gone. More than `limit` if more was recorded than allowed.
    pub used: u64,
    /// Whole units that are left.
    pub remaining: u64,
    /// Nanoseconds until the cost asked about fits: 0 if it does, [`NEVER`] if it can't.
    pub wait: u64,
    /// Nanoseconds until more than `remaining` is left: 0 if nothing is used.
    pub more: u64,
    /// Nanoseconds until the whole quota is there again.
    pub reset: u64,
}

/// What the limits of a row say, in the order in which they were stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStatuses {
    pub(crate) each: [LimitStatus; MOST_LIMITS],
    pub(crate) len: u8,
}

impl LimitStatuses {
    pub(crate) fn one(status: LimitStatus) -> LimitStatuses {
        let mut statuses = LimitStatuses::default();
        statuses.set_one(status);
        statuses
    }

    pub(crate) fn set_one(&mut self, status: LimitStatus) {
        self.each[0] = status;
        self.len = 1;
    }

    pub(crate) fn set_wait(&mut self, wait: u64) {
        self.each[0].wait = wait;
    }

    /// Forgets them all.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether the cost fits every limit now.
    #[inline]
    pub fn fits(&self) -> bool {
        self.iter().all(|status| status.wait == 0)
    }

    /// The longest wait of the limits: 0 if the cost fits.
    pub fn wait(&self) -> u64 {
        self.iter().map(|status| status.wait).max().unwrap_or(0)
    }
}

/// Up to [`MOST_LIMITS`] of them.
impl Extend<LimitStatus> for LimitStatuses {
    fn extend<I: IntoIterator<Item = LimitStatus>>(&mut self, each: I) {
        let free = &mut self.each[usize::from(self.len)..];
        for (slot, status) in free.iter_mut().zip(each) {
            *slot = status;
            self.len += 1;
        }
    }
}

/// The first [`MOST_LIMITS`] of them.
impl FromIterator<LimitStatus> for LimitStatuses {
    fn from_iter<I: IntoIterator<Item = LimitStatus>>(each: I) -> LimitStatuses {
        let mut statuses = LimitStatuses::default();
        statuses.extend(each);
        statuses
    }
}

impl std::ops::Deref for LimitStatuses {
    type Target = [LimitStatus];
    #[inline]
    fn deref(&self) -> &[LimitStatus] {
        &self.each[..usize::from(self.len)]
    }
}
