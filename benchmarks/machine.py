"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
import sqlite3

import numpy as np


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
