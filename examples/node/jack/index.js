'use strict';

// Jack The Butler's middleware on Tidegate, for Koa. `examples/policies/jack.yaml` has its limits,
// bypass roles and trusted webhook sources. A folder takes the place of its SQLite table.

const path = require('node:path');
const { Limiter, ipKey } = require('tidegate');

const POLICY = path.join(__dirname, '../../policies/jack.yaml');

/** `folder`: where the counts are kept, for all processes and over restarts. */
function createRateLimits({ folder, clock } = {}) {
  const limiter = Limiter.fromFile(POLICY, { clock, ...(folder && { store: `file:${folder}` }) });
  return {
    rateLimitMiddleware: (category) => middleware(limiter, category),
    close: () => limiter.close(),
  };
}

function middleware(limiter, category) {
  // An unknown one is judged as `api:default`.
  const rule = limiter.rule(category.replace(':', '-'));
  return async (ctx, next) => {
    const decision = rule.hit(getRateLimitKey(category, ctx), attributesOf(ctx));
    ctx.set(decision.headers('legacy'));
    if (decision.allowed) return next();
    ctx.status = 429;
    ctx.body = {
      error: {
        code: 'RATE_LIMITED',
        message: 'Too many requests. Please try again later.',
        retryAfter: Math.ceil(decision.retryAfterMs / 1000),
      },
    };
  };
}

/** Logins and webhooks go by address, all else by who is logged in. */
function getRateLimitKey(category, ctx) {
  const byAddress = category.startsWith('auth:') || category.startsWith('webhook:');
  return (!byAddress && ctx.state.user?.id) || ipKey(ctx.ip);
}

const attributesOf = (ctx) => (ctx.state.user?.role ? { role: ctx.state.user.role } : {});

module.exports = { createRateLimits };
