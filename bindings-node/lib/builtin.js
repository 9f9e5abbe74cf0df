'use strict';
// Modules of Node's own. A bundle of ES modules has no `require`, and newer versions of Node offer
// them without it; where that is not so, `load` requires the module.

const builtin = (name, load) => process.getBuiltinModule?.(name) ?? load();

module.exports = { builtin };
