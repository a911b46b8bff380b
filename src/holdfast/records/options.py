"""What the methods on records take by name: fields of records, filters, and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from holdfast.safety.guard import Secrets
from holdfast.types import Prefer, Role, Source, Time, Untrusted, Writer


class RecordFilters(TypedDict, total=False):
    """Conditions on records, all of which must hold; of `tags`, one is enough.

    `where` is a filter on `meta`, such as {"lang": "de", "stars": {"$gte": 4}}; see `docs/filters.md`.

    `text` is looked for in the text and the category, in any case of letters. `target` is what a fact is
    about ("user", "env"), or the compartment of a note ("session", "plan"). `valid_at` leaves out what is not
    true in the world then.
    """

    kind: str | None
    category: str | None
    tags: Iterable[str] | None
    text: str | None
    target: str | None
    chat: str | None
    source: str | None
    valid_at: Time | None
    where: Mapping[str, object] | None


class RecallFilters(TypedDict, total=False):
    """What recall searches. None, the default of each, leaves nothing out.

    `sources` are some of "message", "summary" and "record". `chat` is one chat, with what was learned in it.
    `outside` leaves out a chat, the chats below it (`<chat>/…`), and what was learned in them.
    `roles` are of messages only, `kinds` and `tags` of records only. `since` (inclusive) and `until`
    (exclusive) bound when it was said or written. `valid_at` takes records that are true in the world then,
    in place of now. Times are datetimes, or ISO 8601 text. `trust="untrusted"` searches only what waits in
    quarantine, by its words, and nothing else does; see `Memory.quarantine`. `where` is a filter on the
    `meta` of records and messages, these with that of their chat; summaries have none. See `docs/filters.md`.
    """

    sources: Iterable[Source] | None
    chat: str | None
    outside: str | None
    roles: Sequence[Role] | None
    kinds: Iterable[str] | None
    tags: Iterable[str] | None
    trust: Untrusted | None
    since: Time | None
    until: Time | None
    valid_at: Time | None
    where: Mapping[str, object] | None


class ExplainOptions(RecallFilters, total=False):
    """How `Memory.explain` answers, beside what is searched.

    `min_score` is the least probability, from 0 to 1, with which a hit answers, see `Hit`. `prefer="latest"`
    puts the later of messages first that answer nearly as well, of whichever chats; within a chat that is
    always so. `secrets` is "mask" or "show", of credentials in hits. Of a memory with an embedder, `meaning`
    is the weight of meaning against words, from 0 (words alone) to 1 (meaning first).
    """

    min_score: float
    prefer: Prefer | None
    secrets: Secrets
    meaning: float


class RecallOptions(ExplainOptions, total=False):
    """How `Memory.recall` answers, beside what it searches; see `ExplainOptions` as well.

    `per_kind` is in place of `limit`: at most so many records of each kind. Of a memory with an embedder,
    `fresh` embeds what has no vector yet before it searches, up to a thousand texts.
    """

    per_kind: int | None
    fresh: bool


class RecordFields(TypedDict, total=False):
    """What may be said of a record beside its text and its kind.

    `target`: what a fact is about, "user" (the default) or "env"; the compartment of a note, "session" or
    "plan". `category`: one word for what it belongs to. `tags`: words to find it by. `meta`: JSON values.
    `priority`: 1 to 10; of notes, the higher are shown first; left out, that of the record whose place it
    takes, or 5. `source`: where it comes from, such as "GOAL:plan the trip". `since` and `until` (exclusive):
    when it is true in the world. `at`: when it was said; left out, the time of the last of its messages, or
    now. `chat`: the chat it was learned in, by default that of `acting_as`. `messages`: the `seq` of the
    message it was learned in, or of the first and the last one.
    """

    target: str | None
    category: str
    tags: Iterable[str]
    meta: Mapping[str, object] | None
    priority: int | None
    source: str
    at: Time | None
    since: Time | None
    until: Time | None
    chat: str | None
    messages: int | tuple[int, int] | None


class RememberOptions(RecordFields, total=False):
    """How `Memory.remember` stores a record, beside its fields; see there."""

    by: Writer | None
    merge: bool | None
    expected_version: int | None


class ReplaceOptions(RecordFields, total=False):
    """How `Memory.replace` changes a record, beside its fields; see there."""

    kind: str | None
    by: Writer | None
    expected_version: int | None


class NewRecord(RecordFields, total=False):
    """One item of a list that `Memory.remember` stores: its text, and whatever else is particular to it."""

    text: str
    kind: str


NewRecords = list[str] | list[NewRecord] | list[str | NewRecord] | tuple[str | NewRecord, ...]
"""Several records to store: texts, or dicts with fields of their own."""
