"""Test suites that others wrote: fetched from the package index, pinned, and run against our adapters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent / ".pytest_cache" / "suites"
PLUGINS = Path(__file__).parent / "integrations"
MISMATCH = "DO NOT MATCH THE HASHES"  # what pip says of a file that is another than the pinned one


def sdist(name: str, version: str, sha256: str) -> Path:
    """Give the unpacked source distribution of a release, which for some packages holds their tests.

    It is fetched once and kept. Where it cannot be fetched, the test is skipped at one's desk and fails in
    CI; a file that is not the pinned one fails everywhere.
    """
    folder = CACHE / f"{name.replace('-', '_')}-{version}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as place:
            unpacked = _unpack(_fetch(name, version, sha256, Path(place)))
            try:
                unpacked.rename(folder)
            except OSError:  # another worker was here first
                if not folder.is_dir():
                    raise
    return folder


def run_suite(
    folder: Path, plugin: str, files: Sequence[str], *options: str, **environment: str
) -> dict[str, int]:
    """Run tests of an unpacked release with a plugin of ours, and count how many ended in which way."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join(filter(None, [str(PLUGINS), given.get("PYTHONPATH")]))
    plugins = ["-p", "no:cacheprovider", "-p", "coroutine_tests", "-p", plugin]
    python = [sys.executable, "-m", "pytest", "-q", *plugins]
    done = subprocess.run(
        [*python, "-c", os.devnull, "--rootdir", str(folder), *options, *files],
        cwd=folder,
        env={**given, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = _last_line(done.stdout)
    # Not the warnings: a test that ends in the expected failure leaves its session to the collector, now or
    # later.
    return {
        word: int(number)
        for number, word in re.findall(r"(\d+) ([a-z]+)(?=,| in )", last)
        if "warn" not in word
    }


def _fetch(name: str, version: str, sha256: str, place: Path) -> Path:
    wanted = place / "wanted.txt"
    wanted.write_text(f"{name}=={version} --hash=sha256:{sha256}\n", "utf-8")
    quiet = ["--quiet", "--disable-pip-version-check", "--retries", "1"]
    pip = [sys.executable, "-m", "pip", "download", *quiet]
    which = ["--no-deps", "--no-binary", name, "--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run([*pip, *which, "--dest", str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        if MISMATCH in done.stderr or os.environ.get("CI"):
            pytest.fail(f"{name} {version} cannot be fetched:\n{done.stderr}")
        pytest.skip(f"{name} {version} cannot be fetched, so its tests do not run: {_last_line(done.stderr)}")
    return next(place.glob("*.tar.gz"))


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _unpack(archive: Path) -> Path:
    """Unpack an archive beside itself, and give the one folder that is in it."""
    place = archive.parent / "unpacked"
    shutil.unpack_archive(archive, place, filter="data")
    return next(place.iterdir())
