'use strict';
// Each package holds what is listed here, and nothing else.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { ROOT, packages, run, scratch, version } = require('./packed.js');

const integrations = ['express', 'express-rate-limit', 'fastify', 'hono', 'http', 'ws'];
const lib = [
  ...['builtin', 'bundled', 'call', 'clock', 'decision', 'facts', 'headers', 'held', 'limiter'],
  ...['native', 'platform', 'policy', 'rule', 'scratch', 'spread', 'trail', 'wait'],
];
const CARGO = fs.readFileSync(path.join(ROOT, 'Cargo.toml'), 'utf8');
const [, REPOSITORY] = /^repository = "([^"]+)"/m.exec(CARGO) ?? [];
const LICENCES = ['LICENSE-APACHE', 'LICENSE-MIT'];
const MAIN = [
  ...LICENCES,
  ...['README.md', 'package.json', 'build.mjs', 'command.mjs', 'native.js'],
  ...['index.js', 'index.mjs', 'index.d.ts', 'index.d.mts'],
  ...integrations.flatMap((name) => [`integrations/${name}.js`, `integrations/${name}.d.ts`]),
  ...lib.map((name) => `lib/${name}.js`),
  ...['rust/Cargo.toml', 'rust/Cargo.lock', 'rust/core/Cargo.toml', 'rust/policy/Cargo.toml'],
  ...['rust/bindings-node/Cargo.toml', 'rust/bindings-node/build.rs'],
];
const PLATFORM = [...LICENCES, 'README.md', 'THIRD-PARTY-NOTICES', 'package.json', 'tidegate.node'];
const MOST_BYTES = { main: 600_000, platform: 2_500_000 };

const files = (folder) =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)));

/** The sources of the three crates, without their unit tests. */
const sources = ['core', 'policy', 'bindings-node'].flatMap((crate) =>
  files(path.join(ROOT, crate, 'src'))
    .filter((file) => !/(^|\/)tests?(\.rs$|\/)/.test(file))
    .map((file) => `rust/${crate}/src/${file}`),
);

function unpacked(t, tarball) {
  const folder = scratch(t);
  run('tar', ['xzf', path.join(packages(), tarball), '-C', folder, '--strip-components=1']);
  return folder;
}

function checkContent(folder, wanted) {
  assert.deepEqual(files(folder).sort(), [...wanted].sort());
  for (const name of LICENCES)
    assert.equal(
      fs.readFileSync(path.join(folder, name), 'utf8'),
      fs.readFileSync(path.join(ROOT, name), 'utf8'),
    );
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  assert.equal(manifest.version, version);
  assert.equal(manifest.license, 'MIT OR Apache-2.0');
  assert.equal(manifest.repository?.url, REPOSITORY && `git+${REPOSITORY}.git`);
  assert.equal(manifest.scripts, undefined, 'npm runs no script without asking');
  return manifest;
}

/** The texts of a package name no folder of the machine that packed it. */
function checkNoPaths(folder) {
  for (const name of files(folder).filter((name) => !name.endsWith('.node'))) {
    const text = fs.readFileSync(path.join(folder, name), 'utf8');
    assert(!text.includes(ROOT) && !/\/(root|home)\/\w/.test(text), `${name} names a path`);
  }
}

const tarballs = () => fs.readdirSync(packages()).filter((name) => name.endsWith('.tgz'));
const size = (tarball) => fs.statSync(path.join(packages(), tarball)).size;

test('the main package', (t) => {
  const tarball = `tidegate-${version}.tgz`;
  const folder = unpacked(t, tarball);
  const manifest = checkContent(folder, [...MAIN, ...sources]);
  checkNoPaths(folder);
  const { optionalDependencies, exports, imports, bin } = manifest;
  const parts = Object.values(imports).map((way) => way['node-addons']);
  assert.deepEqual(
    parts.sort(),
    ['./tidegate.node', ...Object.keys(optionalDependencies)].sort(),
  );
  assert.deepEqual([...new Set(Object.values(optionalDependencies))], [version]);
  assert.deepEqual(bin, { tidegate: 'command.mjs', 'tidegate-build': 'build.mjs' });
  for (const name of JSON.stringify(exports).match(/\.\/[^"]+\.[a-z]+/g))
    assert(files(folder).includes(name.slice(2)), `${name} is exported and not packed`);
  assert(size(tarball) < MOST_BYTES.main, `${tarball} has ${size(tarball)} bytes`);
});

test('the packages of platforms', (t) => {
  const found = tarballs().filter((name) => /^tidegate-[a-z]/.test(name));
  assert.notEqual(found.length, 0);
  for (const tarball of found) {
    const folder = unpacked(t, tarball);
    const manifest = checkContent(folder, PLATFORM);
    checkNoPaths(folder);
    const [, os, cpu, libc] = /^tidegate-([a-z0-9]+)-([a-z0-9]+)(?:-([a-z]+))?/.exec(manifest.name);
    assert.equal(tarball, `${manifest.name}-${version}.tgz`);
    assert.deepEqual([manifest.os, manifest.cpu], [[os], [cpu]]);
    const wanted = { gnu: ['glibc'], musl: ['musl'] }[libc];
    assert.deepEqual(manifest.libc, wanted);
    const notices = fs.readFileSync(path.join(folder, 'THIRD-PARTY-NOTICES'), 'utf8');
    for (const text of ['serde_json', 'napi-sys', 'Permission is hereby granted'])
      assert(notices.includes(text), `${tarball} has no notice of ${text}`);
    assert(size(tarball) < MOST_BYTES.platform, `${tarball} has ${size(tarball)} bytes`);
  }
});
