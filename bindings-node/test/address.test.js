'use strict';
// Whose request it is: the same cases as those of the layer for Rust.

const assert = require('node:assert/strict');
const test = require('node:test');
const { clientBy, readAddress } = require('../http.js');

const client = (options, peer, header) => clientBy(options)(peer && readAddress(peer), header) ?? '';

test('hops are counted from the right', () => {
  const header = '6.6.6.6, 1.1.1.1, 2.2.2.2 ,, 3.3.3.3,';
  const nth = (trustedHops) => client({ trustedHops }, '10.0.0.1', header);
  assert.deepEqual([0, 1, 2, 3, 4].map(nth), ['10.0.0.1', '3.3.3.3', '2.2.2.2', '1.1.1.1', '6.6.6.6']);
  assert.equal(nth(5), '10.0.0.1', 'too few: the peer');
  assert.equal(client({ trustedHops: 1 }, '10.0.0.1', '1.1.1.1, unknown'), '10.0.0.1');
  assert.equal(client({ trustedHops: 1 }, null, '1.1.1.1'), '1.1.1.1', 'a socket without addresses');
  assert.equal(client({ trustedHops: 2 }, null, '1.1.1.1'), '');
});

test('trusted ranges are walked up to the first stranger', () => {
  const of = (peer, header) => client({ trustedProxies: ['10.0.0.0/8'] }, peer, header);
  assert.equal(of('9.9.9.9', '1.1.1.1'), '9.9.9.9', "a stranger's word");
  assert.equal(of('10.0.0.1', '6.6.6.6, 1.1.1.1, 10.0.0.2'), '1.1.1.1');
  assert.equal(of('::ffff:10.0.0.1', '6.6.6.6, ::ffff:1.1.1.1'), '1.1.1.1');
  assert.equal(of('10.0.0.1', '1.1.1.1, junk, 10.0.0.2'), '10.0.0.2', 'the last that is sure');
  assert.equal(of('10.0.0.1', '10.0.0.3, 10.0.0.2'), '10.0.0.3');
  assert.equal(of('10.0.0.1', undefined), '10.0.0.1');
  assert.equal(of(null, '1.1.1.1'), '', 'nobody is there to be trusted');
});

test('ranges hold what shares their first bits', () => {
  const holds = (range, peer) => client({ trustedProxies: [range] }, peer, '192.0.2.7') === '192.0.2.7';
  assert.ok(holds('10.0.0.0/8', '10.255.1.2') && !holds('10.0.0.0/8', '11.0.0.1'));
  assert.ok(holds('0.0.0.0/0', '8.8.8.8') && !holds('0.0.0.0/0', '2001:db8::1'));
  assert.ok(holds('::/0', '2001:db8::1') && !holds('::/0', '8.8.8.8'));
  assert.ok(holds('2001:db8::/32', '2001:db8:ffff::1') && !holds('2001:db8::/32', '2001:db9::1'));
  assert.ok(holds('10.0.0.7', '::ffff:10.0.0.7') && holds('::ffff:10.0.0.0/104', '10.1.1.1'));
  assert.ok(!holds('::ffff:10.0.0.0/104', '11.1.1.1') && holds('fe80::1', 'fe80::1%eth0'));
});

test('addresses may come with ports and brackets', () => {
  const written = ['1.1.1.1:80', '[2001:db8::1]:80', '[2001:db8::1]', '2001:db8::1', '::ffff:1.1.1.1'];
  assert.deepEqual(written.map(readAddress), ['1.1.1.1', '2001:db8::1', '2001:db8::1', '2001:db8::1', '1.1.1.1']);
  for (const wrong of ['', 'unknown', '_hidden', '1.1.1.1:x', '[1.1.1.1', 'é', '1.1.1.1%x', '::1%']) {
    assert.equal(readAddress(wrong), null, wrong);
  }
});
