"""Hits of a search, and findings of the guard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from holdfast.types.messages import speaker, with_flags_when_read
from holdfast.types.reprs import brief

Source = Literal["message", "summary", "record"]
Prefer = Literal["latest"]
Untrusted = Literal["untrusted"]
SOURCES: tuple[Source, ...] = ("message", "summary", "record")


# The least share that is printed: a smaller one would read as 0%.
_TOLD = 0.005


class Why(Mapping[str, float]):
    """The reasons for a hit: the share of each signal in its score, and the words that matched.

    The shares add up to 1. Reads as a mapping and prints as a phrase: `words 61% (berlin, marathon), session
    39%`.
    """

    __slots__ = ("_shares", "words")

    def __init__(self, shares: Mapping[str, float], words: tuple[str, ...] = ()) -> None:
        self._shares = dict(sorted(shares.items(), key=lambda item: -item[1]))
        self.words = words

    def __getitem__(self, signal: str) -> float:
        return self._shares[signal]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def __str__(self) -> str:
        listed = {"words": f" ({', '.join(self.words)})"} if self.words else {}
        told = {name: share for name, share in self._shares.items() if share >= _TOLD or name in listed}
        return ", ".join(f"{name} {share:.0%}{listed.get(name, '')}" for name, share in told.items())

    def __repr__(self) -> str:
        return f"Why({self})"


@with_flags_when_read
@dataclass(frozen=True, slots=True)
class Hit:
    """A message, summary or record that recall found, with its score from 0 to 1 and the reasons for it.

    The score is how likely it is that this answers the query: comparable between queries and between sources,
    as far as other data are like those that it was fitted to (`docs/benchmarks.md`). Filters raise it where
    they leave less beside it. `source` is "message", "summary" or "record". Of a record, `kind` is its kind,
    `role` its writer, `at` when it was said, and `chat` and `seq` to `last_seq` where it was learned ("" and
    0 if that is unknown). Of a summary, `seq` to `last_seq` are its messages, which `Chat.expand` returns.
    `flags` name what the guard found in the text, and "quarantined" a record that waits for its release, or
    "released" one that was released.
    `wordings` are other words in which a record was said, and by which it is found as well. Credentials in
    the text and the name are masked, unless the recall asked to show them; `Chat.history` has the words as
    they were said. `space` says whose it is, as `reads` names it: "user", "tenant",
    "project:shop", "team:core". Of messages that say the same, one is a hit: `times` counts them, and `last`
    is when that was said last.
    """

    source: Source
    text: str
    score: float
    id: str = field(kw_only=True)
    chat: str = field(kw_only=True)
    seq: int = field(kw_only=True)
    role: str = field(kw_only=True)
    name: str | None = field(kw_only=True)
    at: datetime = field(kw_only=True)
    why: Why = field(kw_only=True, hash=False)
    last_seq: int = field(default=0, kw_only=True)
    kind: str = field(default="", kw_only=True)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    wordings: tuple[str, ...] = field(default=(), kw_only=True)
    space: str = field(default="", kw_only=True)
    times: int = field(default=1, kw_only=True)
    last: datetime | None = field(default=None, kw_only=True)

    __repr__ = brief

    @property
    def actor(self) -> str:
        """The speaker or writer, named as by `Message.actor`."""
        return speaker(self.role, self.name)


class Hits(list[Hit]):
    """What recall found, best first, and whether it could search as it should.

    `degraded` is the reason why only words were compared though there is an embedder: it failed, took too
    long, or knows no word of the query. None where nothing was left out.
    """

    __slots__ = ("degraded",)

    def __init__(self, hits: Iterable[Hit] = (), degraded: str | None = None) -> None:
        super().__init__(hits)
        self.degraded = degraded


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a text that may do harm: `text[start:end]`, and its kind.

    `kind` is "invisible", "disguise", "instruction" or "secret". When the text is to be remembered, a secret
    is redacted, the other kinds put the text into quarantine. `message` says in a few words what was found,
    and quotes nothing of the text.
    """

    kind: Literal["invisible", "disguise", "instruction", "secret"]
    start: int
    end: int
    message: str
