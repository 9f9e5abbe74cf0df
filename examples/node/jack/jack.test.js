'use strict';
// Jack's middleware in front of a real Koa, with its counts in a folder.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const Koa = require('koa');
const { ManualClock } = require('tidegate');
const { createRateLimits } = require('./index.js');

/** Its examples were made 45 s before their reset. */
const WALL = 1_705_312_800_000;
const STAFF = { 'x-staff': 'staff_123' };

const CATEGORIES = {
  '/auth/login': 'auth:login',
  '/conversations': 'api:default',
  '/messages': 'api:messages',
  '/search': 'api:search',
  '/bulk/import': 'api:bulk',
  '/webhooks/meta': 'webhook:inbound',
  '/export': 'api:export',
};

/** A server whose headers say who is logged in, and from where (as a proxy would). */
async function start(t, options) {
  const { rateLimitMiddleware, close } = createRateLimits(options);
  const limits = new Map(
    Object.entries(CATEGORIES).map(([route, category]) => [route, rateLimitMiddleware(category)]),
  );
  const app = new Koa({ proxy: true });
  app.use((ctx, next) => {
    if (ctx.get('x-staff')) ctx.state.user = { id: ctx.get('x-staff'), role: ctx.get('x-role') };
    return next();
  });
  app.use((ctx, next) => limits.get(ctx.path)(ctx, next));
  app.use((ctx) => (ctx.body = 'ok'));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => (server.closeAllConnections(), server.close(), close());
  t.after(stop);
  const get = (route, headers) =>
    fetch(`http://127.0.0.1:${server.address().port}${route}`, { headers });
  const granted = async (route, count, headers) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += (await get(route, headers)).status === 200;
    return sum;
  };
  return { get, granted, stop };
}

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-jack-'));
  t.after(() => fs.rmSync(made, { recursive: true }));
  return path.join(made, 'limits');
}

const limitHeaders = ({ headers }) =>
  ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'].map((name) =>
    headers.get(name),
  );

test('headers and body are those of its examples', async (t) => {
  const clock = new ManualClock({ start: 0, wall: WALL });
  const { get, granted } = await start(t, { folder: folder(t), clock });
  assert.equal(await granted('/conversations', 4, STAFF), 4);
  assert.deepEqual(limitHeaders(await get('/conversations', STAFF)), [
    '100',
    '95',
    '1705312860',
    null,
  ]);
  assert.equal(await granted('/conversations', 95, STAFF), 95);
  clock.advance(15_000);
  const denied = await get('/conversations', STAFF);
  assert.equal(denied.status, 429);
  assert.deepEqual(limitHeaders(denied), ['100', '0', '1705312860', '45']);
  assert.deepEqual(await denied.json(), {
    error: {
      code: 'RATE_LIMITED',
      message: 'Too many requests. Please try again later.',
      retryAfter: 45,
    },
  });
});

test('each category has its limit, and an unknown one the default', async (t) => {
  const { granted } = await start(t, { folder: folder(t), clock: new ManualClock() });
  const table = {
    '/auth/login': 5,
    '/messages': 60,
    '/search': 30,
    '/bulk/import': 10,
    '/export': 100,
  };
  for (const [route, limit] of Object.entries(table))
    assert.equal(await granted(route, limit + 3, STAFF), limit, route);
});

test('logins go by address, the API by who is logged in', async (t) => {
  const { granted } = await start(t, { folder: folder(t), clock: new ManualClock() });
  const from = (address, staff) => ({
    'x-forwarded-for': address,
    ...(staff && { 'x-staff': staff }),
  });
  assert.equal(await granted('/auth/login', 6, from('203.0.113.9', 'staff_1')), 5);
  assert.equal(await granted('/auth/login', 6, from('203.0.113.9', 'staff_2')), 0);
  assert.equal(await granted('/auth/login', 6, from('203.0.113.10')), 5);
  assert.equal(await granted('/search', 31, from('203.0.113.9', 'staff_1')), 30);
  assert.equal(await granted('/search', 31, from('203.0.113.10', 'staff_1')), 0);
  assert.equal(
    await granted('/search', 31, from('203.0.113.9')),
    30,
    'nobody logged in: the address',
  );
});

test('admin and system pass by', async (t) => {
  const { get, granted } = await start(t, { folder: folder(t), clock: new ManualClock() });
  for (const role of ['admin', 'system'])
    assert.equal(await granted('/bulk/import', 20, { ...STAFF, 'x-role': role }), 20);
  assert.deepEqual(limitHeaders(await get('/bulk/import', { ...STAFF, 'x-role': 'admin' })), [
    null,
    null,
    null,
    null,
  ]);
  assert.equal(await granted('/bulk/import', 20, { ...STAFF, 'x-role': 'manager' }), 10);
});

test('webhooks of known sources get ten times as much', async (t) => {
  const { get } = await start(t, { folder: folder(t), clock: new ManualClock() });
  const limitFor = async (address) =>
    (await get('/webhooks/meta', { 'x-forwarded-for': address })).headers.get('x-ratelimit-limit');
  assert.deepEqual(
    [await limitFor('157.240.1.2'), await limitFor('203.0.113.9')],
    ['10000', '1000'],
  );
});

test('counts outlive a restart and are shared', async (t) => {
  const where = folder(t);
  const [one, two] = [await start(t, { folder: where }), await start(t, { folder: where })];
  assert.deepEqual(
    [await one.granted('/auth/login', 2), await two.granted('/auth/login', 2)],
    [2, 2],
  );
  one.stop();
  two.stop();
  const after = await start(t, { folder: where });
  assert.equal(await after.granted('/auth/login', 3), 1);
});
