// Through a symbolic link Fastify's types may be out of reach from here: requests are `any` then.
// @ts-ignore
import type { FastifyRequest } from 'fastify';
import type { Limited, Options } from './http.js';

export interface RateLimitOptions extends Options<FastifyRequest> {
  rule: Limited;
  /** The hook that judges a request: `onRequest`, or a later one if the key needs another hook. */
  hook?: 'onRequest' | 'preValidation' | 'preHandler';
}

/**
 * Limits the requests of the instance that it is registered on: each is one hit. A denied one gets
 * 429, the decision's header fields and `application/problem+json`.
 *
 * ```js
 * app.register(rateLimit, { rule: new Limiter('100/min burst 20') })
 * ```
 */
export function rateLimit(fastify: object, options: RateLimitOptions): Promise<void>;
