//! The answer to a hit, as plain data.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::time::Duration;

use policy::bindings::{DecisionSink, DecisionView, Facts};
use policy::{LimitLeft, Style};

use crate::boundary::{given, guard, write_text};
use crate::rule::tg_rule;
use crate::status::Failure;
use crate::status::tg_status::{self, *};

/// The `version` of a tg_decision.
pub const TG_DECISION_VERSION: u32 = 2;
/// The most limits that a rule has.
pub const TG_MOST_LIMITS: usize = 8;
/// A number or a time that there is not.
pub const TG_NONE: i64 = -1;

/// Header fields of both styles.
pub const TG_HEADERS_BOTH: u32 = 0;
/// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, under the names that the policy gives them.
pub const TG_HEADERS_LEGACY: u32 = 1;
/// `RateLimit-Policy` and `RateLimit`.
pub const TG_HEADERS_IETF: u32 = 2;

/// How a decision left one limit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_limit_left {
    /// The limit's name.
    pub name: *const c_char,
    /// A bucket's size, else its `max`.
    pub max: u64,
    /// Its period in seconds, rounded up; 0 for a concurrent limit.
    pub window_seconds: u64,
    /// What is left of it.
    pub remaining: u64,
    /// Until all of it is there again.
    pub reset_after_ms: i64,
    /// Milliseconds until there is more, rounded up; TG_NONE if there never is.
    pub more_after_ms: i64,
}

/// The answer to a hit: plain data without an owner, to be copied at will.
///
/// Its texts are the limiter's, end with NUL, and live until `tg_limiter_free`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tg_decision {
    /// TG_DECISION_VERSION: which fields there are.
    pub version: u32,
    /// 1 for yes, 0 for no; so with the next three.
    pub allowed: u8,
    /// An allowed hit left little.
    pub warning: u8,
    /// This denial was the one that reached the rule's alert.
    pub alert: u8,
    /// The sender should be notified of this denial.
    pub notify: u8,
    /// How many of `limits` are there.
    pub limit_count: u8,
    /// 0.
    pub reserved: [u8; 7],
    /// The rule's name.
    pub rule: *const c_char,
    /// The denying limit's name, or "blocked", "cooldown", "backoff", "budget", "exempt", "off",
    /// "cost", "full" or "outage"; NULL when allowed and counted.
    pub reason: *const c_char,
    /// In shadow mode, the reason it would have been denied for; else NULL.
    pub would_deny: *const c_char,
    /// What the rule hands back with a denial, as JSON; else NULL.
    pub attach: *const c_char,
    /// The size of the limit with the least left, or of the one that denies; or TG_NONE.
    pub limit: i64,
    /// What is left of it; or TG_NONE.
    pub remaining: i64,
    /// Until the same hit would pass: 0 when allowed, TG_NONE where waiting never helps.
    pub retry_after_ms: i64,
    /// Until the key has its full quota again.
    pub reset_after_ms: i64,
    /// When it was made, by the limiter's clock; for `tg_decision_headers`.
    pub at_ns: u64,
    /// 0; for fields to come.
    pub reserved_words: [u64; 4],
    /// How each limit was left, in the rule's order: the first `limit_count`. The others are not
    /// written.
    pub limits: [tg_limit_left; TG_MOST_LIMITS],
}

/// What of a decision is written each time.
pub(crate) type DecisionOut<'a> = &'a mut MaybeUninit<tg_decision>;

#[inline]
pub(crate) fn ms(duration: Duration) -> i64 {
    let whole = duration.as_secs().saturating_mul(1_000);
    let millis = whole.saturating_add(u64::from(duration.subsec_millis()));
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[inline]
fn number(number: Option<u64>) -> i64 {
    number.map_or(TG_NONE, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

impl tg_rule {
    #[cold]
    fn keep_json(&self, value: &serde_json::Value) -> *const c_char {
        self.names.keep(&value.to_string())
    }

    /// Writes a decision down.
    #[inline(always)]
    pub(crate) fn write(&self, view: &DecisionView<'_>, out: DecisionOut<'_>) {
        let kept = |text: Option<&str>| text.map_or(std::ptr::null(), |text| self.names.keep(text));
        let attach = view.attach().map(|value| self.keep_json(value));
        // SAFETY: a decision is laid out as its parts are, which is asserted below, and any bytes
        // are parts.
        let out = unsafe { &mut *out.as_mut_ptr().cast::<Parts>() };
        let limit = |at: usize, left: &LimitLeft<'_>| tg_limit_left {
            name: self.names.keep_limit(view, at, left.name),
            max: left.max,
            window_seconds: left.window_seconds,
            remaining: left.remaining,
            reset_after_ms: ms(left.reset_after),
            more_after_ms: left.more_after.map_or(TG_NONE, ms),
        };
        let [first, rest @ ..] = &mut out.limits;
        let (mut limits, mut limit_count) = (view.limits(), 0);
        // Most rules have one, for which no loop is needed then.
        if let Some(left) = limits.next() {
            first.write(limit(0, &left));
            limit_count = 1;
        }
        for (to, left) in rest.iter_mut().zip(limits) {
            to.write(limit(limit_count.into(), &left));
            limit_count += 1;
        }
        out.head.write(Head {
            version: TG_DECISION_VERSION,
            allowed: view.allowed.into(),
            warning: view.warning.into(),
            alert: view.alert.into(),
            notify: view.notify.into(),
            limit_count: u64::from_ne_bytes([limit_count, 0, 0, 0, 0, 0, 0, 0]),
            rule: self.name.as_ptr(),
            reason: kept(view.reason()),
            would_deny: kept(view.would_deny()),
            attach: attach.unwrap_or(std::ptr::null()),
            limit: number(view.limit),
            remaining: number(view.remaining),
            retry_after_ms: number(view.retry_after_ms),
            reset_after_ms: number(Some(view.reset_after_ms)),
            at_ns: view.at,
            reserved_words: [0; 4],
        });
    }
}

/// Where a decision of a rule is to be written.
pub(crate) struct DecisionTarget<'a> {
    pub(crate) rule: &'a tg_rule,
    pub(crate) out: DecisionOut<'a>,
}

impl DecisionSink for DecisionTarget<'_> {
    type Output = ();
    #[inline(always)]
    fn accept(self, view: &DecisionView<'_>) {
        self.rule.write(view, self.out);
    }
}

/// A decision that is being written, so that only the limits that there are cost anything.
#[repr(C)]
struct Parts {
    head: MaybeUninit<Head>,
    limits: [MaybeUninit<tg_limit_left>; TG_MOST_LIMITS],
}

/// A decision but for its limits.
#[repr(C)]
struct Head {
    version: u32,
    allowed: u8,
    warning: u8,
    alert: u8,
    notify: u8,
    /// With the reserved bytes behind it, in one piece.
    limit_count: u64,
    rule: *const c_char,
    reason: *const c_char,
    would_deny: *const c_char,
    attach: *const c_char,
    limit: i64,
    remaining: i64,
    retry_after_ms: i64,
    reset_after_ms: i64,
    at_ns: u64,
    reserved_words: [u64; 4],
}

const _: () = {
    use std::mem::offset_of;
    macro_rules! same {
        ($($field:ident),*) => {
            $(assert!(offset_of!(Head, $field) == offset_of!(tg_decision, $field));)*
        };
    }
    same!(version, allowed, warning, alert, notify, limit_count, rule, reason, would_deny);
    same!(attach, limit, remaining, retry_after_ms, reset_after_ms, at_ns, reserved_words);
    assert!(offset_of!(Parts, limits) == offset_of!(tg_decision, limits));
    assert!(size_of::<Parts>() == size_of::<tg_decision>());
};

fn style(style: u32) -> Result<Style, Failure> {
    match style {
        TG_HEADERS_BOTH => Ok(Style::Both),
        TG_HEADERS_LEGACY => Ok(Style::Legacy),
        TG_HEADERS_IETF => Ok(Style::Ietf),
        _ => {
            let message =
                format!("`style` is one of TG_HEADERS_BOTH, _LEGACY and _IETF, not {style}");
            Err(Failure::new(TG_STATUS_ARGUMENT, message))
        }
    }
}

/// A text of a decision, which we wrote or another did.
///
/// # Safety
/// It ends with NUL, if there is one.
unsafe fn kept<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's word.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default())
}

fn time(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// The header fields of a decision: lines of `Name: value`, each ended by CR LF, as HTTP has them.
///
/// `rule` is the rule that decided. Writes the text and a NUL to `buffer`, and its length without
/// the NUL to `out_len`. With a `capacity` of 0 only `out_len` is written, and `buffer` may be
/// NULL. If it does not fit, nothing is written and TG_STATUS_BUFFER returned; 1024 bytes are
/// enough for most rules. An exempt call and one of a rule that is off have no fields: the text is
/// "".
///
/// Statuses: TG_STATUS_ARGUMENT, TG_STATUS_LENGTH, TG_STATUS_BUFFER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tg_decision_headers(
    rule: Option<&tg_rule>,
    decision: Option<&tg_decision>,
    style: u32,
    buffer: *mut c_char,
    capacity: usize,
    out_len: Option<&mut MaybeUninit<usize>>,
) -> tg_status {
    guard(|| {
        let (rule, decision) = (given(rule, "rule")?, given(decision, "decision")?);
        let (style, out_len) = (self::style(style)?, given(out_len, "out_len")?);
        let count = usize::from(decision.limit_count);
        if decision.version != TG_DECISION_VERSION || count > TG_MOST_LIMITS {
            let message = "`decision` was not written by this library";
            return Err(Failure::new(TG_STATUS_ARGUMENT, message));
        }
        let left = |one: &tg_limit_left| {
            // SAFETY: written by `tg_rule::write`, and its limiter lives.
            let mut left = LimitLeft::named(unsafe { kept(one.name) }.unwrap_or_default());
            (left.max, left.window_seconds, left.remaining) =
                (one.max, one.window_seconds, one.remaining);
            left.reset_after = time(one.reset_after_ms).unwrap_or_default();
            left.more_after = time(one.more_after_ms);
            left
        };
        let limits: Vec<LimitLeft<'_>> = decision.limits[..count].iter().map(left).collect();
        let facts = Facts {
            allowed: decision.allowed != 0,
            // SAFETY: written by `tg_rule::write`, and its limiter lives.
            reason: unsafe { kept(decision.reason) },
            limit: u64::try_from(decision.limit).ok(),
            remaining: u64::try_from(decision.remaining).ok(),
            retry_after: time(decision.retry_after_ms),
            reset_after: time(decision.reset_after_ms).unwrap_or_default(),
            at: decision.at_ns,
            limits: &limits,
        };
        let headers = facts.headers(&rule.rule, style);
        let text: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        // SAFETY: the caller's word.
        unsafe { write_text(&text, buffer, capacity, out_len) }
    })
}
