//! Random sequences of C calls, right and wrong: each is done, or is a status with a message and
//! has written nothing; none is a panic.
//!
//! An input is read as a program: so many bytes for each call, and 0 for those that are not there.
//! What C could not do without breaking the header's rules (use what it has freed, point to
//! nowhere) is not done here.
#![no_main]

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use libfuzzer_sys::fuzz_target;
use libtidegate::{
    blocks::*, boundary::*, bytes::*, changes::*, clock::*, decision::*, error::*, held::*, key::*,
    limiter::*, rule::*, status::*, version::*,
};
use tg_status::*;

/// Bytes of an input for each call.
const CALL_BYTES: usize = 32;
const LIMITS: [&str; 6] =
    ["2/min", "3/min window, 5/h", "2 concurrent lease 1min", "4/s counter", "3/min fixed", "0/s"];
const POLICIES: [&str; 3] = [
    "{version: 1, fallback: a, rules: {a: {limits: 2/min, cooldown: 1s, attach: {x: 1}}, \
     b: {limits: 1 concurrent}}}",
    "{version: 1, rules: {a: {key: [x, y], limits: {l: {max: 2, per: 1s, scope: [x]}}, \
     budget: {daily: 5}}}}",
    "{version: 1, rules: {a: {limits: 1/s, mode: shadow, exempt: [{role: admin}], warn_at: 0.5}}}",
];
const JSON: [&str; 8] = [
    r#"{"2/min": {"max": 9}}"#,
    r#""9/min""#,
    "{}",
    r#"{"role": "admin"}"#,
    r#"{"ip": "10.0.0.0/8"}"#,
    r#"[{"role": ["a", "b"]}]"#,
    "[]",
    r#"{"key": "a"}"#,
];

/// The bytes of an input, one after the other; 0 when there are no more.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }
    /// True once in so many bytes.
    fn rarely(&mut self) -> bool {
        self.byte() >= 0xf0
    }
    fn number(&mut self) -> u64 {
        match self.byte() {
            0xff => u64::MAX,
            0xfe => i64::MAX as u64 + 1,
            0xfd => u64::from_le_bytes([self.byte(); 8]),
            small => u64::from(small) % 12,
        }
    }
    fn bytes(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte() % 24);
        self.take(count)
    }
    /// One of these texts, any bytes, or NULL.
    fn text(&mut self, known: &[&str]) -> Text {
        match self.byte() {
            0xff => Text(None),
            0xe0.. => {
                let bytes = self.bytes();
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                Text(CString::new(&bytes[..end]).ok())
            }
            which => Text(CString::new(known[usize::from(which) % known.len()]).ok()),
        }
    }
}

/// A text that ends with NUL, or NULL.
struct Text(Option<CString>);

impl Text {
    fn get(&self) -> *const c_char {
        self.0.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

/// A key that a call is made with, and what it points to.
struct AnyKey {
    key: Option<tg_key>,
    _parts: Vec<tg_bytes>,
    _attributes: Vec<tg_attribute>,
}

fn bytes(input: &mut Input<'_>) -> tg_bytes {
    let bytes = input.bytes();
    match input.byte() {
        0xff => tg_bytes { data: std::ptr::null(), len: bytes.len() },
        0xfe => tg_bytes { data: bytes.as_ptr(), len: usize::MAX - bytes.len() },
        _ => tg_bytes { data: bytes.as_ptr(), len: bytes.len() },
    }
}

impl AnyKey {
    fn read(input: &mut Input<'_>) -> AnyKey {
        let kind = input.byte();
        let nothing = tg_bytes { data: std::ptr::null(), len: 0 };
        let mut key = tg_key {
            version: TG_KEY_VERSION,
            has_max: 0,
            bytes: nothing,
            parts: std::ptr::null(),
            part_count: 0,
            attributes: std::ptr::null(),
            attribute_count: 0,
            max: 0,
        };
        let (mut parts, mut attributes) = (Vec::new(), Vec::new());
        if kind & 1 == 0 {
            key.bytes = bytes(input);
        } else {
            parts = (0..input.byte() % 10).map(|_| bytes(input)).collect();
            (key.parts, key.part_count) = (parts.as_ptr(), parts.len());
        }
        if kind & 2 != 0 {
            let one = |input: &mut Input<'_>| match input.byte() {
                0xf0.. => tg_attribute { name: bytes(input), value: bytes(input) },
                _ => tg_attribute { name: of("role"), value: of("admin") },
            };
            attributes = (0..input.byte() % 36).map(|_| one(input)).collect();
            (key.attributes, key.attribute_count) = (attributes.as_ptr(), attributes.len());
        }
        if kind & 4 != 0 {
            (key.has_max, key.max) = (1, input.number());
        }
        match kind {
            0xf0 => key.version = input.byte().into(),
            0xf2 => key.has_max = input.byte().into(),
            0xf4 => key.parts = std::ptr::null(),
            0xf6 => key.attributes = std::ptr::null(),
            0xf8 => (key.bytes, key.part_count) = (of("a"), usize::MAX),
            0xfa => {
                parts = vec![of("b")];
                (key.parts, key.part_count) = (parts.as_ptr(), 1);
            }
            _ => {}
        }
        let key = (kind != 0xff).then_some(key);
        AnyKey { key, _parts: parts, _attributes: attributes }
    }
    fn get(&self) -> Option<&tg_key> {
        self.key.as_ref()
    }
}

fn of(text: &'static str) -> tg_bytes {
    tg_bytes { data: text.as_ptr(), len: text.len() }
}

/// A failure has a message and a name, and is no mistake of ours.
fn failed(status: tg_status) {
    // SAFETY: texts of the library, and this thread fails no more meanwhile.
    let texts =
        unsafe { [tg_last_error(), tg_status_name(status as i32)].map(|t| CStr::from_ptr(t)) };
    assert!(status != TG_STATUS_PANIC && status != TG_STATUS_OTHER, "{texts:?}");
    assert!(!texts[0].is_empty() && texts[1] != c"unknown", "{status:?}: {texts:?}");
    assert!(texts[0].to_str().is_ok(), "{texts:?}");
}

fn done(status: tg_status) {
    if status != TG_STATUS_OK {
        failed(status);
    }
}

/// Yes, no, or minus a status.
fn answered(answer: c_int) {
    assert!((-31..=1).contains(&answer));
    if answer < 0 {
        let all = [
            TG_STATUS_NULL,
            TG_STATUS_ARGUMENT,
            TG_STATUS_LENGTH,
            TG_STATUS_UTF8,
            TG_STATUS_POLICY,
            TG_STATUS_KEY,
            TG_STATUS_OPERATION,
            TG_STATUS_RANGE,
            TG_STATUS_MEMORY,
            TG_STATUS_CLOSED,
        ];
        failed(*all.iter().find(|status| **status as c_int == -answer).expect("a known status"));
    }
}

const UNTOUCHED: u8 = 0x5a;

/// Calls with room for an answer: what was written, which is nothing if it failed.
fn told<T>(null: bool, call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> tg_status) -> Option<T> {
    let mut out = MaybeUninit::<T>::uninit();
    // SAFETY: bytes of our own, which no reference looks at.
    unsafe { std::ptr::write_bytes(&raw mut out, UNTOUCHED, 1) };
    let status = call(if null { None } else { Some(&mut out) });
    if status == TG_STATUS_OK {
        assert!(!null, "there was no room for an answer");
        // SAFETY: the call says so, and what it left out has been filled above.
        return Some(unsafe { out.assume_init() });
    }
    failed(status);
    // SAFETY: all bytes were written above, if not by the call.
    let left = unsafe { std::slice::from_raw_parts(out.as_ptr().cast::<u8>(), size_of::<T>()) };
    assert!(left.iter().all(|&byte| byte == UNTOUCHED), "{status:?}, but something was written");
    None
}

/// A text that we own, read and freed.
fn text_told(null: bool, call: impl FnOnce(Option<&mut MaybeUninit<*mut c_char>>) -> tg_status) {
    if let Some(text) = told(null, call) {
        // SAFETY: a text of the library's, that ends with NUL; freed once.
        unsafe {
            assert!(CStr::from_ptr(text).to_str().is_ok());
            tg_string_free(text);
        }
    }
}

fn look_at(decision: &tg_decision) {
    assert_eq!(decision.version, TG_DECISION_VERSION);
    let flags = [decision.allowed, decision.warning, decision.alert, decision.notify];
    assert!(
        flags.iter().all(|&flag| flag <= 1) && usize::from(decision.limit_count) <= TG_MOST_LIMITS
    );
    let limits = &decision.limits[..decision.limit_count.into()];
    let texts = [decision.rule, decision.reason, decision.would_deny, decision.attach];
    for text in texts.into_iter().chain(limits.iter().map(|limit| limit.name)) {
        // SAFETY: NULL, or a text of the limiter, which is not freed yet.
        assert!(text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok());
    }
}

/// What a program has made so far.
#[derive(Default)]
struct World {
    clock: Option<*mut tg_manual_clock>,
    limiters: Vec<*mut tg_limiter>,
    /// Rules, and the number of their limiter.
    rules: Vec<(usize, *const tg_rule)>,
    reservations: Vec<*mut tg_reservation>,
    permits: Vec<*mut tg_permit_handle>,
    decision: Option<(*const tg_rule, tg_decision)>,
}

/// One of those that there are, or NULL.
fn one<T>(handles: &[*mut T], input: &mut Input<'_>) -> Option<&'static T> {
    let which = usize::from(input.byte());
    // SAFETY: not freed before the program ends, or taken out of the list when it is.
    handles.get(which % (handles.len() + 1)).map(|handle| unsafe { &**handle })
}

fn boxed<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: made by the library as a box, and handed to its `_free` once.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}

impl World {
    fn clock(&self) -> Option<&'static tg_manual_clock> {
        // SAFETY: freed at the end only.
        self.clock.map(|clock| unsafe { &*clock })
    }

    fn rule(&self, input: &mut Input<'_>) -> Option<&'static tg_rule> {
        let which = usize::from(input.byte());
        let rules = &self.rules;
        // SAFETY: rules of a limiter that is freed are taken out of the list.
        rules
            .get(which % (rules.len() + usize::from(which > 0xf0)).max(1))
            .map(|rule| unsafe { &*rule.1 })
    }

    fn decided(&mut self, rule: Option<&tg_rule>, decision: Option<tg_decision>) {
        if let (Some(decision), Some(rule)) = (decision, rule) {
            look_at(&decision);
            self.decision = Some((rule, decision));
        }
    }

    fn make(&mut self, input: &mut Input<'_>) {
        if self.limiters.len() > 3 {
            return;
        }
        let store = input.text(&["memory", "memory:fuzz", "nonsense:", "file:/dev/null"]);
        let mut options = tg_options {
            version: TG_OPTIONS_VERSION,
            on_full: TG_ON_FULL_DEFAULT,
            store: store.get(),
            capacity: 4,
            clock: self.clock.unwrap_or(null_mut()),
            recreate: 0,
            group: 0,
            memory: 0,
        };
        match input.byte() {
            0xff => options.version = input.byte().into(),
            0xfe => options.on_full = input.byte().into(),
            0xfd => options.recreate = input.byte().into(),
            0xfc => options.group = input.byte().into(),
            0xfb => options.capacity = u64::MAX - input.number(),
            on_full => options.on_full = u32::from(on_full) % 4,
        }
        let (kind, null) = (input.byte(), input.rarely());
        let text = input.text(if kind < 100 { &LIMITS } else { &POLICIES });
        let options = Some(&options);
        let made = told(null, |out| {
            // SAFETY: texts that end with NUL or NULL, and lengths that are
            // theirs or that none has.
            unsafe {
                match kind {
                    0..100 => tg_limiter_new(text.get(), options, out),
                    100..240 => {
                        let len = text.0.as_ref().map_or(3, |text| text.count_bytes());
                        tg_limiter_from_policy(text.get().cast(), len, options, out)
                    }
                    240..250 => tg_limiter_from_policy(text.get().cast(), usize::MAX, options, out),
                    _ => tg_limiter_from_file(text.get(), options, out),
                }
            }
        });
        if let Some(limiter) = made {
            self.limiters.push(limiter);
            let name = if kind < 100 { c"default" } else { c"a" };
            self.get_rule(self.limiters.len() - 1, &Text(Some(name.into())), false);
        }
    }

    fn get_rule(&mut self, limiter: usize, name: &Text, null: bool) {
        // SAFETY: not freed while it is in the list.
        let handle = self.limiters.get(limiter).map(|limiter| unsafe { &**limiter });
        // SAFETY: a text that ends with NUL, or NULL.
        if let Some(rule) = told(null, |out| unsafe { tg_rule_get(handle, name.get(), out) }) {
            self.rules.push((limiter, rule));
        }
    }

    /// Frees the newest limiter, and forgets what was its.
    fn free_newest(&mut self) {
        if let Some(limiter) = self.limiters.pop() {
            let number = self.limiters.len();
            self.rules.retain(|(limiter, _)| *limiter != number);
            self.decision = None;
            tg_limiter_free(boxed(limiter));
        }
    }

    fn headers(&mut self, input: &mut Input<'_>) {
        let Some((rule, decision)) = &mut self.decision else { return };
        match input.byte() {
            0xf0 => decision.version = input.byte().into(),
            0xf1 => decision.limit_count = input.byte(),
            0xf2 => decision.retry_after_ms = input.number() as i64,
            0xf3 => decision.reset_after_ms = input.number() as i64,
            0xf4 => decision.at_ns = input.number(),
            0xf5 => (decision.limit, decision.remaining) = (i64::MIN, i64::MAX),
            _ => {}
        }
        let count = usize::from(decision.limit_count).min(TG_MOST_LIMITS);
        if decision.limits[..count].iter().any(|limit| limit.name as u64 == 0x5a5a_5a5a_5a5a_5a5a) {
            decision.limit_count = 0; // A count that C made up: there are no names behind it.
        }
        let (style, capacity) = (u32::from(input.byte() % 4), usize::from(input.byte()) * 4);
        // SAFETY: a rule that is not freed.
        let (rule, decision) = (Some(unsafe { &**rule }), Some(&*decision));
        written(input, capacity, |buffer, capacity, out| {
            // SAFETY: a buffer of that capacity.
            unsafe { tg_decision_headers(rule, decision, style, buffer, capacity, out) }
        });
    }
}

/// Calls with a buffer: at most its capacity is written, or nothing.
fn written(
    input: &mut Input<'_>,
    capacity: usize,
    call: impl FnOnce(*mut c_char, usize, Option<&mut MaybeUninit<usize>>) -> tg_status,
) {
    let mut buffer = vec![UNTOUCHED as c_char; capacity];
    let start = if input.rarely() { null_mut() } else { buffer.as_mut_ptr() };
    let length = told(input.rarely(), |out| call(start, capacity, out));
    match length {
        Some(length) if capacity > 0 => {
            assert!(length < capacity && buffer[length] == 0);
            assert!(buffer[length + 1..].iter().all(|&byte| byte == UNTOUCHED as c_char));
        }
        Some(_) => {}
        None => assert!(buffer.iter().all(|&byte| byte == UNTOUCHED as c_char)),
    }
}

/// The next call of the program.
fn call(world: &mut World, input: &mut Input<'_>) {
    let which = input.byte();
    let (rule, key) = (world.rule(input), AnyKey::read(input));
    let (key, null) = (key.get(), input.rarely());
    // SAFETY of all calls here: handles that are not freed, keys and texts that are as they say (or
    // have a length that no object has), and room for every answer.
    unsafe {
        match which % 60 {
            0..=2 => world.make(input),
            3 => {
                let (limiter, name) = (input.byte(), input.text(&["default", "a", "b", "nobody"]));
                world.get_rule(usize::from(limiter % 5), &name, null);
            }
            4 => world.free_newest(),
            5 => done(tg_limiter_close(one(&world.limiters, input))),
            6 => done(tg_reload(one(&world.limiters, input))),
            7 => text_told(null, |out| tg_metrics(one(&world.limiters, input), out)),
            8 => {
                text_told(null, |out| tg_events(one(&world.limiters, input), std::ptr::null(), out))
            }
            9 => text_told(null, |out| tg_audit(one(&world.limiters, input), out)),
            10..=15 => {
                let key = key.map_or(of("a"), |key| key.bytes);
                answered(tg_allow(rule, key.data, key.len));
            }
            16 => {
                let keys: Vec<tg_bytes> = (0..input.byte() % 40).map(|_| bytes(input)).collect();
                let mut mask = vec![UNTOUCHED; keys.len()];
                let start = if null { null_mut() } else { mask.as_mut_ptr() };
                let status = tg_allow_many(rule, keys.as_ptr(), keys.len(), start);
                done(status);
                let answers =
                    |&byte: &u8| if status == TG_STATUS_OK { byte <= 1 } else { byte == UNTOUCHED };
                assert!(mask.iter().all(answers));
            }
            17..=20 => {
                let cost = input.number();
                let decision = told(null, |out| tg_hit(rule, key, cost, out));
                world.decided(rule, decision);
            }
            21 => {
                let decision = told(null, |out| tg_check(rule, key, input.number(), out));
                world.decided(rule, decision);
            }
            22 => {
                let decision = told(null, |out| tg_peek(rule, key, input.number(), out));
                world.decided(rule, decision);
            }
            23 => drop(told(null, |out| tg_record(rule, key, input.number(), out))),
            24 => done(tg_refund(rule, key, input.number())),
            25 => drop(told(null, |out| tg_spend(rule, key, input.number(), out))),
            26 => drop(told(null, |out| tg_budget(rule, key, out))),
            27 => answered(tg_is_limited(rule, key)),
            28 => drop(told(null, |out| tg_stats(rule, key, out))),
            29 => done(tg_reset(rule, key)),
            30 => done(tg_reset_all(rule)),
            31 => drop(told(null, |out| tg_prune(rule, out))),
            32 => drop(told(null, |out| tg_len(rule, out))),
            33 => done(tg_set_override(rule, key, input.text(&JSON).get())),
            34 => {
                let (matching, limits) = (input.text(&JSON), input.text(&JSON));
                done(tg_set_override_match(rule, matching.get(), limits.get()));
            }
            35 => answered(tg_clear_override(rule, key)),
            36 => answered(tg_clear_override_match(rule, input.text(&JSON).get())),
            37 => text_told(null, |out| tg_overrides(rule, out)),
            38 => done(tg_set_default(rule, input.text(&JSON).get())),
            39 => done(tg_add_exempt(rule, input.text(&JSON).get())),
            40 => answered(tg_remove_exempt(rule, input.text(&JSON).get())),
            41 => done(tg_set_exempts(rule, input.text(&JSON).get())),
            42 => text_told(null, |out| tg_exempts(rule, out)),
            43 => hold(world, rule, key, input),
            44 => take_permit(world, rule, key),
            45 => answered(tg_settle(one(&world.reservations, input), input.number())),
            46 => answered(tg_cancel(one(&world.reservations, input))),
            47 => answered(tg_release(one(&world.permits, input))),
            48 => answered(tg_renew(one(&world.permits, input))),
            49 => tg_reservation_free(world.reservations.pop().and_then(boxed)),
            50 => tg_permit_free(world.permits.pop().and_then(boxed)),
            51 => {
                let step = input.number().saturating_mul(input.byte().into());
                done(tg_manual_clock_advance(world.clock(), step));
            }
            52 => done(tg_manual_clock_set(world.clock(), input.number())),
            53 => done(tg_manual_clock_set_wall(world.clock(), input.number())),
            54 => drop(told(null, |out| tg_manual_clock_now(world.clock(), out))),
            55 => {
                let (capacity, prefix) = (usize::from(input.byte() % 70), input.number() as u32);
                let address = input.text(&["10.0.0.1", "2001:db8::1", "::ffff:1.2.3.4", "here"]);
                written(input, capacity, |buffer, capacity, out| {
                    tg_ip_key(address.get(), prefix.wrapping_mul(11), buffer, capacity, out)
                });
            }
            56 => world.headers(input),
            57 => text_told(null, |out| tg_why(rule, key, input.number(), out)),
            58 => by_bytes(rule, key, input),
            _ => change(world, rule, key, input),
        }
    }
}

/// A call whose key is bytes. If it fails, its error says what the last error of the thread does.
///
/// # Safety
/// As `call`.
unsafe fn by_bytes(rule: Option<&tg_rule>, key: Option<&tg_key>, input: &mut Input<'_>) {
    let (which, null, cost) = (input.byte() % 8, input.rarely(), input.number());
    let tg_bytes { data, len } = key.map_or(of("a"), |key| key.bytes);
    let lens = [input.number() as usize % 9, input.byte().into()];
    let mut mask = [UNTOUCHED; 2];
    let mut error = MaybeUninit::<tg_error>::zeroed();
    let to = Some(&mut error);
    // SAFETY: the caller's word.
    unsafe {
        match which {
            0 => drop(told(null, |out| tg_hit_bytes(rule, data, len, cost, out, to))),
            1 => drop(told(null, |out| tg_record_bytes(rule, data, len, cost, out, to))),
            2 => drop(told(null, |out| tg_spend_bytes(rule, data, len, cost, out, to))),
            3 => drop(told(null, |out| tg_stats_bytes(rule, data, len, out, to))),
            4 => text_told(null, |out| tg_why_bytes(rule, data, len, cost, out, to)),
            5 => answered(tg_is_limited_bytes(rule, data, len, to)),
            6 => done(tg_reset_bytes(rule, data, len, to)),
            _ => {
                let (lens, mask) = (lens.as_ptr(), mask.as_mut_ptr());
                done(tg_allow_many_bytes(rule, data, len, lens, 2, mask, to));
            }
        }
        let error = error.assume_init();
        if error.status != 0 {
            let (ours, last) =
                (CStr::from_ptr(error.text.as_ptr()), CStr::from_ptr(tg_last_error()));
            assert!(last.to_bytes().starts_with(ours.to_bytes()) && !ours.is_empty());
        }
    }
}

/// A run-time change with options, or a look at those that there are.
///
/// # Safety
/// As `call`.
unsafe fn change(
    world: &World,
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    input: &mut Input<'_>,
) {
    let (which, null) = (input.byte(), input.rarely());
    let (by, reason) = (input.text(&["ops", ""]), input.text(&["a trial", ""]));
    let mut options = tg_change_options {
        version: TG_CHANGE_OPTIONS_VERSION,
        reserved: 0,
        for_ms: input.number(),
        by: by.get(),
        reason: reason.get(),
    };
    match input.byte() {
        0xff => options.version = input.byte().into(),
        0xfe => options.reserved = input.byte().into(),
        _ => {}
    }
    let options = (!input.rarely()).then_some(&options);
    let (one_text, other) = (input.text(&JSON), input.text(&JSON));
    let mode = input.text(&["enforce", "shadow", "off", "loud"]);
    let (json, limits) = (one_text.get(), other.get());
    // SAFETY: the caller's word; texts end with NUL, or are NULL.
    let with_number = |out: Option<&mut MaybeUninit<u64>>| unsafe {
        match which % 15 {
            0 => tg_set_override_with(rule, key, limits, options, out),
            1 => tg_set_override_match_with(rule, json, limits, options, out),
            2 => tg_clear_override_with(rule, key, options, out),
            3 => tg_clear_override_match_with(rule, json, options, out),
            4 => tg_set_default_with(rule, limits, options, out),
            5 => tg_add_exempt_with(rule, json, options, out),
            6 => tg_remove_exempt_with(rule, json, options, out),
            7 => tg_set_exempts_with(rule, json, options, out),
            8 => tg_set_mode(rule, mode.get(), options, out),
            9 => tg_clear_mode(rule, options, out),
            _ => tg_block(rule, key, options, out),
        }
    };
    match which % 15 {
        11 => text_told(null, |out| tg_blocks(rule, out)),
        12 => {
            let (limiter, since) = (one(&world.limiters, input), input.number());
            text_told(null, |out| tg_changes(limiter, since, out));
        }
        // SAFETY: the caller's word.
        13 => answered(unsafe { tg_unblock(rule, key) }),
        // SAFETY: the caller's word.
        14 => answered(unsafe { tg_unblock_with(rule, key, options) }),
        // A number that is not asked for is no mistake.
        _ if null => done(with_number(None)),
        _ => drop(told(false, with_number)),
    }
}

/// A reservation. If one of its two answers has no room, neither is written.
///
/// # Safety
/// As `tg_reserve`.
unsafe fn hold(
    world: &mut World,
    rule: Option<&tg_rule>,
    key: Option<&tg_key>,
    input: &mut Input<'_>,
) {
    let (estimate, nulls) = (input.number(), input.byte());
    let mut handle = None;
    let decision = told(nulls == 0xff, |out| {
        let mut status = TG_STATUS_OK;
        handle = told(nulls == 0xfe, |to| {
            // SAFETY: the caller's word.
            status = unsafe { tg_reserve(rule, key, estimate, out, to) };
            status
        });
        status
    });
    if let (Some(decision), Some(handle)) = (decision, handle) {
        assert_eq!(handle.is_null(), decision.allowed == 0);
        world.reservations.extend((!handle.is_null()).then_some(handle));
        world.decided(rule, Some(decision));
    }
}

/// As [`hold`], a permit.
///
/// # Safety
/// As `tg_permit`.
unsafe fn take_permit(world: &mut World, rule: Option<&tg_rule>, key: Option<&tg_key>) {
    let mut handle = None;
    let decision = told(false, |out| {
        let mut status = TG_STATUS_OK;
        handle = told(false, |to| {
            // SAFETY: the caller's word.
            status = unsafe { tg_permit(rule, key, out, to) };
            status
        });
        status
    });
    if let (Some(decision), Some(handle)) = (decision, handle) {
        assert_eq!(handle.is_null(), decision.allowed == 0);
        world.permits.extend((!handle.is_null()).then_some(handle));
        world.decided(rule, Some(decision));
    }
}

fuzz_target!(|data: &[u8]| {
    let (mut input, mut world) = (Input(data), World::default());
    if input.byte() % 2 == 0 {
        let (start, wall) = (input.number(), input.number());
        world.clock = told(input.rarely(), |out| tg_manual_clock_new(start, wall, out));
    }
    world.make(&mut Input(input.take(CALL_BYTES)));
    while !input.0.is_empty() {
        call(&mut world, &mut Input(input.take(CALL_BYTES)));
    }
    // Limiters go first: what is held may outlive them, and so may their clock.
    while !world.limiters.is_empty() {
        world.free_newest();
    }
    world.reservations.into_iter().for_each(|handle| tg_reservation_free(boxed(handle)));
    world.permits.into_iter().for_each(|handle| tg_permit_free(boxed(handle)));
    tg_manual_clock_free(world.clock.and_then(boxed));
});
