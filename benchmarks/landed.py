"""The figures of the last landing, as ratios to what was measured in the same run, and what is worse now.

Numbers of a loaded machine, or of fewer rounds, are no evidence: what makes them doubtful is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import CHECKOUT
from benchmarks.report import Table

FILE = CHECKOUT / "benchmarks" / "landed.json"
_KEPT = ("commit", "machine", "effort", "ratios")

Numbers = Mapping[str, Any]


def save(numbers: Numbers, file: Path) -> None:
    """Keep the ratios of a report, and how they were measured."""
    file.write_text(json.dumps({name: numbers[name] for name in _KEPT}, indent=1) + "\n", "utf-8")


def held_against(numbers: Numbers, file: Path) -> dict[str, object]:
    """Return what is worse than it was by more than a tenth, as name, then and now, and what is doubtful."""
    then = json.loads(file.read_text("utf-8")) if file.exists() else {}
    before, now = then.get("ratios", {}), numbers["ratios"]
    both = [(name, before[name], now[name]) for name in now if name in before]
    worse = [one for one in both if one[2] > 1.1 * one[1]]
    return {"worse": worse, "doubts": list(_doubts(numbers, then)) if before else ["nothing was saved"]}


def _doubts(numbers: Numbers, then: Numbers) -> Iterator[str]:
    if numbers["effort"] != then["effort"]:
        yield f"rounds {numbers['effort']} now, {then['effort']} then"
    for when, machine in (("now", numbers["machine"]), ("then", then["machine"])):
        # Taken before anything is measured.
        if (machine["load"] or 0) > (machine["cores"] or 1) / 2:
            yield f"a load of {machine['load']} on {machine['cores']} cores {when}"


def table(held: Numbers) -> Table:
    """Write what is worse, below what makes that doubtful."""
    doubts = f"; doubtful: {'; '.join(held['doubts'])}" * bool(held["doubts"])
    rows = tuple((name, f"{then:.3g}", f"{now:.3g}") for name, then, now in held["worse"])
    columns = ("what", "then", "now")
    return Table(f"Worse than landed by more than a tenth: {len(rows)}{doubts}", columns, rows)
