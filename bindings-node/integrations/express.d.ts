import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Limited, Options } from './http.js';

/**
 * Limits requests by a rule, for Express and all that takes `(req, res, next)`. Each request is one
 * hit. A denied one gets 429, the decision's header fields and `application/problem+json`.
 *
 * A rule with a concurrent limit holds its slot until the response is sent or the client is gone.
 *
 * ```js
 * app.use(rateLimit(new Limiter('100/min burst 20')))
 * ```
 */
export function rateLimit<Request extends IncomingMessage = IncomingMessage>(
  rule: Limited,
  options?: Options<Request>,
): (req: Request, res: ServerResponse, next: (error?: unknown) => void) => void;
