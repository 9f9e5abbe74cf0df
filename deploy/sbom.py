#!/usr/bin/env python3
"""The crates that a package links, as a CycloneDX list for programs that read such.

    python3 deploy/sbom.py PACKAGE [--target TRIPLE]

PACKAGE is a crate of this workspace, as in `tidegate-python`. The list has the crates of
`deploy/notices.py` and those of this workspace, with the checksums of the lock file. Two runs give
the same bytes, and no folder of this machine is named.
"""

import argparse
import json
import re
import sys

import notices


def component(crate, checksums):
    """What the list says of one crate."""
    name, version = crate["name"], crate["version"]
    address = f"pkg:cargo/{name}@{version}"
    told = {"type": "library", "bom-ref": address, "name": name, "version": version}
    if (name, version) in checksums:
        told["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    # An older way to write OR.
    licence = (crate["license"] or "").replace("/", " OR ")
    told["licenses"] = [{"expression": licence}]
    return told | {"purl": address}


def ours(package):
    """The package, and the crates of this workspace that it links."""
    told = json.loads(notices.cargo("metadata", "--format-version=1", "--no-deps"))
    members = {one["name"]: one for one in told["packages"]}
    names = [package]
    for name in names:
        needed = [one["name"] for one in members[name]["dependencies"] if one["kind"] is None]
        names += [one for one in needed if one in members and one not in names]
    return [members[name] for name in names]


def bill(package, target):
    lock = (notices.ROOT / "Cargo.lock").read_text(encoding="utf-8")
    of_crate = r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"'
    checksums = {(name, version): digest for name, version, digest in re.findall(of_crate, lock)}
    root, *rest = ours(package)
    crates = [*rest, *notices.linked(package, [target], [])]
    crates.sort(key=lambda one: (one["name"], one["version"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(root, checksums)},
        "components": [component(one, checksums) for one in crates],
    }


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--target")
    asked = parser.parse_args(arguments)
    print(json.dumps(bill(asked.package, asked.target), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
