"""Rights of users on spaces of others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Rights = Literal["read", "write"]
RIGHTS: tuple[Rights, ...] = get_args(Rights)


@dataclass(frozen=True, slots=True)
class Grant:
    """A right that a user has on a space of somebody else.

    `space` and `to` are references, as `reads` has them: "project:shop", "user:bob". "write" covers "read".
    `by` is the user who granted it, "" for the application; `at` is when, and `why` what was said about it.
    """

    space: str
    to: str
    rights: Rights
    by: str
    at: datetime
    why: str = ""
