# ruff: noqa: INP001 - a script, not a package
"""Fit the weights of `src/holdfast/text/order_weights.txt` to labelled texts: a logistic regression over words and roles.

    PYTHONPATH=src python scripts/fit_guard.py labelled.jsonl … [--plain harmless.txt]

A labelled text is a JSON object with "text", "harmful", "kind"; secrets and invisible characters are left out, since
words do not tell them. Run it again when the classes of `intent_words.txt` change.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np

from holdfast.text import leaning
from holdfast.text.fold import fold

TABLE = Path(__file__).parents[1] / "src/holdfast/text/order_weights.txt"
HEADER = """\
# How much a text leans towards an order to a model (see leaning.py); made by scripts/fit_guard.py. A weight, and what has
# it: the first letters of words, pairs of characters of scripts without spaces, "#" and a role, "=" for every text.
"""
DECAY = 1e-4
STEPS = 400
HARMFUL = 3.0  # how much more a harmful text counts


def main() -> None:
    """Read the texts, fit the weights, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", nargs="+", type=Path)
    parser.add_argument("--plain", type=Path, help="harmless texts, a JSON string on each line")
    given = parser.parse_args()
    texts = [row for file in given.labelled for row in _labelled(file)]
    if given.plain:
        texts += [(json.loads(line), False) for line in given.plain.read_text("utf-8").splitlines()]
    TABLE.write_text(HEADER + _table(*_fit(texts)), "utf-8")


def _labelled(file: Path) -> list[tuple[str, bool]]:
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [
        (row["text"], row["harmful"])
        for row in rows
        if not (row["harmful"] and row["kind"] in {"secret", "invisible"})
    ]


def _features(text: str) -> set[str]:
    plain = fold(text).text.lower()
    return leaning.words_of(plain) | leaning.roles_of(plain)


def _fit(texts: list[tuple[str, bool]]) -> tuple[dict[str, float], float]:
    """Minimise the logistic loss with Adam."""
    features = [_features(text) for text, _ in texts]
    counts = Counter(name for names in features for name in names)
    index = {name: number for number, name in enumerate(sorted(counts)) if counts[name] > 1}
    index = {name: number for number, name in enumerate(index)}
    rows = [np.array([index[name] for name in sorted(names) if name in index], int) for names in features]
    columns, owner = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    value = np.array([4 / np.sqrt(max(4, len(row))) for row in rows])[owner]
    is_harmful = np.array([harmful for _, harmful in texts], float)
    share = np.where(is_harmful > 0, HARMFUL, 1.0)
    weights, mean, spread = np.zeros((3, len(index) + 1))  # the last one is the bias
    for step in range(1, STEPS):
        sums = np.bincount(owner, weights[:-1][columns] * value, len(rows)) + weights[-1]
        error = (1 / (1 + np.exp(-sums)) - is_harmful) * share
        slope = np.append(np.bincount(columns, error[owner] * value, len(index)) / len(rows), error.mean())
        slope[:-1] += DECAY * weights[:-1]
        mean = 0.9 * mean + 0.1 * slope
        spread = 0.999 * spread + 0.001 * slope**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    return {name: float(weights[number]) for name, number in index.items()}, float(weights[-1])


def _table(weights: dict[str, float], bias: float) -> str:
    kept = sorted((round(weight, 2), name) for name, weight in weights.items() if abs(weight) >= 0.005)
    lines = [f"{bias:.2f} ="]
    for weight, group in groupby(kept, key=lambda pair: pair[0]):
        lines.append(f"{weight:.2f} {' '.join(name for _, name in group)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
