'use strict';

// OpenClaw's `message-rate-limit.ts` and `cost-budget.ts` on Tidegate: the same functions, types
// and results. `policy.js` has the rules. This file turns OpenClaw's calls into Tidegate's, and
// decisions into OpenClaw's results.

const { Limiter } = require('tidegate');
const { policyOf } = require('./policy.js');

const buildRateLimitKey = ({ channel, accountId, senderId }) =>
  `${channel}:${accountId}:${senderId}`;

/** A sender's id may have colons of its own. */
function partsOf(key) {
  const [channel, account = '', ...sender] = key.split(':');
  return [channel, account, sender.join(':')];
}

/** `budget`: a tracker whose status comes with each result. `clock`, `now`: for tests. */
function createMessageRateLimiter(config = {}, { budget, clock, now = Date.now } = {}) {
  const limiter = Limiter.fromPolicy(policyOf(config), { clock });
  const rule = limiter.rule('messages');
  const timer = setInterval(() => rule.prune(), config.pruneIntervalMs ?? 60_000).unref();
  return {
    check: (key) => ({
      ...resultOf(rule.check(partsOf(key))),
      ...(budget && { budget: budget.checkBudget(key) }),
    }),
    record: (key) => void rule.record(partsOf(key)),
    // Added: takes a record back, for a dispatch that failed.
    unrecord: (key) => rule.refund(partsOf(key)),
    reset: (key) => rule.reset(partsOf(key)),
    resetAll: () => rule.resetAll(),
    size: () => rule.size,
    prune: () => void rule.prune(),
    dispose: () => (clearInterval(timer), limiter.close()),
    getStats: (key) => statsOf(rule.stats(partsOf(key)), now()),
  };
}

/** `notify`, which its type lacks, says whether to notify the sender: see `dispatch.js`. */
function resultOf({ allowed, remaining, retryAfterMs, reason, notify }) {
  if (allowed) return { allowed, remaining: remaining ?? Infinity };
  return { allowed, remaining, retryAfterMs: retryAfterMs ?? undefined, reason, notify };
}

function statsOf(stats, now) {
  if (!stats) return null;
  const { limits, cooldownLeftMs, lastAllowedMs } = stats;
  return {
    messagesLastMinute: limits['per-minute'].used,
    messagesLastHour: limits['per-hour'].used,
    burstCount: limits.burst.used,
    ...(cooldownLeftMs > 0 && { cooldownUntil: now + cooldownLeftMs }),
    ...(lastAllowedMs !== null && { lastMessageAt: now - lastAllowedMs }),
  };
}

function createCostBudgetTracker(config = {}, { clock } = {}) {
  if (!config.enabled) return UNLIMITED;
  const limiter = Limiter.fromPolicy(policyOf({}, config), { clock });
  const rule = limiter.rule('messages');
  return {
    // An estimate has fractions of a cent; a budget does not.
    recordCost: (key, costCents) => void rule.spend(partsOf(key), Math.ceil(costCents)),
    checkBudget: (key) => statusOf(rule.budget(partsOf(key))),
    reset: (key) => rule.reset(partsOf(key)),
    dispose: () => limiter.close(),
  };
}

const statusOf = ({ spent, remaining, over }) => ({
  dailySpentCents: spent,
  dailyRemainingCents: remaining,
  overBudget: over,
});

const UNLIMITED = {
  recordCost() {},
  checkBudget: () => statusOf({ spent: 0, remaining: Infinity, over: false }),
  reset() {},
  dispose() {},
};

const CHECK_IDS = {
  rule_disabled: 'security.message_rate_limit_disabled',
  high_burst: 'security.message_rate_limit_high_burst',
  exempt_all: 'security.message_rate_limit_exempt_all',
  no_budget: 'security.cost_budget_disabled',
};

/** The findings of `openclaw security audit` on its two settings. */
function auditRateLimits({ messageRateLimit, costBudget } = {}) {
  const limiter = Limiter.fromPolicy(policyOf(messageRateLimit, costBudget));
  const findings = limiter.audit().filter(({ id }) => id in CHECK_IDS);
  limiter.close();
  return findings.map(({ id, severity, message }) => ({
    checkId: CHECK_IDS[id],
    severity,
    message,
  }));
}

module.exports = {
  auditRateLimits,
  buildRateLimitKey,
  createCostBudgetTracker,
  createMessageRateLimiter,
};
