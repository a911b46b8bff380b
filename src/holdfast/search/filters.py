"""The filters of a recall, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal

from holdfast.errors import InvalidInput, shown
from holdfast.store.message_rows import to_micros
from holdfast.store.records import NOW, AsOf
from holdfast.types import (
    MAX_COUNT,
    ROLES,
    SOURCES,
    Prefer,
    Role,
    Source,
    Time,
    Untrusted,
    as_time,
    check_count,
    check_flag,
    check_name,
    check_several,
)
from holdfast.types.checks import to_time
from holdfast.types.where import Where, check_where

Later = Literal["chat", "all"]
# The filters that only some sources can pass, each with those sources.
ONLY_OF: Mapping[str, frozenset[Source]] = {
    "roles": frozenset(("message",)),
    "where": frozenset(("message", "record")),
    **dict.fromkeys(("kinds", "tags", "trust"), frozenset(("record",))),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters on messages, summaries and records that may be hits; None lets all pass.

    `outside` leaves out a chat with those below it, see `is_outside`. `since` and `until` are microseconds
    since the epoch. `later` says where later messages come first among nearly equal ones: in each chat, in
    all of them, or nowhere. `echo` is `hash_same` of a text that no hit may say, 0 for none. `as_of` maps the
    name of a space to the version and the message as of which it is read; other spaces are read as of now.
    `candidates` bounds the number of records that are read to find `limit` of them. With `trust`, records are
    those in quarantine. With `answers`, a message that ends with a question is followed by its answer. With
    `branches`, all branches of chats are read.
    """

    sources: frozenset[str] = frozenset(("message", "record"))
    chat: str | None = None
    outside: str | None = None
    roles: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    target: str | None = None
    agents: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    trust: Untrusted | None = None
    since: int | None = None
    until: int | None = None
    valid_at: datetime | None = None
    limit: int = 10
    candidates: int = MAX_COUNT
    min_score: float = 0.0
    later: Later | None = "chat"
    where: Where | None = None
    echo: int = 0
    answers: bool = False
    branches: bool = False
    as_of: Mapping[str, AsOf] = field(default_factory=dict)

    def is_outside(self, chat: str) -> bool:
        """Return whether a chat is neither the excluded one nor below it, as `<chat>/agent-1` is."""
        left = self.outside
        return left is None or (chat != left and not chat.startswith(f"{left}/"))

    def as_of_in(self, space: str) -> AsOf:
        """Return the version and the message as of which a space is read."""
        return self.as_of.get(space, NOW)


def check(
    *,
    sources: Source | Iterable[Source] | None = None,
    chat: str | None = None,
    outside: str | None = None,
    roles: Role | Iterable[Role] | None = None,
    kinds: str | Iterable[str] | None = None,
    tags: str | Iterable[str] | None = None,
    trust: Untrusted | None = None,
    since: Time | None = None,
    until: Time | None = None,
    valid_at: Time | None = None,
    where: Mapping[str, object] | None = None,
    limit: int = 10,
    min_score: float = 0.0,
    prefer: Prefer | None = None,
    branches: bool = False,
    as_of: Mapping[str, AsOf] | None = None,
    zone: tzinfo = UTC,
) -> Filters:
    """Return the filters of a recall; see `Memory.recall`. As of an earlier version no summaries are found.

    Days are those of the zone; `until` a day is until its end.

    Raises InvalidInput if one is of the wrong type, or no source can have all of them.
    """
    return Filters(
        sources=_possible(sources, roles=roles, kinds=kinds, tags=tags, trust=trust, where=where or None)
        - ({"summary"} if as_of else set()),
        chat=None if chat is None else check_name(chat, "The id of a chat"),
        outside=None if outside is None else check_name(outside, "The id of a chat"),
        roles=None if roles is None else _names(roles, "roles", ROLES),
        kinds=None if kinds is None else _names(kinds, "kinds"),
        tags=None if tags is None else _names(tags, "tags"),
        trust="untrusted" if _is_given(trust, "trust", "untrusted") else None,
        since=None if since is None else to_micros(to_time(since, "since", zone)),
        until=None if until is None else to_micros(to_time(until, "until", zone, ends=True)),
        valid_at=as_time(valid_at, "valid_at"),
        where=check_where(where),
        limit=check_count(limit, "limit"),
        min_score=check_share(min_score, "min_score"),
        later="all" if _is_given(prefer, "prefer", "latest") else "chat",
        branches=check_flag(branches, "branches"),
        as_of=as_of or {},
    )


def _is_given(value: object, name: str, only: str) -> bool:
    if value not in (None, only):
        raise InvalidInput(f"`{name}` is {shown(value)}.", f"Pass {only!r}, or leave it out.")
    return value is not None


def _possible(sources: Source | Iterable[Source] | None, **given: object) -> frozenset[str]:
    """Return those of the sources that have the values to filter by."""
    chosen = frozenset[str](SOURCES) if sources is None else _names(sources, "sources", SOURCES)
    chosen = chosen.intersection(*(ONLY_OF[name] for name in given if given[name] is not None))
    if not chosen:
        raise InvalidInput(
            "Nothing can be found: only messages have roles, only records have kinds, tags and trust, "
            "and summaries have no metadata.",
            "Leave out one of `sources`, `roles`, `kinds`, `tags`, `trust` and `where`.",
        )
    return chosen


def check_share(value: object, name: str) -> float:
    """Return a number from 0 to 1.

    Raises:
        InvalidInput: it is none.

    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidInput(f"`{name}` is {shown(value)}.", "Use a number from 0 to 1.")
    return value


def _names(values: object, what: str, allowed: Sequence[str] = ()) -> frozenset[str]:
    names = list(check_several(values, what, "texts"))
    texts = [name for name in names if isinstance(name, str) and (not allowed or name in allowed)]
    if len(texts) < len(names):
        choice = f"Use some of {', '.join(allowed)}." if allowed else "Pass a text, or a list of texts."
        raise InvalidInput(f"`{what}` is {shown(names)}.", choice)
    return frozenset(texts)
