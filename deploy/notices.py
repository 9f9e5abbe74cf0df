#!/usr/bin/env python3
"""The licences of the crates that a package links, as one text for its users.

    python3 deploy/notices.py PACKAGE [--target TRIPLE]… [--no-default-features] [--features A,B]

PACKAGE is a crate of this workspace, as in `tidegate-c`. The text has each crate's name, version
and licence, and the words of that licence. Without `--target` it is for this machine. Crates that
only run while others are built, such as procedural macros, are not linked and not listed. A crate
whose licence cannot be shown is an error.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense)")
RULE = "-" * 80


def cargo(*arguments):
    command = ["cargo", *arguments, "--locked"]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if told.returncode != 0:
        sys.exit("notices: cargo failed")
    return told.stdout


def linked_names(package, target, features):
    """The name and version of each crate of others that `package` links.

    `cargo tree` has the features of a build of that package, `cargo metadata` those of the whole
    workspace.
    """
    shown = cargo(
        *("tree", "-p", package, *(["--target", target] if target else []), *features),
        *("--edges", "normal", "--no-dedupe", "--prefix", "depth", "--format", " {p}"),
    )
    macro = None
    for line in shown.splitlines():
        depth, name, version, *more = line.split()
        # What a macro needs runs in the compiler too.
        if macro is not None and int(depth) > macro:
            continue
        macro = int(depth) if "(proc-macro)" in more else None
        if macro is None and not any("/" in word or "\\" in word for word in more):
            yield name, version.removeprefix("v")


def linked(package, targets, features):
    names = {one for target in targets for one in linked_names(package, target, features)}
    told = json.loads(cargo("metadata", "--format-version=1"))
    packages = {(one["name"], one["version"]): one for one in told["packages"]}
    return [packages[one] for one in sorted(names)]


def takes_mit(licence):
    """Whether a licence lets its users choose MIT."""
    return " AND " not in licence and "MIT" in re.split(r"\s+OR\s+|/", licence)


def mit_of(holders):
    """The MIT licence of others, in the words of ours."""
    text = (ROOT / "LICENSE-MIT").read_text().strip()
    return re.sub(r"(?m)^Copyright .*$", f"Copyright (c) {holders}", text, count=1)


def texts(package):
    """The words of the licence under which a crate is used here."""
    folder = pathlib.Path(package["manifest_path"]).parent
    paths = sorted(path for path in folder.iterdir() if path.is_file() and FILES.match(path.name))
    licence = package["license"] or ""
    if takes_mit(licence):
        # A file that is not named after a licence of several holds the only one, or a notice.
        other = re.compile(r"(?i)apache|bsd|zlib|unlicense")
        paths = [path for path in paths if not other.search(path.name)]
        if not any(re.search(r"(?i)licen|copying", path.name) for path in paths):
            return [mit_of(", ".join(package["authors"]) or f"the authors of {package['name']}")]
    if not paths:
        sys.exit(f"notices: {package['name']} has no licence file, and {licence!r} is not MIT")
    return [path.read_text(encoding="utf-8").strip() for path in paths]


def notices(name, packages):
    """The whole text: what is linked, then each licence once, with those that it is for."""
    standard = "The Rust standard library"
    lines = [f"{one['name']} {one['version']}: {one['license']}" for one in packages]
    words = {mit_of("The Rust Project contributors"): [standard]}
    for one in packages:
        for text in texts(one):
            normal = "\n".join(line.rstrip() for line in text.splitlines())
            words.setdefault(normal, []).append(f"{one['name']} {one['version']}")
    head = f"Third-party software in {name}, under MIT where the licence lets users choose."
    parts = [f"{head}\n\n" + "\n".join([f"{standard}: MIT OR Apache-2.0", *lines])]
    parts += [f"{RULE}\n{', '.join(users)}\n{RULE}\n\n{text}" for text, users in words.items()]
    return "\n\n".join(parts) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--target", action="append")
    parser.add_argument("--no-default-features", action="store_true")
    parser.add_argument("--features")
    asked = parser.parse_args(arguments)
    features = ["--no-default-features"] if asked.no_default_features else []
    features += ["--features", asked.features] if asked.features else []
    packages = linked(asked.package, asked.target or [None], features)
    sys.stdout.write(notices(asked.package, packages))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
