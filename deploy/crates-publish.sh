#!/bin/bash
# crates-publish.sh: publishes both crates, the engine first, and passes over those whose version
# crates.io has already, so that a release that stopped half way can be run again.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(python3 deploy/version.py)
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
# Whether crates.io has that version, by the index that cargo reads.
is_there() { # crate
  local status
  status=$(curl --silent --show-error --output "$answer" --write-out '%{http_code}' \
    "https://index.crates.io/${1:0:2}/${1:2:2}/$1")
  case $status in
  200) grep -q "\"vers\":\"$version\"" "$answer" ;;
  404) return 1 ;;
  *) echo "crates: the index answers $status for $1: run this again later" >&2 && exit 1 ;;
  esac
}

for crate in tidegate-core tidegate; do
  if is_there "$crate"; then
    echo "crates: $crate $version is there already"
  else
    cargo publish --locked -p "$crate"
  fi
done
