#!/bin/bash
# python-loads.sh WHEEL ZIG-TARGET COMMAND…: loads the library of a wheel in a small program for
# that target, which COMMAND runs: there is not a Python for every C library. Each of Python's names
# is lent by a stub. All others must be found at once, in the C library that is there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "$1") target=$2 && shift 2
zig=$("$root/deploy/tools.sh")/python-zig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unzip -qj "$wheel" 'tidegate/*.so'
nm -D --undefined-only ./*.abi3.so | sed -n 's/.* \(_\?Py\w*\)$/void *\1;/p' >names.c
[ -s names.c ] || { echo "loads: the library asks for nothing of Python" >&2 && exit 1; }
cat >loads.c <<'C'
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **names) {
    void *last = NULL;
    for (int at = 1; at < count; at++) {
        last = dlopen(names[at], RTLD_NOW | RTLD_GLOBAL);
        if (last == NULL) {
            fprintf(stderr, "loads: %s\n", dlerror());
            return 1;
        }
    }
    return last != NULL && dlsym(last, "PyInit__tidegate") != NULL ? 0 : 1;
}
C
"$zig" cc -target "$target" -dynamic -shared -fPIC -o names.so names.c
"$zig" cc -target "$target" -dynamic -o loads loads.c -ldl
"$@" ./loads ./names.so ./*.abi3.so
echo "loads: $(basename "$wheel") loads in a program for $target"
