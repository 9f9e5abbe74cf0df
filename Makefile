# Two commands for users (see README.md), a few for those who build it (see CONTRIBUTING.md).
# Each does its own set-up.

SHELL := /bin/bash -eu -o pipefail
LOOM := RUSTFLAGS="--cfg loom -C debug-assertions" cargo test --release -p tidegate-core --lib --target-dir target/loom

.PHONY: demo test toolchain lint engine loom policy files vectors c header install node benches bench mutants

demo: toolchain
	@cargo run --quiet --release -p tidegate --example openclaw
	@cargo run --quiet --release -p tidegate --example processes
	@examples/node/run.sh demo

test: toolchain lint engine loom policy files vectors c node benches
	@echo "test: the engine's laws held in every model, property and race; the rules gave every decision due; files outlived every kill; C, C++ and Node agree; all builds clean"

# Rust comes from rustup or the distribution; nothing else is needed to build.
toolchain:
	@command -v cargo >/dev/null || { echo "Tidegate needs Rust 1.90 or later: install it with rustup, or your distribution's cargo package"; exit 1; }
	@command -v cc >/dev/null || { (apt-get update && apt-get install -y gcc libc6-dev) >/dev/null; }
	@command -v python3 >/dev/null || { (apt-get update && apt-get install -y python3) >/dev/null; }

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p tidegate --all-targets --all-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps -p tidegate-core -p tidegate --all-features --locked

# Unit tests, properties, boundaries, drift, threads, floods, doctests; overflow checks on.
engine:
	cargo test -p tidegate-core --locked

# Every lock-free step, in every interleaving with two preemptions (LOOM_MAX_PREEMPTIONS=3: more).
loom:
	$(LOOM) --locked tests::

# Rules, decisions and policy files: the shared vectors, the five systems, properties, threads, doctests.
policy:
	cargo test -p tidegate --all-features --locked

# One file for many processes: kills at every instruction and at random, cold starts, reboots, damage.
files:
	cargo test -p tidegate-tests --locked

# The vectors are what their exact reference says.
vectors:
	python3 tests/vectors/generate.py --check

# The header is that of the sources; then the installed library, from C and C++.
c: toolchain
	cargo test -p tidegate-c --locked
	ffi-c/tests/run.sh

# Writes include/tidegate.h anew.
header: toolchain
	TIDEGATE_WRITE_HEADER=1 cargo test -q -p tidegate-c --locked --test header

# Header, library (shared and static), pkg-config file and CMake package, into PREFIX (and DESTDIR).
PREFIX ?= /usr/local
install: toolchain
	cargo build --release -p tidegate-c --locked
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' ffi-c/package/install.sh

# The npm package, installed from source: its surface, the vectors, workers, types, and what is packed.
node: toolchain
	bindings-node/test/run.sh
	examples/node/run.sh test

benches:
	cargo build --release -p tidegate-benches --all-targets --locked

# Not part of `test`: figures for BENCHMARKS.md, and breaking the code on purpose.
bench:
	cargo run --release -p tidegate-benches --bin peers
	cargo run --release -p tidegate-benches --bin rules
	cargo run --release -p tidegate-benches --features sqlite --bin host
	benches/node/run.sh

mutants:
	python3 tests/mutants.py
