"""Memory as documents that are searched and fetched: the pair of tools that some clients, as ChatGPT, look for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from holdfast.tools.actions import Actions
from holdfast.tools.results import ORIGIN, Item

if TYPE_CHECKING:
    from holdfast.contract import Provider

_TITLE = 80  # characters
_WHOLE = 8_000  # tokens of a document
_RESOURCES = {"message": "messages", "summary": "summary"}
_RESERVED = re.compile(rb"[^A-Za-z0-9._~-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Name a document: what was found, by its id, and where to read it."""

    id: str
    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """Give the documents that answer a question, the best first."""

    results: tuple[Document, ...]
    origin: str = ORIGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Document):
    """Give a document: a record, the sources of a summary, or a message and those after it."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    origin: str = ORIGIN


class Documents:
    """Search and fetch what a memory holds."""

    def __init__(self, provider: Provider) -> None:
        self._actions = Actions(provider, read_only=True, token_cap=_WHOLE)

    def search(self, query: Annotated[str, "a question or some words"]) -> Documented:
        """Search memory for documents; `fetch` gives their text.

        Raises:
            InvalidInput: the query is blank.

        """
        return Documented(results=tuple(_document(item) for item in self._actions.recall(query).hits))

    def fetch(self, id: Annotated[str, "id of a document"]) -> Fetched:
        """Give the text of a document that `search` found.

        Raises:
            InvalidInput: there is no such document.

        """
        found = self._actions.expand(id)
        first = found.items[0]
        several = len(found.items) > 1
        text = "\n".join(f"{item.by}: {item.text}" if several else item.text for item in found.items)
        known = {
            "kind": first.kind,
            "by": first.by,
            "at": first.at,
            "session": first.session,
            "warning": first.warning,
        }
        metadata = {name: value for name, value in known.items() if value}
        if found.cursor:
            metadata["cut"] = "the rest is too long"
        return Fetched(id=id, title=_title(first), url=_url(first.kind, id), text=text, metadata=metadata)


def _document(item: Item) -> Document:
    return Document(id=item.id, title=_title(item), url=_url(item.kind, item.id), text=item.text)


def _title(item: Item) -> str:
    line = " ".join(item.text.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"


def _url(kind: str, identity: str) -> str:
    """Name the resource of the MCP server that has it."""
    return f"memory://{_RESOURCES.get(kind, 'facts')}/{_encoded(identity)}"


def _encoded(part: str) -> str:
    return _RESERVED.sub(lambda found: b"%%%02X" % found.group()[0], part.encode()).decode()
