import type { Context, MiddlewareHandler } from 'hono';
import type { Limited, Options } from './http.js';

/**
 * Limits requests by a rule: each is one hit. A denied one gets 429, the decision's header fields
 * and `application/problem+json`.
 *
 * ```js
 * app.use(rateLimit(new Limiter('100/min burst 20')))
 * ```
 */
export function rateLimit(rule: Limited, options?: Options<Context>): MiddlewareHandler;
