// Builds the native part with cargo and puts it beside native.js, under the name of this platform.
// `npm install` in this folder runs it; packages from a registry bring theirs along.
import { spawnSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';

const folder = dirname(fileURLToPath(import.meta.url));
const { platforms } = createRequire(import.meta.url)('./native.js');

const cargo = spawnSync(
  'cargo',
  [
    'build',
    '--release',
    '--locked',
    '-p',
    'tidegate-node',
    '--message-format=json-render-diagnostics',
    ...process.argv.slice(2),
  ],
  { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 28 },
);
if (cargo.error || cargo.status !== 0) {
  console.error(
    cargo.error?.code === 'ENOENT'
      ? 'tidegate is built from source with Rust 1.90 or later: https://rustup.rs'
      : 'cargo failed',
  );
  process.exit(1);
}
const artifacts = cargo.stdout
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line));
const built = artifacts.find(
  (one) => one.reason === 'compiler-artifact' && one.target.name === 'tidegate_node',
);
const name = join(folder, `tidegate.${platforms()[0]}.node`);
// Renamed into place: a process that has the old one loaded keeps it whole.
copyFileSync(built.filenames[0], `${name}.new`);
renameSync(`${name}.new`, name);
// A package has its licence with it; npm packs no links.
for (const file of ['LICENSE-MIT', 'LICENSE-APACHE'])
  copyFileSync(join(folder, '..', file), join(folder, file));
