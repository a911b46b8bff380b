"""What the answers to a data set's questions come to: means with intervals, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import BASELINES, installed
from benchmarks.datasets import Question, Reader, Unit
from benchmarks.metrics import Answer, Interval, intervals, values
from benchmarks.report import Table

SHOWN = ("hit@1", "hit@5", "hit@10", "all@10", "R@5", "R@10", "nDCG@10", "MRR")
_OF_KINDS = ("hit@1", "hit@5", "R@10", "nDCG@10", "MRR")
_OUTDATED = "outdated first"
_BESIDE = next(iter(BASELINES))  # of the baselines, the one that the longer tables show
_INSTALL = "not measured: pip install '.[bench,peers]' in a checkout"

Groups = dict[str, NDArray[np.bool_]]  # of questions, by name


class Scores:
    """Gathers the answers of each system to the same questions."""

    def __init__(self, reader: Reader, unit: Unit) -> None:
        self.left_out = 0
        self._reader, self._unit = reader, unit
        self._kinds: list[str] = []
        self._rows: dict[str, list[list[float]]] = {}
        self._ms: dict[str, list[float]] = {}

    def add(self, question: Question, answers: Mapping[str, Answer]) -> None:
        """Take in what each system answered to a question."""
        self._kinds.append(question.kind)
        for name, answer in answers.items():
            self._rows.setdefault(name, []).append(values(answer))
            self._ms.setdefault(name, []).append(answer.cpu_ms)

    def numbers(self) -> dict[str, object]:
        """Return all of it as JSON-compatible data."""
        return {
            "unit": self._unit,
            "left_out": self.left_out,
            "groups": {name: self._group(chosen) for name, chosen in self._groups().items()},
        }

    def _group(self, chosen: NDArray[np.bool_]) -> dict[str, object]:
        return {
            "questions": int(chosen.sum()),
            "systems": {
                name: {**intervals(rows), "ms/query": self._time(name, chosen)}
                for name, rows in self._chosen(chosen).items()
            },
            "differences": self._differences(chosen),
        }

    def _groups(self) -> Groups:
        """Name the groups of questions: those of the main figure first, then each kind."""
        if not self._kinds:
            return {}
        kinds = np.array(self._kinds)
        main = np.isin(kinds, self._reader.main or kinds)
        each = {kind: kinds == kind for kind in sorted(set(self._kinds), key=self._place)}
        groups = {"main": main, **(each if len(each) > 1 else {})}
        return {name: chosen for name, chosen in groups.items() if chosen.any()}

    def _place(self, kind: str) -> tuple[int, str]:
        main = self._reader.main
        return main.index(kind) if kind in main else len(main), kind

    def _chosen(self, chosen: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        return {name: np.array(rows)[chosen] for name, rows in self._rows.items()}

    def _time(self, name: str, chosen: NDArray[np.bool_]) -> float:
        return round(float(np.median(np.array(self._ms[name])[chosen])), 3)

    def _differences(self, chosen: NDArray[np.bool_]) -> dict[str, dict[str, Interval]]:
        """Hold the first system against each of the others, question by question."""
        (_, ours), *others = self._chosen(chosen).items()
        return {name: intervals(ours - theirs) for name, theirs in others}

    # Tables -------------------------------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        """Yield the tables that a person reads."""
        groups = self._groups()
        if groups:
            yield self._main_table(groups["main"])
            yield self._difference_table(groups["main"])
        if len(groups) > 1:
            yield self._kind_table({name: chosen for name, chosen in groups.items() if name != "main"})

    def _two(self) -> tuple[str, str]:
        return next(iter(self._rows)), _BESIDE

    def _title(self, count: int) -> str:
        notes = [f"{self.left_out} without a known answer left out"] if self.left_out else []
        notes += ["of " + ", ".join(self._reader.main)] if self._reader.main else []
        return "; ".join([f"{self._reader.name}, {self._unit}s: {count} questions", *notes])

    def _main_table(self, main: NDArray[np.bool_]) -> Table:
        found = {name: intervals(rows) for name, rows in self._chosen(main).items()}
        outdated = [_OUTDATED] if any(_OUTDATED in one for one in found.values()) else []
        shown = [*SHOWN, *outdated]
        rows = [
            (name, *(_with_width(one[metric]) for metric in shown), f"{self._time(name, main):.2f}")
            for name, one in found.items()
        ]
        rows += [(name, _INSTALL, *[""] * len(shown)) for name in BASELINES if name not in installed()]
        return Table(self._title(int(main.sum())), ("system", *shown, "ms/query"), tuple(rows))

    def _difference_table(self, main: NDArray[np.bool_]) -> Table:
        rows = [
            (name, *(_signed(one[metric]) for metric in _OF_KINDS))
            for name, one in self._differences(main).items()
        ]
        title = f"{self._reader.name}: {next(iter(self._rows))}, points above each other, paired"
        return Table(title, ("above", *_OF_KINDS), tuple(rows))

    def _kind_table(self, kinds: Groups) -> Table:
        rows = []
        for kind, chosen in kinds.items():
            of_kind = self._chosen(chosen)
            for name in self._two():
                found = intervals(of_kind[name])
                cells = (_with_width(found[metric]) for metric in _OF_KINDS)
                rows.append((kind, str(int(chosen.sum())), name, *cells))
        title = f"{self._reader.name}: each type of question"
        return Table(title, ("type", "questions", "system", *_OF_KINDS), tuple(rows))


def _with_width(one: Interval) -> str:
    return f"{one.mean:.1f} ±{(one.high - one.low) / 2:.1f}"


def _signed(one: Interval) -> str:
    return f"{one.mean:+.1f} ({one.low:+.1f} to {one.high:+.1f})"
