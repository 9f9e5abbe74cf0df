#!/bin/bash
# run.sh: the LuaJIT example, as its tests use it.
set -euo pipefail
cd "$(dirname "$0")"
command -v luajit >/dev/null || ../../tests/need.sh luajit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TIDEGATE_LIBRARY=${TIDEGATE_LIBRARY:-$(pkg-config --variable=libdir tidegate)/libtidegate.so}
luajit test.lua "$scratch/limits"
