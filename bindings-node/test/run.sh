#!/bin/bash
# Installs the package from source as its users do, and tests it: from JavaScript and TypeScript, packed, beside
# processes in C (and in Python, if that package is there), and as the documents have it.
set -euo pipefail
cd "$(dirname "$0")/.."
. test/node.sh
echo "node: $(node --version), built from source"
npm ci --no-audit --no-fund --silent
(cd "$root" && cargo build --quiet --release -p tidegate-c --locked)
echo "node: types"
node_modules/.bin/tsc -p test/tsconfig.json
# The wheel that `make python` has tested, if it has: three languages on one file then.
export TIDEGATE_PEERS=2 TIDEGATE_PYTHON=$root/${CARGO_TARGET_DIR:-target}/python/venv/bin/python
if "$TIDEGATE_PYTHON" -c 'import tidegate' 2>/dev/null; then TIDEGATE_PEERS=3; fi
python3 "$root/docs/check.py" --node .
node --test --test-reporter=${TEST_REPORTER:-dot} test/*.test.js
echo
