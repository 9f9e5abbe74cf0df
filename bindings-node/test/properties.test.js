'use strict';
// Laws, against a reference that is slow and plain:
//  1. A bucket and a window give, over any times, keys and costs, the reference's decisions.
//  2. In any interval a bucket grants at most burst + max * length / per, and a window at most max
//     in `per`.
//  3. A denial's wait is exact: a millisecond before it is a no, then it is a yes.
//  4. Keys differ exactly when their bytes differ.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const fc = require('fast-check');
const { Limiter, ManualClock } = require('tidegate');

/** What it holds, times `per`: whole numbers, so that nothing is rounded. */
class Bucket {
  constructor(max, per) {
    Object.assign(this, { max, per, held: max * per, at: 0 });
  }
  hit(cost, now) {
    this.held = Math.min(this.max * this.per, this.held + (now - this.at) * this.max);
    this.at = now;
    if (cost > this.max) return { allowed: false, reason: 'cost' };
    const need = cost * this.per;
    const allowed = this.held >= need;
    if (allowed) this.held -= need;
    const retryAfterMs = allowed ? 0 : Math.ceil((need - this.held) / this.max);
    return { allowed, remaining: Math.floor(this.held / this.per), retryAfterMs };
  }
}

class Window {
  log = [];
  constructor(max, per) {
    Object.assign(this, { max, per });
  }
  hit(cost, now) {
    this.log = this.log.filter((at) => at > now - this.per);
    if (cost > this.max) return { allowed: false, reason: 'cost' };
    const allowed = this.log.length + cost <= this.max;
    // The moment at which enough of the log is gone.
    const retryAfterMs = allowed
      ? 0
      : this.log[this.log.length + cost - this.max - 1] + this.per - now;
    if (allowed) this.log.push(...Array(cost).fill(now));
    return { allowed, remaining: this.max - this.log.length, retryAfterMs };
  }
}

const steps = fc.array(
  fc.record({
    wait: fc.integer({ min: 0, max: 3000 }),
    key: fc.constantFrom('a', 'b', 'ü'),
    cost: fc.integer({ min: 0, max: 6 }),
  }),
  {
    maxLength: 60,
  },
);
// What a millisecond brings is a whole number of thousandths of a token. So a bucket loses nothing
// by rounding.
const token = fc.constantFrom(1, 2, 5, 8, 20, 25, 100, 125, 200, 500, 1000);
const limits = fc.record({ max: fc.integer({ min: 1, max: 5 }), token });

for (const [algorithm, Reference] of Object.entries({ bucket: Bucket, window: Window })) {
  test(`a ${algorithm} decides as the reference does`, () => {
    fc.assert(
      fc.property(limits, steps, ({ max, token }, all) => {
        const per = max * token;
        const clock = new ManualClock();
        const limiter = new Limiter({ l: { max, per, algorithm } }, { clock, capacity: 10 });
        const model = new Map();
        const granted = [];
        for (const { wait, key, cost } of all) {
          clock.advance(wait);
          if (!model.has(key)) model.set(key, new Reference(max, per));
          const now = clock.now();
          const due = model.get(key).hit(cost, now);
          const got = limiter.hit(key, cost);
          for (const field of Object.keys(due))
            assert.equal(got[field], due[field], `${field} at ${now}`);
          if (got.allowed && key === 'a') granted.push({ now, cost });
          if (!got.allowed && got.retryAfterMs !== null) {
            clock.set(now + got.retryAfterMs - 1);
            assert.equal(limiter.peek(key, cost).allowed, false);
            clock.set(now + got.retryAfterMs);
            assert.equal(limiter.peek(key, cost).allowed, true);
            clock.set(now);
          }
        }
        for (const [i, first] of granted.entries()) {
          let sum = 0;
          for (const { now, cost } of granted.slice(i)) {
            sum += cost;
            const length = now - first.now;
            if (algorithm === 'bucket') assert(sum <= max + (max * length) / per);
            else if (length < per) assert(sum <= max);
          }
        }
      }),
      { numRuns: Number(process.env.FC_RUNS ?? 200) },
    );
  });
}

test('keys differ exactly when their bytes differ', () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 });
  const key = fc.oneof(
    text,
    fc.uint8Array({ maxLength: 300 }),
    fc.maxSafeInteger(),
    text.map((one) => [one]),
  );
  const bytes = (one) =>
    Buffer.from(Array.isArray(one) ? one[0] : typeof one === 'number' ? `${one}` : one);
  fc.assert(
    fc.property(key, key, (one, two) => {
      const limiter = new Limiter('2/h', { clock: new ManualClock(), capacity: 10 });
      assert.equal(limiter.allow(one), true);
      assert.equal(limiter.peek(two, 0).remaining, bytes(one).equals(bytes(two)) ? 1 : 2);
      assert.equal(limiter.hit(bytes(one)).remaining, 0);
    }),
    { numRuns: 300 },
  );
});
