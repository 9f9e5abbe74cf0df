'use strict';
// The store under the real express-rate-limit, in front of a real Express.

const assert = require('node:assert/strict');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const express = require('express');
const { rateLimit } = require('express-rate-limit');
const { ManualClock } = require('tidegate');
const { TidegateStore } = require('tidegate/express-rate-limit');

const COUNTER = path.join(__dirname, 'fixtures/counter.js');

/** Fails the test on whatever the library complains about. */
const logger = { error: (error) => assert.fail(error), warn: (error) => assert.fail(error) };

/** A server with a limit of 3 in a minute; `/fail` answers 500. */
async function start(t, store, options) {
  const limiter = rateLimit({
    windowMs: 60_000,
    limit: 3,
    standardHeaders: 'draft-8',
    logger,
    store,
    ...options,
  });
  const app = express();
  app.use(limiter);
  app.get('/', (req, res) => res.send('hello'));
  app.get('/fail', (req, res) => res.status(500).send('no'));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close(), store.shutdown()));
  const get = (path = '/') => fetch(`http://127.0.0.1:${server.address().port}${path}`);
  const statuses = async (count, path) => {
    const seen = [];
    for (let i = 0; i < count; i++) seen.push((await get(path)).status);
    return seen;
  };
  return { limiter, get, statuses };
}

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true }));
  return `file:${path.join(made, 'limits')}`;
}

test('counts every hit in a window that starts with the first', async (t) => {
  const clock = new ManualClock();
  const { get, statuses } = await start(t, new TidegateStore({ clock }));
  const first = await get();
  assert.deepEqual([first.status, first.headers.get('x-ratelimit-remaining')], [200, '2']);
  assert.match(first.headers.get('ratelimit'), /r=2; t=60/);
  clock.advance(59_000);
  assert.deepEqual(await statuses(4), [200, 200, 429, 429]);
  const denied = await get();
  assert.equal(
    denied.headers.get('retry-after'),
    '1',
    'those denied are counted and the window stays',
  );
  clock.advance(1_000);
  assert.deepEqual(await statuses(4), [200, 200, 200, 429]);
});

test('reads and forgets a key', async (t) => {
  const store = new TidegateStore({ clock: new ManualClock() });
  const { limiter, statuses } = await start(t, store);
  assert.equal(await limiter.getKey('127.0.0.1'), undefined);
  assert.deepEqual(await statuses(4), [200, 200, 200, 429]);
  const { totalHits, resetTime } = await limiter.getKey('127.0.0.1');
  assert.equal(totalHits, 4);
  assert.ok(Math.abs(resetTime.getTime() - Date.now() - 60_000) < 5_000, String(resetTime));
  limiter.resetKey('127.0.0.1');
  assert.equal(await limiter.getKey('127.0.0.1'), undefined);
  assert.deepEqual(await statuses(4), [200, 200, 200, 429]);
  store.increment('other');
  store.resetAll();
  assert.deepEqual([store.get('127.0.0.1'), store.get('other')], [undefined, undefined]);
});

test('gives back what was not to be counted', async (t) => {
  const { limiter, statuses } = await start(t, new TidegateStore(), { skipFailedRequests: true });
  assert.deepEqual(await statuses(5, '/fail'), [500, 500, 500, 500, 500]);
  assert.deepEqual(await statuses(4), [200, 200, 200, 429]);
  assert.equal((await limiter.getKey('127.0.0.1')).totalHits, 3, 'a 429 failed as well');
});

test('counts once for all who name the same file', async (t) => {
  const store = folder(t);
  const [one, two] = [
    await start(t, new TidegateStore({ store })),
    await start(t, new TidegateStore({ store })),
  ];
  assert.deepEqual(
    [...(await one.statuses(2)), ...(await two.statuses(2)), ...(await one.statuses(1))],
    [200, 200, 200, 429, 429],
  );
  const other = await start(t, new TidegateStore({ store, prefix: 'login:' }), { windowMs: 1_000 });
  assert.deepEqual(await other.statuses(4), [200, 200, 200, 429], 'a prefix has counts of its own');
});

test('processes that count at once each get another number', async (t) => {
  const [processes, each] = [4, 5_000];
  const store = folder(t);
  const children = Array.from({ length: processes }, () => fork(COUNTER, [store, String(each)]));
  await Promise.all(children.map((child) => once(child, 'message')));
  const counted = children.map((child) => (child.send('go'), once(child, 'message')));
  const counts = new Set((await Promise.all(counted)).flatMap(([hits]) => hits));
  assert.deepEqual(
    [counts.size, Math.min(...counts), Math.max(...counts)],
    [processes * each, 1, processes * each],
  );
});

test('says whether its counts are its own', () => {
  const localKeys = (store) => new TidegateStore({ store }).localKeys;
  assert.deepEqual([undefined, 'memory', 'memory:shared', 'file:limits'].map(localKeys), [
    true,
    true,
    false,
    false,
  ]);
});

test('two in one process that name the same memory share it', async (t) => {
  const make = () => new TidegateStore({ store: 'memory:express-rate-limit-test' });
  const [one, two] = [await start(t, make()), await start(t, make())];
  assert.deepEqual([...(await one.statuses(2)), ...(await two.statuses(2))], [200, 200, 200, 429]);
});

test('holds `capacity` clients, and treats the rest by `onFull`', async (t) => {
  const store = new TidegateStore({ capacity: 8, onFull: 'overflow', clock: new ManualClock() });
  store.init({ windowMs: 1_000 });
  t.after(() => store.shutdown());
  const counts = Array.from({ length: 200 }, (_, i) => store.increment(`client ${i}`).totalHits);
  assert.equal(counts[0], 1);
  assert.ok(counts.at(-1) > 1, 'clients without a row share a count, and bypass nothing');
  assert.throws(() => new TidegateStore({ capacity: 0 }).init({ windowMs: 1_000 }), {
    code: 'range',
  });
});
