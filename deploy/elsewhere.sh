#!/bin/bash
# elsewhere.sh lint|test|full: Tidegate for macOS, Windows and other processors, checked on Linux.
#   lint  clippy reads the sources as if this were no Linux
#   test  so do the unit tests of the engine and of the rules and the vectors, and pass
#   full  the compiler checks all crates for macOS and Windows; on processors of 32 bits and of the
#         other byte order the unit tests of the engine pass
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
out=$CARGO_TARGET_DIR/elsewhere
mode=${1:?usage: deploy/elsewhere.sh lint|test|full}
crates=(-p tidegate-core -p tidegate -p tidegate-c -p tidegate-node -p tidegate-python)
features=(--features tidegate/yaml,tidegate/tokio,tidegate/tower,tidegate/schema)
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1

# Copies the crates with each `target_os = "linux"` made a name that nothing sets. What has not
# changed since the last copy keeps its time, so that cargo builds little anew.
without_linux() {
  local file new=$out/new
  rm -rf "$out/was"
  mkdir -p "$out/src" && mv "$out/src" "$out/was"
  while IFS= read -r -d '' file; do
    [ -e "$file" ] || continue
    mkdir -p "$out/src/$(dirname "$file")"
    case $file in
      Cargo.toml)
        sed "s/, \"benches\", \"tests\"//; s/'cfg(loom)'/&, 'cfg(tidegate_nowhere)'/" "$file"
        ;;
      *.rs | */Cargo.toml) sed 's/target_os = "linux"/tidegate_nowhere/g' "$file" ;;
      *) cat "$file" ;;
    esac >"$new"
    cmp -s "$new" "$out/was/$file" && new=$out/was/$file
    mv "$new" "$out/src/$file"
    new=$out/new
  done < <(git ls-files -z --cached --others --exclude-standard -- Cargo.toml Cargo.lock README.md \
    core policy ffi-c bindings-node bindings-python examples include tests/vectors rustfmt.toml)
}

lint() {
  without_linux
  cd "$out/src"
  cargo clippy --quiet --all-targets "${crates[@]}" "${features[@]}" -- -D warnings
  cd "$root"
}

# What of a file store a user elsewhere can do is in these tests too: be told that it needs Linux.
tests() {
  without_linux
  cd "$out/src"
  PROPTEST_RNG_SEED=1 cargo test --quiet -p tidegate-core -p tidegate --all-features --lib \
    --test vectors --test errors
  cd "$root"
}

# Debian's Rust has the sources of the standard library: to check for a target takes no linker.
other() { # command of cargo, target, arguments
  local command=$1 target=$2 std=std,panic_unwind
  [ "$command" != test ] || std+=,test
  shift 2
  RUSTC=$bin/rustc RUSTC_BOOTSTRAP=1 "$bin/cargo" "$command" --quiet --locked --target "$target" \
    -Zbuild-std="$std" --target-dir "$out/targets" "$@"
}

systems() {
  local target said
  for target in aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-msvc; do
    echo "elsewhere: $target"
    said=$(other check "$target" "${crates[@]}" "${features[@]}" 2>&1) || said+=" "
    # A warning is a fault too.
    [ -z "$said" ] || { echo "$said" && exit 1; }
  done
}

# Linked whole, so that a test needs no C library of its processor to run.
processors() {
  export RUSTFLAGS="-C target-feature=+crt-static" PROPTEST_RNG_SEED=1 PROPTEST_CASES=8
  export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
  export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
  export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER=qemu-s390x
  local target program
  for program in i686-linux-gnu-gcc s390x-linux-gnu-gcc qemu-s390x; do
    command -v $program >/dev/null || tests/need.sh gcc-i686-linux-gnu libc6-dev-i386-cross \
      gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user
  done
  for target in i686-unknown-linux-gnu s390x-unknown-linux-gnu; do
    echo "elsewhere: the tests on $target"
    other test "$target" --config profile.test.opt-level=1 -p tidegate-core --lib
  done
}

case $mode in
  lint) lint ;;
  test)
    tests
    echo "elsewhere: without Linux's parts the tests of the engine and the rules pass"
    ;;
  full)
    lint
    tests
    bin=$(deploy/rust.sh sources)
    systems
    (processors)
    echo "elsewhere: all crates compile for macOS and Windows; tests pass without Linux's parts," \
      "and the engine's with 32 bits and with the other byte order"
    ;;
  *) echo "elsewhere: lint, test or full, not $mode" >&2 && exit 1 ;;
esac
