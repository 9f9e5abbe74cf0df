#!/usr/bin/env python3
"""Runs the code blocks of README.md and of the guide (docs/*.md).

Usage: docs/check.py [--yaml PYTHON] [--python PYTHON] [--node DIR] [--c LIBDIR] [FILE…]

  --yaml PYTHON    blocks that begin with `version:` load as policies; PYTHON has the wheel
  --python PYTHON  `python` blocks run, in order, one process for each file
  --node DIR       `js` blocks run, one process for each block; DIR is the built npm package
  --c LIBDIR       `c` blocks compile against include/ and run; LIBDIR holds libtidegate

A block whose first line is `# not run: WHY` (or `// not run: WHY`) must parse and is not run.
`rust` blocks are doctests of the crate in tests/. Exits with 1 if a block fails.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 120


class Block(NamedTuple):
    file: pathlib.Path
    line: int
    language: str
    code: str

    @property
    def place(self) -> str:
        inside = self.file.is_relative_to(ROOT)
        return f"{self.file.relative_to(ROOT) if inside else self.file}:{self.line}"

    @property
    def skipped(self) -> bool:
        return re.match(r"\s*(#|//) not run: ", self.code) is not None


def blocks(file: pathlib.Path) -> list[Block]:
    """The fenced blocks of a page, those in lists too."""
    found, start, language, held = [], 0, "", []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"\s*```(\S*)", line)
        if fence and not start:
            start, language, held = number, fence[1], []
        elif fence:
            found.append(Block(file, start, language, "\n".join(held) + "\n"))
            start = 0
        elif start:
            held.append(line)
    return found


class Checks:
    def __init__(self, pages: list[pathlib.Path]) -> None:
        self.blocks = [block for page in pages for block in blocks(page)]
        self.passed, self.failed = 0, 0

    def run(self, place: str, command: list[str], folder: str, **more: object) -> None:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, **more
            )
            wrong = done.returncode and (done.stderr or done.stdout or f"exit {done.returncode}")
        except subprocess.TimeoutExpired:
            wrong = f"took longer than {SECONDS} s"
        if wrong:
            self.failed += 1
            print(f"{place}: {wrong.strip()[-2000:]}\n", file=sys.stderr)
        else:
            self.passed += 1

    def yaml(self, python: str) -> None:
        load = "import sys, tidegate; tidegate.Limiter.from_file(sys.argv[1])"
        for block in self.blocks:
            if block.language == "yaml" and block.code.startswith("version:"):
                with tempfile.TemporaryDirectory() as folder:
                    policy = pathlib.Path(folder, "policy.yaml")
                    policy.write_text(block.code, encoding="utf-8")
                    self.run(block.place, [python, "-c", load, str(policy)], folder)

    def python(self, python: str) -> None:
        """A page's blocks share their names, as those of a reader who pastes them in order."""
        pages: dict[pathlib.Path, list[Block]] = {}
        for block in self.blocks:
            if block.language == "python":
                pages.setdefault(block.file, []).append(block)
        for page in pages.values():
            with tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "page.py")
                code = "".join(map(self._exec, page))
                script.write_text("names = {'__name__': '__main__'}\n" + code, encoding="utf-8")
                self.run(page[0].place, [python, str(script)], folder)

    @staticmethod
    def _exec(block: Block) -> str:
        # Line numbers in a traceback are those of the page.
        code = "\n" * block.line + block.code
        compiled = f"compile({code!r}, {block.place.rsplit(':', 1)[0]!r}, 'exec')"
        return f"{compiled}\n" if block.skipped else f"exec({compiled}, names)\n"

    def node(self, package: str) -> None:
        home = pathlib.Path(package).resolve()
        node = os.environ.get("NODE", "node")
        for block in self.blocks:
            if block.language != "js":
                continue
            with tempfile.TemporaryDirectory() as folder:
                modules = pathlib.Path(folder, "node_modules")
                modules.mkdir()
                (modules / "tidegate").symlink_to(home)
                for other in (home / "node_modules").glob("[a-z]*"):
                    (modules / other.name).symlink_to(other)
                kind = "mjs" if re.search(r"^import ", block.code, re.M) else "cjs"
                script = pathlib.Path(folder, f"block.{kind}")
                script.write_text(block.code + self._ending(), encoding="utf-8")
                command = [node, "--check", str(script)] if block.skipped else [node, str(script)]
                self.run(block.place, command, folder, env={**os.environ, "PORT": "0"})

    @staticmethod
    def _ending() -> str:
        """Ends a block that starts a server, which would run for ever."""
        return "\nif (typeof server !== 'undefined') setTimeout(() => process.exit(), 500);\n"

    def c(self, libraries: str) -> None:
        where = str(pathlib.Path(libraries).resolve())
        compiler = os.environ.get("CC", "cc")
        for block in self.blocks:
            if block.language != "c":
                continue
            with tempfile.TemporaryDirectory() as folder:
                source, program = pathlib.Path(folder, "block.c"), os.path.join(folder, "block")
                source.write_text(whole(block.code), encoding="utf-8")
                flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include")]
                link = ["-L", where, "-ltidegate", f"-Wl,-rpath,{where}", "-pthread"]
                build = [compiler, *flags, str(source), "-o", program, *link]
                before = self.failed
                self.run(block.place, build, folder)
                if self.failed == before and not block.skipped:
                    self.passed -= 1
                    self.run(block.place, [program], folder)


def whole(code: str) -> str:
    """A C block as a program: one without `main` is the body of it."""
    if re.search(r"\bmain\s*\(", code):
        return code
    heads = "#include <assert.h>\n#include <stdio.h>\n#include <string.h>\n#include <tidegate.h>\n"
    return f"{heads}int main(void) {{\n{code}\nreturn 0;\n}}\n"


def main() -> int:
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    for flag in ("yaml", "python", "node", "c"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    pages = options.files or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    checks = Checks([page.resolve() for page in pages])
    kinds = [kind for kind in ("yaml", "python", "node", "c") if getattr(options, kind)]
    if not kinds:
        parser.error("one of --yaml, --python, --node and --c is needed")
    for kind in kinds:
        given = getattr(options, kind)
        getattr(checks, kind)(os.path.abspath(given) if os.sep in given else given)
    print(f"docs: {checks.passed} checks of {', '.join(kinds)} passed, {checks.failed} failed")
    if not checks.passed and not checks.failed:
        print("docs: no block was found", file=sys.stderr)
        return 1
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
