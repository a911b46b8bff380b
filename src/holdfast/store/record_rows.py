"""Conversion of records to rows, and back: one row for each version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.store.database import decoding
from holdfast.store.message_rows import check_time, from_micros
from holdfast.text.json_text import dump, load, load_object, load_texts
from holdfast.types import Record, Wording

if TYPE_CHECKING:
    from holdfast.store.database import Row, Value

COLUMNS = (
    "version, id, kind, agent, target, run, chat, first, last, category, tags, meta, priority, source, "
    "sources, evidence, author, trust, flags, replaces, at, since, until, retracted, action, why, text, "
    "wordings, created"
)
# Not a join: without statistics PostgreSQL would rather read all versions of the space in the order of their
# ids.
_USES = ", ".join(
    f"(SELECT u.{name} FROM uses u WHERE u.space = :space AND u.id = r.id) AS {name}"
    for name in ("count", "last")
)
# The beginning of a query whose rows `to_record` converts.
SELECT = f"SELECT {', '.join(f'r.{name}' for name in COLUMNS.split(', '))}, {_USES}"
FROM = "FROM records r WHERE r.space = :space"
# What the column of flags says beside them.
PINNED, CONFLICTS_WITH = "pinned", "conflict:"
# The columns that have the value of the field of the same name.
_SAME = (
    "version id kind agent target run chat category priority source evidence trust replaces action why text"
).split()


def to_record(row: Row) -> Record:
    """Return the record of a row of `SELECT`.

    Raises:
        Damaged: a column of the row cannot be decoded.

    """
    # Written out: a loop over the columns takes half as long again.
    (
        version, identity, kind, agent, target, run, chat, first, last, category, tags, meta, priority,
        source, sources, evidence, author, trust, flags, replaces, at, since, until, retracted, action, why,
        text, wordings, created, uses, used,
    ) = row  # fmt: skip
    with decoding(f"Version {version} of the records"):
        return Record(
            identity,
            kind,
            text,
            version=version,
            target=target,
            category=category,
            tags=load_texts(tags) if tags else (),
            meta=load_object(meta) if meta else {},
            priority=priority,
            agent=agent,
            source=source,
            sources=load_texts(sources) if sources else (),
            evidence=evidence,
            wordings=to_wordings(wordings),
            by=author,
            run=run,
            chat=chat,
            messages=(first, last) if first else None,
            at=from_micros(at),
            created=from_micros(created),
            since=None if since is None else from_micros(since),
            until=None if until is None else from_micros(until),
            trust=trust,
            **(_read_marks(flags) if flags else {}),
            replaces=replaces,
            retracted=bool(retracted),
            action=action,
            why=why,
            uses=uses or 0,
            used=None if used is None else from_micros(used),
        )


# Any: fields of several types.
def _read_marks(text: str) -> dict[str, Any]:
    """Return the fields that the column of flags holds as JSON: the flags, the pin, and the conflicts."""
    marks = load_texts(text)
    named = [mark for mark in marks if mark.startswith(CONFLICTS_WITH)]
    flags = tuple(mark for mark in marks if mark != PINNED and mark not in named)
    conflicts = tuple(mark.removeprefix(CONFLICTS_WITH) for mark in named)
    return {"flags": flags, "pinned": PINNED in marks, "conflicts": conflicts}


def to_wordings(text: str | None) -> tuple[Wording, ...]:
    """Return the wordings that a column holds as JSON; raise ValueError or TypeError for other values."""
    wordings = load(text) if text else ()
    if any([*map(type, entry)] != [str, str, str, int, int] for entry in wordings):
        raise TypeError("its wordings are none")
    return tuple(
        Wording(said, by=by, chat=chat, messages=(first, last) if first else None)
        for said, by, chat, first, last in wordings
    )


def to_row(record: Record) -> dict[str, Value]:
    """Return a version of a record as the values of `COLUMNS`."""
    row: dict[str, Value] = {name: getattr(record, name) for name in _SAME}
    row["first"], row["last"] = record.messages or (0, 0)
    row["author"], row["retracted"] = record.by, int(record.retracted)
    marks = [*record.flags, *[PINNED] * record.pinned, *(CONFLICTS_WITH + id for id in record.conflicts)]
    for name, several in (("tags", record.tags), ("sources", record.sources), ("flags", marks)):
        row[name] = json.dumps(several) if several else None
    for name, time in (("at", record.at), ("created", record.created)):
        row[name] = check_time(time) if time else 0
    for name, time in (("since", record.since), ("until", record.until)):
        row[name] = check_time(time) if time else None
    row["meta"] = dump(dict(record.meta), "`meta` of a record") if record.meta else None
    wordings = [[entry.text, entry.by, entry.chat, *(entry.messages or (0, 0))] for entry in record.wordings]
    row["wordings"] = json.dumps(wordings) if wordings else None
    return row


def capped_length(record: Record) -> int:
    """Return the characters of a record that count against a cap: its text, and its metadata as JSON."""
    return len(record.text) + (len(dump(dict(record.meta), "`meta` of a record")) if record.meta else 0)
