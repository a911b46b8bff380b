"""Embedders: from the value of `embed=` to models whose answers are vectors.

A model of `llm/model.py` takes a text and answers with one; an embedder is two of them, for documents and for
queries, whose prompt is a JSON list of texts and whose answer has one vector for each. So a call of an
embedder is metered, waited for and explained as every call of a model is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, isclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, cast

from holdfast.errors import InvalidInput, MissingExtra, ModelFailed, shown
from holdfast.llm.adapters import counted, explained_name, is_async, name_of, without_retries
from holdfast.llm.errors import redacted
from holdfast.llm.local_embedding import from_fastembed, from_model2vec
from holdfast.llm.model import Answer, Model
from holdfast.types import check_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic_ai import Embedder as PydanticEmbedder
    from pydantic_ai.embeddings import EmbeddingResult
    from pydantic_ai.providers import Provider

# Of arrays as well.
Vector: TypeAlias = Iterable[float]
Vectors: TypeAlias = Iterable[Vector]
EmbedFunction: TypeAlias = Callable[[Sequence[str]], Vectors] | Callable[[Sequence[str]], Awaitable[Vectors]]


class SyncEmbeddings(Protocol):
    """An object with two methods, as those of LangChain are."""

    def embed_documents(self, texts: list[str]) -> Vectors | Awaitable[Vectors]:
        """Return a vector for each text that is to be found."""

    def embed_query(self, text: str) -> Vector | Awaitable[Vector]:
        """Return the vector of a text that is looked for."""


class AsyncEmbeddings(Protocol):
    """The same, awaited."""

    async def aembed_documents(self, texts: list[str]) -> Vectors:
        """Return a vector for each text that is to be found."""

    async def aembed_query(self, text: str) -> Vector:
        """Return the vector of a text that is looked for."""


class PydanticEmbeddings(Protocol):
    """An `Embedder` of pydantic-ai, for type checkers that have not installed it."""

    @property
    def model(self) -> object:
        """The model, or its name."""


Embed: TypeAlias = EmbedFunction | SyncEmbeddings | AsyncEmbeddings | PydanticEmbeddings | str
# Characters of a text that is embedded: most embedders read 256 or 512 tokens.
LONGEST = 2_000
# Numbers of a vector, at most; the largest that providers offer have 4,096.
MOST_NUMBERS = 16_384
_LOCAL = {"model2vec": from_model2vec, "fastembed": from_fastembed}
# The files by which the kind of a model is told.
_FILES = {"model.onnx": "fastembed", "onnx/model.onnx": "fastembed", "model.safetensors": "model2vec"}


# The environment variable that names the embedder of `embed="auto"`.
CONFIGURED = "HOLDFAST_EMBED"


class Embedded(Answer):
    """An answer of an embedder: a row for each text, of length 1, or all zero where it knows no word."""

    __slots__ = ("vectors",)
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32], tokens: int | None = None) -> Self:
        """Return an answer of vectors, with the tokens of the texts if its provider counted them."""
        answer = cls("", tokens, 0)
        answer.vectors = vectors
        return answer


@dataclass(frozen=True, slots=True)
class Embedder:
    """An embedder and its name; vectors are stored by that name, and those of two names never mix."""

    name: str
    documents: Model = field(repr=False)
    queries: Model = field(repr=False)


def request(texts: Sequence[str]) -> str:
    """Return the prompt for some texts."""
    return json.dumps(list(texts), ensure_ascii=False)


def embedder(embed: Embed) -> Embedder:
    """Return the embedder for a function, an object with `embed_documents` and `embed_query`, or a name.

    Names are "model2vec:" or "fastembed:" with a folder or the name of a model, and else those of
    pydantic-ai, such as "openai:text-embedding-3-small". A name is looked up at once, so that a wrong one is
    found here.

    Raises:
        InvalidInput: it is none of these, or there is no such provider or folder.
        MissingExtra: the package that a name needs is not installed.
        ModelFailed: the key of the provider, or another of its settings, is missing, or the model cannot be
            loaded.

    """
    if isinstance(embed, str):
        return _look_up(check_name(embed, "`embed`"))
    if _is_pydantic(embed):
        return _from_pydantic(cast("PydanticEmbedder", embed), _model_name(embed))
    if isclass(embed):
        raise _no_embedder(f"the class {embed.__name__}")
    for prefix, awaited in (("", False), ("a", True)):
        documents = getattr(embed, f"{prefix}embed_documents", None)
        query = getattr(embed, f"{prefix}embed_query", None)
        if callable(documents) and callable(query):
            return _of(_model_name(embed), documents, query, awaited=awaited or is_async(documents))
    if not callable(embed):
        raise _no_embedder(f"of type {type(embed).__name__}")
    function = cast("Callable[[list[str]], object]", embed)
    model = _model(name_of(embed), function, is_async=is_async(embed))
    return Embedder(model.name, model, model)


def configured() -> str | None:
    """Return the name of the embedder that `HOLDFAST_EMBED` configures; None where it is unset or blank.

    It holds the folder of a model, which is told by its files, or a name as `embedder` takes them. Of
    model2vec and fastembed that must be a folder as well: a variable downloads nothing.

    Raises:
        InvalidInput: it is no name, or there is no such folder, or no model in it.

    """
    value = os.environ.get(CONFIGURED, "").strip()
    if not value:
        return None
    provider, colon, rest = check_name(value, f"${CONFIGURED}").partition(":")
    is_local = provider in _LOCAL and bool(rest.strip())
    folder = _folder(rest if is_local else value)
    if folder is None and colon and not is_local:
        return value
    if folder is not None and not is_local:
        provider = next((name for file, name in _FILES.items() if (folder / file).is_file()), "")
    if folder is None or not provider:
        lacks = "has no model" if folder else "is no folder"
        raise InvalidInput(
            f"${CONFIGURED} is {shown(redacted(value))}, which {lacks}.",
            "Set it to the folder of a model, as docs/meaning.md says, or unset it to search by words alone.",
        )
    return f"{provider}:{folder}"


def _folder(path: str) -> Path | None:
    """Return the absolute path of a folder, so that all processes name it alike; None where none is."""
    try:
        folder = Path(path).expanduser().absolute()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError):
        # A part of the path is too long, may not be read, or names an unknown user.
        return None


def _no_embedder(what: str) -> InvalidInput:
    return InvalidInput(
        f"`embed` is {what}, which embeds nothing.",
        "Pass a function from a list of texts to a list of vectors, an object with embed_documents and "
        "embed_query, or a name such as 'openai:text-embedding-3-small'.",
    )


def _model_name(embed: object) -> str:
    """Return the name of an object, with that of its model where it has one."""
    name = type(embed).__qualname__
    for attribute in ("model_name", "model"):
        model = getattr(embed, attribute, None)
        model = getattr(model, "model_name", model)
        if isinstance(model, str) and model:
            return f"{name}:{model}"
    return name


def _of(
    name: str, documents: Callable[[list[str]], object], query: Callable[[str], object], *, awaited: bool
) -> Embedder:
    def ask(texts: list[str]) -> object:
        vector = query(texts[0])
        return _alone(vector) if isawaitable(vector) else [vector]

    return Embedder(name, _model(name, documents, is_async=awaited), _model(name, ask, is_async=awaited))


async def _alone(vector: Awaitable[object]) -> object:
    return [await vector]


def _model(name: str, function: Callable[[list[str]], object], *, is_async: bool) -> Model:
    """Return a model of a function from texts to vectors."""

    async def awaited(vectors: Awaitable[object], count: int) -> Embedded:
        return Embedded.of(checked(await vectors, count, name))

    def ask(prompt: str) -> object:
        texts = json.loads(prompt)
        vectors = function(texts)
        if isawaitable(vectors):
            return awaited(vectors, len(texts))
        return Embedded.of(checked(vectors, len(texts), name))

    return Model(name, is_async=is_async, ask=ask)


def checked(given: object, count: int, name: str) -> NDArray[np.float32]:
    """Return vectors as rows of length 1; one that is all zero stays so.

    Raises:
        ModelFailed: they are not as many as the texts, not of one length, or not finite numbers.

    """
    # Only for those who have an embedder.
    import numpy as np

    try:
        rows = np.asarray(given if hasattr(given, "__array__") else list(cast("Iterable[object]", given)))
    except (TypeError, ValueError, RuntimeError) as error:
        raise _unusable(name, "no list of vectors of one length") from error
    if rows.ndim != 2 or rows.dtype.kind not in "iuf":
        raise _unusable(name, "no list of vectors of numbers")
    if len(rows) != count:
        raise _unusable(name, f"{len(rows)} vectors for {count} texts")
    if not 0 < rows.shape[1] <= MOST_NUMBERS:
        raise _unusable(name, f"vectors of {rows.shape[1]:,} numbers")
    wide = rows.astype(np.float64)
    if not np.isfinite(wide).all():
        raise _unusable(name, "vectors with numbers that are not finite")
    largest = np.abs(wide).max(axis=1, keepdims=True)
    wide /= np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return (wide / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _unusable(name: str, what: str) -> ModelFailed:
    return ModelFailed(
        f"The embedder {redacted(name)} returned {what}.",
        "Return one list of numbers for each text, all of one length.",
        reason="answer",
    )


def _look_up(name: str) -> Embedder:
    provider, colon, rest = name.partition(":")
    if not (colon and provider.strip() and rest.strip()):
        raise InvalidInput(
            f"{shown(redacted(name))} does not name a provider and a model.",
            "Pass 'provider:model', such as 'openai:text-embedding-3-small' or 'model2vec:PATH'.",
        )
    if load := _LOCAL.get(provider):
        documents, queries = (_model(name, embed, is_async=False) for embed in load(rest, name))
        return Embedder(name, documents, queries)
    try:
        # Takes half a second to load.
        from pydantic_ai import Embedder as PydanticEmbedder
        from pydantic_ai.embeddings import infer_embedding_model
        from pydantic_ai.providers import infer_provider
    except ImportError as error:
        raise MissingExtra.of("llm") from error
    providers: list[Provider[object]] = []

    def provider_of(provider: str) -> Provider[object]:
        providers.append(without_retries(infer_provider(provider)))
        return providers[-1]

    with explained_name(name, _unknown, ValueError):
        model = infer_embedding_model(name, provider_factory=provider_of)
    return _from_pydantic(PydanticEmbedder(model), name, *providers)


def _unknown(name: str, _: str) -> InvalidInput:
    return InvalidInput(
        f"{redacted(name)!r} is not an embedding model of pydantic-ai.",
        "Pass 'provider:model', such as 'openai:text-embedding-3-small', or a function.",
    )


def _is_pydantic(embed: object) -> bool:
    """Return whether it is an embedder of pydantic-ai, without loading that: its owner has loaded it."""
    loaded = sys.modules.get("pydantic_ai.embeddings")
    return loaded is not None and isinstance(embed, loaded.Embedder)


def _from_pydantic(embed: PydanticEmbedder, name: str, *providers: Provider[object]) -> Embedder:
    def model(call: Callable[[list[str]], Awaitable[EmbeddingResult]]) -> Model:
        async def ask(prompt: str) -> Embedded:
            from contextlib import AsyncExitStack

            texts = json.loads(prompt)
            # Entered, a provider has a client for this event loop, and closes it when its calls have ended.
            async with AsyncExitStack() as stack:
                for provider in providers:
                    await stack.enter_async_context(provider)
                result = await call(texts)
            rows = checked(result.embeddings, len(texts), name)
            return Embedded.of(rows, counted(result.usage.input_tokens))

        return Model(name, is_async=True, ask=ask, homebound=True)

    return Embedder(name, model(embed.embed_documents), model(embed.embed_query))
