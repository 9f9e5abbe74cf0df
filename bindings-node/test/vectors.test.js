'use strict';
// The shared vectors: every surface gives these answers. See tests/vectors/README.md.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Limiter, ManualClock } = require('tidegate');

const FOLDER = path.join(__dirname, '../../tests/vectors');

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Fields whose names and values are users' own. */
const VERBATIM = ['headers', 'attach', 'match', 'before', 'after'];
/** Fields of ours in the vectors' spelling; names of limits and headers are users' own. */
function spelt(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(spelt);
  if (Buffer.isBuffer(value)) return { hex: value.toString('hex') };
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      if (name === 'limits')
        return [name, Object.fromEntries(Object.entries(one).map(([n, v]) => [n, spelt(v)]))];
      return [snake(name), VERBATIM.includes(name) ? one : spelt(one)];
    }),
  );
}

/** What stood before or after a change: periods of limits are numbers here, texts in a policy. */
function policyLimits(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const field = ([name, one]) => [
    name,
    ['per', 'lease', 'cooldown'].includes(name) ? `${one}ms` : one,
  ];
  const limit = ([name, fields]) => [name, Object.fromEntries(Object.entries(fields).map(field))];
  return Object.fromEntries(Object.entries(value).map(limit));
}

function trail({ changes, next, missed }) {
  const limits = ({ before, after, ...rest }) => ({
    ...rest,
    before: policyLimits(before),
    after: policyLimits(after),
  });
  return { changes: spelt(changes.map(limits)), next, missed };
}

function keyOf({ key = '' }) {
  if (Array.isArray(key)) return key.map((part) => keyOf({ key: part }));
  if (key === null || typeof key !== 'object') return key;
  if (key.hex !== undefined) return Buffer.from(key.hex, 'hex');
  // Node has no type for addresses: a key is the short text, which a URL writes.
  if (key.address !== undefined) return shortAddress(key.address);
  return BigInt(key.whole);
}

const shortAddress = (text) =>
  text.includes(':') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;

/** With its own fields in the vectors' spelling, and not what is in them. */
const snakeFields = (one) =>
  Object.fromEntries(Object.entries(one).map(([name, value]) => [snake(name), value]));

class Run {
  held = new Map();

  constructor({ start_ms: start = 0, wall_ms: wall = 0, policy }) {
    this.clock = new ManualClock({ start, wall });
    this.limiter = Limiter.fromPolicy(policy, { clock: this.clock });
  }

  decided(decision, step) {
    const headers = decision.headers(step.style ?? 'both');
    return { ...spelt(decision), limits: spelt(decision.limits), headers };
  }

  step(step) {
    if (step.op === 'changes') return trail(this.limiter.changes(step.since));
    const rule = this.limiter.rule(step.rule ?? 'default');
    const key = keyOf(step);
    const options = { ...step.attributes, ...(step.max === undefined ? {} : { max: step.max }) };
    const priced = { ...options, cost: step.cost };
    const how = { forMs: step.for_ms, by: step.by, reason: step.reason };
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
        const held =
          step.op === 'permit'
            ? rule.permit(key, options)
            : rule.reserve(key, step.cost ?? 1, options);
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
        return { decision: this.decided(why.decision, step), steps: why.steps.map(snakeFields) };
      }
      case 'set_override':
        return { number: rule.setOverride(step.match ?? key, step.limits, how) };
      case 'clear_override':
        return { number: rule.clearOverride(step.match ?? key, how) };
      case 'set_default':
        return { number: rule.setDefault(step.limits, how) };
      case 'add_exempt':
        return { number: rule.addExempt(step.match, how) };
      case 'remove_exempt':
        return { number: rule.removeExempt(step.match, how) };
      case 'set_exempts':
        return { number: rule.setExempts(step.matches, how) };
      case 'set_mode':
        return { number: rule.setMode(step.mode, how) };
      case 'clear_mode':
        return { number: rule.clearMode(how) };
      case 'block':
        return { number: rule.block(key, { ...options, ...how }) };
      case 'unblock':
        return { unblocked: rule.unblock(key, { ...options, ...how }) };
      case 'blocks':
        return spelt(rule.blocks());
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
    if (field === 'headers' || field === 'attach')
      assert.deepEqual({ ...got }[field], value, where);
    else holds(value, got[field], `${where} ${field}`);
  }
}

function replay(one) {
  if (one.policy_error) {
    assert.throws(
      () => new Run(one),
      (error) => {
        const lines = error.message.split('\n').map((line) => line.trim());
        for (const at of one.policy_error)
          assert(
            lines.some((line) => line.startsWith(at)),
            `no problem at ${at}: ${error}`,
          );
        return (
          error.code === 'policy' ||
          error.code === 'memory' ||
          error.code === 'store' ||
          assert.fail(error.code)
        );
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
        // `forMs` is `for_ms` in the vectors.
        const said = ({ code, message }) => `${code} ${message} ${snake(message)}`;
        assert.throws(
          () => run.step(step),
          (error) => said(error).includes(step.error) || assert.fail(`${where}: ${error}`),
        );
        continue;
      }
      const got = run.step(step);
      if (step.expect !== undefined) holds(step.expect, got, where);
    }
  }
  return steps;
}

test('the steps of run-time changes are replayed', () => {
  const [wall, hour] = [1_700_000_000_000, 3_600_000];
  const change = (number, op, target, before, after, more) => {
    const none = { until_ms: null, by: null, reason: null };
    return { number, at_ms: wall, rule: 'default', op, target, before, after, ...none, ...more };
  };
  const block = { until_ms: wall + hour, by: 'ops', reason: 'spam' };
  const [bytes, staff] = [[{ hex: 'ff00' }], { role: ['staff'] }];
  const limits = { l: { max: 9, per: '1500ms' } };
  const steps = [
    { op: 'set_override', key: 'alice', limits, for_ms: hour, by: 'ops', expect: { number: 1 } },
    { op: 'clear_override', key: 'alice', reason: 'done', expect: { number: 2 } },
    { op: 'clear_override', key: 'alice', expect: { number: 0 } },
    { op: 'set_default', limits: { l: { max: 4 } }, expect: { number: 3 } },
    { op: 'add_exempt', match: { role: 'staff' }, expect: { number: 4 } },
    { op: 'remove_exempt', match: { role: 'staff' }, expect: { number: 5 } },
    { op: 'set_exempts', matches: [{ role: 'staff' }], expect: { number: 6 } },
    { op: 'set_mode', mode: 'shadow', expect: { number: 7 } },
    { op: 'clear_mode', expect: { number: 8 } },
    {
      op: 'block',
      key: { hex: 'ff00' },
      for_ms: hour,
      by: 'ops',
      reason: 'spam',
      expect: { number: 9 },
    },
    { op: 'blocks', expect: [{ key: bytes, ...block }] },
    { op: 'stats', key: { hex: 'ff00' }, expect: { blocked: block } },
    {
      op: 'hit',
      key: { hex: 'ff00' },
      expect: { reason: 'blocked', limit: null, remaining: 0, retry_after_ms: hour },
    },
    {
      op: 'hit',
      key: { hex: 'ff00' },
      attributes: { role: 'staff' },
      expect: { reason: 'exempt' },
    },
    { op: 'unblock', key: { hex: 'ff00' }, expect: { unblocked: true } },
    { op: 'unblock', key: { hex: 'ff00' }, expect: { unblocked: false } },
    { op: 'unblock', key: 'alice', for_ms: 1, error: 'for_' },
    { op: 'clear_mode', for_ms: 1, error: 'for_' },
    { op: 'set_mode', mode: 'shadow', for_ms: 0, error: 'range' },
    {
      op: 'changes',
      expect: {
        changes: [
          change(1, 'set_override', { key: ['alice'] }, null, limits, {
            until_ms: wall + hour,
            by: 'ops',
          }),
          change(2, 'clear_override', { key: ['alice'] }, limits, null, { reason: 'done' }),
          change(3, 'set_default', null, null, { l: { max: 4 } }),
          change(4, 'add_exempt', { match: staff }, false, true),
          change(5, 'remove_exempt', { match: staff }, true, false),
          change(6, 'set_exempts', null, [], [staff]),
          change(7, 'set_mode', null, null, 'shadow'),
          change(8, 'clear_mode', null, 'shadow', null),
          change(9, 'block', { key: bytes }, false, true, block),
          change(10, 'unblock', { key: bytes }, true, false),
        ],
        next: 10,
        missed: 0,
      },
    },
    {
      op: 'changes',
      since: 9,
      expect: { changes: [change(10, 'unblock', { key: bytes }, true, false)], next: 10 },
    },
  ];
  const policy = { version: 1, rules: { default: { limits: { l: '5/h' } } } };
  assert.equal(replay({ wall_ms: wall, policy, steps }), steps.length);
  // A wrong answer is noticed in each field that is given.
  for (const wrong of [{ number: 2 }, { number: null }]) {
    assert.throws(
      () => replay({ policy, steps: [{ ...steps[0], expect: wrong }] }),
      assert.AssertionError,
    );
  }
});

test('the limits of decisions are replayed, each as a whole', () => {
  const left = (name, max, remaining, reset, more) => {
    return { name, max, remaining, reset_after_ms: reset, more_after_ms: more };
  };
  const policy = {
    version: 1,
    rules: { default: { limits: { l: '2/min', never: { max: 0, per: '1m' } } } },
  };
  const limits = [left('l', 2, 2, 0, 0), left('never', 0, 0, 0, null)];
  const steps = (expect) => [
    { op: 'peek', key: 'alice', expect },
    { op: 'why', key: 'alice', expect: { decision: expect } },
  ];
  assert.equal(replay({ policy, steps: steps({ limits }) }), 2);
  const [first, never] = limits;
  const others = [{ ...never, more_after_ms: 0 }, { name: 'never' }].map((other) => [first, other]);
  for (const wrong of [[never], [], null, ...others]) {
    for (const step of steps({ limits: wrong })) {
      assert.throws(() => replay({ policy, steps: [step] }), assert.AssertionError);
    }
  }
});

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
