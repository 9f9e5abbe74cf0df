#!/bin/bash
# build.sh [TARGET]: builds what `make install` copies: libtidegate, shared and static, with profile
# `dist`, and the licences of the crates inside. They are put into target/libtidegate/TARGET.
#
# Without TARGET it builds for this machine, by its own compiler and linker. TARGET is a Rust target
# as in aarch64-unknown-linux-gnu. With `.2.17` behind it the library needs glibc 2.17 only.
#
# Zig links for a TARGET, unless CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER or the like names a
# linker. Cargo writes to a folder of its own then, as it does not see that the linker differs.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TERM_COLOR=never
wanted=${1:-}
out=${CARGO_TARGET_DIR:-$PWD/target}
stage=$out/libtidegate/${wanted:-host}
fail() { echo "make lib: $*" >&2 && exit 1; }

# The compiler, and what calls it.
triple=$wanted
case $wanted in
*-linux-gnu.[0-9]*) triple=${wanted%%.*} ;;
"") triple=$(rustc -vV | sed -n 's/^host: //p') ;;
esac
variable=CARGO_TARGET_$(echo "$triple" | tr a-z- A-Z_)_LINKER
cargo=(cargo rustc --target "$triple")
if [ -n "$wanted" ]; then
  bin=$(deploy/rust.sh "$triple") ||
    fail "no standard library for $triple: rustup target add $triple"
  PATH=$bin:$PATH
  if [ "$wanted" != "$triple" ] || [ -z "${!variable:-}" ]; then
    tools=$(deploy/tools.sh)
    # It finds zig by the Python beside it.
    PATH=$tools:$PATH
    cargo=(cargo-zigbuild rustc --target "$wanted" --target-dir "$out/zig")
    out=$out/zig
  fi
fi
built=$out/$triple/dist

# GNU's linker and its companions: this machine's, or those for another processor.
binutils=
case $triple in
riscv64gc-*) processor=riscv64-linux-gnu ;;
arm*eabihf) processor=arm-linux-gnueabihf ;;
*) processor=${triple%%-*}-linux-gnu ;;
esac
if [ -n "$wanted" ] && [ "${processor%%-*}" != "$(uname -m)" ]; then
  binutils=$processor-
fi
case $triple in
*-linux-*) command -v "${binutils}ld.bfd" >/dev/null ||
  fail "${binutils}ld.bfd is missing: install binutils${binutils:+-${processor/_/-}}" ;;
esac

# A shared library for musl exists only if the C library is not linked into it.
read -ra flags <<<"${RUSTFLAGS:-}"
case $triple in *-linux-musl) flags+=(-Ctarget-feature=-crt-static) ;; esac
encoded=$(IFS=$'\x1f'; echo "${flags[*]-}")
mkdir -p "$stage"
rm -f "$stage/built"
CARGO_ENCODED_RUSTFLAGS=$encoded deploy/dist.sh "${cargo[@]}" -p tidegate-c --lib --profile dist \
  --locked -- --print native-static-libs 2>&1 | tee "$stage/log" >&2

# Names of Rust's own stay inside: two Rust libraries in one program would both define them. One
# object with all code does that, if its groups, which another library's may replace, are dissolved.
hide() { # archive, archive made
  threads | "${binutils}as" -o "$stage/threads.o"
  "${binutils}ld.bfd" -r --force-group-allocation -o "$stage/all.o" \
    "$stage/threads.o" --whole-archive "$1"
  "${binutils}objcopy" --wildcard --keep-global-symbol='tg_*' --strip-unneeded \
    --remove-section=.llvmbc --remove-section=.llvmcmd "$stage/all.o" "$stage/tidegate.o"
  rm -f "$2"
  "${binutils}ar" rcsD "$2" "$stage/tidegate.o"
  rm "$stage"/{all,threads,tidegate}.o
}

# In a program that is static as a whole, glibc before 2.34 has only those functions of threads that
# something refers to. Rust refers to a few; libgcc and libstdc++ then call others, which are NULL.
threads() {
  echo '.section .note.GNU-stack, "", %progbits'
  case $triple in *-linux-gnu*) ;; *) return 0 ;; esac
  echo '.section .data.rel.ro.tidegate_threads, "aw"'
  printf '.dc.a pthread_%s\n' once create join self detach key_create key_delete getspecific \
    setspecific mutex_{init,destroy,lock,trylock,unlock} \
    cond_{init,destroy,signal,broadcast,wait,timedwait} rwlock_{rdlock,wrlock,unlock}
}

case $triple in
*-linux-*)
  install -m 755 "$built/libtidegate.so" "$stage/"
  hide "$built/libtidegate.a" "$stage/libtidegate.a"
  ;;
*-apple-*) cp "$built/libtidegate.dylib" "$built/libtidegate.a" "$stage/" ;;
*) fail "no rule installs for $triple: take the libraries from $built" ;;
esac

# What a program links besides. The compiler adds the C library and the right unwinder by itself:
# libgcc_s, or libgcc_eh for a program that is static as a whole.
said=$(sed -n 's/^note: native-static-libs: //p' "$stage/log" | tail -1)
[ -n "$said" ] || fail "rustc did not say what the static library needs"
needed=
for one in $said; do
  case " $needed -lc -lgcc -lgcc_s -lgcc_eh -lunwind " in
  *" $one "*) ;;
  *) needed+="${needed:+ }$one" ;;
  esac
done
echo "$needed" >"$stage/needed"
python3 deploy/notices.py tidegate-c --target "$triple" >"$stage/THIRD-PARTY-NOTICES"
touch "$stage/built"
