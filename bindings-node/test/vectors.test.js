'use strict';
// The shared vectors: every surface gives these answers. See tests/vectors/README.md.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Limiter, ManualClock } = require('tidegate');

const FOLDER = path.join(__dirname, '../../tests/vectors');

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Fields of ours in the vectors' spelling; names of limits and headers are users' own. */
function spelt(value) {
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      if (name === 'limits') return [name, Object.fromEntries(Object.entries(one).map(([n, v]) => [n, spelt(v)]))];
      return [snake(name), name === 'headers' || name === 'attach' ? one : spelt(one)];
    }),
  );
}

function keyOf({ key = '' }) {
  if (Array.isArray(key)) return key.map((part) => keyOf({ key: part }));
  if (key === null || typeof key !== 'object') return key;
  if (key.hex !== undefined) return Buffer.from(key.hex, 'hex');
  // Node has no type for addresses: a key is the short text, which a URL writes.
  if (key.address !== undefined) return shortAddress(key.address);
  return BigInt(key.whole);
}

const shortAddress = (text) => (text.includes(':') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text);

class Run {
  held = new Map();

  constructor({ start_ms: start = 0, wall_ms: wall = 0, policy }) {
    this.clock = new ManualClock({ start, wall });
    this.limiter = Limiter.fromPolicy(policy, { clock: this.clock });
  }

  decided(decision, step) {
    return { ...spelt(decision), headers: decision.headers(step.style ?? 'both') };
  }

  step(step) {
    const rule = this.limiter.rule(step.rule ?? 'default');
    const key = keyOf(step);
    const options = { ...step.attributes, ...(step.max === undefined ? {} : { max: step.max }) };
    const priced = { ...options, cost: step.cost };
    const bare = Object.keys(options).length === 0;
    switch (step.op) {
      case 'hit':
      case 'check':
      case 'peek':
        return this.decided(rule[step.op](key, bare ? step.cost : priced), step);
      case 'allow':
        return bare ? rule.allow(key) : rule.allow(key, options);
      case 'is_limited':
        return rule.isLimited(key, options);
      case 'record':
        return spelt(rule.record(key, priced));
      case 'refund':
        return rule.refund(key, priced);
      case 'reset':
        return rule.reset(key, options);
      case 'reset_all':
        return rule.resetAll();
      case 'reserve':
      case 'permit': {
        const held = step.op === 'permit' ? rule.permit(key, options) : rule.reserve(key, step.cost ?? 1, options);
        this.held.set(step.id, held);
        assert.equal(held.allowed, held.decision.allowed);
        return this.decided(held.decision, step);
      }
      case 'settle':
        return this.held.get(step.id).settle(step.actual);
      case 'cancel':
        return this.held.get(step.id).cancel();
      case 'release':
        return { released: this.held.get(step.id).release() };
      case 'renew':
        return { renewed: this.held.get(step.id).renew() };
      case 'spend':
        return spelt(rule.spend(key, step.amount, options));
      case 'budget':
        return spelt(rule.budget(key, options));
      case 'stats':
        return spelt(rule.stats(key, options));
      case 'why': {
        const why = rule.why(key, { cost: step.cost ?? 1, ...options });
        const steps = why.steps.map(({ untilMs, ...rest }) => ({ ...rest, until_ms: untilMs }));
        return { decision: this.decided(why.decision, step), steps };
      }
      case 'set_override':
        return rule.setOverride(step.match ?? key, step.limits);
      case 'clear_override':
        return void rule.clearOverride(step.match ?? key);
      case 'set_default':
        return rule.setDefault(step.limits);
      case 'add_exempt':
        return rule.addExempt(step.match);
      case 'remove_exempt':
        return void rule.removeExempt(step.match);
      case 'set_wall':
        return this.clock.setWall(step.wall_ms);
      default:
        throw new assert.AssertionError({ message: `unknown operation ${step.op}` });
    }
  }
}

/** Only the fields given are compared, but headers and attach as a whole. */
function holds(expected, got, where) {
  const plain = expected === null || typeof expected !== 'object' || Array.isArray(expected);
  if (plain || got === null || typeof got !== 'object') {
    return assert.deepEqual(got ?? null, expected, where);
  }
  for (const [field, value] of Object.entries(expected)) {
    if (field === 'headers' || field === 'attach') assert.deepEqual({ ...got }[field], value, where);
    else holds(value, got[field], `${where} ${field}`);
  }
}

function replay(one) {
  if (one.policy_error) {
    assert.throws(
      () => new Run(one),
      (error) => {
        const lines = error.message.split('\n').map((line) => line.trim());
        for (const at of one.policy_error) assert(lines.some((line) => line.startsWith(at)), `no problem at ${at}: ${error}`);
        return error.code === 'policy' || error.code === 'memory' || error.code === 'store' || assert.fail(error.code);
      },
    );
    return 0;
  }
  const run = new Run(one);
  let steps = 0;
  for (const [index, step] of one.steps.entries()) {
    for (let i = 0; i < (step.repeat ?? 1); i++, steps++) {
      const where = `step ${index} ${JSON.stringify(step)}`;
      if (step.at_ms !== undefined) run.clock.set(step.at_ms);
      if (step.error !== undefined) {
        assert.throws(() => run.step(step), (error) => `${error.code} ${error.message}`.includes(step.error) || assert.fail(`${where}: ${error}`));
        continue;
      }
      const got = run.step(step);
      if (step.expect !== undefined) holds(step.expect, got, where);
    }
  }
  return steps;
}

let cases = 0;
for (const file of fs.readdirSync(FOLDER).filter((name) => name.endsWith('.json'))) {
  test(`the vectors of ${file}`, () => {
    for (const one of JSON.parse(fs.readFileSync(path.join(FOLDER, file), 'utf8')).cases) {
      try {
        replay(one);
      } catch (error) {
        error.message = `${one.name}: ${error.message}`;
        throw error;
      }
      cases++;
    }
  });
}
test('there were as many vectors as there should be', () => assert(cases > 700, `${cases}`));
