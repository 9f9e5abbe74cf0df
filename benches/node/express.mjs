// How many requests a second does Express lose to a limit in front of it?
//
// One server process has one small handler: behind nothing, behind our middleware (in memory and
// on a file), and behind express-rate-limit with its own memory store. Another process sends
// requests over 20 kept-alive connections from one address. Every limit allows everything.
//
// The variants take turns, in rounds of so many requests, and every other round goes backwards. The
// unit is processor time of the server's process for one request. The client's time is not in it.
// It is the figure that other work disturbs least. A core that does nothing else answers one
// request in that time.
//
// The time shown is that of the best round, since other work on the machine can only slow a round
// down. The share is the median of the rounds: that of `Express alone` in the same round, divided.
//
// `five header fields` sets what our middleware sets, as constants, and decides nothing. It is the
// least that such header fields cost.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import express from 'express';
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import { Limiter } from '../../bindings-node/index.mjs';
import tidegate from '../../bindings-node/integrations/express.js';

const MAX = 1_000_000_000;
const [ROUNDS, REQUESTS] = [Number(process.env.ROUNDS ?? 24), Number(process.env.REQUESTS ?? 4000)];
const FIELDS = {
  'X-RateLimit-Limit': '1000000000',
  'X-RateLimit-Remaining': '999999999',
  'X-RateLimit-Reset': '1763500000',
  'RateLimit-Policy': '"1000000000/h";q=1000000000;w=3600',
  RateLimit: '"1000000000/h";r=999999999;t=1',
};

async function serve(folder) {
  const limits = {
    'Express alone': null,
    'five header fields': (req, res, next) => {
      for (const name in FIELDS) res.setHeader(name, FIELDS[name]);
      next();
    },
    'tidegate, memory': tidegate.rateLimit(new Limiter(`${MAX}/h`)),
    'tidegate, file': tidegate.rateLimit(new Limiter(`${MAX}/h`, { store: `file:${folder}` })),
    'express-rate-limit, memory': expressRateLimit({
      windowMs: 3_600_000,
      limit: MAX,
      standardHeaders: 'draft-8',
    }),
  };
  const ports = {};
  for (const [name, limit] of Object.entries(limits)) {
    const app = express();
    if (limit) app.use(limit);
    app.get('/', (req, res) => res.send('hello'));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ports[name] = server.address().port;
  }
  process.on('message', () => process.send(process.cpuUsage()));
  process.send(ports);
}

async function cpuOf(server) {
  server.send('cpu');
  const [{ user, system }] = await once(server, 'message');
  return user + system;
}

async function measure() {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-bench-'));
  const server = fork(fileURLToPath(import.meta.url), [join(folder, 'limits')]);
  const [ports] = await once(server, 'message');
  const times = Object.fromEntries(Object.keys(ports).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    const turns = Object.entries(ports);
    for (const [name, port] of round % 2 ? turns.reverse() : turns) {
      const url = `http://127.0.0.1:${port}`;
      const before = await cpuOf(server);
      const options = { url, connections: 20, amount: REQUESTS };
      const { requests, non2xx, errors } = await autocannon(options);
      if (non2xx || errors) throw new Error(`${name}: ${non2xx} refused, ${errors} failed`);
      times[name].push(((await cpuOf(server)) - before) / requests.total);
    }
  }
  server.kill();
  rmSync(folder, { recursive: true });
  return times;
}

if (process.send) await serve(process.argv[2]);
else {
  const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
  const times = await measure();
  const alone = times['Express alone'];
  console.log(`node ${process.version}, Express 5, ${ROUNDS} rounds of ${REQUESTS} requests\n`);
  console.log('| what | µs a request | requests a second and core | of Express alone |');
  console.log('|---|---|---|---|');
  for (const [name, rounds] of Object.entries(times)) {
    const best = Math.min(...rounds);
    const rate = Math.round(1e6 / best).toLocaleString('en');
    const share = 100 * median(rounds.map((time, round) => alone[round] / time));
    console.log(`| ${name} | ${best.toFixed(1)} | ${rate} | ${share.toFixed(0)} % |`);
  }
}
