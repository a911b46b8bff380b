"""Arguments that several commands take: chats, messages, versions, times, texts, limits."""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Annotated, TypeVar

import typer
from typer import Argument, Option

from holdfast.cli.options import one_of
from holdfast.errors import InvalidInput
from holdfast.kinds import KINDS
from holdfast.text.references import Reference, read_reference, write_reference
from holdfast.types import WRITERS, Writer

KIND_NAMES = ", ".join(kind.name for kind in KINDS)
_AGO = re.compile(r"([0-9]{1,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAYS_AGO = {"today": 0, "yesterday": 1}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """A version, or a time."""

    at: int | datetime


def read_time(text: str) -> datetime:
    """Return the time that a text names: a date, a time, `today`, `yesterday`, `7d`, `24h`.

    Raises:
        typer.BadParameter: it is none of these, or beyond the years that a calendar has.

    """
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now().astimezone() - int(ago[1]) * _UNITS[ago[2]]
        day = _day(text)
        return (datetime.combine(day, time()) if day else datetime.fromisoformat(text)).astimezone()
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-01-31, 2026-01-31T09:00, today, yesterday, 7d or 24h."
        ) from error


def read_end(text: str) -> datetime:
    """Return the end of a period: of a day, its end; of anything else, what `read_time` returns.

    Raises:
        typer.BadParameter: it is no time.

    """
    try:
        day = _day(text)
        return datetime.combine(day + timedelta(days=1), time()).astimezone() if day else read_time(text)
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is beyond the years that a calendar has.") from error


def _day(text: str) -> date | None:
    """Read a day by its name or its date."""
    if text in _DAYS_AGO:
        return datetime.now().astimezone().date() - timedelta(days=_DAYS_AGO[text])
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_point(text: str) -> Point:
    """Return the version or time that a text names; of a date, its end.

    Raises:
        typer.BadParameter: it is neither.

    """
    try:
        return Point(int(text) if text.isdecimal() else read_end(text))
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{text!r} is neither a version nor a date.") from error


def read_message(text: str) -> Reference:
    """Return the message that `7` or `chat#7` names; 0 is before the first.

    Raises:
        typer.BadParameter: it is neither.

    """
    found = Reference("", 0, 0) if text == "0" else read_reference(text)
    if found is None or found.first != found.last:
        raise typer.BadParameter(f"{text!r} is not a message such as 7 or monday#7.")
    return found


def read_messages(text: str) -> Reference:
    """Return the messages that `3`, `3-7` or `chat#3-7` names.

    Raises:
        typer.BadParameter: it is none of these.

    """
    if (found := read_reference(text)) is None:
        raise typer.BadParameter(f"{text!r} is not a message or range such as 3, 3-7 or monday#3-7.")
    return found


def chat_of(messages: Reference, chat: str | None) -> str:
    """Return the chat of some messages, which may be named beside them.

    Raises:
        InvalidInput: no chat is named, or two are.

    """
    named = messages.chat or chat
    if not named:
        raise InvalidInput("Messages belong to a chat.", "Pass --chat as well, or write them as CHAT#3-7.")
    if chat not in (None, named):
        what = write_reference(*messages)
        raise InvalidInput(f"{what} belongs to another chat than {chat!r}.", "Name one chat.")
    return named


def text_of(words: Sequence[str]) -> str:
    """Return the words as one text; for a lone `-`, standard input.

    Raises:
        InvalidInput: standard input is not text.

    """
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        return sys.stdin.read() if sys.stdin else ""
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not text.", f"Send it as {sys.stdin.encoding}.") from error


def page(found: Iterable[T], limit: int | None) -> tuple[list[T], bool]:
    """Return the first `limit` results, and whether there are more."""
    shown = list(islice(found, None if limit is None else limit + 1))
    return shown[:limit], limit is not None and len(shown) > limit


ChatId = Annotated[str, Argument(metavar="CHAT", help="The id of a chat; `holdfast chats` lists them.")]
OnlyChat = Annotated[str | None, Option(metavar="CHAT", help="Only in this chat.")]
MessageRange = Annotated[
    Reference | None,
    Option(parser=read_messages, metavar="N|N-N|CHAT#N-N", help="Only these messages of the chat."),
]
Query = Annotated[list[str], Argument(metavar="QUERY", help="A question or some words; no quotes needed.")]
Since = Annotated[
    datetime | None, Option(parser=read_time, metavar="7d|24h|DATE", help="Only from this time on.")
]
ValidAt = Annotated[
    datetime | None,
    Option(parser=read_time, metavar="DATE", help="Only records that are true in the world at this time."),
]
OnlyKind = Annotated[str | None, Option(help=f"Only of this kind: {KIND_NAMES}.")]
OnlyTag = Annotated[
    list[str] | None, Option(metavar="TAG", help="Only records with this tag; of several, one is enough.")
]
Limit = Annotated[int, Option(min=0, help="At most so many.")]
LimitOrAll = Annotated[int | None, Option(min=0, help="At most so many; all without it.")]
Offset = Annotated[int, Option(min=0, help="Leave out so many of the first.")]
Full = Annotated[bool, Option("--full", help="Do not shorten tool results and other long texts.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Llm = Annotated[str | None, Option(metavar="NAME", help="The model to ask, such as openai:gpt-5-mini.")]
By = Annotated[
    Writer,
    Option(parser=one_of(WRITERS), metavar="WRITER", help=f"Who writes: {', '.join(WRITERS)}."),
]
