#!/bin/bash
# c.sh quick|full: what C and C++ users install. `quick` installs what `make lib` has built for
# this machine into empty folders, in each way, and compiles programs there. `full` is c-full.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
full) exec deploy/c-full.sh ;;
quick) ;;
*) echo "usage: deploy/c.sh quick|full" >&2 && exit 1 ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "c: $*" >&2 && exit 1; }
need() { command -v "$1" >/dev/null || tests/need.sh "$2"; }
need g++ g++
need pkg-config pkg-config
need cmake cmake
install_at() { # prefix, the other variables
  # An environment may have such names for other builds.
  LIBS=-lother TARGET=other make --silent install PREFIX="$1" "${@:2}" >/dev/null
}
try() { # prefix, variables
  cp deploy/c-try.sh "$scratch/"
  deploy/away.sh "$scratch" env "${@:2}" bash "$scratch/c-try.sh" "$1"
}
left() { # prefix: files, and folders with our name
  find "$1" ! -type d -o -name '*tidegate*' -o -name pkgconfig -o -name cmake -o -name licenses
}

make --silent lib 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }

# As for a tarball, then somewhere else: nothing names its place.
install_at / DESTDIR="$scratch/made"
deploy/c-check.sh "$scratch/made"
mv "$scratch/made" "$scratch/moved"
try "$scratch/moved"

# Another Rust library in the same program: static, in both orders, with a panic on each side.
cat >"$scratch/other.rs" <<'RUST'
#[unsafe(no_mangle)]
pub extern "C" fn other(a: i32) -> i32 {
    std::panic::catch_unwind(|| (0..a).map(|i| 7 / (4 - i)).sum()).unwrap_or(-1)
}
RUST
cat >"$scratch/two.c" <<'C'
#include <tidegate.h>
int other(int);
int main(void) {
  tg_limiter *limiter;
  return !(other(3) == 6 && other(9) == -1 && tg_limiter_new("zzz", NULL, &limiter) != 0 &&
           tg_limiter_new("1/s", NULL, &limiter) == 0);
}
C
rustc --edition 2024 --crate-type staticlib "$scratch/other.rs" -o "$scratch/libother.a"
ours=$scratch/moved/lib/libtidegate.a
for pair in "$ours $scratch/libother.a" "$scratch/libother.a $ours"; do
  cc "$scratch/two.c" -I "$scratch/moved/include" -o "$scratch/two" \
    $pair -lm -lrt -lpthread -lutil -ldl
  "$scratch/two" 2>/dev/null || fail "a program with two Rust libraries fails"
done

# The folders of distributions, and one kind of library alone.
for libs in shared static; do
  where=(LIBDIR="lib/$(cc -print-multiarch)" INCLUDEDIR=include/tidegate-0.1)
  install_at "$scratch/$libs" LIBS=$libs "${where[@]}"
  try "$scratch/$libs" LIBS=$libs
  make --silent uninstall PREFIX="$scratch/$libs" "${where[@]}" >/dev/null
  [ -z "$(left "$scratch/$libs")" ] || fail "uninstall leaves $(left "$scratch/$libs" | xargs)"
done

# For packagers: the paths of the system are stated, and DESTDIR is in none.
install_at /usr LIBDIR=lib/some-linux-gnu DESTDIR="$scratch/staged"
grep -qx 'prefix=/usr' "$scratch/staged/usr/lib/some-linux-gnu/pkgconfig/tidegate.pc"
! grep -rqF "$scratch" "$scratch/staged" || fail "DESTDIR is in an installed file"
make --silent uninstall PREFIX=/usr LIBDIR=lib/some-linux-gnu DESTDIR="$scratch/staged" >/dev/null
[ -z "$(left "$scratch/staged")" ] || fail "uninstall leaves $(left "$scratch/staged" | xargs)"

# Root needs no Rust to install what is built, and does not build in another's tree.
mkdir "$scratch/bin"
for name in cargo rustc; do
  printf '#!/bin/sh\necho called >>"%s"\nexit 1\n' "$scratch/called" >"$scratch/bin/$name"
done
chmod +x "$scratch/bin"/*
PATH=$scratch/bin:$PATH make --silent install PREFIX="$scratch/root" >/dev/null ||
  fail "make install needs Rust although all is built"
[ ! -e "$scratch/called" ] || fail "make install calls Rust although all is built"
refused() { # what is said, command
  local said=$1 && shift
  ! "$@" >"$scratch/log" 2>&1 || fail "$* passes"
  grep -q "$said" "$scratch/log" || { cat "$scratch/log"; fail "$* does not say '$said'"; }
}
refused 'not an absolute path' make install PREFIX=here
refused 'not both, shared or static' make install PREFIX="$scratch/none" LIBS=all
if [ "$(id -u)" = 0 ]; then
  theirs=$scratch/theirs
  mkdir -p "$theirs/target"
  cp -r --preserve=timestamps --parents Cargo.toml Cargo.lock LICENSE-* include \
    {core,policy,ffi-c}/{src,Cargo.toml} ffi-c/{build.rs,package} "$theirs"
  chown -R nobody "$theirs"
  refused 'as that user: make lib' env -u CARGO_TARGET_DIR PREFIX="$scratch/none" \
    "$theirs/ffi-c/package/install.sh" install
  mkdir "$theirs/target/libtidegate"
  cp -r --preserve=timestamps "${CARGO_TARGET_DIR:-target}/libtidegate/host" \
    "$theirs/target/libtidegate/"
  chown -R nobody "$theirs"
  env -u CARGO_TARGET_DIR PATH="$scratch/bin:$PATH" PREFIX="$scratch/by-root" \
    "$theirs/ffi-c/package/install.sh" install >/dev/null
  deploy/c-check.sh "$scratch/by-root"
  [ -z "$(find "$theirs" ! -user nobody)" ] || fail "make install of root writes into the tree"
fi
[ ! -e "$scratch/none" ] || fail "a refused install leaves files"
echo "c: make install gives what its list says, shared and static; C and C++ programs find it by" \
  "pkg-config and CMake after a move; uninstall leaves nothing"
