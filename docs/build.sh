#!/bin/bash
# Builds the guide into target/book by mdBook, which is kept in target/mdbook.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.4.52
if ! target/mdbook/bin/mdbook --version 2>/dev/null | grep -qx "mdbook v$version"; then
  echo "docs: installing mdbook $version from crates.io into target/mdbook; building it takes minutes"
  cargo install --quiet mdbook --version $version --locked --no-default-features --features search \
    --root target/mdbook --target-dir target/mdbook/build
fi
python3 docs/reference.py --check
python3 docs/check.py --book
target/mdbook/bin/mdbook build docs
python3 docs/links.py --html target/book
