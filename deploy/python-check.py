#!/usr/bin/env python3
"""Checks wheels and the source distribution of tidegate against what they must hold.

    python3 deploy/python-check.py [--dist] FILE…

For each file: its list of contents, its metadata, its licences; for a wheel its tags, digests,
list of linked crates, and that its library is stripped. `--dist` wants no folder of this
machine named anywhere in a wheel. Prints a line for each file.
"""

import base64
import csv
import email
import hashlib
import json
import pathlib
import re
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = """
    __init__.py _acquire.py _errors.py _http.py _limited.py _results.py _tidegate.pyi _types.py
    asgi.py django.py fastapi.py limits_storage.py py.typed telegram.py wsgi.py
""".split()
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
NOTICES = "LICENSE-THIRD-PARTY"
SBOM = "tidegate.cyclonedx.json"
# Besides the modules: what a build from source needs, and nothing of what only the repository runs.
SOURCES = [
    *"Cargo.lock Cargo.toml PKG-INFO README.md pyproject.toml".split(),
    *"bindings-python/Cargo.toml bindings-python/build.rs bindings-python/src/lib.rs".split(),
    *"core/Cargo.toml core/src/lib.rs policy/Cargo.toml policy/src/lib.rs".split(),
]
NOT_SOURCES = re.compile(
    r"bindings-python/(tests|benches)/|THIRD-PARTY|\.(so|pyc|rlib)$|(^|/)target/|\.git"
)


class Wrong(Exception):
    pass


def want(true, message):
    if not true:
        raise Wrong(message)


def same_names(found, listed):
    found, listed = set(found), set(listed)
    want(found == listed, f"it lacks {sorted(listed - found)} and has {sorted(found - listed)}")


def check_metadata(text, licences):
    """The fields that PyPI shows, and no link that leads nowhere."""
    told = email.message_from_string(text)
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'\[workspace\.package\]\nversion = "([^"]+)"', manifest)[1]
    for field, value in {
        "Name": "tidegate",
        "Version": re.sub(r"-(\w+)\.?", r"\1", version),
        "License-Expression": "MIT OR Apache-2.0",
        "Requires-Python": ">=3.10",
    }.items():
        want(told[field] == value, f"{field} is {told[field]!r}, not {value!r}")
    same_names(told.get_all("License-File") or [], licences)
    want(len(told.get_all("Classifier") or []) > 10 and told["Keywords"], "it has no classifiers")
    for url in told.get_all("Project-URL") or []:
        want(re.fullmatch(r"[\w ]+, https://\S+", url), f"{url!r} is no address")
    # No address is made up: they come with the workspace's.
    public = re.search(r"^repository = ", manifest, re.MULTILINE)
    want(
        not public or told.get_all("Project-URL"),
        "Cargo.toml has a repository, the package no link: "
        "write `repository.workspace = true` into bindings-python/Cargo.toml",
    )
    text = told.get_payload()
    want("pip install tidegate" in text, "its README does not say `pip install tidegate`")
    inside = re.findall(r"\]\((?!https?://|#)([^)]*)\)", text)
    want(not inside, f"its README has links that lead nowhere on PyPI: {inside}")


def check_licences(read):
    for name in LICENCES:
        want(read(name) == (ROOT / name).read_bytes(), f"{name} is not the repository's")


def check_record(packed, record):
    """Each file's digest, as an installer checks it."""
    listed = {row[0]: row[1] for row in csv.reader(packed.read(record).decode().splitlines())}
    same_names(listed, packed.namelist())
    for name, digest in listed.items():
        told = hashlib.sha256(packed.read(name)).digest()
        wanted = "sha256=" + base64.urlsafe_b64encode(told).rstrip(b"=").decode()
        want(name == record or digest == wanted, f"the digest of {name} is wrong")


def check_linked(notices, bill):
    """The notices and the list name the same crates, and some."""
    named = set(re.findall(r"^(\S+) \d\S*: ", notices, re.MULTILINE))
    listed = {one["name"] for one in bill["components"]} - {"tidegate", "tidegate-core"}
    want(bill["bomFormat"] == "CycloneDX" and "pyo3" in listed, "its list of crates is empty")
    want(named == listed, f"notices and list differ in {sorted(named ^ listed)}")


def check_wheel(path, dist):
    name, version, *tags = path.stem.split("-")
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        (library,) = [one for one in names if re.search(r"\.(so|pyd)$", one)] or [None]
        want(library, "it has no library")
        added = ["METADATA", "RECORD", "WHEEL", f"sboms/{SBOM}"]
        added += [f"licenses/{one}" for one in [*LICENCES, NOTICES]]
        listed = [library, *(f"tidegate/{one}" for one in MODULES), *(f"{info}/{x}" for x in added)]
        same_names(names, listed)
        want(re.match(r"tidegate/_tidegate\.[\w.-]+$", library), f"{library} has a wrong name")
        check_metadata(packed.read(f"{info}/METADATA").decode(), [*LICENCES, NOTICES])
        check_licences(lambda one: packed.read(f"{info}/licenses/{one}"))
        check_record(packed, f"{info}/RECORD")
        inside = email.message_from_bytes(packed.read(f"{info}/WHEEL"))
        stated = {f"{tags[0]}-{tags[1]}-{one}" for one in tags[2].split(".")}
        same_names(inside.get_all("Tag"), stated)
        notices = packed.read(f"{info}/licenses/{NOTICES}").decode()
        check_linked(notices, json.loads(packed.read(f"{info}/sboms/{SBOM}")))
        want(b".symtab" not in packed.read(library), "its library is not stripped")
        home = pathlib.Path.home()
        folders = rb"(?:%s)/" % b"|".join(re.escape(str(one).encode()) for one in (ROOT, home))
        for one in names if dist else []:
            # A folder, not the end of a longer name: what precedes is no part of a path.
            found = re.search(rb"(?<![\w.])" + folders + rb"[\w./-]*", packed.read(one))
            want(not found, f"{one} names a folder of this machine: {found and found[0]}")
    return f"{'-'.join(tags)}, {path.stat().st_size // 1024} KiB"


def check_sdist(path):
    with tarfile.open(path) as packed:
        (top,) = {one.split("/", 1)[0] for one in packed.getnames()}
        held = {one.name.split("/", 1)[1]: one for one in packed if one.isfile()}
        lost = {*SOURCES, *LICENCES, *(f"python/tidegate/{one}" for one in MODULES)} - set(held)
        want(not lost, f"it lacks {sorted(lost)}")
        more = [one for one in held if NOT_SOURCES.search(one)]
        want(not more, f"it has {more}")
        odd = [one.name for one in packed if not one.isfile()]
        want(not odd, f"it has what is no file: {odd}")
        check_licences(lambda one: packed.extractfile(held[one]).read())
        check_metadata(packed.extractfile(held["PKG-INFO"]).read().decode(), LICENCES)
    want(path.name == f"{top}.tar.gz", "its folder is named otherwise")
    return f"{len(held)} files, {path.stat().st_size // 1024} KiB"


def main(arguments):
    paths = [pathlib.Path(one) for one in arguments if one != "--dist"]
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in paths:
        try:
            wheel = path.suffix == ".whl"
            shown = check_wheel(path, "--dist" in arguments) if wheel else check_sdist(path)
        except Wrong as wrong:
            sys.exit(f"{path.name}: {wrong}")
        print(f"{path.name}: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
