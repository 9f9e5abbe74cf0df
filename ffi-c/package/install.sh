#!/bin/bash
# install.sh install|uninstall: copies what `make lib` has built into PREFIX, or takes it away
# again. It never builds in another user's tree, so that `make lib && sudo make install` is safe.
#
#   PREFIX      /usr/local             an absolute path
#   LIBDIR      lib                    in PREFIX, as in lib64 or lib/x86_64-linux-gnu, or absolute
#   INCLUDEDIR  include                likewise
#   DATADIR     share                  likewise, for the licences
#   DESTDIR                            stands before all paths, for those who make packages
#   LIBS        both                   or shared or static
#   TARGET                             as in build.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=${CARGO_TARGET_DIR:-$PWD/target}/libtidegate/${TARGET:-host}
libs=${LIBS:-both}
fail() { echo "make $what: $*" >&2 && exit 1; }

what=${1:-install}
case ${PREFIX:=/usr/local} in /*) ;; *) fail "PREFIX=$PREFIX is not an absolute path" ;; esac
prefix=$(echo "$PREFIX" | sed 's|//*|/|g; s|\(.\)/$|\1|')
inside=${prefix%/}/
case $libs in both | shared | static) ;; *) fail "LIBS=$libs is not both, shared or static" ;; esac
under() { case $1 in /*) echo "${1%/}" ;; *) echo "$inside${1%/}" ;; esac; }
lib=$(under "${LIBDIR:-lib}")
include=$(under "${INCLUDEDIR:-include}")
data=$(under "${DATADIR:-share}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
abi=$(echo "$version" | cut -d. -f1,2)
root=${DESTDIR:-}
licenses=$root$data/licenses/tidegate
cmake=$root$lib/cmake/tidegate

# The names of the shared library: the file's, its users' (by the ABI's version) and the linker's.
case ${TARGET:-$(uname -s)} in
*apple* | Darwin) shared=(libtidegate{".$version",".$abi",}.dylib) ;;
*) shared=(libtidegate.so{".$version",".$abi",}) ;;
esac

# Whether what was built is as new as its sources.
fresh() {
  [ -e "$stage/built" ] &&
    [ -z "$(find Cargo.toml Cargo.lock {core,policy,ffi-c}/{src,Cargo.toml} ffi-c/build.rs \
      ffi-c/package/build.sh -newer "$stage/built" -print -quit)" ]
}

build() {
  local owner
  owner=$(ls -ldn . | awk '{ print $3 }')
  if [ "$(id -u)" = 0 ] && [ "$owner" != 0 ]; then
    fail "nothing is built, and root does not build in the tree of user $owner." \
      "First, as that user: make lib${TARGET:+ TARGET=$TARGET}"
  fi
  ffi-c/package/build.sh "${TARGET:-}"
}

# The way from a folder below LIBDIR to PREFIX, if LIBDIR is in PREFIX: then all can be moved
# together. What belongs to the system is not moved, and its paths are stated.
way_up() { # the folder in LIBDIR, how its files call the folder that they are in
  local rest=${lib#"$inside"}/$1
  if [ "$prefix" = /usr ] || [ "$rest" = "$lib/$1" ]; then
    echo "$prefix"
  else
    echo "$2/$(echo "$rest" | sed 's|[^/][^/]*|..|g')"
  fi
}

fill() { # template, file, PREFIX as that file calls it, how it writes the variable
  local libdir=$lib includedir=$include links= needed
  needed=$(cat "$stage/needed")
  [ "$libs" != static ] || links=" $needed"
  case $lib in "$inside"*) libdir=$4/${lib#"$inside"} ;; esac
  case $include in "$inside"*) includedir=$4/${include#"$inside"} ;; esac
  [ "$libs" != shared ] || needed=
  sed -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" -e "s|@PREFIX@|$3|g" \
    -e "s|@LIBDIR@|$libdir|g" -e "s|@INCLUDEDIR@|$includedir|g" -e "s|@LINKS@|$links|g" \
    -e "s|@NEEDED@|$needed|g" -e "s|@NEEDED_LIST@|$(echo "$needed" | sed 's|-l||g; s| |;|g')|g" \
    -e "s|@SHARED@|${shared[0]}|g" -e "s|@SONAME@|${shared[1]}|g" "$1" >"$2"
  chmod 644 "$2"
}

install_all() {
  fresh || build
  install -d -m 755 "$root$include" "$root$lib/pkgconfig" "$cmake" "$licenses"
  install -m 644 include/tidegate.h include/tidegate.hpp "$root$include/"
  if [ "$libs" != static ]; then
    # Replaced by a new file, as programs may have the old one mapped.
    rm -f "$root$lib/${shared[0]}"
    install -m 755 "$stage/libtidegate.${shared[2]##*.}" "$root$lib/${shared[0]}"
    ln -sf "${shared[0]}" "$root$lib/${shared[1]}"
    ln -sf "${shared[1]}" "$root$lib/${shared[2]}"
  fi
  [ "$libs" = shared ] || install -m 644 "$stage/libtidegate.a" "$root$lib/"
  fill ffi-c/package/tidegate.pc.in "$root$lib/pkgconfig/tidegate.pc" \
    "$(way_up pkgconfig '${pcfiledir}')" '${prefix}'
  fill ffi-c/package/tidegate-config.cmake.in "$cmake/tidegate-config.cmake" \
    "$(way_up cmake/tidegate '${CMAKE_CURRENT_LIST_DIR}')" '${_tidegate_prefix}'
  fill ffi-c/package/tidegate-config-version.cmake.in "$cmake/tidegate-config-version.cmake" . .
  install -m 644 LICENSE-APACHE LICENSE-MIT "$stage/THIRD-PARTY-NOTICES" "$licenses/"
  echo "Tidegate $version is installed: $root$include/tidegate.h, and ($libs) $root$lib/libtidegate"
}

uninstall_all() {
  rm -f "$root$include/tidegate.h" "$root$include/tidegate.hpp" "$root$lib/libtidegate.a" \
    "${shared[@]/#/$root$lib/}" "$root$lib/pkgconfig/tidegate.pc"
  rm -f "$cmake"/tidegate-config{,-version}.cmake \
    "$licenses"/{LICENSE-{APACHE,MIT},THIRD-PARTY-NOTICES}
  # Folders with our name, if they are empty, and those that only packages make.
  [ "${include##*/}" = include ] || rmdir "$root$include" 2>/dev/null || true
  rmdir "$cmake" "$licenses" "${cmake%/*}" "${licenses%/*}" "$root$lib/pkgconfig" 2>/dev/null || true
  echo "Tidegate $version is removed from $root$lib and $root$include"
}

case $what in
install) install_all ;;
uninstall) uninstall_all ;;
*) fail "not a command" ;;
esac
# The loader's list of libraries.
if [ "$(id -u)$root" = 0 ] && [ "$(uname -s)" = Linux ] && command -v ldconfig >/dev/null; then
  ldconfig
fi
