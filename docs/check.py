#!/usr/bin/env python3
"""Runs the code blocks of the guide (docs) and of the READMEs.

Usage: docs/check.py [--book] [--yaml PYTHON] [--python PYTHON] [--node DIR] [--c LIBDIR] [FILE…]

  --book           the summary lists every page once; no block escapes the checks below
  --yaml PYTHON    `yaml` blocks load as policies; PYTHON has the wheel
  --python PYTHON  `python` blocks run, in order, one process for each file
  --node DIR       `js` and `ts` blocks run, one process for each; DIR is the built npm package
  --c LIBDIR       `c` and `cpp` blocks compile with include/ and run; LIBDIR holds libtidegate

A block whose first line is `# not run: WHY` (or `// not run: WHY`) must parse and is not run.
`rust` blocks are doctests of the crate in tests/.
Exits with 1 if a block fails.
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
PAGES = ["README.md", "docs/*.md", "docs/design/*.md", "*/README.md"]
# Languages that run here or as doctests, and those that are only shown.
RUN = set("rust python js ts c cpp yaml".split())
SHOWN = set("bash toml text mermaid nginx".split())


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

    def judge(self, place: str, wrong: str | None) -> None:
        self.passed, self.failed = self.passed + (not wrong), self.failed + bool(wrong)
        if wrong:
            print(f"{place}: {wrong}", file=sys.stderr)

    def book(self, _: bool) -> None:
        """The summary lists what there is, and each block is in a language that a mode checks."""
        guide = ROOT / "docs"
        summary = (guide / "SUMMARY.md").read_text(encoding="utf-8")
        listed = re.findall(r"\]\(([^)]+)\)", summary)
        pages = {file.relative_to(guide).as_posix() for file in guide.glob("*.md")}
        pages |= {file.relative_to(guide).as_posix() for file in guide.glob("design/*.md")}
        for page in sorted((pages | set(listed)) - {"SUMMARY.md"}):
            missing = None if page in pages else "is in docs/SUMMARY.md, but there is no such page"
            times = listed.count(page)
            self.judge(f"docs/{page}",
                       missing or (times != 1 and f"is listed {times} times") or None)
        doctests = (ROOT / "tests/src/guide.rs").read_text(encoding="utf-8")
        for block in self.blocks:
            self.judge(block.place, self._escapes(block, doctests))

    @staticmethod
    def _escapes(block: Block, doctests: str) -> str | None:
        """Why nothing checks a block; none if something does."""
        language, *more = block.language.split(",")
        page = block.file.relative_to(ROOT).as_posix() if block.file.is_relative_to(ROOT) else ""
        if language not in RUN | SHOWN:
            return f"a block of {language or 'no language'}; known are {sorted(RUN | SHOWN)}"
        if language == "rust" and f'include_str!("../../{page}")' not in doctests:
            return "a page with Rust blocks has to be named in tests/src/guide.rs"
        if language == "rust" and set(more) - {"no_run"}:
            return f"a doctest that is not compiled: {block.language}"
        if language == "yaml" and not block.code.startswith("version:"):
            return "a `yaml` block is a whole policy; use `text` for another"
        if language == "bash":
            done = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True)
            return done.stderr.strip() or None
        return None

    def yaml(self, python: str) -> None:
        load = "import sys, tidegate; tidegate.Limiter.from_file(sys.argv[1])"
        for block in self.blocks:
            if block.language == "yaml":
                with tempfile.TemporaryDirectory() as folder:
                    policy = pathlib.Path(folder, "policy.yaml")
                    policy.write_text(block.code, encoding="utf-8")
                    self.run(block.place, [python, "-c", load, str(policy)], folder)

    def python(self, python: str) -> None:
        """A page's blocks share their names, as if they were pasted in order."""
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
        for block in self.blocks:
            if block.language in ("js", "ts"):
                with tempfile.TemporaryDirectory() as folder:
                    self._modules(home, pathlib.Path(folder, "node_modules"))
                    self._script(block, home, folder)

    @staticmethod
    def _modules(home: pathlib.Path, modules: pathlib.Path) -> None:
        modules.mkdir()
        (modules / "tidegate").symlink_to(home)
        for other in (home / "node_modules").glob("[a-z@]*"):
            (modules / other.name).symlink_to(other)

    def _script(self, block: Block, home: pathlib.Path, folder: str) -> None:
        node = os.environ.get("NODE", "node")
        module = "mjs" if re.search(r"^import ", block.code, re.M) else "cjs"
        script = pathlib.Path(folder, f"block.{module}")
        if block.language == "ts":
            source = pathlib.Path(folder, "block.mts")
            source.write_text(block.code, encoding="utf-8")
            compiler = [node, str(home / "node_modules/typescript/bin/tsc")]
            flags = "--strict --target es2022 --module nodenext --types node".split()
            before = self.failed
            self.run(block.place, [*compiler, *flags, str(source)], folder)
            if self.failed != before:
                return
            self.passed -= 1
        else:
            script.write_text(block.code + self._ending(), encoding="utf-8")
        command = [node, "--check", str(script)] if block.skipped else [node, str(script)]
        self.run(block.place, command, folder, env={**os.environ, "PORT": "0"})

    @staticmethod
    def _ending() -> str:
        """Ends a block that starts a server, which would run for ever."""
        return "\nif (typeof server !== 'undefined') setTimeout(() => process.exit(), 500);\n"

    def c(self, libraries: str) -> None:
        where = str(pathlib.Path(libraries).resolve())
        compilers = {"c": os.environ.get("CC", "cc"), "cpp": os.environ.get("CXX", "c++")}
        standards = {"c": "-std=c11", "cpp": "-std=c++17"}
        for block in self.blocks:
            if block.language not in compilers:
                continue
            with tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, f"block.{block.language}")
                program = os.path.join(folder, "block")
                source.write_text(whole(block.code), encoding="utf-8")
                flags = ["-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include")]
                link = ["-L", where, "-ltidegate", f"-Wl,-rpath,{where}", "-pthread"]
                command = [compilers[block.language], standards[block.language], *flags]
                before = self.failed
                self.run(block.place, [*command, str(source), "-o", program, *link], folder)
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
    parser.add_argument("--book", action="store_true")
    for flag in ("yaml", "python", "node", "c"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    pages = options.files or [page for names in PAGES for page in sorted(ROOT.glob(names))]
    checks = Checks([page.resolve() for page in pages])
    kinds = [kind for kind in ("book", "yaml", "python", "node", "c") if getattr(options, kind)]
    if not kinds:
        parser.error("one of --book, --yaml, --python, --node and --c is needed")
    for kind in kinds:
        given = getattr(options, kind)
        path = kind != "book" and os.sep in given
        getattr(checks, kind)(os.path.abspath(given) if path else given)
    print(f"docs: {checks.passed} checks of {', '.join(kinds)} passed, {checks.failed} failed")
    if not checks.passed and not checks.failed:
        print("docs: no block was found", file=sys.stderr)
        return 1
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
