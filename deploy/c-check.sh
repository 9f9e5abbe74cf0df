#!/bin/bash
# c-check.sh FOLDER…: each folder, as `make install` or a tarball made it, has the files of
# ffi-c/package/contents.txt, shows no name but tg_*, names no folder of this machine, and has the
# licences.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(python3 deploy/version.py)
abi=$(echo "$version" | cut -d. -f1,2)
fail() { echo "c-check: $*" >&2 && exit 1; }

symbols() { # file, what else readelf is told: the global names that it defines
  readelf --wide --symbols ${2:-} "$1" |
    awk '($5 == "GLOBAL" || $5 == "WEAK") && $7 != "UND" { print $8 }' | sort -u
}

for folder in "$@"; do
  diff <(sed "s/@VERSION@/$version/g; s/@ABI@/$abi/g" ffi-c/package/contents.txt) \
    <(cd "$folder" && find . -type f -printf '%P\n' -o -type l -printf '%P -> %l\n' |
      LC_ALL=C sort) ||
    fail "$folder has other files than ffi-c/package/contents.txt (>)"
  modes=$(stat -c %a "$folder"/include/* "$folder"/lib/*.a "$folder"/share/licenses/*/* | sort -u)
  [ "$modes" = 644 ] ||
    fail "the files of $folder have other rights than 644"
  wanted=$(grep -o '\btg_[a-z0-9_]*(' include/tidegate.h | tr -d '(' | sort -u)
  for library in "$folder/lib/libtidegate.so" "$folder/lib/libtidegate.a"; do
    how=
    [ "$library" != "$folder/lib/libtidegate.so" ] || how=--dyn-syms
    found=$(symbols "$library" $how)
    diff <(echo "$wanted") <(echo "$found") ||
      fail "$library shows other names (>) than the functions of the header (<)"
    deploy/no-paths.sh "$library"
  done
  readelf --dynamic "$folder/lib/libtidegate.so" | grep -q "SONAME.*\[libtidegate.so.$abi\]" ||
    fail "$folder/lib/libtidegate.so has no soname"
  for text in 'LICENSE-MIT:Permission is hereby granted' 'LICENSE-APACHE:Apache License' \
    'THIRD-PARTY-NOTICES:serde_json .*: MIT'; do
    grep -q "${text#*:}" "$folder/share/licenses/tidegate/${text%%:*}" ||
      fail "${text%%:*} is not whole"
  done
done
