// The same by `require`.
import { Limiter } from 'tidegate';
import { rateLimit } from 'tidegate/express';
import { TidegateStore } from 'tidegate/express-rate-limit';
import { rateLimit as plugin } from 'tidegate/fastify';
import { rateLimit as middleware } from 'tidegate/hono';
import { guard } from 'tidegate/ws';

const limiter = new Limiter('100/min');
console.log(
  rateLimit(limiter),
  plugin,
  middleware(limiter),
  guard(limiter),
  new TidegateStore().localKeys,
  limiter.hasPermits(),
);
