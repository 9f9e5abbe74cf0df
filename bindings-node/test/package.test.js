'use strict';
// The package as it is packed, installed and loaded.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const tidegate = require('tidegate');

const FOLDER = path.join(__dirname, '..');
const manifest = require('../package.json');
const { platforms } = require('../native.js');

function scratch(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** The package as from a registry: packed, with the package of this platform beside it. */
function installed(t) {
  const folder = scratch(t);
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], FOLDER);
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(path.join(modules, 'tidegate'), { recursive: true });
  run(
    'tar',
    [
      'xzf',
      `tidegate-${manifest.version}.tgz`,
      '-C',
      path.join(modules, 'tidegate'),
      '--strip-components=1',
    ],
    folder,
  );
  const platform = platforms()[0];
  const native = path.join(modules, `tidegate-${platform}`);
  fs.mkdirSync(native);
  fs.copyFileSync(path.join(FOLDER, `tidegate.${platform}.node`), path.join(native, 'native.node'));
  fs.writeFileSync(
    path.join(native, 'package.json'),
    JSON.stringify({ name: `tidegate-${platform}`, main: 'native.node' }),
  );
  return folder;
}

test('the versions of the package, of its native part and of the workspace are one', () => {
  const cargo = fs.readFileSync(path.join(FOLDER, '../Cargo.toml'), 'utf8');
  const [, version] = /\[workspace\.package\]\s+version = "([^"]+)"/.exec(cargo);
  assert.deepEqual([manifest.version, tidegate.version], [version, version]);
});

test('what is packed is what users need, and nothing else', (t) => {
  const folder = path.join(installed(t), 'node_modules/tidegate');
  const files = fs
    .readdirSync(folder, { recursive: true })
    .filter((name) => !fs.statSync(path.join(folder, name)).isDirectory());
  const wanted = [
    'index.js',
    'index.mjs',
    'index.d.ts',
    'index.d.mts',
    'native.js',
    'package.json',
    'README.md',
    'LICENSE-MIT',
    'LICENSE-APACHE',
    'lib/limiter.js',
  ];
  for (const name of wanted) assert(files.includes(name), `${name} is not packed`);
  const code = /^((integrations|lib)\/)?[a-z-]+\.(c|m)?(js|d\.[cm]?ts)$/;
  const other = /^(package\.json|README\.md|LICENSE-(MIT|APACHE))$/;
  for (const name of files) assert(code.test(name) || other.test(name), `${name} is packed`);
  const exported = Object.values(manifest.exports).flatMap((entry) =>
    JSON.stringify(entry).match(/\.\/[^"]+/g),
  );
  for (const name of exported)
    assert(files.includes(name.slice(2)), `${name} is exported and not packed`);
  for (const name of files) {
    assert(
      !/\/(root|home|tmp)\//.test(fs.readFileSync(path.join(folder, name), 'utf8')),
      `${name} names a path of this machine`,
    );
  }
});

test('without a compiler it is loaded from the package of the platform', (t) => {
  const folder = installed(t);
  const code = "console.log(new Limiter('1/h').hit('alice').remaining)";
  fs.writeFileSync(path.join(folder, 'a.cjs'), `const { Limiter } = require('tidegate'); ${code}`);
  fs.writeFileSync(path.join(folder, 'a.mjs'), `import { Limiter } from 'tidegate'; ${code}`);
  assert.equal(run(process.execPath, ['a.cjs'], folder), '0\n');
  assert.equal(run(process.execPath, ['a.mjs'], folder), '0\n');
  fs.rmSync(path.join(folder, 'node_modules', `tidegate-${platforms()[0]}`), { recursive: true });
  const failed =
    "try { require('tidegate') } catch (error) { console.log(error.code, error.message) }";
  assert.match(
    run(process.execPath, ['-e', failed], folder),
    /^native tidegate has no native part .* tried\n.*tidegate\.\S+\.node: /,
  );
});

test('each import path has its code, and its types by all module resolutions', (t) => {
  const folder = installed(t);
  const paths = Object.keys(manifest.exports).filter((name) => name !== './package.json');
  const names = paths.map((name) => path.posix.join('tidegate', name));
  fs.writeFileSync(
    path.join(folder, 'a.cjs'),
    names.map((name) => `require('${name}');`).join('\n'),
  );
  run(process.execPath, ['a.cjs'], folder);
  const imports = names.map((name, index) => `import * as m${index} from '${name}';`);
  fs.writeFileSync(path.join(folder, 'a.ts'), imports.join('\n'));
  const tsc = path.join(FOLDER, 'node_modules/typescript/bin/tsc');
  const flags = '--noEmit --strict --skipLibCheck --target es2022'.split(' ');
  const ways = [['nodenext', 'nodenext'], ['commonjs', 'node10'], ['esnext', 'bundler']];
  for (const [module, resolution] of ways) {
    const way = ['--module', module, '--moduleResolution', resolution];
    run(process.execPath, [tsc, ...flags, ...way, 'a.ts'], folder);
  }
});

test('require and import give one class', async () => {
  const module = await import('tidegate');
  assert.equal(module.Limiter, tidegate.Limiter);
  assert.equal(module.default, tidegate);
  const names = Object.keys(module).filter((name) => name !== 'default');
  assert.deepEqual(names.sort(), Object.keys(tidegate).sort());
  const types = fs.readFileSync(path.join(FOLDER, 'index.d.ts'), 'utf8');
  for (const name of names)
    assert.match(types, new RegExp(`export declare (class|function|const) ${name}\\b`));
});

test('every operation has its type, and every type its operation', () => {
  const types = fs.readFileSync(path.join(FOLDER, 'index.d.ts'), 'utf8');
  for (const name of ['Rule', 'Limiter', 'Permit', 'Reservation', 'ManualClock']) {
    const body = (kind) => new RegExp(`${kind} ${name} \\{\\n([^]*?)\\n\\}`).exec(types)[1];
    const shared =
      name === 'Rule' || name === 'Limiter'
        ? /interface Operations \{\n([^]*?)\n\}/.exec(types)[1]
        : '';
    const typed = [
      ...`${body('export declare class')}\n${shared}`.matchAll(
        /^  (?:readonly )?([a-z]\w*)(?:\(|:)/gim,
      ),
    ].map((one) => one[1]);
    const declared = new Set(typed.filter((one) => !['constructor', 'decision'].includes(one)));
    const real = Object.getOwnPropertyNames(tidegate[name].prototype).filter(
      (one) => one !== 'constructor',
    );
    assert.deepEqual([...declared].sort(), real.sort(), name);
  }
});

test('another copy of the package in the process is another package', () => {
  for (const file of Object.keys(require.cache))
    if (file.startsWith(FOLDER) && !file.endsWith('.node')) delete require.cache[file];
  const again = require('tidegate');
  assert.notEqual(again.Limiter, tidegate.Limiter);
  assert.throws(() => new again.Limiter('1/mni'), again.TidegateError);
  assert.throws(() => new tidegate.Limiter('1/mni'), tidegate.TidegateError);
  assert.throws(() => new again.Limiter('1/s', { clock: new tidegate.ManualClock() }), {
    code: 'argument',
  });
});
