#!/bin/bash
# c-full.sh: builds the tarballs and Debian packages of libtidegate for Linux, into target/packages.
# Installs them into roots of Debian that have nothing of the repository, and compiles and runs
# programs there; those for arm64 run in QEMU. One target is built twice, and both builds are equal.
set -euo pipefail
export AWAY_MUST=1
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-$PWD/target}
dist=$out/packages
version=$(python3 deploy/version.py)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "c: $*" >&2 && exit 1; }
need() { command -v "$1" >/dev/null || tests/need.sh "${@:2}"; }
[ "$(id -u)" = 0 ] || fail "needs root, for roots of Debian"
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need qemu-aarch64-static qemu-user-static
need lintian lintian
need pkg-config pkg-config
need cmake cmake
[ -e /lib/ld-musl-x86_64.so.1 ] || tests/need.sh musl
zig="$(deploy/tools.sh)/python-zig"
targets=({x86_64,aarch64}-unknown-linux-{gnu.2.17,musl})

rm -f "$dist"/libtidegate*
for target in "${targets[@]}"; do
  echo "c: $target"
  deploy/c-packages.sh "$target" "$dist"
done
unpack() { # platform, folder
  mkdir -p "$2"
  tar xzf "$dist/libtidegate-$version-$1.tar.gz" --strip-components=1 -C "$2"
}
for platform in {x86_64,aarch64}-linux-{gnu,musl}; do
  unpack $platform "$scratch/$platform"
  deploy/c-check.sh "$scratch/$platform"
done
for platform in {x86_64,aarch64}-linux-gnu; do
  newest=$(readelf --wide --version-info "$scratch/$platform/lib/libtidegate.so" |
    grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
  [ "$newest" = GLIBC_2.17 ] || fail "the library for $platform needs $newest"
done

echo "c: built again elsewhere, the packages are the same"
mkdir -p "$scratch/again"
ln -s "$out/tools" "$out/rust" "$scratch/again/"
CARGO_TARGET_DIR=$scratch/again deploy/c-packages.sh "${targets[0]}" "$scratch/again/dist"
for package in "$scratch"/again/dist/*; do
  cmp "$package" "$dist/${package##*/}"
done

cp deploy/c-try.sh "$scratch/"
for suite in bullseye bookworm; do
  root=$out/c-roots/$suite
  deploy/root.sh $suite "$root" gcc g++ make pkg-config cmake
  rm -rf "$root/try" "$root/opt"
  mkdir -p "$root/try" "$root/opt/tidegate"
  cp deploy/c-try.sh "$dist"/libtidegate*_amd64.deb "$root/try/"
  echo "c: the tarball in Debian $suite"
  unpack x86_64-linux-gnu "$root/opt/tidegate"
  deploy/in-root.sh "$root" bash /try/c-try.sh /opt/tidegate
  rm -rf "$root/opt/tidegate"
  echo "c: the Debian packages in $suite"
  deploy/in-root.sh "$root" bash -euc '
    apt-get install -qq --yes /try/*.deb >/dev/null 2>/try/log || { cat /try/log; exit 1; }
    bash /try/c-try.sh
    apt-get purge -qq --yes libtidegate-dev "libtidegate0*" >/dev/null
    [ -z "$(find /usr /etc -name "*tidegate*")" ]'
done
# The one tag is for what Debian itself takes up.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
  "$dist"/libtidegate*.deb >"$scratch/lintian" ||
  { cat "$scratch/lintian"; fail "lintian finds faults"; }

# Zig has musl and its unwinder, but is hidden with the repository. Its checks of undefined
# behaviour need a newer musl than Debian's.
musl() { # processor, variables
  local more="-target $1-linux-musl -fno-sanitize=all -lunwind"
  echo "c: $1-linux-musl"
  env CC="$zig cc $more" CXX="$zig c++ $more" "${@:2}" \
    bash "$scratch/c-try.sh" "$scratch/$1-linux-musl"
}
musl x86_64
# No loader of musl for arm64 is here, so only programs that are static.
rm "$scratch"/aarch64-linux-musl/lib/libtidegate.so*
musl aarch64 LIBS=static RUN=qemu-aarch64-static
echo "c: aarch64-linux-gnu"
deploy/away.sh "$scratch" env CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
  RUN="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
  bash "$scratch/c-try.sh" "$scratch/aarch64-linux-gnu"
python3 deploy/docker-try.py
count=$(find "$dist" -maxdepth 1 -name 'libtidegate*' | wc -l)
echo "c: $count packages; C and C++ programs run with the tarballs for x86_64 in Debian 11 and 12 and" \
  "on musl, with those for arm64 in QEMU, for musl there as static programs only; the amd64 .debs" \
  "are installed in Debian 11 and 12, the arm64 ones are read by lintian only; the packages for" \
  "x86_64 and glibc are the same when built again; the image's steps work"
