# ruff: noqa: INP001, T201 - a script, not a package; it prints what it finds
"""Fit the weights by which `src/holdfast/text/statements.py` tells what is worth keeping.

    pip install scikit-learn
    PYTHONPATH=src:. python scripts/fit_statements.py DATA [--across]

It reads the half `tune` of `tests/data/worth`, and the dialogues that were written for it. With `--across`
it writes nothing, but says how well weights that were fitted to other authors judge each author.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.worth import LABELS, read_labelled, read_labels
from benchmarks.worthy import carries, key, messages_of
from holdfast import Message
from holdfast.learning.learned_statements import contexts
from holdfast.learning.speeches import Speech, speeches_of
from holdfast.text import vectors
from holdfast.text.statement_spans import spans
from holdfast.text.statements import WORTH, Context, features, known_words, speaker_of

TABLE = Path(__file__).parents[1] / "src/holdfast/text/statement_weights.txt"
HEADER = """\
# The weight of a form in the worth of a statement (see statements.py), by speaker; made by
# scripts/fit_statements.py. "=" is the bias, "~" a dimension of the word vectors.
"""
STRENGTH = {"assistant": 0.1, "person": 0.2, "user": 0.03}  # of the fit
# The score from which on a statement of the speaker is worth keeping.
LEAST_SCORE = {"assistant": 0.5, "person": 0.15, "user": 0.0}
CAUTION = 0.5  # how much higher it is for a user whose chat is not about code
RAREST = 10  # statements that have a form
LEAST = 0.02  # a weight below says nothing
MEANING = 3.0  # the scale of word vectors beside forms
LONGEST = 1_500  # characters that a user types; what is longer was pasted, and is not fitted to
PARTS = 3  # of the written dialogues


class Example(NamedTuple):
    """A labelled statement: by whose weights it is judged, its author, its text, its forms, its worth."""

    speaker: str
    author: str
    text: str
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
        author = session.id if session.source == "agent" else session.source + session.id.split("/")[0]
        for speech, context, said, has in stated(
            [one for one in speeches_of(messages_of(session)) if one.prose]
        ):
            position = speech.message.seq - 1
            here = labels[session.source, session.id, position]
            hit = [one for one in here if says(said, texts[position][one.start : one.end])]
            if position in read and (not hit or any(one.settled for one in hit)):
                yield Example(speaker_of(speech.message.role, context), author, said, has, bool(hit))


def written() -> Iterator[Example]:
    """Yield the statements of the dialogues that were written to be fitted to."""
    with (LABELS / "written.jsonl").open(encoding="utf-8") as file:
        dialogs = [json.loads(line) for line in file]
    for number, dialog in enumerate(dialogs):
        messages = [
            Message(one["role"], joined(one["said"]), name=one.get("name"), seq=place)
            for place, one in enumerate(dialog["messages"])
        ]
        for speech, context, said, has in stated(
            list(speeches_of(messages)), is_work=dialog["about"] == "work"
        ):
            kinds = [
                kind
                for text, kind in dialog["messages"][speech.message.seq]["said"]
                if key(said) in key(text)
            ]
            yield Example(
                speaker_of(speech.message.role, context), f"written {number % PARTS}", said, has, any(kinds)
            )


def joined(said: Sequence[tuple[str, str]]) -> str:
    """Return the text of a message: a list item, or what no full stop ends, stands on a line of its own."""
    text, is_line = "", True
    for one, _ in said:
        starts = re.match(r"(?:[-*>|]|#+|\d+\.)\s", one)
        text += ("\n" if is_line or starts else " ") + one
        is_line = bool(starts) or not re.search(r"(?:[^\d]\.|[!?。？])[\"”*]*$", one)
    return text.strip()


def stated(
    speeches: list[Speech], *, is_work: bool | None = None
) -> Iterator[tuple[Speech, Context, str, set[str]]]:
    """Yield what is said, with its forms; pasted messages of users are left out."""
    for speech, found in zip(speeches, contexts(speeches), strict=True):
        context = found if is_work is None else found._replace(is_work=is_work)
        prose = speech.prose
        if speech.message.role == "user" and len(prose) > LONGEST:
            continue
        places = list(spans(prose))
        for span, has in zip(places, features(prose, places, context), strict=True):
            yield speech, context, prose[span.start : span.end], has


def says(said: str, statement: str) -> bool:
    """Return whether two readings of a message mean the same statement."""
    return key(said) == key(statement) or (key(statement).count(" ") > 4 and carries(said, statement))


def fitted(found: list[Example]) -> dict[str, float]:
    """Return the weights of forms and of the dimensions of word vectors, and the bias."""
    counts = Counter(name for one in found for name in one.forms)
    names = sorted(name for name, count in counts.items() if count >= RAREST)
    speaker = found[0].speaker
    model = LogisticRegression(C=STRENGTH[speaker], max_iter=1_000)
    rows = matrix(found, names)
    if speaker == "person":
        rows = np.hstack([rows, MEANING * meanings(found)])
    model.fit(rows, [one.is_worth for one in found])
    weights = dict(zip(names, map(float, model.coef_[0]), strict=False))
    weights = {name: weight for name, weight in weights.items() if abs(weight) >= LEAST}
    bias = float(model.intercept_[0]) + math.log(WORTH / (1 - WORTH)) - LEAST_SCORE[speaker]
    if speaker == "user":
        bias -= CAUTION
        weights["is_work"] = weights.get("is_work", 0.0) + CAUTION
    return {
        "=": bias,
        **weights,
        **{f"~{place}": MEANING * float(one) for place, one in enumerate(model.coef_[0][len(names) :])},
    }


def matrix(found: list[Example], names: list[str]) -> NDArray[np.float64]:
    """Return a row for each statement and a column for each form."""
    place = {name: column for column, name in enumerate(names)}
    rows = np.zeros((len(found), len(names)))
    for row, one in zip(rows, found, strict=True):
        row[[place[name] for name in one.forms if name in place]] = 1
    return rows


def meanings(found: list[Example]) -> NDArray[np.float64]:
    """Return the mean vector of the words of each statement."""
    table = vectors.table().vectors
    rows = np.zeros((len(found), table.shape[1]))
    for place, one in enumerate(found):
        known = known_words(one.text)
        if known:
            rows[place] = np.average(
                table[[row for row, _ in known]], axis=0, weights=[one for _, one in known]
            )
    return rows


def across(found: list[Example]) -> None:
    """Print how well statements are judged by weights that were fitted to other authors."""
    judged: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for author in sorted({one.author for one in found}):
        weights = fitted([one for one in found if one.author != author])
        own = [one for one in found if one.author == author]
        direction = np.array([weights.get(f"~{place}", 0.0) for place in range(32)])
        for one, meaning in zip(own, meanings(own) @ direction, strict=True):
            score = weights["="] + sum(weights.get(name, 0.0) for name in one.forms) + float(meaning)
            judged[author.split()[0]].append((score, one.is_worth))
    for author, scores in judged.items():
        worth = sum(is_worth for _, is_worth in scores)
        for least in (-1.0, -0.4, 0.0, 0.5, 1.0):
            taken = [is_worth for score, is_worth in scores if score >= least]
            print(f"{author} from {least:4}: {sum(taken)} of {len(taken)} right, of {worth}")


def main() -> None:
    """Fit the weights and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--across", action="store_true")
    options = parser.parse_args()
    lines = [HEADER]
    by_speaker: dict[str, list[Example]] = defaultdict(list)
    for one in (*examples(options.data), *written()):
        by_speaker[one.speaker].append(one)
    for speaker, found in sorted(by_speaker.items()):
        print(speaker, len(found))
        if options.across:
            across(found)
        else:
            rows = sorted(fitted(found).items(), key=lambda row: (row[0] != "=", row[1]))
            lines += [f"[{speaker}]\n", *(f"{weight:.2f} {name}\n" for name, weight in rows)]
    if not options.across:
        TABLE.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
