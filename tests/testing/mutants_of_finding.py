"""Defects in what is found."""

from __future__ import annotations

import re
from typing import Any

from mutant import ignoring, of_chats, of_provider, returning, reverse

from holdfast import Hit


def like(chat: Any, query: str, scope: str = "both", limit: int = 20) -> list[Hit]:
    """Search as LIKE does."""
    pattern = re.escape(query).replace("%", ".*").replace("_", ".")
    queries = ("alpha beta", "file", "discount", "boxes", query)
    hits = {hit.id: hit for one in queries for hit in chat.search(one, scope)}
    return [hit for hit in hits.values() if re.search(pattern, hit.text, re.IGNORECASE)][:limit]


FINDING = (
    of_chats("% and _ are wildcards", "search", search=like),
    of_chats("the limit of a search is ignored", "search", search=ignoring("search", limit=10**6)),
    of_provider("the limit of a recall is ignored", "recall", recall=ignoring("recall", limit=10**6)),
    of_provider("the worst is recalled first", "recall", recall=returning("recall", reverse)),
)
