// What does one check cost in Node, beside what is used today and beside plain JavaScript?
//
// One process, one thread, 10,000 keys in turn, and a limit that allows everything for the length
// of a run. (A denial is cheaper for us and dearer for some.) All contenders take turns, round
// after round. The least of the rounds counts: other work on the machine can only add time.
// Unit: ns a call.
//
// The limit is a thousand a day. Each key spends some of it in each round, as a busy key does.
// `from full`: the quota of a key is back at each hit, as for a key that comes seldom. Then the
// engine needs the exact time. Tables have room for twice as many keys as there are.
//
// Keys have 24 characters, as in the other benches, or 9 with SHORT=1. They come in two ways.
// `fresh`: each is a new string, as one that was read from a request is. Some 250 strings are made
// from one buffer just before they are used, outside the time taken. `kept`: the same string
// objects each round. V8 has kept their hashes, which helps a lookup in a Map. Which way comes
// first changes from round to round, since the second one finds its memory in the cache.
//
// Rows below the plain ones say what a call costs besides: an attribute that the rule does not
// read (every middleware passes the client's address), one that it reads, and a key of two parts.
// `headers` writes the header fields of a decision that is there already.
//
// `noop` copies its key to the stack in native code, by the usual call for UTF-8, and does nothing
// else. It is the least that a native call with a key costs. It is there only if the package was
// built with `node build.mjs --features bench`, as `run.sh` does.
import { createRequire } from 'node:module';
import { MemoryStore } from 'express-rate-limit';
import { RateLimiter } from 'limiter';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Limiter } from '../../bindings-node/index.mjs';

const { native } = createRequire(import.meta.url)('../../bindings-node/lib/native.js');
const digits = process.env.SHORT ? 4 : 19;
const KEYS = Array.from({ length: 10_000 }, (_, i) => `user:${String(i).padStart(digits, '0')}`);
const MAX = 1_000;
const DAY = 86_400_000;
const ROUNDS = Number(process.env.ROUNDS ?? 60);

/** What one writes oneself: a token bucket for each key in a Map. */
class MapBucket {
  #buckets = new Map();
  constructor(max, perMs) {
    this.max = max;
    this.rate = max / perMs;
  }
  allow(key) {
    const now = performance.now();
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: this.max, at: now };
      this.#buckets.set(key, bucket);
    }
    bucket.tokens = Math.min(this.max, bucket.tokens + (now - bucket.at) * this.rate);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}

const rule = new Limiter(`${MAX}/d`, { capacity: 20_000 }).rule('default');
const full = new Limiter('1000000000/s', { capacity: 20_000 }).rule('default');
const three = new Limiter([`${MAX}/min`, `${MAX}/h`, `${MAX}/d`], {
  capacity: 20_000,
}).rule('default');
const reading = new Limiter(`${MAX}/d`, {
  capacity: 20_000,
  exempt: [{ role: 'admin' }],
}).rule('default');
const pairs = new Limiter(`${MAX}/d`, {
  capacity: 20_000,
  key: ['channel', 'user'],
}).rule('default');
const decision = rule.hit('headers');
const map = new MapBucket(MAX, DAY);
const flexible = new RateLimiterMemory({ points: MAX, duration: DAY / 1000 });
const store = new MemoryStore();
store.init({ windowMs: DAY });
const limiters = new Map(
  KEYS.map((key) => [key, new RateLimiter({ tokensPerInterval: MAX, interval: DAY })]),
);

const sync = (call) => (keys) => {
  let yes = 0;
  for (let i = 0; i < keys.length; i++) yes += call(keys[i]) ? 1 : 0;
  return yes;
};
const awaited = (call) => async (keys) => {
  for (let i = 0; i < keys.length; i++) await call(keys[i]);
};

const contenders = {
  'noop (copies its key)': native.noop && sync((key) => native.noop(key)),
  'tidegate allow': sync((key) => rule.allow(key)),
  'tidegate allow, from full': sync((key) => full.allow(key)),
  'tidegate hit (a decision)': sync((key) => rule.hit(key).allowed),
  'tidegate hit, three limits': sync((key) => three.hit(key).allowed),
  'tidegate allow, an attribute that is not read': sync((key) =>
    rule.allow(key, { ip: '192.0.2.1' }),
  ),
  'tidegate hit, an attribute that is not read': sync(
    (key) => rule.hit(key, { ip: '192.0.2.1' }).allowed,
  ),
  'tidegate hit, a rule that reads one': sync((key) => reading.hit(key).allowed),
  'tidegate hit, an attribute that is read': sync(
    (key) => reading.hit(key, { role: 'guest' }).allowed,
  ),
  'tidegate allow, two parts': sync((key) => pairs.allow(['telegram', key])),
  'tidegate hit, two parts': sync((key) => pairs.hit(['telegram', key]).allowed),
  'tidegate headers': sync(() => decision.headers().RateLimit),
  'tidegate allowMany': (keys) => rule.allowMany(keys),
  'Map bucket, by hand': sync((key) => map.allow(key)),
  'limiter tryRemoveTokens': sync((key) => limiters.get(key).tryRemoveTokens(1)),
  'express-rate-limit memory store': awaited((key) => store.increment(key)),
  'rate-limiter-flexible consume': awaited((key) => flexible.consume(key)),
};

const BATCH = 250;
const received = Buffer.from(KEYS.join(''), 'latin1');
let end = 0;
const places = KEYS.map((key) => [end, (end += key.length)]);
const ways = {
  fresh: (from) =>
    places.slice(from, from + BATCH).map(([start, end]) => received.latin1Slice(start, end)),
  kept: (from) => KEYS.slice(from, from + BATCH),
};
const least = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of Object.entries(contenders)) {
    if (!run) continue;
    least[name] ??= { fresh: Infinity, kept: Infinity };
    const turns = Object.entries(ways);
    for (const [way, make] of round % 2 ? turns.reverse() : turns) {
      let took = 0;
      for (let from = 0; from < KEYS.length; from += BATCH) {
        const keys = make(from);
        const start = process.hrtime.bigint();
        await run(keys);
        took += Number(process.hrtime.bigint() - start);
      }
      least[name][way] = Math.min(least[name][way], took / KEYS.length);
    }
  }
}
store.shutdown();

const allow = least['tidegate allow'];
const keys = `${KEYS.length} keys of ${KEYS[0].length} characters`;
console.log(`node ${process.version}, ${keys}, least of ${ROUNDS} rounds\n`);
console.log('| ns a call | fresh keys | ÷ allow | kept keys | ÷ allow |\n|---|--:|--:|--:|--:|');
for (const [name, ns] of Object.entries(least)) {
  const cells = Object.keys(ways).flatMap((way) => [
    ns[way].toFixed(0),
    (ns[way] / allow[way]).toFixed(2),
  ]);
  console.log(`| ${name} | ${cells.join(' | ')} |`);
}
