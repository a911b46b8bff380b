"""What a caller wants to find besides the words: the filters of a recall, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.errors import InvalidInput, shown
from holdfast.store.message_rows import to_micros
from holdfast.store.records import NOW, AsOf
from holdfast.types import MAX_COUNT, ROLES, SOURCES, Role, Source, Time, as_time, check_count, check_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages, summaries and records may be hits; None lets all pass.

    `moments` gives for each space, by its name, as of which version and message to answer; one that it does not name
    is answered as of now. `until` leaves out what was said or written later.
    """

    messages: bool = True
    summaries: bool = False
    records: bool = True
    chat: str | None = None
    roles: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    target: str | None = None
    agents: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    since: int | None = None
    until: int | None = None
    valid_at: datetime | None = None
    limit: int = 10
    looked: int = MAX_COUNT  # records that are read at most to find as many
    min_score: float = 0.0
    moments: Mapping[str, AsOf] = field(default_factory=dict)

    def moment(self, space: str) -> AsOf:
        """Give the moment as of which a space is to answer."""
        return self.moments.get(space, NOW)


def check(
    *,
    sources: Iterable[Source] | None = None,
    chat: str | None = None,
    roles: Sequence[Role] | None = None,
    kinds: Iterable[str] | None = None,
    tags: Iterable[str] | None = None,
    since: Time | None = None,
    until: Time | None = None,
    valid_at: Time | None = None,
    limit: int = 10,
    min_score: float = 0.0,
    moments: Mapping[str, AsOf] | None = None,
) -> Wanted:
    """Check the filters of a recall. Roles are those of messages, kinds and tags those of records.

    As of an earlier moment no summaries are found: what they say is in the messages.

    Raises:
        InvalidInput: one is of the wrong kind, or no source can have all that is asked for.

    """
    chosen = frozenset[str](SOURCES) if sources is None else _names(sources, "sources", SOURCES)
    if roles is not None:
        chosen &= {"message"}
    if kinds is not None or tags is not None:
        chosen &= {"record"}
    if not chosen:
        raise InvalidInput(
            "Nothing can be found: only messages have roles, only records have kinds and tags.",
            "Leave out one of `sources`, `roles`, `kinds` and `tags`.",
        )
    if chat is not None:
        check_name(chat, "The id of a chat")
    check_count(limit, "limit")
    if not _is_share(min_score):
        raise InvalidInput(f"`min_score` is {shown(min_score)}.", "Use a number from 0 to 1.")
    return Wanted(
        messages="message" in chosen,
        summaries="summary" in chosen and not moments,
        records="record" in chosen,
        chat=chat,
        roles=None if roles is None else _names(roles, "roles", ROLES),
        kinds=None if kinds is None else _names(kinds, "kinds"),
        tags=None if tags is None else _names(tags, "tags"),
        since=_time(since, "since"),
        until=_time(until, "until"),
        valid_at=as_time(valid_at, "valid_at"),
        limit=min(limit, MAX_COUNT),
        min_score=min_score,
        moments=moments or {},
    )


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _time(value: object, what: str) -> int | None:
    time = as_time(value, what)
    return None if time is None else to_micros(time)


def _names(values: object, what: str, known: Sequence[str] = ()) -> frozenset[str]:
    choice = f"Pass a list of some of {', '.join(known)}." if known else "Pass a list of texts."
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise InvalidInput(f"`{what}` is {shown(values)}.", choice)
    names = list(values)
    if any(not isinstance(name, str) or (known and name not in known) for name in names):
        raise InvalidInput(f"`{what}` is {shown(names)}.", choice)
    return frozenset(names)
