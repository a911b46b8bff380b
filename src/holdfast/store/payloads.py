"""The original payloads of messages, which is all that adapters read of a framework's session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import DECODING_ERRORS, damage_error
from holdfast.store.sessions import ON_BRANCH
from holdfast.text.json_text import load_object
from holdfast.types import MAX_COUNT
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Reader
    from holdfast.types import Role

_READ = f"""
    SELECT seq, id, role, content, raw, meta FROM messages
    WHERE space = :space AND chat = :chat AND seq < :before {ON_BRANCH} ORDER BY seq DESC LIMIT :limit"""


class Payload(NamedTuple):
    """A message as it was given, in `raw`, and the columns that identify it."""

    seq: int
    id: str
    role: Role
    content: str
    raw: Mapping[str, object] | None
    meta: Mapping[str, object]


def newest(db: Reader, space: str, chat: str, limit: int, *, before: int | None = None) -> list[Payload]:
    """Return the newest messages of a chat before a seq, newest first, at half the cost of whole messages.

    Raises:
        Damaged: a payload cannot be decoded.

    """
    payloads = []
    bounds = {"before": MAX_COUNT if before is None else before, "limit": limit}
    # All items of a session have the same metadata: it is decoded once.
    last: tuple[str | None, Mapping[str, object]] = (None, {})
    for seq, id, role, content, raw, meta in db.all(_READ, space=space, chat=chat, **bounds):
        try:
            if meta != last[0]:
                last = (meta, load_object(meta) if meta else {})
            given = load_object(raw) if raw else raw
        except DECODING_ERRORS as error:
            raise damage_error(f"Message {write_reference(chat, seq)}", error) from error
        if raw == "":
            given = {"role": role, "content": content}
        payloads.append(Payload(seq, id, role, content, given, last[1]))
    return payloads
