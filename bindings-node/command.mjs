#!/usr/bin/env node
// Keeps the name `npx tidegate`: npx would run `tidegate-build` if that were the only program here.
console.error(`tidegate: this release has no command line; a later one will.
The library is used by \`require('tidegate')\` or \`import 'tidegate'\`.
To build its native part where no package has one: npx tidegate-build`);
process.exitCode = 1;
