"""What is told of an operation: how much came of it, and, where that is wanted, its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from holdfast.learning.ranking import Ranking
from holdfast.learning.results import Extraction, WorkResult
from holdfast.text.clean import clean
from holdfast.types import ChatStats, CompactionResult, Expansion, Hit, Message, Prompt, Record, Window

PREVIEW = 300  # characters of a text that are shown, where content is wanted


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its name, its object, its duration and its result.

    `name` is that of the method, such as "recall" or "append"; `provider` the name of the provider, `store`
    whose memory it is (tenant and user), `agent` who acts, and `chat` the id of the chat, each "" where there
    is none. `error` is the type of what it raised, "" if nothing. `counts` say how much came of it, such as
    "results", "messages" or "tokens"; `record` is the id of the one record that did. With content, `query` is
    what was asked for, and `texts` are the beginnings of what was given.
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
"""What operations are told to."""


def _several(found: Sequence[object]) -> dict[str, int]:
    messages = [one for one in found if isinstance(one, Message)]
    return {"results": len(found)} | ({"tokens": sum(one.tokens for one in messages)} if messages else {})


def _shown(window: Window) -> dict[str, int]:
    left_out = sum(one.messages for one in window.omitted)
    parts = {"messages": len(window.messages), "summaries": len(window.summaries), "omitted": left_out}
    return {**parts, "shortened": len(window.shortened), "tokens": window.tokens}


_COUNTED: Mapping[type, Callable[[Any], dict[str, int]]] = {
    list: _several,
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
"""How much of what an operation gave."""


def counts(result: object) -> dict[str, int]:
    """Count what an operation gave; {} for what has no number."""
    count = _COUNTED.get(type(result))
    return {} if count is None else count(result)


def _parts(result: object) -> list[object]:
    """Return the single things that something is made of: those of a list, those under all names of a dict, or itself."""
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
    """Return the beginnings of what an operation gave to read."""
    return tuple(text[:PREVIEW] for text in map(_text, _parts(result)) if text)


def remembered(result: object) -> list[dict[str, str]]:
    """Write records and hits as the conventions have them."""
    known = [part for part in _parts(result) if isinstance(part, Record | Hit)]
    return [{"id": one.id, "content": one.text[:PREVIEW]} for one in known]


def query(method: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return what was asked for; "" if nothing was, or the call is wrong, which the method itself will say."""
    try:
        asked = signature(method).bind(*args, **kwargs).arguments.get("query")
    except (TypeError, ValueError):
        return ""
    return clean(asked[:PREVIEW]) if isinstance(asked, str) else ""
