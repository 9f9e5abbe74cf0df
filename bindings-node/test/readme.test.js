'use strict';
// The guide's page for Node, pasted into a fresh folder: as CommonJS, a module, and TypeScript.

const assert = require('node:assert/strict');
const { execFileSync, spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const tidegate = require('tidegate');

const FOLDER = path.join(__dirname, '..');
const read = (file) => fs.readFileSync(file, 'utf8');
const part = read(path.join(FOLDER, '../docs/node.md'));
const blocks = (text) =>
  [...text.matchAll(/^```(js|ts)\n([^]*?)^```/gm)].map(([, language, code]) => ({
    language,
    code,
  }));

function fresh(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(FOLDER, path.join(folder, 'node_modules/tidegate'));
  return folder;
}

function run(folder, file) {
  return execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' });
}

test('as CommonJS', (t) => {
  const folder = fresh(t);
  const found = [...blocks(part), ...blocks(read(path.join(FOLDER, 'README.md')))].filter(
    ({ code }) => /= require\('tidegate'\)/.test(code),
  );
  assert.equal(found.length, 4);
  const [first, slots, second, third] = found.map(({ code }, index) => {
    fs.writeFileSync(path.join(folder, `${index}.cjs`), code);
    return run(folder, `${index}.cjs`);
  });
  assert.match(
    first,
    /message 5: 0 left\nmessage 6: 5\/10s, wait 60000 ms {\n.*X-RateLimit-Limit/s,
  );
  assert.equal(slots, '');
  assert.match(second, /^5\/10s: 4 of 5; more in \d+, all in 10000 ms\n/);
  const listed = [
    "1 block { key: [ 'mallory' ] } ops",
    "2 set_override { key: [ 'alice' ] } ops",
    '3 set_mode null null',
  ];
  assert.equal(third, listed.map((line) => `${line}\n`).join(''));
});

test('every operation is listed', () => {
  const text = read(path.join(FOLDER, 'README.md'));
  const names = (it) => Object.getOwnPropertyNames(it);
  const { Limiter, ManualClock, Permit, Reservation } = tidegate;
  const operations = [Limiter, ManualClock, Permit, Reservation].flatMap((it) =>
    names(it.prototype),
  );
  const own = ['length', 'name', 'prototype', 'constructor', 'decision', 'allowed'];
  const all = [...operations, ...names(Limiter), 'ipKey', 'version'].filter(
    (name) => !own.includes(name),
  );
  const listed = (name) => new RegExp(`\`(Limiter)?\\.?${name}[(\`]`).test(text);
  assert.deepEqual(all.filter((name) => !listed(name)), []);
});

test('as a module', (t) => {
  const folder = fresh(t);
  const { code } = blocks(part).find(
    ({ language, code }) => language === 'js' && /^import /.test(code),
  );
  fs.writeFileSync(path.join(folder, 'a.mjs'), code);
  assert.equal(run(folder, 'a.mjs'), 'in time\n');
  assert(fs.existsSync(path.join(folder, 'limits')));
});

test('as a server', async (t) => {
  const folder = fresh(t);
  const { code } = blocks(part).find(({ code }) => /tidegate\/express/.test(code));
  fs.writeFileSync(path.join(folder, 'a.mjs'), code);
  fs.symlinkSync(
    path.join(FOLDER, 'node_modules/express'),
    path.join(folder, 'node_modules/express'),
  );
  const server = spawn(process.execPath, ['a.mjs'], {
    cwd: folder,
    env: { ...process.env, PORT: 0 },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => server.kill());
  const [, port] = /on port (\d+)/.exec((await once(server.stdout, 'data'))[0]);
  const seen = [];
  for (let i = 0; i < 3; i++) seen.push((await fetch(`http://127.0.0.1:${port}`)).status);
  assert.deepEqual(seen, [200, 200, 429]);
});

test('as strict TypeScript', (t) => {
  const folder = fresh(t);
  const { code } = blocks(part).find(({ language }) => language === 'ts');
  fs.writeFileSync(path.join(folder, 'a.ts'), code);
  fs.symlinkSync(
    path.join(FOLDER, 'node_modules/@types'),
    path.join(folder, 'node_modules/@types'),
  );
  const options = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
  execFileSync(path.join(FOLDER, 'node_modules/.bin/tsc'), [...options, 'a.ts'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  assert.equal(run(folder, 'a.js'), 'cost null\n');
});
