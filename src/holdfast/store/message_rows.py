"""Conversion of messages to rows of the log, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput
from holdfast.messages.formats import cleaned
from holdfast.store.database import DECODING_ERRORS, damage_error
from holdfast.store.verdicts import OF_CALLER
from holdfast.text.json_text import dump, load, load_object, load_texts, same_json
from holdfast.types import Message, ToolCall
from holdfast.types.messages import UNSEEN
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Row

COLUMNS = "seq, id, role, name, at, tokens, content, calls, call_id, answers, raw, meta, shown"
# The columns for `to_messages`, with the flags of the caller's guard or with none; then they are determined
# when they are read.
WITH_VERDICTS = (
    f"{COLUMNS}, (SELECT v.flags FROM verdicts v WHERE v.space = :space AND v.chat = messages.chat "
    f"AND v.seq = messages.seq AND {OF_CALLER}) AS flags"
)
WITHOUT_VERDICTS = f"{COLUMNS}, NULL"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Times up to the year 2112, in microseconds: as seconds in a float they still round to themselves, and to
# convert a timestamp is twice as fast as to add to the epoch.
_EXACT = 2**52
_from_timestamp = datetime.fromtimestamp
_MICROSECOND = timedelta(microseconds=1)


class StoredMessages(list[Message]):
    """Messages as they are stored; `added` is the number of new ones."""

    def __init__(self, messages: Iterable[Message], added: int) -> None:
        super().__init__(messages)
        self.added = added


def to_micros(at: datetime) -> int:
    """Return a time in microseconds since the epoch; a naive time is taken as UTC."""
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the UTC time of microseconds since the epoch."""
    return EPOCH + timedelta(0, 0, micros)


class _Draft:
    """A message under construction.

    A frozen dataclass sets each field through object.__setattr__. An object with the same slots that becomes
    a message when it is complete is built three times as fast, and to read a window is mostly to build
    messages.
    """

    __slots__ = Message.__slots__


def to_messages(rows: Iterable[Row], chats: Iterable[str]) -> list[Message]:
    """Return the messages of rows of the log, each of a chat; one loop without calls, for speed.

    Raises:
        Damaged: a column of a row cannot be decoded.

    """
    messages: list[Message] = []
    for row, chat in zip(rows, chats, strict=False):
        draft: Any = _Draft()
        (
            draft.seq, draft.id, draft.role, draft.name, at, draft.tokens, draft.content, calls,
            draft.call_id, answers, raw, meta, shown, flags,
        ) = row  # fmt: skip
        try:
            draft.at = _from_timestamp(at / 1_000_000, UTC) if 0 <= at < _EXACT else from_micros(at)
            draft.calls = _to_calls(calls) if calls else ()
            draft.answers = load_texts(answers) if answers else ()
            draft.raw = load_object(raw) if raw else raw
            draft.meta = load_object(meta) if meta else {}
            draft.flags = load_texts(flags) if flags else UNSEEN
            draft.shown = load_texts(shown) if shown else ()
        except DECODING_ERRORS as error:
            raise damage_error(f"Message {write_reference(chat, draft.seq)}", error) from error
        if raw == "":
            draft.raw = {"role": draft.role, "content": draft.content}
        # The slots are the same.
        draft.__class__ = Message
        # A restored row may hold lone surrogates in the arguments of a call, which cannot be encoded.
        messages.append(cleaned(draft) if calls and "\\u" in calls else draft)
    return messages


def _to_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the tool calls that a column holds as JSON; raise TypeError for other values."""
    calls = load(text)
    if not all(isinstance(call, list) and [*map(type, call[:2])] == [str, str] for call in calls):
        raise TypeError("its calls are none")
    return tuple([ToolCall(*call) for call in calls])


def as_stored(message: Message, row: dict[str, Any]) -> Message:
    """Return a message with the seq, the id, the time and the tokens of the row that it was stored in."""
    draft: Any = _Draft()
    draft.seq, draft.id, draft.tokens = row["seq"], row["id"], row["tokens"]
    draft.at = from_micros(row["at"])
    draft.answers = load_texts(row["answers"]) if row["answers"] else ()
    draft.role, draft.content, draft.name = message.role, message.content, message.name
    draft.calls, draft.call_id, draft.raw = message.calls, message.call_id, message.raw
    draft.meta, draft.flags = message.meta, UNSEEN
    draft.shown = load_texts(row["shown"]) if row["shown"] else ()
    # The slots are the same.
    draft.__class__ = Message
    stored: Message = draft
    return stored


def to_row(message: Message, now: int, tokens: int) -> dict[str, Any]:
    """Return a message as the values of a row that are known before it is stored; its time may be `now`.

    Raises:
        InvalidInput: its payload is not JSON, or its time is out of range.

    """
    answers = message.answers or ((message.call_id,) if message.call_id else ())
    calls = [[call.id, call.name, call.arguments] for call in message.calls]
    raw = message.raw
    # A payload that has no more than the columns is not stored again.
    plain = raw is not None and len(raw) == 2 and raw == {"role": message.role, "content": message.content}
    return {
        "id": message.id,
        "role": message.role,
        "name": message.name,
        "at": now if message.at is None else check_time(message.at),
        "tokens": tokens,
        "content": message.content,
        "calls": dump(calls, "The tool calls of a message") if calls else None,
        "call_id": message.call_id,
        "answers": json.dumps(answers) if answers else None,
        "raw": None if raw is None else "" if plain else dump(dict(raw), "The payload of a message"),
        "meta": dump(dict(message.meta), "`meta` of a message") if message.meta else None,
        "shown": json.dumps(message.shown) if message.shown else None,
    }


def check_time(at: datetime) -> int:
    """Return a time in microseconds since the epoch; raise InvalidInput outside of the calendar."""
    micros = to_micros(at)
    try:
        from_micros(micros)
    except OverflowError as error:
        raise InvalidInput(f"{at} is outside of the years 1 to 9999 in UTC.", "Correct the time.") from error
    return micros


def rows_differ(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two rows with the same id are different messages, times and tokens aside."""
    columns, json_columns = ("role", "name", "content", "call_id"), ("calls", "raw", "meta")
    return any(row[name] != other[name] for name in columns) or any(
        _json_differs(row[name], other[name]) for name in json_columns
    )


def _json_differs(text: str | None, other: str | None) -> bool:
    """Return whether two JSON texts differ, the order of keys aside."""
    return text != other and (not text or not other or not same_json(load(text), load(other)))
