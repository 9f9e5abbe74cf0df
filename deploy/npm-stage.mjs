#!/usr/bin/env node
// Makes the folders that `npm pack` packs. `deploy/npm.sh` calls it for releases.
//
// The main package names the others as optional, and carries the Rust sources. The manifest in
// bindings-node does not name them, as its lock file would need packages that are not there yet.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const USAGE = `usage: npm-stage.mjs COMMAND
  names                          the platforms that have a package
  target NAME                    what Rust calls that platform
  main FOLDER                    stages the package tidegate
  platform NAME LIBRARY FOLDER   stages the package of a platform, with that native part
  prepack, postpack              what npm pack needs while it runs in bindings-node`;

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const binding = join(root, 'bindings-node');
const licences = ['LICENSE-MIT', 'LICENSE-APACHE'];
/** The crates whose sources the main package carries. */
const crates = ['core', 'policy', 'bindings-node'];

const linux = (cpu, libc) => ({ os: ['linux'], cpu: [cpu], libc: [libc] });
/** What npm knows of each platform, and its name in Rust. */
const platforms = {
  'linux-x64-gnu': ['x86_64-unknown-linux-gnu', linux('x64', 'glibc')],
  'linux-x64-musl': ['x86_64-unknown-linux-musl', linux('x64', 'musl')],
  'linux-arm64-gnu': ['aarch64-unknown-linux-gnu', linux('arm64', 'glibc')],
  'linux-arm64-musl': ['aarch64-unknown-linux-musl', linux('arm64', 'musl')],
  'darwin-arm64': ['aarch64-apple-darwin', { os: ['darwin'], cpu: ['arm64'] }],
  'darwin-x64': ['x86_64-apple-darwin', { os: ['darwin'], cpu: ['x64'] }],
  'win32-x64-msvc': ['x86_64-pc-windows-msvc', { os: ['win32'], cpu: ['x64'] }],
};

const manifest = () => ({
  ...JSON.parse(readFileSync(join(binding, 'package.json'), 'utf8')),
  repository: repository(),
});

/** The project's address, as Cargo.toml has it. npm wants it for a statement of provenance. */
function repository() {
  const cargo = readFileSync(join(root, 'Cargo.toml'), 'utf8');
  const [, address] = /^repository = "([^"]+?)(?:\.git|\/)?"/m.exec(cargo) ?? [];
  return address && { type: 'git', url: `git+${address}.git`, directory: 'bindings-node' };
}
const writeJson = (file, value) => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);

/** Sections of a crate's manifest that are of no use away from the repository. */
const LEFT_OUT = /^\[+(package\.metadata|example|test|bench|profile\.test|(target\..*\.)?dev-dep)/;

/** A manifest of Cargo without comments, tests, examples and names of files that stay here. */
function reducedManifest(text) {
  const sections = text.replace(/^#.*\n/gm, '').split(/\n(?=\[)/);
  return sections
    .filter((section) => !LEFT_OUT.test(section))
    .map((section) => section.trim())
    .join('\n\n')
    .replace(/^readme = .*\n/gm, '')
    .replace(/^members = \[[^\]]*\]/m, `members = ${JSON.stringify(crates)}`)
    .replace(/^default-members = \[[^\]]*\]/m, 'default-members = ["bindings-node"]')
    .concat('\n');
}

/** Whether a path below `src` is compiled by users: unit tests are not. */
const isUsers = (path) => !/^tests?(\.rs)?$/.test(basename(path));

/** A workspace of the three crates, with a lock file of what they need. */
function stageSources(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const reduce = (name) =>
    writeFileSync(
      join(folder, name),
      reducedManifest(readFileSync(join(root, name), 'utf8')),
    );
  reduce('Cargo.toml');
  for (const crate of crates) {
    cpSync(join(root, crate, 'src'), join(folder, crate, 'src'), {
      recursive: true,
      filter: isUsers,
    });
    reduce(`${crate}/Cargo.toml`);
    const script = `${crate}/build.rs`;
    if (existsSync(join(root, script))) copyFileSync(join(root, script), join(folder, script));
  }
  copyFileSync(join(root, 'Cargo.lock'), join(folder, 'Cargo.lock'));
  lockWorkspace(folder);
}

/** Takes out of the lock file what the crates left here do not need. Nothing else in it moves. */
function lockWorkspace(folder) {
  const command = ['update', '--workspace', '--quiet'];
  const options = { cwd: folder, stdio: ['ignore', 'inherit', 'pipe'], encoding: 'utf8' };
  // Offline where the crates were built before, which is nearly always.
  let cargo = spawnSync('cargo', [...command, '--offline'], options);
  if (cargo.status !== 0) cargo = spawnSync('cargo', command, options);
  if (cargo.status !== 0) throw new Error(`cargo update failed: ${cargo.error ?? cargo.stderr}`);
}

function stageLicences(folder) {
  for (const name of licences) copyFileSync(join(root, name), join(folder, name));
}

function stageMain(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { scripts, devDependencies, ...packed } = manifest();
  const names = Object.keys(platforms).map((name) => [`tidegate-${name}`, packed.version]);
  writeJson(join(folder, 'package.json'), {
    ...packed,
    optionalDependencies: Object.fromEntries(names),
  });
  const made = new Set(['rust', ...licences]);
  for (const name of [...packed.files.filter((name) => !made.has(name)), 'README.md'])
    cpSync(join(binding, name), join(folder, name), { recursive: true });
  stageLicences(folder);
  stageSources(join(folder, 'rust'));
}

/** The licences of what is linked into the native part of a platform. */
function notices(target) {
  const python = process.platform === 'win32' ? 'python' : 'python3';
  const script = [join(root, 'deploy/notices.py'), 'tidegate-node', '--target', target];
  const ran = spawnSync(python, script, { encoding: 'utf8', maxBuffer: 1 << 26 });
  if (ran.status !== 0) throw new Error(`notices.py failed: ${ran.error ?? ran.stderr}`);
  return ran.stdout;
}

const platformReadme = (name, target) => `# tidegate-${name}

The native part of the npm package \`tidegate\` for ${name} (${target}).
Install \`tidegate\`, which brings this along where it fits.
`;

function stagePlatform(name, library, folder) {
  const [target, fits] = known(name);
  const { version, license, engines, repository } = manifest();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, 'package.json'), {
    name: `tidegate-${name}`,
    version,
    description: `The native part of tidegate for ${name}`,
    license,
    repository,
    main: './tidegate.node',
    files: ['tidegate.node', 'THIRD-PARTY-NOTICES', ...licences],
    engines,
    ...fits,
    preferUnplugged: true,
  });
  writeFileSync(join(folder, 'README.md'), platformReadme(name, target));
  writeFileSync(join(folder, 'THIRD-PARTY-NOTICES'), notices(target));
  copyFileSync(library, join(folder, 'tidegate.node'));
  stageLicences(folder);
}

function known(name) {
  if (!Object.hasOwn(platforms, name))
    throw new Error(`no platform ${name}; there are ${Object.keys(platforms).join(', ')}`);
  return platforms[name];
}

const commands = {
  names: () => console.log(Object.keys(platforms).join('\n')),
  target: (name) => console.log(known(name)[0]),
  main: stageMain,
  platform: stagePlatform,
  prepack: () => {
    stageSources(join(binding, 'rust'));
    stageLicences(binding);
  },
  postpack: () => {
    for (const name of ['rust', ...licences])
      rmSync(join(binding, name), { recursive: true, force: true });
  },
};

const [command, ...rest] = process.argv.slice(2);
if (!Object.hasOwn(commands, command ?? '') || commands[command].length !== rest.length) {
  console.error(USAGE);
  process.exit(2);
}
try {
  commands[command](...rest);
} catch (error) {
  console.error(`npm-stage: ${error.message}`);
  process.exit(1);
}
