'use strict';
// Memory over a million calls: what the calls leave behind is nothing.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const PROGRAM = `
const { Limiter, ManualClock } = require(${JSON.stringify(path.join(__dirname, '..'))});
const options = { capacity: 10_000, attach: { pay: 'here' }, exempt: [{ role: 'admin' }] };
const limiter = new Limiter(['1000000/s', '9/h'], options);
const permits = new Limiter('9 concurrent', { capacity: 10_000 });
const one = limiter.rule('default');
const turn = (calls) => {
  for (let i = 0; i < calls; i++) {
    const key = 'user:' + (i % 5000);
    one.allow(key);
    one.hit(key);
    one.hit([key], { cost: 2, role: 'guest' });
    one.peek(Buffer.from(key), 0);
    one.record(i % 100);
    if (i % 10 === 0) {
      one.reserve(key, 1).cancel();
      permits.permit(key);
      one.hit(key).headers();
      one.stats(key);
      try { one.hit('\\ud800'); } catch {}
    }
    if (i % 1000 === 0) new Limiter('1/s', { capacity: 10, clock: new ManualClock() }).hit(key);
  }
};
const resident = () => { gc(); gc(); return process.memoryUsage().rss; };
// V8 sees a limiter as a small object, and would leave many of them for later.
const rest = () => new Promise((resolve) => { gc(); setImmediate(resolve); });
(async () => {
  for (let i = 0; i < 4; i++) { turn(10_000); await rest(); }
  const before = resident();
  for (let i = 0; i < 20; i++) { turn(10_000); await rest(); }
  console.log(resident() - before);
})();`;

test('a million calls leave nothing behind', () => {
  // A young generation of one size: else it grows by megabytes when V8 sees fit.
  const grown = Number(
    execFileSync(process.execPath, ['--expose-gc', '--max-semi-space-size=1', '-e', PROGRAM], {
      encoding: 'utf8',
    }),
  );
  // A leak of one small object a call would be 30 MB and more.
  assert(grown < 16 * 1024 * 1024, `${grown} bytes`);
});
