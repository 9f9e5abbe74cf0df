'use strict';
// The name of the platform that this process runs on, as the packages with native parts have it.

const { builtin } = require('./builtin.js');

/**
 * Whether this process runs on musl, as on Alpine. The files that it has mapped tell, in less than
 * a millisecond. Node's report takes 15 of them, so it is asked only if those cannot be read.
 */
function isMusl() {
  try {
    const { readFileSync } = builtin('node:fs', () => require('node:fs'));
    const maps = readFileSync('/proc/self/maps', 'latin1');
    // On some systems the loader is a link to the library, which has no version as glibc has.
    return /\/(ld-musl-|libc\.musl-|libc\.so$)/m.test(maps);
  } catch {
    return process.report?.getReport().header.glibcVersionRuntime === undefined;
  }
}

function platform() {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return `${name}-${isMusl() ? 'musl' : 'gnu'}`;
  return process.platform === 'win32' ? `${name}-msvc` : name;
}

module.exports = { platform };
