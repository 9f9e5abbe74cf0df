'use strict';
// The package as users have it: packed, and installed from a registry that has nothing else.

const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { platform } = require('../../lib/platform.js');

const FOLDER = path.join(__dirname, '../..');
const ROOT = path.join(FOLDER, '..');
const { version } = require('../../package.json');

const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** Runs a program of Node: what it printed, and its error output. */
function said(args, cwd, env = process.env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** An empty folder. It goes when the test `t` ends; without one when the process ends. */
function scratch(t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-'));
  const remove = () => fs.rmSync(made, { recursive: true, force: true });
  if (t) t.after(remove);
  else process.on('exit', remove);
  return made;
}

let dist = process.env.TIDEGATE_DIST;

/** The folder with the packages. They are made now, unless `deploy/npm.sh` has said where it is. */
function packages() {
  if (dist === undefined) {
    dist = scratch();
    run(path.join(ROOT, 'deploy/npm.sh'), ['pack', platform(), dist], ROOT);
  }
  return dist;
}

/** A folder into which the package was installed, with that of its platform unless left out. */
function installed(t, { omit = false } = {}) {
  const folder = scratch(t);
  const npm = ['npm', 'install', '--silent', ...(omit ? ['--omit=optional'] : []), 'tidegate'];
  run('python3', [path.join(ROOT, 'deploy/registry.py'), packages(), '--', ...npm], folder);
  return folder;
}

module.exports = { FOLDER, ROOT, installed, packages, platform, run, said, scratch, version };
