'use strict';

// A store for express-rate-limit: one count for all workers and processes that name the same file.
//
// That library counts every hit in a window that starts with the first one, and compares the count
// itself. So the limit is `fixed` and out of reach, and the count is what `record` returns.

const { Limiter } = require('../index.js');

const OUT_OF_REACH = 1_000_000_000;

class TidegateStore {
  constructor({ store = 'memory', prefix = 'express-rate-limit', ...options } = {}) {
    this.prefix = prefix;
    /** Whether no other instance sees these counts. */
    this.localKeys = store === 'memory';
    this.options = { ...options, store };
  }

  /** Called by the library. The prefix names the rule, so each has a table of its own. */
  init({ windowMs }) {
    const hits = { max: OUT_OF_REACH, per: `${Math.ceil(windowMs)}ms`, algorithm: 'fixed' };
    this.limiter = Limiter.fromPolicy(
      { version: 1, rules: { [this.prefix]: { limits: { hits } } } },
      this.options,
    );
    this.rule = this.limiter.rule(this.prefix);
  }

  increment(key) {
    return info(this.rule.record(key));
  }

  decrement(key) {
    this.rule.refund(key);
  }

  get(key) {
    const stats = this.rule.stats(key);
    return stats ? info(stats.limits.hits) : undefined;
  }

  resetKey(key) {
    this.rule.reset(key);
  }

  resetAll() {
    this.rule.resetAll();
  }

  shutdown() {
    this.limiter.close();
  }
}

const info = ({ used, resetAfterMs }) => ({
  totalHits: used,
  resetTime: new Date(Date.now() + resetAfterMs),
});

module.exports = { TidegateStore };
