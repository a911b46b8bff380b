"""Defects in what is found."""

from __future__ import annotations

import re

from mutant import ignoring, of_chats, of_provider, returning, reverse

from holdfast import Hit
from holdfast.testing.case import FullChat


def like(chat: FullChat, query: str, scope: str = "both", limit: int = 20) -> list[Hit]:
    """Search as LIKE does."""
    pattern = re.escape(query).replace("%", ".*").replace("_", ".")
    hits = [hit for one in ("alpha beta", "file", "discount", "boxes", query) for hit in chat.search(one)]
    return [hit for hit in hits if re.search(pattern, hit.text, re.IGNORECASE)][:limit]


FINDING = (
    of_chats("% and _ are wildcards", "search", search=like),
    of_chats("the limit of a search is ignored", "search", search=ignoring("search", limit=10**6)),
    of_provider("the limit of a recall is ignored", "recall", recall=ignoring("recall", limit=10**6)),
    of_provider("the worst is recalled first", "recall", recall=returning("recall", reverse)),
)
