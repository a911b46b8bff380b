# ruff: noqa: INP001, T201 - a script, not a package; it prints what it finds
"""Fit what `src/holdfast/safety/detectors.py` judges by: `injection_weights.py`, and the boosted trees.

    pip install scikit-learn
    PYTHONPATH=src python scripts/fit_guard.py --plain harmless.txt [--across]

It reads `tests/data/guard/tune_*.jsonl` and `fit_made.jsonl`; `--plain` adds ordinary text, a JSON string on
each line. Secrets and invisible characters are left out, since other rules find them. The forest sees of each
text how far it leans by weights that were fitted without its author, since those that know the text are too
sure of it. With `--across` it writes nothing, but says how many texts of each author are stopped by what was
fitted to all others.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from holdfast.safety import alphabets, detectors, injection_weights, markers
from holdfast.safety.deobfuscate import fold
from holdfast.safety.injection_features import Features, features
from holdfast.safety.injection_roles import Sentence, read_sentences
from holdfast.safety.injection_rules import Order
from holdfast.safety.injection_weights import InjectionWeights

ROOT = Path(__file__).parents[1]
LABELLED = ROOT / "tests/data/guard"
TABLES = ROOT / "src/holdfast/safety"
HEADER = """\
# The weight of a word in the score of an injection (see injection_weights.py); made by scripts/fit_guard.py.
# A weight, and what has it: the starts of words, pairs of characters of scripts without spaces, "=" for the
# bias of the sum.
"""
# What has no author: made up to fit, put together from lists of parts, and ordinary text.
MADE, PARTS, PLAIN = "made", "parts", "plain"
BY_WORDS = {"secret", "invisible"}  # kinds that are not found by what a text says
# Of the fit; less where there is more to fit.
STRENGTH = {"words": 0.3, "phrases": 1.0, "roles": 0.3, "letters": 0.05}
HARMFUL = 3.0  # how much more a harmful text counts in the weights
WEIGHED = {PARTS: 0.1}  # how much a text counts in the weights: those of parts are many, and much the same
JUDGED = {PLAIN: 0.5, MADE: 3.0, PARTS: 0.1}  # how much a text of no author counts in the forest
PLAIN_JUDGED = 4000  # ordinary texts that the forest is fitted to
TIMES = 3  # that the trees are boosted
RAREST_WORD, RAREST_SIGN = 3, 8  # texts that have it
STOPPED = (0.005, 0.01, 0.015, 0.02, 0.03)


class Text(NamedTuple):
    """A labelled text, what it reads, and the author whose texts it is left out with."""

    text: str
    harmful: bool
    kind: str
    author: str
    fold: str
    lower: str
    sentences: list[Sentence]
    orders: list[Order]


class Tables(NamedTuple):
    """What the readings of all texts have, as rows of a matrix each, and the names of the words."""

    words: dict[str, int]
    rows: dict[str, csr_matrix]


def main() -> None:
    """Fit, or judge across authors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", type=Path, required=True)
    parser.add_argument("--across", action="store_true")
    given = parser.parse_args()
    texts = [*_labelled(), *_plain(given.plain)]
    tables = _tables(texts)
    folds = np.array([text.fold for text in texts])
    signs_of = _signs_out_of_fold(texts, tables, folds)
    if given.across:
        _judge_across(texts, signs_of, folds)
        return
    _write_weights(_weights(texts, tables, np.ones(len(texts), bool)))
    columns = _columns(signs_of)
    _write_forest(_forest(texts, _matrix(signs_of, columns), np.ones(len(texts), bool)), columns)


def _labelled() -> Iterable[Text]:
    for path in (*sorted(LABELLED.glob("tune_*.jsonl")), *sorted(LABELLED.glob("fit_*.jsonl"))):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if not (row["harmful"] and row["kind"] in BY_WORDS):
                author = row.get("group", MADE)
                yield _read(row["text"], row["kind"], author, author, harmful=row["harmful"])


def _plain(path: Path) -> Iterable[Text]:
    """Read ordinary text, of which each author's fold gets its share."""
    folds = sorted({text.author for text in _labelled()} - {MADE, PARTS})
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        yield _read(json.loads(line), PLAIN, PLAIN, folds[number % len(folds)], harmful=False)


def _read(text: str, kind: str, author: str, without: str, *, harmful: bool) -> Text:
    lower = detectors.undisguised(text, fold(text)).text.lower()
    sentences = read_sentences(lower)
    orders = detectors.orders_in(lower, sentences)
    return Text(text, harmful, kind, author, without, lower, sentences, orders)


def _tables(texts: Sequence[Text]) -> Tables:
    words = [_words(text) for text in texts]
    counts = Counter(word for found in words for word in found)
    kept = {word: place for place, word in enumerate(w for w in sorted(counts) if counts[w] >= RAREST_WORD)}
    rows = {"words": _sparse([[kept[word] for word in found if word in kept] for found in words], len(kept))}
    for reading in injection_weights.READINGS:
        found = [
            sorted(
                set().union(*(injection_weights.buckets(reading, sentence) for sentence in text.sentences))
            )
            for text in texts
        ]
        rows[reading] = _sparse(found, injection_weights.BUCKETS)
    return Tables(kept, rows)


def _words(text: Text) -> set[str]:
    return set().union(*map(injection_weights.words, text.sentences))


def _sparse(rows: Sequence[Sequence[int]], width: int) -> csr_matrix:
    """Make a matrix of which the sums are those of `leaning`."""
    sizes = np.array([len(row) for row in rows])
    values = np.repeat(4 / np.sqrt(np.maximum(4, sizes)), sizes)
    columns = np.array([column for row in rows for column in row], int)
    return csr_matrix((values, columns, np.concatenate([[0], np.cumsum(sizes)])), shape=(len(rows), width))


def _weights(texts: Sequence[Text], tables: Tables, chosen: NDArray[np.bool_]) -> InjectionWeights:
    """Fit the weights of each reading to the chosen texts."""
    harmful = np.array([text.harmful for text in texts])
    share = np.where(harmful, HARMFUL, 1.0) * [WEIGHED.get(text.author, 1.0) for text in texts]
    found, biases = {}, {}
    for reading, rows in tables.rows.items():
        model = LogisticRegression(C=STRENGTH[reading], solver="liblinear", random_state=0)
        model.fit(rows[chosen], harmful[chosen], share[chosen])
        found[reading], biases[reading] = model.coef_[0].tolist(), float(model.intercept_[0])
    words = dict(zip(tables.words, found.pop("words"), strict=True))
    return InjectionWeights(words, found, biases)


def _signs_out_of_fold(texts: Sequence[Text], tables: Tables, folds: NDArray[np.str_]) -> list[Features]:
    signs_of: list[Features] = [{} for _ in texts]
    for name in sorted(set(folds)):
        weights = _weights(texts, tables, folds != name)
        for place in np.flatnonzero(folds == name):
            text = texts[place]
            signs_of[place] = features(text.text, text.lower, text.sentences, text.orders, weights)
    return signs_of


def _columns(signs_of: Sequence[Features]) -> dict[str, int]:
    counts = Counter(name for found in signs_of for name, value in found.items() if value)
    return {name: place for place, name in enumerate(sorted(n for n in counts if counts[n] >= RAREST_SIGN))}


def _matrix(signs_of: Sequence[Features], columns: dict[str, int]) -> NDArray[np.float32]:
    rows = np.zeros((len(signs_of), len(columns)), np.float32)
    for row, found in zip(rows, signs_of, strict=True):
        for name, value in found.items():
            if name in columns:
                row[columns[name]] = value
    return rows


def _forest(
    texts: Sequence[Text], rows: NDArray[np.float32], chosen: NDArray[np.bool_]
) -> list[HistGradientBoostingClassifier]:
    """Boost trees a few times, since runs differ; the settings were chosen across authors."""
    plain = np.array([text.author == PLAIN for text in texts])
    chosen = chosen & ~_unjudged(plain)
    harmful = np.array([text.harmful for text in texts])
    share = np.array([JUDGED.get(text.author, 1.0) for text in texts])
    return [
        HistGradientBoostingClassifier(
            max_iter=200,
            learning_rate=0.07,
            max_leaf_nodes=12,
            min_samples_leaf=12,
            l2_regularization=2,
            max_features=0.3,
            early_stopping=True,
            random_state=seed,
        ).fit(rows[chosen], harmful[chosen], share[chosen])
        for seed in range(TIMES)
    ]


def _likely(
    models: Sequence[HistGradientBoostingClassifier], rows: NDArray[np.float32]
) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-np.mean([model.decision_function(rows) for model in models], axis=0)))


def _unjudged(plain: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pick the ordinary texts that the forest is not fitted to."""
    return plain & (np.cumsum(plain) > PLAIN_JUDGED)


def _judge_across(texts: Sequence[Text], signs_of: Sequence[Features], folds: NDArray[np.str_]) -> None:
    """Print what is stopped of each author's texts, by rule or by trees fitted without that author."""
    rows = _matrix(signs_of, _columns(signs_of))
    likely = np.zeros(len(texts))
    for name in sorted(set(folds) - {MADE, PARTS}):
        likely[folds == name] = _likely(_forest(texts, rows, folds != name), rows[folds == name])
    harmful = np.array([text.harmful for text in texts])
    authors = np.array([text.author for text in texts])
    kinds = np.array([text.kind for text in texts])
    by_rule = np.array([_is_found_by_rule(text) for text in texts])
    likely[by_rule] = 1.1
    written = ~np.isin(authors, (MADE, PARTS, PLAIN))
    unseen = _unjudged(authors == PLAIN)
    print(f"by rule alone: {_share(by_rule[written & ~harmful])} of the harmless stopped")
    for share in STOPPED:
        limit = np.quantile(likely[written & ~harmful], 1 - share)
        over = likely > min(limit, 1)
        print(
            f"above {limit:.3f}: {_share(over[written & ~harmful])} of the harmless stopped, "
            f"{_share(over[written & harmful])} of the harmful, {_share(over[unseen])} of ordinary text"
        )
        for groups, names in ((authors, set(authors[written])), (kinds, set(kinds[written]))):
            for name in sorted(names):
                own = written & (groups == name)
                print(f"  {name}: {_share(over[own & harmful])}; {_share(over[own & ~harmful])}")


def _is_found_by_rule(text: Text) -> bool:
    marked = any(True for _ in markers.find_markers(text.lower))
    return marked or any(True for _ in alphabets.find_mixed(text.text))


def _share(found: NDArray[np.bool_]) -> str:
    """Write a share and, by Wilson, the interval that it lies in with 95 %."""
    if not len(found):
        return "-"
    z, count, share = 1.96, len(found), float(found.mean())
    middle = share + z * z / (2 * count)
    reach = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low, high = ((middle + side * reach) / (1 + z * z / count) for side in (-1, 1))
    return f"{share:.1%} ({low:.1%} to {high:.1%}, of {count})"


def _write_weights(weights: InjectionWeights) -> None:
    kept = sorted((round(weight, 2), word) for word, weight in weights.words.items())
    lines = [f"{weights.biases['words']:.2f} ="]
    for weight, group in groupby(kept, key=lambda pair: pair[0]):
        lines.append(f"{weight:.2f} {' '.join(word for _, word in group)}")
    (TABLES / "order_weights.txt").write_text(HEADER + "\n".join(lines) + "\n", "utf-8")
    scale = max(abs(weight) for found in weights.buckets.values() for weight in found) / 127
    packed = {
        name: np.round(np.array(found) / scale).astype(np.int8) for name, found in weights.buckets.items()
    }
    biases = np.array([weights.biases[reading] for reading in injection_weights.READINGS], np.float32)
    np.savez_compressed(TABLES / "order_weights.npz", scale=np.float32(scale), biases=biases, **packed)


def _write_forest(models: Sequence[HistGradientBoostingClassifier], columns: dict[str, int]) -> None:
    """Write the trees as arrays over all their nodes: half vote for an order, half for its contrary."""
    trees = [step[0].nodes for model in models for step in model._predictors]  # noqa: SLF001 - nothing else has them
    trees = trees[: len(trees) // 2 * 2]
    sizes = [len(tree) for tree in trees]
    starts = np.cumsum([0, *sizes])[:-1]
    nodes = np.concatenate(trees)
    leaf = nodes["is_leaf"].astype(bool)
    here, first = np.arange(len(nodes)), np.repeat(starts, sizes)
    children = [np.where(leaf, here, first + nodes[side]) for side in ("left", "right")]
    side = np.repeat(np.where(np.arange(len(trees)) < len(trees) // 2, -1, 1), sizes)
    used = sorted(set(nodes["feature_idx"][~leaf].tolist()))
    places = np.zeros(len(columns), int)
    places[used] = np.arange(len(used))
    names = list(columns)
    base = np.mean([model._baseline_prediction for model in models])  # noqa: SLF001 - as above
    np.savez_compressed(
        TABLES / "order_forest.npz",
        columns=np.array([names[place] for place in used]),
        classes=np.array(["harmless", "order"]),
        roots=starts.astype(np.int32),
        feature=np.where(leaf, 0, places[np.where(leaf, 0, nodes["feature_idx"])]).astype(np.int16),
        threshold=np.where(leaf, np.inf, nodes["num_threshold"]).astype(np.float32),
        children=np.stack(children, axis=1).astype(np.int32),
        value=np.where(leaf, side * nodes["value"] / len(models), 0).astype(np.float32),
        base=np.array([0, base], np.float32),
        depth=np.int32(nodes["depth"].max()),
    )


if __name__ == "__main__":
    main()
