"""An operation as it is reported: its name, the counts of its result and, with content, its texts."""

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


def _list_counts(results: Sequence[object]) -> dict[str, int]:
    messages = [result for result in results if isinstance(result, Message)]
    tokens = {"tokens": sum(message.tokens for message in messages)} if messages else {}
    return {"results": len(results), **tokens}


def _window_counts(window: Window) -> dict[str, int]:
    left_out = sum(omission.messages for omission in window.omitted)
    parts = {"messages": len(window.messages), "summaries": len(window.summaries), "omitted": left_out}
    return {**parts, "shortened": len(window.shortened), "tokens": window.tokens}


_COUNTED: Mapping[type, Callable[[Any], dict[str, int]]] = {
    list: _list_counts,
    Hits: _list_counts,
    dict: lambda groups: {"results": sum(map(len, groups.values()))},
    Ranking: _list_counts,
    Record: lambda _: {"results": 1},
    Message: lambda message: {"results": 1, "tokens": message.tokens},
    Window: _window_counts,
    Prompt: lambda prompt: {
        **_window_counts(prompt.window),
        "hits": len(prompt.hits),
        "tokens": prompt.tokens["total"],
    },
    Expansion: lambda page: {"messages": len(page.messages), "summaries": len(page.children)},
    ChatStats: lambda stats: {"messages": stats.messages, "tokens": stats.stored_tokens},
    CompactionResult: lambda result: {
        "messages": result.messages,
        "summaries": len(result.summaries),
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "calls": result.calls,
    },
    Extraction: lambda result: {"results": len(result.records), "calls": result.calls},
    WorkResult: lambda result: {"results": len(result.records), "jobs": result.count, "calls": result.calls},
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
        return [part for value in result.values() for part in _parts(value)]
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
    return [{"id": part.id, "content": part.text[:PREVIEW]} for part in known]


def query(method: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the query of a call; "" if it has none, or if its arguments are wrong."""
    try:
        text = signature(method).bind(*args, **kwargs).arguments.get("query")
    except (TypeError, ValueError):
        return ""
    return clean(text[:PREVIEW]) if isinstance(text, str) else ""
