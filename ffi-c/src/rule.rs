//! Everything that can be done with a rule and a key.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;

use policy::{Budget, Call, Limiter, Rule, Stats};

use crate::boundary::{answer, given, guard, owned_text, room, slice};
use crate::decision::{DecisionOut, DecisionTarget, TG_MOST_LIMITS, TG_NONE, ms, tg_decision};
use crate::key::{tg_bytes, tg_key};
use crate::memory::{is_there, list};
use crate::names::TextList;
use crate::status::Failure;
use crate::status::tg_status;

/// A rule of a limiter: limits that are taken together, all or nothing. Threads may share it.
pub struct tg_rule {
    pub(crate) rule: Rule,
    pub(crate) name: CString,
    pub(crate) names: TextList,
    pub(crate) limiter: Limiter,
}

/// The `version` of a tg_recorded.
pub const TG_RECORDED_VERSION: u32 = 1;
/// The `version` of a tg_budget_state.
pub const TG_BUDGET_STATE_VERSION: u32 = 1;
/// The `version` of a tg_key_stats.
pub const TG_KEY_STATS_VERSION: u32 = 1;

/// What was used after a `tg_record`: of the limit with the least left.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_recorded {
    /// TG_RECORDED_VERSION: which fields there are.
    pub version: u32,
    /// 0.
    pub reserved: u32,
    /// Units that are gone; more than `limit` if more was recorded than allowed.
    pub used: u64,
    /// The limit's size.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// Until the key has its full quota again.
    pub reset_after_ms: i64,
    /// 0; for fields to come.
    pub reserved_words: [u64; 4],
}

/// How a key stands with its budget.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_budget_state {
    /// TG_BUDGET_STATE_VERSION: which fields there are.
    pub version: u32,
    /// 1 if nothing is left.
    pub over: u32,
    /// 1 if this amount was more than one hit should cost.
    pub over_per_hit: u32,
    /// 0.
    pub reserved: u32,
    /// Units spent today.
    pub spent: u64,
    /// Units left today.
    pub remaining: u64,
    /// Until the day is over.
    pub reset_after_ms: i64,
    /// 0; for fields to come.
    pub reserved_words: [u64; 4],
}

/// What one limit holds of a key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_limit_use {
    /// The limit's name, which lives as long as the limiter; NULL beyond `limit_count`.
    pub name: *const c_char,
    /// Whole units that are gone.
    pub used: u64,
    /// A bucket's size, else `max`.
    pub max: u64,
    /// Whole units that are left.
    pub remaining: u64,
    /// Until the whole quota is there again.
    pub reset_after_ms: i64,
    /// 0; for fields to come.
    pub reserved_words: [u64; 3],
}

/// What is known of a key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_key_stats {
    /// TG_KEY_STATS_VERSION: which fields there are.
    pub version: u32,
    /// 0 exactly when the key's state is that of a new one; then all that follows is 0 too, but
    /// for `budget.version`.
    pub known: u32,
    /// How many of `limits` are there.
    pub limit_count: u32,
    /// 1 if the rule has a budget.
    pub has_budget: u32,
    /// 1 if it is blocked; `tg_blocks` says until when, its maker and the reason.
    pub blocked: u32,
    /// 0.
    pub reserved: u32,
    /// What its cooldown has to run.
    pub cooldown_left_ms: i64,
    /// Denials in the span of the rule's alert, or in the run of its backoff.
    pub violations: u64,
    /// Since its last allowed hit; TG_NONE where the rule does not keep that.
    pub last_allowed_ms: i64,
    /// Its budget, if `has_budget`.
    pub budget: tg_budget_state,
    /// 0; for fields to come.
    pub reserved_words: [u64; 8],
    /// Each limit, in the rule's order.
    pub limits: [tg_limit_use; TG_MOST_LIMITS],
}

/// Does something with a rule and a key, and writes down what came of it.
///
/// # Safety
/// What the key points to is there.
unsafe fn keyed<T, R>(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    out: Option<&mut MaybeUninit<T>>,
    call: impl FnOnce(&Rule, Call<'_>) -> Result<R, policy::Error>,
    write: impl FnOnce(&tg_rule, R) -> T,
) -> tg_status {
    guard(|| {
        let (rule, key, out) = (given(rule, "rule")?, given(key, "key")?, given(out, "out")?);
        // SAFETY: the caller's word.
        let result = unsafe { key.with(|it| Ok(call(&rule.rule, *it)?)) }?;
        out.write(write(rule, result));
        Ok(())
    })
}

/// As [`keyed`], for decisions.
///
/// # Safety
/// As [`keyed`].
#[inline(always)]
unsafe fn decided(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    out: Option<DecisionOut<'_>>,
    call: impl FnOnce(&tg_rule, &Call<'_>, DecisionOut<'_>) -> Result<(), policy::Error>,
) -> tg_status {
    guard(|| {
        let (rule, key, out) = (given(rule, "rule")?, given(key, "key")?, given(out, "out")?);
        // SAFETY: the caller's word.
        unsafe { key.with(|it| Ok(call(rule, it, out)?)) }
    })
}

/// Does something with a rule and a key.
///
/// # Safety
/// As [`keyed`].
unsafe fn done(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    call: impl FnOnce(&Rule, Call<'_>) -> Result<(), policy::Error>,
) -> tg_status {
    guard(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        // SAFETY: the caller's word.
        unsafe { key.with(|it| Ok(call(&rule.rule, *it)?)) }
    })
}

/// Whether a hit of 1 passes, and spends it: the fastest path, without allocation.
///
/// The key is `key_len` bytes at `key`, read during the call only. Returns 1 for yes, 0 for no, or
/// a tg_status below 0, as `-TG_STATUS_KEY`.
///
/// Statuses: TG_STATUS_LENGTH, TG_STATUS_KEY, TG_STATUS_CLOSED; TG_STATUS_OPERATION for a rule with
/// permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_allow(rule: Option<&tg_rule>, key: *const u8, key_len: usize) -> c_int {
    answer(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let key = unsafe { slice(key, key_len, "key") }?;
        Ok(rule.rule.allow(key)?)
    })
}

/// `tg_allow` for `count` keys at once, far cheaper for each on large tables.
///
/// Writes 1 or 0 for each key to `out_mask`, which has room for `count`. If the call fails, nothing
/// is written; keys before one that is not the rule's were judged.
///
/// Statuses: TG_STATUS_LENGTH, TG_STATUS_KEY, TG_STATUS_CLOSED; TG_STATUS_OPERATION for a rule with
/// permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_allow_many(
    rule: Option<&tg_rule>,
    keys: *const tg_bytes,
    count: usize,
    out_mask: *mut u8,
) -> tg_status {
    guard(|| {
        let rule = given(rule, "rule")?;
        // SAFETY: the caller's word.
        let keys = unsafe { slice(keys, count, "keys") }?;
        // SAFETY: the caller's word.
        let out = unsafe { room(out_mask, count, "out_mask") }?;
        // SAFETY: the caller's word.
        let read = |key: &tg_bytes| unsafe { key.get("keys.data") };
        let mut all = list(keys.len())?;
        for key in keys {
            all.push(read(key)?);
        }
        allow_each(rule, &all, out)
    })
}

/// Writes 1 or 0 for each key.
pub(crate) fn allow_each(
    rule: &tg_rule,
    keys: &[&[u8]],
    out: &mut [MaybeUninit<u8>],
) -> Result<(), Failure> {
    // The engine makes a mask of its own.
    is_there(keys.len())?;
    for (to, allowed) in out.iter_mut().zip(rule.rule.allow_many(keys)?) {
        to.write(allowed);
    }
    Ok(())
}

/// Spends `cost` for a key if its rule allows, and says how it went.
///
/// `key` is read during the call only. `*out` is written if and only if TG_STATUS_OK is returned,
/// denied or not. Safe from any thread, on the same rule too.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_hit(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe {
        decided(rule, key, out, |rule, call, out| {
            rule.rule.hit_into(call, cost, DecisionTarget { rule, out })
        })
    }
}

/// As `tg_hit`, but an allowed one spends nothing: for "check, do the work, then `tg_record`". A
/// denial counts like a hit's.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_check(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe {
        decided(rule, key, out, |rule, call, out| {
            rule.write(&rule.rule.check(*call, cost)?.view(), out);
            Ok(())
        })
    }
}

/// What a `tg_hit` would get, changing nothing. With a cost of 0, what is left now.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_peek(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_decision>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe {
        decided(rule, key, out, |rule, call, out| {
            rule.write(&rule.rule.peek(*call, cost)?.view(), out);
            Ok(())
        })
    }
}

/// Spends without asking, also in a cooldown: a bucket goes no lower than 0, a window logs it.
/// Writes to `out` what is used then.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_record(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
    out: Option<&mut MaybeUninit<tg_recorded>>,
) -> tg_status {
    let write = |_: &tg_rule, recorded: policy::Recorded| tg_recorded {
        version: TG_RECORDED_VERSION,
        reserved: 0,
        used: recorded.used,
        limit: recorded.limit,
        remaining: recorded.remaining,
        reset_after_ms: ms(recorded.reset_after),
        reserved_words: [0; 4],
    };
    // SAFETY: the caller's word.
    unsafe { keyed(rule, key, out, |rule, call| rule.record(call, cost), write) }
}

/// Gives back, never above full; a window's newest first.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule with permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_refund(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { done(rule, key, |rule, call| rule.refund(call, cost)) }
}

const UNSPENT: tg_budget_state = tg_budget_state {
    version: TG_BUDGET_STATE_VERSION,
    over: 0,
    over_per_hit: 0,
    reserved: 0,
    spent: 0,
    remaining: 0,
    reset_after_ms: 0,
    reserved_words: [0; 4],
};

fn budget(budget: Budget) -> tg_budget_state {
    tg_budget_state {
        over: budget.over.into(),
        over_per_hit: budget.over_per_hit.into(),
        spent: budget.spent,
        remaining: budget.remaining,
        reset_after_ms: ms(budget.reset_after),
        ..UNSPENT
    }
}

/// Records what was spent of the day's budget, always, and writes to `out` how the key stands then.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule without a budget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_spend(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    amount: u64,
    out: Option<&mut MaybeUninit<tg_budget_state>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { keyed(rule, key, out, |rule, call| rule.spend(call, amount), |_, it| budget(it)) }
}

/// Writes to `out` how the key stands with its budget.
///
/// Statuses: those of a key; TG_STATUS_OPERATION for a rule without a budget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_budget(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    out: Option<&mut MaybeUninit<tg_budget_state>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { keyed(rule, key, out, |rule, call| rule.budget(call), |_, it| budget(it)) }
}

/// Whether a caller should leave the key alone. A blocked key is limited. With backoff, so is a key
/// that was denied less than `quiet` ago. Without backoff, so is a key whose hit of 1 would be
/// denied.
///
/// Returns 1 for yes, 0 for no, or a tg_status below 0.
///
/// Statuses: those of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_is_limited(rule: Option<&tg_rule>, key: Option<&tg_key>) -> c_int {
    answer(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        // SAFETY: the caller's word.
        unsafe { key.with(|call| Ok(rule.rule.is_limited(*call)?)) }
    })
}

const UNUSED: tg_limit_use = tg_limit_use {
    name: std::ptr::null(),
    used: 0,
    max: 0,
    remaining: 0,
    reset_after_ms: 0,
    reserved_words: [0; 3],
};

const UNKNOWN: tg_key_stats = tg_key_stats {
    version: TG_KEY_STATS_VERSION,
    known: 0,
    limit_count: 0,
    has_budget: 0,
    blocked: 0,
    reserved: 0,
    cooldown_left_ms: 0,
    violations: 0,
    last_allowed_ms: 0,
    budget: UNSPENT,
    reserved_words: [0; 8],
    limits: [UNUSED; TG_MOST_LIMITS],
};

fn stats(rule: &tg_rule, stats: Option<Stats>) -> tg_key_stats {
    let mut out = UNKNOWN;
    let Some(stats) = stats else { return out };
    out.known = 1;
    out.cooldown_left_ms = ms(stats.cooldown_left);
    out.violations = stats.violations;
    out.last_allowed_ms = stats.last_allowed.map_or(TG_NONE, ms);
    out.has_budget = stats.budget.is_some().into();
    out.blocked = stats.blocked.is_some().into();
    out.budget = stats.budget.map_or(UNSPENT, budget);
    for (to, limit) in out.limits.iter_mut().zip(&stats.limits) {
        out.limit_count += 1;
        *to = tg_limit_use {
            name: rule.names.keep(&limit.name),
            used: limit.used,
            max: limit.max,
            remaining: limit.remaining,
            reset_after_ms: ms(limit.reset_after),
            ..UNUSED
        };
    }
    out
}

/// Writes to `out` what is known of a key.
///
/// Statuses: those of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_stats(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    out: Option<&mut MaybeUninit<tg_key_stats>>,
) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { keyed(rule, key, out, |rule, call| rule.stats(call), stats) }
}

/// Why a hit of `cost` would get what it would get, changing nothing.
///
/// Writes a JSON text to `out`; free it with `tg_string_free`. It has `decision`, and `steps`, the
/// judgement in order. A step has these fields:
///
/// - `step`: mode, exempt, blocked, cost, budget, cooldown, backoff, or limit, once for each limit
/// - `outcome`: none, pass, allow or deny
/// - `limit`: the limit's name
/// - `value`: the number or word that the step goes by; of a block, its reason
/// - `source`: rule, default, when[0], override, change or call
/// - `until_ms`: when it ends, in Unix time
/// - `by`: the maker of the change that the value comes from
///
/// Statuses: those of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_why(
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    cost: u64,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    guard(|| {
        let (rule, key) = (given(rule, "rule")?, given(key, "key")?);
        let out = given(out, "out")?;
        // SAFETY: the caller's word.
        let why = unsafe { key.with(|call| Ok(rule.rule.why(*call, cost)?)) }?;
        out.write(owned_text(why.to_value().to_string())?);
        Ok(())
    })
}

/// Forgets the key's limits, penalties and budget, but never those of a wider scope; ends its
/// block.
///
/// Statuses: those of a key; TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_reset(rule: Option<&tg_rule>, key: Option<&tg_key>) -> tg_status {
    // SAFETY: the caller's word.
    unsafe { done(rule, key, |rule, call| rule.reset(call)) }
}

/// Forgets every key of the rule, and ends all blocks.
///
/// Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn tg_reset_all(rule: Option<&tg_rule>) -> tg_status {
    guard(|| Ok(given(rule, "rule")?.rule.reset_all()?))
}

/// Drops idle keys now, and writes to `out` how many. Nothing must call this: they are evicted
/// when their places are needed.
///
/// Statuses: TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn tg_prune(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<usize>>,
) -> tg_status {
    guard(|| {
        let (rule, out) = (given(rule, "rule")?, given(out, "out")?);
        out.write(rule.rule.prune()?);
        Ok(())
    })
}

/// Writes to `out` how many rows are in use, idle ones until they are pruned or taken over.
///
/// Statuses: TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn tg_len(
    rule: Option<&tg_rule>,
    out: Option<&mut MaybeUninit<usize>>,
) -> tg_status {
    guard(|| {
        let (rule, out) = (given(rule, "rule")?, given(out, "out")?);
        out.write(rule.rule.len()?);
        Ok(())
    })
}
