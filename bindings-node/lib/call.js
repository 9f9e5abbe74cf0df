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

/**
 * Takes `{ cost, max, ...attributes }` apart. Attributes become a flat list of names and values.
 * What is `reserved` is no attribute.
 */
function takeApart(options, reserved = ['cost']) {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw typeError('options are an object: { cost, max, ...attributes }');
  }
  const attributes = [];
  for (const name of Object.keys(options)) {
    if (name === 'max' || reserved.includes(name)) continue;
    const value = attribute(name, options[name]);
    if (value !== null) attributes.push(name, value);
  }
  return { cost: options.cost, max: options.max, attributes };
}

/** Options of waiting, which are no attributes. */
const WAITING = ['cost', 'timeoutMs', 'signal'];

function noCost(call) {
  if (call.cost !== undefined) throw typeError('this operation has no cost among its options');
  return call;
}

/** Options of a call whose cost is given otherwise. */
function withoutCost(options = {}) {
  return noCost(takeApart(options));
}

/** The same, of one that waits. */
function whileWaiting(options) {
  return noCost(takeApart(options, WAITING));
}

/** A timeout in milliseconds, as whole ones; none is endless. */
function timeout(ms) {
  if (ms === undefined || ms === null || ms === Infinity) return undefined;
  if (typeof ms !== 'number') throw typeError('timeoutMs is not a number');
  if (!(ms >= 0)) throw rangeError(`timeoutMs is from 0 on, not ${ms}`);
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}

module.exports = { WAITING, takeApart, timeout, whileWaiting, withoutCost };
