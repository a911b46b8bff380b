"""The tables behind a statement: wordings of relations, and classes of values.

They are text files in this folder, read on first use. A wording is a run of stems; the longest one wins.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from holdfast.text import value_tokens
from holdfast.text.fillers import stem
from holdfast.text.tables import headed_lists


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a wording: the concepts it may stand for, their flags, its classes of values.

    Wordings of a concept tell of one thing; those that share a sense say the same of it.
    """

    keys: frozenset[str]
    flags: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    senses: frozenset[str] = frozenset()


Phrases = dict[str, list[tuple[tuple[str, ...], Meaning]]]
_FLAGS = frozenset({"one", "many", "verb", "change", "light", "condition", "plan"})


def stems(phrase: str) -> tuple[str, ...]:
    """Return the words of a phrase in the form of the tables."""
    words = phrase.lower().split()
    if phrase.isascii() and not any(word in value_tokens.SPECIAL or not word.isalpha() for word in words):
        # The same as by tokens, ten times as fast.
        return tuple(map(stem, words))
    return tuple(stem(token.key) for token in value_tokens.tokenize(phrase) if token.kind != "mark")


def _label(head: list[str]) -> tuple[str, set[str]]:
    """Return the name and the flags before the colon; `~` stands for the flag "not"."""
    name = " ".join(word for word in head if word not in _FLAGS)
    return name.lstrip("~"), {*head} & _FLAGS | ({"not"} if name.startswith("~") else set())


@cache
def openings() -> dict[str, tuple[Meaning | None, Phrases]]:
    """Return, by first stem, its meaning alone and the longer wordings by second stem, longest first."""
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    flags: dict[tuple[str, ...], set[str]] = defaultdict(set)
    classes: dict[str, set[str]] = defaultdict(set)
    senses: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for line, (head, body) in enumerate(headed_lists("holdfast.dedup", "paraphrases.txt")):
        name, marks = _label(head)
        for sense, wordings in enumerate(",".join(body).split("|")):
            for phrase in map(stems, wordings.split(",")):
                if phrase:
                    keys[phrase].add(f"={name}")
                    flags[phrase] |= marks
                    senses[phrase].add(f"{line}.{sense}")
    for head, members in headed_lists("holdfast.dedup", "classes.txt"):
        name, marks = _label(head)
        label = name + ("!" if "one" in marks else "?" if "condition" in marks else "")
        for written in members:
            member = stems(written)
            if member not in keys:
                keys[member].add(" ".join(member))
                senses[member].add(" ".join(member))
            for key in keys[member] | {f"={written}"}:
                classes[key].add(label)
    table: dict[str, tuple[Meaning | None, Phrases]] = {}
    for phrase in sorted(keys, key=len, reverse=True):
        labels = frozenset(label for key in keys[phrase] for label in classes.get(key, ()))
        entry = Meaning(frozenset(keys[phrase]), frozenset(flags[phrase]), labels, frozenset(senses[phrase]))
        _, longer = table.setdefault(phrase[0], (None, {}))
        if len(phrase) == 1:
            table[phrase[0]] = (entry, longer)
        else:
            longer.setdefault(phrase[1], []).append((phrase, entry))
    return table
