'use strict';

const { builtin } = require('./builtin.js');
const { native, typeError } = require('./native.js');
const { handleOf } = require('./clock.js');
const { checkOptions, json, limiterJson, ruleJson } = require('./policy.js');
const { Rule } = require('./rule.js');
const { readChanges } = require('./trail.js');

const pathOf = (url) => builtin('node:url', () => require('node:url')).fileURLToPath(url);

/** Marks our own constructors' calls, unlike users'. */
const MADE = Symbol('made');

class Limiter {
  #handle;
  #rules = new Map();
  #main = null;

  constructor(limits, options = {}) {
    if (limits === MADE) {
      this.#handle = options;
      return;
    }
    if (typeof limits !== 'string' && (limits === null || typeof limits !== 'object')) {
      throw typeError('limits are a text such as "20/min", an array of them, or a map by names');
    }
    const { store, clock, recreate, memory, group, ...rule } = checkOptions(options);
    if (Object.hasOwn(rule, 'limits'))
      throw typeError('limits are the first argument, not an option');
    const own = limiterJson({ store, recreate, memory, group });
    this.#handle = native.fromRule(ruleJson({ ...rule, limits }), own, handleOf(clock));
  }

  static fromPolicy(policy, options = {}) {
    const { clock, ...rest } = checkOptions(options);
    return new Limiter(
      MADE,
      native.fromPolicy(json(policy, 'the policy'), limiterJson(rest), handleOf(clock)),
    );
  }

  static fromFile(path, options = {}) {
    const { clock, ...rest } = checkOptions(options);
    const name = path instanceof URL ? pathOf(path) : path;
    return new Limiter(MADE, native.fromFile(name, limiterJson(rest), handleOf(clock)));
  }

  static inspect(path) {
    return JSON.parse(native.inspect(path));
  }

  /** One object for each rule, so that all calls that wait on it share a timer. */
  rule(name) {
    const known = this.#rules.get(name);
    if (known !== undefined) return known;
    if (typeof name !== 'string') throw typeError("a rule's name is a string");
    return this.#named(native.ruleName(this.#handle, name));
  }

  #named(name) {
    let rule = this.#rules.get(name);
    if (rule === undefined) {
      rule = new Rule(native.rule(this.#handle, name));
      this.#rules.set(name, rule);
    }
    return rule;
  }

  /** The rule that operations on the limiter itself are about. */
  #mainRule() {
    return (this.#main ??= this.#named(native.ruleName(this.#handle)));
  }

  get rules() {
    return native.rules(this.#handle);
  }

  reload() {
    native.reload(this.#handle);
    for (const [name, rule] of this.#rules)
      if (!Rule.isOf(rule, this.#handle)) this.#rules.delete(name);
  }

  close() {
    native.close(this.#handle);
    for (const rule of this.#rules.values()) Rule.wakeAll(rule);
  }

  sync() {
    native.sync(this.#handle);
  }

  audit() {
    return JSON.parse(native.audit(this.#handle));
  }

  metrics() {
    return JSON.parse(native.allMetrics(this.#handle));
  }

  events(since) {
    return JSON.parse(native.allEvents(this.#handle, since));
  }

  changes(since) {
    return readChanges(native.allChanges(this.#handle, since ?? undefined));
  }

  allow(key, options) {
    return (this.#main ?? this.#mainRule()).allow(key, options);
  }

  hit(key, cost) {
    return (this.#main ?? this.#mainRule()).hit(key, cost);
  }

  get size() {
    return this.#mainRule().size;
  }

  static {
    // The other operations of a rule, on the main one.
    const own = new Set([...Object.getOwnPropertyNames(Limiter.prototype), 'name']);
    for (const name of Object.getOwnPropertyNames(Rule.prototype)) {
      if (own.has(name)) continue;
      const forward = {
        [name](...values) {
          return this.#mainRule()[name](...values);
        },
      }[name];
      Object.defineProperty(Limiter.prototype, name, {
        value: forward,
        configurable: true,
        writable: true,
      });
    }
  }
}

module.exports = { Limiter };
