"""The vectors of items and of queries, and how they are stored beside the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from holdfast.errors import ModelFailed
from holdfast.llm.embedding import LONGEST, Embedded, Embedder, request
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.model import hosted
from holdfast.safety.guard import mask
from holdfast.search.item_index import packed, unpacked
from holdfast.store.database import decoding

if TYPE_CHECKING:
    import asyncio

    from holdfast.llm.model import Model
    from holdfast.runtime import Runtime
    from holdfast.search.vector_scan import Rows
    from holdfast.types import Scope


class StoreEmbedder:
    """Embeds texts of items and queries, metered as all calls of embedders are.

    Args:
        runtime: what the memory has open.
        scope: whose calls are metered.
        embedder: what embeds.
        dims: the numbers that each vector has; 0 for those of the first one.

    """

    def __init__(self, runtime: Runtime, scope: Scope, embedder: Embedder, dims: int = 0) -> None:
        self._runtime, self._scope, self._embedder, self._dims = runtime, scope, embedder, dims

    def documents(self, texts: Sequence[str], loop: asyncio.AbstractEventLoop | None = None) -> list[Rows]:
        """Return a vector of length 1 for each text, or of zeros.

        On an event loop, if one is given, an asynchronous function runs while the thread of the caller waits.

        Raises:
            ModelFailed: the embedder failed, or its vectors have not as many numbers as all others.

        """
        settings = self._runtime.learning
        parts = [texts[start : start + settings.texts] for start in range(0, len(texts), settings.texts)]
        model = _on(self._embedder.documents, loop)
        return [row for part in parts for row in self._ask(model, "embed", part, settings.patience)]

    def query(self, text: str, loop: asyncio.AbstractEventLoop | None = None) -> Rows:
        """Return the vector of a query; see `documents`."""
        patience = self._runtime.learning.patience
        vector: Rows = self._ask(_on(self._embedder.queries, loop), "recall", [text], patience)[0]
        return vector

    def _ask(self, model: Model, purpose: str, texts: Sequence[str], patience: float) -> Rows:
        asked = request([mask(text)[:LONGEST] for text in texts])
        question = LLMRequest(purpose, asked, None, purpose, answer_tokens=0)
        answer = self._runtime.meter(self._scope).ask(model, question, patience)
        rows = cast("Embedded", answer).vectors
        self._dims = self._dims or rows.shape[1]
        if rows.shape[1] != self._dims:
            raise ModelFailed(
                f"The embedder returned vectors of {rows.shape[1]:,} numbers, not of {self._dims:,}.",
                "Set `dims` in `index` to what it returns.",
                reason="answer",
            )
        return rows

    def pack(self, vectors: Iterable[Rows]) -> bytes:
        """Return vectors as the bytes to store, with the embedder that they are of."""
        return b"".join([self._head(), *map(packed, vectors)])

    def unpack(self, data: bytes) -> Rows | None:
        """Return vectors from their bytes; None for those of another embedder."""
        head = self._head()
        if not data.startswith(head):
            return None
        with decoding("The vectors of an item"):
            return unpacked(data.removeprefix(head), self._dims)

    def _head(self) -> bytes:
        return f"{self._embedder.name}\0{self._dims}\0".encode()


def _on(model: Model, loop: asyncio.AbstractEventLoop | None) -> Model:
    return model if loop is None else hosted(model, loop)
