'use strict';
// The package in bundles, by esbuild and webpack: each runs, or says what to do.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { before, test } = require('node:test');
const { installed, said, scratch } = require('./packed.js');
const esbuild = require('../tools/node_modules/esbuild');
const webpack = require('../tools/node_modules/webpack');

const SOURCE = `import { Limiter } from 'tidegate';
import { rateLimit } from 'tidegate/express';
if (typeof rateLimit !== 'function') process.exit(1);
console.log(new Limiter('1/h').hit('alice').remaining);`;
let folder;

before(() => {
  folder = installed();
  fs.writeFileSync(path.join(folder, 'a.mjs'), SOURCE);
});

/** What a bundle says where it was made, beside node_modules; and in a folder of its own. */
function ran(t, out, file) {
  const away = scratch(t);
  fs.cpSync(path.join(folder, out), away, { recursive: true });
  return [said([path.join(folder, out, file)], folder), said([path.join(away, file)], away)];
}

function checkRuns({ status, stdout, stderr }) {
  assert.deepEqual({ status, stdout }, { status: 0, stdout: '0\n' }, stderr);
}

function checkSaysWhatToDo({ status, stderr }) {
  assert.equal(status, 1);
  assert.match(stderr, /is a bundle (of ES modules )?with tidegate but not with its native part/);
  for (const flag of ['--external:tidegate', '--loader:.node=copy', 'node-loader'])
    assert(stderr.includes(flag), stderr);
}

async function byEsbuild(t, out, file, options) {
  const { errors, warnings } = await esbuild.build({
    ...{ absWorkingDir: folder, entryPoints: { bundle: 'a.mjs' }, outdir: out, logLevel: 'silent' },
    ...{ bundle: true, platform: 'node', ...options },
  });
  assert.deepEqual([errors, warnings], [[], []]);
  return ran(t, out, file);
}

test('esbuild, told nothing', async (t) => {
  const [here, away] = await byEsbuild(t, 'plain', 'bundle.js', {});
  checkRuns(here);
  checkSaysWhatToDo(away);
});

test('esbuild, told nothing, into a module', async (t) => {
  const options = { format: 'esm', outExtension: { '.js': '.mjs' } };
  const [here, away] = await byEsbuild(t, 'esm', 'bundle.mjs', options);
  checkRuns(here);
  checkSaysWhatToDo(away);
});

test('esbuild, told nothing, into a module for a Node that gives modules nothing', async (t) => {
  const options = { format: 'esm', outExtension: { '.js': '.mjs' } };
  await byEsbuild(t, 'old', 'bundle.mjs', options);
  const old = path.join(folder, 'old/old.cjs');
  fs.writeFileSync(old, 'process.getBuiltinModule = undefined;');
  const { status, stderr } = said(['--require', old, path.join(folder, 'old/bundle.mjs')], folder);
  checkSaysWhatToDo({ status, stderr });
  assert.match(stderr, /this is Node \d.*\(--format=cjs\), or use a newer Node/);
});

test('esbuild, with the native part', async (t) => {
  const options = { conditions: ['node-addons'], loader: { '.node': 'copy' } };
  const [here, away] = await byEsbuild(t, 'copy', 'bundle.js', options);
  checkRuns(here);
  checkRuns(away);
});

test('esbuild, without tidegate', async (t) => {
  const options = { external: ['tidegate'] };
  const [here, away] = await byEsbuild(t, 'external', 'bundle.js', options);
  checkRuns(here);
  assert.match(away.stderr, /Cannot find module 'tidegate/);
});

async function byWebpack(t, out, options) {
  const stats = await new Promise((resolve, reject) => {
    const made = webpack({
      ...{ mode: 'production', target: 'node', context: folder, entry: './a.mjs' },
      output: { path: path.join(folder, out), filename: 'bundle.js' },
      optimization: { minimize: false },
      resolveLoader: { modules: [path.join(__dirname, '../tools/node_modules')] },
      ...options,
    });
    made.run((error, stats) => (error ? reject(error) : resolve(stats)));
  });
  assert.deepEqual(stats.compilation.errors, []);
  return [stats.compilation.warnings, ...ran(t, out, 'bundle.js')];
}

test('webpack, told nothing', async (t) => {
  const [warnings, here, away] = await byWebpack(t, 'wp-plain', {});
  assert.deepEqual(warnings, []);
  checkRuns(here);
  checkSaysWhatToDo(away);
});

test('webpack, with the native part', async (t) => {
  const [, here, away] = await byWebpack(t, 'wp-copy', {
    resolve: { conditionNames: ['node-addons', '...'] },
    module: { rules: [{ test: /\.node$/, loader: 'node-loader' }] },
    node: { __dirname: false },
  });
  checkRuns(here);
  checkRuns(away);
});

test('webpack, without tidegate', async (t) => {
  const outside = ({ request }, done) =>
    /^tidegate(\/|$)/.test(request) ? done(null, `commonjs ${request}`) : done();
  const [warnings, here, away] = await byWebpack(t, 'wp-external', { externals: [outside] });
  assert.deepEqual(warnings, []);
  checkRuns(here);
  assert.match(away.stderr, /Cannot find module 'tidegate/);
});
