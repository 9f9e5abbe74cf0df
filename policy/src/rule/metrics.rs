//! What was counted and noted of a rule.

use tidegate_core::OnFull;

use crate::error::Error;
use crate::metrics::event::Events;
use crate::metrics::{Count, Metrics};
use crate::rule::Rule;

impl Rule {
    /// What happened so far. Counts are exact; names are exact until a rule has seen a thousand
    /// hits, and then estimated from one hit in 64.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/min").unwrap();
    /// (0..3).for_each(|_| drop(limiter.allow("alice").unwrap()));
    /// let metrics = limiter.metrics().unwrap().remove(0);
    /// assert_eq!((metrics.allowed, metrics.denied), (1, vec![("1/min".to_string(), 2)]));
    /// assert_eq!(metrics.top_offenders[0].key, ["alice"]);
    /// ```
    ///
    /// # Errors
    /// If the limiter is closed.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        let snapshot = self.state.snapshot()?;
        let (meter, tables) = (&self.state.meter, &snapshot.tables);
        let engine = |count| tables.engines.iter().map(|e| e.total(count)).sum::<u64>();
        let first = &tables.engines[0];
        let mut denied: Vec<(String, u64)> = snapshot
            .labels
            .limits
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), meter.denied_by(index)))
            .collect();
        // The fastest path leaves counting a lone limit's denials to the engine.
        if !snapshot.several {
            denied[0].1 += first.total(tidegate_core::Count::Denied);
        }
        let reasons = [
            ("blocked", Count::Blocked),
            ("cooldown", Count::Cooldown),
            ("backoff", Count::Backoff),
            ("budget", Count::Budget),
            ("cost", Count::Cost),
            ("full", Count::Full),
        ];
        denied.extend(reasons.map(|(name, count)| (name.to_string(), meter.total(count))));
        denied.retain(|(_, count)| *count > 0);
        let crowded = engine(tidegate_core::Count::Full);
        let overflows = tables.on_full == OnFull::Overflow;
        let retired = meter.note_retired(&snapshot);
        let (top_offenders, heaviest) = meter.top_keys();
        Ok(Metrics {
            rule: snapshot.labels.rule.clone(),
            allowed: meter.total(Count::Allowed) + first.total(tidegate_core::Count::Allowed),
            warned: meter.total(Count::Warned),
            denied,
            shadowed: meter.total(Count::Shadowed),
            exempt: meter.total(Count::Exempt),
            off: meter.total(Count::Off),
            alerts: meter.total(Count::Alerts),
            evictions: engine(tidegate_core::Count::Evicted),
            full: if overflows { 0 } else { crowded },
            overflow: if overflows { crowded } else { 0 },
            classify_defaults: meter.total(Count::Defaulted),
            capacity: tables.capacity,
            keys: first.len(),
            bytes: tables.bytes(),
            retired,
            top_offenders,
            heaviest,
        })
    }

    /// The rule's last denials and alerts, from a ring of 256; with `since`, what `next` was, those
    /// after that. Once a rule is busy, one denial in 64 is kept, and every alert.
    ///
    /// ```
    /// let limiter = tidegate::Limiter::new("1/h").unwrap();
    /// let rule = limiter.rule("default").unwrap();
    /// assert!(rule.events(None).unwrap().events.is_empty());
    /// ```
    ///
    /// # Errors
    /// If `since` is not what `next` was, or the limiter is closed.
    pub fn events(&self, since: Option<&str>) -> Result<Events, Error> {
        self.is_retired()?;
        let meter = &self.state.meter;
        meter.number_late();
        let (last, since) = (meter.sequence.last(), meter.sequence.known(since)?);
        let (events, missed) = meter.events(since, last);
        Ok(Events { events, next: meter.sequence.cursor(last), missed })
    }

    /// Whether another table took the place of this rule's.
    pub(crate) fn is_retired(&self) -> Result<bool, Error> {
        let snapshot = self.state.snapshot()?;
        Ok(self.state.meter.note_retired(&snapshot))
    }
}
