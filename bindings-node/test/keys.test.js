'use strict';
// What is a key, what is not, and that no two keys meet.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Limiter, ManualClock } = require('tidegate');

const fresh = (options) =>
  new Limiter('1000000/h', { capacity: 1000, clock: new ManualClock(), ...options });
/** Which of these keys share a count with the first. */
function same(first, others, options) {
  const limiter = fresh(options);
  limiter.hit(first);
  return others.filter((key) => limiter.peek(key, 0).remaining < 1000000);
}

test('text, bytes, numbers and lists of one part that are written alike are one key', () => {
  const alike = ['42', Buffer.from('42'), new Uint8Array([52, 50]), 42, ['42']];
  for (const key of alike) assert.deepEqual(same(key, alike), alike);
  assert.deepEqual(same('é', [Buffer.from('é'), Buffer.from('é', 'latin1')]), [Buffer.from('é')]);
  assert.deepEqual(same(-0, [0, '0', '-0']), [0, '0']);
  assert.deepEqual(same(Buffer.from('xabcx').subarray(1, 4), ['abc', 'xabcx']), ['abc']);
});

test('bigints have 64 bits, and lists mix texts, numbers and bytes', () => {
  const largest = 2n ** 64n - 1n;
  assert.deepEqual(same(largest, [largest, `${largest}`, [largest], largest - 1n, -1n]), [
    largest,
    `${largest}`,
    [largest],
  ]);
  assert.deepEqual(same(-(2n ** 63n), ['-9223372036854775808']), ['-9223372036854775808']);
  assert.deepEqual(same(7n, [7, '7', Buffer.from('7')]), [7, '7', Buffer.from('7')]);
  const key = ['one', 'two'];
  const alike = [
    ['telegram', 42],
    ['telegram', '42'],
    ['telegram', 42n],
    [Buffer.from('telegram'), 42],
  ];
  for (const first of alike) assert.deepEqual(same(first, alike, { key }), alike);
  assert.deepEqual(same([1, 23], [[12, 3], [1, 23n]], { key }), [[1, 23n]]);
  const limiter = fresh();
  for (const wrong of [2n ** 64n, -(2n ** 63n) - 1n, 10n ** 100n]) {
    assert.throws(() => limiter.hit(wrong), { name: 'RangeError' });
    assert.throws(() => limiter.hit([wrong]), { name: 'RangeError' });
  }
  for (const wrong of [[true], [null], [{}], [['a']], [Symbol('a')]]) {
    assert.throws(() => limiter.hit(wrong), { name: 'TypeError' });
  }
  assert.deepEqual([...limiter.allowMany([7n, '8', [9]])], [1, 1, 1]);
  limiter.setOverride(9n, '5/h');
  assert.equal(limiter.peek('9', 0).limit, 5);
  return limiter.acquire(7n).then(({ allowed }) => assert(allowed));
});

test('parts are kept apart', () => {
  const key = ['one', 'two'];
  assert.deepEqual(
    same(
      ['a:b', 'c'],
      [
        ['a', 'b:c'],
        ['a:b', 'c'],
        ['', 'a:bc'],
      ],
      { key },
    ),
    [['a:b', 'c']],
  );
  const limiter = fresh({ key });
  for (const wrong of [
    'a',
    [],
    ['a'],
    ['a', 'b', 'c'],
    Array(9).fill('a'),
    Array(1000).fill('a'),
  ]) {
    assert.throws(() => limiter.hit(wrong), { name: 'TidegateError', code: 'key' });
  }
  const eight = fresh({ key: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] });
  assert.equal(eight.allow(Array(8).fill('x')), true);
  assert.throws(() => eight.hit(Array(9).fill('x')), { code: 'key' });
  return assert.rejects(eight.acquire(Array(9).fill('x')), { code: 'key' });
});

test('NUL, the empty text and every length about the buffer are whole keys', () => {
  assert.deepEqual(same('a', ['a\0', '\0a', 'a\0b', '']), []);
  assert.deepEqual(same('a\0b', ['a\0b', 'a\0c', Buffer.from('a\0b')]), [
    'a\0b',
    Buffer.from('a\0b'),
  ]);
  assert.deepEqual(same('', ['', Buffer.alloc(0), ['']]), ['', Buffer.alloc(0), ['']]);
  // A text that does not fit the stack's buffer is cut before a character, and the rest may look
  // whole.
  const texts = [];
  for (const letter of ['x', 'é', '語', '😀']) {
    for (let bytes = 240; bytes < 264; bytes++) {
      texts.push('p'.repeat(bytes) + letter);
      for (const pad of ['', 'p', 'pp', 'ppp'])
        texts.push(pad + letter.repeat(Math.ceil(bytes / Buffer.byteLength(letter))));
    }
  }
  for (const text of texts) {
    const limiter = fresh();
    limiter.hit(`${text}1`);
    assert.equal(limiter.peek(Buffer.from(`${text}1`), 0).remaining, 999_999, text);
    assert.equal(limiter.peek(`${text}2`, 0).remaining, 1_000_000, text);
    assert.equal(limiter.allow(`${text}1`) && limiter.allow(`${text}1`), true);
    assert.equal(limiter.peek(Buffer.from(`${text}1`), 0).remaining, 999_997, text);
  }
});

test('every character of a short text counts, wherever it is', () => {
  const limiter = fresh();
  for (let length = 1; length <= 50; length++) {
    for (let at = 0; at < length; at++) {
      // The lowest byte of U+0141 is that of A, and 0xc1 is an A with the highest bit set.
      const [plain, ...others] = ['A', '\u0141', '\u00c1', 'B'].map(
        (letter) => 'A'.repeat(at) + letter + 'A'.repeat(length - at - 1),
      );
      for (const other of others) limiter.hit(other);
      assert.equal(limiter.peek(plain, 0).remaining, 1_000_000, `${length} ${at}`);
      for (const other of others)
        assert.equal(limiter.peek(Buffer.from(other), 0).remaining, 999_999, other);
    }
    limiter.resetAll();
  }
});

test('a key of a mebibyte is a key', () => {
  for (const letter of ['a', '語']) {
    const long = letter.repeat(1 << 20);
    assert.deepEqual(same(long, [`${long}b`, long, Buffer.from(long)]).length, 2);
    assert.equal(fresh().allow(long), true);
  }
});

test('half of a surrogate pair is refused, and a replacement character is not', () => {
  const limiter = fresh({ key: ['one', 'two'] });
  const plain = fresh();
  for (const half of ['\ud800', 'a\udfffb', '\ud83d', 'x'.repeat(300) + '\ude00', '\ufffd\ud800']) {
    const refused = { name: 'TypeError', code: 'argument', message: /surrogate/ };
    assert.throws(() => plain.allow(half), refused);
    assert.throws(() => plain.hit(half), refused);
    assert.throws(() => limiter.hit(['a', half]), refused);
    assert.throws(() => plain.allowMany([half]), refused);
    assert.throws(() => plain.hit('a', { role: half }), refused);
  }
  assert.equal(plain.size, 0);
  assert.deepEqual(same('\ufffd', ['\ufffd', Buffer.from('\ufffd'), '\ufffc']), [
    '\ufffd',
    Buffer.from('\ufffd'),
  ]);
  assert.equal(plain.allow('😀') && plain.allow('\ud83d\ude00'), true);
  assert.equal(plain.peek('😀', 0).remaining, 999_998);
});

test('what is no key is an error, and counts for nothing', () => {
  const limiter = fresh();
  const refused = { name: 'TypeError', code: 'argument' };
  const wrong = [
    undefined,
    null,
    true,
    Symbol('a'),
    {},
    () => 'a',
    new Date(0),
    new Map(),
    new Float64Array(1),
  ];
  for (const key of [
    ...wrong,
    new ArrayBuffer(1),
    new DataView(new ArrayBuffer(1)),
    [true],
    [null],
    [['a']],
  ]) {
    for (const operation of [
      'allow',
      'hit',
      'check',
      'peek',
      'record',
      'refund',
      'stats',
      'reset',
      'isLimited',
    ]) {
      assert.throws(() => limiter[operation](key), refused, `${operation} ${String(key)}`);
    }
    assert.throws(() => limiter.reserve(key, 1), refused);
    assert.throws(() => limiter.allowMany([key]), refused);
  }
  assert.throws(() => limiter.hit(), refused);
  assert.throws(() => limiter.allow(), refused);
  for (const key of [1.5, NaN, Infinity, 2 ** 53]) {
    assert.throws(() => limiter.allow(key), { name: 'RangeError', code: 'range' });
  }
  assert.equal(limiter.allow(Number.MIN_SAFE_INTEGER), true);
  assert.equal(limiter.size, 1);
  assert.throws(() => limiter.hit({ toString: () => 'a' }), refused);
  const trap = Object.defineProperty([], 0, { get: () => { throw new Error('trapped'); } });
  assert.throws(() => limiter.hit(trap), /trapped/);
});

test('shared memory is a key as it is when it is read', () => {
  const shared = new Uint8Array(new SharedArrayBuffer(3));
  shared.set(Buffer.from('abc'));
  assert.deepEqual(same(shared, ['abc', 'abd']), ['abc']);
});
