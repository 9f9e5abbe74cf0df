'use strict';
// The client of a request and the bodies of refusals: the table that Rust and Python replay too.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { Limiter, ManualClock } = require('tidegate');
const { clientBy, gate } = require('../integrations/http.js');

const FILE = path.join(__dirname, '../../tests/vectors/http/client.json');
const { cases, refused, problems } = JSON.parse(fs.readFileSync(FILE, 'utf8'));

const trustOf = ({ hops, proxies }) => ({ trustedHops: hops, trustedProxies: proxies });

test('every surface finds the same client', () => {
  for (const row of cases) {
    const lines = row.lines.map((line, at) =>
      line.repeat(at === row.lines.length - 1 ? (row.repeat ?? 1) : 1),
    );
    // Node joins the lines of a header.
    const header = lines.length ? lines.join(', ') : undefined;
    assert.equal(clientBy(trustOf(row))(row.peer, header), row.client, row.name);
  }
});

test('every surface refuses the same settings', () => {
  for (const row of refused) {
    assert.throws(() => clientBy(trustOf(row)), { message: row.message }, row.message);
  }
  assert.throws(() => clientBy({ trustedProxies: '10.0.0.0/8' }), { code: 'argument' });
});

test('every surface answers denied clients alike', () => {
  for (const { policy, hits, body } of problems) {
    const clock = new ManualClock();
    const rule = Limiter.fromPolicy({ version: 1, rules: { http: policy } }, { clock }).rule(
      'http',
    );
    const judge = gate(rule, {}, { peer: () => '203.0.113.9', header: () => undefined });
    const answers = Array.from({ length: hits }, () => judge({}));
    assert.equal(answers.at(-1).body, body);
  }
});

test('a header with lone surrogates names nobody', () => {
  const client = clientBy({ trustedHops: 1 });
  assert.equal(client('10.0.0.1', '1.1.1.1, \ud800'), '10.0.0.1');
  assert.equal(client('\ud800', undefined), null);
});

test('more addresses than are remembered are told apart', () => {
  const limiter = new Limiter('1/h', { capacity: 10_000, clock: new ManualClock() });
  const judge = gate(limiter, {}, { peer: (request) => request, header: () => undefined });
  const peers = Array.from({ length: 2500 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const statuses = () => new Set(peers.map((peer) => judge(peer).status));
  assert.deepEqual([statuses(), statuses()], [new Set([undefined]), new Set([429])]);
  assert.equal(judge('not an address').status, 500);
});
