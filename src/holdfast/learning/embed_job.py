"""Embedding: vectors for documents without one, by which recall finds them by meaning.

Appending a message never waits for it. The documents of each source are embedded in the order of their
numbers, so that one number says how far an embedder has come; it moves in the transaction that stores the
vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from holdfast.learning.job_context import JobContext, UnitResult, WorkUnit
from holdfast.llm.embedding import LONGEST, Embedded, request
from holdfast.llm.llm_request import LLMRequest
from holdfast.safety.guard import mask
from holdfast.store import segments, vectors
from holdfast.store.database import retry_transaction
from holdfast.types import SOURCES, Source

KIND = "embed"
# Texts that `recall(fresh=True)` embeds at most.
FRESH = 1_024
MOST = "most"  # in the payload of a job that embeds at most so many documents
Texts = Sequence[tuple[int, str]]


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a request about each batch of documents without a vector, records first."""
    most, before = context.payload.get(MOST), _vector_set(context)
    left = most if isinstance(most, int) else None
    yield from _batches(context, left)
    if before.dimension not in (0, _vector_set(context).dimension):
        # The vectors have another size: all were dropped. Once, or one that never settles has no end.
        yield from _batches(context, left)


def _batches(context: JobContext, left: int | None) -> Iterator[WorkUnit]:
    for source in reversed(SOURCES):
        state = segments.index_state(context.database, context.space)
        newest, after, stored = getattr(state, source), _vector_set(context).done(source), set[int]()
        while after < newest and left != 0:
            limit = _batch_size(context) if left is None else min(_batch_size(context), left)
            until, texts = _next_batch(context, source, after, newest, limit)
            left = None if left is None else left - len(texts)
            question = LLMRequest(KIND, request([text for _, text in texts]), None, KIND, answer_tokens=0)
            store = partial(_store, context, source, (after, until), texts, stored)
            yield WorkUnit(question if texts else None, store)
            if context.held is not None and until not in stored:
                # It failed, another worker was faster, or the embedder has changed its dimension.
                return
            after = until


def _vector_set(context: JobContext) -> vectors.VectorSet:
    return vectors.set_of(context.database, context.space, context.embedder)


def _batch_size(context: JobContext) -> int:
    """Return how many texts are embedded at once: fewer after a failure, which may be due to their number."""
    attempts = context.jobs[0].attempts if context.jobs else 1
    return max(1, context.settings.texts >> 2 * max(attempts - 1, 0))


def _next_batch(
    context: JobContext, source: Source, after: int, newest: int, limit: int
) -> tuple[int, list[tuple[int, str]]]:
    """Return the number of the last document of the next batch, and the texts of those that have any."""
    database, space = context.database, context.space
    if source == "message":
        until = min(after + limit, newest)
        rows = segments.documents(database, space, after, until - after)
        texts = [(doc, text_of(role, name or "", content)) for doc, _, _, role, name, _, content, _ in rows]
    else:
        texts = vectors.findable(database, space, source, after, newest, limit)
        until = texts[-1][0] if len(texts) == limit else newest
    return until, [(number, mask(text)[:LONGEST]) for number, text in texts if text.strip()]


def text_of(role: str, name: str, content: str) -> str:
    """Return the text of a message to embed: of the output of a tool, the first line."""
    text = content.strip()
    if role == "tool":
        text = text.partition("\n")[0]
    return f"{name}: {text}" if name and text else text


@retry_transaction
def _store(
    context: JobContext,
    source: Source,
    span: tuple[int, int],
    texts: Texts,
    stored: set[int],
    answer: str | None,
) -> UnitResult:
    """Store the vectors of a batch, and add its end to `stored`, unless another worker has stored them.

    Those of other embedders go when all is embedded by this one.
    """
    # Only for those who embed.
    import numpy as np

    from holdfast.search.vectors import SCALE, STORED

    rows = np.zeros((0, 0), np.float32) if answer is None else cast("Embedded", answer).vectors
    scaled = np.rint(rows * SCALE).astype(STORED)
    # One that is all zero stands for no vector.
    bodies = [(number, row.tobytes()) for (number, _), row in zip(texts, scaled, strict=True) if row.any()]
    space, model = context.space, context.embedder
    with context.database.writing_to(space) as tx:
        if context.held is not None:
            context.held.check(tx)
        is_first = vectors.add(
            tx, space, model, source, span, bodies, dimension=rows.shape[1], now=context.now()
        )
        done = vectors.set_of(tx, space, model)
        is_complete = done.is_complete(segments.index_state(context.database, space))
        gone = vectors.drop_others(tx, space, model) if is_complete else []
    if is_first:
        stored.add(span[1])
    return UnitResult(note=f"The vectors of {', '.join(gone)} were replaced." if gone else "")
