'use strict';
// The answer to a hit.

const { native } = require('./native.js');
const { copyFacts, places } = require('./facts.js');
const { headersOf } = require('./headers.js');
const { decisionFields: fields, flagBits } = require('./scratch.js');

const { EACH, HEAD } = places;

const { texts } = native;
const { allowed: ALLOWED, warning: WARNING, alert: ALERT, notify: NOTIFY } = flagBits;

const text = (number) => (number < 0 ? null : texts[number]);
const orNull = (number) => (number < 0 ? null : number);

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
    return headersOf(this, this.#facts, this.#handle, style);
  }
}

module.exports = { Decision };
