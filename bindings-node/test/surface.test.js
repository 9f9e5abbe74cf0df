'use strict';
// The whole contract, operation by operation, on a clock that is moved by hand.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { describe, test } = require('node:test');
const tidegate = require('tidegate');
const { Decision, Limiter, ManualClock, Permit, Reservation, Rule, TidegateError, ipKey } =
  tidegate;

const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');

function made(limits, options = {}) {
  const clock = new ManualClock({ wall: 1_700_000_000_000 });
  return { clock, limiter: new Limiter(limits, { clock, ...options }) };
}

/** Whatever is thrown has this class and code. */
const coded = (kind, code) => (error) => {
  assert.equal(error.constructor, kind, `${error.stack}`);
  assert.equal(error.code, code);
  return true;
};

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

describe('a decision', () => {
  test('has the fields of the contract, and no others', () => {
    const { limiter } = made('2/min');
    const decision = limiter.hit('alice');
    assert(decision instanceof Decision);
    assert.deepEqual(
      { ...decision },
      {
        allowed: true,
        rule: 'default',
        reason: null,
        limit: 2,
        remaining: 1,
        retryAfterMs: 0,
        resetAfterMs: 30_000,
        warning: false,
        alert: false,
        notify: false,
        wouldDeny: null,
        attach: null,
      },
    );
    limiter.hit('alice');
    const { reason, retryAfterMs, notify } = limiter.hit('alice');
    assert.deepEqual(
      { reason, retryAfterMs, notify },
      { reason: '2/min', retryAfterMs: 30_000, notify: true },
    );
  });

  test('keeps what it says when others are made after it', () => {
    const { limiter, clock } = made(['2/min', '5/h window'], { attach: { pay: 1 } });
    const first = limiter.hit('alice');
    const headers = first.headers();
    clock.advance(5000);
    for (let i = 0; i < 9; i++) limiter.hit('bob').headers();
    assert.deepEqual(first.headers(), headers);
    assert.equal(first.remaining, 1);
    const denied = limiter.hit('bob');
    denied.attach.pay = 2;
    assert.deepEqual(limiter.hit('bob').attach, { pay: 1 });
  });

  test('lists how each limit was left, to the millisecond', () => {
    const left = (name, max, remaining, resetAfterMs, moreAfterMs) => {
      return { name, max, remaining, resetAfterMs, moreAfterMs };
    };
    assert.deepEqual(made('1/min').limiter.hit('alice').limits, [
      left('1/min', 1, 0, 60_000, 60_000),
    ]);

    const { limiter, clock } = made(['5/10s window', '20/min']);
    limiter.hit('alice', 2);
    clock.advance(999);
    assert.deepEqual(limiter.hit('alice').limits, [
      left('5/10s', 5, 2, 10_000, 9001),
      left('20/min', 20, 17, 8001, 2001),
    ]);

    // A token of 7 in 30 days takes 370,285,714.3 ms.
    const { limiter: month, clock: later } = made(['7/30d', '9/30d window']);
    assert.deepEqual(month.hit('alice').limits[0], left('7/30d', 7, 6, 370_285_715, 370_285_715));
    later.advance(1234);
    const [, window] = month.peek('alice', 0).limits;
    assert.deepEqual(window, left('9/30d', 9, 8, 2_591_998_766, 2_591_998_766));

    const never = made({ none: { max: 0, per: '1m' } }).limiter.hit('alice');
    assert.deepEqual([never.allowed, never.limits], [false, [left('none', 0, 0, 0, null)]]);
    assert.deepEqual(made('3/min').limiter.hit('alice', 9).limits, [left('3/min', 3, 3, 0, 0)]);
    const slot = made('2 concurrent lease 30s').limiter.permit('job').decision;
    assert.deepEqual(slot.limits, [left('2', 2, 1, 30_000, 30_000)]);
  });

  test('lists as many limits as a rule can have, whatever was decided after it', () => {
    const names = Array.from({ length: 8 }, (_, i) => `${i + 1}/s`);
    const { limiter } = made(names);
    const decision = limiter.hit('alice');
    const [limits, headers] = [decision.limits, decision.headers()];
    const token = (max) => Math.ceil(1000 / max);
    const due = names.map((name, i) => [name, i + 1, i, token(i + 1), token(i + 1)]);
    assert.deepEqual(limits.map((one) => Object.values(one)), due);
    made('9/d').limiter.hit('bob');
    limits[0].remaining = 7;
    limits.pop();
    assert.deepEqual(decision.limits.map((one) => Object.values(one)), due);
    assert.deepEqual(decision.headers(), headers);
  });

  test('is header fields in either style', () => {
    const { limiter } = made('1/min');
    limiter.hit('alice');
    const denied = limiter.hit('alice');
    assert.deepEqual(denied.headers('legacy'), {
      'X-RateLimit-Limit': '1',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': '1700000060',
      'Retry-After': '60',
    });
    assert.deepEqual(denied.headers('ietf'), {
      'RateLimit-Policy': '"1/min";q=1;w=60',
      RateLimit: '"1/min";r=0;t=60',
      'Retry-After': '60',
    });
    assert.deepEqual(denied.headers(), { ...denied.headers('legacy'), ...denied.headers('ietf') });
    assert.throws(() => denied.headers('new'), coded(RangeError, 'range'));
    assert.throws(() => denied.headers(7), coded(TypeError, 'argument'));
  });

  test('survives a reload that renames its limit', (t) => {
    const file = path.join(folder(t), 'policy.json');
    const policy = (limits) => JSON.stringify({ version: 1, rules: { a: { limits } } });
    fs.writeFileSync(file, policy({ old: '1/min' }));
    const limiter = Limiter.fromFile(file, { clock: new ManualClock() });
    const before = limiter.hit('alice');
    fs.writeFileSync(file, policy({ fresh: '1/min', more: '9/h' }));
    limiter.reload();
    assert.match(before.headers('ietf')['RateLimit-Policy'], /"old"/);
    assert.equal(before.limits[0].name, 'old');
    assert.match(limiter.hit('alice').headers('ietf')['RateLimit-Policy'], /"fresh".*"more"/);
    assert.equal(limiter.hit('alice').reason, 'fresh');
  });
});

describe('operations', () => {
  test('check and peek spend nothing, record and refund do without asking', () => {
    const { limiter } = made('3/min');
    assert.equal(limiter.check('alice', 3).allowed, true);
    assert.equal(limiter.peek('alice', 0).remaining, 3);
    assert.deepEqual(limiter.record('alice', 2), {
      used: 2,
      limit: 3,
      remaining: 1,
      resetAfterMs: 40_000,
    });
    assert.equal(limiter.peek('alice', { cost: 2 }).allowed, false);
    limiter.refund('alice');
    assert.equal(limiter.peek('alice', 0).remaining, 2);
    limiter.refund('alice', { cost: 9 });
    assert.equal(limiter.stats('alice'), null);
  });

  test('a cost, a max and attributes come with the call', () => {
    const { limiter } = made('3/min', {
      exempt: [{ role: 'admin' }],
      when: [{ match: { tier: 'gold' }, limits: { '3/min': { max: 30 } } }],
    });
    assert.equal(limiter.hit('a', { cost: 2 }).remaining, 1);
    assert.equal(limiter.hit('b', { max: 7 }).limit, 7);
    assert.equal(limiter.hit('c', { role: 'admin', cost: 99 }).reason, 'exempt');
    assert.equal(limiter.hit('d', { tier: 'gold' }).limit, 30);
    assert.equal(limiter.hit('e', { role: undefined, tier: null, age: 7, staff: true }).limit, 3);
    assert.equal(limiter.hit('f', 9).reason, 'cost');
    assert.equal(limiter.hit('f', 9).retryAfterMs, null);
    assert.equal(limiter.allow('g', { max: 0 }), false);
    assert.equal(limiter.allow('g', { role: 'admin' }), true);
    assert.throws(() => limiter.allow('g', { cost: 2 }), coded(TypeError, 'argument'));
    assert.throws(() => limiter.hit('g', { role: {} }), coded(TypeError, 'argument'));
    const signal = new AbortController().signal;
    for (const [call, takers] of [
      [() => limiter.allow('g', { cost: 2 }), /never an attribute.*hit, check/],
      [() => limiter.hit('g', { timeoutMs: 3 }), /acquire/],
      [() => limiter.hit('g', { timeout: 3 }), /timeoutMs/],
      [() => limiter.hit('g', { signal }), /acquire/],
      [() => limiter.check('g', { forMs: 3 }), /an option of block, setOverride,.* and setMode$/],
      [() => limiter.peek('g', { for_: 3 }), /an option of block, setOverride,.* as forMs$/],
      [() => limiter.stats('g', { by: 'me' }), /an option of block, unblock,.* and clearMode$/],
      [
        () => limiter.isLimited('g', { reason: 'spam' }),
        /an option of block, unblock,.* and clearMode$/,
      ],
      [() => limiter.reserve('g', 1, { estimate: 2 }), /reserve/],
      [() => limiter.spend('g', 1, { amount: 2 }), /spend/],
    ]) {
      assert.throws(call, coded(TypeError, 'argument'));
      assert.throws(call, takers);
    }
    assert.equal(limiter.allow('h', { cost: undefined, timeoutMs: null }), true);
    for (const wrong of [null, '2', [], true, 2n]) {
      assert.throws(() => limiter.hit('g', wrong), coded(TypeError, 'argument'), `${wrong}`);
    }
    for (const wrong of [-1, 1.5, NaN, Infinity, 2 ** 53]) {
      assert.throws(() => limiter.hit('g', wrong), coded(RangeError, 'range'), `${wrong}`);
      assert.throws(() => limiter.hit('g', { max: wrong }), coded(RangeError, 'range'), `${wrong}`);
    }
    assert.equal(limiter.stats('g'), null);
  });

  test('a reservation is settled once', () => {
    const { limiter } = made('1000/min', {
      when: [{ match: { tier: 'free' }, limits: { '1000/min': { max: 10 } } }],
    });
    const reserved = limiter.reserve('alice', 400);
    assert(reserved instanceof Reservation && reserved.allowed);
    assert.equal(reserved.settle(150), true);
    assert.equal(reserved.settle(0), false);
    assert.equal(limiter.peek('alice', 0).remaining, 850);
    assert.equal(limiter.reserve('alice', 100).cancel(), true);
    limiter.reserve('alice', 50)[dispose]();
    assert.equal(limiter.peek('alice', 0).remaining, 800);
    const denied = limiter.reserve('bob', 400, { tier: 'free' });
    assert.equal(denied.decision.reason, 'cost');
    assert.throws(() => limiter.reserve('bob'), coded(TypeError, 'argument'));
    assert.throws(() => reserved.settle(-1), coded(RangeError, 'range'));
  });

  test('a permit is held until it is released, disposed of, or its lease ends', () => {
    const { limiter, clock } = made('1 concurrent lease 30s');
    const permit = limiter.permit('job');
    assert(permit instanceof Permit && permit.allowed && permit.held);
    assert.equal(limiter.permit('job').allowed, false);
    clock.advance(29_000);
    assert.equal(permit.renew(), true);
    clock.advance(29_000);
    assert.equal(limiter.permit('job').decision.reason, '1');
    permit[dispose]();
    assert.equal(permit.held, false);
    assert.equal(permit.release(), false);
    const lost = limiter.permit('job');
    clock.advance(30_000);
    assert.equal(limiter.permit('job').allowed, true);
    assert.equal(lost.release(), false);
    assert.throws(() => limiter.hit('job'), coded(TidegateError, 'operation'));
    assert.throws(() => limiter.allow('job'), /use `permit`/);
    assert.throws(() => made('1/s').limiter.permit('job'), coded(TidegateError, 'operation'));
  });

  test('batches judge each key', () => {
    const { limiter } = made('1/h');
    assert.deepEqual(
      [...limiter.allowMany(['a', 'b', 'a', Buffer.from('b'), 7, ['c']])],
      [1, 1, 0, 0, 1, 1],
    );
    assert.deepEqual(
      limiter.hitMany(['a', 'd', 'd']).map((d) => d.allowed),
      [false, true, false],
    );
    assert.deepEqual(limiter.allowMany([]), new Uint8Array());
    assert.throws(() => limiter.allowMany('ab'), coded(TypeError, 'argument'));
    assert.throws(() => limiter.hitMany('ab'), coded(TypeError, 'argument'));
    assert.throws(() => limiter.allowMany(['e', null]), coded(TypeError, 'argument'));
    assert.equal(limiter.stats('e'), null);
  });

  test('budgets', () => {
    const { limiter, clock } = made('100/min', {
      budget: { daily: 500, perHit: 100, resetHourUtc: 4, unit: 'cents' },
    });
    const { spent, remaining, over, overPerHit } = limiter.spend('alice', 499);
    assert.deepEqual(
      { spent, remaining, over, overPerHit },
      { spent: 499, remaining: 1, over: false, overPerHit: true },
    );
    assert.equal(limiter.spend('alice', 1).over, true);
    assert.equal(limiter.hit('alice').reason, 'budget');
    assert.equal(limiter.budget('alice').spent, 500);
    assert.equal(limiter.stats('alice').budget.spent, 500);
    clock.advance(limiter.budget('alice').resetAfterMs);
    assert.equal(limiter.budget('alice').spent, 0);
    assert.throws(() => limiter.spend('alice'), coded(TypeError, 'argument'));
    assert.throws(() => made('1/s').limiter.spend('alice', 1), coded(TidegateError, 'operation'));
  });

  test('stats, isLimited, reset, resetAll, prune, size', () => {
    const { limiter, clock } = made('2/10s window', { cooldown: 60_000 });
    limiter.hit('alice', 2);
    assert.equal(limiter.isLimited('alice'), true);
    assert.equal(limiter.allow('alice'), false);
    clock.advance(1000);
    assert.deepEqual(limiter.stats('alice'), {
      limits: { '2/10s': { used: 2, max: 2, remaining: 0, resetAfterMs: 9000 } },
      cooldownLeftMs: 59_000,
      violations: 0,
      lastAllowedMs: 1000,
      budget: null,
      blocked: null,
    });
    limiter.reset('alice');
    assert.equal(limiter.stats('alice'), null);
    assert.equal(limiter.isLimited('alice'), false);
    limiter.hit('alice', 2);
    limiter.resetAll();
    assert.equal(limiter.hit('alice', 2).allowed, true);
    const plain = new Limiter('2/10s', { clock });
    plain.hit('alice');
    plain.hit('bob');
    assert.equal(plain.size, 2);
    clock.advance(20_000);
    assert.equal(plain.prune(), 2);
    assert.equal(plain.size, 0);
  });

  test('warning, alert, notify and backoff', () => {
    const { limiter } = made('5/min', {
      warnAt: 0.5,
      notify: 'once',
      alert: { violations: 2, within: '5m' },
      backoff: { steps: [90_000, '2m'], quiet: 600_000 },
    });
    assert.equal(limiter.hit('a').warning, false);
    assert.equal(limiter.hit('a', 3).warning, true);
    assert.equal(limiter.hit('a').remaining, 0);
    const [one, two] = [limiter.hit('a'), limiter.hit('a')];
    assert.deepEqual([one.notify, one.alert, one.retryAfterMs], [true, false, 90_000]);
    assert.deepEqual([two.notify, two.alert, two.retryAfterMs], [false, true, 120_000]);
    assert.equal(limiter.isLimited('a'), true);
  });

  test('shadow mode and off', () => {
    const { limiter } = made('1/min', { mode: 'shadow' });
    limiter.hit('a');
    const shadowed = limiter.hit('a');
    assert.deepEqual(
      [shadowed.allowed, shadowed.reason, shadowed.wouldDeny],
      [true, null, '1/min'],
    );
    const off = made('1/min', { mode: 'off' }).limiter.hit('a');
    assert.deepEqual([off.reason, off.limit, off.remaining], ['off', null, null]);
    assert.deepEqual(off.headers(), {});
  });
});

describe('limiters', () => {
  test('a rule is one object, and unknown names go to the fallback', () => {
    const limiter = Limiter.fromPolicy({
      version: 1,
      fallback: 'b',
      rules: { a: { limits: '1/s' }, b: { limits: '2/s', key: ['channel', 'sender'] } },
    });
    assert.deepEqual(limiter.rules, ['a', 'b']);
    assert(limiter.rule('a') instanceof Rule);
    assert.equal(limiter.rule('a'), limiter.rule('a'));
    assert.equal(limiter.rule('other').name, 'b');
    assert.equal(limiter.rule('other'), limiter.rule('b'));
    assert.equal(limiter.rule('b').allow(['telegram', 'alice']), true);
    assert.throws(() => limiter.rule('b').allow('alice'), coded(TidegateError, 'key'));
    assert.throws(() => limiter.hit('alice'), coded(TidegateError, 'rule'));
    assert.throws(() => limiter.size, /several rules/);
    assert.throws(() => limiter.rule(), coded(TypeError, 'argument'));
    assert.throws(() => made('1/s').limiter.rule('defualt'), /did you mean "default"/);
    assert.throws(() => new Rule(), coded(TypeError, 'argument'));
  });

  test('mistakes are named by their path, all at once, in JavaScript and in maps', () => {
    assert.throws(
      () => new Limiter('1/s', { warnAt: 'much', backof: {}, budget: { dayly: 1 } }),
      (error) => {
        assert(error instanceof TidegateError && error instanceof Error);
        assert.equal(error.name, 'TidegateError');
        assert.equal(error.code, 'policy');
        const paths = error.problems.map((problem) => problem.path);
        for (const at of ['warn_at', 'backof', 'budget.dayly'])
          assert(paths.includes(at), paths.join());
        return true;
      },
    );
    assert.throws(() => new Limiter('20/mni'), /"mni" is not a unit/);
    assert.throws(
      () => Limiter.fromPolicy({ version: 1, rules: { a: { limit: '1/s' } } }),
      /rules\.a\.limit: .*limits/,
    );
    assert.throws(() => new Limiter({ l: { max: 1, per: 1.5 } }), coded(TidegateError, 'policy'));
    for (const wrong of [undefined, null, 7, true]) {
      assert.throws(() => new Limiter(wrong), coded(TypeError, 'argument'));
      assert.throws(
        () => Limiter.fromPolicy(wrong),
        (error) => error.code === 'policy' || error.code === 'argument',
      );
    }
    const circular = {};
    circular.rules = circular;
    assert.throws(() => Limiter.fromPolicy(circular), coded(TypeError, 'argument'));
    assert.throws(() => new Limiter('1/s', { clock: {} }), coded(TypeError, 'argument'));
    assert.throws(() => new Limiter('1/s', null), coded(TypeError, 'argument'));
    assert.throws(() => new Limiter('1/s', { store: 7 }), coded(TypeError, 'argument'));
    assert.throws(() => new Limiter('1/s', { store: 'redis' }), coded(TidegateError, 'store'));
    assert.throws(() => new Limiter('1/s', { store: 'redis://host' }), /no Redis store/);
    const fleet = { version: 1, on_outage: 'allow', rules: { a: { limits: '1/s' } } };
    assert.throws(() => Limiter.fromPolicy(fleet), /no Redis store/);
    assert.throws(() => new Limiter('1/s', { memory: true }), coded(TypeError, 'argument'));
    assert.throws(() => new Limiter('1/s', { memory: 1.5 }), coded(RangeError, 'range'));
    assert.throws(() => new Limiter('1/s', { memory: 'much' }), coded(TidegateError, 'policy'));
    assert.throws(() => new Limiter('1/s', { memory: 1 }), coded(TidegateError, 'memory'));
    assert.throws(() => new Limiter('1/s', { limits: '2/s' }), coded(TypeError, 'argument'));
    const policy = { version: 1, rules: { a: { limits: '1/s' } } };
    assert.throws(() => Limiter.fromPolicy(policy, { sotre: 'memory' }), /no option sotre/);
    assert.throws(() => Limiter.fromPolicy(policy, { capacity: 0 }), coded(RangeError, 'range'));
    assert.throws(
      () => Limiter.fromPolicy(policy, { onFull: 'sometimes' }),
      coded(RangeError, 'range'),
    );
    assert.throws(
      () => Limiter.fromPolicy({ ...policy, capacity: 2 ** 40 }),
      coded(TidegateError, 'memory'),
    );
  });

  test('names of limits, matches and attachments are left as they are', () => {
    const { limiter } = made(
      { perMinute: { max: 1, per: 60_000 } },
      {
        exempt: [{ userRole: 'admin' }],
        attach: { upgradeLink: 1 },
        when: [
          {
            match: { userTier: 'gold' },
            limits: { perMinute: { max: 9, per: 1000 } },
            warnAt: 0.5,
          },
        ],
        classify: {
          from: 'userAction',
          to: 'userTier',
          map: { goldRush: 'gold' },
          default: 'lead',
        },
      },
    );
    assert.equal(limiter.hit('a', { userRole: 'admin' }).reason, 'exempt');
    assert.equal(limiter.hit('b', { userAction: 'goldRush' }).limit, 9);
    limiter.hit('a');
    const denied = limiter.hit('a');
    assert.deepEqual([denied.reason, denied.attach], ['perMinute', { upgradeLink: 1 }]);
  });

  test('options win over the policy', () => {
    const policy = { version: 1, store: 'memory', rules: { a: { limits: '1/h', capacity: 100 } } };
    const options = { store: 'memory:options', capacity: 7, onFull: 'deny' };
    const [one, two] = [Limiter.fromPolicy(policy, options), Limiter.fromPolicy(policy, options)];
    assert.equal(one.metrics()[0].capacity, 7);
    assert.equal(one.allow('alice'), true);
    assert.equal(two.allow('alice'), false);
    const full = Array.from({ length: 500 }, (_, i) => two.hit(`k${i}`)).find((d) => !d.allowed);
    assert.equal(full.reason, 'full');
    assert.equal(full.retryAfterMs === null || full.retryAfterMs > 0, true);
  });

  test('a policy file is read, and read again, all or nothing', (t) => {
    const file = path.join(folder(t), 'policy.yaml');
    const write = (max) =>
      fs.writeFileSync(file, `version: 1\nrules: { a: { limits: { l: ${max} } } }`);
    write('1/h');
    const limiter = Limiter.fromFile(pathToFileURL(file));
    const rule = limiter.rule('a');
    assert.equal(rule.hit('alice').limit, 1);
    write('5/h');
    limiter.reload();
    assert.equal(limiter.rule('a'), rule);
    assert.equal(rule.hit('alice').limit, 5);
    write('5/fortnight');
    assert.throws(() => limiter.reload(), /rules\.a\.limits\.l: .*fortnight/);
    assert.equal(rule.hit('alice').limit, 5);
    fs.writeFileSync(file, 'version: 1\nrules: { b: { limits: 1/h } }');
    limiter.reload();
    write('9/h');
    limiter.reload();
    assert.notEqual(limiter.rule('a'), rule);
    assert.equal(limiter.rule('a').hit('alice').limit, 9);
    assert.throws(() => Limiter.fromFile(`${file}.gone`), coded(TidegateError, 'file'));
    assert.throws(() => Limiter.fromFile(7), coded(TypeError, 'argument'));
    assert.throws(() => made('1/s').limiter.reload(), coded(TidegateError, 'operation'));
  });

  test('metrics, events and audit', () => {
    const { limiter } = made('1/h', { onFull: 'allow' });
    limiter.hit('alice');
    limiter.hit('alice');
    limiter.hit('alice');
    const [metrics] = limiter.metrics();
    assert.deepEqual(metrics, limiter.rule('default').metrics());
    assert.deepEqual([metrics.allowed, metrics.denied, metrics.keys], [1, { '1/h': 2 }, 1]);
    assert.deepEqual(metrics.topOffenders, [{ key: ['alice'], count: 2 }]);
    assert(metrics.bytes > 0 && metrics.classifyDefaults === 0);
    const { events, next, missed } = limiter.events();
    assert.deepEqual({ events, next, missed }, limiter.rule('default').events());
    assert.equal(missed, 0);
    assert.deepEqual(
      events.map(({ rule, key, reason, alert, atMs }) => ({ rule, key, reason, alert, atMs })),
      Array(2).fill({
        rule: 'default',
        key: ['alice'],
        reason: '1/h',
        alert: false,
        atMs: 1_700_000_000_000,
      }),
    );
    assert.deepEqual(limiter.events(next).events, []);
    limiter.hit('alice');
    assert.deepEqual(
      limiter.events(next).events.map(({ number }) => number),
      [3],
    );
    assert.equal(limiter.rule('default').events(null).events.length, 3);
    assert.throws(() => limiter.events('yesterday'), { name: 'RangeError' });
    assert.throws(() => limiter.events(1), { name: 'TypeError' });
    assert(limiter.audit().some(({ id, severity }) => id === 'full_allows' && severity === 'warn'));
  });

  test('a capacity that nobody states adapts to memory', () => {
    const capacity = (limits, options) => new Limiter(limits, options).metrics()[0].capacity;
    const adapted = capacity('500/h window');
    assert(adapted >= 1024 && adapted < 65_536);
    assert(new Limiter('500/h window').audit().some(({ id }) => id === 'capacity_adapted'));
    assert.equal(capacity('500/h window', { memory: '1GB' }), 65_536);
    assert(capacity('20/min', { memory: 2 ** 20 }) < 65_536);
    const policy = { version: 1, memory: '1KB', rules: { a: { limits: '20/min' } } };
    assert.equal(
      Limiter.fromPolicy(policy, { memory: '8MB' }).rule('a').metrics().capacity,
      65_536,
    );
  });

  test('a closed limiter says so, whatever is asked', () => {
    const { limiter } = made('1/h');
    const rule = limiter.rule('default');
    const decision = rule.hit('alice');
    limiter.close();
    limiter.close();
    const closed = coded(TidegateError, 'closed');
    for (const call of [
      () => rule.allow('a'),
      () => rule.hit('a'),
      () => rule.check('a'),
      () => rule.peek('a'),
      () => rule.record('a'),
      () => rule.refund('a'),
      () => rule.reserve('a', 1),
      () => rule.permit('a'),
      () => rule.allowMany(['a']),
      () => rule.hitMany(['a']),
      () => rule.spend('a', 1),
      () => rule.budget('a'),
      () => rule.isLimited('a'),
      () => rule.stats('a'),
      () => rule.reset('a'),
      () => rule.resetAll(),
      () => rule.prune(),
      () => rule.size,
      () => rule.setOverride('a', '2/h'),
      () => rule.clearOverride('a'),
      () => rule.overrides(),
      () => rule.setDefault('2/h'),
      () => rule.addExempt({ key: 'a' }),
      () => rule.removeExempt({ key: 'a' }),
      () => rule.setExempts([]),
      () => rule.exempts(),
      () => rule.setMode('off'),
      () => rule.clearMode(),
      () => rule.block('a'),
      () => rule.unblock('a'),
      () => rule.blocks(),
      () => rule.changes(),
      () => rule.metrics(),
      () => rule.events(),
      () => limiter.hit('a'),
      () => limiter.metrics(),
      () => limiter.events(),
      () => limiter.changes(),
      () => limiter.sync(),
    ]) {
      assert.throws(call, closed, `${call}`);
    }
    assert.equal(decision.headers()['X-RateLimit-Limit'], '1');
    return assert.rejects(rule.acquire('a'), closed);
  });

  test('every operation of a rule is one of its limiter, but for name', () => {
    const names = (it) =>
      Object.getOwnPropertyNames(it.prototype).filter((name) => name !== 'constructor');
    const missing = names(Rule).filter((name) => name !== 'name' && !names(Limiter).includes(name));
    assert.deepEqual(missing, []);
  });
});

describe('the file store', () => {
  test('is shared, outlives its limiters, and can be inspected', (t) => {
    const store = `file:${path.join(folder(t), 'limits')}`;
    const open = () => new Limiter('3/h', { store, capacity: 100 });
    const [one, two] = [open(), open()];
    assert.equal(one.hit('alice').remaining, 2);
    assert.equal(two.hit('alice').remaining, 1);
    one.sync();
    one.close();
    two.close();
    const three = open();
    assert.equal(three.hit('alice').remaining, 0);
    assert.equal(three.allow('alice'), false);
    const [table] = Limiter.inspect(store.slice('file:'.length));
    assert.deepEqual([table.rule, table.capacity, table.keys], ['default', 100, 1]);
    assert.deepEqual(table.topOffenders, [{ key: ['alice'], count: 1 }]);
    assert.throws(() => Limiter.inspect('/nowhere/at/all'), coded(TidegateError, 'store'));
    // Another shape takes the counts along, and is not moved back while it is in use.
    assert.equal(three.metrics()[0].retired, false);
    const moved = new Limiter('3/h', { store, capacity: 200 });
    assert.equal(moved.allow('alice'), false);
    assert.equal(three.metrics()[0].retired, true);
    assert.equal(three.events().events.at(-1).reason, 'retired');
    assert.throws(() => open(), coded(TidegateError, 'store'));
    assert.throws(() => open(), /to move it back/);
    assert.equal(moved.metrics()[0].retired, false);
    const anew = new Limiter('3/h', { store, capacity: 201, recreate: true });
    assert.equal(anew.hit('alice').remaining, 2);
    assert.equal(moved.metrics()[0].retired, true);
    new Limiter('3/h', { store: `${store}-shared`, group: true }).close();
    assert.equal(fs.statSync(`${store}-shared`.slice('file:'.length)).mode & 0o777, 0o770);
    assert.throws(() => new Limiter('3/h', { group: 'yes' }), coded(TypeError, 'argument'));
  });
});

describe('clocks and addresses', () => {
  test('a manual clock moves only by its calls', () => {
    const clock = new ManualClock({ start: 5, wall: 7 });
    assert.equal(clock.now(), 5);
    clock.advance(1.5);
    assert.equal(clock.now(), 6.5);
    clock.set(3);
    assert.equal(clock.now(), 3);
    clock.setWall(1e12);
    for (const wrong of [-1, NaN, Infinity, 1e300])
      assert.throws(() => clock.advance(wrong), coded(RangeError, 'range'));
    assert.throws(() => clock.set('1'), coded(TypeError, 'argument'));
    assert.throws(() => new ManualClock({ start: -1 }), coded(RangeError, 'range'));
    const never = new ManualClock();
    const limiter = new Limiter('1/d', { clock: never });
    limiter.hit('a');
    never.advance(86_399_999);
    assert.equal(limiter.hit('a').retryAfterMs, 1);
    never.advance(1);
    assert.equal(limiter.hit('a').allowed, true);
  });

  test('ipKey cuts IPv6 and unmaps IPv4', () => {
    assert.equal(ipKey('192.0.2.7'), '192.0.2.7');
    assert.equal(ipKey('::ffff:192.0.2.7'), '192.0.2.7');
    assert.equal(ipKey('2001:db8:1:2ff::1'), ipKey('2001:db8:1:200::2'));
    assert.notEqual(ipKey('2001:db8:1:2ff::1', 64), ipKey('2001:db8:1:200::2', 64));
    assert.throws(() => ipKey('localhost'), coded(TidegateError, 'address'));
    assert.throws(() => ipKey('::1', 129), (error) => ['range', 'address'].includes(error.code));
    assert.throws(() => ipKey('::1', 1000), coded(RangeError, 'range'));
    assert.throws(() => ipKey(7), coded(TypeError, 'argument'));
  });
});
