'use strict';
// Run by Jest, which gives each test file globals of its own: `TypeError` is not Node's there.

const { Limiter, TidegateError } = require('tidegate');

const limiter = new Limiter('1/h');

function thrown(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

test('a TypeError is one', () => {
  // By the native part, and by JavaScript.
  for (const call of [() => limiter.hit({}), () => limiter.hit('a', { timeoutMs: 1 })]) {
    expect(call).toThrow(TypeError);
    expect(thrown(call)).toMatchObject({ name: 'TypeError', code: 'argument' });
  }
});

test('a RangeError is one', () => {
  const call = () => limiter.hit('a', -1);
  expect(call).toThrow(RangeError);
  expect(thrown(call)).toMatchObject({ name: 'RangeError', code: 'range' });
});

test('a TidegateError is an Error', () => {
  const call = () => new Limiter('1/mni');
  expect(call).toThrow(TidegateError);
  expect(call).toThrow(Error);
  expect(thrown(call)).toMatchObject({ name: 'TidegateError', code: 'policy' });
});
