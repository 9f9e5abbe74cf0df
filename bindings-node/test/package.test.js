'use strict';
// The package as it is installed and loaded. What is packed, and bundles: `test/packed`.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { before, test } = require('node:test');
const ts = require('typescript');
const tidegate = require('tidegate');

const { FOLDER, installed, packages, platform, run, said, scratch } = require('./packed/packed.js');
const manifest = require('../package.json');

test('the versions of the package, of its native part and of the workspace are one', () => {
  const cargo = fs.readFileSync(path.join(FOLDER, '../Cargo.toml'), 'utf8');
  const [, version] = /\[workspace\.package\]\s+version = "([^"]+)"/.exec(cargo);
  assert.deepEqual([manifest.version, tidegate.version], [version, version]);
});

test('each platform has its name wherever platforms are listed', () => {
  const script = path.join(FOLDER, '../deploy/npm-stage.mjs');
  const names = run(process.execPath, [script, 'names'], FOLDER).trim().split('\n');
  const imported = ['#built', ...names.map((name) => `#${name}`)];
  assert.deepEqual(Object.keys(manifest.imports), imported);
  for (const name of names)
    assert.equal(manifest.imports[`#${name}`]['node-addons'], `tidegate-${name}`);
  const loader = fs.readFileSync(path.join(FOLDER, 'native.js'), 'utf8');
  const required = [...loader.matchAll(/case '(.*)':\n\s+return { part: require\('(.*)'\) };/g)];
  assert.deepEqual(
    required.map(([, name, from]) => [name, from]),
    imported.map((from) => [from.slice(1), from]),
  );
  assert(names.includes(platform()));
});

const paths = Object.keys(manifest.exports).filter((name) => name !== './package.json');
const names = paths.map((name) => path.posix.join('tidegate', name));

/** A folder into which the package was installed once, for all tests here. */
let app;
before(() => {
  app = installed();
});

test('installed, each import path has its code', () => {
  const source = names.map((name) => `require('${name}');`).join('\n');
  const { status, stderr } = said(['-e', source], app);
  assert.equal(status, 0, stderr);
});

/** Files that TypeScript has read once. */
const parsed = new Map();

/** What TypeScript has to say of a file and of the package's own types, in one way of resolving. */
function complaints(file, folder, module, moduleResolution) {
  const options = ts.convertCompilerOptionsFromJson(
    { ...{ module, moduleResolution, target: 'es2022', strict: true }, types: ['node'] },
    folder,
  ).options;
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile;
  host.getCurrentDirectory = () => folder;
  host.getSourceFile = (name, how) => {
    const key = `${name} ${how.impliedNodeFormat}`;
    if (!parsed.has(key)) parsed.set(key, read(name, how));
    return parsed.get(key);
  };
  const program = ts.createProgram([file], { ...options, noEmit: true }, host);
  const others = /\/node_modules\/(?!tidegate\/)/;
  const ours = program.getSourceFiles().filter(({ fileName }) => !others.test(fileName));
  const found = ours.flatMap((one) => ts.getPreEmitDiagnostics(program, one));
  return [ours.length, ts.formatDiagnostics(found, host)];
}

/** Has TypeScript resolve every entry, by all its ways, and check the types that it finds. */
function checkTypes(folder) {
  const imports = names.map((name, index) => `import * as m${index} from '${name}';`);
  const used = 'm0.Limiter, m1.rateLimit, m2.TidegateStore, m3.rateLimit, m4.rateLimit, m5.guard';
  const file = path.join(folder, 'a.ts');
  fs.writeFileSync(file, `${imports.join('\n')}\nconsole.log(${used});\n`);
  const ways = [['nodenext', 'nodenext'], ['commonjs', 'node10'], ['esnext', 'bundler']];
  for (const [module, resolution] of ways) {
    const [count, found] = complaints(file, folder, module, resolution);
    assert.equal(found, '', resolution);
    assert(count > names.length, `${count} files, with ${resolution}`);
  }
}

test('each import path has its types, with nothing but Node\'s own beside it', () => {
  linkTypes(app, ['@types', 'undici-types']);
  checkTypes(app);
});

test('each import path has its types through a symbolic link', (t) => {
  const [folder, elsewhere] = [scratch(t), scratch(t)];
  const packed = path.join(packages(), `tidegate-${manifest.version}.tgz`);
  run('tar', ['xzf', packed, '-C', elsewhere], folder);
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(path.join(elsewhere, 'package'), path.join(folder, 'node_modules/tidegate'));
  linkTypes(folder, ['@types', 'undici-types', 'fastify', 'hono']);
  checkTypes(folder);
});

function linkTypes(folder, names) {
  for (const name of names)
    fs.symlinkSync(
      path.join(FOLDER, 'node_modules', name),
      path.join(folder, 'node_modules', name),
    );
}

test('under Jest, whose globals are not those of Node, errors are of the classes there', () => {
  run(path.join(__dirname, 'tools/install.sh'), [], app);
  fs.copyFileSync(path.join(__dirname, 'tools/errors.jest.js'), path.join(app, 'a.test.js'));
  fs.writeFileSync(path.join(app, 'package.json'), '{"jest": {"testEnvironment": "node"}}');
  const jest = path.join(__dirname, 'tools/node_modules/jest/bin/jest.js');
  const { status, stderr } = said([jest, '--rootDir', app], app);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /Tests: +3 passed/);
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
