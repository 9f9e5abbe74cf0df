//! Keys, costs and attributes, as JavaScript has them.

use std::mem::MaybeUninit;

use policy::bindings::OwnedCall;
use policy::{Call, Key, MOST_PARTS};

use crate::failure::Failure;
use crate::js::{Kind, Result, Scope, TextBuffer, Value};

/// The largest whole number that a JavaScript number holds exactly, with all below it.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// What Node writes in place of half a surrogate pair.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Runs `act` on a key: a text, bytes, a whole number, or a list of them.
#[inline(always)]
fn with_key<R>(
    scope: Scope<'_>,
    value: Value,
    act: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    let mut buffer: TextBuffer = [const { MaybeUninit::uninit() }; _];
    if let Some(text) = scope.short_ascii(value, &mut buffer) {
        return act(&Call::from(text));
    }
    with_any_key(scope, value, act)
}

/// As [`with_key`], on the bytes of a key that has one part.
pub(crate) fn with_plain_key(
    scope: Scope<'_>,
    value: Value,
    act: impl FnOnce(&[u8]),
) -> Result<()> {
    let mut buffer: TextBuffer = [const { MaybeUninit::uninit() }; _];
    if let Some(text) = scope.short_ascii(value, &mut buffer) {
        act(text);
        return Ok(());
    }
    match key_parts(scope, value)?.as_slice() {
        [one] => act(one),
        _ => return Err(Failure::argument("allowMany takes plain keys; use hitMany for parts")),
    }
    Ok(())
}

#[inline(never)]
pub(crate) fn with_any_key<R>(
    scope: Scope<'_>,
    value: Value,
    act: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    let parts = key_parts(scope, value)?;
    act(&Call::of(Key::parts(parts.iter().map(Vec::as_slice))))
}

/// The parts of any key; a plain one has one.
pub(crate) fn key_parts(scope: Scope<'_>, value: Value) -> Result<Vec<Vec<u8>>> {
    if let Some(text) = scope.long_text(value) {
        return Ok(vec![whole(scope, value, text)?]);
    }
    match other_part(scope, value)? {
        Some(part) => Ok(vec![part]),
        None => listed_parts(scope, value),
    }
}

/// A key or part that is no text: a whole number, which is its decimal digits, or bytes.
fn other_part(scope: Scope<'_>, value: Value) -> Result<Option<Vec<u8>>> {
    match scope.kind(value)? {
        Kind::Number => {
            let number = number_key(scope.double(value).unwrap_or(f64::NAN))?;
            Ok(Some(number.to_string().into_bytes()))
        }
        Kind::BigInt => big_key(scope, value).map(Some),
        Kind::Object => scope.bytes(value),
        _ => Err(not_a_key()),
    }
}

/// A bigint of 64 bits, with a sign or without.
fn big_key(scope: Scope<'_>, value: Value) -> Result<Vec<u8>> {
    let digits = scope.digits(value)?;
    let number = std::str::from_utf8(&digits).ok().and_then(|text| text.parse::<i128>().ok());
    match number.is_some_and(|n| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n)) {
        true => Ok(digits),
        false => {
            Err(Failure::range("a bigint as a key has 64 bits: from -2n ** 63n to 2n ** 64n - 1n"))
        }
    }
}

#[cold]
fn not_a_key() -> Failure {
    Failure::argument(
        "a key is a string, a Uint8Array, a whole number, a bigint or an array of such parts",
    )
}

fn number_key(number: f64) -> Result<i64> {
    match number.fract() == 0.0 && number.abs() <= LARGEST {
        true => Ok(number as i64),
        false => Err(Failure::range(format!("a number as a key is a safe integer, not {number}"))),
    }
}

fn listed_parts(scope: Scope<'_>, value: Value) -> Result<Vec<Vec<u8>>> {
    let len = scope.array_len(value)?.ok_or_else(not_a_key)?;
    // No rule has more parts; one more is enough for it to say so.
    let part = |index| listed_part(scope, scope.element(value, index)?, index);
    (0..len.min(MOST_PARTS as u32 + 1)).map(part).collect()
}

/// The part of a key that stands at this place of a list.
fn listed_part(scope: Scope<'_>, part: Value, index: u32) -> Result<Vec<u8>> {
    if let Some(text) = scope.long_text(part) {
        return whole(scope, part, text);
    }
    let none = || {
        let forms = "a string, a whole number, a bigint or a Uint8Array";
        Failure::argument(format!("part {index} of the key is not {forms}"))
    };
    match scope.kind(part)? {
        Kind::Number | Kind::BigInt | Kind::Object => other_part(scope, part)?.ok_or_else(none),
        _ => Err(none()),
    }
}

/// A text as it was converted, unless something was lost: half a surrogate pair has no UTF-8, and
/// two keys that differ in it would meet. It shows as U+FFFD, which a text may also have by right.
fn whole(scope: Scope<'_>, value: Value, text: Vec<u8>) -> Result<Vec<u8>> {
    if text.windows(REPLACEMENT.len()).any(|part| part == REPLACEMENT) {
        let units = scope.utf16(value)?;
        if char::decode_utf16(units).any(|unit| unit.is_err()) {
            return Err(Failure::argument(
                "a string with half of a surrogate pair is no text: others would become the same \
                 key; pass bytes instead",
            ));
        }
    }
    Ok(text)
}

/// A text, or none.
pub(crate) fn optional_text(scope: Scope<'_>, value: Value, what: &str) -> Result<Option<String>> {
    match scope.kind(value)? {
        Kind::Undefined | Kind::Null => Ok(None),
        _ => text(scope, value, what).map(Some),
    }
}

/// A text, whole and of any length.
pub(crate) fn text(scope: Scope<'_>, value: Value, what: &str) -> Result<String> {
    let text = scope.long_text(value);
    let text = text.ok_or_else(|| Failure::argument(format!("{what} is not a string")))?;
    let text = whole(scope, value, text)?;
    String::from_utf8(text).map_err(|_| Failure::argument(format!("{what} is not text")))
}

/// A whole number that is not negative. None if it is undefined.
#[inline]
pub(crate) fn count(scope: Scope<'_>, value: Value, what: &str) -> Result<Option<u64>> {
    match scope.double(value) {
        Some(number) if number.fract() == 0.0 && (0.0..=LARGEST).contains(&number) => {
            Ok(Some(number as u64))
        }
        found => no_count(scope, value, what, found),
    }
}

#[cold]
fn no_count(scope: Scope<'_>, value: Value, what: &str, found: Option<f64>) -> Result<Option<u64>> {
    match (found, scope.kind(value)?) {
        (Some(number), _) => {
            Err(Failure::range(format!("{what} is a whole number from 0 on, not {number}")))
        }
        (None, Kind::Undefined) => Ok(None),
        (None, _) => Err(Failure::argument(format!("{what} is not a number"))),
    }
}

/// Attributes: a flat list of names and values.
fn attributes(scope: Scope<'_>, value: Value) -> Result<Vec<String>> {
    let len = match value.is_null() {
        true => 0,
        false => scope.array_len(value)?.unwrap_or(0),
    };
    (0..len).map(|index| text(scope, scope.element(value, index)?, "an attribute")).collect()
}

/// Runs `act` on a call: a key, and perhaps attributes and a `max` of its own. A number in place of
/// the attributes says that the call has neither.
#[inline(always)]
pub(crate) fn with_call<R>(
    scope: Scope<'_>,
    [key, max, attributes]: [Value; 3],
    act: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    if attributes.is_null() || scope.double(attributes).is_some() {
        return with_key(scope, key, act);
    }
    with_all(scope, [key, max, attributes], act)
}

#[inline(never)]
fn with_all<R>(
    scope: Scope<'_>,
    [key, max, list]: [Value; 3],
    act: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    owned_call(scope, [key, max, list])?.with(|call| act(&call))
}

/// A call that outlives the arguments: one that waits.
pub(crate) fn owned_call(scope: Scope<'_>, [key, max, list]: [Value; 3]) -> Result<OwnedCall> {
    let mut texts = attributes(scope, list)?.into_iter();
    let attributes = std::iter::from_fn(|| texts.next().zip(texts.next())).collect();
    Ok(OwnedCall::new(key_parts(scope, key)?, attributes, count(scope, max, "max")?))
}

/// The most texts that a call has as arguments of their own. Reading one from a list costs more
/// than reading the text itself.
pub(crate) const MOST_TEXTS: usize = 6;

/// What the texts of a call are. `lib/spread.js` makes the number that says so.
#[derive(Clone, Copy)]
pub(crate) struct CallShape {
    /// How many parts of a listed key come first; none for a key that is no list.
    parts: usize,
    /// Whether the call has attributes. The values of those that the rule reads come last.
    pub(crate) has_attributes: bool,
    /// Whether it has a `max` of its own.
    has_max: bool,
}

impl CallShape {
    const PARTS: u32 = 15;
    const ATTRIBUTES: u32 = 16;
    const MAX: u32 = 32;

    pub(crate) fn read(scope: Scope<'_>, value: Value) -> CallShape {
        let bits = scope.double(value).unwrap_or_default() as u32;
        CallShape {
            parts: (bits & CallShape::PARTS) as usize,
            has_attributes: bits & CallShape::ATTRIBUTES != 0,
            has_max: bits & CallShape::MAX != 0,
        }
    }
}

/// Runs `act` on a call whose texts are arguments of their own. The key comes first, then the
/// values of the attributes with these names.
#[inline(always)]
pub(crate) fn with_spread<R>(
    scope: Scope<'_>,
    (shape, max): (CallShape, Value),
    texts: [Value; MOST_TEXTS],
    names: &[String],
    act: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    let keys = shape.parts.max(1);
    let mut buffers: [TextBuffer; MOST_TEXTS] = [const { [const { MaybeUninit::uninit() }; _] }; _];
    let mut long: [Vec<u8>; MOST_TEXTS] = [const { Vec::new() }; _];
    let mut read: [Option<&[u8]>; MOST_TEXTS] = [None; _];
    let places = buffers.iter_mut().zip(&mut long).zip(&mut read);
    for (index, ((buffer, long), read)) in places.enumerate().take(keys + names.len()) {
        let value = texts[index];
        if let Some(short) = scope.short_ascii(value, buffer) {
            *read = Some(short);
        } else if let Some(other) = other_text(scope, value, index, shape)? {
            *long = other;
            *read = Some(long);
        }
    }
    let (parts, values) = read.split_at(keys.min(MOST_TEXTS));
    let key = match shape.parts {
        0 => Key::from(parts[0].unwrap_or_default()),
        _ => Key::parts(parts.iter().map(|part| part.unwrap_or_default())),
    };
    let mut attributes = [("", ""); MOST_TEXTS];
    let mut given = 0;
    for (name, value) in names.iter().zip(values) {
        let Some(value) = value else { continue };
        let value = std::str::from_utf8(value).map_err(|_| Failure::mistake("no text"))?;
        attributes[given] = (name, value);
        given += 1;
    }
    let call = Call::of(key).with(&attributes[..given]);
    let max = if shape.has_max { count(scope, max, "max")? } else { None };
    match max {
        Some(max) => act(&call.max(max)),
        None => act(&call),
    }
}

/// A text that is long or not in ASCII, or a part that is no text. None if there is no value.
#[inline(never)]
fn other_text(
    scope: Scope<'_>,
    value: Value,
    index: usize,
    shape: CallShape,
) -> Result<Option<Vec<u8>>> {
    if index < shape.parts {
        return listed_part(scope, value, index as u32).map(Some);
    }
    if index > 0 {
        return Ok(optional_text(scope, value, "an attribute")?.map(String::into_bytes));
    }
    // A list comes as its parts.
    let Some(text) = scope.long_text(value) else {
        return other_part(scope, value)?.ok_or_else(not_a_key).map(Some);
    };
    whole(scope, value, text).map(Some)
}
