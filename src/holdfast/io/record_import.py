"""Records of a file, each stored once: what changed at its source follows it, what changed here stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from holdfast.errors import Conflict, Denied, InvalidInput
from holdfast.io.everything import database_of
from holdfast.io.import_items import ImportedRecord, Skip
from holdfast.records.draft import check_text
from holdfast.runtime import runtime_of
from holdfast.safety import guard
from holdfast.store.record_sources import versions_by_source
from holdfast.text.clean import clean

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.records.options import NewRecord
    from holdfast.store.record_changes import Writing
    from holdfast.types import Record

_RETRACTED = "retracted here since it was imported, and left so"
_BOTH = "changed here and at its source since it was imported: left as it is here"
_HELD = "stored in quarantine, since it looks like an order to the model: see `holdfast quarantine`"
_ONLY_ONE = "there is a {} already, which is left as it is"


# No error that anybody sees.
class _StoredMeanwhile(Exception):
    """Another import stored some of the same records since they were looked up."""


@dataclass(slots=True)
class StoredRecords:
    """What became of records: the number `added` or changed, that `present` before, and what is left out."""

    added: int = 0
    present: int = 0
    skips: list[Skip] = field(default_factory=list)


def store_records(memory: Memory, items: Sequence[ImportedRecord]) -> StoredRecords:
    """Store records that are new, and those that changed at their source and not here."""
    done, fresh = StoredRecords(), defaultdict[str, list[ImportedRecord]](list)
    database = database_of(memory) if items else None
    known = (
        versions_by_source(database, memory.scope.space, [item.source for item in items]) if database else {}
    )
    for item in items:
        if versions := known.get(item.source):
            _follow(memory, item, versions, done)
        else:
            fresh[item.agent].append(item)
    for agent, some in fresh.items():
        try:
            handle = memory.scoped(agent=clean(agent)) if agent else memory
        except InvalidInput as error:
            done.skips += [Skip(item.line, error.what, problem=True) for item in some]
        else:
            _add(handle, [item for item in some if _has_place(handle, item, done)], done)
    return done


def _follow(memory: Memory, item: ImportedRecord, versions: Sequence[Record], done: StoredRecords) -> None:
    """Bring a record that was imported before to the text that its source has now."""
    newest, imported = versions[-1], [one for one in versions if one.by == "import"][-1]
    if stored_text(item.record["text"]) == imported.text:
        done.present += 1
        if newest.retracted:
            done.skips.append(Skip(item.line, _RETRACTED))
    elif newest.retracted or newest.text != imported.text:
        done.skips.append(Skip(item.line, _BOTH, problem=True))
    else:
        try:
            memory.replace(newest.id, item.record["text"], by="import", expected_version=newest.version)
            done.added += 1
        except (InvalidInput, Denied, Conflict) as error:
            done.skips.append(Skip(item.line, error.what, problem=True))


def stored_text(text: str) -> str:
    """Return a text as it is stored; the same text if it cannot be."""
    try:
        checked = check_text(text)
    except InvalidInput:
        return text
    return guard.redact(checked, guard.scan(checked))


def _has_place(memory: Memory, item: ImportedRecord, done: StoredRecords) -> bool:
    """Return whether a record would not take the place of the one text of its kind."""
    kind = item.record.get("kind", "fact")
    if kind not in ("profile", "soul"):
        return True
    agent = memory.scope.agent
    if all(record.agent != agent for record in memory.records(kind=kind)):
        return True
    done.skips.append(Skip(item.line, _ONLY_ONE.format(kind), problem=True))
    return False


def _add(memory: Memory, items: Sequence[ImportedRecord], done: StoredRecords) -> None:
    """Store new records in one transaction, after an error in halves."""
    if not items:
        return
    runtime = runtime_of(memory)
    if runtime is None:
        done.added += len(items)
        return

    def check_new(changes: Writing) -> None:
        if versions_by_source(changes.tx, changes.space, [item.source for item in items]):
            raise _StoredMeanwhile

    writer = runtime.writer(memory.scope)
    intake = writer.make_intake(memory.scope, "import", "")
    try:
        drafts = [writer.draft(**cast("NewRecord", {"kind": "fact", **item.record})) for item in items]
        written = intake.remember(drafts, merge=False, also=check_new)
    except _StoredMeanwhile:
        # The other import has stored them by now, so that this finds them.
        again = store_records(memory, items)
        done.added += again.added
        done.present += again.present
        done.skips += again.skips
    except (InvalidInput, Denied, Conflict) as error:
        if len(items) == 1:
            done.skips.append(Skip(items[0].line, error.what, problem=True))
            return
        half = len(items) // 2
        _add(memory, items[:half], done)
        _add(memory, items[half:], done)
    else:
        runtime.events.tell_of(memory.scope, written)
        done.added += len(items)
        pairs = zip(items, written, strict=True)
        done.skips += [Skip(item.line, _HELD) for item, one in pairs if one.trust == "quarantined"]
