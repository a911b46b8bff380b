"""What people and assistants say in four collections of conversations, statement by statement.

`tests/data/worth` says which of the statements are worth keeping.
They name a statement by source, session, message and place in the message, with a hash of the text, because
the texts must not be copied; here they are read from the collections. Nothing of how the package reads text
is used here: labels must stay valid when its splitting changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput

_Row = dict[str, Any]

LABELS = Path(__file__).parents[1] / "tests/data/worth"

# The rest of such a message is what a program put out, or was thought and not said.
_UNSAID = re.compile(r"^<(?:tool-use[ >]|think>)", re.MULTILINE)
_FENCE = re.compile(r"\s*(?:[-*+>]\s+|\d{1,3}[.)]\s+)?(`{3,}|~{3,})([^`]*)$")
_TAG = re.compile(r"\s*</?[a-z][^<>]*>\s*")
_MARKERS = re.compile(r"[\s|]*(?:(?:[-*+•>–]|#{1,6}|\d{1,3}[.)]|\[[ xX]\])\s+)*")
_STOP = re.compile(r"([.!?…]+)[\"'”’)\]*_`]*(?=\s)|[。！？]+[”’」』）]*")
# Before a full stop that ends nothing: an abbreviation, a single letter, the number of an item.
_ABBREVIATION = re.compile(
    r"^[\W_]*(?:\d{1,3}|[ivx]{1,4})$|(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|dr|mrs?|ms|st|jr|sr|inc|ltd|fig|[a-z])$",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A sentence, list item, table row or heading, and its place in the text of its message."""

    start: int
    end: int
    text: str


class Said(NamedTuple):
    """A message: its position in the session, from 0, as the collection counts; who spoke; the whole text."""

    position: int
    role: str
    speaker: str
    text: str

    def statements(self) -> list[Statement]:
        """List what is said in it, without code blocks and the output of tools."""
        return split(self.text)


class Session(NamedTuple):
    """The messages of one session, or one dialogue, in their order."""

    source: str
    id: str
    messages: tuple[Said, ...]


class Label(NamedTuple):
    """A statement that is worth keeping, `kinds` first the chief one; `repeat` if it was said before.

    `needs` are the places of the statements without which it is not understood: message, start, end.
    `settled` is false where those who labelled it disagree and nobody has decided: it counts neither way.
    """

    source: str
    session: str
    message: int
    start: int
    end: int
    hash: str
    kinds: tuple[str, ...]
    repeat: bool
    needs: tuple[tuple[int, int, int], ...]
    half: str
    settled: bool


class Labelled(NamedTuple):
    """A session that was labelled: its half, the places of all that was judged, the hash of the texts."""

    source: str
    session: str
    half: str
    statements: tuple[tuple[int, int, int], ...]
    hash: str


def split(text: str) -> list[Statement]:
    """Split a text into its statements."""
    found = _UNSAID.search(text)
    lines = _lines(text[: found.start()] if found else text)
    return [one for start, end in lines for one in _sentences(text, start, end)]


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the lines are that stand in no code block and are no mere tag."""
    start, fence = 0, ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip()
        mark = _FENCE.match(bare)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not mark[2].strip() else fence
        elif mark:
            fence = mark[1]
        elif not _TAG.fullmatch(bare):
            yield start, start + len(bare)
        start += len(line)


def _sentences(text: str, start: int, end: int) -> Iterator[Statement]:
    marker = _MARKERS.match(text, start, end)
    row = text.startswith("|", start)
    start = marker.end() if marker else start
    for found in () if row else _STOP.finditer(text, start, end):
        if _stops(text[start : found.start()], found[1] or "", text[found.end() : end].lstrip()):
            yield from _statement(text, start, found.end())
            start = found.end()
    yield from _statement(text, start, end)


def _stops(before: str, stop: str, after: str) -> bool:
    """Return whether a sentence ends where `stop` stands; "" is one that no other use has."""
    if not stop:
        return True
    if not after or before.count("`") % 2 or (stop == "." and _ABBREVIATION.search(before)):
        return False
    # An ellipsis goes on in small letters; people who write only small letters still end sentences.
    return not after[0].islower() or stop in ".!?"


def _statement(text: str, start: int, end: int) -> Iterator[Statement]:
    piece = text[start:end]
    bare = piece.strip(" \t\r\f\v|")
    if any(map(str.isalnum, bare)):
        first = start + piece.index(bare)
        yield Statement(first, first + len(bare), bare)


def hash_of(text: str) -> str:
    """Return a short hash that shows whether a text is still the one that was labelled."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def half_of(source: str, session: str) -> str:
    """Return the half that a session is in: rules are fitted to `tune` and judged by `held_out`."""
    # The first number that leaves 43 % or more of each collection, and of what users say, in either half;
    # chosen before there was a label.
    return ("tune", "held_out")[int(hash_of(f"worth 344 {source} {session}"), 16) % 2]


def read_sessions(data: Path) -> Iterator[Session]:
    """Yield all sessions of the four collections in `data`, in an order that is always the same."""
    for path in sorted((data / "agent_sessions").glob("*.jsonl")):
        if path.name != "questions.jsonl":
            rows = list(_rows(path))
            read = _client_log if "role" not in rows[0] else _lines_of_chat
            yield Session("agent", path.stem, tuple(read(rows)))
    for row in _rows(data / "tool_dialogues/tau_airline.jsonl"):
        yield Session("tau", row["id"], tuple(_lines_of_chat(row["messages"])))
    yield from _locomo(json.loads((data / "locomo/locomo_dev.json").read_text("utf-8")))
    for path in sorted((data / "realmem").glob("*.json")):
        yield from _realmem(
            path.name.removesuffix("_dialogues_256k.json"), json.loads(path.read_text("utf-8"))
        )


def _text(value: object) -> str:
    """Return the text of a message's content, of whose blocks only those of text are said."""
    if isinstance(value, list):
        blocks = (one for one in value if isinstance(one, dict) and one.get("type") == "text")
        return "\n\n".join(str(one["text"]) for one in blocks)
    return value if isinstance(value, str) else ""


def _lines_of_chat(rows: list[_Row]) -> Iterator[Said]:
    for index, row in enumerate(rows):
        if row["role"] in ("user", "assistant"):
            yield Said(index, row["role"], "", _text(row["content"]))


def _client_log(rows: list[_Row]) -> Iterator[Said]:
    for index, row in enumerate(row for row in rows if row["type"] in ("user", "assistant")):
        yield Said(index, row["type"], "", _text(row["message"]["content"]))


def _locomo(conversations: list[_Row]) -> Iterator[Session]:
    for one in conversations:
        said, pair = one["conversation"], one["sample_id"]
        names = [name for name in said if re.fullmatch(r"session_\d+", name)]
        for name in sorted(names, key=lambda name: int(name[8:])):
            turns = (
                Said(index, "user", turn["speaker"], turn["text"]) for index, turn in enumerate(said[name])
            )
            yield Session("locomo", f"{pair}/{name}", tuple(turns))


def _realmem(person: str, row: _Row) -> Iterator[Session]:
    for one in row["dialogues"]:
        speaker = person.replace("_", " ")
        turns = (
            Said(index, role, speaker * (role == "user"), turn["content"])
            for index, turn in enumerate(one["dialogue_turns"])
            for role in (turn["speaker"].lower(),)
        )
        yield Session("realmem", f"{person}/{one['session_uuid']}", tuple(turns))


def read_labels(folder: Path = LABELS) -> list[Label]:
    """Return the statements that are worth keeping, or of which that is not settled."""
    return [
        Label(**row | {"kinds": tuple(row["kinds"]), "needs": tuple(map(tuple, row["needs"]))})
        for row in _rows(folder / "labels.jsonl")
    ]


def read_labelled(data: Path, folder: Path = LABELS) -> list[tuple[Session, Labelled]]:
    """Return the sessions that were labelled, each with what was judged in it.

    Raises:
        InvalidInput: a session is missing, or its words are not those that were labelled.

    """
    sessions = {(one.source, one.id): one for one in read_sessions(data)}
    found = []
    for row in _rows(folder / "sessions.jsonl"):
        judged = Labelled(**row | {"statements": tuple(map(tuple, row["statements"]))})
        session = sessions.get((judged.source, judged.session))
        if session is None or hash_of_session(session, judged.statements) != judged.hash:
            raise InvalidInput(
                f"Session {judged.session} of {judged.source} is not the one that was labelled.",
                "Use the data that the labels were made for, or label it again.",
            )
        found.append((session, judged))
    return found


def hash_of_session(session: Session, places: Iterable[tuple[int, int, int]]) -> str:
    """Return a hash of the texts that stand in these places of a session."""
    texts = {message.position: message.text for message in session.messages}
    return hash_of("\n".join(texts.get(index, "")[start:end] for index, start, end in places))


def _rows(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
