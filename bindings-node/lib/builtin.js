'use strict';
// Modules of Node's own. A bundle of ES modules has no `require`. Newer versions of Node offer
// their modules without it; in older ones `load` requires the module.

const builtin = (name, load) => process.getBuiltinModule?.(name) ?? load();

module.exports = { builtin };
