"""Tables of any program, CSV, JSONL and JSON, as messages or records, by the column of each field."""

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, cast

from holdfast.errors import InvalidInput, shown
from holdfast.port import formats, texts
from holdfast.port.handles import NewRecord
from holdfast_cli.formats.files import BAD_BYTE, MAX_LINE, File, lines, values
from holdfast_cli.formats.import_items import ImportedChat, ImportedRecord, Item, Skip, item_of
from holdfast_cli.formats.json_values import dict_of, hash_of, repeat_id

MESSAGE_FIELDS = ("content", "role", "at", "chat", "name", "id", "title", "meta")
RECORD_FIELDS = ("text", "kind", "category", "tags", "target", "since", "until", "source", "id", "meta")
ALL = "*"  # of `meta`: every column that is no other field
# Where the rows of JSON are, the object around one, and the beginning of what all rows have.
ROWS, _AROUND, _CONSTANT = "rows", "^", "="
_ENDINGS = {".csv": "CSV", ".tsv": "CSV", ".jsonl": "JSONL", ".ndjson": "JSONL", ".json": "JSON"}
_LARGEST = 16 << 20  # characters of one field, and of one line
_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
_SECONDS = re.compile(r"\d{9,16}(?:\.\d{1,9})?")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_REST = "the rest of the file was not read"
_HEAD = 50  # rows of JSON of which one must have words

_Row = Mapping[str, object]


class Table(NamedTuple):
    """The mapping of a table: the column of each field, and the encoding of a CSV without a mark."""

    columns: Mapping[str, str]
    encoding: str = "utf-8"

    @property
    def options(self) -> str:
        """The columns and the encoding, as text."""
        return json.dumps([sorted(self.columns.items()), self.encoding])


def check_table(columns: Mapping[str, str], encoding: str = "utf-8") -> Table:
    """Check how a table is to be read, and return that as a `Table`.

    Raises:
        InvalidInput: there is no such field or encoding, or neither `content` nor `text` is among the fields.

    """
    names = (*(RECORD_FIELDS if "text" in columns else MESSAGE_FIELDS), ROWS)
    for field in columns:
        if field not in names:
            raise InvalidInput(f"A table has no field {shown(field)}.", f"Use some of {', '.join(names)}.")
    if not {"content", "text"} & columns.keys():
        what = "The mapping names no words."
        raise InvalidInput(what, "Map `content` for messages, or `text` for records, to a column.")
    if columns.get("meta", ALL) != ALL:
        raise InvalidInput("`meta` takes all other columns.", f"Map it to {ALL!r}, or leave it out.")
    try:
        "a".encode(encoding)
    except (LookupError, UnicodeError) as error:
        raise InvalidInput(f"Unknown encoding {shown(encoding)}.", "Use a name such as 'cp1252'.") from error
    return Table(dict(columns), encoding)


def format_of(path: Path, table: Table) -> str:
    """Return "CSV", "JSONL" or "JSON" by the ending of a file.

    Raises:
        InvalidInput: it has another one, is none, or lacks a column.

    """
    form = _ENDINGS.get(path.suffix.lower(), "")
    if not form or not path.is_file():
        todo = f"Name files with the endings {', '.join(_ENDINGS)}."
        raise InvalidInput(f"{str(path)!r} is no table.", todo)
    if form == "JSON":
        words = table.columns.get("content") or table.columns["text"]
        head = islice(_objects(File.at(path), table), _HEAD)
        rows = [item[1] for item in head if not isinstance(item, Skip)]
        if rows and all(_cell(row, words) is None for row in rows):
            what = f"{str(path)!r} has no field {shown(words)}."
            raise InvalidInput(what, f"Its fields are {', '.join(map(repr, list(rows[0])[:20]))}.")
    elif form == "CSV":
        first = next(_cells(File.at(path), table), None)
        header = [] if first is None or isinstance(first, Skip) else first[1]
        for column in dict.fromkeys(table.columns.values()) if header else ():
            if column != ALL and not column.startswith(_CONSTANT) and header.count(column) != 1:
                number = "two columns" if column in header else "no column"
                what = f"{str(path)!r} has {number} {shown(column)}."
                raise InvalidInput(what, f"Its columns are {', '.join(map(repr, header[:20]))}.")
    return form


def read(table: Table, form: str, file: File) -> Iterator[Item]:
    """Yield the messages or records of a table, and the rows that are none."""
    counts: Counter[str] = Counter()
    columns = {field: column for field, column in table.columns.items() if field != ROWS}
    taken, absent = {*columns.values(), _AROUND}, {*columns.values()} - {ALL} if form == "JSON" else set()
    for item in _READERS[form](file, table):
        if isinstance(item, Skip):
            yield item
            continue
        line, row = item
        fields = {field: _cell(row, column) for field, column in columns.items() if column != ALL}
        absent -= {columns[field] for field, value in fields.items() if value is not None}
        beside = {key: value for key, value in row.items() if key not in taken and value not in (None, "")}
        meta = beside if "meta" in columns else {}
        if "text" in columns:
            yield _record(file.name, line, fields, meta)
        else:
            yield _message(file.name, line, fields, meta, counts)
    yield from (Skip(0, f"no row has the field {shown(column)}", problem=True) for column in sorted(absent))


def _message(name: str, line: int, fields: _Row, meta: _Row, counts: Counter[str]) -> Item:
    chat_id = _text(fields.get("chat"))
    chat = ImportedChat(chat_id or name, _text(fields.get("title")), by_file=not chat_id)
    role = _text(fields.get("role")).strip().lower() or "user"
    words = {"role": _ROLES.get(role, role), "content": _words(fields.get("content"))}
    at = fields.get("at")
    if isinstance(at, str) and _SECONDS.fullmatch(at.strip()):
        at = float(at)
    message = {**words, "name": _text(fields.get("name")) or None, "at": at or None}
    # The n-th row that says the same is known again wherever it stands.
    identity = _text(fields.get("id")) or repeat_id(counts, [chat_id, *message.values()])
    return item_of(chat, line, formats.parse, {**message, "id": identity, "meta": meta, "raw": None})


def _record(name: str, line: int, fields: _Row, meta: _Row) -> Item:
    fields = {**fields, "text": _words(fields.get("text"))}
    cells = {key: _text(value) for key, value in fields.items() if _text(value).strip()}
    text = cells.get("text", "")
    if not text:
        return Skip(line, "The text is blank.", problem=True)
    identity = cells.pop("id", "")
    where = identity or hash_of([cells.get("kind", ""), text])
    tags = [tag.strip() for tag in re.split(r"[,;]", cells.pop("tags", "")) if tag.strip()]
    new = {"kind": "fact", "source": f"table:{name}#{where}", **cells, "tags": tags, "meta": dict(meta)}
    return ImportedRecord(line, cast("NewRecord", new))


def _cell(row: _Row, column: str) -> object:
    """Return the value of a column; in JSON, that of `a.b` may be in an object `a`."""
    if column.startswith(_CONSTANT) and column not in row:
        return column.removeprefix(_CONSTANT)
    if column in row or "." not in column:
        return row.get(column)
    outer, _, inner = column.partition(".")
    return _cell(dict_of(row.get(outer)), inner)


def _text(value: object) -> str:
    if value is None:
        return ""
    return texts.clean(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(value: object) -> str:
    """Return a text; one that is written in parts, as chats with links have it, in one."""
    parts = [dict_of(part).get("text", part) for part in value] if isinstance(value, list) else []
    return _text("".join(map(str, parts)) if parts and all(isinstance(it, str) for it in parts) else value)


def _objects(file: File, table: Table) -> Iterator[tuple[int, dict[str, object]] | Skip]:
    """Yield the rows of a JSON file, each with the object around it as `^`."""
    path, number = table.columns.get(ROWS, ""), 0
    for item in values(file):
        if isinstance(item, Skip):
            yield item
            continue
        for around, row in _at(item[1], path.split(".") if path else [], {}):
            number += 1
            lost = Skip(number, f"no object at {shown(path)}" if path else "not a JSON object", problem=True)
            yield (number, {**row, _AROUND: around}) if isinstance(row, dict) else lost


def _at(value: object, path: list[str], around: object) -> Iterator[tuple[object, object]]:
    for inner in value if isinstance(value, list) else [value]:
        if path and isinstance(inner, dict):
            yield from _at(inner.get(path[0]), path[1:], inner)
        else:
            yield around, None if path else inner


def _rows(file: File, table: Table) -> Iterator[tuple[int, dict[str, object]] | Skip]:
    header: list[str] = []
    for item in _cells(file, table):
        if isinstance(item, Skip):
            yield item
            continue
        line, cells = item
        if not header:
            header = cells
        elif any(BAD_BYTE.search(cell) for cell in cells):
            yield Skip(line, "not valid in this encoding", problem=True)
        elif len(cells) != len(header):
            what = f"a row of {len(cells):,} columns, where the first one has {len(header):,}"
            yield Skip(line, what, problem=True)
        else:
            yield line, dict(zip(header, cells, strict=True))


def _cells(file: File, table: Table) -> Iterator[tuple[int, list[str]] | Skip]:
    """Yield the rows of a CSV with the lines that they begin at, the header first."""
    # Of the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST))
    with file.open() as stream:
        start = stream.read(3)
        stream.seek(0)
        mark = next((encoding for sign, encoding in _MARKS.items() if start.startswith(sign)), "")
        # UTF-16 has no bytes that could be kept apart.
        errors = "replace" if mark == "utf-16" else "surrogateescape"
        with io.TextIOWrapper(stream, mark or table.encoding, errors, newline="") as text:
            first = text.readline(_LARGEST)
            delimiter = max(",;\t", key=first.count)
            rows = csv.reader(_limit_lines(first, text), delimiter=delimiter)
            line = 1
            try:
                for cells in rows:
                    if cells:
                        yield line, cells
                    line = rows.line_num + 1
            except (csv.Error, UnicodeError) as error:
                yield Skip(line, f"no CSV ({error}); {_REST}", problem=True)


def _limit_lines(first: str, text: io.TextIOWrapper) -> Iterator[str]:
    for line in chain([first], iter(lambda: text.readline(_LARGEST), "")):
        if len(line) >= _LARGEST and not line.endswith(("\n", "\r")):
            raise csv.Error(f"a line of more than {_LARGEST >> 20} MiB")
        yield line


_READERS = {"CSV": _rows, "JSONL": lambda file, _: lines(file, MAX_LINE), "JSON": _objects}
