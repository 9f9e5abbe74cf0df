//! Calls that wait on a rule, driven by JavaScript's timer.
//!
//! The line, the turn and the time to sleep are the policy's. Each call takes a step when its time
//! has come or when it is woken, and JavaScript asks how long to sleep. All of it happens on one
//! thread, but for the waking.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use policy::bindings::{Got, WaitStep, Waiting};

use crate::failure::Failure;
use crate::js::Result;

/// Numbers of calls that were woken.
#[derive(Default)]
struct Woken(Mutex<Vec<u32>>);

impl Woken {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Wakes one call.
struct Bell {
    number: u32,
    woken: Arc<Woken>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.all().push(self.number);
    }
}

struct Task {
    waiting: Waiting,
    waker: Waker,
    /// When its next step is due.
    due: Instant,
}

impl Task {
    /// What it waited for, if its wait is over now.
    fn step(&mut self) -> Option<Result<Got>> {
        let Task { waiting, waker, .. } = self;
        match catch_unwind(AssertUnwindSafe(|| waiting.step(waker))) {
            Ok(Ok(WaitStep::Sleep(most))) => {
                self.due = Instant::now() + most;
                None
            }
            Ok(Ok(WaitStep::Done(got))) => Some(Ok(got)),
            Ok(Err(error)) => Some(Err(error.into())),
            Err(panic) => Some(Err(Failure::panicked(panic))),
        }
    }
}

/// All calls that wait on one rule, for one environment.
#[derive(Default)]
pub(crate) struct WaitingCalls {
    tasks: HashMap<u32, Task>,
    /// By the time at which they are due.
    due: BTreeSet<(Instant, u32)>,
    woken: Arc<Woken>,
    last: u32,
    /// What the last answer gave, until JavaScript takes it.
    pub(crate) got: Option<Got>,
}

impl WaitingCalls {
    /// What it came to, if that is there at once; else the number of the waiting call.
    pub(crate) fn join(&mut self, waiting: Waiting) -> Result<std::result::Result<Got, u32>> {
        self.last = self.last.wrapping_add(1);
        let waker = Arc::new(Bell { number: self.last, woken: self.woken.clone() }).into();
        let mut task = Task { waiting, waker, due: Instant::now() };
        match task.step() {
            Some(result) => result.map(Ok),
            None => {
                self.add(self.last, task);
                Ok(Err(self.last))
            }
        }
    }

    fn add(&mut self, number: u32, task: Task) {
        self.due.insert((task.due, number));
        self.tasks.insert(number, task);
    }

    fn take(&mut self, number: u32) -> Option<Task> {
        let task = self.tasks.remove(&number)?;
        self.due.remove(&(task.due, number));
        Some(task)
    }

    /// A call whose time has come, or that was woken.
    fn ready(&mut self) -> Option<u32> {
        if let Some(number) = self.woken.all().pop() {
            return Some(number);
        }
        let (due, number) = self.due.first().copied()?;
        (due <= Instant::now()).then_some(number)
    }

    /// The next call that has an answer, and the answer.
    pub(crate) fn next(&mut self) -> Option<(u32, Result<Got>)> {
        while let Some(number) = self.ready() {
            let Some(mut task) = self.take(number) else { continue };
            match task.step() {
                Some(result) => return Some((number, result)),
                None => self.add(number, task),
            }
        }
        None
    }

    /// How long until the next call is due.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let (due, _) = self.due.first()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Has every call take a step: the limiter was closed.
    pub(crate) fn wake_all(&mut self) {
        self.woken.all().extend(self.tasks.keys());
    }

    /// A call gives up; nothing was spent.
    pub(crate) fn leave(&mut self, number: u32) {
        drop(self.take(number));
    }
}
