#!/bin/bash
# c-deb.sh TARGET ARCHITECTURE FOLDER: packs what ffi-c/package/build.sh has built for TARGET for
# Debian and Ubuntu, by dpkg-deb: libtidegate0.1 for programs, libtidegate-dev for those who build
# them. It does without debhelper, so that it needs no other Debian than this one.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1 architecture=$2 folder=$3
platform=${target%%.*}
multiarch=${platform/-unknown/}
glibc=2.$(echo "$target" | sed -n 's/.*-gnu\.2\.//p')
upstream=$(python3 deploy/version.py)
abi=$(echo "$upstream" | cut -d. -f1,2)
# A pre-release is older than its release.
version=${upstream/-/\~}-1
library=libtidegate$abi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:?is set by c-packages.sh}
# The project has no public address yet.
maintainer="The Tidegate maintainers <maintainers@tidegate.invalid>"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022

TARGET=$target PREFIX=/usr LIBDIR=lib/$multiarch DESTDIR=$scratch/all INCLUDEDIR='' DATADIR='' \
  LIBS='' ffi-c/package/install.sh install >&2
notices=$scratch/THIRD-PARTY-NOTICES
mv "$scratch/all/usr/share/licenses/tidegate/THIRD-PARTY-NOTICES" "$notices"
rm -r "$scratch/all/usr/share/licenses"
mkdir -p "$scratch/$library/usr/lib/$multiarch"
mv "$scratch/all/usr/lib/$multiarch"/libtidegate.so.* "$scratch/$library/usr/lib/$multiarch/"
chmod 644 "$scratch/$library/usr/lib/$multiarch"/libtidegate.so.*

copyright() {
  cat <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tidegate
Comment: The library contains other crates of Rust. Their licences are in
 THIRD-PARTY-NOTICES.gz beside this file.

Files: *
Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE-MIT | head -1)
License: Expat or Apache-2.0

License: Expat
$(sed -n '/^Permission/,$p' LICENSE-MIT | sed 's/^$/./; s/^/ /')

License: Apache-2.0
 The text of this licence is in /usr/share/common-licenses/Apache-2.0.
COPYRIGHT
}

changelog() {
  echo "tidegate ($version) unstable; urgency=medium"
  echo
  echo "  * Release $upstream; its changes are in the project's CHANGELOG.md."
  echo
  echo " -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

documents() { # package
  local doc=$scratch/$1/usr/share/doc/$1
  mkdir -p "$doc"
  copyright >"$doc/copyright"
  changelog | gzip --no-name --best >"$doc/changelog.Debian.gz"
  gzip --no-name --best <"$notices" >"$doc/THIRD-PARTY-NOTICES.gz"
}

control() { # package, section, its other fields
  mkdir -p "$scratch/$1/DEBIAN"
  cat >"$scratch/$1/DEBIAN/control" <<CONTROL
Package: $1
Source: tidegate
Version: $version
Architecture: $architecture
Multi-Arch: same
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$scratch/$1/usr" | cut -f1)
Section: $2
Priority: optional
$3
 Tidegate limits how often each key may do something: requests of a client,
 messages of a chat, calls of an agent. One engine without locks serves C, C++
 and other languages, within a process or for many processes on one machine.
CONTROL
  (cd "$scratch/$1" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
}

pack() { # package
  find "$scratch/$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  local file=${1}_${version}_$architecture.deb
  dpkg-deb --root-owner-group -Zxz --build "$scratch/$1" "$folder/$file" >&2
  echo "packed: $file"
}

documents "$library"
control "$library" libs "Depends: libc6 (>= $glibc)
Description: rate limits for services, shared library"
echo "libtidegate $abi $library (>= $version)" >"$scratch/$library/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$scratch/$library/DEBIAN/triggers"
pack "$library"

mv "$scratch/all" "$scratch/libtidegate-dev"
documents libtidegate-dev
control libtidegate-dev libdevel "Depends: $library (= $version)
Description: rate limits for services, to build programs in C and C++"
pack libtidegate-dev
