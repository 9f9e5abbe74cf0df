#!/bin/bash
# c-packages.sh TARGET FOLDER: builds libtidegate for TARGET and packs it into FOLDER: a tarball
# that can be unpacked anywhere, and Debian packages if the target has glibc. Two runs of one commit
# give the same files: their times are the commit's, and their owner is root.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1 folder=$2
triple=${target%%.*}
version=$(python3 deploy/version.py)
# As in x86_64-linux-gnu.
platform=${triple/-unknown/}
# Without git, the first day of 2026: Debian refuses older files than its own.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"
umask 022

ffi-c/package/build.sh "$target"
name=libtidegate-$version-$platform
TARGET=$target PREFIX=/ DESTDIR=$scratch/$name LIBDIR='' INCLUDEDIR='' DATADIR='' LIBS='' \
  ffi-c/package/install.sh install >&2
find "$scratch" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
tar --create --directory "$scratch" --sort=name --owner=0 --group=0 --numeric-owner \
  --format=gnu "$name" | gzip --no-name --best >"$folder/$name.tar.gz"
echo "packed: $name.tar.gz"
case $platform in
x86_64-linux-gnu) deploy/c-deb.sh "$target" amd64 "$folder" ;;
aarch64-linux-gnu) deploy/c-deb.sh "$target" arm64 "$folder" ;;
esac
