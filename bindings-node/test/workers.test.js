'use strict';
// Threads and processes that share a store: the grants of all together are exact.

const assert = require('node:assert/strict');
const { execFile, execFileSync } = require('node:child_process');
const cluster = require('node:cluster');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { Limiter } = require('tidegate');

const ROOT = path.join(__dirname, '../..');
const HITS = 5000;
const MAX = 3000;
/** A window is exact over its hour, so no token comes back while a test runs. */
const LIMITS = `${MAX}/h window`;
const OPTIONS = { capacity: 100 };

function folder(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return path.join(made, 'limits');
}

/** Runs code in a worker that has a limiter on the store; what it posts. */
function inWorker(store, code) {
  const source = `
    const { parentPort } = require('node:worker_threads');
    const { Limiter } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const options = ${JSON.stringify({ ...OPTIONS, store })};
    const limiter = new Limiter(${JSON.stringify(LIMITS)}, options);
    ${code}`;
  return new Worker(source, { eval: true });
}

const GRANTS = `
  let grants = 0;
  for (let i = 0; i < ${HITS}; i++) {
    if (i % 2 ? limiter.allow('alice') : limiter.hit('alice').allowed) grants++;
  }`;

const posted = (worker) =>
  new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });

for (const kind of ['memory', 'file']) {
  test(`four workers on one ${kind} grant exactly what there is`, async (t) => {
    const store = kind === 'memory' ? 'memory:workers' : `file:${folder(t)}`;
    // A table in memory lives as long as a limiter uses it.
    const limiter = new Limiter(LIMITS, { ...OPTIONS, store });
    const workers = Array.from({ length: 4 }, () =>
      inWorker(store, `${GRANTS} parentPort.postMessage(grants)`),
    );
    const grants = await Promise.all(workers.map(posted));
    assert.equal(grants.reduce((sum, one) => sum + one), MAX, `${grants}`);
    assert.equal(limiter.allow('alice'), false);
  });
}

test('workers come and go, in the middle of calls and of waiting', async () => {
  const busy = `
    limiter.acquire('alice');
    limiter.record('late', 9999), limiter.acquire('late').catch(() => {});
    limiter.reserve('alice', 1);
    parentPort.postMessage('up');
    for (;;) limiter.hit(String(Math.random())).headers();`;
  const limiter = new Limiter(LIMITS, { ...OPTIONS, store: 'memory:busy' });
  limiter.hit('alice');
  for (let round = 0; round < 10; round++) {
    const workers = Array.from({ length: 4 }, () => inWorker('memory:busy', busy));
    await Promise.all(workers.map(posted));
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  assert.equal(limiter.hit('alice').remaining, MAX - 82);
});

test('a worker that ends by itself gives back its permits', async () => {
  const limits = '1 concurrent lease 1h';
  const options = { ...OPTIONS, store: 'memory:permits' };
  const source = `
    const { Limiter } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const limiter = new Limiter(${JSON.stringify(limits)}, ${JSON.stringify(options)});
    globalThis.kept = limiter.permit('job');
    require('node:worker_threads').parentPort.postMessage(kept.allowed);`;
  const worker = new Worker(source, { eval: true });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  assert.equal(await posted(worker), true);
  await ended;
  assert.equal(new Limiter(limits, options).permit('job').allowed, true);
});

test('four cluster workers on one file grant exactly what there is', async (t) => {
  const store = `file:${folder(t)}`;
  const file = path.join(path.dirname(store.slice(5)), 'worker.js');
  fs.writeFileSync(
    file,
    `const { Limiter } = require(${JSON.stringify(path.join(__dirname, '..'))});
     const options = ${JSON.stringify({ ...OPTIONS, store })};
     const limiter = new Limiter(${JSON.stringify(LIMITS)}, options);
     ${GRANTS} process.send(grants, () => process.disconnect());`,
  );
  cluster.setupPrimary({ exec: file });
  const grants = await Promise.all(Array.from({ length: 4 }, () => posted(cluster.fork())));
  assert.equal(grants.reduce((sum, one) => sum + one), MAX, `${grants}`);
});

/** The command line of a program in C that does the same through libtidegate. */
function cPeer(t) {
  const libraries = path.join(ROOT, process.env.CARGO_TARGET_DIR ?? 'target', 'release');
  if (!fs.existsSync(path.join(libraries, 'libtidegate.so'))) return null;
  const program = path.join(path.dirname(folder(t)), 'peer');
  execFileSync('cc', [
    path.join(__dirname, 'peer.c'),
    '-o',
    program,
    '-I',
    path.join(ROOT, 'include'),
    path.join(libraries, 'libtidegate.a'),
    '-lgcc_s',
    '-lutil',
    '-lrt',
    '-lpthread',
    '-lm',
    '-ldl',
  ]);
  return [program];
}

/** The same in Python, if the package is there. */
function pythonPeer() {
  const python = process.env.TIDEGATE_PYTHON ?? 'python3';
  const program = `import sys, tidegate
limiter = tidegate.Limiter(sys.argv[2], store=sys.argv[1], capacity=int(sys.argv[3]))
print(sum(limiter.allow(sys.argv[4]) for _ in range(int(sys.argv[5]))))`;
  try {
    execFileSync(python, ['-c', 'import tidegate; tidegate.Limiter'], { stdio: 'ignore' });
  } catch {
    return null;
  }
  return [python, '-c', program];
}

test('a Node, a C and a Python process on one file agree to the unit', async (t) => {
  const store = `file:${folder(t)}`;
  const node = [
    process.execPath,
    '-e',
    `const { Limiter } = require(${JSON.stringify(path.join(__dirname, '..'))});
     const [store, limits, capacity, key, hits] = process.argv.slice(1);
     const limiter = new Limiter(limits, { store, capacity: Number(capacity) });
     let grants = 0;
     for (let i = 0; i < hits; i++) if (limiter.allow(key)) grants++;
     console.log(grants);`,
  ];
  const peers = [node, cPeer(t), pythonPeer()].filter(Boolean);
  t.diagnostic(`${peers.length} languages`);
  assert(
    peers.length >= (process.env.TIDEGATE_PEERS ?? 1),
    'libtidegate is not built, or the wheel not installed',
  );
  const run = async ([command, ...before], key, hits) => {
    const { stdout } = await promisify(execFile)(command, [
      ...before,
      store,
      LIMITS,
      '100',
      key,
      `${hits}`,
    ]);
    return Number(stdout);
  };
  // In turn: each finds what the others have left. At once: together exactly what there is.
  let left = MAX;
  for (const peer of peers) {
    assert.equal(await run(peer, 'in turn', 700), Math.min(left, 700));
    left -= 700;
  }
  const limiter = new Limiter(LIMITS, { ...OPTIONS, store });
  assert.equal(limiter.peek('in turn', 0).remaining, left);
  const grants = await Promise.all(peers.map((peer) => run(peer, 'schlüssel', HITS)));
  assert.equal(grants.reduce((sum, one) => sum + one), MAX, `${grants}`);
  assert.equal(limiter.allow('schlüssel'), false);
});
