// Real calls of the integrations, for `tsc --strict`: what must compile does, and what must not
// is marked.
import { createServer } from 'node:http';
import express from 'express';
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import fastify from 'fastify';
import { Hono } from 'hono';
import { WebSocketServer } from 'ws';
import { Limiter } from 'tidegate';
import { rateLimit } from 'tidegate/express';
import { TidegateStore } from 'tidegate/express-rate-limit';
import { rateLimit as fastifyRateLimit } from 'tidegate/fastify';
import { rateLimit as honoRateLimit } from 'tidegate/hono';
import { guard } from 'tidegate/ws';

const limiter = new Limiter('100/min');
const rule = limiter.rule('default');

const app = express();
app.use(rateLimit(limiter));
app.get(
  '/',
  rateLimit(rule, { trustedProxies: ['10.0.0.0/8'], fallbackKey: ['unknown'] }),
  (_req, res) => void res.end(),
);
app.use(
  rateLimit(rule, { key: (req: express.Request, client) => [req.path, client ?? 'unknown'] }),
);
app.use(
  rateLimit(rule, {
    attributes: (req: express.Request) => ({ role: req.get('role'), cost: 2 }),
    trustedHops: 1,
  }),
);
// @ts-expect-error: a key is no object
app.use(rateLimit(rule, { key: () => ({ id: 1 }) }));
// @ts-expect-error: what limits is a rule, not its text
app.use(rateLimit('100/min'));
createServer((req, res) => rateLimit(limiter)(req, res, () => res.end()));

const store = new TidegateStore({ store: 'file:limits', prefix: 'login:', capacity: 1_000 });
app.use(expressRateLimit({ windowMs: 60_000, limit: 100, store }));

const server = fastify();
server.register(fastifyRateLimit, {
  rule,
  hook: 'preHandler',
  key: (request, client) => [request.url, client ?? ''],
});
// @ts-expect-error: it needs a rule
server.register(fastifyRateLimit, {});
// @ts-expect-error: a request's address is a text
server.register(fastifyRateLimit, { rule, key: (request) => request.url.toFixed() });

const hono = new Hono();
hono.use(honoRateLimit(rule, { key: (c) => c.req.header('x-account'), peer: () => '203.0.113.9' }));
// @ts-expect-error: a header's name is a text
hono.use(honoRateLimit(rule, { key: (c) => c.req.header(1) }));

interface Message {
  type: string;
}
const pass = guard<Message>(rule, {
  key: (message, client, request) => [message.type, client ?? request.url ?? ''],
  attributes: ({ type }) => ({ action: type }),
  describe: ({ type }) => ({ tier: type }),
});
new WebSocketServer({ noServer: true }).on('connection', (socket, request) => {
  const passed: boolean = pass(socket, request, { type: 'ping' });
  // @ts-expect-error: that is no message
  pass(socket, request, 'ping');
  return passed;
});
// What middleware of others adds to a context stays known.
new Hono<{ Variables: { user: string } }>()
  .use(honoRateLimit(rule))
  .get('/', (c) => c.text(c.var.user satisfies string));
