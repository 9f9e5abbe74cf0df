//! Everything that can be done with a rule and a key; a limiter with one rule has it too.

use policy::bindings::OwnedCall;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::key::owned_call;
use crate::value::{kind, to_tuple, utf8};

/// The keys of a batch: any iterable, but not a text, which is one of its letters.
pub(crate) fn batch<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    match keys.cast::<PyString>().is_ok() || keys.cast::<PyBytes>().is_ok() {
        true => {
            Err(PyTypeError::new_err(format!("a batch is an iterable of keys, not {}", kind(keys))))
        }
        false => to_tuple(keys),
    }
}

/// The keys as they lie in memory; none unless all are texts or bytes.
pub(crate) fn plain_keys<'a>(keys: &'a Bound<'_, PyTuple>) -> PyResult<Option<Vec<&'a [u8]>>> {
    let mut plain = Vec::with_capacity(keys.len());
    for key in keys.iter_borrowed() {
        match key.cast::<PyString>() {
            Ok(text) => plain.push(utf8(text, "a key")?.as_bytes()),
            Err(_) if key.cast::<PyBytes>().is_ok() => plain.push(key.extract()?),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(plain))
}

/// The keys of any kind.
pub(crate) fn owned_keys(keys: &Bound<'_, PyTuple>) -> PyResult<Vec<OwnedCall>> {
    keys.iter().map(|key| owned_call(&key, None, None)).collect()
}

/// The methods of a class whose `inner` is a rule, or a limiter with one.
macro_rules! operations {
    ($class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// Whether a hit of 1 passes, and spends it: the fastest path.
            #[pyo3(signature = (key, **attributes))]
            fn allow(
                &self,
                key: &Bound<'_, PyAny>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<bool> {
                with_call(key, None, attributes, |call| self.inner.allow(call))
            }

            /// Spends ``cost`` if the rule allows it, and says how it went.
            ///
            /// ``max`` takes the place of the limit's own for this call, in rules with one limit.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn hit(
                &self,
                key: &Bound<'_, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Decision> {
                with_call(key, max, attributes, |call| self.inner.hit(call, cost.0))
                    .map(Decision::from)
            }

            /// As ``hit``, but an allowed one spends nothing: for "check, do the work, then
            /// ``record``". A denial counts like a hit's.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn check(
                &self,
                key: &Bound<'_, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Decision> {
                with_call(key, max, attributes, |call| self.inner.check(call, cost.0))
                    .map(Decision::from)
            }

            /// What a hit would get, changing nothing. With a cost of 0, what is left now.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn peek(
                &self,
                key: &Bound<'_, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Decision> {
                with_call(key, max, attributes, |call| self.inner.peek(call, cost.0))
                    .map(Decision::from)
            }

            /// Spends without asking, also in a cooldown, and says what is used then.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn record<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let recorded =
                    with_call(key, max, attributes, |call| self.inner.record(call, cost.0))?;
                results::recorded(py, &recorded)
            }

            /// Gives back, never above full; a window's newest first.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn refund(
                &self,
                key: &Bound<'_, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<()> {
                with_call(key, max, attributes, |call| self.inner.refund(call, cost.0))
            }

            /// A hit whose true cost is known later: spends the estimate, to be settled. Falsy if
            /// denied.
            #[pyo3(signature = (key, estimate, *, max=None, **attributes))]
            fn reserve(
                &self,
                py: Python<'_>,
                key: &Bound<'_, PyAny>,
                estimate: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Reservation> {
                let reserved =
                    with_call(key, max, attributes, |call| self.inner.reserve(call, estimate.0))?;
                Reservation::new(py, reserved)
            }

            /// Takes all limits of a rule with a ``concurrent`` one, and holds a slot until it is
            /// released. Falsy if denied.
            #[pyo3(signature = (key, **attributes))]
            fn permit(
                &self,
                py: Python<'_>,
                key: &Bound<'_, PyAny>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Permit> {
                Permit::new(py, with_call(key, None, attributes, |call| self.inner.permit(call))?)
            }

            /// A batch of ``allow``: bytes with a 1 or a 0 for each key. Far cheaper for each on
            /// large tables.
            fn allow_many<'py>(
                &self,
                py: Python<'py>,
                keys: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyBytes>> {
                let keys = batch(keys)?;
                if let Some(plain) = plain_keys(&keys)? {
                    return Ok(PyBytes::new(py, &guard(|| self.inner.allow_many(&plain))?));
                }
                let calls = owned_keys(&keys)?;
                let hits = guard(|| self.inner.hit_many(calls.iter().map(OwnedCall::key)))?;
                let mask: Vec<u8> = hits.iter().map(|hit| hit.allowed.into()).collect();
                Ok(PyBytes::new(py, &mask))
            }

            /// A batch of ``hit`` with a cost of 1.
            fn hit_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<Vec<Decision>> {
                let calls = owned_keys(&batch(keys)?)?;
                let decisions = guard(|| self.inner.hit_many(calls.iter().map(OwnedCall::key)))?;
                Ok(decisions.into_iter().map(Decision::from).collect())
            }

            /// Blocks until a hit is allowed, and spends it; other threads run meanwhile. A denial
            /// at once if it can't be in time.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, timeout=None, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, timeout=None, max=None, **attributes)"
            )]
            fn wait<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                cost: WholeNumber,
                timeout: Option<Seconds>,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.waiting(key, max, attributes, Want::Hit(cost.0), timeout)?.block(py)
            }

            /// As ``permit``, blocking until there is a slot, as ``wait`` does. Falsy if denied.
            #[pyo3(signature = (key, *, timeout=None, **attributes))]
            fn wait_permit<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                timeout: Option<Seconds>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.waiting(key, None, attributes, Want::Permit, timeout)?.block(py)
            }

            /// As ``reserve``, blocking until the estimate is allowed, as ``wait`` does. Falsy if
            /// denied.
            #[pyo3(signature = (key, estimate, *, timeout=None, max=None, **attributes))]
            fn wait_reservation<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                estimate: WholeNumber,
                timeout: Option<Seconds>,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let want = Want::Reservation(estimate.0);
                self.waiting(key, max, attributes, want, timeout)?.block(py)
            }

            /// ``await`` it: resolves when a hit is allowed, which is spent then, or with a denial
            /// at once if it can't be in time. Cancelling spends nothing. On asyncio and trio.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, timeout=None, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, timeout=None, max=None, **attributes)"
            )]
            fn acquire<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                cost: WholeNumber,
                timeout: Option<Seconds>,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.waiting(key, max, attributes, Want::Hit(cost.0), timeout)?.acquired(py)
            }

            /// ``await`` it: as ``permit``, when there is a slot, as ``acquire`` waits. Falsy if
            /// denied.
            #[pyo3(signature = (key, *, timeout=None, **attributes))]
            fn acquire_permit<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                timeout: Option<Seconds>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.waiting(key, None, attributes, Want::Permit, timeout)?.acquired(py)
            }

            /// ``await`` it: as ``reserve``, when the estimate is allowed, as ``acquire`` waits.
            /// Falsy if denied.
            #[pyo3(signature = (key, estimate, *, timeout=None, max=None, **attributes))]
            fn acquire_reservation<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                estimate: WholeNumber,
                timeout: Option<Seconds>,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let want = Want::Reservation(estimate.0);
                self.waiting(key, max, attributes, want, timeout)?.acquired(py)
            }

            /// Records what was spent of the day's budget, always.
            #[pyo3(signature = (key, amount, **attributes))]
            fn spend<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                amount: WholeNumber,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                results::budget(
                    py,
                    &with_call(key, None, attributes, |call| self.inner.spend(call, amount.0))?,
                )
            }

            /// How the key stands with its budget.
            #[pyo3(signature = (key, **attributes))]
            fn budget<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                results::budget(
                    py,
                    &with_call(key, None, attributes, |call| self.inner.budget(call))?,
                )
            }

            /// Whether it has a concurrent limit, for code that serves any rule:
            /// ``permit`` is for such rules, ``hit`` for all others.
            fn has_permits(&self) -> PyResult<bool> {
                guard(|| self.inner.has_permits())
            }

            /// Whether the key should be left alone: with backoff, if it was denied less than
            /// ``quiet`` ago; without, if a hit of 1 would be denied now.
            #[pyo3(signature = (key, **attributes))]
            fn is_limited(
                &self,
                key: &Bound<'_, PyAny>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<bool> {
                with_call(key, None, attributes, |call| self.inner.is_limited(call))
            }

            /// What is known of a key; None exactly when its state is that of a new one.
            #[pyo3(signature = (key, **attributes))]
            fn stats<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Option<Bound<'py, PyAny>>> {
                let stats = with_call(key, None, attributes, |call| self.inner.stats(call))?;
                stats.map(|stats| results::stats(py, &stats)).transpose()
            }

            /// Why a hit would get what it would get: the judgement in order, each number with its
            /// source. Changes nothing.
            #[pyo3(
                signature = (key, cost=WholeNumber(1), *, max=None, **attributes),
                text_signature = "($self, key, cost=1, *, max=None, **attributes)"
            )]
            fn why<'py>(
                &self,
                py: Python<'py>,
                key: &Bound<'py, PyAny>,
                cost: WholeNumber,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let why = with_call(key, max, attributes, |call| self.inner.why(call, cost.0))?;
                results::why(py, why)
            }

            /// Forgets the key's limits, penalties and budget, and ends its block; what wider
            /// scopes hold stays.
            #[pyo3(signature = (key, **attributes))]
            fn reset(
                &self,
                py: Python<'_>,
                key: &Bound<'_, PyAny>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<()> {
                let call = owned_call(key, None, attributes)?;
                // The end of a block is a change of the store.
                py.detach(|| guard(|| call.with(|call| self.inner.reset(call))))
            }

            /// Forgets every key, and ends every block.
            fn reset_all(&self, py: Python<'_>) -> PyResult<()> {
                py.detach(|| guard(|| self.inner.reset_all()))
            }

            /// Drops idle keys now, and says how many. Nothing must call this: they give way by
            /// themselves.
            fn prune(&self) -> PyResult<usize> {
                guard(|| self.inner.prune())
            }

            /// Judges a key, or the calls that match a mapping, by other limits from the next hit
            /// on, and gives the number of the change.
            ///
            /// ``limits`` is a mapping (``{"per-minute": {"max": 60}}``) or, for a rule with one
            /// limit, a text (``"60/min"``). Every ``set_…`` and ``add_exempt`` takes ``for_``
            /// (seconds, a timedelta, or a text such as ``"1h"``): the change ends by itself then.
            /// ``by`` and ``reason`` name its maker and the reason.
            #[pyo3(signature = (target, limits, *, for_=None, by=None, reason=None))]
            fn set_override(
                &self,
                py: Python<'_>,
                target: &Bound<'_, PyAny>,
                limits: &Bound<'_, PyAny>,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let (target, limits) = (change::target(target)?, self.patches(limits)?);
                let options = change::options(for_, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.set_override(target, limits)))
            }

            /// Takes an override back. 0 if there was none.
            #[pyo3(signature = (target, *, by=None, reason=None))]
            fn clear_override(
                &self,
                py: Python<'_>,
                target: &Bound<'_, PyAny>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let target = change::target(target)?;
                let options = change::options(None, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.clear_override(target)))
            }

            /// The overrides in force: a key (a tuple of its parts) or match, and what it changes.
            fn overrides<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
                py.detach(|| guard(|| self.inner.overrides()))?
                    .iter()
                    .map(|one| results::overriding(py, one))
                    .collect()
            }

            /// Changes the rule's own limits from the next hit on; an empty mapping takes that
            /// back.
            #[pyo3(signature = (limits, *, for_=None, by=None, reason=None))]
            fn set_default(
                &self,
                py: Python<'_>,
                limits: &Bound<'_, PyAny>,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let (limits, options) = (self.patches(limits)?, change::options(for_, by, reason));
                py.detach(|| guard(|| self.inner.changing(options)?.set_default(limits)))
            }

            /// Judges in this mode (``enforce``, ``shadow`` or ``off``) from the next hit on,
            /// whatever the policy says.
            #[pyo3(signature = (mode, *, for_=None, by=None, reason=None))]
            fn set_mode(
                &self,
                py: Python<'_>,
                mode: ModeName,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let options = change::options(for_, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.set_mode(mode.0)))
            }

            /// Takes ``set_mode`` back. 0 if no mode was set.
            #[pyo3(signature = (*, by=None, reason=None))]
            fn clear_mode(
                &self,
                py: Python<'_>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let options = change::options(None, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.clear_mode()))
            }

            /// Refuses a key by hand, with reason ``blocked``: for a ban, or as long as an
            /// upstream's ``Retry-After`` says.
            ///
            /// ``for_`` is a time (seconds, a timedelta, or a text such as ``"1h"``); None: until
            /// ``unblock``. The block is kept with the store, counts for no cooldown, backoff or
            /// alert, and replaces one that the key had. Exempt calls pass.
            #[pyo3(signature = (key, for_=None, *, by=None, reason=None, **attributes))]
            fn block(
                &self,
                py: Python<'_>,
                key: &Bound<'_, PyAny>,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<u64> {
                let call = owned_call(key, None, attributes)?;
                let options = change::options(for_, by, reason);
                py.detach(|| guard(|| call.with(|call| self.inner.block(call, &options))))
            }

            /// Ends a block. False if the key was not blocked.
            #[pyo3(signature = (key, *, by=None, reason=None, **attributes))]
            fn unblock(
                &self,
                py: Python<'_>,
                key: &Bound<'_, PyAny>,
                by: Option<Text>,
                reason: Option<Text>,
                attributes: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<bool> {
                let call = owned_call(key, None, attributes)?;
                let options = change::options(None, by, reason);
                let unblock = |call: Call<'_>| self.inner.changing(options)?.unblock(call);
                py.detach(|| guard(|| call.with(unblock)))
            }

            /// The keys that are blocked.
            fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
                py.detach(|| guard(|| self.inner.blocks()))?
                    .iter()
                    .map(|one| results::blocked(py, one))
                    .collect()
            }

            /// Allows the calls that match from the next hit on, uncounted.
            #[pyo3(signature = (r#match, *, for_=None, by=None, reason=None))]
            fn add_exempt(
                &self,
                py: Python<'_>,
                r#match: &Bound<'_, PyAny>,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let matches = change::matching(r#match)?;
                let options = change::options(for_, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.add_exempt(matches)))
            }

            /// Takes an exemption back, the policy's own too. 0 if it was not in force.
            #[pyo3(signature = (r#match, *, by=None, reason=None))]
            fn remove_exempt(
                &self,
                py: Python<'_>,
                r#match: &Bound<'_, PyAny>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let matches = change::matching(r#match)?;
                let options = change::options(None, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.remove_exempt(&matches)))
            }

            /// Replaces all exemptions by these.
            #[pyo3(signature = (matches, *, for_=None, by=None, reason=None))]
            fn set_exempts(
                &self,
                py: Python<'_>,
                matches: &Bound<'_, PyAny>,
                for_: Option<Lasting>,
                by: Option<Text>,
                reason: Option<Text>,
            ) -> PyResult<u64> {
                let matches = change::matches(matches)?;
                let options = change::options(for_, by, reason);
                py.detach(|| guard(|| self.inner.changing(options)?.set_exempts(matches)))
            }

            /// The exemptions in force.
            fn exempts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
                py.detach(|| guard(|| self.inner.exempts()))?
                    .iter()
                    .map(|one| results::matching(py, one))
                    .collect()
            }

            /// Rows in use, idle ones until they are pruned or taken over.
            fn __len__(&self) -> PyResult<usize> {
                guard(|| self.inner.len())
            }

            fn __bool__(&self) -> bool {
                true
            }
        }

        impl Fast for $class {
            const REPLACED: &'static Replaced = {
                static REPLACED: Replaced = Replaced::new();
                &REPLACED
            };

            #[inline]
            fn allow_by<'a>(&self, call: impl Into<Call<'a>>) -> Result<bool, policy::Error> {
                self.inner.allow(call)
            }

            #[inline]
            fn hit_by<'a>(
                &self,
                call: impl Into<Call<'a>>,
                cost: u64,
            ) -> Result<policy::Decision, policy::Error> {
                self.inner.hit(call, cost)
            }

            #[inline]
            fn permits(&self) -> Result<bool, policy::Error> {
                self.inner.has_permits()
            }
        }

        impl $class {
            fn waiting(
                &self,
                key: &Bound<'_, PyAny>,
                max: Option<WholeNumber>,
                attributes: Option<&Bound<'_, PyDict>>,
                want: Want,
                timeout: Option<Seconds>,
            ) -> PyResult<Waiting> {
                let timeout = timeout.map_or(Ok(None), Seconds::timeout)?;
                let call = owned_call(key, max, attributes)?;
                Ok(Waiting::new(guard(|| self.its_rule())?, call, want, timeout))
            }

            fn patches(&self, limits: &Bound<'_, PyAny>) -> PyResult<LimitPatches> {
                let limits = to_json(limits)?;
                guard(|| limit_patches_in(&limits, &self.inner.limit_names()?, UNIT))
            }
        }
    };
}
pub(crate) use operations;

/// What a file that has the macro imports.
pub(crate) mod prelude {
    pub(crate) use policy::bindings::{OwnedCall, Want, limit_patches_in};
    pub(crate) use policy::{Call, LimitPatches};
    pub(crate) use pyo3::prelude::*;
    pub(crate) use pyo3::types::{PyBytes, PyDict};

    pub(crate) use super::{batch, operations, owned_keys, plain_keys};
    pub(crate) use crate::change::{Lasting, ModeName};
    pub(crate) use crate::decision::Decision;
    pub(crate) use crate::errors::guard;
    pub(crate) use crate::fast::{Fast, Replaced};
    pub(crate) use crate::held::{Permit, Reservation};
    pub(crate) use crate::key::{owned_call, with_call};
    pub(crate) use crate::value::{Seconds, Text, UNIT, WholeNumber, to_json};
    pub(crate) use crate::waiting::Waiting;
    pub(crate) use crate::{change, results};
}
