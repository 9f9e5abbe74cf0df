#!/bin/bash
# crates.sh quick|full: packs both crates, and uses them where the repository can't be seen.
#   quick  what is packed, and a plain user's program
#   full   into target/packages as well; a dry run of publishing, the crates' own tests, each feature
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
mode=${1:?usage: deploy/crates.sh quick|full}
version=$(python3 deploy/version.py)
crates=(tidegate-core tidegate)
folders=(core policy)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "crates: $*" >&2 && exit 1; }
away() { deploy/away.sh "$@"; }

packed() { echo "$target/package/$1-$version.crate"; }

pack() {
  cargo package --quiet --locked --allow-dirty --no-verify -p tidegate-core -p tidegate
}

# What is in a crate: its sources as they stand here, its README, the licences, what cargo adds.
contents() { # crate, folder
  local folder=$2 got wanted
  got=$(cd "$scratch/$1-$version" && find . -type f ! -name .cargo_vcs_info.json | sort)
  wanted=$(cd "$folder" && { find ./src -name '*.rs' && printf './%s\n' Cargo.toml \
    Cargo.toml.orig Cargo.lock README.md LICENSE-MIT LICENSE-APACHE; } | sort)
  diff <(echo "$wanted") <(echo "$got") || fail "$1 has other files in it (<: missing, >: unasked)"
  cmp "$scratch/$1-$version/LICENSE-MIT" LICENSE-MIT
  cmp "$scratch/$1-$version/LICENSE-APACHE" LICENSE-APACHE
  deploy/no-paths.sh "$scratch/$1-$version"
}

unpack() {
  local i
  for i in 0 1; do
    tar xzf "$(packed "${crates[i]}")" -C "$scratch"
    contents "${crates[i]}" "${folders[i]}"
  done
  # The engine is not on crates.io yet, or it is an older one.
  mkdir "$scratch/.cargo"
  cat >"$scratch/.cargo/config.toml" <<PATCH
[patch.crates-io]
tidegate-core = { path = "$scratch/tidegate-core-$version" }
tidegate = { path = "$scratch/tidegate-$version" }
PATCH
}

# A user's program, with the feature `yaml` or without any.
user() { # folder, features
  mkdir -p "$scratch/$1/src"
  cp deploy/crates-try.rs "$scratch/$1/src/main.rs"
  cat >"$scratch/$1/Cargo.toml" <<MANIFEST
[package]
name = "user"
version = "0.0.0"
edition = "2024"

[features]
yaml = ["tidegate/yaml"]

[dependencies]
tidegate = { version = "$version", default-features = false }
MANIFEST
}

# How many crates a plain user builds, these two included. The guide states it.
count() {
  local found stated
  found=$(away "$scratch/user" cargo tree --quiet -e normal,build --prefix none --no-dedupe |
    sed 1d | sort -u | wc -l)
  stated=$(sed -n 's/^| none .*| \([0-9]*\) |.*/\1/p' docs/rust.md)
  [ "$found" = "$stated" ] || fail "a plain user builds $found crates; docs/rust.md has $stated"
}

quick() {
  pack
  unpack
  user user
  # The other crates as they are locked here: what is released elsewhere today changes no count.
  cp Cargo.lock "$scratch/user/"
  away "$scratch/user" cargo run --quiet
  count
  echo "crates: both are packed with their licences; a program outside the repository uses them"
}

# `cargo test` of a packed crate, as a distribution would run it.
own_tests() {
  local crate
  for crate in "${crates[@]}"; do
    away "$scratch/$crate-$version" cargo test --quiet --target-dir ../own
  done
  away "$scratch/tidegate-$version" cargo test --quiet --target-dir ../own --all-features
}

# Each feature alone, none, and all, by the packed manifest.
matrix() {
  local feature
  for feature in $(sed -n '/^\[features\]/,/^\[/s/^\([a-z]*\) = .*/\1/p' policy/Cargo.toml) ''; do
    away "$scratch/tidegate-$version" cargo check --quiet --target-dir ../own \
      --no-default-features --features "$feature"
  done
}

full() {
  export AWAY_MUST=1
  mkdir -p "$target/packages"
  pack
  sha256sum "$(packed tidegate)" "$(packed tidegate-core)" >"$scratch/sums"
  cargo publish --quiet --locked --allow-dirty --dry-run -p tidegate-core -p tidegate
  sha256sum --quiet -c "$scratch/sums" || fail "packed twice, the crates differ"
  unpack
  own_tests
  matrix
  user user
  away "$scratch/user" cargo run --quiet
  away "$scratch/user" cargo run --quiet --features yaml
  count
  cp "$(packed tidegate)" "$(packed tidegate-core)" "$target/packages"
  echo "crates: a dry run of publishing; outside the repository the packed crates' tests, each" \
    "feature and a plain user's program pass"
}

case $mode in
  quick | full) "$mode" ;;
  *) fail "quick or full, not $mode" ;;
esac
