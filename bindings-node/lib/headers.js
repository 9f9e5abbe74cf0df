'use strict';
// Decisions as HTTP header fields.
//
// The Rust library writes the same fields (policy/src/decision/headers.rs), and all surfaces replay
// the same vectors. JavaScript writes them itself, because to hand over texts takes longer than to
// write them.

const { native, rangeError, typeError } = require('./native.js');
const { places } = require('./facts.js');
const { datedFields: dated, decisionFields: fields } = require('./scratch.js');

const { texts } = native;
const { REASON, AT_HIGH, AT_LOW, HEAD, EACH } = places;
const { NAME, MAX, WINDOW, REMAINING, MORE_AFTER } = places;
const STYLES = ['both', 'legacy', 'ietf'];
/** Reasons of a call that was not counted. No limit has such a name. */
const UNCOUNTED = ['exempt', 'off'];
/** A key that waits for one of these has nothing left, whatever its limits say. */
const WAITING = ['blocked', 'cooldown', 'backoff', 'budget'];

const secondsUp = (ms) => Math.ceil(ms / 1000);

/** What stays the same of a limit's items, by the number of its name. */
const fixedTexts = [];
function fixedOf(name) {
  if (fixedTexts[name] === undefined) {
    const quoted = `"${texts[name].replace(/[\\"]/g, '\\$&')}"`;
    fixedTexts[name] = { quoted, remaining: `${quoted};r=`, max: -1, window: -1, policy: '' };
  }
  return fixedTexts[name];
}

/** Names of fields, by their number. V8 finds a name that was a key already at once. */
const fieldNames = [];
function fieldName(number) {
  return (fieldNames[number] ??= Object.keys({ [texts[number]]: '' })[0]);
}

function policyItem(facts, at) {
  const [max, window] = [facts[at + MAX], facts[at + WINDOW]];
  const fixed = fixedOf(facts[at + NAME]);
  if (fixed.max !== max || fixed.window !== window) {
    const unit = window === 0 ? 'qu="concurrent-requests"' : `w=${window}`;
    Object.assign(fixed, { max, window, policy: `${fixed.quoted};q=${max};${unit}` });
  }
  return fixed.policy;
}

function limitItem(facts, at, remaining, afterMs) {
  const item = fixedOf(facts[at + NAME]).remaining + remaining;
  return afterMs === null || afterMs < 0 ? item : `${item};t=${secondsUp(afterMs)}`;
}

/** The fields of `RateLimit-Policy` and `RateLimit`. */
function addItems(headers, facts, reason, retryAfterMs) {
  const waits = WAITING.includes(reason);
  let [policy, left, between] = ['', '', ''];
  for (let at = HEAD; at < facts.length; at += EACH) {
    policy += between + policyItem(facts, at);
    left +=
      between +
      (waits
        ? limitItem(facts, at, 0, retryAfterMs)
        : limitItem(facts, at, facts[at + REMAINING], facts[at + MORE_AFTER]));
    between = ', ';
  }
  headers['RateLimit-Policy'] = policy;
  headers.RateLimit = left;
}

/** The fields whose names the policy gives. Only the native part knows these, and the date. */
function addLegacy(headers, decision, facts, handle) {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision;
  const afterMs = allowed ? resetAfterMs : retryAfterMs;
  fields.atHigh = facts[AT_HIGH];
  fields.atLow = facts[AT_LOW];
  fields.resetAfterMs = afterMs ?? 0;
  native.date(handle);
  if (limit !== null) headers[fieldName(dated.limitName)] = `${limit}`;
  if (remaining !== null) headers[fieldName(dated.remainingName)] = `${remaining}`;
  if (afterMs !== null) headers[fieldName(dated.resetName)] = `${dated.resetAt}`;
}

/** The header fields of a decision, in the order in which they are best sent. */
function headersOf(decision, facts, handle, style) {
  if (typeof style !== 'string') throw typeError('the style of headers is not a string');
  if (!STYLES.includes(style))
    throw rangeError(`the style of headers is legacy, ietf or both, not ${style}`);
  const headers = {};
  const reason = facts[REASON] < 0 ? null : texts[facts[REASON]];
  if (UNCOUNTED.includes(reason)) return headers;
  if (style !== 'ietf') addLegacy(headers, decision, facts, handle);
  if (style !== 'legacy') addItems(headers, facts, reason, decision.retryAfterMs);
  if (!decision.allowed && decision.retryAfterMs !== null)
    headers['Retry-After'] = `${Math.max(secondsUp(decision.retryAfterMs), 1)}`;
  return headers;
}

module.exports = { headersOf };
