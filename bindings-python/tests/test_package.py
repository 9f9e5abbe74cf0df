"""What people read works as pasted; versions are one; help reads well."""

import doctest
import pathlib
import pydoc
import re
import subprocess
import sys
from importlib.metadata import version

import tidegate

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pasted(file, head, index=0):
    text = (ROOT / file).read_text(encoding="utf-8")
    section = text.split(f"\n## {head}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[index]


def test_the_guide_works_as_pasted(tmp_path):
    code = pasted("docs/python.md", "Start")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["message 0: 4 left", "message 1: 3 left"]
    assert lines[5].startswith(
        "message 5: 5/10s, wait 60 s {'RateLimit-Policy': '\"5/10s\";q=5;w=10")
    assert lines[6:] == ["call 0", "call 1", "call 2"]


def test_the_packages_own_readme_works_as_pasted():
    names = {}
    exec(pasted("bindings-python/README.md", "Use"), names)
    assert names["decision"].remaining == 16
    exec(pasted("bindings-python/README.md", "Use", 1), names)
    told = [(change.op, change.by) for change in names["rule"].changes().changes]
    assert told == [("block", "alice"), ("set_mode", "alice")]


def test_the_packages_own_readme_lists_every_operation():
    text = (ROOT / "bindings-python/README.md").read_text(encoding="utf-8")
    use = text.split("\n## Use\n", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", use))))
    classes = (tidegate.Limiter, tidegate.Rule, tidegate.Reservation)
    operations = {name for one in classes for name in vars(one) if not name.startswith("_")}
    assert operations - listed - {"decision"} == set()


def test_docstrings_are_true():
    found = [test for test in doctest.DocTestFinder().find(tidegate, "tidegate") if test.examples]
    assert {"tidegate", "tidegate.Limiter"} <= {test.name for test in found}
    assert not any(doctest.DocTestRunner().run(test).failed for test in found)


def test_help_reads_well():
    text = pydoc.render_doc(tidegate.Limiter, renderer=pydoc.plaintext)
    assert "class Limiter(" in text and "A policy at work" in text
    assert "hit(self, /, key, cost=1, *, max=None, **attributes)" in text
    assert "allow(self, /, key, **attributes)" in text
    assert "Spends ``cost`` if the rule allows it" in text
    in_a_line = "".join(text.replace("|", "").split())  # Later versions break long signatures.
    assert (
        "from_policy(mapping,*,store=None,capacity=None,on_full=None,clock=None,recreate=False,"
        "memory=None,group=None)"
    ) in in_a_line


def test_versions_are_one_over_the_workspace():
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    stated = re.search(r'\[workspace.package\]\nversion = "(.*?)"', manifest).group(1)
    assert tidegate.__version__ == version("tidegate") == stated
    assert (re.findall(r'^tidegate(?:-core)? = .*version = "(.*?)"', manifest, re.MULTILINE)
            == [stated] * 2)
    for member in ("core", "policy", "ffi-c", "bindings-python"):
        assert ("\nversion.workspace = true\n" in (ROOT / member / "Cargo.toml").read_text(
            encoding="utf-8")), member


def test_the_package_is_typed():
    folder = pathlib.Path(tidegate.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_tidegate.pyi").exists()
