# ruff: noqa: INP001, S311, T201 - a script that prints, not a package
"""Fit how a new text relates to an old one, from `dedup/features.py`: `merge_forest.npz`.

    pip install scikit-learn
    PYTHONPATH=src python scripts/fit_merge.py [--across] --sessions FILE…

It reads `tests/data/merge/tune_*.jsonl`. To the labelled pairs it adds the same with the texts exchanged,
where the label still holds, and each new text beside the text of another pair that is nearest to it, which is
new; and of each of the files of conversations, sentences beside the nearest of those before them, which are
new as well where they have few words in common. With `--across` it fits nothing, but says how well each
author's pairs are judged by what was fitted to those of all others, and which thresholds leave how many pairs
wrong. The table in the package was made of the coding sessions and the dialogues of RealMem; the same files
give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from holdfast.dedup.features import Features, features
from holdfast.dedup.merge import CLASSES
from holdfast.dedup.parsed_text import FUNCTION, ParsedText, parse_text

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/holdfast/dedup/merge_forest.npz"
# Authors whose pairs speak of one another: what is beside them may well be an update.
LINKED = set("stvz")
PLAIN = {"s": 3.0, "z": 2.0, "p": 2.0, "q": 0.5}  # how much counts what users try first, by author
SLOT = 2.0  # how much more a pair counts that differs in one place
MODELS = 5
RAREST = 8  # examples that have a feature
EXCHANGED, BESIDE = 0.7, 0.3  # how much an example counts that was derived
SENTENCES, UNRELATED = 300, 0.5  # of a conversation, and how much two of them count
TOO_NEAR = 0.8  # so much of a text covered by another one, it may say the same
WRONG = (0.01, 0.009, 0.007, 0.006, 0.005, 0.008)  # shares of all pairs; the last one is shown by author


class Example(NamedTuple):
    """The features of two texts, their label, author and weight."""

    features: Features
    label: int
    author: str
    share: float


class Pair(NamedTuple):
    """A labelled pair of texts."""

    old: str
    new: str
    label: str
    author: str


def main() -> None:
    """Fit, or judge across authors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--across", action="store_true")
    parser.add_argument("--sessions", type=Path, nargs="*", default=[], help="files of conversations")
    options = parser.parse_args()
    pairs = [
        pair for path in sorted((ROOT / "tests/data/merge").glob("tune_*.jsonl")) for pair in _pairs(path)
    ]
    labelled = [_example(pair) for pair in pairs]
    derived = [*_exchange(pairs, labelled), *_beside(pairs), *_sample_unrelated(options.sessions)]
    counts = Counter(name for example in labelled for name, value in example.features.items() if value)
    columns = {name: place for place, name in enumerate(sorted(n for n in counts if counts[n] >= RAREST))}
    if options.across:
        _judge_across(labelled, derived, columns)
    else:
        _write(_fit([*labelled, *derived], columns), columns)


def _pairs(path: Path) -> list[Pair]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [Pair(row["old"], row["new"], row["label"], row["group"]) for row in rows]


def _label(pair: Pair) -> int:
    return CLASSES.index(pair.label if pair.label in CLASSES else "new")


def _example(pair: Pair) -> Example:
    values = _compare(pair.old, pair.new)
    share = PLAIN.get(pair.author, 1.0) * (SLOT if values["slot"] else 1)
    return Example(values, _label(pair), pair.author, share)


def _compare(old: str, new: str) -> Features:
    return features(parse_text(old), parse_text(new))


def _exchange(pairs: list[Pair], labelled: list[Example]) -> list[Example]:
    """Exchange the texts of pairs that are new, of duplicates with as many words, and of plain updates.

    A plain update differs in one value and tells of no change.
    """
    return [
        Example(values, example.label, pair.author, EXCHANGED * (SLOT if values["slot"] else 1))
        for pair, example in zip(pairs, labelled, strict=True)
        for values in [_compare(pair.new, pair.old)]
        if pair.label in ("new", "unsure")
        or (pair.label == "update" and example.features["slot"] and not _tells(example.features))
        or (pair.label == "duplicate" and example.features["new words"] >= example.features["old words"])
    ]


def _tells(values: Features) -> bool:
    """Return whether one of two texts tells of a change."""
    return any(values[f"{side} {name}"] for side in ("old", "new") for name in ("told words", "change"))


def _beside(pairs: list[Pair]) -> list[Example]:
    """Put each new text beside the old text of another pair that is nearest to it."""
    examples = []
    for author in sorted({pair.author for pair in pairs} - LINKED):
        own = [pair for pair in pairs if pair.author == author]
        near = _nearness([parse_text(pair.old) for pair in own], [parse_text(pair.new) for pair in own])
        for pair, row in zip(own, near, strict=True):
            nearest = [own[place].old for place in np.argsort(-row, kind="stable")[:8]]
            others = (_compare(old, pair.new) for old in dict.fromkeys(nearest) if old != pair.old)
            apart = (
                values
                for values in others
                if not values["slot"] and max(values["new covered"], values["old covered"]) <= TOO_NEAR
            )
            examples += [Example(v, CLASSES.index("new"), author, BESIDE) for v in islice(apart, 1)]
    return examples


def _nearness(olds: list[ParsedText], news: list[ParsedText]) -> NDArray[np.float32]:
    """Return how many of their stems texts share, as a share of those of both together, shape (new, old)."""
    places = {root: place for place, root in enumerate(sorted({r for t in (*olds, *news) for r in t.roots}))}
    left, right = (np.zeros((len(texts), len(places)), np.float32) for texts in (olds, news))
    for rows, texts in ((left, olds), (right, news)):
        for row, text in zip(rows, texts, strict=True):
            row[[places[root] for root in text.roots]] = 1
    near: NDArray[np.float32] = right @ left.T / (1 + left.sum(axis=1) + right.sum(axis=1)[:, None])
    return near


def _sample_unrelated(paths: list[Path]) -> list[Example]:
    """Put each of some sentences of conversations beside the nearest of those before it in the same file."""
    rng, examples = random.Random(35), list[Example]()
    for path in paths:
        texts = list(dict.fromkeys(_sentences(path)))
        parsed = [parse_text(text) for text in rng.sample(texts, min(SENTENCES, len(texts)))]
        parsed = [text for text in parsed if text.content and not text.statement.long]
        near = _nearness(parsed, parsed)
        for place, new in enumerate(parsed[1:], 1):
            old = parsed[int(near[place, :place].argmax())]
            shared = len(old.known & new.known - FUNCTION)
            if shared < TOO_NEAR * max(len(text.known - FUNCTION) for text in (old, new)):
                examples.append(Example(features(old, new), CLASSES.index("new"), path.stem, UNRELATED))
    return examples


def _sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a session of coding, or of a person's dialogues in the format of RealMem."""
    text = path.read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else []
    rows = rows or [turn for talk in json.loads(text)["dialogues"] for turn in talk["dialogue_turns"]]
    for row in rows:
        if isinstance(row.get("content"), str):
            for sentence in re.split(r"(?<=[.?!])\s+|\n+", row["content"]):
                if 4 <= len(sentence.split()) <= 30:
                    yield sentence.strip()


def _matrix(examples: list[Example], columns: dict[str, int]) -> NDArray[np.float32]:
    rows = np.zeros((len(examples), len(columns)), np.float32)
    for row, example in zip(rows, examples, strict=True):
        for name, value in example.features.items():
            if name in columns:
                row[columns[name]] = value
    return rows


def _fit(examples: list[Example], columns: dict[str, int]) -> list[HistGradientBoostingClassifier]:
    """Boost trees, several times over: their mean varies less. The settings were chosen across authors."""
    rows = _matrix(examples, columns)
    labels = [example.label for example in examples]
    shares = [example.share for example in examples]
    return [
        HistGradientBoostingClassifier(
            max_iter=160,
            learning_rate=0.1,
            max_leaf_nodes=12,
            min_samples_leaf=8,
            l2_regularization=2,
            max_features=0.3,
            random_state=seed,
        ).fit(rows, labels, shares)
        for seed in range(MODELS)
    ]


def _likely(models: list[HistGradientBoostingClassifier], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Give how likely each class is, by the mean of the sums."""
    sums = np.mean([model.decision_function(rows) for model in models], axis=0)
    powers = np.exp(sums - sums.max(axis=1, keepdims=True))
    likely: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return likely


def _judge_across(labelled: list[Example], derived: list[Example], columns: dict[str, int]) -> None:
    """Print what each author's pairs come to when nothing of that author was fitted."""
    likely = np.zeros((len(labelled), len(CLASSES)))
    aside = np.zeros((len(derived), len(CLASSES)))
    authors = np.array([example.author for example in labelled])
    others = np.array([example.author for example in derived])
    for author in sorted(set(authors)):
        rest = [e for e in (*labelled, *derived) if e.author != author]
        models = _fit(rest, columns)
        for out, examples, of in ((likely, labelled, authors), (aside, derived, others)):
            chosen = [e for e in examples if e.author == author]
            if chosen:
                out[of == author] = _likely(models, _matrix(chosen, columns))
    labels = np.array([example.label for example in labelled])
    beside = np.array([example.share == BESIDE for example in derived])
    for name in ("duplicate", "update"):
        of = CLASSES.index(name)
        for wrong in WRONG:
            limit = next(
                t
                for t in np.linspace(0.3, 0.999, 500)
                if np.mean((likely[:, of] > t) & (labels != of)) <= wrong
            )
            said = likely[:, of] > limit
            print(
                f"{name}s above {limit:.3f}: {wrong:.1%} of all pairs wrong, "
                f"{np.mean(said[labels == of]):.1%} found; "
                f"of the texts beside, {np.sum(aside[beside, of] > limit) / max(1, beside.sum()):.2%} wrong"
            )
        for author in sorted(set(authors)):
            own = authors == author
            true = labels[own] == of
            print(f"  {author}: {np.mean(said[own][true]):.1%} found, {np.mean(said[own] & ~true):.2%} wrong")


def _write(models: list[HistGradientBoostingClassifier], columns: dict[str, int]) -> None:
    """Write the trees as arrays over all their nodes."""
    steps = [step for model in models for step in model._predictors]  # noqa: SLF001 - only there are the fitted trees
    bases = [model._baseline_prediction.ravel() for model in models]  # noqa: SLF001 - as above
    trees = [step[of].nodes for of in range(len(CLASSES)) for step in steps]
    starts = np.cumsum([0, *map(len, trees)])[:-1]
    nodes = np.concatenate(trees)
    first = np.repeat(starts, list(map(len, trees)))
    here = np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    children = np.stack([np.where(leaf, here, first + nodes[side]) for side in ("left", "right")], axis=1)
    np.savez_compressed(
        TABLE,
        columns=np.array(list(columns)),
        classes=np.array(CLASSES),
        roots=starts.astype(np.int32),
        feature=np.where(leaf, 0, nodes["feature_idx"]).astype(np.int16),
        threshold=np.where(leaf, np.inf, nodes["num_threshold"]).astype(np.float32),
        children=children.astype(np.int32),
        value=np.where(leaf, nodes["value"] / len(models), 0).astype(np.float32),
        base=np.mean(bases, axis=0).astype(np.float32),
        depth=np.int32(nodes["depth"].max()),
    )


if __name__ == "__main__":
    main()
