#!/bin/bash
# away.sh FOLDER COMMAND…: runs a command in FOLDER as on a machine that has never seen the
# repository: no variable of this shell but those that tell where things come from, and the
# repository hidden where the machine allows it. AWAY_KEEP names a folder in the repository that stays
# to be seen. With AWAY_MUST it fails where the repository cannot be hidden.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 && shift
clean=(env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8)
for name in SSL_CERT_FILE PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_NO_CACHE_DIR \
  npm_config_registry NODE_EXTRA_CA_CERTS RUSTUP_TOOLCHAIN RUSTUP_HOME CARGO_HOME \
  {http,https,all,no}_proxy {HTTP,HTTPS,ALL,NO}_PROXY; do
  [ -z "${!name:-}" ] || clean+=("$name=${!name}")
done
keep=${AWAY_KEEP:+$(cd "$AWAY_KEEP" && pwd)}
cd "$folder"
# $1 repository, $2 folder, $3 what stays, or nothing.
hide='
if [ -n "$3" ]; then
  kept=$(mktemp -d)
  mount --bind "$3" "$kept"
fi
mount -t tmpfs tmpfs "$1"
if [ -n "$3" ]; then
  mkdir -p "$3"
  mount --bind "$kept" "$3"
  umount "$kept"
  rmdir "$kept"
fi
cd "$2"
shift 3
exec "$@"'
# Some machines let one unshare, and mount nothing then.
for how in '' --map-root-user; do
  unshare --mount $how mount -t tmpfs tmpfs "$root" 2>/dev/null || continue
  exec unshare --mount $how \
    bash -euc "$hide" away "$root" "$folder" "$keep" "${clean[@]}" "$@"
done
if [ -n "${AWAY_MUST:-}" ]; then
  echo "away: the repository cannot be hidden on this machine: be root, with CAP_SYS_ADMIN" >&2
  exit 1
fi
echo "away: the repository cannot be hidden on this machine, so it may be seen" >&2
exec "${clean[@]}" "$@"
