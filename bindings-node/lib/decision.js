'use strict';
// The answer to a hit.

const { native } = require('./native.js');
const { decisionFields: fields, flagBits, limitFields } = require('./scratch.js');

const { texts } = native;
const { allowed: ALLOWED, warning: WARNING, alert: ALERT, notify: NOTIFY } = flagBits;

const text = (number) => (number < 0 ? null : texts[number]);
const orNull = (number) => (number < 0 ? null : number);

/** Where the limits start among the facts, and how many facts each has. */
const HEAD = 3;
const EACH = 6;

/**
 * Copies what headers and limits are made of, before the next call overwrites it. The copy is a
 * flat array of doubles: an object for each limit cost a `hit` 2 to 13 %.
 */
function copyFacts() {
  const { reason, atHigh, atLow, limits } = fields;
  if (limits === 1) {
    // A literal is of the right size at once.
    const { name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs } = limitFields[0];
    return [reason, atHigh, atLow, name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs];
  }
  const facts = [reason, atHigh, atLow];
  for (let i = 0; i < limits; i++) {
    const { name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs } = limitFields[i];
    facts.push(name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs);
  }
  return facts;
}

/** Puts the facts back, for the native part to read. */
function writeFacts(facts) {
  fields.reason = facts[0];
  fields.atHigh = facts[1];
  fields.atLow = facts[2];
  fields.limits = (facts.length - HEAD) / EACH;
  for (let i = 0; i < fields.limits; i++) {
    const [left, at] = [limitFields[i], HEAD + EACH * i];
    left.name = facts[at];
    left.max = facts[at + 1];
    left.windowSeconds = facts[at + 2];
    left.remaining = facts[at + 3];
    left.resetAfterMs = facts[at + 4];
    left.moreAfterMs = facts[at + 5];
  }
}

class Decision {
  #handle;
  #facts;

  /** Reads the decision that was just written. */
  constructor(rule) {
    const { flags } = fields;
    this.allowed = (flags & ALLOWED) !== 0;
    this.rule = rule.name;
    this.reason = text(fields.reason);
    this.limit = orNull(fields.limit);
    this.remaining = orNull(fields.remaining);
    this.retryAfterMs = orNull(fields.retryAfterMs);
    this.resetAfterMs = fields.resetAfterMs;
    this.warning = (flags & WARNING) !== 0;
    this.alert = (flags & ALERT) !== 0;
    this.notify = (flags & NOTIFY) !== 0;
    this.wouldDeny = text(fields.wouldDeny);
    this.attach = fields.attach < 0 ? null : JSON.parse(texts[fields.attach]);
    this.#handle = rule.handle;
    this.#facts = copyFacts();
  }

  /** The list is made when it is read, so that a hit does not pay for it. */
  get limits() {
    const limits = [];
    for (let i = HEAD; i < this.#facts.length; i += EACH) {
      const [name, max, , remaining, resetAfterMs, more] = this.#facts.slice(i, i + EACH);
      limits.push({ name: text(name), max, remaining, resetAfterMs, moreAfterMs: orNull(more) });
    }
    return limits;
  }

  headers(style = 'both') {
    this.#write();
    const lines = native.headers(this.#handle, style);
    const headers = {};
    if (lines === '') return headers;
    const list = lines.split('\n');
    for (let i = 0; i < list.length; i += 2) headers[list[i]] = list[i + 1];
    return headers;
  }

  /** Writes what the header fields are made of, for the native part to read. */
  #write() {
    writeFacts(this.#facts);
    fields.flags = this.allowed ? ALLOWED : 0;
    fields.limit = this.limit ?? -1;
    fields.remaining = this.remaining ?? -1;
    fields.retryAfterMs = this.retryAfterMs ?? -1;
    fields.resetAfterMs = this.resetAfterMs;
  }
}

module.exports = { Decision };
