#!/bin/bash
# Installs the library into a prefix of its own and tests it there as its users have it: from C and C++, by
# gcc and clang, plain, under ASan and UBSan, and under valgrind; the vectors through the C ABI; a C process
# and a Rust process on one folder; and what the guide says.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/${CARGO_TARGET_DIR:-target}/c
prefix=$out/prefix
need() { command -v "$1" >/dev/null || tests/need.sh "$2"; }
need gcc gcc
need g++ g++
need clang clang
need clang++ clang
need make make
need pkg-config pkg-config
need valgrind valgrind
need cmake cmake
rm -rf "$out"
mkdir -p "$out/hooks"

# One library that panics on request, and the one that is installed.
cargo build --quiet --release -p tidegate-c --features test-hooks --locked
soname=libtidegate.so.$(python3 deploy/version.py | cut -d. -f1,2)
cp target/release/libtidegate.so "$out/hooks/$soname"
ln -s "$soname" "$out/hooks/libtidegate.so"
make --silent install PREFIX="$prefix"
make --silent install PREFIX=/opt/staged DESTDIR="$out"
diff -r "$prefix" "$out/opt/staged"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1

echo "c: only tg_* is exported, and every function is tested"
exported=$(nm -D --defined-only "$prefix/lib/libtidegate.so" | awk '{ print $3 }')
for name in $exported; do
  [[ $name == tg_* && $name != tg_test_* ]] || { echo "$name is exported"; exit 1; }
  grep -q "\b$name(" include/tidegate.h || { echo "$name is not in the header"; exit 1; }
  for file in contract misuse; do
    [[ $file == misuse && $name =~ ^tg_(last_error|status_name|.*version.*)$ ]] ||
      grep -q "\b$name\b" "ffi-c/tests/c/$file.c" ffi-c/tests/c/bytes.c ||
      { echo "$name is not in $file.c"; exit 1; }
  done
done

strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror -g"
link=$(pkg-config --cflags --libs tidegate)
version=-DTIDEGATE_VERSION=\"$(pkg-config --modversion tidegate)\"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run() { # how, program, arguments
  local how=$1 && shift
  rm -rf "$scratch/store" && mkdir -m 700 "$scratch/store"
  case $how in
  # Still reachable may be what is kept for the life of the process: limits that policies state, and
  # what threads share to swap pointers.
  valgrind) valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect,possible "$@" ;;
  *) "$@" ;;
  esac
}
for cc in gcc clang; do
  for how in plain sanitized; do
    flags=$strict
    [ $how = plain ] || flags="$strict -fsanitize=address,undefined -fno-sanitize-recover=all"
    echo "c: $cc, $how"
    for test in contract misuse bytes threads; do
      $cc -std=c11 $flags $version ffi-c/tests/c/$test.c ffi-c/tests/c/layout.c -o "$out/$test-$cc-$how" $link -pthread
      run $how "$out/$test-$cc-$how" $([ $test != contract ] || echo "$scratch/store")
    done
  done
  $cc -std=c11 $strict -DTEST_HOOKS ffi-c/tests/c/misuse.c -o "$out/panic-$cc" -I include -L "$out/hooks" -ltidegate
  LD_LIBRARY_PATH=$out/hooks "$out/panic-$cc" 2>/dev/null
done
for cxx in g++ clang++; do
  for how in plain sanitized; do
    flags=$strict
    [ $how = plain ] || flags="$strict -fsanitize=address,undefined -fno-sanitize-recover=all"
    echo "c++: $cxx, $how"
    $cxx -std=c++17 $flags -Wold-style-cast ffi-c/tests/cpp/contract.cpp -o "$out/cpp-$cxx-$how" $link -pthread
    "$out/cpp-$cxx-$how"
  done
  # What is tested in C is C++ too.
  for test in contract misuse bytes threads; do
    $cxx -x c++ -std=c++17 $strict $version ffi-c/tests/c/$test.c ffi-c/tests/c/layout.c -o "$out/$test-$cxx" $link -pthread
    run plain "$out/$test-$cxx" $([ $test != contract ] || echo "$scratch/store")
  done
  $cxx -std=c++17 $strict -Wold-style-cast -fno-exceptions -fno-rtti ffi-c/tests/cpp/no_exceptions.cpp -o "$out/no-exceptions-$cxx" $link
  "$out/no-exceptions-$cxx"
  $cxx -std=c++11 $strict -Wold-style-cast ffi-c/tests/cpp/layout.cpp -o "$out/layout-$cxx" $link
  "$out/layout-$cxx"
done
# What the library does is not seen here; what the header does is. Addresses must not be random.
echo "c++: threads share a const key"
echo called_from_lib:libtidegate.so >"$scratch/suppressed"
g++ -std=c++17 $strict -O1 -fsanitize=thread ffi-c/tests/cpp/contract.cpp -o "$out/cpp-threads" $link -pthread
still=$(! setarch -R true 2>/dev/null || echo setarch -R)
TSAN_OPTIONS=suppressions=$scratch/suppressed:halt_on_error=1 $still "$out/cpp-threads"
echo "c: valgrind"
run valgrind "$out/cpp-g++-plain"
for test in contract misuse bytes; do
  run valgrind "$out/$test-gcc-plain" $([ $test != contract ] || echo "$scratch/store")
done
gcc -std=c11 $strict ffi-c/tests/c/leaks.c -o "$out/leaks" $link -pthread
for store in memory memory:leaks "file:$scratch/store/leaks"; do
  run valgrind "$out/leaks" "$store"
done
echo "c: no memory"
gcc -std=gnu11 $strict ffi-c/tests/c/memory.c -o "$out/memory" $link -pthread
for how in capacity malloc limit shortage; do
  run plain "$out/memory" $how memory
  run plain "$out/memory" $how "file:$scratch/store/limits"
done
echo "c: static"
gcc -std=c11 $strict $version ffi-c/tests/c/contract.c -o "$out/static" -I "$prefix/include" "$prefix/lib/libtidegate.a" \
  $(sed -n 's/^Libs.private: //p' "$prefix/lib/pkgconfig/tidegate.pc")
LD_LIBRARY_PATH= run plain "$out/static" "$scratch/store"
python3 ffi-c/tests/vectors.py "$prefix/lib/libtidegate.so"

echo "c: a C process and a Rust process on one folder"
cargo build --quiet --release -p tidegate-tests --bin worker --locked
mkdir -m 700 "$scratch/share"
cat >"$scratch/share/policy.yaml" <<'POLICY'
version: 1
store: file:limits
rules:
  meet: { limits: 2/365d window, capacity: 16 }
  bucket: { limits: { each: { max: 50000, per: 365d } }, capacity: 16 }
  window: { limits: 4000/365d window, capacity: 16 }
  counter: { limits: 50000/365d counter, capacity: 16 }
  fixed: { limits: 50000/365d fixed, capacity: 16 }
  several: { limits: "50000/365d, 3000/364d window, 40000/363d fixed", capacity: 16 }
POLICY
gcc -std=c11 $strict ffi-c/tests/c/share.c -o "$out/share" $link
timeout 120 "$out/share" "$scratch/share/policy.yaml" >"$scratch/share/c" &
timeout 120 target/release/worker share "$scratch/share/policy.yaml" >"$scratch/share/rust"
wait $!
granted=$(awk '{ sum[$1] += $2 } END { print sum["bucket"], sum["window"], sum["counter"], sum["fixed"], sum["several"] }' \
  "$scratch/share/c" "$scratch/share/rust")
echo "c: C was granted $(tr '\n' ' ' <"$scratch/share/c")and both together $granted"
[ "$granted" = "50000 4000 50000 50000 3000" ]

python3 docs/check.py --c "$prefix/lib"

# What the guide says, outside of the tree: by pkg-config, and by CMake.
echo "c: the examples, by pkg-config and by CMake"
python3 - <<'GUIDE'
import pathlib, re
shown = re.search("```c\n(.*?)```", pathlib.Path("docs/c.md").read_text(), re.S).group(1)
example = [line.strip() for line in pathlib.Path("examples/c/hello.c").read_text().splitlines()]
assert all(line.strip() in example for line in shown.splitlines()), "the guide shows another hello.c"
GUIDE
cp -r examples/c "$scratch/examples"
expected=$'yes\nyes\nno'
gcc "$scratch/examples/hello.c" -o "$scratch/hello" $(pkg-config --cflags --libs tidegate)
[ "$("$scratch/hello")" = "$expected" ]
cmake -S "$scratch/examples" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" >"$out/cmake.log"
cmake --build "$scratch/build" >>"$out/cmake.log"
(
  unset LD_LIBRARY_PATH
  [ "$("$scratch/build/hello")" = "$expected" ] && [ "$("$scratch/build/hello_static")" = "$expected" ]
)
python3 ffi-c/tests/gateway.py "$scratch/build/gateway"
gcc -std=c11 $strict -fsanitize=address,undefined -fno-sanitize-recover=all examples/c/gateway.c -o "$out/gateway" $link
python3 ffi-c/tests/gateway.py "$out/gateway"
g++ -std=c++17 $strict -fsanitize=address,undefined -fno-sanitize-recover=all examples/cpp/gateway.cpp -o "$out/gateway-cpp" $link
python3 ffi-c/tests/gateway.py "$out/gateway-cpp"
