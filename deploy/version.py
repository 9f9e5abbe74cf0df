#!/usr/bin/env python3
"""The one version number, in every place that must state it.

    python3 deploy/version.py           says it
    python3 deploy/version.py 0.2.0     sets it

`Cargo.toml` of the workspace owns the number. Cargo wants it again beside each path between our
crates, and npm in its manifests. The header is generated anew. `tests/tidy.py versions`
finds a place that was forgotten.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?")

# A file, and what stands around the version there.
PLACES = [
    ("Cargo.toml", r'(\[workspace\.package\]\nversion = ")[^"]+(")'),
    ("Cargo.toml", r'(tidegate(?:-core)? = \{ path = "\w+", version = ")[^"]+(")'),
    ("ffi-c/Cargo.toml", r'(path = "\.\./policy", version = ")[^"]+(")'),
    ("bindings-python/Cargo.toml", r'(path = "\.\./policy", version = ")[^"]+(")'),
    ("bindings-node/Cargo.toml", r'(path = "\.\./policy", version = ")[^"]+(")'),
    ("bindings-node/package.json", r'("name": "tidegate",\s+"version": ")[^"]+(")'),
    ("bindings-node/package-lock.json", r'("name": "tidegate",\s+"version": ")[^"]+(")'),
    ("ffi-c/cbindgen.toml", r'(#define TG_VERSION ")[^"]+(")'),
    ("ffi-c/src/version.rs", r'(The library\'s version: ")[^"]+(")'),
]


# What stands around its first two parts, by which users name a release.
SHORT = [
    ("README.md", r'(`tidegate = ")[\d.]+(")'),
    ("policy/README.md", r'(tidegate = ")[\d.]+(")'),
    ("docs/rust.md", r'(tidegate = ")[\d.]+(")'),
    ("docs/c.md", r"(libtidegate)\d[\d.]*(_)"),
    ("docs/c.md", r"(libtidegate\.)\d[\d.]*(\.dylib)"),
    ("RELEASING.md", r"(libtidegate)\d[\d.]*(…)"),
    ("examples/c/CMakeLists.txt", r"(find_package\(tidegate )[\d.]+()"),
]

# The parts of the number, for the C preprocessor.
PARTS = ("MAJOR", "MINOR", "PATCH")


def current():
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(r'\[workspace\.package\]\nversion = "([^"]+)"', text)[1]


def set_everywhere(version):
    short = ".".join(version.split(".")[:2])
    stated = [(*place, version) for place in PLACES] + [(*place, short) for place in SHORT]
    for name, pattern, number in stated:
        path = ROOT / name
        text, count = re.subn(pattern, rf"\g<1>{number}\g<2>", path.read_text())
        if count == 0:
            sys.exit(f"{name}: the version is not where it was; mend deploy/version.py")
        path.write_text(text)
    header = ROOT / "ffi-c/cbindgen.toml"
    text = header.read_text()
    for part, number in zip(PARTS, re.match(r"(\d+)\.(\d+)\.(\d+)", version).groups()):
        text = re.sub(rf"(#define TG_VERSION_{part} )\d+", rf"\g<1>{number}", text)
    header.write_text(text)
    # The lock names our crates by version; nothing else in it may move.
    subprocess.run(
        ["cargo", "metadata", "--offline", "--format-version=1"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["make", "--silent", "header"], cwd=ROOT, check=True)


def main(arguments):
    if not arguments:
        print(current())
        return 0
    if len(arguments) > 1 or not RELEASE.fullmatch(arguments[0]):
        print(__doc__, file=sys.stderr)
        return 2
    set_everywhere(arguments[0])
    return subprocess.run(
        [sys.executable, "tests/tidy.py", "versions"], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
