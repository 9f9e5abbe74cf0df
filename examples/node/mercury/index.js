'use strict';

// Mercury's `RateLimiter` on Tidegate. Its rule is `examples/policies/mercury.yaml`.

const path = require('node:path');
const { Limiter } = require('tidegate');

const POLICY = path.join(__dirname, '../../policies/mercury.yaml');

class RateLimiter {
  #limiter;
  #rule;
  #timer;

  /**
   * Without arguments: what MERCURY_RATE_LIMIT_PER_USER and MERCURY_RATE_LIMIT_WINDOW_MS say, or 10
   * in a minute.
   */
  constructor(maxRequests, windowMs, { clock } = {}) {
    this.#limiter = Limiter.fromFile(POLICY, { clock });
    this.#rule = this.#limiter.rule('messages');
    const max = maxRequests !== undefined && { max: maxRequests };
    const per = windowMs !== undefined && { per: `${windowMs}ms` };
    if (max || per) this.#rule.setDefault({ 'per-user': { ...max, ...per } });
  }

  /** Checks and records. `override` is a limit for this call, such as the group's own. */
  isAllowed(groupId, userId, override) {
    return this.#rule.hit([groupId, userId], override === undefined ? 1 : { max: override })
      .allowed;
  }

  /**
   * What a message of any type leads to: null if it may proceed, else the answer. By the policy,
   * commands always may, and ignored messages do not count.
   */
  route({ groupId, userId, type }) {
    const decision = this.#rule.hit([groupId, userId], { type });
    return decision.allowed ? null : decision.attach;
  }

  getRemaining(groupId, userId) {
    return this.#rule.peek([groupId, userId], 0).remaining;
  }

  startCleanup(intervalMs = 60_000) {
    this.stopCleanup();
    this.#timer = setInterval(() => this.cleanup(), intervalMs).unref();
  }

  stopCleanup() {
    clearInterval(this.#timer);
  }

  cleanup() {
    return this.#rule.prune();
  }

  clear() {
    this.#rule.resetAll();
  }

  get bucketCount() {
    return this.#rule.size;
  }
}

module.exports = { RateLimiter };
