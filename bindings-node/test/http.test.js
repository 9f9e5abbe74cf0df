'use strict';
// Express, Fastify and Hono by the same cases, each a real server that is asked over real sockets.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { describe, test } = require('node:test');
const { serve } = require('@hono/node-server');
const express = require('express');
const fastify = require('fastify');
const { Hono } = require('hono');
const { Limiter, ManualClock } = require('tidegate');

/** Each makes a server with the limit before `/`, `/work` and `/own`, which sets a field itself. */
const frameworks = {
  express(rule, options, work) {
    const app = express();
    app.use(require('tidegate/express').rateLimit(rule, options));
    app.get('/', (req, res) => res.send('hello'));
    app.get('/own', (req, res) => res.set('X-RateLimit-Limit', 'own').send('own'));
    app.get('/work', async (req, res) => res.send(await work()));
    app.use((error, req, res, next) => res.status(503).send(error.message));
    return http.createServer(app);
  },
  fastify(rule, options, work) {
    let server;
    const serverFactory = (handler) => (server = http.createServer(handler));
    const app = fastify({ serverFactory });
    app.register(require('tidegate/fastify').rateLimit, { rule, ...options });
    app.get('/', async () => 'hello');
    app.get('/own', async (request, reply) => reply.header('X-RateLimit-Limit', 'own').send('own'));
    app.get('/work', async () => work());
    app.setErrorHandler((error, request, reply) => reply.code(503).send(error.message));
    return app.ready().then(() => server);
  },
  hono(rule, options, work) {
    const app = new Hono();
    app.use(require('tidegate/hono').rateLimit(rule, options));
    app.get('/', (c) => c.text('hello'));
    app.get('/own', (c) => c.text('own', 200, { 'X-RateLimit-Limit': 'own' }));
    app.get('/work', async (c) => c.text(await work()));
    app.onError((error, c) => c.text(error.message, 503));
    return serve({ fetch: app.fetch, port: 0 }, () => {});
  },
};

/** A rule by a clock that stands still, so that nothing is refilled. */
function ruleOf(rule) {
  const clock = new ManualClock({ start: 0, wall: 1_000_000 });
  return Limiter.fromPolicy({ version: 1, rules: { http: rule } }, { clock }).rule('http');
}

/** A server at work, and how to ask it. */
async function start(t, framework, rule, options, { work, socketPath } = {}) {
  const server = await frameworks[framework](rule.hit ? rule : ruleOf(rule), options, work);
  if (server.listening) await new Promise((resolve) => server.close(resolve));
  server.listen(socketPath ?? { port: 0, host: '::' });
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  const where = socketPath ? { socketPath } : { host: '127.0.0.1', port: server.address().port };
  const get = (path = '/', headers = {}) => ask({ ...where, path, headers });
  return {
    get,
    where,
    statusFor: async (forwarded) => (await get('/', { 'X-Forwarded-For': forwarded })).status,
  };
}

function ask(options) {
  return new Promise((resolve, reject) => {
    const request = http.get({ ...options, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => (body += text));
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body }),
      );
    });
    request.on('error', reject);
  });
}

function problemOf({ headers, body }) {
  assert.equal(headers['content-type'], 'application/problem+json');
  return JSON.parse(body);
}

for (const framework of Object.keys(frameworks)) {
  describe(framework, () => {
    const started = (t, ...more) => start(t, framework, ...more);

    test('says 429 to who is blocked, and when to come back if that helps', async (t) => {
      const rule = ruleOf({ limits: '2/min' });
      const { get } = await started(t, rule);
      rule.block('127.0.0.1', { forMs: 5000 });
      const denied = await get();
      assert.deepEqual([denied.status, denied.headers['retry-after']], [429, '5']);
      assert.deepEqual(
        [problemOf(denied).reason, problemOf(denied).retry_after_ms],
        ['blocked', 5000],
      );
      rule.block('127.0.0.1');
      const banned = await get();
      assert.deepEqual([banned.status, banned.headers['retry-after']], [429, undefined]);
      assert.match(problemOf(banned).detail, /waiting does not help/);
      rule.unblock('127.0.0.1');
      assert.equal((await get()).status, 200);
    });

    test('passes until the limit, then says 429', async (t) => {
      const { get } = await started(t, { limits: '2/min' });
      for (const left of ['1', '0']) {
        const { status, headers, body } = await get();
        assert.deepEqual([status, body], [200, 'hello']);
        assert.equal(headers['x-ratelimit-limit'], '2');
        assert.equal(headers['x-ratelimit-remaining'], left);
        assert.equal(headers['ratelimit-policy'], '"2/min";q=2;w=60');
        assert.equal(headers['retry-after'], undefined);
      }
      const denied = await get();
      assert.equal(denied.status, 429);
      assert.equal(denied.headers['x-ratelimit-remaining'], '0');
      assert.equal(denied.headers['x-ratelimit-reset'], '1030');
      assert.equal(denied.headers.ratelimit, '"2/min";r=0;t=30');
      assert.equal(denied.headers['retry-after'], '30');
      assert.deepEqual(problemOf(denied), {
        type: 'about:blank',
        title: 'Too Many Requests',
        status: 429,
        detail: 'The rate limit is reached; try again in 30000 ms.',
        rule: 'http',
        reason: '2/min',
        retry_after_ms: 30_000,
      });
    });

    test('hands back what the rule attaches', async (t) => {
      const attach = { upgrade: '/plans', fee: 5 };
      const denied = await (await started(t, { limits: '0/min', attach })).get();
      assert.deepEqual([denied.status, denied.headers['retry-after']], [429, undefined]);
      const problem = problemOf(denied);
      assert.deepEqual([problem.attach, problem.retry_after_ms], [attach, null]);
      assert.equal(problem.detail, 'This request is over the limit, and waiting does not help.');
    });

    test('ignores X-Forwarded-For unless a proxy is trusted', async (t) => {
      const { statusFor } = await started(t, { limits: '1/min' });
      assert.equal(await statusFor('198.51.100.1'), 200);
      assert.equal(await statusFor('198.51.100.2'), 429);
    });

    test('counts trusted hops from the right', async (t) => {
      const { get, statusFor } = await started(t, { limits: '1/min' }, { trustedHops: 2 });
      assert.equal(await statusFor('198.51.100.1, 10.0.0.1'), 200);
      assert.equal(await statusFor('6.6.6.6, 198.51.100.1, 10.0.0.1'), 429, 'an invention');
      assert.equal(
        (await get('/', { 'X-Forwarded-For': ['6.6.6.6', '198.51.100.1, 10.0.0.1'] })).status,
        429,
      );
      assert.equal(await statusFor('198.51.100.2, 10.0.0.1'), 200);
      assert.equal(await statusFor('198.51.100.3'), 200, 'too few hops: the peer');
      assert.equal(await statusFor('198.51.100.4'), 429);
    });

    test('skips trusted proxies from the right', async (t) => {
      const trusting = (trustedProxies) => started(t, { limits: '1/min' }, { trustedProxies });
      const { statusFor } = await trusting(['127.0.0.1', '10.0.0.0/8']);
      assert.equal(await statusFor('198.51.100.1, 10.0.0.1'), 200);
      assert.equal(await statusFor('6.6.6.6, 198.51.100.1'), 429);
      assert.equal(await statusFor('6.6.6.6, 198.51.100.2'), 200);
      const stranger = await trusting(['192.0.2.1', '10.0.0.0/8']);
      assert.equal(await stranger.statusFor('198.51.100.1'), 200);
      assert.equal(await stranger.statusFor('198.51.100.2'), 429, 'the peer is not trusted');
    });

    test('takes a mapped IPv4 address for the same client', async (t) => {
      // The server listens on both families, so the peer itself is ::ffff:127.0.0.1.
      const { get, statusFor } = await started(t, { limits: '1/min' }, { trustedHops: 1 });
      assert.equal((await get()).status, 200);
      assert.equal(await statusFor('127.0.0.1'), 429, "the peer's own");
      assert.equal(await statusFor('::ffff:198.51.100.1'), 200);
      assert.equal(await statusFor('198.51.100.1:4711'), 429);
    });

    test('separates IPv6 clients by their first 56 bits', async (t) => {
      const { statusFor } = await started(t, { limits: '1/min' }, { trustedHops: 1 });
      assert.equal(await statusFor('2001:db8:1:200::1'), 200);
      assert.equal(await statusFor('[2001:db8:1:2ff::2]:443'), 429);
      assert.equal(await statusFor('2001:db8:1:300::1'), 200);
    });

    test('lets nothing pass that has no key, or else by the fallback', async (t) => {
      const socketPath = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-')), 'socket');
      t.after(() => fs.rmSync(path.dirname(socketPath), { recursive: true }));
      const blind = await started(t, { limits: '100/min' }, {}, { socketPath });
      const answer = await blind.get('/', { 'X-Forwarded-For': '1.1.1.1' });
      assert.equal(answer.status, 500);
      assert.equal(problemOf(answer).title, 'Internal Server Error');
      assert.match(problemOf(answer).detail, /fallbackKey/);
      const rule = ruleOf({ limits: '1/min' });
      const { get } = await started(t, rule, { key: () => null, fallbackKey: 'unknown' });
      assert.deepEqual([(await get()).status, (await get()).status], [200, 429]);
      assert.equal(rule.allow('unknown'), false);
    });

    test('takes keys of several parts, and refuses those of the wrong shape', async (t) => {
      const byPath = { key: ['path', 'client'], limits: '1/min' };
      // A request of Express and Fastify, a context of Hono.
      const key = (asked, client) => [(asked.req ?? asked).path ?? asked.url, client];
      const { get } = await started(t, byPath, { key });
      const seen = [await get('/'), await get('/'), await get('/own')];
      assert.deepEqual(
        seen.map(({ status }) => status),
        [200, 429, 200],
      );
      const answer = await (await started(t, byPath)).get();
      assert.equal(answer.status, 500);
      assert.match(problemOf(answer).detail, /parts/);
    });

    test('gives the rule the attributes, and the address', async (t) => {
      const rule = {
        limits: '1/min',
        when: [{ match: { tier: 'paid' }, limits: { '1/min': { max: 2 } } }],
        exempt: [{ ip: '198.51.100.0/24' }],
      };
      const paid = (asked) =>
        (asked.req?.header?.('x-paid') ?? asked.headers?.['x-paid']) ? { tier: 'paid' } : {};
      const { get } = await started(t, rule, { trustedHops: 1, attributes: paid });
      assert.equal((await get('/', { 'x-paid': '1' })).headers['x-ratelimit-limit'], '2');
      for (let i = 0; i < 3; i++) {
        const { status, headers } = await get('/', { 'X-Forwarded-For': '198.51.100.7' });
        assert.deepEqual([status, headers.ratelimit], [200, undefined]);
      }
    });

    test('leaves fields that the handler set', async (t) => {
      const { headers } = await (await started(t, { limits: '2/min' })).get('/own');
      assert.deepEqual(
        [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']],
        ['own', '1'],
      );
    });

    test('holds a slot while the handler works', async (t) => {
      const rule = ruleOf({ limits: '1 concurrent' });
      const isTaken = () => !rule.permit('127.0.0.1').decision.allowed;
      const { get } = await started(t, rule, {}, { work: async () => String(isTaken()) });
      for (let i = 0; i < 3; i++) {
        const { status, body } = await get('/work');
        assert.deepEqual([status, body], [200, 'true']);
      }
      const taken = rule.permit('127.0.0.1');
      assert.equal((await get('/work')).status, 429);
      taken.release();
    });

    test('frees the slot of a client that is gone', async (t) => {
      const rule = ruleOf({ limits: '1 concurrent' });
      let [working, finish] = [null, null];
      const begun = new Promise((resolve) => (working = resolve));
      const work = () => new Promise((resolve) => ((finish = resolve), working()));
      const { where } = await started(t, rule, {}, { work });
      const request = http.get({ ...where, path: '/work', agent: false }).on('error', () => {});
      await begun;
      assert.equal(rule.permit('127.0.0.1').decision.allowed, false);
      request.destroy();
      // Hono's handler does not learn that the client is gone: it ends when its work does.
      if (framework === 'hono') finish('done');
      for (let free = false; !free; free = rule.permit('127.0.0.1').decision.allowed)
        await new Promise(setImmediate);
      finish('done');
    });

    test('lets nothing pass once its limiter is closed', async (t) => {
      const limiter = new Limiter('100/min');
      const { get } = await started(t, limiter);
      assert.equal((await get()).status, 200);
      limiter.close();
      assert.equal((await get()).status, 500);
    });

    test("hands errors of one's own functions to the framework", async (t) => {
      const key = () => {
        throw new Error('not logged in');
      };
      const answer = await (await started(t, { limits: '1/min' }, { key })).get();
      assert.deepEqual([answer.status, answer.body], [503, 'not logged in']);
    });
  });
}

test('Fastify may ask later, when it is known who it is', async (t) => {
  const rule = ruleOf({ limits: '1/min' });
  const app = fastify();
  app.decorateRequest('user', null);
  app.addHook('preValidation', async (request) => void (request.user = request.headers['x-user']));
  app.register(require('tidegate/fastify').rateLimit, {
    rule,
    hook: 'preHandler',
    key: (request) => request.user,
  });
  app.get('/', async () => 'hello');
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => app.close());
  const statuses = [];
  for (const user of ['alice', 'alice', 'bob'])
    statuses.push((await fetch(url, { headers: { 'x-user': user } })).status);
  assert.deepEqual(statuses, [200, 429, 200]);
});

test('refuses what can not be trusted', () => {
  const { rateLimit } = require('tidegate/express');
  const limiter = new Limiter('1/min');
  for (const range of ['localhost', '10.0.0.0/33', '::/129', '10.0.0.0/x', '', '/8']) {
    assert.throws(
      () => rateLimit(limiter, { trustedProxies: [range] }),
      { name: 'RangeError', code: 'range' },
      range,
    );
  }
  assert.throws(() => rateLimit(limiter, { trustedHops: -1 }), { code: 'range' });
  assert.throws(() => rateLimit(limiter, { trustedHops: 1, trustedProxies: ['10.0.0.0/8'] }), {
    name: 'TypeError',
    code: 'argument',
  });
});

test('refuses what is no rule when it is made, not with each request', async () => {
  const wrong = { name: 'TypeError', code: 'argument' };
  assert.throws(() => require('tidegate/express').rateLimit('100/min'), wrong);
  assert.throws(() => require('tidegate/hono').rateLimit(undefined), wrong);
  assert.throws(() => require('tidegate/ws').guard({}), wrong);
  const app = fastify();
  app.register(require('tidegate/fastify').rateLimit, {});
  await assert.rejects(app.ready(), wrong);
});

test('is the same by import as by require', async () => {
  for (const name of ['express', 'express-rate-limit', 'fastify', 'hono', 'ws']) {
    const [required, imported] = [require(`tidegate/${name}`), await import(`tidegate/${name}`)];
    for (const [key, value] of Object.entries(required))
      assert.equal(imported[key], value, `${name}: ${key}`);
  }
});
