'use strict';
// Options in JavaScript's spelling, as a policy has them: `warnAt` is `warn_at`, and a number is a
// time in milliseconds where a policy has a period. What the policy does not know it says itself.

const { native, rangeError, typeError } = require('./native.js');

/** Fields that are periods. */
const PERIODS = new Set(native.periods());
/** Fields whose names and values are the user's own. */
const VERBATIM = new Set(['match', 'exempt', 'attach', 'map']);

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function translated(value, field) {
  if (typeof value === 'number' && PERIODS.has(field)) return `${value}ms`;
  if (value === null || typeof value !== 'object' || VERBATIM.has(field)) return value;
  if (Array.isArray(value)) return value.map((one) => translated(one, field));
  const map = {};
  for (const [name, one] of Object.entries(value)) {
    // The names of limits are the user's, their fields ours.
    if (field === 'limits') map[name] = translated(one, '');
    else map[snake(name)] = translated(one, name);
  }
  return map;
}

function json(value, what, replace) {
  try {
    const text = JSON.stringify(value, replace);
    if (text !== undefined) return text;
  } catch (error) {
    throw error.code === 'range' ? error : typeError(`${what} is no plain data: ${error.message}`);
  }
  throw typeError(`${what} is missing`);
}

/** Not a Map, a Date or the like, of which JSON would leave an empty map. */
function checkIsPlain(value, what) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw typeError(`${what} is a plain object, not a ${prototype.constructor?.name}`);
  }
}

/** A rule's options, or a change of its limits. */
const ruleJson = (options) => json(translated(options, ''), 'a rule');
function limitsJson(limits) {
  checkIsPlain(limits, 'a map of limits');
  return json(translated(limits, 'limits'), 'limits', finite);
}

/** JSON has null for NaN, which in a change is what stays as it is. */
function finite(field, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw rangeError(`${field} is a number, not ${value}`);
  }
  return value;
}

/** A field without a value would be left out, and the match be of more calls than was meant. */
function checkMatch(match) {
  checkIsPlain(match, 'a match');
  for (const [field, value] of Object.entries(match ?? {})) {
    if (['undefined', 'function', 'symbol'].includes(typeof value)) {
      throw typeError(`${field} of a match is a text or an array of texts, not ${typeof value}`);
    }
  }
}

function matchJson(match) {
  checkMatch(match);
  return json(match, 'a match');
}

function matchesJson(matches) {
  if (!Array.isArray(matches)) throw typeError('exemptions are an array of matches');
  matches.forEach(checkMatch);
  return json(matches, 'matches');
}

const KNOWN = {
  store: ['string'],
  capacity: ['number'],
  onFull: ['string'],
  recreate: ['boolean'],
  memory: ['number', 'string'],
  group: ['boolean'],
};

/** Options of the limiter itself. */
function limiterJson(options) {
  const map = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || name === 'clock') continue;
    if (!Object.hasOwn(KNOWN, name)) {
      throw typeError(
        `there is no option ${name}; ` +
          'there are store, capacity, onFull, clock, recreate, memory and group',
      );
    }
    if (!KNOWN[name].includes(typeof value)) {
      throw typeError(`${name} is a ${KNOWN[name].join(' or a ')}, not ${typeof value}`);
    }
    if (typeof value === 'number' && !(Number.isSafeInteger(value) && value > 0)) {
      throw rangeError(`${name} is a whole number from 1 on, not ${value}`);
    }
    map[snake(name)] = value;
  }
  return JSON.stringify(map);
}

function checkOptions(options) {
  if (options === null || typeof options !== 'object') throw typeError('options are an object');
  return options;
}

module.exports = { checkOptions, json, limiterJson, limitsJson, matchJson, matchesJson, ruleJson };
