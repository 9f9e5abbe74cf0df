// How many requests a second does Express lose to a limit in front of it?
//
// One server process has one small handler: behind nothing, behind our middleware (in memory and
// on a file), and behind express-rate-limit with its own memory store. Another process sends
// requests over 20 kept-alive connections from one address. Every limit allows everything.
//
// The variants take turns, round after round. The best round counts, since other work on the
// machine can only slow a round down. The unit is processor time of the server's process for one
// request. The client's time is not in it. It is the figure that other work disturbs least. A core
// that does nothing else answers one request in that time.
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
const [ROUNDS, SECONDS] = [Number(process.env.ROUNDS ?? 8), Number(process.env.SECONDS ?? 1)];

async function serve(folder) {
  const limits = {
    'Express alone': null,
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
  const best = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, port] of Object.entries(ports)) {
      const url = `http://127.0.0.1:${port}`;
      const before = await cpuOf(server);
      const options = { url, connections: 20, duration: SECONDS };
      const { requests, non2xx, errors } = await autocannon(options);
      if (non2xx || errors) throw new Error(`${name}: ${non2xx} refused, ${errors} failed`);
      const cpu = ((await cpuOf(server)) - before) / requests.total;
      best[name] = Math.min(best[name] ?? Infinity, cpu);
    }
  }
  server.kill();
  rmSync(folder, { recursive: true });
  return best;
}

if (process.send) await serve(process.argv[2]);
else {
  const best = await measure();
  console.log(`node ${process.version}, Express 5, best of ${ROUNDS} rounds of ${SECONDS} s\n`);
  console.log('| what | µs a request | requests a second and core | of Express alone |');
  console.log('|---|---|---|---|');
  const alone = best['Express alone'];
  for (const [name, cpu] of Object.entries(best)) {
    const rate = Math.round(1e6 / cpu).toLocaleString('en');
    const share = ((100 * alone) / cpu).toFixed(0);
    console.log(`| ${name} | ${cpu.toFixed(1)} | ${rate} | ${share} % |`);
  }
}
