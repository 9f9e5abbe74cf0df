'use strict';
// Loads the native part: one that was built here, or the package of this platform.

/** The names that this platform's native part may have, the likeliest first. */
function platforms() {
  const name = `${process.platform}-${process.arch}`;
  switch (process.platform) {
    case 'linux':
      return [`${name}-gnu`, `${name}-musl`];
    case 'win32':
      return [`${name}-msvc`];
    default:
      return [name];
  }
}

function load() {
  const tried = [];
  for (const name of platforms().flatMap((platform) => [
    `./tidegate.${platform}.node`,
    `tidegate-${platform}`,
  ])) {
    try {
      return require(name);
    } catch (error) {
      tried.push(`${name}: ${error.message.split('\n')[0]}`);
    }
  }
  const error = new Error(
    `tidegate has no native part for this platform; tried\n  ${tried.join('\n  ')}`,
  );
  error.code = 'native';
  throw error;
}

module.exports = { platforms, load };
