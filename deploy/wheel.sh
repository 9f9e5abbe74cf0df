#!/bin/bash
# wheel.sh TARGET|host FOLDER [MATURIN OPTION…]: builds the wheel for a target into FOLDER, from the
# source distribution alone, with the licences of all that it links and a list of that. A Linux
# target is linked by zig, against the oldest C library that Rust supports. `deploy/dist.sh` before
# it keeps this machine's folders out of the wheel.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=$1 folder=$2 && shift 2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$root"
out=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# The workflow and the tests bring their own maturin.
command -v maturin >/dev/null || PATH=$(deploy/tools.sh):$PATH
source=$(deploy/sdist.sh)
options=(--target-dir "$out" --out "$folder")
case $target in
  host)
    triple=$(rustc -vV | sed -n 's/^host: //p')
    # With a target, build scripts do not get the flags of what users install.
    [ -z "${CARGO_ENCODED_RUSTFLAGS:-}" ] || options+=(--target "$triple")
    ;;
  *-linux-*)
    triple=$target
    case $target in *-musl) tag=musllinux_1_2 ;; *) tag=manylinux_2_17 ;; esac
    options+=(--target "$target" --zig --compatibility "$tag")
    PATH=$(deploy/rust.sh "$target"):$PATH
    ;;
  *)
    echo "wheel: $target is unknown; host, or a Linux target: x86_64-unknown-linux-musl" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
notices=$source/LICENSE-THIRD-PARTY
trap 'rm -rf "$work" "$notices"' EXIT
# Windows would write its own encoding.
export PYTHONUTF8=1
python3 deploy/notices.py tidegate-python --target "$triple" >"$notices"
python3 deploy/sbom.py tidegate-python --target "$triple" >"$work/tidegate.cyclonedx.json"
if [ -n "${CARGO_ENCODED_RUSTFLAGS:-}" ]; then
  # The last prefix that fits counts: our sources are named as if built in the repository.
  CARGO_ENCODED_RUSTFLAGS+=$'\x1f'--remap-path-prefix=$source=/tidegate
fi
cd "$source"
maturin build "${options[@]}" --sbom-include "$work/tidegate.cyclonedx.json" "$@"
