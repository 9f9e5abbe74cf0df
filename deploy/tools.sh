#!/bin/bash
# tools.sh: makes an environment with the tools that build what users install, from PyPI, and prints
# its folder of programs. zig links against an old glibc; its releases are pinned, as all are.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wanted=(maturin==1.16.0 ziglang==0.17.0 cargo-zigbuild==0.24.0 auditwheel==6.8.2)
tools=${CARGO_TARGET_DIR:-$root/target}/tools
if [ "$(cat "$tools/ready" 2>/dev/null)" != "${wanted[*]}" ]; then
  python3 -c 'import ensurepip' 2>/dev/null || "$root/tests/need.sh" python3-venv >&2
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]}" >&2
  echo "${wanted[*]}" >"$tools/ready"
fi
echo "$tools/bin"
