//! The fast path: hits of plain rules, for which the engine's own answer is the whole judgement.

use tidegate_core::{Answer, Hash, NEVER, Time};

use crate::decision::view::{DecisionSink, DecisionView};
use crate::decision::{HeaderStatus, Reason};
use crate::judge::penalty::Denial;
use crate::key::Call;
use crate::rule::Rule;
use crate::snapshot::RuleView;
use crate::time::millis;

impl Rule {
    /// The call is copied only where something is done with it but reading its key: else it would
    /// have to be written down before each hit.
    #[inline(always)]
    pub(super) fn fast_allow(&self, rule: RuleView<'_>, call: Call<'_>) -> Option<bool> {
        let RuleView { snapshot, engine, .. } = rule;
        let key = call.key.single().filter(|_| call.max.is_none())?;
        if !snapshot.single {
            return snapshot.plain.then(|| self.allow_several(rule, key, engine.hash(key)));
        }
        let (allowed, nth) = engine.allow_counted(key);
        let weight = self.state.meter.weight(nth);
        if weight > 0 {
            let denied = (!allowed).then_some(Reason::Limit(0));
            self.state.meter.note_name(snapshot, &{ call }, denied, weight, 1);
        }
        Some(allowed)
    }

    /// As `fast_allow`, of a rule with several limits. The key was hashed. The limit that denies
    /// is counted.
    #[inline(always)]
    pub(super) fn allow_several(&self, rule: RuleView<'_>, key: &[u8], hash: Hash) -> bool {
        let RuleView { snapshot, engine, .. } = rule;
        let (mut denied, meter) = (Reason::Full, &self.state.meter);
        let (answer, nth) = engine.allow_explained(hash, |statuses| {
            denied = Reason::limit(Denial::without_cooldowns(statuses).limit);
        });
        let denied = (!answer.is_allowed()).then_some(denied);
        if let Some(denied) = denied {
            meter.count_reason(denied);
        }
        let weight = meter.weight(nth);
        if weight > 0 {
            meter.note_name(snapshot, &key.into(), denied, weight, 1);
        }
        answer.is_allowed()
    }

    /// A hit of a plain rule with one bucket: what the order of judgement comes to then. Hands the
    /// decision to `sink`, or `sink` back if the hit needs the whole order.
    #[inline(always)]
    pub(super) fn fast_hit<S: DecisionSink>(
        &self,
        rule: RuleView<'_>,
        call: &Call<'_>,
        cost: u64,
        sink: S,
    ) -> Result<S::Output, S> {
        let RuleView { snapshot, engine, base } = rule;
        let Some(key) = snapshot.plain_key(call).filter(|_| snapshot.lone) else {
            return Err(sink);
        };
        let row = engine.part(engine.hash(key));
        row.prefetch();
        let mut time = Time::read(engine.clock());
        let Some((outcome, status, _)) = row.hit_lone(cost, &mut time) else { return Err(sink) };
        let now = time.now();
        let reason = match outcome {
            outcome if outcome.is_allowed() => None,
            Answer::Denied => Some(Reason::Limit(0)),
            _ => Some(Reason::Full),
        };
        let (allowed, full) = (reason.is_none(), reason == Some(Reason::Full));
        let warning = allowed && base.warns(status.remaining, status.limit);
        // Before the view is made, so that the view need not be kept in memory meanwhile.
        self.state.meter.fast_count(snapshot, call, reason, warning, cost);
        let wait = if full { NEVER } else { status.wait };
        let view = DecisionView {
            allowed,
            warning,
            notify: !allowed && base.notifies_always(),
            limit: (!full).then_some(status.limit),
            remaining: Some(if full { 0 } else { status.remaining }),
            retry_after_ms: if allowed { Some(0) } else { millis(wait) },
            reset_after_ms: millis(status.reset).unwrap_or_default(),
            reason,
            statuses: &[HeaderStatus::new(&status)],
            ..DecisionView::allowed(base, now)
        };
        Ok(sink.accept(&view))
    }
}
