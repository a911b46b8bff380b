# ruff: noqa: INP001 - a script, not a package
"""Derive `src/holdfast/learn/synonyms.txt.gz` from the WordNet 3.0 database files: what words mean and share.

    PYTHONPATH=src python scripts/make_synonyms.py /path/to/wordnet/dict

The file has two parts. A line of the first part is a word, in the form that `lexicon.stem` gives it, and its senses,
the most usual first: `word<TAB>sense+share sense+share …<TAB>derived words`; the share is a digit, tenths of the uses
of the word as this part of speech. The line number of the second part is the number of a sense: its kind (n, v, a, r),
the number of its domain, and after commas the senses above it, and after `!` those that say the opposite. Of an
adjective, the sense above is the one that it is similar to.

Kept are the words that are used (WordNet counts them in tagged texts), those of our own tables, everyday things and
persons, and what is derived from them; the thousands of names of species and places are not.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.learn import lexicon

SOURCE = Path(__file__).parent.parent / "src" / "holdfast"
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
KINDS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
MOST_SENSES = 5  # of a part of speech; the later ones are rare, and make anything similar to anything
LEAST_SHARE = 0.06
Senses = dict[str, dict[str, tuple[float, float]]]  # of a word, by sense: its share, its uses
EVERYDAY = frozenset({6, 8, 13, 18, 21, 23, 26, 27, 28})  # artifact body food person possession … time


@dataclass(slots=True)
class Synset:
    """A sense: its words, what is above it, its opposites, and words derived from its words."""

    kind: str
    domain: int
    words: list[str]
    above: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    derived: list[tuple[int, str, int]] = field(default_factory=list)  # which word, of which sense which word


def read_synsets(folder: Path) -> dict[str, Synset]:
    """Read the senses, by part of speech and offset."""
    found = {}
    for kind, name in FILES.items():
        for line in (folder / f"data.{name}").read_text("utf-8").splitlines():
            if not line.startswith("  "):
                parts = line.split(" | ")[0].split()
                found[kind + parts[0]] = _synset(kind, parts)
    return found


def _synset(kind: str, parts: list[str]) -> Synset:
    count = int(parts[3], 16)
    words = [re.sub(r"\(.*\)", "", parts[4 + 2 * n]).lower() for n in range(count)]
    made = Synset(kind, int(parts[1]), words)
    place = 4 + 2 * count
    for n in range(int(parts[place])):
        symbol, offset, pos, ends = parts[place + 1 + 4 * n : place + 5 + 4 * n]
        target = pos.replace("s", "a") + offset
        if symbol in ("@", "@i", "&"):
            made.above.append(target)
        elif symbol == "!":
            made.against.append(target)
        elif symbol in ("+", "\\", "<"):  # not "=": tall and short would both be height
            made.derived.append((int(ends[:2], 16), target, int(f"0x{ends[2:]}", 0)))
    return made


def read_uses(folder: Path) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
    """Read the senses of each word and part of speech: rank, count in tagged texts, sense."""
    uses: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for line in (folder / "index.sense").read_text("utf-8").splitlines():
        key, offset, rank, count = line.split()
        word, _, rest = key.partition("%")
        kind = KINDS[rest[0]]
        uses[word, kind].append((int(rank), int(count), kind + offset))
    for senses in uses.values():
        senses.sort()
    return uses


def own_words() -> set[str]:
    """Give the words of our own tables."""
    tables = [*SOURCE.glob("learn/*.txt"), SOURCE / "text" / "related.txt"]
    return {
        lexicon.stem(word)
        for table in tables
        for word in re.findall(r"[a-z]{3,}", table.read_text("utf-8").lower())
    }


def kept_words(
    uses: dict[tuple[str, str], list[tuple[int, int, str]]], synsets: dict[str, Synset]
) -> set[str]:
    """Choose the words that are worth their place."""
    own, kept = own_words(), set()
    for (word, kind), senses in uses.items():
        if not re.fullmatch(r"[a-z]+([-_][a-z]+){0,2}", word) or len(word) < 2:
            continue
        total = sum(count for _, count, _ in senses)
        whole = "_" not in word
        everyday = kind == "n" and synsets[senses[0][2]].domain in EVERYDAY and len(word) < 9
        if total > 1 or (whole and (total or lexicon.stem(word) in own or len(senses) > 3 or everyday)):
            kept.add(word)
    near = set()
    for (word, _), senses in uses.items():
        if word in kept:
            usual = [sense for rank, count, sense in senses if rank == 1 or (rank < 4 and count)]
            for sense in usual:
                near.update(w for w in synsets[sense].words if len(w) < 14 and w.count("_") < 2)
                near.update(synsets[t].words[n - 1] for _, t, n in synsets[sense].derived if n)
    return kept | {word for word in near if re.fullmatch(r"[a-z]+([-_][a-z]+){0,2}", word)}


def stem(word: str) -> str:
    """Bring a word, or each word of a phrase, to its normal form."""
    return " ".join(lexicon.stem(part) for part in re.split("[-_]", word))


def shares(senses: list[tuple[int, int, str]]) -> list[tuple[float, float, str]]:
    """Give the usual senses: the share of the uses as this part of speech, the uses, the sense."""
    total = sum(count + 1 / rank for rank, count, _ in senses)
    found = [(count + 1 / rank, sense) for rank, count, sense in senses[:MOST_SENSES]]
    return [(uses / total, uses, sense) for uses, sense in found if uses / total >= LEAST_SHARE]


def main(folder: Path) -> None:
    """Write the file."""
    synsets, uses = read_synsets(folder), read_uses(folder)
    kept = kept_words(uses, synsets)
    senses: Senses = defaultdict(dict)
    derived: dict[str, set[str]] = defaultdict(set)
    for (word, _), of in uses.items():
        if word not in kept:
            continue
        key = stem(word)
        for share, often, sense in shares(of):
            senses[key][sense] = max((share, often), senses[key].get(sense, (0.0, 0.0)))
            for n, target, m in synsets[sense].derived:
                names = [synsets[target].words[m - 1]] if m else synsets[target].words[:2]
                if not n or synsets[sense].words[n - 1] == word:
                    derived[key].update(stem(name) for name in names if name in kept)
    write(SOURCE / "learn" / "synonyms.txt.gz", synsets, senses, derived)


def write(path: Path, synsets: dict[str, Synset], senses: Senses, derived: dict[str, set[str]]) -> None:
    """Give a number to each sense in use and those above it, and write both parts."""
    numbers: dict[str, int] = {}
    pending = [sense for of in senses.values() for sense in of]
    while pending:
        sense = pending.pop()
        if sense not in numbers:
            numbers[sense] = len(numbers)
            pending.extend(synsets[sense].above + synsets[sense].against)
    words = []
    for key, of in sorted(senses.items()):
        ranked = sorted(of.items(), key=lambda item: (-item[1][1], item[0]))
        listed = " ".join(f"{numbers[sense]:x}+{min(9, int(share * 10))}" for sense, (share, _) in ranked)
        words.append(f"{key}\t{listed}\t{','.join(sorted(derived[key] - {key}))}")
    lines = []
    for sense in numbers:
        made = synsets[sense]
        above, against = (",".join(f"{numbers[t]:x}" for t in of) for of in (made.above, made.against))
        lines.append(f"{made.kind}{made.domain:x},{above}!{against}".rstrip("!").rstrip(","))
    text = "\n".join([*words, "", *lines])
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(len(words), "words,", len(lines), "senses,", path.stat().st_size, "bytes")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
