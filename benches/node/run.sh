#!/bin/bash
# Measures the npm package beside others, and leaves the package as users have it.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --silent
trap 'node ../../bindings-node/build.mjs' EXIT
node ../../bindings-node/build.mjs --features bench
node peers.mjs
SHORT=1 node peers.mjs
node express.mjs
