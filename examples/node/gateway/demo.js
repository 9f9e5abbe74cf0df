'use strict';

// `make demo`: the gateway under load. The exit code is 1 if it grants one request too many or too
// few.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

const [WORKERS, REQUESTS, LIMIT, CONNECTIONS] = [4, 2_000, 100, 16];

/** Starts the gateway on a fresh folder; its port, and how to end it. */
async function startGateway() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-gateway-'));
  const env = {
    ...process.env,
    WORKERS,
    LIMIT: `${LIMIT}/h window`,
    STORE: `file:${folder}/limits`,
    PORT: 0,
  };
  const gateway = spawn(process.execPath, [path.join(__dirname, 'gateway.js')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  const ready = new Promise((resolve) => gateway.stdout.once('data', resolve));
  const line = await Promise.race([
    ready,
    ended.then((code) => Promise.reject(new Error(`it ended: ${code}`))),
  ]);
  const stop = async () => {
    gateway.kill();
    await ended;
    fs.rmSync(folder, { recursive: true });
  };
  return { port: Number(/port (\d+)/.exec(line)[1]), stop };
}

function get(port, agent) {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, agent }, (res) => {
        res
          .resume()
          .on('end', () => resolve({ status: res.statusCode, worker: res.headers['x-worker'] }));
      })
      .on('error', reject);
  });
}

/** What came of so many requests over so many connections. */
async function load(port, requests, connections) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const answers = await Promise.all(Array.from({ length: requests }, () => get(port, agent)));
  agent.destroy();
  return answers;
}

function report(answers) {
  const granted = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  for (let worker = 1; worker <= WORKERS; worker++) {
    const of = (some) => some.filter((answer) => answer.worker === String(worker)).length;
    console.log(
      `  worker ${worker}: ${String(of(granted)).padStart(4)} granted ` +
        `${String(of(refused)).padStart(6)} refused`,
    );
  }
  const [asked, limit] = [REQUESTS.toLocaleString('en'), LIMIT.toLocaleString('en')];
  console.log(
    `gateway: ${WORKERS} workers, ${asked} requests, ${granted.length} granted, limit ${limit}`,
  );
  return granted.length === LIMIT && granted.length + refused.length === REQUESTS;
}

async function main() {
  console.log(
    `A gateway in Node, ${WORKERS} workers on one file, ` +
      `${CONNECTIONS} connections from one client:`,
  );
  const { port, stop } = await startGateway();
  const answers = await load(port, REQUESTS, CONNECTIONS);
  await stop();
  process.exitCode = report(answers) ? 0 : 1;
}

if (require.main === module) main();

module.exports = { startGateway };
