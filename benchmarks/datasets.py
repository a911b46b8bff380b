"""The one form into which data sets of questions with known answers are read, and what reads their files."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.text.clean import clean
from holdfast.types import Message, Role
from holdfast_cli.formats.json_values import text_of

Unit = Literal["message", "session"]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ids of what answers it; without any it is not scored, and counted as left out.

    `outdated` was once an answer and no longer is. `before` is the number of sessions that there are when it
    is asked; all of them when None.
    """

    text: str
    kind: str
    gold: tuple[str, ...]
    answer: str = ""
    outdated: tuple[str, ...] = ()
    before: int | None = None


class Session(NamedTuple):
    """The messages of a session, with the ids that a question's gold names where the unit is the message."""

    id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that one memory holds, in the order in which it was said, and what is asked of it.

    `files` are those that it was read from.
    """

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    unit: Unit = "message"
    files: tuple[Path, ...] = field(default=(), compare=False)

    def messages(self) -> list[Message]:
        """List the messages of all sessions."""
        return [message for session in self.sessions for message in session.messages]

    def asked(self) -> Iterator[tuple[Question, list[Session]]]:
        """Yield each question with the sessions that are new when it is asked and have messages."""
        there = 0
        for question in self.questions:
            wanted = len(self.sessions) if question.before is None else question.before
            yield question, [one for one in self.sessions[there:wanted] if one.messages]
            there = max(there, wanted)


class Reader(NamedTuple):
    """What reads one kind of data set: the test of a parsed file, and the corpora of such a file.

    Of a file of lines, the first one is tested. `main` are the kinds of question that the main figure counts,
    all when empty.
    """

    name: str
    knows: Callable[[object], bool]
    read: Callable[[Path, object], Iterator[Corpus]]
    main: tuple[str, ...] = ()


def parsed(path: Path) -> object:
    """Parse a JSON file; of one with a value a line, plain or gzip, the first value.

    Raises:
        InvalidInput: it cannot be read, or is no JSON.

    """
    try:
        if ".jsonl" in path.suffixes:
            return next(iter(lines(path)), None)
        with path.open("rb") as file:
            return json.load(file)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}).", "Give JSON or JSON lines.") from error


def lines(path: Path) -> Iterator[object]:
    """Yield the values of a file that has one a line, plain or gzip."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def dicts_of(value: object) -> list[dict[str, object]]:
    """Return the items of a list, each that is no dict as an empty one; none of what is no list."""
    return [entry if isinstance(entry, dict) else {} for entry in value] if isinstance(value, list) else []


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts in a list, each once."""
    return tuple(dict.fromkeys(filter(None, map(text_of, value)))) if isinstance(value, list) else ()


def said(
    role: object, text: str, id: str = "", *, name: object = None, at: datetime | None = None
) -> tuple[Message, ...]:
    """Return the message that was said, none when its text is blank; by a user, but for other known roles."""
    content = clean(text)
    if not content.strip():
        return ()
    known: Role = role if role in ("assistant", "tool", "system") else "user"
    return (Message(known, content, id=clean(id), name=clean(text_of(name)) or None, at=at),)


def moment(pattern: re.Pattern[str], text: str) -> datetime | None:
    """Read a time by a pattern with the groups `year`, `month`, `day`, and what there is of the others.

    The month is a number or its English name, in any locale; `half` is the "a" or "p" of a 12-hour clock.
    """
    found = pattern.search(text)
    if found is None:
        return None
    part = found.groupdict()
    month, hour = part["month"][:3].lower(), int(part.get("hour") or 0)
    if "half" in part:
        hour = hour % 12 + 12 * (part["half"].lower() == "p")
    try:
        number = _MONTHS.index(month) + 1 if month.isalpha() else int(month)
        day = int(part["year"]), number, int(part["day"])
        return datetime(*day, hour, int(part.get("minute") or 0), tzinfo=UTC)
    except ValueError:
        return None


def unknown_gold(corpus: Corpus) -> str:
    """Return the first id that a question names and the corpus does not have; "" when there is none."""
    known = (
        {session.id for session in corpus.sessions}
        if corpus.unit == "session"
        else {message.id for message in corpus.messages()}
    )
    named = (id for question in corpus.questions for id in (*question.gold, *question.outdated))
    return next((id for id in named if id not in known), "")


def is_dict_with(value: object, *keys: str) -> bool:
    """Return whether a value is a dict with all of these keys."""
    return isinstance(value, Mapping) and all(key in value for key in keys)
