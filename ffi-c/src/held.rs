//! What a caller holds on to after a hit: reservations and permits.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use policy::bindings::ForkLock;
use policy::{Permit, Reservation};

use crate::boundary::{answer, free, given, guard};
use crate::decision::tg_decision;
use crate::key::tg_key;
use crate::rule::tg_rule;
use crate::status::tg_status;

/// An estimate that was spent, to be settled once. Threads may share it.
pub struct tg_reservation {
    /// None once it is settled.
    reservation: ForkLock<Option<Reservation>>,
}

/// A slot of a concurrent limit. Threads may share it.
pub struct tg_permit_handle {
    permit: Permit,
}

/// A hit whose true cost is known later: spends `estimate` if the rule allows it.
///
/// Writes the decision to `out`, and to `out_reservation` a handle to settle, or NULL if it was
/// denied. Free it with `tg_reservation_free`.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_reserve(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    estimate: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
    out_reservation: Option<&mut MaybeUninit<*mut tg_reservation>>,
) -> tg_status {
    guard(|| {
        let (rule, key, out) = (given(rule, "rule")?, given(key, "key")?, given(out, "out")?);
        let out_reservation = given(out_reservation, "out_reservation")?;
        // SAFETY: the caller's word.
        let reserved = unsafe { key.with(|call| Ok(rule.rule.reserve(*call, estimate)?)) }?;
        rule.write(&reserved.decision().view(), out);
        let handle = reserved.decision().allowed.then(|| {
            Box::into_raw(Box::new(tg_reservation { reservation: ForkLock::new(Some(reserved)) }))
        });
        out_reservation.write(handle.unwrap_or(std::ptr::null_mut()));
        Ok(())
    })
}

impl tg_reservation {
    /// What is to be settled, the first time.
    fn take(&self) -> Option<Reservation> {
        self.reservation.lock().take()
    }
}

/// Gives back or takes the difference to the true cost. Returns 1, 0 if it was settled or cancelled
/// before (then nothing is done), or a tg_status below 0. The handle is still to be freed.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_settle(reservation: Option<&tg_reservation>, actual: u64) -> c_int {
    answer(|| {
        let taken = given(reservation, "reservation")?.take();
        Ok(taken.map(|reserved| reserved.settle(actual)).is_some())
    })
}

/// Gives the estimate back. Returns as `tg_settle` does.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_cancel(reservation: Option<&tg_reservation>) -> c_int {
    answer(|| {
        let taken = given(reservation, "reservation")?.take();
        Ok(taken.map(Reservation::cancel).is_some())
    })
}

/// Frees a reservation; one that was not settled stays spent. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn tg_reservation_free(reservation: Option<Box<tg_reservation>>) {
    free(reservation);
}

/// Takes all limits of a rule with a concurrent one, and holds a slot until it is released or
/// freed, or its lease runs out.
///
/// Writes the decision to `out`, and to `out_permit` a handle, or NULL if it was denied. Free it
/// with `tg_permit_free`.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule without a concurrent limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_permit(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    out: Option<&mut MaybeUninit<tg_decision>>,
    out_permit: Option<&mut MaybeUninit<*mut tg_permit_handle>>,
) -> tg_status {
    guard(|| {
        let (rule, key, out) = (given(rule, "rule")?, given(key, "key")?, given(out, "out")?);
        let out_permit = given(out_permit, "out_permit")?;
        // SAFETY: the caller's word.
        let permit = unsafe { key.with(|call| Ok(rule.rule.permit(*call)?)) }?;
        rule.write(&permit.decision().view(), out);
        let handle = (permit.decision().allowed)
            .then(|| Box::into_raw(Box::new(tg_permit_handle { permit })));
        out_permit.write(handle.unwrap_or(std::ptr::null_mut()));
        Ok(())
    })
}

/// Gives the slot back. Returns 1, 0 if it was no longer held (released before, or its lease ran
/// out), or a tg_status below 0. The handle is still to be freed.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_release(permit: Option<&tg_permit_handle>) -> c_int {
    answer(|| Ok(given(permit, "permit")?.permit.release()))
}

/// Starts the lease anew. Returns 1, 0 if the slot is lost, or a tg_status below 0.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_renew(permit: Option<&tg_permit_handle>) -> c_int {
    answer(|| Ok(given(permit, "permit")?.permit.renew()))
}

/// Releases a permit that is still held, and frees it. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn tg_permit_free(permit: Option<Box<tg_permit_handle>>) {
    free(permit);
}
