#!/bin/bash
# root.sh SUITE FOLDER PACKAGE…: makes a root of that Debian suite with those packages, to try
# artefacts in or to take newer programs from. Keeps what is there. VARIANT=extract unpacks only, and
# may do so for another processor: ROOT_ARCH=arm64. That needs no root, and gives the user's own files.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=$1 folder=$2 && shift 2
wanted="$suite ${VARIANT:-apt}${ROOT_ARCH:+ $ROOT_ARCH} $*"
# Beside the folder, whose owner may be another user.
made_of=${folder%/}.made-of
if [ -d "$folder" ] && [ "$(cat "$made_of" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
command -v mmdebstrap >/dev/null || "$here/../tests/need.sh" mmdebstrap >&2
# Ubuntu knows Debian's keys by a package only.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
  "$here/../tests/need.sh" debian-archive-keyring >&2
rm -rf "$made_of"
rm -rf "$folder" || { echo "root: remove $folder as its owner or as root" >&2 && exit 1; }
mkdir -p "$(dirname "$folder")"
# The mirror of this machine's own sources; a mirror's copy of another suite may be some days old.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -1)
echo "root: Debian $suite with $*" >&2
include=$(IFS=,; echo "$*")
make() { # the folder, or - for an archive
  mmdebstrap --quiet --variant="${VARIANT:-apt}" --include="$include" \
    ${ROOT_ARCH:+--architectures="$ROOT_ARCH"} --aptopt='Acquire::Check-Valid-Until "false"' \
    "$suite" "$1" ${mirror:+"$mirror"}
}
if [ "$(id -u)" = 0 ] || [ "${VARIANT:-}" != extract ]; then
  make "$folder" >&2
else
  # Its owners would be users that this one may become, and no other program of this one.
  mkdir "$folder"
  make - | tar x --no-same-owner --exclude='./dev/*' -C "$folder"
fi
echo "$wanted" >"$made_of"
