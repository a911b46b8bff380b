"""Runs of an agent within a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Conflict, InvalidInput
from holdfast.safety.guard import check_name_is_open
from holdfast.store import records, table_rows
from holdfast.store.database import retry_transaction
from holdfast.store.record_changes import writing

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database

_READ = "SELECT chat, ended FROM runs WHERE space = :space AND run = :run"
_END = "UPDATE runs SET ended = :now WHERE space = :space AND run = :run AND ended IS NULL RETURNING run"


@retry_transaction
def begin(db: Database, space: str, chat: str, run: str, now: int) -> None:
    """Begin a run, or continue one that has not ended.

    Raises:
        Conflict: a run of this id has ended, or belongs to another chat.
        InvalidInput: the id of a new run holds a credential.

    """
    with db.writing_to(space) as tx:
        for owner, ended in tx.all(_READ, space=space, run=run):
            if ended is None and owner == chat:
                return
            why = "has ended" if ended is not None else "belongs to another chat"
            raise Conflict(f"The run {run!r} {why}.", "Use another id, or none.")
        check_name_is_open(run, "The id of the run")
        table_rows.add(tx, "runs", {"space": space, "run": run, "chat": chat, "began": now})


@retry_transaction
def end(db: Database, space: str, run: str, now: int) -> None:
    """End a run: its notes are retracted and its scratchpad is emptied. Ending it twice is harmless."""
    with writing(db, space, now) as changes:
        if not changes.tx.all(_END, space=space, run=run, now=now):
            return
        wanted = records.RecordFilter(kinds=("note",), run=run, trust=("trusted", "released", "quarantined"))
        for note in records.read(changes.tx, space, records.NOW.version, wanted):
            changes.end(note, why="the run ended")
        changes.tx.all("DELETE FROM pads WHERE space = :space AND run = :run", space=space, run=run)


def check_run(tx: Connection, space: str, run: str) -> None:
    """Raise InvalidInput if a run has ended or never began; "" stands for none."""
    if run and not any(ended is None for _, ended in tx.all(_READ, space=space, run=run)):
        raise InvalidInput("The run has ended, and its notes are gone.", "Begin another one: chat.run().")
