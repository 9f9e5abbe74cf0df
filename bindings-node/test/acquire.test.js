'use strict';
// Waiting until a hit is allowed. On a manual clock a waiting call asks again every millisecond,
// so no test waits for time to pass. The few that need real time need some milliseconds of it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { after, test } = require('node:test');
const { Decision, Limiter, ManualClock, Permit, Reservation } = require('tidegate');

const ENTRY = JSON.stringify(path.join(__dirname, '..'));

function made(limits, options = {}) {
  const clock = new ManualClock();
  // A test that fails must not leave others waiting.
  after(() => limiter.close());
  const limiter = new Limiter(limits, { clock, ...options });
  return { clock, limiter };
}
/** Lets everything that can happen by now happen. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));
const pending = async (promise) =>
  (await Promise.race([promise, settle().then(() => 'waits')])) === 'waits';

test('what is allowed is allowed at once, and what can never be is denied at once', async () => {
  const { limiter } = made('2/min');
  const decision = await limiter.acquire('alice', { cost: 2 });
  assert(decision instanceof Decision && decision.allowed);
  const hopeless = await limiter.acquire('alice', { timeoutMs: 29_999 });
  assert.deepEqual(
    [hopeless.allowed, hopeless.reason, hopeless.retryAfterMs],
    [false, '2/min', 30_000],
  );
  assert.equal((await limiter.acquire('alice', 3)).reason, 'cost');
  assert.equal((await limiter.acquire('alice', { timeoutMs: 0 })).allowed, false);
  assert.deepEqual(limiter.metrics()[0].denied, {});
});

test('it waits for exactly as long as it must', async () => {
  const { limiter, clock } = made('2/min');
  limiter.hit('alice', 2);
  const waiting = limiter.acquire('alice', { timeoutMs: 30_000 });
  clock.set(29_999);
  assert(await pending(waiting));
  clock.set(30_000);
  assert.equal((await waiting).allowed, true);
  assert.equal(limiter.peek('alice', 0).remaining, 0);
});

test('waits of many days are none the less waited for', async () => {
  const { limiter, clock } = made('1/60d');
  limiter.hit('alice');
  const days = 86_400_000;
  const [waiting, forever] = [
    limiter.acquire('alice', { timeoutMs: 2 ** 40 }),
    limiter.acquire('bob', { timeoutMs: Infinity }),
  ];
  assert.equal((await forever).allowed, true);
  assert(await pending(waiting));
  clock.set(59 * days);
  assert(await pending(waiting));
  clock.set(60 * days);
  assert.equal((await waiting).allowed, true);
});

test('a large cost is not starved by small ones that come later', async () => {
  const { limiter, clock } = made('10/10s');
  limiter.hit('alice', 10);
  const order = [];
  const all = [
    limiter.acquire('alice', 8).then(() => order.push('large')),
    ...[1, 2, 3].map((n) => limiter.acquire('alice').then(() => order.push(`small ${n}`))),
  ];
  for (let second = 1; second <= 14; second++) {
    clock.set(second * 1000);
    await settle();
  }
  await Promise.all(all);
  assert.deepEqual(order, ['large', 'small 1', 'small 2', 'small 3']);
});

test('hundreds who wait are served in turn by one timer, one for each token', async () => {
  const { limiter, clock } = made('100/s burst 1');
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const served = [];
  const all = Array.from({ length: 301 }, (_, i) =>
    limiter.acquire('alice').then(() => served.push(i)),
  );
  await Promise.resolve();
  assert.equal(timers() - before, 1);
  for (let i = 1; i <= 300; i++) {
    clock.set(i * 10);
    for (let tries = 0; served.length <= i && tries < 10_000; tries++)
      await new Promise(setImmediate);
    assert.equal(served.length, i + 1);
  }
  await Promise.all(all);
  assert.deepEqual(served, Array.from({ length: 301 }, (_, i) => i));
  assert.equal(timers(), before);
});

test('who waits less than the others moves the one timer, and adds none', async () => {
  const limiter = new Limiter('1/d');
  after(() => limiter.close());
  limiter.setOverride('bob', { '1/d': { per: 30 } });
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  limiter.hitMany(['alice', 'bob']);
  const before = timers();
  limiter.acquire('alice').catch(() => {});
  const bob = limiter.acquire('bob');
  assert.equal(timers() - before, 1);
  assert.equal((await bob).allowed, true);
  assert.equal(timers() - before, 1);
});

test('other keys do not wait for each other, and those of one scope do', async () => {
  const { limiter, clock } = made(
    { own: { max: 1, per: 60_000 }, all: { max: 2, per: 60_000, scope: [] } },
    { key: ['who'] },
  );
  await limiter.acquire('a');
  await limiter.acquire('b');
  const [third, fourth] = [limiter.acquire('c'), limiter.acquire('d')];
  assert(await pending(third));
  clock.set(30_000);
  assert.equal((await third).allowed, true);
  assert(await pending(fourth));
  clock.set(60_000);
  assert.equal((await fourth).allowed, true);
});

test('an abort spends nothing, and the next in line goes on', async () => {
  const { limiter, clock } = made('10/10s');
  limiter.hit('alice', 10);
  const controller = new AbortController();
  const large = limiter.acquire('alice', { cost: 10, signal: controller.signal });
  const small = limiter.acquire('alice', {
    signal: AbortSignal.any([new AbortController().signal]),
  });
  clock.set(2000);
  assert(await pending(small));
  controller.abort(new Error('enough'));
  await assert.rejects(large, /enough/);
  assert.equal((await small).allowed, true);
  assert.equal(limiter.peek('alice', 0).remaining, 1);
  await assert.rejects(limiter.acquire('alice', { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  await assert.rejects(limiter.acquire('alice', { signal: {} }), { code: 'argument' });
  assert.equal(limiter.peek('alice', 0).remaining, 1);
});

test('an abort after the answer changes nothing', async () => {
  const { limiter } = made('2/min');
  const controller = new AbortController();
  assert.equal((await limiter.acquire('alice', { signal: controller.signal })).allowed, true);
  controller.abort();
  assert.equal(limiter.peek('alice', 0).remaining, 1);
});

test('closing wakes all who wait', async () => {
  const limiter = new Limiter('1/d');
  limiter.hit('alice');
  const all = [
    limiter.acquire('alice'),
    limiter.acquire('alice'),
    limiter.rule('default').acquire('alice'),
  ];
  const codes = [];
  for (const one of all) one.catch((error) => codes.push(error.code));
  limiter.close();
  await new Promise(setImmediate);
  assert.deepEqual(codes, ['closed', 'closed', 'closed']);
});

test('attributes, max, and wrong arguments', async () => {
  const { limiter } = made('1/min', { exempt: [{ role: 'admin' }] });
  limiter.hit('alice');
  assert.equal((await limiter.acquire('alice', { role: 'admin' })).reason, 'exempt');
  assert.equal((await limiter.acquire('bob', { cost: 5, max: 5 })).allowed, true);
  await assert.rejects(limiter.acquire('alice', { timeoutMs: -1 }), {
    name: 'RangeError',
    code: 'range',
  });
  await assert.rejects(limiter.acquire('alice', { timeoutMs: '1' }), {
    name: 'TypeError',
    code: 'argument',
  });
  await assert.rejects(limiter.acquire('alice', { cost: 1.5 }), {
    name: 'RangeError',
    code: 'range',
  });
  await assert.rejects(limiter.acquire(null), { name: 'TypeError', code: 'argument' });
  await assert.rejects(limiter.acquire('alice', null), { name: 'TypeError', code: 'argument' });
  await assert.rejects(made('1 concurrent').limiter.acquire('a'), { code: 'operation' });
});

test('on the real clock, a line of hits takes the time that it must', async () => {
  const limiter = new Limiter('1000/s burst 1');
  const start = performance.now();
  const all = await Promise.all(Array.from({ length: 31 }, () => limiter.acquire('alice')));
  assert(all.every((decision) => decision.allowed));
  assert(performance.now() - start >= 30);
});

test('the process lives while a call waits, and no longer', () => {
  const run = (code) =>
    spawnSync(process.execPath, ['-e', `const { Limiter } = require(${ENTRY}); ${code}`], {
      encoding: 'utf8',
      timeout: 60_000,
    });
  const waited = run(
    "const l = new Limiter('20/s burst 1'); l.hit('a'); " +
      "l.acquire('a').then((d) => console.log(d.allowed))",
  );
  assert.deepEqual([waited.status, waited.stdout], [0, 'true\n'], waited.stderr);
  const aborted = run(`const l = new Limiter('1/d'); l.hit('a'); const c = new AbortController();
    l.acquire('a', { signal: c.signal }).catch((e) => console.log(e.name)); c.abort();`);
  assert.deepEqual([aborted.status, aborted.stdout], [0, 'AbortError\n'], aborted.stderr);
  const closed = run(
    "const l = new Limiter('1/d'); l.hit('a'); " +
      "l.acquire('a').catch((e) => console.log(e.code)); l.close()",
  );
  assert.deepEqual([closed.status, closed.stdout], [0, 'closed\n'], closed.stderr);
  const idle = run("const l = new Limiter('1/d'); l.acquire('a').then(() => console.log('done'))");
  assert.deepEqual([idle.status, idle.stdout], [0, 'done\n'], idle.stderr);
});

test('a permit is had as soon as one is released, or when its lease ends', async () => {
  const { limiter, clock } = made('1 concurrent lease 30s');
  const held = limiter.permit('job');
  const [next, last] = [
    limiter.acquirePermit('job'),
    limiter.acquirePermit('job', { timeoutMs: 60_000 }),
  ];
  assert(await pending(next));
  held.release();
  const permit = await next;
  assert(permit instanceof Permit && permit.allowed && permit.held);
  assert(await pending(last));
  clock.set(30_000);
  assert.equal((await last).held, true);
  const late = await limiter.acquirePermit('job', { timeoutMs: 0, role: 'guest' });
  assert.deepEqual([late.allowed, late.held, late.decision.reason], [false, false, '1']);
});

test('a release wakes who waits, by a clock that runs', async () => {
  const limiter = new Limiter('1 concurrent lease 1h');
  const held = limiter.permit('job');
  const start = performance.now();
  const waiting = limiter.acquirePermit('job', { timeoutMs: 30_000 });
  setTimeout(() => held.release(), 20);
  assert.equal((await waiting).allowed, true);
  assert(performance.now() - start < 900, 'looking again once a second takes longer');
  limiter.close();
});

test('a reservation is had when its estimate is there', async () => {
  const { limiter, clock } = made('100/10s');
  limiter.hit('alice', 100);
  const waiting = limiter.acquireReservation('alice', 50, { timeoutMs: 5_000 });
  assert(await pending(waiting));
  clock.set(5_000);
  const reserved = await waiting;
  assert(reserved instanceof Reservation && reserved.allowed);
  assert.equal(reserved.settle(20), true);
  assert.equal(limiter.peek('alice', 0).remaining, 30);
  assert.equal((await limiter.acquireReservation('bob', 5, { max: 9 })).decision.limit, 9);
  const never = await limiter.acquireReservation('alice', 101);
  assert.deepEqual([never.allowed, never.decision.reason, never.cancel()], [false, 'cost', true]);
});

test('waiting for what is held: mistakes, aborts, and rules that are for others', async () => {
  const { limiter } = made('1 concurrent');
  const held = limiter.permit('job');
  const aborting = new AbortController();
  const waiting = limiter.acquirePermit('job', { signal: aborting.signal });
  assert(await pending(waiting));
  aborting.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  held.release();
  assert.equal(limiter.permit('job').allowed, true);
  await assert.rejects(limiter.acquireReservation('job', 1), /acquire_permit/);
  await assert.rejects(limiter.acquirePermit('job', { cost: 2 }), TypeError);
  await assert.rejects(made('1/s').limiter.acquirePermit('a'), /no concurrent limit/);
  await assert.rejects(made('1/s').limiter.acquireReservation('a'), TypeError);
});
