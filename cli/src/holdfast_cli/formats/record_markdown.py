"""Records as Markdown that one can read and edit, in sections by kind; `record_edits.py` takes edits over."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.kinds import FEEDBACK
from holdfast.types import Record
from holdfast_cli.formats.files import SAVE, File, beginning, text_problems
from holdfast_cli.formats.json_values import hash_of, list_of, text_of
from holdfast_cli.formats.marks import Marks, comment

EDITS = "records as Markdown"
"""The name of the format in reports."""
START = "<!-- Holdfast records -->"
_HELP = """
The text below a comment is a record. Edit it, and `holdfast import` takes the change over. An empty text
retracts the record; a line `<!-- new -->` begins another one of its kind. Leave all comments as they are.
"""
_MARKS = Marks("record", "new", "end", headed=("kind",))
# Files of agents are documents with white space that counts; feedback is no knowledge.
_NOT_WRITTEN = ("file", FEEDBACK)


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """A record as a file has it: its line, its id ("" for a new one), and the `base` that was exported."""

    line: int
    kind: str
    id: str
    base: str
    text: str
    category: str
    tags: tuple[str, ...]


def own_records(memory: Memory) -> list[Record]:
    """Return the records of the space that a handle writes to, without those that it only reads."""
    names = ("", memory.scope.reference(memory.scope.space))
    return [record for record in memory.records() if record.space in names]


class ExportedRecords(NamedTuple):
    """The number of records written, and the number of those that such a file never has, by kind."""

    records: int
    left_out: Counter[str]


def export_records(memory: Memory, stream: TextIO) -> ExportedRecords:
    """Write what is known as Markdown, in UTF-8, whose edits `import_paths` takes over.

    These are the records that `Memory.records` lists of the handle's own space: those of all kinds but files
    and feedback, without what waits in quarantine.
    """
    own = own_records(memory)
    left_out = Counter(record.kind for record in own if record.kind in _NOT_WRITTEN)
    kinds = dict.fromkeys(record.kind for record in own if record.kind not in _NOT_WRITTEN)
    stream.write(f"{START}\n{_HELP}")
    for kind in kinds:
        stream.write(f"\n## {kind}\n{comment('kind', {'kind': kind})}\n")
        for record in own:
            if record.kind == kind:
                stream.write(f"\n{_mark(record)}\n\n{_MARKS.escape(record.text)}\n")
    written = len(own) - left_out.total()
    stream.write(f"\n{comment('end', {'records': written})}\n")
    return ExportedRecords(written, left_out)


def _mark(record: Record) -> str:
    labels = {"category": record.category, "tags": list(record.tags)}
    return comment(
        "record", {"id": record.id, "as": digest(record), **{k: v for k, v in labels.items() if v}}
    )


def digest(record: Record | RecordEntry, text: str | None = None) -> str:
    """Return a short hash of a record's category, tags and text, or another text, to see a change."""
    return hash_of([(record.text if text is None else text).strip(), record.category, sorted(record.tags)])


def is_records(path: Path) -> bool:
    """Return whether a file is an export of records as Markdown, by its first line, in UTF-16 too."""
    start = beginning(path, 2 * len(START) + 3).replace(b"\0", b"")
    return start.lstrip(b"\xef\xbb\xbf\xff\xfe").startswith(START.encode())


def read_entries(file: File) -> tuple[list[RecordEntry], list[tuple[int, str]], int]:
    """Return the entries of a file, what is wrong in it by lines, and how many records were exported.

    Raises:
        InvalidInput: it is not UTF-8, or its end is missing, so that the last text may be a part of one.

    """
    if problem := next(text_problems(file), None):
        what = f"Line {problem.line} of {file.path!r} is {problem.reason}."
        raise InvalidInput(what, f"Nothing was changed: {SAVE}.")
    kind, entries, wrong = "", list[RecordEntry](), list[tuple[int, str]]()
    for name, line, fields, lines in _MARKS.blocks(file):
        text = _MARKS.unescape("\n".join(lines)).strip()
        if isinstance(fields, str):
            wrong.append((line, f"a comment that was changed: {fields}"))
        elif name == "end":
            total = fields.get("records")
            if text:
                wrong.append((line, "a text behind the end"))
            return entries, wrong, total if isinstance(total, int) else 0
        elif name == "record" and not text_of(fields.get("id")):
            wrong.append((line, "a comment that was changed: it has no id"))
        else:
            kind = text_of(fields.get("kind")) if name == "kind" else kind
            tags = tuple(tag for tag in list_of(fields.get("tags")) if isinstance(tag, str))
            identity, base, category = (text_of(fields.get(key)) for key in ("id", "as", "category"))
            if text or name == "record":
                entries.append(RecordEntry(line, kind, identity, base, text, category, tags))
    todo = "Nothing was changed. Export again, or bring back the comment at its end."
    raise InvalidInput(f"{file.path!r} is cut off: its last line is missing.", todo)
