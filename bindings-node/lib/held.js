'use strict';
// What a caller holds on to after a hit. JavaScript has no falsy objects: ask `.decision.allowed`.

const { native } = require('./native.js');

// Node has the symbol from 20.5 on. Node 20.0 to 20.4 use the registered one themselves.
const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');

/** A slot of a concurrent limit. */
class Permit {
  #handle;
  #line;

  /** `line`: the calls that may wait for the slot. */
  constructor(handle, decision, line) {
    this.#handle = handle;
    this.#line = line;
    this.decision = decision;
  }
  get allowed() {
    return this.decision.allowed;
  }
  get held() {
    return native.isHeld(this.#handle);
  }
  release() {
    const released = native.release(this.#handle);
    this.#line.nudge();
    return released;
  }
  renew() {
    return native.renew(this.#handle);
  }
  [dispose]() {
    this.release();
  }
}

/** An estimate that was spent, to be settled with the true cost. */
class Reservation {
  #handle;

  constructor(handle, decision) {
    this.#handle = handle;
    this.decision = decision;
  }
  get allowed() {
    return this.decision.allowed;
  }
  settle(actual) {
    return native.settle(this.#handle, actual);
  }
  cancel() {
    return native.cancel(this.#handle);
  }
  /** As when it is dropped: the estimate stays spent. Settle or cancel before. */
  [dispose]() {}
}

module.exports = { Permit, Reservation };
