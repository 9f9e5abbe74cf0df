#!/bin/bash
# readme.sh: runs the README's install lines as they stand there, each in an empty folder that cannot
# see the repository, against a registry that serves the packages of target/dist.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${CARGO_TARGET_DIR:-$PWD/target}/dist
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The last command of a language's row in the README's table.
line() { sed -n "s/^| $1[^|]*| \`\([^\`]*\)\`.*/\1/p" README.md | head -1; }
fail() { echo "readme: $*" >&2 && exit 1; }

try() { # language, what has to be there before, a program that uses it
  local shown started=$SECONDS folder=$scratch/$1
  shown=$(line "$1")
  [ -n "$shown" ] || fail "the README has no install line for $1"
  mkdir "$folder"
  python3 deploy/registry.py "$dist" -- deploy/away.sh "$folder" bash -euc "$2
$shown
$3" >"$folder.log" 2>&1 || { cat "$folder.log"; fail "for $1, \`$shown\` does not work as pasted"; }
  took=$((SECONDS - started))
  [ $took -lt 10 ] || fail "for $1, \`$shown\` took $took s; ten are promised"
  echo "readme: $1: $shown ($took s)"
}

try Python 'python3 -m venv venv; . venv/bin/activate' \
  'python -c "import tidegate; assert tidegate.Limiter(\"1/h\").hit(\"a\")"'
try Node 'true' \
  "node -e \"if (!new (require('tidegate').Limiter)('1/h').hit('a').allowed) process.exit(1)\""
echo "readme: the install lines of Python and Node work as pasted, each in under ten seconds"
