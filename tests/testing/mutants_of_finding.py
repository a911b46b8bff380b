"""Defects in what is found."""

from __future__ import annotations

import re
from typing import Any

from mutant import Mutant, altered, ignoring, of_chats, of_provider, returning, reverse

from holdfast import Hit
from holdfast.testing.case import FullChat, FullProvider


def like(chat: FullChat, query: str, scope: str = "both", limit: int = 20) -> list[Hit]:
    """Search as LIKE does."""
    pattern = re.escape(query).replace("%", ".*").replace("_", ".")
    hits = [hit for one in ("alpha beta", "file", "discount", "boxes", query) for hit in chat.search(one)]
    return [hit for hit in hits if re.search(pattern, hit.text, re.IGNORECASE)][:limit]


def limit_for_each(chat: FullChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    if scope != "both":
        return chat.search(query, scope, limit)
    return [*chat.search(query, "messages", limit), *chat.search(query, "summaries", limit)]


def exact_case(chat: FullChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    return [hit for hit in chat.search(query, scope, limit) if query in hit.text]


def by_pattern(chat: FullChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    return [hit for hit in chat.search("", scope, 10**6) if re.search(query, hit.text, re.IGNORECASE)][:limit]


def by_operators(memory: FullProvider, query: str, *, limit: int = 10) -> list[Hit]:
    """Pass a question on to what knows quotes and brackets as operators."""
    if re.search(r"[\"()*:]", query):
        raise RuntimeError(f"syntax error near {query!r}")
    return memory.recall(query, limit=limit)


def limit_before_scope(chat: FullChat, query: str, scope: Any = "both", limit: int = 20) -> list[Hit]:
    there = {hit.id for hit in chat.search(query, scope, 10**6)}
    return [hit for hit in chat.search(query, "both", limit) if hit.id in there]


FINDING = (
    of_chats("% and _ are wildcards", "search", search=like),
    of_chats("the limit of a search is ignored", "search", search=ignoring("search", limit=10**6)),
    of_chats("each scope has a limit of its own", "search", search=limit_for_each),
    of_chats("case matters", "search", search=exact_case),
    of_chats("the scope is ignored", "search", search=ignoring("search", scope="both")),
    of_chats("a query is a pattern", "search", search=by_pattern),
    Mutant(
        "the limit comes before the scope",
        "search",
        lambda inner: altered(inner, {}, {"search": limit_before_scope}),
    ),
    of_provider("the limit of a recall is ignored", "recall", recall=ignoring("recall", limit=10**6)),
    of_provider("the worst is recalled first", "recall", recall=returning("recall", reverse)),
    of_provider("a question is full of operators", "recall", recall=by_operators),
)
