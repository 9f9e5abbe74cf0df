'use strict';
// The answer to a hit, read from the board (see src/decision.rs for what lies where).

const { native } = require('./native.js');

const { board, texts } = native;
const HEAD = 11;
const EACH = 6;

const text = (number) => (number < 0 ? null : texts[number]);
const orNull = (number) => (number < 0 ? null : number);

/** What headers and limits are made of: the reason, when it was made, and how each limit was left. */
function facts() {
  if (board[10] === 1) {
    return [board[1], board[8], board[9], board[11], board[12], board[13], board[14], board[15], board[16]];
  }
  const all = [board[1], board[8], board[9]];
  for (let i = HEAD, end = HEAD + EACH * board[10]; i < end; i += EACH) {
    all.push(board[i], board[i + 1], board[i + 2], board[i + 3], board[i + 4], board[i + 5]);
  }
  return all;
}

class Decision {
  #of;
  #facts;

  /** Reads the decision that was just written. */
  constructor(rule) {
    const flags = board[0];
    this.allowed = (flags & 1) !== 0;
    this.rule = rule.name;
    this.reason = text(board[1]);
    this.limit = orNull(board[4]);
    this.remaining = orNull(board[5]);
    this.retryAfterMs = orNull(board[6]);
    this.resetAfterMs = board[7];
    this.warning = (flags & 2) !== 0;
    this.alert = (flags & 4) !== 0;
    this.notify = (flags & 8) !== 0;
    this.wouldDeny = text(board[2]);
    this.attach = board[3] < 0 ? null : JSON.parse(texts[board[3]]);
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

  /** Puts the board back as it was. By single numbers: to spread them costs more than the call. */
  #write() {
    const [reason, high, low] = this.#facts;
    board[0] = this.allowed ? 1 : 0;
    board[1] = reason;
    board[4] = this.limit ?? -1;
    board[5] = this.remaining ?? -1;
    board[6] = this.retryAfterMs ?? -1;
    board[7] = this.resetAfterMs;
    board[8] = high;
    board[9] = low;
    board[10] = (this.#facts.length - 3) / EACH;
    for (let i = 3; i < this.#facts.length; i++) board[HEAD + i - 3] = this.#facts[i];
  }
}

module.exports = { Decision };
