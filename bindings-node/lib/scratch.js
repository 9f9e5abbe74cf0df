'use strict';
// The scratch array by the names of its fields. The native part writes an answer there, and the
// caller reads it before the next call.
//
// The native part states which fields there are, and in which order (src/decision.rs).

const { native } = require('./native.js');

const { scratch, layout } = native;

/** Makes an object whose fields are the first numbers on the array. */
function fieldsOf(names) {
  const fields = {};
  names.forEach((name, place) => {
    Object.defineProperty(fields, name, {
      get: () => scratch[place],
      set: (number) => {
        scratch[place] = number;
      },
    });
  });
  return Object.freeze(fields);
}

const head = layout.decision.length;
const each = layout.limit.length;

/** The fields of one limit of a decision. One class for all: V8 inlines its accessors. */
class LimitFields {
  constructor(limit) {
    this.start = head + each * limit;
  }
}
layout.limit.forEach((name, place) => {
  Object.defineProperty(LimitFields.prototype, name, {
    get() {
      return scratch[this.start + place];
    },
    set(number) {
      scratch[this.start + place] = number;
    },
  });
});

const limits = Math.floor((scratch.length - head) / each);

module.exports = {
  decisionFields: fieldsOf(layout.decision),
  /** The bits of a decision's `flags`. */
  flagBits: Object.fromEntries(layout.flags.map((name, index) => [name, 1 << index])),
  /** In declared order of the limits. */
  limitFields: Array.from({ length: limits }, (_, limit) => new LimitFields(limit)),
  datedFields: fieldsOf(layout.dated),
  recordedFields: fieldsOf(layout.recorded),
  budgetFields: fieldsOf(layout.budget),
};
