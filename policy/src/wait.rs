//! Waiting until a hit, a reservation or a permit is allowed.
//!
//! There is no thread for it: whose turn it is tries, and sleeps for as long as it is told, the rest
//! wait for their turn.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use tidegate_core::Clock;

use crate::compiled::plan::MOST_GROUPS;
use crate::config::policy::Mode;
use crate::decision::{Decision, Reason};
use crate::error::Error;
use crate::judge::{Op, Receipts};
use crate::key::Call;
use crate::rule::Rule;
use crate::rule::held::{Permit, Reservation};
use crate::rule::waiters::{LineKey, Ticket, WHOLE_KEY, Waiters};
use crate::snapshot::Snapshot;

/// How long those sleep at most who wait by a clock that is moved by hand.
const MANUAL_NAP: Duration = Duration::from_millis(1);

/// How long others sleep at most before they look again: the limiter may have been closed, the key
/// reset, refunded or judged by other limits, by another process too.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// How long a waiter that is not first sleeps at most before it looks whether it is. It is woken for its
/// turn, but for one case: in a child that was forked with the executor, nobody wakes tasks that stood in
/// line before the fork.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// What is waited for, granted or not.
trait Goal: Sized {
    /// Refuses rules that it is not for.
    fn check(rule: &Rule, snapshot: &Snapshot) -> Result<(), Error>;
    /// Tries to get it. A denial counts for nothing.
    fn attempt(rule: &Rule, call: &Call<'_>, cost: u64) -> Result<Self, Error>;
    fn decision(&self) -> &Decision;
    /// Not granted, for this reason.
    fn refused(decision: Decision) -> Self;
}

impl Goal for Decision {
    fn check(rule: &Rule, snapshot: &Snapshot) -> Result<(), Error> {
        rule.no_permits(snapshot, "acquire")
    }
    fn attempt(rule: &Rule, call: &Call<'_>, cost: u64) -> Result<Decision, Error> {
        let snapshot = rule.snapshot()?;
        rule.no_permits(&snapshot, "acquire")?;
        rule.decided(&snapshot, call, cost, Op::Try)
    }
    fn decision(&self) -> &Decision {
        self
    }
    fn refused(decision: Decision) -> Decision {
        decision
    }
}

impl Goal for Reservation {
    fn check(rule: &Rule, snapshot: &Snapshot) -> Result<(), Error> {
        rule.no_permits(snapshot, "acquire_reservation")
    }
    fn attempt(rule: &Rule, call: &Call<'_>, cost: u64) -> Result<Reservation, Error> {
        rule.reserve_by(call, cost, Op::Try, "acquire_reservation")
    }
    fn decision(&self) -> &Decision {
        Reservation::decision(self)
    }
    fn refused(decision: Decision) -> Reservation {
        Reservation::new(decision, None, 0, Receipts::default())
    }
}

impl Goal for Permit {
    fn check(rule: &Rule, snapshot: &Snapshot) -> Result<(), Error> {
        rule.only_permits(snapshot, "acquire")
    }
    fn attempt(rule: &Rule, call: &Call<'_>, _: u64) -> Result<Permit, Error> {
        rule.permit_by(call, Op::Try, "acquire")
    }
    fn decision(&self) -> &Decision {
        Permit::decision(self)
    }
    fn refused(decision: Decision) -> Permit {
        Permit::new(decision, None, Default::default())
    }
}

/// What one who waits does next.
enum Next<G> {
    Done(Box<G>),
    /// It is first: try again after this.
    Sleep(Duration),
    /// It is not: wait for its turn, but no longer than this.
    Turn(Duration),
}

/// Where one who waits stands.
struct Places<'r> {
    waiters: &'r Waiters,
    cost: u64,
    own: Ticket<'r>,
    /// In the line of a limit that other keys share. Taken only by the first of the key's own line.
    wide: Option<Ticket<'r>>,
}

impl<'r> Places<'r> {
    /// The place whose turn it waits for.
    fn last(&self) -> &Ticket<'r> {
        self.wide.as_ref().unwrap_or(&self.own)
    }

    /// Stands in this wider line and in no other.
    fn move_to(&mut self, line: Option<LineKey>) {
        if self.wide.as_ref().map(Ticket::line) != line {
            self.wide = None;
            self.wide = line.map(|line| self.waiters.join(line, self.cost));
        }
    }
}

/// One who waits, and until when.
struct Waiting<'r, 'c, G> {
    rule: &'r Rule,
    call: Call<'c>,
    cost: u64,
    clock: Clock,
    /// Nanoseconds, by the rule's clock.
    deadline: Option<u64>,
    own: LineKey,
    /// For each group of limits its line, if other keys share it.
    wide: [Option<LineKey>; MOST_GROUPS],
    /// For each limit its group, and whether it is a concurrent one.
    limits: Vec<(usize, bool)>,
    goal: PhantomData<fn() -> G>,
}

impl<'r, 'c, G: Goal> Waiting<'r, 'c, G> {
    fn new(
        rule: &'r Rule,
        call: Call<'c>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let snapshot = rule.state.snapshot()?;
        G::check(rule, &snapshot)?;
        let (plan, clock) = (snapshot.plan(), snapshot.tables.clock().clone());
        let (own, hashes) = {
            let (subject, _) = snapshot.subject(&call)?;
            (snapshot.whole_hash(&subject).as_u64(), snapshot.hashes(&subject))
        };
        let mut wide = [None; MOST_GROUPS];
        for (index, group) in plan.groups.iter().enumerate() {
            let shared = hashes[index].filter(|_| !plan.is_whole(&group.scope));
            wide[index] = shared.map(|hash| (index, hash.as_u64()));
        }
        let end = |timeout: Duration| clock.now().saturating_add(crate::time::nanos(timeout));
        let deadline = timeout.map(end);
        let concurrent = plan.algorithms.iter().map(|one| one.has_lease());
        let limits = plan.places.iter().map(|(group, _)| *group).zip(concurrent).collect();
        let (own, goal) = ((WHOLE_KEY, own), PhantomData);
        Ok(Waiting { rule, call, cost, clock, deadline, own, wide, limits, goal })
    }

    fn waiters(&self) -> &'r Waiters {
        &self.rule.state.waiters
    }

    /// What an attempt would get, changing nothing.
    fn foresee(&self, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.rule.snapshot()?;
        G::check(self.rule, &snapshot)?;
        self.rule.decided(&snapshot, &self.call, cost, Op::Foresee)
    }

    /// Whether a call competes with those who wait: one that spends nothing, or is never denied, does not.
    fn takes_turns(&self, foreseen: &Decision) -> bool {
        let enforced = foreseen.variant.effective.mode == Mode::Enforce;
        self.cost > 0 && enforced && foreseen.reason != Some(Reason::Exempt)
    }

    /// An attempt without standing in line, if there is none.
    fn at_once(&self) -> Result<Option<G>, Error> {
        let lines = self.wide.iter().copied().flatten().chain([self.own]);
        if self.waiters().busy(lines).is_some() && self.takes_turns(&self.foresee(self.cost)?) {
            return Ok(None);
        }
        let got = G::attempt(self.rule, &self.call, self.cost)?;
        let decision = got.decision();
        Ok((decision.allowed || self.is_hopeless(decision)).then_some(got))
    }

    fn stand_in_line(&self) -> Places<'r> {
        let waiters = self.waiters();
        Places { waiters, cost: self.cost, own: waiters.join(self.own, self.cost), wide: None }
    }

    fn left(&self) -> Option<Duration> {
        let left = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
        self.deadline.map(left)
    }

    fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether waiting for what a decision says would take too long. A slot may be released long before its
    /// lease ends, which is what a concurrent limit says.
    fn is_hopeless(&self, decision: &Decision) -> bool {
        match (decision.retry_after, self.left()) {
            (None, _) => true,
            (Some(_), Some(left)) if self.wants_a_slot(decision) => left.is_zero(),
            (Some(wait), Some(left)) => wait > left,
            (Some(_), None) => false,
        }
    }

    /// Whether a concurrent limit denies.
    fn wants_a_slot(&self, decision: &Decision) -> bool {
        let Some(Reason::Limit(index)) = decision.reason else { return false };
        self.limits.get(usize::from(index)).is_some_and(|(_, concurrent)| *concurrent)
    }

    fn nap(&self, wait: Duration, most: Duration) -> Duration {
        match self.clock {
            Clock::Manual(_) => wait.min(MANUAL_NAP),
            _ => wait.min(most),
        }
    }

    /// The line of the limit that denies, if other keys share it.
    fn line_of(&self, decision: &Decision) -> Option<LineKey> {
        let Some(Reason::Limit(index)) = decision.reason else { return None };
        self.limits.get(usize::from(index)).and_then(|&(group, _)| self.wide[group])
    }

    fn next(&self, places: &mut Places<'r>) -> Result<Next<G>, Error> {
        if places.last().is_first() && places.wide.is_none() {
            self.join_a_busy_line(places)?;
        }
        if !places.last().is_first()
            && let Some(next) = self.stand_by(places)?
        {
            return Ok(next);
        }
        let over = self.is_over();
        let got = G::attempt(self.rule, &self.call, self.cost)?;
        let decision = got.decision();
        if decision.allowed || over || self.is_hopeless(decision) {
            return Ok(Next::Done(got.into()));
        }
        places.move_to(self.line_of(decision));
        let wait = decision.retry_after.unwrap_or_default();
        let wait = self.left().map_or(wait, |left| wait.min(left));
        Ok(match places.last().is_first() {
            true => Next::Sleep(self.nap(wait, LONGEST_NAP)),
            false => Next::Turn(Duration::ZERO),
        })
    }

    /// Lets those of other keys go first who wait for a limit that this one needs too, unless it has
    /// to wait for its own anyway.
    fn join_a_busy_line(&self, places: &mut Places<'r>) -> Result<(), Error> {
        let Some(busy) = self.waiters().busy(self.wide.iter().copied().flatten()) else {
            return Ok(());
        };
        let foreseen = self.foresee(self.cost)?;
        if foreseen.allowed && self.takes_turns(&foreseen) {
            places.move_to(Some(busy));
        }
        Ok(())
    }

    /// What one does who is not first; nothing if its turn does not matter any more.
    fn stand_by(&self, places: &Places<'r>) -> Result<Option<Next<G>>, Error> {
        let over = self.is_over();
        let foreseen = self.foresee(self.cost)?;
        if !self.takes_turns(&foreseen) {
            return Ok(None);
        }
        // Even with nothing to lose, nobody takes what the first is waiting for: a stream of hasty ones
        // would starve it.
        Ok(Some(match foreseen.allowed {
            true if over => Next::Done(G::refused(self.refusal(places)?).into()),
            false if over || self.is_hopeless(&foreseen) => Next::Done(G::refused(foreseen).into()),
            _ => Next::Turn(self.nap(self.left().unwrap_or(LONGEST_TURN), LONGEST_TURN)),
        }))
    }

    /// A no to one whose time is up while another is first: what that one waits for.
    fn refusal(&self, places: &Places<'r>) -> Result<Decision, Error> {
        let decision = self.foresee(places.last().cost_of_first())?;
        match decision.allowed || decision.retry_after.is_none() {
            // The first is about to go, or it is judged by other numbers.
            true => Ok(self.foresee(0)?.out_of_turn()),
            false => Ok(decision),
        }
    }
}

impl Rule {
    fn wait_for<G: Goal>(
        &self,
        call: Call<'_>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<G, Error> {
        let waiting = Waiting::<G>::new(self, call, cost, timeout)?;
        if let Some(got) = waiting.at_once()? {
            return Ok(got);
        }
        let mut places = waiting.stand_in_line();
        loop {
            match waiting.next(&mut places)? {
                Next::Done(got) => return Ok(*got),
                Next::Sleep(wait) => places.last().nap(wait),
                Next::Turn(most) => places.last().wait_turn(most),
            }
        }
    }

    async fn acquire_for<G: Goal, F: Future<Output = ()>>(
        &self,
        call: Call<'_>,
        cost: u64,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<G, Error> {
        let waiting = Waiting::<G>::new(self, call, cost, timeout)?;
        if let Some(got) = waiting.at_once()? {
            return Ok(got);
        }
        let mut places = waiting.stand_in_line();
        loop {
            match waiting.next(&mut places)? {
                Next::Done(got) => return Ok(*got),
                Next::Sleep(wait) => places.last().sleep(sleep(wait)).await,
                Next::Turn(most) => places.last().turn(sleep(most)).await,
            }
        }
    }

    /// Blocks until a hit is allowed, and spends it. Says no at once if it can't be in time. Waiting
    /// counts as no denial.
    ///
    /// ```
    /// use std::time::Duration;
    /// let limiter = tidegate::Limiter::new("1000/s burst 1").unwrap();
    /// assert!((0..5).all(|_| limiter.wait("alice", 1, None).unwrap().allowed));
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert!(limiter.wait("alice", 1, None).unwrap().allowed);
    /// assert!(!limiter.wait("alice", 1, Some(Duration::from_secs(5))).unwrap().allowed); // at once
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub fn wait<'a>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Decision, Error> {
        self.wait_for(call.into(), cost, timeout)
    }

    /// As [`Rule::permit`], blocking until there is a slot, as [`Rule::wait`] does. A slot that is released in
    /// this process is noticed at once, one of another process within a second.
    ///
    /// ```
    /// use std::time::Duration;
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// let held = limiter.wait_permit("job", None).unwrap();
    /// assert!(held.is_held());
    /// let late = limiter.wait_permit("job", Some(Duration::from_millis(5))).unwrap();
    /// assert!(!late.decision().allowed);
    /// ```
    ///
    /// # Errors
    /// As [`Rule::permit`].
    pub fn wait_permit<'a>(
        &self,
        call: impl Into<Call<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Permit, Error> {
        self.wait_for(call.into(), 1, timeout)
    }

    /// As [`Rule::reserve`], blocking until the estimate is allowed, as [`Rule::wait`] does.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1000/min").unwrap();
    /// limiter.wait_reservation("alice", 400, None).unwrap().settle(150);
    /// assert_eq!(limiter.peek("alice", 0).unwrap().remaining, Some(850));
    /// ```
    ///
    /// # Errors
    /// As [`Rule::reserve`].
    pub fn wait_reservation<'a>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
        timeout: Option<Duration>,
    ) -> Result<Reservation, Error> {
        self.wait_for(call.into(), estimate, timeout)
    }

    /// As [`Rule::wait`] for tasks: `sleep` is the runtime's. Dropping the future spends nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1000/s burst 1").unwrap();
    /// let rule = limiter.rule("default").unwrap();
    /// assert!(rule.acquire_with("alice", 1, None, tokio::time::sleep).await.unwrap().allowed);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub async fn acquire_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Decision, Error> {
        self.acquire_for(call.into(), cost, timeout, sleep).await
    }

    /// As [`Rule::wait_permit`] for tasks; see [`Rule::acquire_with`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// let rule = limiter.rule("default").unwrap();
    /// let permit = rule.acquire_permit_with("job", None, tokio::time::sleep).await.unwrap();
    /// assert!(permit.is_held());
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::permit`].
    pub async fn acquire_permit_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Permit, Error> {
        self.acquire_for(call.into(), 1, timeout, sleep).await
    }

    /// As [`Rule::wait_reservation`] for tasks; see [`Rule::acquire_with`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1000/min").unwrap();
    /// let rule = limiter.rule("default").unwrap();
    /// let sleep = tokio::time::sleep;
    /// let reserved = rule.acquire_reservation_with("alice", 400, None, sleep).await.unwrap();
    /// assert!(reserved.decision().allowed);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::reserve`].
    pub async fn acquire_reservation_with<'a, F: Future<Output = ()>>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
        timeout: Option<Duration>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<Reservation, Error> {
        self.acquire_for(call.into(), estimate, timeout, sleep).await
    }
}

#[cfg(feature = "tokio")]
impl Rule {
    /// As [`Rule::acquire_with`] on tokio.
    ///
    /// ```
    /// use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// let rule = limiter.rule("default").unwrap();
    /// assert!(rule.acquire("alice", 1, None).await.unwrap().allowed);
    /// let late = rule.acquire("alice", 1, Some(Duration::from_secs(5))).await.unwrap(); // at once
    /// assert!(!late.allowed);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::hit`].
    pub async fn acquire<'a>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Decision, Error> {
        self.acquire_with(call, cost, timeout, tokio::time::sleep).await
    }

    /// As [`Rule::acquire_permit_with`] on tokio.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1 concurrent").unwrap();
    /// assert!(limiter.acquire_permit("job", None).await.unwrap().is_held());
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::permit`].
    pub async fn acquire_permit<'a>(
        &self,
        call: impl Into<Call<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Permit, Error> {
        self.acquire_permit_with(call, timeout, tokio::time::sleep).await
    }

    /// As [`Rule::acquire_reservation_with`] on tokio.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let limiter = tidegate::Limiter::new("1000/min").unwrap();
    /// limiter.acquire_reservation("alice", 400, None).await.unwrap().cancel();
    /// assert_eq!(limiter.stats("alice").unwrap(), None);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rule::reserve`].
    pub async fn acquire_reservation<'a>(
        &self,
        call: impl Into<Call<'a>>,
        estimate: u64,
        timeout: Option<Duration>,
    ) -> Result<Reservation, Error> {
        self.acquire_reservation_with(call, estimate, timeout, tokio::time::sleep).await
    }
}
