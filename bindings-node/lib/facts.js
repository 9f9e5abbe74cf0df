'use strict';
// What headers and limits of a decision are made of, copied before the next call overwrites it.
//
// The copy is a flat array of doubles: an object for each limit cost a `hit` 2 to 13 %.

const { decisionFields: fields, limitFields } = require('./scratch.js');

/** Where each fact stands: those of the decision, then those of each limit. */
const places = {
  REASON: 0,
  AT_HIGH: 1,
  AT_LOW: 2,
  /** Where the limits start, and how many facts each has. */
  HEAD: 3,
  EACH: 6,
  /** Within a limit. */
  NAME: 0,
  MAX: 1,
  WINDOW: 2,
  REMAINING: 3,
  RESET_AFTER: 4,
  MORE_AFTER: 5,
};

function copyFacts() {
  const { reason, atHigh, atLow, limits } = fields;
  if (limits === 1) {
    // A literal is of the right size at once.
    const { name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs } = limitFields[0];
    return [reason, atHigh, atLow, name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs];
  }
  const facts = [reason, atHigh, atLow];
  for (let i = 0; i < limits; i++) {
    const { name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs } = limitFields[i];
    facts.push(name, max, windowSeconds, remaining, resetAfterMs, moreAfterMs);
  }
  return facts;
}

module.exports = { copyFacts, places };
