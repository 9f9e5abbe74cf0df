'use strict';
// Options in JavaScript's spelling, as a policy has them: `warnAt` is `warn_at`, and a number is a time
// in milliseconds where a policy has a period. What the policy does not know it says itself.

const { rangeError, typeError } = require('./native.js');

/** Fields that are periods. */
const PERIODS = new Set(['per', 'lease', 'cooldown', 'steps', 'quiet', 'round', 'within']);
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

function json(value, what) {
  try {
    const text = JSON.stringify(value);
    if (text !== undefined) return text;
  } catch (error) {
    throw typeError(`${what} is no plain data: ${error.message}`);
  }
  throw typeError(`${what} is missing`);
}

/** A rule's options, or a change of its limits. */
const ruleJson = (options) => json(translated(options, ''), 'a rule');
const limitsJson = (limits) => json(translated(limits, 'limits'), 'limits');

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
      throw typeError(`there is no option ${name}; there are store, capacity, onFull, clock, recreate, memory and group`);
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

module.exports = { checkOptions, json, limiterJson, limitsJson, ruleJson };
