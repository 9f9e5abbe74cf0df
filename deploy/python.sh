#!/bin/bash
# python.sh quick|full: builds the Python packages and tries them away from the repository.
#
# quick  a part of `make test`: the wheel of `make python`, and a build from the source distribution
# full   every wheel that this machine can build, into target/packages, each tried as far as it can be
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$out/python"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
cp deploy/python-try.py "$scratch"

fail() { echo "python: $*" >&2 && exit 1; }

# A folder for a user with a Python: an empty environment and nothing else.
user() { # name, python
  mkdir -p "$scratch/$1"
  "$2" -m venv "$scratch/$1/venv"
}

# Installs a wheel in a user's folder, where no Rust is on the path, and runs the program.
try() { # name, wheel
  cp "$2" "$scratch/$1"
  PATH=/usr/bin:/bin deploy/away.sh "$scratch/$1" bash -euc '
    venv/bin/pip install --quiet --no-index --only-binary :all: ./*.whl
    venv/bin/python ../python-try.py'
}

quick() {
  local python=$out/python/venv/bin/python wheel source
  [ -x "$out/python/venv/bin/pip" ] || {
    python3 -c 'import venv, ensurepip' 2>/dev/null || tests/need.sh python3-venv
    python3 -m venv "$out/python/venv"
    "$python" -m pip install --quiet maturin==1.16.0
  }
  export PATH=$out/python/venv/bin:$PATH
  source=$(deploy/sdist.sh "$scratch/sdist")
  # `make python` has made it, unless a source has changed since. Cargo writes the lock file anew.
  wheel=$(ls "$out"/python/wheel/*.whl 2>/dev/null || true)
  if [ -z "$wheel" ] ||
    [ -n "$(find "$source" -type f ! -name Cargo.lock -newer "$wheel")" ]; then
    rm -rf "$out/python/wheel"
    deploy/wheel.sh host "$out/python/wheel" --release --interpreter "$python"
    wheel=$(ls "$out"/python/wheel/*.whl)
  fi
  python3 deploy/python-check.py "$wheel" "$scratch"/sdist/*.tar.gz
  user wheel "$python"
  try wheel "$wheel"
  # As pip builds it. What cargo has built stays to be seen, the sources among it.
  AWAY_KEEP=$out deploy/away.sh "$scratch/sdist" \
    env CARGO_TARGET_DIR="$out" ${RUSTC_WRAPPER:+RUSTC_WRAPPER="$RUSTC_WRAPPER"} \
    pip wheel --quiet --no-index --no-build-isolation --no-deps --wheel-dir made "$source"
  user sdist "$python"
  try sdist "$scratch"/sdist/made/*.whl
  echo "python: wheel and sdist hold what they must, and work away from the repository"
}

# A release's wheel.
wheel() { # target, folder, more options
  deploy/dist.sh deploy/wheel.sh "$1" "$2" --profile dist "${@:3}"
}

# The same sources at another place, built there from nothing.
same_again() { # target
  local elsewhere=$scratch/elsewhere made
  mkdir -p "$elsewhere/target"
  tar c --exclude=./target --exclude=node_modules --exclude=./.git . | tar x -C "$elsewhere"
  ln -s "$(deploy/tools.sh)/.." "$elsewhere/target/tools"
  [ ! -e "$out/rust" ] || ln -s "$out/rust" "$elsewhere/target/rust"
  (cd "$elsewhere" && unset CARGO_TARGET_DIR && deploy/sdist.sh made &&
    deploy/dist.sh deploy/wheel.sh "$1" made --profile dist)
  for made in "$elsewhere"/made/*; do
    cmp "$made" "$dist/${made##*/}" || fail "built at another place, ${made##*/} is another"
  done
}

# In each Python from 3.10 on that is here, in ten seconds at most.
try_here() { # wheel
  local python pythons version tried=" " started took
  local say='import ensurepip, sys; print("%d.%d" % sys.version_info[:2])'
  pythons=$(compgen -c python3. | grep -E '^python3\.[0-9]+$' | sort -uV)
  for python in $pythons "$HOME"/.pyenv/versions/3.*/bin/python3; do
    version=$("$python" -c "$say" 2>/dev/null) || continue
    case "$tried" in *" $version "*) continue ;; esac
    [ "${version#3.}" -ge 10 ] || continue
    tried+="$version "
    user "$version" "$python"
    started=$SECONDS
    try "$version" "$1"
    took=$((SECONDS - started))
    [ $took -lt 10 ] || fail "installed and run in $took s on $version; ten are promised"
  done
  shown="CPython$tried"
}

# In a root of Debian that has nothing but the newest Pythons.
try_root() { # wheel
  local root=$out/roots/sid version
  deploy/root.sh sid "$root" python3.14-venv python3.15-venv
  rm -rf "$root/try"
  mkdir "$root/try"
  cp "$1" deploy/python-try.py "$root/try"
  for version in 3.14 3.15; do
    chroot "$root" sh -euc 'cd /try
      "$1" -m venv "$1"
      "$1/bin/pip" install --quiet --no-index --only-binary :all: ./*.whl
      "$1/bin/python" python-try.py' try python$version
    shown+="$version "
  done
}

# By QEMU, in Debian's Python for that processor.
try_arm64() { # wheel
  local root=$out/roots/arm64
  VARIANT=extract ROOT_ARCH=arm64 deploy/root.sh trixie "$root" \
    python3-minimal libpython3-stdlib musl
  ln -sfn usr/lib "$root/lib"
  rm -rf "$root/try"
  mkdir "$root/try"
  unzip -q "$1" -d "$root/try"
  # A Python that starts another one starts this script.
  cat >"$root/python" <<RUN
#!/bin/bash
exec qemu-aarch64-static -L '$root' -0 "\$0" -E PYTHONHOME='$root/usr' -E PYTHONPATH='$root/try' \
  '$root/usr/bin/python3' "\$@"
RUN
  chmod +x "$root/python"
  (cd "$scratch" && "$root/python" python-try.py)
}

# glibc 2.31 has no Python that the wheel is for, and musl has none in Debian.
load_elsewhere() { # folder of wheels
  local old=$out/roots/bullseye musl=$out/roots/musl
  deploy/root.sh bullseye "$old" python3-minimal
  deploy/python-loads.sh "$1"/*-manylinux*_x86_64.whl x86_64-linux-gnu.2.17 \
    "$root/deploy/in-chroot.sh" "$old"
  VARIANT=extract deploy/root.sh trixie "$musl" musl
  deploy/python-loads.sh "$1"/*-musllinux*_x86_64.whl x86_64-linux-musl \
    "$musl/usr/lib/ld-musl-x86_64.so.1"
  deploy/python-loads.sh "$1"/*-musllinux*_aarch64.whl aarch64-linux-musl \
    qemu-aarch64-static -L "$out/roots/arm64"
}

# What is linked, as auditwheel sees it. It knows only Alpine's name of musl's library.
audit() { # folder of wheels
  local tools one needed
  local right='is consistent with the following platform tag: +"manylinux_2_17_'
  tools=$(deploy/tools.sh)
  for one in "$1"/*-manylinux*.whl; do
    "$tools/auditwheel" show "$one" | tr '\n' ' ' | grep -E "$right" >/dev/null ||
      fail "auditwheel does not find $one to be manylinux_2_17"
  done
  for one in "$1"/*-musllinux*.whl; do
    unzip -qoj "$one" 'tidegate/*.so' -d "$scratch/musl"
    needed=$(readelf -d "$scratch"/musl/*.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    [ "$needed" = libc.so ] || fail "$one needs more than musl: $needed"
  done
}

# As a user does where no wheel fits: by pip, with the network and this machine's Rust. All is
# compiled anew.
try_source() { # sdist
  local started=$SECONDS
  user source "$(command -v python3)"
  cp "$1" "$scratch/source"
  deploy/away.sh "$scratch/source" bash -euc '
    venv/bin/pip install --quiet --no-cache-dir ./*.tar.gz
    venv/bin/python ../python-try.py'
  source_seconds=$((SECONDS - started))
}

full() {
  export AWAY_MUST=1
  local dist=$out/packages free=$scratch/free
  [ "$(id -u)" = 0 ] || fail "needs root, for roots of Debian and to hide the repository"
  command -v qemu-aarch64-static >/dev/null || tests/need.sh qemu-user-static
  command -v unzip >/dev/null || tests/need.sh unzip
  mkdir -p "$dist"
  rm -f "$dist"/*.whl "$dist"/tidegate-[0-9]*.tar.gz
  for target in {x86_64,aarch64}-unknown-linux-{gnu,musl}; do
    echo "python: $target"
    wheel $target "$dist"
  done
  deploy/sdist.sh "$dist"
  python3 deploy/python-check.py --dist "$dist"/*.whl "$dist"/tidegate-[0-9]*.tar.gz
  audit "$dist"
  same_again x86_64-unknown-linux-gnu
  try_here "$dist"/*-manylinux*_x86_64.whl
  try_root "$dist"/*-manylinux*_x86_64.whl
  try_arm64 "$dist"/*-manylinux*_aarch64.whl
  load_elsewhere "$dist"
  # There is no such Python here: the workflow builds it again and runs it.
  wheel x86_64-unknown-linux-gnu "$free" --interpreter python3.14t
  python3 deploy/python-check.py --dist "$free"/*-cp314-cp314t-manylinux*.whl
  try_source "$dist"/tidegate-[0-9]*.tar.gz
  cat >"$scratch/line" <<LINE
python: the wheel for x86_64 and glibc works on ${shown% }, and loads with glibc 2.31;
that for arm64 and glibc works in QEMU; those for musl load and no Python runs them;
the first one and the sdist are the same when built elsewhere;
from source it takes $source_seconds s;
the free-threaded one is built and not run
LINE
  tr '\n' ' ' <"$scratch/line"
  echo
}

case ${1:-} in
  quick) quick ;;
  full) full ;;
  *) echo "usage: deploy/python.sh quick|full" >&2 && exit 2 ;;
esac
