#!/usr/bin/env node
// Builds the native part with cargo, and puts it beside native.js, which looks for it there.
//
// As `tidegate-build` it is for users of a platform that no package is for. The sources are in
// `rust/` then. In the repository they are the workspace around this folder.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, copyFileSync, existsSync, readFileSync } from 'node:fs';
import { renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const USAGE = `usage: npx tidegate-build [OPTIONS OF CARGO…]

Builds tidegate's native part for this machine, from the sources that the package carries, and puts
it into the package. Needs Rust, and crates.io for the crates that it links. Takes some minutes.`;

const folder = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const { platform } = require('./lib/platform.js');
const result = join(folder, 'tidegate.node');

function fail(message) {
  console.error(`tidegate-build: ${message}`);
  process.exit(1);
}

/** The workspace to build, and whether it is the package's own. */
function sources() {
  if (existsSync(join(folder, 'src/lib.rs')))
    return { workspace: join(folder, '..'), packed: false };
  const workspace = join(folder, 'rust');
  if (existsSync(join(workspace, 'Cargo.toml'))) return { workspace, packed: true };
  return fail(`there are no sources in ${workspace}: install tidegate again, by npm install`);
}

/** What a program says, null if there is no such program. */
function said(program, workspace) {
  const ran = spawnSync(program, ['--version'], { cwd: workspace, encoding: 'utf8' });
  if (ran.error) return null;
  if (ran.status !== 0) fail(`${program} --version failed: ${ran.stderr.trim()}`);
  return ran.stdout.trim();
}

/** Fails for a Rust that is missing or too old. */
function checkRust(workspace) {
  const manifest = readFileSync(join(workspace, 'Cargo.toml'), 'utf8');
  const [, least] = /^rust-version = "([\d.]+)"/m.exec(manifest);
  const install = `install Rust ${least} or later, from https://rustup.rs or your distribution`;
  const versions = ['cargo', 'rustc'].map((program) => {
    const version = said(process.env[program.toUpperCase()] ?? program, workspace);
    if (version === null) fail(`there is no ${program} on the PATH: ${install}`);
    return version;
  });
  const [, major, minor] = /(\d+)\.(\d+)/.exec(versions[1]);
  const [leastMajor, leastMinor] = least.split('.').map(Number);
  if (Number(major) < leastMajor || (Number(major) === leastMajor && Number(minor) < leastMinor))
    fail(`${versions[1]} is too old: ${install} (rustup update)`);
  return versions[1];
}

function checkWritable() {
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    fail(`${folder} cannot be written to (${error.code}). Run this as the user that installed it; \
with Yarn's Plug'n'Play, run \`yarn unplug tidegate\` first.`);
  }
}

/** Runs cargo, whose progress is seen. The library that it has made. */
function build({ workspace, packed }, options) {
  const command = ['build', '--locked', '-p', 'tidegate-node'];
  command.push(...(packed ? ['--profile', 'dist', '--target-dir', 'target'] : ['--release']));
  // A library that a process on musl loads shares its libc.
  command.push('--config', 'target.\'cfg(target_env = "musl")\'.rustflags = \
["-C", "target-feature=-crt-static"]');
  command.push('--message-format=json-render-diagnostics', ...options);
  const cargo = spawnSync(process.env.CARGO ?? 'cargo', command, {
    cwd: workspace,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  });
  if (cargo.error) fail(`cargo did not run: ${cargo.error.message}`);
  if (cargo.status !== 0) fail('cargo failed; the reason is above');
  const messages = cargo.stdout.split('\n').filter((line) => line.startsWith('{'));
  const made = messages.map((line) => JSON.parse(line)).find(
    (one) => one.reason === 'compiler-artifact' && one.target.name === 'tidegate_node',
  );
  return made.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));
}

/** Renamed into place: a process that has the old one loaded keeps it whole. */
function place(library) {
  try {
    copyFileSync(library, `${result}.new`);
    renameSync(`${result}.new`, result);
  } catch (error) {
    fail(`${result} cannot be replaced (${error.code}): end the programs that have it loaded`);
  }
}

/** Fails if it is not loaded here, as when cargo was told to build for another platform. */
function checkLoads() {
  try {
    require(result);
  } catch (error) {
    fail(`what was built cannot be loaded: ${error.message}`);
  }
}

const options = process.argv.slice(2);
if (options.includes('--help') || options.includes('-h')) {
  console.log(USAGE);
  process.exit(0);
}
const from = sources();
const rust = checkRust(from.workspace);
checkWritable();
const started = Date.now();
if (from.packed) console.error(`tidegate-build: building for ${platform()} with ${rust}`);
place(build(from, options));
checkLoads();
if (from.packed) {
  rmSync(join(from.workspace, 'target'), { recursive: true, force: true });
  const [seconds, size] = [(Date.now() - started) / 1e3, statSync(result).size / 1e6];
  console.error(`tidegate-build: built ${relative('', result)} (${size.toFixed(1)} MB) \
in ${seconds.toFixed(0)} s`);
}
