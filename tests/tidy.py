#!/usr/bin/env python3
"""Checks for the whole tree: versions agree, links lead somewhere, lines are not too wide.

    python3 tests/tidy.py               all checks
    python3 tests/tidy.py widths        one of them: versions, links or widths
    python3 tests/tidy.py widths core   only files below a folder

Only files that git tracks, or would track, are read. Exits with 1 if anything is found.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
SOURCES = set(".rs .c .h .hpp .cpp .inc .py .pyi .js .mjs .cjs .ts .mts".split())


def tracked(*folders):
    """Files below the folders (all if none), without those that git ignores."""
    command = "git ls-files -z --cached --others --exclude-standard --".split() + list(folders)
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    found = {ROOT / name for name in names.split("\0") if name}
    return sorted(path for path in found if path.is_file())


def named(path):
    return path.relative_to(ROOT).as_posix()


# Widths


def widths(folders):
    """No source line is wider than WIDTH columns."""
    for path in tracked(*folders):
        if path.suffix in SOURCES:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if len(line) > WIDTH:
                    yield f"{named(path)}:{number}: {len(line)} columns, not {WIDTH} at most"


# Links

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
ANCHOR = re.compile(r"<a\s+(?:id|name)=[\"']([^\"']+)")


def prose(text):
    """The numbered lines of a document that are not in a code block."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence is None:
            fence = mark[1][:3]
        elif mark and mark[1].startswith(fence):
            fence = None
        elif fence is None:
            yield number, line


def slug(heading):
    """The anchor that a heading gets: lower case, words joined by hyphens, other marks dropped."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    kept = (c for c in text if c in " -_" or unicodedata.category(c)[0] in "LN")
    return "".join(kept).replace(" ", "-")


def anchors(path):
    seen = {}
    for _, line in prose(path.read_text()):
        yield from ANCHOR.findall(line)
        if heading := HEADING.match(line):
            name = slug(heading[1])
            seen[name] = seen.get(name, -1) + 1
            yield name if seen[name] == 0 else f"{name}-{seen[name]}"


def broken(path, target):
    """Why a link from a document leads nowhere; none if it leads somewhere."""
    file, _, anchor = target.partition("#")
    to = (path.parent / file).resolve() if file else path
    if not to.exists():
        return "there is no such file"
    if anchor and to.suffix == ".md" and anchor not in anchors(to):
        return "there is no such heading"
    return None


def links(folders):
    """No document links to a missing file or heading."""
    for path in tracked(*folders):
        if path.suffix != ".md":
            continue
        for number, line in prose(path.read_text()):
            for match in LINK.finditer(CODE.sub("", line)):
                target = match[1] or match[2]
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                if why := broken(path, target):
                    yield f"{named(path)}:{number}: {target}: {why}"


# Versions

# How a document names a version of a package.
STATED = re.compile(
    r"(?:\btidegate(?:-core|-c)?(?:@|==|\s*=\s*\"|\s*=\s*\{[^}]*version\s*=\s*\")"
    r"|\blibtidegate\.?(?=\d)|find_package\(tidegate )v?(\d+(?:\.\d+)*)"
)


def manifests():
    """Each place outside of documents that states the version, with what it states."""
    for path in tracked():
        name = named(path)
        if path.name == "Cargo.toml":
            manifest = tomllib.loads(path.read_text())
            for field in ("dependencies", "dev-dependencies", "build-dependencies"):
                ours = {**manifest.get(field, {}), **manifest.get("workspace", {}).get(field, {})}
                for key, told in ours.items():
                    if isinstance(told, dict) and "path" in told and "version" in told:
                        yield f"{name}: {key}", told["version"]
            package = manifest.get("package", {})
            if package.get("publish", True) and isinstance(package.get("version"), str):
                yield name, package["version"]
        elif path.name == "pyproject.toml":
            project = tomllib.loads(path.read_text()).get("project", {})
            if "version" not in project.get("dynamic", []):
                yield name, project.get("version")
        elif path.name in ("package.json", "package-lock.json"):
            package = json.loads(path.read_text())
            if package.get("name") == "tidegate":
                yield name, package.get("version")
        elif name.startswith("include/"):
            parts = [
                re.search(rf"#define (?:TG|TIDEGATE)_VERSION_{part}\s+(\d+)", path.read_text())
                for part in ("MAJOR", "MINOR", "PATCH")
            ]
            if all(parts):
                yield name, ".".join(part[1] for part in parts)
            for stated in re.findall(r"version: \"(\d+\.\d+\.\d+)\"", path.read_text()):
                yield name, stated


def versions(folders):
    """The workspace, the packages, the header and the documents state one version."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    version = cargo["workspace"]["package"]["version"]
    for where, stated in manifests():
        if stated != version:
            yield f"{where}: version {stated}, and Cargo.toml has {version}"
    for path in tracked(*folders):
        if path.suffix != ".md" and path.name != "CMakeLists.txt" or "notes" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for stated in STATED.findall(line):
                if not f"{version}.".startswith(f"{stated}."):
                    yield f"{named(path)}:{number}: version {stated}, and Cargo.toml has {version}"
    lock = (ROOT / "Cargo.lock").read_text()
    for name, stated in re.findall(r'name = "(tidegate[\w-]*)"\nversion = "([^"]+)"', lock):
        if stated != version and name not in ("tidegate-benches", "tidegate-tests"):
            yield f"Cargo.lock: {name} {stated}, and Cargo.toml has {version}"


CHECKS = {"versions": versions, "links": links, "widths": widths}


def main(arguments):
    asked = [argument for argument in arguments if argument in CHECKS] or list(CHECKS)
    folders = [argument for argument in arguments if argument not in CHECKS]
    found = [line for name in asked for line in CHECKS[name](folders)]
    print("\n".join(found) if found else f"tidy: {', '.join(asked)} are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
