'use strict';

const { native, typeError } = require('./native.js');
const {
  UNDO,
  WAITING,
  blocking,
  change,
  takeApart,
  timeout,
  whileWaiting,
  withoutCost,
} = require('./call.js');
const { Decision } = require('./decision.js');
const { Permit, Reservation } = require('./held.js');
const { limitsJson, matchJson, matchesJson } = require('./policy.js');
const { budgetFields, recordedFields } = require('./scratch.js');
const { Spread } = require('./spread.js');
const { keyOf, readChanges } = require('./trail.js');
const { Line } = require('./wait.js');

function readRecorded() {
  const { used, limit, remaining, resetAfterMs } = recordedFields;
  return { used, limit, remaining, resetAfterMs };
}

function readBudget() {
  const { spent, remaining, over, overPerHit, resetAfterMs } = budgetFields;
  return { spent, remaining, over: over === 1, overPerHit: overPerHit === 1, resetAfterMs };
}

/** A key, or a match: what overrides are for. */
function target(keyOrMatch) {
  const isMatch =
    keyOrMatch !== null &&
    typeof keyOrMatch === 'object' &&
    !Array.isArray(keyOrMatch) &&
    !ArrayBuffer.isView(keyOrMatch);
  return isMatch ? [undefined, matchJson(keyOrMatch)] : [keyOrMatch, undefined];
}

class Rule {
  #native;
  #line;
  #spread;

  constructor(made) {
    if (made?.handle === undefined) throw typeError('a rule comes from limiter.rule(name)');
    this.#native = made;
    this.#spread = new Spread(made);
    this.#line = new Line(made);
  }

  get name() {
    return this.#native.name;
  }

  allow(key, options) {
    let answer;
    if (options !== undefined) answer = this.#spread.allow(key, options);
    else if (typeof key === 'object') answer = this.#spread.allow(key);
    else answer = this.#native.allow(key);
    return answer === undefined;
  }

  hit(key, cost = 1) {
    if (typeof key === 'object' || typeof cost !== 'number') this.#spread.hit(key, cost);
    // A cost that is not handed on need not be read.
    else if (cost === 1) this.#native.hit(key);
    else this.#native.hit(key, cost);
    return new Decision(this.#native);
  }

  check(key, cost = 1) {
    this.#spread.check(key, cost);
    return new Decision(this.#native);
  }

  peek(key, cost = 1) {
    this.#spread.peek(key, cost);
    return new Decision(this.#native);
  }

  record(key, cost = 1) {
    this.#spread.record(key, cost);
    return readRecorded();
  }

  refund(key, cost = 1) {
    const call = typeof cost === 'number' ? { cost } : takeApart(cost);
    native.refund(this.#native.handle, key, call.cost, call.max, call.attributes);
  }

  /** A cold operation by key that takes a number, or none. */
  #keyed(operation, key, number, options) {
    const { max, attributes } = withoutCost(options);
    return operation(this.#native.handle, key, number, max, attributes);
  }

  reserve(key, estimate, options) {
    const handle = this.#keyed(native.reserve, key, estimate, options);
    return new Reservation(handle, new Decision(this.#native));
  }

  permit(key, options) {
    const handle = this.#keyed(native.permit, key, undefined, options);
    return new Permit(handle, new Decision(this.#native), this.#line);
  }

  /** Whether it has a concurrent limit, so that `permit` takes the place of a hit. */
  hasPermits() {
    return native.hasPermits(this.#native.handle);
  }

  allowMany(keys) {
    return native.allowMany(this.#native.handle, keys);
  }

  hitMany(keys) {
    if (!Array.isArray(keys)) throw typeError('keys is not an array');
    return keys.map((key) => this.hit(key));
  }

  async acquire(key, options = {}) {
    const call =
      typeof options === 'number' ? { cost: options } : takeApart(options, ['cost', ...WAITING]);
    const make = () => new Decision(this.#native);
    return this.#line.join(key, call, timeout(options.timeoutMs), options.signal, 0, make);
  }

  async acquireReservation(key, estimate, options = {}) {
    if (typeof estimate !== 'number') throw typeError('estimate is not a number');
    const call = { ...whileWaiting(options), cost: estimate };
    const make = () => new Reservation(native.got(this.#native.handle), new Decision(this.#native));
    return this.#line.join(key, call, timeout(options.timeoutMs), options.signal, 1, make);
  }

  async acquirePermit(key, options = {}) {
    const call = whileWaiting(options);
    const make = () =>
      new Permit(native.got(this.#native.handle), new Decision(this.#native), this.#line);
    return this.#line.join(key, call, timeout(options.timeoutMs), options.signal, 2, make);
  }

  spend(key, amount, options) {
    this.#keyed(native.spend, key, amount, options);
    return readBudget();
  }

  budget(key, options) {
    this.#keyed(native.budget, key, undefined, options);
    return readBudget();
  }

  isLimited(key, options) {
    return this.#keyed(native.isLimited, key, undefined, options);
  }

  why(key, cost = 1) {
    const call = typeof cost === 'number' ? { cost } : takeApart(cost);
    const steps = JSON.parse(
      native.why(this.#native.handle, key, call.cost, call.max, call.attributes),
    );
    return { decision: new Decision(this.#native), steps };
  }

  stats(key, options) {
    const stats = JSON.parse(this.#keyed(native.stats, key, undefined, options));
    if (stats?.blocked) keyOf(stats.blocked);
    return stats;
  }

  reset(key, options) {
    this.#keyed(native.reset, key, undefined, options);
  }

  resetAll() {
    native.resetAll(this.#native.handle);
  }

  prune() {
    return native.prune(this.#native.handle);
  }

  get size() {
    return native.size(this.#native.handle);
  }

  metrics() {
    return JSON.parse(native.metrics(this.#native.handle));
  }

  events(since) {
    return JSON.parse(native.events(this.#native.handle, since));
  }

  setOverride(keyOrMatch, limits, options) {
    const how = change('setOverride', options);
    return native.setOverride(
      this.#native.handle,
      ...target(keyOrMatch),
      limitsJson(limits),
      ...how,
    );
  }

  clearOverride(keyOrMatch, options) {
    const how = change('clearOverride', options, UNDO);
    return native.clearOverride(this.#native.handle, ...target(keyOrMatch), ...how);
  }

  overrides() {
    return JSON.parse(native.overrides(this.#native.handle)).map(keyOf);
  }

  setDefault(limits, options) {
    const how = change('setDefault', options);
    return native.setDefault(this.#native.handle, limitsJson(limits), ...how);
  }

  addExempt(match, options) {
    const how = change('addExempt', options);
    return native.addExempt(this.#native.handle, matchJson(match), ...how);
  }

  removeExempt(match, options) {
    const how = change('removeExempt', options, UNDO);
    return native.removeExempt(this.#native.handle, matchJson(match), ...how);
  }

  setExempts(matches, options) {
    const how = change('setExempts', options);
    return native.setExempts(this.#native.handle, matchesJson(matches), ...how);
  }

  exempts() {
    return JSON.parse(native.exempts(this.#native.handle));
  }

  setMode(mode, options) {
    return native.setMode(this.#native.handle, mode, ...change('setMode', options));
  }

  clearMode(options) {
    return native.clearMode(this.#native.handle, ...change('clearMode', options, UNDO));
  }

  block(key, options) {
    return native.block(this.#native.handle, key, undefined, ...blocking(options));
  }

  unblock(key, options) {
    return native.unblock(this.#native.handle, key, undefined, ...blocking(options, UNDO));
  }

  blocks() {
    return JSON.parse(native.blocks(this.#native.handle)).map(keyOf);
  }

  changes(since) {
    return readChanges(native.changes(this.#native.handle, since ?? undefined));
  }

  /** For the limiter: whether this is still its rule of that name; and what closing does. */
  static isOf(rule, limiter) {
    return native.isSame(limiter, rule.#native.handle);
  }
  static wakeAll(rule) {
    rule.#line.wakeAll();
  }
}

module.exports = { Rule };
