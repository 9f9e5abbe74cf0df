'use strict';
// The calls that wait on one rule, and the one timer that they share.
//
// The native part says whose turn it is, and for how long to wait. The timer keeps the process
// alive while a call waits, and only then.

const { native, typeError } = require('./native.js');

const { scratch } = native;
/** Where the number of a call that has an answer is written. */
const NUMBER = scratch.length - 1;
/** The longest that a timer can run. */
const LONGEST = 2 ** 31 - 1;

class Line {
  #rule;
  #waiting = new Map();
  #timer = null;
  #due = Infinity;

  constructor(rule) {
    this.#rule = rule;
  }

  /**
   * What `make` makes of the answer, or a promise of it. `kind`: 0 a hit, 1 a reservation, 2 a
   * permit.
   */
  join(key, { cost, max, attributes }, timeoutMs, signal, kind, make) {
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw typeError('signal is an AbortSignal');
    }
    signal?.throwIfAborted();
    const number = native.join(this.#rule.handle, key, cost, max, attributes, timeoutMs, kind);
    if (number === 0) return make();
    return new Promise((resolve, reject) => {
      const abort = () => {
        native.leave(this.#rule.handle, number);
        this.#settle(number).reject(signal.reason);
        this.run();
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiting.set(number, { resolve, reject, abort, signal, make });
      this.#schedule();
    });
  }

  #settle(number) {
    const one = this.#waiting.get(number);
    this.#waiting.delete(number);
    one.signal?.removeEventListener('abort', one.abort);
    return one;
  }

  /** Has the calls that were woken take a step: a slot was released. */
  nudge() {
    if (this.#waiting.size > 0) this.run();
  }

  /** Hands out all answers that are there. */
  run() {
    for (;;) {
      let number = (scratch[NUMBER] = 0);
      try {
        number = native.next(this.#rule.handle);
        if (number === 0) break;
        const one = this.#settle(number);
        one.resolve(one.make());
      } catch (error) {
        this.#settle(scratch[NUMBER]).reject(error);
      }
    }
    this.#schedule();
  }

  /** Has every call take a step. */
  wakeAll() {
    if (this.#waiting.size === 0) return;
    native.wakeAll(this.#rule.handle);
    this.run();
  }

  #schedule() {
    const rest = this.#waiting.size === 0 ? -1 : native.rest(this.#rule.handle);
    const due = rest < 0 ? Infinity : performance.now() + rest;
    if (this.#timer !== null && this.#due <= due && due !== Infinity) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = due === Infinity ? null : setTimeout(() => this.#ring(), Math.min(rest, LONGEST));
  }

  #ring() {
    this.#timer = null;
    this.#due = Infinity;
    this.run();
  }
}

module.exports = { Line };
