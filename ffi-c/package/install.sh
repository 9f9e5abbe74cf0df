#!/bin/bash
# Puts what `cargo build --release -p tidegate-c` made into PREFIX (under DESTDIR, if that is set).
set -euo pipefail
cd "$(dirname "$0")/../.."
built=${CARGO_TARGET_DIR:-target}/release
to=${DESTDIR:-}${PREFIX:-/usr/local}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
abi=${version%.*}
fill() { sed -e "s/@VERSION@/$version/g" -e "s/@ABI@/$abi/g" "$1" >"$2"; }

mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/tidegate"
install -m 644 include/tidegate.h "$to/include/"
[ ! -f include/tidegate.hpp ] || install -m 644 include/tidegate.hpp "$to/include/"
strip --strip-debug -o "$to/lib/libtidegate.so.$version" "$built/libtidegate.so"
strip --strip-debug -o "$to/lib/libtidegate.a" "$built/libtidegate.a"
chmod 755 "$to/lib/libtidegate.so.$version"
chmod 644 "$to/lib/libtidegate.a"
ln -sf "libtidegate.so.$version" "$to/lib/libtidegate.so.$abi"
ln -sf "libtidegate.so.$abi" "$to/lib/libtidegate.so"
fill ffi-c/package/tidegate.pc.in "$to/lib/pkgconfig/tidegate.pc"
fill ffi-c/package/tidegate-config-version.cmake.in "$to/lib/cmake/tidegate/tidegate-config-version.cmake"
install -m 644 ffi-c/package/tidegate-config.cmake "$to/lib/cmake/tidegate/"
