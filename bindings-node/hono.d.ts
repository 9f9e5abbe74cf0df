import type { Context, MiddlewareHandler } from 'hono';
import type { Limits, Options } from './http';

/**
 * Limits requests by a rule: one hit for each, and 429 with the decision's header fields and
 * `application/problem+json` for those denied.
 *
 * ```js
 * app.use(rateLimit(new Limiter('100/min burst 20')))
 * ```
 */
export function rateLimit(rule: Limits, options?: Options<Context>): MiddlewareHandler;
