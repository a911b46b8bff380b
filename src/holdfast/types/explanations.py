"""Why a document is a hit of a query, or why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.types.hits import Hit

Place = Literal["text", "output", "neighbours", "related"]

# Characters of a text that a line quotes.
_QUOTED = 60
# Hits above it that are written out.
_ABOVE = 3
_PLACES: Mapping[Place, str] = {
    "output": "in output",
    "neighbours": "in its neighbours",
    "related": "as a related word",
}


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """A word of a query: where a document has it, and how many documents of its space have it.

    `places` are "text" (the document itself), "output" (output of a tool in it), "neighbours" (the messages
    next to it in its chat) and "related" (a word of like meaning, in it or its neighbours); none if it lacks
    the word.
    """

    word: str
    places: tuple[Place, ...]
    documents: int

    def __str__(self) -> str:
        having = f"in {self.documents:,} document{'' if self.documents == 1 else 's'}"
        elsewhere = [] if "text" in self.places else [_PLACES[place] for place in self.places]
        return f"{self.word} ({having}{'; here ' if elsewhere else ''}{' and '.join(elsewhere)})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message, record or summary is a hit of a query, or why not. Prints as a few lines.

    `hit` is the document with its score and the reasons for it: 0 and none where it has no score. `rank` is
    its place in the result, from 1 on, however long that is; None if it has no score or is excluded.
    `excluded` names what keeps it out: filters of the recall, as they are called there, "retracted" or
    "quarantined". `words` are those of the query that count; none for a record that is retracted or, unless
    `trust` is "untrusted", in quarantine, as its words are not indexed. `outranked_by` are the best of the
    hits above it, of all hits if it is none. `last_score` is that of the last hit within `limit`, None if
    there are no hits.
    """

    query: str
    hit: Hit
    rank: int | None = field(kw_only=True)
    limit: int = field(kw_only=True)
    excluded: tuple[str, ...] = field(kw_only=True)
    words: tuple[ExplainedWord, ...] = field(kw_only=True)
    outranked_by: tuple[Hit, ...] = field(kw_only=True)
    last_score: float | None = field(kw_only=True)

    @property
    def found(self) -> bool:
        """Whether a recall with this limit returns it."""
        return self.rank is not None and self.rank <= self.limit and not self.excluded

    @property
    def lacks(self) -> tuple[str, ...]:
        """The words of the query that it has nowhere."""
        return tuple(word.word for word in self.words if not word.places)

    def __str__(self) -> str:
        lines = [f"{_name(self.hit)} {self._verdict()}"]
        if self.hit.why:
            lines.append(f"Score {self.hit.score:.2f}: {self.hit.why}.")
        lines += _list_words("It has", (word for word in self.words if word.places))
        lines += _list_words("It lacks", (word for word in self.words if not word.places))
        for place, hit in enumerate(self.outranked_by[:_ABOVE], 1):
            lines.append(f"{place}. {hit.score:.2f}  {_name(hit)}  {_quote(hit.text)}")
        if self.last_score is not None and not self.found:
            lines.append(f"The last of the first {self.limit:,} hits has {self.last_score:.2f}.")
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.excluded:
            return f"is no hit, because of: {', '.join(self.excluded)}."
        if self.rank is None:
            return "is no hit: it has no word of the query."
        among = "" if self.found else f", not among the first {self.limit:,}"
        return f"is hit {self.rank:,}{among}."


def _name(hit: Hit) -> str:
    space = f"{hit.space}|" if "nearness" in hit.why else ""
    return f"{space}{hit.chat}#{hit.seq}" if hit.source == "message" else hit.id


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED].rstrip()}…"


def _list_words(head: str, words: Iterable[ExplainedWord]) -> list[str]:
    """Return the line that lists words, each with the number of documents that have it; none for none."""
    text = ", ".join(map(str, words))
    return [f"{head}: {text}."] if text else []
