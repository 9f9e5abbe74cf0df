//! Events as callers read them, and how they are numbered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_core::AtomicU64;

use crate::error::{Code, Error};

/// What happened: a denial, or an alert. Or that the rule's table is retired: then the reason is
/// `retired`, and the key has no parts.
///
/// ```
/// let limiter = tidegate::Limiter::new("1/h").unwrap();
/// (0..2).for_each(|_| drop(limiter.allow("alice").unwrap()));
/// let event: tidegate::Event = limiter.events(None).unwrap().events.remove(0);
/// assert_eq!((event.rule.as_str(), event.alert), ("default", false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Grows by one with each event of the limiter.
    pub number: u64,
    /// The rule.
    pub rule: String,
    /// The key's parts, as text.
    pub key: Vec<String>,
    /// Why it was denied.
    pub reason: String,
    /// Whether the denial raised the rule's alert.
    pub alert: bool,
    /// When, since the start of 1970.
    pub at: Duration,
}

impl Event {
    /// As a map, for surfaces that speak JSON.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// (0..2).for_each(|_| drop(limiter.allow("alice").unwrap()));
    /// let events = limiter.events(None).unwrap().events;
    /// assert_eq!(events[0].to_value()["key"], serde_json::json!(["alice"]));
    /// ```
    pub fn to_value(&self) -> Value {
        json!({
            "number": self.number,
            "rule": self.rule,
            "key": self.key,
            "reason": self.reason,
            "alert": self.alert,
            "at_ms": u64::try_from(self.at.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// The last events, and where to go on.
///
/// ```
/// let limiter = tidegate::Limiter::new("1/h").unwrap();
/// (0..3).for_each(|_| drop(limiter.allow("alice").unwrap()));
/// let first: tidegate::Events = limiter.events(None).unwrap();
/// assert_eq!((first.events.len(), first.missed), (2, 0));
/// assert!(limiter.events(Some(&first.next)).unwrap().events.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Events {
    /// In the order of their numbers.
    pub events: Vec<Event>,
    /// What to ask for the events after these with: one text for all rules of the limiter.
    pub next: String,
    /// How many events came after the ones that were asked for, and gave way to later ones before
    /// these were read. Of one rule among several: at most so many.
    pub missed: u64,
}

impl Events {
    /// As a map, for surfaces that speak JSON.
    ///
    /// ```
    /// let events = tidegate::Limiter::new("1/h").unwrap().events(None).unwrap();
    /// assert_eq!(events.to_value()["missed"], 0);
    /// ```
    pub fn to_value(&self) -> Value {
        let events: Vec<Value> = self.events.iter().map(Event::to_value).collect();
        json!({ "events": events, "next": self.next, "missed": self.missed })
    }
}

/// Numbers the events of a limiter's rules, so that one number says how far a reader is.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Tells this limiter from others, and from those of this program's earlier runs.
    id: u32,
    /// The number of the last event.
    last: AtomicU64,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { id: tidegate_core::random_seed() as u32, last: AtomicU64::new(0) }
    }
}

impl Sequence {
    /// The number of a new event. Its rule's names are locked until the event is there, so that
    /// whoever reads [`Sequence::last`] and then locks them finds it.
    pub(crate) fn next(&self) -> u64 {
        // ORDERING: Release, with the load in `last`: whoever sees the number sees the rule that
        // gave it, too, where a reload has just brought it. The lock of the names publishes the
        // event.
        self.last.fetch_add(1, Ordering::Release) + 1
    }

    pub(crate) fn last(&self) -> u64 {
        // ORDERING: Acquire, see `next`.
        self.last.load(Ordering::Acquire)
    }

    /// Of this limiter, in this process: a forked child's events are numbered apart.
    fn id(&self) -> u32 {
        self.id ^ std::process::id()
    }

    /// The text that a reader goes on with after event `number`.
    pub(crate) fn cursor(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.id())
    }

    /// The number of the last event that a reader knows. None of this limiter's if the text is
    /// another's.
    pub(crate) fn known(&self, cursor: Option<&str>) -> Result<u64, Error> {
        let Some(text) = cursor else { return Ok(0) };
        let read = |text: &str| {
            let (id, number) = text.split_once('-')?;
            let id = u32::from_str_radix(id, 16).ok().filter(|_| id.len() == 8)?;
            Some((id, number.parse::<u64>().ok()?))
        };
        match read(text) {
            Some((id, number)) if id == self.id() => Ok(number),
            Some(_) => Ok(0),
            None => {
                let message = format!("{text:?} is not what `next` of earlier events was");
                Err(Error::new(Code::Range, message))
            }
        }
    }
}
