import type { CostOptions, Key, Limiter, Rule } from '../index.js';

/** What limits: a rule, or a limiter that has one. */
export type Limited = Rule | Limiter;

/** A request's key and attributes. `Asked` is a framework's request (or context). */
export interface Options<Asked, Request = Asked> {
  /**
   * Makes the key, all its parts, of a request. `client` is the key of the client's address, null
   * if that is not known. Returns null for a request without a key. The default is `client`.
   */
  key?: (asked: Asked, client: string | null, request: Request) => Key | null | undefined;
  /**
   * Gives the rule more about a request: its role, its tier, its cost. The attribute `ip` is the
   * client's whole address, unless this gives another.
   */
  attributes?: (asked: Asked, request: Request) => CostOptions;
  /**
   * Believes `X-Forwarded-For` for this many proxies, which no request can bypass. The client is
   * the address number `trustedHops` from the right, or the peer if there are fewer.
   */
  trustedHops?: number;
  /**
   * Believes `X-Forwarded-For` as far as proxies in these ranges wrote it. The client is the first
   * address that is none of theirs: the peer's, or one of the header, from the right.
   */
  trustedProxies?: readonly string[];
  /** The key that requests without one share, in place of being answered with 500. */
  fallbackKey?: Key;
  /** Where the peer's address is to be found, if not at the socket. */
  peer?: (request: Request) => string | null | undefined;
}
