'use strict';

// What all integrations share: the client of a request, the rule's decision, the answer to a
// refusal.
//
// The client's address is the key, by `ipKey`, unless a `key` is given. That address is the peer's.
// Any client can write headers, so `X-Forwarded-For` is read only with `trustedHops` or
// `trustedProxies`. A request without a key is refused with 500 and never passes unlimited. With a
// `fallbackKey` all such requests share one key instead.

const { ipKey } = require('../index.js');
const { native, typeError } = require('../lib/native.js');

const NO_KEY =
  'This request has no key to be limited by: either the option `key` gave none, or the peer has ' +
  'no address. Say with `peer` where it is to be found, or set a `fallbackKey`.';

/** How many texts one function remembers. */
const MOST_REMEMBERED = 1_000;

/** The same function of a text, with its results kept. It forgets all when it has too many. */
function remembering(make) {
  const known = new Map();
  return (text) => {
    let made = known.get(text);
    if (made === undefined) {
      made = make(text);
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(text, made);
    }
    return made;
  };
}

/** Whether `X-Forwarded-For` is read. */
const trusts = ({ trustedHops, trustedProxies }) =>
  (trustedHops ?? 0) !== 0 || (trustedProxies?.length ?? 0) > 0;

/** Finds the client's address, given the peer's and `X-Forwarded-For`. Null if it is unknown. */
function clientBy({ trustedHops = 0, trustedProxies }) {
  const trust = native.trust(trustedHops, trustedProxies ?? []);
  const client = (peer, header) => native.client(trust, peer, header) ?? null;
  // Without trust the client is the peer, and most requests come over a connection that is known.
  return trusts({ trustedHops, trustedProxies }) ? client : remembering(client);
}

/**
 * Makes a function that gives the arguments of a request's hit: its key, and the attributes. It
 * gives null if there is no key. The attribute `ip` is the client's whole address, unless
 * `attributes` states another.
 */
function callBy({ key = (_, client) => client, attributes, fallbackKey }) {
  const keyOf = remembering((address) => ipKey(address));
  return (asked, address, request) => {
    const id = key(asked, address && keyOf(address), request) ?? fallbackKey;
    if (id == null) return null;
    const own = address ? { ip: address } : {};
    return [id, attributes ? { ...own, ...attributes(asked, request) } : own];
  };
}

/** Fails now, rather than with each request. */
function checkRule(rule) {
  if (typeof rule?.hit !== 'function')
    throw typeError('what limits is a Rule, or a Limiter that has one');
}

/**
 * Makes a function that judges a request. It returns `{ headers, permit }` for one that may pass
 * and `{ headers, status, body }` for one that may not. `peer` and `header` read the peer's address
 * and a header's value from a framework's request.
 */
function gate(rule, options = {}, { peer, header }) {
  checkRule(rule);
  const [clientOf, callOf, peerOf] = [clientBy(options), callBy(options), options.peer ?? peer];
  // Node parses the headers of a request when they are first read.
  const forwarded = trusts(options) ? (request) => header(request, 'x-forwarded-for') : () => {};
  return (request) => {
    const address = clientOf(peerOf(request), forwarded(request));
    const call = callOf(request, address, request);
    if (!call) return unjudged(NO_KEY);
    try {
      return judged(rule, call);
    } catch (error) {
      return unjudged(error.message);
    }
  };
}

function judged(rule, [key, options]) {
  const permit = rule.hasPermits() ? rule.permit(key, options) : null;
  const decision = permit ? permit.decision : rule.hit(key, options);
  return decision.allowed ? { headers: decision.headers(), permit } : tooMany(decision);
}

const tooMany = (decision) =>
  problem(429, native.denialBody(JSON.stringify(decision)), decision.headers());
const unjudged = (detail) => problem(500, native.unjudgedBody(detail));

/** A refusal as RFC 9457 has it. */
function problem(status, body, headers) {
  return { status, headers: { ...headers, 'Content-Type': 'application/problem+json' }, body };
}

module.exports = { NO_KEY, callBy, checkRule, clientBy, gate };
