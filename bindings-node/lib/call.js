'use strict';
// What callers pass beside a key, as the native functions take it.

const { rangeError, typeError } = require('./native.js');

const hasOwn = Object.prototype.hasOwnProperty;

/** An attribute as text; none if there is none. */
function attribute(name, value) {
  if (isGiven(value) && RESERVED.has(name)) {
    throw typeError(`${name} is never an attribute: it is an option of ${RESERVED.get(name)}`);
  }
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

const WAITERS = 'acquire, acquirePermit and acquireReservation';
const ENDING = 'block, setOverride, setDefault, addExempt, setExempts and setMode';
const CHANGING = [
  'block, unblock, setOverride, clearOverride, setDefault',
  'addExempt, removeExempt, setExempts, setMode and clearMode',
].join(', ');

/** Names that operations take, and which do. They are never attributes. */
const RESERVED = new Map([
  ['cost', 'hit, check, peek, record, refund, why and acquire'],
  ['max', 'allow, hit, check, peek, record, refund, reserve, why and acquire'],
  ['timeoutMs', WAITERS],
  ['timeout', `${WAITERS}, as timeoutMs`],
  ['signal', WAITERS],
  ['estimate', 'reserve and acquireReservation'],
  ['amount', 'spend'],
  ['forMs', ENDING],
  ['for_', `${ENDING}, as forMs`],
  ['by', CHANGING],
  ['reason', CHANGING],
]);

/** What an operation takes itself, beside attributes. */
const PRICED = ['cost', 'max'];
const UNPRICED = ['max'];
const WAITING = ['max', 'timeoutMs', 'signal'];
/** Of a change that may end by itself, and of one that takes something back. */
const CHANGE = ['forMs', 'by', 'reason'];
const UNDO = ['by', 'reason'];

const isGiven = (value) => value !== undefined && value !== null;

function checkIsMap(options, own, rest = '') {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw typeError(`options are an object: { ${own.join(', ')}${rest} }`);
  }
}

/**
 * Takes `{ cost, max, ...attributes }` apart. Attributes become a flat list of names and values.
 * What the operation takes itself is among `own`.
 */
function takeApart(options, own = PRICED) {
  checkIsMap(options, own, ', ...attributes');
  const attributes = [];
  for (const name of Object.keys(options)) {
    if (own.includes(name)) continue;
    const value = attribute(name, options[name]);
    if (value !== null) attributes.push(name, value);
  }
  return { cost: options.cost, max: options.max, attributes };
}

/** Checks attributes that are not handed over. False if the native part has to refuse one. */
function checkAttributes(options, own) {
  for (const name in options) {
    if (!hasOwn.call(options, name) || own.includes(name)) continue;
    const value = attribute(name, options[name]);
    if (value !== null && !value.isWellFormed()) return false;
  }
  return true;
}

/** Adds the values of the attributes `read` to `texts`, in that order, and checks the others. */
function addAttributes(texts, options, own, read) {
  const start = texts.length;
  for (let i = 0; i < read.length; i++) texts.push(undefined);
  for (const name in options) {
    if (!hasOwn.call(options, name) || own.includes(name)) continue;
    const value = attribute(name, options[name]);
    const place = read.indexOf(name);
    if (place >= 0) texts[start + place] = value ?? undefined;
    else if (value !== null && !value.isWellFormed()) return false;
  }
  return true;
}

/** Options of a call that takes no cost, or has it as an argument. */
function withoutCost(options = {}) {
  return takeApart(options, UNPRICED);
}

/** The same, of one that waits. */
function whileWaiting(options) {
  return takeApart(options, WAITING);
}

/** The option is `forMs`. As an attribute of a block, `for` would make an endless one. */
function checkNoFor(operation, options) {
  if (isGiven(options?.for))
    throw typeError(`${operation} has no option for: it is forMs, in milliseconds`);
}

/** `{ forMs, by, reason }` of a change that takes no attributes, as a list. */
function change(operation, options = {}, own = CHANGE) {
  checkIsMap(options, own);
  if (own === CHANGE) checkNoFor(operation, options);
  for (const name of Object.keys(options)) {
    if (own.includes(name) || !isGiven(options[name])) continue;
    const takers = RESERVED.has(name)
      ? `it is an option of ${RESERVED.get(name)}`
      : `there are ${own.join(', ')}`;
    throw typeError(`${operation} has no option ${name}: ${takers}`);
  }
  return listed(options);
}

const listed = ({ forMs, by, reason }) => [forMs, by, reason];

/** The same of a block, with its attributes before them. */
function blocking(options = {}, own = CHANGE) {
  if (own === CHANGE) checkNoFor('block', options);
  const { attributes } = takeApart(options, own);
  return [attributes, ...listed(options)];
}

/** A timeout in milliseconds, as whole ones; none is endless. */
function timeout(ms) {
  if (ms === undefined || ms === null || ms === Infinity) return undefined;
  if (typeof ms !== 'number') throw typeError('timeoutMs is not a number');
  if (!(ms >= 0)) throw rangeError(`timeoutMs is from 0 on, not ${ms}`);
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}

module.exports = {
  PRICED,
  UNDO,
  UNPRICED,
  WAITING,
  addAttributes,
  blocking,
  change,
  checkAttributes,
  checkIsMap,
  takeApart,
  timeout,
  whileWaiting,
  withoutCost,
};
