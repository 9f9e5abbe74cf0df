#!/bin/bash
# languages.sh: the examples of other languages, with the library that `make c` has installed.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$(realpath -m "${CARGO_TARGET_DIR:-target}")/c/prefix
[ -f "$prefix/lib/pkgconfig/tidegate.pc" ] || make --silent install PREFIX="$prefix"
command -v pkg-config >/dev/null || tests/need.sh pkg-config
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
for language in go luajit java nginx; do
  examples/$language/run.sh
done
