import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Limited, Options } from './http.js';

export interface RateLimitOptions extends Options<FastifyRequest> {
  rule: Limited;
  /**
   * When requests are judged: `onRequest`, or a later hook if the key needs what an earlier one
   * finds out.
   */
  hook?: 'onRequest' | 'preValidation' | 'preHandler';
}

/**
 * Limits the requests of the instance that it is registered on: one hit for each, and 429 with the
 * decision's header fields and `application/problem+json` for those denied.
 *
 * ```js
 * app.register(rateLimit, { rule: new Limiter('100/min burst 20') })
 * ```
 */
export const rateLimit: FastifyPluginAsync<RateLimitOptions>;
