# ruff: noqa: INP001, T201 - a script, not a package; it prints what it finds
"""Fit the weights by which `src/holdfast/text/statements.py` tells what is worth keeping.

    pip install scikit-learn
    PYTHONPATH=src:. python scripts/fit_statements.py DATA [--across]

It reads the half `tune` of `tests/data/worth`. With `--across` it writes nothing, but says how well weights
that were fitted to other sessions judge each.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.worth import read_labelled, read_labels
from benchmarks.worthy import carries, key, messages_of
from holdfast.learning.decision_sentences import speeches_of
from holdfast.learning.learned_statements import contexts
from holdfast.text.statement_spans import spans
from holdfast.text.statements import features, speaker_of

TABLE = Path(__file__).parents[1] / "src/holdfast/text/statement_weights.txt"
HEADER = """\
# The weight of a form in the worth of a statement (see statements.py), by speaker; made by
# scripts/fit_statements.py. "=" is the bias.
"""
STRENGTH = {"assistant": 0.05, "person": 0.1, "user": 0.02}  # of the fit
RAREST = 10  # statements that have a form
LEAST = 0.02  # a weight below says nothing
FOLDS, BLOCK = 6, 180  # a long session is left out in parts of so many messages


class Example(NamedTuple):
    """A labelled statement: by whose weights it is judged, its part of the data, its forms, its worth."""

    speaker: str
    part: str
    forms: set[str]
    is_worth: bool


def examples(data: Path) -> Iterator[Example]:
    """Yield the statements of the half `tune` about which the labels agree."""
    labels = defaultdict(list)
    for one in read_labels():
        labels[one.source, one.session, one.message].append(one)
    for session, judged in read_labelled(data):
        if judged.half != "tune":
            continue
        texts = {said.position: said.text for said in session.messages}
        read = {message for message, _, _ in judged.statements}
        speeches = [one for one in speeches_of(messages_of(session)) if one.prose]
        for speech, context in zip(speeches, contexts(speeches), strict=True):
            position, prose = speech.message.seq - 1, speech.prose
            if position not in read:
                continue
            here = labels[session.source, session.id, position]
            found = list(spans(prose))
            for span, has in zip(found, features(prose, found, context), strict=True):
                said = prose[span.start : span.end]
                hit = [one for one in here if says(said, texts[position][one.start : one.end])]
                if not hit or any(one.settled for one in hit):
                    part = f"{session.id} {position // BLOCK}"
                    yield Example(speaker_of(speech.message.role, context), part, has, bool(hit))


def says(said: str, statement: str) -> bool:
    """Return whether two readings of a message mean the same statement."""
    return key(said) == key(statement) or (key(statement).count(" ") > 4 and carries(said, statement))


def fitted(found: list[Example], names: list[str]) -> dict[str, float]:
    """Return the weights of forms, and the bias."""
    model = LogisticRegression(C=STRENGTH[found[0].speaker], max_iter=1_000)
    model.fit(matrix(found, names), [one.is_worth for one in found])
    weights = {name: float(weight) for name, weight in zip(names, model.coef_[0], strict=True)}
    return {"=": float(model.intercept_[0])} | {
        name: weight for name, weight in weights.items() if abs(weight) >= LEAST
    }


def matrix(found: list[Example], names: list[str]) -> NDArray[np.float64]:
    """Return a row for each statement and a column for each form."""
    place = {name: column for column, name in enumerate(names)}
    rows = np.zeros((len(found), len(names)))
    for row, one in zip(rows, found, strict=True):
        row[[place[name] for name in one.forms if name in place]] = 1
    return rows


def common(found: list[Example]) -> list[str]:
    """Return the forms that are common enough to have a weight."""
    counts = Counter(name for one in found for name in one.forms)
    return sorted(name for name, count in counts.items() if count >= RAREST)


def across(found: list[Example]) -> None:
    """Print how well statements are judged by weights that were fitted to other sessions."""
    parts = sorted({one.part for one in found})
    fold = {part: place % FOLDS for place, part in enumerate(parts)}
    judged = []
    for left_out in range(FOLDS):
        rest = [one for one in found if fold[one.part] != left_out]
        weights = fitted(rest, common(rest))
        judged += [
            (weights["="] + sum(weights.get(name, 0.0) for name in one.forms), one.is_worth)
            for one in found
            if fold[one.part] == left_out
        ]
    for least in (-1.0, -0.8, -0.6, -0.4, 0.0):
        taken = [is_worth for score, is_worth in judged if score >= least]
        worth = sum(is_worth for _, is_worth in judged)
        print(f"from {least:4}: {sum(taken)} of {len(taken)} right, of {worth}")


def main() -> None:
    """Fit the weights and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--across", action="store_true")
    options = parser.parse_args()
    lines = [HEADER]
    by_speaker: dict[str, list[Example]] = defaultdict(list)
    for one in examples(options.data):
        by_speaker[one.speaker].append(one)
    for speaker, found in sorted(by_speaker.items()):
        print(speaker, len(found))
        if options.across:
            across(found)
        else:
            weights = fitted(found, common(found))
            rows = sorted(weights.items(), key=lambda row: (row[0] != "=", row[1]))
            lines += [f"[{speaker}]\n", *(f"{weight:.2f} {name}\n" for name, weight in rows)]
    if not options.across:
        TABLE.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
