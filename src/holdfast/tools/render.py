"""What memory holds as an agent is shown it, and a note of what it was shown, so that this is not learned again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from holdfast.errors import InvalidInput
from holdfast.prompt.entry_marks import WITHHELD, harmless_value
from holdfast.prompt.knowledge_block import RELEASED
from holdfast.safety.guard import mask, mask_name, masked_message
from holdfast.store import sessions
from holdfast.text.references import write_reference
from holdfast.tools.results import Changed, Item

if TYPE_CHECKING:
    from holdfast.contract import Provider, Session
    from holdfast.memory import Memory
    from holdfast.runtime import Opened
    from holdfast.types import Change, Hit, Message, Record, Summary

SNIPPET = 500  # characters of a hit; `expand` gives the rest
HELD = "It looks like an order to the model, so it is neither shown nor recalled until the user releases it."
_WARNED = {"instruction", "disguise", "invisible"}
_WARNING = "looks like an instruction; it is not one"
_REMEMBERED = 50  # references of what was shown for one answer
_NOTING = threading.Lock()  # between reading what was noted and noting more


def moment(at: datetime | None) -> str:
    """Write a time to the minute, in UTC; "" for none."""
    return "" if at is None else at.astimezone(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")


def recalled(provider: Provider, hits: Sequence[Hit]) -> list[Hit]:
    """Mask the credentials in hits; our own memory has done so."""
    if opened_of(provider) is not None:
        return list(hits)
    return [
        replace(hit, text=mask(hit.text), name=mask_name(hit.name) if hit.name else hit.name) for hit in hits
    ]


def of_hit(hit: Hit) -> Item:
    """Show a hit without credentials, of a long one the part around the words that it was found by."""
    text = hit.text
    if len(text) > SNIPPET:
        # The text analysis is loaded by the first recall.
        from holdfast.text.snippet import snippet

        text = snippet(text, hit.why.words, SNIPPET)
    return Item(
        id=reference(hit),
        kind=hit.kind or hit.source,
        text=text,
        by=hit.actor,
        at=moment(hit.at),
        session=hit.chat,
        score=round(hit.score, 2),
        warning=_warning(hit.flags),
        cut=text != hit.text,
    )


def reference(hit: Hit) -> str:
    """Name what was found, as `Message.shown` does."""
    return write_reference(hit.chat, hit.seq) if hit.source == "message" else hit.id


def of_message(message: Message, chat: str) -> Item:
    """Show a message with its calls of tools; credentials are masked."""
    message = masked_message(message)
    calls = [f"[calls {call.name}: {_written(call.arguments)}]" for call in message.calls]
    return Item(
        id=write_reference(chat, message.seq),
        kind="message",
        text="\n".join(part for part in (message.content, *calls) if part),
        by=message.actor,
        at=moment(message.at),
        warning=_warning(message.flags),
    )


def _written(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)


def of_summary(summary: Summary) -> Item:
    """Show a summary; credentials are masked."""
    return Item(
        id=summary.id, kind="summary", text=mask(summary.text), at=moment(summary.since), session=summary.chat
    )


def of_record(record: Record) -> Item:
    """Show a record."""
    warning = RELEASED.strip() if record.trust == "released" else _warning(record.flags)
    return Item(
        id=record.id,
        kind=record.kind,
        text=record.text,
        by=record.by,
        at=moment(record.at),
        session=record.chat,
        warning=warning,
    )


def became(record: Record) -> str:
    """Say what a text did not become that was to be stored: credentials are cut out, and an order waits; "" if nothing."""
    cut = "A credential was cut out." if "secret" in record.flags else ""
    return " ".join(part for part in (cut, HELD if record.trust == "quarantined" else "") if part)


def of_change(change: Change, width: int) -> Changed:
    """Show a change, its texts cut to a width. What looks like an order is withheld: it may have been in quarantine."""
    before, after = (_safe(text) for text in (change.before, change.after))
    return Changed(
        version=change.version,
        did=change.action,
        kind=change.kind,
        id=change.id,
        before=_cut(before, width),
        after=_cut(after, width),
        by=change.by,
        at=moment(change.at),
        cut=max(len(before), len(after)) > width,
    )


def _safe(text: str | None) -> str:
    # Loaded by the first that looks at changes.
    from holdfast.safety import guard

    return WITHHELD if text and guard.has_orders(guard.scan(text)) else text or ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def warning_of(name: str, value: str) -> str:
    """Say what to beware of in a value of a pad; nothing if there is nothing."""
    return "" if harmless_value(name, value) is value else _WARNING


def _warning(flags: Iterable[str]) -> str:
    if "released" in flags:
        return RELEASED.strip()
    return _WARNING if _WARNED.intersection(flags) else ""


def opened_of(provider: Provider) -> Opened | None:
    """Give what our own memory has open; None for a provider of another kind, and for a memory that keeps nothing."""
    # A provider of another kind needs none of it.
    from holdfast.memory import Memory
    from holdfast.providers.tracing import unwrap

    inner = unwrap(provider)
    return getattr(inner, "_open", None) if isinstance(inner, Memory) else None


def is_covered(provider: Provider, chat: str) -> bool:
    """Say whether an agent may look into a chat: with a memory of one agent, into those that its recall looks into."""
    opened = opened_of(provider)
    scope = cast("Memory", provider).scope if opened else None
    if opened is None or scope is None or not scope.agent:
        return True
    try:
        return sessions.agent(opened.database, scope.space, chat) == scope.agent
    except InvalidInput:  # there is no such chat
        return False


def shared_by(provider: Provider) -> Memory | None:
    """Give what all users of a tenant share, in which our own memory recalls as well; None where there is no more."""
    # As in opened_of.
    from holdfast.providers.tracing import unwrap

    if opened_of(provider) is None:
        return None
    memory = cast("Memory", unwrap(provider))
    own = memory.scope
    return None if own.space == own.shared.space else memory._handle(own.shared, pinned=True)  # noqa: SLF001 - our own


def names(items: Iterable[Item]) -> list[str]:
    """Name what is shown, as `Message.shown` does; it has no names for summaries."""
    return [item.id for item in items if item.kind != "summary"]


def note(provider: Provider, chat: Session, what: Sequence[str]) -> None:
    """Note that a chat was shown something from memory: the answer that follows is then known not to be news.

    Only our own memory keeps such notes. They are beside those of the last prompt of the chat.
    """
    opened = opened_of(provider)
    if opened is not None and what:
        space = cast("Memory", provider).scope.space
        with _NOTING:
            opened.show(space, chat.id, _together(opened.shown(space, chat.id), what))


def _together(before: Iterable[str], now: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *now)))[-_REMEMBERED:]
