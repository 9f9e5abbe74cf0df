'use strict';
// Run-time changes: overrides, defaults, exemptions, the mode, blocks; how they end, and how
// `changes` lists them.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { Limiter, ManualClock, TidegateError } = require('tidegate');

const PACKAGE = path.join(__dirname, '..');
const WALL = 1_700_000_000_000;
const HOUR = 3_600_000;

function made(limits, options = {}) {
  const clock = new ManualClock({ wall: WALL });
  return { clock, limiter: new Limiter(limits, { clock, ...options }) };
}

/** Whatever is thrown has this class and code, and says this. */
const coded = (kind, code, message = /./) => (error) => {
  assert.equal(error.constructor, kind, `${error.stack}`);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return path.join(made, 'limits');
}

test('overrides for keys and for matches', () => {
  const { limiter } = made('20/min');
  assert.equal(limiter.setOverride('alice', { '20/min': { max: 60, per: 30_000 } }), 1);
  assert.equal(limiter.setOverride({ role: ['staff', 'admin'] }, '70/min'), 2);
  assert.equal(limiter.setOverride(Buffer.from([0xff, 0]), { '20/min': { max: 1 } }), 3);
  assert.equal(limiter.hit('alice').limit, 60);
  assert.equal(limiter.hit('bob', { role: 'admin' }).limit, 70);
  assert.equal(limiter.hit(new Uint8Array([0xff, 0])).limit, 1);
  assert.deepEqual(limiter.overrides(), [
    { key: ['alice'], limits: { '20/min': { max: 60, per: 30_000 } } },
    { match: { role: ['staff', 'admin'] }, limits: { '20/min': { max: 70, per: 60_000 } } },
    { key: [Buffer.from([0xff, 0])], limits: { '20/min': { max: 1 } } },
  ]);
  assert.equal(limiter.clearOverride('alice'), 4);
  assert.equal(limiter.clearOverride('alice'), 0);
  assert.equal(limiter.clearOverride({ role: ['staff', 'admin'] }), 5);
  assert.equal(limiter.hit('alice').limit, 20);
  assert.throws(() => limiter.setOverride('a', { '20/mni': { max: 1 } }), /20\/mni.*20\/min/s);
  assert.throws(() => limiter.setOverride('a'), coded(TypeError, 'argument'));
  assert.throws(() => limiter.setOverride(null, '1/min'), coded(TypeError, 'argument'));
});

test('exemptions and defaults', () => {
  const { limiter } = made('2/min', { exempt: [{ role: 'admin' }] });
  assert.equal(limiter.addExempt({ key: 'alice' }), 1);
  assert.equal(limiter.hit('alice').reason, 'exempt');
  assert.deepEqual(limiter.exempts(), [{ role: ['admin'] }, { key: ['alice'] }]);
  assert.equal(limiter.removeExempt({ role: 'admin' }), 2);
  assert.equal(limiter.removeExempt({ role: 'admin' }), 0);
  assert.equal(limiter.setExempts([{ ip: '10.0.0.0/8' }]), 3);
  assert.equal(limiter.hit('bob', { ip: '10.1.2.3' }).reason, 'exempt');
  assert.equal(limiter.hit('alice').reason, null);
  assert.equal(limiter.setDefault({ '2/min': { max: 1 } }), 4);
  assert.equal(limiter.hit('carol').limit, 1);
  assert.equal(limiter.setDefault({}), 5);
  assert.equal(limiter.hit('carol').limit, 2);
});

test('a mode at run time comes before the policy and its when', () => {
  const { limiter } = made('1/h', { when: [{ match: { tier: 'gold' }, mode: 'off' }] });
  const gold = { tier: 'gold' };
  limiter.hit('alice');
  assert.equal(limiter.setMode('shadow'), 1);
  assert.equal(limiter.hit('alice').wouldDeny, '1/h');
  assert.equal(limiter.hit('alice', gold).wouldDeny, '1/h');
  const [{ step, value, source }] = limiter.why('alice').steps;
  assert.deepEqual({ step, value, source }, { step: 'mode', value: 'shadow', source: 'change' });
  assert.equal(limiter.setMode('off'), 2);
  assert.equal(limiter.hit('alice').reason, 'off');
  assert.equal(limiter.setMode('enforce'), 3);
  assert.equal(limiter.hit('alice', gold).allowed, false);
  assert.equal(limiter.clearMode(), 4);
  assert.equal(limiter.clearMode(), 0);
  assert.equal(limiter.hit('alice', gold).reason, 'off');
});

test('every change ends by itself after forMs', () => {
  const { limiter, clock } = made('5/h', { exempt: [{ key: 'boss' }] });
  const staff = { role: 'staff' };
  const lasting = { forMs: HOUR };
  const limit = (key, options) => limiter.peek(key, { cost: 0, ...options }).limit;
  const reason = (key, options) => limiter.peek(key, { cost: 1, ...options }).reason;
  const ends = (change, seen, during, after) => {
    change();
    clock.advance(HOUR - 1);
    assert.deepEqual(seen(), during, `${change}`);
    clock.advance(1);
    assert.deepEqual(seen(), after, `${change}`);
  };
  ends(
    () => limiter.setOverride('alice', '9/h', lasting),
    () => limit('alice'),
    9,
    5,
  );
  ends(
    () => limiter.setOverride(staff, '8/h', lasting),
    () => limit('bob', staff),
    8,
    5,
  );
  ends(
    () => limiter.setDefault('4/h', lasting),
    () => limit('carol'),
    4,
    5,
  );
  ends(
    () => limiter.addExempt(staff, lasting),
    () => reason('bob', staff),
    'exempt',
    null,
  );
  ends(
    () => limiter.setExempts([], lasting),
    () => reason('boss'),
    null,
    'exempt',
  );
  ends(
    () => limiter.setMode('off', lasting),
    () => reason('alice'),
    'off',
    null,
  );
  ends(
    () => limiter.block('alice', lasting),
    () => reason('alice'),
    'blocked',
    null,
  );
  ends(
    () => limiter.block('alice', { forMs: HOUR - 0.5 }),
    () => limiter.peek('alice').retryAfterMs,
    1,
    0,
  );
  assert.deepEqual([limiter.overrides(), limiter.blocks()], [[], []]);
  assert.equal(limiter.changes().next, 8);
});

test('a blocked key is refused, and its block can be read', () => {
  const { limiter, clock } = made('5/min', { budget: { daily: 9 } });
  assert.equal(limiter.block('mallory', { forMs: 60_000, by: 'ops', reason: 'spam' }), 1);
  const denied = limiter.hit('mallory');
  assert.deepEqual(
    [
      denied.allowed,
      denied.reason,
      denied.limit,
      denied.remaining,
      denied.retryAfterMs,
      denied.alert,
    ],
    [false, 'blocked', null, 0, 60_000, false],
  );
  assert.equal(denied.headers()['Retry-After'], '60');
  assert.deepEqual([limiter.allow('mallory'), limiter.allow('alice')], [false, true]);
  assert.deepEqual([...limiter.allowMany(['mallory', 'bob'])], [0, 1]);
  assert.deepEqual([limiter.isLimited('mallory'), limiter.isLimited('alice')], [true, false]);
  assert.equal(limiter.record('mallory').used, 1);
  assert.equal(limiter.spend('mallory', 2).spent, 2);
  const block = { key: ['mallory'], untilMs: WALL + 60_000, by: 'ops', reason: 'spam' };
  assert.deepEqual(limiter.blocks(), [block]);
  assert.deepEqual(limiter.stats('mallory').blocked, block);
  assert.equal(limiter.stats('alice').blocked, null);
  const { steps } = limiter.why('mallory');
  assert.deepEqual(
    steps.map(({ step }) => step),
    ['mode', 'exempt', 'blocked', 'cost', 'budget', 'cooldown', 'backoff', 'limit'],
  );
  const [, , { step, ...blocked }] = steps;
  assert.deepEqual(blocked, {
    outcome: 'deny',
    limit: null,
    value: 'spam',
    source: 'change',
    untilMs: WALL + 60_000,
    by: 'ops',
  });
  assert.deepEqual(limiter.metrics()[0].denied, { blocked: 3 });
  clock.advance(60_000);
  assert.deepEqual([limiter.allow('mallory'), limiter.blocks()], [true, []]);
});

test('a block without an end stands until it is taken back or the key is reset', () => {
  const { limiter, clock } = made('5/min', { exempt: [{ role: 'admin' }] });
  const bytes = Buffer.from([0xff, 0]);
  limiter.block(bytes, { by: 'ops' });
  clock.advance(400 * 24 * HOUR);
  const denied = limiter.hit(bytes);
  assert.deepEqual([denied.reason, denied.retryAfterMs], ['blocked', null]);
  assert(!('Retry-After' in denied.headers()));
  assert.equal(limiter.hit(bytes, { role: 'admin' }).reason, 'exempt');
  const block = { key: [bytes], untilMs: null, by: 'ops', reason: null };
  assert.deepEqual([limiter.blocks(), limiter.stats(bytes).blocked], [[block], block]);
  assert.equal(limiter.unblock(bytes, { by: 'ops', reason: 'a mistake' }), true);
  assert.equal(limiter.unblock(bytes), false);
  assert.equal(limiter.allow(bytes), true);
  limiter.block(42);
  limiter.reset('42');
  assert.equal(limiter.allow(42n), true);
  limiter.block('a', { forMs: undefined, by: null });
  limiter.block('b');
  limiter.resetAll();
  assert.deepEqual(limiter.blocks(), []);
});

test('attributes complete the key of a block, where a rule classifies', () => {
  const classify = { from: 'action', to: 'tier', map: { ping: 'light' }, default: 'heavy' };
  const { limiter } = made('5/min', { key: ['agent', 'tier'], classify });
  assert.equal(limiter.block('a', { action: 'ping' }), 1);
  assert.deepEqual(limiter.blocks()[0].key, ['a', 'light']);
  assert.deepEqual(
    [limiter.allow('a', { action: 'ping' }), limiter.allow('a', { action: 'buy' })],
    [false, true],
  );
  assert.equal(limiter.unblock('a', { action: 'buy' }), false);
  assert.equal(limiter.unblock('a', { action: 'ping', by: 'ops' }), true);
  assert.equal(limiter.changes(1).changes[0].by, 'ops');
});

test('the trail lists every change', () => {
  const { limiter } = made({ perHour: '5/h' });
  const all = { forMs: HOUR, by: 'ops', reason: 'a drill' };
  const { forMs, ...named } = all;
  const staff = { role: ['staff'] };
  const numbers = [
    limiter.setOverride('alice', { perHour: { max: 7, per: 1000 } }, all),
    limiter.setOverride('alice', { perHour: { max: 9 } }, all),
    limiter.clearOverride('alice', named),
    limiter.setDefault({ perHour: { max: 4 } }, all),
    limiter.setDefault({}, named),
    limiter.addExempt({ role: 'staff' }, all),
    limiter.removeExempt(staff, named),
    limiter.setExempts([staff], all),
    limiter.setMode('shadow', all),
    limiter.clearMode(named),
    limiter.block(Buffer.from([0xff]), all),
    limiter.unblock(Buffer.from([0xff]), named) && 12,
  ];
  assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  const [alice, bytes] = [{ key: ['alice'] }, { key: [Buffer.from([0xff])] }];
  const due = [
    ['set_override', alice, null, { perHour: { max: 7, per: 1000 } }],
    ['set_override', alice, { perHour: { max: 7, per: 1000 } }, { perHour: { max: 9 } }],
    ['clear_override', alice, { perHour: { max: 9 } }, null],
    ['set_default', null, null, { perHour: { max: 4 } }],
    ['set_default', null, { perHour: { max: 4 } }, {}],
    ['add_exempt', { match: staff }, false, true],
    ['remove_exempt', { match: staff }, true, false],
    ['set_exempts', null, [], [staff]],
    ['set_mode', null, null, 'shadow'],
    ['clear_mode', null, 'shadow', null],
    ['block', bytes, false, true],
    ['unblock', bytes, true, false],
  ];
  const endless = [3, 5, 7, 10, 12];
  const changes = due.map(([op, target, before, after], index) => {
    const untilMs = endless.includes(index + 1) ? null : WALL + HOUR;
    return {
      number: index + 1,
      atMs: WALL,
      rule: 'default',
      op,
      target,
      before,
      after,
      untilMs,
      ...named,
    };
  });
  assert.deepEqual(limiter.changes(), { changes, next: 12, missed: 0 });
  assert.deepEqual(limiter.changes(null), limiter.rule('default').changes(0));
  assert.deepEqual(limiter.changes(10), { changes: changes.slice(10), next: 12, missed: 0 });
  assert.deepEqual(limiter.changes(12), { changes: [], next: 12, missed: 0 });
  for (let i = 0; i < 300; i++) limiter.setMode('shadow');
  const { changes: kept, next, missed } = limiter.changes(10);
  assert.deepEqual([kept.length, kept[0].number, next, missed], [256, 57, 312, 46]);
  for (const wrong of ['1', {}, 1n, true]) {
    assert.throws(() => limiter.changes(wrong), coded(TypeError, 'argument', /since/));
    assert.throws(
      () => limiter.rule('default').changes(wrong),
      coded(TypeError, 'argument', /since/),
    );
  }
  for (const wrong of [-1, 1.5, NaN, 2 ** 53]) {
    assert.throws(() => limiter.changes(wrong), coded(RangeError, 'range', /since/));
  }
});

test('a limiter lists the changes of all its rules, and a rule its own', () => {
  const limiter = Limiter.fromPolicy({
    version: 1,
    rules: { a: { limits: '1/s' }, b: { limits: '1/s' } },
  });
  const [a, b] = [limiter.rule('a'), limiter.rule('b')];
  assert.deepEqual([a.setMode('off'), b.block('x'), a.clearMode()], [1, 2, 3]);
  const numbers = ({ changes }) => changes.map(({ number }) => number);
  assert.deepEqual([limiter, a, b].map((one) => numbers(one.changes())), [[1, 2, 3], [1, 3], [2]]);
  assert.equal(b.changes().next, 3);
  assert.throws(() => limiter.setMode('off'), coded(TidegateError, 'rule'));
});

test('options that cannot be had are errors that say what is wanted, and change nothing', () => {
  const { limiter } = made('5/h', { exempt: [{ role: 'admin' }] });
  const set = {
    setOverride: (options) => limiter.setOverride('alice', '9/h', options),
    setDefault: (options) => limiter.setDefault('9/h', options),
    addExempt: (options) => limiter.addExempt({ role: 'staff' }, options),
    setExempts: (options) => limiter.setExempts([], options),
    setMode: (options) => limiter.setMode('off', options),
    block: (options) => limiter.block('alice', options),
  };
  const cleared = {
    clearOverride: (options) => limiter.clearOverride('alice', options),
    removeExempt: (options) => limiter.removeExempt({ role: 'admin' }, options),
    clearMode: (options) => limiter.clearMode(options),
    unblock: (options) => limiter.unblock('alice', options),
  };
  for (const [name, call] of Object.entries({ ...set, ...cleared })) {
    for (const wrong of [null, 60_000, '1h', [], true]) {
      assert.throws(
        () => call(wrong),
        coded(TypeError, 'argument', /options are an object: { .*by, reason/),
        name,
      );
    }
    for (const field of ['by', 'reason']) {
      for (const wrong of [7, {}, true, ['ops'], Symbol('ops')]) {
        assert.throws(
          () => call({ [field]: wrong }),
          coded(TypeError, 'argument', new RegExp(`^${field} is not a string`)),
        );
      }
      assert.throws(
        () => call({ [field]: 'x'.repeat(1001) }),
        coded(RangeError, 'range', new RegExp(`^${field}: `)),
      );
      assert.throws(() => call({ [field]: '\ud800' }), coded(TypeError, 'argument'));
    }
    assert.throws(
      () => call({ cost: 2 }),
      coded(TypeError, 'argument', /cost.* an option of hit, /),
      name,
    );
    assert.throws(
      () => call({ max: 2 }),
      coded(TypeError, 'argument', /max.* an option of allow, hit, /),
      name,
    );
    assert.throws(
      () => call({ timeoutMs: 2 }),
      coded(TypeError, 'argument', /timeoutMs.* an option of acquire, /),
      name,
    );
    assert.throws(
      () => call({ for_: 2 }),
      coded(TypeError, 'argument', /for_.* setMode, as forMs/),
      name,
    );
  }
  for (const [name, call] of Object.entries(set)) {
    for (const wrong of [60_000, '1h', 0, false, {}]) {
      const said = new RegExp(`^${name} has no option for: it is forMs`);
      assert.throws(() => call({ for: wrong }), coded(TypeError, 'argument', said), name);
    }
    for (const wrong of ['1h', {}, 1n, true, [5]]) {
      assert.throws(
        () => call({ forMs: wrong }),
        coded(TypeError, 'argument', /^forMs is not a number/),
        name,
      );
    }
    for (const wrong of [
      0,
      -1,
      0.5,
      NaN,
      Infinity,
      -Infinity,
      36_600 * 24 * HOUR + 1,
      Number.MAX_VALUE,
    ]) {
      assert.throws(
        () => call({ forMs: wrong }),
        coded(RangeError, 'range', /^forMs: .*1 ms to 36,600 days/),
        name,
      );
    }
  }
  for (const [name, call] of Object.entries(cleared)) {
    assert.throws(
      () => call({ forMs: 5 }),
      coded(TypeError, 'argument', /forMs.* an option of block, setOverride/),
      name,
    );
  }
  const { block, ...strict } = set;
  const { unblock, ...strictly } = cleared;
  for (const [name, call] of Object.entries({ ...strict, ...strictly })) {
    assert.throws(
      () => call({ because: 'x' }),
      coded(TypeError, 'argument', new RegExp(`^${name} has no option because`)),
    );
  }
  assert.throws(() => block({ role: {} }), coded(TypeError, 'argument', /attribute role/));
  assert.deepEqual(limiter.changes(), { changes: [], next: 0, missed: 0 });
  for (const call of Object.values(set))
    assert(call({ forMs: 1, by: 'x'.repeat(200), reason: 'x'.repeat(1000) }) > 0);
  assert(
    block({ forMs: 36_600 * 24 * HOUR, by: undefined, reason: null, because: 'an attribute' }) > 0,
  );
  assert(block({ for: undefined }) > 0);
  // Elsewhere it is an attribute like others.
  assert.equal(limiter.hit('bob', { for: 'carol' }).allowed, true);
});

test('the names of a change are attributes of no operation', async () => {
  const { limiter } = made('5/h', { budget: { daily: 9 } });
  const slots = made('1 concurrent lease 30s').limiter;
  for (const [name, takers] of [
    [
      'forMs',
      /never an attribute.* block, setOverride, setDefault, addExempt, setExempts and setMode$/,
    ],
    ['for_', /never an attribute.* and setMode, as forMs$/],
    ['by', /never an attribute.* block, unblock, .* and clearMode$/],
    ['reason', /never an attribute.* block, unblock, .* and clearMode$/],
  ]) {
    const options = { [name]: 5 };
    const refused = coded(TypeError, 'argument', takers);
    for (const operation of [
      'allow',
      'hit',
      'check',
      'peek',
      'record',
      'refund',
      'why',
      'budget',
      'isLimited',
      'stats',
      'reset',
    ]) {
      assert.throws(() => limiter[operation]('alice', options), refused, operation);
    }
    assert.throws(() => limiter.reserve('alice', 1, options), refused);
    assert.throws(() => limiter.spend('alice', 1, options), refused);
    assert.throws(() => slots.permit('alice', options), refused);
    await assert.rejects(limiter.acquire('alice', options), refused);
    await assert.rejects(limiter.acquireReservation('alice', 1, options), refused);
    await assert.rejects(slots.acquirePermit('alice', options), refused);
  }
  assert.equal(limiter.stats('alice'), null);
  assert.equal(limiter.allow('alice', { forMs: undefined, by: null }), true);
});

test('targets that cannot be had are errors that say what is wanted, and change nothing', () => {
  const { limiter } = made('5/h', { capacity: 2 });
  for (const wrong of [undefined, null, 7, true, {}]) {
    assert.throws(
      () => limiter.setMode(wrong),
      coded(TypeError, 'argument', /^mode is not a string/),
    );
  }
  for (const wrong of ['', 'on', 'Off']) {
    assert.throws(
      () => limiter.setMode(wrong),
      coded(RangeError, 'range', /^mode is enforce, shadow or off, not "/),
    );
  }
  for (const wrong of [undefined, null, true, {}, Symbol('a')]) {
    assert.throws(() => limiter.block(wrong), coded(TypeError, 'argument', /^a key is /));
    assert.throws(() => limiter.unblock(wrong), coded(TypeError, 'argument', /^a key is /));
  }
  assert.throws(() => limiter.block(['a', 'b']), coded(TidegateError, 'key'));
  assert.throws(() => limiter.block(1.5), coded(RangeError, 'range'));
  // As JSON these would match every call.
  for (const wrong of [
    { role: undefined },
    { role: () => 'admin' },
    { role: Symbol('admin') },
    new Map([['role', 'admin']]),
    new Date(),
  ]) {
    assert.throws(() => limiter.addExempt(wrong), coded(TypeError, 'argument', /a match is/));
    assert.throws(() => limiter.removeExempt(wrong), coded(TypeError, 'argument', /a match is/));
    assert.throws(
      () => limiter.setExempts([{ role: 'admin' }, wrong]),
      coded(TypeError, 'argument', /a match is/),
    );
    assert.throws(
      () => limiter.setOverride(wrong, '9/h'),
      coded(TypeError, 'argument', /a match is/),
    );
    assert.throws(() => limiter.clearOverride(wrong), coded(TypeError, 'argument', /a match is/));
  }
  for (const wrong of [7, 'role', [], { role: null }, { role: [null] }, { role: [] }]) {
    assert.throws(() => limiter.addExempt(wrong), coded(TidegateError, 'policy'), `${wrong}`);
  }
  assert.throws(() => limiter.addExempt(), coded(TypeError, 'argument'));
  assert.throws(() => limiter.addExempt({ ip: 'everywhere' }), coded(TidegateError, 'policy'));
  assert.throws(() => limiter.setExempts({}), coded(TypeError, 'argument'));
  assert.throws(() => limiter.setExempts([null]), coded(TidegateError, 'policy'));
  assert.throws(
    () => limiter.setDefault(new Map()),
    coded(TypeError, 'argument', /limits is a plain object, not a Map/),
  );
  for (const wrong of [NaN, Infinity]) {
    assert.throws(
      () => limiter.setDefault({ '5/h': { max: wrong } }),
      coded(RangeError, 'range', /^max is a number, not /),
    );
    assert.throws(
      () => limiter.setOverride('a', { '5/h': { per: wrong } }),
      coded(TidegateError, 'policy', /per/),
    );
  }
  assert.equal(limiter.changes().next, 0);
  assert.equal(limiter.addExempt(Object.assign(Object.create(null), { role: 'admin' })), 1);
  limiter.block('a');
  limiter.block('b');
  assert.throws(() => limiter.block('c'), coded(TidegateError, 'store', /larger capacity/));
  assert.deepEqual([limiter.changes().next, limiter.blocks().length], [3, 2]);
});

test('who waits waits for the end of a block', async () => {
  const { limiter, clock } = made('5/min');
  limiter.block('alice', { forMs: HOUR });
  const early = await limiter.acquire('alice', { timeoutMs: HOUR - 1 });
  assert.deepEqual([early.reason, early.retryAfterMs], ['blocked', HOUR]);
  const [ended, freed] = [
    limiter.acquire('alice'),
    (limiter.block('bob', { forMs: HOUR }), limiter.acquire('bob')),
  ];
  assert.equal(limiter.unblock('bob'), true);
  assert.equal((await freed).allowed, true);
  clock.advance(HOUR);
  assert.equal((await ended).allowed, true);
  limiter.block('alice');
  assert.equal((await limiter.acquire('alice')).reason, 'blocked');
  assert.deepEqual(limiter.metrics()[0].denied, {});
});

test('changes of a file store outlive their limiter and bind other processes', async (t) => {
  const store = `file:${folder(t)}`;
  const open = () => new Limiter('5/h', { store, capacity: 100 });
  const first = open();
  first.block('mallory', { by: 'ops', reason: 'spam' });
  first.setMode('shadow', { forMs: HOUR });
  first.close();
  const limiter = open();
  assert.equal(limiter.hit('mallory').wouldDeny, 'blocked');
  const code = `
    const { Limiter } = require(${JSON.stringify(PACKAGE)});
    const limiter = new Limiter('5/h', { store: ${JSON.stringify(store)}, capacity: 100 });
    limiter.clearMode({ by: 'a child' });
    console.log(limiter.hit('mallory').reason, limiter.blocks()[0].by);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', code]);
  assert.equal(stdout, 'blocked ops\n');
  assert.equal(limiter.hit('mallory').reason, 'blocked');
  const listed = limiter.changes().changes.map(({ number, op, by }) => [number, op, by]);
  assert.deepEqual(listed, [
    [1, 'block', 'ops'],
    [2, 'set_mode', null],
    [3, 'clear_mode', 'a child'],
  ]);
});

/** Code that blocks 20 keys of its own, and says which numbers the changes have. */
const blocking = (store, name) => `
  const { Limiter } = require(${JSON.stringify(PACKAGE)});
  const limiter = new Limiter('5/h', { store: ${JSON.stringify(store)}, capacity: 100 });
  const block = (_, i) => limiter.block('${name}' + i, { by: '${name}' });
  const numbers = Array.from({ length: 20 }, block);`;

for (const kind of ['memory', 'file']) {
  test(`changes made at once on one ${kind} are all made, each with its number`, async (t) => {
    const store = kind === 'memory' ? 'memory:changes' : `file:${folder(t)}`;
    const limiter = new Limiter('5/h', { store, capacity: 100 });
    const inThread = (name) =>
      new Promise((resolve, reject) => {
        const code = `${blocking(store, name)}
          require('node:worker_threads').parentPort.postMessage(numbers);`;
        new Worker(code, { eval: true }).once('message', resolve).once('error', reject);
      });
    const inProcess = async (name) => {
      const code = `${blocking(store, name)} console.log(JSON.stringify(numbers));`;
      return JSON.parse((await promisify(execFile)(process.execPath, ['-e', code])).stdout);
    };
    const [a, b] = kind === 'memory' ? [inThread, inThread] : [inThread, inProcess];
    const numbers = (await Promise.all([a('a'), b('b'), b('c')])).flat();
    const each = Array.from({ length: 60 }, (_, i) => i + 1);
    assert.deepEqual(numbers.sort((one, two) => one - two), each);
    assert.equal(limiter.blocks().length, 60);
    assert.deepEqual(limiter.changes().changes.map(({ number }) => number), each);
    assert.deepEqual([...limiter.allowMany(['a0', 'b19', 'c7', 'd'])], [0, 0, 0, 1]);
  });
}
