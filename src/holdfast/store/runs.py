"""Runs of an agent within a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Conflict, InvalidInput
from holdfast.safety.guard import check_name_is_open
from holdfast.store.database import repeated
from holdfast.store.records import NOW, Wanted, read, writing

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database


@repeated
def begin(db: Database, space: str, chat: str, run: str, now: int) -> None:
    """Begin a run, or go on with one that has not ended.

    Raises:
        Conflict: a run of this id has ended, or is one of another chat.
        InvalidInput: the id of a new run holds a credential.

    """
    with db.writing() as tx:
        tx.lock(space)
        rows = tx.all(
            "SELECT chat, ended FROM runs WHERE space = :space AND run = :run", space=space, run=run
        )
        if rows and (rows[0][1] is not None or rows[0][0] != chat):
            raise Conflict(
                f"The run {run!r} has ended."
                if rows[0][1] is not None
                else f"The run {run!r} is one of another chat.",
                "Use another id, or none.",
            )
        if not rows:
            check_name_is_open(run, "The id of the run")
            tx.all(
                "INSERT INTO runs (space, run, chat, began) VALUES (:space, :run, :chat, :now)",
                space=space,
                run=run,
                chat=chat,
                now=now,
            )


@repeated
def end(db: Database, space: str, run: str, now: int) -> None:
    """End a run: its notes are retracted and its pad is emptied. Ending it twice is harmless."""
    with writing(db, space, now) as changes:
        ended = changes.tx.all(
            "UPDATE runs SET ended = :now WHERE space = :space AND run = :run AND ended IS NULL RETURNING run",
            space=space,
            run=run,
            now=now,
        )
        if not ended:
            return
        wanted = Wanted(kinds=("note",), run=run, trust=("trusted", "released", "quarantined"))
        for note in read(changes.tx, space, NOW.version, wanted):
            changes.end(note, why="the run ended")
        changes.tx.all("DELETE FROM pads WHERE space = :space AND run = :run", space=space, run=run)


def check_run(tx: Connection, space: str, run: str) -> None:
    """Raise InvalidInput if a run has ended or never began; "" stands for none."""
    if not run:
        return
    rows = tx.all("SELECT ended FROM runs WHERE space = :space AND run = :run", space=space, run=run)
    if not rows or rows[0][0] is not None:
        raise InvalidInput("The run has ended, and what it noted with it.", "Begin another one: chat.run().")
