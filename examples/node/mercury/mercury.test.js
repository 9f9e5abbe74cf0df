'use strict';
// Mercury's description of its `RateLimiter`, as tests.

const assert = require('node:assert/strict');
const test = require('node:test');
const { ManualClock } = require('tidegate');
const { RateLimiter } = require('./index.js');

const [GROUP, USER] = ['slack:C123', 'slack:U456'];

function open(...limits) {
  const clock = new ManualClock();
  return { clock, limiter: new RateLimiter(limits[0], limits[1], { clock }) };
}

const allowed = (limiter, count, ...call) =>
  Array.from({ length: count }, () => limiter.isAllowed(...call)).filter(Boolean).length;

test('its example: ten pass, two are denied, and after a minute one passes again', () => {
  const { limiter, clock } = open(10, 60_000);
  for (let sent = 1; sent <= 10; sent++) {
    assert.equal(limiter.isAllowed(GROUP, USER), true);
    assert.equal(limiter.getRemaining(GROUP, USER), 10 - sent);
  }
  assert.equal(allowed(limiter, 2, GROUP, USER), 0);
  clock.advance(60_000);
  assert.equal(limiter.isAllowed(GROUP, USER), true);
  assert.equal(limiter.getRemaining(GROUP, USER), 9);
});

test('ten in a minute, unless the arguments say otherwise', () => {
  const { limiter } = open();
  assert.equal(allowed(limiter, 20, GROUP, USER), 10);
  const { limiter: small, clock } = open(5, 2_000);
  assert.equal(allowed(small, 20, GROUP, USER), 5);
  clock.advance(1_999);
  assert.equal(small.isAllowed(GROUP, USER), false);
  clock.advance(1);
  assert.equal(allowed(small, 20, GROUP, USER), 5);
});

test('the window slides message by message', () => {
  const { limiter, clock } = open(10, 60_000);
  for (let i = 0; i < 10; i++, clock.advance(3_000))
    assert.equal(limiter.isAllowed(GROUP, USER), true);
  clock.advance(30_000);
  assert.equal(allowed(limiter, 5, GROUP, USER), 1);
  clock.advance(3_000);
  assert.equal(allowed(limiter, 5, GROUP, USER), 1);
});

test('a call can bring the limit of its group', () => {
  const { limiter } = open(10, 60_000);
  assert.equal(allowed(limiter, 5, GROUP, USER, 3), 3);
  assert.equal(limiter.getRemaining(GROUP, USER), 7);
  assert.equal(allowed(limiter, 30, GROUP, USER, 20), 17);
  assert.throws(() => limiter.isAllowed(GROUP, USER, 1_001), { code: 'range' });
  assert.throws(() => new RateLimiter(1_001, 60_000));
});

test('users and groups have limits of their own', () => {
  const { limiter } = open(10, 60_000);
  assert.equal(allowed(limiter, 11, GROUP, USER), 10);
  assert.equal(allowed(limiter, 11, GROUP, 'slack:U789'), 10);
  assert.equal(allowed(limiter, 11, 'slack:C124', USER), 10);
  // One key if its parts were joined by a colon.
  assert.deepEqual([allowed(limiter, 11, 'a', 'b:c'), allowed(limiter, 11, 'a:b', 'c')], [10, 10]);
});

test('commands always pass, ignored messages do not count, others get an answer', () => {
  const { limiter } = open(1, 60_000);
  const route = (type) => limiter.route({ groupId: GROUP, userId: USER, type });
  assert.deepEqual([route('ignore'), route('command'), route('assistant')], [null, null, null]);
  assert.deepEqual(route('assistant'), {
    type: 'denied',
    reason: 'Rate limit exceeded. Try again shortly.',
  });
  assert.equal(route('command'), null);
});

test('cleanup, clear and count', () => {
  const { limiter, clock } = open(10, 60_000);
  for (const user of ['a', 'b', 'c']) limiter.isAllowed(GROUP, user);
  assert.deepEqual([limiter.bucketCount, limiter.cleanup()], [3, 0]);
  clock.advance(30_000);
  limiter.isAllowed(GROUP, 'c');
  clock.advance(30_000);
  assert.deepEqual(
    [limiter.cleanup(), limiter.bucketCount, limiter.getRemaining(GROUP, 'c')],
    [2, 1, 9],
  );
  limiter.clear();
  assert.equal(limiter.getRemaining(GROUP, 'c'), 10);
});

test('cleanup runs by itself once it is started', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { limiter, clock } = open(10, 60_000);
  limiter.isAllowed(GROUP, USER);
  clock.advance(60_000);
  limiter.startCleanup();
  t.mock.timers.tick(59_999);
  assert.equal(limiter.bucketCount, 1);
  t.mock.timers.tick(1);
  assert.equal(limiter.bucketCount, 0);
  limiter.isAllowed(GROUP, USER);
  clock.advance(60_000);
  limiter.stopCleanup();
  t.mock.timers.tick(600_000);
  assert.equal(limiter.bucketCount, 1);
});
