'use strict';
// What callers pass beside a key, as the native functions take it.

const { rangeError, typeError } = require('./native.js');

/** An attribute as text; none if there is none. */
function attribute(name, value) {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'boolean':
      return String(value);
    case 'undefined':
      return null;
    default:
      if (value === null) return null;
      throw typeError(`attribute ${name} is a string, a number or a boolean, not ${typeof value}`);
  }
}

/** Names that operations take, and which do. They are never attributes. */
const RESERVED = new Map([
  ['cost', 'hit, check, peek, record, refund and acquire'],
  ['max', 'allow, hit, check, peek, record, refund, reserve and acquire'],
  ['timeoutMs', 'acquire, acquirePermit and acquireReservation'],
  ['timeout', 'acquire, acquirePermit and acquireReservation, as timeoutMs'],
  ['signal', 'acquire, acquirePermit and acquireReservation'],
  ['estimate', 'reserve and acquireReservation'],
  ['amount', 'spend'],
  // Kept for run-time changes with an end, a name and a reason.
  ['forMs'],
  ['for_'],
  ['by'],
  ['reason'],
]);

function notAnAttribute(name) {
  const takers = RESERVED.get(name);
  const what = takers ? `it is an option of ${takers}` : 'the name is kept for run-time changes';
  return typeError(`${name} is never an attribute: ${what}`);
}

/**
 * Takes `{ cost, max, ...attributes }` apart. Attributes become a flat list of names and values.
 * What the operation takes itself is among `own`.
 */
function takeApart(options, own = ['cost']) {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw typeError('options are an object: { cost, max, ...attributes }');
  }
  const attributes = [];
  for (const name of Object.keys(options)) {
    if (name === 'max' || own.includes(name)) continue;
    const given = options[name];
    if (given !== undefined && given !== null && RESERVED.has(name)) throw notAnAttribute(name);
    const value = attribute(name, given);
    if (value !== null) attributes.push(name, value);
  }
  return { cost: options.cost, max: options.max, attributes };
}

/** Options of waiting, which are no attributes. */
const WAITING = ['timeoutMs', 'signal'];

/** Options of a call that takes no cost, or has it as an argument. */
function withoutCost(options = {}) {
  return takeApart(options, []);
}

/** The same, of one that waits. */
function whileWaiting(options) {
  return takeApart(options, WAITING);
}

/** A timeout in milliseconds, as whole ones; none is endless. */
function timeout(ms) {
  if (ms === undefined || ms === null || ms === Infinity) return undefined;
  if (typeof ms !== 'number') throw typeError('timeoutMs is not a number');
  if (!(ms >= 0)) throw rangeError(`timeoutMs is from 0 on, not ${ms}`);
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}

module.exports = { WAITING, takeApart, timeout, whileWaiting, withoutCost };
