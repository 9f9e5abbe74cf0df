//! Those who wait on a rule: tasks that JavaScript's timer drives.
//!
//! The line, whose turn it is and for how long to wait are the policy's. Here is only what a runtime
//! does: each task is polled when its time has come or when another woke it, and JavaScript is told when
//! to come back. All of it happens on one thread.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use policy::{Call, Decision, Key, Permit, Reservation, Rule};

use crate::failure::Failure;
use crate::js::Result;
use crate::key::Owned;

/// What is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Want {
    /// A hit of this cost.
    Hit(u64),
    /// A reservation of this estimate.
    Reservation(u64),
    Permit,
}

/// What it came to, granted or not.
pub(crate) enum Got {
    Hit(Box<Decision>),
    Reservation(Box<Reservation>),
    Permit(Box<Permit>),
}

impl Got {
    pub(crate) fn decision(&self) -> &Decision {
        match self {
            Got::Hit(decision) => decision,
            Got::Reservation(reserved) => reserved.decision(),
            Got::Permit(permit) => permit.decision(),
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = std::result::Result<Got, policy::Error>>>>;

/// Numbers of tasks that others woke.
#[derive(Default)]
struct Woken(Mutex<Vec<u32>>);

impl Woken {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Wakes one task.
struct Bell {
    number: u32,
    woken: Arc<Woken>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.all().push(self.number);
    }
}

/// How a task sleeps.
#[derive(Default)]
struct Alarm {
    /// When its sleep ends; the task sets that itself while it is polled.
    due: Cell<Option<Instant>>,
    /// Whether it ends now, whatever the time.
    now: Cell<bool>,
}

struct Task {
    waiting: Waiting,
    alarm: Rc<Alarm>,
    waker: Waker,
    /// The due time by which the line knows it.
    listed: Option<Instant>,
}

/// All who wait on one rule, for one environment.
#[derive(Default)]
pub(crate) struct Line {
    tasks: HashMap<u32, Task>,
    /// By the time at which they are due.
    due: BTreeSet<(Instant, u32)>,
    woken: Arc<Woken>,
    last: u32,
    /// What the last answer gave, until JavaScript takes it.
    pub(crate) got: Option<Got>,
}

async fn sleep(alarm: Rc<Alarm>, wait: Duration) {
    let end = Instant::now() + wait;
    poll_fn(|_| match alarm.now.take() || Instant::now() >= end {
        true => Poll::Ready(()),
        false => {
            alarm.due.set(Some(end));
            Poll::Pending
        }
    })
    .await;
}

fn waiting(
    rule: Rule,
    call: Owned,
    want: Want,
    timeout: Option<Duration>,
    alarm: Rc<Alarm>,
) -> Waiting {
    Box::pin(async move {
        let pairs = call.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        let one = Call::of(Key::parts(call.parts.iter().map(Vec::as_slice))).with(&pairs);
        let one = call.max.map_or(one, |max| one.max(max));
        let sleep = |wait| sleep(alarm.clone(), wait);
        Ok(match want {
            Want::Hit(cost) => {
                Got::Hit(Box::new(rule.acquire_with(one, cost, timeout, sleep).await?))
            }
            Want::Reservation(estimate) => {
                let got = rule.acquire_reservation_with(one, estimate, timeout, sleep).await?;
                Got::Reservation(Box::new(got))
            }
            Want::Permit => {
                Got::Permit(Box::new(rule.acquire_permit_with(one, timeout, sleep).await?))
            }
        })
    })
}

impl Task {
    fn poll(&mut self) -> Poll<Result<Got>> {
        self.alarm.due.set(None);
        let mut context = Context::from_waker(&self.waker);
        let waiting = &mut self.waiting;
        match catch_unwind(AssertUnwindSafe(|| waiting.as_mut().poll(&mut context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(result.map_err(Failure::from)),
            Err(panic) => Poll::Ready(Err(Failure::panicked(panic))),
        }
    }
}

impl Line {
    /// What it came to, if that is there at once; else the number of who waits.
    pub(crate) fn join(
        &mut self,
        rule: Rule,
        call: Owned,
        want: Want,
        timeout: Option<Duration>,
    ) -> Result<std::result::Result<Got, u32>> {
        self.last = self.last.wrapping_add(1);
        let alarm = Rc::new(Alarm::default());
        let bell = Bell { number: self.last, woken: self.woken.clone() };
        let waiting = waiting(rule, call, want, timeout, alarm.clone());
        let mut task = Task { waiting, alarm, waker: Arc::new(bell).into(), listed: None };
        match task.poll() {
            Poll::Ready(result) => result.map(Ok),
            Poll::Pending => {
                self.list(self.last, task);
                Ok(Err(self.last))
            }
        }
    }

    fn list(&mut self, number: u32, mut task: Task) {
        task.listed = task.alarm.due.get();
        self.due.extend(task.listed.map(|due| (due, number)));
        self.tasks.insert(number, task);
    }

    fn take(&mut self, number: u32) -> Option<Task> {
        let task = self.tasks.remove(&number)?;
        if let Some(due) = task.listed {
            self.due.remove(&(due, number));
        }
        Some(task)
    }

    /// Somebody whose time has come, or who was woken.
    fn ready(&mut self) -> Option<u32> {
        if let Some(number) = self.woken.all().pop() {
            return Some(number);
        }
        let (due, number) = self.due.first().copied()?;
        (due <= Instant::now()).then_some(number)
    }

    /// The next who has an answer, and what it is.
    pub(crate) fn next(&mut self) -> Option<(u32, Result<Got>)> {
        while let Some(number) = self.ready() {
            let Some(mut task) = self.take(number) else { continue };
            match task.poll() {
                Poll::Ready(result) => return Some((number, result)),
                Poll::Pending => self.list(number, task),
            }
        }
        None
    }

    /// How long until somebody's time comes.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let (due, _) = self.due.first()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Makes everybody look again: the limiter was closed.
    pub(crate) fn wake_all(&mut self) {
        self.tasks.values().for_each(|task| task.alarm.now.set(true));
        self.woken.all().extend(self.tasks.keys());
    }

    /// Who waited leaves; nothing was spent.
    pub(crate) fn leave(&mut self, number: u32) {
        drop(self.take(number));
    }
}
