import type { CostOptions, Key, Limiter, Rule } from '../index.js';

/** What limits: a rule, or a limiter that has one. */
export type Limited = Rule | Limiter;

/**
 * Who is limited, and what else the rule is told. `Asked` is a framework's request (or context).
 */
export interface Options<Asked, Request = Asked> {
  /**
   * Makes the key, all its parts, of a request and of the key of the client's address (null if that
   * is not known). Null for a request that has none. By default it is the address's.
   */
  key?: (asked: Asked, client: string | null, request: Request) => Key | null | undefined;
  /**
   * Tells the rule more about a request: its role, its tier, its cost. The client's whole address
   * is always told, as `ip`, unless this tells another.
   */
  attributes?: (asked: Asked, request: Request) => CostOptions;
  /**
   * Believes `X-Forwarded-For` for this many proxies, which nobody can get round: the client is the
   * address number `trustedHops` from the right, or the peer if there are fewer.
   */
  trustedHops?: number;
  /** Believes `X-Forwarded-For` as far as proxies in these ranges wrote it: the client is the first
   * address from the right, the peer's before all, that is none of theirs. */
  trustedProxies?: readonly string[];
  /** The key that requests without one share, in place of being answered with 500. */
  fallbackKey?: Key;
  /** Where the peer's address is to be found, if not at the socket. */
  peer?: (request: Request) => string | null | undefined;
}
