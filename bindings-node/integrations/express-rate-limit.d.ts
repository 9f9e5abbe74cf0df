import type { LimiterOptions } from '../index.js';

export interface TidegateStoreOptions
  extends Pick<LimiterOptions, 'store' | 'capacity' | 'onFull' | 'clock'> {
  /** Separates this store's counts from others' in the same file: one for each middleware. */
  prefix?: string;
}

/** A client's count. */
export interface ClientRateLimitInfo {
  totalHits: number;
  resetTime: Date;
}

/**
 * A store for express-rate-limit 7 and later. It lives in memory, or in a file that all processes
 * of a host share.
 *
 * ```js
 * const store = new TidegateStore({ store: 'file:limits' });
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store }))
 * ```
 */
export class TidegateStore {
  constructor(options?: TidegateStoreOptions);
  readonly prefix: string;
  readonly localKeys: boolean;
  init(options: { windowMs: number }): void;
  get(key: string): ClientRateLimitInfo | undefined;
  increment(key: string): ClientRateLimitInfo;
  decrement(key: string): void;
  resetKey(key: string): void;
  resetAll(): void;
  shutdown(): void;
}
