'use strict';
// The answer to a hit, read from the scratch array (see src/decision.rs for what lies where).

const { native } = require('./native.js');

const { scratch, texts } = native;
const HEAD = 11;
const EACH = 6;

const text = (number) => (number < 0 ? null : texts[number]);
const orNull = (number) => (number < 0 ? null : number);

/** What headers and limits are made of: the reason, when it was made, and how each limit was left. */
function facts() {
  if (scratch[10] === 1) {
    return [scratch[1], scratch[8], scratch[9], scratch[11], scratch[12], scratch[13], scratch[14], scratch[15], scratch[16]];
  }
  const all = [scratch[1], scratch[8], scratch[9]];
  for (let i = HEAD, end = HEAD + EACH * scratch[10]; i < end; i += EACH) {
    all.push(scratch[i], scratch[i + 1], scratch[i + 2], scratch[i + 3], scratch[i + 4], scratch[i + 5]);
  }
  return all;
}

class Decision {
  #of;
  #facts;

  /** Reads the decision that was just written. */
  constructor(rule) {
    const flags = scratch[0];
    this.allowed = (flags & 1) !== 0;
    this.rule = rule.name;
    this.reason = text(scratch[1]);
    this.limit = orNull(scratch[4]);
    this.remaining = orNull(scratch[5]);
    this.retryAfterMs = orNull(scratch[6]);
    this.resetAfterMs = scratch[7];
    this.warning = (flags & 2) !== 0;
    this.alert = (flags & 4) !== 0;
    this.notify = (flags & 8) !== 0;
    this.wouldDeny = text(scratch[2]);
    this.attach = scratch[3] < 0 ? null : JSON.parse(texts[scratch[3]]);
    this.#of = rule.handle;
    this.#facts = facts();
  }

  /** Made when it is read, so that a hit pays nothing for it. */
  get limits() {
    const limits = [];
    for (let i = 3; i < this.#facts.length; i += EACH) {
      const [name, max, , remaining, resetAfterMs, more] = this.#facts.slice(i, i + EACH);
      limits.push({ name: text(name), max, remaining, resetAfterMs, moreAfterMs: orNull(more) });
    }
    return limits;
  }

  headers(style = 'both') {
    this.#write();
    const lines = native.headers(this.#of, style);
    const headers = {};
    if (lines === '') return headers;
    const fields = lines.split('\n');
    for (let i = 0; i < fields.length; i += 2) headers[fields[i]] = fields[i + 1];
    return headers;
  }

  /** Puts the scratch array back as it was. By single numbers: to spread them costs more than the call. */
  #write() {
    const [reason, high, low] = this.#facts;
    scratch[0] = this.allowed ? 1 : 0;
    scratch[1] = reason;
    scratch[4] = this.limit ?? -1;
    scratch[5] = this.remaining ?? -1;
    scratch[6] = this.retryAfterMs ?? -1;
    scratch[7] = this.resetAfterMs;
    scratch[8] = high;
    scratch[9] = low;
    scratch[10] = (this.#facts.length - 3) / EACH;
    for (let i = 3; i < this.#facts.length; i++) scratch[HEAD + i - 3] = this.#facts[i];
  }
}

module.exports = { Decision };
