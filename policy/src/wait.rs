//! Waiting until a hit, a reservation or a permit is allowed.
//!
//! No thread of the limiter's own does it: [`Waiting`] is a state machine that its caller drives.
//! [`Waiting::next`] tries if it is the call's turn, and says for how long to sleep if not. Three
//! drivers stand on it: a parked thread, a future, and the bindings' own event loops.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use tidegate_core::Clock;

use crate::compiled::plan::MOST_GROUPS;
use crate::config::policy::Mode;
use crate::decision::{Decision, Reason};
use crate::error::Error;
use crate::judge::{Op, Receipts};
use crate::key::{Call, Parts};
use crate::rule::Rule;
use crate::rule::held::{Permit, Reservation};
use crate::rule::waiters::{LineKey, Ticket, WHOLE_KEY, Waiters};
use crate::snapshot::Snapshot;

/// The longest sleep by a clock that is moved by hand.
const MANUAL_NAP: Duration = Duration::from_millis(1);

/// The longest sleep of the first in line. Meanwhile the limiter may be closed, or the key reset,
/// refunded or judged by other limits, by another process too.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The longest sleep of a call that is not first. It is woken for its turn, but for one case. In a
/// child that was forked with its executor, tasks that were in line before the fork are not woken.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// What is waited for, granted or not.
pub(crate) trait Goal: Sized {
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

/// The call that waits, lent for one step.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) call: Call<'a>,
    pub(crate) cost: u64,
}

impl Request<'_> {
    fn waiters(&self) -> &Waiters {
        &self.rule.state.waiters
    }

    fn attempt<G: Goal>(&self) -> Result<G, Error> {
        G::attempt(self.rule, &self.call, self.cost)
    }

    /// What an attempt with this cost would get, changing nothing.
    fn foresee<G: Goal>(&self, cost: u64) -> Result<Decision, Error> {
        let snapshot = self.rule.snapshot()?;
        G::check(self.rule, &snapshot)?;
        self.rule.decided(&snapshot, &self.call, cost, Op::Foresee)
    }

    /// Whether the call competes with those in line. A call that spends nothing, or is never
    /// denied, does not.
    fn takes_turns(&self, foreseen: &Decision) -> bool {
        let enforced = foreseen.variant.effective.mode == Mode::Enforce;
        self.cost > 0 && enforced && foreseen.reason != Some(Reason::Exempt)
    }
}

/// What a waiting call does next.
pub(crate) enum Next<G> {
    Done(Box<G>),
    Sleep(Sleep),
}

/// How long to sleep before the next try, and what ends the sleep sooner.
#[derive(Clone, Copy)]
pub(crate) struct Sleep {
    pub(crate) most: Duration,
    until: Until,
}

#[derive(Clone, Copy)]
enum Until {
    /// The call is first: something is given back.
    Nudged,
    /// The call is not first: its turn comes.
    First,
}

/// Where a waiting call stands.
struct Places {
    own: Ticket,
    /// In the line of a limit that other keys share. Taken only by the first of the key's own
    /// line.
    wide: Option<Ticket>,
}

impl Places {
    /// The place whose turn it waits for.
    fn last(&self) -> &Ticket {
        self.wide.as_ref().unwrap_or(&self.own)
    }

    /// Stands in this wider line and in no other. Whether that is another than before.
    fn move_to(&mut self, line: Option<LineKey>, request: Request<'_>) -> bool {
        let moves = self.wide.as_ref().map(Ticket::line) != line;
        if moves {
            self.wide = None;
            self.wide = line.map(|line| request.waiters().join(line, request.cost));
        }
        moves
    }
}

/// What a call waits by: its deadline and its lines.
struct Terms<G> {
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

impl<G: Goal> Terms<G> {
    fn new(request: Request<'_>, timeout: Option<Duration>) -> Result<Self, Error> {
        let snapshot = request.rule.state.snapshot()?;
        G::check(request.rule, &snapshot)?;
        let (plan, clock) = (snapshot.plan(), snapshot.tables.clock().clone());
        let (own, hashes) = {
            let mut room = Parts::default();
            let (subject, _) = snapshot.subject(&request.call, &mut room)?;
            let whole = snapshot.whole_hash(&subject);
            (whole.as_u64(), snapshot.hashes_by(whole, &subject))
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
        Ok(Terms { clock, deadline, own, wide, limits, goal })
    }

    /// An attempt without standing in line, if there is no line.
    fn at_once(&self, request: Request<'_>) -> Result<Option<G>, Error> {
        let lines = self.wide.iter().copied().flatten().chain([self.own]);
        if request.waiters().busy(lines).is_some()
            && request.takes_turns(&request.foresee::<G>(request.cost)?)
        {
            return Ok(None);
        }
        let got: G = request.attempt()?;
        let decision = got.decision();
        Ok((decision.allowed || self.is_hopeless(decision)).then_some(got))
    }

    fn left(&self) -> Option<Duration> {
        let left = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
        self.deadline.map(left)
    }

    fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether waiting for what a decision says would take too long. A concurrent limit says when
    /// a lease ends, but a slot may be released long before.
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

    /// Lets calls of other keys go first that wait for a limit which this call needs too. A call
    /// that has to wait for its own limit anyway holds none of them up, and stays where it is.
    fn join_a_busy_line(&self, places: &mut Places, request: Request<'_>) -> Result<(), Error> {
        let Some(busy) = request.waiters().busy(self.wide.iter().copied().flatten()) else {
            return Ok(());
        };
        let foreseen = request.foresee::<G>(request.cost)?;
        if foreseen.allowed && request.takes_turns(&foreseen) {
            places.move_to(Some(busy), request);
        }
        Ok(())
    }

    /// The next step of a call that is not first; none if its turn does not matter any more.
    fn stand_by(&self, places: &Places, request: Request<'_>) -> Result<Option<Next<G>>, Error> {
        let over = self.is_over();
        let foreseen = request.foresee::<G>(request.cost)?;
        if !request.takes_turns(&foreseen) {
            return Ok(None);
        }
        // Even at its deadline no call takes what the first is waiting for: a stream of calls
        // with short timeouts would starve it.
        Ok(Some(match foreseen.allowed {
            true if over => Next::Done(G::refused(self.refusal(places, request)?).into()),
            false if over || self.is_hopeless(&foreseen) => Next::Done(G::refused(foreseen).into()),
            _ => {
                let most = self.nap(self.left().unwrap_or(LONGEST_TURN), LONGEST_TURN);
                Next::Sleep(Sleep { most, until: Until::First })
            }
        }))
    }

    /// The denial of a call whose time is up while another is first: what that one waits for.
    fn refusal(&self, places: &Places, request: Request<'_>) -> Result<Decision, Error> {
        let decision = request.foresee::<G>(places.last().cost_of_first())?;
        match decision.allowed || decision.retry_after.is_none() {
            // The first is about to go, or it is judged by other limits.
            true => Ok(request.foresee::<G>(0)?.out_of_turn()),
            false => Ok(decision),
        }
    }
}

/// A call in line. Dropping it leaves the line and spends nothing.
pub(crate) struct Waiting<G> {
    terms: Terms<G>,
    places: Places,
}

/// How waiting begins.
pub(crate) enum Start<G> {
    /// There is nothing to wait for.
    Done(G),
    Waits(Box<Waiting<G>>),
}

impl<G: Goal> Waiting<G> {
    /// Tries at once, and stands in line if that is denied and waiting may help.
    pub(crate) fn start(
        request: Request<'_>,
        timeout: Option<Duration>,
    ) -> Result<Start<G>, Error> {
        let terms = Terms::new(request, timeout)?;
        if let Some(got) = terms.at_once(request)? {
            return Ok(Start::Done(got));
        }
        let own = request.waiters().join(terms.own, request.cost);
        let places = Places { own, wide: None };
        Ok(Start::Waits(Waiting { terms, places }.into()))
    }

    /// One step: an attempt if it is the call's turn, else how long to sleep.
    pub(crate) fn next(&mut self, request: Request<'_>) -> Result<Next<G>, Error> {
        let Waiting { terms, places } = self;
        if places.last().is_first() && places.wide.is_none() {
            terms.join_a_busy_line(places, request)?;
        }
        if !places.last().is_first()
            && let Some(next) = terms.stand_by(places, request)?
        {
            return Ok(next);
        }
        let over = terms.is_over();
        let got: G = request.attempt()?;
        let decision = got.decision();
        if decision.allowed || over || terms.is_hopeless(decision) {
            return Ok(Next::Done(got.into()));
        }
        let moved = places.move_to(terms.line_of(decision), request);
        let wait = decision.retry_after.unwrap_or_default();
        let wait = terms.left().map_or(wait, |left| wait.min(left));
        // In a line that it has just entered, a call looks once more at once: if it is first,
        // something may have been given back before it stood there; if not, it stands by. A call
        // that takes no turns sleeps wherever it stands.
        Ok(Next::Sleep(match moved {
            true => Sleep { most: Duration::ZERO, until: Until::First },
            false => Sleep { most: terms.nap(wait, LONGEST_NAP), until: Until::Nudged },
        }))
    }

    /// Whether a sleep ends before its time. If not, `waker` is woken when it does.
    pub(crate) fn is_called(&self, sleep: Sleep, waker: &Waker) -> bool {
        let place = self.places.last();
        place.wake_by(waker);
        match sleep.until {
            Until::Nudged => place.take_nudge(),
            Until::First => place.is_first(),
        }
    }

    /// As [`Waiting::next`], but a sleep that ends at once is none.
    pub(crate) fn step(&mut self, request: Request<'_>, waker: &Waker) -> Result<Next<G>, Error> {
        loop {
            match self.next(request)? {
                Next::Sleep(sleep) if self.is_called(sleep, waker) => {}
                next => return Ok(next),
            }
        }
    }
}

/// Wakes a thread that waits.
pub(crate) struct Unpark(pub(crate) Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Rule {
    fn wait_for<G: Goal>(
        &self,
        call: Call<'_>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<G, Error> {
        let request = Request { rule: self, call, cost };
        let mut waiting = match Waiting::start(request, timeout)? {
            Start::Done(got) => return Ok(got),
            Start::Waits(waiting) => waiting,
        };
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match waiting.step(request, &waker)? {
                Next::Done(got) => return Ok(*got),
                Next::Sleep(sleep) => std::thread::park_timeout(sleep.most),
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
        let request = Request { rule: self, call, cost };
        let mut waiting = match Waiting::start(request, timeout)? {
            Start::Done(got) => return Ok(got),
            Start::Waits(waiting) => waiting,
        };
        loop {
            let until = match waiting.next(request)? {
                Next::Done(got) => return Ok(*got),
                Next::Sleep(until) => until,
            };
            let mut slept = pin!(sleep(until.most));
            poll_fn(|cx| match waiting.is_called(until, cx.waker()) {
                true => Poll::Ready(()),
                false => slept.as_mut().poll(cx),
            })
            .await;
        }
    }

    /// Blocks until a hit is allowed, and spends it. Says no at once if it can't be in time.
    /// Waiting counts as no denial.
    ///
    /// ```
    /// use std::time::Duration;
    /// let limiter = tidegate::Limiter::new("1000/s burst 1").unwrap();
    /// assert!((0..5).all(|_| limiter.wait("alice", 1, None).unwrap().allowed));
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// assert!(limiter.wait("alice", 1, None).unwrap().allowed);
    /// let at_once = limiter.wait("alice", 1, Some(Duration::from_secs(5))).unwrap();
    /// assert!(!at_once.allowed);
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

    /// As [`Rule::permit`], blocking until there is a slot, as [`Rule::wait`] does. A slot that is
    /// released in this process is noticed at once, one of another process within a second.
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
    /// let limiter = tidegate::Limiter::new("1000/day").unwrap();
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
    /// let reservation = limiter.acquire_reservation("alice", 400, None).await.unwrap();
    /// assert_eq!(reservation.decision().remaining, Some(600));
    /// reservation.cancel();
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
