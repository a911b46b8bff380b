"""Erasure of what is stored, as the rules of kinds and writers allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import Unavailable
from holdfast.records.draft import allow
from holdfast.store import erasure
from holdfast.types import Erasure

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.records.intake import Intake
    from holdfast.store.erasure import ErasureTarget


def erase(
    intake: Intake, what: ErasureTarget, *, rewrite: bool, events: Events, forget: Callable[[], None]
) -> Erasure:
    """Erase, notify observers, and return the receipt; see `Memory.erase`.

    `forget` drops what this process holds of what is erased.
    """
    # Only for those who erase.
    from holdfast.events import Event

    def check_writer_may(kind: str) -> None:
        # Anybody may erase a record of a kind that is not known here.
        if kind in intake.kinds:
            allow(intake.kinds[kind], intake.by, "erase")

    receipt: Erasure | None = None
    try:
        receipt = erasure.erase(
            intake.database, intake.space, what, intake.by, intake.now, check_writer_may, rewrite=rewrite
        )
    except Unavailable as error:
        # It is erased, although the files still hold remains.
        receipt = error.receipt if isinstance(error.receipt, Erasure) else None
        raise
    finally:
        if what.kind in ("chat", "user"):
            forget()
        if receipt is not None:
            events.tell(Event("erased", intake.scope, erasure=receipt))
    return receipt
