'use strict';

// What all integrations share: whose request it is, what the rule says to it, and a refusal in words.
//
// Who is limited is the client's address, by `ipKey`, unless a `key` is given. That address is the
// peer's; headers can be written by anybody, so `X-Forwarded-For` is read only where `trustedHops` or
// `trustedProxies` says whose it is. A request that has no key is refused with 500, and never passes
// unlimited; with a `fallbackKey` all such requests share one key in place of that.

const { BlockList, isIP, isIPv4 } = require('node:net');
const { ipKey } = require('./index.js');
const { rangeError, typeError } = require('./lib/native.js');

const NO_KEY =
  'This request has no key to be limited by: either the option `key` gave none, or the peer has no ' +
  'address. Say with `peer` where it is to be found, or set a `fallbackKey`.';
const WHOLE_ADDRESS = 128;

/** An address, unmapped; null for what is none. */
function readAddress(text) {
  const address = isIP(text) ? text : bare(text);
  return isIP(address) ? ipKey(address, WHOLE_ADDRESS) : null;
}

/** Some proxies add the port, and brackets. */
function bare(text) {
  const [, bracketed] = /^\[(.+)\](?::\d{1,5})?$/.exec(text) ?? [];
  const [, withPort] = /^([\d.]+):\d{1,5}$/.exec(text) ?? [];
  return bracketed ?? withPort ?? '';
}

/** What `X-Forwarded-For` names, from the right: each proxy adds at that end. Null for no address. */
function* forwarded(header = '') {
  for (const item of header.split(',').reverse()) {
    if (item.trim()) yield readAddress(item.trim());
  }
}

/** Whether an address, unmapped, is in one of some ranges. */
function within(ranges) {
  const [v4, v6] = [new BlockList(), new BlockList()];
  for (const range of ranges) {
    const [, address, bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
    const most = isIP(address) === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : Number(bits);
    if (!isIP(address) || prefix > most)
      throw rangeError(`${JSON.stringify(range)} is not an address or a range of them`);
    // A range within the IPv4-mapped addresses is one of IPv4.
    const plain = prefix >= most - 32 ? ipKey(address, WHOLE_ADDRESS) : address;
    if (isIPv4(plain)) v4.addSubnet(plain, prefix - (most - 32), 'ipv4');
    else v6.addSubnet(plain, prefix, 'ipv6');
  }
  return (address) => (isIPv4(address) ? v4.check(address) : v6.check(address, 'ipv6'));
}

/** Finds the client's address, given the peer's and `X-Forwarded-For`. Where the header falls short of
 * what was promised, it is the last address that is sure, and never an invented one. */
function clientBy({ trustedHops = 0, trustedProxies }) {
  if (!Number.isInteger(trustedHops) || trustedHops < 0) throw rangeError('trustedHops is a whole number');
  if (trustedProxies && trustedHops) throw typeError('trustedHops and trustedProxies exclude each other');
  if (trustedProxies) {
    const isTrusted = within(trustedProxies);
    return (peer, header) => peer && beyond(peer, header, isTrusted);
  }
  return (peer, header) => (trustedHops > 0 ? (nth(forwarded(header), trustedHops) ?? peer) : peer);
}

/** The first address from the right that is not a trusted proxy's. */
function beyond(peer, header, isTrusted) {
  const named = forwarded(header);
  let last = peer;
  while (isTrusted(last)) {
    const next = named.next().value;
    if (!next) break;
    last = next;
  }
  return last;
}

function nth(items, count) {
  for (const item of items) if (--count === 0) return item;
  return null;
}

/** Makes the arguments of a hit for what is asked about a client: its key (null if there is none), and
 * all that a rule may look at. The client's whole address is always told, as `ip`, unless `attributes` tells another. */
function callBy({ key = (_, client) => client, attributes, fallbackKey }) {
  return (asked, address, request) => {
    const id = key(asked, address && ipKey(address), request) ?? fallbackKey;
    if (id == null) return null;
    return [id, { ...(address && { ip: address }), ...attributes?.(asked, request) }];
  };
}

/** Fails now, rather than with each request. */
function checkRule(rule) {
  if (typeof rule?.hit !== 'function') throw typeError('what limits is a Rule, or a Limiter that has one');
}

/** Answers `{ headers, permit }` for a request that may pass and `{ headers, status, body }` for one that
 * may not. `peer` and `header` say where a framework keeps the peer's address and a header's value. */
function gate(rule, options = {}, { peer, header }) {
  checkRule(rule);
  const [clientOf, callOf, peerOf] = [clientBy(options), callBy(options), options.peer ?? peer];
  return (request) => {
    const seen = peerOf(request);
    const address = clientOf(seen ? readAddress(seen) : null, header(request, 'x-forwarded-for'));
    const call = callOf(request, address, request);
    if (!call) return unjudged(NO_KEY);
    try {
      return judged(rule, call);
    } catch (error) {
      return unjudged(error.message);
    }
  };
}

function judged(rule, [key, told]) {
  const permit = rule.hasPermits() ? rule.permit(key, told) : null;
  const decision = permit ? permit.decision : rule.hit(key, told);
  return decision.allowed ? { headers: decision.headers(), permit } : tooMany(decision);
}

function tooMany(decision) {
  const { rule, reason, retryAfterMs, attach } = decision;
  const detail =
    retryAfterMs === null
      ? 'This request is over the limit, and waiting does not help.'
      : `The rate limit is reached; try again in ${retryAfterMs} ms.`;
  const more = { rule, reason, retry_after_ms: retryAfterMs, ...(attach !== null && { attach }) };
  return problem(429, 'Too Many Requests', detail, more, decision.headers());
}

const unjudged = (detail) => problem(500, 'Internal Server Error', detail);

/** A refusal as RFC 9457 has it. */
function problem(status, title, detail, more, headers) {
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, ...more });
  return { status, headers: { ...headers, 'Content-Type': 'application/problem+json' }, body };
}

module.exports = { NO_KEY, callBy, checkRule, clientBy, gate, readAddress };
