#!/bin/bash
# in-root.sh ROOT COMMAND…: runs a command in a Debian root that deploy/root.sh made, as on a
# machine of its own: with /proc, /dev and a memory file system, and no variable of this shell.
set -euo pipefail
root=$1 && shift
export ROOT=$root
exec unshare --mount --pid --fork bash -euc '
  mount -t proc proc "$ROOT/proc"
  mount --rbind /dev "$ROOT/dev"
  mount -t tmpfs tmpfs "$ROOT/tmp"
  exec chroot "$ROOT" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' in-root "$@"
