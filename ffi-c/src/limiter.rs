//! A policy at work, and the rules that were asked for.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use policy::bindings::ForkLock;
use policy::{Finding, Limiter, LimiterBuilder, Metrics, OnFull};

use crate::boundary::{free, given, guard, optional_text, slice, text, utf8};
use crate::clock::tg_manual_clock;
use crate::json;
use crate::memory::{has_room, lasting};
use crate::names::TextList;
use crate::rule::tg_rule;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// The `version` of tg_options.
pub const TG_OPTIONS_VERSION: u32 = 2;

/// What the policy says, or TG_ON_FULL_OVERFLOW.
pub const TG_ON_FULL_DEFAULT: u32 = 0;
/// A new key that finds the table full shares a bucket with other keys.
pub const TG_ON_FULL_OVERFLOW: u32 = 1;
/// A new key that finds the table full is denied, with reason "full".
pub const TG_ON_FULL_DENY: u32 = 2;
/// A new key that finds the table full is allowed.
pub const TG_ON_FULL_ALLOW: u32 = 3;

/// What a limiter is made with; what is set wins over the policy. Start from TG_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_options {
    /// TG_OPTIONS_VERSION. In version 1 `memory` is not there, and is not read.
    pub version: u32,
    /// One of TG_ON_FULL_….
    pub on_full: u32,
    /// Where state lives: "memory", "memory:NAME", "file:PATH"; NULL: what the policy says, or
    /// memory.
    pub store: *const c_char,
    /// Keys that a rule may hold live; 0: what the policy says. Where that says nothing either,
    /// each rule takes what fits into its share of `memory`: at most 65536, at least 1024.
    pub capacity: u64,
    /// Where time comes from; NULL: from the system.
    pub clock: *const tg_manual_clock,
    /// 1: tables of a file store that don't fit the policy, or can't be read, are made anew, and
    /// their counts lost.
    pub recreate: u32,
    /// 1: the folder of a file store is shared with its group; 0: what the policy says, or not.
    pub group: u32,
    /// Bytes that all tables together may take; 0: what the policy says, or 256 MB.
    pub memory: u64,
}

impl tg_options {
    /// # Safety
    /// What it points to is there.
    unsafe fn read(&self) -> Result<LimiterBuilder, Failure> {
        let wrong = |message| Failure::new(TG_STATUS_ARGUMENT, message);
        if !(1..=TG_OPTIONS_VERSION).contains(&self.version) {
            let message = format!("options.version is {}: use TG_OPTIONS_INIT", self.version);
            return Err(wrong(message));
        }
        if self.recreate > 1 || self.group > 1 {
            return Err(wrong("options.recreate and options.group are 0 or 1".to_string()));
        }
        let on_full = match self.on_full {
            TG_ON_FULL_DEFAULT => None,
            TG_ON_FULL_OVERFLOW => Some(OnFull::Overflow),
            TG_ON_FULL_DENY => Some(OnFull::Deny),
            TG_ON_FULL_ALLOW => Some(OnFull::Allow),
            other => return Err(wrong(format!("options.on_full is a TG_ON_FULL_…, not {other}"))),
        };
        // SAFETY: the caller's word.
        let store = unsafe { optional_text(self.store, "options.store") }?;
        let capacity = usize::try_from(self.capacity).map_err(|_| {
            Failure::new(TG_STATUS_RANGE, format!("options.capacity is {}", self.capacity))
        })?;
        // SAFETY: NULL, or a clock that the caller has not freed.
        let clock = unsafe { self.clock.as_ref() };
        let builder = Limiter::builder()
            .capacity((capacity > 0).then_some(capacity))
            .on_full(on_full)
            .clock(clock.map(|clock| clock.clock.clock()).unwrap_or_default())
            .recreate(self.recreate == 1)
            // What was padding in version 1 may be anything there.
            .group((self.version > 1 && self.group == 1).then_some(true))
            .memory(Some(self.memory).filter(|&bytes| self.version > 1 && bytes > 0));
        Ok(match store {
            Some(store) => builder.store(store),
            None => builder,
        })
    }
}

/// # Safety
/// What it points to is there.
unsafe fn read(options: Option<&tg_options>) -> Result<LimiterBuilder, Failure> {
    match options {
        None => Ok(Limiter::builder()),
        // SAFETY: the caller's word.
        Some(options) => unsafe { options.read() },
    }
}

/// A policy at work. Threads may share it.
pub struct tg_limiter {
    limiter: Limiter,
    /// By name; those that were replaced by a reload stay: a caller may hold them.
    #[allow(clippy::vec_box)] // C has their addresses, which a vector's would not stay.
    rules: ForkLock<HashMap<String, Vec<Box<tg_rule>>>>,
}

/// Makes a limiter of a text of so many bytes, and writes its handle down.
fn make(
    text_len: usize,
    out: &mut MaybeUninit<*mut tg_limiter>,
    builder: impl FnOnce() -> LimiterBuilder,
) -> Result<(), Failure> {
    has_room(text_len)?;
    let handle = lasting(|| {
        let limiter = builder().build()?;
        Ok(Box::new(tg_limiter { limiter, rules: ForkLock::default() }))
    })?;
    out.write(Box::into_raw(handle));
    Ok(())
}

/// A limiter with one rule, "default", of these limits: "5/10s window, 20/min".
///
/// `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
///
/// Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_POLICY, TG_STATUS_STORE,
/// TG_STATUS_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_limiter_new(
    limits: *const c_char,
    options: Option<&tg_options>,
    out: Option<&mut MaybeUninit<*mut tg_limiter>>,
) -> tg_status {
    guard(|| {
        let out = given(out, "out")?;
        // SAFETY: the caller's word.
        let limits = unsafe { text(limits, "limits") }?;
        // SAFETY: the caller's word.
        let options = unsafe { read(options) }?;
        make(limits.len(), out, || options.limits(limits))
    })
}

/// A limiter of a policy's text, YAML or JSON: `len` bytes of UTF-8, without a NUL.
///
/// `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
///
/// Statuses: TG_STATUS_LENGTH, TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_POLICY,
/// TG_STATUS_STORE, TG_STATUS_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_limiter_from_policy(
    text: *const u8,
    len: usize,
    options: Option<&tg_options>,
    out: Option<&mut MaybeUninit<*mut tg_limiter>>,
) -> tg_status {
    guard(|| {
        let out = given(out, "out")?;
        // SAFETY: the caller's word.
        let text = utf8(unsafe { slice(text, len, "text") }?, "text")?;
        // SAFETY: the caller's word.
        let options = unsafe { read(options) }?;
        make(text.len(), out, || options.text(text))
    })
}

/// Bytes of a file; of one that can't be read, whatever opens it says why.
fn file_len(path: &str) -> usize {
    std::fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

/// A limiter of a policy file, YAML or JSON, which `tg_reload` reads again.
///
/// `options` may be NULL. Writes the limiter to `out`; free it with `tg_limiter_free`.
///
/// Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_FILE, TG_STATUS_POLICY, TG_STATUS_STORE,
/// TG_STATUS_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_limiter_from_file(
    path: *const c_char,
    options: Option<&tg_options>,
    out: Option<&mut MaybeUninit<*mut tg_limiter>>,
) -> tg_status {
    guard(|| {
        let out = given(out, "out")?;
        // SAFETY: the caller's word.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: the caller's word.
        let options = unsafe { read(options) }?;
        make(file_len(path), out, || options.file(path))
    })
}

/// Frees a limiter, its rules and all texts of its decisions. NULL is fine.
///
/// No other call may be under way with it or its rules, and none may follow. Permits and
/// reservations may outlive it.
#[unsafe(no_mangle)]
pub extern "C" fn tg_limiter_free(limiter: Option<Box<tg_limiter>>) {
    free(limiter);
}

/// Lets go: every operation from now on is TG_STATUS_CLOSED. Still to be freed.
///
/// Statuses: only those of every function.
#[unsafe(no_mangle)]
pub extern "C" fn tg_limiter_close(limiter: Option<&tg_limiter>) -> tg_status {
    guard(|| {
        given(limiter, "limiter")?.limiter.close();
        Ok(())
    })
}

/// A rule by its name ("default" in a limiter made by `tg_limiter_new`), or the policy's
/// `fallback`.
///
/// Writes it to `out`. It is the limiter's: don't free it; it is good until `tg_limiter_free`, over
/// reloads too. Ask once and keep it: this takes a lock.
///
/// Statuses: TG_STATUS_UTF8, TG_STATUS_RULE, TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_rule_get(
    limiter: Option<&tg_limiter>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<*const tg_rule>>,
) -> tg_status {
    guard(|| {
        let (limiter, out) = (given(limiter, "limiter")?, given(out, "out")?);
        has_room(0)?;
        // SAFETY: the caller's word.
        let rule = limiter.limiter.rule(unsafe { text(name, "name") }?)?;
        let mut rules = limiter.rules.lock();
        let known = rules.entry(rule.name()).or_default();
        let at = known.iter().position(|other| other.rule.is_same(&rule)).unwrap_or_else(|| {
            let name = CString::new(rule.name().replace('\0', "")).unwrap_or_default();
            let limiter = limiter.limiter.clone();
            known.push(Box::new(tg_rule { rule, name, names: TextList::default(), limiter }));
            known.len() - 1
        });
        out.write(&raw const *known[at]);
        Ok(())
    })
}

/// Reads the policy file again: all or nothing. Rules that were gotten go by the new policy.
///
/// Statuses: TG_STATUS_FILE, TG_STATUS_POLICY, TG_STATUS_STORE, TG_STATUS_MEMORY, TG_STATUS_CLOSED;
/// TG_STATUS_OPERATION for a limiter that was not made from a file.
#[unsafe(no_mangle)]
pub extern "C" fn tg_reload(limiter: Option<&tg_limiter>) -> tg_status {
    guard(|| {
        let limiter = given(limiter, "limiter")?;
        has_room(0)?;
        Ok(limiter.limiter.reload()?)
    })
}

/// Counts so far, a JSON list with a map for each rule. Its numbers are allowed, warned, shadowed,
/// exempt, off, alerts, evictions, full, overflow, classify_defaults, capacity, keys and bytes.
/// `rule` is the name, `denied` has a count for each reason, and `retired` says whether the table
/// was replaced. `top_offenders` and `heaviest` are lists of key and count.
///
/// Writes the text to `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn tg_metrics(
    limiter: Option<&tg_limiter>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(limiter, "limiter", out, |limiter| {
        Ok(limiter.limiter.metrics()?.iter().map(Metrics::to_value).collect())
    })
}

/// The last denials and alerts of all rules, a JSON map. `events` is a list with number, rule, key,
/// reason, alert, and at_ms in Unix time. `next` is a text. `missed` counts the events that later
/// ones replaced before they were read.
///
/// `since` is what `next` was, for those after that; NULL for all that are kept. Writes the text to
/// `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_UTF8, TG_STATUS_ARGUMENT, TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_events(
    limiter: Option<&tg_limiter>,
    since: *const c_char,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(limiter, "limiter", out, |limiter| {
        // SAFETY: the caller's word.
        let since = unsafe { optional_text(since, "since") }?;
        Ok(limiter.limiter.events(since)?.to_value())
    })
}

/// Run-time changes of all rules, the oldest first, a JSON map. `changes` is a list. `next` is the
/// number to ask with the next time. `missed` counts those after `since` that are no longer kept.
/// The store keeps at least the last 256.
///
/// A change has these fields:
///
/// - `number`, `rule`, `by`, `reason`
/// - `at_ms`, and `until_ms` or null: Unix time
/// - `op`: "set_override", "block" and so on
/// - `target`: a map with key or match, or null
/// - `before`, `after`: limits, a list of exemptions or a mode; of one exemption and of a block,
///   whether it stood
///
/// `since` is 0 for all that are kept, or what `next` was. Writes the text to `out`; free it with
/// `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED, TG_STATUS_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn tg_changes(
    limiter: Option<&tg_limiter>,
    since: u64,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(limiter, "limiter", out, |limiter| Ok(limiter.limiter.changes(since)?.to_value()))
}

/// Findings on the policy, a JSON list: id, severity ("info" or "warn"), path, message.
///
/// Writes the text to `out`; free it with `tg_string_free`.
///
/// Statuses: TG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn tg_audit(
    limiter: Option<&tg_limiter>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> tg_status {
    json::write(limiter, "limiter", out, |limiter| {
        Ok(limiter.limiter.audit()?.iter().map(Finding::to_value).collect())
    })
}
