"""Edits of exported records, one by one; where both sides changed, both are shown and neither wins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from holdfast import Memory
from holdfast.errors import Conflict, Denied, InvalidInput
from holdfast.port.handles import NewRecord
from holdfast.port.imports import stored_text
from holdfast.types import Record
from holdfast_cli.formats.files import File
from holdfast_cli.formats.record_markdown import RecordEntry, digest, own_records, read_entries

_SOURCE = "markdown"
_EMPTY = "its text is empty in the file"
_CHANGED = "changed here and in the file since the export: left as it is here"
_GONE = "retracted here since the export: left so"
_UNKNOWN = "not known here, but of another memory, or erased: to add it, begin it with <!-- new -->"
_OTHER_KIND = "in the section of another kind, which a record cannot change"
_TWICE = "the file has it twice"
_ONLY_ONE = "there is a {} already, which is left as it is"
_MISSING = (
    "no longer in the file, and left as they are here: to retract a record, leave its comment without a text"
)


@dataclass(frozen=True, slots=True)
class RecordEdit:
    """The change of an entry in a file: the line, the id ("" of a new one), and the texts before and after.

    Of a "conflict" nothing was changed, and `why` says what stands against it: `before` is the text here,
    `after` that of the file.
    """

    action: Literal["add", "replace", "retract", "conflict"]
    line: int
    kind: str
    id: str
    before: str
    after: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class RecordEdits:
    """The edits of a file, the number of records that are as here, and what is wrong in it, by lines."""

    edits: tuple[RecordEdit, ...]
    unchanged: int
    wrong: tuple[tuple[int, str], ...]

    @property
    def conflicts(self) -> tuple[RecordEdit, ...]:
        """The edits that were not made."""
        return tuple(edit for edit in self.edits if edit.action == "conflict")


def apply_edits(memory: Memory, path: str | Path, *, dry_run: bool = False) -> RecordEdits:
    """Take the edits of records in an export as Markdown over, as the user's, and return them.

    An entry is compared with what was exported and with what is known now. One that nobody edited changes
    nothing, whatever happened here; one that was edited replaces or retracts the record, unless that changed
    too. Each edit is a change in the history, which `undo` takes back. With `dry_run` nothing is changed.
    The file is trusted as its user is: import only your own.

    Raises:
        InvalidInput: the file is cut off; nothing was changed.

    """
    entries, wrong, total = read_entries(File.at(Path(path)))
    records = {record.id: record for record in own_records(memory)}
    edits = tuple(
        edit if dry_run or edit.action == "conflict" else _apply(memory, edit, entry, records)
        for entry, edit in _edits_of(entries, records, lambda identity: bool(memory.changes(id=identity)))
    )
    missing = total - len({entry.id for entry in entries if entry.id})
    if missing > 0:
        wrong.append((0, f"{missing:,} of the {total:,} exported records are {_MISSING}"))
    return RecordEdits(edits, len(entries) - len(edits), tuple(wrong))


def _edits_of(
    entries: list[RecordEntry], records: dict[str, Record], was_known: Callable[[str], bool]
) -> Iterator[tuple[RecordEntry, RecordEdit]]:
    """Yield the entries that change something, or cannot, with what they change."""
    seen: set[object] = {(record.kind, record.text) for record in records.values()}
    single = {record.kind for record in records.values() if record.kind in ("profile", "soul")}
    for entry in entries:
        key: object = entry.id or (entry.kind, stored_text(entry.text))
        current = records.get(entry.id)
        here = current.text if current else ""
        edit = RecordEdit("conflict", entry.line, entry.kind, entry.id, here, entry.text)
        if not entry.id and key not in seen:
            addition = replace(edit, action="add")
            yield entry, replace(edit, why=_ONLY_ONE.format(entry.kind)) if entry.kind in single else addition
        elif entry.id and key in seen:
            yield entry, replace(edit, why=_TWICE)
        elif entry.id and current is None and not was_known(entry.id):
            yield entry, replace(edit, why=_UNKNOWN)
        elif entry.id and _is_edited(entry, current):
            yield entry, _of_record(edit, entry, current)
        seen.add(key)


def _is_edited(entry: RecordEntry, current: Record | None) -> bool:
    """Return whether an entry says something else than what was exported, and than what is known now."""
    if current is None:
        return bool(entry.text) and digest(entry) != entry.base
    is_same = digest(current) in (digest(entry), digest(entry, stored_text(entry.text)))
    return entry.kind != current.kind or not (is_same or digest(entry) == entry.base)


def _of_record(edit: RecordEdit, entry: RecordEntry, current: Record | None) -> RecordEdit:
    if current is None:
        return replace(edit, why=_GONE)
    if entry.kind != current.kind:
        return replace(edit, why=_OTHER_KIND)
    if digest(current) != entry.base:
        return replace(edit, why=_CHANGED)
    return replace(edit, action="replace" if entry.text else "retract")


def _apply(memory: Memory, edit: RecordEdit, entry: RecordEntry, records: dict[str, Record]) -> RecordEdit:
    """Make an edit, and return it; as a conflict where it is refused."""
    try:
        if edit.action == "add":
            new: NewRecord = {"text": edit.after, "kind": edit.kind, "source": _SOURCE}
            new |= {"category": entry.category, "tags": entry.tags}
            return replace(edit, id=memory.remember([new], by="user", merge=False)[0].id)
        version = records[edit.id].version
        if edit.action == "retract":
            memory.retract(edit.id, by="user", why=_EMPTY, expected_version=version)
        else:
            category, tags = entry.category, entry.tags
            memory.replace(
                edit.id, edit.after, by="user", expected_version=version, category=category, tags=tags
            )
    except (InvalidInput, Denied, Conflict) as error:
        return replace(edit, action="conflict", why=error.what.rstrip("."))
    return edit
