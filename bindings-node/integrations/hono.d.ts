import type { Context, MiddlewareHandler } from 'hono';
import type { Limited, Options } from './http.js';

/**
 * Limits requests by a rule: one hit for each, and 429 with the decision's header fields and
 * `application/problem+json` for those denied.
 *
 * ```js
 * app.use(rateLimit(new Limiter('100/min burst 20')))
 * ```
 */
export function rateLimit(rule: Limited, options?: Options<Context>): MiddlewareHandler;
