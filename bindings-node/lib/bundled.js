'use strict';
// What stands for the native part where `require` does not know `.node` files: in a bundle, mostly.
// When it is wanted, the package `tidegate` that can be found from the bundle's place has it.

const { builtin } = require('./builtin.js');
const { platform } = require('./platform.js');

const WHAT_TO_DO = `Do one of these:
- Leave tidegate out of the bundle, and install it where the bundle runs.
  esbuild: --external:tidegate
  webpack: externals: { tidegate: 'commonjs tidegate' }
- Bundle the native part too.
  esbuild: --conditions=node-addons --loader:.node=copy
  webpack: resolve.conditionNames: ['node-addons', '...'], and node-loader for /\\.node$/`;

// Without addons Node does not set the condition that leads to them, and this may be no bundle.
const DISABLED = 'tidegate needs its native part, and this process may load none.';
const ALLOW = 'Start Node without --no-addons; beside --permission also give --allow-addons.';

function failure(message, toDo = WHAT_TO_DO) {
  const error = new Error(`${message}\n${toDo}`);
  error.code = 'native';
  return error;
}

function nodeModule() {
  try {
    return builtin('node:module', () => require('node:module'));
  } catch {
    throw failure(`This is a bundle of ES modules with tidegate but not with its native part. It \
can look for that from Node 20.16 and 22.3 on, and this is Node ${process.versions.node}. Bundle \
as CommonJS (--format=cjs), or use a newer Node.`);
  }
}

/** Node's own `require`, as from the bundle: it is hidden from bundlers, and modules have none. */
function outerRequire() {
  const { createRequire } = nodeModule();
  const here = typeof __filename === 'string' ? __filename : process.argv[1];
  return [createRequire, createRequire(here ?? `${process.cwd()}/`), here];
}

function find() {
  const [createRequire, outer, here] = outerRequire();
  let manifest;
  try {
    manifest = outer.resolve('tidegate/package.json');
  } catch {
    throw failure(`${here} is a bundle with tidegate but not with its native part, and no package \
tidegate can be found from there.`);
  }
  const tidegate = createRequire(manifest);
  const reasons = [];
  for (const name of ['./tidegate.node', `tidegate-${platform()}`]) {
    try {
      return tidegate(name);
    } catch (error) {
      if (error.code === 'ERR_DLOPEN_DISABLED') throw failure(DISABLED, ALLOW);
      reasons.push(error.message.split('\n')[0]);
    }
  }
  throw failure(`${here} is a bundle with tidegate but not with its native part, and ${manifest} \
has none: ${reasons.join('; ')}.`);
}

module.exports = { setup: (...classes) => find().setup(...classes) };
