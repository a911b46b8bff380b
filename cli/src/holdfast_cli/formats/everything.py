"""Export and restore of all of a user as lines of JSON: chats, summaries, records with all versions, pads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.port import safekeeping
from holdfast.types import Scope
from holdfast_cli.formats.files import MAX_LINE, File, beginning, lines, object_in
from holdfast_cli.formats.import_items import Skip
from holdfast_cli.formats.json_values import dict_of

FORMAT = "Holdfast"
LEFT_OUT = "summaries, records, pads, snapshots, jobs and receipts"
"""The data that an export of chats leaves out."""
_SIGN = {"holdfast": "everything"}
_START = 4096  # bytes at most of the first line
_TOLD = 1000  # rows after which it is told how far a restore has come


def export_everything(memory: Memory, stream: TextIO) -> Mapping[str, int]:
    """Write all rows of a user, of all agents and projects, and return the number of rows of each table.

    `import_paths` restores a memory that answers the same. The rows are read in one transaction, and the text
    is ASCII. It contains credentials as they are stored: protect the file like the database.

    Raises:
        InvalidInput: the handle is bound to an agent.

    """
    written: Counter[str] = Counter()
    sign = json.dumps({**_SIGN, "schema": safekeeping.NEWEST}) + "\n"
    for project, table, row in safekeeping.read_rows(memory):
        place = {} if project is None else {"project": project}
        stream.write(f"{sign}{json.dumps({**place, 'table': table, 'row': row})}\n")
        written[table] += 1
        sign = ""
    stream.write(sign)
    return written


def is_everything(path: Path) -> bool:
    """Return whether `export_everything` wrote a file, by its first line."""
    return _sign(beginning(path, _START).partition(b"\n")[0]) is not None


def _sign(line: bytes) -> int | None:
    """Return the number of the schema that the first line of an export of everything tells."""
    value = dict_of(object_in(line))
    number = value.get("schema") if value.get("holdfast") == _SIGN["holdfast"] else None
    return number if isinstance(number, int) else None


def schema_of(file: File) -> int:
    """Return the number of the schema that an export of everything was written with."""
    with file.open() as stream:
        return _sign(stream.readline(_START)) or 0


def rows_of(
    scope: Scope, file: File, bad: list[tuple[int, str]], progress: Callable[[], None]
) -> Iterator[tuple[int, str, str, Mapping[str, object]]]:
    """Yield each row of an export with its line, its space and its table; collect invalid lines in `bad`.

    `progress` is called now and then.
    """
    for number, item in enumerate(lines(file, MAX_LINE)):
        if number % _TOLD == 0:
            progress()
        if isinstance(item, Skip):
            bad.append((item.line, item.reason))
            continue
        line, value = item
        table, row = value.get("table"), value.get("row")
        project: Any = value.get("project")
        if project is not None and (scope.project or scope.team):
            bad.append((line, f"of the project {project!r}: import it without --project and --team"))
        elif isinstance(table, str) and isinstance(row, dict):
            try:
                space = replace(scope, project=project).space if project is not None else scope.space
            except InvalidInput as error:
                bad.append((line, error.what))
            else:
                yield line, space, table, row
        elif "holdfast" not in value:
            bad.append((line, "neither a table nor a row"))
