# Two commands for users (see README.md), a few for those who build it (see CONTRIBUTING.md).
# Each does its own set-up.

SHELL := /bin/bash -eu -o pipefail
LOOM := RUSTFLAGS="--cfg loom -C debug-assertions" cargo test --release -p tidegate-core --lib --target-dir target/loom
DEMO_PYTHON := target/demo-python

.PHONY: demo test toolchain lint engine loom policy files vectors c languages header lib install uninstall \
	python node packages release-check benches bench mutants rustdoc docs msrv portable deny semver tsan miri

demo: toolchain $(DEMO_PYTHON)/ready
	@cargo run --quiet --release -p tidegate --example openclaw
	@$(DEMO_PYTHON)/bin/python examples/python/workers.py
	@examples/node/run.sh demo
	@cargo run --quiet --release -p tidegate --example processes

# The Python package and gunicorn in an environment of their own, made anew when a source is newer.
$(DEMO_PYTHON)/ready: $(shell find bindings-python/src bindings-python/python bindings-python/*.toml core/src policy/src -type f ! -name '*.pyc')
	@python3 -c 'import ensurepip' 2>/dev/null || tests/need.sh python3-venv
	@python3 -m venv $(DEMO_PYTHON)
	@$(DEMO_PYTHON)/bin/pip install --quiet --disable-pip-version-check gunicorn==27.0.0 ./bindings-python
	@touch $@

test: toolchain lint engine loom policy files vectors c languages python node packages
	@echo "test: the engine's laws held in every model, property and race; the rules gave every decision due; files outlived every kill; C, C++, Python and Node agree; every package installs and runs where there is no repository; all code is clean, the benches' too"

# Rust comes from rustup or the distribution; nothing else is needed to build.
toolchain:
	@command -v cargo >/dev/null || { echo "Tidegate needs Rust 1.90 or later: install it with rustup, or your distribution's cargo package"; exit 1; }
	@command -v cc >/dev/null || tests/need.sh gcc libc6-dev
	@command -v python3 >/dev/null || tests/need.sh python3

lint:
	cargo fmt --all --check
	python3 tests/mutants.py --check
	PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 cargo clippy --workspace --all-targets \
		--features tidegate/tokio,tidegate/tower,tidegate/schema --locked -- -D warnings
	cargo check -p tidegate --locked
	deploy/elsewhere.sh lint
	python3 tests/cycles.py --check core/src policy/src
	python3 tests/tidy.py versions links widths
	python3 tests/prose.py
	python3 docs/reference.py --check
	python3 docs/check.py --book
	tests/actionlint.sh
	@$(MAKE) --no-print-directory rustdoc

rustdoc:
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps -p tidegate-core -p tidegate --all-features --locked

# The guide, by mdBook, into target/book. Not part of `test`, which checks its pages, links and code:
# building mdBook takes minutes.
docs: toolchain
	docs/build.sh

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
	cargo test -p tidegate --no-default-features --lib --locked config::parse

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

# The examples of other languages that call C, with the library that `c` has installed.
languages: toolchain
	examples/languages.sh

# The wheel, as its users have it, on every Python that is here.
python: toolchain
	bindings-python/tests/run.sh

# Writes include/tidegate.h anew.
header: toolchain
	TIDEGATE_WRITE_HEADER=1 cargo test -q -p tidegate-c --locked --test header

# A variable from make's command line: the environment's LIBS and TARGET are of other builds.
given = $(if $(filter command,$(firstword $(origin $(1)))),$($(1)))

# What `make install` copies. TARGET builds for another machine: see ffi-c/package/build.sh.
lib: toolchain
	ffi-c/package/build.sh '$(call given,TARGET)'

# Header, library, pkg-config file, CMake package and licences, into PREFIX (and DESTDIR), or out of
# it. Builds nothing if `make lib` came before: see ffi-c/package/install.sh.
install uninstall:
	@LIBS='$(call given,LIBS)' TARGET='$(call given,TARGET)' ffi-c/package/install.sh $@

# The npm package, installed from source: its surface, the vectors, workers, types, and what is packed.
node: toolchain
	bindings-node/test/run.sh
	examples/node/run.sh test

# What users install, from what the targets above have built: each package goes into an empty folder
# that cannot see the repository, and runs there. `make release-check` builds and tries all of them.
packages: toolchain
	deploy/crates.sh quick
	deploy/c.sh quick
	deploy/python.sh quick
	deploy/npm.sh quick

# Every package that this machine can build, in empty Debian roots; needs root. See RELEASING.md.
release-check: toolchain
	deploy/release-check.sh

# `lint` has checked that they build.
benches:
	cargo build --release -p tidegate-benches --all-targets --locked

# Not part of `test`: figures for BENCHMARKS.md, and breaking the code on purpose.
bench:
	cargo run --release -p tidegate-benches --bin peers
	cargo run --release -p tidegate-benches --bin rules
	cargo run --release -p tidegate-benches --bin keys
	cargo run --release -p tidegate-benches --bin policies
	cargo build --release -p tidegate-c
	cargo run --release -p tidegate-benches --bin c
	cargo run --release -p tidegate-benches --features sqlite --bin host
	benches/node/run.sh
	bindings-python/benches/run.sh

mutants:
	python3 tests/mutants.py

# Not part of `test` either: each needs something that is not everywhere, and says what.
# usage: $(call needs,COMMAND THAT SUCCEEDS IF IT IS THERE,WHAT TO DO OTHERWISE)
needs = @$(1) >/dev/null 2>&1 || { echo "make $@ needs $(2)"; exit 1; }
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
HOST = $$(rustc -vV | sed -n 's/^host: //p')
BASE ?= main

# The workspace builds with the oldest compiler that Cargo.toml names.
msrv:
	$(call needs,cargo +$(MSRV) --version,Rust $(MSRV): rustup toolchain install $(MSRV))
	cargo +$(MSRV) check -p tidegate-core -p tidegate -p tidegate-c --all-features --locked

# What holds on every operating system: memory stores, and the C library builds. And what holds
# where there are no 64-bit atomics.
portable:
	cargo test -p tidegate-core -p tidegate --lib --locked
	cargo build -p tidegate-c --locked
	RUSTFLAGS="--cfg tidegate_portable_atomic" cargo test -p tidegate-core --lib --test stress --locked \
		--target-dir target/portable-atomic
	[ "$$(uname -s)" != Linux ] || deploy/elsewhere.sh test

# Licences, banned crates, sources. Advisories need a database from the network: `cargo deny check`.
deny:
	$(call needs,cargo deny --version,cargo-deny: cargo install --locked cargo-deny)
	cargo deny check licenses bans sources

# The public Rust API against that of BASE.
semver:
	$(call needs,cargo semver-checks --version,cargo-semver-checks: cargo install --locked cargo-semver-checks)
	cargo semver-checks -p tidegate-core -p tidegate --baseline-rev '$(BASE)'

# The engine's threads under ThreadSanitizer. The standard library is instrumented too, or its own
# synchronisation would be reported.
tsan:
	$(call needs,cargo +nightly --version,a nightly compiler: rustup toolchain install nightly)
	$(call needs,test -d "$$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library",the sources of the standard library: rustup component add --toolchain nightly rust-src)
	RUSTFLAGS="-Zsanitizer=thread" cargo +nightly test -Zbuild-std --target $(HOST) \
		--target-dir target/tsan -p tidegate-core --test stress --locked

# The engine's unit tests in an interpreter that checks every access of unsafe code.
miri:
	$(call needs,cargo +nightly --version,a nightly compiler: rustup toolchain install nightly)
	$(call needs,cargo +nightly miri --version,Miri: rustup component add --toolchain nightly miri rust-src)
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=4 cargo +nightly miri test \
		--target-dir target/miri -p tidegate-core --lib --locked
