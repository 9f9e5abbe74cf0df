#!/bin/bash
# Prints the tables of BENCHMARKS.md for Python. The wheel is the users' but for a method that does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/../${CARGO_TARGET_DIR:-target}/python-bench
mkdir -p "$out"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv"
"$out/venv/bin/pip" install --quiet maturin==1.16.0 -r benches/requirements.txt
rm -rf "$out/wheel"
"$out/venv/bin/maturin" build --quiet --release --locked --features test-hooks --interpreter "$out/venv/bin/python" --out "$out/wheel" >"$out/log" 2>&1
"$out/venv/bin/pip" install --quiet --force-reinstall --no-deps "$out"/wheel/*.whl
"$out/venv/bin/python" benches/peers.py
"$out/venv/bin/python" benches/middleware.py
