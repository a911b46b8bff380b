"""The words that a transcript marks as private anywhere: messages before and after may repeat them."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast_cli.formats import claude_code
from holdfast_cli.formats.files import MAX_ROW, File
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.json_values import dict_of, text_of
from holdfast_cli.formats.redaction import words_marked
from holdfast_cli.formats.sources import SourceFile
from holdfast_cli.formats.zip_files import READ_ERRORS

_CHUNK = 1 << 20
_MARK = re.compile(rb"private", re.IGNORECASE)
_LENGTH = len(b"private") - 1
_SESSION = re.compile(r"[\w-]{1,100}")


def private_in(source: SourceFile) -> list[str]:
    """Return the private words in the prompts of a file, for a subagent's file also those of its session.

    Of a part of a session log, these are those of the whole log.
    """
    if source.format.name == "Claude Code" and (path := Path(source.file.path)).is_file():
        paths = [path, *filter(None, [_main_session(path, source)])]
        return [words for log in paths for words in _words_in_log(log)]
    # The pages of a database may divide a word, and be many more than those with messages.
    items = source.read() if source.format.is_database or _mentions(source.file) else ()
    messages = (item.message for item in items if isinstance(item, ImportedMessage))
    return [words for message in messages for words in words_marked(message)]


def _words_in_log(path: Path) -> Iterator[str]:
    """Yield the private words in the prompts of a session log; lines without the tag are not decoded."""
    # Whoever reads the messages reports an error.
    with suppress(OSError), path.open("rb") as stream:
        while line := stream.readline(MAX_ROW):
            if _MARK.search(line):
                yield from _words_in_line(line)


def _words_in_line(line: bytes) -> list[str]:
    try:
        inner = dict_of(claude_code.message_of(dict_of(json.loads(line))))
        return words_marked(formats.parse(inner)) if inner.get("role") == "user" else []
    except (ValueError, RecursionError, InvalidInput):
        return []


def _mentions(file: File) -> bool:
    """Return whether a file has the word of the tag, which is quicker to see than to read its messages."""
    # Whoever reads the messages reports an error.
    with suppress(*READ_ERRORS), file.open() as stream:
        tail = b""
        while chunk := stream.read(_CHUNK):
            if _MARK.search(tail + chunk):
                return True
            tail = chunk[-_LENGTH:]
    return False


def _main_session(path: Path, source: SourceFile) -> Path | None:
    """Return the log of the session that started a subagent, None for that of a session."""
    if not path.name.startswith("agent-"):
        return None
    if path.parent.name == "subagents":
        main = path.parents[1].with_name(f"{path.parents[1].name}.jsonl")
    else:
        first = next((item for item in source.read() if isinstance(item, ImportedMessage)), None)
        session = text_of((first.message.raw or {}).get("sessionId")) if first else ""
        main = path.with_name(f"{session if _SESSION.fullmatch(session) else '-'}.jsonl")
    return main if main != path and main.is_file() else None
