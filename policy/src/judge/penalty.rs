//! What denials lead to: cooldown, backoff, alert and notices, kept as notes on a key.

use crate::notes::{Alert, Penalty, Until};
use tidegate_core::{Hash, LimitStatus, NEVER, Time};

use crate::compiled::variant::Variant;
use crate::compiled::wanted::Penalties;
use crate::config::policy::Notify;
use crate::decision::Reason;
use crate::store::tables::Tables;

const PENALTY: usize = 0;
const UNTIL: usize = 1;
const ALERT: usize = 2;

/// Why a call is refused before its limits are asked, and for how long at least.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) wait: u64,
    /// The limit whose cooldown runs.
    pub(crate) cooling: Option<usize>,
}

/// What limits deny a hit, and for how long.
pub(crate) struct Denial {
    /// The one with the longest wait, its cooldown included; ties go to the one declared first.
    pub(crate) limit: usize,
    /// The longest of the limits' own waits.
    own: u64,
    /// The longest cooldown of those that deny, and whose it is.
    cooldown: Option<(u64, usize)>,
}

impl Denial {
    pub(crate) fn of(statuses: &[LimitStatus], variant: &Variant) -> Denial {
        Denial::with(statuses, |index| variant.params[index].cooldown)
    }

    /// As it is where a denial starts nothing.
    pub(crate) fn without_cooldowns(statuses: &[LimitStatus]) -> Denial {
        Denial::with(statuses, |_| 0)
    }

    fn with(statuses: &[LimitStatus], cooldown_of: impl Fn(usize) -> u64) -> Denial {
        let mut denial = Denial { limit: 0, own: 0, cooldown: None };
        let mut longest = (0, false);
        for (index, status) in statuses.iter().enumerate().filter(|(_, status)| status.wait > 0) {
            let cooldown = cooldown_of(index);
            // A limit that never allows anything is the reason, whatever else can't be waited for.
            let rank = (status.wait.max(cooldown), status.limit == 0);
            if rank > longest {
                (longest, denial.limit) = (rank, index);
            }
            denial.own = denial.own.max(status.wait);
            if cooldown > denial.cooldown.map_or(0, |(longest, _)| longest) {
                denial.cooldown = Some((cooldown, index));
            }
        }
        denial
    }

    /// The wait that denial number `count` of a run reports.
    fn wait(&self, variant: &Variant, count: u64) -> u64 {
        let wait = self.own.max(self.cooldown.map_or(0, |(cooldown, _)| cooldown));
        match &variant.backoff {
            _ if self.own == NEVER => NEVER,
            Some(steps) => steps.rounded(wait.max(steps.step(count))),
            None => wait,
        }
    }

    /// What a denial that starts nothing comes to: only the limits have to be waited for. A
    /// cooldown or a step that has not begun is nothing to wait for.
    pub(crate) fn uncounted(&self, variant: &Variant) -> DenialOutcome {
        let notify = variant.notifies_always();
        DenialOutcome { wait: self.own, alert: false, notify, refusal: None }
    }
}

/// What a denial came to.
pub(crate) struct DenialOutcome {
    pub(crate) wait: u64,
    pub(crate) alert: bool,
    pub(crate) notify: bool,
    /// The key was refused already, by a denial that came first.
    pub(crate) refusal: Option<Refusal>,
}

/// How a key stands with its denials so far.
pub(crate) struct PenaltyState {
    hash: Option<Hash>,
    penalty: Penalty,
    /// When the notes were read, in nanoseconds of the rule's clock.
    now: u64,
    /// The notes were ahead of the clock, and have been repaired.
    pub(crate) repaired: bool,
    /// The cooldown or enforced wait that runs.
    pub(crate) refusal: Option<Refusal>,
}

/// Nanoseconds that the cooldown of a penalty has to run.
fn cooldown_left(penalty: Penalty, variant: &Variant, now: u64) -> u64 {
    let cooldown = penalty.limit().and_then(|limit| variant.params.get(limit));
    let age = penalty.since_last(now).unwrap_or(u64::MAX);
    cooldown.map_or(0, |params| params.cooldown.saturating_sub(age))
}

/// Nanoseconds that an enforced wait has to run. Without its own note, the step is what is sure.
fn enforced_left(penalty: Penalty, until: Option<u64>, variant: &Variant, now: u64) -> u64 {
    let Some(steps) = variant.backoff.as_ref().filter(|s| s.enforce && penalty.count() > 0) else {
        return 0;
    };
    match until.and_then(|note| Until::from_note(note, penalty)) {
        Some(until) => until.left(now),
        None => {
            let age = penalty.since_last(now).unwrap_or(u64::MAX);
            steps.step(penalty.count()).saturating_sub(age)
        }
    }
}

/// Whether a penalty bars the key, and for how long.
fn refusal_of(
    penalty: Penalty,
    until: Option<u64>,
    variant: &Variant,
    now: u64,
) -> Option<Refusal> {
    let cooldown = cooldown_left(penalty, variant, now);
    let enforced = enforced_left(penalty, until, variant, now);
    let reason = match (cooldown, enforced) {
        (0, 0) => return None,
        (0, _) => Reason::Backoff,
        _ => Reason::Cooldown,
    };
    Some(Refusal { reason, wait: cooldown.max(enforced), cooling: penalty.limit() })
}

/// Whether the last counted denial is less than `quiet` ago.
fn is_recent(penalty: Penalty, variant: &Variant, now: u64) -> bool {
    let quiet = variant.backoff.as_ref().map_or(0, |steps| steps.quiet);
    penalty.count() > 0 && penalty.since_last(now).is_some_and(|age| age < quiet)
}

/// Which denial of its run the next one would be.
fn next_count(penalty: Penalty, variant: &Variant, now: u64) -> u64 {
    if is_recent(penalty, variant, now) { penalty.count() + 1 } else { 1 }
}

/// Whether the sender was told in this episode. One ends with the cooldown that ran in it.
fn is_told(penalty: Penalty, variant: &Variant, now: u64) -> bool {
    let cooled = penalty.limit().is_some() && cooldown_left(penalty, variant, now) == 0;
    penalty.is_told() && !cooled
}

impl Variant {
    pub(crate) fn notifies_always(&self) -> bool {
        self.effective.notify == Notify::Always
    }

    fn notifies_once(&self) -> bool {
        self.effective.notify == Notify::Once
    }
}

/// Stores notes that a clock fault left ahead of the clock as of now, so that they last their own
/// time from here. A thread that finds the penalty changed leaves it: whoever changed it has dated
/// it.
#[cold]
fn repair(ledger: &Penalties, hash: Hash, notes: &mut [u64; 3], now: u64) {
    let ahead = Penalty::from_note(notes[PENALTY]);
    let repaired = ahead.repaired(now);
    let swap = |at: usize, seen: u64, next: u64| {
        ledger.update_known(hash, at, |note| match note == seen {
            true => (next, true),
            false => (note, false),
        })
    };
    if swap(PENALTY, ahead.note(), repaired.note()) != Some(true) {
        return;
    }
    notes[PENALTY] = repaired.note();
    if let Some(until) = Until::from_note(notes[UNTIL], ahead) {
        let seen = std::mem::replace(&mut notes[UNTIL], until.moved_to(repaired).note());
        swap(UNTIL, seen, notes[UNTIL]);
    }
    ledger.update_known(hash, ALERT, |note| (Alert::from_note(note).repaired(now).note(), ()));
}

impl PenaltyState {
    /// Of a rule that keeps no notes on denials.
    pub(crate) fn unknown(now: u64) -> PenaltyState {
        PenaltyState {
            hash: None,
            penalty: Penalty::default(),
            now,
            repaired: false,
            refusal: None,
        }
    }

    /// Reads the notes on a key. Those that are ahead of the clock, even when it is read again, are
    /// repaired if the call may write.
    pub(crate) fn read(
        ledger: &Penalties,
        hash: Hash,
        variant: &Variant,
        time: &mut Time<'_>,
        may_write: bool,
    ) -> PenaltyState {
        let mut notes = ledger.read(hash).unwrap_or_default();
        let is_ahead = |time: &Time<'_>| Penalty::from_note(notes[PENALTY]).is_ahead(time.now());
        let mut repaired = false;
        if is_ahead(time) {
            time.recheck_clock();
            repaired = may_write && is_ahead(time);
        }
        if repaired {
            repair(ledger, hash, &mut notes, time.now());
        }
        let (penalty, now) = (Penalty::from_note(notes[PENALTY]), time.now());
        let refusal = refusal_of(penalty, Some(notes[UNTIL]), variant, now);
        PenaltyState { hash: Some(hash), penalty, now, repaired, refusal }
    }

    /// The key was allowed: the next denial is the first of a new episode.
    pub(crate) fn forgive(&self, ledger: Option<&Penalties>) {
        if let (Some(hash), Some(ledger), true) = (self.hash, ledger, self.penalty.is_told()) {
            ledger.update_known(hash, PENALTY, |note| {
                let penalty = Penalty::from_note(note).told(false);
                (if penalty.count() == 0 { 0 } else { penalty.note() }, ())
            });
        }
    }

    /// Whether the sender should be told of a denial that counts for nothing else.
    pub(crate) fn takes_notice(&self, tables: &Tables, variant: &Variant) -> bool {
        let now = self.now;
        let (true, Some(hash), Some(ledger)) =
            (variant.notifies_once(), self.hash, tables.penalties())
        else {
            return variant.notifies_always();
        };
        let told = ledger.update(hash, PENALTY, &|notes| tables.is_forgotten(notes, now), |note| {
            let penalty = Penalty::from_note(note);
            let dated = if penalty.count() == 0 { penalty.dated(now) } else { penalty };
            // A cooldown that is over ends one episode, not every one after it.
            let over = cooldown_left(penalty, variant, now) == 0;
            let next = if over { dated.cooled() } else { dated };
            match is_told(penalty, variant, now) {
                true => (note, false),
                false => (next.told(true).note(), true),
            }
        });
        told.unwrap_or(false)
    }

    /// Counts a denial, and says what it comes to.
    pub(crate) fn count(
        &self,
        denial: &Denial,
        tables: &Tables,
        variant: &Variant,
    ) -> DenialOutcome {
        let (Some(hash), Some(ledger), true) =
            (self.hash, tables.penalties(), variant.has_penalties())
        else {
            return denial.uncounted(variant);
        };
        let now = self.now;
        let idle = |notes: &[u64; 3]| tables.is_forgotten(notes, now);
        let counted = ledger.update(hash, PENALTY, &idle, |note| {
            let before = Penalty::from_note(note);
            if before != self.penalty
                && let Some(refusal) = refusal_of(before, None, variant, now)
            {
                return (note, Err(refusal));
            }
            let limit = denial.cooldown.map(|(_, limit)| limit);
            let after = before.denied(now, next_count(before, variant, now), limit);
            let first = !is_told(before, variant, now);
            let after = after.told(variant.notifies_once());
            (after.note(), Ok((after, first)))
        });
        let (penalty, first) = match counted {
            Some(Ok(counted)) => counted,
            Some(Err(refusal)) => {
                let wait = refusal.wait;
                return DenialOutcome { wait, alert: false, notify: false, refusal: Some(refusal) };
            }
            // No place for notes on this key: it is denied, and that is all.
            None => return denial.uncounted(variant),
        };
        let wait = denial.wait(variant, penalty.count());
        if variant.backoff.as_ref().is_some_and(|steps| steps.enforce) {
            // There is nothing to enforce where waiting never helps.
            let until = Until::new(penalty, if wait == NEVER { 0 } else { wait });
            ledger.update_known(hash, UNTIL, |_| (until.note(), ()));
        }
        let alert = variant.alert.and_then(|(violations, within)| {
            ledger.update_known(hash, ALERT, |note| {
                let (next, reached) = Alert::from_note(note).denied(now, within, violations);
                (next.note(), reached)
            })
        });
        DenialOutcome {
            wait,
            alert: alert.unwrap_or(false),
            notify: variant.notifies_always() || variant.notifies_once() && first,
            refusal: None,
        }
    }
}

/// What bars a key now, each by itself.
pub(crate) struct Running {
    /// Nanoseconds that a cooldown has to run, and whose it is.
    pub(crate) cooldown: u64,
    pub(crate) cooling: Option<usize>,
    /// Nanoseconds that an enforced wait has to run.
    pub(crate) enforced: u64,
}

impl Running {
    pub(crate) fn read(notes: [u64; 3], variant: &Variant, now: u64) -> Running {
        let penalty = Penalty::from_note(notes[PENALTY]);
        Running {
            cooldown: cooldown_left(penalty, variant, now),
            cooling: penalty.limit(),
            enforced: enforced_left(penalty, Some(notes[UNTIL]), variant, now),
        }
    }
}

/// What notes on a key say, for statistics.
pub(crate) struct Record {
    pub(crate) cooldown_left: u64,
    pub(crate) violations: u64,
    /// A denial less than `quiet` ago.
    pub(crate) is_recent: bool,
    pub(crate) is_new: bool,
}

impl Record {
    pub(crate) fn read(notes: [u64; 3], variant: &Variant, now: u64) -> Record {
        let penalty = Penalty::from_note(notes[PENALTY]);
        let cooldown_left = cooldown_left(penalty, variant, now);
        let is_recent = is_recent(penalty, variant, now);
        let in_span =
            variant.alert.map(|(_, within)| Alert::from_note(notes[ALERT]).count(now, within));
        let in_run = if is_recent { penalty.count() } else { 0 };
        let enforced = enforced_left(penalty, Some(notes[UNTIL]), variant, now);
        Record {
            cooldown_left,
            violations: in_span.unwrap_or(in_run),
            is_recent,
            is_new: cooldown_left == 0
                && enforced == 0
                && !is_recent
                && in_span.unwrap_or(0) == 0
                && !is_told(penalty, variant, now),
        }
    }
}
