'use strict';
// The package in a folder that has nothing else, with and without the package of its platform.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { ROOT, installed, platform, said } = require('./packed.js');

const manifest = fs.readFileSync(path.join(ROOT, 'Cargo.toml'), 'utf8');
const [, RUST] = /^rust-version = "([\d.]+)"/m.exec(manifest);
const USE = "console.log(new (require('tidegate').Limiter)('1/h').hit('alice').remaining)";
const CAUGHT = `try { ${USE} } catch (error) { console.log(error.code, error.message) }`;

test('npx tidegate builds nothing: there is no command yet', (t) => {
  const folder = installed(t);
  const { status, stdout, stderr } = spawnSync('npx', ['--no-install', 'tidegate'], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /^tidegate: this release has no command line; a later one will\.$/m);
  assert(!fs.existsSync(path.join(folder, 'node_modules/tidegate/tidegate.node')));
});

/** `tidegate-build` where only such programs are to be found. */
function built(t, folder, programs = {}) {
  const bin = fs.mkdtempSync(path.join(folder, 'bin-'));
  for (const [name, says] of Object.entries(programs))
    fs.writeFileSync(path.join(bin, name), `#!/bin/sh\necho '${says}'\n`, { mode: 0o755 });
  const { CARGO, RUSTC, ...env } = process.env;
  return said(['node_modules/tidegate/build.mjs'], folder, { ...env, PATH: bin });
}

test('with the package of its platform it runs', (t) => {
  const folder = installed(t);
  assert.deepEqual(fs.readdirSync(path.join(folder, 'node_modules')).filter(visible).sort(), [
    'tidegate',
    `tidegate-${platform()}`,
  ]);
  assert.equal(said(['-e', USE], folder).stdout, '0\n');

  // A part that was built here goes first, unless it cannot be loaded.
  const own = path.join(folder, 'node_modules/tidegate/tidegate.node');
  fs.writeFileSync(own, 'from another machine');
  assert.equal(said(['-e', USE], folder).stdout, '0\n');

  // Parts of another version are not used.
  const file = path.join(folder, 'node_modules/tidegate/package.json');
  const { version, ...rest } = JSON.parse(fs.readFileSync(file, 'utf8'));
  fs.writeFileSync(file, JSON.stringify({ ...rest, version: '9.9.9' }));
  assert.match(
    said(['-e', CAUGHT], folder).stdout,
    new RegExp(`^native tidegate 9\\.9\\.9 has found the native part of ${version}: `),
  );
});

test('where Node loads no native parts, it says how to let it', (t) => {
  const { stdout } = said(['--no-addons', '-e', CAUGHT], installed(t));
  assert.match(stdout, /^native tidegate needs its native part, .* may load none\.\n/);
  assert.match(stdout, /Start Node without --no-addons/);
  assert.doesNotMatch(stdout, /bundle/);
});

const visible = (name) => !name.startsWith('.');

test('without a native part, the first require says what to do', (t) => {
  const folder = installed(t, { omit: true });
  assert.deepEqual(fs.readdirSync(path.join(folder, 'node_modules')).filter(visible), ['tidegate']);
  const { stdout } = said(['-e', CAUGHT], folder);
  assert.match(stdout, new RegExp(`^native tidegate has no native part for ${platform()}\\.\n`));
  assert.match(stdout, new RegExp(`package tidegate-${platform()}: not installed\n`));
  assert.match(stdout, new RegExp(`with Rust ${RUST} or later, run: npx tidegate-build\n`));
  assert.match(stdout, /run: npm install --include=optional tidegate\n/);
  const imported = said(['--input-type=module', '-e', "import 'tidegate'"], folder);
  assert.match(imported.stderr, /npx tidegate-build/);

  assert(fs.existsSync(path.join(folder, 'node_modules/.bin/tidegate-build')));
  const help = said(['node_modules/tidegate/build.mjs', '--help'], folder);
  assert.match(help.stdout, /^usage: npx tidegate-build/);

  // A package of that name beside it is not the repository.
  const namesake = path.join(folder, 'node_modules/bindings-node/src');
  fs.mkdirSync(namesake, { recursive: true });
  fs.writeFileSync(path.join(namesake, 'lib.rs'), '');
  const none = built(t, folder);
  assert.equal(none.status, 1);
  assert.match(none.stderr, new RegExp(`there is no cargo on the PATH: install Rust ${RUST} or`));
  const old = built(t, folder, { cargo: 'cargo 1.70.0', rustc: 'rustc 1.70.0 (90c541806 2023)' });
  assert.equal(old.status, 1);
  assert.match(old.stderr, new RegExp(`rustc 1\\.70\\.0 .* is too old: install Rust ${RUST} or`));
});
