"""Erasure of what is stored, as the rules of kinds and writers allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, Unavailable
from holdfast.events import Event
from holdfast.records.draft import allow
from holdfast.store import erasure, grants, sessions
from holdfast.store.database import retry_transaction
from holdfast.store.erasure import WHOLE
from holdfast.types import Erasure, Scope, check_name

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.records.intake import Intake
    from holdfast.store.database import Database
    from holdfast.store.erasure import ErasureTarget


def erase_spaces(
    intakes: Sequence[Intake],
    what: ErasureTarget,
    *,
    rewrite: bool | None,
    events: Events,
    forget: Callable[[str], None],
) -> Erasure:
    """Erase the same of several spaces, notify observers, and return the first receipt with all counts.

    `forget` drops what this process holds of a space. See `Memory.erase`.

    Raises:
        InvalidInput: there is nothing to erase in any of them.
        Unavailable: all is erased, but the files could not be purged; see `store.erasure.erase`.

    """
    first, receipts, unclean = intakes[0], list[Erasure](), None
    if what.kind == "user" and first.scope.user:
        what = what._replace(rights=forget_grantee(first.database, first.scope))
    for number, intake in enumerate(intakes, 1):
        here = what if intake is first else what._replace(rights=0)
        try:
            # Files that could not be purged for one space cannot be purged for the next.
            receipt = _erase(intake, here, rewrite=None if unclean else rewrite)
        except InvalidInput:
            if number == len(intakes) and not receipts:
                raise
            continue
        except Unavailable as error:
            # It is erased, although the files still hold remains.
            if not isinstance(error.receipt, Erasure):
                raise
            unclean, receipt = error, error.receipt
        finally:
            if what.kind in ("chat", *WHOLE):
                forget(intake.space)
        receipts.append(receipt)
        events.tell(Event("erased", intake.scope, erasure=receipt))
    counts = Counter[str]()
    for receipt in receipts:
        counts.update(receipt.counts)
    whole = replace(receipts[0], counts=dict(counts))
    if unclean:
        raise Unavailable(unclean.what, unclean.todo, receipt=whole) from unclean
    return whole


def _erase(intake: Intake, what: ErasureTarget, *, rewrite: bool | None) -> Erasure:
    def check_writer_may(kind: str) -> None:
        # Anybody may erase a record of a kind that is not known here.
        if kind in intake.kinds:
            allow(intake.kinds[kind], intake.by, "erase")

    database, space, by, now = intake.database, intake.space, intake.by, intake.now
    return erasure.erase(database, space, what, by, now, check_writer_may, rewrite=rewrite)


def spaces_of(
    database: Database, scope: Scope, *, user: str | None, project: str | None, team: str | None
) -> list[Scope]:
    """Return what is erased: in the scope's own space, a project, a team, or a user with all projects."""
    if team is not None:
        return [Scope(scope.tenant, team=check_name(team, "team"))]
    if project is not None:
        return [Scope(scope.tenant, scope.user, project=check_name(project, "project"))]
    if user is None:
        return [scope]
    return sessions.with_projects(database, Scope(scope.tenant, user))


@retry_transaction
def forget_grantee(database: Database, scope: Scope) -> int:
    """Delete the rights of the user of a scope on spaces of others, and count them: nobody inherits them."""
    shared = scope.shared.space
    with database.writing() as tx:
        spaces = [shared, *sessions.spaces_below(tx, shared)]
        return sum(grants.forget(tx, space, scope.user) for space in spaces)
