//! Waiting until a hit is allowed, one after the other for each key.
//!
//! Those who wait for one key stand in a line; only the first of them tries, and sleeps for exactly as
//! long as it is told. So a large cost is not starved by small ones that come later, and there is
//! neither a thread nor polling. Who leaves the line, by success, timeout or being dropped, wakes the
//! next.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

use tidegate_core::Clock;

use crate::call::Call;
use crate::decision::Decision;
use crate::error::Error;
use crate::rule::Rule;

/// How long those sleep at most who wait by a clock that is moved by hand.
const MANUAL_NAP: Duration = Duration::from_millis(1);

type Line = VecDeque<Arc<Place>>;

/// One who waits: how to wake the task, if it is one.
#[derive(Debug, Default)]
struct Place {
    waker: Mutex<Option<Waker>>,
}

/// The lines of a rule, by key.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    lines: Mutex<HashMap<u64, Line>>,
    moved: Condvar,
}

/// A place in a line, left when dropped.
struct Ticket<'w> {
    waiters: &'w Waiters,
    key: u64,
    place: Arc<Place>,
}

impl Waiters {
    fn lines(&self) -> MutexGuard<'_, HashMap<u64, Line>> {
        self.lines.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn join(&self, key: u64) -> Ticket<'_> {
        let place = Arc::new(Place::default());
        self.lines().entry(key).or_default().push_back(place.clone());
        Ticket { waiters: self, key, place }
    }

    fn is_empty(&self, key: u64) -> bool {
        !self.lines().contains_key(&key)
    }
}

impl Ticket<'_> {
    fn is_first_in(&self, lines: &HashMap<u64, Line>) -> bool {
        let first = lines.get(&self.key).and_then(VecDeque::front);
        first.is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    fn is_first(&self) -> bool {
        self.is_first_in(&self.waiters.lines())
    }

    /// Blocks until it is first, or for `most`.
    fn wait_turn(&self, most: Duration) {
        let lines = self.waiters.lines();
        let waiting = |lines: &mut HashMap<u64, Line>| !self.is_first_in(lines);
        drop(self.waiters.moved.wait_timeout_while(lines, most, waiting));
    }

    /// Resolves when it is first, or with `sleep`.
    async fn turn(&self, sleep: impl Future<Output = ()>) {
        let mut sleep = pin!(sleep);
        poll_fn(|cx| {
            *self.place.waker.lock().unwrap_or_else(|e| e.into_inner()) = Some(cx.waker().clone());
            match self.is_first() {
                true => Poll::Ready(()),
                false => sleep.as_mut().poll(cx),
            }
        })
        .await;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut lines = self.waiters.lines();
        let mut next = None;
        if let Some(line) = lines.get_mut(&self.key) {
            line.retain(|place| !Arc::ptr_eq(place, &self.place));
            next = line.front().cloned();
        }
        if next.is_none() {
            lines.remove(&self.key);
        }
        drop(lines);
        self.waiters.moved.notify_all();
        if let Some(next) = next
            && let Some(waker) = next.waker.lock().unwrap_or_else(|e| e.into_inner()).take()
        {
            waker.wake();
        }
    }
}

/// What one who waits does next.
enum Next {
    Done(Box<Decision>),
    /// It is first: try again after this.
    Sleep(Duration),
    /// It is not: wait for its turn, but no longer than this.
    Turn(Duration),
}

/// One who waits, and until when.
struct Waiting<'r, 'c> {
    rule: &'r Rule,
    call: Call<'c>,
    cost: u64,
    clock: Clock,
    /// Nanoseconds, by the rule's clock.
    deadline: Option<u64>,
    key: u64,
}

impl<'r, 'c> Waiting<'r, 'c> {
    fn new(
        rule: &'r Rule,
        call: Call<'c>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let snapshot = rule.state.snapshot()?;
        let key = {
            let (subject, _) = snapshot.subject(&call)?;
            snapshot.whole_hash(&subject).as_u64()
        };
        let clock = snapshot.tables.clock().clone();
        let end = |timeout: Duration| clock.now().saturating_add(crate::variant::nanos(timeout));
        let deadline = timeout.map(end);
        Ok(Waiting { rule, call, cost, clock, deadline, key })
    }

    /// An attempt without standing in line, if there is none.
    fn at_once(&self) -> Result<Option<Decision>, Error> {
        if !self.rule.state.waiters.is_empty(self.key) {
            return Ok(None);
        }
        let decision = self.rule.attempt(&self.call, self.cost)?;
        Ok((decision.allowed || self.is_hopeless(&decision)).then_some(decision))
    }

    fn left(&self) -> Option<Duration> {
        let left = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
        self.deadline.map(left)
    }

    /// Whether waiting for what a decision says would take too long.
    fn is_hopeless(&self, decision: &Decision) -> bool {
        match (decision.retry_after, self.left()) {
            (None, _) => true,
            (Some(wait), Some(left)) => wait > left,
            (Some(_), None) => false,
        }
    }

    fn nap(&self, wait: Duration) -> Duration {
        match self.clock {
            Clock::System => wait,
            Clock::Manual(_) => wait.min(MANUAL_NAP),
        }
    }

    fn next(&self, ticket: &Ticket<'_>) -> Result<Next, Error> {
        let over = self.left().is_some_and(|left| left.is_zero());
        let first = ticket.is_first();
        if !first && !over {
            let foreseen = self.rule.foresee(&self.call, self.cost)?;
            if !foreseen.allowed && self.is_hopeless(&foreseen) {
                return Ok(Next::Done(foreseen.into()));
            }
            return Ok(Next::Turn(self.nap(self.left().unwrap_or(Duration::from_secs(3600)))));
        }
        let decision = self.rule.attempt(&self.call, self.cost)?;
        if decision.allowed || over || self.is_hopeless(&decision) {
            return Ok(Next::Done(decision.into()));
        }
        Ok(Next::Sleep(self.nap(decision.retry_after.unwrap_or_default())))
    }
}

impl Rule {
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
        let waiting = Waiting::new(self, call.into(), cost, timeout)?;
        if let Some(decision) = waiting.at_once()? {
            return Ok(decision);
        }
        let ticket = self.state.waiters.join(waiting.key);
        loop {
            match waiting.next(&ticket)? {
                Next::Done(decision) => return Ok(*decision),
                Next::Sleep(wait) => std::thread::sleep(wait),
                Next::Turn(most) => ticket.wait_turn(most),
            }
        }
    }

    /// As [`Rule::wait`] for tasks: `sleep` is the runtime's. Dropping the future spends nothing.
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
        let waiting = Waiting::new(self, call.into(), cost, timeout)?;
        if let Some(decision) = waiting.at_once()? {
            return Ok(decision);
        }
        let ticket = self.state.waiters.join(waiting.key);
        loop {
            match waiting.next(&ticket)? {
                Next::Done(decision) => return Ok(*decision),
                Next::Sleep(wait) => sleep(wait).await,
                Next::Turn(most) => ticket.turn(sleep(most)).await,
            }
        }
    }

    /// As [`Rule::acquire_with`] on tokio.
    ///
    /// # Errors
    /// As [`Rule::hit`].
    #[cfg(feature = "tokio")]
    pub async fn acquire<'a>(
        &self,
        call: impl Into<Call<'a>>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Result<Decision, Error> {
        self.acquire_with(call, cost, timeout, tokio::time::sleep).await
    }
}
