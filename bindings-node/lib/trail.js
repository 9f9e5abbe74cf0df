'use strict';
// The trail of run-time changes. JSON has no bytes: parts of keys that are no text come as hex
// digits.

const bytesOrText = (part) => (typeof part === 'string' ? part : Buffer.from(part.hex, 'hex'));

/** With the parts of its `key`, if it has one, as a caller gave them. */
function keyOf(one) {
  if (one.key) one.key = one.key.map(bytesOrText);
  return one;
}

function readChanges(text) {
  const all = JSON.parse(text);
  for (const { target } of all.changes) if (target) keyOf(target);
  return all;
}

module.exports = { keyOf, readChanges };
