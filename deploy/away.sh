#!/bin/bash
# away.sh FOLDER COMMAND…: runs a command in FOLDER as on a machine that has never seen the
# repository: no variable of this shell but PATH and HOME, and the repository hidden where the
# machine allows it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 && shift
clean=(env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8)
for name in SSL_CERT_FILE PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_NO_CACHE_DIR npm_config_registry NODE_EXTRA_CA_CERTS RUSTUP_TOOLCHAIN; do
  [ -z "${!name:-}" ] || clean+=("$name=${!name}")
done
cd "$folder"
hide='mount -t tmpfs tmpfs "$1" && cd "$2" && shift 2 && exec "$@"'
if unshare --mount true 2>/dev/null; then
  exec unshare --mount bash -euc "$hide" away "$root" "$folder" "${clean[@]}" "$@"
elif unshare --mount --map-root-user true 2>/dev/null; then
  exec unshare --mount --map-root-user bash -euc "$hide" away "$root" "$folder" "${clean[@]}" "$@"
fi
echo "away: the repository cannot be hidden on this machine" >&2
exec "${clean[@]}" "$@"
