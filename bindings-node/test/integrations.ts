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

// OpenClaw's own types, as its specification has them.
import {
  createCostBudgetTracker,
  createMessageRateLimiter,
} from '../../examples/node/openclaw/index.js';

const { check, getStats } = createMessageRateLimiter({
  enabled: true,
  maxMessagesPerMinute: 20,
  maxMessagesPerHour: 200,
  burstLimit: 5,
  cooldownMs: 60_000,
  exemptSenders: ['+1234567890'],
  exemptChannels: ['webchat'],
  pruneIntervalMs: 60_000,
  perChannel: { discord: { maxMessagesPerMinute: 60, maxMessagesPerHour: 200, burstLimit: 10 } },
});
const { allowed, remaining, retryAfterMs, reason, budget } = check('discord:main:user123');
const wait: number | undefined = allowed ? remaining : retryAfterMs;
const why: 'burst' | 'per-minute' | 'per-hour' | 'cooldown' | undefined = reason;
const counts: number[] = Object.values(getStats('discord:main:user123') ?? {});
const tracker = createCostBudgetTracker({
  enabled: true,
  maxDailyCostCents: 500,
  maxPerMessageCostCents: 100,
  resetHourUtc: 0,
});
const { dailySpentCents, dailyRemainingCents, overBudget } =
  tracker.checkBudget('discord:main:user123');
console.log(
  wait,
  why,
  counts,
  dailySpentCents + dailyRemainingCents,
  overBudget,
  budget?.overBudget,
);
