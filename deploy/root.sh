#!/bin/bash
# root.sh SUITE FOLDER PACKAGE…: makes a root of that Debian suite with those packages, to try
# artefacts in or to take newer programs from. Keeps what is there. VARIANT=extract unpacks only, and
# may do so for another processor: ROOT_ARCH=arm64.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=$1 folder=$2 && shift 2
wanted="$suite ${VARIANT:-apt}${ROOT_ARCH:+ $ROOT_ARCH} $*"
[ "$(cat "$folder/.made-of" 2>/dev/null)" != "$wanted" ] || exit 0
command -v mmdebstrap >/dev/null || "$here/../tests/need.sh" mmdebstrap >&2
# Ubuntu knows Debian's keys by a package only.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
  "$here/../tests/need.sh" debian-archive-keyring >&2
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
# The mirror of this machine's own sources; a mirror's copy of another suite may be some days old.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -1)
echo "root: Debian $suite with $*" >&2
mmdebstrap --quiet --variant="${VARIANT:-apt}" --include="$(IFS=,; echo "$*")" \
  ${ROOT_ARCH:+--architectures="$ROOT_ARCH"} --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$folder" ${mirror:+"$mirror"} >&2
echo "$wanted" >"$folder/.made-of"
