"""The database of a user who reads spaces of others: the rights are checked for each statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from holdfast.store import grants
from holdfast.store.database import Connection, Database, PurgeResult, Row, Value

if TYPE_CHECKING:
    from holdfast.types import Scope

T = TypeVar("T")


class _CheckedConnection:
    """A connection that runs only statements for which the scope has the right, as of the transaction."""

    def __init__(self, inner: Connection, scope: Scope) -> None:
        self._inner, self._scope = inner, scope
        self.key = inner.key

    def all(self, sql: str, **values: Value) -> list[Row]:
        self._check(sql, values)
        return self._inner.all(sql, **values)

    def all_large(self, columns: str, large: str, source: str, /, **values: Value) -> list[Row]:
        self._check("SELECT", values)
        return self._inner.all_large(columns, large, source, **values)

    def many(self, sql: str, rows: Iterable[Mapping[str, Value]]) -> None:
        some = list(rows)
        for space in {row.get("space") for row in some}:
            self._check(sql, {"space": space})
        self._inner.many(sql, some)

    def add_messages(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self._check(sql, {"space": rows[0]["space"]})
        self._inner.add_messages(sql, rows)

    def lock(self, space: str) -> None:
        self._inner.lock(space)

    def _check(self, sql: str, values: Mapping[str, Value]) -> None:
        is_read = sql.lstrip()[:6].upper() == "SELECT"
        for name, space in values.items():
            # The row that counts the erasures of the database is no space.
            if name.startswith("space") and isinstance(space, str) and "/" in space:
                grants.check(self._inner, self._scope, space, "read" if is_read else "write")


class GrantedDatabase(Database):
    """A database for one scope: a statement on a space without the right to it raises Denied.

    A right that is revoked meanwhile ends with the running transaction, in all processes.
    """

    def __init__(self, inner: Database, scope: Scope) -> None:
        super().__init__(inner.key, read_only=inner.read_only)
        self._inner, self._scope = inner, scope

    def check_open(self) -> None:
        """See `Database.check_open`."""
        self._inner.check_open()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`; the right is checked in the same state of the database."""
        with self._inner.one_read(), self._inner.reading() as connection:
            yield _CheckedConnection(connection, self._scope)

    def one_read(self) -> AbstractContextManager[None]:
        """See `Database.one_read`."""
        return self._inner.one_read()

    @contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[Connection]:
        """See `Database.writing`."""
        with self._inner.writing(lasting=lasting) as tx:
            yield _CheckedConnection(tx, self._scope)

    def write_together(self, work: Callable[[Connection], T]) -> T:
        """See `Database.write_together`."""
        return self._inner.write_together(lambda tx: work(_CheckedConnection(tx, self._scope)))

    def close(self) -> None:
        """See `Database.close`."""
        self._inner.close()

    def check(self) -> list[str]:
        """See `Database.check`."""
        return self._inner.check()

    def copy(self, path: str) -> None:
        """See `Database.copy`."""
        self._inner.copy(path)

    def purge(self, *, rewrite: bool) -> PurgeResult:
        """See `Database.purge`."""
        return self._inner.purge(rewrite=rewrite)


def restrict(database: Database, scope: Scope) -> Database:
    """Return a database restricted to the rights of a scope; the database itself if that needs no grants."""
    if all(map(scope.is_own, (scope.space, *scope.spaces))):
        return database
    return GrantedDatabase(database, scope)
