'use strict';

// A gateway in a cluster: several workers, one count. Each worker opens the same folder. Whichever
// worker a client reaches, the client gets its limit and not a request more.
//
//     WORKERS=4 LIMIT='100/h window' STORE=file:limits PORT=8080 node gateway.js

const cluster = require('node:cluster');
const http = require('node:http');
const { Limiter } = require('tidegate');
const { rateLimit } = require('tidegate/express');

const { WORKERS = '4', LIMIT = '100/h window', STORE = 'file:limits', PORT = '8080' } = process.env;

function work() {
  const limit = rateLimit(new Limiter(LIMIT, { store: STORE }));
  const server = http.createServer((req, res) => {
    res.setHeader('X-Worker', cluster.worker.id);
    limit(req, res, () => res.end('hello\n'));
  });
  server.listen(Number(PORT));
}

function lead() {
  let ready = 0;
  cluster.on('listening', (_, { port }) => {
    if (++ready === Number(WORKERS))
      console.log(`${ready} workers on port ${port}, ${LIMIT} for each client`);
  });
  for (let i = 0; i < Number(WORKERS); i++) cluster.fork();
  process.on('SIGTERM', () => cluster.disconnect(() => process.exit()));
}

if (cluster.isPrimary) lead();
else work();
