'use strict';

const { native, TidegateError } = require('./lib/native.js');
const { ManualClock } = require('./lib/clock.js');
const { Decision } = require('./lib/decision.js');
const { Permit, Reservation } = require('./lib/held.js');
const { Limiter } = require('./lib/limiter.js');
const { Rule } = require('./lib/rule.js');

module.exports = {
  Decision,
  Limiter,
  ManualClock,
  Permit,
  Reservation,
  Rule,
  TidegateError,
  ipKey: (address, v6Prefix) => native.ipKey(address, v6Prefix),
  version: native.version(),
};
