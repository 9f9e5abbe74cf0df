# Two commands for users (see README.md), a few for those who build it (see CONTRIBUTING.md).
# Each does its own set-up.

SHELL := /bin/bash -eu -o pipefail
LOOM := RUSTFLAGS="--cfg loom -C debug-assertions" cargo test --release -p tidegate-core --lib --target-dir target/loom
DEMO_PYTHON := target/demo-python

.PHONY: demo test toolchain lint engine loom policy files vectors c header install python node benches bench mutants

demo: toolchain $(DEMO_PYTHON)/ready
	@cargo run --quiet --release -p tidegate --example openclaw
	@$(DEMO_PYTHON)/bin/python examples/python/workers.py
	@examples/node/run.sh demo
	@cargo run --quiet --release -p tidegate --example processes

# The Python package and gunicorn in an environment of their own, made anew when a source is newer.
$(DEMO_PYTHON)/ready: $(shell find bindings-python/src bindings-python/python bindings-python/*.toml core/src policy/src -type f ! -name '*.pyc')
	@python3 -c 'import ensurepip' 2>/dev/null || { (apt-get update && apt-get install -y python3-venv) >/dev/null; }
	@python3 -m venv $(DEMO_PYTHON)
	@$(DEMO_PYTHON)/bin/pip install --quiet --disable-pip-version-check gunicorn==27.0.0 ./bindings-python
	@touch $@

test: toolchain lint engine loom policy files vectors c python node
	@echo "test: the engine's laws held in every model, property and race; the rules gave every decision due; files outlived every kill; C, C++, Python and Node agree; all code is clean, the benches' too"

# Rust comes from rustup or the distribution; nothing else is needed to build.
toolchain:
	@command -v cargo >/dev/null || { echo "Tidegate needs Rust 1.90 or later: install it with rustup, or your distribution's cargo package"; exit 1; }
	@command -v cc >/dev/null || { (apt-get update && apt-get install -y gcc libc6-dev) >/dev/null; }
	@command -v python3 >/dev/null || { (apt-get update && apt-get install -y python3) >/dev/null; }

lint:
	cargo fmt --all --check
	python3 tests/mutants.py --check
	PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 cargo clippy --workspace --all-targets \
		--features tidegate/tokio,tidegate/tower,tidegate/schema --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps -p tidegate-core -p tidegate --all-features --locked

# Unit tests, properties, boundaries, drift, threads, floods, doctests; overflow checks on.
# One seed for all properties, so that a run can be repeated; CONTRIBUTING.md has runs with others.
engine:
	PROPTEST_RNG_SEED=1 cargo test -p tidegate-core --locked

# Every lock-free step, in every interleaving with two preemptions (LOOM_MAX_PREEMPTIONS=3: more).
loom:
	$(LOOM) --locked tests::

# Rules, decisions and policy files: the shared vectors, the five systems, properties, threads, doctests.
policy:
	PROPTEST_RNG_SEED=1 cargo test -p tidegate --all-features --locked

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

# The wheel, as its users have it, on every Python that is here.
python: toolchain
	bindings-python/tests/run.sh

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

# `lint` has checked that they build.
benches:
	cargo build --release -p tidegate-benches --all-targets --locked

# Not part of `test`: figures for BENCHMARKS.md, and breaking the code on purpose.
bench:
	cargo run --release -p tidegate-benches --bin peers
	cargo run --release -p tidegate-benches --bin rules
	cargo build --release -p tidegate-c
	cargo run --release -p tidegate-benches --bin c
	cargo run --release -p tidegate-benches --features sqlite --bin host
	benches/node/run.sh
	bindings-python/benches/run.sh

mutants:
	python3 tests/mutants.py
