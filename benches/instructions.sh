#!/bin/sh
# Instructions for each call of the engine, counted by callgrind: benches/instructions.sh [case ...]
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet -p tidegate-benches --bin instructions
binary="${CARGO_TARGET_DIR:-target}/release/instructions"
calls=20000

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : //p'
}

[ $# -gt 0 ] || set -- loop clock hash allow deny hit allow-10k window-deny windows-deny windows rule-allow rule-hit cooled-hit windows-hit
echo "| case | instructions a call |"
echo "|---|--:|"
for case in "$@"; do
    once=$(count "$case" $calls)
    twice=$(count "$case" $((2 * calls)))
    echo "$case $once $twice $calls" | awk '{ printf "| %s | %.1f |\n", $1, ($3 - $2) / $4 }'
done
