# To be sourced by npm.sh: builds and packs every platform of Linux and the main package, twice, and
# tries each on a Node of its kind.
export AWAY_MUST=1
. deploy/npm-runtimes.sh
dist=$out/packages
names=(linux-x64-gnu linux-x64-musl linux-arm64-gnu linux-arm64-musl)
tools=$(deploy/tools.sh)
# What a library for glibc may need.
of_glibc='^(ld-linux-(x86-64|aarch64)|libc|libdl|libm|libpthread)\.so\.[0-9]$'

# usage: build_native ROOT NAME TARGET_DIR; prints the library
build_native() {
  local target rust flags='' zig
  target=$(stage target "$2")
  rust=$(deploy/rust.sh "$target")
  zig=$target.2.17
  # What a musl process loads shares its libc.
  [[ $target != *musl ]] || { zig=$target && flags=-Ctarget-feature=-crt-static; }
  (
    cd "$1"
    export RUSTC=$rust/rustc CARGO_ENCODED_RUSTFLAGS=$flags CARGO_TARGET_DIR=$3
    PATH=$rust:$tools:$PATH deploy/dist.sh cargo zigbuild --quiet --locked --profile dist \
      -p tidegate-node --target "$zig" >&2
  )
  echo "$3/$target/dist/libtidegate_node.so"
}

# What a library needs at run time, and no path of this machine.
# usage: check_native NAME LIBRARY
check_native() {
  local needed newest other='^libc\.so$'
  [[ $1 == *musl ]] || other=$of_glibc
  needed=$(readelf -d "$2" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
  ! grep -vE "$other" <<<"$needed" || fail "$1 needs more than its C library"
  newest=$(readelf -VW "$2" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1 || true)
  [ "$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -1)" = GLIBC_2.17 ] ||
    fail "$1 needs $newest"
  deploy/no-paths.sh "$2"
}

# A copy of the sources in another folder, to see that it makes no difference to what is built.
copy_of_sources() {
  mkdir -p "$1"
  git ls-files -z | tar --null -cf - -T - | tar xf - -C "$1"
}

# Builds from the sources that the main package carries, on a machine that has Rust, and runs it.
try_sources() {
  local app=$scratch/from-source
  mkdir -p "$app"
  cp deploy/npm-try.mjs "$app/try.mjs"
  python3 deploy/registry.py "$dist" -- deploy/away.sh "$app" \
    npm install --silent --omit=optional tidegate
  deploy/away.sh "$app" npx tidegate-build
  deploy/away.sh "$app" node try.mjs
}

[ "$(uname -m)" = x86_64 ] || fail "full needs an x86-64 machine, which tries arm64 in an emulator"
command -v readelf >/dev/null || tests/need.sh binutils
mkdir -p "$dist"
rm -f "$dist"/tidegate*.tgz
for name in "${names[@]}"; do
  echo "npm: building $name"
  library=$(build_native "$root" "$name" "$out")
  check_native "$name" "$library"
  pack_platform "$name" "$library" "$dist"
done
pack_main "$dist"

echo "npm: building and packing again, elsewhere"
copy_of_sources "$scratch/copy"
again=$(build_native "$scratch/copy" linux-x64-gnu "$scratch/copy/target")
pack_platform linux-x64-gnu "$again" "$scratch/again"
for name in "${names[@]:1}"; do
  pack_platform "$name" "$out/$(stage target "$name")/dist/libtidegate_node.so" "$scratch/again"
done
(cd "$scratch/copy" && node deploy/npm-stage.mjs main "$scratch/main-again")
pack "$scratch/main-again" "$scratch/again"
for package in "$scratch"/again/*.tgz; do
  cmp "$package" "$dist/${package##*/}" || fail "${package##*/} differs when it is made again"
done

bindings-node/test/tools/install.sh
TIDEGATE_DIST=$dist test_packages
try_runtimes
try_sources
echo "npm: ${#names[@]} platforms and the main package, byte for byte the same when packed again; \
of the libraries that of linux-x64-gnu was built again, in another folder; run without Rust in \
$(paste -sd, "$scratch/ran" | sed 's/,/, /g'); built by npx tidegate-build from its own sources"
