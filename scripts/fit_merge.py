# ruff: noqa: INP001, S311, T201 - a script that prints, not a package
"""Fit how a new text relates to an old one, from `dedup/features.py`: `merge_forest.npz`, `slot_forest.npz`.

    pip install scikit-learn
    PYTHONPATH=src python scripts/fit_merge.py [--slots] [--across]

It reads `tests/data/merge/tune_*.jsonl`. To the labelled pairs it adds the same with the texts exchanged,
where the label still holds, and each new text beside the texts of other pairs that are nearest to it, which
are new; and with `--sessions` sentences of conversations beside the nearest of those before them, which
are new as well where they have few words in common. With `--slots` it fits the second forest, which only
says which pairs that differ in one place are updates, to all such pairs, those of the authors of such pairs
as well. With `--across` it fits nothing, but says how well each author's pairs are judged by what was fitted
to those of all others, and which thresholds leave how many pairs wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from holdfast.dedup.features import Features, features
from holdfast.dedup.merge import CLASSES
from holdfast.dedup.parsed_text import FUNCTION, parse_text

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "src/holdfast/dedup"
FRAMED = {"p", "q"}  # authors of pairs that differ in one place: duplicates are not learned from them
# Beginnings of the features of what differs and of what is around it, not of single words.
DIFFERING = tuple(
    "slot alike exchanged state value verb framed same opposite facets one many shared denied old_slot "
    "new_slot old_left new_left old_past new_past old_event new_plan old_user new_user new_change "
    "old_change".split()
)
# Added to the sum of an update in the second forest: 0.65 is as sure there as the threshold of the first.
SURER = 0.56
LINKED = {
    "s",
    "t",
    "v",
    "z",
}  # authors whose pairs speak of one another: what is beside them may well be an update
PLAIN = {"s": 3.0, "z": 2.0, "p": 2.0, "q": 0.5}  # how much counts what users try first, by author
MODELS, DEPTH = 3, None
FEWER, FLATTER = 2, 6  # of the second forest, which is asked beside the first
RAREST = 8  # examples that have a feature
EXCHANGED, BESIDE = 0.7, 0.3  # how much an example counts that was derived
NEIGHBOURS = 2
SENTENCES, UNRELATED = 750, 0.5  # of a conversation, and how much two of them count
TOO_NEAR = 0.8  # so much of a text covered by another one, it may say the same
WRONG = (0.01, 0.009, 0.007, 0.006, 0.005, 0.008)  # shares of all pairs; the last one is shown by author


class Example(NamedTuple):
    """What two texts look like, how they relate, whose they are, and how much that counts."""

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
    parser.add_argument("--slots", action="store_true")
    parser.add_argument("--across", action="store_true")
    parser.add_argument("--sessions", type=Path, nargs="*", default=[], help="files of conversations")
    asked = parser.parse_args()
    paths = sorted((ROOT / "tests/data/merge").glob("tune_*.jsonl"))
    pairs = [pair for path in paths for pair in _read(path) if asked.slots or pair.author not in FRAMED]
    labelled = [
        Example(_seen(pair.old, pair.new), _label(pair), pair.author, PLAIN.get(pair.author, 1.0))
        for pair in pairs
    ]
    derived = _exchanged(pairs, labelled, plain=asked.slots)
    if asked.slots:
        labelled, derived = ([e for e in some if e.features["slot"]] for some in (labelled, derived))
    else:
        derived += _beside(pairs) + _unrelated(asked.sessions)
    counts = Counter(name for example in labelled for name, value in example.features.items() if value)
    if asked.slots:
        counts = Counter({n: counts[n] for n in counts if n.replace(" ", "_").startswith(DIFFERING)})
    columns = {name: place for place, name in enumerate(sorted(n for n in counts if counts[n] >= RAREST))}
    if asked.across:
        _judge_across(labelled, derived, columns, slots=asked.slots)
        return
    models = _fitted([*labelled, *derived], columns, slots=asked.slots)
    if asked.slots:
        _write(models, columns, "slot_forest.npz", SURER)
    else:
        _write(models, columns, "merge_forest.npz")


def _read(path: Path) -> list[Pair]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [Pair(row["old"], row["new"], row["label"], row["group"]) for row in rows]


def _label(pair: Pair) -> int:
    return CLASSES.index(pair.label if pair.label in CLASSES else "new")


def _seen(old: str, new: str) -> Features:
    return features(parse_text(old), parse_text(new))


def _exchanged(pairs: list[Pair], labelled: list[Example], *, plain: bool) -> list[Example]:
    """Exchange the texts of pairs that are new, of duplicates with as many words, and of `plain` updates.

    A plain update differs in one value and tells of no change.
    """
    return [
        Example(_seen(pair.new, pair.old), example.label, pair.author, EXCHANGED)
        for pair, example in zip(pairs, labelled, strict=True)
        if pair.label in ("new", "unsure")
        or (plain and pair.label == "update" and example.features["slot"] and not _tells(example.features))
        or (pair.label == "duplicate" and example.features["new words"] >= example.features["old words"])
    ]


def _tells(found: Features) -> bool:
    """Return whether one of two texts tells of a change."""
    return bool(
        found["old told words"] or found["new told words"] or found["new change"] or found["old change"]
    )


def _beside(pairs: list[Pair]) -> list[Example]:
    """Put each new text beside the old texts of other pairs that are nearest to it."""
    found = []
    for author in sorted({pair.author for pair in pairs} - LINKED):
        own = [pair for pair in pairs if pair.author == author]
        means = {text: parse_text(text).direction for pair in own for text in (pair.old, pair.new)}
        olds = np.array([means[pair.old] for pair in own])
        for pair in own:
            nearest = [own[place].old for place in np.argsort(-(olds @ means[pair.new]))[:8]]
            others = [_seen(old, pair.new) for old in dict.fromkeys(nearest) if old != pair.old]
            apart = [
                f for f in others if not f["slot"] and max(f["new covered"], f["old covered"]) <= TOO_NEAR
            ]
            found += [Example(f, CLASSES.index("new"), author, BESIDE) for f in apart[:NEIGHBOURS]]
    return found


def _unrelated(paths: list[Path]) -> list[Example]:
    """Put each of some sentences of conversations beside the nearest of those before it in the same file."""
    rng, found = random.Random(35), list[Example]()
    for path in paths:
        texts = list(dict.fromkeys(_sentences(path)))
        parsed = [parse_text(text) for text in rng.sample(texts, min(SENTENCES, len(texts)))]
        parsed = [one for one in parsed if one.content and not one.statement.long]
        means = np.array([one.direction for one in parsed])
        for place, new in enumerate(parsed):
            near = means[:place] @ new.direction
            near += [len(new.roots & one.roots) / (1 + len(new.roots)) for one in parsed[:place]]
            for old in (parsed[at] for at in np.argsort(-near)[:NEIGHBOURS]):
                shared = len(old.known & new.known - FUNCTION)
                if shared < TOO_NEAR * max(len(one.known - FUNCTION) for one in (old, new)):
                    found.append(Example(features(old, new), CLASSES.index("new"), path.stem, UNRELATED))
    return found


def _sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a session of coding, or of a person's dialogues in the format of RealMem."""
    text = path.read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else []
    rows = rows or [turn for one in json.loads(text)["dialogues"] for turn in one["dialogue_turns"]]
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


def _fitted(
    examples: list[Example], columns: dict[str, int], *, slots: bool
) -> list[HistGradientBoostingClassifier]:
    """Boost trees, several times over: their mean varies less. The settings were chosen across authors."""
    rows = _matrix(examples, columns)
    labels = [example.label for example in examples]
    shares = [example.share for example in examples]
    return [
        HistGradientBoostingClassifier(
            max_iter=120,
            learning_rate=0.1,
            max_leaf_nodes=12,
            max_depth=FLATTER if slots else DEPTH,
            min_samples_leaf=8,
            l2_regularization=2,
            max_features=0.3,
            random_state=seed,
        ).fit(rows, labels, shares)
        for seed in range(FEWER if slots else MODELS)
    ]


def _likely(models: list[HistGradientBoostingClassifier], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Give how likely each class is, by the mean of the sums."""
    sums = np.mean([model.decision_function(rows) for model in models], axis=0)
    powers = np.exp(sums - sums.max(axis=1, keepdims=True))
    likely: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return likely


def _judge_across(
    labelled: list[Example], derived: list[Example], columns: dict[str, int], *, slots: bool
) -> None:
    """Print what each author's pairs come to when nothing of that author was fitted."""
    likely = np.zeros((len(labelled), len(CLASSES)))
    aside = np.zeros((len(derived), len(CLASSES)))
    authors = np.array([example.author for example in labelled])
    others = np.array([example.author for example in derived])
    for author in sorted(set(authors)):
        rest = [e for e in (*labelled, *derived) if e.author != author]
        models = _fitted(rest, columns, slots=slots)
        for out, examples, of in ((likely, labelled, authors), (aside, derived, others)):
            chosen = [e for e in examples if e.author == author]
            if chosen:
                out[of == author] = _likely(models, _matrix(chosen, columns))
    for out, examples in ((likely, labelled), (aside, derived)):
        out[[e.features["new exact alone"] > 0 for e in examples], CLASSES.index("duplicate")] = 0
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


def _write(
    models: list[HistGradientBoostingClassifier], columns: dict[str, int], name: str, surer: float = 0.0
) -> None:
    """Write the trees as arrays over all their nodes, and an update surer by so much."""
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
        TABLES / name,
        columns=np.array(list(columns)),
        classes=np.array(CLASSES),
        roots=starts.astype(np.int32),
        feature=np.where(leaf, 0, nodes["feature_idx"]).astype(np.int16),
        threshold=np.where(leaf, np.inf, nodes["num_threshold"]).astype(np.float32),
        children=children.astype(np.int32),
        value=np.where(leaf, nodes["value"] / len(models), 0).astype(np.float32),
        base=(np.mean(bases, axis=0) + surer * np.array([0, 0, 1])).astype(np.float32),
        depth=np.int32(nodes["depth"].max()),
    )


if __name__ == "__main__":
    main()
