'use strict';
// OpenClaw's own test plan, point by point.

const assert = require('node:assert/strict');
const { on, once } = require('node:events');
const test = require('node:test');
const { WebSocket, WebSocketServer } = require('ws');
const { ManualClock } = require('tidegate');
const {
  auditRateLimits,
  buildRateLimitKey,
  createCostBudgetTracker,
  createMessageRateLimiter,
} = require('./index.js');
const { createDispatcher, serveChat } = require('./dispatch.js');

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
/** 15 January 2024, ten o'clock. */
const WALL = 1_705_312_800_000;
const ALICE = buildRateLimitKey({
  channel: 'whatsapp',
  accountId: 'default',
  senderId: '+1234567890',
});
const BOB = buildRateLimitKey({
  channel: 'whatsapp',
  accountId: 'default',
  senderId: '+1987654321',
});

/** A limiter by a clock of its own; `send` checks and, if that is allowed, records. */
function open(t, config, more) {
  const clock = new ManualClock({ start: 0, wall: WALL });
  const limiter = createMessageRateLimiter(config, {
    clock,
    now: () => WALL + clock.now(),
    ...more,
  });
  t.after(() => limiter.dispose());
  const send = (key) => {
    const result = limiter.check(key);
    if (result.allowed) limiter.record(key);
    return result;
  };
  const sent = (key, count) =>
    Array.from({ length: count }, () => send(key)).filter(({ allowed }) => allowed).length;
  return { limiter, clock, send, sent };
}

test('1. under the limit, all pass', (t) => {
  const { clock, send } = open(t);
  for (let i = 0; i < 5; i++, clock.advance(12 * SECOND)) assert.equal(send(ALICE).allowed, true);
});

test('2. the sixth in two seconds is a burst', (t) => {
  const { clock, send } = open(t);
  for (let i = 0; i < 5; i++, clock.advance(400))
    assert.deepEqual(send(ALICE), { allowed: true, remaining: 5 - i });
  const { notify, ...sixth } = send(ALICE);
  assert.deepEqual(sixth, { allowed: false, remaining: 0, retryAfterMs: MINUTE, reason: 'burst' });
});

test('3. the 21st of a minute waits', (t) => {
  const { clock, send } = open(t);
  for (let i = 0; i < 20; i++, clock.advance(2_500)) assert.equal(send(ALICE).allowed, true);
  const { allowed, reason, retryAfterMs } = send(ALICE);
  assert.deepEqual([allowed, reason, retryAfterMs], [false, 'per-minute', 10 * SECOND]);
  clock.advance(10 * SECOND);
  assert.equal(send(ALICE).allowed, true);
});

test('4. the 201st of an hour waits', (t) => {
  const { clock, send } = open(t);
  for (let i = 0; i < 200; i++, clock.advance(17_700)) assert.equal(send(ALICE).allowed, true);
  const { allowed, reason, retryAfterMs } = send(ALICE);
  assert.deepEqual([allowed, reason, retryAfterMs], [false, 'per-hour', MINUTE]);
});

test('5. a burst is followed by a cooldown', (t) => {
  const { clock, send, sent } = open(t, { cooldownMs: 30 * SECOND });
  assert.equal(sent(ALICE, 6), 5);
  for (let passed = 1; passed < 30; passed++) {
    clock.advance(SECOND);
    const { allowed, reason, retryAfterMs } = send(ALICE);
    assert.deepEqual([allowed, reason, retryAfterMs], [false, 'cooldown', (30 - passed) * SECOND]);
  }
});

test('6. after the cooldown messages pass again', (t) => {
  const { clock, send, sent } = open(t);
  assert.equal(sent(ALICE, 6), 5);
  clock.advance(MINUTE - 1);
  assert.equal(send(ALICE).allowed, false);
  clock.advance(1);
  assert.equal(send(ALICE).allowed, true);
});

test('7. discord has limits of its own, whatsapp the default', (t) => {
  const { clock, send, sent } = open(t, {
    perChannel: { discord: { burstLimit: 10, maxMessagesPerMinute: 60 } },
  });
  assert.deepEqual([sent('discord:main:user123', 11), sent(ALICE, 6)], [10, 5]);
  for (let i = 0; i < 20; i++, clock.advance(2_500)) {
    assert.equal(send('discord:main:user124').allowed && send(BOB).allowed, true);
  }
  assert.deepEqual([send('discord:main:user124').allowed, send(BOB).allowed], [true, false]);
});

test('8. an exempt sender has no limits', (t) => {
  const { limiter, sent } = open(t, { exemptSenders: ['+1234567890'] });
  assert.deepEqual([sent(ALICE, 300), sent(BOB, 300)], [300, 5]);
  assert.deepEqual(limiter.check(ALICE), { allowed: true, remaining: Infinity });
});

test('9. an exempt channel has no limits', (t) => {
  const { sent } = open(t, { exemptChannels: ['webchat'] });
  assert.deepEqual([sent('webchat:default:me', 300), sent(ALICE, 300)], [300, 5]);
});

test('10. old entries are pruned by themselves', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { limiter, clock, sent } = open(t, { pruneIntervalMs: 30 * SECOND });
  sent(ALICE, 1);
  clock.advance(HOUR - 1);
  sent(BOB, 1);
  clock.advance(1);
  t.mock.timers.tick(30 * SECOND - 1);
  assert.equal(limiter.size(), 2);
  t.mock.timers.tick(1);
  assert.equal(limiter.size(), 1);
  clock.advance(HOUR);
  limiter.prune();
  assert.equal(limiter.size(), 0);
});

test('11. stats count what each window holds', (t) => {
  const { limiter, clock, sent } = open(t);
  assert.equal(limiter.getStats(ALICE), null);
  sent(ALICE, 3);
  clock.advance(15 * SECOND);
  sent(ALICE, 2);
  const at = WALL + 15 * SECOND;
  const counts = { messagesLastMinute: 5, messagesLastHour: 5, burstCount: 2 };
  assert.deepEqual(limiter.getStats(ALICE), { ...counts, lastMessageAt: at });
  clock.advance(55 * SECOND);
  assert.deepEqual(limiter.getStats(ALICE), {
    messagesLastMinute: 2,
    messagesLastHour: 5,
    burstCount: 0,
    lastMessageAt: at,
  });
  sent(ALICE, 6);
  clock.advance(10 * SECOND);
  assert.equal(limiter.getStats(ALICE).cooldownUntil, at + 55 * SECOND + MINUTE);
});

test('12. reset clears one sender, resetAll all senders', (t) => {
  const { limiter, sent } = open(t);
  assert.deepEqual([sent(ALICE, 6), sent(BOB, 6)], [5, 5]);
  limiter.reset(ALICE);
  assert.deepEqual([sent(ALICE, 6), sent(BOB, 6)], [5, 0]);
  limiter.resetAll();
  assert.deepEqual([sent(ALICE, 6), sent(BOB, 6)], [5, 5]);
});

/** A budget of 5 dollars a day, and its clock. */
function openBudget(t, config) {
  const clock = new ManualClock({ start: 0, wall: WALL });
  const tracker = createCostBudgetTracker(
    { enabled: true, maxDailyCostCents: 500, ...config },
    { clock },
  );
  t.after(() => tracker.dispose());
  return { tracker, clock };
}

test('13. under budget', (t) => {
  const { tracker } = openBudget(t);
  tracker.recordCost(ALICE, 100);
  tracker.recordCost(ALICE, 0.4);
  assert.deepEqual(tracker.checkBudget(ALICE), {
    dailySpentCents: 101,
    dailyRemainingCents: 399,
    overBudget: false,
  });
});

test('14. over budget', (t) => {
  const { tracker } = openBudget(t);
  for (let i = 0; i < 6; i++) tracker.recordCost(ALICE, 90);
  assert.deepEqual(tracker.checkBudget(ALICE), {
    dailySpentCents: 540,
    dailyRemainingCents: 0,
    overBudget: true,
  });
  assert.equal(tracker.checkBudget(BOB).overBudget, false);
  tracker.reset(ALICE);
  assert.equal(tracker.checkBudget(ALICE).dailySpentCents, 0);
});

test('15. the budget is fresh after the reset hour', (t) => {
  const { tracker, clock } = openBudget(t, { resetHourUtc: 11 });
  tracker.recordCost(ALICE, 500);
  clock.advance(HOUR - 1);
  assert.equal(tracker.checkBudget(ALICE).overBudget, true);
  clock.advance(1);
  assert.deepEqual(tracker.checkBudget(ALICE), {
    dailySpentCents: 0,
    dailyRemainingCents: 500,
    overBudget: false,
  });
});

test('budgets are off unless enabled', () => {
  const tracker = createCostBudgetTracker();
  tracker.recordCost(ALICE, 1_000_000);
  assert.deepEqual(tracker.checkBudget(ALICE), {
    dailySpentCents: 0,
    dailyRemainingCents: Infinity,
    overBudget: false,
  });
});

/** A dispatcher: `send` gives what came of a message, `replies` what senders got. */
function openDispatch(t, config, more) {
  const { limiter, clock } = open(t, config, more);
  const [dispatched, replies, log] = [[], [], []];
  const pipeline = async (ctx) => {
    if (ctx.text === 'fail') throw new Error('no model');
    dispatched.push(ctx.text);
  };
  const inbound = createDispatcher({
    rateLimiter: limiter,
    dispatch: pipeline,
    log: (line) => log.push(line),
  });
  const send = (channel, text, sender = 'sam') =>
    inbound({
      channel,
      accountId: 'default',
      sender,
      text,
      reply: (answer) => replies.push(answer),
    });
  return { inbound, send, dispatched, replies, log, clock };
}

test('16. of 25 messages at once 20 are dispatched', async (t) => {
  const { send, dispatched, log } = openDispatch(t, { burstLimit: 25 });
  const results = [];
  for (let i = 0; i < 25; i++) results.push(await send('whatsapp', `message ${i}`));
  assert.equal(dispatched.length, 20);
  assert.deepEqual(
    results.slice(20),
    Array(5).fill({ status: 'rate-limited', retryAfterMs: MINUTE }),
  );
  assert.equal(log[0], 'Rate limited whatsapp:default:sam: per-minute, retry after 60000ms');
});

test('16. and also if they are all on their way at the same time', async (t) => {
  const { send, dispatched } = openDispatch(t, { burstLimit: 25 });
  const results = await Promise.all(
    Array.from({ length: 25 }, (_, i) => send('whatsapp', `message ${i}`)),
  );
  assert.equal(dispatched.length, 20);
  assert.equal(results.filter(({ status }) => status === 'rate-limited').length, 5);
});

test('16. and with the burst limit that is the default, 5', async (t) => {
  const { send, dispatched } = openDispatch(t);
  for (let i = 0; i < 25; i++) await send('whatsapp', `message ${i}`);
  assert.equal(dispatched.length, 5);
});

test('a message whose dispatch failed is not counted', async (t) => {
  const { send } = openDispatch(t);
  for (let i = 0; i < 10; i++) await assert.rejects(send('whatsapp', 'fail'), /no model/);
  assert.equal((await send('whatsapp', 'again')).status, 'dispatched');
});

test('17. rapid WebSocket messages get a rate limit response', async (t) => {
  const { inbound, dispatched } = openDispatch(t);
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  serveChat(server, inbound);
  await once(server, 'listening');
  const socket = new WebSocket(`ws://127.0.0.1:${server.address().port}/?session=s1`);
  t.after(() => (socket.terminate(), server.close()));
  const answers = on(socket, 'message');
  await once(socket, 'open');
  for (let i = 0; i < 8; i++) socket.send(`message ${i}`);
  for (let i = 5; i < 8; i++) {
    const answer = JSON.parse((await answers.next()).value[0]);
    assert.deepEqual(answer, { error: 'rate_limited', retryAfterMs: MINUTE });
  }
  assert.deepEqual(
    dispatched,
    [0, 1, 2, 3, 4].map((i) => `message ${i}`),
  );
});

test('18. channels are isolated', async (t) => {
  const { send } = openDispatch(t);
  const dispatched = async (channel, sender) => {
    let count = 0;
    for (let i = 0; i < 10; i++)
      count += (await send(channel, 'hi', sender)).status === 'dispatched';
    return count;
  };
  assert.deepEqual([await dispatched('whatsapp'), await dispatched('telegram')], [5, 5]);
  assert.deepEqual([await dispatched('signal', 'a:b'), await dispatched('signal', 'a')], [5, 5]);
});

test('senders are notified by channel: never, once, always', async (t) => {
  const { send, replies, clock } = openDispatch(t, { throttleResponse: { line: 'notify-always' } });
  const notices = async (channel) => {
    replies.length = 0;
    for (let i = 0; i < 8; i++) await send(channel, 'hi');
    return replies.splice(0);
  };
  const slow = { text: 'Please slow down' };
  const limited = { text: 'Rate limited', ephemeral: true };
  for (let round = 0; round < 2; round++, clock.advance(MINUTE)) {
    for (const channel of ['whatsapp', 'signal', 'imessage'])
      assert.deepEqual(await notices(channel), [], channel);
    assert.deepEqual(await notices('telegram'), [slow]);
    assert.deepEqual(await notices('discord'), [limited, limited, limited]);
    assert.deepEqual(await notices('slack'), [limited, limited, limited]);
    assert.deepEqual(
      await notices('webchat'),
      Array(3).fill({ error: 'rate_limited', retryAfterMs: MINUTE }),
    );
    assert.deepEqual(await notices('line'), Array(3).fill({ text: 'Rate limited' }));
  }
});

test('who is over budget is not answered', async (t) => {
  const { tracker } = openBudget(t);
  const { send } = openDispatch(t, {}, { budget: tracker });
  assert.equal((await send('whatsapp', 'hi', '+1234567890')).status, 'dispatched');
  tracker.recordCost(ALICE, 500);
  assert.equal((await send('whatsapp', 'hi', '+1234567890')).status, 'over-budget');
});

test('its audit finds what its table lists', () => {
  const ids = (messageRateLimit, costBudget) =>
    auditRateLimits({ messageRateLimit, costBudget }).map(({ checkId, severity }) => [
      checkId.replace('security.', ''),
      severity,
    ]);
  const budget = { enabled: true };
  assert.deepEqual(ids({}, budget), []);
  assert.deepEqual(ids({}), [['cost_budget_disabled', 'info']]);
  assert.deepEqual(ids({ enabled: false }, budget), [['message_rate_limit_disabled', 'warn']]);
  assert.deepEqual(ids({ burstLimit: 11 }, budget), [['message_rate_limit_high_burst', 'info']]);
  assert.deepEqual(ids({ exemptChannels: ['*'] }, budget), [
    ['message_rate_limit_exempt_all', 'warn'],
  ]);
});

test('switched off, everything passes', (t) => {
  assert.equal(open(t, { enabled: false }).sent(ALICE, 300), 300);
});
