"""Runs the storage tests of `limits` itself against `tidegate://`, in memory and in a folder.

    python limits_own.py

They come with the source package of that library, which is fetched, and sleep a lot: not part of
`make test`. They know no storage but their own, so ours is put in the place of the one in memory.
One of them does not apply: a moving window with a million entries, which ours refuses.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import limits

PLUGIN = """
import itertools, sys
import limits.storage
from limits._storage_scheme import SCHEMES
from tidegate.limits_storage import TidegateStorage

folders = (f"tidegate://{sys.path[0]}/{number}" for number in itertools.count())

class InMemory(TidegateStorage):
    STORAGE_SCHEME = ["memory"]
    def __init__(self, uri=None, **options):
        super().__init__(next(folders) if FILE else "tidegate://", **options)

limits.storage.MemoryStorage = InMemory
"""
NEEDS = ["pytest", "pytest-lazy-fixtures", "flaky", "redis"]


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", *NEEDS], check=True)
        source = [*pip, "download", "--no-deps", "--no-binary", ":all:",
                  f"limits=={limits.__version__}"]
        subprocess.run([*source, "--dest", place], check=True)
        (archive,) = Path(place).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        tests = archive.with_name(archive.name.removesuffix(".tar.gz")) / "tests"
        return max(run(tests, file) for file in (False, True))


def run(tests: Path, file: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in_place.py").write_text(f"FILE = {file}\n{PLUGIN}")
        ours = ["-c",
                f"import sys, pytest; sys.path.insert(0, {folder!r}); sys.exit(pytest.main())"]
        chosen = ["-k", "in-memory and not huge_cost", "tests/test_storage.py",
                  "tests/test_strategy.py"]
        own = ["-q", "-p", "in_place", "--noconftest", "--disable-warnings", "-c", "/dev/null",
               f"--rootdir={tests.parent}"]
        return subprocess.run([sys.executable, *ours, *own, *chosen], cwd=tests.parent).returncode


if __name__ == "__main__":
    sys.exit(main())
