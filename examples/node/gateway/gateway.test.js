'use strict';
// Four workers on one file under autocannon: exact to the unit.

const assert = require('node:assert/strict');
const test = require('node:test');
const autocannon = require('autocannon');
const { startGateway } = require('./demo.js');

test('four workers grant exactly the limit', async () => {
  const { port, stop } = await startGateway();
  try {
    for (const granted of [100, 0]) {
      const result = await autocannon({
        url: `http://127.0.0.1:${port}`,
        connections: 32,
        amount: 2_000,
      });
      const { 200: passed = { count: 0 }, 429: refused } = result.statusCodeStats;
      assert.deepEqual([passed.count, refused.count, result.errors], [granted, 2_000 - granted, 0]);
    }
  } finally {
    await stop();
  }
});
