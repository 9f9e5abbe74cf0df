#!/bin/bash
# sdist.sh [FOLDER]: makes the source distribution of the Python package, in FOLDER if one is named,
# and prints a folder where it is unpacked. A file that has not changed since the last time keeps
# its time there, so that cargo builds only what is new.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 0 ] || { mkdir -p "$1" && wanted=$(cd "$1" && pwd); }
cd "$root"
out=${CARGO_TARGET_DIR:-$root/target}/python-source
mkdir -p "$out"
out=$(cd "$out" && pwd)
command -v maturin >/dev/null || PATH=$(deploy/tools.sh):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where git makes no symbolic links, it leaves files with their aims.
for licence in LICENSE-MIT LICENSE-APACHE; do
  cmp -s "$licence" "bindings-python/$licence" || cp "$licence" "bindings-python/$licence"
done
maturin sdist --manifest-path bindings-python/Cargo.toml --out "$work/packed" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2 && exit 1; }
[ $# = 0 ] || cp "$work"/packed/*.tar.gz "$wanted"

mkdir "$work/new"
tar xzmf "$work"/packed/*.tar.gz -C "$work/new"
# All files inside have one time, so they are compared by what they hold.
(cd "$work/new" && find . -type f) | sort >"$work/files"
while read -r file; do
  cmp -s "$work/new/$file" "$out/$file" ||
    { mkdir -p "$out/${file%/*}" && cp "$work/new/$file" "$out/$file"; }
done <"$work/files"
cd "$out"
# What a build of a wheel adds, it removes itself.
find . -type f ! -name LICENSE-THIRD-PARTY | sort | comm -23 - "$work/files" |
  while read -r file; do rm "$file"; done
echo "$out/$(ls "$work/new")"
