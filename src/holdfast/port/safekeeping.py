"""All rows of a user, read and restored, and the state of a database file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.store import database
from holdfast.store.file_state import FileState, file_state
from holdfast.store.schema import NEWEST, check_number
from holdfast.types.late import importer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.memory import Memory
    from holdfast.search.kernel import kernel_in_use
    from holdfast.store.database import Database
    from holdfast.store.salvage import salvage
    from holdfast.store.space_rows import RestoreReport

_LATE = {"store.salvage": "salvage", "search.kernel": "kernel_in_use"}
__getattr__ = importer("holdfast.port.safekeeping", _LATE, "holdfast")


def read_rows(memory: Memory) -> Iterator[tuple[str | None, str, Mapping[str, object]]]:
    """Yield all rows of a user, of all agents, in one transaction: a project or None, a table, and values.

    Raises:
        InvalidInput: the handle is bound to an agent.

    """
    from holdfast.store import sessions, space_rows

    whole = _database(memory)
    with whole.one_read():
        for scope in sessions.with_projects(whole, memory.scope):
            project = scope.project if scope.project != memory.scope.project else None
            for table, row in space_rows.read(whole, scope.space):
                yield project, table, row


def restore_rows(
    memory: Memory, rows: Iterable[tuple[int, str, str, Mapping[str, object]]], name: str, schema: int
) -> RestoreReport:
    """Store the rows of a file, each with its line, its space and its table, in one transaction.

    Raises:
        InvalidInput: the handle is bound to an agent.
        NewerSchema, UnreleasedSchema: another Holdfast wrote the file, with this schema.

    """
    from holdfast.store import space_rows

    whole = _database(memory)
    check_number(name, schema)
    return space_rows.restore(whole, memory.scope.space, rows)


def freeze_index(memory: Memory) -> None:
    """Bring the index up to date, so that a recall of another process has less to do."""
    from holdfast.runtime import runtime_of

    if runtime := runtime_of(memory):
        runtime.search().freeze(memory.scope.space)


def wait_for_locks(seconds: float) -> None:
    """Set how long this process waits for a lock on a database that another one holds."""
    database.BUSY_SECONDS = seconds


def _database(memory: Memory) -> Database:
    from holdfast.runtime import runtime_of

    runtime = runtime_of(memory)
    if runtime is None:
        raise InvalidInput("This memory stores nothing.", "Use one that has a database.")
    if memory.scope.agent:
        raise InvalidInput(
            "An export of everything covers all agents, and this handle is bound to one.",
            "Use a handle without an agent.",
        )
    return runtime.database_of(memory.scope)
