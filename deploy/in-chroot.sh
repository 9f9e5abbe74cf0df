#!/bin/bash
# in-chroot.sh ROOT COMMAND…: runs a command in another root, with the files of this folder.
set -euo pipefail
root=$1 && shift
rm -rf "$root/try"
cp -r . "$root/try"
exec chroot "$root" sh -euc 'cd /try && exec "$@"' in "$@"
