'use strict';
// Attributes beside a key: those that a rule reads decide, all others are checked and nothing else.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { Limiter, ManualClock } = require('tidegate');

const PACKAGE = path.join(__dirname, '..');

const made = (limits, options) => new Limiter(limits, { clock: new ManualClock(), ...options });

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

test('each operation reads the attributes that the rule names, in any order of options', () => {
  const limiter = made('3/min', {
    exempt: [{ role: 'admin' }],
    when: [{ match: { tier: 'gold', team: 'ü' }, limits: { '3/min': { max: 30 } } }],
  });
  assert.equal(limiter.hit('a', { team: 'ü', ip: '192.0.2.1', tier: 'gold' }).limit, 30);
  assert.equal(limiter.hit('a', { tier: 'gold', team: 'u' }).limit, 3);
  assert.equal(limiter.hit('a', { team: 'ü', role: null, tier: undefined }).limit, 3);
  assert.equal(limiter.check('a', { role: 'admin', team: 'x'.repeat(300) }).reason, 'exempt');
  assert.equal(limiter.peek('a', { cost: 9, role: 'admin' }).reason, 'exempt');
  assert.equal(limiter.record('a', { tier: 'gold', team: 'ü', cost: 2 }).limit, 30);
  assert.equal(limiter.allow('b', { max: 0 }), false);
  assert.equal(limiter.allow('b', { max: 0, role: 'admin' }), true);
  assert.equal(limiter.hit('b', { max: 7, ip: '192.0.2.1' }).limit, 7);
});

test('attributes that no rule names are checked like the others', () => {
  const limiter = made('3/min');
  const named = made('3/min', { exempt: [{ role: 'admin' }] });
  for (const role of [{}, [], 7n, Symbol('a'), () => 'a', 'half \ud800']) {
    for (const operation of ['allow', 'hit', 'check', 'peek', 'record']) {
      for (const one of [limiter, named]) {
        assert.throws(() => one[operation]('a', { role }), { code: 'argument' });
        assert.equal(one.size, 0);
      }
    }
  }
  const options = Object.create({ inherited: {} }, { hidden: { value: {}, enumerable: false } });
  assert.equal(limiter.hit('a', options).remaining, 2);
  for (const [wrong, code] of [
    [{ cost: -1 }, 'range'],
    [{ cost: null }, 'argument'],
    [{ max: null }, 'argument'],
    [{ max: 1.5 }, 'range'],
    [{ amount: 3 }, 'argument'],
  ]) {
    assert.throws(() => limiter.hit('a', { ip: '192.0.2.1', ...wrong }), { code });
  }
  assert.throws(() => limiter.allow('a', 2), { code: 'argument' });
  assert.throws(() => limiter.allow('a', null), { code: 'argument' });
  assert.equal(limiter.peek('a', 0).remaining, 2);
});

test('a change that names another attribute is in force from the next hit on', () => {
  const limiter = made('3/min');
  const call = { ip: '192.0.2.1', role: 'admin', tier: 'gold' };
  assert.equal(limiter.hit('a', call).limit, 3);
  limiter.setOverride({ tier: 'gold' }, { '3/min': { max: 30 } });
  assert.equal(limiter.hit('a', call).limit, 30);
  limiter.addExempt({ role: 'admin' });
  assert.equal(limiter.allow('a', { cost: undefined, ...call }), true);
  assert.equal(limiter.hit('a', call).reason, 'exempt');
  limiter.removeExempt({ role: 'admin' });
  assert.equal(limiter.hit('a', call).limit, 30);
  limiter.addExempt({ ip: '192.0.2.0/24' });
  assert.equal(limiter.peek('a', call).reason, 'exempt');
});

test('one that ends by itself is forgotten', () => {
  const clock = new ManualClock();
  const limiter = made('3/min', { clock });
  limiter.addExempt({ role: 'admin' }, { forMs: 1000 });
  assert.equal(limiter.hit('a', { role: 'admin' }).reason, 'exempt');
  clock.advance(1000);
  assert.equal(limiter.hit('a', { role: 'admin' }).reason, null);
});

test('one made by another process is in force from the next hit on', async (t) => {
  const store = `file:${path.join(folder(t), 'limits')}`;
  const limiter = new Limiter('5/h', { store, capacity: 100 });
  const call = { ip: '192.0.2.1', role: 'admin' };
  assert.equal(limiter.hit('a', call).reason, null);
  for (const [change, reason] of [
    ['addExempt', 'exempt'],
    ['removeExempt', null],
  ]) {
    const code = `
      const { Limiter } = require(${JSON.stringify(PACKAGE)});
      const limiter = new Limiter('5/h', { store: ${JSON.stringify(store)}, capacity: 100 });
      limiter.${change}({ role: 'admin' });`;
    await promisify(execFile)(process.execPath, ['-e', code]);
    assert.equal(limiter.hit('a', call).reason, reason);
  }
});

test('a policy that names another attribute is in force from its reload on', (t) => {
  const file = path.join(folder(t), 'policy.json');
  const write = (more) => {
    const rules = { a: { limits: '3/min', ...more } };
    fs.writeFileSync(file, JSON.stringify({ version: 1, rules }));
  };
  write({});
  const limiter = Limiter.fromFile(file, { clock: new ManualClock() });
  const rule = limiter.rule('a');
  assert.equal(rule.hit('a', { role: 'admin' }).reason, null);
  write({ exempt: [{ role: 'admin' }] });
  limiter.reload();
  assert.equal(rule.hit('a', { role: 'admin' }).reason, 'exempt');
  assert.equal(limiter.rule('a').allow('a', { role: 'admin' }), true);
});

test('a rule may read more attributes, and a key have more parts, than are arguments', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const match = Object.fromEntries(names.map((name) => [name, name]));
  for (let parts = 1; parts <= 8; parts++) {
    const key = names.slice(0, parts);
    for (let count = 0; count <= 8 - parts; count++) {
      const few = Object.fromEntries(names.slice(parts, parts + count).map((n) => [n, match[n]]));
      const limiter = made('3/min', { key, exempt: count > 0 ? [few] : [] });
      const { reason } = limiter.hit(key, { ip: '192.0.2.1', ...few });
      assert.equal(reason, count > 0 ? 'exempt' : null, `${parts} ${count}`);
      assert.equal(limiter.hit(key, { ...few, [names[parts]]: 'x' }).remaining, count > 0 ? 2 : 1);
      assert.equal(limiter.allow(key), true);
    }
  }
});

test('a rule that classifies reads what it classifies by', () => {
  const limiter = made('3/min', {
    key: ['user', 'class'],
    classify: { from: 'path', to: 'class', map: { '/a': 'a' }, default: 'rest' },
  });
  limiter.hit(['x'], { path: '/a', ip: '192.0.2.1' });
  assert.equal(limiter.peek('x', { cost: 0, path: '/a' }).remaining, 2);
  assert.equal(limiter.peek('x', { cost: 0, path: '/b' }).remaining, 3);
});

test('an option that is read may itself make a hit', () => {
  const limiter = made('9/min', { exempt: [{ role: 'admin' }] });
  const options = {
    get role() {
      limiter.hit(['inner'], { role: 'guest', ip: '192.0.2.1' });
      return 'admin';
    },
  };
  assert.equal(limiter.hit('outer', options).reason, 'exempt');
  assert(limiter.peek('inner', 0).remaining < 9);
});
