#!/bin/bash
# readme.sh: runs the README's install lines as they stand there, each in an empty place that cannot
# see the repository, against a registry that serves the packages of target/packages. Rust and C need
# root: the crates' others come from crates.io, and Debian's packages go into a Debian root.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-$PWD/target}
dist=$out/packages
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The install line in a language's row of the README's table.
line() { sed -n "s/^| $1[^|]*| \`\([^\`]*\)\`.*/\1/p" README.md | head -1; }
fail() { echo "readme: $*" >&2 && exit 1; }

# Runs a command that ends within so many seconds, or says what went wrong with the language's line.
try() { # language, seconds, command
  local started=$SECONDS took log=$scratch/$1.log
  "${@:3}" >"$log" 2>&1 || { cat "$log"; fail "for $1, \`$(line "$1")\` does not work as pasted"; }
  took=$((SECONDS - started))
  [ $took -lt "$2" ] || fail "for $1, \`$(line "$1")\` took $took s, not less than $2"
  echo "readme: $1: $(line "$1") ($took s)"
}
# An empty folder, with the registry.
away() { # language, commands
  mkdir "$scratch/$1"
  python3 deploy/registry.py "$dist" -- deploy/away.sh "$scratch/$1" bash -euc "$2"
}

for language in Rust Python Node C; do
  [ -n "$(line $language)" ] || fail "the README has no install line for $language"
done
try Python 10 away Python "python3 -m venv venv; . venv/bin/activate; $(line Python)
  python -c 'import tidegate; assert tidegate.Limiter(\"1/h\").hit(\"a\")'"
try Node 10 away Node "$(line Node)
  node -e \"if (!new (require('tidegate').Limiter)('1/h').hit('a').allowed) process.exit(1)\""

# Until they are published, Cargo is told where our two crates are.
for crate in tidegate-core tidegate; do
  tar xzf "$dist/$crate-$(python3 deploy/version.py).crate" -C "$scratch"
  mv "$scratch/$crate-"*[0-9] "$scratch/$crate"
done
try Rust 300 away Rust "cargo init --quiet --name newcomer .
  echo '$(line Rust)' >>Cargo.toml
  printf '[patch.crates-io]\n' >>Cargo.toml
  printf '%s = { path = \"$scratch/%s\" }\n' tidegate{-core,}{,} >>Cargo.toml
  echo 'fn main() { assert!(tidegate::Limiter::new(\"1/h\").unwrap().hit(\"a\", 1).unwrap().allowed) }' >src/main.rs
  cargo run --quiet"

root=$out/c-roots/bookworm
deploy/root.sh bookworm "$root" gcc g++ make pkg-config cmake
rm -rf "$root/try"
mkdir "$root/try"
# Those for arm64 lie beside them, as after a download of the whole release.
cp "$dist"/libtidegate*.deb "$root/try/"
cat >"$root/try/a.c" <<'C'
#include <tidegate.h>
int main(void) {
  tg_limiter *limiter;
  const tg_rule *rule;
  if (tg_limiter_new("1/h", 0, &limiter) || tg_rule_get(limiter, "default", &rule)) return 1;
  return tg_allow(rule, (const uint8_t *)"a", 1) != 1;
}
C
try C 60 deploy/in-root.sh "$root" bash -euc "cd /try
  # The root has no other user than root, and no sudo.
  sudo() { \"\$@\"; }
  $(line C) --yes
  cc a.c -o a -ltidegate && ./a
  apt-get purge --yes 'libtidegate*'"
echo "readme: the install lines of Rust, Python, Node and C work as pasted; those of Python and Node in under ten seconds"
