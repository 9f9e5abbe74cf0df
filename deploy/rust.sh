#!/bin/bash
# rust.sh TARGET: prints a folder with a cargo and a rustc that can build for TARGET. It is the
# machine's own Rust if that has the target's standard library. Otherwise it is Debian's newest,
# unpacked and run in place, and the standard library is built from its sources. `rust.sh sources`
# prints the folder of Debian's, for who builds the standard library along with a program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$1
own=$(dirname "$(rustup which rustc 2>/dev/null || command -v rustc)")
if [ "$target" != sources ] && ls "$("$own/rustc" --print target-libdir --target "$target")"/libstd-*.rlib >/dev/null 2>&1; then
  echo "$own"
  exit
fi
out=${CARGO_TARGET_DIR:-$here/../target}/rust
mkdir -p "$out"
out=$(cd "$out" && pwd)
VARIANT=extract "$here/root.sh" forky "$out/root" rustc cargo rust-src
bin=$out/bin
mkdir -p "$bin"
# Run by their own loader and libraries: what they build still links with this machine's. The folder
# and the loader are named for the processor.
libraries=$(echo "$out"/root/usr/lib/*-linux-gnu*)
loader=$(echo "$libraries"/ld-linux*.so.*)
[ -x "$loader" ] || { echo "rust: there is not one loader but $loader in $out/root" >&2 && exit 1; }
for program in rustc cargo rustdoc; do
  cat >"$bin/$program.new" <<RUN
#!/bin/bash
exec '$loader' --library-path '$libraries' \\
  --argv0 "\$0" '$out/root/usr/bin/$program' "\$@"
RUN
  chmod +x "$bin/$program.new"
  mv "$bin/$program.new" "$bin/$program"
done
if [ "$target" = sources ]; then
  echo "$bin"
  exit
fi
libdir=$("$bin/rustc" --print target-libdir --target "$target")
if ! [ -e "$libdir/made-without-paths" ]; then
  echo "rust: the standard library for $target, by $("$bin/rustc" --version)" >&2
  rm -rf "$out/std" "$libdir"
  mkdir -p "$out/std/src" "$libdir"
  printf '[package]\nname = "std-of-a-target"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n' \
    >"$out/std/Cargo.toml"
  touch "$out/std/src/lib.rs"
  # As in dist.sh: the library needs crates of crates.io, whose paths would stay in what links it.
  flags="-Cembed-bitcode=yes --remap-path-prefix=$HOME=/home"
  flags+=" --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$out=/rust"
  (cd "$out/std" && env -u CARGO_ENCODED_RUSTFLAGS \
    RUSTC="$bin/rustc" RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" \
    "$bin/cargo" build --quiet --release --target "$target" --target-dir target \
    -Zbuild-std=std,panic_unwind,panic_abort --config 'profile.release.panic="unwind"') >&2
  find "$out/std/target/$target/release/deps" -name 'lib*.rlib' ! -name 'libstd_of_a_target-*' \
    -exec cp {} "$libdir" \;
  rm -rf "$out/std"
  touch "$libdir/made-without-paths"
fi
echo "$bin"
