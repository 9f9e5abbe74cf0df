'use strict';
// The native functions of this environment, and the errors that they throw.

const { load } = require('../native.js');
const { version } = require('../package.json');

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

/** The native functions, for errors of the classes that the user's `instanceof` knows. */
function setup() {
  const native = load().setup(TidegateError, TypeError, RangeError);
  const found = native?.version?.() ?? 'another version';
  if (found === version) return native;
  const error = new Error(
    `tidegate ${version} has found the native part of ${found}: npm install tidegate again, or ` +
      'run npx tidegate-build again if it was built here',
  );
  throw coded(error, 'native');
}

const native = setup();

module.exports = {
  native,
  TidegateError,
  typeError: (message) => coded(new TypeError(message), 'argument'),
  rangeError: (message) => coded(new RangeError(message), 'range'),
};
