#!/bin/bash
# dist.sh COMMAND…: runs a command that builds with cargo, so that what it builds names no folder of
# this machine. `deploy/dist.sh cargo build --profile dist -p tidegate-c`
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
separator=$'\x1f'
flags=${CARGO_ENCODED_RUSTFLAGS:-}
# The last prefix that fits counts, so the longest come last.
for map in "$HOME=/home" "$home=/cargo" "$sysroot=/rust" "$root=/tidegate"; do
  flags+=${flags:+$separator}--remap-path-prefix=$map
done
export CARGO_ENCODED_RUSTFLAGS=$flags
exec "$@"
