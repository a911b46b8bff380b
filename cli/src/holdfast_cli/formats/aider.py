"""aider: the history of its chats, `.aider.chat.history.md`."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from holdfast_cli.formats import turns
from holdfast_cli.formats.files import MAX_LINE, File
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import hash_of, stable_id, time_of

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_MARKS = {"####": "user", ">": "note"}
_BREAK = "  "  # how aider ends a line of the user or of its own
_BLANK = "<blank>"  # what it writes of a prompt without words
_NAME = ".aider.chat.history.md"


_Line = tuple[int, str, str]  # its number, what it is, and its text


def is_history(text: str) -> bool:
    """Return whether a text that begins so is a history."""
    return _START.match(text) is not None


def read(file: File) -> Iterator[Item]:
    """Yield the prompts and answers of each start of aider, which is a chat with the time of its start.

    There are neither ids nor times of messages. Lines that aider writes itself are left out and counted, with
    the command line that it was started by, which stands before the first prompt.
    """
    folder = str(file.location.absolute().parent) if file.location and file.location.name == _NAME else ""
    start, chat, place = "", ImportedChat(file.name), 0
    for kind, group in groupby(_lines(file), itemgetter(1)):
        numbers, _, texts = zip(*group, strict=True)
        words = "\n".join(texts).strip()
        if kind == "start":
            start, place = texts[-1], 0
        elif kind == "note":
            yield from (Skip(number, "not conversation: written by aider") for number in numbers)
        elif kind == "user" and words in ("", _BLANK):
            yield Skip(numbers[0], "empty")
        elif kind and words:
            if not place:
                # Two projects may have begun in the same second.
                name, since = f"aider-{start}-{hash_of(words, 4)}", time_of(start)
                chat = ImportedChat(name, folder=folder, since=since)
            place += 1
            speaker = turns.Speaker(kind, stable_id(place, [kind, words]))
            yield from turns.messages_of(chat, numbers[0], speaker, [turns.words(words)], {})


def _lines(file: File) -> Iterator[_Line]:
    """Yield the lines with what they are: a start, a note, of a speaker, or "" between two prompts."""
    kind, has_prompt = "note", False
    ending = _BREAK if any(line.endswith(_BREAK) and _mark(line) for line in _texts(file)) else ""
    for number, text in enumerate(_texts(file), 1):
        # A heading or a quotation of an answer ends otherwise, unless an editor has cut the ends of lines.
        mark = _mark(text) if text.endswith(ending) else ""
        if start := _START.fullmatch(text):
            kind, has_prompt = "start", False
            yield (number, kind, start[1])
        elif mark:
            kind = _MARKS[mark]
            has_prompt |= kind == "user"
            yield (number, kind, text.removeprefix(mark).removeprefix(" ").removesuffix(ending))
        elif kind == "assistant" or text.strip():
            kind = "assistant" if has_prompt else "note"
            yield (number, kind, text)
        else:
            kind = "" if kind == "user" else kind
            yield (number, "", text)


def _mark(text: str) -> str:
    return next((mark for mark in _MARKS if text.startswith(f"{mark} ")), "")


def _texts(file: File) -> Iterator[str]:
    with file.open() as stream:
        for data in iter(lambda: stream.readline(MAX_LINE), b""):
            yield data.decode(errors="replace").removeprefix("\ufeff").rstrip("\r\n")
