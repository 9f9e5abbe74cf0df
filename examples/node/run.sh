#!/bin/bash -eu
# `run.sh test` or `run.sh demo`, after building the native part and fetching what is needed, once.
cd "$(dirname "$0")"

command -v node >/dev/null || { echo "the examples for Node need Node 20 or later"; exit 1; }
(cd ../../bindings-node && node build.mjs --quiet)

case ${1:-demo} in
  demo)
    # The gateway needs nothing but the package itself.
    [ -e node_modules/tidegate ] || { mkdir -p node_modules && ln -s ../../../bindings-node node_modules/tidegate; }
    node gateway/demo.js
    ;;
  test)
    [ -d node_modules/koa ] || npm install --ignore-scripts --no-audit --no-fund --loglevel=error
    NODE_NO_WARNINGS=1 node --test */*.test.js
    ;;
esac
