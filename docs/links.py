#!/usr/bin/env python3
"""Links of the book. mdBook runs this file as a preprocessor, see book.toml.

A page links to files of the tree, such as ../README.md. The book holds only the pages
of SUMMARY.md. A link to any other file leads to the repository that Cargo.toml names.
Without one, its text stays.

    docs/links.py --html FOLDER    checks that no page of a built book links to a missing file
"""

from __future__ import annotations

import html.parser
import json
import os
import pathlib
import re
import sys
import tomllib
from urllib.parse import unquote

ROOT = pathlib.Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> list[pathlib.Path]:
    """The pages that SUMMARY.md lists, in its order."""
    summary = (GUIDE / "SUMMARY.md").read_text(encoding="utf-8")
    return [GUIDE / target for _, target in LINK.findall(summary)]


def repository() -> str | None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return workspace["package"].get("repository")


def mended(text: str, page: pathlib.Path) -> str:
    """A page's text with its links out of the book changed."""
    inside, home = set(pages()), repository()

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        file = target.partition("#")[0]
        to = pathlib.Path(os.path.normpath(page.parent / file))
        if not file or re.match(r"[a-z]+:", target) or to in inside:
            return match[0]
        there = to.relative_to(ROOT).as_posix()
        return f"[{label}]({home}/blob/main/{there})" if home else label

    # Odd parts are code: fenced blocks, or spans of it.
    parts = re.split(r"(^```.*?^```|`[^`\n]*`(?!\]))", text, flags=re.M | re.S)
    return "".join(part if n % 2 else LINK.sub(link, part) for n, part in enumerate(parts))


def walk(items: list) -> None:
    for item in items:
        if isinstance(item, dict) and (chapter := item.get("Chapter")):
            if chapter.get("path"):
                chapter["content"] = mended(chapter["content"], GUIDE / chapter["path"])
            walk(chapter["sub_items"])


class Targets(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.anchors.add(given["id"])
        self.found += [given[name] for name in ("href", "src") if given.get(name)]


def parsed(file: pathlib.Path) -> Targets:
    targets = Targets()
    targets.feed(file.read_text(encoding="utf-8"))
    return targets


def check(book: pathlib.Path) -> int:
    every = {file: parsed(file) for file in sorted(book.rglob("*.html"))}
    wrong = []
    for file, targets in every.items():
        if file.name in ("print.html", "toc.html", "404.html"):
            continue
        for target in targets.found:
            path, _, anchor = unquote(target).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            to = pathlib.Path(os.path.normpath(file.parent / path)) if path else file
            if not to.exists():
                wrong.append(f"{file.relative_to(book)}: {target}: there is no such file")
            elif anchor and to in every and anchor not in every[to].anchors:
                wrong.append(f"{file.relative_to(book)}: {target}: there is no such heading")
    print("\n".join(wrong) if wrong else f"docs: {len(every)} pages are in {book}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--html"]:
        sys.exit(check(pathlib.Path(sys.argv[2]).resolve()))
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    walk(book["sections"])
    json.dump(book, sys.stdout)
