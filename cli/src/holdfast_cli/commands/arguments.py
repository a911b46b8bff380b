"""Arguments that several commands take: chats, messages, versions, times, texts, limits."""

import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import typer

from holdfast.errors import InvalidInput
from holdfast.types.references import Reference, read_reference, write_reference

_AGO = re.compile(r"([0-9]{1,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAYS_AGO = {"today": 0, "yesterday": 1}


@dataclass(frozen=True, slots=True)
class Point:
    """A version, or a time."""

    at: int | datetime


class Points(NamedTuple):
    """Two versions or times; without the last, up to now."""

    first: Point
    last: Point | None


def read_time(text: str, *, ends: bool = False) -> datetime:
    """Return the time that a text names: a date, or where it `ends` something its end, or a time.

    `today`, `yesterday`, `7d` and `24h` are names as well.

    Raises:
        typer.BadParameter: it is none of these, or beyond the years that a calendar has.

    """
    now, at = datetime.now().astimezone(), text
    try:
        if ago := _AGO.fullmatch(text):
            return now - int(ago[1]) * _UNITS[ago[2]]
        if text in _DAYS_AGO:
            at = f"{now.date() - timedelta(days=_DAYS_AGO[text])}"
        is_day = len(at) <= len("2026-01-31")
        return (datetime.fromisoformat(at) + timedelta(days=ends and is_day)).astimezone()
    except (OverflowError, ValueError) as error:
        todo = "write 2026-01-31, 2026-01-31T09:00, today, yesterday, 7d or 24h."
        raise typer.BadParameter(f"{text!r} is not a time: {todo}") from error


def read_end(text: str) -> datetime:
    """Return the end of the day that a text names, or else the time; see `read_time`."""
    return read_time(text, ends=True)


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
    message = Reference("", 0, 0) if text == "0" else read_reference(text)
    if message is None or message.first != message.last:
        raise typer.BadParameter(f"{text!r} is not a message such as 7 or monday#7.")
    return message


def read_messages(text: str) -> Reference:
    """Return the messages that `3`, `3-7` or `chat#3-7` names.

    Raises:
        typer.BadParameter: it is none of these.

    """
    if (messages := read_reference(text)) is None:
        raise typer.BadParameter(f"{text!r} is not a message or range such as 3, 3-7 or monday#3-7.")
    return messages


def read_range(text: str) -> Points:
    """Return the two versions or times that a text names, as `1..2`; with one, up to now."""
    first, _, last = text.partition("..")
    return Points(read_point(first), read_point(last) if last else None)


def read_duration(text: str) -> timedelta:
    """Return the time span that `30m`, `2h` or `1d` names.

    Raises:
        typer.BadParameter: it is none.

    """
    span = _AGO.fullmatch("".join(text.split()))
    if not span or int(span[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no time. Write 30m, 2h or 1d.")
    return int(span[1]) * _UNITS[span[2]]


def check_path(paths: list[Path] | None) -> list[Path] | None:
    """Refuse paths of which none exists; a match of `*` may be a broken link."""
    if paths and not any(map(os.path.lexists, paths)):
        raise typer.BadParameter(f"Path {str(paths[0])!r} does not exist.")
    return paths


def read_prompt(text: str) -> str:
    """Return the name of a prompt: a version, or a file that cannot be taken for one.

    Raises:
        typer.BadParameter: it is a file that looks like a version.

    """
    file = Path(text)
    if ".md" not in text and len(file.parts) == 1 and file.is_file():
        raise typer.BadParameter(
            f"{text!r} is read as a version. A file is named with its folder, or ends with .md.",
            param_hint="--prompt",
        )
    return text


def prompt_versions(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the versions of prompts that options name, by kind."""
    prompts = {}
    for text in texts or ():
        kind, _, version = text.partition("=")
        if not (kind and version):
            raise typer.BadParameter(f"{text!r} is not like leaf=v1.", param_hint="--prompt")
        prompts[kind] = read_prompt(version)
    return prompts


def one_of(choices: Collection[str]) -> Callable[[str], str]:
    """Return a parser that takes one of `choices`, and raises typer.BadParameter for anything else."""

    def parse(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(choices)}.")
        return text

    return parse


def chat_of(messages: Reference, chat: str | None) -> str:
    """Return the chat of a range of messages, named in it or beside it.

    Raises:
        InvalidInput: no chat is named, or two are.

    """
    chat_id = messages.chat or chat
    if not chat_id:
        raise InvalidInput("Messages belong to a chat.", "Pass --chat as well, or write them as CHAT#3-7.")
    if chat not in (None, chat_id):
        what = write_reference(*messages)
        raise InvalidInput(f"{what} belongs to another chat than {chat!r}.", "Name one chat.")
    return chat_id


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
