"""Arguments that several commands take: texts, writers, kinds, versions, dates, messages."""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from holdfast.cli.render.screen import read_end, read_time
from holdfast.errors import InvalidInput
from holdfast.kinds import KINDS
from holdfast.memory import Memory
from holdfast.records.view import View
from holdfast.text.references import Reference, read_reference, write_reference
from holdfast.types import WRITERS
from holdfast.types import Writer as Who

MESSAGES = "N|N-N|CHAT#N-N"
KIND_NAMES = ", ".join(kind.name for kind in KINDS)


@dataclass(frozen=True, slots=True)
class Point:
    """A version, or a time."""

    at: int | datetime

    def view(self, memory: Memory) -> View:
        """Return the records as of then."""
        return memory.at(self.at)


def one_of(choices: Collection[str]) -> Callable[[str], str]:
    """Return a parser that takes one of `choices`, and raises typer.BadParameter for anything else."""

    def parse(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(choices)}.")
        return text

    return parse


def moment(text: str) -> datetime:
    """Return the time that a text names.

    Raises:
        typer.BadParameter: it is no time.

    """
    return _read(read_time, text)


def end(text: str) -> datetime:
    """Return the time that a text names; of a day, its end.

    Raises:
        typer.BadParameter: it is no time.

    """
    return _read(read_end, text)


def _read(reader: Callable[[str], datetime], text: str) -> datetime:
    try:
        return reader(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-01-31, 2026-01-31T09:00, today, yesterday, 7d or 24h."
        ) from error


def read_point(text: str) -> Point:
    """Return the version or time that a text names; of a date, its end.

    Raises:
        typer.BadParameter: it is neither.

    """
    try:
        return Point(int(text) if text.isdecimal() else read_end(text))
    except ValueError as error:
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


def message_of(chat: str, message: Reference | None) -> int | None:
    """Return the number of a message of a chat.

    Raises:
        InvalidInput: it is of another chat.

    """
    if message is None:
        return None
    chat_of(message, chat)
    return message.first


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


By = Annotated[
    Who,
    typer.Option(
        parser=one_of(WRITERS),
        metavar="WRITER",
        help=f"Who writes; at a command line that is the user. One of {', '.join(WRITERS)}.",
    ),
]
At = Annotated[
    Point | None,
    typer.Option(
        parser=read_point, metavar="VERSION|DATE", help="As of this version, or the end of this date."
    ),
]
Tags = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; may be repeated.")]
Category = Annotated[str, typer.Option(help="One word for what it belongs to.")]
Priority = Annotated[
    int | None, typer.Option(min=1, max=10, help="How important it is; 10 is the most, 5 the default.")
]
ExpectedVersion = Annotated[
    int | None,
    typer.Option(min=0, metavar="VERSION", help="Only if this is still its version; 0 if there is none yet."),
]


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
