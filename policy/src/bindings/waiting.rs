//! A call that waits, owned: what an event loop or a thread of another language drives.

use std::task::Waker;
use std::time::Duration;

use crate::bindings::OwnedCall;
use crate::decision::Decision;
use crate::error::Error;
use crate::rule::Rule;
use crate::rule::held::{Permit, Reservation};
use crate::wait::{self, Goal, Next, Request, Start};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A hit of this cost.
    Hit(u64),
    /// A reservation of this estimate.
    Reservation(u64),
    /// A slot of a concurrent limit.
    Permit,
}

impl Want {
    fn cost(self) -> u64 {
        match self {
            Want::Hit(cost) | Want::Reservation(cost) => cost,
            Want::Permit => 1,
        }
    }
}

/// What was waited for, granted or not.
#[derive(Debug)]
pub enum Got {
    /// For [`Want::Hit`].
    Hit(Box<Decision>),
    /// For [`Want::Reservation`].
    Reservation(Box<Reservation>),
    /// For [`Want::Permit`].
    Permit(Box<Permit>),
}

impl Got {
    /// How it was decided.
    pub fn decision(&self) -> &Decision {
        match self {
            Got::Hit(decision) => decision,
            Got::Reservation(reserved) => reserved.decision(),
            Got::Permit(permit) => permit.decision(),
        }
    }
}

impl From<Box<Decision>> for Got {
    fn from(decision: Box<Decision>) -> Got {
        Got::Hit(decision)
    }
}

impl From<Box<Reservation>> for Got {
    fn from(reserved: Box<Reservation>) -> Got {
        Got::Reservation(reserved)
    }
}

impl From<Box<Permit>> for Got {
    fn from(permit: Box<Permit>) -> Got {
        Got::Permit(permit)
    }
}

/// What a step came to.
#[derive(Debug)]
pub enum WaitStep {
    /// The wait is over. No further step is to be taken.
    Done(Got),
    /// The next step is due after this, or when the waker is woken.
    Sleep(Duration),
}

/// A call in line, whatever it waits for.
trait InLine {
    fn step(&mut self, request: Request<'_>, waker: &Waker) -> Result<WaitStep, Error>;
}

impl<G: Goal> InLine for wait::Waiting<G>
where
    Got: From<Box<G>>,
{
    fn step(&mut self, request: Request<'_>, waker: &Waker) -> Result<WaitStep, Error> {
        Ok(match wait::Waiting::step(self, request, waker)? {
            Next::Done(got) => WaitStep::Done(got.into()),
            Next::Sleep(sleep) => WaitStep::Sleep(sleep.most),
        })
    }
}

enum Begun {
    Done(Got),
    Waits(Box<dyn InLine + Send>),
}

fn begun<G: Goal + 'static>(request: Request<'_>, timeout: Option<Duration>) -> Result<Begun, Error>
where
    Got: From<Box<G>>,
{
    Ok(match wait::Waiting::<G>::start(request, timeout)? {
        Start::Done(got) => Begun::Done(Box::new(got).into()),
        Start::Waits(waiting) => Begun::Waits(waiting),
    })
}

/// A call that waits. Its time begins with the first step. Dropping it spends nothing, and the
/// next call in line goes first.
///
/// ```
/// use std::task::Waker;
/// use tidegate::Limiter;
/// use tidegate::bindings::{Got, OwnedCall, WaitStep, Waiting, Want};
///
/// let limiter = Limiter::new("1/h").unwrap();
/// let call = OwnedCall::new(vec![b"alice".to_vec()], vec![], None);
/// let rule = limiter.rule("default").unwrap();
/// let mut waiting = Waiting::new(rule, call, Want::Hit(1), None);
/// limiter.allow("alice").unwrap();
/// assert!(matches!(waiting.step(Waker::noop()).unwrap(), WaitStep::Sleep(_)));
/// limiter.refund("alice", 1).unwrap();
/// let WaitStep::Done(Got::Hit(decision)) = waiting.step(Waker::noop()).unwrap() else { panic!() };
/// assert!(decision.allowed);
/// ```
pub struct Waiting {
    rule: Rule,
    call: OwnedCall,
    want: Want,
    timeout: Option<Duration>,
    /// None before the first step.
    line: Option<Box<dyn InLine + Send>>,
}

impl Waiting {
    /// A call that waits for `want`, at most for `timeout`.
    pub fn new(rule: Rule, call: OwnedCall, want: Want, timeout: Option<Duration>) -> Waiting {
        Waiting { rule, call, want, timeout, line: None }
    }

    /// Tries, if it is the call's turn. If the call goes on waiting, `waker` is woken when
    /// another step is due before its time.
    ///
    /// # Errors
    /// As the operation waited for: [`Rule::hit`], [`Rule::reserve`] or [`Rule::permit`]. The
    /// wait is over then.
    pub fn step(&mut self, waker: &Waker) -> Result<WaitStep, Error> {
        let Waiting { rule, call, want, timeout, line } = self;
        call.with(|call| {
            let request = Request { rule, call, cost: want.cost() };
            let line = match line {
                Some(line) => line,
                None => {
                    let begun = match want {
                        Want::Hit(_) => begun::<Decision>(request, *timeout),
                        Want::Reservation(_) => begun::<Reservation>(request, *timeout),
                        Want::Permit => begun::<Permit>(request, *timeout),
                    };
                    match begun? {
                        Begun::Done(got) => return Ok(WaitStep::Done(got)),
                        Begun::Waits(waits) => line.insert(waits),
                    }
                }
            };
            line.step(request, waker)
        })
    }
}
