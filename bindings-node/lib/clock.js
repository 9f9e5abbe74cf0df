'use strict';

const { native, typeError } = require('./native.js');

let handleOf;

/** A clock that only `advance` and `set` move. */
class ManualClock {
  #handle;

  constructor({ start = 0, wall = 0 } = {}) {
    this.#handle = native.clock(start, wall);
  }
  advance(ms) {
    native.advance(this.#handle, ms);
  }
  set(ms) {
    native.setClock(this.#handle, ms);
  }
  now() {
    return native.now(this.#handle);
  }
  setWall(ms) {
    native.setWall(this.#handle, ms);
  }

  static {
    handleOf = (clock) => {
      if (clock === undefined || clock === null) return undefined;
      if (typeof clock !== 'object' || !(#handle in clock))
        throw typeError('clock is a ManualClock');
      return clock.#handle;
    };
  }
}

module.exports = { ManualClock, handleOf };
