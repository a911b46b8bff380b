"""Who writes, and the chat that it is said of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.guard import check_name_is_open, mask_name
from holdfast.store import sessions
from holdfast.types.acting import check_writer, current

if TYPE_CHECKING:
    from holdfast.store.database import Database
    from holdfast.types import Scope, Writer


def writer_of(by: Writer | None, default: Writer) -> Writer:
    """Return who writes: the writer that is named, else that of `acting_as`, else the default."""
    return current().source or default if by is None else check_writer(by)


def check_chat_id(database: Database, scope: Scope, chat: str) -> str:
    """Return the id of a chat, or raise InvalidInput if it is new and holds a credential."""
    if mask_name(chat) != chat and not sessions.length(database, scope.space, chat):
        check_name_is_open(chat, "The id of the chat")
    return chat
