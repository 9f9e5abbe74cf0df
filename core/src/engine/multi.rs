//! One hit over several tables: spent in all of them or in none.

use super::{ATTEMPTS, Answer, OnFull, RowRef};
use crate::algorithm::Taken;
use crate::algorithm::permit::Permit;
use crate::clock::Time;
use crate::limits::Limits;
use crate::limits::receipt::Receipt;
use crate::status::LimitStatuses;
use crate::table::row::Row;

impl Limits {
    /// What `cost` gets from limits that say this. A limit of 0 refuses everything.
    fn judge(&self, statuses: &LimitStatuses, cost: u64) -> Answer {
        match cost > self.smallest() && self.smallest() > 0 {
            true => Answer::Cost,
            false if statuses.fits() => Answer::Allowed,
            false => Answer::Denied,
        }
    }
}

/// The answer to a hit on several parts. What their limits say is put where the caller wants it,
/// since that is large to hand back; see [`HitOutcome::statuses`](crate::HitOutcome::statuses).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct MultiOutcome<const N: usize> {
    /// Yes or no, and why.
    pub answer: Answer,
    /// The slot that is held in each part that has a concurrent limit.
    pub permits: [Option<Permit>; N],
    /// Whether a part's table is full, so that its key shares a row with others.
    pub shared: bool,
}

/// Spends each part's cost in it, or nothing in any: for limits that are keyed differently, or that
/// count different things. Where a cost is 0, nothing is spent.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::{Answer, Clock, Engine, Limit, LimitStatuses, Limits, Options, Time};
/// use tidegate_core::hit_together;
///
/// let limits = |max| Limits::new(&[Limit::bucket(max, Duration::from_secs(60))]).unwrap();
/// let each = Engine::new(limits(2), Options::default()).unwrap();
/// let all = Engine::new(limits(3), Options::default()).unwrap();
/// let hit = |who: &[u8]| {
///     let parts = [each.part(each.hash(who)), all.part(all.hash(b""))];
///     let statuses = &mut [LimitStatuses::default(); 2];
///     hit_together(&parts, &[1, 1], &mut Time::read(&Clock::System), statuses).answer
/// };
/// assert_eq!([hit(b"a"), hit(b"a"), hit(b"b")], [Answer::Allowed; 3]);
/// assert_eq!(hit(b"b"), Answer::Denied);
/// assert_eq!(each.peek(b"b", 0).statuses[0].remaining, 1); // a refusal took nothing
/// ```
pub fn hit_together<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    statuses: &mut [LimitStatuses; N],
) -> MultiOutcome<N> {
    hit_noting(parts, costs, time, statuses, |_, _, _, _| ())
}

/// As [`hit_together`], with a receipt for what was taken in each part: for [`RowRef::give_back`].
/// A part in which nothing was counted has none.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::{Clock, Engine, Limit, LimitStatuses, Limits, Options, Time};
/// use tidegate_core::reserve_together;
///
/// let limits = Limits::new(&[Limit::window(5, Duration::from_secs(10))]).unwrap();
/// let engine = Engine::new(limits, Options::default()).unwrap();
/// let (part, time) = (engine.part(engine.hash(b"alice")), &mut Time::read(&Clock::System));
/// let mut receipts = [None];
/// let statuses = &mut [LimitStatuses::default()];
/// assert!(reserve_together(&[part], &[5], time, statuses, &mut receipts).answer.is_allowed());
/// part.give_back(&receipts[0].unwrap(), 3, time);
/// assert_eq!(engine.peek(b"alice", 0).statuses[0].remaining, 3);
/// ```
pub fn reserve_together<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    statuses: &mut [LimitStatuses; N],
    receipts: &mut [Option<Receipt>; N],
) -> MultiOutcome<N> {
    *receipts = [None; N];
    hit_noting(parts, costs, time, statuses, |i, row, taken, (began, now)| {
        receipts[i] = Some(Receipt::new(row, taken, costs[i], began, now));
    })
}

/// As [`hit_together`]. `note` is told of each row, what was taken from it, and the clock before
/// and after that.
fn hit_noting<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    statuses: &mut [LimitStatuses; N],
    mut note: impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> MultiOutcome<N> {
    let mut each = parts.iter().zip(costs);
    if each.any(|(part, &cost)| cost == 0 || cost > part.limits.smallest()) {
        return inspect_only(parts, costs, time.now(), statuses);
    }
    // A lone cell can't be met half-taken: its refusal needs no second look unless it was repaired.
    let lone = N == 1 && parts.iter().all(|part| part.limits.placed.len() == 1);
    let denied = |shared| MultiOutcome { answer: Answer::Denied, permits: [None; N], shared };
    let mut rechecked = false;
    for _ in 0..ATTEMPTS {
        match attempt(parts, costs, time, statuses, &mut note) {
            Attempt::Done(together) => return together,
            Attempt::Refused { shared } if rechecked => return denied(shared),
            Attempt::Refused { shared } => {
                rechecked = true;
                if !repair_together(parts, time) && lone {
                    return denied(shared);
                }
            }
            Attempt::Lost => {}
        }
    }
    // Others took and gave back all the while. A denial needs a wait: the shortest there is.
    inspect_multi(parts, costs, time.now(), statuses);
    if statuses.iter().all(LimitStatuses::fits) && N > 0 {
        statuses[0].set_wait(1);
    }
    // No key is to be punished for that.
    denied(true)
}

/// What [`hit_together`] would say, changing nothing.
pub fn peek_together<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    time: &Time<'_>,
    statuses: &mut [LimitStatuses; N],
) -> MultiOutcome<N> {
    let now = time.now();
    let mut together = inspect_only(parts, costs, now, statuses);
    if together.answer == Answer::Allowed && !costs.contains(&0) {
        let full = |part: &RowRef<'_>| match part.engine.on_full {
            OnFull::Overflow => Answer::Allowed,
            _ => part.engine.peek_full(part.hash, now),
        };
        let answers = parts.each_ref().map(full);
        let counted = answers.contains(&Answer::Allowed);
        together.answer = match answers.contains(&Answer::Full) {
            true => Answer::Full,
            false if counted => Answer::Allowed,
            false => Answer::Uncounted,
        };
    }
    together
}

/// One attempt at all parts.
enum Attempt<const N: usize> {
    Done(MultiOutcome<N>),
    /// Refused by what its statuses say.
    Refused {
        shared: bool,
    },
    /// Another thread was quicker.
    Lost,
}

/// What a hit gets that can't or need not be charged.
fn inspect_only<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    now: u64,
    statuses: &mut [LimitStatuses; N],
) -> MultiOutcome<N> {
    inspect_multi(parts, costs, now, statuses);
    let answers = || (0..N).map(|i| parts[i].limits.judge(&statuses[i], costs[i]));
    let denied = answers().find(|answer| *answer == Answer::Denied);
    let worst = denied.or_else(|| answers().find(|answer| *answer == Answer::Cost));
    let answer = worst.unwrap_or(Answer::Allowed);
    MultiOutcome { answer, permits: [None; N], shared: false }
}

fn repair_together<const N: usize>(parts: &[RowRef<'_>; N], time: &mut Time<'_>) -> bool {
    let mut any = false;
    for part in parts {
        any |= part.repair_clock_skew(time);
    }
    any
}

fn inspect_multi<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    now: u64,
    statuses: &mut [LimitStatuses; N],
) {
    for (i, part) in parts.iter().enumerate() {
        part.inspect_into(costs[i], now, &mut statuses[i]);
    }
}

fn attempt<const N: usize>(
    parts: &[RowRef<'_>; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    statuses: &mut [LimitStatuses; N],
    note: &mut impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> Attempt<N> {
    let mut rows = [const { None }; N];
    for (i, part) in parts.iter().enumerate() {
        match part.engine.row(part.hash, time.now()) {
            Ok(row) => rows[i] = Some(row),
            Err(Answer::Uncounted) => statuses[i] = part.limits.statuses_of_new(costs[i]),
            Err(answer) => {
                inspect_multi(parts, costs, time.now(), statuses);
                let permits = [None; N];
                return Attempt::Done(MultiOutcome { answer, permits, shared: false });
            }
        }
    }
    let fits = |i: usize| match &rows[i] {
        // A lone cell that is taken first refuses before anything is written.
        Some(_) if i == 0 && parts[i].limits.placed.len() == 1 => true,
        Some(row) => parts[i].limits.fits(row, costs[i], time.now()) == Ok(true),
        None => true,
    };
    let all_fit = (0..N).all(fits);
    if all_fit {
        match take_rows(parts, &rows, statuses, costs, time, note) {
            Attempt::Lost => {}
            done => return done,
        }
    }
    for (i, part) in parts.iter().enumerate() {
        let Some(row) = &rows[i] else { continue };
        if part.limits.inspect(row, costs[i], time.now(), &mut statuses[i]).is_err() {
            return Attempt::Lost;
        }
    }
    match statuses.iter().all(LimitStatuses::fits) {
        true if all_fit => Attempt::Lost,
        // A stamp ahead of the clock has no room and yet counts for nothing: taking repairs it.
        true => take_rows(parts, &rows, statuses, costs, time, note),
        false => Attempt::Refused { shared: is_shared(&rows) },
    }
}

fn is_shared(rows: &[Option<Row<'_>>]) -> bool {
    rows.iter().flatten().any(Row::is_shared)
}

fn take_rows<const N: usize>(
    parts: &[RowRef<'_>; N],
    rows: &[Option<Row<'_>>; N],
    statuses: &mut [LimitStatuses; N],
    costs: &[u64; N],
    time: &mut Time<'_>,
    note: &mut impl FnMut(usize, &Row<'_>, &Taken, (u64, u64)),
) -> Attempt<N> {
    let began = time.now();
    let mut taken: [Taken; N] = std::array::from_fn(|_| Taken::default());
    let mut told = [false; N];
    for i in 0..N {
        let Some(row) = &rows[i] else { continue };
        let (limits, keep_us) = (parts[i].limits, parts[i].engine.keep_us());
        let (statuses, taken_here) = (&mut statuses[i], &mut taken[i]);
        if let Ok(Some(is_told)) =
            limits.take_and_tell(row, costs[i], keep_us, time, statuses, taken_here)
        {
            told[i] = is_told;
            continue;
        }
        for (back, row) in rows.iter().enumerate().take(i) {
            let Some(row) = row else { continue };
            parts[back].limits.give_back(row, &taken[back], costs[back], time);
        }
        return Attempt::Lost;
    }
    for (i, row) in rows.iter().enumerate() {
        let Some(row) = row else { continue };
        note(i, row, &taken[i], (began, time.now()));
        if !told[i] {
            parts[i].inspect_after(row, &taken[i].written, time.now(), &mut statuses[i]);
        }
    }
    let counted = rows.iter().any(Option::is_some);
    let answer = if counted { Answer::Allowed } else { Answer::Uncounted };
    let shared = is_shared(rows);
    Attempt::Done(MultiOutcome { answer, permits: taken.map(|t| t.permit), shared })
}
