#!/bin/bash
# `run.sh demo` or `run.sh test`, after building the native part and fetching what is needed, once.
set -euo pipefail
cd "$(dirname "$0")"
. ../../bindings-node/test/node.sh
node ../../bindings-node/build.mjs --quiet

case ${1:-demo} in
  demo)
    # The gateway needs nothing but the package itself.
    [ -e node_modules/tidegate ] || { mkdir -p node_modules && ln -s ../../../bindings-node node_modules/tidegate; }
    node gateway/demo.js
    ;;
  test)
    [ -d node_modules/koa ] || npm install --ignore-scripts --no-audit --no-fund --silent
    node --no-warnings --test --test-timeout=60000 --test-reporter="${TEST_REPORTER:-dot}" */*.test.js
    echo
    ;;
esac
