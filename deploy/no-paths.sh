#!/bin/bash
# no-paths.sh FILE…: fails if a file, or one in a folder, names a folder of the machine that made it:
# that of the repository, of cargo or of rustup.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for place in "$root" "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}"; do
  # A folder such as /src or /lib is named for other reasons too.
  case $place in /*/*) ;; *) continue ;; esac
  # grep fails where it finds nothing.
  found=$({ LC_ALL=C grep -rlaP "\Q$place\E(?![\w.-])" "$@" || true; } | head -5 | xargs)
  [ -z "$found" ] || { echo "$found: $place is named there" >&2 && exit 1; }
done
