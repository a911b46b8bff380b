"""An operation as it is reported: what it was, how much it returned, and, with content, which texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from holdfast import Extraction, Ranking, WorkResult
from holdfast.port.texts import clean
from holdfast.types import ChatStats, CompactionResult, Expansion, Hit, Hits, Message, Prompt, Record, Window

# Characters of a text that are reported with content.
PREVIEW = 300


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its name, its object, its duration and its result.

    `name` is that of the method, such as "recall" or "append"; `provider` the name of the provider, `store`
    tenant and user, `agent` who acts, and `chat` the id of the chat, each "" where there is none. `error` is
    the type of the error that it raised, "" if none. `counts` are numbers of what it returned, such as
    "results", "messages" or "tokens"; `record` is the id of a single record. With content, `query` is the
    query, and `texts` are the beginnings of the texts that it returned.
    """

    name: str
    provider: str
    store: str = field(default="", kw_only=True)
    agent: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    error: str = field(default="", kw_only=True)
    counts: Mapping[str, int] = field(default_factory=dict, kw_only=True, hash=False)
    record: str = field(default="", kw_only=True)
    query: str = field(default="", kw_only=True)
    texts: tuple[str, ...] = field(default=(), kw_only=True)


Observer = Callable[[Operation], object]
"""A callback for operations."""


def _several(found: Sequence[object]) -> dict[str, int]:
    messages = [one for one in found if isinstance(one, Message)]
    return {"results": len(found)} | ({"tokens": sum(one.tokens for one in messages)} if messages else {})


def _shown(window: Window) -> dict[str, int]:
    left_out = sum(one.messages for one in window.omitted)
    parts = {"messages": len(window.messages), "summaries": len(window.summaries), "omitted": left_out}
    return {**parts, "shortened": len(window.shortened), "tokens": window.tokens}


_COUNTED: Mapping[type, Callable[[Any], dict[str, int]]] = {
    list: _several,
    Hits: _several,
    dict: lambda groups: {"results": sum(map(len, groups.values()))},
    Ranking: _several,
    Record: lambda _: {"results": 1},
    Message: lambda one: {"results": 1, "tokens": one.tokens},
    Window: _shown,
    Prompt: lambda one: {**_shown(one.window), "hits": len(one.hits), "tokens": one.tokens["total"]},
    Expansion: lambda one: {"messages": len(one.messages), "summaries": len(one.children)},
    ChatStats: lambda one: {"messages": one.messages, "tokens": one.stored_tokens},
    CompactionResult: lambda one: {
        "messages": one.messages,
        "summaries": len(one.summaries),
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
        "calls": one.calls,
    },
    Extraction: lambda one: {"results": len(one.records), "calls": one.calls},
    WorkResult: lambda one: {"results": len(one.records), "jobs": one.count, "calls": one.calls},
}
"""How results are counted, by type."""


def counts(result: object) -> dict[str, int]:
    """Return the counts of a result; {} for other types."""
    # Messages that were stored are a kind of list.
    count = next(filter(None, map(_COUNTED.get, type(result).__mro__)), None)
    return {} if count is None else count(result)


def _parts(result: object) -> list[object]:
    """Return the items of a result: those of a list, of all values of a dict, or the result itself."""
    if isinstance(result, dict):
        return [part for one in result.values() for part in _parts(one)]
    if isinstance(result, Sequence) and not isinstance(result, str):
        return list(result)
    return [result]


def _text(part: object) -> str | None:
    if isinstance(part, Record | Hit):
        return part.text
    if isinstance(part, Message):
        return part.content
    return part if isinstance(part, str) else None


def texts(result: object) -> tuple[str, ...]:
    """Return the beginnings of the texts of a result."""
    return tuple(text[:PREVIEW] for text in map(_text, _parts(result)) if text)


def remembered(result: object) -> list[dict[str, str]]:
    """Return records and hits in the format of the conventions."""
    known = [part for part in _parts(result) if isinstance(part, Record | Hit)]
    return [{"id": one.id, "content": one.text[:PREVIEW]} for one in known]


def query(method: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the query of a call; "" if it has none, or wrong arguments, for which the method will raise."""
    try:
        asked = signature(method).bind(*args, **kwargs).arguments.get("query")
    except (TypeError, ValueError):
        return ""
    return clean(asked[:PREVIEW]) if isinstance(asked, str) else ""
