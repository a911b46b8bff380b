"""The instructions of a chat: the system or developer messages of its log."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from holdfast.store import log
from holdfast.store.message_rows import WITHOUT_VERDICTS, to_messages

if TYPE_CHECKING:
    from holdfast.store.database import Reader
    from holdfast.types import Message

# Messages before a window that are searched for instructions.
_NEAR = 5_000


def newest(db: Reader, space: str, chat: str, before: int) -> Message | None:
    """Return the newest system or developer message before a seq, if the chat begins with one.

    Only the nearest 5,000 messages and the first one are searched, so that the cost has a bound.
    """
    sql = f"""
        SELECT {WITHOUT_VERDICTS} FROM messages
        WHERE space = :space AND chat = :chat AND seq < :before AND seq > :after
        AND role IN ('system', 'developer') ORDER BY seq DESC LIMIT 1"""
    first = log.read(db, space, chat, after=0, limit=1)
    if not first or first[0].seq >= before or first[0].role not in ("system", "developer"):
        return None
    rows = db.all(sql, space=space, chat=chat, before=before, after=max(0, before - _NEAR))
    return next(iter(to_messages(rows, repeat(chat))), first[0])
