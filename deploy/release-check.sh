#!/bin/bash
# release-check.sh: builds every package that this machine can build, into target/packages. What can
# run here is installed into empty places that cannot see the repository, and runs a program there;
# the last line of each part says what that was. Then it does what the README says, word for word,
# against a registry that serves target/packages.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-$PWD/target}
dist=$out/packages
report=$dist/RELEASE-CHECK.md
[ "$(id -u)" = 0 ] || { echo "release-check: needs root, for roots of Debian and to hide the repository"; exit 1; }
export AWAY_MUST=1
rm -rf "$dist"
mkdir -p "$dist"

{
  echo "# Release check of $(python3 deploy/version.py)"
  echo
  echo "Commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(rustc --version), $(uname -sm)."
  echo
  echo "| part | seconds | what was shown |"
  echo "|---|--:|---|"
} >"$report"

# Runs a part and keeps its last line.
part() { # name, command
  local name=$1 started=$SECONDS log=$out/release-check-$1.log
  shift
  echo "release-check: $name"
  if ! "$@" >"$log" 2>&1; then
    tail -40 "$log"
    echo "release-check: $name failed; all of its output is in $log"
    exit 1
  fi
  echo "| $name | $((SECONDS - started)) | $(tail -1 "$log") |" | tee -a "$report"
}

part crates deploy/crates.sh full
part c deploy/c.sh full
part python deploy/python.sh full
part npm deploy/npm.sh full
part readme deploy/readme.sh

grep -q '^repository = ' Cargo.toml ||
  echo "Missing: \`repository\` in Cargo.toml, as the project has no public address yet." >>"$report"
(cd "$dist" && find . -maxdepth 1 -type f ! -name SHA256SUMS ! -name RELEASE-CHECK.md -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
printf '\n| package | bytes |\n|---|--:|\n' >>"$report"
(cd "$dist" && find . -maxdepth 1 -type f ! -name '*.md' ! -name SHA256SUMS -printf '| %P | %s |\n' | sort) >>"$report"
cat "$report"
echo "release-check: $(wc -l <"$dist/SHA256SUMS") packages were built, and tried as the table says; target/packages has them with checksums"
