"""Options of the methods on records as typed dicts: for lists of records, and for whoever passes them on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from holdfast.safety.guard import Secrets
from holdfast.types import Prefer, Role, Source, Time, Untrusted


class RecordFilters(TypedDict, total=False):
    """The conditions of `Memory.records` on records."""

    kind: str | None
    category: str | None
    tags: str | Iterable[str] | None
    text: str | None
    target: str | None
    chat: str | None
    source: str | None
    valid_at: Time | None
    where: Mapping[str, object] | None


class RecallFilters(TypedDict, total=False):
    """What `Memory.recall` and `Memory.explain` search."""

    sources: Source | Iterable[Source] | None
    chat: str | None
    outside: str | None
    roles: Role | Iterable[Role] | None
    kinds: str | Iterable[str] | None
    tags: str | Iterable[str] | None
    trust: Untrusted | None
    since: Time | None
    until: Time | None
    valid_at: Time | None
    where: Mapping[str, object] | None
    min_score: float
    prefer: Prefer | None
    branches: bool


class RecallOptions(RecallFilters, total=False):
    """All options of `Memory.recall`, for whoever recalls for somebody else."""

    per_kind: int | None
    secrets: Secrets
    meaning: float | None
    fresh: bool


class RecordFields(TypedDict, total=False):
    """The fields of a record other than its text and its kind; see `Memory.remember`."""

    target: str | None
    category: str
    tags: str | Iterable[str]
    meta: Mapping[str, object] | None
    priority: int | None
    source: str
    at: Time | None
    since: Time | None
    until: Time | None
    chat: str | None
    messages: int | tuple[int, int] | None


class NewRecord(RecordFields, total=False):
    """One item of a list that `Memory.remember` stores: its text, and whatever else is particular to it."""

    text: str
    kind: str


NewRecords = list[str] | list[NewRecord] | list[str | NewRecord] | tuple[str | NewRecord, ...]
"""Several records to store: texts, or dicts with fields of their own."""
