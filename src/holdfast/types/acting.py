"""Who acts: a context variable that handles without a user or an agent of their own follow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from holdfast.errors import InvalidInput, shown
from holdfast.types import WRITERS, Writer


class Acting(NamedTuple):
    """Who acts; "" and None where nobody is named."""

    user: str = ""
    agent: str = ""
    chat: str = ""
    source: Writer | None = None


_NOBODY = Acting()
_ACTING: ContextVar[Acting] = ContextVar("holdfast_acting", default=_NOBODY)


@contextmanager
def acting(who: Acting) -> Iterator[Acting]:
    """Let `who` act within the block, in this thread or task."""
    token = _ACTING.set(who)
    try:
        yield who
    finally:
        _ACTING.reset(token)


def current() -> Acting:
    """Return who acts here and now."""
    return _ACTING.get()


def check_writer(value: object) -> Writer:
    """Return `value` if it is a writer, or raise InvalidInput."""
    for writer in WRITERS:
        if value == writer:
            return writer
    raise InvalidInput(f"{shown(value)} is not a writer.", f"Use one of {', '.join(WRITERS)}.")


def chat_id(id: str | None) -> str:
    """Return the id of a chat: as given, else the one that `acting_as` names, else a new one."""
    return (current().chat or os.urandom(8).hex()) if id is None else id
