'use strict';
// The native functions of this environment, and the errors that they throw.

const { load } = require('../native.js');

/** What went wrong: a `code` to act on, and a message that says where and what to do. */
class TidegateError extends Error {
  constructor(message, code, problems = '[]') {
    super(message);
    this.code = code;
    this.problems = JSON.parse(problems);
  }
}
Object.defineProperty(TidegateError.prototype, 'name', {
  value: 'TidegateError',
  configurable: true,
  writable: true,
});

function coded(error, code) {
  error.code = code;
  return error;
}

const native = load().setup(TidegateError);

module.exports = {
  native,
  TidegateError,
  typeError: (message) => coded(new TypeError(message), 'argument'),
  rangeError: (message) => coded(new RangeError(message), 'range'),
};
