'use strict';
// The name of the platform that this process runs on, as the packages with native parts have it.

const { builtin } = require('./builtin.js');

/** Whether the files that this process has mapped are those of musl. Takes less than 1 ms. */
function hasMappedMusl() {
  const { readFileSync } = builtin('node:fs', () => require('node:fs'));
  const maps = readFileSync('/proc/self/maps', 'latin1');
  // On some systems the loader is a link to the library, which has no version as glibc has.
  return /\/(ld-musl-|libc\.musl-|libc\.so$)/m.test(maps);
}

/** Whether Node's report names no glibc. Takes 15 ms. */
const reportsNoGlibc = () => process.report.getReport().header.glibcVersionRuntime === undefined;

/** Whether this process runs on musl, as on Alpine. It may not be allowed to ask. */
function isMusl() {
  for (const ask of [hasMappedMusl, reportsNoGlibc]) {
    try {
      return ask();
    } catch {}
  }
  return false;
}

function platform() {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return `${name}-${isMusl() ? 'musl' : 'gnu'}`;
  return process.platform === 'win32' ? `${name}-msvc` : name;
}

module.exports = { platform };
