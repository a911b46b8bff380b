"""What a measurement was made on, and of what."""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks import CHECKOUT


def machine() -> dict[str, object]:
    """Name the software, the cores and how busy they are."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "numpy": np.__version__,
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def in_a_line(machine: dict[str, object]) -> str:
    """Write it in a line."""
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def commit() -> str | None:
    """Return the commit that is checked out, with a + when files differ from it; None without git."""
    try:
        found = [_git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")]
    except (OSError, subprocess.CalledProcessError):
        return None
    return found[0] + ("+" if found[1] else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=CHECKOUT, check=True, capture_output=True, text=True)  # noqa: S603, S607 - our own words, and git as it is found
    return done.stdout.strip()


def basis(files: Iterable[Path]) -> dict[str, object]:
    """Return what a measurement on files rests on: the commit, the machine, and the SHA-256 of each file."""
    return {"commit": commit(), "machine": machine(), "files": _checksums(files)}


def _checksums(files: Iterable[Path]) -> dict[str, str]:
    found = {}
    for file in dict.fromkeys(files):
        with file.open("rb") as stream:
            found[str(file)] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found
