#!/usr/bin/env bash
# Is this tree slower than revision REV? `benches/pair.sh REV [ROW…]` links the engine and the rules of both into one
# program, lets them take turns, and prints the median ratio of each row. It is built in the folder tidegate-pair of TMPDIR: inside this
# tree cargo would take the old crates for members of this workspace.
set -euo pipefail
cd "$(dirname "$0")/.."
rev=$(git rev-parse --verify "$1^{commit}")
shift
here=$PWD
pair=${TMPDIR:-/tmp}/tidegate-pair
mkdir -p $pair/src
rm -rf $pair/old && mkdir $pair/old && git archive "$rev" | tar -xm -C $pair/old
# Two packages of one name need two versions.
sed -i -E 's/(path = "(policy|core)", version = )"[^"]*"/\1"0.0.1"/' $pair/old/Cargo.toml
sed -i -E 's/^version.workspace = true/version = "0.0.1"/' $pair/old/{core,policy}/Cargo.toml
cat > $pair/Cargo.toml <<END
[package]
name = "pair"
version = "0.0.0"
edition = "2024"
publish = false
[workspace]
exclude = ["old"]
[dependencies]
old_core = { package = "tidegate-core", path = "old/core" }
old_policy = { package = "tidegate", path = "old/policy" }
new_core = { package = "tidegate-core", path = "$here/core" }
new_policy = { package = "tidegate", path = "$here/policy" }
serde_json = { version = "1", features = ["preserve_order"] }
END
cp benches/pair/*.rs $pair/src/
cargo run --quiet --release --manifest-path $pair/Cargo.toml -- "$@"
