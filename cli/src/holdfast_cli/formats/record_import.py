"""Records of a file, each stored once: what changed at its source follows it, what changed here stays."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from holdfast import Memory
from holdfast.errors import Conflict, Denied, InvalidInput
from holdfast.port.handles import NewRecord
from holdfast.port.imports import Imports, StoredMeanwhile, stored_text
from holdfast.port.texts import clean
from holdfast.types import Record
from holdfast_cli.formats.import_items import ImportedRecord, Skip

_RETRACTED = "retracted here since it was imported, and left so"
_BOTH = "changed here and at its source since it was imported: left as it is here"
_HELD = "stored in quarantine, since it looks like an order to the model: see `holdfast quarantine`"
_ONLY_ONE = "there is a {} already, which is left as it is"


@dataclass(slots=True)
class StoredRecords:
    """The outcome of storing records: those `added` or changed, those `present` before, and the skips."""

    added: int = 0
    present: int = 0
    skips: list[Skip] = field(default_factory=list)


def store_records(
    memory: Memory, items: Sequence[ImportedRecord], tally: StoredRecords | None = None
) -> StoredRecords:
    """Store records that are new, and those that changed at their source; return the tally, counted on."""
    tally, fresh = tally or StoredRecords(), defaultdict[str, list[ImportedRecord]](list)
    known = Imports(memory).versions([item.source for item in items]) if items else {}
    for item in items:
        if versions := known.get(item.source):
            _follow(memory, item, versions, tally)
        else:
            fresh[item.agent].append(item)
    for agent, some in fresh.items():
        try:
            handle = memory.scoped(agent=clean(agent)) if agent else memory
        except InvalidInput as error:
            tally.skips += [Skip(item.line, error.what, problem=True) for item in some]
        else:
            _add(handle, [item for item in some if _has_place(handle, item, tally)], tally)
    return tally


def _follow(memory: Memory, item: ImportedRecord, versions: Sequence[Record], tally: StoredRecords) -> None:
    """Bring a record that was imported before to the text that its source has now."""
    newest, imported = versions[-1], [version for version in versions if version.by == "import"][-1]
    if stored_text(item.record["text"]) == imported.text:
        tally.present += 1
        if newest.retracted:
            tally.skips.append(Skip(item.line, _RETRACTED))
    elif newest.retracted or newest.text != imported.text:
        tally.skips.append(Skip(item.line, _BOTH, problem=True))
    else:
        try:
            memory.replace(newest.id, item.record["text"], by="import", expected_version=newest.version)
            tally.added += 1
        except (InvalidInput, Denied, Conflict) as error:
            tally.skips.append(Skip(item.line, error.what, problem=True))


def _has_place(memory: Memory, item: ImportedRecord, tally: StoredRecords) -> bool:
    """Return whether a record would not take the place of the one text of its kind."""
    kind = item.record.get("kind", "fact")
    rivals = memory.records(kind=kind) if kind in ("profile", "soul") else ()
    is_taken = any(record.agent == memory.scope.agent for record in rivals)
    if is_taken:
        tally.skips.append(Skip(item.line, _ONLY_ONE.format(kind), problem=True))
    return not is_taken


def _add(memory: Memory, items: Sequence[ImportedRecord], tally: StoredRecords) -> None:
    """Store new records in one transaction, after an error in halves."""
    if not items:
        return
    records = [cast("NewRecord", {"kind": "fact", **item.record}) for item in items]
    try:
        written = Imports(memory).remember(records, [item.source for item in items])
    except StoredMeanwhile:
        # The other import has stored them by now, so that this finds them.
        store_records(memory, items, tally)
    except (InvalidInput, Denied, Conflict) as error:
        if len(items) == 1:
            tally.skips.append(Skip(items[0].line, error.what, problem=True))
            return
        half = len(items) // 2
        _add(memory, items[:half], tally)
        _add(memory, items[half:], tally)
    else:
        tally.added += len(items)
        # A null memory writes none.
        pairs = zip(items, written, strict=False)
        tally.skips += [Skip(item.line, _HELD) for item, record in pairs if record.trust == "quarantined"]
