'use strict';
// Finds the native part: one that `tidegate-build` has made here, or the package of this platform.
//
// The names behind `#` are in package.json, under "imports". With the condition `node-addons`,
// which Node sets, they are that file and those packages. Without it they are `lib/bundled.js`, for
// bundlers that know no `.node` files. Every name is written out, so that bundlers can follow it.

const { platform } = require('./lib/platform.js');

/** The native part of that name, or why it cannot be had. */
function attempt(name) {
  // Within the `try`, so that a bundler passes over the platforms that are not installed.
  try {
    switch (name) {
      case 'built':
        return { part: require('#built') };
      case 'linux-x64-gnu':
        return { part: require('#linux-x64-gnu') };
      case 'linux-x64-musl':
        return { part: require('#linux-x64-musl') };
      case 'linux-arm64-gnu':
        return { part: require('#linux-arm64-gnu') };
      case 'linux-arm64-musl':
        return { part: require('#linux-arm64-musl') };
      case 'darwin-arm64':
        return { part: require('#darwin-arm64') };
      case 'darwin-x64':
        return { part: require('#darwin-x64') };
      case 'win32-x64-msvc':
        return { part: require('#win32-x64-msvc') };
      default:
        return { why: 'no package has one for this platform' };
    }
  } catch (error) {
    return { why: reason(error) };
  }
}

function reason(error) {
  const [line] = String(error?.message ?? error).split('\n');
  if (error?.code === 'MODULE_NOT_FOUND') return 'not installed';
  // What esbuild's `require` says where there is none.
  if (line.startsWith('Dynamic require'))
    return 'this bundle of ES modules cannot load it: bundle as CommonJS (--format=cjs)';
  return line;
}

function load() {
  const name = platform();
  const built = attempt('built');
  if (built.part) return built.part;
  const packed = attempt(name);
  if (packed.part) return packed.part;
  const error = new Error(
    `tidegate has no native part for ${name}.\n` +
      `  package tidegate-${name}: ${packed.why}\n` +
      `  built here: ${built.why === 'not installed' ? 'no' : built.why}\n` +
      'To build it here, with Rust 1.90 or later, run: npx tidegate-build\n' +
      'If the package was left out, as by --omit=optional or by a lock file of another platform, ' +
      'run: npm install --include=optional tidegate',
  );
  error.code = 'native';
  throw error;
}

module.exports = { load };
