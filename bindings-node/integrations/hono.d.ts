// Through a symbolic link Hono's types may be out of reach from here: contexts are `any` then.
// @ts-ignore
import type { Context } from 'hono';
import type { Limited, Options } from './http.js';

/** Middleware, in words that every copy of Hono's types agrees with. */
export type Middleware = (c: any, next: () => Promise<void>) => Promise<Response | void>;

/**
 * Limits requests by a rule: each is one hit. A denied one gets 429, the decision's header fields
 * and `application/problem+json`.
 *
 * ```js
 * app.use(rateLimit(new Limiter('100/min burst 20')))
 * ```
 */
export function rateLimit<Asked = Context>(rule: Limited, options?: Options<Asked>): Middleware;
