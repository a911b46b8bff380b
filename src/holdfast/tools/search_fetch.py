"""Memory as documents: the tools `search` and `fetch`, which clients such as ChatGPT require."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from holdfast.contract import Provider
from holdfast.tools.actions import Actions
from holdfast.tools.render import cut
from holdfast.tools.results import ORIGIN, MemoryItem

_TITLE = 80  # characters
_WHOLE = 8_000  # tokens of a document
_RESOURCES = {"message": "messages", "summary": "summary"}
_RESERVED = re.compile(rb"[^A-Za-z0-9._~-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocument:
    """A document that was found, with its id and URL."""

    id: str
    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """The documents found by a query, best first."""

    results: tuple[FoundDocument, ...]
    origin: str = ORIGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument(FoundDocument):
    """A document: a record, the sources of a summary, or a message and those after it."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    origin: str = ORIGIN


class Documents:
    """The documents of a memory."""

    def __init__(self, provider: Provider) -> None:
        self._actions = Actions(provider, read_only=True, max_tokens=_WHOLE)

    def search(self, query: Annotated[str, "a question or some words"]) -> DocumentPage:
        """Search memory for documents; `fetch` gives their text.

        Raises:
            InvalidInput: the query is blank.

        """
        hits = self._actions.recall(query).hits
        return DocumentPage(
            results=tuple(FoundDocument(**_heading(item, item.id), text=_text(item)) for item in hits)
        )

    def fetch(self, id: Annotated[str, "id of a document"]) -> FetchedDocument:
        """Return the text of a document that `search` found.

        Raises:
            InvalidInput: there is no such document.

        """
        page = self._actions.expand(id)
        first = page.items[0]
        several = len(page.items) > 1
        text = "\n".join(f"{item.by}: {_text(item)}" if several else _text(item) for item in page.items)
        fields = {name: getattr(first, name) for name in ("kind", "by", "at", "session")}
        metadata = {name: value for name, value in fields.items() if value}
        if page.cursor:
            metadata["cut"] = "the rest is too long"
        return FetchedDocument(**_heading(first, id), text=text, metadata=metadata)


def _text(item: MemoryItem) -> str:
    """Return the text of a part of a document after its warning, for which clients have no field."""
    return f"[{item.warning}] {item.text}" if item.warning else item.text


def _heading(item: MemoryItem, id: str) -> dict[str, Any]:
    """Return id and title of a document, and the URL of its resource in the MCP server."""
    encoded = _RESERVED.sub(lambda match: b"%%%02X" % match.group()[0], id.encode()).decode()
    url = f"memory://{_RESOURCES.get(item.kind, 'facts')}/{encoded}"
    return {"id": id, "title": cut(" ".join(item.text.split()), _TITLE), "url": url}
