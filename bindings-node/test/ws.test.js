'use strict';
// The guard on a real server, by AgentCom's policy. It limits agents, by the weight of their
// actions.

const assert = require('node:assert/strict');
const { on, once } = require('node:events');
const path = require('node:path');
const test = require('node:test');
const { WebSocket, WebSocketServer } = require('ws');
const { Limiter, ManualClock } = require('tidegate');
const { guard } = require('tidegate/ws');

const POLICY = path.join(__dirname, '../../examples/policies/agentcom.yaml');

/** Starts a hub that answers each message that passes with `{ type: 'ok' }`. */
async function startHub(t, rule, options) {
  const pass = guard(rule, options);
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket, request) => {
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (pass(socket, request, message)) socket.send('{"type":"ok"}');
    });
  });
  await once(server, 'listening');
  t.after(() => (server.clients.forEach((socket) => socket.terminate()), server.close()));
  return (query = '', headers = {}) =>
    connect(`ws://127.0.0.1:${server.address().port}/${query}`, headers);
}

/** `say` sends a message; `hear` gives the next frame. */
async function connect(url, headers) {
  const socket = new WebSocket(url, { headers });
  const frames = on(socket, 'message');
  await once(socket, 'open');
  const hear = async () => JSON.parse((await frames.next()).value[0]);
  const say = (message) => socket.send(JSON.stringify(message));
  const ask = async (message) => (say(message), hear());
  return { socket, say, hear, ask };
}

function agentcom() {
  const clock = new ManualClock();
  const rule = Limiter.fromFile(POLICY, { clock }).rule('actions');
  const agentOf = (request) => new URL(request.url, 'ws://hub').searchParams.get('agent');
  const key = (message, client, request) => [agentOf(request), 'ws'];
  const attributes = (message) => ({ action: message.type });
  return { clock, rule, options: { key, attributes } };
}

test('has an agent wait, and longer each time', async (t) => {
  const { clock, rule, options } = agentcom();
  const hub = await startHub(t, rule, { ...options, describe: () => ({ tier: 'heavy' }) });
  const { ask, hear } = await hub('?agent=a1');
  const types = [];
  for (let i = 0; i < 10; i++) {
    const answer = await ask({ type: 'identify' });
    types.push(answer.type);
    if (answer.type === 'rate_limit_warning')
      assert.equal((await hear()).type, 'ok', 'a warning is no refusal');
  }
  assert.deepEqual(types, [...Array(8).fill('ok'), 'rate_limit_warning', 'rate_limit_warning']);
  for (const seconds of [6, 6, 6, 10, 30]) {
    const answer = await ask({ type: 'identify' });
    assert.deepEqual(answer, {
      type: 'rate_limited',
      retry_after_ms: 1000 * seconds,
      tier: 'heavy',
    });
  }
  clock.advance(6_000);
  assert.equal((await ask({ type: 'identify' })).type, 'rate_limit_warning');
  assert.equal((await hear()).type, 'ok');
});

test('warns beyond 80 % with what is left of how much', async (t) => {
  const { rule, options } = agentcom();
  const { ask, hear } = await (await startHub(t, rule, options))('?agent=a2');
  for (let i = 0; i < 48; i++) assert.deepEqual(await ask({ type: 'message' }), { type: 'ok' });
  assert.deepEqual(await ask({ type: 'message' }), {
    type: 'rate_limit_warning',
    remaining: 11,
    capacity: 60,
  });
  assert.deepEqual(await hear(), { type: 'ok' });
  assert.deepEqual(await ask({ type: 'ping' }), { type: 'ok' }, 'another tier');
});

test('leaves the exempt alone', async (t) => {
  const { rule, options } = agentcom();
  const { ask } = await (await startHub(t, rule, options))('?agent=dashboard');
  for (let i = 0; i < 100; i++) assert.deepEqual(await ask({ type: 'identify' }), { type: 'ok' });
});

test('goes by the address of the socket, and by a header only if a proxy is trusted', async (t) => {
  const clock = new ManualClock();
  const limited = (options) => startHub(t, new Limiter('1/min', { clock }), options);
  const statuses = async (hub) => {
    const answers = [];
    for (const address of ['198.51.100.1', '198.51.100.2']) {
      const { ask } = await hub('', { 'X-Forwarded-For': address });
      answers.push((await ask({})).type);
    }
    return answers;
  };
  assert.deepEqual(await statuses(await limited()), ['ok', 'rate_limited']);
  assert.deepEqual(await statuses(await limited({ trustedHops: 1 })), ['ok', 'ok']);
});

test('says nothing where the rule does not notify senders', async (t) => {
  const rule = new Limiter('1/min', { notify: 'once', clock: new ManualClock() });
  const { socket, ask, say, hear } = await (await startHub(t, rule))();
  assert.equal((await ask({})).type, 'ok');
  assert.equal((await ask({})).type, 'rate_limited');
  say({});
  socket.ping();
  await once(socket, 'pong'); // Any frame about it is on its way before.
  rule.reset('127.0.0.1');
  say({});
  assert.equal((await hear()).type, 'ok', 'the third message got no answer');
});

test('lets nothing pass that it can not judge', async (t) => {
  const limiter = new Limiter('100/min');
  const hub = await startHub(t, limiter);
  const keyless = await startHub(t, limiter, { key: () => null });
  const first = await keyless();
  first.say({});
  const [code, reason] = await once(first.socket, 'close');
  assert.equal(code, 1011);
  assert.match(String(reason), /no key/);
  const second = await hub();
  limiter.close();
  second.say({});
  assert.equal((await once(second.socket, 'close'))[0], 1011);
});
