"""Items found by words or by vectors: the index in memory, and the vectors in bytes beside the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from holdfast.errors import ModelFailed
from holdfast.llm.embedding import LONGEST, Embedded, Embedder, embedder, request
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.model import hosted
from holdfast.runtime import runtime_of
from holdfast.safety.guard import mask
from holdfast.search.item_index import ItemIndex
from holdfast.store.database import decoding

if TYPE_CHECKING:
    import asyncio

    from holdfast.llm.embedding import Embed
    from holdfast.llm.model import Model
    from holdfast.memory import Memory
    from holdfast.runtime import Runtime
    from holdfast.search.vectors import Rows
    from holdfast.types import Scope


def item_embedder(memory: Memory, embed: object, dims: int) -> ItemEmbedder | None:
    """Return the embedder of items, `embed` or that of the memory; None if there is neither.

    Args:
        memory: whose calls are metered.
        embed: what `Memory(embed=…)` accepts, or None.
        dims: the numbers that each vector has; 0 for those of the first one.

    """
    runtime = runtime_of(memory)
    if runtime is None or (embed is None and runtime.embedder is None):
        return None
    model = runtime.embedder if embed is None else embedder(cast("Embed", embed))
    return ItemEmbedder(runtime, memory.scope, cast("Embedder", model), dims)


class ItemEmbedder:
    """Embeds texts of items and queries, metered as all calls of embedders are; see `item_embedder`."""

    def __init__(self, runtime: Runtime, scope: Scope, embedder: Embedder, dims: int) -> None:
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
        batch = request([mask(text)[:LONGEST] for text in texts])
        question = LLMRequest(purpose, batch, None, purpose, answer_tokens=0)
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
        return b"".join([self._head(), *map(ItemIndex.pack, vectors)])

    def unpack(self, data: bytes) -> Rows | None:
        """Return vectors from their bytes; None for those of another embedder."""
        head = self._head()
        if not data.startswith(head):
            return None
        with decoding("The vectors of an item"):
            return ItemIndex.unpack(data.removeprefix(head), self._dims)

    def _head(self) -> bytes:
        return f"{self._embedder.name}\0{self._dims}\0".encode()


def _on(model: Model, loop: asyncio.AbstractEventLoop | None) -> Model:
    return model if loop is None else hosted(model, loop)
