#!/bin/bash
# c-try.sh [PREFIX]: compiles small programs in C and C++ against an installed Tidegate, and runs
# them: shared, static, and static as a whole; by pkg-config and by CMake. Without PREFIX Tidegate
# is where the system looks by itself. This file needs nothing else of the repository.
#
#   LIBS=shared|static|both   what is installed (both)
#   CC, CXX, RUN              the compilers (cc, c++), and what runs a program
set -euo pipefail
prefix=${1:-}
libs=${LIBS:-both}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
read -ra cc <<<"${CC:-cc}"
read -ra cxx <<<"${CXX:-c++}"
read -ra run <<<"${RUN:-}"
pc=$(find "${prefix:-/usr}" -name tidegate.pc | head -1)
[ -n "$pc" ] || { echo "c-try: no tidegate.pc is in ${prefix:-/usr}"; exit 1; }
if [ -n "$prefix" ]; then
  export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=${pc%/*/*}
fi

cat >try.c <<'C'
#include <stdio.h>
#include <string.h>
#include <tidegate.h>

/* Two of three are granted, by a store in memory or in files. */
int main(int argc, char **argv) {
  tg_options options = TG_OPTIONS_INIT;
  tg_limiter *limiter;
  const tg_rule *rule;
  options.store = argc > 1 ? argv[1] : NULL;
  if (strcmp(tg_version(), TG_VERSION) != 0 ||
      tg_limiter_new("2/d", &options, &limiter) != TG_STATUS_OK ||
      tg_rule_get(limiter, "default", &rule) != TG_STATUS_OK)
    return fprintf(stderr, "%s\n", tg_last_error()), 1;
  for (int i = 0; i < 3; i++) printf("%d ", tg_allow(rule, (const uint8_t *)"alice", 5));
  tg_limiter_free(limiter);
  return 0;
}
C
cat >try.cpp <<'CPP'
#include <cstdio>
#include <tidegate.hpp>

// The same; and an error that comes as an exception.
int main(int argc, char **argv) {
  try {
    tidegate::limiter wrong("zzz");
    return 1;
  } catch (const tidegate::error &) {
  }
  tidegate::options options;
  options.store = argc > 1 ? argv[1] : "memory";
  tidegate::limiter limiter("2/d", options);
  tidegate::rule rule = limiter.rule("default");
  for (int i = 0; i < 3; i++) std::printf("%d ", rule.allow("alice"));
}
CPP
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(try C CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_SOURCE_DIR}/made")
find_package(tidegate $ENV{TIDEGATE} REQUIRED)
add_executable(cmake_c try.c)
add_executable(cmake_cpp try.cpp)
target_link_libraries(cmake_c PRIVATE tidegate::tidegate)
target_link_libraries(cmake_cpp PRIVATE tidegate::tidegate)
if(TARGET tidegate::tidegate_static)
  foreach(one c cpp)
    add_executable(cmake_static_${one} try.${one})
    add_executable(cmake_whole_${one} try.${one})
    target_link_libraries(cmake_static_${one} PRIVATE tidegate::tidegate_static)
    target_link_libraries(cmake_whole_${one} PRIVATE tidegate::tidegate_static -static)
  endforeach()
endif()
CMAKE

made=0
check() { # program, `without` if it needs no libtidegate.so
  local loader=${LD_LIBRARY_PATH:-} got store=$folder/store-$1
  [ "${2:-}" != without ] || loader=
  got=$(LD_LIBRARY_PATH=$loader "${run[@]}" "./$1")
  got+=$(LD_LIBRARY_PATH=$loader "${run[@]}" "./$1" "file:$store")
  got+=$(LD_LIBRARY_PATH=$loader "${run[@]}" "./$1" "file:$store")
  [ "$got" = "1 1 0 1 1 0 0 0 0 " ] || { echo "c-try: $1 says $got"; exit 1; }
  made=$((made + 1))
}
flags() { pkg-config "$@" tidegate; }
strict="-Wall -Wextra -Werror -Wl,--fatal-warnings"
build() { # program, what pkg-config is asked besides, what the compiler is told besides
  "${cc[@]}" -std=c99 $strict try.c -o "$1_c" $3 $(flags --cflags --libs $2)
  "${cxx[@]}" -std=c++17 $strict try.cpp -o "$1_cpp" $3 $(flags --cflags --libs $2)
}

if [ "$libs" != static ]; then
  build shared "" ""
  check shared_c && check shared_cpp
fi
if [ "$libs" != shared ]; then
  build whole --static -static
  check whole_c without && check whole_cpp without
  # The archive by name, as -l takes the shared library where both are.
  archive=$(flags --variable=libdir)/libtidegate.a
  needed=$(flags --libs --static | tr ' ' '\n' | grep -v tidegate || true)
  "${cc[@]}" try.c -o static_c $(flags --cflags) "$archive" $needed
  check static_c without
  [ "$libs" = both ] || { build alone "" ""; check alone_c without; }
fi
version=$(flags --modversion)
version=${version%%-*}
if command -v cmake >/dev/null; then
  {
    TIDEGATE=${version%.*} CC=${cc[*]} CXX=${cxx[*]} \
      cmake -S . -B build ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"} &&
      cmake --build build
  } >cmake.log 2>&1 || { cat cmake.log; exit 1; }
  # CMake notes where the library is, so that its programs find it.
  for program in made/*; do
    mv "$program" .
    LD_LIBRARY_PATH='' check "${program##*/}"
  done
fi
echo "c-try: $made programs in C and C++ work"
